/*
 * The Arrow C stream interface: arrays with any offset, as anybody may hand them over; what Sluice hands out; and that
 * everything is released once, by whoever holds it last.
 */
#include "foreign.h"
#include "store/arrow/c_stream.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME(text) ((char *)(uintptr_t)(text))

/* ---- a producer: arrays over memory of the test, which count their releases ---- */

static int released;

static void release_array(struct ArrowArray *array)
{
    released++;
    array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema)
{
    released++;
    schema->release = NULL;
}

typedef struct producer {
    struct ArrowSchema schema;
    struct ArrowArray batch;
    int batches; /* left to give */
    int fail;    /* what get_next answers behind them */
} producer;

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    producer *from = stream->private_data;
    *out = from->schema;
    out->release = release_schema;
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    producer *from = stream->private_data;
    out->release = NULL;
    if (from->batches-- > 0) {
        *out = from->batch;
        out->release = release_array;
        return 0;
    }
    return from->fail;
}

static const char *last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the wire was cut";
}

static void release_stream(struct ArrowArrayStream *stream)
{
    released++;
    stream->release = NULL;
}

static struct ArrowArrayStream stream_of(producer *from)
{
    released = 0;
    return (struct ArrowArrayStream){.get_schema = get_schema,
                                     .get_next = get_next,
                                     .get_last_error = last_error,
                                     .release = release_stream,
                                     .private_data = from};
}

/* Reads all batches of a producer and compares their rows; everything is released by then. */
static void expect(producer *from, const char *rows)
{
    struct ArrowArrayStream stream = stream_of(from);
    int batches = from->batches;
    sluice_error err = {0};
    st_c_input *input = NULL;
    pf_buffer text = {0};

    ASSERT_OK(st_c_input_open(&stream, &input, &err));
    assert_null(stream.release);
    for (;;) {
        const st_arrow_array *arrays = NULL;
        uint64_t count = 0;
        ASSERT_OK(st_c_input_next(input, &arrays, &count, &err));
        if (!arrays)
            break;
        for (uint64_t row = 0; row < count; row++) {
            for (uint32_t i = 0; i < st_c_input_columns(input); i++)
                if (st_arrow_field_is_flat(arrays[i].field))
                    foreign_value(&arrays[i], row, &text);
            ASSERT_OK(pf_buffer_append(&text, "\n", 1, &err));
        }
    }
    st_c_input_close(input);
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    assert_string_equal((const char *)text.data, rows);
    assert_int_equal(released, batches + 2); /* and the schema and the stream */
    pf_buffer_free(&text);
}

/* A batch of one column. */
typedef struct one_column {
    struct ArrowSchema child, *children[1];
    struct ArrowArray array, *arrays[1];
    const void *buffers[4], *none[1];
    producer from;
} one_column;

static producer *make_one(one_column *one, const char *format, int64_t offset, int64_t length)
{
    one->child = (struct ArrowSchema){.format = format, .name = "c", .flags = ARROW_FLAG_NULLABLE};
    one->children[0] = &one->child;
    one->array = (struct ArrowArray){.offset = offset, .length = length, .null_count = -1, .n_buffers = 2};
    one->array.buffers = one->buffers;
    one->arrays[0] = &one->array;
    one->from = (producer){.batches = 1};
    one->from.schema = (struct ArrowSchema){.format = "+s", .name = "", .n_children = 1, .children = one->children};
    one->from.batch = (struct ArrowArray){.length = length, .n_buffers = 1, .n_children = 1};
    one->from.batch.buffers = one->none;
    one->from.batch.children = one->arrays;
    return &one->from;
}

static const uint8_t two_of_three[] = {0xB6, 0x6D, 0xDB}; /* bit i is 0 where i % 3 == 0 */

/* R076 */
static void nulls_of_a_slice_stay_in_their_rows(void **state)
{
    int64_t values[20];
    one_column one = {0};

    (void)state;
    for (int64_t i = 0; i < 20; i++)
        values[i] = i;
    one.buffers[0] = two_of_three;
    one.buffers[1] = values;
    expect(make_one(&one, "l", 5, 10), "[5]\n[-]\n[7]\n[8]\n[-]\n[10]\n[11]\n[-]\n[13]\n[14]\n");
    expect(make_one(&one, "l", 0, 4), "[-]\n[1]\n[2]\n[-]\n");
    expect(make_one(&one, "l", 13, 7), "[13]\n[14]\n[-]\n[16]\n[17]\n[-]\n[19]\n");
    expect(make_one(&one, "b", 5, 3), "[false]\n[-]\n[false]\n"); /* the same bytes as bits: 0, 1, 2 ... */
    one.array.null_count = 0;                                     /* known to have none: the bits are not asked */
    make_one(&one, "l", 5, 2);
    one.array.null_count = 0;
    expect(&one.from, "[5]\n[6]\n");
}

/* R078 */
static void a_sliced_array_begins_where_its_slice_does(void **state)
{
    static const int64_t values[] = {0, 1, 2, 3, 4, 5};
    static const int32_t offsets[] = {0, 1, 3, 6, 10};
    one_column one = {0};

    (void)state;
    one.buffers[1] = values;
    expect(make_one(&one, "l", 2, 4), "[2]\n[3]\n[4]\n[5]\n");
    one.buffers[1] = offsets;
    one.buffers[2] = "abbcccdddd";
    make_one(&one, "u", 1, 3);
    one.array.n_buffers = 3;
    expect(&one.from, "[bb]\n[ccc]\n[dddd]\n");
    make_one(&one, "u", 1, 3); /* the batch itself is a slice, too */
    one.array.n_buffers = 3;
    one.from.batch.offset = 1;
    one.from.batch.length = 2;
    expect(&one.from, "[ccc]\n[dddd]\n");
}

static void views_and_dictionaries_come_with_their_offsets(void **state)
{
    static const char bytes[] = "____a text of more than twelve";
    static const int64_t lengths[] = {sizeof bytes - 1};
    uint32_t views[3][4] = {{3, 0, 0, 0}, {26, 0, 0, 4}, {1, 0, 0, 0}};
    static const int8_t indexes[] = {9, 2, 0, 1};
    static const int64_t values[] = {-1, 70, 80, 90};
    one_column one = {0};
    struct ArrowSchema dictionary = {.format = "l", .name = ""};
    struct ArrowArray taken = {.offset = 1, .length = 3, .n_buffers = 2};
    const void *buffers[2] = {NULL, values};

    (void)state;
    memcpy(&views[0][1], "abc", 3);
    memcpy(&views[1][1], "a te", 4);
    memcpy(&views[2][1], "z", 1);
    one.buffers[1] = views;
    one.buffers[2] = bytes;
    one.buffers[3] = lengths;
    make_one(&one, "vu", 1, 2);
    one.array.n_buffers = 4;
    expect(&one.from, "[a text of more than twelve]\n[z]\n");
    one.buffers[1] = indexes;
    make_one(&one, "c", 1, 3);
    taken.buffers = buffers;
    one.child.dictionary = &dictionary;
    one.array.dictionary = &taken;
    expect(&one.from, "[90]\n[70]\n[80]\n");
}

static void members_of_a_struct_have_the_offsets_of_all_above_them(void **state)
{
    static const int32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const uint8_t present[] = {0xEF, 0xFF}; /* row 4 of the struct is null */
    one_column one = {0};
    struct ArrowSchema member = {.format = "i", .name = "m"}, *members[1] = {&member};
    struct ArrowArray inner = {.offset = 2, .length = 8, .n_buffers = 2}, *inners[1] = {&inner};
    const void *buffers[2] = {NULL, values};

    (void)state;
    inner.buffers = buffers;
    one.buffers[0] = present;
    make_one(&one, "+s", 1, 6);
    one.child.n_children = 1;
    one.child.children = members;
    one.array.n_buffers = 1;
    one.array.n_children = 1;
    one.array.children = inners;
    one.from.batch.offset = 2; /* batch row 0 is struct row 2 + 1, member row 2 + 1 + 2 */
    one.from.batch.length = 3;
    expect(&one.from, "[5]\n[-]\n[7]\n");
}

static void formats_are_understood_or_passed_over(void **state)
{
    static const struct {
        const char *format, *text;
    } formats[] = {{"n", "null"},
                   {"C", "uint8"},
                   {"S", "uint16"},
                   {"e", "float16"},
                   {"Z", "large_binary"},
                   {"tdm", "date64"},
                   {"d:9,2", "decimal128"},
                   {"d:9,2,64", "decimal64"},
                   {"w:16", "fixed_size_binary"},
                   {"tsn:", "timestamp[ns]"},
                   {"tss:Europe/Paris", "timestamp[s, Europe/Paris]"},
                   {"tDu", "duration"},
                   {"ttm", "time"},
                   {"tiM", "interval"},
                   {"+w:3", "fixed_size_list"},
                   {"+ud:0,1", "union"},
                   {"?", "unknown"}};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        one_column one = {0};
        struct ArrowArrayStream stream = stream_of(make_one(&one, formats[i].format, 0, 0));
        sluice_error err = {0};
        st_c_input *input;
        const char *name;
        char text[ST_ARROW_TYPE_TEXT];
        ASSERT_OK(st_c_input_open(&stream, &input, &err));
        assert_string_equal(st_arrow_field_text(st_c_input_field(input, 0, &name), text), formats[i].text);
        assert_string_equal(name, "c");
        st_c_input_close(input);
    }
}

static void refuse(producer *from, sluice_status code, const char *text)
{
    struct ArrowArrayStream stream = stream_of(from);
    sluice_error err = {0};
    st_c_input *input = NULL;
    sluice_status status = st_c_input_open(&stream, &input, &err);
    const st_arrow_array *arrays;
    uint64_t rows;

    if (status == SLUICE_OK)
        status = st_c_input_next(input, &arrays, &rows, &err);
    assert_int_equal(status, code);
    assert_non_null(strstr(err.text, text));
    st_c_input_close(input);
    assert_null(stream.release);
}

static void what_does_not_fit_or_fails_is_refused_and_released(void **state)
{
    static const int8_t indexes[] = {0, 1};
    static const int64_t values[] = {1};
    struct ArrowSchema dictionary = {.format = "l", .name = ""};
    struct ArrowArray taken = {.length = 1, .n_buffers = 2};
    const void *buffers[2] = {NULL, values};
    one_column one = {0};

    (void)state;
    make_one(&one, "l", 0, 1);
    one.from.batches = 0;
    one.from.fail = EIO;
    refuse(&one.from, SLUICE_IO, "the wire was cut");
    assert_int_equal(released, 2);
    make_one(&one, "l", 0, 1);
    one.from.schema.format = "l";
    refuse(&one.from, SLUICE_UNSUPPORTED_FORMAT, "not one of batches");
    refuse(make_one(&one, "d:x", 0, 1), SLUICE_CORRUPT, "malformed");
    refuse(make_one(&one, "l", 0, 1), SLUICE_CORRUPT, "does not fit"); /* no values */
    make_one(&one, "l", 0, 1);
    one.from.batch.length = 2; /* more rows than its column */
    refuse(&one.from, SLUICE_CORRUPT, "does not fit");
    make_one(&one, "l", -1, 1);
    refuse(&one.from, SLUICE_CORRUPT, "does not fit");
    make_one(&one, "l", 0, 1);
    one.from.batch.n_children = 0;
    refuse(&one.from, SLUICE_CORRUPT, "does not fit");
    make_one(&one, "c", 0, 2);
    one.buffers[1] = indexes;
    taken.buffers = buffers;
    one.child.dictionary = &dictionary;
    one.array.dictionary = &taken;
    refuse(&one.from, SLUICE_CORRUPT, "leads out of its dictionary");
    assert_int_equal(released, 3);
}

/* ---- out ---- */

static const st_column_spec end_members[2] = {{.name = NAME("a"), .type = ST_INT32},
                                              {.name = NAME("b"), .type = ST_STRING}};
static const st_column_spec specs[4] = {
    {.name = NAME("n"), .type = ST_INT64, .nullable = true},
    {.name = NAME("t"), .type = ST_STRING, .nullable = true},
    {.name = NAME("f"), .type = ST_BOOL},
    {.name = NAME("to"), .type = ST_STRUCT, .children = (st_column_spec *)(uintptr_t)end_members, .child_count = 2}};

typedef struct own_batches {
    st_column_builder *builders[4];
    st_column columns[4];
    int left, closed;
} own_batches;

static void make_columns(own_batches *own)
{
    sluice_error err = {0};
    for (int c = 0; c < 4; c++)
        ASSERT_OK(st_column_builder_new(&specs[c], &own->builders[c], &err));
    for (int32_t i = 0; i < 5; i++) {
        ASSERT_OK(i % 2 ? st_append_null(own->builders[0], &err) : st_append_i64(own->builders[0], i, &err));
        ASSERT_OK(st_append_bytes(own->builders[1], "xxxxx", (size_t)i, &err));
        ASSERT_OK(st_append_bool(own->builders[2], i == 3, &err));
        ASSERT_OK(st_append_i32(st_builder_child(own->builders[3], 0), -i, &err));
        ASSERT_OK(st_append_bytes(st_builder_child(own->builders[3], 1), "yyyyy", (size_t)i, &err));
        ASSERT_OK(st_append_struct(own->builders[3], &err));
    }
    for (int c = 0; c < 4; c++)
        st_builder_view(own->builders[c], &own->columns[c]);
}

static sluice_status next_own(void *context, st_c_batch *ret_batch, sluice_error *err)
{
    own_batches *own = context;
    if (own->left < 0)
        return pf_fail(err, SLUICE_IO, "the disk was cut");
    *ret_batch = (st_c_batch){.columns = own->left-- > 0 ? own->columns : NULL, .rows = own->columns[0].length};
    return SLUICE_OK;
}

static void close_own(void *context)
{
    own_batches *own = context;
    own->closed++;
}

static void what_goes_out_comes_in_again(void **state)
{
    own_batches own = {.left = 2};
    st_c_batches batches = {.context = &own, .next = next_own, .close = close_own};
    struct ArrowArrayStream stream;
    sluice_error err = {0};
    st_c_input *input;
    const st_arrow_array *arrays;
    uint64_t rows;
    pf_buffer text = {0};

    (void)state;
    make_columns(&own);
    ASSERT_OK(st_c_stream_make(specs, 4, &batches, &stream, &err));
    ASSERT_OK(st_c_input_open(&stream, &input, &err));
    for (int batch = 0; batch < 2; batch++) {
        ASSERT_OK(st_c_input_next(input, &arrays, &rows, &err));
        assert_int_equal(rows, 5);
        text.length = 0;
        for (uint64_t row = 0; row < rows; row++)
            for (uint32_t i = 0; i < st_c_input_columns(input); i++)
                foreign_value(&arrays[i], row, &text);
        ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
        assert_string_equal((const char *)text.data, "[0][][false][0][][-][x][false][-1][y][2][xx][false][-2][yy]"
                                                     "[-][xxx][true][-3][yyy][4][xxxx][false][-4][yyyy]");
    }
    ASSERT_OK(st_c_input_next(input, &arrays, &rows, &err));
    assert_null(arrays);
    assert_int_equal(own.closed, 0);
    st_c_input_close(input);
    assert_int_equal(own.closed, 1);
    for (int c = 0; c < 4; c++)
        st_column_builder_free(own.builders[c]);
    pf_buffer_free(&text);
}

static void arrays_outlive_their_stream_and_children_their_array(void **state)
{
    own_batches own = {.left = 1};
    st_c_batches batches = {.context = &own, .next = next_own, .close = close_own};
    struct ArrowArrayStream stream;
    struct ArrowArray array, child;
    struct ArrowSchema schema;
    sluice_error err = {0};

    (void)state;
    make_columns(&own);
    ASSERT_OK(st_c_stream_make(specs, 4, &batches, &stream, &err));
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(stream.get_next(&stream, &array), 0);
    assert_int_equal(stream.get_next(&stream, &child), 0);
    assert_null(child.release); /* the end */
    own.left = -1;
    assert_int_equal(stream.get_next(&stream, &child), EIO);
    assert_string_equal(stream.get_last_error(&stream), "the disk was cut");
    stream.release(&stream);
    assert_null(stream.release);
    for (int c = 0; c < 4; c++)
        st_column_builder_free(own.builders[c]);
    assert_string_equal(schema.children[3]->children[1]->format, "u");
    assert_int_equal(schema.children[3]->flags & ARROW_FLAG_NULLABLE, 0);
    assert_int_equal(schema.children[0]->flags & ARROW_FLAG_NULLABLE, ARROW_FLAG_NULLABLE);
    schema.release(&schema);
    child = *array.children[0]; /* moved */
    array.children[0]->release = NULL;
    array.release(&array);
    assert_int_equal(((const int64_t *)child.buffers[1])[4], 4);
    assert_int_equal(child.null_count, 2);
    child.release(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nulls_of_a_slice_stay_in_their_rows),
        cmocka_unit_test(a_sliced_array_begins_where_its_slice_does),
        cmocka_unit_test(views_and_dictionaries_come_with_their_offsets),
        cmocka_unit_test(members_of_a_struct_have_the_offsets_of_all_above_them),
        cmocka_unit_test(formats_are_understood_or_passed_over),
        cmocka_unit_test(what_does_not_fit_or_fails_is_refused_and_released),
        cmocka_unit_test(what_goes_out_comes_in_again),
        cmocka_unit_test(arrays_outlive_their_stream_and_children_their_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
