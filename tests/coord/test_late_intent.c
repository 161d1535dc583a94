/*
 * A writer of another pool dies with a confirmed intent between my barrier (A) and my gates (C): it is found under the
 * gates, everything goes back to A with no gate held, it is finished first, and my plan sees what it did (OW-045,
 * L-032).
 */
#include "coord/intent.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdlib.h>

typedef struct late_scene {
    pf_sim_disk *disk;
    toy_writer other; /* who dies */
    bool dead;
    unsigned looked;
    bool gates_free, finished;
} late_scene;

/* Kills a write right behind the sync of its intent: the call is counted on a copy of the disk. */
static void die_confirmed(void *context)
{
    late_scene *scene = context;
    sluice_error err = {0};
    if (scene->dead)
        return;
    for (uint64_t k = 1;; k++) {
        pf_sim_disk *copy = NULL;
        toy_writer other = scene->other;
        ASSERT_OK(pf_sim_disk_clone(scene->disk, k, &copy, &err));
        st_graph *graph = toy_open(copy);
        pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        sluice_status status = toy_write(graph, &other, NULL, NULL, NULL);
        st_graph_close(graph);
        bool armed = die_look(copy).confirmed;
        pf_sim_disk_free(copy);
        assert_int_not_equal(status, SLUICE_OK);
        if (!armed)
            continue;
        graph = toy_open(scene->disk);
        pf_sim_crash_at(st_graph_volume(graph), k + 1, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        assert_int_not_equal(toy_write(graph, &scene->other, NULL, NULL, NULL), SLUICE_OK);
        st_graph_close(graph);
        scene->dead = true;
        assert_true(die_look(scene->disk).confirmed);
        return;
    }
}

/* What stands when I plan for the second time: its rows, and no gate of mine. */
static void look_again(void *context)
{
    late_scene *scene = context;
    sluice_error err = {0};
    if (scene->looked++ != 1)
        return;
    st_graph *graph = toy_open(scene->disk);
    scene->finished = !die_look(scene->disk).confirmed && toy_keys(graph, "A", (int64_t[8]){0}, 8) == 2;
    toy_writer alone = toy_of("A", 50, 1); /* needs the table's gate to itself */
    toy_options options = {.wait_ms = 1};
    alone.exclusive = true;
    scene->gates_free = toy_write(graph, &alone, &options, NULL, &err) == SLUICE_OK;
    st_graph_close(graph);
}

static void with_late_intent(int64_t my_key, sluice_status want)
{
    sluice_error err = {0};
    co_receipt receipt = {0};
    late_scene scene = {.disk = toy_disk(5), .other = toy_of("A", 10, 2)};
    toy_writer mine = toy_of("A", my_key, 2);
    mine.before_plan = look_again;
    mine.after_plan = die_confirmed;
    mine.context = &scene;
    st_graph *graph = toy_open(scene.disk);
    ASSERT_FAILS(want, toy_write(graph, &mine, NULL, &receipt, &err));
    assert_true(scene.dead && scene.finished && scene.gates_free);
    assert_int_equal(mine.plans, 2);
    assert_int_equal(mine.payloads, 1); /* it goes back to A, not to the beginning */
    const int64_t both[] = {10, 11, 20, 21, 50}, theirs[] = {10, 11, 50};
    assert_true(want == SLUICE_OK ? toy_holds(graph, "A", both, 5) : toy_holds(graph, "A", theirs, 3));
    st_graph_close(graph);
    die_expect_settled(scene.disk);
    die_expect_whole(scene.disk);
    pf_sim_disk_free(scene.disk);
    pf_sim_world_remove();
}

static void a_dead_intent_that_appears_after_the_barrier_is_finished_first(void **state)
{
    (void)state;
    with_late_intent(20, SLUICE_OK);
}

static void and_what_it_did_counts(void **state)
{
    (void)state;
    with_late_intent(10, SLUICE_KEY_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_intent_that_appears_after_the_barrier_is_finished_first),
        cmocka_unit_test(and_what_it_did_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
