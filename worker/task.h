/*
 * Jobs, tasks and who runs them.
 *
 * A job is conducted by one restartable function that runs phases of tasks; a task is a small, idempotent piece of work
 * known by (phase, index) that leaves its result in the attempt's folder ("task-<n>.json", written last). Who runs
 * tasks is an executor: inline (this process, in order; also on the sim volume) or the pool (the region's task queue;
 * the conductor runs tasks itself while it waits). A task that was interrupted by a death is run again by another
 * worker, a bounded number of times (WK_TASK_TRIES crashes; many more kills from outside), then the job fails INTERNAL
 * naming task and phase.
 *
 * A phase number names its work for the whole job: tasks that finished are never run again, also when the conductor
 * died and its successor runs the phase once more. Work that depends on what the conductor has just decided (a plan,
 * made again after each conflict and by each conductor) is run with WK_PHASE_ANEW, which forgets what an earlier run of
 * that phase finished.
 */
#ifndef WORKER_TASK_H
#define WORKER_TASK_H

#include "locks/gates.h"
#include "platform/fail.h"
#include "platform/ids.h"
#include "platform/volume.h"
#include <stdint.h>

#define WK_TASK_TRIES 5u
#define WK_RESULT_MAX 4096u       /* bytes of a job's result */
#define WK_PHASES_MAX 256u        /* different phases of one job */
#define WK_PHASE_ANEW 0x80000000u /* or'd to the phase given to run; tasks see the plain number */

typedef struct wk_progress { /* counters that only grow; in a pool they live in the region, one line per worker */
    uint64_t rows, bytes;
    uint32_t phase, tasks_done, tasks_total;
} wk_progress;

typedef struct wk_executor {
    void *context;
    unsigned workers;
    /* Runs tasks 0 .. count-1 of a phase to their end; the first error of the lowest-numbered failing task is returned
     * after the running ones ended (the rest is not started). */
    sluice_status (*run)(void *context, uint32_t phase, uint32_t count, sluice_error *err);
    void (*advance)(void *context, uint64_t rows, uint64_t bytes); /* progress of this process */
    const lk_gate_hooks *gates;                                    /* NULL without a region */
    const struct shm_publisher *publisher; /* this worker at the region's publish queue; NULL: publishes alone */
    pf_id epoch;                           /* the region's random id; a fresh one without a region */
    const pf_id *given_up;                 /* of the damaged regions before this one: to be voided */
    uint32_t given_up_count;
    bool (*allowed)(void *context); /* the fence check of this process's owner token; NULL: always */
    /* Has the user taken the job back (SIGINT)? Asked between steps until the write is armed or enters its publish; a
     * yes ends it with CANCELLED and nothing changed. Later it is not asked any more: the write ends normally. NULL:
     * never. */
    bool (*cancelled)(void *context);
} wk_executor;

/* What a kind of job is. `spec` is made before the workers are forked and read-only afterwards (also by workers forked
 * later in a dead one's place). Workers inherit the standard three descriptors and those listed here, and close all
 * others. */
typedef struct wk_job {
    const void *spec;
    const int *descriptors; /* open files in spec that workers need; NULL: none */
    uint32_t descriptor_count;
    size_t result_size; /* of what conduct fills; at most WK_RESULT_MAX */
    /* Inline only: who looks on, in this very thread. NULL: nobody. */
    void *observer;
    void (*progress)(void *observer, const wk_progress *progress); /* rows and bytes so far */
    bool (*cancelled)(void *observer);                             /* as in wk_executor; asked before each task, too */
    /* In each process before its first task: opens a graph handle of its own and so on. */
    sluice_status (*open)(const void *spec, wk_executor *executor, void **ret_context, sluice_error *err);
    void (*close)(void *context);
    sluice_status (*task)(void *context, uint32_t phase, uint32_t index, sluice_error *err);
    sluice_status (*conduct)(void *context, wk_executor *executor, void *result, sluice_error *err);
} wk_job;

/* Runs a whole job in this process, one task after the other. */
sluice_status wk_run_inline(const wk_job *job, void *result, sluice_error *err);

#endif
