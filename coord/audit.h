/*
 * The audit of recovery: one row per operation and outcome (DESIGN 8, OW-086, LESSONS L-019).
 *
 * audit/<operation>-<outcome>.json, canonical JSON of ids, kinds and times. A row is written under a temporary name,
 * synced, and given its name by rename without replace, so it is whole or absent, and the first one stands. It is made
 * before the intent is retired, under the intent's slot lock, and is never an authority: nothing is decided by its
 * presence.
 */
#ifndef COORD_AUDIT_H
#define COORD_AUDIT_H

#include "locks/oslock.h"
#include "store/graph/graph.h"

typedef enum co_outcome {
    CO_OUTCOME_COMMITTED,  /* found published, or rolled forward */
    CO_OUTCOME_DISCARDED,  /* never published, and never will be */
    CO_OUTCOME_QUARANTINED /* not understood: kept aside */
} co_outcome;
const char *co_outcome_name(co_outcome outcome); /* static storage */

typedef struct co_audit_row {
    pf_id operation, commit;
    co_outcome outcome;
    char kind[16];
    char classification[24]; /* how the intent stood when it was first resolved: co_recovered.classification */
    int64_t time_us;
} co_audit_row;

/* Makes the row unless one stands; durable on return. */
sluice_status co_audit_write(st_graph *graph, lk_lockfile *graph_locks, const co_audit_row *row, pf_deadline deadline,
                             sluice_error *err);
sluice_status co_audit_exists(st_graph *graph, const pf_id *operation, co_outcome outcome, bool *ret_exists,
                              sluice_error *err);
/* All rows, by operation id (so by time); what is not a whole row is passed over. */
typedef sluice_status co_audit_fn(void *context, const co_audit_row *row, sluice_error *err);
sluice_status co_audit_list(st_graph *graph, co_audit_fn *each, void *context, sluice_error *err);

#endif
