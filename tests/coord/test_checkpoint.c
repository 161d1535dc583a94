/*
 * Making and deleting a checkpoint that die at any call are whole or not there; a name that is there leads to its
 * commit.
 */
#include "coord/checkpoint.h"
#include "die.h"
#include "tests/support/test.h"
#include <string.h>

static const struct {
    pf_sim_fate fate;
    pf_sim_loss loss;
} strikes[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL},
               {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
               {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL},
               {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST},
               {PF_SIM_POWER_LOSS, PF_SIM_RANDOM}};

static sluice_status change(st_graph *graph, bool creates, sluice_error *err)
{
    co_checkpoint_request request = {.name = "kept", .operation = pf_id_new()};
    co_checkpoint_receipt receipt;
    return creates ? co_checkpoint_create(graph, &request, &receipt, err)
                   : co_checkpoint_delete(graph, &request, &receipt, err);
}

/* Is the checkpoint there? Then it leads to the state of generation 2, which is not the head. */
static bool is_there(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_control control = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(st_control_read(graph, &control, &err));
    bool there = st_control_find_checkpoint(&control, "kept") != NULL;
    st_control_free(&control);
    st_snapshot *snapshot = NULL;
    sluice_status status = st_snapshot_open(graph, NULL, "kept", &snapshot, &err);
    assert_int_equal(status, there ? SLUICE_OK : SLUICE_USAGE);
    if (there)
        assert_int_equal(st_snapshot_view(snapshot)->generation, 2);
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    return there;
}

static pf_sim_disk *prepare(bool with_checkpoint)
{
    sluice_error err = {0};
    toy_writer one = toy_of("A", 1, 2);
    pf_sim_disk *disk = toy_disk(41);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &one, NULL, NULL, &err));
    if (with_checkpoint)
        ASSERT_OK(change(graph, true, &err));
    st_graph_close(graph);
    return disk;
}

static void die_everywhere(bool creates)
{
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(!creates), *disk = NULL;
    uint64_t calls = 1;
    for (uint64_t k = 0; k <= calls; k++) {
        for (size_t s = 0; s < sizeof strikes / sizeof strikes[0]; s++) {
            for (unsigned before = 0; before < 2; before++) {
                ASSERT_OK(pf_sim_disk_clone(origin, 10 * k + s, &disk, &err));
                st_graph *graph = toy_open(disk);
                uint64_t start = pf_sim_calls(st_graph_volume(graph));
                if (k)
                    pf_sim_crash_at(st_graph_volume(graph), k, before, strikes[s].fate, strikes[s].loss);
                sluice_status status = change(graph, creates, NULL);
                if (!k)
                    calls = pf_sim_calls(st_graph_volume(graph)) - start;
                st_graph_close(graph);
                assert_true(status == SLUICE_OK || k);
                die_expect_next_write(disk, 100); /* the head moves on */
                bool there = is_there(disk);
                if (status == SLUICE_OK)
                    assert_int_equal(there, creates);
                die_expect_no_litter(disk);
                assert_int_equal(is_there(disk), there);
                graph = toy_open(disk);
                ASSERT_OK(change(graph, !there, &err));
                st_graph_close(graph);
                pf_sim_disk_free(disk);
            }
        }
    }
    assert_true(calls >= 2);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void making_one_that_dies_at_any_call_is_whole_or_not_there(void **state)
{
    (void)state;
    die_everywhere(true);
}

static void deleting_one_that_dies_at_any_call_is_whole_or_not_there(void **state)
{
    (void)state;
    die_everywhere(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_one_that_dies_at_any_call_is_whole_or_not_there),
        cmocka_unit_test(deleting_one_that_dies_at_any_call_is_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
