/*
 * Optimize: rows, their ids and the commits that changed them last are the same before and after, whatever happens
 * beside it and wherever it is cut off (L-043, OW-098, OW-100, OD-042; LESSONS table "cost": other types' reads = 0).
 */
#include "coord/recover.h"
#include "die.h"
#include "sweep.h"
#include "tests/support/test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each second call, or each seventh with sanitizers, other ones for each fate; SLUICE_LONG=1: every one. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 7u
#else
#define STRIDE 2u
#endif
static uint64_t stride(void)
{
    return getenv("SLUICE_LONG") ? 1 : STRIDE;
}

#define INSERTED 20
static const int64_t deleted[] = {2, 12};
static const int64_t updated[] = {7};

/* Type A: four fragments of five rows, two rows deleted, one written anew in a fifth; type B: two fragments. */
static pf_sim_disk *prepare(uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(seed);
    st_graph *graph = toy_open(disk);
    for (int64_t first = 1; first < INSERTED; first += 5) {
        toy_writer toy = toy_of("A", first, 5);
        ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    }
    for (int64_t first = 1; first < 5; first += 2) {
        toy_writer toy = toy_of("B", first, 2);
        ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    }
    ASSERT_OK(sweep_write(graph, "A", SWEEP_DELETE, deleted, 2, &err));
    ASSERT_OK(sweep_write(graph, "A", SWEEP_UPDATE, updated, 1, &err));
    st_graph_close(graph);
    return disk;
}

static int by_row(const void *a, const void *b)
{
    const sweep_row *left = a, *right = b;
    return (left->row > right->row) - (left->row < right->row);
}

static void expect_rows(st_graph *graph, const char *type, const sweep_row *rows, uint32_t count)
{
    sweep_row found[SWEEP_ROWS];
    assert_int_equal(sweep_rows(graph, type, found), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(found[i].key, rows[i].key);
        assert_int_equal(found[i].row, rows[i].row);
        assert_true(pf_id_equal(&found[i].commit, &rows[i].commit));
    }
}

static void rows_ids_and_commits_stay_and_stand_in_order(void **state)
{
    (void)state;
    sluice_error err = {0};
    sweep_row a[SWEEP_ROWS], b[SWEEP_ROWS];
    co_receipt receipt;
    pf_sim_disk *disk = prepare(11);
    st_graph *graph = toy_open(disk);
    uint32_t a_count = sweep_rows(graph, "A", a), b_count = sweep_rows(graph, "B", b);
    assert_int_equal(a_count, INSERTED - 2);
    assert_int_equal(a[a_count - 1].key, updated[0]); /* written last; it goes back to where its row id stands */
    qsort(a, a_count, sizeof *a, by_row);
    assert_int_equal(sweep_fragments(graph, "A"), 5);

    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, NULL, &receipt, &err));
    assert_true(receipt.committed);
    assert_int_equal(receipt.inserted + receipt.updated + receipt.deleted, 0);
    assert_int_equal(sweep_fragments(graph, "A"), 1);
    assert_int_equal(sweep_fragments(graph, "B"), 1);
    expect_rows(graph, "A", a, a_count);
    expect_rows(graph, "B", b, b_count);

    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, NULL, &receipt, &err)); /* nothing to do: no commit */
    assert_false(receipt.committed);
    st_graph_close(graph);
    die_expect_whole(disk);
    die_expect_no_litter(disk);

    graph = toy_open(disk); /* what was deleted may come again, under new ids; keys are found by the new runs */
    toy_writer again = toy_of("A", deleted[0], 1), twice = toy_of("A", updated[0], 1);
    ASSERT_OK(toy_write(graph, &again, NULL, NULL, &err));
    assert_int_equal(toy_write(graph, &twice, NULL, NULL, &err), SLUICE_KEY_CONFLICT);
    int64_t gone[INSERTED];
    for (uint32_t i = 0; i < a_count; i++)
        gone[i] = a[i].key;
    ASSERT_OK(sweep_write(graph, "A", SWEEP_DELETE, gone, a_count, &err));
    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, "A", &receipt, &err)); /* a fragment without a living row goes */
    assert_int_equal(sweep_fragments(graph, "A"), 1);
    assert_true(toy_holds(graph, "A", deleted, 1));
    st_graph_close(graph);
    die_expect_whole(disk);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* ---- beside others ---- */

typedef struct rival {
    pf_sim_disk *disk;
    int what; /* of the acts below */
    sluice_status status;
    bool ran;
} rival;
enum { DELETE, UPDATE, INSERT, REPLACE, OPTIMIZE, INDEX, COLLECT, RECOVER, RIVALS };
static const int64_t rival_deletes[] = {8, 9};
static const int64_t rival_updates[] = {7, 13};

static void act(void *context)
{
    rival *other = context;
    co_gc_report report;
    toy_writer toy = toy_of("A", 100, 2);
    st_graph *graph = toy_open(other->disk);
    other->ran = true;
    switch (other->what) {
    case DELETE:
        other->status = sweep_write(graph, "A", SWEEP_DELETE, rival_deletes, 2, NULL);
        break;
    case UPDATE:
        other->status = sweep_write(graph, "A", SWEEP_UPDATE, rival_updates, 2, NULL);
        break;
    case INSERT:
        other->status = toy_write(graph, &toy, NULL, NULL, NULL);
        break;
    case REPLACE:
        other->status = sweep_write(graph, "A", SWEEP_REPLACE, NULL, 0, NULL);
        break;
    case OPTIMIZE:
    case INDEX:
        other->status = sweep_maintain(graph, other->what == INDEX ? CO_INDEX : CO_OPTIMIZE, "A", NULL, NULL);
        break;
    case COLLECT:
        other->status = co_gc(graph, false, &report, NULL);
        break;
    default:
        other->status = co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, NULL);
        break;
    }
    st_graph_close(graph);
}

/* The keys that must be there, ascending, given what the rival has done. */
static uint32_t expected_keys(const rival *other, int64_t *keys)
{
    uint32_t count = 0;
    bool did = other->ran && other->status == SLUICE_OK;
    if (did && other->what == REPLACE)
        return 0;
    for (int64_t key = 1; key <= INSERTED; key++) {
        bool gone = key == deleted[0] || key == deleted[1];
        gone |= did && other->what == DELETE && (key == rival_deletes[0] || key == rival_deletes[1]);
        if (!gone)
            keys[count++] = key;
    }
    for (int64_t key = 100; did && other->what == INSERT && key < 102; key++)
        keys[count++] = key;
    return count;
}

/* False when optimize made fewer than k calls. */
static bool meet(pf_sim_disk *origin, uint64_t k, int what)
{
    sluice_error err = {0};
    rival other = {.what = what};
    int64_t keys[64];
    sweep_row rows[SWEEP_ROWS], after[SWEEP_ROWS];
    ASSERT_OK(pf_sim_disk_clone(origin, 7 * k, &other.disk, &err));
    st_graph *graph = toy_open(other.disk);
    pf_sim_interrupt_at(st_graph_volume(graph), k, act, &other);
    sluice_status status = sweep_maintain(graph, CO_OPTIMIZE, "A", NULL, &err);
    st_graph_close(graph);
    if (other.ran) {
        /* It fails when what it took out was taken away, and for nothing else: rows may change as they like. */
        assert_true(status == SLUICE_OK || (what == REPLACE && status == SLUICE_WRITE_CONFLICT &&
                                            err.committed == SLUICE_FALSE && other.status == SLUICE_OK));
        /* An overwrite read the table before: it meets an optimize that was faster. Others wait for the folder. */
        assert_true(other.status == SLUICE_OK || other.status == SLUICE_LIVE_WRITER_CONTENTION ||
                    (what == REPLACE && other.status == SLUICE_REBASE_EXHAUSTED));
    }
    die_recover(other.disk);
    graph = toy_open(other.disk);
    assert_true(toy_holds(graph, "A", keys, expected_keys(&other, keys)));
    uint32_t count = sweep_rows(graph, "A", rows);
    qsort(rows, count, sizeof *rows, by_row);
    for (uint32_t i = 1; i < count; i++)
        assert_true(rows[i - 1].row < rows[i].row); /* no row twice */
    ASSERT_OK(
        sweep_maintain(graph, CO_OPTIMIZE, "A", NULL, &err)); /* and once more: deletions were handed on for good */
    assert_int_equal(sweep_rows(graph, "A", after), count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(after[i].row == rows[i].row && pf_id_equal(&after[i].commit, &rows[i].commit));
    st_graph_close(graph);
    if (other.ran && k % 8 == 0)
        die_expect_whole(other.disk);
    die_expect_next_write(other.disk, 1000);
    die_expect_no_litter(other.disk);
    pf_sim_disk_free(other.disk);
    return other.ran;
}

static void whatever_happens_beside_it_no_row_is_lost_or_comes_back(void **state)
{
    (void)state;
    pf_sim_disk *origin = prepare(23);
    for (int what = 0; what < RIVALS; what++) {
        uint64_t k = 1 + (uint64_t)what % stride();
        while (meet(origin, k, what))
            k += stride();
        assert_true(k > 20);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- cut off ---- */

typedef struct fate {
    bool before;
    pf_sim_fate fate;
    pf_sim_loss loss;
} fate;
static const fate fates[] = {
    {true, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {false, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {true, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
};

/* An index that dies at its k-th call: the fragment that an update made has its run or not, and rows are the same. */
static bool cut_index(pf_sim_disk *origin, uint64_t k, const fate *how)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    int64_t keys[64];
    rival nobody = {.what = RIVALS};
    co_receipt receipt;
    ASSERT_OK(pf_sim_disk_clone(origin, 31 * k, &disk, &err));
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    sluice_status status = sweep_maintain(graph, CO_INDEX, NULL, NULL, &err);
    bool dead = pf_sim_is_dead(volume);
    pf_sim_kill(volume);
    st_graph_close(graph);
    bool confirmed = die_look(disk).confirmed;
    die_recover(disk);
    die_expect_settled(disk);
    graph = toy_open(disk);
    assert_true(toy_holds(graph, "A", keys, expected_keys(&nobody, keys)));
    assert_int_equal(sweep_fragments(graph, "A"), 5);
    ASSERT_OK(sweep_maintain(graph, CO_INDEX, NULL, &receipt, &err));
    if (status == SLUICE_OK || confirmed)
        assert_false(receipt.committed);
    ASSERT_OK(sweep_maintain(graph, CO_INDEX, NULL, &receipt, &err));
    assert_false(receipt.committed);
    assert_int_equal(sweep_fragments(graph, "A"), 5);
    st_graph_close(graph);
    if (k % 8 == 0)
        die_expect_whole(disk);
    die_expect_next_write(disk, 1000);
    die_expect_no_litter(disk);
    pf_sim_disk_free(disk);
    return dead;
}

static void an_index_that_dies_at_any_call_changes_no_row(void **state)
{
    (void)state;
    pf_sim_disk *origin = prepare(6);
    for (size_t i = 1; i < sizeof fates / sizeof *fates; i += 2) {
        uint64_t k = 1 + i % stride();
        while (cut_index(origin, k, &fates[i]))
            k += stride();
        assert_true(k > 20);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static bool cut(pf_sim_disk *origin, uint64_t k, const fate *how, const sweep_row *rows, uint32_t count)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    sweep_row unordered[SWEEP_ROWS];
    ASSERT_OK(pf_sim_disk_clone(origin, 31 * k, &disk, &err));
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    sluice_status status = sweep_maintain(graph, CO_OPTIMIZE, NULL, NULL, &err);
    bool dead = pf_sim_is_dead(volume);
    pf_sim_kill(volume);
    st_graph_close(graph);
    die_found found = die_look(disk);
    die_recover(disk);
    die_expect_settled(disk);
    graph = toy_open(disk);
    uint32_t a = sweep_fragments(graph, "A"), b = sweep_fragments(graph, "B");
    assert_true((a == 1 && b == 1) || (a == 5 && b == 2)); /* both tables or none */
    if (status == SLUICE_OK || found.confirmed)
        assert_int_equal(a, 1);
    assert_int_equal(sweep_rows(graph, "A", unordered), count);
    qsort(unordered, count, sizeof *unordered, by_row);
    for (uint32_t i = 0; i < count; i++)
        assert_true(unordered[i].key == rows[i].key && unordered[i].row == rows[i].row &&
                    pf_id_equal(&unordered[i].commit, &rows[i].commit));
    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, NULL, NULL, &err)); /* the next one finishes the work */
    expect_rows(graph, "A", rows, count);
    st_graph_close(graph);
    if (k % 8 == 0)
        die_expect_whole(disk);
    die_expect_next_write(disk, 1000);
    die_expect_no_litter(disk);
    pf_sim_disk_free(disk);
    return dead;
}

static void one_that_dies_at_any_call_leaves_old_or_new_lists(void **state)
{
    (void)state;
    sweep_row rows[SWEEP_ROWS];
    pf_sim_disk *origin = prepare(5);
    st_graph *graph = toy_open(origin);
    uint32_t count = sweep_rows(graph, "A", rows);
    qsort(rows, count, sizeof *rows, by_row);
    st_graph_close(graph);
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        uint64_t k = 1 + i % stride();
        while (cut(origin, k, &fates[i], rows, count))
            k += stride();
        assert_true(k > 20);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* Too many open files, no space, an I/O error, at each call: typed, with nothing changed, and the next one works. */
static void one_that_fails_at_any_call_says_so_and_leaves_the_rows(void **state)
{
    (void)state;
    static const int errors[] = {EMFILE, ENOSPC, EIO};
    pf_sim_disk *origin = prepare(9);
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        for (uint64_t k = 1 + e;; k += 3) {
            sluice_error err = {0};
            pf_sim_disk *disk = NULL;
            int64_t keys[64];
            rival nobody = {.what = RIVALS};
            ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
            st_graph *graph = toy_open(disk);
            uint64_t before = pf_sim_calls(st_graph_volume(graph));
            pf_sim_fail_at(st_graph_volume(graph), k, errors[e], 1);
            sluice_status status = sweep_maintain(graph, CO_OPTIMIZE, NULL, NULL, &err);
            bool met = pf_sim_calls(st_graph_volume(graph)) - before >= k;
            if (status != SLUICE_OK)
                assert_true(sluice_status_exit(status) != 0 && err.message[0] != '\0');
            st_graph_close(graph);
            die_recover(disk);
            graph = toy_open(disk);
            assert_true(toy_holds(graph, "A", keys, expected_keys(&nobody, keys)));
            ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, NULL, NULL, &err));
            assert_int_equal(sweep_fragments(graph, "A"), 1);
            st_graph_close(graph);
            pf_sim_disk_free(disk);
            if (!met)
                break;
        }
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- cost ---- */

static uint64_t cost_of(uint32_t others)
{
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(3);
    st_graph *graph = toy_open(disk);
    for (int64_t i = 0; i < 4; i++) {
        toy_writer toy = toy_of("A", 5 * i, 5);
        ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    }
    for (uint32_t i = 0; i < others; i++) {
        toy_writer toy = toy_of("B", 60 * (int64_t)i, 60);
        ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    }
    st_graph_close(graph);
    graph = toy_open(disk);
    pf_volume_counters_reset(st_graph_volume(graph));
    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, "A", NULL, &err));
    const pf_counters *counters = pf_volume_counters(st_graph_volume(graph));
    uint64_t cost = counters->opens + counters->maps + counters->creates + counters->file_syncs;
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
    return cost;
}

static void optimizing_one_type_reads_no_other(void **state)
{
    (void)state;
    assert_int_equal(cost_of(1), cost_of(20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_ids_and_commits_stay_and_stand_in_order),
        cmocka_unit_test(whatever_happens_beside_it_no_row_is_lost_or_comes_back),
        cmocka_unit_test(one_that_dies_at_any_call_leaves_old_or_new_lists),
        cmocka_unit_test(an_index_that_dies_at_any_call_changes_no_row),
        cmocka_unit_test(one_that_fails_at_any_call_says_so_and_leaves_the_rows),
        cmocka_unit_test(optimizing_one_type_reads_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
