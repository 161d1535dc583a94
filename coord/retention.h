/*
 * Which generations collection keeps (DESIGN 9 "GC", LESSONS G-01): the decision, and what it says in control/.
 *
 * Kept of every branch's lineage: its head; of the generations before, what the caller's limits keep (no limit: all).
 * Kept wherever they stand: where a branch begins; where two living branches met last (every place that the history of
 * a living head reaches in another log); checkpoints; from the oldest pinned generation of a log on, everything, since
 * a writer needs the change sets behind its base; likewise from the base of each intent that is not retired. Of a log
 * without a name only that. What was let go of once never comes back.
 *
 * The plan is made under the refs lock, which who makes a branch holds until its name stands, and published under it.
 * A checkpoint that came meanwhile is seen when it is published, under control's own lock.
 */
#ifndef COORD_RETENTION_H
#define COORD_RETENTION_H

#include "coord/roots.h"

typedef struct co_limits { /* what may go must be beyond all limits that are given; none: nothing of history may */
    uint64_t keep;         /* generations of a lineage that stay, the newest; 0: not given */
    bool age_given;
    int64_t age_us; /* what stood within this time stays */
} co_limits;

typedef struct co_kept { /* of one log */
    uint64_t incarnation;
    uint64_t first, end; /* its own generations, when the plan was made */
    st_range *ranges;    /* to be kept; sorted and apart once the plan is made; last UINT64_MAX: and all that follow */
    uint32_t count, room;
} co_kept;

typedef struct co_retention {
    co_kept *logs;
    uint32_t count, room;
} co_retention;
void co_retention_free(co_retention *plan); /* safe on a zeroed one */
/* The caller holds the refs lock. CORRUPT when a root cannot be read: then nothing is let go of. */
sluice_status co_retention_plan(st_graph *graph, const co_limits *limits, co_retention *ret_plan, sluice_error *err);
/* Puts the plan into the control state: what is kept of what stood until now, and the checkpoints of this state.
 * *ret_dropped: generations that this lets go of. */
sluice_status co_retention_apply(st_graph *graph, const co_retention *plan, st_control *control, uint64_t *ret_dropped,
                                 sluice_error *err);
/* From which generation of a log on everything stays, by its pins and by intents; UINT64_MAX: nothing holds. */
sluice_status co_retention_floor(st_graph *graph, uint64_t incarnation, uint64_t *ret_floor, sluice_error *err);

#endif
