/*
 * The publish queue of a pool: writers of one branch stand in line, and one of them publishes for all that are ready
 * (DESIGN 4 "Group publishing"; coord/publish_group.c drives it).
 *
 * One entry per worker, since a worker has one write at a time; so the queue is never full, and an entry that is not
 * free is its worker's former life's. What a worker wants published lies in its slice of the arena; a write that does
 * not fit there is published outside of the queue.
 *
 *   FREE -- enter --> READY -- take --> TAKEN -- decide --> DECIDED -- leave --> FREE
 *                     READY <- give back - TAKEN
 *
 * Tickets are drawn at the first entering and kept by a write that must come again. One worker at a time leads a
 * branch: only it takes entries of that branch, and what it has taken nobody else touches, until it decides them or is
 * buried. Burial frees the dead worker's entry unless somebody has taken it (who decides it then, for nobody), and
 * makes ready again what the dead worker had taken: whoever takes it next finds in the branch's chain whether it was
 * published. Nothing here is authority.
 *
 * Waiting is a futex on the entry's sequence word, in slices, so a lost wake-up costs SHM_WAIT_MS and never a hang.
 */
#ifndef SHM_PUBLISH_QUEUE_H
#define SHM_PUBLISH_QUEUE_H

#include "shm/slots.h"

typedef enum shm_publish_state {
    SHM_PUBLISH_FREE,
    SHM_PUBLISH_READY,
    SHM_PUBLISH_TAKEN,
    SHM_PUBLISH_DECIDED
} shm_publish_state;

typedef struct shm_publisher { /* a worker at the queue */
    shm_region *region;
    shm_token token;
} shm_publisher;

void shm_publish_init(shm_region *region); /* by the region's builder */
bool shm_publish_check(const shm_region *region);
bool shm_publish_repair(void *region); /* as shm_tasks_repair */

/* The arena's slice of a worker: config.slice bytes. Written by that worker while its entry is free, read by whoever
 * has taken the entry. */
uint8_t *shm_publish_slice(const shm_region *region, uint32_t slot);

typedef struct shm_offer {
    uint64_t place[3]; /* see shm_publish_entry */
    bool alone;
    size_t length; /* of what lies in the slice */
} shm_offer;
/* The state of the own entry. A worker may fill its slice and enter while it is free, and it is not while somebody
 * still decides about a write of its predecessor; once decided, the answer is there. */
shm_publish_state shm_publish_own(const shm_publisher *me);
/* *ticket: 0 draws one; else it is the one that this write had. */
sluice_status shm_publish_enter(const shm_publisher *me, const shm_offer *offer, uint64_t *ticket, sluice_error *err);

typedef struct shm_publish_answer {
    shm_publish_state state; /* of the own entry */
    bool leads;
    const _Atomic uint32_t *sequence; /* what to wait on, and its value when the answer was given */
    uint32_t seen;
} shm_publish_answer;
/* One look: becomes the leader of the entry's branch when it is ready and nobody leads. */
sluice_status shm_publish_look(const shm_publisher *me, shm_publish_answer *ret_answer, sluice_error *err);
/* The leader, under the branch's publish lock: takes what is ready, by ticket; an entry that goes alone is taken alone.
 * `ret_slots`: room for config.workers. Entries of workers that were fenced are passed over. */
sluice_status shm_publish_take(const shm_publisher *me, uint32_t *ret_slots, uint32_t *ret_count, sluice_error *err);
/* Of an entry that this leader has taken: its bytes, checked. False: they are not what was offered. */
bool shm_publish_offered(const shm_publisher *me, uint32_t slot, const uint8_t **ret_bytes, size_t *ret_length);
/* Where the answer to an entry that this leader has taken is written, before it is decided: SHM_ANSWER_MAX bytes. */
void *shm_publish_answer_of(const shm_publisher *me, uint32_t slot);
/* Of a taken entry: decided, or (`again`) ready as before. Wakes its owner; without one it is free. */
sluice_status shm_publish_decide(const shm_publisher *me, uint32_t slot, bool again, sluice_error *err);
/* The same for `count` of them, one after the other, all before the first owner is woken: who wakes may take the
 * processor. */
sluice_status shm_publish_decide_all(const shm_publisher *me, const uint32_t *slots, const bool *again, uint32_t count,
                                     sluice_error *err);
/* Gives back whatever it has still taken, leads no more, and wakes the next in line. `doubtful`: what is given back may
 * have been published. */
sluice_status shm_publish_resign(const shm_publisher *me, bool doubtful, sluice_error *err);
/* The own entry, once decided (its answer stays until the next entering): free. */
sluice_status shm_publish_leave(const shm_publisher *me, sluice_error *err);
/* Out of the line. *ret_out: false when the entry is taken or decided, or was taken by somebody who died: what became
 * of it is then not known here. With `abandon` nobody waits for it any more, and it is freed by whoever decides it. */
sluice_status shm_publish_withdraw(const shm_publisher *me, bool abandon, bool *ret_out, sluice_error *err);
/* Has another worker the own entry in hand? For one that was fenced, which decides nothing any more: when nobody has,
 * nobody ever will. */
bool shm_publish_is_elsewhere(const shm_publisher *me);
/* The supervisor, for a reaped worker whose token was taken back. */
sluice_status shm_publish_bury(shm_region *region, uint32_t slot, sluice_error *err);

#endif
