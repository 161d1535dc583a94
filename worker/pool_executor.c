/*
 * The executor of a pool, as a worker that conducts sees it: runs of phases over the region's task table, helping with
 * tasks while it waits; progress; the fence check; cancellation (see worker/task.h).
 *
 * A conductor that loses its region or its token is told FENCED by every call and has to end; its successor goes on.
 */
#include "worker/pool_worker.h"

static sluice_status fail_cancelled(sluice_error *err)
{
    return pf_fail(err, SLUICE_CANCELLED, "cancelled before the write was armed");
}

static sluice_status fail_lost(sluice_error *err)
{
    return pf_fail(err, SLUICE_FENCED, "this worker has lost its place in the pool");
}

/* Opens the run, once the last tasks of an older one have ended. */
static sluice_status begin_run(wk_worker *worker, uint32_t phase, uint32_t count, bool anew, shm_run_answer *ret_answer,
                               sluice_error *err)
{
    for (;;) {
        uint32_t seen = shm_sequence(&worker->region->tasks->sequence);
        if (shm_region_is_cancelled(worker->region))
            return fail_cancelled(err);
        sluice_status status = shm_run_begin(worker->region, worker->owner, phase, count, anew, ret_answer, err);
        if (status == SLUICE_RESOURCE_LIMIT)
            return status;
        if (status != SLUICE_OK && !wk_try_again(worker, status))
            return fail_lost(err);
        if (status == SLUICE_OK && *ret_answer != SHM_RUN_HAS_TO_WAIT)
            return SLUICE_OK;
        if (status == SLUICE_OK)
            wk_wait_for_tasks(worker, seen);
        if (!wk_has_place(worker))
            return fail_lost(err);
    }
}

/* A task of the run, when one waits; else waits for the table to move. */
static sluice_status help(wk_worker *worker, uint32_t seen)
{
    shm_work work;
    sluice_status status = shm_tasks_take(worker->region, worker->owner, false, &work, NULL);
    if (status != SLUICE_OK)
        return status;
    if (work.kind == SHM_WORK_TASK)
        wk_do_task(worker, &work);
    else
        wk_wait_for_tasks(worker, seen);
    return SLUICE_OK;
}

static sluice_status end_failed_run(const wk_worker *worker, uint32_t cell, sluice_error *err)
{
    sluice_error failed;
    shm_error_get(worker->region, cell, worker->region->errors[cell].error.code, &failed);
    if (err)
        *err = failed;
    return failed.code;
}

static sluice_status run_phase(void *context, uint32_t phase, uint32_t count, sluice_error *err)
{
    wk_worker *worker = context;
    shm_run_answer answer;
    uint32_t cell = 0;
    bool stopped = false;
    PF_TRY(begin_run(worker, phase & ~WK_PHASE_ANEW, count, (phase & WK_PHASE_ANEW) != 0, &answer, err));
    while (answer != SHM_RUN_IS_DONE) {
        uint32_t seen = shm_sequence(&worker->region->tasks->sequence);
        sluice_status status = SLUICE_OK;
        if (!stopped && shm_region_is_cancelled(worker->region)) {
            status = shm_run_stop(worker->region, worker->owner, NULL);
            stopped = status == SLUICE_OK;
        }
        if (status == SLUICE_OK)
            status = shm_run_look(worker->region, worker->owner, &answer, &cell, NULL);
        if (status == SLUICE_OK && answer == SHM_RUN_HAS_FAILED)
            return end_failed_run(worker, cell, err);
        if (status == SLUICE_OK && answer == SHM_RUN_WAS_STOPPED)
            return fail_cancelled(err);
        if (status == SLUICE_OK && answer == SHM_RUN_GOES_ON)
            status = help(worker, seen);
        if (!wk_has_place(worker) || (status != SLUICE_OK && !wk_try_again(worker, status)))
            return fail_lost(err);
    }
    return SLUICE_OK;
}

static void advance(void *context, uint64_t rows, uint64_t bytes)
{
    wk_worker *worker = context;
    shm_progress_add(worker->region, worker->slot, rows, bytes);
}

static bool is_allowed(void *context)
{
    wk_worker *worker = context;
    return !worker->lost && shm_token_allowed(worker->region, &worker->place->token);
}

static bool is_cancelled(void *context)
{
    wk_worker *worker = context;
    return shm_region_is_cancelled(worker->region);
}

void wk_make_executor(wk_worker *worker)
{
    worker->gate_user = (shm_gate_user){.region = worker->region, .token = worker->place->token};
    worker->gates = shm_gate_hooks(&worker->gate_user);
    worker->publisher = (shm_publisher){.region = worker->region, .token = worker->place->token};
    worker->executor = (wk_executor){.context = worker,
                                     .workers = worker->place->workers,
                                     .run = run_phase,
                                     .advance = advance,
                                     .gates = &worker->gates,
                                     .publisher = &worker->publisher,
                                     .epoch = worker->region->header->epoch,
                                     .given_up = worker->place->given_up,
                                     .given_up_count = worker->place->given_up_count,
                                     .allowed = is_allowed,
                                     .cancelled = is_cancelled};
}
