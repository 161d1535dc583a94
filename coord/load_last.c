/*
 * Rows of an upsert that have one key (K-05): the last one in order of the input counts, alone. The earlier ones passed
 * the rules of rows when they were staged; from here on they are dead rows of the catalogue, as if they were not there.
 *
 * Which rows these are depends on what was staged and on nothing else. So the lists that the tasks leave carry the
 * number of the payload: every plan and every conductor goes by the same ones.
 */
#include "coord/load_job.h"
#include "platform/failpoint.h"
#include "worker/ingest/events.h"
#include <stdlib.h>

/* The keys of everything that was staged, whatever the base has. */
static sluice_status make_probes(const load_job *job, wk_probe **ret_probes, uint32_t *ret_count, uint32_t *ret_tasks,
                                 sluice_error *err)
{
    uint32_t count = 0;

    *ret_count = *ret_tasks = 0;
    PF_TRY(wk_probes_make(job->payload.schema, &job->catalogue, ret_probes, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        wk_probe *probe = &(*ret_probes)[i];
        if (probe->rule != WK_RULE_KEY && probe->rule != WK_RULE_IDENTITY)
            continue;
        probe->alone = probe->last_counts = true;
        *ret_tasks += wk_probe_ranges(probe);
        (*ret_probes)[(*ret_count)++] = *probe;
    }
    return SLUICE_OK;
}

sluice_status load_last_task(load_job *job, uint32_t task, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    wk_probe *probes = NULL;
    uint32_t count = 0, tasks = 0, at = task;
    bool done = false;
    sluice_status status = SLUICE_OK;

    PF_TRY(load_plan_get(job, err));
    load_events_name(job->payload.number, LOAD_LAST, task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    wk_catalogue staged = job->catalogue;
    staged.dead = NULL;
    wk_probe_run run = {
        .volume = job->spool.volume, .spool = &job->spool, .base = job->plan.base, .catalogue = &staged};
    PF_GOTO(status, done, make_probes(job, &probes, &count, &tasks, err));
    for (uint32_t i = 0; i < count; at -= wk_probe_ranges(&probes[i++]))
        if (at < wk_probe_ranges(&probes[i])) {
            run.probe = &probes[i];
            run.number = i;
            run.range = wk_probe_range(wk_probe_ranges(run.probe), at);
            status = load_list_events(job, run, name, err);
            break;
        }
done:
    free(probes);
    return status;
}

static sluice_status count_tasks(const load_job *job, uint32_t *ret_tasks, sluice_error *err)
{
    wk_probe *probes = NULL;
    uint32_t count = 0;
    sluice_status status = make_probes(job, &probes, &count, ret_tasks, err);

    free(probes);
    return status;
}

sluice_status load_last_run(load_job *job, sluice_error *err)
{
    uint32_t tasks = 0;

    PF_TRY(count_tasks(job, &tasks, err));
    return tasks > 0 ? job->executor->run(job->executor->context, LOAD_LAST | WK_PHASE_ANEW, tasks, err) : SLUICE_OK;
}

sluice_status load_last_get(load_job *job, bool *ret_whole, sluice_error *err)
{
    uint32_t tasks = 0;

    *ret_whole = true;
    if (job->plan.dead_below > 0)
        return SLUICE_OK;
    load_dead_drop(job);
    PF_TRY(count_tasks(job, &tasks, err));
    PF_TRY(load_row_sets_new(job->catalogue.count, &job->catalogue.dead, err));
    sluice_status status =
        load_bury(job, job->catalogue.dead, job->payload.number, LOAD_LAST, tasks, NULL, ret_whole, err);
    if (status == SLUICE_OK && *ret_whole)
        job->plan.dead_below = WK_RULE_KEY;
    else
        load_dead_drop(job); /* never a part of them */
    return status;
}
