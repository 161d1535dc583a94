/*
 * The order of everything lockable, top first (DESIGN 5). In builds with assertions each process keeps what it holds,
 * and waiting for something above or beside what is already held is a defect: lk_order_failed, which aborts.
 *
 * Who holds is an actor: one process, or one volume of it (two handles of one process are two actors: they conflict
 * like two processes, and only a bounded wait tells). The actor NULL is the process itself, below and above all of its
 * volumes; the region's latches belong to it. Bytes of lock files are kept by lk_take itself; everything else says what
 * it takes. A try (which never waits) cannot close a circle: it is kept, not checked. Release builds keep nothing.
 */
#ifndef LOCKS_ORDER_H
#define LOCKS_ORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum lk_rank {
    LK_RANK_FOLDER, /* among each other by table id */
    LK_RANK_ADMISSION,
    LK_RANK_CLAIM,
    LK_RANK_ATTEMPT,
    LK_RANK_SCHEMA_GATE,
    LK_RANK_BRANCH_GATE,
    LK_RANK_TABLE_GATE,  /* among each other by table id */
    LK_RANK_INTENT_SLOT, /* among each other by slot */
    LK_RANK_REFS,
    LK_RANK_PUBLISH,
    LK_RANK_RECLAIM,
    LK_RANK_CONTROL_PUBLISH,
    LK_RANK_LATCH_TASKS,
    LK_RANK_LATCH_PUBLISH_QUEUE,
    LK_RANK_LATCH_GRAPHS,
    LK_RANK_LATCH_GATES,
    LK_RANK_LATCH_PINS,
    LK_RANK_LATCH_WORKERS
} lk_rank;

/* Before waiting for something: may this actor wait for it, given what it holds? */
void lk_order_wait(const void *actor, lk_rank rank, uint64_t detail); /* detail: table id, slot; else 0 */
/* After it was taken, and after it was let go. Several holds of one thing are kept one by one. */
void lk_order_take(const void *actor, lk_rank rank, uint64_t detail);
void lk_order_drop(const void *actor, lk_rank rank, uint64_t detail);
extern void (*lk_order_failed)(lk_rank held, lk_rank wanted); /* aborts unless replaced (tests) */

#endif
