/*
 * The file acknowledged: the highest acknowledged generation, and the active segment when that was said. One
 * checksummed sector, written in place without a sync of its own, before the answer goes out and only after the flush
 * returned.
 *
 * It elects nothing: it only makes a shorter chain, or an older CURRENT, corrupt. It may lag behind after a power loss,
 * and a missing or torn one says nothing and is made again by the next writer. It also says where the record stands, so
 * that who only reads can begin there (from_mark.c). The segment stands in it because a
 * CURRENT that names a newer one may never have been synced: only a mark that names the same segment says that it was.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <stdio.h>
#include <string.h>

#define READS_MAX 1000

static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'A', '1'};

static void mark_path(const char *folder, char path[128])
{
    int length = snprintf(path, 128, "%s/acknowledged", folder);
    PF_ALWAYS(length > 0 && length < 128);
}

static void encode(const st_mark *mark, uint8_t bytes[ST_SECTOR])
{
    st_sector sector = {.first = mark->number, .second = mark->segment};
    st_put64(sector.digest.bytes, mark->place.offset);
    st_put64(sector.digest.bytes + 8, mark->place.opening_check);
    memcpy(sector.digest.bytes + 16, mark->place.own, sizeof(mark->place.own));
    st_sector_encode(magic, &sector, bytes);
}

sluice_status st_mark_make(pf_volume *volume, const char *folder, const st_mark *mark, sluice_error *err)
{
    uint8_t bytes[ST_SECTOR];
    char path[128];
    mark_path(folder, path);
    encode(mark, bytes);
    return st_sector_file_make(volume, path, ST_MARK_SIZE, 0, bytes, err);
}

sluice_status st_mark_read(pf_volume *volume, const char *folder, pf_access access, pf_file **file, st_mark *ret_mark,
                           sluice_error *err)
{
    uint8_t bytes[ST_SECTOR], before[ST_SECTOR];
    char path[128];
    st_sector sector;
    size_t got;

    *ret_mark = (st_mark){0};
    if (!*file) {
        sluice_error local = {0};
        mark_path(folder, path);
        sluice_status status = pf_open(volume, path, access, file, &local);
        if (status == SLUICE_NOT_FOUND)
            return SLUICE_OK;
        if (status != SLUICE_OK) {
            if (err)
                *err = local;
            return status;
        }
    }
    for (int reads = 0; reads < READS_MAX; reads++) { /* a writer may be at work: until two reads agree */
        PF_TRY(pf_read(*file, 0, bytes, sizeof(bytes), &got, err));
        memset(bytes + got, 0, sizeof(bytes) - got);
        if (st_sector_decode(magic, bytes, &sector) == ST_SECTOR_VALID) {
            *ret_mark = (st_mark){
                .number = sector.first,
                .segment = sector.second,
                .place = {.offset = st_get64(sector.digest.bytes), .opening_check = st_get64(sector.digest.bytes + 8)}};
            memcpy(ret_mark->place.own, sector.digest.bytes + 16, sizeof(ret_mark->place.own));
            return SLUICE_OK;
        }
        if (reads > 0 && memcmp(before, bytes, sizeof(bytes)) == 0)
            break;
        memcpy(before, bytes, sizeof(bytes));
    }
    return SLUICE_OK;
}

sluice_status st_mark_write(pf_volume *volume, const char *folder, pf_file **file, const st_mark *mark,
                            sluice_error *err)
{
    char path[128];
    if (*file) {
        uint8_t bytes[ST_SECTOR];
        encode(mark, bytes);
        return pf_write(*file, 0, bytes, sizeof(bytes), err);
    }
    sluice_status status = st_mark_make(volume, folder, mark, err);
    if (status != SLUICE_OK)
        return status;
    PF_TRY(pf_sync_dir(volume, folder, err));
    mark_path(folder, path);
    return pf_open(volume, path, PF_WRITE, file, err);
}
