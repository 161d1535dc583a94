/* JSON Lines: what a line may be, what each kind of value becomes in each type of column, names, ends of edges; and the
 * words of each refusal. */
#include "table.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {"
    "\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"s\": \"string?\", \"t\": \"string?\"}},"
    "\"T\": {\"properties\": {\"b\": \"bool?\", \"i\": \"int32?\", \"l\": \"int64?\", \"u\": \"uint64?\", \"f\": "
    "\"float32?\", \"d\": \"float64?\", \"x\": \"bytes?\", \"day\": \"date?\", \"at\": \"timestamp?\"}},"
    "\"D\": {\"properties\": {\"a\": {\"type\": \"string?\", \"default\": \"dflt\"}, \"b\": {\"type\": \"int32\", "
    "\"default\": 5}, \"c\": \"string\"}},"
    "\"S\": {\"key\": \"k\", \"properties\": {\"k\": \"string\"}},"
    "\"M\": {\"key\": [\"a\", \"b\"], \"properties\": {\"a\": \"string\", \"b\": \"int32\"}}},"
    "\"edges\": {\"K\": {\"from\": \"S\", \"to\": \"M\", \"properties\": {\"w\": \"float64?\"}},"
    "\"L\": {\"from\": \"S\", \"to\": \"S\", \"properties\": {\"source\": \"string?\"}},"
    "\"N\": {\"from\": \"T\", \"to\": \"S\", \"properties\": {}}}}";

typedef struct row_case {
    const char *type, *text, *want;
} row_case;

#define NOT_ONE(what, byte) "1.1 INPUT_SYNTAX not one JSON object: " what " (byte " byte " of the record)\n"

static const row_case cases[] = {
    /* lines */
    {"P", "{\"id\":1,\"s\":\"a\"}\n{\"s\":\"b\",\"id\":2}\n", "[1][a][-]\n[2][b][-]\n"},
    {"P", "{\"id\":1}", "[1][-][-]\n"},
    {"P", "", ""},
    {"P", "\n \t\r\n", ""},
    {"P", "\r\n\n  {\"id\":1}  \r\n \t \n\t{ \"id\" : 2 , \"s\" : null }\t\r\n\n\n", "[1][-][-]\n[2][-][-]\n"},
    {"P", "\xef\xbb\xbf{\"id\":1}\n", "[1][-][-]\n"},
    {"P", "{\"id\":1}\n\xef\xbb\xbf{\"id\":2}\n",
     "[1][-][-]\n2.1 INPUT_SYNTAX not one JSON object: not a value (byte 1 of the record)\n"},
    {"P", "\xff\xfe{\"id\":1}\n",
     "1.1 INPUT_SYNTAX an input is not UTF-8: it begins with the mark of UTF-16 or UTF-32\n"},
    {"P", "{\"id\":1}{\"id\":2}\n", NOT_ONE("something follows behind the end", "9")},
    {"P", "[{\"id\":1}]\n", "1.1 INPUT_SYNTAX not one JSON object: another value\n"},
    {"P", "7\n", "1.1 INPUT_SYNTAX not one JSON object: another value\n"},
    {"P", "{\n\"id\":1}\n",
     NOT_ONE("the text ends too early", "2") "2.1 INPUT_SYNTAX not one JSON object: another value\n"},
    {"P", "{\"id\":1,}\n", NOT_ONE("a name in quotes was expected", "9")},
    {"P", "{'id':1}\n", NOT_ONE("a name in quotes was expected", "2")},
    {"P", "{\"id\":01}\n", NOT_ONE("a number begins with a superfluous zero", "7")},
    {"P", "{\"id\":+1}\n", NOT_ONE("not a value", "7")},
    {"P", "{\"id\":NaN}\n", NOT_ONE("not a value", "7")},
    {"P", "{\"id\":1,\"s\":\"a\tb\"}\n", NOT_ONE("control character in a string", "15")},
    {"P", "{\"id\":1,\"s\":\"a\\u0000\"}\n", NOT_ONE("U+0000 in a string", "15")},
    {"P", "{\"id\":1,\"s\":\"\\ud83d\"}\n", NOT_ONE("half of a surrogate pair in a string", "14")},
    {"P", "{\"id\":1,\"s\":\"\xa0\"}\n", NOT_ONE("not UTF-8", "16")},
    {"P", "{\"id\":1,\"s\":\"\xed\xa0\x80\"}\n", NOT_ONE("not UTF-8", "18")},
    {"P", "{\"id\":1,\"s\":\"abc\n{\"id\":2}\n", NOT_ONE("the text ends inside a string", "17") "[2][-][-]\n"},
    {"P", "{\"id\":1} // x\n", NOT_ONE("something follows behind the end", "10")},
    /* strings */
    {"P", "{\"id\":1,\"s\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00x\"}\n",
     "[1][\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80x][-]\n"},
    {"P", "{\"\\u0069d\":1,\"\\u0073\":\"\"}\n", "[1][][-]\n"},
    {"P", "{\"id\":1,\"s\":\"NULL\",\"t\":\"null\"}\n", "[1][NULL][null]\n"},
    /* each kind of value in each kind of column */
    {"T",
     "{\"b\":true,\"i\":-1,\"l\":-9223372036854775808,\"u\":18446744073709551615,\"f\":0.5,\"d\":1e3,\"x\":\"YWI=\","
     "\"day\":\"2026-01-31\",\"at\":\"2026-01-31T12:00:00+01:00\"}\n",
     "[true][-1][-9223372036854775808][18446744073709551615][0.5][1000.0][YWI=][2026-01-31][2026-01-31T11:00:00Z]\n"},
    {"T",
     "{\"b\":\"false\",\"i\":\"-1\",\"l\":\"9223372036854775807\",\"u\":\"7\",\"f\":\"-Infinity\",\"d\":\"NaN\"}\n",
     "[false][-1][9223372036854775807][7][-Infinity][NaN][-][-][-]\n"},
    {"T", "{}\n", "[-][-][-][-][-][-][-][-][-]\n"},
    {"T", "{\"l\":9223372036854775808}\n{\"l\":1.0}\n{\"l\":1e2}\n{\"l\":\" 1\"}\n{\"l\":\"\"}\n",
     "1.1 CONSTRAINT_TYPE column l: \"9223372036854775808\" is out of range for int64\n"
     "2.1 CONSTRAINT_TYPE column l: \"1.0\" is not an int64\n3.1 CONSTRAINT_TYPE column l: \"1e2\" is not an int64\n"
     "4.1 CONSTRAINT_TYPE column l: \" 1\" is not an int64\n5.1 CONSTRAINT_TYPE column l: \"\" is not an int64\n"},
    {"T", "{\"b\":1}\n{\"i\":true}\n{\"d\":[1]}\n{\"x\":{\"a\":[{}]}}\n{\"day\":20260131}\n",
     "1.1 CONSTRAINT_TYPE column b: \"1\" is a number, and the column is of type bool\n"
     "2.1 CONSTRAINT_TYPE column i: \"true\" is a bool, and the column is of type int32\n"
     "3.1 CONSTRAINT_TYPE column d: \"[1]\" is a list, and the column is of type float64\n"
     "4.1 CONSTRAINT_TYPE column x: \"{\"a\":[{}]}\" is an object, and the column is of type bytes\n"
     "5.1 CONSTRAINT_TYPE column day: \"20260131\" is a number, and the column is of type date\n"},
    {"P", "{\"id\":1,\"s\":5}\n",
     "1.2 CONSTRAINT_TYPE column s: \"5\" is a number, and the column is of type string\n"},
    {"P", "{\"id\":1,\"s\":false}\n",
     "1.2 CONSTRAINT_TYPE column s: \"false\" is a bool, and the column is of type string\n"},
    /* nulls, what is missing, defaults */
    {"D", "{\"c\":\"x\"}\n{\"a\":null,\"c\":\"x\"}\n{\"a\":\"\",\"b\":1,\"c\":\"\"}\n",
     "[dflt][5][x]\n[-][5][x]\n[][1][]\n"},
    {"D", "{\"b\":null,\"c\":\"x\"}\n", "1.1 CONSTRAINT_NULL column b: there is no value, and it may not be null\n"},
    {"D", "{\"a\":\"x\"}\n", "1.2 CONSTRAINT_NULL column \"c\" of type D is missing\n"},
    {"P", "{}\n", "1.1 CONSTRAINT_NULL column \"id\" of type P is missing\n"},
    {"P", "{\"id\":null}\n", "1.1 CONSTRAINT_NULL column id: there is no value, and it may not be null\n"},
    /* names */
    {"P", "{\"id\":1,\"z\":2}\n{\"id\":2}\n",
     "1.2 INPUT_SYNTAX column \"z\": type P has no such property\n[2][-][-]\n"},
    {"P", "{\"id\":1,\"s\":\"a\",\"s\":\"a\"}\n", "1.3 INPUT_SYNTAX column \"s\" is named twice\n"},
    {"P", "{\"id\":1,\"s\":\"a\",\"\\u0073\":\"b\"}\n", "1.3 INPUT_SYNTAX column \"s\" is named twice\n"},
    {"P", "{\"id\":1,\"\":2}\n", "1.2 INPUT_SYNTAX value 2 has an empty name\n"},
    /* the least value that is bad */
    {"T", "{\"l\":5,\"i\":\"y\",\"b\":7}\n", "1.2 CONSTRAINT_TYPE column i: \"y\" is not an int32\n"},
    /* ends */
    {"K",
     "{\"from\":\"x\",\"to\":[\"a\",1]}\n{\"to\":{\"b\":2,\"a\":\"c\"},\"from\":\"x\",\"w\":1}\n"
     "{\"from\":\"x\",\"to.a\":\"d\",\"to.b\":3}\n{\"src\":\"x\",\"dst\":{\"a\":\"e\",\"b\":\"4\"}}\n"
     "{\":START_ID\":\"x\",\":END_ID\":[\"f\",5],\":TYPE\":\"K\"}\n{\"from\":{\"k\":\"x\"},\"to\":[\"g\",6]}\n",
     "[x][[\"a\",1]][-]\n[x][[\"c\",2]][1.0]\n[x][[\"d\",3]][-]\n[x][[\"e\",4]][-]\n[x][[\"f\",5]][-]\n[x][[\"g\",6]][-"
     "]\n"},
    {"K", "{\"from\":\"x\",\"to\":[\"a\"]}\n",
     "1.2 CONSTRAINT_TYPE column to: a key of 2 members is written as a JSON list of them, like [\"a\",1]\n"},
    {"K", "{\"from\":\"x\",\"to\":{\"a\":\"a\"}}\n", "1.3 CONSTRAINT_NULL column \"to.b\" of type K is missing\n"},
    {"K", "{\"from\":\"x\",\"to\":{\"a\":\"a\",\"b\":null}}\n",
     "1.3 CONSTRAINT_NULL column to.b: there is no value, and it may not be null\n"},
    {"K", "{\"from\":\"x\",\"to\":{\"a\":\"a\",\"b\":{}}}\n",
     "1.3 CONSTRAINT_TYPE column to.b: \"{}\" is an object, and the column is of type int32\n"},
    {"K", "{\"from\":\"x\",\"to\":{\"a\":\"a\",\"b\":1},\"to.a\":\"a\"}\n",
     "1.4 INPUT_SYNTAX column \"to.a\" is named twice\n"},
    {"K", "{\"from\":\"x\",\"to\":{\"a\":\"a\",\"c\":1}}\n",
     "1.3 INPUT_SYNTAX column \"to.c\": type K has no such property\n"},
    {"K", "{\"from\":\"x\",\"to\":{}}\n", "1.2 CONSTRAINT_NULL column \"to\" of type K is missing\n"},
    {"K", "{\"from\":null,\"to\":[\"a\",1]}\n",
     "1.1 CONSTRAINT_NULL column from: there is no value, and it may not be null\n"},
    {"K", "{\"from\":\"x\",\"to\":[\"a\",1],\":TYPE\":\"Q\"}\n",
     "1.3 CONSTRAINT_CHECK column :TYPE: \"Q\" is not the type K\n"},
    {"K", "{\"from\":7,\"to\":[\"a\",1]}\n",
     "1.1 CONSTRAINT_TYPE column from: \"7\" is a number, and the column is of type string\n"},
    {"L", "{\"from\":\"x\",\"to\":\"y\",\"source\":\"z\"}\n{\"from\":\"x\",\"to\":\"y\",\"source\":{}}\n",
     "[x][y][z]\n2.3 CONSTRAINT_TYPE column source: \"{}\" is an object, and the column is of type string\n"},
    {"N", "{\"from\":7,\"to\":\"y\"}\n{\"from\":\"8\",\"to\":\"y\"}\n", "[7][y]\n[8][y]\n"},
};

static void every_line_is_taken_or_refused_with_its_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 70000; piece *= 7) {
            table_request request = {
                .schema = schema, .type = cases[i].type, .name = "t.jsonl", .text = cases[i].text, .piece = piece};
            char *got = table_read(&request);
            assert_string_equal(got, cases[i].want);
            free(got);
        }
    }
}

static void unknown_names_are_left_out_when_asked_for_whatever_they_hold(void **state)
{
    (void)state;
    table_request request = {.schema = schema,
                             .type = "P",
                             .name = "t.ndjson",
                             .text = "{\"z\":{\"a\":[1,{\"b\":null}]},\"id\":1,\"y\":[],\"s\":\"a\"}\n"
                                     "{\"id\":2,\"z\":{\"a\":}}\n{\"id\":3,\"z\":1,\"z\":2}\n",
                             .ignore_unknown = true};
    char *got = table_read(&request);
    assert_string_equal(got, "[1][a][-]\n2.1 INPUT_SYNTAX not one JSON object: not a value (byte 18 of the record)\n"
                             "3.3 INPUT_SYNTAX column \"z\" is named twice\n");
    free(got);
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    (void)state;
    static const char text[] = "{\"id\":1,\"s\":\"a\0\"}\n{\"id\"\0:2}\n\0\n{\"id\":3}\n";
    table_request request = {.schema = schema, .type = "P", .name = "t.jsonl", .text = text, .length = sizeof text - 1};
    char *got = table_read(&request);
    assert_string_equal(got, "1.1 INPUT_SYNTAX not one JSON object: U+0000 in a string (byte 15 of the record)\n"
                             "2.1 INPUT_SYNTAX not one JSON object: no \":\" behind a name (byte 6 of the record)\n"
                             "3.1 INPUT_SYNTAX not one JSON object: not a value (byte 1 of the record)\n[3][-][-]\n");
    free(got);
}

static void depth_and_number_of_names_have_their_limits(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    (void)fprintf(out, "{\"id\":1,\"z\":");
    for (unsigned i = 0; i < 100000; i++)
        (void)fputc('[', out);
    (void)fprintf(out, "\n{\"id\":2");
    for (unsigned i = 0; i < 65536; i++)
        (void)fprintf(out, ",\"n%u\":%u", i, i);
    (void)fprintf(out, "}\n{\"id\":3");
    for (unsigned i = 0; i < 65535; i++)
        (void)fprintf(out, ",\"n%u\":%u", i, i);
    (void)fprintf(out, "}\n");
    (void)fclose(out);
    table_request request = {.schema = schema, .type = "P", .name = "t.jsonl", .text = text, .ignore_unknown = true};
    char *got = table_read(&request);
    assert_string_equal(got, "1.1 INPUT_SYNTAX not one JSON object: nested too deeply (byte 44 of the record)\n"
                             "2.1 RESOURCE_LIMIT there are more than 65536 names\n[3][-][-]\n");
    free(got);
    free(text);
}

static void many_different_lists_of_names_keep_their_meaning(void **state)
{
    (void)state;
    char *text = NULL, *want = NULL;
    size_t length = 0, want_length = 0;
    FILE *out = open_memstream(&text, &length), *expect = open_memstream(&want, &want_length);
    for (unsigned i = 0; i < 3000; i++) { /* unknown names make the lists differ */
        unsigned kind = i * 7 % 500;
        (void)fprintf(out, "{\"u%u\":0,\"%s\":\"a%u\",\"id\":%u}\n", kind, kind % 2 ? "s" : "t", i, i);
        (void)fprintf(expect, kind % 2 ? "[%u][a%u][-]\n" : "[%u][-][a%u]\n", i, i);
    }
    (void)fclose(out);
    (void)fclose(expect);
    table_request request = {.schema = schema, .type = "P", .name = "t.jsonl", .text = text, .ignore_unknown = true};
    char *got = table_read(&request);
    assert_string_equal(got, want);
    free(got);
    free(text);
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_taken_or_refused_with_its_words),
        cmocka_unit_test(unknown_names_are_left_out_when_asked_for_whatever_they_hold),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(depth_and_number_of_names_have_their_limits),
        cmocka_unit_test(many_different_lists_of_names_keep_their_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
