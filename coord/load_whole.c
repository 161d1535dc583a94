/*
 * An upsert that skips bad rows: what the rules look at. Under each plan every chunk leaves its rows as they would be
 * after the load (worker/ingest/whole.h), each at the position at which it was staged, so that a row that is refused
 * has the same place everywhere. Only when no rule refuses any more are the rows that are left completed once more, for
 * the graph (load_upsert.c).
 *
 *   | rule       | looks at                                                                                  |
 *   | key        | all rows: the last one of a key that can stand counts, what comes before it is passed over |
 *   | unique     | rows that have a tuple newly; the base without the tuples that rows which count give up    |
 *   | ends,      | edges that the base does not have                                                          |
 *   | counts     |                                                                                            |
 *
 * A refused update leaves its row of the base as it is. So a unique tuple that it was to give up comes back, and the
 * row that has taken it is refused, too, and so on (load_settle.c).
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "worker/ingest/whole.h"
#include <stdio.h>
#include <stdlib.h>

#define STEM_ROOM  40u
#define READ_BASES 2048u

bool load_judges_whole(const load_job *job)
{
    return load_completes(job) && job->spec->options->skip_bad_rows;
}

const wk_catalogue *load_judged(const load_job *job)
{
    PF_ASSERT(!load_judges_whole(job) || job->plan.has_whole);
    return load_judges_whole(job) ? &job->plan.whole : load_plan_rows(job);
}

static void result_name(const load_job *job, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u-%u-whole.json", LOAD_WHOLE, job->plan.number, task);
}

static void stem_of(const load_job *job, uint32_t item, char ret_stem[STEM_ROOM])
{
    (void)snprintf(ret_stem, STEM_ROOM, "whole-%u-%u", job->plan.number, item);
}

/* ---- the tasks ---- */

static sluice_status make_chunk(load_job *job, uint32_t task, wk_staged *ret_whole, sluice_error *err)
{
    const wk_staged *staged = &job->catalogue.items[task];
    char absent[WK_SPOOL_NAME], weak[WK_SPOOL_NAME], stem[STEM_ROOM], attempt[PF_ID_TEXT], prefix[48];

    load_absent_name(job, task, absent);
    load_events_name(job->plan.number, LOAD_WHOLE, task, weak);
    stem_of(job, task, stem);
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(prefix, sizeof prefix, "%s-w%u-", attempt, job->plan.number);
    const wk_whole request = {.spool = &job->spool,
                              .schema = job->payload.schema,
                              .type = job->files[staged->argument].columns.type,
                              .base = job->plan.base,
                              .staged = staged,
                              .absent = absent,
                              .stem = stem,
                              .weak = weak,
                              .prefix = prefix,
                              .number = (uint64_t)task * WK_SINK_NAMES,
                              .item = task,
                              .slice = load_slice_rows()};
    return wk_whole_make(&request, ret_whole, err);
}

sluice_status load_whole_task(load_job *job, uint32_t task, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    wk_staged whole = {0};
    pf_buffer buffer = {0};
    bool done = false;
    sluice_status status;

    PF_TRY(load_plan_get(job, err));
    if (task >= job->catalogue.count)
        return SLUICE_OK;
    result_name(job, task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    PF_GOTO(status, done, make_chunk(job, task, &whole, err));
    PF_GOTO(status, done, wk_staged_encode(&whole, &buffer, err));
    PF_GOTO(status, done, wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err));
    status = PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
done:
    wk_staged_free(&whole);
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_whole_run(load_job *job, sluice_error *err)
{
    bool ready = false;

    job->attempt.litter = true;
    PF_TRY(job->executor->run(job->executor->context, LOAD_WHOLE | WK_PHASE_ANEW, job->catalogue.count, err));
    PF_TRY(load_whole_get(job, &ready, err));
    if (!ready)
        return pf_fail(err, SLUICE_INTERNAL, "the result of completing a chunk is missing");
    return load_sync_folders(job, &job->plan.whole, err); /* what is read may name its runs */
}

/* ---- what they left ---- */

static void free_rows(load_rows_of *of, uint32_t items)
{
    load_row_sets_free(of->except, items);
    st_row_set_free(of->hidden);
}

void load_whole_drop(load_job *job)
{
    wk_catalogue *whole = &job->plan.whole;

    for (uint32_t i = 0; i < job->plan.rows_of_count; i++)
        free_rows(&job->plan.rows_of[i], whole->count);
    free(job->plan.rows_of);
    load_row_sets_free(job->plan.weak, whole->count);
    for (uint32_t i = 0; i < whole->count; i++)
        wk_staged_free(&whole->items[i]);
    free(whole->items);
    *whole = (wk_catalogue){0};
    job->plan.rows_of = NULL;
    job->plan.rows_of_count = 0;
    job->plan.weak = NULL;
    job->plan.has_whole = false;
}

static sluice_status get_items(load_job *job, bool *ret_found, sluice_error *err)
{
    wk_catalogue *whole = &job->plan.whole;
    pf_buffer buffer = {0};
    sluice_status status = SLUICE_OK;

    *ret_found = true;
    for (uint32_t i = 0; i < job->catalogue.count && *ret_found; i++) {
        char name[WK_SPOOL_NAME];
        result_name(job, i, name);
        PF_GOTO(status, done, wk_spool_get(&job->spool, name, &buffer, ret_found, err));
        if (*ret_found)
            PF_GOTO(status, done, wk_staged_decode(buffer.data, buffer.length, &whole->items[whole->count++], err));
    }
done:
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_whole_get(load_job *job, bool *ret_ready, sluice_error *err)
{
    uint32_t count = job->catalogue.count;
    sluice_status status;

    *ret_ready = true;
    if (job->plan.has_whole)
        return SLUICE_OK;
    job->plan.whole.items = calloc((size_t)count + 1, sizeof *job->plan.whole.items);
    if (job->plan.whole.items == NULL)
        return pf_fail_memory(err);
    PF_GOTO(status, done, get_items(job, ret_ready, err));
    if (!*ret_ready)
        goto done;
    PF_GOTO(status, done, load_row_sets_new(count, &job->plan.weak, err));
    PF_GOTO(status, done, load_bury(job, job->plan.weak, job->plan.number, LOAD_WHOLE, count, NULL, ret_ready, err));
    job->plan.has_whole = *ret_ready;
done:
    if (status != SLUICE_OK || !*ret_ready)
        load_whole_drop(job);
    return status;
}

sluice_status load_bases_open(const load_job *job, uint32_t item, pf_file **ret_file, sluice_error *err)
{
    char stem[STEM_ROOM];

    stem_of(job, item, stem);
    return wk_bases_open(&job->spool, stem, ret_file, err);
}

/* ---- which rows a probe is about ---- */

static bool is_dead(const load_job *job, uint32_t item, uint64_t position)
{
    const st_row_set *dead = job->catalogue.dead ? job->catalogue.dead[item] : NULL;
    return dead && st_row_set_contains(dead, position);
}

typedef struct gathering {
    const load_job *job;
    const wk_probe *probe;
    load_rows_of *of;
    uint32_t unique; /* by its place in the type */
    uint32_t item;
    uint64_t except[READ_BASES], hidden[READ_BASES];
} gathering;

static sluice_status gather_some(gathering *g, uint64_t position, const wk_base *bases, uint64_t count,
                                 sluice_error *err)
{
    uint64_t except = 0, hidden = 0;
    st_row_set **set = &g->of->except[g->item];

    for (uint64_t i = 0; i < count; i++) {
        if (bases[i].place == WK_MATCH_NONE)
            continue;
        if (g->probe->rule != WK_RULE_UNIQUE || !(bases[i].changes >> g->unique & 1))
            g->except[except++] = position + i;
        else if (!is_dead(g->job, g->item, position + i))
            g->hidden[hidden++] = bases[i].place;
    }
    if (except > 0 && *set == NULL)
        PF_TRY(st_row_set_new(set, err));
    if (except > 0)
        PF_TRY(st_row_set_add_many(*set, g->except, except, err));
    return hidden > 0 ? st_row_set_add_many(g->of->hidden, g->hidden, hidden, err) : SLUICE_OK;
}

static sluice_status gather_item(gathering *g, wk_base *bases, sluice_error *err)
{
    uint64_t rows = g->job->catalogue.items[g->item].add.fragment.rows;
    pf_file *file = NULL;
    sluice_status status = SLUICE_OK;

    PF_TRY(load_bases_open(g->job, g->item, &file, err));
    for (uint64_t at = 0; file && at < rows; at += READ_BASES) {
        uint64_t count = rows - at < READ_BASES ? rows - at : READ_BASES;
        PF_GOTO(status, done, wk_bases_read(file, at, count, bases, err));
        PF_GOTO(status, done, gather_some(g, at, bases, count, err));
    }
done:
    (void)pf_close(file, NULL); /* only read */
    return status;
}

static sluice_status gather_all(const load_job *job, const wk_probe *probe, load_rows_of *of, sluice_error *err)
{
    gathering *g = calloc(1, sizeof *g);
    wk_base *bases = malloc(READ_BASES * sizeof *bases);
    sluice_status status = SLUICE_OK;

    if (g == NULL || bases == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    g->job = job;
    g->probe = probe;
    g->of = of;
    g->unique = load_unique_number(probe);
    for (g->item = 0; g->item < job->catalogue.count; g->item++)
        if (job->catalogue.items[g->item].table == probe->type->table)
            PF_GOTO(status, done, gather_item(g, bases, err));
done:
    free(g);
    free(bases);
    return status;
}

uint32_t load_unique_number(const wk_probe *probe)
{
    uint32_t number = 0;

    while (number + 1 < probe->type->unique_count && probe->type->uniques[number].id != probe->plan.unique)
        number++;
    return number;
}

static sluice_status get_rows_of(load_job *job, const wk_probe *probe, const load_rows_of **ret_of, sluice_error *err)
{
    bool unique = probe->rule == WK_RULE_UNIQUE;
    uint32_t count = job->plan.rows_of_count, number = unique ? probe->plan.unique : UINT32_MAX;

    for (uint32_t i = 0; i < count; i++)
        if (job->plan.rows_of[i].table == probe->type->table && job->plan.rows_of[i].unique == number) {
            *ret_of = &job->plan.rows_of[i];
            return SLUICE_OK;
        }
    load_rows_of *grown = realloc(job->plan.rows_of, ((size_t)count + 1) * sizeof *grown);
    if (grown == NULL)
        return pf_fail_memory(err);
    job->plan.rows_of = grown;
    load_rows_of of = {.table = probe->type->table, .unique = number};
    sluice_status status = load_row_sets_new(job->catalogue.count, &of.except, err);
    if (status == SLUICE_OK)
        status = st_row_set_new(&of.hidden, err);
    if (status == SLUICE_OK)
        status = gather_all(job, probe, &of, err);
    if (status != SLUICE_OK) {
        free_rows(&of, job->catalogue.count);
        return status;
    }
    job->plan.rows_of[job->plan.rows_of_count++] = of;
    *ret_of = &job->plan.rows_of[count];
    return SLUICE_OK;
}

sluice_status load_whole_run_of(load_job *job, wk_probe_run *run, wk_catalogue *rows, sluice_error *err)
{
    const load_rows_of *of = NULL;

    *rows = job->plan.whole;
    rows->dead = job->catalogue.dead;
    run->catalogue = rows;
    if (run->probe->last_counts) {
        run->weak = job->plan.weak;
        return SLUICE_OK;
    }
    PF_TRY(get_rows_of(job, run->probe, &of, err));
    run->except = of->except;
    run->hidden = of->hidden;
    return SLUICE_OK;
}
