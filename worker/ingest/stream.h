/*
 * Sorted entries of many runs as one: by hash, then by fragment, then by position, so that among equal hashes the order
 * is the order of the input. And look-ups of the hashes of another, ascending stream in it.
 *
 * Memory is a few words per run, whatever the runs hold.
 */
#ifndef WORKER_INGEST_STREAM_H
#define WORKER_INGEST_STREAM_H

#include "worker/ingest/side.h"

typedef struct wk_place {
    wk_side *side;
    uint32_t fragment;
    uint64_t position;
} wk_place;

typedef struct wk_range {
    uint64_t low, high; /* of hashes, both included */
} wk_range;

typedef struct wk_stream wk_stream;

/* All runs of a side for a use, within a range of hashes. Dead rows are passed over. */
sluice_status wk_stream_open(wk_side *side, st_run_use use, uint32_t unique, wk_range range, wk_stream **ret_stream,
                             sluice_error *err);
void wk_stream_close(wk_stream *stream); /* NULL allowed */
/* The hash of the next entry; false at the end. */
bool wk_stream_peek(const wk_stream *stream, uint64_t *ret_hash);
/* Takes the next entry (there must be one). */
sluice_status wk_stream_next(wk_stream *stream, wk_place *ret_place, sluice_error *err);
/* Passes over entries below `hash`. */
sluice_status wk_stream_skip(wk_stream *stream, uint64_t hash, sluice_error *err);
/* Passes over the rest of one hash, having taken at least one entry of it. */
sluice_status wk_stream_skip_hash(wk_stream *stream, uint64_t hash, sluice_error *err);

/* How many entries a side has in a range, dead ones too. */
sluice_status wk_stream_entries(wk_side *side, st_run_use use, wk_range range, uint64_t *ret_count, sluice_error *err);
/* All entries of a side in a range, in no order, dead ones too, many at once. */
typedef sluice_status wk_block_fn(void *context, uint32_t fragment, const st_run_entry *entries, uint64_t count,
                                  sluice_error *err);
sluice_status wk_stream_blocks(wk_side *side, st_run_use use, wk_range range, wk_block_fn *each, void *context,
                               sluice_error *err);

/* What a look-up found; grows as needed. */
typedef struct wk_places {
    wk_place *items;
    uint32_t count, room;
} wk_places;
void wk_places_free(wk_places *places); /* safe on a zeroed one */
sluice_status wk_places_add(wk_places *places, const wk_place *place, sluice_error *err);

typedef struct wk_lookup wk_lookup;

/* `expected`: about how many hashes will be asked for; decides whether runs are walked or probed. */
sluice_status wk_lookup_open(wk_side *side, st_run_use use, uint32_t unique, wk_range range, uint64_t expected,
                             wk_lookup **ret_lookup, sluice_error *err);
void wk_lookup_close(wk_lookup *lookup); /* NULL allowed */
/* Appends every live entry with this hash. Hashes must be asked for in ascending order. `one`: the first is enough. */
sluice_status wk_lookup_find(wk_lookup *lookup, uint64_t hash, bool one, wk_places *places, sluice_error *err);

#endif
