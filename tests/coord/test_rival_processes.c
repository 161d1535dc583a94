/*
 * Real processes on a real disk, at once: the same key, disjoint keys, one operation id, two tables, kills at random
 * (K-03, W-10, OW-044, OD-048). Each waits for a start signal, so that they really meet.
 */
#include "coord/recover.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "toy.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES 16u

typedef struct shared_results {
    unsigned ready, go;
    struct {
        sluice_status status;
        co_receipt receipt;
        sluice_truth committed;
    } answers[PROCESSES];
} shared_results;

typedef struct contest_state {
    char *folder, *path;
    shared_results *shared;
} contest_state;

typedef struct contender {
    const contest_state *contest;
    unsigned number;
    toy_writer toy;
    toy_options options;
    unsigned rounds; /* writes one after the other, each with keys 1000 further on */
} contender;

static int setup(void **state)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    contest_state *contest = calloc(1, sizeof *contest);
    contest->folder = test_folder_make();
    contest->path = test_path(contest->folder, "g");
    contest->shared = test_shared(sizeof *contest->shared);
    ASSERT_OK(pf_volume_make(contest->path, &volume, &err));
    toy_init(volume, ST_MODE_OPTIMISTIC);
    pf_volume_close(volume);
    *state = contest;
    return 0;
}

static int teardown(void **state)
{
    contest_state *contest = *state;
    free(contest->path);
    test_folder_remove(contest->folder);
    free(contest);
    return 0;
}

static sluice_status open_graph(const contest_state *contest, st_graph **ret_graph, sluice_error *err)
{
    pf_volume *volume = NULL;
    PF_TRY(pf_volume_open(contest->path, PF_WRITE, &volume, err));
    return st_graph_open_on(volume, PF_WRITE, ret_graph, err);
}

static st_graph *opened(const contest_state *contest)
{
    sluice_error err = {0};
    st_graph *graph = NULL;
    ASSERT_OK(open_graph(contest, &graph, &err));
    return graph;
}

/* In the child. The exit status says only that it came to an answer. */
static int contend(void *context)
{
    contender *me = context;
    shared_results *shared = me->contest->shared;
    sluice_error err = {0};
    st_graph *graph = NULL;
    if (open_graph(me->contest, &graph, &err) != SLUICE_OK)
        return 1;
    (void)__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    test_wait_for(&shared->go, 1);
    sluice_status status = SLUICE_OK;
    for (unsigned round = 0; round < (me->rounds ? me->rounds : 1) && status == SLUICE_OK; round++) {
        status = toy_write(graph, &me->toy, &me->options, &shared->answers[me->number].receipt, &err);
        for (uint32_t i = 0; i < me->toy.count; i++)
            me->toy.keys[i] += 1000;
    }
    shared->answers[me->number].status = status;
    shared->answers[me->number].committed = err.committed;
    st_graph_close(graph);
    return 0;
}

static void run(const contest_state *contest, contender *contenders, unsigned count)
{
    pid_t pids[PROCESSES];
    for (unsigned i = 0; i < count; i++) {
        contenders[i].contest = contest;
        contenders[i].number = i;
        pids[i] = test_child(contend, &contenders[i]);
    }
    test_wait_for(&contest->shared->ready, count);
    __atomic_store_n(&contest->shared->go, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < count; i++)
        test_child_expect_exit(pids[i], 0);
}

static void of_sixteen_inserts_of_one_key_one_wins(void **state)
{
    contest_state *contest = *state;
    contender contenders[PROCESSES] = {{0}};
    unsigned winners = 0;
    int64_t found[4];
    for (unsigned i = 0; i < PROCESSES; i++)
        contenders[i].toy = toy_of("A", 7, 1);
    run(contest, contenders, PROCESSES);
    for (unsigned i = 0; i < PROCESSES; i++) {
        sluice_status status = contest->shared->answers[i].status;
        winners += status == SLUICE_OK;
        assert_true(status == SLUICE_OK || status == SLUICE_KEY_CONFLICT || status == SLUICE_WRITE_CONFLICT);
        if (status != SLUICE_OK)
            assert_int_equal(contest->shared->answers[i].committed, SLUICE_FALSE);
    }
    assert_int_equal(winners, 1);
    st_graph *graph = opened(contest);
    assert_int_equal(toy_keys(graph, "A", found, 4), 1);
    st_graph_close(graph);
}

static void sixteen_writers_of_other_keys_all_succeed(void **state)
{
    contest_state *contest = *state;
    contender contenders[PROCESSES] = {{0}};
    int64_t found[PROCESSES * 4];
    for (unsigned i = 0; i < PROCESSES; i++) {
        contenders[i].toy = toy_of(i % 2 ? "A" : "B", 10 * i, 2);
        contenders[i].rounds = 3;
    }
    run(contest, contenders, PROCESSES);
    for (unsigned i = 0; i < PROCESSES; i++) {
        assert_int_equal(contest->shared->answers[i].status, SLUICE_OK);
        if (!getenv("SLUICE_TEST_EQUAL_HASHES"))
            assert_int_equal(contest->shared->answers[i].receipt.restarts, 0); /* W-10 */
        for (unsigned k = 0; k < i; k++)                                       /* a place of its own in the history */
            assert_int_not_equal(contest->shared->answers[i].receipt.generation,
                                 contest->shared->answers[k].receipt.generation);
    }
    st_graph *graph = opened(contest);
    assert_int_equal(toy_keys(graph, "A", found, PROCESSES * 4), PROCESSES / 2 * 2 * 3);
    assert_int_equal(toy_keys(graph, "B", found, PROCESSES * 4), PROCESSES / 2 * 2 * 3);
    st_graph_close(graph);
}

static void sixteen_identical_requests_are_one_commit(void **state)
{
    contest_state *contest = *state;
    contender contenders[PROCESSES] = {{0}};
    toy_options options = {.operation = pf_id_new(), .given = true};
    int64_t found[4];
    for (unsigned i = 0; i < PROCESSES; i++) {
        contenders[i].toy = toy_of("A", 7, 2);
        contenders[i].options = options;
    }
    run(contest, contenders, PROCESSES);
    for (unsigned i = 0; i < PROCESSES; i++) {
        assert_int_equal(contest->shared->answers[i].status, SLUICE_OK);
        assert_true(
            pf_id_equal(&contest->shared->answers[i].receipt.commit, &contest->shared->answers[0].receipt.commit));
    }
    st_graph *graph = opened(contest);
    assert_int_equal(toy_keys(graph, "A", found, 4), 2);
    st_graph_close(graph);
}

/* ---- kills ---- */

static int write_for_ever(void *context)
{
    contender *me = context;
    sluice_error err = {0};
    st_graph *graph = NULL;
    if (open_graph(me->contest, &graph, &err) != SLUICE_OK)
        return 1;
    for (;;) {
        if (toy_write(graph, &me->toy, NULL, NULL, &err) != SLUICE_OK)
            return 2;
        (void)__atomic_add_fetch(&me->contest->shared->ready, 1, __ATOMIC_SEQ_CST);
        for (uint32_t i = 0; i < me->toy.count; i++)
            me->toy.keys[i] += 1000;
    }
}

/* Two writers are killed again and again while a third one goes on: nothing that was acknowledged is lost, every write
 * is whole, the survivor never fails, and what is left can be collected. */
static void killed_writers_stand_in_nobodys_way(void **state)
{
    contest_state *contest = *state;
    sluice_error err = {0};
    unsigned acknowledged = 0;
    st_graph *graph = opened(contest);
    for (unsigned round = 0; round < 12; round++) {
        contender victims[2] = {{0}};
        pid_t pids[2];
        __atomic_store_n(&contest->shared->ready, 0, __ATOMIC_SEQ_CST);
        for (unsigned i = 0; i < 2; i++) {
            victims[i].contest = contest;
            victims[i].toy = toy_of("A", 1000000 * (2 * round + i + 1), 2);
            pids[i] = test_child(write_for_ever, &victims[i]);
        }
        test_wait_for(&contest->shared->ready, 1 + round % 4);
        toy_writer mine = toy_of("B", 10 * round, 1);
        ASSERT_OK(toy_write(graph, &mine, NULL, NULL, &err));
        test_child_kill(pids[0]);
        test_child_kill(pids[1]);
        acknowledged += __atomic_load_n(&contest->shared->ready, __ATOMIC_SEQ_CST);
        ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    }
    static int64_t found[65536];
    uint32_t count = toy_keys(graph, "A", found, 65536);
    assert_true(count % 2 == 0); /* each write is whole */
    assert_true(count / 2 >= acknowledged);
    assert_true(count / 2 <= acknowledged + 24); /* at most one more for each that was killed */
    for (uint32_t i = 0; i < count; i += 2)
        assert_int_equal(found[i] + 1, found[i + 1]);
    assert_int_equal(toy_keys(graph, "B", found, 65536), 12);
    co_gc_report report;
    ASSERT_OK(co_gc(graph, false, &report, &err));
    ASSERT_OK(co_gc(graph, true, &report, &err));
    assert_int_equal(report.files, 0);
    assert_int_equal(report.attempts, 0);
    st_graph_close(graph);
}

/* ---- the graph's folder itself ---- */

typedef struct mover_state {
    const contest_state *contest;
    char *elsewhere;
} mover_state;

static void move_away(void *context)
{
    const mover_state *mover = context;
    assert_int_equal(rename(mover->contest->path, mover->elsewhere), 0);
    assert_int_equal(mkdir(mover->contest->path, 0700), 0);
}

/* OD-015: nothing is acknowledged into a folder that is not the one of that name any more. */
static void a_graph_that_is_moved_away_is_not_written(void **state)
{
    contest_state *contest = *state;
    sluice_error err = {0};
    mover_state mover = {contest, test_path(contest->folder, "elsewhere")};
    toy_writer toy = toy_of("A", 1, 1);
    st_graph *graph = opened(contest);
    toy.after_plan = move_away;
    toy.context = &mover;
    ASSERT_FAILS(SLUICE_FENCED, toy_write(graph, &toy, NULL, NULL, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    st_graph_close(graph);
    assert_int_equal(rmdir(contest->path), 0);
    assert_int_equal(rename(mover.elsewhere, contest->path), 0);
    free(mover.elsewhere);
    graph = opened(contest);
    assert_true(toy_holds(graph, "A", NULL, 0));
    st_graph_close(graph);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_sixteen_inserts_of_one_key_one_wins),    TEST(sixteen_writers_of_other_keys_all_succeed),
        TEST(sixteen_identical_requests_are_one_commit), TEST(killed_writers_stand_in_nobodys_way),
        TEST(a_graph_that_is_moved_away_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
