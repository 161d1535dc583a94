/*
 * The load as a job: what each of its processes opens, which task is what, and what the conductor does from the first
 * boundary to the receipt (coord/load_job.h).
 *
 * The conductor can die anywhere. Its successor finds the results of finished tasks in the attempt's folder, and its
 * own commit, if it went through, by the operation id; its intent, if it was armed, by recovery at the barrier.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONDUCTED_NAME "conducted" /* a conductor was here before */

static void close_job(void *context)
{
    load_job *job = context;

    if (job == NULL)
        return;
    load_plan_drop(job);
    load_payload_drop(job);
    load_files_close(job);
    co_attempt_leave(&job->attempt);
    if (job->own_graph)
        st_graph_close(job->graph);
    free(job);
}

static sluice_status open_job(const void *spec, wk_executor *executor, void **ret_context, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    load_job *job = calloc(1, sizeof *job);

    if (job == NULL)
        return pf_fail_memory(err);
    job->spec = spec;
    job->executor = executor;
    job->graph = job->spec->graph;
    if (job->graph == NULL) {
        PF_GOTO(status, failed, st_graph_open(job->spec->options->graph_path, PF_WRITE, &job->graph, err));
        job->own_graph = true;
    }
    PF_GOTO(status, failed, co_attempt_join(job->graph, &job->spec->attempt, &job->attempt, err));
    job->spool.volume = st_graph_volume(job->graph);
    job->spool.attempt = job->spec->attempt;
    (void)snprintf(job->spool.folder, sizeof job->spool.folder, "%s", job->attempt.folder);
    PF_GOTO(status, failed, load_files_open(job, err));
    *ret_context = job;
    return SLUICE_OK;
failed:
    close_job(job);
    return status;
}

static sluice_status run_task(void *context, uint32_t phase, uint32_t index, sluice_error *err)
{
    load_job *job = context;

    if (phase == LOAD_SPOOL)
        return load_spool_task(job, index, err);
    PF_TRY(load_chunks_get(job, err));
    if (phase == LOAD_BOUNDARIES)
        return load_boundary_task(job, index, err);
    if (phase == LOAD_REJECTS)
        return load_reject_task(job, index, err);
    if (phase == LOAD_LAST)
        return load_last_task(job, index, err);
    if (phase == LOAD_WHOLE)
        return load_whole_task(job, index, err);
    if (phase == LOAD_COMPLETE)
        return load_complete_task(job, index, err);
    if (phase >= LOAD_NAMED) {
        uint32_t input, chunk;
        PF_TRY(load_payload_get(job, phase - LOAD_NAMED, err));
        load_find_chunk(job, index, &input, &chunk);
        return job->files[input].columns.names_rows ? load_row_task(job, index, err) : SLUICE_OK;
    }
    if (phase >= LOAD_PROBES)
        return load_probe_task(job, phase, index, err);
    PF_TRY(load_payload_get(job, phase - LOAD_ROWS, err));
    return load_row_task(job, index, err);
}

/* ---- the payload half ---- */

static sluice_status make_payload(void *context, co_write *write, sluice_error *err)
{
    load_job *job = context;
    wk_executor *executor = write->executor;
    pf_sha256 digest;
    bool done = false;

    load_plan_drop(job);
    if (job->spec->spooled_count > 0)
        PF_TRY(executor->run(executor->context, LOAD_SPOOL, job->spec->spooled_count, err));
    PF_TRY(load_chunks_get(job, err));
    PF_TRY(executor->run(executor->context, LOAD_BOUNDARIES, job->chunk_count, err));
    PF_TRY(PF_FAILPOINT(LOAD_AFTER_BOUNDARIES, err));
    PF_TRY(load_inputs_check(job, err));
    PF_TRY(load_places_get(job, err));
    PF_TRY(load_request_digest(job, &digest, err));
    job->request = digest;
    PF_TRY(co_write_set_request(write, &digest, &done, err));
    if (done)
        return SLUICE_OK;
    PF_TRY(load_payload_begin(job, st_snapshot_view(write->base), err));
    PF_TRY(load_names_run(job, executor, err));
    PF_TRY(executor->run(executor->context, LOAD_ROWS + job->payload.number, job->chunk_count, err));
    PF_TRY(load_inputs_check(job, err));
    load_catalogue_drop(job);
    PF_TRY(load_catalogue_get(job, err));
    write->attempt->litter |= job->names.set_count > 0; /* names are staged and not kept */
    for (uint32_t i = 0; i < job->catalogue.count; i++)
        write->attempt->litter |= job->catalogue.items[i].tries > 0;
    return load_sync_folders(job, &job->catalogue, err);
}

/* ---- conducting ---- */

/* The tables that it writes or probes, so that an intent in the way is met before any work. Unknown types end here. */
static sluice_status find_tables(load_job *job, uint64_t *tables, uint32_t *ret_count, sluice_error *err)
{
    st_snapshot *snapshot = NULL;
    sluice_status status;

    *ret_count = 0;
    PF_TRY(st_snapshot_open(job->graph, job->spec->source.name, job->spec->source.at, &snapshot, err));
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        const st_type_def *type = NULL;
        PF_GOTO(status, done, st_snapshot_type(snapshot, job->spec->inputs[i].type, &type, err));
        tables[(*ret_count)++] = type->table;
        if (type->edge) {
            tables[(*ret_count)++] = schema->types[type->from].table;
            tables[(*ret_count)++] = schema->types[type->to].table;
        }
    }
    status = SLUICE_OK;
done:
    st_snapshot_close(snapshot);
    return status;
}

/* What a dry run would have loaded, per input: no commit says it. Read by the command. */
static sluice_status leave_rows(load_job *job, sluice_error *err)
{
    uint64_t *rows = calloc((size_t)job->spec->input_count, sizeof *rows);
    sluice_status status;

    if (rows == NULL)
        return pf_fail_memory(err);
    const wk_catalogue *catalogue = load_plan_rows(job);
    for (uint32_t i = 0; i < catalogue->count; i++) {
        const wk_staged *item = &catalogue->items[i];
        rows[item->argument] += item->add.fragment.rows;
        if (catalogue->dead && catalogue->dead[i])
            rows[item->argument] -= st_row_set_count(catalogue->dead[i]);
    }
    status = wk_spool_put(&job->spool, LOAD_RESULT_NAME, rows, job->spec->input_count * sizeof *rows, NULL, err);
    free(rows);
    return status;
}

/* What another run left out is found again, unless this very job was that run. */
static sluice_status list_again(load_job *job, const co_receipt *receipt, sluice_error *err)
{
    bool known = false;

    PF_TRY(load_outcome_has(&job->spool, &receipt->commit, &known, err));
    sluice_status status = known ? SLUICE_OK : load_skip_again(job, receipt, err);
    if (status != SLUICE_OK && err) {
        err->committed = SLUICE_TRUE;
        err->acknowledged = receipt->acknowledged ? SLUICE_TRUE : SLUICE_FALSE;
        pf_id_text(&receipt->commit, err->commit_id);
    }
    return status;
}

static sluice_status conduct(void *context, wk_executor *executor, void *result, sluice_error *err)
{
    static const co_writer template = {.adapter = &ad_load, .payload = make_payload, .plan = load_plan_make};
    load_job *job = context;
    load_answer *answer = result;
    co_writer writer = template;
    bool first = false;
    sluice_status status;
    co_request request = {.branch = job->spec->branch,
                          .creates = job->spec->options->create_branch,
                          .from = job->spec->options->from,
                          .operation = job->spec->operation,
                          .actor = job->spec->options->actor,
                          .message = job->spec->options->message,
                          .if_head = job->spec->options->if_head};
    uint64_t *tables = calloc(3 * (size_t)job->spec->input_count, sizeof *tables);

    if (tables == NULL)
        return pf_fail_memory(err);
    writer.context = job;
    writer.once = job->spec->options->mode == CO_LOAD_OVERWRITE;
    job->executor = executor;
    PF_GOTO(status, done, find_tables(job, tables, &request.table_count, err));
    request.tables = tables;
    PF_GOTO(status, done, wk_spool_put(&job->spool, CONDUCTED_NAME, "", 0, &first, err));
    request.operation_given = !pf_id_is_nil(&job->spec->options->operation);
    job->attempt.litter = !first; /* a conductor that died may have staged a plan */
    PF_GOTO(status, done, co_write_run(job->graph, &request, &job->attempt, executor, &writer, &answer->receipt, err));
    if (job->spec->options->skip_bad_rows && answer->receipt.repeated)
        PF_GOTO(status, done, list_again(job, &answer->receipt, err));
    /* What this very job has done before its conductor died is no repetition to the user. */
    if (answer->receipt.repeated && !first && !request.operation_given)
        answer->receipt.repeated = false;
    answer->outcome = answer->receipt.committed ? answer->receipt.commit : job->outcome;
    answer->request = job->request;
    answer->litter = job->attempt.litter;
    answer->uncertain = job->attempt.uncertain;
    answer->incarnation = job->attempt.incarnation;
    answer->since = job->attempt.since;
    if (job->spec->options->dry_run && !answer->receipt.committed)
        status = leave_rows(job, err);
done:
    load_plan_drop(job);
    free(tables);
    return status;
}

const wk_job load_job_template = {
    .result_size = sizeof(load_answer), .open = open_job, .close = close_job, .task = run_task, .conduct = conduct};
