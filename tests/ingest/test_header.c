/* What headers mean: plain names, ends of edges and their synonyms, the style of neo4j-admin, and everything refused.
 */
#include "table.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {"
    "\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"name\": \"string?\", \"age\": "
    "{\"type\": \"int32\", \"default\": 7}}},"
    "\"Q\": {\"key\": [\"a\", \"b\"], \"properties\": {\"a\": \"string\", \"b\": \"int64\"}},"
    "\"N\": {\"properties\": {\"text\": \"string?\"}}},"
    "\"edges\": {"
    "\"K\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"w\": \"int64?\"}},"
    "\"C\": {\"from\": \"Q\", \"to\": \"P\", \"properties\": {}},"
    "\"S\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"source\": \"string\"}, \"key\": []}}}";

typedef struct header_case {
    const char *type, *text, *want;
} header_case;

static const header_case cases[] = {
    /* plain names, in any order; what is missing is its default, or null */
    {"P", "id,name,age\n1,a,2\n", "[1][a][2]\n"},
    {"P", "age,id\n2,1\n", "[1][-][2]\n"},
    {"P", "id\n1\n", "[1][-][7]\n"},
    {"P", "\"id\",\"name\"\n1,a\n", "[1][a][7]\n"},
    {"P", "\xef\xbb\xbfid,name\n1,a\n", "[1][a][7]\n"},
    {"P", "\xef\xbb\xbf\"id\",name\n1,a\n", "[1][a][7]\n"},
    {"P", "id,name\r\n1,a\r\n", "[1][a][7]\n"},
    {"P", "\n\nid,name\n1,a\n", "[1][a][7]\n"},
    /* nameless columns are ignored while they are empty */
    {"P", "id,name,\n1,a,\n", "[1][a][7]\n"},
    {"P", "id,,name,,\n1,,a,,\n", "[1][a][7]\n"},
    {"P", "id,name,\n1,a,x\n", "2.3 INPUT_SYNTAX column 3 has no name, and holds \"x\"\n"},
    {"P", "id,name,\n1,a\n", "2.1 INPUT_SYNTAX there are 2 values for 3 columns\n"},
    /* ends */
    {"K", "from,to,w\n1,2,3\n", "[1][2][3]\n"},
    {"K", "w,to,from\n3,2,1\n", "[1][2][3]\n"},
    {"K", "src,dst\n1,2\n", "[1][2][-]\n"},
    {"K", "source,target\n1,2\n", "[1][2][-]\n"},
    {"K", "from.id,to.id\n1,2\n", "[1][2][-]\n"},
    {"K", ":START_ID,:END_ID,w:long\n1,2,3\n", "[1][2][3]\n"},
    {"K", ":START_ID(P),:END_ID(P),:TYPE\n1,2,K\n", "[1][2][-]\n"},
    {"K", "a:START_ID(P){label:P},b:END_ID(P)\n1,2\n", "[1][2][-]\n"},
    {"C", "from.a,from.b,to\nx,1,2\n", "[[\"x\",1]][2]\n"},
    {"C", "to,from.b,from.a\n2,1,x\n", "[[\"x\",1]][2]\n"},
    {"C", "from,to\n\"[\"\"x\"\",1]\",2\n", "[[\"x\",1]][2]\n"},
    /* a property is what it is called, and an end needs a name of its own then */
    {"S", "from,to,source\n1,2,x\n", "[1][2][x]\n"},
    {"S", "src,dst,source\n1,2,x\n", "[1][2][x]\n"},
    {"S", "source,target\n1,2\n", "1.3 INPUT_SYNTAX column \"from\" of type S is missing\n"},
    /* neo4j-admin */
    {"P", "id:ID(P),name:string,age:int\n1,a,2\n", "[1][a][2]\n"},
    {"P", "personId:ID(Person),name:string,:LABEL\n1,a,P\n", "[1][a][7]\n"},
    {"P", ":ID,name\n1,a\n", "[1][a][7]\n"},
    {"P", "id:ID,x:IGNORE,:IGNORE,name\n1,y,z,a\n", "[1][a][7]\n"},
    {"P", "id:int64,name:string\n1,a\n", "[1][a][7]\n"},
    {"P", "id:ID,:LABEL\n1,Q\n2,P\n", "2.2 CONSTRAINT_CHECK column :LABEL: \"Q\" is not the type P\n[2][-][7]\n"},
    {"N", ":ID,text\nx,a\n", "[a]\n"},
    {"N", "_row_id,text\n5,a\n", "[a]\n"},
    {"K", "from,to,_row_id\n1,2,9\n", "[1][2][-]\n"},
    /* refused */
    {"P", "", "1.1 INPUT_SYNTAX the file is empty: there is no header\n"},
    {"P", "\n\n", "1.1 INPUT_SYNTAX the file is empty: there is no header\n"},
    {"P", "\xef\xbb\xbf", "1.1 INPUT_SYNTAX the file is empty: there is no header\n"},
    {"P", "id,nmae\n1,a\n", "1.2 INPUT_SYNTAX column \"nmae\": type P has no such property\n"},
    {"P", "id,Name\n", "1.2 INPUT_SYNTAX column \"Name\": type P has no such property\n"},
    {"P", "id, name\n", "1.2 INPUT_SYNTAX column \" name\": type P has no such property\n"},
    {"P", "id,name,name\n1,a,b\n", "1.3 INPUT_SYNTAX column \"name\" is named twice\n"},
    {"P", "id,id:ID\n", "1.2 INPUT_SYNTAX columns \"id\" and \"id:ID\" stand for the same thing twice\n"},
    {"P", "name\na\n", "1.2 INPUT_SYNTAX column \"id\" of type P is missing\n"},
    {"P", "id,name:text\n", "1.2 INPUT_SYNTAX column \"name:text\" has a type that is not known\n"},
    {"P", "id,name:string[]\n", "1.2 INPUT_SYNTAX column \"name:string[]\" has a type that is not known\n"},
    {"P", "id,:int\n", "1.2 INPUT_SYNTAX column \":int\" has a type and no name\n"},
    {"P", "id,:START_ID\n", "1.2 INPUT_SYNTAX column \":START_ID\" gives an end to a node\n"},
    {"P", "id,from\n", "1.2 INPUT_SYNTAX column \"from\": type P has no such property\n"},
    {"P", "id,_row_id\n", "1.2 INPUT_SYNTAX column \"_row_id\": type P has no such property\n"},
    {"P", "id,_commit\n", "1.2 INPUT_SYNTAX column \"_commit\": type P has no such property\n"},
    {"Q", ":ID\n", "1.1 INPUT_SYNTAX column \":ID\" stands for a key of several properties\n"},
    {"K", ":ID,from,to\n", "1.1 INPUT_SYNTAX column \":ID\" gives an id to an edge\n"},
    {"K", "from\n1\n", "1.2 INPUT_SYNTAX column \"to\" of type K is missing\n"},
    {"K", "from,src,to\n", "1.2 INPUT_SYNTAX columns \"from\" and \"src\" stand for the same thing twice\n"},
    {"C", "from.a,to\nx,1\n", "1.3 INPUT_SYNTAX column \"from.b\" of type C is missing\n"},
    {"C", "from,from.a,to\n", "1.2 INPUT_SYNTAX column \"from.a\" is given whole and by its members\n"},
    {"C", "from.c,from.a,from.b,to\n", "1.1 INPUT_SYNTAX column \"from.c\": type C has no such property\n"},
    {"P", "id,\"name\nx\"\n", "1.2 INPUT_SYNTAX column \"name\\x0ax\": type P has no such property\n"},
    {"P", "id,\"na", "1.1 INPUT_SYNTAX a quote opens here and is never closed\n"},
    {"P", "\nid,\"n\nx\",\"q\n", "3.1 INPUT_SYNTAX a quote opens here and is never closed\n"},
    {"P", "id,\"name\"x\n", "1.2 INPUT_SYNTAX header, column 2: text behind a closing quote\n"},
    {"P", "id\r1\r2\r", "1.1 INPUT_SYNTAX header, column 1: a carriage return without a line feed, outside quotes\n"},
};

static void every_header_has_its_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        table_request request = {.schema = schema, .type = cases[i].type, .text = cases[i].text};
        char *got = table_read(&request);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

static void unknown_columns_are_left_out_when_asked(void **state)
{
    (void)state;
    table_request request = {.schema = schema, .type = "P", .text = "x,id,y:int\n1,2,3\n", .ignore_unknown = true};
    char *got = table_read(&request);
    assert_string_equal(got, "[2][-][7]\n");
    free(got);
    request.text = "x,id,x\n1,2,3\n";
    got = table_read(&request);
    assert_string_equal(got, "1.3 INPUT_SYNTAX column \"x\" is named twice\n");
    free(got);
}

static void columns_are_given_or_in_the_types_own_order(void **state)
{
    (void)state;
    table_request request = {.schema = schema, .type = "P", .text = "1,a,2\n", .dialect = {.no_header = true}};
    char *got = table_read(&request);
    assert_string_equal(got, "[1][a][2]\n");
    free(got);
    request.dialect.columns = "age,id";
    request.text = "2,1\n";
    got = table_read(&request);
    assert_string_equal(got, "[1][-][2]\n");
    free(got);
    request = (table_request){.schema = schema, .type = "K", .text = "1,2,3\n", .dialect = {.no_header = true}};
    got = table_read(&request);
    assert_string_equal(got, "[1][2][3]\n");
    free(got);
}

static void a_near_name_is_offered(void **state)
{
    (void)state;
    sluice_error err;
    st_schema *parsed;
    wk_mapping mapping;
    wk_fault fault;
    wk_name names[] = {{"id", 2}, {"nmae", 4}};

    ASSERT_OK(st_schema_parse(schema, strlen(schema), "schema", &parsed, &err));
    ASSERT_OK(wk_mapping_make(parsed, st_schema_find(parsed, "P"), names, 2, 0, &mapping, &fault, &err));
    assert_true(fault.present);
    assert_string_equal(fault.hint, "did you mean \"name\"? (--ignore-unknown leaves it out)");
    st_schema_free(parsed);
}

static void utf16_is_named_as_what_it_is(void **state)
{
    (void)state;
    sluice_error err;
    uint64_t mark;
    wk_memory_source memory = {"\xff\xfei\0d\0", 6};
    wk_source source = wk_source_of_memory(&memory);
    ASSERT_FAILS(SLUICE_INPUT_SYNTAX, wk_source_skip_mark(&source, &mark, &err));
    assert_non_null(strstr(err.hint, "iconv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_header_has_its_meaning),
        cmocka_unit_test(unknown_columns_are_left_out_when_asked),
        cmocka_unit_test(columns_are_given_or_in_the_types_own_order),
        cmocka_unit_test(a_near_name_is_offered),
        cmocka_unit_test(utf16_is_named_as_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
