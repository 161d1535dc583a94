/* The fixture of merges (merge_fixture.h). */
#include "merge_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_text[] =
    "{\"nodes\":{\"N\":{\"key\":\"id\",\"properties\":{\"id\":\"string\",\"age\":\"int32?\",\"name\":\"string?\"},"
    "\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}},"
    "\"F\":{\"properties\":{\"x\":\"int64?\"}}},"
    "\"edges\":{\"K\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{\"w\":\"int64?\"},\"key\":[]},"
    "\"L\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{\"w\":\"int64?\"}},"
    "\"M\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{},\"key\":[],\"cardinality\":{\"out\":\"0..1\"}}}}";

static const char first_rows[] = "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"A\",\"age\":30}}\n"
                                 "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"B\"}}\n"
                                 "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"C\"}}\n"
                                 "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"D\"}}\n"
                                 "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\",\"set\":{\"w\":1}}\n"
                                 "{\"op\":\"insert\",\"edge\":\"L\",\"from\":\"B\",\"to\":\"C\",\"set\":{\"w\":1}}\n";

st_graph *fixture_open(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_WRITE, &graph, &err));
    return graph;
}

merge_fixture fixture_make(uint64_t seed)
{
    sluice_error err = {0};
    merge_fixture fixture = {0};
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    pf_id id;
    pf_sim_world_install(seed);
    ASSERT_OK(pf_sim_disk_new(seed, &fixture.disk, &err));
    ASSERT_OK(pf_sim_actor(fixture.disk, "graph", &volume, &err));
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "schema.json", &schema, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    st_schema_free(schema);
    pf_volume_close(volume);
    fixture.graph = fixture_open(fixture.disk);
    change(fixture.graph, NULL, first_rows);
    return fixture;
}

void fixture_free(merge_fixture *fixture)
{
    st_graph_close(fixture->graph);
    pf_sim_disk_free(fixture->disk);
    pf_sim_world_remove();
}

void branch_make(st_graph *graph, const char *name, const char *from)
{
    sluice_error err = {0};
    co_branch_receipt receipt;
    const co_branch_request request = {.name = name, .from = from, .operation = pf_id_new()};
    ASSERT_OK(co_branch_create(graph, &request, &receipt, &err));
}

void branch_remove(st_graph *graph, const char *name)
{
    sluice_error err = {0};
    co_branch_receipt receipt;
    const co_branch_request request = {.name = name, .operation = pf_id_new()};
    ASSERT_OK(co_branch_delete(graph, &request, &receipt, &err));
}

wk_executor merge_executor(void)
{
    return (wk_executor){.workers = 1, .epoch = pf_id_new()};
}

sluice_status try_change(st_graph *graph, const char *branch, const char *text)
{
    co_mutate_result result = {0};
    wk_executor executor = merge_executor();
    const co_mutate_options options = {.branch = branch, .path = "text"};
    sluice_error err = {0};
    sluice_status status = co_mutate_text(graph, &options, &executor, text, strlen(text), &result, &err);
    if (status != SLUICE_OK)
        print_message("%s %s\n", err.message, err.text);
    return status;
}

void change(st_graph *graph, const char *branch, const char *text)
{
    assert_int_equal(try_change(graph, branch, text), SLUICE_OK);
}

/* ---- content ---- */

typedef struct lines {
    char **items;
    size_t count;
} lines;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_row(lines *all, const char *type, const st_batch *batch, uint64_t row)
{
    sluice_error err = {0};
    pf_buffer text = {0};
    ASSERT_OK(pf_buffer_append_text(&text, type, &err));
    for (uint32_t i = 0; i < batch->column_count; i++) {
        ASSERT_OK(pf_buffer_append_text(&text, " ", &err));
        ASSERT_OK(st_value_json(&batch->columns[i], row, &text, &err));
    }
    all->items = realloc(all->items, (all->count + 1) * sizeof(char *));
    assert_non_null(all->items);
    all->items[all->count++] = strndup((const char *)text.data, text.length);
    pf_buffer_free(&text);
}

static void add_type(lines *all, st_snapshot *snapshot, const st_type_def *type)
{
    sluice_error err = {0};
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        for (uint64_t row = 0; row < batch->rows; row++)
            add_row(all, type->name, batch, row);
    }
    st_scan_close(scan);
}

char *content(st_graph *graph, const char *branch)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    lines all = {0};
    size_t length = 1;
    ASSERT_OK(st_snapshot_open(graph, branch, NULL, &snapshot, &err));
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    for (uint32_t i = 0; i < schema->type_count; i++)
        add_type(&all, snapshot, &schema->types[i]);
    st_snapshot_close(snapshot);
    if (all.count)
        qsort(all.items, all.count, sizeof(char *), by_text);
    for (size_t i = 0; i < all.count; i++)
        length += strlen(all.items[i]) + 1;
    char *text = calloc(1, length);
    assert_non_null(text);
    for (size_t i = 0, at = 0; i < all.count; i++) {
        at += (size_t)snprintf(text + at, length - at, "%s\n", all.items[i]);
        free(all.items[i]);
    }
    free(all.items);
    return text;
}

void expect_same_content(st_graph *graph, const char *one, const char *two)
{
    char *left = content(graph, one), *right = content(graph, two);
    assert_string_equal(left, right);
    free(left);
    free(right);
}

pf_id head_of(st_graph *graph, const char *branch)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, branch, NULL, &snapshot, &err));
    pf_id head = st_snapshot_view(snapshot)->head;
    st_snapshot_close(snapshot);
    return head;
}

/* ---- merging ---- */

sluice_status merge(st_graph *graph, const char *source, const char *into, co_merge_rule rule,
                    co_merge_result *ret_result)
{
    sluice_error err = {0};
    wk_executor executor = merge_executor();
    const co_merge_options options = {.source = source, .into = into, .rule = rule};
    sluice_status status = co_merge(graph, &options, &executor, ret_result, &err);
    if (status != SLUICE_OK && status != SLUICE_MERGE_CONFLICT)
        print_message("%s\n", err.message);
    return status;
}

void expect_merge(st_graph *graph, const char *source, const char *into, co_merge_outcome outcome)
{
    co_merge_result result;
    pf_id before = head_of(graph, into);
    sluice_status status = merge(graph, source, into, CO_MERGE_FAIL, &result);
    for (uint32_t i = 0; i < result.conflict_count; i++)
        print_message("%s %s %s: %s\n", co_conflict_kind_name(result.conflicts[i].kind), result.conflicts[i].type,
                      result.conflicts[i].key, result.conflicts[i].text);
    assert_int_equal(status, SLUICE_OK);
    assert_int_equal(result.outcome, outcome);
    assert_int_equal(result.receipt.committed, outcome != CO_MERGE_UP_TO_DATE);
    pf_id after = head_of(graph, into);
    assert_int_equal(pf_id_equal(&before, &after), outcome == CO_MERGE_UP_TO_DATE);
    co_merge_result_free(&result);
}

void expect_conflict(st_graph *graph, const char *source, const char *into, co_conflict_kind kind)
{
    co_merge_result result;
    pf_id before = head_of(graph, into);
    char *held = content(graph, into);
    assert_int_equal(merge(graph, source, into, CO_MERGE_FAIL, &result), SLUICE_MERGE_CONFLICT);
    assert_int_equal(result.conflicts_found, 1);
    assert_int_equal(result.conflicts[0].kind, kind);
    pf_id after = head_of(graph, into);
    char *holds = content(graph, into);
    assert_true(pf_id_equal(&before, &after));
    assert_string_equal(held, holds);
    free(held);
    free(holds);
    co_merge_result_free(&result);
}
