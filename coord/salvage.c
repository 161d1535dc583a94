/*
 * Salvage (coord/salvage.h): the rows that store/read/salvage.c finds are written as Arrow into nameless files, and
 * loaded into a new graph by an ordinary load that leaves out what breaks a rule. So what comes out is an ordinary
 * graph, and nothing is in it that its rules do not allow.
 */
#include "coord/salvage.h"
#include "platform/check.h"
#include "store/arrow/ipc.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rescue {
    const co_salvage_request *request;
    st_salvage found;
    const st_type_def *types[CO_SALVAGE_TYPES]; /* nodes first */
    pf_scratch *scratch[CO_SALVAGE_TYPES];
    uint64_t rows[CO_SALVAGE_TYPES];
    uint64_t lost;    /* rows of the state that could not be read */
    uint64_t doubled; /* as the report's */
    uint32_t type_count;
    sluice_status failed;
} rescue;

/* ---- which types ---- */

static void want(rescue *job, const st_type_def *type)
{
    for (uint32_t i = 0; i < job->type_count; i++)
        if (job->types[i] == type)
            return;
    job->types[job->type_count++] = type;
}

static sluice_status choose_types(rescue *job, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(job->found.snapshot)->schema;
    const st_type_def *type = NULL;
    PF_TRY(st_snapshot_type(job->found.snapshot, job->request->type, &type, err));
    if (type->edge) {
        want(job, &schema->types[type->from]);
        want(job, &schema->types[type->to]);
    }
    want(job, type);
    return SLUICE_OK;
}

static void write_kind(const rescue *job, st_json *json, const char *name, bool edges, pf_buffer *scratch)
{
    const st_schema *schema = st_snapshot_view(job->found.snapshot)->schema;
    st_json_name(json, name);
    st_json_object(json);
    for (uint32_t i = 0; i < job->type_count; i++)
        if (job->types[i]->edge == edges)
            st_schema_show_type(json, schema, job->types[i], scratch);
    st_json_object_end(json);
}

/* The same types, as a user would write them: the new graph gives them ids of its own. */
static sluice_status make_graph(const rescue *job, sluice_error *err)
{
    pf_buffer text = {0}, scratch = {0};
    st_schema *schema = NULL;
    st_json json;
    pf_id id;
    sluice_status status;
    st_json_begin(&json, &text);
    st_json_object(&json);
    write_kind(job, &json, "nodes", false, &scratch);
    write_kind(job, &json, "edges", true, &scratch);
    st_json_object_end(&json);
    PF_GOTO(status, done, st_json_end(&json, true, err));
    PF_GOTO(status, done, st_schema_parse((const char *)text.data, text.length, "the schema", &schema, err));
    status = st_graph_init(job->request->into, schema, ST_MODE_OPTIMISTIC, &id, err);
done:
    st_schema_free(schema);
    pf_buffer_free(&text);
    pf_buffer_free(&scratch);
    return status;
}

/* ---- rows ---- */

typedef struct spooling {
    rescue *job;
    uint32_t which;
    bool row_ids; /* nodes without a key are named by their ids: for the edges of the same load */
    st_ipc_writer *writer;
} spooling;

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_scratch_append(context, bytes, length, err);
}

static sluice_status begin(spooling *spool, const st_column_spec *specs, uint32_t count, sluice_error *err)
{
    static char row_id_name[] = "_row_id";
    const st_ipc_options options = {.file = true, .context = spool->job->scratch[spool->which], .put = put};
    st_column_spec *all = calloc((size_t)count + 1, sizeof *all);
    if (!all)
        return pf_fail_memory(err);
    uint32_t first = spool->row_ids ? 1 : 0;
    all[0] = (st_column_spec){.name = row_id_name, .type = ST_ROW_ID};
    memcpy(all + first, specs, count * sizeof *all);
    for (uint32_t i = 0; i < count; i++)
        all[first + i].property = 0; /* the new graph gives ids of its own */
    sluice_status status = st_ipc_writer_new(&options, all, count + first, NULL, &spool->writer, err);
    free(all);
    return status;
}

static sluice_status on_batch(void *context, const st_column_spec *specs, uint32_t count, const st_batch *batch,
                              sluice_error *err)
{
    spooling *spool = context;
    uint32_t first = spool->row_ids ? 1 : 0;
    st_column_builder *ids = NULL;
    sluice_status status = SLUICE_OK;
    if (!spool->writer)
        PF_TRY(begin(spool, specs, count, err));
    st_column *columns = calloc((size_t)count + 1, sizeof *columns);
    if (!columns)
        return pf_fail_memory(err);
    if (spool->row_ids) {
        st_column_spec spec = {.name = (char[]){"_row_id"}, .type = ST_ROW_ID};
        PF_GOTO(status, done, st_column_builder_new(&spec, &ids, err));
        for (uint64_t i = 0; i < batch->rows; i++)
            PF_GOTO(status, done, st_append_u64(ids, batch->row_ids[i], err));
        st_builder_view(ids, &columns[0]);
    }
    memcpy(columns + first, batch->columns, count * sizeof *columns);
    status = st_ipc_write(spool->writer, columns, columns[0].length, err);
    spool->job->rows[spool->which] += batch->rows;
done:
    st_column_builder_free(ids);
    free(columns);
    return status;
}

static sluice_status spool_type(rescue *job, uint32_t which, sluice_error *err)
{
    const st_type_def *type = job->types[which];
    spooling spool = {.job = job, .which = which, .row_ids = !type->edge && type->key_count == 0};
    uint32_t fragments = 0;
    sluice_status status;
    PF_TRY(pf_scratch_open(&job->scratch[which], err));
    PF_TRY(st_salvage_table(&job->found, type, &fragments, err));
    for (uint32_t i = 0; i < fragments; i++)
        PF_GOTO(status, done, st_salvage_fragment(&job->found, type, i, on_batch, &spool, err));
    status = spool.writer ? st_ipc_finish(spool.writer, NULL, err) : SLUICE_OK;
    const st_table_entry *entry = st_view_table(st_snapshot_view(job->found.snapshot), type->table);
    if (entry && entry->rows > job->rows[which]) /* the state says how many there were */
        job->lost += entry->rows - job->rows[which];
done:
    st_ipc_writer_free(spool.writer);
    return status;
}

/* ---- loading ---- */

static void on_reject(void *context, const char *file, uint64_t line, const char *code, const char *text)
{
    rescue *job = context;
    char object[300];
    if (job->found.files_taken && strcmp(code, "KEY_CONFLICT") == 0) { /* of versions of a row the newest comes first */
        job->doubled++;
        return;
    }
    (void)snprintf(object, sizeof object, "%s, row %llu", file, (unsigned long long)line);
    if (job->failed == SLUICE_OK)
        job->failed = job->request->each(job->request->context, ST_LOST, object, text ? text : code, NULL);
}

static sluice_status load_here(const co_load_options *options, co_load_result *ret_result, sluice_error *err)
{
    st_graph *graph = NULL;
    PF_TRY(st_graph_open(options->graph_path, PF_WRITE, &graph, err));
    pf_volume_leave_to_parent(st_graph_volume(graph));
    sluice_status status = co_load_inline(graph, options, ret_result, err);
    st_graph_close(graph);
    return status;
}

static sluice_status load(rescue *job, co_salvage_report *report, sluice_error *err)
{
    co_load_input inputs[CO_SALVAGE_TYPES] = {0};
    co_load_result *result = calloc(1, sizeof *result);
    co_load_options options = {.graph_path = job->request->into,
                               .inputs = inputs,
                               .workers = job->request->workers,
                               .skip_bad_rows = true,
                               .max_errors = UINT64_MAX,
                               .message = "salvaged",
                               .reject_context = job,
                               .reject = on_reject};
    if (!result)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->type_count; i++)
        if (job->rows[i] > 0)
            inputs[options.input_count++] = (co_load_input){.type = job->types[i]->name,
                                                            .path = job->types[i]->name,
                                                            .scratch = job->scratch[i],
                                                            .format = "arrow"};
    sluice_status status = options.input_count == 0 ? SLUICE_OK
                           : job->request->here     ? load_here(&options, result, err)
                                                    : co_load(&options, result, err);
    if (status == SLUICE_OK)
        status = job->failed;
    report->receipt = result->receipt;
    report->rejected = result->rejected - job->doubled;
    report->doubled = job->doubled;
    report->type_count = job->type_count;
    for (uint32_t i = 0; i < job->type_count; i++) {
        (void)snprintf(report->types[i].name, sizeof report->types[i].name, "%s", job->types[i]->name);
        for (uint32_t k = 0; k < result->type_count; k++)
            if (strcmp(result->types[k].name, job->types[i]->name) == 0)
                report->types[i].rows = result->types[k].rows;
    }
    co_load_result_free(result);
    free(result);
    return status;
}

bool co_salvage_is_whole(const co_salvage_report *report)
{
    return report->losses == 0 && report->guesses == 0 && report->rejected == 0 && !report->older &&
           !report->deletions_unknown;
}

static sluice_status run(rescue *job, st_graph *graph, co_salvage_report *report, sluice_error *err)
{
    const co_salvage_request *request = job->request;
    PF_TRY(st_salvage_open(graph, request->branch, request->each, request->context, &job->found, err));
    PF_TRY(choose_types(job, err));
    for (uint32_t i = 0; i < job->type_count; i++)
        PF_TRY(spool_type(job, i, err));
    report->generation = job->found.generation;
    report->newest = job->found.newest;
    report->older = job->found.older;
    report->deletions_unknown = job->found.deletions_unknown;
    report->losses = job->found.losses;
    report->guesses = job->found.guesses;
    report->from_files = job->found.from_files;
    report->lost_rows = job->lost;
    PF_TRY(make_graph(job, err));
    return load(job, report, err);
}

sluice_status co_salvage(const co_salvage_request *request, co_salvage_report *ret_report, sluice_error *err)
{
    rescue job = {.request = request};
    st_graph *graph = NULL;
    *ret_report = (co_salvage_report){0};
    PF_TRY(st_graph_open_damaged(request->graph, &graph, err));
    if (request->here)
        pf_volume_leave_to_parent(st_graph_volume(graph));
    sluice_status status = run(&job, graph, ret_report, err);
    for (uint32_t i = 0; i < CO_SALVAGE_TYPES; i++)
        pf_scratch_close(job.scratch[i]);
    st_salvage_close(&job.found);
    st_graph_close(graph);
    return status;
}
