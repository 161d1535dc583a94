/*
 * Backups killed, or with the power gone, at each of their calls (coord/backup.h).
 *
 * A first one leaves no graph or the whole one, and the same command finishes it. Another one leaves the state before
 * or the state after, of all branches and checkpoints at once, to readers and to writers alike; and the folder can be
 * written to, and backed up into again when nobody did.
 */
#include "coord/backup.h"
#include "coord/branch.h"
#include "coord/checkpoint.h"
#include "coord/recover.h"
#include "die.h"
#include "sweep.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

typedef struct death {
    pf_sim_fate fate;
    pf_sim_loss loss;
} death;
static const death deaths[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL},
                               {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
                               {PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
                               {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST}};
#define DEATHS (sizeof deaths / sizeof deaths[0])

/* What is compared: keys of three branches, and how many checkpoints there are. -1: no such branch. */
typedef struct seen {
    int main, draft, late;
    unsigned checkpoints;
} seen;

static int keys_on(st_graph *graph, const char *branch)
{
    int64_t keys[TOY_KEYS];
    uint64_t incarnation;
    if (st_ref_read(graph, branch, &incarnation, NULL) != SLUICE_OK)
        return -1;
    return (int)toy_keys_on(graph, branch, "A", keys, TOY_KEYS);
}

static seen see(st_graph *graph)
{
    sluice_error err = {0};
    st_control control = {0};
    ASSERT_OK(st_control_read(graph, &control, &err));
    seen found = {keys_on(graph, "main"), keys_on(graph, "draft"), keys_on(graph, "late"), control.checkpoint_count};
    st_control_free(&control);
    return found;
}

static bool same(seen a, seen b)
{
    return a.main == b.main && a.draft == b.draft && a.late == b.late && a.checkpoints == b.checkpoints;
}

static void write_keys(st_graph *graph, const char *branch, int64_t first, uint32_t count)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", first, count);
    toy_options options = {.branch = branch};
    ASSERT_OK(toy_write(graph, &toy, &options, NULL, &err));
}

static void make_branch(st_graph *graph, const char *name)
{
    sluice_error err = {0};
    co_branch_receipt made = {0};
    co_branch_request request = {.name = name, .operation = pf_id_new()};
    ASSERT_OK(co_branch_create(graph, &request, &made, &err));
}

static void make_checkpoint(st_graph *graph, const char *name)
{
    sluice_error err = {0};
    co_checkpoint_receipt made = {0};
    co_checkpoint_request request = {.name = name, .operation = pf_id_new()};
    ASSERT_OK(co_checkpoint_create(graph, &request, &made, &err));
}

static const seen early = {5, 5, -1, 1}, later = {12, -1, 13, 2};

static void write_early(st_graph *graph)
{
    write_keys(graph, "main", 1, 3);
    make_branch(graph, "draft");
    write_keys(graph, "draft", 4, 2);
    write_keys(graph, "main", 4, 2);
    make_checkpoint(graph, "first");
}

static void write_later(st_graph *graph)
{
    sluice_error err = {0};
    static const int64_t gone[] = {2};
    co_branch_receipt deleted = {0};
    co_branch_request request = {.name = "draft", .operation = pf_id_new()};
    write_keys(graph, "draft", 60, 1);
    for (int64_t i = 0; i < 8; i++)
        write_keys(graph, "main", 10 + i, 1);
    ASSERT_OK(sweep_write(graph, "A", SWEEP_DELETE, gone, 1, &err));
    make_branch(graph, "late");
    write_keys(graph, "late", 30, 1);
    make_checkpoint(graph, "second");
    ASSERT_OK(co_branch_delete(graph, &request, &deleted, &err));
}

static sluice_status back_up(st_graph *source, pf_sim_disk *disk, uint64_t k, bool before, const death *how,
                             co_backup_report *ret_report, sluice_error *err)
{
    pf_volume *volume = NULL;
    sluice_error actor = {0};
    assert_int_equal(pf_sim_actor(disk, "graph", &volume, &actor), SLUICE_OK);
    if (k)
        pf_sim_crash_at(volume, k, before, how->fate, how->loss);
    return co_backup_on(source, volume, NULL, NULL, ret_report, err);
}

static sluice_status open_on(pf_sim_disk *disk, pf_access access, st_graph **ret_graph, sluice_error *err)
{
    pf_volume *volume = NULL;
    assert_int_equal(pf_sim_actor(disk, "graph", &volume, err), SLUICE_OK);
    return st_graph_open_on(volume, access, ret_graph, err);
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

static seen see_whole(pf_sim_disk *disk, pf_access access)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    st_graph *graph = NULL;
    ASSERT_OK(open_on(disk, access, &graph, &err));
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    seen found = see(graph);
    st_graph_close(graph);
    return found;
}

/* A source in the early state, and a folder with a backup of it; then the source goes on. */
static st_graph *prepare(pf_sim_disk **ret_source, pf_sim_disk **ret_copy)
{
    sluice_error err = {0};
    co_backup_report report;
    *ret_source = toy_disk(7);
    ASSERT_OK(pf_sim_disk_new(8, ret_copy, &err));
    st_graph *source = toy_open(*ret_source);
    write_early(source);
    ASSERT_OK(back_up(source, *ret_copy, 0, false, NULL, &report, &err));
    assert_true(report.first);
    return source;
}

static void a_backup_is_the_graph_with_all_of_its_branches(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk, *copy;
    co_backup_report report;
    st_graph *source = prepare(&disk, &copy);
    assert_true(same(see_whole(copy, PF_READ), early));
    write_later(source);
    assert_true(same(see(source), later));
    ASSERT_OK(back_up(source, copy, 0, false, NULL, &report, &err));
    assert_false(report.first);
    assert_true(report.reused_files > 0);
    assert_true(same(see_whole(copy, PF_READ), later));
    ASSERT_OK(back_up(source, copy, 0, false, NULL, &report, &err));
    assert_int_equal(report.files, 0);
    die_expect_whole(copy);
    die_expect_next_write(copy, 50);
    /* It has been written to: a graph of its own. */
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, back_up(source, copy, 0, false, NULL, &report, &err));
    assert_int_equal(see_whole(copy, PF_READ).main, later.main + 1);
    st_graph_close(source);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* Strikes every call of a backup into clones of `origin`; `expect` looks at what is left. Returns the calls there are.
 */
typedef void expect_fn(st_graph *source, pf_sim_disk *disk, bool acknowledged);
static uint64_t die_everywhere(st_graph *source, const pf_sim_disk *origin, unsigned stride, expect_fn *expect)
{
    uint64_t calls = 0;
    for (size_t d = 0; d < DEATHS; d++) {
        for (int before = 0; before < 2; before++) {
            for (uint64_t k = 1 + (d * 2 + (unsigned)before) % stride;; k += stride) {
                sluice_error err = {0};
                co_backup_report report;
                pf_sim_disk *disk = NULL;
                ASSERT_OK(pf_sim_disk_clone(origin, k * 31 + d, &disk, &err));
                sluice_status status = back_up(source, disk, k, before, &deaths[d], &report, &err);
                expect(source, disk, status == SLUICE_OK);
                pf_sim_disk_free(disk);
                calls = k > calls ? k : calls;
                if (status == SLUICE_OK)
                    break;
            }
        }
    }
    return calls;
}

static seen wanted; /* the state that the source is in */

static void again_is_whole(st_graph *source, pf_sim_disk *disk)
{
    sluice_error err = {0};
    co_backup_report report;
    ASSERT_OK(back_up(source, disk, 0, false, NULL, &report, &err));
    assert_true(same(see_whole(disk, PF_READ), wanted));
    die_expect_no_litter(disk);
}

static void no_graph_or_whole(st_graph *source, pf_sim_disk *disk, bool acknowledged)
{
    sluice_error err = {0};
    st_graph *graph = NULL;
    if (open_on(disk, PF_READ, &graph, &err) == SLUICE_OK) {
        st_graph_close(graph);
        assert_true(same(see_whole(disk, PF_READ), wanted));
    } else {
        assert_false(acknowledged);
        assert_int_equal(err.code, SLUICE_UNSUPPORTED_FORMAT);
    }
    again_is_whole(source, disk);
}

static void a_first_backup_that_dies_at_any_call_is_no_graph_or_whole(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(7), *empty = NULL;
    ASSERT_OK(pf_sim_disk_new(8, &empty, &err));
    st_graph *source = toy_open(disk);
    write_early(source);
    wanted = early;
    assert_true(die_everywhere(source, empty, getenv("SLUICE_LONG") ? 1 : 29, no_graph_or_whole) > 60);
    st_graph_close(source);
    pf_sim_disk_free(empty);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static unsigned found_early, found_later;

static void before_or_after(st_graph *source, pf_sim_disk *disk, bool acknowledged)
{
    sluice_error err = {0};
    pf_sim_disk *other = NULL;
    seen found = see_whole(disk, PF_READ);
    assert_true(same(found, early) || same(found, later));
    assert_true(!acknowledged || same(found, later));
    same(found, later) ? found_later++ : found_early++;
    /* Somebody writes to it: the same state, and a write on top. */
    ASSERT_OK(pf_sim_disk_clone(disk, 1, &other, &err));
    assert_true(same(see_whole(other, PF_WRITE), found));
    assert_true(same(see_whole(other, PF_READ), found));
    die_expect_next_write(other, 50);
    die_expect_whole(other);
    pf_sim_disk_free(other);
    again_is_whole(source, disk);
}

static void another_backup_that_dies_at_any_call_leaves_the_state_before_or_after(void **state)
{
    (void)state;
    pf_sim_disk *disk, *copy;
    st_graph *source = prepare(&disk, &copy);
    write_later(source);
    wanted = later;
    found_early = found_later = 0;
    assert_true(die_everywhere(source, copy, getenv("SLUICE_LONG") ? 1 : 29, before_or_after) > 60);
    assert_true(found_early > 0 && found_later > 0);
    st_graph_close(source);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* A writer that opens a folder with half a backup puts it back first: killed at any call of that. */
static void putting_back_may_die_at_any_call(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_backup_report report;
    pf_sim_disk *disk, *copy, *half = NULL;
    st_graph *source = prepare(&disk, &copy);
    write_later(source);
    /* One that died late: much is there, and backup.before rules. */
    for (uint64_t k = 40;; k += 16) {
        pf_sim_disk *struck = NULL;
        ASSERT_OK(pf_sim_disk_clone(copy, 1, &struck, &err));
        sluice_status status = back_up(source, struck, k, true, &deaths[0], &report, &err);
        if (status == SLUICE_OK || same(see_whole(struck, PF_READ), later)) {
            pf_sim_disk_free(struck);
            break;
        }
        pf_sim_disk_free(half);
        half = struck;
    }
    assert_non_null(half);
    for (size_t d = 0; d < DEATHS; d++) {
        for (uint64_t k = 1 + d;; k += getenv("SLUICE_LONG") ? 1 : 4) {
            pf_sim_disk *struck = NULL;
            pf_volume *volume = NULL;
            st_graph *graph = NULL;
            ASSERT_OK(pf_sim_disk_clone(half, k, &struck, &err));
            ASSERT_OK(pf_sim_actor(struck, "graph", &volume, &err));
            pf_sim_crash_at(volume, k, k / 4 % 2, deaths[d].fate, deaths[d].loss);
            sluice_status status = st_graph_open_on(volume, PF_WRITE, &graph, &err);
            st_graph_close(graph);
            assert_true(same(see_whole(struck, PF_READ), early));
            assert_true(same(see_whole(struck, PF_WRITE), early));
            die_expect_next_write(struck, 50);
            pf_sim_disk_free(struck);
            if (status == SLUICE_OK)
                break;
        }
    }
    st_graph_close(source);
    pf_sim_disk_free(half);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void a_full_disk_and_failing_calls_leave_the_state_before(void **state)
{
    (void)state;
    pf_sim_disk *disk, *copy;
    st_graph *source = prepare(&disk, &copy);
    write_later(source);
    for (int full = 0; full < 2; full++) {
        for (uint64_t k = 1;; k += getenv("SLUICE_LONG") ? 2 : 13) {
            sluice_error err = {0};
            co_backup_report report;
            pf_sim_disk *struck = NULL;
            pf_volume *volume = NULL;
            ASSERT_OK(pf_sim_disk_clone(copy, k, &struck, &err));
            ASSERT_OK(pf_sim_actor(struck, "graph", &volume, &err));
            pf_sim_fail_at(volume, k, full ? 28 /* ENOSPC */ : 5 /* EIO */, full ? 0 : 1);
            sluice_status status = co_backup_on(source, volume, NULL, NULL, &report, &err);
            seen found = see_whole(struck, PF_READ);
            assert_true(same(found, status == SLUICE_OK ? later : early) ||
                        (status != SLUICE_OK && same(found, later)));
            if (status != SLUICE_OK && full)
                assert_int_equal(status, SLUICE_NO_SPACE);
            wanted = later;
            again_is_whole(source, struck);
            pf_sim_disk_free(struck);
            if (status == SLUICE_OK)
                break;
        }
    }
    st_graph_close(source);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void fill(void *disk)
{
    pf_sim_set_free_space(disk, 0);
}

/* Unlike calls that fail: what is removed goes, and nothing can be made in its place. */
static void a_disk_that_fills_at_any_call_leaves_the_state_before(void **state)
{
    (void)state;
    pf_sim_disk *disk, *copy;
    st_graph *source = prepare(&disk, &copy);
    write_later(source);
    wanted = later;
    for (uint64_t k = 1;; k += getenv("SLUICE_LONG") ? 1 : 7) {
        sluice_error err = {0};
        co_backup_report report;
        pf_sim_disk *struck = NULL;
        pf_volume *volume = NULL;
        ASSERT_OK(pf_sim_disk_clone(copy, k, &struck, &err));
        ASSERT_OK(pf_sim_actor(struck, "graph", &volume, &err));
        pf_sim_interrupt_at(volume, k, fill, struck);
        sluice_status status = co_backup_on(source, volume, NULL, NULL, &report, &err);
        pf_sim_set_free_space(struck, UINT64_MAX);
        seen found = see_whole(struck, PF_READ);
        assert_true(same(found, later) || (status != SLUICE_OK && same(found, early)));
        if (status != SLUICE_OK)
            assert_int_equal(status, SLUICE_NO_SPACE);
        again_is_whole(source, struck);
        pf_sim_disk_free(struck);
        if (status == SLUICE_OK)
            break;
    }
    st_graph_close(source);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backup_is_the_graph_with_all_of_its_branches),
        cmocka_unit_test(a_first_backup_that_dies_at_any_call_is_no_graph_or_whole),
        cmocka_unit_test(another_backup_that_dies_at_any_call_leaves_the_state_before_or_after),
        cmocka_unit_test(putting_back_may_die_at_any_call),
        cmocka_unit_test(a_full_disk_and_failing_calls_leave_the_state_before),
        cmocka_unit_test(a_disk_that_fills_at_any_call_leaves_the_state_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
