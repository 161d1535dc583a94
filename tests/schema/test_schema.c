/*
 * Accepted schemas: what a good file says, its canonical form (golden), its digests, the layout of fragments, the way
 * back.
 */
#include "store/schema/schema.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char *const file =
    "{\n"
    "  \"nodes\": {\n"
    "    \"Person\": {\n"
    "      \"key\": \"id\",\n"
    "      \"properties\": {\"id\": \"int64\", \"name\": \"string\", \"email\": {\"type\": \"string?\", \"default\": "
    "null},\n"
    "        \"age\": {\"type\": \"int32?\", \"default\": 18}, \"joined\": \"timestamp?\",\n"
    "        \"big\": {\"type\": \"uint64\", \"default\": 18446744073709551615}, \"score\": \"float64?\"},\n"
    "      \"unique\": [[\"email\"], [\"name\", \"joined\"]],\n"
    "      \"checks\": {\"age\": {\"min\": 0, \"max\": 150}, \"name\": {\"max_length\": 200, \"pattern\": "
    "\"[^\\u00e9]+\"},\n"
    "        \"score\": {\"enum\": [0.5, 1e300, \"Infinity\"]}, \"joined\": {\"min\": \"1970-01-01T01:00:00+01:00\"}}\n"
    "    },\n"
    "    \"Place\": {\"renamed_from\": \"Town\", \"key\": [\"country\", \"town\"],\n"
    "      \"properties\": {\"town\": \"string\", \"country\": \"string\", \"seal\": {\"type\": \"bytes\", "
    "\"default\": \"AAEC\"}}},\n"
    "    \"Note\": {\"properties\": {\"text\": \"string\", \"on\": \"date?\", \"read\": {\"type\": \"bool\", "
    "\"default\": false}}}\n"
    "  },\n"
    "  \"edges\": {\n"
    "    \"KNOWS\": {\"from\": \"Person\", \"to\": \"Person\", \"properties\": {\"since\": \"date?\", \"weight\": "
    "\"float32?\"},\n"
    "      \"cardinality\": {\"out\": \"0..*\", \"in\": \"0..5\"}, \"key\": []},\n"
    "    \"LIVES_IN\": {\"from\": \"Person\", \"to\": \"Place\", \"properties\": {\"from_day\": \"date\"}, \"key\": "
    "\"from_day\"},\n"
    "    \"ABOUT\": {\"from\": \"Note\", \"to\": \"Person\"}\n"
    "  }\n"
    "}\n";

static const char *const golden =
    "{\"format\":\"sluice-schema/1\",\"types\":["
    "{\"table\":\"64\",\"name\":\"Person\",\"kind\":\"node\",\"properties\":["
    "{\"id\":\"1\",\"name\":\"id\",\"type\":\"int64\",\"nullable\":false},"
    "{\"id\":\"2\",\"name\":\"name\",\"type\":\"string\",\"nullable\":false,\"max_length\":\"200\",\"pattern\":\"[^"
    "\u00e9]+\"},"
    "{\"id\":\"3\",\"name\":\"email\",\"type\":\"string\",\"nullable\":true,\"default\":null},"
    "{\"id\":\"4\",\"name\":\"age\",\"type\":\"int32\",\"nullable\":true,\"default\":\"18\",\"min\":\"0\",\"max\":"
    "\"150\"},"
    "{\"id\":\"5\",\"name\":\"joined\",\"type\":\"timestamp\",\"nullable\":true,\"min\":\"1970-01-01T00:00:00Z\"},"
    "{\"id\":\"6\",\"name\":\"big\",\"type\":\"uint64\",\"nullable\":false,\"default\":\"18446744073709551615\"},"
    "{\"id\":\"7\",\"name\":\"score\",\"type\":\"float64\",\"nullable\":true,\"enum\":[\"0.5\",\"1e300\",\"Infinity\"]}"
    "],"
    "\"key\":[\"1\"],\"next_unique\":\"2\",\"unique\":[{\"id\":\"0\",\"properties\":[\"3\"]},"
    "{\"id\":\"1\",\"properties\":[\"2\",\"5\"]}]},"
    "{\"table\":\"65\",\"name\":\"Place\",\"kind\":\"node\",\"properties\":["
    "{\"id\":\"8\",\"name\":\"town\",\"type\":\"string\",\"nullable\":false},"
    "{\"id\":\"9\",\"name\":\"country\",\"type\":\"string\",\"nullable\":false},"
    "{\"id\":\"10\",\"name\":\"seal\",\"type\":\"bytes\",\"nullable\":false,\"default\":\"AAEC\"}],"
    "\"key\":[\"9\",\"8\"]},"
    "{\"table\":\"66\",\"name\":\"Note\",\"kind\":\"node\",\"properties\":["
    "{\"id\":\"11\",\"name\":\"text\",\"type\":\"string\",\"nullable\":false},"
    "{\"id\":\"12\",\"name\":\"on\",\"type\":\"date\",\"nullable\":true},"
    "{\"id\":\"13\",\"name\":\"read\",\"type\":\"bool\",\"nullable\":false,\"default\":\"false\"}]},"
    "{\"table\":\"67\",\"name\":\"KNOWS\",\"kind\":\"edge\",\"from\":\"64\",\"to\":\"64\",\"properties\":["
    "{\"id\":\"14\",\"name\":\"since\",\"type\":\"date\",\"nullable\":true},"
    "{\"id\":\"15\",\"name\":\"weight\",\"type\":\"float32\",\"nullable\":true}],\"key\":[],\"in\":\"5\"},"
    "{\"table\":\"68\",\"name\":\"LIVES_IN\",\"kind\":\"edge\",\"from\":\"64\",\"to\":\"65\",\"properties\":["
    "{\"id\":\"16\",\"name\":\"from_day\",\"type\":\"date\",\"nullable\":false}],\"key\":[\"16\"]},"
    "{\"table\":\"69\",\"name\":\"ABOUT\",\"kind\":\"edge\",\"from\":\"66\",\"to\":\"64\",\"properties\":[]}"
    "]}\n";

static st_schema *accepted(void)
{
    sluice_error err = {0};
    st_schema *schema = NULL;
    uint64_t table = 64, property = 1;
    ASSERT_OK(st_schema_parse(file, strlen(file), "schema.json", &schema, &err));
    st_schema_assign_ids(schema, &table, &property);
    assert_int_equal(table, 70);
    assert_int_equal(property, 17);
    return schema;
}

static void assert_text(const pf_buffer *buffer, const char *text)
{
    if (buffer->length != strlen(text) || memcmp(buffer->data, text, buffer->length) != 0)
        fail_msg("got\n%.*s\nnot\n%s", (int)buffer->length, (const char *)buffer->data, text);
}

static void the_canonical_form_is_the_golden_one(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer text = {0};
    st_schema *schema = accepted();
    pf_sha256 identity, digest = pf_sha256_of(golden, strlen(golden));
    ASSERT_OK(st_schema_encode(schema, &text, &err));
    assert_text(&text, golden);
    ASSERT_OK(st_schema_identity(schema, &identity, &err));
    assert_true(pf_sha256_equal(&identity, &digest));
    pf_buffer_free(&text);
    st_schema_free(schema);
}

static void decoding_gives_the_schema_back(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_schema *schema = NULL;
    ASSERT_OK(st_schema_decode(golden, strlen(golden), &schema, &err));
    const st_type_def *person = st_schema_find(schema, "Person"), *lives = st_schema_find_table(schema, 68);
    assert_non_null(person);
    assert_int_equal(person->properties[5].default_value.u64, UINT64_MAX);
    assert_true(person->properties[2].default_value.present && person->properties[2].default_value.is_null);
    assert_int_equal(person->properties[3].maximum.i64, 150);
    assert_int_equal(person->unique_count, 2);
    assert_int_equal(lives->identity, ST_EDGE_KEYED);
    assert_int_equal(lives->max_out, ST_NO_LIMIT);
    assert_int_equal(st_schema_find(schema, "KNOWS")->max_in, 5);
    assert_int_equal(st_schema_find(schema, "ABOUT")->identity, ST_EDGE_PARALLEL);
    assert_string_equal(schema->types[lives->to].name, "Place");
    assert_int_equal(st_type_find_property(person, "email"), 2);
    assert_int_equal(st_type_find_property(person, "mail"), -1);
    assert_null(st_schema_find(schema, "person"));
    assert_string_equal(st_schema_nearest(schema, "person"), "Person");
    assert_string_equal(st_schema_nearest(schema, "KNWOS"), "KNOWS");
    assert_null(st_schema_nearest(schema, "Vehicle"));
    st_schema_free(schema);
}

static void every_flipped_byte_of_the_canonical_form_is_found_or_gives_another_identity(void **state)
{
    (void)state;
    size_t length = strlen(golden);
    char *copy = malloc(length);
    pf_sha256 whole = pf_sha256_of(golden, length);
    assert_non_null(copy);
    for (size_t at = 0; at < length; at++) {
        for (unsigned mask = 1; mask < 256; mask <<= 3) {
            sluice_error err = {0};
            st_schema *schema = NULL;
            memcpy(copy, golden, length);
            copy[at] = (char)((unsigned char)copy[at] ^ mask);
            sluice_status status = st_schema_decode(copy, length, &schema, &err);
            if (status == SLUICE_OK) {
                pf_sha256 other;
                ASSERT_OK(st_schema_identity(schema, &other, &err));
                assert_false(pf_sha256_equal(&other, &whole));
            } else {
                assert_true(status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
            }
            st_schema_free(schema);
        }
    }
    for (size_t cut = 0; cut < length; cut++) {
        sluice_error err = {0};
        st_schema *schema = NULL;
        ASSERT_FAILS(SLUICE_CORRUPT, st_schema_decode(golden, cut, &schema, &err));
    }
    free(copy);
}

static void hostile_accepted_schemas_are_refused(void **state)
{
    static const char *const hostile[] = {
        "{\"format\":\"sluice-schema/1\",\"types\":{}}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{}]}\n",
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":\"0\",\"name\":\"A\",\"kind\":\"node\",\"properties\":[]}]}\n",
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"tree\",\"properties\":[]}]}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"a/"
        "b\",\"kind\":\"node\",\"properties\":[]}]}\n",
        /* an edge of itself, an edge before a node, two types of one name, two of one id */
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"edge\",\"from\":\"64\","
        "\"to\":\"64\",\"properties\":[]}]}\n",
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":[]},"
        "{\"table\":\"65\",\"name\":\"A\",\"kind\":\"node\",\"properties\":[]}]}\n",
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":[]},"
        "{\"table\":\"64\",\"name\":\"B\",\"kind\":\"node\",\"properties\":[]}]}\n",
        /* a key of a property that is not there, nullable, or twice; an id twice */
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":[],"
        "\"key\":[\"1\"]}]}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":["
        "{\"id\":\"1\",\"name\":\"a\",\"type\":\"int32\",\"nullable\":true}],\"key\":[\"1\"]}]}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":["
        "{\"id\":\"1\",\"name\":\"a\",\"type\":\"int32\",\"nullable\":false}],\"key\":[\"1\",\"1\"]}]}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":["
        "{\"id\":\"1\",\"name\":\"a\",\"type\":\"int32\",\"nullable\":false},"
        "{\"id\":\"1\",\"name\":\"b\",\"type\":\"int32\",\"nullable\":false}]}]}\n",
        /* a constant that does not fit, a number where a text belongs, spare white space */
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\",\"properties\":["
        "{\"id\":\"1\",\"name\":\"a\",\"type\":\"int32\",\"nullable\":false,\"min\":\"x\"}]}]}\n",
        "{\"format\":\"sluice-schema/"
        "1\",\"types\":[{\"table\":64,\"name\":\"A\",\"kind\":\"node\",\"properties\":[]}]}\n",
        "{\"format\":\"sluice-schema/1\",\"types\":[{\"table\":\"64\",\"name\":\"A\",\"kind\":\"node\", "
        "\"properties\":[]}]}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        sluice_error err = {0};
        st_schema *schema = NULL;
        ASSERT_FAILS(SLUICE_CORRUPT, st_schema_decode(hostile[i], strlen(hostile[i]), &schema, &err));
        assert_null(schema);
    }
    sluice_error err = {0};
    st_schema *schema = NULL;
    static const char newer[] = "{\"format\":\"sluice-schema/2\",\"types\":[]}\n";
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_schema_decode(newer, strlen(newer), &schema, &err));
}

static void the_shape_leaves_ids_out_and_the_identity_does_not(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_schema *one = accepted(), *two = NULL;
    uint64_t table = 1000, property = 2000;
    pf_sha256 a, b;
    ASSERT_OK(st_schema_parse(file, strlen(file), "again.json", &two, &err));
    st_schema_assign_ids(two, &table, &property);
    ASSERT_OK(st_schema_shape(one, &a, &err));
    ASSERT_OK(st_schema_shape(two, &b, &err));
    assert_true(pf_sha256_equal(&a, &b));
    ASSERT_OK(st_schema_identity(one, &a, &err));
    ASSERT_OK(st_schema_identity(two, &b, &err));
    assert_false(pf_sha256_equal(&a, &b));
    st_schema_free(one);
    st_schema_free(two);
}

static void the_users_form_reads_back_to_the_same_schema(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_schema *one = accepted(), *two = NULL;
    pf_buffer text = {0}, again = {0};
    pf_sha256 a, b;
    ASSERT_OK(st_schema_format(one, &text, &err));
    ASSERT_OK(st_schema_parse((char *)text.data, text.length, "shown.json", &two, &err));
    assert_string_equal(st_schema_find(two, "Place")->renamed_from, "Town");
    ASSERT_OK(st_schema_shape(one, &a, &err));
    ASSERT_OK(st_schema_shape(two, &b, &err));
    assert_true(pf_sha256_equal(&a, &b));
    ASSERT_OK(st_schema_format(two, &again, &err));
    assert_int_equal(text.length, again.length);
    assert_memory_equal(text.data, again.data, text.length);
    pf_buffer_free(&text);
    pf_buffer_free(&again);
    st_schema_free(one);
    st_schema_free(two);
}

static void the_users_form_is_spread_over_lines(void **state)
{
    (void)state;
    static const char small[] =
        "{\"nodes\":{\"A\":{\"key\":\"a\",\"properties\":{\"a\":\"int32\",\"b\":\"string?\"},"
        "\"unique\":[[\"a\",\"b\"]],\"checks\":{\"b\":{\"enum\":[\"x,{\",\"\\\"y\"]}}},\"B\":{}}}";
    sluice_error err = {0};
    st_schema *schema = NULL;
    pf_buffer text = {0};
    ASSERT_OK(st_schema_parse(small, strlen(small), "s", &schema, &err));
    ASSERT_OK(st_schema_format(schema, &text, &err));
    assert_text(&text, "{\n"
                       "  \"nodes\": {\n"
                       "    \"A\": {\n"
                       "      \"key\": \"a\",\n"
                       "      \"properties\": {\"a\": \"int32\", \"b\": \"string?\"},\n"
                       "      \"unique\": [[\"a\", \"b\"]],\n"
                       "      \"checks\": {\"b\": {\"enum\": [\"x,{\", \"\\\"y\"]}}\n"
                       "    },\n"
                       "    \"B\": {\n"
                       "      \"properties\": {}\n"
                       "    }\n"
                       "  },\n"
                       "  \"edges\": {}\n"
                       "}\n");
    pf_buffer_free(&text);
    st_schema_free(schema);
}

static void columns_are_the_ends_then_the_properties(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_schema *schema = accepted();
    st_column_spec *specs = NULL;
    uint32_t count = 0;
    ASSERT_OK(st_type_columns(schema, st_schema_find(schema, "LIVES_IN"), &specs, &count, &err));
    assert_int_equal(count, 3);
    assert_string_equal(specs[0].name, "from");
    assert_int_equal(specs[0].type, ST_INT64);
    assert_int_equal(specs[0].property, 0);
    assert_int_equal(specs[1].type, ST_STRUCT);
    assert_int_equal(specs[1].child_count, 2);
    assert_string_equal(specs[1].children[0].name, "country"); /* in the order of the key */
    assert_int_equal(specs[1].children[1].property, 8);
    assert_int_equal(specs[2].property, 16);
    st_type_columns_free(specs, count);
    ASSERT_OK(st_type_columns(schema, st_schema_find(schema, "ABOUT"), &specs, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(specs[0].type, ST_ROW_ID);
    assert_int_equal(specs[1].type, ST_INT64);
    st_type_columns_free(specs, count);
    ASSERT_OK(st_type_columns(schema, st_schema_find(schema, "Person"), &specs, &count, &err));
    assert_int_equal(count, 7);
    assert_true(specs[2].nullable && !specs[0].nullable);
    st_type_columns_free(specs, count);
    st_schema_free(schema);
}

static void names_follow_the_rules(void **state)
{
    (void)state;
    char longest[257];
    memset(longest, 'x', sizeof(longest));
    assert_true(st_name_is_valid(longest, 255, false));
    assert_false(st_name_is_valid(longest, 256, false));
    assert_false(st_name_is_valid("", 0, false));
    assert_true(st_name_is_valid("a b.c", 5, false));
    assert_true(st_name_is_valid("\xC3\xA9\xF0\x9F\x98\x80", 6, false));
    assert_false(st_name_is_valid("\xC3", 1, false));
    assert_false(st_name_is_valid("a\nb", 3, false));
    assert_false(st_name_is_valid("a\x7F", 2, false));
    assert_false(st_name_is_valid("a\xC2\x85", 3, false)); /* a control character above ASCII */
    assert_false(st_name_is_valid(".", 1, false));
    assert_true(st_name_is_valid("...", 3, false));
    assert_true(st_name_is_valid("from", 4, false));
    assert_false(st_name_is_valid("from", 4, true));
    assert_false(st_name_is_valid("to", 2, true));
    assert_true(st_name_is_valid("too", 3, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_canonical_form_is_the_golden_one),
        cmocka_unit_test(decoding_gives_the_schema_back),
        cmocka_unit_test(every_flipped_byte_of_the_canonical_form_is_found_or_gives_another_identity),
        cmocka_unit_test(hostile_accepted_schemas_are_refused),
        cmocka_unit_test(the_shape_leaves_ids_out_and_the_identity_does_not),
        cmocka_unit_test(the_users_form_reads_back_to_the_same_schema),
        cmocka_unit_test(the_users_form_is_spread_over_lines),
        cmocka_unit_test(columns_are_the_ends_then_the_properties),
        cmocka_unit_test(names_follow_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
