/*
 * Reading a whole log: every record of every segment that is still there, and that each continues the one before.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

sluice_status st_log_stops(st_log *log, st_stop **ret_stops, size_t *ret_count, sluice_error *err)
{
    st_segment oldest = {0};
    st_stop *stops = NULL;
    size_t count = 0;
    const st_segment *from = &log->active;
    sluice_status status = SLUICE_OK;

    while (from->earlier_count > 0) {
        uint32_t more = from->earlier_count;
        st_stop *grown = calloc(count + more, sizeof(*grown));
        if (!grown) {
            status = pf_fail_memory(err);
            goto done;
        }
        for (uint32_t i = 0; i < more; i++)
            grown[i] = (st_stop){.at = from->earlier[i], .last = st_segment_last_of(from, i)};
        if (count > 0)
            memcpy(grown + more, stops, count * sizeof(*stops));
        free(stops);
        stops = grown;
        count += more;
        if (stops[0].at.first <= log->active.oldest)
            break;
        st_segment next = {0};
        PF_GOTO(status, done, st_log_open_earlier(log, from, 0, &next, err));
        st_segment_close(&oldest);
        oldest = next;
        from = &oldest;
    }
    *ret_stops = stops;
    *ret_count = count;
    stops = NULL;
done:
    free(stops);
    st_segment_close(&oldest);
    return status;
}

/* The chain as far as it was walked. */
typedef struct chain {
    bool begun;
    uint64_t number;
    pf_sha256 digest;
} chain;

/* `record` is the next of the chain, or (in a healed segment) its last one once more. Lineage says of a repeated record
 * which one it is, as the opening record did, and not what its parent is: where it was the only copy that was left, the
 * opening record vouches for it. */
static bool joins(const chain *walk, const st_segment *segment, const st_record *record)
{
    if (record->number == walk->number)
        return pf_sha256_equal(&record->own, &walk->digest);
    if (record->number != walk->number + 1)
        return false;
    if (segment->collected && segment->repeats && record->number == segment->base)
        return pf_sha256_equal(&record->own, &segment->base_digest);
    return pf_sha256_equal(&record->parent, &walk->digest);
}

static sluice_status does_not_continue(const st_segment *segment, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "log segment %" PRIu64 " does not continue the one before it", segment->number);
}

static sluice_status walk_record(const st_segment *segment, const st_entry *entry, chain *walk, st_log_record_fn *each,
                                 void *context, sluice_error *err)
{
    st_record record = {0};
    sluice_status status;

    PF_TRY(st_segment_read_entry(segment, entry, &record, err));
    if (record.collected)
        each = NULL;
    if (walk->begun && !joins(walk, segment, &record)) {
        status = does_not_continue(segment, err);
        goto done;
    }
    bool again = walk->begun && record.number == walk->number;
    *walk = (chain){.begun = true, .number = record.number, .digest = record.own};
    status = each && !again ? each(context, &record, err) : SLUICE_OK;
done:
    st_record_free(&record);
    return status;
}

static sluice_status walk_segment(const st_segment *segment, uint64_t last, chain *walk, st_log_record_fn *each,
                                  void *context, sluice_error *err)
{
    st_record record = {0};

    if (!segment->collected) {
        PF_TRY(st_segment_read_opening(segment, &record, err));
        sluice_status status = each ? each(context, &record, err) : SLUICE_OK;
        st_record_free(&record);
        if (status != SLUICE_OK)
            return status;
    }
    if (last < st_segment_first(segment)) /* healing was begun again: a later segment repeats the same record */
        return SLUICE_OK;
    /* A segment that repeats its base may bring the only copy that is left of it: its first record has to join. */
    if (!segment->repeats) {
        if (walk->begun && (segment->base != walk->number || !pf_sha256_equal(&segment->base_digest, &walk->digest)))
            return does_not_continue(segment, err);
        *walk = (chain){.begun = true, .number = segment->base, .digest = segment->base_digest};
    } else if (segment->entry_count == 0) {
        return does_not_continue(segment, err);
    }
    for (size_t i = 0; i < segment->entry_count; i++)
        PF_TRY(walk_record(segment, &segment->entries[i], walk, each, context, err));
    return SLUICE_OK;
}

sluice_status st_log_verify(st_log *log, st_log_record_fn *each, void *context, sluice_error *err)
{
    st_stop *stops = NULL;
    size_t count = 0;
    chain walk = {0};
    st_segment segment = {0};
    sluice_status status;

    PF_TRY(st_log_refresh(log, err));
    PF_TRY(st_log_read_whole(log, err));
    PF_GOTO(status, done, st_log_stops(log, &stops, &count, err));
    for (size_t i = 0; i < count; i++) {
        PF_GOTO(status, done, st_log_open_stop(log, &stops[i].at, stops[i].last, &segment, err));
        PF_GOTO(status, done, walk_segment(&segment, stops[i].last, &walk, each, context, err));
        st_segment_close(&segment);
    }
    PF_GOTO(status, done, walk_segment(&log->active, UINT64_MAX, &walk, each, context, err));
done:
    st_segment_close(&segment);
    free(stops);
    return status;
}
