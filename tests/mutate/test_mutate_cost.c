/*
 * What a small mutation costs, counted at the volume port: one sync, no file, the same after thousands of them, and
 * what folds add stays a small part (OW-069, DESIGN 14 "cost counts").
 */
#include "mutate_fixture.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct call_cost {
    uint64_t syncs, directory_syncs, creates, written, read, calls;
} call_cost;

static call_cost measure(st_graph *graph, const char *text)
{
    pf_volume *volume = st_graph_volume(graph);
    pf_volume_counters_reset(volume);
    assert_true(mutate_text(graph, text).receipt.committed);
    const pf_counters *made = pf_volume_counters(volume);
    return (call_cost){made->file_syncs,    made->directory_syncs, made->creates,
                       made->bytes_written, made->bytes_read,      made->calls};
}

static call_cost change(st_graph *graph, unsigned number)
{
    char text[256];
    switch (number % 4) {
    case 0:
    case 1:
        (void)snprintf(text, sizeof text, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":%u,\"a\":1}}\n", number);
        break;
    case 2:
        (void)snprintf(text, sizeof text, "{\"op\":\"update\",\"node\":\"P\",\"key\":%u,\"set\":{\"a\":%u}}\n",
                       number - 1, number);
        break;
    default:
        (void)snprintf(text, sizeof text, "{\"op\":\"delete\",\"node\":\"P\",\"key\":%u}\n", number - 3);
        break;
    }
    return measure(graph, text);
}

static void a_small_mutation_is_one_sync_and_makes_no_file(void **state)
{
    (void)state;
    pf_sim_disk *disk = mutate_disk(1);
    st_graph *graph = mutate_open(disk);
    static const char *const texts[] = {
        "{\"op\":\"insert\",\"node\":\"P\",\"key\":1}\n{\"op\":\"insert\",\"node\":\"P\",\"key\":2}\n"
        "{\"op\":\"insert\",\"edge\":\"E\",\"from\":1,\"to\":2}\n",
        "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"a\":2}}\n",
        "{\"op\":\"upsert\",\"node\":\"P\",\"key\":1,\"set\":{\"a\":3}}\n",
        "{\"op\":\"delete\",\"node\":\"P\",\"key\":1,\"detach\":true}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        call_cost one = measure(graph, texts[i]);
        assert_int_equal(one.syncs, 1);
        assert_int_equal(one.directory_syncs, 0);
        assert_int_equal(one.creates, 0);
        assert_true(one.written < 24576);
    }
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* Calls at the volume port: of a small commit that folds nothing, whatever the history and however large the table; and
 * of opening the graph and its head, which reads one segment of the branch at most. */
#define CALLS         53u
#define OPENING_CALLS 40u
#define OPENING_BYTES (UINT64_C(6) << 20)

static call_cost open_and_read(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    st_graph *graph = mutate_open(disk);
    ASSERT_OK(st_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    st_snapshot_close(snapshot);
    const pf_counters *made = pf_volume_counters(st_graph_volume(graph));
    call_cost cost = {made->file_syncs,    made->directory_syncs, made->creates,
                      made->bytes_written, made->bytes_read,      made->calls};
    st_graph_close(graph);
    return cost;
}

#define CREATES 5u   /* of a commit that folds (fragment, two runs, page) and switches segments */
#define ROUND   100u /* as many commits hold several folds, and segments are switched in between */

static void it_costs_the_same_after_thousands_of_them(void **state)
{
    (void)state;
    const unsigned depths[] = {10, 100, 1000, 10000};
    const unsigned count = getenv("SLUICE_LONG") ? 4 : 3;
    pf_sim_disk *disk = mutate_disk(2);
    st_graph *graph = mutate_open(disk);
    unsigned number = 0;
    for (unsigned i = 0; i < count; i++) {
        while (number < depths[i])
            (void)change(graph, number++);
        call_cost all = {0}, least = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
        uint64_t fewest = UINT64_MAX;
        for (unsigned k = 0; k < ROUND; k++) {
            call_cost one = change(graph, number++);
            fewest = one.calls < fewest ? one.calls : fewest;
            all.calls += one.calls;
            assert_true(one.creates <= CREATES);
            all.read += one.read;
            all.syncs += one.syncs + one.directory_syncs;
            all.written += one.written;
            if (one.syncs + one.directory_syncs < least.syncs + least.directory_syncs || least.syncs == UINT64_MAX)
                least = one;
        }
        call_cost opening = open_and_read(disk);
        print_message(
            "at %u: %llu syncs, %.1f in the mean, %.0f bytes written in the mean, %.0f read; %llu calls, %.1f in "
            "the mean; opening it: %llu calls, %llu bytes read\n",
            depths[i], (unsigned long long)least.syncs, (double)all.syncs / ROUND, (double)all.written / ROUND,
            (double)all.read / ROUND, (unsigned long long)fewest, (double)all.calls / ROUND,
            (unsigned long long)opening.calls, (unsigned long long)opening.read);
        assert_true(fewest <= CALLS);
        assert_true(all.calls <= 2 * CALLS * (uint64_t)ROUND);
        assert_true(opening.calls <= OPENING_CALLS);
        assert_true(opening.read <= OPENING_BYTES);
        assert_int_equal(least.syncs, 1);
        assert_int_equal(least.directory_syncs, 0);
        assert_true(all.syncs <= ROUND + 2 * ROUND / 5);
        assert_true(all.written <= 65536 * (uint64_t)ROUND);
    }
    mutate_expect_whole(graph);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_mutation_is_one_sync_and_makes_no_file),
        cmocka_unit_test(it_costs_the_same_after_thousands_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
