#include "worker/ingest/spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WRITE_PIECE ((size_t)1 << 20)
#define TEMPORARY   ".tmp"

void wk_spool_path(const wk_spool *spool, const char *name, char ret_path[WK_SPOOL_PATH])
{
    (void)snprintf(ret_path, WK_SPOOL_PATH, "%s/%s", spool->folder, name);
}

sluice_status wk_spool_begin(const wk_spool *spool, const char *name, wk_spool_file *ret_file, sluice_error *err)
{
    *ret_file = (wk_spool_file){.spool = spool};
    wk_spool_path(spool, name, ret_file->path);
    (void)snprintf(ret_file->temporary, sizeof ret_file->temporary, "%s.%016" PRIx64 TEMPORARY, ret_file->path,
                   pf_random_u64());
    return pf_create(spool->volume, ret_file->temporary, &ret_file->file, err);
}

sluice_status wk_spool_append(wk_spool_file *file, const void *bytes, size_t length, sluice_error *err)
{
    for (size_t at = 0; at < length; at += WRITE_PIECE) {
        size_t piece = length - at < WRITE_PIECE ? length - at : WRITE_PIECE;
        PF_TRY(pf_write(file->file, file->length, (const uint8_t *)bytes + at, piece, err));
        file->length += piece;
    }
    return SLUICE_OK;
}

void wk_spool_abandon(wk_spool_file *file)
{
    (void)pf_close(file->file, NULL);
    file->file = NULL;
    (void)pf_remove(file->spool->volume, file->temporary, NULL); /* what stays is swept with the attempt */
}

sluice_status wk_spool_end(wk_spool_file *file, bool *ret_first, sluice_error *err)
{
    sluice_error error;
    pf_file *closing = file->file;
    sluice_status status;

    file->file = NULL;
    PF_TRY(pf_close(closing, err));
    status = pf_publish(file->spool->volume, file->temporary, file->path, &error);
    if (ret_first)
        *ret_first = status == SLUICE_OK;
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_remove(file->spool->volume, file->temporary, err);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_spool_put(const wk_spool *spool, const char *name, const void *bytes, size_t length, bool *ret_first,
                           sluice_error *err)
{
    wk_spool_file file;
    sluice_status status;

    PF_TRY(wk_spool_begin(spool, name, &file, err));
    status = wk_spool_append(&file, bytes, length, err);
    if (status == SLUICE_OK)
        return wk_spool_end(&file, ret_first, err);
    wk_spool_abandon(&file);
    return status;
}

typedef struct cleaning {
    const wk_spool *spool;
    const char *name;
} cleaning;

static sluice_status clean_entry(void *context, const char *entry, pf_kind kind, sluice_error *err)
{
    const cleaning *clean = context;
    size_t length = strlen(clean->name), entry_length = strlen(entry), end = sizeof TEMPORARY - 1;
    char path[WK_SPOOL_PATH + 32];
    int made = snprintf(path, sizeof path, "%s/%s", clean->spool->folder, entry);

    if (kind != PF_KIND_FILE || made < 0 || (size_t)made >= sizeof path || entry_length < length + 1 + end ||
        strncmp(entry, clean->name, length) != 0 || entry[length] != '.' ||
        strcmp(entry + entry_length - end, TEMPORARY) != 0)
        return SLUICE_OK;
    return pf_remove(clean->spool->volume, path, err);
}

sluice_status wk_spool_clean(const wk_spool *spool, const char *name, sluice_error *err)
{
    cleaning clean = {.spool = spool, .name = name};
    return pf_list(spool->volume, spool->folder, clean_entry, &clean, err);
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

sluice_status wk_spool_get_range(const wk_spool *spool, const char *name, uint64_t offset, size_t length,
                                 pf_buffer *ret_bytes, sluice_error *err)
{
    char path[WK_SPOOL_PATH];
    pf_file *file = NULL;
    sluice_status status;

    ret_bytes->length = 0;
    wk_spool_path(spool, name, path);
    PF_TRY(pf_buffer_reserve(ret_bytes, length + 1, err));
    status = pf_open(spool->volume, path, PF_READ, &file, err);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_INTERNAL, "a task's result is missing");
    PF_TRY(status);
    status = pf_read_exact(file, offset, ret_bytes->data, length, err);
    ret_bytes->length = status == SLUICE_OK ? length : 0;
    (void)pf_close(file, NULL); /* only read */
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
