/*
 * A log as it stood at a cut: copied to another volume, and put back to.
 *
 * Segments are copied under their own numbers, byte for byte as far as records go, zeros behind: a copy is the same
 * chain with the same opening records, and a later copy goes on where this one ended. What is there of earlier
 * segments is left alone, the segment that was active is written on, new ones are made; then CURRENT, then the mark.
 *
 * Crash rule: a copy that is cut short leaves a log that may be anything between two states, so the caller sees to it
 * that nobody looks at it meanwhile (store/graph/cut.c: a document that says where the logs ended before rules while it
 * exists), and puts it back or copies again. Putting back reads nothing but the segment that was active.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1024u * 1024u)

static void join(const char *folder, const char *name, char path[128])
{
    int length = snprintf(path, 128, "%s/%s", folder, name);
    PF_ALWAYS(length > 0 && length < 128);
}

/* ---- looking ---- */

st_log_cut st_log_cut_of(const st_log *log)
{
    const st_segment *segment = &log->active;
    st_log_cut cut = {.incarnation = log->incarnation,
                      .segment = segment->number,
                      .opening = segment->opening,
                      .number = st_segment_end_number(segment),
                      .digest = *st_segment_end_digest(segment)};
    const st_entry *marked = log->mark.segment == segment->number ? st_segment_find(segment, log->mark.number) : NULL;
    if (marked) {
        cut.number = marked->number;
        cut.digest = marked->own;
    } else if (log->mark.segment == segment->number && log->mark.number == segment->base && !segment->repeats) {
        cut.number = segment->base;
        cut.digest = segment->base_digest;
    }
    return cut;
}

sluice_status st_log_digest_at(st_log *log, uint64_t number, bool *ret_known, pf_sha256 *ret_digest, sluice_error *err)
{
    st_segment segment = {0};
    st_stop *stops = NULL;
    size_t count = 0;
    sluice_error local = {0};
    st_record record = {0};
    sluice_status status = st_log_read_lineage(log, number, &record, &local);
    *ret_known = status == SLUICE_OK;
    if (status == SLUICE_OK)
        *ret_digest = record.own;
    st_record_free(&record);
    if (status != SLUICE_NOT_FOUND) {
        if (status != SLUICE_OK && err)
            *err = local;
        return status;
    }
    /* The generation that the oldest segment continues is in no record of this log. */
    PF_TRY(st_log_stops(log, &stops, &count, err));
    const st_segment *oldest = &log->active;
    if (count > 0) {
        PF_GOTO(status, done, st_log_open_stop(log, &stops[0].at, stops[0].last, &segment, err));
        oldest = &segment;
    }
    status = SLUICE_OK;
    if (oldest->base == number) {
        *ret_known = true;
        *ret_digest = oldest->base_digest;
    }
done:
    st_segment_close(&segment);
    free(stops);
    return status;
}

/* ---- copying ---- */

static sluice_status copy_range(pf_file *from, pf_file *to, uint64_t at, uint64_t end, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    uint8_t *bytes = malloc(CHUNK);
    if (!bytes)
        return pf_fail_memory(err);
    while (status == SLUICE_OK && at < end) {
        size_t length = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        status = pf_read_exact(from, at, bytes, length, err);
        if (status == SLUICE_OK)
            status = pf_write(to, at, bytes, length, err);
        at += length;
    }
    free(bytes);
    return status;
}

/* Where the copy of this segment ends that `have` speaks of. */
static uint64_t had_until(const st_segment *segment, const st_log_cut *have)
{
    if (have->number <= segment->base && !(segment->repeats && have->number == segment->base))
        return segment->opening_size;
    const st_entry *entry = st_segment_find(segment, have->number);
    return entry ? entry->offset + entry->size : segment->end;
}

/* What stays of a segment that collection took: copied under another name first, since a lineage is whole or not there.
 */
static sluice_status copy_lineage(const st_log *log, uint64_t number, pf_volume *to, const char *folder,
                                  st_copied *copied, sluice_error *err)
{
    char path[128], next[128];
    pf_file *from = NULL, *file = NULL;
    pf_stat stat, there;
    sluice_status status;

    (void)snprintf(path, sizeof(path), "%s/lineage/%llu", folder, (unsigned long long)number);
    (void)snprintf(next, sizeof(next), "%s/lineage/copy", folder);
    PF_TRY(pf_open(log->volume, path, PF_READ, &from, err));
    PF_GOTO(status, done, pf_file_stat(from, &stat, err));
    if (pf_stat_path(to, path, &there, NULL) == SLUICE_OK) {
        copied->reused_files++;
        copied->reused_bytes += there.size;
        goto done;
    }
    PF_GOTO(status, done, pf_remove_if_there(to, next, err));
    PF_GOTO(status, done, pf_create(to, next, &file, err));
    PF_GOTO(status, done, copy_range(from, file, 0, stat.size, err));
    PF_GOTO(status, done, pf_sync(file, err));
    PF_GOTO(status, done, pf_publish(to, next, path, err));
    copied->files++;
    copied->bytes += stat.size;
done:
    (void)pf_close(from, NULL); /* only read */
    (void)pf_close(file, NULL); /* synced */
    return status;
}

static sluice_status copy_segment(const st_segment *segment, pf_volume *to, const char *folder, const st_log_cut *have,
                                  st_copied *copied, sluice_error *err)
{
    char path[128];
    pf_file *file = NULL;
    pf_stat stat;
    uint64_t from = 0;
    sluice_status status;
    bool there;

    st_segment_path(folder, segment->number, path);
    there = have && segment->number <= have->segment && pf_stat_path(to, path, &stat, NULL) == SLUICE_OK &&
            stat.size == segment->size;
    if (there && segment->number < have->segment) {
        copied->reused_files++;
        copied->reused_bytes += segment->end;
        return SLUICE_OK;
    }
    if (there) {
        if (!pf_sha256_equal(&segment->opening, &have->opening))
            return pf_fail(err, SLUICE_CORRUPT, "the copy's segment %s is another one", path);
        from = had_until(segment, have);
        copied->reused_bytes += from;
        if (from == segment->end) {
            copied->reused_files++;
            return SLUICE_OK;
        }
        PF_TRY(pf_open(to, path, PF_WRITE, &file, err));
    } else {
        PF_TRY(pf_remove_if_there(to, path, err));
        PF_TRY(pf_create(to, path, &file, err));
        PF_GOTO(status, done, pf_zero_fill(file, segment->size, err));
    }
    PF_GOTO(status, done, copy_range(segment->file, file, from, segment->end, err));
    PF_GOTO(status, done, pf_sync(file, err));
    copied->files++;
    copied->bytes += segment->end - from;
    status = pf_close(file, err);
    file = NULL;
done:
    (void)pf_close(file, NULL);
    return status;
}

/* A stop on the way: the segment, or what collection left of it. */
static sluice_status copy_stop(st_log *log, const st_stop *stop, pf_volume *to, const char *folder,
                               const st_log_cut *have, st_copied *copied, sluice_error *err)
{
    st_segment segment = {0};
    PF_TRY(st_log_open_stop(log, &stop->at, stop->last, &segment, err));
    sluice_status status = segment.collected ? copy_lineage(log, stop->at.number, to, folder, copied, err)
                                             : copy_segment(&segment, to, folder, have, copied, err);
    st_segment_close(&segment);
    return status;
}

static sluice_status make_lineage_folder(pf_volume *to, const char *folder, sluice_error *err)
{
    char path[128];
    pf_stat stat;
    join(folder, "lineage", path);
    return pf_stat_path(to, path, &stat, NULL) == SLUICE_OK ? SLUICE_OK : pf_make_folder(to, path, err);
}

/* What is copied of the active segment is whole, also what its reader did not look at; it still ends where it did. */
static sluice_status check_active(st_segment *segment, sluice_error *err)
{
    st_record record = {0};
    if (!segment->from_mark)
        return SLUICE_OK;
    PF_TRY(st_segment_index_back(segment, st_segment_first(segment), err));
    PF_TRY(st_segment_read_opening(segment, &record, err));
    st_record_free(&record);
    for (size_t i = 0; i < segment->entry_count; i++) {
        PF_TRY(st_segment_read_entry(segment, &segment->entries[i], &record, err));
        st_record_free(&record);
    }
    return SLUICE_OK;
}

static sluice_status copy_segments(st_log *log, pf_volume *to, const char *folder, const st_log_cut *have,
                                   st_copied *copied, sluice_error *err)
{
    char path[128];
    st_stop *stops = NULL;
    size_t count = 0;
    sluice_status status = SLUICE_OK;

    PF_TRY(check_active(&log->active, err));
    PF_TRY(st_log_stops(log, &stops, &count, err));
    if (count > 0)
        status = make_lineage_folder(to, folder, err);
    for (size_t i = 0; i < count && status == SLUICE_OK; i++)
        status = copy_stop(log, &stops[i], to, folder, have, copied, err);
    free(stops);
    if (status == SLUICE_OK)
        status = copy_segment(&log->active, to, folder, have, copied, err);
    join(folder, "lineage", path);
    if (status == SLUICE_OK && count > 0)
        status = pf_sync_dir(to, path, err);
    join(folder, "log", path);
    return status == SLUICE_OK ? pf_sync_dir(to, path, err) : status;
}

static sluice_status name_segment(const st_log *log, pf_volume *to, const char *folder, bool anew, sluice_error *err)
{
    st_current current = {.sequence = 1, .segment = log->active.number, .opening = log->active.opening}, now;
    pf_file *file = NULL;
    sluice_status status;
    if (anew)
        return st_current_make(to, folder, &current, err);
    PF_TRY(st_current_open(to, folder, PF_WRITE, &file, err));
    PF_GOTO(status, done, st_current_read(file, ST_FROM_CACHE, &now, err));
    if (now.segment == current.segment)
        goto done;
    current.sequence = now.sequence + 1;
    PF_GOTO(status, done, st_current_write(file, &current, err));
    PF_GOTO(status, done, pf_sync(file, err));
done:
    (void)pf_close(file, NULL);
    return status;
}

static sluice_status write_mark(pf_volume *volume, const char *folder, const st_mark *mark, sluice_error *err)
{
    char path[128];
    join(folder, "acknowledged", path);
    PF_TRY(pf_remove_if_there(volume, path, err));
    return st_mark_make(volume, folder, mark, err);
}

static sluice_status make_folders(pf_volume *to, const char *folder, sluice_error *err)
{
    char path[128];
    pf_file *file = NULL;
    PF_TRY(pf_make_folder(to, folder, err));
    join(folder, "log", path);
    PF_TRY(pf_make_folder(to, path, err));
    join(folder, "locks", path);
    PF_TRY(pf_create(to, path, &file, err));
    return pf_close(file, err);
}

sluice_status st_log_copy(st_log *log, pf_volume *to, const char *folder, const st_log_cut *have, st_copied *copied,
                          sluice_error *err)
{
    st_mark mark = {.number = st_segment_end_number(&log->active), .segment = log->active.number};
    if (!have)
        PF_TRY(make_folders(to, folder, err));
    PF_TRY(copy_segments(log, to, folder, have, copied, err));
    PF_TRY(name_segment(log, to, folder, !have, err));
    PF_TRY(write_mark(to, folder, &mark, err));
    return pf_sync_dir(to, folder, err);
}

/* ---- putting back ---- */

/* Zeros from `from` to the end of the file, where there are others. */
static sluice_status clear_rest(pf_file *file, uint64_t from, uint64_t size, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    bool changed = false;
    uint8_t *bytes = malloc(2 * (size_t)CHUNK);
    if (!bytes)
        return pf_fail_memory(err);
    uint8_t *zeros = bytes + CHUNK;
    memset(zeros, 0, CHUNK);
    while (status == SLUICE_OK && from < size) {
        size_t length = size - from < CHUNK ? (size_t)(size - from) : CHUNK;
        status = pf_read_exact(file, from, bytes, length, err);
        if (status == SLUICE_OK && !st_bytes_are_zero(bytes, length)) {
            status = pf_write(file, from, zeros, length, err);
            changed = true;
        }
        from += length;
    }
    free(bytes);
    return status == SLUICE_OK && changed ? pf_sync(file, err) : status;
}

sluice_status st_log_put_back(pf_volume *volume, const char *folder, const st_log_cut *cut, sluice_error *err)
{
    char path[128];
    st_segment segment = {0};
    st_current current = {.sequence = 1, .segment = cut->segment, .opening = cut->opening};
    st_mark mark = {.number = cut->number, .segment = cut->segment};
    sluice_status status;

    PF_GOTO(status, done,
            st_segment_open_until(volume, folder, cut->segment, cut->incarnation, &cut->opening, cut->number, PF_WRITE,
                                  &segment, err));
    if (!pf_sha256_equal(st_segment_end_digest(&segment), &cut->digest)) {
        status = pf_fail(err, SLUICE_CORRUPT, "the log in %s is not the one that it was", folder);
        goto done;
    }
    PF_GOTO(status, done, clear_rest(segment.file, segment.end, segment.size, err));
    join(folder, "CURRENT", path);
    PF_GOTO(status, done, pf_remove_if_there(volume, path, err));
    PF_GOTO(status, done, st_current_make(volume, folder, &current, err));
    PF_GOTO(status, done, write_mark(volume, folder, &mark, err));
    status = pf_sync_dir(volume, folder, err);
done:
    st_segment_close(&segment);
    return status;
}
