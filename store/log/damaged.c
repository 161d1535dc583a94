/*
 * A log that is damaged, opened for what is left of it: for salvage alone. Here, and nowhere else, something is
 * elected: the newest segment that begins with a whole opening record, and the newest whole record in it.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct numbers {
    uint64_t *items;
    size_t count;
} numbers;

static sluice_status note_segment(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    numbers *found = context;
    char text[24];
    uint64_t number;
    size_t length = strlen(name);
    if (kind != PF_KIND_FILE || length <= 4 || length - 4 >= sizeof(text) || strcmp(name + length - 4, ".seg") != 0)
        return SLUICE_OK;
    memcpy(text, name, length - 4);
    text[length - 4] = '\0';
    if (!st_json_text_is_u64(text, &number))
        return SLUICE_OK;
    uint64_t *grown = realloc(found->items, (found->count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    found->items = grown;
    grown[found->count++] = number;
    return SLUICE_OK;
}

static int newest_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left < right) - (left > right);
}

uint64_t st_log_trace(const st_log *log)
{
    const st_segment *segment = &log->active;
    uint64_t end = st_segment_end_number(segment);
    uint8_t block[ST_RECORD_ALIGN];
    pf_file *file = NULL;
    st_mark mark = {0};
    size_t got = 0;
    (void)st_mark_read(log->volume, log->folder, PF_READ, &file, &mark, NULL);
    (void)pf_close(file, NULL); /* only read */
    if (mark.number >= end && mark.segment >= segment->number)
        return mark.number; /* what stands behind that was never acknowledged */
    bool zero = pf_read(segment->file, segment->end, block, sizeof(block), &got, NULL) == SLUICE_OK &&
                st_bytes_are_zero(block, got);
    return zero ? end : end + 1;
}

sluice_status st_log_open_damaged(pf_volume *volume, const char *folder, uint64_t incarnation, st_log **ret_log,
                                  uint64_t *ret_seen, sluice_error *err)
{
    char path[128];
    numbers found = {0};
    sluice_status status;
    st_log *log = calloc(1, sizeof(*log));

    if (!log)
        return pf_fail_memory(err);
    *ret_seen = 0;
    log->volume = volume;
    log->incarnation = incarnation;
    log->access = PF_READ;
    log->cut = true;
    PF_ALWAYS(strlen(folder) < sizeof(log->folder));
    memcpy(log->folder, folder, strlen(folder));
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    PF_GOTO(status, failed, pf_list(volume, path, note_segment, &found, err));
    if (found.count > 0)
        qsort(found.items, found.count, sizeof(*found.items), newest_first);
    status = SLUICE_CORRUPT;
    for (size_t i = 0; i < found.count && status != SLUICE_OK; i++) {
        uint64_t seen = 0;
        status = st_segment_open_damaged(volume, folder, found.items[i], incarnation, &log->active, &seen, NULL);
        *ret_seen = seen > *ret_seen ? seen : *ret_seen;
    }
    free(found.items);
    if (status != SLUICE_OK) {
        status = pf_fail(err, SLUICE_CORRUPT, "no segment of the log in %s can be read", folder);
        goto failed;
    }
    log->until = (st_log_cut){.incarnation = incarnation,
                              .segment = log->active.number,
                              .opening = log->active.opening,
                              .number = st_segment_end_number(&log->active),
                              .digest = *st_segment_end_digest(&log->active)};
    uint64_t trace = st_log_trace(log);
    *ret_seen = trace > *ret_seen ? trace : *ret_seen;
    *ret_log = log;
    return SLUICE_OK;
failed:
    st_log_close(log);
    return status;
}
