/*
 * A small write stages its folds under an id that no folder keeps from collection: when that was faster, the fold is
 * dropped, the write stands, and a later one folds.
 */
#include "coord/recover.h"
#include "mutate_fixture.h"
#include "platform/failpoint.h"
#include <stdio.h>

#define COMMITS 48u /* more than a table has edits before it is folded */

typedef struct collector {
    st_graph *graph; /* another process's */
    pf_failpoint at;
    uint64_t files;
} collector;

static void collect(collector *all)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    ASSERT_OK(co_gc(all->graph, false, &report, &err));
    all->files += report.files;
}

static void on_point(void *context, pf_failpoint point)
{
    collector *all = context;
    if (point == all->at)
        collect(all);
}

static void insert(st_graph *graph, unsigned first, unsigned count)
{
    char text[96];
    for (unsigned id = first; id < first + count; id++) {
        (void)snprintf(text, sizeof text, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":%u,\"a\":1}}\n", id);
        assert_true(mutate_text(graph, text).receipt.committed);
    }
}

static void a_fold_that_collection_was_faster_than_is_dropped_and_the_write_stands(void **state)
{
    (void)state;
    pf_sim_disk *disk = mutate_disk(1);
    st_graph *graph = mutate_open(disk);
    collector all = {.graph = mutate_open(disk), .at = PF_FP_GATES_AFTER};
    pf_failpoints_watch(on_point, &all);
    insert(graph, 0, COMMITS);
    pf_failpoints_watch(NULL, NULL);
    assert_true(all.files > 0); /* folds were staged, and gone before they were published */
    mutate_expect_whole(graph);
    pf_volume_counters_reset(st_graph_volume(graph));
    insert(graph, COMMITS, 1);
    assert_true(pf_volume_counters(st_graph_volume(graph))->creates > 0); /* it folds */
    insert(graph, COMMITS + 1, COMMITS);
    mutate_expect_whole(graph);
    st_graph_close(graph);
    collect(&all); /* what later folds took the rows of */
    all.files = 0;
    collect(&all);
    assert_int_equal(all.files, 0);
    mutate_expect_whole(all.graph);
    st_graph_close(all.graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void what_a_generation_took_of_a_fold_is_not_collected(void **state)
{
    (void)state;
    pf_sim_disk *disk = mutate_disk(2);
    st_graph *graph = mutate_open(disk);
    collector all = {.graph = mutate_open(disk)};
    for (unsigned id = 0; id < 2 * COMMITS; id++) {
        insert(graph, id, 1);
        collect(&all);
    }
    mutate_expect_whole(graph);
    st_graph_close(graph);
    mutate_expect_whole(all.graph);
    st_graph_close(all.graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_that_collection_was_faster_than_is_dropped_and_the_write_stands),
        cmocka_unit_test(what_a_generation_took_of_a_fold_is_not_collected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
