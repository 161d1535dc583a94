/*
 * A change of the schema that dies at any of its calls is there as a whole or not at all; what was confirmed is rolled
 * forward; the schema and the state that one sees always belong together.
 */
#include "coord/schema_change.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char newer[] = "{\"nodes\":{\"A\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"note\":\"string?\"}},"
                            "\"BB\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"},\"renamed_from\":\"B\"},"
                            "\"C\":{\"properties\":{\"x\":\"int32\"}}}}";
static const int64_t keys[] = {1, 2};

typedef struct strike {
    pf_sim_fate fate;
    pf_sim_loss loss;
} strike;
static const strike strikes[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL},
                                 {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
                                 {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL},
                                 {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST},
                                 {PF_SIM_POWER_LOSS, PF_SIM_RANDOM}};

static pf_sim_disk *prepare(void)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", keys[0], 2);
    pf_sim_disk *disk = toy_disk(31);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    st_graph_close(graph);
    return disk;
}

static sluice_status apply(st_graph *graph, co_receipt *ret_receipt, sluice_error *err)
{
    co_schema_request request = {
        .text = newer, .length = sizeof newer - 1, .file = "newer.json", .operation = pf_id_new()};
    return co_schema_apply(graph, &request, ret_receipt, err);
}

/* Whether the newer schema stands; both schema and entries say the same. */
static bool is_new(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_graph *graph = toy_open(disk);
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    const st_view *view = st_snapshot_view(snapshot);
    const st_type_def *c = st_schema_find(view->schema, "C"), *b = st_schema_find(view->schema, "BB");
    assert_int_equal(c != NULL, b != NULL);
    assert_int_equal(c != NULL, st_schema_find(view->schema, "B") == NULL);
    assert_int_equal(view->table_count, c ? 3 : 2);
    for (uint32_t i = 0; i < view->table_count; i++) {
        const st_type_def *type = st_schema_find_table(view->schema, view->tables[i].id);
        assert_non_null(type);
        assert_string_equal(type->name, view->tables[i].name);
        assert_true(view->tables[i].live);
    }
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    return c != NULL;
}

static void survive(pf_sim_disk *disk, bool acknowledged)
{
    die_found found = die_look(disk);
    (void)is_new(disk); /* before recovery as well */
    die_recover(disk);
    bool there = is_new(disk);
    die_expect_settled(disk);
    if (acknowledged || found.confirmed)
        assert_true(there);
    die_expect_next_write(disk, 100);
    st_graph *graph = toy_open(disk);
    static const int64_t all[] = {1, 2, 100};
    assert_true(toy_holds(graph, "A", all, 3));
    st_graph_close(graph);
    die_expect_no_litter(disk);
}

static void a_change_that_dies_at_any_call_is_whole_or_not_there(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *disk = NULL;
    uint64_t calls = 1;
    for (uint64_t k = 0; k <= calls; k++) {
        for (size_t s = 0; s < sizeof strikes / sizeof strikes[0]; s++) {
            for (unsigned before = 0; before < 2; before++) {
                co_receipt receipt = {0};
                ASSERT_OK(pf_sim_disk_clone(origin, 10 * k + s, &disk, &err));
                st_graph *graph = toy_open(disk);
                uint64_t start = pf_sim_calls(st_graph_volume(graph));
                if (k)
                    pf_sim_crash_at(st_graph_volume(graph), k, before, strikes[s].fate, strikes[s].loss);
                sluice_status status = apply(graph, &receipt, NULL);
                if (!k)
                    calls = pf_sim_calls(st_graph_volume(graph)) - start;
                st_graph_close(graph);
                assert_true(status == SLUICE_OK || k);
                survive(disk, status == SLUICE_OK);
                if (before)
                    die_expect_whole(disk);
                pf_sim_disk_free(disk);
            }
        }
    }
    assert_true(calls >= 10);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- rivals ---- */

static void insert_meanwhile(void *context)
{
    pf_sim_disk *disk = context;
    sluice_error err = {0};
    toy_writer rival = toy_of("A", 50, 1);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &rival, NULL, NULL, &err));
    st_graph_close(graph);
}

static void change_meanwhile(void *context)
{
    pf_sim_disk *disk = context;
    sluice_error err = {0};
    co_receipt receipt = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(apply(graph, &receipt, &err));
    st_graph_close(graph);
}

static void a_write_that_meets_a_change_is_made_again_under_the_new_schema(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_receipt receipt = {0};
    pf_sim_disk *disk = prepare();
    toy_writer toy = toy_of("A", 10, 1);
    static const int64_t all[] = {1, 2, 10};
    toy.after_plan = change_meanwhile;
    toy.context = disk;
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, &receipt, &err));
    assert_true(toy.payloads >= 2); /* what was staged under the older schema is made anew */
    assert_true(toy_holds(graph, "A", all, 3));
    st_graph_close(graph);
    assert_true(is_new(disk));
    die_expect_whole(disk);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void rows_that_come_beside_a_change_are_kept(void **state)
{
    (void)state;
    static const int64_t all[] = {1, 2, 50};
    sluice_error err = {0};
    co_receipt receipt = {0};
    pf_sim_disk *disk = prepare();
    st_graph *graph = toy_open(disk);
    insert_meanwhile(disk);
    ASSERT_OK(apply(graph, &receipt, &err)); /* the handle had seen the state before */
    assert_true(toy_holds(graph, "A", all, 3));
    ASSERT_OK(apply(graph, &receipt, &err));
    assert_false(receipt.committed); /* nothing to do */
    st_graph_close(graph);
    die_expect_whole(disk);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_that_dies_at_any_call_is_whole_or_not_there),
        cmocka_unit_test(a_write_that_meets_a_change_is_made_again_under_the_new_schema),
        cmocka_unit_test(rows_that_come_beside_a_change_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
