/*
 * Gates: what a write attempt holds from C to H, taken as one complete set in total order (OW-060 to OW-062).
 *
 * Inside a pool a gate is first an entry of the region's gate table (waiters in order, orphan marks), then, always, the
 * OS byte-range lock of the branch's lock file: it orders pools and embedded processes, and falls with the process.
 * Without a region (one process, sim) only the OS lock is taken. Gates are an optimisation and an order, never the
 * proof.
 */
#ifndef LOCKS_GATES_H
#define LOCKS_GATES_H

#include "locks/oslock.h"
#include "platform/ids.h"

typedef enum lk_gate_kind { LK_GATE_SCHEMA, LK_GATE_BRANCH, LK_GATE_TABLE } lk_gate_kind;
typedef struct lk_gate_key {
    lk_gate_kind kind;
    uint64_t incarnation; /* of the branch */
    uint64_t table;       /* LK_GATE_TABLE */
    bool exclusive;
} lk_gate_key;

/* The pool's side of gates; no hooks: no region. Filled by shm/ (shm_gate_hooks). */
typedef struct lk_gate_hooks {
    void *context;
    /* *ret_orphaned: the last holder died; the mark stays until somebody who holds the gate settles it. */
    sluice_status (*enter)(void *context, const lk_gate_key *key, const pf_id *operation, pf_deadline deadline,
                           bool *ret_orphaned, pf_id *ret_orphan_operation, sluice_error *err);
    void (*settle)(void *context, const lk_gate_key *key);
    void (*leave)(void *context, const lk_gate_key *key);
} lk_gate_hooks;

typedef struct lk_gates lk_gates;
/* Takes all keys, which are of one branch (any order given; sorted here, duplicates joined to the stronger mode).
 * LIVE_WRITER_CONTENTION at the deadline with nothing held. *ret_orphaned: the last holder of some gate died; its
 * operation must be recovered before the gates are used (list the intents again; when one is left, release and
 * recover). */
sluice_status lk_gates_take(lk_lockfile *lockfile, const lk_gate_hooks *hooks, const lk_gate_key *keys, uint32_t count,
                            const pf_id *operation, pf_deadline deadline, lk_gates **ret_gates, bool *ret_orphaned,
                            sluice_error *err);
/* Under the gates, once no overlapping intent of a dead owner is left: takes the orphan marks away. Safe to call
 * always. */
void lk_gates_settle(lk_gates *gates);
void lk_gates_release(lk_gates *gates); /* NULL allowed; leaves orphan marks that were not settled */
/* SLUICE_NO_GATES=1 in builds with failpoints: takes nothing (everything-off runs); the publish lock is no gate. */

#endif
