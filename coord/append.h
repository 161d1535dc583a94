/*
 * The one place that publishes: deltas that were arbitrated under the publish lock become a generation
 * (OW-001, OW-011, OW-077).
 *
 * Called by stage G and by recovery's roll-forward, and by nobody else. Also here: what both do to a log before they
 * rely on it (heal a suspect one, settle an end above the mark).
 */
#ifndef COORD_APPEND_H
#define COORD_APPEND_H

#include "locks/oslock.h"
#include "store/state/state.h"

typedef struct co_append_part { /* one of the writes that become the generation */
    st_delta *delta;            /* its slots are bound */
    const pf_sha256 *digest;    /* what the delta's digest must still be */
} co_append_part;

typedef struct co_append {
    st_graph *graph;
    st_log *log;
    lk_lockfile *graph_locks;    /* locks/graph, for the reclaim lock */
    const co_append_part *parts; /* in order; each was arbitrated against the ones before it, too */
    uint32_t count;
    const pf_id *epoch; /* must not be void; NULL: recovery, which publishes for somebody else */
    uint64_t row_block; /* a spare one, or 0 */
    pf_deadline deadline;
    /* filled: */
    st_append_outcome outcome; /* ST_APPEND_NOT until the append was tried */
    uint64_t generation;       /* the number that the append was for */
    bool tried;                /* the append was */
    bool needs_block;          /* SLUICE_OK, and nothing done: take a row block outside and come again */
    bool object_missing;       /* with CORRUPT: an object that a part names does not exist any more ... */
    uint32_t missing;          /* ... which part */
} co_append;

/* Under the publish lock, with the log refreshed, settled, and arbitrated. */
sluice_status co_append_deltas(co_append *append, sluice_error *err);

/* Under the publish lock: refreshes, heals a suspect log, and settles an end above the mark. */
sluice_status co_make_reliable(st_graph *graph, st_log *log, sluice_error *err);

#endif
