/*
 * The region's gate table: who holds which gate and who is next, inside one pool (DESIGN 5).
 *
 * Holders and waiters are listed in their workers' entries (shm_holder) and nowhere else: what a gate admits is counted
 * from these, so there is nothing that could disagree with them. Waiters have tickets; the lowest one's turn it is. One
 * that could enter and does not within SHM_TURN_MS (it is stopped) goes to the end. Waiting is a futex on the gate's
 * sequence word, in slices, so a lost wake-up costs SHM_WAIT_MS and never a hang. A dead holder's gates become
 * ORPHANED(operation) when the supervisor buries it; the mark stays until a holder settles it. (Two holders of a shared
 * gate that die leave one mark.)
 */
#ifndef SHM_GATE_TABLE_H
#define SHM_GATE_TABLE_H

#include "locks/gates.h"
#include "shm/slots.h"

#define SHM_TURN_MS 100

void shm_gates_init(shm_region *region); /* by the region's builder */
bool shm_gates_check(const shm_region *region);
bool shm_gates_repair(void *region); /* as shm_tasks_repair */

typedef struct shm_gate_answer {
    bool entered;
    bool orphaned; /* when entered */
    pf_id orphan_operation;
    pf_id holder_operation;           /* of somebody in the way, when not entered; nil: only waiters are */
    const _Atomic uint32_t *sequence; /* what to wait on, and its value when the answer was given */
    uint32_t seen;
} shm_gate_answer;

/* One look: enters when it is this worker's turn and the holders admit it, else lists it as a waiter. RESOURCE_LIMIT
 * when a table is full. `now_ns` is monotonic time. */
sluice_status shm_gate_try(shm_region *region, const shm_token *token, const lk_gate_key *key, const pf_id *operation,
                           int64_t now_ns, shm_gate_answer *ret_answer, sluice_error *err);
/* Stops waiting for whatever this worker waits for. */
sluice_status shm_gate_give_up(shm_region *region, const shm_token *token, sluice_error *err);
sluice_status shm_gate_settle(shm_region *region, const shm_token *token, const lk_gate_key *key, sluice_error *err);
sluice_status shm_gate_leave(shm_region *region, const shm_token *token, const lk_gate_key *key, sluice_error *err);
/* The supervisor, for a reaped worker: orphans what it held, forgets what it waited for. */
sluice_status shm_gates_bury(shm_region *region, uint32_t slot, sluice_error *err);

typedef struct shm_gate_look { /* at a gate that is held, waited for or orphaned */
    lk_gate_kind kind;
    uint64_t incarnation, table;
    uint32_t holders, waiters;
    bool exclusive, orphaned;
} shm_gate_look;
/* The first so many, as they are at about this moment, without the latch; returns how many. */
uint32_t shm_gates_look(const shm_region *region, shm_gate_look *looks, uint32_t most);

/* The gates of a worker, for lk_gates_take: shm_gate_try until the deadline, cancellation or success. */
typedef struct shm_gate_user {
    shm_region *region;
    shm_token token;
} shm_gate_user;
lk_gate_hooks shm_gate_hooks(shm_gate_user *user); /* which must live as long as the hooks */

#endif
