/*
 * Arrow IPC without a file: streams in memory, slices, compression, and batches that claim what they do not hold.
 */
#include "store/arrow/bits.h"
#include "store/arrow/ipc.h"
#include "tests/support/test.h"

#include <stdlib.h>

#define NAME(text) ((char *)(uintptr_t)(text))

static const st_column_spec specs[3] = {{.name = NAME("n"), .type = ST_INT64, .nullable = true},
                                        {.name = NAME("t"), .type = ST_STRING, .nullable = true},
                                        {.name = NAME("b"), .type = ST_BOOL}};

typedef struct rows {
    st_column_builder *builders[3];
    st_column columns[3];
} rows;

static rows make_rows(uint64_t first, uint64_t count)
{
    sluice_error err = {0};
    rows made;
    for (int c = 0; c < 3; c++)
        ASSERT_OK(st_column_builder_new(&specs[c], &made.builders[c], &err));
    for (uint64_t i = first; i < first + count; i++) {
        ASSERT_OK(i % 4 == 1 ? st_append_null(made.builders[0], &err)
                             : st_append_i64(made.builders[0], (int64_t)i, &err));
        ASSERT_OK(st_append_bytes(made.builders[1], "abcdefghijkl", i % 12, &err));
        ASSERT_OK(st_append_bool(made.builders[2], i % 2, &err));
    }
    for (int c = 0; c < 3; c++)
        st_builder_view(made.builders[c], &made.columns[c]);
    return made;
}

static void free_rows(rows *made)
{
    for (int c = 0; c < 3; c++)
        st_column_builder_free(made->builders[c]);
}

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_buffer_append(context, bytes, length, err);
}

/* A stream of two batches, of rows [0, 100) and [100, 120). */
static pf_buffer make_stream(bool compress)
{
    sluice_error err = {0};
    pf_buffer stream = {0};
    st_ipc_writer *writer;
    st_ipc_options options = {.compress = compress, .context = &stream, .put = put};
    ASSERT_OK(st_ipc_writer_new(&options, specs, 3, NULL, &writer, &err));
    rows a = make_rows(0, 100), b = make_rows(100, 20);
    ASSERT_OK(st_ipc_write(writer, a.columns, a.columns[0].length, &err));
    ASSERT_OK(st_ipc_write(writer, b.columns, b.columns[0].length, &err));
    ASSERT_OK(st_ipc_finish(writer, NULL, &err));
    st_ipc_writer_free(writer);
    free_rows(&a);
    free_rows(&b);
    return stream;
}

/* Reads a stream as far as it goes; the first fault ends it. Counts the rows whose values are those of make_rows. */
static sluice_status read_stream(const uint8_t *bytes, size_t length, uint64_t *ret_rows, uint64_t *ret_right)
{
    sluice_error err = {0};
    sluice_status status = SLUICE_OK;
    size_t at = 0;

    *ret_rows = *ret_right = 0;
    while (status == SLUICE_OK && length - at >= ST_IPC_PREFIX) {
        st_arrow_message message = {0};
        st_ipc_owned owned = {0};
        uint32_t size;
        status = st_ipc_parse_prefix(bytes + at, &size, &err);
        if (status != SLUICE_OK || size == 0)
            break;
        at += ST_IPC_PREFIX;
        if (size > length - at)
            return SLUICE_CORRUPT;
        status = st_arrow_decode_message(bytes + at, size, &message, &err);
        at += size;
        if (status == SLUICE_OK && message.body_length > length - at)
            status = SLUICE_CORRUPT;
        if (status == SLUICE_OK && message.header == ST_ARROW_RECORD_BATCH) {
            st_column columns[3] = {0};
            st_ipc_body body = {.bytes = bytes + at, .length = message.body_length, .batch = &message.batch};
            status = st_ipc_check_batch(&message.batch, message.body_length, specs, 3, &err);
            for (uint32_t c = 0; c < 3 && status == SLUICE_OK; c++)
                status = st_ipc_column(&body, &specs[c], c, c == 0 ? 0 : c == 1 ? 2 : 5, &owned, &columns[c], &err);
            for (uint64_t i = 0; status == SLUICE_OK && i < message.batch.length; i++, (*ret_rows)++) {
                const st_column *n = &columns[0], *t = &columns[1];
                int32_t text = t->offsets[i + 1] - t->offsets[i];
                *ret_right += st_column_is_null(n, i) == (*ret_rows % 4 == 1) &&
                              (st_column_is_null(n, i) || ((const uint64_t *)n->values)[i] == *ret_rows) &&
                              text == (int32_t)(*ret_rows % 12) &&
                              (!text || memcmp(t->data + t->offsets[i], "abcdefghijkl", (size_t)text) == 0) &&
                              st_bit(columns[2].values, i) == *ret_rows % 2;
            }
        }
        at += message.body_length;
        st_ipc_owned_free(&owned);
        st_arrow_message_free(&message);
    }
    return status;
}

static void streams_come_back(void **state)
{
    (void)state;
    for (int compress = 0; compress < 2; compress++) {
        pf_buffer stream = make_stream(compress);
        uint64_t count, right;
        assert_int_equal(read_stream(stream.data, stream.length, &count, &right), SLUICE_OK);
        assert_int_equal(count, 120);
        assert_int_equal(right, 120);
        assert_memory_equal(stream.data + stream.length - 8, "\xFF\xFF\xFF\xFF\0\0\0\0", 8);
        pf_buffer_free(&stream);
    }
}

static void a_slice_is_written_with_offsets_of_its_own(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer stream = {0}, expected = {0};
    rows all = make_rows(0, 50);
    st_ipc_writer *writer;
    st_ipc_options options = {.context = &stream, .put = put};
    st_column slice = all.columns[1];
    slice.offsets += 13;
    slice.length = 20;
    ASSERT_OK(st_ipc_writer_new(&options, &specs[1], 1, NULL, &writer, &err));
    ASSERT_OK(st_ipc_write(writer, &slice, slice.length, &err));
    st_ipc_writer_free(writer);

    st_column_builder *builder;
    ASSERT_OK(st_column_builder_new(&specs[1], &builder, &err));
    ASSERT_OK(st_append_slice(builder, &all.columns[1], 13, 20, &err));
    st_builder_view(builder, &slice);
    options.context = &expected;
    ASSERT_OK(st_ipc_writer_new(&options, &specs[1], 1, NULL, &writer, &err));
    ASSERT_OK(st_ipc_write(writer, &slice, slice.length, &err));
    st_ipc_writer_free(writer);
    assert_int_equal(stream.length, expected.length);
    assert_memory_equal(stream.data, expected.data, stream.length);
    st_column_builder_free(builder);
    pf_buffer_free(&stream);
    pf_buffer_free(&expected);
    free_rows(&all);
}

static void columns_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer stream = {0};
    rows made = make_rows(0, 10);
    st_ipc_writer *writer;
    st_ipc_options options = {.context = &stream, .put = put};
    st_column columns[3];
    ASSERT_OK(st_ipc_writer_new(&options, specs, 3, NULL, &writer, &err));
    size_t length = stream.length;
    memcpy(columns, made.columns, sizeof columns);
    columns[1].length--;
    ASSERT_FAILS(SLUICE_INTERNAL, st_ipc_write(writer, columns, columns[0].length, &err));
    memcpy(columns, made.columns, sizeof columns);
    columns[2].type = ST_INT32;
    ASSERT_FAILS(SLUICE_INTERNAL, st_ipc_write(writer, columns, columns[0].length, &err));
    memcpy(columns, made.columns, sizeof columns);
    columns[2].nulls = 1; /* of a required column */
    ASSERT_FAILS(SLUICE_INTERNAL, st_ipc_write(writer, columns, columns[0].length, &err));
    assert_int_equal(stream.length, length);
    st_ipc_writer_free(writer);
    pf_buffer_free(&stream);
    free_rows(&made);
}

static void prefixes_are_checked(void **state)
{
    (void)state;
    sluice_error err = {0};
    static const uint8_t wrong[][8] = {
        {0}, {0xFF, 0xFF, 0xFF, 0xFE, 8}, {0xFF, 0xFF, 0xFF, 0xFF, 7}, {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x80}};
    uint32_t length;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ASSERT_FAILS(SLUICE_CORRUPT, st_ipc_parse_prefix(wrong[i], &length, &err));
    ASSERT_OK(st_ipc_parse_prefix((const uint8_t[8]){0xFF, 0xFF, 0xFF, 0xFF, 16}, &length, &err));
    assert_int_equal(length, 16);
}

/* No checksum stands before this reader: it must live with anything. */
static void anything_may_be_read(void **state)
{
    (void)state;
    uint64_t seed = 7, faults = 0;
    for (int compress = 0; compress < 2; compress++) {
        pf_buffer stream = make_stream(compress);
        for (int round = 0; round < 6000; round++) {
            size_t length = round % 4 ? stream.length : stream.length - (size_t)round % stream.length;
            uint8_t *copy = aligned_alloc(64, (length + 63) & ~(size_t)63);
            assert_non_null(copy);
            memcpy(copy, stream.data, length);
            for (int changes = 1 + round % 3; changes && length; changes--) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                copy[(seed >> 33) % length] = (uint8_t)(round % 2 ? seed >> 20 : (seed >> 20) % 3 - 1);
            }
            uint64_t count, right;
            sluice_status status = read_stream(copy, length, &count, &right);
            assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
            faults += status != SLUICE_OK;
            free(copy);
        }
        pf_buffer_free(&stream);
    }
    assert_true(faults > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_come_back),
        cmocka_unit_test(a_slice_is_written_with_offsets_of_its_own),
        cmocka_unit_test(columns_that_do_not_fit_are_refused),
        cmocka_unit_test(prefixes_are_checked),
        cmocka_unit_test(anything_may_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
