/*
 * What branches and differences cost on a graph with many edges, in bytes that the volume reads (mapping a file counts
 * its whole length) and writes: creating a branch and merging it by a fast-forward, less than a mebibyte, whatever the
 * size (M-08); a merge of one row and the difference that it makes follow from what they touch. SLUICE_LONG=1: five
 * million edges.
 */
#include "coord/branch.h"
#include "coord/merge.h"
#include "coord/mutate.h"
#include "load_fixture.h"
#include "store/read/diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 1000u
#define MIB   (UINT64_C(1) << 20)

static const char schema[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}},"
                             "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"properties\":{\"w\":\"int32?\"}}}}";

static void fill(load_fixture *fixture, unsigned edges)
{
    sluice_error err = {0};
    pf_buffer text = {0};
    ASSERT_OK(pf_buffer_append_text(&text, "id\n", &err));
    for (unsigned i = 0; i < NODES; i++)
        ASSERT_OK(pf_buffer_append_format(&text, &err, "%u\n", i));
    load_fixture_write(fixture, "p.csv", text.data, text.length);
    pf_buffer_free(&text);
    ASSERT_OK(pf_buffer_append_text(&text, "from,to,w\n", &err));
    for (unsigned i = 0; i < edges; i++)
        ASSERT_OK(pf_buffer_append_format(&text, &err, "%u,%u,%u\n", i % NODES, (i / NODES) % NODES, i));
    load_fixture_write(fixture, "k.csv", text.data, text.length);
    pf_buffer_free(&text);
    (void)load_fixture_load(fixture, "P=p.csv K=k.csv");
}

static void insert_edge(st_graph *graph, const char *branch)
{
    static const char line[] = "{\"op\":\"insert\",\"edge\":\"K\",\"from\":1,\"to\":2,\"set\":{\"w\":7}}\n";
    sluice_error err = {0};
    co_mutate_result result = {0};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    const co_mutate_options options = {.branch = branch, .path = "text"};
    ASSERT_OK(co_mutate_text(graph, &options, &executor, line, sizeof line - 1, &result, &err));
}

static uint64_t bytes_of(st_graph *graph, const char *what)
{
    const pf_counters *made = pf_volume_counters(st_graph_volume(graph));
    print_message("%s: %llu bytes read, %llu written\n", what, (unsigned long long)made->bytes_read,
                  (unsigned long long)made->bytes_written);
    return made->bytes_read + made->bytes_written;
}

static void merge_costs(load_fixture *fixture, co_merge_outcome outcome, const char *what, uint64_t most)
{
    sluice_error err = {0};
    co_merge_result result;
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    const co_merge_options options = {.source = "b"};
    st_graph *graph = load_fixture_open(fixture); /* nothing is known of the table yet, but where the logs end */
    static const char *const branches[] = {NULL, "b"};
    for (unsigned i = 0; i < 2; i++) {
        st_snapshot *snapshot = NULL;
        ASSERT_OK(st_snapshot_open(graph, branches[i], NULL, &snapshot, &err));
        st_snapshot_close(snapshot);
    }
    pf_volume_counters_reset(st_graph_volume(graph));
    ASSERT_OK(co_merge(graph, &options, &executor, &result, &err));
    assert_int_equal(result.outcome, outcome);
    assert_true(bytes_of(graph, what) < most);
    co_merge_result_free(&result);
    st_graph_close(graph);
}

static sluice_status count_change(void *context, const st_row_change *change, sluice_error *err)
{
    (void)change;
    (void)err;
    ++*(unsigned *)context;
    return SLUICE_OK;
}

/* The last commit of the branch against the one before it, by a process that knows nothing yet. */
static void diff_costs(load_fixture *fixture, const char *branch, const char *what, uint64_t most)
{
    sluice_error err = {0};
    st_snapshot *from = NULL, *to = NULL;
    unsigned changes = 0;
    char before[24];
    st_graph *graph = load_fixture_open(fixture);
    pf_volume_counters_reset(st_graph_volume(graph));
    ASSERT_OK(st_snapshot_open(graph, branch, NULL, &to, &err));
    const st_view *view = st_snapshot_view(to);
    (void)snprintf(before, sizeof before, "%llu", (unsigned long long)view->generation - 1);
    ASSERT_OK(st_snapshot_open(graph, branch, before, &from, &err));
    for (uint32_t i = 0; i < view->schema->type_count; i++)
        ASSERT_OK(st_diff_table(from, to, view->schema->types[i].table, count_change, &changes, &err));
    assert_int_equal(changes, 1);
    assert_true(bytes_of(graph, what) < most);
    st_snapshot_close(from);
    st_snapshot_close(to);
    st_graph_close(graph);
}

static void branches_cost_the_same_at_any_size(void **state)
{
    (void)state;
    sluice_error err = {0};
    load_fixture fixture;
    co_branch_receipt receipt;
    const co_branch_request request = {.name = "b", .operation = pf_id_new()};
    load_fixture_make(&fixture, schema);
    fill(&fixture, getenv("SLUICE_LONG") ? 5000000 : 150000);
    st_graph *graph = load_fixture_open(&fixture);
    pf_volume_counters_reset(st_graph_volume(graph));
    ASSERT_OK(co_branch_create(graph, &request, &receipt, &err));
    assert_true(bytes_of(graph, "branch create") < MIB);
    insert_edge(graph, "b");
    merge_costs(&fixture, CO_MERGE_FAST_FORWARD, "fast-forward of one edge", MIB);
    insert_edge(graph, "b");
    insert_edge(graph, NULL);
    merge_costs(&fixture, CO_MERGE_MERGED, "merge of one edge", 16 * MIB);
    diff_costs(&fixture, NULL, "difference of one edge merged", MIB);
    diff_costs(&fixture, "b", "difference of one edge inserted", MIB);
    st_graph_close(graph);
    load_fixture_expect_clean(&fixture);
    load_fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(branches_cost_the_same_at_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
