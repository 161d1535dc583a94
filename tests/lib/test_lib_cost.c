/*
 * What a small commit costs from a handle that has committed before, counted at the volume: one flush, nothing made, no
 * record of an earlier commit read again.
 */
#include "lib/handle.h"
#include "lib_fixture.h"
#include "tests/support/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM  3u
#define CALLS 400u /* 256 of them look at the heads of the intents, twice each */
#define BYTES 300000u

static void a_commit_after_others_is_one_flush_and_reads_no_history(void **state)
{
    lib_fixture *fixture = *state;
    pf_volume *volume = st_graph_volume(fixture->graph->graph);
    uint64_t first_read = 0;
    char line[128];
    for (unsigned i = 0; i < 20; i++) { /* fewer than a fold comes after */
        (void)snprintf(line, sizeof line, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":%u}\n", i);
        pf_volume_counters_reset(volume);
        assert_true(lib_commit(fixture->graph, line).acknowledged);
        const pf_counters *made = pf_volume_counters(volume);
        if (i < WARM)
            continue;
        if (i == WARM)
            first_read = made->bytes_read;
        print_message("%u: %llu calls, %llu opens, %llu reads of %llu bytes, %llu written\n", i,
                      (unsigned long long)made->calls, (unsigned long long)made->opens, (unsigned long long)made->reads,
                      (unsigned long long)made->bytes_read, (unsigned long long)made->bytes_written);
        assert_int_equal(made->file_syncs, 1);
        assert_int_equal(made->directory_syncs, 0);
        assert_int_equal(made->creates, 0);
        assert_true(made->calls <= CALLS);
        assert_true(made->bytes_written <= 32768);
        assert_true(made->bytes_read <= BYTES);
        assert_true(made->bytes_read <= 2 * first_read); /* with a record of each commit before, it would grow */
    }
}

static uint64_t scan_all(sluice_snapshot *snapshot)
{
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    uint64_t rows = 0;
    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &stream, &err));
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        rows += (uint64_t)batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    return rows;
}

static void a_scan_after_another_of_its_snapshot_opens_and_reads_nothing(void **state)
{
    lib_fixture *fixture = *state;
    pf_volume *volume = st_graph_volume(fixture->graph->graph);
    char *path = test_path(fixture->folder, "people.csv");
    const sluice_input input = {.type = "Person", .path = path};
    sluice_snapshot *snapshot = NULL;
    sluice_error err = {0};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("id,name,age\n", file);
    for (int i = 0; i < 20000; i++)
        (void)fprintf(file, "%d,somebody,%d\n", i, i % 90);
    assert_int_equal(fclose(file), 0);
    ASSERT_OK(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    pf_volume_counters_reset(volume);
    assert_int_equal(scan_all(snapshot), 20000);
    assert_true(pf_volume_counters(volume)->opens > 0);
    pf_volume_counters_reset(volume);
    assert_int_equal(scan_all(snapshot), 20000);
    assert_int_equal(pf_volume_counters(volume)->calls, 0);
    sluice_snapshot_close(snapshot);
    free(path);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_commit_after_others_is_one_flush_and_reads_no_history),
        IN_GRAPH(a_scan_after_another_of_its_snapshot_opens_and_reads_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
