/*
 * What this thread holds, in a small fixed list, and the check before each wait (see locks/order.h).
 *
 * The list is private to the thread, as every handle is; a forked child starts with its parent's, which is right for
 * what is inherited on purpose. No allocation, no lock: it is used inside latches and after a death.
 */
#include "locks/order.h"
#include "platform/check.h"
#include <stddef.h>

#ifndef NDEBUG

#define HELD_MAX                                                                                                       \
    1024u /* deeper than any real set: one gate per table of the largest write, and what lies around it                \
           */

typedef struct held {
    const void *actor;
    lk_rank rank;
    uint64_t detail;
} held;

static _Thread_local held list[HELD_MAX];
static _Thread_local unsigned count;

static void abort_on_disorder(lk_rank have, lk_rank wanted)
{
    (void)have;
    (void)wanted;
    pf_assertion_failed("locks are taken in the one order", __FILE__, __LINE__);
}

void (*lk_order_failed)(lk_rank held, lk_rank wanted) = abort_on_disorder;

void lk_order_wait(const void *actor, lk_rank rank, uint64_t detail)
{
    for (unsigned i = 0; i < count; i++) {
        bool related = !actor || !list[i].actor || actor == list[i].actor;
        bool below = list[i].rank < rank || (list[i].rank == rank && list[i].detail < detail);
        if (related && !below) {
            lk_order_failed(list[i].rank, rank);
            return;
        }
    }
}

void lk_order_take(const void *actor, lk_rank rank, uint64_t detail)
{
    PF_ASSERT(count < HELD_MAX);
    list[count++] = (held){actor, rank, detail};
}

void lk_order_drop(const void *actor, lk_rank rank, uint64_t detail)
{
    unsigned i = count;
    while (i > 0 && !(list[i - 1].actor == actor && list[i - 1].rank == rank && list[i - 1].detail == detail))
        i--;
    PF_ASSERT(i > 0);
    list[i - 1] = list[--count];
}

#else

void (*lk_order_failed)(lk_rank held, lk_rank wanted) = NULL;

void lk_order_wait(const void *actor, lk_rank rank, uint64_t detail)
{
    (void)actor;
    (void)rank;
    (void)detail;
}

void lk_order_take(const void *actor, lk_rank rank, uint64_t detail)
{
    (void)actor;
    (void)rank;
    (void)detail;
}

void lk_order_drop(const void *actor, lk_rank rank, uint64_t detail)
{
    (void)actor;
    (void)rank;
    (void)detail;
}

#endif
