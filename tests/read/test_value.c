/*
 * Values as text and JSON, both ways: exact at the edges of every type, strict about everything around, free of locale.
 */
#include "store/read/snapshot.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sample {
    st_type type;
    const char *text;
    const char *shown; /* text as it is written again; NULL: like text */
    const char *json;  /* NULL: like shown, quoted when it is no number, true or false */
} sample;

static const sample good[] = {
    {ST_BOOL, "true", NULL, "true"},
    {ST_BOOL, "false", NULL, "false"},
    {ST_INT32, "-2147483648", NULL, "-2147483648"},
    {ST_INT32, "2147483647", NULL, "2147483647"},
    {ST_INT32, "007", "7", "7"},
    {ST_INT32, "-0", "0", "0"},
    {ST_INT64, "-9223372036854775808", NULL, "-9223372036854775808"},
    {ST_INT64, "9223372036854775807", NULL, "9223372036854775807"},
    {ST_INT64, "9007199254740993", NULL, "9007199254740993"},
    {ST_UINT64, "18446744073709551615", NULL, "18446744073709551615"},
    {ST_UINT64, "0", NULL, "0"},
    {ST_ROW_ID, "1099511627776", NULL, "1099511627776"},
    {ST_FLOAT64, "0.1", NULL, "0.1"},
    {ST_FLOAT64, "1", "1.0", "1.0"},
    {ST_FLOAT64, "-0.0", NULL, "-0.0"},
    {ST_FLOAT64, "1e22", NULL, "1e22"},
    {ST_FLOAT64, "100", "100.0", "100.0"},
    {ST_FLOAT64, "1e+5", "100000.0", "100000.0"},
    {ST_FLOAT64, "123456789012345680", NULL, "1.2345678901234568e17"},
    {ST_FLOAT64, "12345678901234567", NULL, NULL},
    {ST_FLOAT64, "0.00001", NULL, "0.00001"},
    {ST_FLOAT64, "1e-6", NULL, "1e-6"},
    {ST_FLOAT64, "9007199254740993", "9007199254740992.0", "9007199254740992.0"}, /* halfway: to even */
    {ST_FLOAT64, "1.7976931348623157e308", NULL, "1.7976931348623157e308"},
    {ST_FLOAT64, "4.9e-324", "5e-324", "5e-324"},
    {ST_FLOAT64, "2.2250738585072011e-308", "2.225073858507201e-308", "2.225073858507201e-308"},
    {ST_FLOAT64, "0.1000000000000000055511151231257827021181583404541015625", "0.1", "0.1"},
    {ST_FLOAT64, ".5", "0.5", "0.5"},
    {ST_FLOAT64, "NaN", NULL, "\"NaN\""},
    {ST_FLOAT64, "-Infinity", NULL, "\"-Infinity\""},
    {ST_FLOAT32, "0.1", NULL, "0.1"},
    {ST_FLOAT32, "16777217", "16777216.0", "16777216.0"},
    {ST_FLOAT32, "3.4028235e38", NULL, "3.4028235e38"},
    {ST_FLOAT32, "1e-45", NULL, "1e-45"},
    /* read twice (to double, then to float) this would give 1.00000012 */
    {ST_FLOAT32, "1.00000017881393432617187499", "1.0000001", "1.0000001"},
    {ST_FLOAT32, "Infinity", NULL, "\"Infinity\""},
    {ST_STRING, "", NULL, "\"\""},
    {ST_STRING, "a\"\n\xC3\xA9", NULL, "\"a\\\"\\n\xC3\xA9\""},
    {ST_BYTES, "", NULL, "\"\""},
    {ST_BYTES, "AA==", NULL, "\"AA==\""},
    {ST_BYTES, "AAE=", NULL, "\"AAE=\""},
    {ST_BYTES, "//79+w==", NULL, "\"//79+w==\""},
    {ST_DATE, "1970-01-01", NULL, "\"1970-01-01\""},
    {ST_DATE, "2024-02-29", NULL, "\"2024-02-29\""},
    {ST_DATE, "0000-01-01", NULL, "\"0000-01-01\""},
    {ST_DATE, "9999-12-31", NULL, "\"9999-12-31\""},
    {ST_DATE, "-0044-03-15", NULL, "\"-0044-03-15\""},
    {ST_DATE, "5881580-07-11", NULL, "\"5881580-07-11\""},
    {ST_DATE, "-5877641-06-23", NULL, "\"-5877641-06-23\""},
    {ST_TIMESTAMP, "2026-01-31T12:34:56Z", NULL, "\"2026-01-31T12:34:56Z\""},
    {ST_TIMESTAMP, "2026-01-31T12:34:56", "2026-01-31T12:34:56Z", NULL},
    {ST_TIMESTAMP, "2026-01-31 12:34", "2026-01-31T12:34:00Z", NULL},
    {ST_TIMESTAMP, "2026-01-31", "2026-01-31T00:00:00Z", NULL},
    {ST_TIMESTAMP, "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z", NULL},
    {ST_TIMESTAMP, "2026-01-01T00:30:00-0130", "2026-01-01T02:00:00Z", NULL},
    {ST_TIMESTAMP, "2026-01-01T00:30:00+05", "2025-12-31T19:30:00Z", NULL},
    {ST_TIMESTAMP, "1969-12-31T23:59:59.999999Z", NULL, NULL},
    {ST_TIMESTAMP, "2026-01-31T12:34:56.5Z", "2026-01-31T12:34:56.500Z", NULL},
    {ST_TIMESTAMP, "2026-01-31T12:34:56.123456000Z", "2026-01-31T12:34:56.123456Z", NULL},
    {ST_TIMESTAMP, "294247-01-10T04:00:54.775807Z", NULL, NULL},
    {ST_TIMESTAMP, "-290308-12-21T19:59:05.224192Z", NULL, NULL},
    {ST_COMMIT_ID, "01890000-0000-7000-8000-0123456789ab", NULL, "\"01890000-0000-7000-8000-0123456789ab\""},
};

typedef struct refused {
    st_type type;
    const char *text, *message;
} refused;

static const refused bad[] = {
    {ST_BOOL, "True", "\"True\" is not a bool"},
    {ST_BOOL, "1", "\"1\" is not a bool"},
    {ST_INT32, "abc", "\"abc\" is not an int32"},
    {ST_INT32, "", "\"\" is not an int32"},
    {ST_INT32, "-", "\"-\" is not an int32"},
    {ST_INT32, "+1", "\"+1\" is not an int32"},
    {ST_INT32, " 1", "\" 1\" is not an int32"},
    {ST_INT32, "1 ", "\"1 \" is not an int32"},
    {ST_INT32, "1.0", "\"1.0\" is not an int32"},
    {ST_INT32, "1e3", "\"1e3\" is not an int32"},
    {ST_INT32, "0x10", "\"0x10\" is not an int32"},
    {ST_INT32, "1,000", "\"1,000\" is not an int32"},
    {ST_INT32, "2147483648", "\"2147483648\" is out of range for int32"},
    {ST_INT64, "9223372036854775808", "\"9223372036854775808\" is out of range for int64"},
    {ST_INT64, "-9223372036854775809", "\"-9223372036854775809\" is out of range for int64"},
    {ST_INT64, "99999999999999999999", "\"99999999999999999999\" is out of range for int64"},
    {ST_INT64, "99999999999999999999x", "\"99999999999999999999x\" is not an int64"},
    {ST_UINT64, "18446744073709551616", "\"18446744073709551616\" is out of range for uint64"},
    {ST_UINT64, "-1", "\"-1\" is out of range for uint64"},
    {ST_FLOAT64, "", "\"\" is not a float64"},
    {ST_FLOAT64, ".", "\".\" is not a float64"},
    {ST_FLOAT64, "1e", "\"1e\" is not a float64"},
    {ST_FLOAT64, "1e+", "\"1e+\" is not a float64"},
    {ST_FLOAT64, "+1.0", "\"+1.0\" is not a float64"},
    {ST_FLOAT64, "1,5", "\"1,5\" is not a float64"},
    {ST_FLOAT64, "0x1p3", "\"0x1p3\" is not a float64"},
    {ST_FLOAT64, "nan", "\"nan\" is not a float64"},
    {ST_FLOAT64, "inf", "\"inf\" is not a float64"},
    {ST_FLOAT64, "1.5f", "\"1.5f\" is not a float64"},
    {ST_FLOAT64, "1e309", "\"1e309\" is out of range for float64"},
    {ST_FLOAT64, "-1e99999999999999999999", "\"-1e99999999999999999999\" is out of range for float64"},
    {ST_FLOAT32, "3.5e38", "\"3.5e38\" is out of range for float32"},
    {ST_STRING, "a\xFF", "the value is not valid UTF-8"},
    {ST_BYTES, "A", "\"A\" is not base64"},
    {ST_BYTES, "AAA", "\"AAA\" is not base64"},
    {ST_BYTES, "AB==", "\"AB==\" is not base64"}, /* bits behind the last byte */
    {ST_BYTES, "====", "\"====\" is not base64"},
    {ST_BYTES, "AA==AA==", "\"AA==AA==\" is not base64"},
    {ST_BYTES, "AA A", "\"AA A\" is not base64"},
    {ST_DATE, "2026-02-29", "\"2026-02-29\" is not a date"},
    {ST_DATE, "1900-02-29", "\"1900-02-29\" is not a date"},
    {ST_DATE, "2026-13-01", "\"2026-13-01\" is not a date"},
    {ST_DATE, "2026-1-1", "\"2026-1-1\" is not a date"},
    {ST_DATE, "26-01-01", "\"26-01-01\" is not a date"},
    {ST_DATE, "2026-01-01T00:00", "\"2026-01-01T00:00\" is not a date"},
    {ST_DATE, "31.01.2026", "\"31.01.2026\" is not a date"},
    {ST_DATE, "-0000-01-01", "\"-0000-01-01\" is not a date"},
    {ST_DATE, "5881580-07-12", "\"5881580-07-12\" is out of range for date"},
    {ST_TIMESTAMP, "3/14/2020 1:05 PM", "\"3/14/2020 1:05 PM\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T24:00:00Z", "\"2026-01-31T24:00:00Z\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:60:00Z", "\"2026-01-31T12:60:00Z\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:60Z", "\"2026-01-31T12:34:60Z\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12", "\"2026-01-31T12\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56.Z", "\"2026-01-31T12:34:56.Z\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56.1234567Z", "\"2026-01-31T12:34:56.1234567Z\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56 PM", "\"2026-01-31T12:34:56 PM\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56+1", "\"2026-01-31T12:34:56+1\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56+01:", "\"2026-01-31T12:34:56+01:\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T12:34:56+01:60", "\"2026-01-31T12:34:56+01:60\" is not a timestamp"},
    {ST_TIMESTAMP, "2026-01-31T", "\"2026-01-31T\" is not a timestamp"},
    {ST_TIMESTAMP, "294247-01-10T04:00:54.775808Z", "\"294247-01-10T04:00:54.775808Z\" is out of range for timestamp"},
    {ST_COMMIT_ID, "01890000", "\"01890000\" is not a commit id"},
};

static st_column_builder *builder_of(st_type type, st_column_spec *ret_spec)
{
    static char name[] = "v";
    sluice_error err = {0};
    st_column_builder *builder = NULL;
    *ret_spec = (st_column_spec){.name = name, .type = type, .nullable = true};
    ASSERT_OK(st_column_builder_new(ret_spec, &builder, &err));
    return builder;
}

static void check_sample(const sample *one)
{
    sluice_error err = {0};
    st_column_spec spec;
    st_column column;
    pf_buffer text = {0}, json = {0};
    st_column_builder *builder = builder_of(one->type, &spec);
    ASSERT_OK(st_append_null(builder, &err));
    ASSERT_OK(st_value_parse(&spec, one->text, strlen(one->text), builder, &err));
    st_builder_view(builder, &column);
    assert_int_equal(column.length, 2);
    ASSERT_OK(st_value_text(&column, 1, &text, &err));
    ASSERT_OK(st_value_json(&column, 1, &json, &err));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    ASSERT_OK(pf_buffer_append(&json, "", 1, &err));
    if (one->shown || one->type != ST_FLOAT64)
        assert_string_equal((char *)text.data, one->shown ? one->shown : one->text);
    if (one->json)
        assert_string_equal((char *)json.data, one->json);
    /* what was written reads back to the same value, bit by bit */
    ASSERT_OK(st_value_parse(&spec, (char *)text.data, text.length - 1, builder, &err));
    json.length = 0;
    st_builder_view(builder, &column);
    ASSERT_OK(st_value_text(&column, 2, &json, &err));
    assert_int_equal(json.length, text.length - 1);
    if (json.length > 0)
        assert_memory_equal(json.data, text.data, json.length);
    json.length = 0;
    ASSERT_OK(st_value_json(&column, 0, &json, &err));
    assert_memory_equal(json.data, "null", 4);
    pf_buffer_free(&text);
    pf_buffer_free(&json);
    st_column_builder_free(builder);
}

static void values_survive_text_and_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        check_sample(&good[i]);
}

static void what_is_not_of_the_type_is_refused_with_the_value_in_the_text_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sluice_error err = {0};
        st_column_spec spec;
        st_column_builder *builder = builder_of(bad[i].type, &spec);
        ASSERT_FAILS(SLUICE_CONSTRAINT_TYPE, st_value_parse(&spec, bad[i].text, strlen(bad[i].text), builder, &err));
        assert_string_equal(err.text, bad[i].message);
        assert_string_equal(err.message, "a value is not of its column's type");
        assert_int_equal(st_builder_length(builder), 0);
        st_column_builder_free(builder);
    }
}

static void a_long_value_is_shown_in_part(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec spec;
    st_column_builder *builder = builder_of(ST_INT32, &spec);
    char text[400];
    memset(text, 'x', sizeof(text));
    memcpy(text + 63, "\xC3\xA9", 2);
    ASSERT_FAILS(SLUICE_CONSTRAINT_TYPE, st_value_parse(&spec, text, sizeof(text), builder, &err));
    assert_true(strlen(err.text) < 100);
    assert_non_null(strstr(err.text, "xxx...\" is not an int32"));
    st_column_builder_free(builder);
}

static void long_base64_and_long_decimals_are_read_whole(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec spec;
    st_column column;
    st_column_builder *builder = builder_of(ST_BYTES, &spec);
    size_t length = 40000;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, 'Q', length);
    ASSERT_OK(st_value_parse(&spec, text, length, builder, &err));
    st_builder_view(builder, &column);
    assert_int_equal(column.offsets[1], 30000);
    st_column_builder_free(builder);
    builder = builder_of(ST_FLOAT64, &spec);
    memset(text, '9', length);
    text[1] = '.';
    ASSERT_OK(st_value_parse(&spec, text, length, builder, &err));
    st_builder_view(builder, &column);
    assert_true(((const double *)column.values)[0] == 10.0);
    st_column_builder_free(builder);
    free(text);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void every_float_reads_back_from_its_text(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec spec;
    st_column column;
    uint64_t seed = 88172645463325252u;
    st_column_builder *doubles = builder_of(ST_FLOAT64, &spec), *floats = builder_of(ST_FLOAT32, &spec);
    pf_buffer text = {0};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        uint32_t narrow_bits = (uint32_t)bits;
        double value, again;
        float narrow, narrow_again;
        memcpy(&value, &bits, sizeof(value));
        memcpy(&narrow, &narrow_bits, sizeof(narrow));
        if (i % 4 == 0)
            value = (double)(int64_t)(bits >> 40) / 100.0; /* what people write */
        if (!isfinite(value) || !isfinite(narrow))
            continue;
        st_builder_truncate(doubles, 0);
        ASSERT_OK(st_append_f64(doubles, value, &err));
        st_builder_view(doubles, &column);
        text.length = 0;
        ASSERT_OK(st_value_text(&column, 0, &text, &err));
        spec.type = ST_FLOAT64;
        ASSERT_OK(st_value_parse(&spec, (char *)text.data, text.length, doubles, &err));
        st_builder_view(doubles, &column);
        again = ((const double *)column.values)[1];
        assert_memory_equal(&again, &value, sizeof(value));
        st_builder_truncate(floats, 0);
        ASSERT_OK(st_append_f32(floats, narrow, &err));
        st_builder_view(floats, &column);
        text.length = 0;
        ASSERT_OK(st_value_text(&column, 0, &text, &err));
        spec.type = ST_FLOAT32;
        ASSERT_OK(st_value_parse(&spec, (char *)text.data, text.length, floats, &err));
        st_builder_view(floats, &column);
        narrow_again = ((const float *)column.values)[1];
        assert_memory_equal(&narrow_again, &narrow, sizeof(narrow));
    }
    pf_buffer_free(&text);
    st_column_builder_free(doubles);
    st_column_builder_free(floats);
}

static void dates_run_through_the_calendar(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec spec;
    st_column column;
    pf_buffer text = {0};
    st_column_builder *builder = builder_of(ST_DATE, &spec);
    for (int32_t days = -800000; days < 3000000; days += 997) {
        st_builder_truncate(builder, 0);
        ASSERT_OK(st_append_i32(builder, days, &err));
        st_builder_view(builder, &column);
        text.length = 0;
        ASSERT_OK(st_value_text(&column, 0, &text, &err));
        ASSERT_OK(st_value_parse(&spec, (char *)text.data, text.length, builder, &err));
        st_builder_view(builder, &column);
        assert_int_equal(((const int32_t *)column.values)[1], days);
    }
    pf_buffer_free(&text);
    st_column_builder_free(builder);
}

static int make_locale(void *context)
{
    char *target = context;
    (void)freopen("/dev/null", "w", stderr);
    (void)execlp("localedef", "localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", target, (char *)NULL);
    return 127;
}

/* Under a locale with a decimal comma, made by localedef where the machine has its sources. */
static void nothing_follows_the_locale(void **state)
{
    char *folder = test_folder_make(), *target = test_path(folder, "de_DE.UTF-8");
    (void)state;
    (void)test_child_wait(test_child(make_locale, target));
    assert_int_equal(setenv("LOCPATH", folder, 1), 0);
    const char *set = setlocale(LC_ALL, "de_DE.UTF-8");
    if (set) {
        assert_string_equal(localeconv()->decimal_point, ",");
        values_survive_text_and_json(NULL);
        every_float_reads_back_from_its_text(NULL);
        what_is_not_of_the_type_is_refused_with_the_value_in_the_text_only(NULL);
    }
    assert_non_null(setlocale(LC_ALL, "C"));
    assert_int_equal(unsetenv("LOCPATH"), 0);
    free(target);
    test_folder_remove(folder);
    if (!set)
        skip();
}

static void a_key_of_several_members_is_a_json_list(void **state)
{
    static char name[] = "from", first[] = "a", second[] = "b";
    (void)state;
    sluice_error err = {0};
    st_column_spec members[2] = {{.name = first, .type = ST_STRING, .property = 1},
                                 {.name = second, .type = ST_INT64, .property = 2}};
    st_column_spec spec = {.name = name, .type = ST_STRUCT, .children = members, .child_count = 2};
    st_column_builder *builder = NULL;
    st_column column;
    pf_buffer text = {0};
    static const char key[] = "[\"x\\u0041,\", -9223372036854775808]";
    static const char *const wrong[] = {"[\"a\"]",
                                        "[\"a\",1,2]",
                                        "[\"a\",\"b\"]",
                                        "[\"a\",null]",
                                        "x",
                                        "",
                                        "[\"a\",1] "
                                        "x",
                                        "{\"a\":1}",
                                        "[[\"a\"],1]"};
    ASSERT_OK(st_column_builder_new(&spec, &builder, &err));
    ASSERT_OK(st_value_parse(&spec, key, strlen(key), builder, &err));
    st_builder_view(builder, &column);
    ASSERT_OK(st_value_text(&column, 0, &text, &err));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    assert_string_equal((char *)text.data, "[\"xA,\",-9223372036854775808]");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ASSERT_FAILS(SLUICE_CONSTRAINT_TYPE, st_value_parse(&spec, wrong[i], strlen(wrong[i]), builder, &err));
        assert_int_equal(st_builder_length(builder), 1);
        assert_int_equal(st_builder_length(st_builder_child(builder, 0)), 1);
        assert_int_equal(st_builder_length(st_builder_child(builder, 1)), 1);
    }
    pf_buffer_free(&text);
    st_column_builder_free(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_text_and_json),
        cmocka_unit_test(what_is_not_of_the_type_is_refused_with_the_value_in_the_text_only),
        cmocka_unit_test(a_long_value_is_shown_in_part),
        cmocka_unit_test(long_base64_and_long_decimals_are_read_whole),
        cmocka_unit_test(every_float_reads_back_from_its_text),
        cmocka_unit_test(dates_run_through_the_calendar),
        cmocka_unit_test(nothing_follows_the_locale),
        cmocka_unit_test(a_key_of_several_members_is_a_json_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
