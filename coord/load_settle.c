/*
 * The unique rule of an upsert that skips bad rows, after its tasks: rows fall by what comes back (load_whole.c).
 *
 * Wave by wave: the rows of the base whose updates fell in the wave before have their old tuples again; each row of the
 * load that still has one of these falls in this wave. What collides within the load fell in the tasks already, so
 * every row falls by something that comes back or not at all, and the outcome is the same in any order. A row falls
 * once; so this ends, and costs a look-up for each tuple that comes back.
 *
 * What falls stands in one list more, behind those of the rule's tasks.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "worker/ingest/events.h"
#include "worker/ingest/returned.h"
#include "worker/ingest/whole.h"
#include <stdlib.h>

#define WINDOW UINT64_C(65536) /* positions whose rows are listed at a time */

typedef struct settling {
    load_job *job;
    wk_catalogue rows;
    wk_probe_run *runs; /* per probe; of unique tuples: */
    wk_returned **returned;
    wk_events events;
    st_row_set **fresh, **next; /* per item: what fell in the wave before, and in this one */
    bool any;                   /* in this one */
} settling;

static sluice_status on_fallen(void *context, const wk_event *event, sluice_error *err)
{
    settling *s = context;
    st_row_set **next = &s->next[event->item];

    s->any = true;
    PF_TRY(wk_events_add(&s->events, event, err));
    if (*next == NULL)
        PF_TRY(st_row_set_new(next, err));
    return st_row_set_add(*next, event->position, err);
}

/* ---- one wave ---- */

static sluice_status give_back(settling *s, uint32_t item, const wk_base *base, sluice_error *err)
{
    const load_job *job = s->job;

    for (uint32_t p = 0; base->place != WK_MATCH_NONE && p < job->plan.probe_count; p++) {
        const wk_probe *probe = &job->plan.probes[p];
        if (s->returned[p] && probe->type->table == job->catalogue.items[item].table &&
            base->changes >> load_unique_number(probe) & 1)
            PF_TRY(wk_returned_add(s->returned[p], base->place, err));
    }
    return SLUICE_OK;
}

static sluice_status give_back_window(settling *s, uint32_t item, pf_file *bases, uint64_t first, sluice_error *err)
{
    uint64_t *positions = NULL, count = 0;
    sluice_status status;

    PF_TRY(st_row_set_range(s->fresh[item], first, WINDOW, &positions, &count, err));
    status = SLUICE_OK;
    for (uint64_t i = 0; i < count && status == SLUICE_OK; i++) {
        wk_base base;
        status = wk_bases_read(bases, positions[i], 1, &base, err);
        if (status == SLUICE_OK)
            status = give_back(s, item, &base, err);
    }
    free(positions);
    return status;
}

static sluice_status give_back_item(settling *s, uint32_t item, sluice_error *err)
{
    uint64_t rows = s->job->catalogue.items[item].add.fragment.rows;
    pf_file *bases = NULL;
    sluice_status status = SLUICE_OK;

    PF_TRY(load_bases_open(s->job, item, &bases, err));
    for (uint64_t first = 0; bases && first < rows && status == SLUICE_OK; first += WINDOW)
        status = give_back_window(s, item, bases, first, err);
    (void)pf_close(bases, NULL); /* only read */
    return status;
}

static sluice_status bury_wave(settling *s, sluice_error *err)
{
    st_row_set **dead = s->job->catalogue.dead, **swapped = s->fresh;

    for (uint32_t i = 0; i < s->rows.count; i++) {
        st_row_set_free(s->fresh[i]);
        s->fresh[i] = NULL;
        if (s->next[i] && dead[i] == NULL)
            PF_TRY(st_row_set_new(&dead[i], err));
        if (s->next[i])
            PF_TRY(st_row_set_add_set(dead[i], s->next[i], err));
    }
    s->fresh = s->next;
    s->next = swapped;
    return SLUICE_OK;
}

static sluice_status run_wave(settling *s, sluice_error *err)
{
    s->any = false;
    for (uint32_t i = 0; i < s->rows.count; i++)
        if (s->fresh[i])
            PF_TRY(give_back_item(s, i, err));
    for (uint32_t p = 0; p < s->job->plan.probe_count; p++)
        if (s->returned[p])
            PF_TRY(wk_returned_flush(s->returned[p], err));
    return bury_wave(s, err);
}

/* ---- all of them ---- */

static sluice_status open_probes(settling *s, sluice_error *err)
{
    load_job *job = s->job;
    uint32_t count = job->plan.probe_count;

    s->runs = calloc((size_t)count + 1, sizeof *s->runs);
    s->returned = calloc((size_t)count + 1, sizeof(wk_returned *));
    if (s->runs == NULL || s->returned == NULL)
        return pf_fail_memory(err);
    for (uint32_t p = 0; p < count; p++) {
        wk_probe_run *run = &s->runs[p];
        if (job->plan.probes[p].rule != WK_RULE_UNIQUE)
            continue;
        *run = (wk_probe_run){.volume = job->spool.volume,
                              .spool = &job->spool,
                              .base = job->plan.base,
                              .probe = &job->plan.probes[p],
                              .number = p,
                              .range = {0, UINT64_MAX},
                              .each = on_fallen,
                              .context = s};
        PF_TRY(load_whole_run_of(job, run, &s->rows, err));
        PF_TRY(wk_returned_open(run, &s->returned[p], err));
    }
    return SLUICE_OK;
}

static sluice_status settle(settling *s, uint32_t tasks, sluice_error *err)
{
    load_job *job = s->job;
    const uint32_t phase = LOAD_PROBES + WK_RULE_UNIQUE, number = job->plan.number;
    bool whole = false;

    PF_TRY(load_row_sets_new(job->catalogue.count, &s->fresh, err));
    PF_TRY(load_row_sets_new(job->catalogue.count, &s->next, err));
    PF_TRY(open_probes(s, err));
    PF_TRY(load_bury(job, s->fresh, number, phase, tasks, NULL, &whole, err));
    if (whole)
        PF_TRY(load_bury(job, job->catalogue.dead, number, phase, tasks, NULL, &whole, err));
    if (!whole)
        return pf_fail(err, SLUICE_INTERNAL, "the result of a probe task is missing");
    do {
        PF_TRY(run_wave(s, err));
    } while (s->any);
    return SLUICE_OK;
}

sluice_status load_settle_run(load_job *job, sluice_error *err)
{
    const uint32_t phase = LOAD_PROBES + WK_RULE_UNIQUE, tasks = load_probe_tasks(job, phase);
    settling s = {.job = job};
    char name[WK_SPOOL_NAME];
    bool whole = false;

    PF_TRY(load_dead_get(job, WK_RULE_UNIQUE, &whole, err));
    if (!whole)
        return pf_fail(err, SLUICE_INTERNAL, "the result of a probe task is missing");
    load_events_name(job->plan.number, phase, tasks, name);
    PF_TRY(wk_events_begin(&job->spool, name, &s.events, err));
    sluice_status status = settle(&s, tasks, err);
    for (uint32_t p = 0; s.returned && p < job->plan.probe_count; p++)
        wk_returned_close(s.returned[p]);
    free(s.returned);
    free(s.runs);
    load_row_sets_free(s.fresh, job->catalogue.count);
    load_row_sets_free(s.next, job->catalogue.count);
    load_dead_drop(job); /* the lists say it again, and which probes refused */
    if (status != SLUICE_OK) {
        wk_events_abandon(&s.events);
        return status;
    }
    return wk_events_end(&s.events, err);
}
