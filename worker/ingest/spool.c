#include "worker/ingest/spool.h"

#include <inttypes.h>
#include <stdio.h>

#define WRITE_PIECE ((size_t)1 << 20)

void wk_spool_path(const wk_spool *spool, const char *name, char ret_path[WK_SPOOL_PATH])
{
    (void)snprintf(ret_path, WK_SPOOL_PATH, "%s/%s", spool->folder, name);
}

static sluice_status write_file(const wk_spool *spool, const char *path, const uint8_t *bytes, size_t length,
                                sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_TRY(pf_create(spool->volume, path, &file, err));
    status = SLUICE_OK;
    for (size_t at = 0; at < length && status == SLUICE_OK; at += WRITE_PIECE)
        status = pf_write(file, at, bytes + at, length - at < WRITE_PIECE ? length - at : WRITE_PIECE, err);
    sluice_status closed = pf_close(file, status == SLUICE_OK ? err : NULL);
    return status == SLUICE_OK ? closed : status;
}

sluice_status wk_spool_put(const wk_spool *spool, const char *name, const void *bytes, size_t length, bool *ret_first,
                           sluice_error *err)
{
    char path[WK_SPOOL_PATH], temporary[WK_SPOOL_PATH + 32];
    sluice_error error;
    sluice_status status;

    wk_spool_path(spool, name, path);
    (void)snprintf(temporary, sizeof temporary, "%s.%016" PRIx64 ".tmp", path, pf_random_u64());
    PF_TRY(write_file(spool, temporary, bytes, length, err));
    status = pf_publish(spool->volume, temporary, path, &error);
    if (ret_first)
        *ret_first = status == SLUICE_OK;
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_remove(spool->volume, temporary, err);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_spool_get(const wk_spool *spool, const char *name, pf_buffer *ret_bytes, bool *ret_found,
                           sluice_error *err)
{
    char path[WK_SPOOL_PATH];
    pf_file *file = NULL;
    pf_stat stat;
    sluice_error error;
    sluice_status status;

    ret_bytes->length = 0;
    *ret_found = false;
    wk_spool_path(spool, name, path);
    status = pf_open(spool->volume, path, PF_READ, &file, &error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    PF_GOTO(status, done, pf_file_stat(file, &stat, err));
    PF_GOTO(status, done, pf_buffer_reserve(ret_bytes, (size_t)stat.size + 1, err));
    PF_GOTO(status, done, pf_read_exact(file, 0, ret_bytes->data, (size_t)stat.size, err));
    ret_bytes->length = (size_t)stat.size;
    *ret_found = true;
done:
    (void)pf_close(file, NULL);
    return status;
}

sluice_status wk_spool_has(const wk_spool *spool, const char *name, bool *ret_found, sluice_error *err)
{
    char path[WK_SPOOL_PATH];
    pf_stat stat;
    sluice_error error;
    sluice_status status;

    wk_spool_path(spool, name, path);
    status = pf_stat_path(spool->volume, path, &stat, &error);
    *ret_found = status == SLUICE_OK;
    if (status == SLUICE_OK || status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (err)
        *err = error;
    return status;
}
