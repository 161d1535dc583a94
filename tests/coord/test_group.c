/*
 * Group publishing by real processes over one region (P-03, P-07 to P-12; OW-077, OW-079, OD-053).
 *
 * Groups are made, not met by chance: the test holds the branch's publish lock, as another pool would, until everybody
 * stands in line. The first to stand there leads.
 *
 * As a program: test_group --mutate GRAPH FILE... [-- FILE...]...: runs each file as a mutation of a worker of its own,
 * all of them in one line, in the order given, and prints a JSON document for each. Behind each "--" follow those of
 * another pool, with a line of its own; all lines are let go at once.
 */
#include "coord/mutate.h"
#include "coord/recover.h"
#include "platform/user_file.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "toy.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SEATS 8u
#define SLICE 32768u

static const ad_adapter authority_first = {
    .kind = "mutate", .version = 1, .arms = false, .replays = true, .retry_budget = 30};

typedef struct answer {
    unsigned ended;
    unsigned may; /* so many rounds, in a task of rounds */
    sluice_status status;
    co_receipt receipt;
    sluice_error error;
    unsigned commits;
} answer;

typedef struct group_state {
    char *folder, *path;
    crew all;
    answer *answers; /* shared, one per seat */
    pf_volume *volume;
    lk_lockfile *locks;
} group_state;

typedef struct task {
    const group_state *state;
    uint32_t seat;
    toy_writer toy;
    toy_options options;
    unsigned rounds; /* 0: one */
} task;

static int setup_with(void **state, uint32_t slice)
{
    sluice_error err = {0};
    group_state *group = calloc(1, sizeof *group);
    group->folder = test_folder_make();
    group->path = test_path(group->folder, "g");
    group->answers = test_shared(SEATS * sizeof *group->answers);
    ASSERT_OK(pf_volume_make(group->path, &group->volume, &err));
    toy_init(group->volume, ST_MODE_OPTIMISTIC);
    ASSERT_OK(lk_lockfile_open(group->volume, "branches/1/locks", &group->locks, &err));
    crew_make(&group->all, SEATS, slice);
    *state = group;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, SLICE);
}

static int setup_narrow(void **state)
{
    return setup_with(state, 64);
}

static int teardown(void **state)
{
    group_state *group = *state;
    crew_free(&group->all);
    lk_lockfile_close(group->locks);
    pf_volume_close(group->volume);
    free(group->path);
    test_folder_remove(group->folder);
    free(group);
    return 0;
}

static void hold(const group_state *group)
{
    sluice_error err = {0};
    ASSERT_OK(lk_take(group->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err));
}

static void let_go(const group_state *group)
{
    lk_release(group->locks, LK_BYTE_PUBLISH);
}

static sluice_status open_graph(const char *path, st_graph **ret_graph, sluice_error *err)
{
    pf_volume *volume = NULL;
    PF_TRY(pf_volume_open(path, PF_WRITE, &volume, err));
    return st_graph_open_on(volume, PF_WRITE, ret_graph, err);
}

static st_graph *opened(const group_state *group)
{
    sluice_error err = {0};
    st_graph *graph = NULL;
    ASSERT_OK(open_graph(group->path, &graph, &err));
    return graph;
}

static int write_toys(void *context, wk_executor *executor)
{
    task *me = context;
    answer *to = &me->state->answers[me->seat];
    st_graph *graph = NULL;
    if (open_graph(me->state->path, &graph, &to->error) != SLUICE_OK)
        return 1;
    me->options.executor = executor;
    for (unsigned round = 0; round < (me->rounds ? me->rounds : 1) && to->status == SLUICE_OK; round++) {
        test_wait_for(&to->may, me->rounds ? round + 1 : 0);
        to->status = toy_write(graph, &me->toy, &me->options, &to->receipt, &to->error);
        (void)__atomic_add_fetch(&to->commits, to->status == SLUICE_OK, __ATOMIC_SEQ_CST);
        for (uint32_t i = 0; i < me->toy.count; i++)
            me->toy.keys[i] += 1000;
    }
    st_graph_close(graph);
    return 0;
}

static task task_of(const group_state *group, uint32_t seat, const char *type, int64_t key)
{
    task made = {.state = group, .seat = seat, .toy = toy_of(type, key, 1)};
    made.toy.adapter = &authority_first;
    made.toy.attached = true;
    return made;
}

static void start(group_state *group, task *one, const char *failpoint)
{
    group->answers[one->seat] = (answer){0};
    crew_start(&group->all, one->seat, write_toys, one, failpoint);
}

/* Starts it and waits until it stands in line. */
static void line_up(group_state *group, task *one, const char *failpoint)
{
    start(group, one, failpoint);
    crew_wait_for(&group->all, one->seat, SHM_PUBLISH_READY);
}

/* Lines up writers of the keys 10, 20, 30, ... in the seats 0, 1, 2, ... and lets them go. */
static void run_together(group_state *group, task *tasks, uint32_t count)
{
    hold(group);
    for (uint32_t i = 0; i < count; i++)
        line_up(group, &tasks[i], NULL);
    let_go(group);
    crew_end_all(&group->all);
}

static void expect_member(const group_state *group, uint32_t seat, uint64_t generation, uint32_t index)
{
    const answer *from = &group->answers[seat];
    if (from->status != SLUICE_OK)
        fail_msg("seat %u: %s", seat, from->error.text);
    assert_true(from->receipt.committed && from->receipt.acknowledged);
    assert_int_equal(from->receipt.generation, generation);
    assert_int_equal(from->receipt.index, index);
}

static void expect_keys(const group_state *group, const int64_t *keys, uint32_t count)
{
    st_graph *graph = opened(group);
    assert_true(toy_holds(graph, "A", keys, count));
    st_graph_close(graph);
}

/* ---- groups ---- */

/* Each with a commit, a parent, rows and a receipt of its own; found again by all of these. */
static void who_waits_together_is_one_generation(void **state)
{
    group_state *group = *state;
    sluice_error err = {0};
    task tasks[4];
    st_log *log = NULL;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < 4; i++)
        tasks[i] = task_of(group, i, "A", 10 * (i + 1));
    run_together(group, tasks, 4);
    for (uint32_t i = 0; i < 4; i++)
        expect_member(group, i, 2, i);
    st_graph *graph = opened(group);
    ASSERT_OK(st_graph_log(graph, 1, &log, &err));
    assert_int_equal(st_log_end(log).number, 2); /* one record, one flush */
    for (uint32_t i = 0; i < 4; i++) {
        const co_receipt *receipt = &group->answers[i].receipt;
        uint64_t generation = 0;
        uint32_t index = 0;
        bool found = false;
        st_receipt told = {0};
        st_view *view = NULL;
        ASSERT_OK(st_commit_find(graph, log, &receipt->commit, &generation, &index, &err));
        assert_int_equal(generation, 2);
        assert_int_equal(index, i);
        ASSERT_OK(st_receipt_find(graph, log, &receipt->operation, &found, &told, &err));
        assert_true(found && pf_id_equal(&told.commit, &receipt->commit));
        assert_int_equal(told.index, i);
        ASSERT_OK(st_view_load_at(graph, log, 2, i, &view, &err));
        assert_true(pf_id_equal(&view->head, &receipt->commit));
        assert_true(view->head_time_us == receipt->time_us);
        rows = 0;
        for (uint32_t t = 0; t < view->table_count; t++)
            rows += view->tables[t].rows;
        assert_int_equal(rows, i + 1);
        st_view_free(view);
    }
    st_graph_close(graph);
    expect_keys(group, (const int64_t[]){10, 20, 30, 40}, 4);
}

/* P-09: the loser looks again, and finds the key; the others are not touched by that. */
static void of_two_writers_of_one_key_in_a_group_the_first_wins(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 10), task_of(group, 2, "A", 30)};
    run_together(group, tasks, 3);
    expect_member(group, 0, 2, 0);
    assert_int_equal(group->answers[1].status, SLUICE_KEY_CONFLICT);
    assert_int_equal(group->answers[1].error.committed, SLUICE_FALSE);
    expect_member(group, 2, 2, 1);
    expect_keys(group, (const int64_t[]){10, 30}, 2);
}

static void one_operation_twice_in_a_group_is_one_commit(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 10), task_of(group, 2, "A", 30)};
    tasks[0].options = tasks[1].options = (toy_options){.operation = pf_id_new(), .given = true};
    run_together(group, tasks, 3);
    expect_member(group, 0, 2, 0);
    expect_member(group, 1, 2, 0);
    assert_true(group->answers[1].receipt.repeated);
    assert_true(pf_id_equal(&group->answers[0].receipt.commit, &group->answers[1].receipt.commit));
    expect_member(group, 2, 2, 1);
    expect_keys(group, (const int64_t[]){10, 30}, 2);
}

static void one_operation_id_with_two_contents_in_a_group_is_a_conflict(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20)};
    tasks[0].options = tasks[1].options = (toy_options){.operation = pf_id_new(), .given = true};
    run_together(group, tasks, 2);
    expect_member(group, 0, 2, 0);
    assert_int_equal(group->answers[1].status, SLUICE_IDEMPOTENCY_CONFLICT);
    expect_keys(group, (const int64_t[]){10}, 1);
}

/* Who read a whole table that an earlier member changed plans anew, and fails nobody. */
static void a_member_that_an_earlier_one_met_comes_again(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20), task_of(group, 2, "A", 30)};
    tasks[1].toy.reads_table = true;
    run_together(group, tasks, 3);
    expect_member(group, 0, 2, 0);
    expect_member(group, 1, 3, 0);
    assert_int_equal(group->answers[1].receipt.restarts, 1);
    expect_member(group, 2, 2, 1);
    expect_keys(group, (const int64_t[]){10, 20, 30}, 3);
}

static pf_id head_of(const group_state *group)
{
    sluice_error err = {0};
    st_log *log = NULL;
    st_view *view = NULL;
    st_graph *graph = opened(group);
    ASSERT_OK(st_graph_log(graph, 1, &log, &err));
    ASSERT_OK(st_view_load(graph, log, true, &view, &err));
    pf_id head = view->head;
    st_view_free(view);
    st_graph_close(graph);
    return head;
}

static void a_conditional_write_is_a_group_of_its_own(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20), task_of(group, 2, "A", 30)};
    tasks[0].options.if_head = tasks[2].options.if_head = head_of(group);
    run_together(group, tasks, 3);
    expect_member(group, 0, 2, 0);
    expect_member(group, 1, 3, 0);
    assert_int_equal(group->answers[2].status, SLUICE_READ_SET_CHANGED); /* two of one head: one wins */
    assert_int_equal(group->answers[2].error.committed, SLUICE_FALSE);
    expect_keys(group, (const int64_t[]){10, 20}, 2);
}

static void writes_that_do_not_fit_into_the_region_publish_alone(void **state)
{
    group_state *group = *state;
    task tasks[4];
    for (uint32_t i = 0; i < 4; i++) {
        tasks[i] = task_of(group, i, "A", 10 * (i + 1));
        start(group, &tasks[i], NULL);
    }
    crew_end_all(&group->all);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(group->answers[i].status, SLUICE_OK);
        assert_int_equal(group->answers[i].receipt.index, 0);
    }
    expect_keys(group, (const int64_t[]){10, 20, 30, 40}, 4);
}

/* ---- many ---- */

/* P-08: in each round everybody who stands in line gets one commit; nobody is passed. */
static void each_of_eight_gets_a_place_in_each_group(void **state)
{
    group_state *group = *state;
    task tasks[SEATS];
    for (uint32_t i = 0; i < SEATS; i++) {
        tasks[i] = task_of(group, i, i % 2 ? "A" : "B", 10 * (i + 1));
        tasks[i].rounds = 10; /* enough edits that members bring folds */
        start(group, &tasks[i], NULL);
    }
    for (unsigned round = 1; round <= 10; round++) {
        hold(group);
        for (uint32_t i = 0; i < SEATS; i++)
            __atomic_store_n(&group->answers[i].may, round, __ATOMIC_SEQ_CST);
        crew_wait_in_line(&group->all, SEATS);
        let_go(group);
        for (uint32_t i = 0; i < SEATS; i++)
            test_wait_for(&group->answers[i].commits, round);
    }
    crew_end_all(&group->all);
    for (uint32_t i = 0; i < SEATS; i++)
        assert_int_equal(group->answers[i].receipt.generation, 11); /* ten records for eighty commits */
}

static int write_until_told(void *context, wk_executor *executor)
{
    task *me = context;
    answer *to = &me->state->answers[me->seat];
    st_graph *graph = NULL;
    if (open_graph(me->state->path, &graph, &to->error) != SLUICE_OK)
        return 1;
    me->options.executor = executor;
    while (!to->ended) {
        if (toy_write(graph, &me->toy, &me->options, &to->receipt, &to->error) != SLUICE_OK) {
            print_error("%s: %s\n", sluice_status_name(to->error.code), to->error.message);
            return 2;
        }
        (void)__atomic_add_fetch(&to->commits, 1, __ATOMIC_SEQ_CST);
        me->toy.keys[0] += 1000;
    }
    st_graph_close(graph);
    return 0;
}

/* P-08, without pacing: SLUICE_LONG, since it is about what a machine that is not overloaded does. */
static void eight_writers_of_other_keys_get_about_as_much_each(void **state)
{
    group_state *group = *state;
    task tasks[SEATS];
    unsigned before[SEATS], least = 1000000, most = 0, all = 0;
    if (!getenv("SLUICE_LONG"))
        skip();
    for (uint32_t i = 0; i < SEATS; i++) {
        tasks[i] = task_of(group, i, "A", i);
        crew_start(&group->all, i, write_until_told, &tasks[i], NULL);
    }
    for (uint32_t i = 0; i < SEATS; i++) /* who was started first has had nobody beside it */
        test_wait_for(&group->answers[i].commits, 1);
    for (uint32_t i = 0; i < SEATS; i++)
        before[i] = __atomic_load_n(&group->answers[i].commits, __ATOMIC_SEQ_CST);
    test_wait_for(&group->answers[0].commits, before[0] + 40);
    for (uint32_t i = 0; i < SEATS; i++)
        __atomic_store_n(&group->answers[i].ended, 1, __ATOMIC_SEQ_CST);
    crew_end_all(&group->all);
    for (uint32_t i = 0; i < SEATS; i++) {
        unsigned commits = group->answers[i].commits - before[i];
        least = commits < least ? commits : least;
        most = commits > most ? commits : most;
        all += group->answers[i].commits;
    }
    st_graph *graph = opened(group);
    sluice_error err = {0};
    st_log *log = NULL;
    ASSERT_OK(st_graph_log(graph, 1, &log, &err));
    print_message("%u commits in %llu generations, %u to %u each\n", all,
                  (unsigned long long)st_log_end(log).number - 1, least, most);
    assert_true(most <= 2 * least);
    assert_true(st_log_end(log).number - 1 < all);
    st_graph_close(graph);
}

/* ---- deaths ---- */

static void expect_whole(const group_state *group)
{
    sluice_error err = {0};
    co_gc_report report;
    st_graph *graph = opened(group);
    ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    ASSERT_OK(co_gc(graph, false, &report, &err));
    ASSERT_OK(co_gc(graph, true, &report, &err));
    assert_int_equal(report.files, 0);
    assert_int_equal(report.attempts, 0);
    st_graph_close(graph);
}

typedef struct death {
    const char *failpoint;
    bool published; /* what the leader had in hand is in the chain */
} death;

static const death deaths[] = {
    {"publish.after_lock=kill", false},           {"publish.after_take=kill", false},
    {"publish.before_append=kill", false},        {"publish.after_log_record_write=kill", true},
    {"publish.after_log_record_sync=kill", true}, {"publish.after_mark=kill", true},
    {"publish.before_decide=kill", true},         {"publish.after_decide=kill", true}};

static void kill_a_leader(group_state *group, const death *how, bool armed, int64_t base)
{
    task tasks[] = {task_of(group, 0, "A", base), task_of(group, 1, "A", base + 1), task_of(group, 2, "B", base)};
    for (unsigned i = 0; i < 3 && armed; i++)
        tasks[i].toy.adapter = &ad_load;
    hold(group);
    line_up(group, &tasks[0], how->failpoint);
    line_up(group, &tasks[1], NULL);
    line_up(group, &tasks[2], NULL);
    let_go(group);
    int status = crew_end(&group->all, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    crew_end_all(&group->all);
    uint64_t generation = group->answers[1].receipt.generation;
    expect_member(group, 1, generation, how->published ? 1 : group->answers[1].receipt.index);
    assert_int_equal(group->answers[2].status, SLUICE_OK);
    if (how->published)
        expect_member(group, 2, generation, 2);
}

static void a_dead_leaders_group_is_settled_by_the_chain(void **state)
{
    group_state *group = *state;
    int64_t expected[64], found[64];
    uint32_t count = 0, others = 0;
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        kill_a_leader(group, &deaths[i], false, 10 * (int64_t)(i + 1));
        if (deaths[i].published)
            expected[count++] = 10 * (int64_t)(i + 1);
        expected[count++] = 10 * (int64_t)(i + 1) + 1;
        others++;
    }
    expect_keys(group, expected, count);
    st_graph *graph = opened(group);
    assert_int_equal(toy_keys(graph, "B", found, 64), others);
    st_graph_close(graph);
    expect_whole(group);
}

/* The leader's own write is finished by recovery where it was armed. */
static void a_dead_leaders_armed_write_is_published_once(void **state)
{
    group_state *group = *state;
    int64_t expected[64];
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        kill_a_leader(group, &deaths[i], true, 10 * (int64_t)(i + 1));
        expected[count++] = 10 * (int64_t)(i + 1);
        expected[count++] = 10 * (int64_t)(i + 1) + 1;
        expect_whole(group);
    }
    expect_keys(group, expected, count);
}

static void a_waiter_that_dies_before_it_is_taken_is_gone(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20), task_of(group, 2, "A", 30)};
    hold(group);
    for (uint32_t i = 0; i < 3; i++)
        line_up(group, &tasks[i], NULL);
    crew_kill(&group->all, 1);
    let_go(group);
    crew_end_all(&group->all);
    expect_member(group, 0, 2, 0);
    expect_member(group, 2, 2, 1);
    expect_keys(group, (const int64_t[]){10, 30}, 2);
    expect_whole(group);
}

static void a_waiter_that_dies_as_it_stands_in_line_is_gone(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20)};
    start(group, &tasks[0], "publish.after_line=kill");
    assert_true(WIFSIGNALED(crew_end(&group->all, 0)));
    start(group, &tasks[1], NULL);
    crew_end_all(&group->all);
    expect_member(group, 1, 2, 0);
    expect_keys(group, (const int64_t[]){20}, 1);
    expect_whole(group);
}

/* Who has taken it decides it, for nobody; the seat's next worker publishes outside of the line meanwhile. */
static void a_waiter_that_dies_after_it_was_taken_is_published(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20), task_of(group, 2, "A", 30)};
    task successor = task_of(group, 1, "A", 40);
    hold(group);
    line_up(group, &tasks[0], "publish.after_take=stop");
    line_up(group, &tasks[1], NULL);
    line_up(group, &tasks[2], NULL);
    pid_t leader = group->all.pids[0];
    let_go(group);
    crew_wait_stopped(&group->all, 0);
    crew_kill(&group->all, 1);
    assert_int_equal(group->all.region.publish->entries[1].state, SHM_PUBLISH_TAKEN);
    start(group, &successor, NULL);
    assert_int_equal(kill(leader, SIGCONT), 0);
    crew_end_all(&group->all);
    expect_member(group, 0, 2, 0);
    expect_member(group, 2, 2, 2);
    assert_int_equal(group->answers[1].status, SLUICE_OK);
    expect_keys(group, (const int64_t[]){10, 20, 30, 40}, 4);
    expect_whole(group);
}

/* ---- patience ---- */

static void who_is_not_taken_in_time_has_changed_nothing(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20)};
    tasks[1].options.wait_ms = 100;
    hold(group);
    line_up(group, &tasks[0], NULL);
    start(group, &tasks[1], NULL);
    assert_int_equal(crew_end(&group->all, 1), 0);
    let_go(group);
    crew_end_all(&group->all);
    assert_int_equal(group->answers[1].status, SLUICE_LIVE_WRITER_CONTENTION);
    assert_int_equal(group->answers[1].error.committed, SLUICE_FALSE);
    expect_member(group, 0, 2, 0);
    expect_keys(group, (const int64_t[]){10}, 1);
}

/* P-12: what a stopped leader has taken may yet be published, so its owner cannot say that it was not. */
static void who_was_taken_and_stops_waiting_does_not_know(void **state)
{
    group_state *group = *state;
    task tasks[] = {task_of(group, 0, "A", 10), task_of(group, 1, "A", 20)};
    tasks[1].options = (toy_options){.operation = pf_id_new(), .given = true, .wait_ms = 2500};
    hold(group);
    line_up(group, &tasks[0], "publish.after_take=stop");
    pid_t leader = group->all.pids[0];
    line_up(group, &tasks[1], NULL);
    let_go(group);
    crew_wait_stopped(&group->all, 0);
    assert_int_equal(crew_end(&group->all, 1), 0);
    assert_int_equal(group->answers[1].status, SLUICE_RECOVERY_REQUIRED);
    assert_int_equal(group->answers[1].error.committed, SLUICE_UNKNOWN);
    assert_int_equal(kill(leader, SIGCONT), 0);
    crew_end_all(&group->all);
    expect_keys(group, (const int64_t[]){10, 20}, 2);
    start(group, &tasks[1], NULL); /* the same operation again */
    crew_end_all(&group->all);
    expect_member(group, 1, 2, 1);
    assert_true(group->answers[1].receipt.repeated);
    expect_keys(group, (const int64_t[]){10, 20}, 2);
}

/* ---- as a program ---- */

typedef struct mutation {
    const char *graph, *path;
    answer *to;
} mutation;

static int mutate(void *context, wk_executor *executor)
{
    mutation *me = context;
    st_graph *graph = NULL;
    co_mutate_result result = {0};
    pf_buffer text = {0};
    const co_mutate_options options = {.path = me->path};
    me->to->status = pf_input_read_all(me->path, CO_MUTATE_BYTES_MAX, &text, &me->to->error);
    if (me->to->status == SLUICE_OK)
        me->to->status = open_graph(me->graph, &graph, &me->to->error);
    if (me->to->status == SLUICE_OK)
        me->to->status = co_mutate_text(graph, &options, executor, text.data ? (const char *)text.data : "",
                                        text.length, &result, &me->to->error);
    me->to->receipt = result.receipt;
    st_graph_close(graph);
    pf_buffer_free(&text);
    __atomic_store_n(&me->to->ended, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void print_answer(const answer *from)
{
    char commit[PF_ID_TEXT];
    pf_id_text(&from->receipt.commit, commit);
    printf("{\"status\":\"%s\",\"commit\":\"%s\",\"generation\":%llu,\"index\":%u,\"restarts\":%u}\n",
           sluice_status_name(from->status), from->status == SLUICE_OK ? commit : "",
           (unsigned long long)from->receipt.generation, from->receipt.index, from->receipt.restarts);
}

#define POOLS 3u

static int mutate_together(const char *graph, char **words, uint32_t count)
{
    static mutation jobs[POOLS][CREW_MAX];
    crew all[POOLS] = {0};
    uint32_t pools = 0, seats = 0, done = 0;
    group_state group = {.answers = test_shared(POOLS * CREW_MAX * sizeof(answer))};
    sluice_error err = {0};
    ASSERT_OK(pf_volume_open(graph, PF_WRITE, &group.volume, &err));
    ASSERT_OK(lk_lockfile_open(group.volume, "branches/1/locks", &group.locks, &err));
    for (crew_make(&all[pools++], CREW_MAX, SLICE); seats < count; seats++) {
        assert_true(pools < POOLS || strcmp(words[seats], "--") != 0);
        if (strcmp(words[seats], "--") == 0)
            crew_make(&all[pools++], CREW_MAX, SLICE);
    }
    hold(&group);
    for (uint32_t pool = 0, seat = 0, i = 0; i < count; i++) {
        if (strcmp(words[i], "--") == 0) {
            pool++;
            seat = 0;
            continue;
        }
        jobs[pool][seat] = (mutation){graph, words[i], &group.answers[done]};
        crew_start(&all[pool], seat, mutate, &jobs[pool][seat], NULL);
        crew_wait_in_line_or_ended(&all[pool], seat++, &group.answers[done++].ended);
    }
    let_go(&group);
    for (uint32_t i = 0; i < pools; i++) {
        crew_end_all(&all[i]);
        crew_free(&all[i]);
    }
    for (uint32_t i = 0; i < done; i++)
        print_answer(&group.answers[i]);
    lk_lockfile_close(group.locks);
    pf_volume_close(group.volume);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(who_waits_together_is_one_generation),
        TEST(of_two_writers_of_one_key_in_a_group_the_first_wins),
        TEST(one_operation_twice_in_a_group_is_one_commit),
        TEST(one_operation_id_with_two_contents_in_a_group_is_a_conflict),
        TEST(a_member_that_an_earlier_one_met_comes_again),
        TEST(a_conditional_write_is_a_group_of_its_own),
        cmocka_unit_test_setup_teardown(writes_that_do_not_fit_into_the_region_publish_alone, setup_narrow, teardown),
        TEST(each_of_eight_gets_a_place_in_each_group),
        TEST(eight_writers_of_other_keys_get_about_as_much_each),
        TEST(a_dead_leaders_group_is_settled_by_the_chain),
        TEST(a_dead_leaders_armed_write_is_published_once),
        TEST(a_waiter_that_dies_before_it_is_taken_is_gone),
        TEST(a_waiter_that_dies_as_it_stands_in_line_is_gone),
        TEST(a_waiter_that_dies_after_it_was_taken_is_published),
        TEST(who_is_not_taken_in_time_has_changed_nothing),
        TEST(who_was_taken_and_stops_waiting_does_not_know),
    };
    if (argc > 3 && strcmp(argv[1], "--mutate") == 0)
        return mutate_together(argv[2], argv + 3, (uint32_t)argc - 3);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
