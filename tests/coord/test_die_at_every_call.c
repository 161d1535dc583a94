/*
 * Every write of the machine, and every recovery, killed at each of its calls that change or sync something (O-03,
 * O-04; L-001, L-004 to L-018, L-020, L-021).
 *
 * For W such calls of a whole write: the process dies before and after each one; or the power goes, and the disk keeps
 * nothing unsynced, or everything, or what a seed chooses, or everything with the last write torn. Then a fresh process
 * recovers, and again, and writes, and collects. The answer is exactly the old or the new rows; what was acknowledged
 * is there; what was confirmed is rolled forward under its own commit id.
 */
#include "coord/recover.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const int64_t old_keys[] = {1, 2};
static const int64_t new_keys[] = {10, 11, 12};
#define OLD 2u
#define NEW 3u

typedef struct write_scene {
    const char *name;
    const ad_adapter *adapter;
    bool attached;
    bool visible; /* has an effect that is visible by itself: cache/from becomes cache/to */
} write_scene;

static ad_adapter authority_first = {.kind = "load", .version = 1, .arms = false, .replays = true, .retry_budget = 3};

typedef struct death_strike {
    pf_sim_fate fate;
    pf_sim_loss loss;
    unsigned seeds;
} death_strike;
static const death_strike strikes[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL, 1},
                                       {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL, 1},
                                       {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL, 1},
                                       {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST, 2},
                                       {PF_SIM_POWER_LOSS, PF_SIM_RANDOM, 2}};

static const ad_effect visible_effect = {.kind = AD_EFFECT_MOVE, .from = "cache/from", .to = "cache/to"};

static void make_effect_source(st_graph *graph)
{
    sluice_error err = {0};
    pf_file *file = NULL;
    ASSERT_OK(pf_create(st_graph_volume(graph), visible_effect.from, &file, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_sync_dir(st_graph_volume(graph), "cache", &err));
}

static bool is_at(pf_sim_disk *disk, const char *path)
{
    pf_stat stat;
    st_graph *graph = toy_open(disk);
    bool there = pf_stat_path(st_graph_volume(graph), path, &stat, NULL) == SLUICE_OK;
    st_graph_close(graph);
    return there;
}

/* A disk with a graph that holds the old keys. */
static pf_sim_disk *prepare(uint64_t seed)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, OLD);
    pf_sim_disk *disk = toy_disk(seed);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    make_effect_source(graph);
    st_graph_close(graph);
    return disk;
}

static toy_writer writer_of(const write_scene *scene)
{
    toy_writer toy = toy_of("A", new_keys[0], NEW);
    toy.adapter = scene->adapter;
    toy.attached = scene->attached;
    if (scene->visible) {
        toy.effects[0] = visible_effect;
        toy.effect_count = 1;
    }
    return toy;
}

typedef struct write_outcome {
    sluice_status status;
    sluice_error error;
    co_receipt receipt;
} write_outcome;

/* The write, which may be struck at its k-th call (0: never). Returns the calls that it made. */
static uint64_t write_struck(pf_sim_disk *disk, const write_scene *scene, uint64_t k, bool before,
                             const death_strike *strike, write_outcome *ret_outcome)
{
    toy_writer toy = writer_of(scene);
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    uint64_t start = pf_sim_calls(volume);
    if (k)
        pf_sim_crash_at(volume, k, before, strike->fate, strike->loss);
    *ret_outcome = (write_outcome){0};
    ret_outcome->status = toy_write(graph, &toy, NULL, &ret_outcome->receipt, &ret_outcome->error);
    uint64_t calls = pf_sim_calls(volume) - start;
    st_graph_close(graph);
    return calls;
}

static void check_answer(const write_outcome *outcome, bool is_new, bool dead)
{
    if (outcome->status == SLUICE_OK)
        assert_true(is_new); /* acknowledged, so present */
    else if (!dead && outcome->error.committed != SLUICE_UNKNOWN)
        assert_int_equal(outcome->error.committed == SLUICE_TRUE, is_new);
}

static void commit_is(pf_sim_disk *disk, const pf_id *commit)
{
    sluice_error err = {0};
    st_log *log = NULL;
    uint64_t generation;
    uint32_t index;
    st_graph *graph = toy_open(disk);
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    ASSERT_OK(st_commit_find(graph, log, commit, &generation, &index, &err));
    st_graph_close(graph);
}

static void survive(pf_sim_disk *disk, const write_scene *scene, const write_outcome *outcome, bool dead)
{
    die_found found = die_look(disk);
    die_recover(disk);
    bool is_new = die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW);
    die_expect_settled(disk);
    assert_int_equal(die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW), is_new);
    check_answer(outcome, is_new, dead);
    if (scene->visible) { /* L-007: it is there with the commit, and taken back without it; never both, never neither */
        assert_int_equal(is_at(disk, visible_effect.to), is_new);
        assert_int_equal(is_at(disk, visible_effect.from), !is_new);
    }
    if (found.confirmed) { /* L-009: original commit id */
        assert_true(is_new);
        commit_is(disk, &found.commit);
    }
    die_expect_next_write(disk, 100);
    die_expect_no_litter(disk);
}

/* Every strike at every call; with sanitizers, which are slow here, another third of the strikes at each call. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 3u
#else
#define STRIDE 1u
#endif

static size_t first_strike(uint64_t call)
{
    return (size_t)(call % STRIDE);
}

static void die_everywhere(const write_scene *scene)
{
    write_outcome outcome;
    pf_sim_disk *origin = prepare(7), *disk = NULL;
    sluice_error err = {0};
    unsigned deaths = 0;
    ASSERT_OK(pf_sim_disk_clone(origin, 1, &disk, &err));
    uint64_t calls = write_struck(disk, scene, 0, false, NULL, &outcome);
    assert_int_equal(outcome.status, SLUICE_OK);
    assert_true(calls >= 8);
    survive(disk, scene, &outcome, false);
    pf_sim_disk_free(disk);
    for (uint64_t k = 1; k <= calls; k++) {
        for (size_t s = first_strike(k); s < sizeof strikes / sizeof strikes[0]; s += STRIDE) {
            unsigned seeds = strikes[s].seeds > 1 && getenv("SLUICE_LONG") ? 16 : strikes[s].seeds;
            for (unsigned n = 0; n < 2 * seeds; n++, deaths++) {
                ASSERT_OK(pf_sim_disk_clone(origin, 100 * k + n, &disk, &err));
                (void)write_struck(disk, scene, k, n % 2 == 0, &strikes[s], &outcome);
                survive(disk, scene, &outcome, true);
                if (n == 0)
                    die_expect_whole(disk);
                pf_sim_disk_free(disk);
            }
        }
    }
    print_message("%s: %llu calls, %u deaths\n", scene->name, (unsigned long long)calls, deaths);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void an_armed_write_leaves_old_or_new(void **state)
{
    (void)state;
    const write_scene scene = {"armed", &ad_load, false, false};
    die_everywhere(&scene);
}

static void an_authority_first_write_leaves_old_or_new(void **state)
{
    (void)state;
    const write_scene scene = {"authority first", &authority_first, true, false};
    die_everywhere(&scene);
}

static void a_write_with_a_visible_effect_leaves_old_or_new(void **state)
{
    (void)state;
    const write_scene scene = {"visible", &ad_load, false, true};
    die_everywhere(&scene);
}

/* ---- recovery killed at each of its calls, and its successor too ---- */

/* A confirmed intent of a dead owner, not published: the write dies right after the sync that makes its intent durable.
 */
static pf_sim_disk *leave_confirmed(pf_sim_disk *origin)
{
    const write_scene scene = {"armed", &ad_load, false, false};
    const death_strike death = {PF_SIM_DIE, PF_SIM_KEEP_ALL, 1};
    sluice_error err = {0};
    bool written = false;
    for (uint64_t k = 1;; k++) {
        pf_sim_disk *disk = NULL;
        write_outcome outcome;
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        (void)write_struck(disk, &scene, k, false, &death, &outcome);
        assert_int_not_equal(outcome.status, SLUICE_OK);
        if (written) /* by the call before; this one was its sync */
            return disk;
        written = die_look(disk).confirmed;
        pf_sim_disk_free(disk);
    }
}

/* Recovery that may be struck at its k-th call. Returns its calls. */
static uint64_t recover_struck(pf_sim_disk *disk, uint64_t k, bool before, const death_strike *strike)
{
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    uint64_t start = pf_sim_calls(volume);
    if (k)
        pf_sim_crash_at(volume, k, before, strike->fate, strike->loss);
    sluice_status status = co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, NULL);
    assert_true(status == SLUICE_OK || k);
    uint64_t calls = pf_sim_calls(volume) - start;
    st_graph_close(graph);
    return calls;
}

static void check_rolled_forward(pf_sim_disk *disk, const die_found *found)
{
    die_recover(disk);
    assert_true(die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW));
    commit_is(disk, &found->commit);
    die_expect_settled(disk);
    die_expect_next_write(disk, 100);
    die_expect_no_litter(disk);
}

static void recovery_that_dies_at_any_call_twice_ends_the_same(void **state)
{
    (void)state;
    static const death_strike pair[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL, 1},
                                        {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL, 1},
                                        {PF_SIM_POWER_LOSS, PF_SIM_RANDOM, 1}};
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(11), *confirmed = leave_confirmed(origin), *disk = NULL;
    die_found found = die_look(confirmed);
    ASSERT_OK(pf_sim_disk_clone(confirmed, 1, &disk, &err));
    uint64_t calls = recover_struck(disk, 0, false, NULL);
    pf_sim_disk_free(disk);
    assert_true(calls >= 5);
    unsigned deaths = 0;
    for (size_t s = 0; s < sizeof pair / sizeof pair[0]; s++) {
        for (uint64_t k = 1; k <= calls; k++) {
            for (uint64_t again = 0; again <= calls; again++, deaths++) {
                ASSERT_OK(pf_sim_disk_clone(confirmed, 1000 * k + again, &disk, &err));
                (void)recover_struck(disk, k, again % 2 == 0, &pair[s]);
                if (again)
                    (void)recover_struck(disk, again, k % 2 == 0, &pair[(s + 1) % 3]);
                check_rolled_forward(disk, &found);
                pf_sim_disk_free(disk);
            }
        }
    }
    print_message("recovery: %llu calls, %u deaths\n", (unsigned long long)calls, deaths);
    pf_sim_disk_free(confirmed);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- a conductor killed at each of its calls, and its successor ---- */

/* The job's owner (which makes the attempt, knows the operation, and never dies here) lets one process conduct, and
 * another one when that died. Returns the calls of the first one. */
static uint64_t conduct_twice(pf_sim_disk *disk, const write_scene *scene, uint64_t k, bool before,
                              co_receipt *ret_receipt)
{
    sluice_error err = {0};
    co_attempt owner = {0}, joined = {0};
    const toy_options options = {.operation = pf_id_new()};
    toy_writer toy = writer_of(scene), again = writer_of(scene);
    st_graph *graph = toy_open(disk), *first = toy_open(disk), *second = toy_open(disk);
    ASSERT_OK(co_attempt_make(graph, &owner, &err));
    ASSERT_OK(co_attempt_join(first, &owner.id, &joined, &err));
    pf_sim_crash_at(st_graph_volume(first), k, before, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    sluice_status status = toy_conduct(first, &toy, &options, &joined, ret_receipt, NULL);
    bool struck = pf_sim_is_dead(st_graph_volume(first));
    co_attempt_leave(&joined);
    if (status != SLUICE_OK) {
        joined = (co_attempt){0};
        ASSERT_OK(co_attempt_join(second, &owner.id, &joined, &err));
        ASSERT_OK(toy_conduct(second, &again, &options, &joined, ret_receipt, &err));
        co_attempt_leave(&joined);
    }
    assert_true(ret_receipt->committed && ret_receipt->acknowledged);
    assert_false(ret_receipt->repeated); /* nobody asked twice */
    joined.id = owner.id;
    memcpy(joined.folder, owner.folder, sizeof owner.folder);
    co_attempt_leave(&owner);
    ASSERT_OK(co_attempt_finish(graph, &joined, &err)); /* with what the last conductor handed back */
    st_graph_close(first);
    st_graph_close(second);
    st_graph_close(graph);
    return struck;
}

static void a_successor_finishes_what_a_dead_conductor_began(void **state)
{
    (void)state;
    const write_scene scenes[] = {{"armed", &ad_load, false, false},
                                  {"authority first", &authority_first, true, false}};
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(19), *disk = NULL;
    for (size_t s = 0; s < 2; s++) {
        uint64_t k = 1;
        for (bool struck = true; struck; k++) {
            for (unsigned before = 0; before < 2; before++) {
                co_receipt receipt;
                ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
                struck = conduct_twice(disk, &scenes[s], k, before, &receipt);
                assert_true(die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW));
                commit_is(disk, &receipt.commit);
                die_recover(disk); /* an intent that its owner, struck there, did not retire any more */
                die_expect_settled(disk);
                die_expect_no_litter(disk);
                die_expect_whole(disk);
                pf_sim_disk_free(disk);
            }
        }
        assert_true(k > 8);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- collection killed at each of its calls ---- */

static void collection_that_dies_at_any_call_removes_nothing_that_is_named(void **state)
{
    (void)state;
    const write_scene scene = {"armed", &ad_load, false, false};
    const death_strike death = {PF_SIM_DIE, PF_SIM_KEEP_ALL, 1};
    sluice_error err = {0};
    write_outcome outcome;
    co_gc_report report;
    pf_sim_disk *origin = prepare(13), *littered = NULL, *disk = NULL;
    ASSERT_OK(pf_sim_disk_clone(origin, 1, &littered, &err));
    (void)write_struck(littered, &scene, 9, false, &death, &outcome); /* dies while it stages */
    for (uint64_t k = 1;; k++) {
        bool done = false;
        for (unsigned n = 0; n < 2 * 5; n++) {
            ASSERT_OK(pf_sim_disk_clone(littered, 50 * k + n, &disk, &err));
            st_graph *graph = toy_open(disk);
            pf_sim_crash_at(st_graph_volume(graph), k, n % 2 == 0, strikes[n / 2].fate, strikes[n / 2].loss);
            done = co_gc(graph, false, &report, NULL) == SLUICE_OK && !pf_sim_is_dead(st_graph_volume(graph));
            st_graph_close(graph);
            die_recover(disk);
            assert_false(die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW));
            die_expect_next_write(disk, 100);
            die_expect_no_litter(disk);
            pf_sim_disk_free(disk);
        }
        if (done)
            break;
    }
    pf_sim_disk_free(littered);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_armed_write_leaves_old_or_new),
        cmocka_unit_test(an_authority_first_write_leaves_old_or_new),
        cmocka_unit_test(a_write_with_a_visible_effect_leaves_old_or_new),
        cmocka_unit_test(recovery_that_dies_at_any_call_twice_ends_the_same),
        cmocka_unit_test(a_successor_finishes_what_a_dead_conductor_began),
        cmocka_unit_test(collection_that_dies_at_any_call_removes_nothing_that_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
