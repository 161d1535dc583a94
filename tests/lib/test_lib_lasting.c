/*
 * A handle that stays open for long: a branch of its is deleted and made again under its name by somebody else (R147),
 * and thousands of commits are made while nobody looks after the graph (R126).
 */
#include "lib/handle.h"
#include "lib_fixture.h"
#include "store/log/log.h"
#include "tests/support/child.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void insert(sluice_graph *graph, const char *branch, unsigned key)
{
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    char line[96];
    const sluice_write_options options = {.branch = branch};
    int length = snprintf(line, sizeof line, "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":%u}}\n", key);
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, line, (size_t)length, &err));
    ASSERT_OK(sluice_commit(graph, batch, &options, &receipt, &err));
    sluice_batch_free(batch);
}

/* ---- a branch that is made again ---- */

/* The people of a snapshot, up to key 9: "134". */
static void expect_people(sluice_snapshot *snapshot, const char *wanted)
{
    sluice_error err = {0};
    uint64_t count = 0;
    char found[16] = {0};
    size_t length = 0;
    for (unsigned key = 1; key <= 9; key++) {
        char text[2] = {(char)('0' + key), '\0'}, *json = NULL;
        sluice_status status = sluice_get(snapshot, "Person", text, &json, NULL, &err);
        assert_true(status == SLUICE_OK || status == SLUICE_NOT_FOUND);
        if (json)
            found[length++] = text[0];
        sluice_free(json);
    }
    assert_string_equal(found, wanted);
    ASSERT_OK(sluice_count(snapshot, "Person", &count, &err));
    assert_int_equal(count, strlen(wanted));
}

static void expect_people_now(sluice_graph *graph, const char *branch, const char *wanted)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    ASSERT_OK(sluice_snapshot_open(graph, branch, NULL, &snapshot, &err));
    expect_people(snapshot, wanted);
    sluice_snapshot_close(snapshot);
}

typedef struct meeting { /* in memory that is shared */
    volatile unsigned readers_ready, made_again;
    char path[512];
} meeting;

static bool ignore(void *context, const sluice_change *change)
{
    (void)context;
    (void)change;
    return true;
}

/* Another process keeps the first b open by a snapshot and a feed, while it goes and another comes. */
static int keep_it_open(void *context)
{
    meeting *meeting_ = context;
    sluice_error err = {0};
    sluice_graph *graph = NULL;
    sluice_snapshot *snapshot = NULL;
    sluice_feed *feed = NULL;
    ASSERT_OK(sluice_open(meeting_->path, SLUICE_READ, &graph, &err));
    ASSERT_OK(sluice_snapshot_open(graph, "b", NULL, &snapshot, &err));
    ASSERT_OK(sluice_feed_open(graph, "b", "head", &feed, &err));
    expect_people(snapshot, "12");
    (void)__atomic_add_fetch(&meeting_->readers_ready, 1, __ATOMIC_ACQ_REL);
    test_wait_for(&meeting_->made_again, 1);
    expect_people(snapshot, "12"); /* pinned: what it was */
    expect_people_now(graph, "b", "134");
    assert_int_equal(sluice_feed_read(feed, ignore, NULL, &err), SLUICE_NOT_FOUND);
    assert_non_null(strstr(err.message, "b"));
    sluice_feed_close(feed);
    sluice_snapshot_close(snapshot);
    expect_people_now(graph, "b", "134");
    sluice_close(graph);
    return 0;
}

static void a_branch_made_again_shows_its_base_and_its_own_writes_to_every_handle(void **state)
{
    lib_fixture *fixture = *state;
    sluice_graph *graph = fixture->graph;
    sluice_error err = {0};
    sluice_snapshot *old = NULL;
    sluice_place place;
    pid_t readers[2];
    meeting *meeting_ = test_shared(sizeof *meeting_);
    (void)snprintf(meeting_->path, sizeof meeting_->path, "%s", fixture->path);
    insert(graph, NULL, 1);
    ASSERT_OK(sluice_branch_create(graph, "b", NULL, &err));
    insert(graph, "b", 2);
    expect_people_now(graph, "b", "12");
    for (unsigned i = 0; i < 2; i++)
        readers[i] = test_child(keep_it_open, meeting_);
    test_wait_for(&meeting_->readers_ready, 2);

    ASSERT_OK(sluice_snapshot_open(graph, "b", NULL, &old, &err));
    sluice_snapshot_place(old, &place);
    ASSERT_OK(sluice_branch_delete(graph, "b", &err));
    insert(graph, NULL, 3);
    ASSERT_OK(sluice_branch_create(graph, "b", NULL, &err)); /* from another base, under the same name */
    expect_people_now(graph, "b", "13");
    insert(graph, "b", 4);
    expect_people_now(graph, "b", "134");
    expect_people(old, "12");
    __atomic_store_n(&meeting_->made_again, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 2; i++)
        test_child_expect_exit(readers[i], 0);

    /* Who goes by the first one's head writes nothing to the second. */
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    const char line[] = "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":5}}\n";
    const sluice_write_options options = {.branch = "b", .if_head = place.commit};
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, line, sizeof line - 1, &err));
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, sluice_commit(graph, batch, &options, &receipt, &err));
    sluice_batch_free(batch);
    sluice_snapshot_close(old);
    expect_people_now(graph, "b", "134");
}

/* ---- reading after many commits ---- */

typedef struct read_cost {
    uint64_t calls, bytes;
} read_cost;

static read_cost cost_of(sluice_graph *graph, unsigned key)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    char text[16], *json = NULL;
    pf_volume *volume = st_graph_volume(graph->graph);
    (void)snprintf(text, sizeof text, "%u", key);
    pf_volume_counters_reset(volume);
    ASSERT_OK(sluice_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_get(snapshot, "Person", text, &json, NULL, &err));
    assert_non_null(json);
    sluice_free(json);
    sluice_snapshot_close(snapshot);
    const pf_counters *made = pf_volume_counters(volume);
    return (read_cost){made->calls, made->bytes_read};
}

/* Within so many commits every fold of the rhythm has been. */
#define WINDOW 70u
#define MORE   (UINT64_C(2) << 20)

/* The dearest read of one row within a window of commits: by the handle that stays, and by a new one each time. */
static void dearest(lib_fixture *fixture, sluice_graph *reader, unsigned *next, read_cost ret_most[2])
{
    sluice_error err = {0};
    memset(ret_most, 0, 2 * sizeof *ret_most);
    (void)cost_of(reader, 1); /* follows what was committed since it looked last */
    for (unsigned i = 0; i < WINDOW; i++) {
        insert(fixture->graph, NULL, (*next)++);
        if (i % 10 != 9)
            continue;
        sluice_graph *fresh = NULL;
        ASSERT_OK(sluice_open(fixture->path, SLUICE_READ, &fresh, &err));
        const read_cost now[2] = {cost_of(reader, *next - 1), cost_of(fresh, *next / 2)};
        sluice_close(fresh);
        for (unsigned k = 0; k < 2; k++) {
            ret_most[k].calls = now[k].calls > ret_most[k].calls ? now[k].calls : ret_most[k].calls;
            ret_most[k].bytes = now[k].bytes > ret_most[k].bytes ? now[k].bytes : ret_most[k].bytes;
        }
    }
}

static void reading_a_row_costs_the_same_after_thousands_of_commits(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    const unsigned depths[] = {200, getenv("SLUICE_LONG") ? 20000 : 800};
    read_cost most[2][2];
    unsigned next = 1;
    sluice_graph *reader = NULL;
    ASSERT_OK(sluice_open(fixture->path, SLUICE_READ, &reader, &err));
    for (unsigned i = 0; i < 2; i++) {
        while (next < depths[i])
            insert(fixture->graph, NULL, next++);
        dearest(fixture, reader, &next, most[i]);
        for (unsigned k = 0; k < 2; k++)
            print_message("%s handle at %u: %llu calls, %llu bytes\n", k ? "a new" : "the lasting", next,
                          (unsigned long long)most[i][k].calls, (unsigned long long)most[i][k].bytes);
    }
    for (unsigned k = 0; k < 2; k++) {
        assert_true(most[1][k].calls <= most[0][k].calls * 2 + 20);
        assert_true(most[1][k].bytes <= ST_SEGMENT_MAX + MORE); /* it looks through the active segment, once */
    }
    sluice_close(reader);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_branch_made_again_shows_its_base_and_its_own_writes_to_every_handle),
        IN_GRAPH(reading_a_row_costs_the_same_after_thousands_of_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
