/* Mutations on the simulated disk (mutate_fixture.h). */
#include "mutate_fixture.h"
#include "coord/mutate_job.h"
#include <stdlib.h>
#include <string.h>

static const char schema_text[] =
    "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"a\":\"int64?\",\"b\":\"int64?\","
    "\"u\":\"string?\",\"s\":\"string?\"},\"unique\":[[\"u\"]]},\"Q\":{\"properties\":{\"n\":\"int64?\"}}},"
    "\"edges\":{\"E\":{\"from\":\"P\",\"to\":\"P\",\"properties\":{\"w\":\"int64?\"},\"key\":[]},"
    "\"L\":{\"from\":\"P\",\"to\":\"P\",\"properties\":{},\"key\":[],\"cardinality\":{\"out\":\"0..1\"}},"
    "\"R\":{\"from\":\"P\",\"to\":\"Q\",\"properties\":{\"n\":\"int64?\"}}}}";

pf_sim_disk *mutate_disk(uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    pf_id id;
    pf_sim_world_install(seed);
    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    ASSERT_OK(pf_sim_actor(disk, "g", &volume, &err));
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "schema", &schema, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    st_schema_free(schema);
    return disk;
}

st_graph *mutate_open(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    ASSERT_OK(pf_sim_actor(disk, "g", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_WRITE, &graph, &err));
    return graph;
}

typedef struct hooked { /* the plan half, with the hook behind it */
    mut_job job;
    mutate_try *try_;
} hooked;

static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    hooked *hook = context;
    PF_TRY(mut_plan(&hook->job, write, err));
    hook->try_->plans++;
    if (hook->try_->after_plan)
        hook->try_->after_plan(hook->try_->context);
    return SLUICE_OK;
}

void mutate_run(st_graph *graph, mutate_try *try_)
{
    co_mutate_options options = {.path = "m.jsonl"};
    hooked hook = {.job = {.graph = graph, .options = &options, .text = try_->text, .length = strlen(try_->text)},
                   .try_ = try_};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    const co_writer writer = {.adapter = &ad_mutate, .context = &hook, .plan = plan};
    co_request request = {.branch = "main", .operation = try_->operation};
    co_receipt receipt = {0};
    request.operation_given = !pf_id_is_nil(&try_->operation);
    if (!request.operation_given)
        request.operation = pf_id_new();
    try_->plans = 0;
    try_->error = (sluice_error){0};
    sluice_error err = {0};
    ASSERT_OK(mut_request_digest(&options, try_->text, strlen(try_->text), &request.request, &err));
    try_->status = co_write_run(graph, &request, NULL, &executor, &writer, &receipt, &try_->error);
    try_->result = (co_mutate_result){.receipt = receipt,
                                      .inserted = hook.job.inserted,
                                      .updated = hook.job.updated,
                                      .deleted = hook.job.deleted,
                                      .skipped = hook.job.skipped};
    mut_model_free(&hook.job);
}

co_mutate_result mutate_text(st_graph *graph, const char *text)
{
    mutate_try try_ = {.text = text};
    mutate_run(graph, &try_);
    if (try_.status != SLUICE_OK)
        print_error("%s\n%s\n", text, try_.error.text);
    assert_int_equal(try_.status, SLUICE_OK);
    return try_.result;
}

/* ---- looking ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_line(const st_batch *batch, uint64_t row, char **ret_line)
{
    sluice_error err = {0};
    pf_buffer line = {0};
    for (uint32_t i = 0; i < batch->column_count; i++) {
        ASSERT_OK(pf_buffer_append_text(&line, i == 0 ? "[" : ",", &err));
        ASSERT_OK(st_value_json(&batch->columns[i], row, &line, &err));
    }
    ASSERT_OK(pf_buffer_append(&line, "]\n", 3, &err));
    *ret_line = (char *)line.data;
}

static st_scan *scan_of(st_snapshot *snapshot, const char *type)
{
    sluice_error err = {0};
    const st_type_def *def = NULL;
    st_scan *scan = NULL;
    ASSERT_OK(st_snapshot_type(snapshot, type, &def, &err));
    ASSERT_OK(st_scan_open(snapshot, def, NULL, 0, &scan, &err));
    return scan;
}

char *mutate_rows(st_graph *graph, const char *type)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_batch *batch = NULL;
    char **lines = NULL, *text = NULL;
    size_t count = 0, length = 0;
    ASSERT_OK(st_snapshot_open(graph, "main", NULL, &snapshot, &err));
    st_scan *scan = scan_of(snapshot, type);
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        lines = realloc(lines, (count + batch->rows) * sizeof(char *));
        assert_non_null(lines);
        for (uint64_t row = 0; row < batch->rows; row++)
            add_line(batch, row, &lines[count++]);
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    if (count > 0)
        qsort(lines, count, sizeof(char *), by_text);
    for (size_t i = 0; i < count; i++)
        length += strlen(lines[i]);
    text = calloc(length + 1, 1);
    assert_non_null(text);
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t line = strlen(lines[i]);
        memcpy(text + at, lines[i], line);
        at += line;
        free(lines[i]);
    }
    free(lines);
    return text;
}

void mutate_expect(st_graph *graph, const char *type, const char *rows)
{
    char *found = mutate_rows(graph, type);
    assert_string_equal(found, rows);
    free(found);
}

uint32_t mutate_row_ids(st_graph *graph, const char *type, uint64_t *ret_ids, uint32_t room)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_batch *batch = NULL;
    uint32_t count = 0;
    ASSERT_OK(st_snapshot_open(graph, "main", NULL, &snapshot, &err));
    st_scan *scan = scan_of(snapshot, type);
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        for (uint64_t row = 0; row < batch->rows && count < room; row++)
            ret_ids[count++] = batch->row_ids[row];
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    return count;
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

void mutate_expect_whole(st_graph *graph)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
}
