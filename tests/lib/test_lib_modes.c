/*
 * Programs that write to one graph of mode single or queued: who comes while another writes is refused before it does
 * anything, or waits until that one is done, and may leave meanwhile.
 */
#include "lib_fixture.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\":{\"Note\":{\"properties\":{\"text\":\"string?\"}}},\"edges\":{}}";

typedef struct shared { /* by the processes of a test */
    unsigned inside;    /* 1: the first writer stands in the middle of its write; 2: it may go on */
    unsigned asked;     /* how often the second one was asked whether it gives up */
    unsigned gives_up;  /* what it answers */
    sluice_status status[2];
    uint64_t generation[2];
} shared;

typedef struct writer {
    const char *path;
    shared *with;
    unsigned number; /* 0: the first */
    unsigned calls, hold_at;
} writer;

static bool ask_first(void *context)
{
    writer *w = context;
    if (++w->calls == w->hold_at) {
        w->with->inside = 1;
        test_wait_for(&w->with->inside, 2);
    }
    return false;
}

static bool ask_second(void *context)
{
    writer *w = context;
    w->with->asked++;
    return w->with->gives_up != 0;
}

/* In a process of its own, where assertions do not work. */
static int write_one(void *context)
{
    writer *w = context;
    sluice_write_options options = {.context = w, .cancelled = w->number == 0 ? ask_first : ask_second};
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    sluice_receipt receipt = {0};
    sluice_error err = {0};
    if (sluice_open(w->path, SLUICE_WRITE, &graph, &err) != SLUICE_OK || sluice_batch_new(&batch, &err) != SLUICE_OK ||
        sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}", 29, &err) != SLUICE_OK)
        return 1;
    w->with->status[w->number] = sluice_commit(graph, batch, &options, &receipt, &err);
    w->with->generation[w->number] = receipt.generation;
    if (w->with->status[w->number] != SLUICE_OK && err.committed != SLUICE_FALSE)
        return 2;
    sluice_batch_free(batch);
    sluice_close(graph);
    return 0;
}

typedef struct meeting {
    char *folder, *path;
    shared *with;
    pid_t first;
    writer second;
} meeting;

/* A graph of this mode, and a first writer that stands at the last place where it asks before it publishes. */
static meeting meet(sluice_mode mode)
{
    meeting m = {.folder = test_folder_make(), .with = test_shared(sizeof(shared))};
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    m.path = test_path(m.folder, "g");
    ASSERT_OK(sluice_create(m.path, schema, sizeof schema - 1, mode, &graph, &err));
    sluice_close(graph);
    writer first = {.path = m.path, .with = m.with};
    assert_int_equal(write_one(&first), 0); /* alone: how often it is asked */
    assert_int_equal(m.with->status[0], SLUICE_OK);
    assert_true(first.calls > 0);
    first.hold_at = first.calls;
    first.calls = 0;
    m.first = test_child(write_one, &first);
    test_wait_for(&m.with->inside, 1);
    m.second = (writer){.path = m.path, .with = m.with, .number = 1};
    return m;
}

static void part(meeting *m, uint64_t notes)
{
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    ASSERT_OK(sluice_open(m->path, SLUICE_READ, &graph, &err));
    assert_int_equal(lib_count(graph, "Note"), notes);
    sluice_close(graph);
    free(m->path);
    test_folder_remove(m->folder);
}

static void let_the_first_go_on(meeting *m)
{
    m->with->inside = 2;
    test_child_expect_exit(m->first, 0);
    assert_int_equal(m->with->status[0], SLUICE_OK);
}

static void in_mode_optimistic_the_second_does_not_wait(void **state)
{
    (void)state;
    meeting m = meet(SLUICE_OPTIMISTIC);
    assert_int_equal(write_one(&m.second), 0);
    assert_int_equal(m.with->status[1], SLUICE_OK);
    let_the_first_go_on(&m);
    assert_int_equal(m.with->generation[0], m.with->generation[1] + 1);
    part(&m, 3);
}

static void in_mode_single_the_second_is_busy_and_may_come_again(void **state)
{
    (void)state;
    meeting m = meet(SLUICE_SINGLE);
    assert_int_equal(write_one(&m.second), 0);
    assert_int_equal(m.with->status[1], SLUICE_WRITER_BUSY);
    let_the_first_go_on(&m);
    assert_int_equal(write_one(&m.second), 0);
    assert_int_equal(m.with->status[1], SLUICE_OK);
    part(&m, 3);
}

static void in_mode_queued_the_second_waits_for_its_turn(void **state)
{
    (void)state;
    meeting m = meet(SLUICE_QUEUED);
    pid_t second = test_child(write_one, &m.second);
    test_wait_for(&m.with->asked, 8); /* it stands in the line */
    assert_int_equal(m.with->generation[1], 0);
    let_the_first_go_on(&m);
    test_child_expect_exit(second, 0);
    assert_int_equal(m.with->status[1], SLUICE_OK);
    assert_int_equal(m.with->generation[1], m.with->generation[0] + 1);
    part(&m, 3);
}

static void in_mode_queued_who_waits_may_give_up(void **state)
{
    (void)state;
    meeting m = meet(SLUICE_QUEUED);
    pid_t second = test_child(write_one, &m.second);
    test_wait_for(&m.with->asked, 8);
    m.with->gives_up = 1;
    test_child_expect_exit(second, 0);
    assert_int_equal(m.with->status[1], SLUICE_CANCELLED);
    let_the_first_go_on(&m);
    part(&m, 2);
}

static void in_mode_queued_who_stands_behind_a_dead_writer_goes_on(void **state)
{
    (void)state;
    meeting m = meet(SLUICE_QUEUED);
    pid_t second = test_child(write_one, &m.second);
    test_wait_for(&m.with->asked, 8);
    test_child_kill(m.first);
    test_child_expect_exit(second, 0);
    assert_int_equal(m.with->status[1], SLUICE_OK);
    part(&m, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_mode_optimistic_the_second_does_not_wait),
        cmocka_unit_test(in_mode_single_the_second_is_busy_and_may_come_again),
        cmocka_unit_test(in_mode_queued_the_second_waits_for_its_turn),
        cmocka_unit_test(in_mode_queued_who_waits_may_give_up),
        cmocka_unit_test(in_mode_queued_who_stands_behind_a_dead_writer_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
