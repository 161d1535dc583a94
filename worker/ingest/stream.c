#include "worker/ingest/stream.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

/* One look-up in a run costs about as much as walking past so many entries. */
#define PROBE_COST 32u

typedef struct source {
    wk_entries in;
    uint32_t fragment;
    st_run_cursor cursor;
    const st_run_entry *at, *end; /* of the block being read */
} source;

struct wk_stream {
    wk_side *side;
    source *sources;
    uint32_t count;
    struct head { /* a source that has an entry, and the hash of that */
        uint64_t hash;
        uint32_t source;
    } * heap; /* the least first */
    uint32_t heap_count;
};

static void close_sources(source *sources, uint32_t count)
{
    for (uint32_t i = 0; sources && i < count; i++)
        if (sources[i].in.own)
            st_run_close(sources[i].in.run);
    free(sources);
}

static sluice_status open_sources(wk_side *side, st_run_use use, uint32_t unique, source **ret_sources,
                                  uint32_t *ret_count, sluice_error *err)
{
    uint32_t count = wk_side_count(side);
    source *sources = calloc((size_t)count + 1, sizeof *sources);

    *ret_sources = NULL;
    *ret_count = 0;
    if (sources == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        sources[i].fragment = i;
        sluice_status status = wk_side_entries(side, i, use, unique, &sources[i].in, err);
        if (status != SLUICE_OK) {
            close_sources(sources, i);
            return status;
        }
    }
    *ret_sources = sources;
    *ret_count = count;
    return SLUICE_OK;
}

/* The first of sorted entries whose hash is at least `hash`. */
static const st_run_entry *lower_bound(const wk_entries *in, uint64_t hash)
{
    uint64_t low = 0, high = in->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (in->entries[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return in->entries + low;
}

/* Positions a source before its first entry in the range. */
static sluice_status seek(source *s, wk_range range, sluice_error *err)
{
    s->at = s->end = NULL;
    if (s->in.run)
        return st_run_seek(s->in.run, range.low, range.high, &s->cursor, err);
    if (s->in.count == 0)
        return SLUICE_OK;
    s->at = lower_bound(&s->in, range.low);
    s->end = range.high == UINT64_MAX ? s->in.entries + s->in.count : lower_bound(&s->in, range.high + 1);
    return SLUICE_OK;
}

/* The next block of a source's entries; none at its end. */
static sluice_status refill(source *s, sluice_error *err)
{
    uint64_t count = 0;

    if (s->in.run == NULL)
        return SLUICE_OK;
    PF_TRY(st_run_next_many(&s->cursor, &s->at, &count, err));
    s->end = s->at + count;
    return SLUICE_OK;
}

/* ---- the heap ---- */

static inline bool is_before(const struct head *a, const struct head *b)
{
    return a->hash != b->hash ? a->hash < b->hash : a->source < b->source;
}

static void sift_down(wk_stream *stream, uint32_t at)
{
    struct head *heap = stream->heap, moving = heap[at];
    uint32_t count = stream->heap_count;

    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_before(&heap[child + 1], &heap[child]);
        if (!is_before(&heap[child], &moving))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* Moves a source to the first live entry from where it stands; *ret_any false at its end. */
static sluice_status settle(wk_stream *stream, source *s, bool *ret_any, sluice_error *err)
{
    for (;; s->at++) {
        if (s->at == s->end)
            PF_TRY(refill(s, err));
        *ret_any = s->at != s->end;
        if (!*ret_any || !wk_side_is_dead(stream->side, s->fragment, s->at->position))
            return SLUICE_OK;
    }
}

static sluice_status start(wk_stream *stream, wk_range range, sluice_error *err)
{
    for (uint32_t i = 0; i < stream->count; i++) {
        bool any = false;
        PF_TRY(seek(&stream->sources[i], range, err));
        PF_TRY(settle(stream, &stream->sources[i], &any, err));
        if (any)
            stream->heap[stream->heap_count++] = (struct head){stream->sources[i].at->hash, i};
    }
    for (uint32_t i = stream->heap_count / 2; i > 0; i--)
        sift_down(stream, i - 1);
    return SLUICE_OK;
}

static sluice_status make_stream(wk_side *side, source *sources, uint32_t count, wk_range range, wk_stream **ret_stream,
                                 sluice_error *err)
{
    sluice_status status;
    wk_stream *stream = calloc(1, sizeof *stream);

    *ret_stream = NULL;
    if (stream == NULL) {
        close_sources(sources, count);
        return pf_fail_memory(err);
    }
    stream->side = side;
    stream->sources = sources;
    stream->count = count;
    stream->heap = calloc((size_t)count + 1, sizeof *stream->heap);
    status = stream->heap ? start(stream, range, err) : pf_fail_memory(err);
    if (status == SLUICE_OK)
        *ret_stream = stream;
    else
        wk_stream_close(stream);
    return status;
}

sluice_status wk_stream_open(wk_side *side, st_run_use use, uint32_t unique, wk_range range, wk_stream **ret_stream,
                             sluice_error *err)
{
    source *sources = NULL;
    uint32_t count = 0;

    PF_TRY(open_sources(side, use, unique, &sources, &count, err));
    return make_stream(side, sources, count, range, ret_stream, err);
}

void wk_stream_close(wk_stream *stream)
{
    if (stream == NULL)
        return;
    close_sources(stream->sources, stream->count);
    free(stream->heap);
    free(stream);
}

bool wk_stream_peek(const wk_stream *stream, uint64_t *ret_hash)
{
    if (stream->heap_count == 0)
        return false;
    *ret_hash = stream->heap[0].hash;
    return true;
}

static sluice_status drop_first(wk_stream *stream, sluice_error *err)
{
    bool any = false;
    source *s = &stream->sources[stream->heap[0].source];

    s->at++;
    PF_TRY(settle(stream, s, &any, err));
    if (any)
        stream->heap[0].hash = s->at->hash;
    else
        stream->heap[0] = stream->heap[--stream->heap_count];
    if (stream->heap_count > 0)
        sift_down(stream, 0);
    return SLUICE_OK;
}

sluice_status wk_stream_next(wk_stream *stream, wk_place *ret_place, sluice_error *err)
{
    PF_ASSERT(stream->heap_count > 0);
    const source *s = &stream->sources[stream->heap[0].source];
    *ret_place = (wk_place){.side = stream->side, .fragment = s->fragment, .position = s->at->position};
    return drop_first(stream, err);
}

sluice_status wk_stream_skip(wk_stream *stream, uint64_t hash, sluice_error *err)
{
    uint64_t next;

    while (wk_stream_peek(stream, &next) && next < hash)
        PF_TRY(drop_first(stream, err));
    return SLUICE_OK;
}

sluice_status wk_stream_skip_hash(wk_stream *stream, uint64_t hash, sluice_error *err)
{
    uint64_t next;

    while (wk_stream_peek(stream, &next) && next == hash) {
        source *s = &stream->sources[stream->heap[0].source];
        while (s->end - s->at > 1 && s->at[1].hash == hash) /* they need no place in the heap */
            s->at++;
        PF_TRY(drop_first(stream, err));
    }
    return SLUICE_OK;
}

sluice_status wk_stream_entries(wk_side *side, st_run_use use, wk_range range, uint64_t *ret_count, sluice_error *err)
{
    source *sources = NULL;
    uint32_t count = 0;
    sluice_status status = SLUICE_OK;

    *ret_count = 0;
    PF_TRY(open_sources(side, use, 0, &sources, &count, err));
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        source *s = &sources[i];
        status = seek(s, range, err);
        if (status == SLUICE_OK)
            *ret_count += s->in.run ? s->cursor.end - s->cursor.next : (uint64_t)(s->end - s->at);
    }
    close_sources(sources, count);
    return status;
}

sluice_status wk_stream_blocks(wk_side *side, st_run_use use, wk_range range, wk_block_fn *each, void *context,
                               sluice_error *err)
{
    source *sources = NULL;
    uint32_t count = 0;
    sluice_status status = SLUICE_OK;

    PF_TRY(open_sources(side, use, 0, &sources, &count, err));
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        source *s = &sources[i];
        status = seek(s, range, err);
        for (;;) {
            if (status == SLUICE_OK && s->at == s->end)
                status = refill(s, err);
            if (status != SLUICE_OK || s->at == s->end)
                break;
            status = each(context, s->fragment, s->at, (uint64_t)(s->end - s->at), err);
            s->at = s->end;
        }
    }
    close_sources(sources, count);
    return status;
}

/* ---- places ---- */

void wk_places_free(wk_places *places)
{
    free(places->items);
    memset(places, 0, sizeof *places);
}

sluice_status wk_places_add(wk_places *places, const wk_place *place, sluice_error *err)
{
    if (places->count == places->room) {
        uint32_t room = places->room ? places->room * 2 : 16;
        wk_place *items = realloc(places->items, room * sizeof *items);
        if (items == NULL)
            return pf_fail_memory(err);
        places->items = items;
        places->room = room;
    }
    places->items[places->count++] = *place;
    return SLUICE_OK;
}

/* ---- look-ups ---- */

struct wk_lookup {
    wk_side *side;
    wk_stream *stream; /* walked; or NULL, */
    source *sources;   /* and these are probed */
    uint32_t count;
};

/* Entries of the runs that may lie in a part of the range of all hashes. */
static uint64_t estimate(const source *sources, uint32_t count, wk_range range)
{
    uint64_t entries = 0;

    for (uint32_t i = 0; i < count; i++)
        entries += sources[i].in.count;
    uint64_t parts = range.low == 0 && range.high == UINT64_MAX ? 1 : UINT64_MAX / (range.high - range.low + 1);
    return entries / (parts ? parts : 1);
}

sluice_status wk_lookup_open(wk_side *side, st_run_use use, uint32_t unique, wk_range range, uint64_t expected,
                             wk_lookup **ret_lookup, sluice_error *err)
{
    wk_lookup *lookup = calloc(1, sizeof *lookup);
    sluice_status status;

    if (lookup == NULL)
        return pf_fail_memory(err);
    lookup->side = side;
    status = open_sources(side, use, unique, &lookup->sources, &lookup->count, err);
    if (status == SLUICE_OK &&
        expected * PROBE_COST * lookup->count >= estimate(lookup->sources, lookup->count, range)) {
        source *sources = lookup->sources;
        lookup->sources = NULL;
        status = make_stream(side, sources, lookup->count, range, &lookup->stream, err);
    }
    if (status == SLUICE_OK)
        *ret_lookup = lookup;
    else
        wk_lookup_close(lookup);
    return status;
}

void wk_lookup_close(wk_lookup *lookup)
{
    if (lookup == NULL)
        return;
    wk_stream_close(lookup->stream);
    close_sources(lookup->sources, lookup->count);
    free(lookup);
}

static sluice_status find_walking(wk_lookup *lookup, uint64_t hash, bool one, wk_places *places, sluice_error *err)
{
    uint64_t next;
    wk_place place;

    PF_TRY(wk_stream_skip(lookup->stream, hash, err));
    while (wk_stream_peek(lookup->stream, &next) && next == hash) {
        PF_TRY(wk_stream_next(lookup->stream, &place, err));
        PF_TRY(wk_places_add(places, &place, err));
        if (one)
            return SLUICE_OK; /* the rest is passed over by the next question */
    }
    return SLUICE_OK;
}

static sluice_status probe(wk_lookup *lookup, source *s, uint64_t hash, bool one, wk_places *places, sluice_error *err)
{
    bool may = true;

    if (s->in.run)
        PF_TRY(st_run_may_contain(s->in.run, hash, &may, err));
    if (!may)
        return SLUICE_OK;
    PF_TRY(seek(s, (wk_range){hash, hash}, err));
    for (;; s->at++) {
        if (s->at == s->end)
            PF_TRY(refill(s, err));
        if (s->at == s->end)
            return SLUICE_OK;
        if (wk_side_is_dead(lookup->side, s->fragment, s->at->position))
            continue;
        wk_place place = {.side = lookup->side, .fragment = s->fragment, .position = s->at->position};
        PF_TRY(wk_places_add(places, &place, err));
        if (one)
            return SLUICE_OK;
    }
}

sluice_status wk_lookup_find(wk_lookup *lookup, uint64_t hash, bool one, wk_places *places, sluice_error *err)
{
    uint32_t before = places->count;

    if (lookup->stream)
        return find_walking(lookup, hash, one, places, err);
    for (uint32_t i = 0; i < lookup->count && !(one && places->count > before); i++)
        PF_TRY(probe(lookup, &lookup->sources[i], hash, one, places, err));
    return SLUICE_OK;
}
