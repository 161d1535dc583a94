/*
 * What a write costs, counted at the volume port: a commit is one flush of the log, whatever the history (LESSONS 12,
 * U-03). An authority-first writer whose edit is attached and who stages nothing is the machine alone.
 */
#include "coord/recover.h"
#include "tests/support/test.h"
#include "toy.h"
#include <stdlib.h>

static ad_adapter authority_first = {.kind = "load", .version = 1, .arms = false, .replays = true, .retry_budget = 3};

typedef struct call_cost {
    uint64_t syncs, directory_syncs, creates, calls, bytes_read, bytes_written;
} call_cost;

/* A whole write through co_write_run, without an attempt: payload staged beforehand, once. */
static call_cost measure(st_graph *graph, int64_t key, const ad_adapter *adapter)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", key, 1);
    toy.adapter = adapter;
    toy.attached = true;
    toy.blind = true;
    pf_volume *volume = st_graph_volume(graph);
    pf_volume_counters_reset(volume);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    const pf_counters *made = pf_volume_counters(volume);
    return (call_cost){made->file_syncs, made->directory_syncs, made->creates,
                       made->calls,      made->bytes_read,      made->bytes_written};
}

/* The toy's own staging: a fragment, a run, their two folders; the attempt's folder and its parent. */
#define STAGED_SYNCS        2u
#define STAGED_FOLDER_SYNCS 4u

static void a_commit_is_one_flush(void **state)
{
    (void)state;
    pf_sim_disk *disk = toy_disk(1);
    st_graph *graph = toy_open(disk);
    (void)measure(graph, 1, &authority_first); /* opens what is opened once */
    call_cost commit = measure(graph, 2, &authority_first);
    assert_int_equal(commit.syncs, STAGED_SYNCS + 1);
    assert_int_equal(commit.directory_syncs, STAGED_FOLDER_SYNCS);
    (void)measure(graph, 3, &ad_load);
    call_cost armed = measure(graph, 4, &ad_load);
    assert_int_equal(armed.syncs, STAGED_SYNCS + 3); /* arm, append, retire */
    assert_int_equal(armed.directory_syncs, STAGED_FOLDER_SYNCS);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* Between two folds and two segment switches; folds and switches recur in a fixed rhythm and are not growth. */
static call_cost cheapest(st_graph *graph, int64_t *key)
{
    call_cost least = {.calls = UINT64_MAX};
    for (unsigned i = 0; i < 8; i++) {
        call_cost one = measure(graph, (*key)++, &authority_first);
        if (one.calls < least.calls)
            least = one;
    }
    return least;
}

static void a_commit_costs_the_same_after_thousands(void **state)
{
    (void)state;
    const unsigned depths[] = {10, 100, 1000, getenv("SLUICE_LONG") ? 10000 : 1500};
    call_cost at[4];
    int64_t key = 1;
    pf_sim_disk *disk = toy_disk(2);
    st_graph *graph = toy_open(disk);
    for (unsigned i = 0; i < 4; i++) {
        while (key < (int64_t)depths[i])
            (void)measure(graph, key++, &authority_first);
        at[i] = cheapest(graph, &key);
        print_message("at %u: %llu calls, %llu syncs, %llu read, %llu written\n", depths[i],
                      (unsigned long long)at[i].calls, (unsigned long long)at[i].syncs,
                      (unsigned long long)at[i].bytes_read, (unsigned long long)at[i].bytes_written);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(at[i].syncs, STAGED_SYNCS + 1);
        assert_int_equal(at[i].directory_syncs, STAGED_FOLDER_SYNCS);
        assert_int_equal(at[i].creates, at[0].creates);
        assert_int_equal(at[i].calls, at[0].calls);
    }
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_one_flush),
        cmocka_unit_test(a_commit_costs_the_same_after_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
