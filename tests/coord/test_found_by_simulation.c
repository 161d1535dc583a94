/*
 * Faults that simulated histories led to, each by itself: somebody else comes in between two calls of an operation, at
 * every one of them in turn; and a branch whose first commit was healed.
 */
#include "coord/branch.h"
#include "coord/recover.h"
#include "die.h"
#include "store/state/lineage.h"
#include "tests/support/test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- somebody comes in between ---- */

typedef struct meeting {
    pf_sim_disk *disk;
    pf_volume *victim;
    uint64_t left; /* calls of the victim, looks too, until `act` runs */
    void (*act)(struct meeting *meeting);
    st_graph *other; /* of whom comes in between */
    st_snapshot *snapshot;
    co_attempt attempt;
    bool ran;
    pf_sim_turns turns;
} meeting;

static void on_call(void *context, pf_volume *volume, bool changes, const char *doing, const char *path)
{
    meeting *m = context;
    (void)changes, (void)doing, (void)path;
    if (m->ran || volume != m->victim || --m->left > 0)
        return;
    m->ran = true;
    m->act(m);
}

static bool on_wait(void *context, pf_deadline deadline)
{
    (void)context;
    pf_sim_world_advance(deadline.monotonic_ns);
    return false;
}

static void on_released(void *context)
{
    (void)context;
}

static void meet(meeting *m, st_graph *victim, uint64_t k, void (*act)(meeting *meeting))
{
    m->victim = st_graph_volume(victim);
    m->left = k;
    m->act = act;
    m->turns = (pf_sim_turns){.context = m, .call = on_call, .wait = on_wait, .released = on_released};
    pf_sim_set_turns(m->disk, &m->turns);
}

static void part(meeting *m)
{
    pf_sim_set_turns(m->disk, NULL);
}

static pf_sim_disk *copy_of(const pf_sim_disk *disk, uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *copy = NULL;
    ASSERT_OK(pf_sim_disk_clone(disk, seed, &copy, &err));
    return copy;
}

static void write_key(pf_sim_disk *disk, const char *branch, int64_t key)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", key, 1);
    const toy_options options = {.branch = branch};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, &options, NULL, &err));
    st_graph_close(graph);
}

static void make_branch(pf_sim_disk *disk, const char *name, const char *from)
{
    sluice_error err = {0};
    co_branch_receipt made = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(co_branch_create(graph, &(co_branch_request){.name = name, .from = from, .operation = pf_id_new()}, &made,
                               &err));
    st_graph_close(graph);
}

static sluice_status delete_branch(st_graph *graph, sluice_error *err)
{
    co_branch_receipt gone = {0};
    return co_branch_delete(graph, &(co_branch_request){.name = "b", .operation = pf_id_new()}, &gone, err);
}

/* A graph with main and the branch b, both written to. */
static pf_sim_disk *two_branches(uint64_t seed)
{
    pf_sim_disk *disk = toy_disk(seed);
    write_key(disk, NULL, 1);
    make_branch(disk, "b", NULL);
    write_key(disk, "b", 2);
    write_key(disk, NULL, 3);
    return disk;
}

static void expect_main_goes_on(pf_sim_disk *disk, uint32_t keys)
{
    int64_t found[16];
    st_graph *graph = toy_open(disk);
    assert_int_equal(toy_keys(graph, "A", found, 16), keys);
    st_graph_close(graph);
    die_recover(disk);
    die_expect_next_write(disk, 100);
    die_expect_no_litter(disk);
    die_expect_whole(disk);
}

/* The same, with all that is dear in each eighth case and the last. */
static void expect_main_stands(const meeting *m, uint64_t k, uint32_t keys)
{
    int64_t found[16];
    if (k % 8 == 0 || !m->ran) {
        expect_main_goes_on(m->disk, keys);
        return;
    }
    st_graph *graph = toy_open(m->disk);
    assert_int_equal(toy_keys(graph, "A", found, 16), keys);
    st_graph_close(graph);
}

/* ---- recovery, and a branch that goes under it ---- */

static void delete_and_collect(meeting *m)
{
    co_gc_report report = {0};
    if (delete_branch(m->other, NULL) == SLUICE_OK)
        (void)co_gc(m->other, false, &report, NULL);
}

/* An armed write to b whose process is dead. */
static void leave_intent(pf_sim_disk *disk)
{
    for (uint64_t k = 1;; k++) {
        pf_sim_disk *at = copy_of(disk, k);
        toy_writer toy = toy_of("A", 20, 1);
        const toy_options options = {.branch = "b"};
        st_graph *graph = toy_open(at);
        pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        sluice_status status = toy_write(graph, &toy, &options, NULL, NULL);
        st_graph_close(graph);
        assert_int_not_equal(status, SLUICE_OK);
        bool confirmed = die_look(at).confirmed;
        pf_sim_disk_free(at);
        if (!confirmed)
            continue;
        graph = toy_open(disk);
        pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        (void)toy_write(graph, &toy, &options, NULL, NULL);
        st_graph_close(graph);
        return;
    }
}

static void recovery_goes_on_where_a_branch_is_deleted_and_collected_under_it(void **state)
{
    (void)state;
    for (unsigned intent = 0; intent < 2; intent++) {
        pf_sim_disk *origin = two_branches(3);
        uint64_t k = 1;
        if (intent)
            leave_intent(origin);
        for (bool ran = true; ran; k++) {
            sluice_error err = {0};
            meeting m = {.disk = copy_of(origin, k)};
            st_graph *graph = toy_open(m.disk);
            m.other = toy_open(m.disk);
            meet(&m, graph, k, delete_and_collect);
            ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
            part(&m);
            st_graph_close(m.other);
            st_graph_close(graph);
            expect_main_stands(&m, k, 2);
            ran = m.ran;
            pf_sim_disk_free(m.disk);
        }
        assert_true(k > 8);
        pf_sim_disk_free(origin);
        pf_sim_world_remove();
    }
}

/* ---- collection, and a reader that lets go of his pin ---- */

static void let_go(meeting *m)
{
    st_snapshot_close(m->snapshot);
    m->snapshot = NULL;
}

/* Of a branch that has no name any more, and that another one was forked from. */
static void collection_lets_go_of_nothing_that_does_not_stand_yet_when_a_pin_ends_under_it(void **state)
{
    (void)state;
    pf_sim_disk *origin = two_branches(5);
    uint64_t k = 1;
    make_branch(origin, "c", "b");
    write_key(origin, "c", 4);
    for (bool ran = true; ran; k++) {
        sluice_error err = {0};
        int64_t found[16];
        co_gc_report report = {0};
        const co_gc_options options = {.keep = 1};
        meeting m = {.disk = copy_of(origin, k)};
        st_graph *graph = toy_open(m.disk);
        m.other = toy_open(m.disk);
        ASSERT_OK(st_snapshot_open(m.other, "b", NULL, &m.snapshot, &err));
        ASSERT_OK(delete_branch(graph, &err));
        meet(&m, graph, k, let_go);
        ASSERT_OK(co_gc_with(graph, &options, &report, &err));
        assert_true(report.generations < 8);
        part(&m);
        st_snapshot_close(m.snapshot);
        ASSERT_OK(co_gc_with(m.other, &options, &report, &err));
        assert_true(report.generations < 8);
        assert_int_equal(toy_keys_on(m.other, "c", "A", found, 16), 3);
        st_graph_close(m.other);
        st_graph_close(graph);
        write_key(m.disk, "c", 5);
        expect_main_stands(&m, k, 2);
        ran = m.ran;
        pf_sim_disk_free(m.disk);
    }
    assert_true(k > 30);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- collection, and an attempt that ends under it ---- */

static void finish_attempt(meeting *m)
{
    sluice_error err = {0};
    ASSERT_OK(co_attempt_finish(m->other, &m->attempt, &err));
}

static void collection_passes_over_attempts_that_end_under_its_eyes(void **state)
{
    (void)state;
    pf_sim_disk *origin = two_branches(7);
    uint64_t k = 1;
    for (bool ran = true; ran; k++) {
        sluice_error err = {0};
        co_gc_report report = {0};
        meeting m = {.disk = copy_of(origin, k)};
        st_graph *graph = toy_open(m.disk);
        m.other = toy_open(m.disk);
        ASSERT_OK(co_attempt_make(m.other, &m.attempt, &err));
        meet(&m, graph, k, finish_attempt);
        ASSERT_OK(co_gc(graph, false, &report, &err));
        part(&m);
        if (!m.ran)
            finish_attempt(&m);
        st_graph_close(m.other);
        st_graph_close(graph);
        expect_main_stands(&m, k, 2);
        ran = m.ran;
        pf_sim_disk_free(m.disk);
    }
    assert_true(k > 30);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- two that delete one branch ---- */

static void a_deletion_says_that_somebody_else_came_first(void **state)
{
    (void)state;
    pf_sim_disk *origin = two_branches(9);
    unsigned second = 0;
    uint64_t k = 1;
    for (bool ran = true; ran; k++) {
        sluice_error err = {0};
        meeting m = {.disk = copy_of(origin, k)};
        st_graph *graph = toy_open(m.disk);
        m.other = toy_open(m.disk);
        meet(&m, graph, k, delete_and_collect);
        sluice_status status = delete_branch(graph, &err);
        part(&m);
        if (status != SLUICE_OK) { /* never FENCED or CORRUPT: it is simply not there any more */
            assert_int_equal(status, SLUICE_NOT_FOUND);
            assert_int_equal(err.committed, SLUICE_FALSE);
            second++;
        }
        st_graph_close(m.other);
        st_graph_close(graph);
        expect_main_stands(&m, k, 2);
        ran = m.ran;
        pf_sim_disk_free(m.disk);
    }
    assert_true(k > 8 && second > 0);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- where a branch begins, behind a healed segment ---- */

static void where_a_branch_begins_is_found_though_its_first_commit_was_healed(void **state)
{
    (void)state;
    static const pf_sim_loss outcomes[] = {PF_SIM_KEEP_ALL, PF_SIM_LOSE_ALL};
    for (size_t i = 0; i < 2; i++) {
        sluice_error err = {0};
        pf_sim_disk *origin = toy_disk(11);
        write_key(origin, NULL, 1);
        make_branch(origin, "b", NULL);
        for (uint64_t k = 1;; k++) {
            pf_sim_disk *disk = copy_of(origin, k);
            toy_writer toy = toy_of("A", 2, 1);
            const toy_options options = {.branch = "b"};
            pf_sim_set_failed_sync(disk, outcomes[i]);
            st_graph *graph = toy_open(disk);
            pf_sim_fail_at(st_graph_volume(graph), k, EIO, 1);
            sluice_status status = toy_write(graph, &toy, &options, NULL, NULL);
            pf_sim_kill(st_graph_volume(graph));
            st_graph_close(graph);
            if (status != SLUICE_SUSPECT) {
                assert_int_not_equal(status, SLUICE_OK);
                pf_sim_disk_free(disk);
                continue;
            }
            die_recover(disk);
            uint64_t incarnation = 0;
            st_log *log = NULL;
            st_fork fork = {0};
            st_view *view = NULL;
            graph = toy_open(disk);
            ASSERT_OK(st_ref_read(graph, "b", &incarnation, &err));
            ASSERT_OK(st_graph_log(graph, incarnation, &log, &err));
            ASSERT_OK(st_log_fork(log, &fork, &err));
            assert_int_equal(fork.incarnation, ST_MAIN_INCARNATION);
            ASSERT_OK(st_view_load_kept(graph, log, fork.generation, &view, &err));
            assert_true(view->generation == fork.generation);
            st_view_free(view);
            st_graph_close(graph);
            write_key(disk, "b", 3);
            expect_main_goes_on(disk, 1);
            pf_sim_disk_free(disk);
            break;
        }
        pf_sim_disk_free(origin);
        pf_sim_world_remove();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovery_goes_on_where_a_branch_is_deleted_and_collected_under_it),
        cmocka_unit_test(collection_lets_go_of_nothing_that_does_not_stand_yet_when_a_pin_ends_under_it),
        cmocka_unit_test(collection_passes_over_attempts_that_end_under_its_eyes),
        cmocka_unit_test(a_deletion_says_that_somebody_else_came_first),
        cmocka_unit_test(where_a_branch_begins_is_found_though_its_first_commit_was_healed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
