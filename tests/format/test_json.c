/*
 * The canonical writer and the strict reader of control documents.
 */
#include "store/format/json.h"
#include "store/format/utf8.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_written(pf_buffer *buffer, st_json *json, const char *expected)
{
    assert_int_equal(st_json_end(json, false, NULL), SLUICE_OK);
    assert_int_equal(buffer->length, strlen(expected));
    assert_memory_equal(buffer->data, expected, buffer->length);
    pf_buffer_free(buffer);
}

static void values_have_one_encoding(void **state)
{
    (void)state;
    pf_buffer buffer = {0};
    st_json json;
    pf_id id;
    assert_true(pf_id_parse("0190a5d0-0000-7000-8000-0000000000AB", &id));

    st_json_begin(&json, &buffer);
    st_json_object(&json);
    st_json_name(&json, "text");
    st_json_text(&json, "a\"\\\b\f\n\r\t\x01\x7f/\xC3\xA9");
    st_json_name(&json, "nul");
    st_json_bytes_text(&json, "a\0b", 3);
    st_json_name(&json, "list");
    st_json_array(&json);
    st_json_bool(&json, true);
    st_json_bool(&json, false);
    st_json_null(&json);
    st_json_number(&json, INT64_MIN);
    st_json_unsigned(&json, UINT64_MAX);
    st_json_u64(&json, UINT64_MAX);
    st_json_object(&json);
    st_json_object_end(&json);
    st_json_array(&json);
    st_json_array_end(&json);
    st_json_raw(&json, "{}", 2);
    st_json_id(&json, &id);
    st_json_array_end(&json);
    st_json_object_end(&json);
    expect_written(
        &buffer, &json,
        "{\"text\":\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f/\xC3\xA9\",\"nul\":\"a\\u0000b\",\"list\":[true,false,null,"
        "-9223372036854775808,18446744073709551615,\"18446744073709551615\",{},[],{},"
        "\"0190a5d0-0000-7000-8000-0000000000ab\"]}");
}

static void doubles_are_short_and_read_back_equal(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.0, "0"},
                 {-0.0, "-0"},
                 {1.0, "1"},
                 {0.1, "0.1"},
                 {1.0 / 3, "0.3333333333333333"},
                 {1e22, "1e+22"},
                 {5e-324, "5e-324"},
                 {DBL_MIN, "2.2250738585072014e-308"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {9007199254740993.0, "9007199254740992"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        pf_buffer buffer = {0};
        st_json json;
        st_json_begin(&json, &buffer);
        st_json_double(&json, cases[i].value);
        expect_written(&buffer, &json, cases[i].text);
        assert_true(strtod(cases[i].text, NULL) == cases[i].value);
    }
}

static void what_cannot_be_written_is_an_error_that_sticks(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer buffer = {0};
    st_json json;
    st_json_begin(&json, &buffer);
    st_json_double(&json, NAN);
    st_json_text(&json, "later");
    assert_int_equal(st_json_end(&json, true, &err), SLUICE_INTERNAL);
    assert_int_equal(err.code, SLUICE_INTERNAL);

    st_json_begin(&json, &buffer);
    st_json_text(&json, "\xC3");
    assert_int_equal(st_json_end(&json, true, NULL), SLUICE_INTERNAL);
    pf_buffer_free(&buffer);

    st_json_begin(&json, &buffer);
    st_json_lossy_text(&json, "a\xC3\"\xFF", 4);
    expect_written(&buffer, &json, "\"a\xEF\xBF\xBD\\\"\xEF\xBF\xBD\"");
}

static sluice_status parse(const char *text, size_t length)
{
    cJSON *document = NULL;
    /* an exact copy on the heap, so that a sanitizer sees a read beyond the end */
    char *copy = malloc(length ? length : 1);
    memcpy(copy, text, length);
    sluice_status status = st_json_parse(copy, length, &document, NULL);
    assert_true((status == SLUICE_OK) == (document != NULL));
    st_json_free(document);
    free(copy);
    return status;
}

static void well_formed_documents_are_read(void **state)
{
    (void)state;
    static const char *const cases[] = {"{}",
                                        "[]",
                                        "null",
                                        "\"\"",
                                        "0",
                                        "-0.5e+10",
                                        " [ 1 , 2 , { \"a\" : [ ] } ]\r\n\t",
                                        "{\"a\":{\"a\":1},\"b\":{\"a\":2}}",
                                        "\"\\ud83d\\ude00\\u00e9\\/\"",
                                        "\"\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF\""};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(parse(cases[i], strlen(cases[i])), SLUICE_OK);
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "", " ", "{", "}", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "[1 2]",
        "{} {}", "[]x", "01", "+1", "1.", ".5", "1e", "1e+", "-", "--1", "0x10", "NaN", "Infinity", "tru", "nulll",
        "'a'", "\"a", "\"\t\"", "\"\\x\"", "\"\\u12\"", "\"\\u00g0\"", "\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ude00\"",
        "\"\\ud83d\\u0041\"", "\"\\u0000\"", "\xEF\xBB\xBF{}", "\"\x80\"", "\"\xC0\x80\"", "\"\xC1\xBF\"",
        "\"\xE0\x9F\xBF\"", "\"\xED\xA0\x80\"", "\"\xF0\x8F\xBF\xBF\"", "\"\xF4\x90\x80\x80\"", "\"\xF5\x80\x80\x80\"",
        "\"\xE2\x82\"",
        /* one name twice, also when one of them is escaped, at any depth */
        "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}", "[[{\"x\":{\"k\":1,\"l\":2,\"k\":3}}]]", "{\"\":1,\"\":2}"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(parse(cases[i], strlen(cases[i])), SLUICE_CORRUPT);
    assert_int_equal(parse("\"a\0b\"", 5), SLUICE_CORRUPT);
    assert_int_equal(parse("{}\0", 3), SLUICE_CORRUPT);
    assert_int_equal(parse("\0", 1), SLUICE_CORRUPT);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char text[2 * (ST_JSON_DEPTH + 1)];
    for (size_t depth = ST_JSON_DEPTH; depth <= ST_JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(parse(text, 2 * depth), depth == ST_JSON_DEPTH ? SLUICE_OK : SLUICE_CORRUPT);
    }
    static char deep[1000000];
    memset(deep, '[', sizeof(deep));
    assert_int_equal(parse(deep, sizeof(deep)), SLUICE_CORRUPT);
}

/* No text of up to five bytes from this alphabet is accepted unless cJSON accepts it too, and reading never goes
 * astray. */
static void short_texts_are_read_without_fault(void **state)
{
    (void)state;
    static const char alphabet[] = "{}[]\",:\\u0-1e.t \x80";
    size_t letters = sizeof(alphabet) - 1;
    for (size_t length = 1; length <= 4; length++) {
        size_t total = 1, accepted = 0;
        for (size_t i = 0; i < length; i++)
            total *= letters;
        for (size_t n = 0; n < total; n++) {
            char text[5];
            size_t rest = n;
            for (size_t i = 0; i < length; i++, rest /= letters)
                text[i] = alphabet[rest % letters];
            accepted += parse(text, length) == SLUICE_OK;
        }
        assert_true(accepted > 0);
        assert_true(accepted < total);
    }
}

static void fields_are_typed(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\":\"sluice-x/1\",\"n\":\"18446744073709551615\",\"zero\":\"0\",\"lead\":\"01\",\"big\":"
        "\"18446744073709551616\",\"neg\":\"-1\",\"int\":9007199254740991,\"far\":9007199254740992,"
        "\"half\":0.5,\"t\":\"x\",\"id\":\"0190A5D0-0000-7000-8000-000000000000\",\"b\":true,"
        "\"l\":[],\"o\":{}}";
    cJSON *doc;
    uint64_t u;
    int64_t i;
    const char *t;
    const cJSON *item;
    pf_id id;
    pf_sha256 digest;
    bool b;
    sluice_error err = {0};

    assert_int_equal(st_json_parse(text, sizeof(text) - 1, &doc, NULL), SLUICE_OK);
    assert_int_equal(st_json_get_u64(doc, "n", &u, NULL), SLUICE_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(st_json_get_u64(doc, "zero", &u, NULL), SLUICE_OK);
    assert_true(u == 0);
    static const char *const no_u64[] = {"lead", "big", "neg", "int", "t", "absent", "l"};
    for (size_t k = 0; k < sizeof(no_u64) / sizeof(*no_u64); k++)
        assert_int_equal(st_json_get_u64(doc, no_u64[k], &u, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_number(doc, "int", &i, NULL), SLUICE_OK);
    assert_true(i == 9007199254740991);
    assert_int_equal(st_json_get_number(doc, "far", &i, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_number(doc, "half", &i, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_text(doc, "t", &t, NULL), SLUICE_OK);
    assert_string_equal(t, "x");
    assert_int_equal(st_json_get_text(doc, "T", &t, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_id(doc, "id", &id, NULL), SLUICE_CORRUPT); /* upper case is not canonical */
    assert_int_equal(st_json_get_sha256(doc, "t", &digest, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_bool(doc, "b", &b, NULL), SLUICE_OK);
    assert_true(b);
    assert_int_equal(st_json_get_array(doc, "l", &item, NULL), SLUICE_OK);
    assert_int_equal(st_json_get_array(doc, "o", &item, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_get_object(doc, "o", &item, NULL), SLUICE_OK);
    assert_int_equal(st_json_check_format(doc, "sluice-x/1", NULL), SLUICE_OK);
    assert_int_equal(st_json_check_format(doc, "sluice-x/2", &err), SLUICE_UNSUPPORTED_FORMAT);
    assert_int_equal(err.code, SLUICE_UNSUPPORTED_FORMAT);
    assert_int_equal(st_json_check_format(doc, "sluice-y/1", NULL), SLUICE_CORRUPT);
    st_json_free(doc);
}

static void a_document_in_another_form_is_not_canonical(void **state)
{
    (void)state;
    pf_buffer buffer = {0};
    assert_int_equal(pf_buffer_append_text(&buffer, "{\"a\":1}\n", NULL), SLUICE_OK);
    assert_int_equal(st_json_check_canonical("{\"a\":1}\n", 8, &buffer, NULL), SLUICE_OK);
    assert_int_equal(st_json_check_canonical("{\"a\":1}", 7, &buffer, NULL), SLUICE_CORRUPT);
    assert_int_equal(st_json_check_canonical("{\"a\": 1}", 8, &buffer, NULL), SLUICE_CORRUPT);
    pf_buffer_free(&buffer);
}

static bool stands_for_itself(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Eight bytes are looked at together: each value at each place, before, inside and behind such a step. */
static void what_stands_for_itself_is_found_byte_by_byte(void **state)
{
    (void)state;
    for (size_t length = 0; length <= 26; length++) {
        for (size_t at = 0; at < length; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t bytes[26];
                memset(bytes, byte % 2 ? 0x7f : 0x20, sizeof(bytes));
                bytes[at] = (uint8_t)byte;
                assert_int_equal(st_plain_length(bytes, length), stands_for_itself((uint8_t)byte) ? length : at);
                if (at + 1 < length) { /* a borrow from below must not hide or make one */
                    bytes[at + 1] = (uint8_t)(255 - byte);
                    size_t end = !stands_for_itself((uint8_t)byte)           ? at
                                 : !stands_for_itself((uint8_t)(255 - byte)) ? at + 1
                                                                             : length;
                    assert_int_equal(st_plain_length(bytes, length), end);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_one_encoding),
        cmocka_unit_test(doubles_are_short_and_read_back_equal),
        cmocka_unit_test(what_cannot_be_written_is_an_error_that_sticks),
        cmocka_unit_test(well_formed_documents_are_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(short_texts_are_read_without_fault),
        cmocka_unit_test(fields_are_typed),
        cmocka_unit_test(a_document_in_another_form_is_not_canonical),
        cmocka_unit_test(what_stands_for_itself_is_found_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
