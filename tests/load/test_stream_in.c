/*
 * Arrays that a producer hands over through the Arrow C stream interface, spooled and loaded: slices keep their nulls
 * and their beginning, also as keys; what a graph hands out loads into an equal graph.
 */
#include "load_fixture.h"
#include "store/read/snapshot.h"
#include "worker/ingest/arrow_spool.h"

#include <errno.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"v\": \"int32?\"}}, "
    "\"Q\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"v\": \"int32?\"}}},"
    "\"edges\": {}}";

static int make(void **state)
{
    static load_fixture fixture;
    load_fixture_make(&fixture, schema);
    *state = &fixture;
    return 0;
}

static int clear(void **state)
{
    load_fixture *fixture = *state;
    load_fixture_expect_clean(fixture);
    load_fixture_free(fixture);
    return 0;
}

/* ---- a producer of one batch of two columns, id and v ---- */

typedef struct producer {
    struct ArrowSchema fields[2], *children[2];
    struct ArrowArray arrays[2], *columns[2];
    const void *buffers[2][3], *none[1];
    int64_t rows;
    int left, released;
} producer;

static void release_schema(struct ArrowSchema *out)
{
    out->release = NULL;
}

static void release_array(struct ArrowArray *out)
{
    out->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    producer *from = stream->private_data;
    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 2, .children = from->children, .release = release_schema};
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    producer *from = stream->private_data;
    *out = (struct ArrowArray){0};
    if (from->left-- <= 0)
        return from->left < -1 ? EIO : 0;
    *out = (struct ArrowArray){.length = from->rows,
                               .n_buffers = 1,
                               .buffers = from->none,
                               .n_children = 2,
                               .children = from->columns,
                               .release = release_array};
    return 0;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    producer *from = stream->private_data;
    from->released++;
    stream->release = NULL;
}

static void make_column(producer *from, int i, const char *name, const char *format, int64_t offset, int64_t length,
                        const void *validity, const void *values)
{
    from->buffers[i][0] = validity;
    from->buffers[i][1] = values;
    from->fields[i] = (struct ArrowSchema){.format = format, .name = name, .flags = ARROW_FLAG_NULLABLE};
    from->arrays[i] = (struct ArrowArray){
        .offset = offset, .length = length, .null_count = -1, .n_buffers = 2, .buffers = from->buffers[i]};
    from->children[i] = &from->fields[i];
    from->columns[i] = &from->arrays[i];
    from->rows = length;
    from->left = 1;
}

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_buffer_append(context, bytes, length, err);
}

static void spool(const load_fixture *f, struct ArrowArrayStream *stream, uint64_t rows)
{
    pf_buffer bytes = {0};
    uint64_t got = 0;
    sluice_error err = {0};

    ASSERT_OK(wk_arrow_spool(stream, put, &bytes, &got, &err));
    assert_null(stream->release);
    assert_int_equal(got, rows);
    load_fixture_write(f, "in.arrows", bytes.data, bytes.length);
    pf_buffer_free(&bytes);
}

static struct ArrowArrayStream stream_of(producer *from)
{
    return (struct ArrowArrayStream){
        .get_schema = get_schema, .get_next = get_next, .release = release_stream, .private_data = from};
}

/* ---- R076, R078 ---- */

static void slices_load_with_their_nulls_and_from_their_beginning(void **state)
{
    load_fixture *f = *state;
    static const uint8_t two_of_three[] = {0xB6, 0x6D, 0xDB}; /* bit i is 0 where i % 3 == 0 */
    int64_t values[20];
    producer from = {0};
    struct ArrowArrayStream stream = stream_of(&from);

    for (int64_t i = 0; i < 20; i++)
        values[i] = i;
    make_column(&from, 0, "id", "l", 3, 10, NULL, values);
    make_column(&from, 1, "v", "l", 5, 10, two_of_three, values);
    spool(f, &stream, 10);
    assert_int_equal(from.released, 1);
    (void)load_fixture_load(f, "P=in.arrows");
    load_fixture_expect(f, "P",
                        "[3][5]\n[4][-]\n[5][7]\n[6][8]\n[7][-]\n[8][10]\n[9][11]\n[10][-]\n[11][13]\n[12][14]\n");
    make_column(&from, 0, "id", "l", 2, 4, NULL, values);
    make_column(&from, 1, "v", "l", 2, 4, NULL, values);
    stream = stream_of(&from);
    spool(f, &stream, 4);
    (void)load_fixture_load(f, "Q=in.arrows");
    load_fixture_expect(f, "Q", "[2][2]\n[3][3]\n[4][4]\n[5][5]\n");
}

static void what_a_scan_hands_out_loads_into_an_equal_type(void **state)
{
    load_fixture *f = *state;
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    struct ArrowArrayStream stream;
    sluice_error err = {0};

    load_fixture_text(f, "p.csv", "id,v\n7,1\n-3,\n9223372036854775807,-5\n");
    (void)load_fixture_load(f, "P=p.csv");
    ASSERT_OK(st_snapshot_open(f->graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "P", &type, &err));
    ASSERT_OK(st_scan_stream(snapshot, type, NULL, &stream, &err));
    spool(f, &stream, 3);
    st_snapshot_close(snapshot);
    (void)load_fixture_load(f, "Q=in.arrows");
    load_fixture_expect(f, "Q", "[7][1]\n[-3][-]\n[9223372036854775807][-5]\n");
}

static void what_cannot_be_taken_is_refused_by_column_and_row_and_released(void **state)
{
    static const int64_t values[] = {1000, 1001};
    static const struct {
        const char *format;
        int left;
        sluice_status code;
        const char *text;
    } cases[] = {
        {"tsn:", 1, SLUICE_CONSTRAINT_TYPE, "row 2: column v: a timestamp of 1001 ns is finer than microseconds"},
        {"ttn", 1, SLUICE_UNSUPPORTED_FORMAT, "column v: Arrow's time cannot become a property"},
        {"l", -1, SLUICE_IO, "the producer of a stream failed"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        producer from = {0};
        struct ArrowArrayStream stream = stream_of(&from);
        pf_buffer bytes = {0};
        uint64_t rows = 0;
        sluice_error err = {0};
        make_column(&from, 0, "id", "l", 0, 2, NULL, values);
        make_column(&from, 1, "v", cases[i].format, 0, 2, NULL, values);
        from.left = cases[i].left;
        ASSERT_FAILS(cases[i].code, wk_arrow_spool(&stream, put, &bytes, &rows, &err));
        assert_non_null(strstr(err.text, cases[i].text));
        assert_null(stream.release);
        assert_int_equal(from.released, 1);
        pf_buffer_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_load_with_their_nulls_and_from_their_beginning, make, clear),
        cmocka_unit_test_setup_teardown(what_a_scan_hands_out_loads_into_an_equal_type, make, clear),
        cmocka_unit_test(what_cannot_be_taken_is_refused_by_column_and_row_and_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
