/*
 * Collection of history beside a backup: just before each call of the backup into its folder, another process of the
 * source writes, puts everything into new files, deletes a branch, and lets go of all that nothing needs. What the
 * backup copies stays until it has ended: the copy is the graph before or after that, whole, and only then it goes
 * (DESIGN 9).
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

/* Each so many-th call; SLUICE_LONG=1: every one. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 41u
#else
#define STRIDE 17u
#endif

typedef struct collector {
    pf_sim_disk *disk; /* of the source */
    bool ran;
} collector;

static void write_keys(st_graph *graph, const char *branch, int64_t first, int64_t last)
{
    sluice_error err = {0};
    const toy_options on = {.branch = branch};
    for (int64_t key = first; key <= last; key++) {
        toy_writer toy = toy_of("A", key, 1);
        ASSERT_OK(toy_write(graph, &toy, &on, NULL, &err));
    }
}

static void prepare(pf_sim_disk **ret_source)
{
    sluice_error err = {0};
    co_branch_receipt made = {0};
    co_checkpoint_receipt kept = {0};
    const co_branch_request branch = {.name = "draft", .operation = pf_id_new()};
    const co_checkpoint_request checkpoint = {.name = "kept", .operation = pf_id_new()};
    *ret_source = toy_disk(31);
    st_graph *graph = toy_open(*ret_source);
    write_keys(graph, NULL, 1, 4);
    ASSERT_OK(co_checkpoint_create(graph, &checkpoint, &kept, &err));
    ASSERT_OK(co_branch_create(graph, &branch, &made, &err));
    write_keys(graph, "draft", 100, 101);
    write_keys(graph, NULL, 5, 9);
    st_graph_close(graph);
}

/* Lets go of all but the newest generation; how many went. */
static uint64_t collect(st_graph *graph)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    const co_gc_options options = {.keep = 1};
    ASSERT_OK(co_gc_with(graph, &options, &report, &err));
    return report.generations;
}

static void go_on_and_collect(void *context)
{
    sluice_error err = {0};
    collector *other = context;
    co_branch_receipt deleted = {0};
    const co_branch_request branch = {.name = "draft", .operation = pf_id_new()};
    st_graph *graph = toy_open(other->disk);
    other->ran = true;
    write_keys(graph, NULL, 10, 12);
    ASSERT_OK(sweep_maintain(graph, CO_OPTIMIZE, NULL, NULL, &err));
    ASSERT_OK(co_branch_delete(graph, &branch, &deleted, &err));
    (void)collect(graph);
    st_graph_close(graph);
}

static sluice_status back_up(st_graph *source, pf_sim_disk *disk, uint64_t k, collector *other, sluice_error *err)
{
    pf_volume *volume = NULL;
    co_backup_report report;
    assert_int_equal(pf_sim_actor(disk, "graph", &volume, err), SLUICE_OK);
    if (k)
        pf_sim_interrupt_at(volume, k, go_on_and_collect, other);
    return co_backup_on(source, volume, NULL, NULL, &report, err);
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

/* A copy is the state before or after, and verifies. Returns which. */
static bool is_after(pf_sim_disk *copy)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    int64_t keys[TOY_KEYS];
    uint64_t checked = 0, incarnation = 0;
    ASSERT_OK(pf_sim_actor(copy, "graph", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_READ, &graph, &err));
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    bool drafted = st_ref_read(graph, "draft", &incarnation, NULL) == SLUICE_OK;
    assert_int_equal(toy_keys(graph, "A", keys, TOY_KEYS), drafted ? 9 : 12);
    if (drafted)
        assert_int_equal(toy_keys_on(graph, "draft", "A", keys, TOY_KEYS), 8);
    st_snapshot *kept = NULL;
    ASSERT_OK(st_snapshot_open(graph, NULL, "kept", &kept, &err));
    st_snapshot_close(kept);
    st_graph_close(graph);
    return !drafted;
}

/* False when the backup made fewer than k calls. */
static bool meet(pf_sim_disk *origin, const pf_sim_disk *folder, uint64_t k, unsigned *kept)
{
    sluice_error err = {0};
    collector other = {0};
    pf_sim_disk *copy = NULL;
    ASSERT_OK(pf_sim_disk_clone(origin, k, &other.disk, &err));
    ASSERT_OK(pf_sim_disk_clone(folder, k, &copy, &err));
    st_graph *source = toy_open(other.disk);
    ASSERT_OK(back_up(source, copy, k, &other, &err));
    bool ran = other.ran, after = is_after(copy);
    if (!ran)
        go_on_and_collect(&other);
    /* What still went then had been kept for the backup. */
    assert_true((collect(source) > 0) == (ran && !after));
    *kept += ran && !after;
    ASSERT_OK(back_up(source, copy, 0, NULL, &err));
    assert_true(is_after(copy));
    st_graph_close(source);
    die_expect_no_litter(other.disk);
    die_expect_whole(other.disk);
    pf_sim_disk_free(copy);
    pf_sim_disk_free(other.disk);
    return ran;
}

static void collect_everywhere(bool again)
{
    sluice_error err = {0};
    pf_sim_disk *origin = NULL, *folder = NULL;
    uint64_t k = 1;
    unsigned kept = 0;
    prepare(&origin);
    ASSERT_OK(pf_sim_disk_new(32, &folder, &err));
    if (again) {
        st_graph *source = toy_open(origin);
        ASSERT_OK(back_up(source, folder, 0, NULL, &err));
        st_graph_close(source);
    }
    st_graph *graph = toy_open(origin);
    write_keys(graph, "draft", 102, 103);
    st_graph_close(graph);
    while (meet(origin, folder, k, &kept))
        k += getenv("SLUICE_LONG") ? 1 : STRIDE;
    assert_true(k > 20 && kept > 1);
    pf_sim_disk_free(folder);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void collection_takes_nothing_that_a_first_backup_copies(void **state)
{
    (void)state;
    collect_everywhere(false);
}

static void nor_what_another_one_copies(void **state)
{
    (void)state;
    collect_everywhere(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collection_takes_nothing_that_a_first_backup_copies),
        cmocka_unit_test(nor_what_another_one_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
