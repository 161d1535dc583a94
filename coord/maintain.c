/*
 * Maintenance as the command line calls it: the request is checked before a process is forked; then the job runs, in a
 * pool or here; then its attempt is ended, and the tables just before and just after the commit are looked at.
 */
#include "coord/maintain_job.h"
#include "coord/memory.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/process.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void co_maintain_result_free(co_maintain_result *result)
{
    free(result->tables);
    result->tables = NULL;
    result->table_count = 0;
}

/* ---- the request ---- */

/* What makes two requests the same: kind, types in their order, how it is written. */
static sluice_status digest_request(const co_maintain_options *options, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status;
    PF_GOTO(status, done,
            pf_buffer_append_format(&text, err, "%s %d %llu\n", options->kind == CO_OPTIMIZE ? "optimize" : "index",
                                    options->compress, (unsigned long long)options->fragment_bytes));
    for (uint32_t i = 0; i < options->type_count; i++)
        PF_GOTO(status, done, pf_buffer_append_format(&text, err, "%s\n", options->types[i]));
    if (options->if_fragments + options->if_edits + options->if_dead > 0)
        PF_GOTO(status, done,
                pf_buffer_append_format(&text, err, "/if %llu %llu %llu\n", (unsigned long long)options->if_fragments,
                                        (unsigned long long)options->if_edits, (unsigned long long)options->if_dead));
    *ret_digest = pf_sha256_of(text.data, text.length);
done:
    pf_buffer_free(&text);
    return status;
}

static sluice_status make_spec(const co_maintain_options *options, maintain_spec *spec, sluice_error *err)
{
    *spec = (maintain_spec){.options = options,
                            .branch = options->branch ? options->branch : "main",
                            .operation = pf_id_is_nil(&options->operation) ? pf_id_new() : options->operation};
    return digest_request(options, &spec->request, err);
}

/* Unknown types, before any work. */
static sluice_status check_types(st_graph *graph, const maintain_spec *spec, sluice_error *err)
{
    st_snapshot *snapshot = NULL;
    sluice_status status = SLUICE_OK;
    PF_TRY(st_snapshot_open(graph, spec->branch, NULL, &snapshot, err));
    for (uint32_t i = 0; i < spec->options->type_count && status == SLUICE_OK; i++) {
        const st_type_def *type = NULL;
        status = st_snapshot_type(snapshot, spec->options->types[i], &type, err);
    }
    st_snapshot_close(snapshot);
    return status;
}

/* ---- the end ---- */

static sluice_status measure(st_snapshot *snapshot, uint64_t table, co_maintain_size *ret_size, sluice_error *err)
{
    st_table_reader *reader = NULL;
    *ret_size = (co_maintain_size){0};
    if (!st_schema_find_table(st_snapshot_view(snapshot)->schema, table))
        return SLUICE_OK;
    PF_TRY(st_table_reader_get(snapshot, table, &reader, err));
    const st_table_list *list = st_table_reader_list(reader);
    ret_size->fragments = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        ret_size->bytes += list->fragments[i].fragment.bytes;
        ret_size->indexed += list->fragments[i].index.present;
    }
    return SLUICE_OK;
}

static sluice_status measure_tables(st_graph *graph, const maintain_spec *spec, const char *before, const char *after,
                                    co_maintain_result *result, sluice_error *err)
{
    st_snapshot *old = NULL, *new = NULL;
    const co_maintain_options *options = spec->options;
    sluice_status status;
    PF_GOTO(status, done, st_snapshot_open(graph, spec->branch, after, &new, err));
    PF_GOTO(status, done, st_snapshot_open(graph, spec->branch, before, &old, err));
    const st_schema *schema = st_snapshot_view(new)->schema;
    uint32_t count = options->type_count > 0 ? options->type_count : schema->type_count;
    result->tables = calloc((size_t)count + 1, sizeof *result->tables);
    if (!result->tables) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < count; i++) {
        const st_type_def *type =
            options->type_count > 0 ? st_schema_find(schema, options->types[i]) : &schema->types[i];
        if (!type)
            continue;
        uint32_t known = 0;
        while (known < result->table_count && result->tables[known].table != type->table)
            known++;
        if (known < result->table_count)
            continue;
        struct co_maintain_table *into = &result->tables[result->table_count++];
        into->table = type->table;
        PF_GOTO(status, done, measure(old, type->table, &into->before, err));
        PF_GOTO(status, done, measure(new, type->table, &into->after, err));
    }
done:
    st_snapshot_close(old);
    st_snapshot_close(new);
    return status;
}

/* The commit before a commit. */
static sluice_status parent_of(st_graph *graph, const co_receipt *receipt, pf_id *ret_parent, sluice_error *err)
{
    st_log *log = NULL;
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;
    PF_TRY(st_graph_log(graph, receipt->incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    PF_GOTO(status, done, st_log_read_lineage(log, receipt->generation, &record, err));
    PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    if (receipt->index >= generation.commit_count)
        status = pf_fail(err, SLUICE_CORRUPT, "a receipt names a commit that its generation does not have");
    else
        *ret_parent = generation.commits[receipt->index].parents[0];
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

static sluice_status tell(st_graph *graph, const maintain_spec *spec, const co_receipt *receipt,
                          co_maintain_result *result, sluice_error *err)
{
    char before[PF_ID_TEXT], after[PF_ID_TEXT];
    pf_id parent;
    if (!receipt->committed)
        return measure_tables(graph, spec, NULL, NULL, result, err);
    PF_TRY(parent_of(graph, receipt, &parent, err));
    pf_id_text(&parent, before);
    pf_id_text(&receipt->commit, after);
    return measure_tables(graph, spec, before, after, result, err);
}

/* An error from here on says that the commit stands, when it does. */
static sluice_status finish(st_graph *graph, const maintain_spec *spec, const maintain_answer *answer,
                            co_maintain_result *ret_result, sluice_error *err)
{
    ret_result->receipt = answer->receipt;
    sluice_error error = {0};
    sluice_status status = tell(graph, spec, &answer->receipt, ret_result, &error);
    if (status == SLUICE_NOT_FOUND) { /* collected since: a first receipt, long after */
        co_maintain_result_free(ret_result);
        return SLUICE_OK;
    }
    if (status == SLUICE_OK)
        return SLUICE_OK;
    if (answer->receipt.committed) {
        error.committed = SLUICE_TRUE;
        error.acknowledged = answer->receipt.acknowledged ? SLUICE_TRUE : SLUICE_FALSE;
        pf_id_text(&answer->receipt.commit, error.commit_id);
    }
    if (err)
        *err = error;
    return status;
}

typedef sluice_status run_fn(const wk_job *job, maintain_spec *spec, maintain_answer *ret_answer, sluice_error *err);

static sluice_status run_spec(st_graph *graph, maintain_spec *spec, run_fn *run, co_maintain_result *ret_result,
                              sluice_error *err)
{
    co_attempt attempt = {0};
    maintain_answer answer = {0};
    wk_job job = maintain_job_template;
    sluice_error error = {0};
    int64_t started = pf_monotonic_ns();
    bool ran = false;
    sluice_status status;
    *ret_result = (co_maintain_result){0};
    PF_GOTO(status, done, check_types(graph, spec, &error));
    PF_GOTO(status, done, co_attempt_make(graph, &attempt, &error));
    spec->attempt = attempt.id;
    job.spec = spec;
    status = run(&job, spec, &answer, &error);
    ran = status == SLUICE_OK;
    ret_result->memory_peak = spec->memory_peak;
    ret_result->seconds = (double)(pf_monotonic_ns() - started) / 1e9;
    if (ran)
        status = finish(graph, spec, &answer, ret_result, &error);
    co_attempt_left left = {answer.litter, answer.uncertain, answer.incarnation, answer.since};
    co_attempt_end(graph, &attempt, ran ? &left : NULL, &error);
    if (status == SLUICE_OK)
        return SLUICE_OK;
done:;
    const co_request request = {.operation = spec->operation,
                                .operation_given = !pf_id_is_nil(&spec->options->operation),
                                .branch = spec->branch};
    co_write_not_begun(graph, &request, &error);
    if (err)
        *err = error;
    co_maintain_result_free(ret_result);
    return status;
}

static sluice_status run_here(const wk_job *job, maintain_spec *spec, maintain_answer *ret_answer, sluice_error *err)
{
    (void)spec;
    return wk_run_inline(job, ret_answer, err);
}

sluice_status co_maintain_inline(st_graph *graph, const co_maintain_options *options, co_maintain_result *ret_result,
                                 sluice_error *err)
{
    maintain_spec spec;
    PF_TRY(make_spec(options, &spec, err));
    spec.graph = graph;
    return run_spec(graph, &spec, run_here, ret_result, err);
}

static sluice_status run_pool(const wk_job *job, maintain_spec *spec, maintain_answer *ret_answer, sluice_error *err)
{
    const co_maintain_options *options = spec->options;
    co_pool_options pool = {.progress_context = options->progress_context,
                            .progress = options->progress,
                            .stopped_seconds = options->stopped_seconds,
                            .peak = &spec->memory_peak};
    return co_memory_run(job, options->memory, options->workers, &pool, ret_answer, err);
}

sluice_status co_maintain(const co_maintain_options *options, co_maintain_result *ret_result, sluice_error *err)
{
    maintain_spec spec;
    st_graph *graph = NULL;
    sluice_status status;
    PF_TRY(make_spec(options, &spec, err));
    PF_GOTO(status, done, st_graph_open(options->graph_path, PF_WRITE, &graph, err));
    status = run_spec(graph, &spec, run_pool, ret_result, err);
done:
    st_graph_close(graph);
    return status;
}
