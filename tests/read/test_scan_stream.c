/*
 * A scan as an Arrow C stream: the living rows, projected, with their ids; arrays that outlive scan and snapshot.
 */
#include "rows_fixture.h"
#include "store/arrow/c_stream.h"
#include "tests/support/test.h"

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

static void a_stream_gives_the_living_rows_with_their_ids(void **state)
{
    graph_fixture *fixture = *state;
    st_edit_add one = rows_persons(fixture, 1, 7, 3, true), two = rows_persons(fixture, 100, 2, 10, true);
    (void)rows_publish(fixture, PERSON, &one);
    (void)rows_publish(fixture, PERSON, &two);
    uint64_t gone[] = {ST_ROW_BLOCK + 0, ST_ROW_BLOCK + 3, ST_ROW_BLOCK + 4, ST_ROW_BLOCK + 5, ST_ROW_BLOCK + 8};
    (void)rows_delete(fixture, PERSON, gone, 5);
    static const char *const names[] = {"_row_id", "name", "id"};
    static const st_stream_options projection = {.columns = names, .column_count = 3};
    static const uint64_t ids[] = {1, 2, 6, 7};
    static const int64_t keys[] = {2, 3, 7, 100};
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    struct ArrowArrayStream stream;
    st_c_input *input;
    const st_arrow_array *arrays;
    const char *name;
    uint64_t rows, seen = 0;
    sluice_error err = {0};
    ASSERT_OK(st_scan_stream(snapshot, rows_type(snapshot, "Person"), &projection, &stream, &err));
    ASSERT_OK(st_c_input_open(&stream, &input, &err));
    assert_int_equal(st_c_input_columns(input), 3);
    assert_int_equal(st_c_input_field(input, 0, &name)->kind, ST_ARROW_INT);
    assert_string_equal(name, "_row_id");
    assert_int_equal(st_c_input_field(input, 1, &name)->kind, ST_ARROW_UTF8);
    for (;;) {
        ASSERT_OK(st_c_input_next(input, &arrays, &rows, &err));
        if (!arrays)
            break;
        for (uint64_t row = 0; row < rows; row++, seen++) {
            st_arrow_value id, text, key;
            ASSERT_OK(st_arrow_get(&arrays[0], row, &id, &err));
            ASSERT_OK(st_arrow_get(&arrays[1], row, &text, &err));
            ASSERT_OK(st_arrow_get(&arrays[2], row, &key, &err));
            assert_true(seen < 4);
            assert_int_equal(id.u64, ST_ROW_BLOCK + ids[seen]);
            assert_int_equal(key.i64, keys[seen]);
            assert_int_equal(text.class, seen == 3 ? ST_CLASS_NOTHING : ST_CLASS_TEXT);
        }
    }
    assert_int_equal(seen, 4);
    st_c_input_close(input);
    st_snapshot_close(snapshot);
}

static void an_array_outlives_stream_snapshot_and_graph_files(void **state)
{
    graph_fixture *fixture = *state;
    st_edit_add one = rows_persons(fixture, 1, 7, 10, true);
    (void)rows_publish(fixture, PERSON, &one);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    sluice_error err = {0};
    ASSERT_OK(st_scan_stream(snapshot, rows_type(snapshot, "Person"), NULL, &stream, &err));
    assert_int_equal(stream.get_next(&stream, &array), 0);
    stream.release(&stream);
    st_snapshot_close(snapshot);
    assert_int_equal(array.length, 7);
    assert_int_equal(array.n_children, 3);
    assert_int_equal(((const int64_t *)array.children[0]->buffers[1])[6], 7);
    assert_memory_equal(array.children[1]->buffers[2], "p1p2", 4);
    array.release(&array);
    assert_null(array.release);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stream_gives_the_living_rows_with_their_ids, make, unmake),
        cmocka_unit_test_setup_teardown(an_array_outlives_stream_snapshot_and_graph_files, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
