/*
 * A log as one process sees it: opening, refreshing, reading a generation by its number.
 *
 * Order of looking: the mark first, then CURRENT, then the chain. What the mark says was written before it, so an end
 * below it, or a CURRENT that names an older segment than it, is damage and never a matter of timing. Nothing here
 * waits for a lock and, on a handle for reading, nothing is written.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static sluice_status log_corrupt(const st_log *log, const char *what, sluice_error *err)
{
    sluice_status status = pf_fail(err, SLUICE_CORRUPT,
                                   "the log of branch incarnation %" PRIu64 ": %s (acknowledged "
                                   "generation %" PRIu64 ", found %" PRIu64 ")",
                                   log->incarnation, what, log->mark.number, st_segment_end_number(&log->active));
    pf_details(err, "{\"incarnation\":\"%" PRIu64 "\",\"segment\":\"%" PRIu64 "\",\"acknowledged\":\"%" PRIu64 "\"}",
               log->incarnation, log->active.number, log->mark.number);
    pf_hint(err, "`sluice verify GRAPH` names what is damaged; nothing was changed");
    return status;
}

/* The error of opening a segment that has to be there. */
static sluice_status missing_is_corrupt(const st_log *log, uint64_t segment, sluice_status status,
                                        const sluice_error *why, sluice_error *err)
{
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "log segment %" PRIu64 " of branch incarnation %" PRIu64 " is missing",
                       segment, log->incarnation);
    if (err)
        *err = *why;
    return status;
}

/* Opens the segment that CURRENT names. One that is gone was collected meanwhile if CURRENT moved on. */
static sluice_status open_named(st_log *log, st_segment *ret_segment, sluice_error *err)
{
    sluice_error local = {0};
    st_current now;
    if (log->cut) {
        sluice_status status =
            st_segment_open_until(log->volume, log->folder, log->until.segment, log->incarnation, &log->until.opening,
                                  log->until.number, log->access, ret_segment, &local);
        return status == SLUICE_OK ? status : missing_is_corrupt(log, log->until.segment, status, &local, err);
    }
    if (log->access == PF_READ && log->mark.segment == log->current.segment) {
        bool opened = false;
        if (st_segment_open_from(log->volume, log->folder, &log->mark, log->incarnation, &log->current.opening,
                                 ret_segment, &opened, NULL) == SLUICE_OK &&
            opened)
            return SLUICE_OK;
    }
    for (;;) {
        sluice_status status = st_segment_open(log->volume, log->folder, log->current.segment, log->incarnation,
                                               &log->current.opening, log->access, ST_FROM_CACHE, ret_segment, &local);
        if (status == SLUICE_OK)
            return status;
        if (st_current_read(log->current_file, ST_FROM_CACHE, &now, NULL) != SLUICE_OK ||
            now.segment == log->current.segment)
            return missing_is_corrupt(log, log->current.segment, status, &local, err);
        log->current = now;
    }
}

/* The chain that we know goes on in `next`: it does not begin behind us in another way. */
static bool continues_ours(const st_log *log, st_segment *next)
{
    uint64_t number = st_segment_end_number(&log->active);
    const pf_sha256 *digest = st_segment_end_digest(&log->active);
    if (next->base == number)
        return pf_sha256_equal(&next->base_digest, digest);
    if (next->base > number) /* generations came in between, in segments that we did not see */
        return true;
    if (st_segment_index_back(next, number, NULL) != SLUICE_OK)
        return false;
    const st_entry *entry = st_segment_find(next, number);
    return entry && pf_sha256_equal(&entry->own, digest);
}

/* The segment that we knew becomes an earlier one; its index stays at hand. */
static void keep_old(st_log *log, st_segment *segment)
{
    st_segment_close(&log->old[ST_LOG_OLD_OPEN - 1]);
    memmove(log->old + 1, log->old, (ST_LOG_OLD_OPEN - 1) * sizeof(log->old[0]));
    log->old[0] = *segment;
    *segment = (st_segment){0};
}

void st_log_adopt(st_log *log, st_segment *segment)
{
    /* Only an index that reaches up to the next segment is one of the whole segment. */
    if (log->active.number != 0 && st_segment_end_number(&log->active) == segment->base)
        keep_old(log, &log->active);
    st_segment_close(&log->active);
    log->active = *segment;
    *segment = (st_segment){0};
}

static sluice_status look(st_log *log, sluice_error *err)
{
    if (log->cut) {
        log->mark = (st_mark){.number = log->until.number, .segment = log->until.segment};
        log->current = (st_current){.segment = log->until.segment, .opening = log->until.opening};
    } else {
        PF_TRY(st_mark_read(log->volume, log->folder, log->access, &log->mark_file, &log->mark, err));
        PF_TRY(st_current_read(log->current_file, ST_FROM_CACHE, &log->current, err));
    }
    if (log->active.number == log->current.segment) {
        if (!pf_sha256_equal(&log->active.opening, &log->current.opening))
            return log_corrupt(log, "CURRENT names another opening record of the same segment", err);
        PF_TRY(st_segment_follow(&log->active, err));
    } else {
        st_segment next = {0};
        if (log->current.segment < log->active.number)
            return log_corrupt(log, "CURRENT names an older segment than before", err);
        PF_TRY(open_named(log, &next, err));
        if (log->active.number != 0 && !continues_ours(log, &next)) {
            st_segment_close(&next);
            return log_corrupt(log, "the new segment does not continue the old one", err);
        }
        st_log_adopt(log, &next);
    }
    if (st_segment_end_number(&log->active) < log->mark.number)
        return log_corrupt(log, "its end is below what was acknowledged", err);
    if (log->active.number < log->mark.segment)
        return log_corrupt(log, "CURRENT names an older segment than was acknowledged", err);
    return SLUICE_OK;
}

sluice_status st_log_refresh(st_log *log, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = look(log, &local);
    if (status == SLUICE_CORRUPT) /* a record is called damaged only after it was read again */
        return look(log, err);
    if (status != SLUICE_OK && err)
        *err = local;
    return status;
}

static sluice_status open_log(pf_volume *volume, const char *folder, uint64_t incarnation, pf_access access,
                              const st_log_cut *until, st_log **ret_log, sluice_error *err)
{
    sluice_status status;
    st_log *log = calloc(1, sizeof(*log));
    if (!log)
        return pf_fail_memory(err);
    log->volume = volume;
    log->incarnation = incarnation;
    log->access = access;
    PF_ALWAYS(strlen(folder) < sizeof(log->folder));
    memcpy(log->folder, folder, strlen(folder));
    if (until) {
        log->cut = true;
        log->until = *until;
    } else {
        PF_GOTO(status, failed, st_current_open(volume, folder, access, &log->current_file, err));
    }
    PF_GOTO(status, failed, st_log_refresh(log, err));
    if (until && !pf_sha256_equal(st_segment_end_digest(&log->active), &until->digest)) {
        status = log_corrupt(log, "it is not the log that it was", err);
        goto failed;
    }
    *ret_log = log;
    return SLUICE_OK;
failed:
    st_log_close(log);
    return status;
}

sluice_status st_log_open(pf_volume *volume, const char *folder, uint64_t incarnation, pf_access access,
                          st_log **ret_log, sluice_error *err)
{
    return open_log(volume, folder, incarnation, access, NULL, ret_log, err);
}

sluice_status st_log_open_at(pf_volume *volume, const char *folder, const st_log_cut *until, st_log **ret_log,
                             sluice_error *err)
{
    return open_log(volume, folder, until->incarnation, PF_READ, until, ret_log, err);
}

void st_log_close(st_log *log)
{
    if (!log)
        return;
    (void)st_log_sync_mark(log, NULL); /* it may lag behind: an older mark only hides less */
    (void)pf_close(log->current_file, NULL);
    (void)pf_close(log->mark_file, NULL);
    st_segment_close(&log->active);
    for (size_t i = 0; i < ST_LOG_OLD_OPEN; i++)
        st_segment_close(&log->old[i]);
    free(log);
}

st_log_position st_log_end(const st_log *log)
{
    return (st_log_position){.number = st_segment_end_number(&log->active),
                             .digest = *st_segment_end_digest(&log->active),
                             .segment = log->active.number,
                             .acknowledged = log->mark.number};
}

uint64_t st_log_incarnation(const st_log *log)
{
    return log->incarnation;
}

const pf_sha256 *st_log_active_digest(st_log *log, uint64_t number)
{
    if (st_segment_index_back(&log->active, number, NULL) != SLUICE_OK)
        return NULL;
    const st_entry *entry = st_segment_find(&log->active, number);
    return entry ? &entry->own : NULL;
}

uint64_t st_log_first(const st_log *log)
{
    return log->active.oldest;
}

sluice_status st_log_read_whole(st_log *log, sluice_error *err)
{
    st_segment whole = {0};
    if (!log->active.from_mark)
        return SLUICE_OK;
    PF_TRY(st_segment_open(log->volume, log->folder, log->active.number, log->incarnation, &log->active.opening,
                           log->access, ST_FROM_CACHE, &whole, err));
    if (st_segment_end_number(&whole) < st_segment_end_number(&log->active)) {
        st_segment_close(&whole);
        return log_corrupt(log, "a record before its end is damaged", err);
    }
    st_segment_close(&log->active);
    log->active = whole;
    return SLUICE_OK;
}

/* ---- reading by number ---- */

uint64_t st_segment_last_of(const st_segment *from, uint32_t i)
{
    uint64_t next = i + 1 < from->earlier_count ? from->earlier[i + 1].first : st_segment_first(from);
    return next - 1;
}

sluice_status st_log_open_stop(const st_log *log, const st_earlier *earlier, uint64_t last, st_segment *ret_segment,
                               sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = st_segment_index(log->volume, log->folder, earlier->number, log->incarnation,
                                            &earlier->opening, last, ret_segment, &local);
    if (status == SLUICE_NOT_FOUND) { /* its lineage was whole before it went */
        local = (sluice_error){0};
        status = st_lineage_open(log->volume, log->folder, earlier->number, log->incarnation, &earlier->opening,
                                 ret_segment, &local);
    }
    return status == SLUICE_OK ? status : missing_is_corrupt(log, earlier->number, status, &local, err);
}

sluice_status st_log_open_earlier(const st_log *log, const st_segment *from, uint32_t i, st_segment *ret_segment,
                                  sluice_error *err)
{
    return st_log_open_stop(log, &from->earlier[i], st_segment_last_of(from, i), ret_segment, err);
}

/* The same from what is open, or from disk; it stays open. `from` may be one of those that are. */
static sluice_status open_earlier(st_log *log, const st_segment *from, uint32_t i, const st_segment **ret_segment,
                                  sluice_error *err)
{
    st_segment segment = {0};
    for (size_t k = 0; k < ST_LOG_OLD_OPEN; k++) {
        if (log->old[k].number != from->earlier[i].number)
            continue;
        segment = log->old[k];
        memmove(log->old + 1, log->old, k * sizeof(log->old[0]));
        log->old[0] = segment;
        PF_TRY(st_segment_index_back(&log->old[0], st_segment_first(&log->old[0]), err));
        *ret_segment = &log->old[0];
        return SLUICE_OK;
    }
    PF_TRY(st_log_open_earlier(log, from, i, &segment, err));
    keep_old(log, &segment);
    *ret_segment = &log->old[0];
    return SLUICE_OK;
}

/* Of the segments that `segment` names, the newest one that begins at or below `number`; else the oldest. */
static uint32_t choose_earlier(const st_segment *segment, uint64_t number)
{
    uint32_t i = segment->earlier_count - 1;
    while (i > 0 && segment->earlier[i].first > number)
        i--;
    return i;
}

static sluice_status not_retained(const st_log *log, uint64_t number, sluice_error *err)
{
    pf_fail(err, SLUICE_NOT_FOUND, "generation %" PRIu64 " of this branch is not there, or not retained any more",
            number);
    pf_details(err, "{\"generation\":\"%" PRIu64 "\",\"incarnation\":\"%" PRIu64 "\"}", number, log->incarnation);
    pf_hint(err, "`sluice log GRAPH` lists the commits");
    return SLUICE_NOT_FOUND;
}

static sluice_status find_entry(st_log *log, uint64_t number, const st_segment **ret_segment,
                                const st_entry **ret_entry, sluice_error *err)
{
    const st_segment *segment = &log->active;
    if (number > st_segment_end_number(segment)) /* named by what another process made since this handle looked */
        PF_TRY(st_log_refresh(log, err));
    PF_TRY(st_segment_index_back(&log->active, number, err));
    const st_entry *entry = st_segment_find(segment, number);

    if (!entry && (number > segment->base || number < segment->oldest))
        return not_retained(log, number, err);
    while (!entry) {
        if (segment->earlier_count == 0)
            return not_retained(log, number, err);
        uint32_t i = choose_earlier(segment, number);
        bool covers = segment->earlier[i].first <= number;
        PF_TRY(open_earlier(log, segment, i, &segment, err));
        entry = st_segment_find(segment, number);
        if (!entry && covers)
            return log_corrupt(log, "an earlier segment lacks its last records", err);
    }
    *ret_segment = segment;
    *ret_entry = entry;
    return SLUICE_OK;
}

sluice_status st_log_read(st_log *log, uint64_t number, st_record *ret_record, sluice_error *err)
{
    const st_segment *segment = NULL;
    const st_entry *entry = NULL;
    PF_TRY(find_entry(log, number, &segment, &entry, err));
    if (segment->collected)
        return not_retained(log, number, err);
    return st_segment_read_entry(segment, entry, ret_record, err);
}

bool st_log_take_followed(st_log *log, uint64_t number, st_record *ret_record)
{
    const st_entry *entry = st_segment_find(&log->active, number);
    return entry && st_segment_take_followed(&log->active, entry, ret_record);
}

sluice_status st_log_read_lineage(st_log *log, uint64_t number, st_record *ret_record, sluice_error *err)
{
    const st_segment *segment = NULL;
    const st_entry *entry = NULL;
    PF_TRY(find_entry(log, number, &segment, &entry, err));
    return st_segment_read_entry(segment, entry, ret_record, err);
}

sluice_status st_log_read_opening_of(st_log *log, uint64_t number, bool behind, st_record *ret_record,
                                     sluice_error *err)
{
    const st_segment *segment = &log->active;
    const st_entry *entry = NULL;
    if (!behind || number != log->active.base)
        PF_TRY(find_entry(log, behind ? number + 1 : number, &segment, &entry, err));
    while (behind && segment->base > number && segment->earlier_count > 0) /* healing repeated the record there */
        PF_TRY(open_earlier(log, segment, choose_earlier(segment, number + 1), &segment, err));
    if (segment->collected || (behind && segment->base != number))
        return not_retained(log, number, err);
    return st_segment_read_opening(segment, ret_record, err);
}

sluice_status st_log_read_opening(st_log *log, st_record *ret_record, sluice_error *err)
{
    return st_segment_read_opening(&log->active, ret_record, err);
}
