/*
 * Reading: scans with deletions and projections, places in time, pins, look-ups with and without runs, neighbours,
 * damage.
 */
#include "rows_fixture.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make(void **state)
{
    static graph_fixture fixture;
    graph_fixture_make(&fixture, 99);
    *state = &fixture;
    return 0;
}

static int unmake(void **state)
{
    graph_fixture_free(*state);
    return 0;
}

static void assert_scan(st_snapshot *snapshot, const char *type, const uint32_t *columns, uint32_t count,
                        const char *wanted)
{
    char *text = rows_scan(snapshot, type, columns, count);
    assert_string_equal(text, wanted);
    free(text);
}

static void a_scan_gives_rows_in_list_and_file_order_without_deleted_ones(void **state)
{
    graph_fixture *fixture = *state;
    st_edit_add one = rows_persons(fixture, 1, 7, 3, true), two = rows_persons(fixture, 100, 2, 10, true);
    (void)rows_publish(fixture, PERSON, &one);
    (void)rows_publish(fixture, PERSON, &two);
    uint64_t gone[] = {ST_ROW_BLOCK + 0, ST_ROW_BLOCK + 3, ST_ROW_BLOCK + 4, ST_ROW_BLOCK + 5, ST_ROW_BLOCK + 8};
    (void)rows_delete(fixture, PERSON, gone, 5);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    static const uint32_t projection[] = {2, 0};
    uint64_t rows = 0;
    sluice_error err = {0};
    assert_scan(snapshot, "Person", NULL, 0, "1:[2,\"p2\",2]\n2:[3,\"p3\",3]\n6:[7,\"p7\",7]\n7:[100,null,0]\n");
    assert_scan(snapshot, "Person", projection, 2, "1:[2,2]\n2:[3,3]\n6:[7,7]\n7:[0,100]\n");
    assert_scan(snapshot, "Note", NULL, 0, "");
    ASSERT_OK(st_snapshot_count(snapshot, rows_type(snapshot, "Person"), &rows, &err));
    assert_int_equal(rows, 4);
    st_snapshot_close(snapshot);
}

static void every_place_in_time_reads_as_it_was(void **state) /* P-03 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta members[3], *deltas[3];
    char ids[3][PF_ID_TEXT];
    static const char *const wanted[] = {"0:[1]\n", "0:[1]\n1:[2]\n", "1:[2]\n"};
    static const uint32_t key[] = {0};
    for (int i = 0; i < 3; i++) {
        deltas[i] = &members[i];
        fixture_delta(fixture, &members[i]);
        pf_id_text(&members[i].commit.id, ids[i]);
        if (i < 2) {
            st_edit_add add = rows_persons(fixture, i + 1, 1, 9, true);
            fixture_add(fixture, &members[i], PERSON, &add);
            continue;
        }
        st_edit edit = {.table = PERSON, .delete_rows = calloc(1, sizeof(uint64_t)), .delete_count = 1};
        assert_non_null(edit.delete_rows);
        edit.delete_rows[0] = ST_ROW_BLOCK; /* what the first member of the same group adds */
        ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), &members[i], &edit, "delete", &err));
    }
    ASSERT_OK(fixture_publish(fixture, deltas, 3, &err));
    for (int i = 0; i < 3; i++) {
        st_snapshot *snapshot = rows_open(fixture->graph, ids[i]);
        assert_scan(snapshot, "Person", key, 1, wanted[i]);
        assert_int_equal(rows_has_person(snapshot, 1), i < 2);
        assert_int_equal(rows_has_person(snapshot, 2), i > 0);
        st_snapshot_close(snapshot);
        st_delta_free(&members[i]);
    }
    st_snapshot *snapshot = rows_open(fixture->graph, "1");
    assert_scan(snapshot, "Person", key, 1, "");
    st_snapshot_close(snapshot);
    snapshot = rows_open(fixture->graph, "2");
    assert_scan(snapshot, "Person", key, 1, wanted[2]);
    st_snapshot_close(snapshot);
    snapshot = NULL;
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_snapshot_open(fixture->graph, NULL, "3", &snapshot, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_snapshot_open(fixture->graph, NULL, "0", &snapshot, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_snapshot_open(fixture->graph, "other", NULL, &snapshot, &err));
    ASSERT_FAILS(SLUICE_USAGE, st_snapshot_open(fixture->graph, NULL, "yesterday", &snapshot, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND,
                 st_snapshot_open(fixture->graph, NULL, "01890000-0000-7000-8000-0123456789ab", &snapshot, &err));
    assert_null(snapshot);
}

static void a_snapshot_never_follows_later_commits(void **state) /* OD-029, OD-030 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_edit_add add = rows_persons(fixture, 1, 2, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    st_snapshot *one = rows_open(fixture->graph, NULL), *two = rows_open(fixture->graph, NULL);
    pf_file *pins = NULL;
    bool is_free = true;
    add = rows_persons(fixture, 10, 1, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    st_snapshot_close(one);
    assert_scan(two, "Person", NULL, 0, "0:[1,\"p1\",1]\n1:[2,\"p2\",2]\n");
    assert_false(rows_has_person(two, 10));
    ASSERT_OK(pf_open(st_graph_volume(fixture->graph), "branches/1/pins", PF_WRITE, &pins, &err));
    ASSERT_OK(pf_lock_is_free(pins, 2, 1, &is_free, &err));
    assert_false(is_free); /* the other snapshot's pin is its own */
    ASSERT_OK(pf_lock_is_free(pins, 3, 1, &is_free, &err));
    assert_true(is_free);
    st_snapshot_close(two);
    ASSERT_OK(pf_lock_is_free(pins, 2, 1, &is_free, &err));
    assert_true(is_free);
    ASSERT_OK(pf_lock(pins, 1, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err)); /* as collection takes generation 1 */
    st_snapshot *late = NULL;
    ASSERT_FAILS(SLUICE_TIMEOUT, st_snapshot_open(fixture->graph, NULL, "1", &late, &err));
    late = rows_open(fixture->graph, NULL);
    assert_int_equal(st_snapshot_view(late)->generation, 3);
    st_snapshot_close(late);
    ASSERT_OK(pf_close(pins, &err));
}

static void a_reader_writes_nothing_and_does_without_a_pin_file(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_edit_add add = rows_persons(fixture, 1, 3, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    ASSERT_OK(pf_remove(st_graph_volume(fixture->graph), "branches/1/pins", &err));
    uint64_t before = pf_sim_digest(fixture->disk);
    st_graph *reader = graph_fixture_open(fixture, PF_READ);
    st_snapshot *snapshot = rows_open(reader, NULL);
    assert_scan(snapshot, "Person", NULL, 0, "0:[1,\"p1\",1]\n1:[2,\"p2\",2]\n2:[3,\"p3\",3]\n");
    assert_true(rows_has_person(snapshot, 3));
    const pf_counters *counters = pf_volume_counters(st_graph_volume(reader));
    assert_int_equal(counters->writes + counters->creates + counters->removes + counters->renames +
                         counters->file_syncs + counters->directory_syncs,
                     0);
    st_snapshot_close(snapshot);
    st_graph_close(reader);
    assert_true(pf_sim_digest(fixture->disk) == before);
}

static void keys_are_found_with_runs_without_them_and_after_their_loss(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_edit_add with = rows_persons(fixture, 0, 50, 16, true), without = rows_persons(fixture, 1000, 50, 16, false);
    char path[128];
    (void)snprintf(path, sizeof(path), "tables/64/keys/%s", with.runs[0].info.name);
    (void)rows_publish(fixture, PERSON, &with);
    (void)rows_publish(fixture, PERSON, &without);
    uint64_t gone[] = {ST_ROW_BLOCK + 7, ST_ROW_BLOCK + 57};
    (void)rows_delete(fixture, PERSON, gone, 2);
    for (int round = 0; round < 2; round++) {
        st_snapshot *snapshot = rows_open(fixture->graph, NULL);
        for (int64_t id = -3; id < 60; id++) {
            assert_int_equal(rows_has_person(snapshot, id), id >= 0 && id < 50 && id != 7);
            assert_int_equal(rows_has_person(snapshot, 1000 + id), id >= 0 && id < 50 && id != 7);
        }
        st_snapshot_close(snapshot);
        if (round == 0)
            ASSERT_OK(pf_remove(st_graph_volume(fixture->graph), path, &err));
    }
}

static void answers_are_the_same_without_runs_and_pins(void **state) /* O-13 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_edit_add add = rows_persons(fixture, 0, 30, 16, true);
    pf_file *pins = NULL;
    (void)rows_publish(fixture, PERSON, &add);
    assert_int_equal(setenv("SLUICE_NO_RUNS", "1", 1), 0);
    assert_int_equal(setenv("SLUICE_NO_PINS", "1", 1), 0);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    st_table_reader *reader = NULL;
    st_run *run = NULL;
    bool is_free = false;
    for (int64_t id = -3; id < 40; id++)
        assert_int_equal(rows_has_person(snapshot, id), id >= 0 && id < 30);
    ASSERT_OK(st_table_reader_get(snapshot, PERSON, &reader, &err));
    ASSERT_OK(st_table_reader_run(reader, 0, ST_RUN_KEY, 0, &run, &err));
    assert_null(run);
    ASSERT_OK(pf_open(st_graph_volume(fixture->graph), "branches/1/pins", PF_WRITE, &pins, &err));
    ASSERT_OK(pf_lock_is_free(pins, 2, 1, &is_free, &err));
    assert_true(is_free);
    ASSERT_OK(pf_close(pins, &err));
    st_snapshot_close(snapshot);
    assert_int_equal(unsetenv("SLUICE_NO_RUNS"), 0);
    assert_int_equal(unsetenv("SLUICE_NO_PINS"), 0);
}

static void one_row_reads_like_the_scan(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_edit_add add = rows_persons(fixture, 1, 20, 6, true);
    (void)rows_publish(fixture, PERSON, &add);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    const st_type_def *type = rows_type(snapshot, "Person");
    st_table_reader *reader = NULL;
    st_column_spec *specs = NULL;
    st_column_builder *builders[3] = {NULL};
    uint32_t count = 0;
    uint64_t row_id = 0;
    pf_buffer text = {0};
    ASSERT_OK(st_table_reader_get(snapshot, PERSON, &reader, &err));
    ASSERT_OK(st_type_columns(st_snapshot_view(snapshot)->schema, type, &specs, &count, &err));
    assert_int_equal(count, 3);
    for (uint32_t i = 0; i < count; i++)
        ASSERT_OK(st_column_builder_new(&specs[i], &builders[i], &err));
    ASSERT_OK(st_table_row(snapshot, type, reader, 0, 13, builders, &row_id, &err));
    assert_int_equal(row_id, ST_ROW_BLOCK + 13);
    for (uint32_t i = 0; i < count; i++) {
        st_column column;
        st_builder_view(builders[i], &column);
        ASSERT_OK(st_value_json(&column, 0, &text, &err));
        st_column_builder_free(builders[i]);
    }
    assert_int_equal(text.length, 9);
    assert_memory_equal(text.data, "14\"p14\"14", 9);
    pf_buffer_free(&text);
    st_type_columns_free(specs, count);
    st_snapshot_close(snapshot);
}

static void an_unknown_type_is_named_with_the_nearest(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    const st_type_def *type = NULL;
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    ASSERT_FAILS(SLUICE_USAGE, st_snapshot_type(snapshot, "person", &type, &err));
    assert_string_equal(err.text, "there is no type \"person\"");
    assert_string_equal(err.hint, "did you mean \"Person\"?");
    st_snapshot_close(snapshot);
}

/* ---- neighbours ---- */

static sluice_status note_neighbour(void *context, const st_type_def *type, const st_column *const *key,
                                    uint32_t key_count, uint64_t row, uint32_t depth, sluice_error *err)
{
    pf_buffer *text = context;
    assert_int_equal(key_count, 1);
    PF_TRY(pf_buffer_append_format(text, err, "%s ", type->name));
    if (key[0]->type == ST_ROW_ID)
        PF_TRY(pf_buffer_append_format(text, err, "#%llu",
                                       (unsigned long long)(((const uint64_t *)key[0]->values)[row] - ST_ROW_BLOCK)));
    else
        PF_TRY(st_value_text(key[0], row, text, err));
    return pf_buffer_append_format(text, err, " %u\n", depth);
}

static void assert_neighbours(st_snapshot *snapshot, int64_t person, const char *edge, st_direction direction,
                              uint32_t depth, const char *wanted)
{
    sluice_error err = {0};
    pf_buffer text = {0};
    st_column column = {.type = ST_INT64, .length = 1, .values = &person};
    const st_column *key[1] = {&column};
    ASSERT_OK(st_neighbours(snapshot, rows_type(snapshot, "Person"), key, 1, edge ? rows_type(snapshot, edge) : NULL,
                            direction, depth, note_neighbour, &text, &err));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    assert_string_equal((char *)text.data, wanted);
    pf_buffer_free(&text);
}

static void neighbours_come_once_at_their_least_depth(void **state)
{
    graph_fixture *fixture = *state;
    static const int64_t from[] = {1, 1, 2, 3, 4, 1, 5}, to[] = {2, 3, 4, 4, 1, 1, 4}; /* 1 -> 1 is a loop */
    static const uint64_t notes[] = {ST_ROW_BLOCK + 6, ST_ROW_BLOCK + 7};
    static const int64_t about[] = {1, 4};
    st_edit_add add = rows_persons(fixture, 1, 6, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    add = rows_notes(fixture, 2);
    (void)rows_publish(fixture, NOTE, &add);
    add = rows_knows(fixture, from, to, 7);
    (void)rows_publish(fixture, KNOWS, &add);
    add = rows_about(fixture, notes, about, 2);
    (void)rows_publish(fixture, ABOUT, &add);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    assert_neighbours(snapshot, 1, "KNOWS", ST_OUT, 1, "Person 2 1\nPerson 3 1\n");
    assert_neighbours(snapshot, 1, "KNOWS", ST_OUT, 9, "Person 2 1\nPerson 3 1\nPerson 4 2\n");
    assert_neighbours(snapshot, 1, "KNOWS", ST_IN, 2, "Person 4 1\nPerson 2 2\nPerson 3 2\nPerson 5 2\n");
    assert_neighbours(snapshot, 1, NULL, ST_BOTH, 1, "Person 2 1\nPerson 3 1\nPerson 4 1\nNote #6 1\n");
    assert_neighbours(snapshot, 1, NULL, ST_BOTH, 2,
                      "Person 2 1\nPerson 3 1\nPerson 4 1\nNote #6 1\nPerson 5 2\nNote #7 2\n");
    assert_neighbours(snapshot, 6, NULL, ST_BOTH, 5, "");
    assert_neighbours(snapshot, 1, NULL, ST_OUT, 0, "");
    st_snapshot_close(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_scan_gives_rows_in_list_and_file_order_without_deleted_ones, make, unmake),
        cmocka_unit_test_setup_teardown(every_place_in_time_reads_as_it_was, make, unmake),
        cmocka_unit_test_setup_teardown(a_snapshot_never_follows_later_commits, make, unmake),
        cmocka_unit_test_setup_teardown(a_reader_writes_nothing_and_does_without_a_pin_file, make, unmake),
        cmocka_unit_test_setup_teardown(keys_are_found_with_runs_without_them_and_after_their_loss, make, unmake),
        cmocka_unit_test_setup_teardown(answers_are_the_same_without_runs_and_pins, make, unmake),
        cmocka_unit_test_setup_teardown(one_row_reads_like_the_scan, make, unmake),
        cmocka_unit_test_setup_teardown(an_unknown_type_is_named_with_the_nearest, make, unmake),
        cmocka_unit_test_setup_teardown(neighbours_come_once_at_their_least_depth, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
