/*
 * Latches: robust, error-checking, process-shared mutexes of the shared region, held for microseconds around one table.
 *
 * When a holder dies, the next one to take the latch is its heir: lk_latch_take runs the table's repair before it
 * returns, and a result of its own tells so. The repair may itself be killed at any point; the next heir runs it again.
 * So it must be a pure, restartable function of the region, without allocation. A repair that cannot make the table
 * whole answers false: the latch is then given back in working order and the caller gets LK_POISONED; the repair has
 * marked the region before.
 *
 * A latch lives where it was made for as long as any process maps the region: never moved, copied or made again. No
 * latch is held over exec, fork or anything that waits. A stopped holder stays the owner: whoever waits gives up at its
 * deadline, and the supervisor, which can tell (lk_latch_owner, holds), kills it.
 */
#ifndef LOCKS_LATCH_H
#define LOCKS_LATCH_H

#include "locks/order.h"
#include "platform/clock.h"
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

typedef enum lk_latch_result {
    LK_HELD,
    LK_HELD_AFTER_DEATH, /* the last holder died; the table was repaired */
    LK_TIMEOUT,
    LK_POISONED /* the table cannot be repaired, or the latch cannot be recovered: the region is at its end */
} lk_latch_result;

typedef struct lk_latch {
    alignas(64) pthread_mutex_t mutex;
    _Atomic uint64_t holds; /* how often it was taken; written by the holder */
} lk_latch;

typedef bool lk_latch_repair_fn(void *table);

void lk_latch_init(lk_latch *latch); /* once, before any other process maps the region */
lk_latch_result lk_latch_take(lk_latch *latch, lk_rank rank, pf_deadline deadline, lk_latch_repair_fn *repair,
                              void *table);
void lk_latch_release(lk_latch *latch, lk_rank rank);
/* The thread that owns it now (0: nobody), as the kernel would see it at this instruction; for the supervisor. */
int32_t lk_latch_owner(const lk_latch *latch);

#endif
