/*
 * The pool: a supervisor (this process) that maps a region, forks workers, and runs one job with them (embedded pool).
 * The supervisor does no work of the job: it waits on pidfds, restarts dead workers with back-off, fences, keeps
 * obituaries, shows progress. A dead conductor's task is given to another worker. SIGINT/SIGTERM: cancels the job until
 * it is armed.
 */
#ifndef COORD_POOL_H
#define COORD_POOL_H

#include "worker/task.h"

typedef struct co_pool_options {
    unsigned workers;         /* all that work, the conductor among them; at least 1 */
    uint64_t share;           /* bytes of anonymous memory that each of them may have; 0: no bound */
    unsigned stopped_seconds; /* a worker that stands still (SIGSTOP) for longer is killed; 0: never */
    uint64_t *peak;           /* gets the most that all processes together were seen to have; NULL allowed */
    void *progress_context;
    void (*progress)(void *context, const wk_progress *progress,
                     int64_t elapsed_ms); /* about 5 times a second; NULL: none */
} co_pool_options;

/* As asked for; 0: SLUICE_WORKERS, else one per processor (*ret_asked false). USAGE when that is no number. */
sluice_status co_pool_workers(unsigned asked, unsigned *ret_workers, bool *ret_asked, sluice_error *err);
/* Runs the job to its end. `result` (job->result_size bytes) is filled on success. CANCELLED after SIGINT before
 * arming. */
sluice_status co_pool_run(const wk_job *job, const co_pool_options *options, void *result, sluice_error *err);

#endif
