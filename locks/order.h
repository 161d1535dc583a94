/*
 * The order of everything lockable, top first (DESIGN 5). In builds with assertions each process keeps what it holds, and
 * taking something above or beside what is already held aborts. lk_order_failed can be replaced so that a test sees it.
 */
#ifndef LOCKS_ORDER_H
#define LOCKS_ORDER_H

#include <stdint.h>

typedef enum lk_rank {
    LK_RANK_ADMISSION,
    LK_RANK_CLAIM,
    LK_RANK_ATTEMPT,
    LK_RANK_SCHEMA_GATE,
    LK_RANK_BRANCH_GATE,
    LK_RANK_TABLE_GATE, /* among each other by table id */
    LK_RANK_INTENT_SLOT,
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

void lk_order_take(lk_rank rank, uint64_t detail); /* detail: table id for table gates, else 0 */
void lk_order_drop(lk_rank rank, uint64_t detail);
extern void (*lk_order_failed)(lk_rank held, lk_rank wanted); /* aborts unless replaced */

#endif
