/*
 * Coroutines on stacks of their own, and the scheduler that lets one of them run at a time: a function of its seed and
 * of what the coroutines do.
 *
 * A step is a place where others may run: a call of a volume, a look at the clock, a wait. Which one runs next is
 * decided by chance, or by a list of switches, as one that was recorded (so that a history can be run again with fewer
 * of them). Time stands still but for 1 us a look, until all wait: then it jumps to the first deadline.
 */
#ifndef TESTS_SIM_FIBER_H
#define TESTS_SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIBERS_MAX 8u

typedef struct fiber_switch { /* at this step, to this one */
    uint32_t step, to;
} fiber_switch;

typedef struct fiber_turns {   /* who runs when */
    bool listed;               /* only at the switches below, and from one that waits to the first that can run */
    uint32_t one_in;           /* else by chance: once in so many steps */
    const fiber_switch *items; /* ascending by step */
    uint32_t count;
} fiber_turns;

typedef struct fibers fibers;
fibers *fibers_new(uint64_t seed, const fiber_turns *turns);
void fibers_free(fibers *all); /* all have ended */
uint32_t fibers_add(fibers *all, void (*run)(void *context), void *context);
/* Runs them to their ends; false: they did not end within `steps`, and were let run on one after the other. */
bool fibers_run(fibers *all, uint64_t steps);

/* Called by the one that runs. */
uint32_t fibers_current(const fibers *all);
uint64_t fibers_now(const fibers *all);
uint64_t fibers_step(fibers *all); /* one step; others may run meanwhile; returns its number */
void fibers_sleep(fibers *all, int64_t until_ns);
/* Until fibers_release is called, or this time; false: it can never be. */
bool fibers_wait(fibers *all, int64_t until_ns);
void fibers_release(fibers *all);
/* Stands still for so many steps of others, or until none of them can run. */
void fibers_stop(fibers *all, uint64_t steps);
/* Stands still until fibers_go_on is called for it, or until none of the others can run. */
void fibers_stop_for_good(fibers *all);
void fibers_go_on(fibers *all, uint32_t index);
bool fibers_are_late(const fibers *all); /* beyond the steps given: everybody should end */
/* What was switched so far. */
const fiber_switch *fibers_switches(const fibers *all, uint32_t *ret_count);

#endif
