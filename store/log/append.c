/*
 * Writing a log: settling its end, switching to a new segment, appending. All of it under the log's publish lock.
 *
 * Crash rules, step by step (L-012 to L-018):
 *   append   one write at the end, one flush. Killed before or inside the write: a torn record, which is nothing and is
 *            overwritten. Whole but not synced: an end above the mark; the next one who appends settles it first.
 *   settle   the same bytes again, synced; then the mark. Whatever of it happens changes no byte that a reader sees.
 *   switch   the new segment's file with its opening record, synced, its name synced; then CURRENT, synced; then the
 *            mark, which names the new segment only when CURRENT does durably. Before CURRENT is written the file is an
 *            orphan; after that CURRENT may be lost again as long as the mark names the older segment, and nothing is
 *            appended to the new one before somebody wrote and synced both again (settle).
 * After an I/O error the log is suspect (suspect.c) and nothing more is appended.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool st_log_is_settled(const st_log *log)
{
    return log->mark.segment == log->active.number && log->mark.number == st_segment_end_number(&log->active);
}

/* An error that speaks of the medium; others (no space, fenced, memory) leave it as it was. */
static bool is_medium_error(sluice_status status)
{
    return status == SLUICE_IO;
}

static void note_failure(st_log *log, sluice_status status)
{
    if (is_medium_error(status))
        st_log_mark_suspect(log, NULL);
}

/* ---- the mark ---- */

sluice_status st_log_advance_mark(st_log *log, bool sync, sluice_error *err)
{
    st_mark mark = {.number = st_segment_end_number(&log->active),
                    .segment = log->active.number,
                    .place = st_segment_place(&log->active)};
    PF_ASSERT(mark.number >= log->mark.number && mark.segment >= log->mark.segment);
    PF_TRY(st_mark_write(log->volume, log->folder, &log->mark_file, &mark, err));
    log->mark = mark;
    log->mark_unsynced = true;
    return sync ? st_log_sync_mark(log, err) : SLUICE_OK;
}

sluice_status st_log_sync_mark(st_log *log, sluice_error *err)
{
    if (!log->mark_unsynced)
        return SLUICE_OK;
    log->mark_unsynced = false; /* a failed sync is not tried again */
    return pf_sync(log->mark_file, err);
}

/* ---- settling ---- */

/* Writes [from, end of the chain) of the active segment again: the bytes that were checked, as they are. */
static sluice_status write_again(st_log *log, uint64_t from, sluice_error *err)
{
    st_segment *segment = &log->active;
    uint64_t length = segment->end - from;
    sluice_status status = SLUICE_OK;
    uint8_t *bytes = NULL;

    if (length > 0) {
        bytes = malloc(length);
        if (!bytes)
            return pf_fail_memory(err);
        PF_GOTO(status, done, pf_read_exact(segment->file, from, bytes, length, err));
        PF_GOTO(status, done, st_segment_check_bytes(segment, from, bytes, length, err));
        PF_GOTO(status, done, pf_write(segment->file, from, bytes, length, err));
        PF_GOTO(status, done, pf_sync(segment->file, err));
    }
done:
    free(bytes);
    return status;
}

/* The start of the first record above the mark; 0 when the segment itself was never said to be CURRENT's. */
static uint64_t unsettled_from(const st_log *log)
{
    const st_segment *segment = &log->active;
    if (log->mark.segment != segment->number)
        return 0;
    for (size_t i = 0; i < segment->entry_count; i++)
        if (segment->entries[i].number > log->mark.number)
            return segment->entries[i].offset;
    return segment->end;
}

static sluice_status settle(st_log *log, sluice_error *err)
{
    char folder[ST_LOG_FOLDER_MAX + 8];
    if (!PF_SABOTAGE(end_believed))
        PF_TRY(write_again(log, unsettled_from(log), err));
    if (log->mark.segment != log->active.number) {
        (void)snprintf(folder, sizeof(folder), "%s/log", log->folder);
        PF_TRY(pf_sync_dir(log->volume, folder, err));
        PF_TRY(st_current_write(log->current_file, &log->current, err));
        PF_TRY(pf_sync(log->current_file, err));
    }
    return st_log_advance_mark(log, false, err);
}

sluice_status st_log_settle(st_log *log, sluice_error *err)
{
    PF_ASSERT(log->access == PF_WRITE);
    PF_TRY(st_log_refresh(log, err));
    if (st_log_is_settled(log))
        return SLUICE_OK;
    PF_TRY(st_log_check_suspect(log, err));
    sluice_status status = settle(log, err);
    note_failure(log, status);
    return status;
}

/* ---- switching ---- */

sluice_status st_log_next_earlier(const st_log *log, st_earlier **ret_earlier, uint32_t *ret_count, sluice_error *err)
{
    const st_segment *segment = &log->active;
    uint32_t skip = segment->earlier_count >= ST_EARLIER_MAX ? segment->earlier_count - ST_EARLIER_MAX + 1 : 0;
    uint32_t count = segment->earlier_count - skip;
    st_earlier *list = calloc(count + 1, sizeof(*list));
    if (!list)
        return pf_fail_memory(err);
    if (count > 0)
        memcpy(list, segment->earlier + skip, count * sizeof(*list));
    list[count] =
        (st_earlier){.number = segment->number, .first = st_segment_first(segment), .opening = segment->opening};
    *ret_earlier = list;
    *ret_count = count + 1;
    return SLUICE_OK;
}

sluice_status st_log_encode_opening(const st_opening_source *opening, pf_buffer *manifest, pf_buffer *attachments,
                                    sluice_error *err)
{
    PF_TRY(opening->encode(opening->context, manifest, attachments, err));
    if (manifest->length == 0 || manifest->data[manifest->length - 1] != '\n')
        return pf_fail(err, SLUICE_INTERNAL, "an opening record's manifest does not end with a line feed");
    return SLUICE_OK;
}

sluice_status st_log_switch_to(st_log *log, const st_segment_plan *plan, uint64_t sequence, sluice_error *err)
{
    st_segment next = {0};
    sluice_status status;

    PF_GOTO(status, done, st_segment_make(log->volume, log->folder, plan, &next, err));
    PF_GOTO(status, done, PF_FAILPOINT(SEGMENT_AFTER_OPENING_SYNC, err));
    st_current current = {.sequence = sequence, .segment = next.number, .opening = next.opening};
    PF_GOTO(status, done, st_current_write(log->current_file, &current, err));
    PF_GOTO(status, done, PF_FAILPOINT(SEGMENT_AFTER_CURRENT_WRITE, err));
    if (!PF_SABOTAGE(current_not_synced))
        PF_GOTO(status, done, pf_sync(log->current_file, err));
    PF_GOTO(status, done, PF_FAILPOINT(SEGMENT_AFTER_CURRENT_SYNC, err));
    log->current = current;
    st_log_adopt(log, &next);
    PF_GOTO(status, done, st_log_advance_mark(log, true, err));
done:
    st_segment_close(&next);
    return status;
}

/* A segment that continues the end, with room for a record of `size` bytes. */
static sluice_status switch_segment(st_log *log, const st_opening_source *opening, uint64_t size, sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0};
    st_earlier *earlier = NULL;
    uint32_t earlier_count;
    sluice_status status;

    PF_GOTO(status, done, st_log_encode_opening(opening, &manifest, &attachments, err));
    PF_GOTO(status, done, st_log_next_earlier(log, &earlier, &earlier_count, err));
    st_segment_plan plan = {
        .number = log->active.number + 1,
        .incarnation = log->incarnation,
        .base = st_segment_end_number(&log->active),
        .base_digest = *st_segment_end_digest(&log->active),
        .line = {.repeats = false, .oldest = log->active.oldest, .earlier = earlier, .earlier_count = earlier_count},
        .manifest = &manifest,
        .attachments = &attachments,
        .room = size};
    PF_GOTO(status, done, st_log_switch_to(log, &plan, log->current.sequence + 1, err));
done:
    free(earlier);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return status;
}

/* ---- appending ---- */

/* What has to hold before a byte is written: the chain ends where the caller thinks, everything before it is
 * acknowledged, nothing is suspect, and root, segment and CURRENT are still the ones in the directory (F-06). */
static sluice_status check_ready(st_log *log, sluice_error *err)
{
    uint64_t number = st_segment_end_number(&log->active);
    PF_TRY(st_log_check_suspect(log, err));
    PF_TRY(st_log_refresh(log, err));
    if (st_segment_end_number(&log->active) != number)
        return pf_fail(err, SLUICE_READ_SET_CHANGED,
                       "the log moved from generation %" PRIu64 " to %" PRIu64 " before the append", number,
                       st_segment_end_number(&log->active));
    if (!st_log_is_settled(log))
        return pf_fail(err, SLUICE_INTERNAL, "an append on a log whose end is not acknowledged");
    PF_TRY(pf_volume_check_identity(log->volume, err));
    PF_TRY(pf_file_check_identity(log->active.file, err));
    return pf_file_check_identity(log->current_file, err);
}

/* The one write and the one flush. An error that a failpoint makes here stands for one of the call before it. */
static sluice_status write_record(st_log *log, const pf_buffer *bytes, sluice_error *err)
{
    pf_file *file = log->active.file;
    st_mark early = {.number = st_segment_end_number(&log->active) + 1, .segment = log->active.number};
    PF_TRY(pf_write(file, log->active.end, bytes->data, bytes->length, err));
    if (PF_SABOTAGE(mark_before_flush)) {
        PF_TRY(st_mark_write(log->volume, log->folder, &log->mark_file, &early, err));
        PF_TRY(pf_sync(log->mark_file, err));
    }
    PF_TRY(PF_FAILPOINT(PUBLISH_AFTER_LOG_RECORD_WRITE, err));
    if (!PF_SABOTAGE(record_not_synced))
        PF_TRY(pf_sync(file, err));
    return PF_FAILPOINT(PUBLISH_AFTER_LOG_RECORD_SYNC, err);
}

/* After a failure: is the record in the chain? Read again, byte by byte. */
static st_append_outcome outcome_by_reading(const st_log *log, const pf_buffer *bytes)
{
    st_append_outcome outcome = ST_APPEND_UNKNOWN;
    uint8_t *now = malloc(bytes->length);
    if (now && pf_read_exact(log->active.file, log->active.end, now, bytes->length, NULL) == SLUICE_OK)
        outcome = memcmp(now, bytes->data, bytes->length) == 0 ? ST_APPEND_VISIBLE : ST_APPEND_NOT;
    free(now);
    return outcome;
}

static void say_outcome(st_append_outcome outcome, sluice_error *err)
{
    if (!err)
        return;
    err->committed = outcome == ST_APPEND_UNKNOWN ? SLUICE_UNKNOWN
                     : outcome == ST_APPEND_NOT   ? SLUICE_FALSE
                                                  : SLUICE_TRUE;
    err->acknowledged = outcome == ST_APPEND_UNKNOWN ? SLUICE_UNKNOWN : SLUICE_FALSE;
}

static sluice_status note_written(st_log *log, const pf_buffer *bytes, sluice_error *err)
{
    st_head head;
    st_head_state state = st_head_decode(bytes->data, &head);
    PF_ALWAYS(state == ST_HEAD_VALID);
    return st_segment_note(&log->active, &head, err);
}

/* Room for one more index entry and the record's place, so that nothing can fail once bytes are written. */
static sluice_status prepare(st_log *log, const pf_buffer *manifest, const pf_buffer *attachments,
                             const st_opening_source *opening, pf_buffer *bytes, pf_sha256 *ret_digest,
                             sluice_error *err)
{
    if (manifest->length == 0 || manifest->data[manifest->length - 1] != '\n')
        return pf_fail(err, SLUICE_INTERNAL, "a generation's manifest does not end with a line feed");
    PF_TRY(check_ready(log, err));
    st_expected place = st_segment_next(&log->active);
    size_t attached = attachments ? attachments->length : 0;
    PF_TRY(st_record_encode(&place, manifest->data, manifest->length, attachments ? attachments->data : NULL, attached,
                            bytes, ret_digest, err));
    if (bytes->length > log->active.size - log->active.end) {
        if (!opening)
            return pf_fail(err, SLUICE_INTERNAL,
                           "a record does not fit into its segment and there is no opening record");
        sluice_status status = switch_segment(log, opening, bytes->length, err);
        if (status != SLUICE_OK) {
            note_failure(log, status);
            return status;
        }
        st_record_resalt(bytes->data, log->active.salt);
    }
    PF_TRY(st_segment_reserve(&log->active, err));
    return PF_FAILPOINT(PUBLISH_BEFORE_APPEND, err);
}

sluice_status st_log_append(st_log *log, const pf_buffer *manifest, const pf_buffer *attachments,
                            const st_opening_source *opening, st_append_outcome *ret_outcome, pf_sha256 *ret_digest,
                            sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status;

    PF_ASSERT(log->access == PF_WRITE);
    *ret_outcome = ST_APPEND_NOT;
    status = prepare(log, manifest, attachments, opening, &bytes, ret_digest, err);
    if (status != SLUICE_OK) {
        say_outcome(ST_APPEND_NOT, err);
        goto done;
    }
    status = write_record(log, &bytes, err);
    if (status != SLUICE_OK) {
        *ret_outcome = outcome_by_reading(log, &bytes);
        say_outcome(*ret_outcome, err);
        if (*ret_outcome != ST_APPEND_NOT)
            st_log_mark_suspect(log, &bytes);
        else
            note_failure(log, status);
        if (*ret_outcome == ST_APPEND_VISIBLE)
            (void)note_written(log, &bytes, NULL);
        goto done;
    }
    PF_GOTO(status, done, note_written(log, &bytes, err));
    *ret_outcome = ST_APPEND_ACKNOWLEDGED;
    /* The flush returned: whatever becomes of the mark, the record is durable. A mark that could not be written would
     * hide later damage, so the log is then made suspect, which ends with a new mark. */
    sluice_status marked = st_log_advance_mark(log, false, NULL);
    if (marked == SLUICE_OK)
        marked = PF_FAILPOINT(PUBLISH_AFTER_MARK, NULL);
    if (marked != SLUICE_OK)
        st_log_mark_suspect(log, NULL);
done:
    pf_buffer_free(&bytes);
    return status;
}
