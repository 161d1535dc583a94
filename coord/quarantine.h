/*
 * Quarantine: intents that this program cannot read or prove, kept aside so that slots do not run out (DESIGN 8, row
 * 6).
 *
 * quarantine/<commit id>.intent, or slot-<n>-<hash>.intent when even the scope header is damaged: the 32 KiB of the
 * slot as they were. It blocks what its scope header says it overlaps, with its id, until somebody removes the file;
 * without a readable header it blocks only what concerns the graph as a whole (gc, and recovery's own report). Reading
 * is never blocked.
 */
#ifndef COORD_QUARANTINE_H
#define COORD_QUARANTINE_H

#include "coord/intent.h"
#include "locks/oslock.h"

typedef struct co_quarantined {
    char name[80]; /* below quarantine/ */
    bool scope_known;
    co_scope scope;
} co_quarantined;

/* Copies the held slot aside, durably, then frees it. Safe to do again after a death in between. */
sluice_status co_quarantine_put(st_graph *graph, lk_lockfile *graph_locks, co_slot *slot, bool scope_known,
                                const co_scope *scope, pf_deadline deadline, sluice_error *err);
/* All of them, by name. */
typedef sluice_status co_quarantine_fn(void *context, const co_quarantined *item, sluice_error *err);
sluice_status co_quarantine_list(st_graph *graph, co_quarantine_fn *each, void *context, sluice_error *err);

#endif
