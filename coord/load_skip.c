/*
 * The phases of a skipping load (DECISIONS "Order of errors"): the rows were judged one by one already; now one rule
 * after the other looks at what is left, and a row that one refuses is absent from the later ones only.
 *
 * Which rows a rule refuses stands in the lists of its tasks (worker/ingest/events.h). Everybody makes the dead rows of
 * the catalogue from the lists of the rules before the one at hand, so nothing else has to be handed on, and what a
 * dead conductor's plan left is never looked at: names carry the plan's number.
 *
 * What is left out depends on the input and on what the load read of its base, and nothing of that changed up to its
 * commit. So it can be found again from the state before the commit, as long as that is kept.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "worker/ingest/events.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- dead rows ---- */

sluice_status load_row_sets_new(uint32_t items, st_row_set ***ret_sets, sluice_error *err)
{
    *ret_sets = calloc((size_t)items + 1, sizeof(st_row_set *));
    return *ret_sets ? SLUICE_OK : pf_fail_memory(err);
}

void load_row_sets_free(st_row_set **sets, uint32_t items)
{
    for (uint32_t i = 0; sets && i < items; i++)
        st_row_set_free(sets[i]);
    free(sets);
}

void load_dead_drop(load_job *job)
{
    load_row_sets_free(job->catalogue.dead, job->catalogue.count);
    load_row_sets_free(job->plan.passed, job->catalogue.count);
    load_row_sets_free(job->plan.followers, job->catalogue.count);
    job->catalogue.dead = job->plan.passed = job->plan.followers = NULL;
    job->plan.dead_below = 0;
}

/* Positions of one item, added together. */
#define TOGETHER 512u
typedef struct burying {
    load_job *job;
    st_row_set **rows;
    bool *refused; /* per probe; NULL: nobody asks */
    uint32_t item, count;
    uint64_t positions[TOGETHER];
} burying;

static sluice_status bury(burying *b, sluice_error *err)
{
    st_row_set **set = &b->rows[b->item];

    if (b->count == 0)
        return SLUICE_OK;
    if (*set == NULL)
        PF_TRY(st_row_set_new(set, err));
    PF_TRY(st_row_set_add_many(*set, b->positions, b->count, err));
    b->count = 0;
    return SLUICE_OK;
}

static sluice_status on_refused(void *context, const wk_event *event, sluice_error *err)
{
    burying *b = context;

    if (event->item >= b->job->catalogue.count || (b->refused && event->probe >= b->job->plan.probe_count))
        return pf_fail(err, SLUICE_CORRUPT, "a list of refused rows names no row");
    if (b->refused)
        b->refused[event->probe] = true;
    if (b->count == TOGETHER || (b->count > 0 && b->item != event->item))
        PF_TRY(bury(b, err));
    b->item = event->item;
    b->positions[b->count++] = event->position;
    return SLUICE_OK;
}

sluice_status load_bury(load_job *job, st_row_set **rows, uint32_t number, uint32_t phase, uint32_t tasks,
                        bool *refused, bool *ret_whole, sluice_error *err)
{
    burying b = {.job = job, .rows = rows, .refused = refused};

    *ret_whole = true;
    for (uint32_t task = 0; task < tasks && *ret_whole; task++) {
        char name[WK_SPOOL_NAME];
        load_events_name(number, phase, task, name);
        PF_TRY(wk_events_each(&job->spool, name, on_refused, &b, ret_whole, err));
    }
    return bury(&b, err);
}

uint32_t load_rule_lists(const load_job *job, uint32_t rule)
{
    uint32_t tasks = load_probe_tasks(job, LOAD_PROBES + rule);
    return tasks + (load_judges_whole(job) && rule == WK_RULE_UNIQUE && tasks > 0);
}

static sluice_status on_passed(void *context, const wk_event *event, sluice_error *err)
{
    load_job *job = context;
    const st_row_set *dead = job->catalogue.dead[event->other_item];
    st_row_set **set = &job->plan.followers[event->item];

    if (dead == NULL || !st_row_set_contains(dead, event->other_position))
        return SLUICE_OK;
    if (*set == NULL)
        PF_TRY(st_row_set_new(set, err));
    return st_row_set_add(*set, event->position, err);
}

/* Rows passed over for one that counts, and that has fallen: nothing stands in for them any more. */
static sluice_status find_followers(load_job *job, bool *ret_whole, sluice_error *err)
{
    const uint32_t phase = LOAD_PROBES + WK_RULE_KEY, tasks = load_probe_tasks(job, phase);

    PF_TRY(load_row_sets_new(job->catalogue.count, &job->plan.followers, err));
    for (uint32_t task = 0; task < tasks && *ret_whole; task++) {
        char name[WK_SPOOL_NAME];
        load_events_name(job->plan.number, phase, task, name);
        PF_TRY(wk_events_each(&job->spool, name, on_passed, job, ret_whole, err));
    }
    return SLUICE_OK;
}

/* Of an upsert, rows are passed over before a rule refuses any; those that cannot stand fall then. */
static sluice_status bury_passed(load_job *job, bool *ret_whole, sluice_error *err)
{
    const uint32_t phase = LOAD_PROBES + WK_RULE_KEY, tasks = load_probe_tasks(job, phase), number = job->plan.number;

    PF_TRY(load_row_sets_new(job->catalogue.count, &job->plan.passed, err));
    PF_TRY(load_bury(job, job->plan.passed, number, phase, tasks, NULL, ret_whole, err));
    if (*ret_whole)
        PF_TRY(load_bury(job, job->catalogue.dead, number, phase, tasks, NULL, ret_whole, err));
    if (*ret_whole)
        PF_TRY(load_bury(job, job->catalogue.dead, number, LOAD_WHOLE, job->catalogue.count, NULL, ret_whole, err));
    return SLUICE_OK;
}

static sluice_status bury_rule(load_job *job, uint32_t rule, bool *ret_whole, sluice_error *err)
{
    if (rule == WK_RULE_KEY && load_judges_whole(job))
        return bury_passed(job, ret_whole, err);
    PF_TRY(load_bury(job, job->catalogue.dead, job->plan.number, LOAD_PROBES + rule, load_rule_lists(job, rule),
                     job->plan.refused, ret_whole, err));
    return rule == WK_RULE_COUNTS && *ret_whole && load_judges_whole(job) ? find_followers(job, ret_whole, err)
                                                                          : SLUICE_OK;
}

static sluice_status bury_rules(load_job *job, uint32_t rule, bool *ret_whole, sluice_error *err)
{
    uint32_t next = job->plan.dead_below ? job->plan.dead_below : WK_RULE_KEY;

    *ret_whole = true;
    if (load_judges_whole(job)) {
        PF_TRY(load_whole_get(job, ret_whole, err));
        if (!*ret_whole)
            return SLUICE_OK;
        PF_TRY(load_probes_make(job, err));
    }
    if (job->catalogue.dead == NULL)
        PF_TRY(load_row_sets_new(job->catalogue.count, &job->catalogue.dead, err));
    for (; next < rule && *ret_whole; next++)
        PF_TRY(bury_rule(job, next, ret_whole, err));
    return SLUICE_OK;
}

sluice_status load_dead_get(load_job *job, uint32_t rule, bool *ret_whole, sluice_error *err)
{
    *ret_whole = true;
    if (job->plan.dead_below == rule)
        return SLUICE_OK;
    if (job->plan.dead_below > rule)
        load_dead_drop(job);
    sluice_status status = bury_rules(job, rule, ret_whole, err);
    if (status == SLUICE_OK && *ret_whole)
        job->plan.dead_below = rule;
    else
        load_dead_drop(job); /* never a part of them */
    return status;
}

/* ---- how many, and whether that is too many ---- */

static uint64_t count_in(st_row_set *const *sets, uint32_t item)
{
    return sets && sets[item] ? st_row_set_count(sets[item]) : 0;
}

uint64_t load_left_out(const load_job *job, uint32_t item)
{
    return job->catalogue.items[item].bad_count + count_in(job->catalogue.dead, item) -
           count_in(job->plan.passed, item) + count_in(job->plan.followers, item);
}

static bool is_in(st_row_set *const *sets, uint32_t item, uint64_t position)
{
    return sets && sets[item] && st_row_set_contains(sets[item], position);
}

bool load_is_left_out(const load_job *job, uint32_t item, uint64_t position)
{
    return is_in(job->catalogue.dead, item, position) &&
           (!is_in(job->plan.passed, item, position) || is_in(job->plan.followers, item, position));
}

static uint64_t count_all(const load_job *job)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < job->catalogue.count; i++)
        count += load_left_out(job, i);
    return count;
}

typedef struct nth_reject {
    uint64_t left; /* to pass over */
    wk_fault fault;
} nth_reject;

static sluice_status on_nth(void *context, const wk_fault *fault, const pf_buffer *record, bool *ret_enough,
                            sluice_error *err)
{
    nth_reject *nth = context;

    (void)record;
    (void)err;
    *ret_enough = nth->left == 0;
    if (*ret_enough)
        nth->fault = *fault;
    else
        nth->left--;
    return SLUICE_OK;
}

/* The fault of the n-th row left out so far, from 0, in order of the input; from `item` on. */
static sluice_status find_nth(load_job *job, uint32_t item, uint64_t n, wk_fault *ret_fault, sluice_error *err)
{
    nth_reject nth = {.left = n};

    while (item < job->catalogue.count && nth.left >= load_left_out(job, item))
        nth.left -= load_left_out(job, item++);
    PF_ALWAYS(item < job->catalogue.count);
    PF_TRY(load_rejects_each(job, item, on_nth, &nth, err));
    if (!nth.fault.present)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
    *ret_fault = nth.fault;
    return SLUICE_OK;
}

/* One more than --max-errors allows ends the load, at the first rule that comes so far. */
static sluice_status check_ceiling(load_job *job, sluice_error *err)
{
    uint64_t most = job->spec->options->max_errors;
    wk_fault fault;

    if (count_all(job) <= most)
        return SLUICE_OK;
    PF_TRY(find_nth(job, 0, most, &fault, err));
    if (sluice_status_exit(fault.code) != sluice_status_exit(SLUICE_INPUT_SYNTAX))
        fault.code = SLUICE_INPUT_SYNTAX;
    sluice_status status = load_fail(job, &fault, err);
    pf_hint(err,
            "this is bad row number %" PRIu64 ", and --max-errors allows %" PRIu64
            "; --dry-run --on-error skip --rejects FILE without --max-errors lists them all",
            most + 1, most);
    return status;
}

/* What is wrong with a file as a whole cannot be skipped. */
static sluice_status check_damage(load_job *job, sluice_error *err)
{
    wk_fault least = {0};

    for (uint32_t i = 0; i < job->catalogue.count; i++)
        if (job->catalogue.items[i].damaged)
            wk_fault_least(&least, &job->catalogue.items[i].damage);
    return least.present ? load_fail(job, &least, err) : SLUICE_OK;
}

/* ---- the run ---- */

static sluice_status run_rule(load_job *job, uint32_t rule, sluice_error *err)
{
    uint32_t phase = LOAD_PROBES + rule, tasks = load_probe_tasks(job, phase);
    bool whole = false;

    if (tasks > 0)
        PF_TRY(job->executor->run(job->executor->context, phase | WK_PHASE_ANEW, tasks, err));
    if (load_rule_lists(job, rule) > tasks)
        PF_TRY(load_settle_run(job, err));
    PF_TRY(load_dead_get(job, rule + 1, &whole, err));
    if (!whole)
        return pf_fail(err, SLUICE_INTERNAL, "the result of a probe task is missing");
    return check_ceiling(job, err);
}

/* Numbers per input, and why an input has no row at all. */
static sluice_status leave_outcome(load_job *job, const pf_id *commit, sluice_error *err)
{
    uint32_t count = job->spec->input_count;
    load_left_out_input *inputs = calloc((size_t)count + 1, sizeof *inputs);
    sluice_status status = SLUICE_OK;

    if (inputs == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->catalogue.count; i++) {
        const wk_staged *item = &job->catalogue.items[i];
        load_left_out_input *input = &inputs[item->argument];
        if (input->items++ == 0)
            input->first_item = i;
        input->rejected += load_left_out(job, i);
        input->rows += item->add.fragment.rows + item->bad_count - load_left_out(job, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        wk_fault fault;
        if (inputs[i].rows > 0 || inputs[i].rejected == 0)
            continue;
        PF_GOTO(status, done, find_nth(job, inputs[i].first_item, 0, &fault, err));
        inputs[i].line = fault.line;
        (void)snprintf(inputs[i].text, sizeof inputs[i].text, "%s", fault.text);
    }
    PF_GOTO(status, done, load_outcome_put(&job->spool, commit, job->plan.number, inputs, count, err));
    job->outcome = *commit;
done:
    free(inputs);
    return status;
}

sluice_status load_skip_run(load_job *job, const pf_id *commit, sluice_error *err)
{
    bool whole;

    PF_TRY(check_damage(job, err));
    if (load_judges_whole(job))
        PF_TRY(load_whole_run(job, err));
    PF_TRY(load_dead_get(job, WK_RULE_KEY, &whole, err));
    PF_TRY(check_ceiling(job, err));
    PF_TRY(PF_FAILPOINT(LOAD_BEFORE_KEY_CHECK, err));
    for (uint32_t rule = WK_RULE_KEY; rule < WK_RULE_STRANDED; rule++)
        PF_TRY(run_rule(job, rule, err));
    PF_TRY(load_stranded_run(job, err));
    PF_TRY(PF_FAILPOINT(LOAD_AFTER_KEY_CHECK, err));
    job->rejected = count_all(job);
    if (job->rejected > 0)
        PF_TRY(job->executor->run(job->executor->context, LOAD_REJECTS | WK_PHASE_ANEW, job->catalogue.count, err));
    PF_TRY(leave_outcome(job, commit, err));
    return PF_FAILPOINT(LOAD_AFTER_REJECTS, err);
}

/* ---- once more ---- */

static sluice_status find_parent(const load_job *job, const co_receipt *receipt, char ret_parent[PF_ID_TEXT],
                                 sluice_error *err)
{
    st_log *log = NULL;
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;

    PF_TRY(st_graph_log(job->graph, receipt->incarnation, &log, err));
    PF_GOTO(status, done, st_log_read_lineage(log, receipt->generation, &record, err));
    PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    if (receipt->index < generation.commit_count)
        pf_id_text(&generation.commits[receipt->index].parents[0], ret_parent);
    else
        status = pf_fail(err, SLUICE_CORRUPT, "a receipt names a commit that its generation does not have");
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

static sluice_status skip_from(load_job *job, st_snapshot *base, const pf_id *commit, sluice_error *err)
{
    wk_executor *executor = job->executor;

    PF_TRY(load_payload_begin(job, st_snapshot_view(base), err));
    PF_TRY(load_names_run(job, executor, err));
    PF_TRY(executor->run(executor->context, LOAD_ROWS + job->payload.number, job->chunk_count, err));
    load_catalogue_drop(job);
    PF_TRY(load_catalogue_get(job, err));
    PF_TRY(load_plan_begin(job, base, commit, err));
    return load_skip_run(job, commit, err);
}

sluice_status load_skip_again(load_job *job, const co_receipt *receipt, sluice_error *err)
{
    char parent[PF_ID_TEXT];
    st_snapshot *base = NULL;
    sluice_error error;
    sluice_status status = find_parent(job, receipt, parent, &error);

    if (status == SLUICE_OK)
        status = st_snapshot_open(job->graph, job->spec->branch, parent, &base, &error);
    if (status == SLUICE_NOT_FOUND) /* collected */
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    job->attempt.litter = true; /* what is staged now is named by nothing */
    status = skip_from(job, base, &receipt->commit, err);
    load_plan_drop(job); /* it borrows the base */
    st_snapshot_close(base);
    return status;
}
