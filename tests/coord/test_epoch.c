/*
 * Epochs of regions: what was given up is voided by whoever writes next from the region in its place, once, and a
 * process that still wakes up with the old epoch publishes nothing, on no branch (DESIGN 5, OW-051).
 */
#include "coord/epoch.h"
#include "die.h"
#include "tests/support/test.h"

typedef struct epoch_scene {
    pf_sim_disk *disk;
    pf_id old;
    bool ran;
} epoch_scene;

static uint32_t voided(pf_sim_disk *disk, const pf_id *epoch)
{
    sluice_error err = {0};
    st_control control = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(st_control_read(graph, &control, &err));
    uint32_t count = control.voided_count;
    assert_true(count == 0 || st_control_is_voided(&control, epoch));
    st_control_free(&control);
    st_graph_close(graph);
    return count;
}

static uint64_t control_records(st_graph *graph)
{
    sluice_error err = {0};
    uint64_t records = 0;
    ASSERT_OK(st_control_verify(graph, &records, &err));
    return records;
}

/* A write from the region that took the place of `old`. */
static sluice_status write_anew(st_graph *graph, const pf_id *old, int64_t key)
{
    wk_executor executor = toy_executor();
    toy_options options = {.executor = &executor};
    toy_writer toy = toy_of("A", key, 1);
    executor.given_up = old;
    executor.given_up_count = 1;
    return toy_write(graph, &toy, &options, NULL, NULL);
}

static void give_up_the_region(void *context)
{
    epoch_scene *scene = context;
    if (scene->ran)
        return;
    scene->ran = true;
    st_graph *graph = toy_open(scene->disk);
    assert_int_equal(write_anew(graph, &scene->old, 20), SLUICE_OK);
    st_graph_close(graph);
}

static void a_process_of_a_given_up_region_publishes_nothing(void **state)
{
    (void)state;
    sluice_error err = {0};
    epoch_scene scene = {.disk = toy_disk(3), .old = pf_id_new()};
    wk_executor executor = toy_executor();
    toy_options options = {.executor = &executor};
    toy_writer toy = toy_of("A", 10, 2);
    executor.epoch = scene.old;
    toy.after_plan = give_up_the_region;
    toy.context = &scene;
    st_graph *graph = toy_open(scene.disk);
    ASSERT_FAILS(SLUICE_FENCED, toy_write(graph, &toy, &options, NULL, &err));
    assert_true(scene.ran);
    assert_int_equal(err.committed, SLUICE_FALSE);
    const int64_t theirs[] = {20};
    assert_true(toy_holds(graph, "A", theirs, 1));
    st_graph_close(graph);
    die_recover(scene.disk);
    die_expect_settled(scene.disk);
    die_expect_no_litter(scene.disk);
    die_expect_whole(scene.disk);
    pf_sim_disk_free(scene.disk);
    pf_sim_world_remove();
}

static void it_is_voided_by_one_record_however_many_write(void **state)
{
    (void)state;
    pf_sim_disk *disk = toy_disk(4);
    pf_id old = pf_id_new();
    st_graph *graph = toy_open(disk);
    uint64_t before = control_records(graph);
    for (int64_t key = 1; key < 6; key++)
        assert_int_equal(write_anew(graph, &old, key), SLUICE_OK);
    assert_int_equal(control_records(graph), before + 1);
    st_graph_close(graph);
    assert_int_equal(voided(disk, &old), 1);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void who_dies_while_voiding_is_made_up_for_by_the_next(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = toy_disk(5);
    pf_id old = pf_id_new();
    for (uint64_t k = 1;; k++) {
        static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL};
        pf_sim_disk *disk = NULL;
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        st_graph *graph = toy_open(disk);
        pf_sim_crash_at(st_graph_volume(graph), k, true, PF_SIM_DIE, losses[k % 2]);
        sluice_status status = write_anew(graph, &old, 10);
        bool dead = pf_sim_is_dead(st_graph_volume(graph));
        st_graph_close(graph);
        assert_true(dead || status == SLUICE_OK);
        die_recover(disk);
        graph = toy_open(disk);
        bool stands = toy_keys(graph, "A", (int64_t[8]){0}, 8) == 1;
        assert_int_equal(write_anew(graph, &old, stands ? 11 : 10), SLUICE_OK);
        st_graph_close(graph);
        assert_int_equal(voided(disk, &old), 1);
        die_expect_whole(disk);
        pf_sim_disk_free(disk);
        if (!dead)
            break;
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_a_given_up_region_publishes_nothing),
        cmocka_unit_test(it_is_voided_by_one_record_however_many_write),
        cmocka_unit_test(who_dies_while_voiding_is_made_up_for_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
