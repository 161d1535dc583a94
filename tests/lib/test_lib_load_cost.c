/*
 * What a load writes, counted at the volume: each row once into its fragment and once into each run of its keys,
 * however many rows there are.
 */
#include "lib/handle.h"
#include "lib_fixture.h"
#include "tests/support/folder.h"
#include <stdio.h>
#include <stdlib.h>

#define NODES    20000u
#define FIXED    100000u /* record, footers and the log */
#define NODE_MAX 40u     /* a fragment's 8 + 4 + 8 + 4 bytes, and its run of keys */
#define EDGE_MAX 56u     /* a fragment's 8 + 8 + 4, and runs of both ends and of its identity */

static void write_lines(const char *path, const char *head, const char *format, unsigned first, unsigned count)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "%s\n", head);
    for (unsigned i = first; i < first + count; i++)
        (void)fprintf(file, "%u,%u%s\n", i, (i * 7 + 1) % NODES, format);
    assert_int_equal(fclose(file), 0);
}

static uint64_t bytes_of(lib_fixture *fixture, const char *type, const char *path)
{
    pf_volume *volume = st_graph_volume(fixture->graph->graph);
    const sluice_input input = {.type = type, .path = path};
    sluice_error err = {0};
    pf_volume_counters_reset(volume);
    ASSERT_OK(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));
    return pf_volume_counters(volume)->bytes_written;
}

static void a_loaded_row_is_written_once_and_into_its_runs(void **state)
{
    static const struct {
        const char *type, *head, *rest;
        unsigned first, count, most;
    } loads[] = {{"Person", "id,age,name", ",somebody", 0, NODES, NODE_MAX},
                 {"Person", "id,age,name", ",somebody", NODES, 4 * NODES, NODE_MAX},
                 {"KNOWS", "from,to,since", ",2026-01-31", 0, NODES, EDGE_MAX},
                 {"KNOWS", "from,to,since", ",2026-01-31", NODES, 4 * NODES, EDGE_MAX}};
    lib_fixture *fixture = *state;
    char *path = test_path(fixture->folder, "rows.csv");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        write_lines(path, loads[i].head, loads[i].rest, loads[i].first, loads[i].count);
        uint64_t bytes = bytes_of(fixture, loads[i].type, path);
        print_message("%s: %u rows, %.1f bytes each\n", loads[i].type, loads[i].count,
                      (double)bytes / (double)loads[i].count);
        assert_true(bytes <= FIXED + (uint64_t)loads[i].count * loads[i].most);
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loaded_row_is_written_once_and_into_its_runs, lib_fixture_make,
                                        lib_fixture_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
