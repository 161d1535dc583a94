/* Rules that look at one record: shape, types, nulls and defaults, checks, limits of keys; and the words of each
 * refusal. */
#include "table.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {"
    "\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"s\": \"string?\"}},"
    "\"T\": {\"properties\": {\"b\": \"bool?\", \"i\": \"int32?\", \"l\": \"int64?\", \"u\": \"uint64?\", \"f\": "
    "\"float32?\", \"d\": \"float64?\", \"x\": \"bytes?\", \"day\": \"date?\", \"at\": \"timestamp?\"}},"
    "\"D\": {\"properties\": {\"a\": {\"type\": \"string?\", \"default\": \"dflt\"}, \"b\": {\"type\": \"int32\", "
    "\"default\": 5}, \"c\": \"string\"}},"
    "\"C\": {\"properties\": {\"age\": \"int32?\", \"name\": \"string?\", \"code\": \"string?\", \"color\": "
    "\"string?\", "
    "\"w\": \"float64?\"}, \"checks\": {\"age\": {\"min\": 0, \"max\": 150}, \"name\": {\"min_length\": 2, "
    "\"max_length\": 4}, \"code\": {\"pattern\": \"[A-Z]{2}[0-9]+\"}, \"color\": {\"enum\": [\"red\", \"blue\"]}, "
    "\"w\": {\"min\": -1.5}}},"
    "\"F\": {\"key\": \"k\", \"properties\": {\"k\": \"float64\"}},"
    "\"S\": {\"key\": \"k\", \"properties\": {\"k\": \"string\"}},"
    "\"M\": {\"key\": [\"a\", \"b\"], \"properties\": {\"a\": \"string\", \"b\": \"string\"}},"
    "\"U\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"mail\": \"string?\"}, \"unique\": [[\"mail\"]]}},"
    "\"edges\": {\"K\": {\"from\": \"S\", \"to\": \"M\", \"properties\": {}}}}";

typedef struct row_case {
    const char *type, *text, *want;
} row_case;

static const row_case cases[] = {
    /* shape */
    {"P", "id,s\n1\n", "2.1 INPUT_SYNTAX there is 1 value for 2 columns\n"},
    {"P", "id,s\n1,a,b\n2,c\n", "2.1 INPUT_SYNTAX there are 3 values for 2 columns\n[2][c]\n"},
    {"P", "id,s\n1,a,\n", "2.1 INPUT_SYNTAX there are 3 values for 2 columns\n"},
    {"P", "id,s\n\n\n1,a\n\n2,\"b\nc\"\n3\n", "[1][a]\n[2][b\nc]\n8.1 INPUT_SYNTAX there is 1 value for 2 columns\n"},
    {"P", "id,s\n1,\"a\"b\n2,c\n", "2.2 INPUT_SYNTAX column s: there is text behind the closing quote\n[2][c]\n"},
    {"P", "id,s\n1,a\rb\n",
     "2.2 INPUT_SYNTAX column s: there is a carriage return without a line feed outside quotes\n"},
    {"P", "id,s\n1,\"a\rb\"\n", "[1][a\rb]\n"},
    /* the least column is the one that is reported */
    {"T", "i,l\nx,y\n", "2.1 CONSTRAINT_TYPE column i: \"x\" is not an int32\n"},
    {"T", "l,i\n5,y\nx,5\n",
     "2.2 CONSTRAINT_TYPE column i: \"y\" is not an int32\n3.1 CONSTRAINT_TYPE column l: \"x\" is not "
     "an int64\n"},
    /* types */
    {"T", "b,i,l,u,f,d,x,day,at\ntrue,-1,2,3,0.5,1e3,YWI=,2026-01-31,2026-01-31T12:00:00+01:00\n",
     "[true][-1][2][3][0.5][1000.0][YWI=][2026-01-31][2026-01-31T11:00:00Z]\n"},
    {"T", "i\n2147483647\n2147483648\n-2147483648\n-2147483649\n",
     "[-][2147483647][-][-][-][-][-][-][-]\n3.1 CONSTRAINT_TYPE column i: \"2147483648\" is out of range for int32\n"
     "[-][-2147483648][-][-][-][-][-][-][-]\n5.1 CONSTRAINT_TYPE column i: \"-2147483649\" is out of range for "
     "int32\n"},
    {"T", "l\n12345678901234567890123\n1.5\n0x10\n12 34\n1e3\n+1\n 1\n",
     "2.1 CONSTRAINT_TYPE column l: \"12345678901234567890123\" is out of range for int64\n"
     "3.1 CONSTRAINT_TYPE column l: \"1.5\" is not an int64\n4.1 CONSTRAINT_TYPE column l: \"0x10\" is not an int64\n"
     "5.1 CONSTRAINT_TYPE column l: \"12 34\" is not an int64\n6.1 CONSTRAINT_TYPE column l: \"1e3\" is not an int64\n"
     "7.1 CONSTRAINT_TYPE column l: \"+1\" is not an int64\n8.1 CONSTRAINT_TYPE column l: \" 1\" is not an int64\n"},
    {"T", "i\n\"\"\n", "2.1 CONSTRAINT_TYPE column i: \"\" is not an int32\n"},
    {"T", "i\n\"12\"\n", "[-][12][-][-][-][-][-][-][-]\n"},
    {"T", "b\nyes\n", "2.1 CONSTRAINT_TYPE column b: \"yes\" is not a bool\n"},
    {"T", "x\nab\n", "2.1 CONSTRAINT_TYPE column x: \"ab\" is not base64\n"},
    {"T", "day\n2026-02-30\n", "2.1 CONSTRAINT_TYPE column day: \"2026-02-30\" is not a date\n"},
    {"T", "at\n2031/08/14 07:05:09 PM\n",
     "2.1 CONSTRAINT_TYPE column at: \"2031/08/14 07:05:09 PM\" is not a timestamp\n"},
    {"T", "d\nNaN\nInfinity\n-Infinity\n",
     "[-][-][-][-][-][NaN][-][-][-]\n[-][-][-][-][-][Infinity][-][-][-]\n[-][-][-][-][-][-Infinity][-][-][-]\n"},
    {"P", "id,s\n1,\xa0\n2,\xc3\xa9\n", "2.2 CONSTRAINT_TYPE column s: the value is not valid UTF-8\n[2][\xc3\xa9]\n"},
    /* nothing, an empty text, a default */
    {"P", "id,s\n1,\n2,\"\"\n", "[1][-]\n[2][]\n"},
    {"P", "id,s\n,a\n", "2.1 CONSTRAINT_NULL column id: there is no value, and it may not be null\n"},
    {"D", "a,b,c\n,,x\n\"\",1,\"\"\n", "[dflt][5][x]\n[][1][]\n"},
    {"D", "c\nx\n", "[dflt][5][x]\n"},
    {"D", "a,c\nx,\n", "2.2 CONSTRAINT_NULL column c: there is no value, and it may not be null\n"},
    /* checks */
    {"C", "age\n0\n150\n", "[0][-][-][-][-]\n[150][-][-][-][-]\n"},
    {"C", "age\n-1\n151\n",
     "2.1 CONSTRAINT_CHECK column age: \"-1\" is below the minimum \"0\"\n3.1 CONSTRAINT_CHECK column "
     "age: \"151\" is above the maximum \"150\"\n"},
    {"C", "name\n\xc3\xa9\xc3\xa9\nabcd\n", "[-][\xc3\xa9\xc3\xa9][-][-][-]\n[-][abcd][-][-][-]\n"},
    {"C", "name\n\xc3\xa9\nabcde\n",
     "2.1 CONSTRAINT_CHECK column name: \"\xc3\xa9\" has 1 characters, fewer than 2\n"
     "3.1 CONSTRAINT_CHECK column name: \"abcde\" has 5 characters, more than 4\n"},
    {"C", "code\nAB12\nAB12x\nab1\n",
     "[-][-][AB12][-][-]\n3.1 CONSTRAINT_CHECK column code: \"AB12x\" is not of the column's "
     "pattern\n4.1 CONSTRAINT_CHECK column code: \"ab1\" is not of the column's pattern\n"},
    {"C", "color\nred\ngreen\n",
     "[-][-][-][red][-]\n3.1 CONSTRAINT_CHECK column color: \"green\" is none of the values "
     "allowed\n"},
    {"C", "w\n-1.5\n-1.6\nNaN\n",
     "[-][-][-][-][-1.5]\n3.1 CONSTRAINT_CHECK column w: \"-1.6\" is below the minimum \"-1.5\"\n"
     "4.1 CONSTRAINT_CHECK column w: \"NaN\" is not between the bounds\n"},
    {"C", "age,name\n,\n", "[-][-][-][-][-]\n"},
    /* keys (K-04) */
    {"F", "k\n-0.0\nNaN\nInfinity\n",
     "[-0.0]\n3.1 CONSTRAINT_CHECK column k: \"NaN\" is no value for a key\n4.1 "
     "CONSTRAINT_CHECK column k: \"Infinity\" is no value for a key\n"},
    {"S", "k\n\"\"\n", "[]\n"},
    {"K", "from,to.a,to.b\nx,a,\n", "2.3 CONSTRAINT_NULL column to.b: there is no value, and it may not be null\n"},
    {"K", "from,to\nx,\"[1]\"\n",
     "2.2 CONSTRAINT_TYPE column to: a key of 2 members is written as a JSON list of them, like "
     "[\"a\",1]\n"},
};

static void every_row_is_taken_or_refused_with_its_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 70000; piece *= 7) {
            table_request request = {.schema = schema, .type = cases[i].type, .text = cases[i].text, .piece = piece};
            char *got = table_read(&request);
            assert_string_equal(got, cases[i].want);
            free(got);
        }
    }
}

static void a_null_token_is_compared_as_it_stands(void **state)
{
    (void)state;
    table_request request = {.schema = schema,
                             .type = "D",
                             .text = "a,b,c\n\\N,1,x\n\"\\N\",1,x\n,1,x\n",
                             .dialect = {.null_token = "\\N", .escape = '\\'}};
    char *got = table_read(&request);
    /* The token is null even where a default is declared; quoted it is text; nothing is the default. */
    assert_string_equal(got, "[-][1][x]\n[\\N][1][x]\n[dflt][1][x]\n");
    free(got);
    request.text = "a,b,c\nx,1,\\N\n";
    got = table_read(&request);
    assert_string_equal(got, "2.3 CONSTRAINT_NULL column c: there is no value, and it may not be null\n");
    free(got);
}

static void a_nul_byte_in_a_text_is_refused(void **state)
{
    (void)state;
    table_request request = {.schema = schema, .type = "P", .text = "id,s\n1,x\0y\n2,\"p\0q\"\n3,ok\n", .length = 24};
    char *got = table_read(&request);
    assert_string_equal(
        got, "2.2 INPUT_SYNTAX column s: there is a NUL byte in the text\n3.2 INPUT_SYNTAX column s: there is "
             "a NUL byte in the text\n[3][ok]\n");
    free(got);
}

/* A file with one column, one row of `length` letters. */
static char *long_value(const char *header, size_t length)
{
    size_t head = strlen(header);
    char *text = malloc(head + length + 2);
    assert_non_null(text);
    memcpy(text, header, head);
    memset(text + head, 'x', length);
    memcpy(text + head + length, "\n", 2);
    return text;
}

static void a_key_at_its_limit_is_taken_and_one_byte_more_is_not(void **state)
{
    (void)state;
    const struct {
        const char *type, *header;
        const char *what;
    } kinds[] = {{"S", "k\n", "column k: a key of 1025 bytes"},
                 {"U", "id,mail\n1,", "column mail: a unique value of 1025 bytes"}};

    for (size_t i = 0; i < 2; i++) {
        for (size_t length = 1020; length <= 1021; length++) { /* and four for the length */
            char *text = long_value(kinds[i].header, length);
            table_request request = {.schema = schema, .type = kinds[i].type, .text = text};
            char *got = table_read(&request);
            if (length == 1020)
                assert_int_equal(got[0], '[');
            else {
                assert_non_null(strstr(got, "RESOURCE_LIMIT"));
                assert_non_null(strstr(got, kinds[i].what));
            }
            free(got);
            free(text);
        }
    }
}

static void members_of_a_key_share_its_limit(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text);
    memcpy(text, "a,b\n", 4);
    text[4 + 600] = ',';
    text[4 + 601 + 416] = '\n'; /* 600 + 416 + 8 = 1024 */
    table_request request = {.schema = schema, .type = "M", .text = text, .length = 4 + 601 + 417};
    char *got = table_read(&request);
    assert_int_equal(got[0], '[');
    free(got);
    text[4 + 601 + 416] = 'x';
    text[4 + 601 + 417] = '\n';
    request.length++;
    got = table_read(&request);
    assert_string_equal(got, "2.1 RESOURCE_LIMIT column a: a key of 1025 bytes is longer than the limit of 1024\n");
    free(got);
}

static void a_message_shows_a_value_safely(void **state)
{
    (void)state;
    table_request request = {.schema = schema, .type = "T", .text = "i\n\x1b[31m\n\"a\nb\"\n"};
    char *got = table_read(&request);
    assert_string_equal(got, "2.1 CONSTRAINT_TYPE column i: \"\\x1b[31m\" is not an int32\n"
                             "3.1 CONSTRAINT_TYPE column i: \"a\\x0ab\" is not an int32\n");
    free(got);
    char *text = long_value("i\n", 300);
    request.text = text;
    got = table_read(&request);
    assert_non_null(strstr(got, "xxx...\" is not an int32"));
    assert_true(strlen(got) < 150);
    free(got);
    free(text);
}

static void a_bad_row_leaves_nothing_in_any_column(void **state)
{
    (void)state;
    /* The last column is bad, so every other one had its value already. */
    table_request request = {.schema = schema,
                             .type = "T",
                             .text = "b,i,l,u,f,d,x,day,at\ntrue,1,1,1,1,1,YQ==,2000-01-01,x\n"
                                     "false,2,2,2,2,2,Yg==,2000-01-02,2000-01-02\n"};
    char *got = table_read(&request);
    assert_string_equal(got, "2.9 CONSTRAINT_TYPE column at: \"x\" is not a timestamp\n"
                             "[false][2][2][2][2.0][2.0][Yg==][2000-01-02][2000-01-02T00:00:00Z]\n");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_taken_or_refused_with_its_words),
        cmocka_unit_test(a_null_token_is_compared_as_it_stands),
        cmocka_unit_test(a_nul_byte_in_a_text_is_refused),
        cmocka_unit_test(a_key_at_its_limit_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(members_of_a_key_share_its_limit),
        cmocka_unit_test(a_message_shows_a_value_safely),
        cmocka_unit_test(a_bad_row_leaves_nothing_in_any_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
