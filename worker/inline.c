/*
 * The executor that is this process alone: a phase's tasks one after the other, in order (see worker/task.h).
 *
 * Also what runs on the simulated volume, where everything must be a function of the calls made. It keeps the promise
 * of the pool that a phase which ran to its end is not run again unless that is asked for, so that a conductor meets
 * the same answers in both.
 */
#include "platform/check.h"
#include "worker/task.h"
#include <stdlib.h>

typedef struct inline_run {
    const wk_job *job;
    void *context; /* the job's */
    uint32_t finished[WK_PHASES_MAX];
    uint32_t finished_count;
    wk_progress progress;
} inline_run;

static bool is_finished(const inline_run *run, uint32_t phase)
{
    for (uint32_t i = 0; i < run->finished_count; i++) {
        if (run->finished[i] == phase)
            return true;
    }
    return false;
}

static bool is_cancelled(void *context)
{
    const inline_run *run = context;
    return run->job->cancelled && run->job->cancelled(run->job->observer);
}

static sluice_status run_phase(void *context, uint32_t phase, uint32_t count, sluice_error *err)
{
    inline_run *run = context;
    bool anew = (phase & WK_PHASE_ANEW) != 0;
    phase &= ~WK_PHASE_ANEW;
    if (!anew && is_finished(run, phase))
        return SLUICE_OK;
    if (!anew && run->finished_count == WK_PHASES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a job has more than %u phases", WK_PHASES_MAX);
    for (uint32_t index = 0; index < count; index++) {
        if (is_cancelled(run))
            return pf_fail(err, SLUICE_CANCELLED, "cancelled before the write was armed");
        PF_TRY(run->job->task(run->context, phase, index, err));
    }
    if (!anew)
        run->finished[run->finished_count++] = phase;
    return SLUICE_OK;
}

static void advance(void *context, uint64_t rows, uint64_t bytes)
{
    inline_run *run = context;
    run->progress.rows += rows;
    run->progress.bytes += bytes;
    if (run->job->progress)
        run->job->progress(run->job->observer, &run->progress);
}

sluice_status wk_run_inline(const wk_job *job, void *result, sluice_error *err)
{
    inline_run run = {.job = job};
    wk_executor executor = {.context = &run,
                            .workers = 1,
                            .run = run_phase,
                            .advance = advance,
                            .epoch = pf_id_new(),
                            .cancelled = is_cancelled};
    PF_ASSERT(job->result_size <= WK_RESULT_MAX);
    PF_TRY(job->open(job->spec, &executor, &run.context, err));
    sluice_status status = job->conduct(run.context, &executor, result, err);
    job->close(run.context);
    return status;
}
