/*
 * The probe tasks: which range of which probe each of them is, and what is made of the rows that they refuse.
 *
 * A skipping load keeps every refused row and goes rule by rule (load_skip.c). A strict load keeps of each range the
 * first refused row only. Rows of one probe are ordered by their place in the catalogue; only the first of each probe
 * is read again and becomes a fault, and the least of these and of the row faults ends the load.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/format/json.h"
#include "worker/ingest/events.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_FORMAT "sluice-load-plan/1"
#define PLANS_MAX   65536u

/* ---- the plan: against which base probes look ---- */

static void plan_name(uint32_t number, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "plan-%u", number);
}

static sluice_status encode_plan(const load_job *job, const st_view *view, const pf_id *commit, pf_buffer *buffer,
                                 sluice_error *err)
{
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, PLAN_FORMAT);
    st_json_name(&json, "payload");
    st_json_number(&json, job->payload.number);
    st_json_name(&json, "generation");
    st_json_u64(&json, view->generation);
    st_json_name(&json, "commit");
    st_json_id(&json, &view->head);
    st_json_name(&json, "write");
    st_json_id(&json, commit);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

void load_plan_drop(load_job *job)
{
    if (job->plan.own_base)
        st_snapshot_close(job->plan.base);
    free(job->plan.probes);
    free(job->plan.refused);
    load_row_sets_free(job->plan.passed, job->catalogue.count);
    load_row_sets_free(job->plan.followers, job->catalogue.count);
    load_plan_rows_drop(job);
    load_whole_drop(job);
    job->plan = (load_plan){0};
}

/* What is to be checked under this plan: of an upsert, once its rows are completed. */
sluice_status load_probes_make(load_job *job, sluice_error *err)
{
    if (job->plan.has_probes)
        return SLUICE_OK;
    free(job->plan.probes);
    free(job->plan.refused);
    job->plan.probes = NULL;
    job->plan.refused = NULL;
    PF_TRY(wk_probes_make(job->payload.schema, load_judged(job), &job->plan.probes, &job->plan.probe_count, err));
    load_upsert_probes(job);
    PF_TRY(load_overwrite_probes(job, err));
    PF_TRY(load_names_probes(job, err));
    job->plan.refused = calloc((size_t)job->plan.probe_count + 1, sizeof *job->plan.refused);
    if (job->plan.refused == NULL)
        return pf_fail_memory(err);
    job->plan.has_probes = true;
    return SLUICE_OK;
}

/* Takes the next free number and writes down the base. The conductor's own snapshot is lent to its tasks. */
sluice_status load_plan_begin(load_job *job, st_snapshot *base, const pf_id *commit, sluice_error *err)
{
    const st_view *view = st_snapshot_view(base);
    pf_buffer buffer = {0};
    bool first = false;
    sluice_status status;

    load_plan_drop(job);
    load_dead_drop(job);
    PF_GOTO(status, done, encode_plan(job, view, commit, &buffer, err));
    for (uint32_t number = 0; number < PLANS_MAX && !first; number++) {
        char name[WK_SPOOL_NAME];
        plan_name(number, name);
        PF_GOTO(status, done, wk_spool_put(&job->spool, name, buffer.data, buffer.length, &first, err));
        job->plan.number = number;
    }
    if (!first) {
        status = pf_fail(err, SLUICE_REBASE_EXHAUSTED, "the load was planned %u times", PLANS_MAX);
        goto done;
    }
    job->plan.commit = view->head;
    job->plan.generation = view->generation;
    job->plan.base = base;
    job->plan.write = *commit;
    if (!load_completes(job))
        PF_GOTO(status, done, load_probes_make(job, err));
    job->plan.ready = true;
done:
    pf_buffer_free(&buffer);
    if (status != SLUICE_OK)
        load_plan_drop(job);
    return status;
}

static sluice_status decode_plan(load_job *job, const pf_buffer *buffer, uint32_t *ret_payload, sluice_error *err)
{
    cJSON *document = NULL;
    int64_t payload = 0;
    sluice_status status;

    PF_TRY(st_json_parse(buffer->data, buffer->length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, PLAN_FORMAT, err));
    PF_GOTO(status, done, st_json_get_number(document, "payload", &payload, err));
    PF_GOTO(status, done, st_json_get_u64(document, "generation", &job->plan.generation, err));
    PF_GOTO(status, done, st_json_get_id(document, "commit", &job->plan.commit, err));
    PF_GOTO(status, done, st_json_get_id(document, "write", &job->plan.write, err));
    *ret_payload = (uint32_t)payload;
done:
    st_json_free(document);
    return status;
}

static sluice_status open_base(load_job *job, sluice_error *err)
{
    char commit[PF_ID_TEXT];

    pf_id_text(&job->plan.commit, commit);
    PF_TRY(st_snapshot_open(job->graph, job->spec->source.name, commit, &job->plan.base, err));
    job->plan.own_base = true;
    return SLUICE_OK;
}

sluice_status load_plan_get(load_job *job, sluice_error *err)
{
    pf_buffer buffer = {0};
    char name[WK_SPOOL_NAME];
    uint32_t number = job->plan.ready ? job->plan.number : 0, payload = 0;
    bool found = false;
    sluice_status status;

    for (;; number++) {
        plan_name(number + 1, name);
        PF_TRY(wk_spool_has(&job->spool, name, &found, err));
        if (!found)
            break;
    }
    if (job->plan.ready && job->plan.number == number)
        return SLUICE_OK;
    load_plan_drop(job);
    load_dead_drop(job);
    plan_name(number, name);
    PF_GOTO(status, done, wk_spool_get(&job->spool, name, &buffer, &found, err));
    if (!found) {
        status = pf_fail(err, SLUICE_INTERNAL, "plan %u of the load is missing", number);
        goto done;
    }
    PF_GOTO(status, done, decode_plan(job, &buffer, &payload, err));
    PF_GOTO(status, done, load_payload_get(job, payload, err));
    PF_GOTO(status, done, load_catalogue_get(job, err));
    PF_GOTO(status, done, open_base(job, err));
    if (!load_completes(job))
        PF_GOTO(status, done, load_probes_make(job, err));
    job->plan.number = number;
    job->plan.ready = true;
done:
    pf_buffer_free(&buffer);
    if (status != SLUICE_OK)
        load_plan_drop(job);
    return status;
}

/* ---- tasks ---- */

static bool is_of_phase(const wk_probe *probe, uint32_t phase)
{
    uint32_t rule = phase - LOAD_PROBES;
    return rule == 0 || rule == probe->rule;
}

/* Which probe a task of a phase is, and which of its ranges; false: none (a task of an older, longer plan). */
static bool find_range(const load_job *job, uint32_t phase, uint32_t task, uint32_t *ret_probe, wk_range *ret_range)
{
    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        const wk_probe *probe = &job->plan.probes[i];
        uint32_t ranges = wk_probe_ranges(probe);
        if (!is_of_phase(probe, phase))
            continue;
        if (task < ranges) {
            *ret_probe = i;
            *ret_range = wk_probe_range(ranges, task);
            return true;
        }
        task -= ranges;
    }
    return false;
}

uint32_t load_probe_tasks(const load_job *job, uint32_t phase)
{
    uint32_t tasks = 0;

    for (uint32_t i = 0; i < job->plan.probe_count; i++)
        if (is_of_phase(&job->plan.probes[i], phase))
            tasks += wk_probe_ranges(&job->plan.probes[i]);
    return tasks;
}

void load_events_name(uint32_t plan, uint32_t phase, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u-%u.json", phase, plan, task);
}

static bool event_before(const wk_event *a, const wk_event *b)
{
    if (a->argument != b->argument || a->record != b->record)
        return a->argument != b->argument ? a->argument < b->argument : a->record < b->record;
    return a->other_item != b->other_item ? a->other_item < b->other_item : a->other_position < b->other_position;
}

typedef struct keep_first {
    bool any;
    wk_event event;
} keep_first;

static sluice_status on_event(void *context, const wk_event *event, sluice_error *err)
{
    keep_first *keep = context;

    (void)err;
    if (!keep->any || event_before(event, &keep->event))
        keep->event = *event;
    keep->any = true;
    return SLUICE_OK;
}

static sluice_status encode_event(const wk_event *event, pf_buffer *buffer, sluice_error *err)
{
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "probe");
    st_json_number(&json, event->probe);
    st_json_name(&json, "item");
    st_json_number(&json, event->item);
    st_json_name(&json, "position");
    st_json_u64(&json, event->position);
    st_json_name(&json, "argument");
    st_json_number(&json, event->argument);
    st_json_name(&json, "record");
    st_json_u64(&json, event->record);
    st_json_name(&json, "other");
    st_json_bool(&json, event->has_other);
    st_json_name(&json, "other_in_base");
    st_json_bool(&json, event->other_in_base);
    st_json_name(&json, "other_item");
    st_json_number(&json, event->other_item);
    st_json_name(&json, "other_position");
    st_json_u64(&json, event->other_position);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status decode_event(const load_job *job, const pf_buffer *buffer, wk_event *ret_event, sluice_error *err)
{
    cJSON *document = NULL;
    int64_t probe = 0, item = 0, argument = 0, other = 0;
    sluice_status status;

    PF_TRY(st_json_parse(buffer->data, buffer->length, &document, err));
    PF_GOTO(status, done, st_json_get_number(document, "probe", &probe, err));
    PF_GOTO(status, done, st_json_get_number(document, "item", &item, err));
    PF_GOTO(status, done, st_json_get_u64(document, "position", &ret_event->position, err));
    PF_GOTO(status, done, st_json_get_number(document, "argument", &argument, err));
    PF_GOTO(status, done, st_json_get_u64(document, "record", &ret_event->record, err));
    PF_GOTO(status, done, st_json_get_bool(document, "other", &ret_event->has_other, err));
    PF_GOTO(status, done, st_json_get_bool(document, "other_in_base", &ret_event->other_in_base, err));
    PF_GOTO(status, done, st_json_get_number(document, "other_item", &other, err));
    PF_GOTO(status, done, st_json_get_u64(document, "other_position", &ret_event->other_position, err));
    ret_event->argument = (uint32_t)argument;
    if (probe < 0 || probe >= job->plan.probe_count || item < 0 ||
        item >= load_probe_rows(job, &job->plan.probes[probe])->count)
        status = pf_fail(err, SLUICE_CORRUPT, "a task's result names no row");
    ret_event->probe = (uint32_t)probe;
    ret_event->item = (uint32_t)item;
    ret_event->other_item = (uint32_t)other;
done:
    st_json_free(document);
    return status;
}

static sluice_status add_event(void *context, const wk_event *event, sluice_error *err)
{
    return wk_events_add(context, event, err);
}

sluice_status load_list_events(load_job *job, wk_probe_run run, const char *name, sluice_error *err)
{
    wk_events events;

    PF_TRY(wk_events_begin(&job->spool, name, &events, err));
    run.each = add_event;
    run.context = &events;
    sluice_status status = wk_probe_check(&run, err);
    if (status != SLUICE_OK) {
        wk_events_abandon(&events);
        return status;
    }
    PF_TRY(wk_events_end(&events, err));
    return PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
}

/* A skipping load keeps every refused row. */
static sluice_status skip_check(load_job *job, wk_probe_run run, uint32_t rule, const char *name, sluice_error *err)
{
    wk_catalogue rows;
    bool whole = false;

    PF_TRY(load_dead_get(job, rule, &whole, err));
    if (!whole)
        return SLUICE_OK;
    if (load_judges_whole(job))
        PF_TRY(load_whole_run_of(job, &run, &rows, err));
    return load_list_events(job, run, name, err);
}

sluice_status load_probe_task(load_job *job, uint32_t phase, uint32_t task, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    keep_first keep = {0};
    bool done = false, ready = false, skip = job->spec->options->skip_bad_rows;
    sluice_status status;
    wk_probe_run run = {.volume = job->spool.volume, .spool = &job->spool, .each = on_event, .context = &keep};

    PF_TRY(load_plan_get(job, err));
    PF_TRY(load_judges_whole(job) ? load_whole_get(job, &ready, err) : load_plan_rows_get(job, &ready, err));
    if (!ready) /* a task of a plan that died, met by the next one */
        return SLUICE_OK;
    PF_TRY(load_probes_make(job, err));
    if (!find_range(job, phase, task, &run.number, &run.range))
        return SLUICE_OK;
    load_events_name(job->plan.number, phase, task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    run.base = job->plan.base;
    run.probe = &job->plan.probes[run.number];
    run.catalogue = load_probe_rows(job, run.probe);
    if (skip)
        return skip_check(job, run, phase - LOAD_PROBES, name, err);
    PF_GOTO(status, done, wk_probe_check(&run, err));
    if (keep.any)
        PF_GOTO(status, done, encode_event(&keep.event, &buffer, err));
    PF_GOTO(status, done, wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err));
    status = PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
done:
    pf_buffer_free(&buffer);
    return status;
}

/* ---- what they refuse ---- */

/* The first refused row of each probe. */
static sluice_status collect_events(load_job *job, uint32_t phase, keep_first *firsts, sluice_error *err)
{
    uint32_t tasks = load_probe_tasks(job, phase);
    pf_buffer buffer = {0};
    sluice_status status = SLUICE_OK;

    for (uint32_t task = 0; task < tasks; task++) {
        char name[WK_SPOOL_NAME];
        bool found = false;
        wk_event event = {0};
        load_events_name(job->plan.number, phase, task, name);
        PF_GOTO(status, done, wk_spool_get(&job->spool, name, &buffer, &found, err));
        if (!found) {
            status = pf_fail(err, SLUICE_INTERNAL, "the result of probe task %u is missing", task);
            goto done;
        }
        if (buffer.length == 0)
            continue;
        PF_GOTO(status, done, decode_event(job, &buffer, &event, err));
        PF_GOTO(status, done, on_event(&firsts[event.probe], &event, err));
    }
done:
    pf_buffer_free(&buffer);
    return status;
}

/* An edge without its node may be the fault of a bad row: say which. */
static void hint_at_row(const load_job *job, const wk_fault *row, wk_fault *fault)
{
    if (fault->code == SLUICE_CONSTRAINT_ENDPOINT && row->present && fault->hint[0] == '\0')
        (void)snprintf(fault->hint, sizeof fault->hint, "%s:%llu is not right either: %.120s",
                       job->spec->inputs[row->argument].path, (unsigned long long)row->line, row->text);
}

/* Ends the load by the least of the row faults and of the first refused rows. */
static sluice_status fail_least(load_job *job, const keep_first *firsts, const wk_fault *row, sluice_error *err)
{
    wk_fault least = *row;

    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        wk_fault fault;
        if (!firsts[i].any)
            continue;
        PF_TRY(load_fault_of_event(job, &firsts[i].event, &fault, err));
        hint_at_row(job, row, &fault);
        wk_fault_least(&least, &fault);
    }
    return least.present ? load_fail(job, &least, err) : SLUICE_OK;
}

static sluice_status keep_of_probe(void *context, const wk_event *event, sluice_error *err)
{
    keep_first *firsts = context;
    return on_event(&firsts[event->probe], event, err);
}

sluice_status load_stranded_run(load_job *job, sluice_error *err)
{
    const uint32_t phase = LOAD_PROBES + WK_RULE_STRANDED, tasks = load_probe_tasks(job, phase);
    const wk_fault none = {0};
    keep_first *firsts = NULL;
    bool found = true;
    sluice_status status;

    if (tasks == 0)
        return SLUICE_OK;
    PF_TRY(job->executor->run(job->executor->context, phase | WK_PHASE_ANEW, tasks, err));
    firsts = calloc((size_t)job->plan.probe_count + 1, sizeof *firsts);
    if (firsts == NULL)
        return pf_fail_memory(err);
    for (uint32_t task = 0; task < tasks && found; task++) {
        char name[WK_SPOOL_NAME];
        load_events_name(job->plan.number, phase, task, name);
        PF_GOTO(status, done, wk_events_each(&job->spool, name, keep_of_probe, firsts, &found, err));
    }
    status = found ? fail_least(job, firsts, &none, err)
                   : pf_fail(err, SLUICE_INTERNAL, "the result of a probe task is missing");
done:
    free(firsts);
    return status;
}

sluice_status load_probes_run(load_job *job, sluice_error *err)
{
    wk_fault row, incomplete;
    keep_first *firsts;
    sluice_status status;

    PF_TRY(load_probes_make(job, err));
    PF_TRY(load_complete_least(job, &incomplete, err));
    firsts = calloc((size_t)job->plan.probe_count + 1, sizeof *firsts);
    if (firsts == NULL)
        return pf_fail_memory(err);
    load_rows_least(job, &row);
    PF_GOTO(status, done, PF_FAILPOINT(LOAD_BEFORE_KEY_CHECK, err));
    PF_GOTO(status, done,
            job->executor->run(job->executor->context, LOAD_PROBES | WK_PHASE_ANEW, load_probe_tasks(job, LOAD_PROBES),
                               err));
    PF_GOTO(status, done, PF_FAILPOINT(LOAD_AFTER_KEY_CHECK, err));
    PF_GOTO(status, done, collect_events(job, LOAD_PROBES, firsts, err));
    wk_fault_least(&row, &incomplete);
    status = fail_least(job, firsts, &row, err);
done:
    free(firsts);
    return status;
}
