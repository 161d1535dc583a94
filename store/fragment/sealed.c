/*
 * Writing and mapping of sealed files.
 *
 * Small pieces are staged, so that every write but the last begins and ends at a multiple of ST_OUTPUT_CHUNK; large
 * pieces are written from where they are, without a copy. Write-back of the kernel is started early, so that the final
 * sync finds little left to do. A crash leaves a file that nothing names: litter.
 */
#include "store/fragment/sealed.h"

#include "platform/check.h"
#include "platform/sabotage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_BEHIND (4u << 20)

sluice_status st_sealed_path(uint64_t table, const char *folder, const char *name, char ret_path[ST_PATH_MAX],
                             sluice_error *err)
{
    int length = snprintf(ret_path, ST_PATH_MAX, "tables/%llu/%s/%s", (unsigned long long)table, folder, name);
    if (!*name || strchr(name, '/') || length < 0 || length >= (int)ST_PATH_MAX)
        return pf_fail(err, SLUICE_INTERNAL, "a file of table %llu has an impossible name", (unsigned long long)table);
    return SLUICE_OK;
}

sluice_status st_sealed_damaged(sluice_error *err, const char *path, const char *fmt, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, fmt);
    (void)vsnprintf(what, sizeof what, fmt, arguments);
    va_end(arguments);
    sluice_status status = pf_fail(err, SLUICE_CORRUPT, "%s is damaged: %s", path, what);
    pf_details(err, "{\"file\":\"%s\"}", path);
    pf_hint(err, "other tables and branches are not affected; `sluice verify GRAPH` shows all damage, sluice salvage "
                 "rebuilds this table from what is whole");
    return status;
}

sluice_status st_output_create(pf_volume *volume, const char *path, st_output *ret_output, sluice_error *err)
{
    *ret_output = (st_output){0};
    ret_output->staging = aligned_alloc(4096, ST_OUTPUT_CHUNK);
    if (!ret_output->staging)
        return pf_fail_memory(err);
    sluice_status status = pf_create(volume, path, &ret_output->file, err);
    if (status != SLUICE_OK)
        st_output_abandon(ret_output);
    return status;
}

/* Writes at the end of the file; the first failure sticks. */
static sluice_status put(st_output *output, const uint8_t *bytes, size_t length, sluice_error *err)
{
    if (output->see)
        output->see(output->context, bytes, length);
    output->failed = pf_write(output->file, output->written, bytes, length, err);
    if (output->failed != SLUICE_OK)
        return output->failed;
    output->written += length;
    if (output->written - output->behind >= WRITE_BEHIND) {
        pf_write_behind(output->file, output->behind, output->written - output->behind);
        output->behind = output->written;
    }
    return SLUICE_OK;
}

static sluice_status earlier_failure(const st_output *output, sluice_error *err)
{
    if (output->failed == SLUICE_OK)
        return SLUICE_OK;
    return pf_fail(err, output->failed, "an earlier write of this file failed");
}

sluice_status st_output_append(st_output *output, const void *bytes, size_t length, sluice_error *err)
{
    const uint8_t *from = bytes;

    PF_TRY(earlier_failure(output, err));
    while (length) {
        if (!output->staged && length >= ST_OUTPUT_CHUNK) {
            size_t whole = length & ~(size_t)(ST_OUTPUT_CHUNK - 1);
            PF_TRY(put(output, from, whole, err));
            from += whole;
            length -= whole;
            continue;
        }
        size_t room = ST_OUTPUT_CHUNK - output->staged;
        size_t piece = length < room ? length : room;
        memcpy(output->staging + output->staged, from, piece);
        output->staged += piece;
        from += piece;
        length -= piece;
        if (output->staged == ST_OUTPUT_CHUNK) {
            output->staged = 0;
            PF_TRY(put(output, output->staging, ST_OUTPUT_CHUNK, err));
        }
    }
    return SLUICE_OK;
}

sluice_status st_output_align(st_output *output, uint64_t boundary, sluice_error *err)
{
    static const uint8_t zeros[4096];
    uint64_t offset = st_output_offset(output);

    PF_ASSERT(boundary <= sizeof zeros);
    return st_output_append(output, zeros, ((offset + boundary - 1) & ~(boundary - 1)) - offset, err);
}

uint64_t st_output_offset(const st_output *output)
{
    return output->written + output->staged;
}

sluice_status st_output_flush(st_output *output, sluice_error *err)
{
    size_t staged = output->staged;

    PF_TRY(earlier_failure(output, err));
    output->staged = 0;
    return staged ? put(output, output->staging, staged, err) : SLUICE_OK;
}

sluice_status st_output_finish(st_output *output, uint64_t *ret_bytes, sluice_error *err)
{
    sluice_status status;

    PF_GOTO(status, done, st_output_flush(output, err));
    if (!PF_SABOTAGE(fragment_not_synced))
        PF_GOTO(status, done, pf_sync(output->file, err));
    *ret_bytes = output->written;
    status = pf_close(output->file, err);
    output->file = NULL;
done:
    st_output_abandon(output);
    return status;
}

void st_output_abandon(st_output *output)
{
    if (output->file)
        (void)pf_close(output->file, NULL); /* an unfinished file is litter already */
    free(output->staging);
    *output = (st_output){.failed = SLUICE_INTERNAL};
}

sluice_status st_sealed_open(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    sluice_status status = pf_open(volume, path, PF_READ, ret_file, err);
    return status == SLUICE_NOT_FOUND ? st_sealed_damaged(err, path, "it is missing") : status;
}

sluice_status st_sealed_map(pf_volume *volume, const char *path, uint64_t bytes, pf_map *ret_map, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    *ret_map = (pf_map){0};
    PF_TRY(st_sealed_open(volume, path, &file, err));
    PF_GOTO(status, done, pf_map_file(file, ret_map, err));
    if (ret_map->length != bytes) {
        status = st_sealed_damaged(err, path, "it has %zu bytes instead of %llu", ret_map->length,
                                   (unsigned long long)bytes);
        pf_unmap(ret_map);
    }
done:
    (void)pf_close(file, NULL); /* it was only read; the mapping stays */
    return status;
}
