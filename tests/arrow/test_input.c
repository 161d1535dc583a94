/*
 * Arrow of other producers: its values, whatever slice is asked for; and the same files cut off at every byte and with
 * every byte changed: an error or rows, never more.
 */
#include "foreign.h"
#include "store/arrow/flatbuffer.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const char *const samples[] = {"wide.arrow",          "lz4.arrow",    "zstd.arrows", "early.arrows",
                                      "dictionaries.arrows", "deltas.arrow", "polars.arrow"};
#define SAMPLES (sizeof samples / sizeof *samples)

static void expect(const char *name, const char *text)
{
    sluice_error err = {0};
    foreign_bytes bytes = foreign_sample(name);
    pf_buffer got = {0};

    ASSERT_OK(foreign_read(&bytes, 5, &got, &err));
    ASSERT_OK(pf_buffer_append(&got, "", 1, &err));
    assert_string_equal((const char *)got.data, text);
    pf_buffer_free(&got);
    free((void *)(uintptr_t)bytes.bytes);
}

static void dictionaries_are_replaced_and_continued(void **state)
{
    (void)state;
    expect("dictionaries.arrows", "[a]\n[b]\n[c]\n[a]\n[x]\n[-]\n[-]\n[y]\n");
    expect("deltas.arrow", "[a]\n[b]\n[c]\n[a]\n");
}

static void texts_come_out_of_every_layout_and_compression(void **state)
{
    static const char some[] =
        "[][0][]\n[t][-1][view ]\n[-][-][-]\n[ttt][-3][view view view ]\n[tttt][-4][view view view view ]\n"
        "[-][-][-]\n[tttttt][-6][view view view view view view ]\n"
        "[ttttttt][-7][view view view view view view view ]\n[-][-][-]\n"
        "[ttttttttt][-9][view view view view view view view view view ]\n"
        "[tttttttttt][-10][view view view view view view view view view view ]\n";
    (void)state;
    expect("lz4.arrow", some);
    expect("zstd.arrows", some);
    expect("polars.arrow", "[1][short][x]\n[-][a text that is longer than twelve bytes][y]\n[3][-][x]\n");
    expect("early.arrows",
           "[0][]\n[0.125][t]\n[-][-]\n[0.375][ttt]\n[0.5][tttt]\n[-][-]\n[0.75][tttttt]\n[0.875][ttttttt]\n"
           "[-][-]\n[1.125][ttttttttt]\n[1.25][tttttttttt]\n");
}

static void columns_that_are_not_read_are_passed_over(void **state)
{
    sluice_error err = {0};
    foreign_bytes bytes = foreign_sample("wide.arrow");
    pf_buffer text = {0};

    (void)state;
    ASSERT_OK(foreign_read(&bytes, 100, &text, &err));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    /* bool, i8, u64, f32, f64, text, long, fixed, view, day, moment, decimal, struct.a, struct.b, null */
    assert_non_null(
        strstr((const char *)text.data,
               "\n[false][-7][18446744073709551608][1.75][0.875][ttttttt][bbbbbbb][xy][view view view view view "
               "view view ][19782][1704067200000000][175e-2][7][sssssss][-]\n[-][-][-]"));
    pf_buffer_free(&text);
    free((void *)(uintptr_t)bytes.bytes);
}

static void any_slice_of_a_batch_has_the_rows_of_the_whole(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLES; s++) {
        sluice_error err = {0};
        foreign_bytes bytes = foreign_sample(samples[s]);
        st_arrow_source source = foreign_source(&bytes);
        st_arrow_input *input;
        pf_buffer whole = {0}, part = {0};
        ASSERT_OK(st_arrow_input_open(&source, &input, &err));
        for (uint32_t b = 0; b < input->batch_count; b++) {
            whole.length = 0;
            ASSERT_OK(foreign_batch(input, b, 0, 1000, &whole, &err));
            size_t at = 0;
            for (uint64_t first = 0; first < input->batches[b].rows; first++) {
                for (uint64_t slice = 1; slice <= input->batches[b].rows - first; slice++) {
                    part.length = 0;
                    ASSERT_OK(foreign_batch(input, b, first, slice, &part, &err));
                    assert_int_equal(part.length, whole.length - at);
                    assert_memory_equal(part.data, whole.data + at, part.length);
                }
                at = (size_t)((const uint8_t *)memchr(whole.data + at, '\n', whole.length - at) - whole.data) + 1;
            }
        }
        st_arrow_input_close(input);
        pf_buffer_free(&whole);
        pf_buffer_free(&part);
        free((void *)(uintptr_t)bytes.bytes);
    }
}

static void expect_refusal(sluice_status status)
{
    assert_true(status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT || status == SLUICE_RESOURCE_LIMIT);
}

/* In memory of exactly that size, so that a byte behind it would be seen. */
static sluice_status read_copy(const uint8_t *bytes, size_t length, size_t change, uint8_t by, pf_buffer *text)
{
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    if (length)
        memcpy(copy, bytes, length);
    if (change < length)
        copy[change] ^= by;
    foreign_bytes from = {copy, length};
    sluice_status status = foreign_read(&from, 3, text, NULL);
    free(copy);
    return status;
}

static void a_file_cut_off_anywhere_is_refused_and_what_was_read_is_right(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLES; s++) {
        foreign_bytes bytes = foreign_sample(samples[s]);
        pf_buffer whole = {0}, text = {0};
        assert_int_equal(foreign_read(&bytes, 3, &whole, NULL), SLUICE_OK);
        for (size_t length = 0; length < bytes.length; length++) {
            expect_refusal(read_copy(bytes.bytes, length, SIZE_MAX, 0, &text));
            assert_true(text.length <= whole.length);
            if (text.length)
                assert_memory_equal(text.data, whole.data, text.length);
        }
        pf_buffer_free(&whole);
        pf_buffer_free(&text);
        free((void *)(uintptr_t)bytes.bytes);
    }
}

static void a_changed_byte_gives_an_error_or_rows(void **state)
{
    static const uint8_t changes[] = {0xFF, 0x01, 0x80};

    (void)state;
    for (size_t s = 0; s < SAMPLES; s++) {
        foreign_bytes bytes = foreign_sample(samples[s]);
        pf_buffer text = {0};
        for (size_t at = 0; at < bytes.length; at++)
            for (size_t c = 0; c < sizeof changes; c++) {
                sluice_status status = read_copy(bytes.bytes, bytes.length, at, changes[c], &text);
                if (status != SLUICE_OK)
                    expect_refusal(status);
            }
        pf_buffer_free(&text);
        free((void *)(uintptr_t)bytes.bytes);
    }
}

/* A stream of a schema without fields, and nothing behind it. */
static pf_buffer bare_stream(uint16_t version, uint16_t endianness)
{
    sluice_error err = {0};
    st_fb_builder fb = {0};
    const uint8_t *bytes;
    size_t length;
    pf_buffer stream = {0};
    uint32_t prefix[2] = {0xFFFFFFFFu, 0};

    st_fb_ref fields = st_fb_vector_of_refs(&fb, NULL, 0);
    st_fb_table_begin(&fb);
    st_fb_put_u16(&fb, 0, endianness, 0);
    st_fb_put_ref(&fb, 1, fields);
    st_fb_ref schema = st_fb_table_end(&fb);
    st_fb_table_begin(&fb);
    st_fb_put_ref(&fb, 2, schema);
    st_fb_put_u16(&fb, 0, version, 0);
    st_fb_put_u8(&fb, 1, ST_ARROW_SCHEMA, 0);
    ASSERT_OK(st_fb_finish(&fb, st_fb_table_end(&fb), &bytes, &length, &err));
    prefix[1] = (uint32_t)length;
    ASSERT_OK(pf_buffer_append(&stream, prefix, sizeof prefix, &err));
    ASSERT_OK(pf_buffer_append(&stream, bytes, length, &err));
    st_fb_builder_free(&fb);
    return stream;
}

static void other_numbers_versions_and_open_ends_are_refused(void **state)
{
    static const struct {
        uint16_t version, endianness;
        sluice_status code;
        const char *text;
    } cases[] = {{4, 1, SLUICE_UNSUPPORTED_FORMAT, "big-endian"},
                 {2, 0, SLUICE_UNSUPPORTED_FORMAT, "other than V4 and V5"},
                 {5, 0, SLUICE_UNSUPPORTED_FORMAT, "other than V4 and V5"},
                 {4, 0, SLUICE_CORRUPT, "without the mark of its end"}};
    sluice_error err = {0};
    pf_buffer text = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pf_buffer stream = bare_stream(cases[i].version, cases[i].endianness);
        foreign_bytes from = {stream.data, stream.length};
        pf_error_clear(&err);
        ASSERT_FAILS(cases[i].code, foreign_read(&from, 1, &text, &err));
        assert_non_null(strstr(err.text, cases[i].text));
        pf_buffer_free(&stream);
    }
    pf_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dictionaries_are_replaced_and_continued),
        cmocka_unit_test(texts_come_out_of_every_layout_and_compression),
        cmocka_unit_test(columns_that_are_not_read_are_passed_over),
        cmocka_unit_test(any_slice_of_a_batch_has_the_rows_of_the_whole),
        cmocka_unit_test(a_file_cut_off_anywhere_is_refused_and_what_was_read_is_right),
        cmocka_unit_test(a_changed_byte_gives_an_error_or_rows),
        cmocka_unit_test(other_numbers_versions_and_open_ends_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
