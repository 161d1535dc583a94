/*
 * The file suspect, and how a log gets rid of it.
 *
 * After an I/O error nobody knows what the medium holds: a failed sync may have dropped the pages and called them
 * clean. The log is then suspect for every process: it is read, and nothing is appended. Its file exists while that
 * lasts, and holds a copy of the newest record when that one may have been seen by somebody without being durable
 * (L-017). The copy is never read to answer anything; only healing uses it, and only as the exact continuation of the
 * chain.
 *
 * Healing, under the publish lock: read the newest record as everybody sees it; verify what was acknowledged on the
 * medium, past the cache; open a new segment that continues the end and carries the newest record once more; name it in
 * CURRENT; remove the file last. Killed anywhere, the file stays and healing begins again: it appends nothing to the
 * old segment and takes a number that no CURRENT names, in the cache or on the medium.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "platform/event.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_AT 4096u

static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'S', '1'};

static void suspect_path(const st_log *log, char path[128])
{
    int length = snprintf(path, 128, "%s/suspect", log->folder);
    PF_ALWAYS(length > 0 && length < 128);
}

static sluice_status write_suspect(pf_file *file, const pf_buffer *record, sluice_error *err)
{
    uint8_t bytes[ST_SECTOR];
    st_head head;
    if (record) {
        st_head_state state = st_head_decode(record->data, &head);
        PF_ALWAYS(state == ST_HEAD_VALID);
        st_sector sector = {.first = head.number, .second = record->length, .digest = head.own};
        st_sector_encode(magic, &sector, bytes);
        PF_TRY(pf_write(file, COPY_AT, record->data, record->length, err));
        PF_TRY(pf_write(file, 0, bytes, sizeof(bytes), err));
    }
    return pf_sync(file, err);
}

static void tell_suspect(void)
{
    pf_note event;
    if (!pf_note_wanted(SLUICE_LEVEL_ERROR))
        return;
    pf_note_begin(&event, SLUICE_LEVEL_ERROR, "suspect",
                  "a log could not be written or synced: its branch takes no writes until it is recovered");
    pf_note_send(&event);
}

void st_log_mark_suspect(st_log *log, const pf_buffer *record)
{
    char path[128];
    pf_file *file = NULL;
    suspect_path(log, path);
    sluice_status status = pf_create(log->volume, path, &file, NULL);
    if (status == SLUICE_ALREADY_EXISTS)
        return;
    tell_suspect();
    if (status != SLUICE_OK) {
        /* The disk takes nothing any more. This process remembers; the others find an end above the mark and write it
         * again before they build on it, which is as good. */
        log->suspect = true;
        return;
    }
    /* The name alone says suspect. The copy is one more chance for a record that was never acknowledged. */
    (void)write_suspect(file, record, NULL);
    (void)pf_close(file, NULL);
    (void)pf_sync_dir(log->volume, log->folder, NULL);
}

sluice_status st_log_check_suspect(st_log *log, sluice_error *err)
{
    char path[128];
    pf_stat stat;
    sluice_error local = {0};
    bool suspect = log->suspect;
    if (!suspect) {
        suspect_path(log, path);
        sluice_status status = pf_stat_path(log->volume, path, &stat, &local);
        if (status == SLUICE_NOT_FOUND)
            return SLUICE_OK;
        if (status != SLUICE_OK) {
            if (err)
                *err = local;
            return status;
        }
    }
    pf_fail(err, SLUICE_SUSPECT,
            "the log of branch incarnation %" PRIu64 " met an I/O error and is read-only until it is healed",
            log->incarnation);
    pf_hint(err, "the next writer heals it when the disk works again, or run `sluice recover GRAPH`");
    return SLUICE_SUSPECT;
}

/* The copy in the suspect file, when it is whole and continues the chain's end. A torn or unreadable one is none: its
 * record was never acknowledged. */
static bool read_copy(const st_log *log, pf_buffer *ret_record)
{
    char path[128];
    uint8_t bytes[ST_SECTOR];
    pf_file *file = NULL;
    st_sector sector;
    st_head head;
    bool good = false;

    suspect_path(log, path);
    if (pf_open(log->volume, path, PF_READ, &file, NULL) != SLUICE_OK)
        return false;
    if (pf_read_exact(file, 0, bytes, sizeof(bytes), NULL) != SLUICE_OK ||
        st_sector_decode(magic, bytes, &sector) != ST_SECTOR_VALID || sector.second < ST_RECORD_ALIGN ||
        sector.second > ST_RECORD_MAX || pf_buffer_reserve(ret_record, sector.second, NULL) != SLUICE_OK ||
        pf_read_exact(file, COPY_AT, ret_record->data, sector.second, NULL) != SLUICE_OK)
        goto done;
    ret_record->length = sector.second;
    st_expected next = st_segment_next(&log->active);
    if (st_head_decode(ret_record->data, &head) != ST_HEAD_VALID)
        goto done;
    memcpy(next.salt, head.salt, sizeof(next.salt)); /* of whichever segment it was meant for */
    good = st_head_fits(&head, &next) && st_head_record_size(&head) == ret_record->length &&
           st_record_body_is_whole(&head, ret_record->data);
done:
    (void)pf_close(file, NULL);
    return good;
}

/* The newest record of the active segment, as everybody sees it; empty when the segment has none. */
static sluice_status read_newest(const st_log *log, pf_buffer *ret_record, sluice_error *err)
{
    const st_segment *segment = &log->active;
    if (segment->entry_count == 0)
        return SLUICE_OK;
    const st_entry *entry = &segment->entries[segment->entry_count - 1];
    PF_TRY(pf_buffer_reserve(ret_record, entry->size, err));
    PF_TRY(pf_read_exact(segment->file, entry->offset, ret_record->data, entry->size, err));
    PF_TRY(st_segment_check_bytes(segment, entry->offset, ret_record->data, entry->size, err));
    ret_record->length = entry->size;
    return SLUICE_OK;
}

/* Reads [from, to) of a segment past the cache and checks the records there. */
static sluice_status verify_range(const st_segment *segment, uint64_t from, uint64_t to, sluice_error *err)
{
    if (from == to)
        return SLUICE_OK;
    uint8_t *bytes = malloc(to - from);
    if (!bytes)
        return pf_fail_memory(err);
    sluice_status status = pf_read_medium(segment->file, from, bytes, to - from, err);
    if (status == SLUICE_OK)
        status = st_segment_check_bytes(segment, from, bytes, to - from, err);
    free(bytes);
    return status;
}

/* What was acknowledged, and all before the newest record, is on the medium. */
static sluice_status verify_medium(const st_log *log, sluice_error *err)
{
    const st_segment *active = &log->active;
    uint64_t to = active->end;
    if (active->entry_count > 0 && st_segment_end_number(active) > log->mark.number)
        to = active->entries[active->entry_count - 1].offset;
    return verify_range(active, 0, to, err);
}

/* CURRENT as everybody sees it becomes durable, before its other sector is written: of the two, one may be missing on
 * the medium only when it was never written. */
static sluice_status make_current_durable(st_log *log, sluice_error *err)
{
    st_current medium;
    PF_TRY(st_current_write(log->current_file, &log->current, err));
    PF_TRY(pf_sync(log->current_file, err));
    PF_TRY(st_current_read(log->current_file, ST_FROM_MEDIUM, &medium, err));
    if (medium.sequence == log->current.sequence && medium.segment == log->current.segment)
        return SLUICE_OK;
    return pf_fail(err, SLUICE_IO, "the file CURRENT of a log does not keep what is written to it");
}

static sluice_status open_healed_segment(st_log *log, const st_opening_source *opening, sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0}, newest = {0}, copy = {0};
    st_earlier *earlier = NULL;
    uint32_t earlier_count;
    sluice_status status;

    PF_GOTO(status, done, read_newest(log, &newest, err));
    bool lost = read_copy(log, &copy); /* the newest record fell out of the cache and never reached the medium */
    PF_GOTO(status, done, st_log_encode_opening(opening, &manifest, &attachments, err));
    PF_GOTO(status, done, verify_medium(log, err));
    PF_GOTO(status, done, make_current_durable(log, err));
    PF_GOTO(status, done, st_log_next_earlier(log, &earlier, &earlier_count, err));
    const pf_buffer *behind = lost ? &copy : &newest;
    st_segment_plan plan = {.number = log->active.number + 1,
                            .incarnation = log->incarnation,
                            .base = st_segment_end_number(&log->active),
                            .base_digest = *st_segment_end_digest(&log->active),
                            .line = {.repeats = !lost && newest.length > 0,
                                     .oldest = log->active.oldest,
                                     .earlier = earlier,
                                     .earlier_count = earlier_count},
                            .manifest = &manifest,
                            .attachments = &attachments,
                            .behind = behind->length > 0 ? behind->data : NULL,
                            .behind_size = behind->length,
                            .room = behind->length};
    PF_GOTO(status, done, st_log_switch_to(log, &plan, log->current.sequence + 1, err));
done:
    free(earlier);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    pf_buffer_free(&newest);
    pf_buffer_free(&copy);
    return status;
}

/* New handles in place of those that met the error. */
static sluice_status reopen(st_log *log, sluice_error *err)
{
    st_log *fresh, kept;
    PF_TRY(st_log_open(log->volume, log->folder, log->incarnation, log->access, &fresh, err));
    fresh->suspect = log->suspect;
    log->mark_unsynced = false;
    kept = *log;
    *log = *fresh;
    *fresh = kept;
    st_log_close(fresh);
    return SLUICE_OK;
}

sluice_status st_log_heal(st_log *log, const st_opening_source *opening, sluice_error *err)
{
    char path[128];
    sluice_error local = {0};

    PF_ASSERT(log->access == PF_WRITE);
    sluice_status status = st_log_check_suspect(log, &local);
    if (status == SLUICE_OK)
        return st_log_refresh(log, err);
    if (status != SLUICE_SUSPECT) {
        if (err)
            *err = local;
        return status;
    }
    PF_TRY(reopen(log, err));
    PF_TRY(open_healed_segment(log, opening, err));
    suspect_path(log, path);
    local = (sluice_error){0};
    status = pf_remove(log->volume, path, &local);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = local;
        return status;
    }
    PF_TRY(pf_sync_dir(log->volume, log->folder, err));
    log->suspect = false;
    return SLUICE_OK;
}
