/*
 * The main loop of a pool's worker (see worker/loop.h).
 *
 * A task's result is on disk before its end is recorded here, and its error is in this worker's cell before: a death in
 * between means that the task is run again.
 */
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/memory.h"
#include "platform/watch.h"
#include "worker/pool_worker.h"
#include <string.h>

_Static_assert(WK_RESULT_MAX == SHM_RESULT_MAX, "a job's result fits its cell");
_Static_assert(WK_PHASES_MAX == SHM_PHASES_MAX, "the region remembers as many phases as a job may have");

bool wk_has_place(wk_worker *worker)
{
    if (!worker->lost && pf_supervisor_is_gone(worker->place->death_pipe)) {
        worker->lost = true;
        worker->status = WK_LEFT_ORPHANED;
    }
    return !worker->lost;
}

bool wk_try_again(wk_worker *worker, sluice_status status)
{
    if (wk_has_place(worker) && status != SLUICE_TIMEOUT) {
        worker->lost = true;
        worker->status = WK_LEFT_FENCED;
    }
    return !worker->lost;
}

void wk_wait_for_tasks(const wk_worker *worker, uint32_t seen)
{
    shm_wait(&worker->region->tasks->sequence, seen, pf_deadline_in_ms(WK_SLICE_MS));
}

static sluice_status run_task(wk_worker *worker, const shm_work *work, sluice_error *err)
{
    PF_TRY(PF_FAILPOINT(WORKER_AFTER_TAKE, err));
    PF_TRY(worker->place->job->task(worker->job_context, work->phase, work->index, err));
    return PF_FAILPOINT(WORKER_BEFORE_DONE, err);
}

void wk_do_task(wk_worker *worker, const shm_work *work)
{
    sluice_error err;
    pf_error_clear(&err);
    shm_stage before = (shm_stage)worker->region->slots[worker->slot].stage;
    shm_slot_enter(worker->region, worker->slot, SHM_TASK, work->phase, work->index);
    sluice_status status = run_task(worker, work, &err);
    if (status != SLUICE_OK)
        shm_error_put(worker->region, worker->slot, &err);
    sluice_status recorded;
    do {
        recorded = shm_tasks_finish(worker->region, worker->owner, work, status != SLUICE_OK, NULL);
    } while (recorded != SLUICE_OK && wk_try_again(worker, recorded));
    if (recorded == SLUICE_OK)
        shm_progress_keep(worker->region, worker->slot);
    shm_slot_enter(worker->region, worker->slot, before, 0, 0);
}

static sluice_status conduct(wk_worker *worker, void *result, sluice_error *err)
{
    const wk_job *job = worker->place->job;
    PF_TRY(PF_FAILPOINT(WORKER_AFTER_TAKE, err));
    PF_TRY(job->conduct(worker->job_context, &worker->executor, result, err));
    return PF_FAILPOINT(WORKER_BEFORE_DONE, err);
}

static void do_conduct(wk_worker *worker)
{
    static _Alignas(max_align_t) uint8_t result[WK_RESULT_MAX];
    sluice_error err;
    pf_error_clear(&err);
    memset(result, 0, sizeof result);
    shm_slot_enter(worker->region, worker->slot, SHM_CONDUCTING, 0, 0);
    sluice_status status = conduct(worker, result, &err);
    if (worker->lost)
        return;
    if (status == SLUICE_OK)
        memcpy(worker->region->result->bytes, result, worker->place->job->result_size);
    else
        shm_error_put(worker->region, worker->slot, &err);
    sluice_status recorded;
    do {
        recorded = shm_job_end(worker->region, worker->owner, status, NULL);
    } while (recorded != SLUICE_OK && wk_try_again(worker, recorded));
    shm_slot_enter(worker->region, worker->slot, SHM_IDLE, 0, 0);
    pf_bell_ring(worker->place->bell);
}

/* One turn; false when there will be nothing more to do. */
static bool turn(wk_worker *worker)
{
    shm_work work;
    uint32_t seen = shm_sequence(&worker->region->tasks->sequence);
    shm_slot_beat(worker->region, worker->slot);
    if (shm_region_state(worker->region) == SHM_ENDING)
        return false;
    sluice_status status = shm_tasks_take(worker->region, worker->owner, true, &work, NULL);
    if (status != SLUICE_OK)
        return wk_try_again(worker, status);
    switch (work.kind) {
    case SHM_WORK_TASK:
        wk_do_task(worker, &work);
        return true;
    case SHM_WORK_CONDUCT:
        do_conduct(worker);
        return true;
    case SHM_WORK_OVER:
        return false;
    case SHM_WORK_NONE:
        break;
    }
    wk_wait_for_tasks(worker, seen);
    return true;
}

static sluice_status open_job(wk_worker *worker, sluice_error *err)
{
    const wk_job *job = worker->place->job;
    PF_TRY(PF_FAILPOINT(WORKER_AFTER_START, err));
    if (worker->place->memory > 0)
        pf_memory_bound(worker->place->memory);
    return job->open(job->spec, &worker->executor, &worker->job_context, err);
}

int wk_work(const wk_place *place)
{
    static wk_worker worker; /* one per process */
    sluice_error err;
    pf_error_clear(&err);
    worker = (wk_worker){
        .place = place, .region = place->region, .slot = place->token.slot, .owner = shm_token_owner(&place->token)};
    worker.region->latch_wait_ms = SHM_WORKER_LATCH_MS;
    if (!shm_region_check(worker.region) || !shm_token_holds(worker.region, &place->token))
        return WK_LEFT_FENCED;
    wk_make_executor(&worker);
    if (open_job(&worker, &err) != SLUICE_OK) {
        shm_error_put(worker.region, worker.slot, &err);
        return WK_LEFT_UNOPENED;
    }
    shm_slot_enter(worker.region, worker.slot, SHM_IDLE, 0, 0);
    while (wk_has_place(&worker) && turn(&worker))
        continue;
    if (worker.lost)
        return worker.status; /* as if it had been killed: nothing shared is touched any more */
    shm_slot_enter(worker.region, worker.slot, SHM_LEAVING, 0, 0);
    place->job->close(worker.job_context);
    return WK_LEFT_DONE;
}
