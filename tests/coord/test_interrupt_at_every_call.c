/*
 * Just before each call of a write, somebody else does something whole: writes other keys, the same keys, recovers,
 * collects, or has this process fenced and recovers it. What comes of it is what some order of the two would give
 * (L-022 to L-025, L-032, OW-051, OW-053, G-10).
 */
#include "coord/recover.h"
#include "coord/write.h"
#include "die.h"
#include "locks/oslock.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t mine[] = {10, 11};

typedef struct rival_actor {
    pf_sim_disk *disk;
    pf_volume *victim; /* of the write that is interrupted */
    toy_writer toy;
    toy_options options;
    co_receipt receipt;
    sluice_status status;
    bool ran;
} rival_actor;

static pf_sim_disk *prepare(uint64_t seed)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 1);
    pf_sim_disk *disk = toy_disk(seed);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    st_graph_close(graph);
    return disk;
}

/* ---- what the rival does ---- */

static void write_rival(void *context)
{
    rival_actor *rival = context;
    st_graph *graph = toy_open(rival->disk);
    rival->status = toy_write(graph, &rival->toy, &rival->options, &rival->receipt, NULL);
    rival->ran = true;
    st_graph_close(graph);
}

static void collect(void *context)
{
    rival_actor *rival = context;
    co_gc_report report;
    st_graph *graph = toy_open(rival->disk);
    rival->status = co_gc(graph, false, &report, NULL);
    rival->ran = true;
    st_graph_close(graph);
}

static void recover(void *context)
{
    rival_actor *rival = context;
    st_graph *graph = toy_open(rival->disk);
    rival->status = co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, NULL);
    rival->ran = true;
    st_graph_close(graph);
}

/* The supervisor's way: first the process is dead, then its work is recovered. It never runs on. */
static void fence_and_recover(void *context)
{
    rival_actor *rival = context;
    pf_sim_kill(rival->victim);
    recover(context);
    assert_int_equal(rival->status, SLUICE_OK);
}

/* ---- the interrupted write ---- */

/* False when the write made fewer than k calls. */
static bool interrupt(pf_sim_disk *origin, uint64_t k, rival_actor *rival, void (*act)(void *context), bool same_keys)
{
    sluice_error err = {0};
    co_receipt receipt = {0};
    toy_writer toy = toy_of("A", mine[0], 2);
    ASSERT_OK(pf_sim_disk_clone(origin, 7 * k, &rival->disk, &err));
    st_graph *graph = toy_open(rival->disk);
    rival->victim = st_graph_volume(graph);
    rival->ran = false;
    rival->toy = toy_of("A", same_keys ? mine[0] : 20, 2);
    pf_sim_interrupt_at(rival->victim, k, act, rival);
    sluice_status status = toy_write(graph, &toy, NULL, &receipt, &err);
    bool killed = pf_sim_is_dead(rival->victim);
    st_graph_close(graph);
    if (!rival->ran) {
        assert_int_equal(status, SLUICE_OK);
        pf_sim_disk_free(rival->disk);
        return false;
    }
    die_recover(rival->disk);
    int64_t found[8];
    graph = toy_open(rival->disk);
    uint32_t count = toy_keys(graph, "A", found, 8);
    st_graph_close(graph);
    bool have_mine = count > 1 && found[1] == mine[0];
    bool wrote = act == write_rival;
    if (killed) {
        assert_true(status == SLUICE_OK ? have_mine : true); /* once its flush has returned it is acknowledged */
        assert_true(count == 1 || (count == 3 && have_mine));
    } else if (same_keys) {
        assert_int_equal((status == SLUICE_OK) + (rival->status == SLUICE_OK), 1);
        assert_int_equal(count, 3);
        if (status != SLUICE_OK) {
            assert_int_equal(status, SLUICE_KEY_CONFLICT);
            assert_int_equal(err.committed, SLUICE_FALSE);
        }
    } else {
        assert_int_equal(status, SLUICE_OK);
        assert_true(have_mine);
        assert_int_equal(count, 3 + (wrote && rival->status == SLUICE_OK ? 2 : 0));
    }
    /* A rival meets nothing but a publish under way. */
    assert_true(rival->status == SLUICE_OK || rival->status == SLUICE_LIVE_WRITER_CONTENTION ||
                (same_keys && rival->status == SLUICE_KEY_CONFLICT));
    die_expect_next_write(rival->disk, 100);
    die_expect_settled(rival->disk);
    die_expect_no_litter(rival->disk);
    pf_sim_disk_free(rival->disk);
    return true;
}

static void interrupt_everywhere(void (*act)(void *context), bool same_keys)
{
    rival_actor rival = {0};
    pf_sim_disk *origin = prepare(23);
    uint64_t k = 1;
    while (interrupt(origin, k, &rival, act, same_keys))
        k++;
    assert_true(k > 8);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void another_writer_of_other_keys_never_fails_me(void **state)
{
    (void)state;
    interrupt_everywhere(write_rival, false);
}

static void of_two_writers_of_one_key_one_wins(void **state)
{
    (void)state;
    interrupt_everywhere(write_rival, true);
}

/* OD-048: the same request twice at once is one commit, wherever the two meet. */
static void ask_twice(bool blind)
{
    sluice_error err = {0};
    rival_actor rival = {.options = {.operation = pf_id_new(), .given = true}};
    pf_sim_disk *origin = prepare(29);
    uint64_t k = 1;
    do {
        co_receipt receipt = {0};
        toy_writer toy = toy_of("A", mine[0], 2);
        toy.blind = blind;
        ASSERT_OK(pf_sim_disk_clone(origin, 7 * k, &rival.disk, &err));
        st_graph *graph = toy_open(rival.disk);
        rival.toy = toy;
        rival.ran = false;
        pf_sim_interrupt_at(st_graph_volume(graph), k, write_rival, &rival);
        ASSERT_OK(toy_write(graph, &toy, &rival.options, &receipt, &err));
        if (rival.ran && rival.status == SLUICE_OK)
            assert_true(pf_id_equal(&receipt.commit, &rival.receipt.commit));
        else
            assert_true(!rival.ran || rival.status == SLUICE_LIVE_WRITER_CONTENTION);
        assert_true(toy_holds(graph, "A", (const int64_t[]){1, 10, 11}, 3));
        st_graph_close(graph);
        die_recover(rival.disk);
        die_expect_settled(rival.disk);
        die_expect_no_litter(rival.disk);
        pf_sim_disk_free(rival.disk);
        k++;
    } while (rival.ran);
    assert_true(k > 8);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void two_of_one_operation_are_one_commit(void **state)
{
    (void)state;
    ask_twice(false);
    ask_twice(true); /* no conflict of keys stops the second */
}

static void collection_takes_nothing_from_a_living_writer(void **state)
{
    (void)state;
    interrupt_everywhere(collect, false);
}

/* ---- an attempt that is being made ---- */

typedef struct attempt_maker {
    pf_sim_disk *disk;
    pf_volume *volume;
    lk_lockfile *locks;
    char lock[80];
    bool begun;
} attempt_maker;

/* What coord/attempt.c does, up to the moment before its lock file is locked, while collection lists the attempts. */
static void begin_attempt(void *context, pf_volume *volume, bool changes, const char *doing, const char *path)
{
    attempt_maker *maker = context;
    sluice_error err = {0};
    char id[PF_ID_TEXT], folder[64];
    pf_file *file = NULL;
    pf_id attempt = pf_id_new();
    (void)volume, (void)changes;
    if (maker->begun || strcmp(path, "attempts") != 0 || strncmp(doing, "listing", 7) != 0)
        return;
    maker->begun = true;
    pf_id_text(&attempt, id);
    (void)snprintf(folder, sizeof folder, "attempts/%s", id);
    (void)snprintf(maker->lock, sizeof maker->lock, "%s/lock", folder);
    ASSERT_OK(lk_lockfile_open(maker->volume, "locks/graph", &maker->locks, &err));
    ASSERT_OK(lk_take(maker->locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_make_folder(maker->volume, folder, &err));
    ASSERT_OK(pf_create(maker->volume, maker->lock, &file, &err));
    ASSERT_OK(pf_close(file, &err));
}

static bool wait_in_vain(void *context, pf_deadline deadline)
{
    (void)context, (void)deadline;
    return false;
}

static void note_nothing(void *context)
{
    (void)context;
}

static void collection_takes_no_attempt_that_is_being_made(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_gc_report report = {0};
    attempt_maker maker = {.disk = prepare(11)};
    pf_stat stat;
    const pf_sim_turns turns = {&maker, begin_attempt, wait_in_vain, note_nothing};
    ASSERT_OK(pf_sim_actor(maker.disk, "graph", &maker.volume, &err));
    st_graph *graph = toy_open(maker.disk);
    pf_sim_set_turns(maker.disk, &turns);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, co_gc(graph, false, &report, &err)); /* it waits for the maker */
    pf_sim_set_turns(maker.disk, NULL);
    assert_true(maker.begun);
    ASSERT_OK(pf_stat_path(maker.volume, maker.lock, &stat, &err));
    lk_lockfile_close(maker.locks);
    pf_volume_close(maker.volume); /* he dies */
    err = (sluice_error){0};
    ASSERT_OK(co_gc(graph, false, &report, &err));
    assert_true(report.attempts >= 1);
    st_graph_close(graph);
    pf_sim_disk_free(maker.disk);
    pf_sim_world_remove();
}

static void recovery_never_touches_a_living_writer(void **state)
{
    (void)state;
    interrupt_everywhere(recover, false);
}

static void a_fenced_writer_changes_nothing_any_more(void **state)
{
    (void)state;
    interrupt_everywhere(fence_and_recover, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_writer_of_other_keys_never_fails_me),
        cmocka_unit_test(of_two_writers_of_one_key_one_wins),
        cmocka_unit_test(two_of_one_operation_are_one_commit),
        cmocka_unit_test(collection_takes_nothing_from_a_living_writer),
        cmocka_unit_test(collection_takes_no_attempt_that_is_being_made),
        cmocka_unit_test(recovery_never_touches_a_living_writer),
        cmocka_unit_test(a_fenced_writer_changes_nothing_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
