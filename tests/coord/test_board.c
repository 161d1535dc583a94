/*
 * The board of the intents file (coord/board.h): what a handle may pass over, and what it must look at.
 */
#include "coord/board.h"
#include "tests/support/test.h"
#include "toy.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct board_scene {
    pf_sim_disk *disk;
    st_graph *reader, *writer; /* two processes, for all that they know */
} board_scene;

static int setup(void **state)
{
    board_scene *scene = calloc(1, sizeof *scene);
    scene->disk = toy_disk(5);
    scene->reader = toy_open(scene->disk);
    scene->writer = toy_open(scene->disk);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    board_scene *scene = *state;
    st_graph_close(scene->reader);
    st_graph_close(scene->writer);
    pf_sim_disk_free(scene->disk);
    pf_sim_world_remove();
    free(scene);
    return 0;
}

/* How many reads a look takes, and which slots it leaves in doubt. */
static uint64_t look(st_graph *graph, bool used[CO_SLOTS])
{
    sluice_error err = {0};
    pf_file *file = NULL;
    ASSERT_OK(pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, &file, &err));
    uint64_t before = pf_volume_counters(st_graph_volume(graph))->reads;
    ASSERT_OK(co_board_look(graph, file, used, &err));
    uint64_t reads = pf_volume_counters(st_graph_volume(graph))->reads - before;
    ASSERT_OK(pf_close(file, &err));
    return reads;
}

static void arm(co_slot *slot)
{
    sluice_error err = {0};
    co_intent intent = {.version = 1, .plan_inline = true};
    (void)snprintf(intent.kind, sizeof intent.kind, "load");
    (void)snprintf(intent.branch, sizeof intent.branch, "main");
    intent.scope.incarnation = 1;
    intent.scope.operation = pf_id_new();
    intent.scope.commit = pf_id_new();
    ASSERT_OK(co_slot_write(slot, &intent, CO_PHASE_CONFIRMED, &err));
    co_intent_free(&intent);
}

static void a_look_when_nothing_changed_is_one_read(void **state)
{
    board_scene *scene = *state;
    bool used[CO_SLOTS];
    assert_true(look(scene->reader, used) > CO_SLOTS);
    assert_int_equal(look(scene->reader, used), 1);
    for (uint32_t i = 0; i < CO_SLOTS; i++)
        assert_false(used[i]);
}

static void an_intent_is_seen_by_who_had_looked_before_until_it_is_retired(void **state)
{
    board_scene *scene = *state;
    sluice_error err = {0};
    bool used[CO_SLOTS];
    co_slot slot;
    (void)look(scene->reader, used);
    ASSERT_OK(co_slot_take(st_graph_volume(scene->writer), &slot, &err));
    for (unsigned round = 0; round < 3; round++) {
        arm(&slot);
        (void)look(scene->reader, used);
        assert_true(used[slot.number]);
        (void)look(scene->reader, used);
        assert_true(used[slot.number]);
        ASSERT_OK(co_slot_retire(&slot, &err));
        (void)look(scene->reader, used);
        assert_false(used[slot.number]);
        assert_int_equal(look(scene->reader, used), 1);
    }
    co_slot_release(&slot);
}

/* Announced, looked at, and only then written: the look in between must not be taken for the last word. */
static void a_frame_written_behind_its_announcement_is_seen(void **state)
{
    board_scene *scene = *state;
    sluice_error err = {0};
    bool used[CO_SLOTS];
    co_slot slot;
    ASSERT_OK(co_slot_take(st_graph_volume(scene->writer), &slot, &err));
    for (unsigned round = 0; round < 2; round++) {
        ASSERT_OK(co_board_announce(slot.file, slot.number, slot.sequence + 1, &err));
        (void)look(scene->reader, used);
        assert_false(used[slot.number]);
        assert_true(look(scene->reader, used) > 1);
        arm(&slot); /* announces the same number */
        (void)look(scene->reader, used);
        assert_true(used[slot.number]);
        ASSERT_OK(co_slot_retire(&slot, &err));
    }
    co_slot_release(&slot);
}

static void what_was_put_aside_is_listed_by_who_had_found_nothing(void **state)
{
    board_scene *scene = *state;
    sluice_error err = {0};
    pf_file *file = NULL;
    bool empty = true;
    ASSERT_OK(pf_open(st_graph_volume(scene->reader), ST_INTENTS_FILE, PF_WRITE, &file, &err));
    ASSERT_OK(co_board_look_quarantine(scene->reader, file, &empty, &err));
    assert_false(empty);
    co_board_quarantine_is_empty(scene->reader);
    ASSERT_OK(co_board_look_quarantine(scene->reader, file, &empty, &err));
    assert_true(empty);
    ASSERT_OK(co_board_announce_quarantine(file, &err));
    ASSERT_OK(co_board_look_quarantine(scene->reader, file, &empty, &err));
    assert_false(empty);
    ASSERT_OK(pf_close(file, &err));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_look_when_nothing_changed_is_one_read),
        WITH(an_intent_is_seen_by_who_had_looked_before_until_it_is_retired),
        WITH(a_frame_written_behind_its_announcement_is_seen),
        WITH(what_was_put_aside_is_listed_by_who_had_found_nothing),
    };
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
