/*
 * Merges killed at each of their calls that change or sync something (L-042, OW-088): the target has all of it or
 * nothing, and is never merged twice; a source that was to go is gone with it, or goes by recovery, or stays because it
 * moved on.
 */
#include "coord/recover.h"
#include "coord/schema_change.h"
#include "merge_fixture.h"
#include <stdlib.h>
#include <string.h>

/* Of the longer sweeps each so many-th call; SLUICE_LONG=1: every one. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 3u
#else
#define STRIDE 1u
#endif
static uint64_t stride(uint64_t calls)
{
    return getenv("SLUICE_LONG") ? 1 : calls * STRIDE;
}

typedef struct death_strike {
    pf_sim_fate fate;
    pf_sim_loss loss;
} death_strike;
static const death_strike strikes[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL},
                                       {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
                                       {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL},
                                       {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST},
                                       {PF_SIM_POWER_LOSS, PF_SIM_RANDOM}};
#define STRIKES (sizeof strikes / sizeof strikes[0])

static merge_fixture prepare(void)
{
    merge_fixture fixture = fixture_make(31);
    branch_make(fixture.graph, "s", NULL);
    change(fixture.graph, "s",
           "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"E\",\"age\":5}}\n"
           "{\"op\":\"update\",\"node\":\"N\",\"key\":\"A\",\"set\":{\"age\":31}}\n"
           "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\"}\n");
    change(fixture.graph, NULL, "{\"op\":\"update\",\"node\":\"N\",\"key\":\"A\",\"set\":{\"name\":\"a\"}}\n");
    return fixture;
}

/* With `wider`, the source added a property, too: then schema and rows go together. */
static bool wider;

static bool is_merged(st_graph *graph)
{
    char *text = content(graph, "main");
    bool has = strstr(text, wider ? "N \"A\" 31 \"a\" 7\n" : "N \"A\" 31 \"a\"\n") != NULL;
    assert_int_equal(strstr(text, "N \"E\" 5") != NULL, has);
    assert_int_equal(strstr(text, "K \"B\"") == NULL, has);
    if (!has)
        assert_non_null(strstr(text, "N \"A\" 30 \"a\"\n"));
    free(text);
    return has;
}

static void widen(st_graph *graph)
{
    static const char text[] =
        "{\"nodes\":{\"N\":{\"key\":\"id\",\"properties\":{\"id\":\"string\",\"age\":\"int32?\",\"name\":\"string?\","
        "\"z\":{\"type\":\"int32?\",\"default\":7}},\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}"
        "}},"
        "\"F\":{\"properties\":{\"x\":\"int64?\"}}},\"edges\":{\"K\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{"
        "\"w\":"
        "\"int64?\"},\"key\":[]},\"L\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{\"w\":\"int64?\"}},\"M\":{\"from\":"
        "\"N\",\"to\":\"N\",\"properties\":{},\"key\":[],\"cardinality\":{\"out\":\"0..1\"}}}}";
    sluice_error err = {0};
    co_receipt receipt;
    const co_schema_request request = {
        .branch = "s", .text = text, .length = sizeof text - 1, .file = "schema.json", .operation = pf_id_new()};
    ASSERT_OK(co_schema_apply(graph, &request, &receipt, &err));
    change(graph, "s", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"W\",\"z\":8}}\n");
}

static bool has_source(st_graph *graph)
{
    uint64_t incarnation;
    return st_ref_read(graph, "s", &incarnation, NULL) == SLUICE_OK;
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

static void survive(pf_sim_disk *disk, const co_merge_options *options, sluice_status status)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    co_gc_report report;
    co_merge_result result;
    wk_executor executor = merge_executor();
    st_graph *graph = fixture_open(disk);
    ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    bool merged = is_merged(graph);
    if (status == SLUICE_OK)
        assert_true(merged);
    if (options->delete_source)
        assert_int_equal(has_source(graph), !merged); /* all of it, once recovery is over */
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    ASSERT_OK(co_merge(graph, options, &executor, &result, &err)); /* never a second merge */
    assert_int_equal(result.receipt.repeated, merged);
    assert_int_equal(result.outcome, CO_MERGE_MERGED);
    assert_int_equal(result.branch_deleted, options->delete_source);
    assert_true(is_merged(graph));
    co_merge_result_free(&result);
    ASSERT_OK(co_gc(graph, false, &report, &err));
    ASSERT_OK(co_gc(graph, true, &report, &err));
    assert_int_equal(report.files + report.attempts, 0);
    assert_true(is_merged(graph));
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    st_graph_close(graph);
}

static void die_everywhere(bool delete_source)
{
    sluice_error err = {0};
    merge_fixture fixture = prepare();
    if (wider)
        widen(fixture.graph);
    wk_executor executor = merge_executor();
    unsigned deaths = 0;
    bool all = getenv("SLUICE_LONG") != NULL;
    for (uint64_t k = 1;; k += wider ? stride(4) : 1) {
        bool struck = false;
        for (unsigned n = 0; n < STRIKES; n++, deaths++) {
            for (unsigned before = all ? 0 : (k + n) % 2; before < (all ? 2 : (k + n) % 2 + 1); before++) {
                pf_sim_disk *disk = NULL;
                co_merge_result result;
                const co_merge_options options = {
                    .source = "s", .delete_source = delete_source, .operation = pf_id_new()};
                ASSERT_OK(pf_sim_disk_clone(fixture.disk, 10 * k + n, &disk, &err));
                st_graph *graph = fixture_open(disk);
                pf_sim_crash_at(st_graph_volume(graph), k, before == 0, strikes[n].fate, strikes[n].loss);
                sluice_status status = co_merge(graph, &options, &executor, &result, NULL);
                co_merge_result_free(&result);
                struck |= pf_sim_is_dead(st_graph_volume(graph));
                st_graph_close(graph);
                survive(disk, &options, status);
                pf_sim_disk_free(disk);
            }
        }
        if (!struck)
            break;
    }
    print_message("%u deaths\n", deaths);
    fixture_free(&fixture);
}

static void a_merge_leaves_all_of_it_or_nothing(void **state)
{
    (void)state;
    die_everywhere(false);
}

static void a_merge_of_schemas_leaves_schema_and_rows_or_neither(void **state)
{
    (void)state;
    wider = true;
    die_everywhere(true);
    wider = false;
}

static void a_merge_that_deletes_its_source_leaves_both_or_neither(void **state)
{
    (void)state;
    die_everywhere(true);
}

static void a_source_that_moved_on_or_is_another_one_stays(void **state) /* L-042, M-07 */
{
    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        sluice_error err = {0};
        merge_fixture fixture = prepare();
        wk_executor executor = merge_executor();
        unsigned stayed = 0;
        for (uint64_t k = 1;; k++) {
            pf_sim_disk *disk = NULL;
            co_merge_result result;
            const co_merge_options options = {.source = "s", .delete_source = true};
            ASSERT_OK(pf_sim_disk_clone(fixture.disk, k, &disk, &err));
            st_graph *graph = fixture_open(disk);
            pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
            (void)co_merge(graph, &options, &executor, &result, NULL);
            co_merge_result_free(&result);
            bool struck = pf_sim_is_dead(st_graph_volume(graph));
            st_graph_close(graph);
            graph = fixture_open(disk);
            if (struck && is_merged(graph) && has_source(graph)) {
                if (again) { /* settles the merge first: then it is gone already */
                    co_branch_receipt receipt;
                    const co_branch_request request = {.name = "s", .operation = pf_id_new()};
                    assert_int_equal(co_branch_delete(graph, &request, &receipt, &err), SLUICE_NOT_FOUND);
                    branch_make(graph, "s", NULL);
                } else {
                    change(graph, "s", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"Z\"}}\n");
                }
                ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
                assert_true(has_source(graph));
                stayed++;
            }
            st_graph_close(graph);
            pf_sim_disk_free(disk);
            if (!struck)
                break;
        }
        assert_true(stayed > 0);
        fixture_free(&fixture);
    }
}

/* A writer of the source died with its intent confirmed: what it wrote is part of the source that is merged. */
static void what_a_dead_writer_of_the_source_had_confirmed_is_merged(void **state)
{
    (void)state;
    sluice_error err = {0};
    merge_fixture fixture = prepare();
    wk_executor executor = merge_executor();
    unsigned settled = 0;
    branch_make(fixture.graph, "x", "s");
    change(fixture.graph, "x", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"X\"}}\n");
    for (uint64_t k = 1;; k++) {
        pf_sim_disk *disk = NULL;
        co_merge_result result;
        const co_merge_options into_source = {.source = "x", .into = "s", .delete_source = true};
        ASSERT_OK(pf_sim_disk_clone(fixture.disk, k, &disk, &err));
        st_graph *graph = fixture_open(disk);
        pf_sim_crash_at(st_graph_volume(graph), k, true, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        (void)co_merge(graph, &into_source, &executor, &result, NULL);
        co_merge_result_free(&result);
        bool struck = pf_sim_is_dead(st_graph_volume(graph));
        st_graph_close(graph);
        graph = fixture_open(disk);
        char *before = content(graph, "s");
        expect_merge(graph, "s", "main", CO_MERGE_MERGED);
        ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
        char *source = content(graph, "s"), *merged = content(graph, "main");
        assert_int_equal(strstr(merged, "N \"X\"") != NULL, strstr(source, "N \"X\"") != NULL);
        settled += strcmp(before, source) != 0;
        free(before);
        free(source);
        free(merged);
        st_graph_close(graph);
        pf_sim_disk_free(disk);
        if (!struck)
            break;
    }
    assert_true(settled > 0); /* some deaths lay between the confirmation and the record */
    fixture_free(&fixture);
}

static void a_merged_source_is_deleted_also_when_there_was_nothing_to_merge(void **state)
{
    (void)state;
    sluice_error err = {0};
    merge_fixture fixture = prepare();
    wk_executor executor = merge_executor();
    co_merge_result result;
    co_merge_options options = {.source = "s", .delete_source = true};
    expect_merge(fixture.graph, "s", "main", CO_MERGE_MERGED);
    ASSERT_OK(co_merge(fixture.graph, &options, &executor, &result, &err));
    assert_int_equal(result.outcome, CO_MERGE_UP_TO_DATE);
    assert_true(result.branch_deleted && !has_source(fixture.graph));
    options.source = "main";
    ASSERT_FAILS(SLUICE_USAGE, co_merge(fixture.graph, &options, &executor, &result, &err));
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_leaves_all_of_it_or_nothing),
        cmocka_unit_test(a_merge_of_schemas_leaves_schema_and_rows_or_neither),
        cmocka_unit_test(a_merge_that_deletes_its_source_leaves_both_or_neither),
        cmocka_unit_test(a_source_that_moved_on_or_is_another_one_stays),
        cmocka_unit_test(what_a_dead_writer_of_the_source_had_confirmed_is_merged),
        cmocka_unit_test(a_merged_source_is_deleted_also_when_there_was_nothing_to_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
