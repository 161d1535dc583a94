/* Keys on the command line: one member, several, none. */
#include "store/read/key_text.h"
#include "tests/support/test.h"
#include <string.h>

static sluice_error err;
static char id_name[] = "id";
static char code_name[] = "code";
static char type_name[] = "T";

static st_property properties[] = {{.name = id_name, .type = ST_INT64}, {.name = code_name, .type = ST_STRING}};
static uint32_t both[] = {0, 1};
static uint32_t second[] = {1};

static const st_type_def simple = {
    .name = type_name, .properties = properties, .property_count = 2, .key = second, .key_count = 1};
static const st_type_def composite = {
    .name = type_name, .properties = properties, .property_count = 2, .key = both, .key_count = 2};
static const st_type_def keyless = {.name = type_name, .properties = properties, .property_count = 2};
static const st_type_def edge = {.name = type_name, .edge = true};

/* Parses, and writes back as text and as JSON. */
static void expect_key(const st_type_def *type, const char *text, const char *as_text, const char *as_json)
{
    st_key_values key;
    pf_buffer buffer = {0};
    ASSERT_OK(st_key_parse(type, text, &key, &err));
    ASSERT_OK(st_key_to_text(key.columns, key.count, 0, &buffer, &err));
    assert_int_equal(buffer.length, strlen(as_text));
    assert_memory_equal(buffer.data, as_text, buffer.length);
    buffer.length = 0;
    ASSERT_OK(st_key_to_json(key.columns, key.count, 0, &buffer, &err));
    assert_int_equal(buffer.length, strlen(as_json));
    assert_memory_equal(buffer.data, as_json, buffer.length);
    pf_buffer_free(&buffer);
    st_key_values_free(&key);
}

static void expect_refused(const st_type_def *type, const char *text)
{
    st_key_values key;
    ASSERT_FAILS(SLUICE_USAGE, st_key_parse(type, text, &key, &err));
    st_key_values_free(&key);
}

static void one_member_is_its_text(void **state)
{
    (void)state;
    expect_key(&simple, "a,b [\"", "a,b [\"", "\"a,b [\\\"\"");
    expect_key(&keyless, "18446744073709551615", "18446744073709551615", "18446744073709551615");
    expect_refused(&keyless, "x");
    expect_refused(&keyless, "-1");
}

static void several_members_are_joined_or_an_array(void **state)
{
    (void)state;
    expect_key(&composite, "7,x", "7,x", "[7,\"x\"]");
    expect_key(&composite, "7,", "7,", "[7,\"\"]");
    expect_key(&composite, "[7, \"a,\\\"b]\"]", "7,a,\"b]", "[7,\"a,\\\"b]\"]");
    expect_key(&composite, "[9223372036854775807 ,\"x\"]", "9223372036854775807,x", "[9223372036854775807,\"x\"]");
    expect_key(&composite, "[\"7\",\"x\"]", "7,x", "[7,\"x\"]");
    expect_refused(&composite, "7");
    expect_refused(&composite, "7,x,y");
    expect_refused(&composite, "x,7");
    expect_refused(&composite, "[7]");
    expect_refused(&composite, "[7,\"x\"");
    expect_refused(&composite, "[7,null]");
    expect_refused(&composite, "[7,[\"x\"]]");
}

static void expect_json(const st_type_def *type, const char *json, const char *text)
{
    pf_buffer buffer = {0};
    st_key_values key;
    ASSERT_OK(st_key_parse_json(type, json, strlen(json), &key, &err));
    ASSERT_OK(st_key_to_text(key.columns, key.count, 0, &buffer, &err));
    assert_int_equal(buffer.length, strlen(text));
    assert_memory_equal(buffer.data, text, buffer.length);
    pf_buffer_free(&buffer);
    st_key_values_free(&key);
}

static void expect_json_refused(const st_type_def *type, const char *json, size_t length)
{
    st_key_values key;
    ASSERT_FAILS(SLUICE_USAGE, st_key_parse_json(type, json, length, &key, &err));
    st_key_values_free(&key);
}

static void a_key_is_read_from_json_too(void **state)
{
    (void)state;
    expect_json(&composite, "[9223372036854775807, \"a,\\\"b]\"]", "9223372036854775807,a,\"b]");
    expect_json_refused(&composite, "7", 1);
    expect_json_refused(&composite, "[7,\"x\",1]", 9);
    expect_json_refused(&composite, "[7,\"x\"", 6);
    expect_json_refused(&composite, "[7,\"\0\"]", 7);
    expect_json_refused(&composite, "[7,{}]", 6);
}

static void edges_have_no_key_of_their_own(void **state)
{
    (void)state;
    expect_refused(&edge, "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_member_is_its_text),
        cmocka_unit_test(several_members_are_joined_or_an_array),
        cmocka_unit_test(a_key_is_read_from_json_too),
        cmocka_unit_test(edges_have_no_key_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
