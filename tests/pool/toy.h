/*
 * A small job for the pool: phases of tasks that leave files with numbers, and a conductor that adds them up.
 *
 * Task (p, i) of phase 1 writes i + 1; of a later phase it adds i + 1 to the sum of all files of the phase before, so a
 * task that starts too early, is lost, or counts twice makes the result wrong. Everything is also counted in shared
 * memory, and what a test wants to happen inside a worker it hangs into the hooks.
 */
#ifndef TESTS_POOL_TOY_H
#define TESTS_POOL_TOY_H

#include "coord/pool.h"
#include <stdatomic.h>
#include <sys/types.h>

#define TOY_PHASES 4u
#define TOY_TASKS  64u
#define TOY_PIDS   1024u

typedef struct toy_shared {
    _Atomic uint32_t pid_count;
    _Atomic int32_t pids[TOY_PIDS]; /* of every worker that opened the job, in order */
    _Atomic uint32_t kills_left;    /* workers that still have to die at a random moment */
    _Atomic uint32_t conductors;    /* times that somebody conducted */
    _Atomic uint32_t ended[TOY_PHASES + 1][TOY_TASKS];
    _Atomic uint32_t mark[8]; /* for the tests */
} toy_shared;

typedef struct toy_spec toy_spec;
struct toy_spec {
    char *folder;
    toy_shared *shared;
    uint32_t phases, tasks;
    int64_t task_us;       /* how long a task takes */
    uint32_t seed;         /* of the random deaths */
    uint32_t kill_us;      /* a worker that is to die does so within this long of its start */
    wk_executor *executor; /* in a worker */
    sluice_status (*at_open)(toy_spec *toy, sluice_error *err);
    sluice_status (*at_task)(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err);
    sluice_status (*at_conduct)(toy_spec *toy, sluice_error *err); /* after the phases */
};

typedef struct toy_result {
    uint64_t sum;
    pf_id epoch;
    pid_t conductor;
} toy_result;

void toy_make(toy_spec *toy, uint32_t phases, uint32_t tasks);
void toy_free(toy_spec *toy);
uint64_t toy_expected(const toy_spec *toy);
wk_job toy_job(const toy_spec *toy);
sluice_status toy_run(const toy_spec *toy, unsigned workers, toy_result *ret_result, sluice_error *err);
/* Tasks that ended more than once, and that never did. */
uint32_t toy_repeats(const toy_spec *toy);
uint32_t toy_missing(const toy_spec *toy);

#endif
