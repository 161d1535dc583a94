/*
 * The file CURRENT: which segment is the active one. Two sectors at 0 and 4096 of a file of 8192 bytes, written in
 * place in turn: sequence 1 into the first, 2 into the second, 3 into the first. The higher sequence rules.
 *
 * A sector arrives whole or not at all, so each is zero (never written) or valid, the two sequences follow each other,
 * and only a CURRENT that was written once has a zero one. Anything else, when two reads agree on it, is damage:
 * nothing is guessed from the sector that is left. (One read may meet a writer at work and see half of a sector.)
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_AT 4096u
#define READS_MAX 1000 /* reads that never agree: more switches than anybody makes */

static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'C', '1'};

static uint64_t sector_at(uint64_t sequence)
{
    return sequence % 2 == 1 ? 0 : SECOND_AT;
}

static void current_path(const char *folder, char path[128])
{
    int length = snprintf(path, 128, "%s/CURRENT", folder);
    PF_ALWAYS(length > 0 && length < 128);
}

static void encode(const st_current *current, uint8_t bytes[ST_SECTOR])
{
    st_sector sector = {.first = current->sequence, .second = current->segment, .digest = current->opening};
    st_sector_encode(magic, &sector, bytes);
}

sluice_status st_current_make(pf_volume *volume, const char *folder, const st_current *current, sluice_error *err)
{
    uint8_t bytes[ST_SECTOR];
    char path[128];
    current_path(folder, path);
    encode(current, bytes);
    return st_sector_file_make(volume, path, ST_CURRENT_SIZE, sector_at(current->sequence), bytes, err);
}

sluice_status st_current_open(pf_volume *volume, const char *folder, pf_access access, pf_file **ret_file,
                              sluice_error *err)
{
    char path[128];
    pf_stat stat;
    pf_file *file = NULL;
    sluice_status status;

    current_path(folder, path);
    status = pf_open(volume, path, access, &file, err);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "a log has no file CURRENT");
    if (status != SLUICE_OK)
        return status;
    PF_GOTO(status, failed, pf_file_stat(file, &stat, err));
    if (stat.size != ST_CURRENT_SIZE) {
        status = pf_fail(err, SLUICE_CORRUPT, "the file CURRENT has %" PRIu64 " bytes", stat.size);
        goto failed;
    }
    *ret_file = file;
    return SLUICE_OK;
failed:
    (void)pf_close(file, NULL);
    return status;
}

/* The rule of the head comment; false: damage, or a writer at work. */
static bool judge(const uint8_t bytes[2 * ST_SECTOR], st_current *ret_current)
{
    st_sector sector[2];
    st_sector_state state[2];
    for (int i = 0; i < 2; i++)
        state[i] = st_sector_decode(magic, bytes + (size_t)i * ST_SECTOR, &sector[i]);
    if (state[0] != ST_SECTOR_VALID || sector[0].first % 2 != 1)
        return false;
    int newest = 0;
    if (state[1] == ST_SECTOR_ZERO) {
        if (sector[0].first != 1)
            return false;
    } else {
        if (state[1] != ST_SECTOR_VALID)
            return false;
        newest = sector[1].first > sector[0].first;
        if (sector[newest].first != sector[!newest].first + 1)
            return false;
    }
    *ret_current = (st_current){
        .sequence = sector[newest].first, .segment = sector[newest].second, .opening = sector[newest].digest};
    return ret_current->segment > 0;
}

static sluice_status read_both(pf_file *file, st_source source, uint8_t bytes[2 * ST_SECTOR], sluice_error *err)
{
    uint8_t all[SECOND_AT + ST_SECTOR];
    if (source == ST_FROM_MEDIUM)
        PF_TRY(pf_read_medium(file, 0, all, sizeof(all), err));
    else
        PF_TRY(pf_read_exact(file, 0, all, sizeof(all), err));
    memcpy(bytes, all, ST_SECTOR);
    memcpy(bytes + ST_SECTOR, all + SECOND_AT, ST_SECTOR);
    return SLUICE_OK;
}

sluice_status st_current_read(pf_file *file, st_source source, st_current *ret_current, sluice_error *err)
{
    uint8_t bytes[2 * ST_SECTOR], before[2 * ST_SECTOR];
    for (int reads = 0; reads < READS_MAX; reads++) {
        PF_TRY(read_both(file, source, bytes, err));
        if (judge(bytes, ret_current))
            return SLUICE_OK;
        if (reads > 0 && memcmp(before, bytes, sizeof(bytes)) == 0)
            break;
        memcpy(before, bytes, sizeof(bytes));
    }
    pf_fail(err, SLUICE_CORRUPT, "the file CURRENT of a log is damaged");
    pf_hint(err, "`sluice verify GRAPH` names what is damaged; nothing was changed");
    return SLUICE_CORRUPT;
}

sluice_status st_current_write(pf_file *file, const st_current *current, sluice_error *err)
{
    uint8_t bytes[ST_SECTOR];
    encode(current, bytes);
    return pf_write(file, sector_at(current->sequence), bytes, sizeof(bytes), err);
}
