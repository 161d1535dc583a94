/*
 * Faulty schema files: each is refused with its code, the line and the path of the fault, and a text that says what is
 * wrong.
 */
#include "store/schema/schema.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct faulty {
    const char *file; /* single quotes stand for double ones */
    sluice_status code;
    const char *text; /* the whole message behind "s.json:" */
    const char *hint; /* a part of the hint; NULL: none wanted */
} faulty;

#define P(members)         "{'nodes': {'P': {" members "}}}"
#define PROPS(members)     P("'properties': {" members "}")
#define CHECK(type, check) P("'properties': {'a': " type "}, 'checks': {'a': {" check "}}")
#define EDGE(members)      "{'nodes': {'P': {'properties': {}}},\n 'edges': {'E': {" members "}}}"

static const faulty faults[] = {
    /* not JSON */
    {"", SLUICE_INPUT_SYNTAX, "1: not valid JSON: the text ends too early", NULL},
    {"{'nodes': {}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: the text ends too early", NULL},
    {"{'nodes': {},\n}", SLUICE_INPUT_SYNTAX, "2: not valid JSON: a name in quotes was expected", NULL},
    {"{'nodes': {}} x", SLUICE_INPUT_SYNTAX, "1: not valid JSON: something follows behind the end", NULL},
    {"{'nodes': {'P\\q': {}}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: unknown escape in a string", NULL},
    {"{'nodes': {'\\u0000': {}}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: U+0000 in a string", NULL},
    {"{'nodes': {'\\ud800': {}}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: half of a surrogate pair in a string",
     NULL},
    {"{'nodes': {'\xC0\xAF': {}}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: not UTF-8", NULL},
    {"{'nodes': {'a\nb': {}}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: the line ends inside a string", NULL},
    {"{'nodes' {}}", SLUICE_INPUT_SYNTAX, "1: not valid JSON: no \":\" behind a name", NULL},
    {"{'nodes': {'P': {}\n 'Q': {}}}", SLUICE_INPUT_SYNTAX, "2: not valid JSON: \",\" or \"}\" was expected", NULL},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", SLUICE_INPUT_SYNTAX,
     "1: not valid JSON: nested too deeply", NULL},
    {"{'nodes': {'P': {}},\n 'nodes': {}}", SLUICE_INPUT_SYNTAX, "2: not valid JSON: a name stands twice in one object",
     NULL},
    {PROPS("'a': 'int32', \n'\\u0061': 'int32'"), SLUICE_INPUT_SYNTAX,
     "2: not valid JSON: a name stands twice in one object", NULL},
    {"{'nodes': {'P': {'properties': {'a': {'type': 'int64', 'default': 01}}}}}", SLUICE_INPUT_SYNTAX,
     "1: not valid JSON: a number begins with a superfluous zero", NULL},
    /* shape */
    {"[]", SLUICE_INPUT_SYNTAX, "1: an object was expected, not an array", NULL},
    {"{}", SLUICE_INPUT_SYNTAX, "1: \"nodes\" is missing", NULL},
    {"{'nodes': []}", SLUICE_INPUT_SYNTAX, "1: nodes: an object was expected, not an array", NULL},
    {"{'nodes': {}, 'edgs': {}}", SLUICE_INPUT_SYNTAX, "1: edgs: unknown name", "did you mean \"edges\"?"},
    {"{'nodes': {},\n 'zzz': 1}", SLUICE_INPUT_SYNTAX, "2: zzz: unknown name", NULL},
    {"{'nodes': {'P': 'int64'}}", SLUICE_INPUT_SYNTAX, "1: nodes.P: an object was expected, not a string", NULL},
    {P("'propertys': {}"), SLUICE_INPUT_SYNTAX, "1: nodes.P.propertys: unknown name", "did you mean \"properties\"?"},
    {P("'from': 'P'"), SLUICE_INPUT_SYNTAX, "1: nodes.P.from: unknown name", NULL},
    /* names */
    {"{'nodes': {'': {}}}", SLUICE_INVALID_NAME, "1: nodes.\"\": \"\" is not allowed as a name", "1 to 255 bytes"},
    {"{'nodes': {'_P': {}}}", SLUICE_INVALID_NAME, "1: nodes._P: \"_P\" is not allowed as a name", "begin with \"_\""},
    {"{'nodes': {'a/b': {}}}", SLUICE_INVALID_NAME, "1: nodes.a/b: \"a/b\" is not allowed as a name", "names are"},
    {"{'nodes': {'..': {}}}", SLUICE_INVALID_NAME, "1: nodes.\"..\": \"..\" is not allowed as a name", "names are"},
    {PROPS("'a=b': 'int32'"), SLUICE_INVALID_NAME, "1: nodes.P.properties.a=b: \"a=b\" is not allowed as a name",
     "names"},
    {PROPS("'_row_id': 'int32'"), SLUICE_INVALID_NAME,
     "1: nodes.P.properties._row_id: \"_row_id\" is not allowed as a name", "names are"},
    {EDGE("'from': 'P', 'to': 'P', 'properties': {'to': 'int32'}"), SLUICE_INVALID_NAME,
     "2: edges.E.properties.to: \"to\" is not allowed as a name", "taken on edges"},
    {"{'nodes': {'P': {}}, 'edges': {'P': {'from': 'P', 'to': 'P'}}}", SLUICE_INPUT_SYNTAX,
     "1: edges.P: \"P\" is the name of a node type already", NULL},
    {P("'renamed_from': 'a:b'"), SLUICE_INVALID_NAME, "1: nodes.P.renamed_from: \"a:b\" is not allowed as a name",
     "names"},
    /* properties */
    {PROPS("'a': 'in32'"), SLUICE_INPUT_SYNTAX, "1: nodes.P.properties.a: \"in32\" is not a type",
     "did you mean \"int32\"? types are"},
    {PROPS("'a': 'int32?x'"), SLUICE_INPUT_SYNTAX, "1: nodes.P.properties.a: \"int32?x\" is not a type", "types are"},
    {PROPS("'a': 'a type with a name that is longer than any'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a: \"a type with a name that is longer than any\" is not a type", "types are"},
    {PROPS("'a': 'list<int32>'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a: type \"list<int32>\" is not supported yet", NULL},
    {PROPS("'a': 32"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a: a type or an object with \"type\" was expected, not a number", NULL},
    {PROPS("'a': {'default': 1}"), SLUICE_INPUT_SYNTAX, "1: nodes.P.properties.a: \"type\" is missing", NULL},
    {PROPS("'a': {'type': 'int32', 'min': 1}"), SLUICE_INPUT_SYNTAX, "1: nodes.P.properties.a.min: unknown name", NULL},
    /* defaults */
    {PROPS("'a': {'type': 'int32', 'default': 2147483648}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: 2147483648 is out of range for int32", NULL},
    {PROPS("'a': {'type': 'int64', 'default': 9223372036854775808}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: 9223372036854775808 is out of range for int64", NULL},
    {PROPS("'a': {'type': 'uint64', 'default': -1}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: -1 is out of range for uint64", NULL},
    {PROPS("'a': {'type': 'int64', 'default': 1.5}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: 1.5 is not a value of type int64", NULL},
    {PROPS("'a': {'type': 'int64', 'default': '1'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: \"1\" is not a value of type int64", NULL},
    {PROPS("'a': {'type': 'float32', 'default': 1e39}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: 1e39 is out of range for float32", NULL},
    {PROPS("'a': {'type': 'bool', 'default': 1}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: 1 is not a value of type bool", NULL},
    {PROPS("'a': {'type': 'date', 'default': '2026-02-29'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: \"2026-02-29\" is not a value of type date", NULL},
    {PROPS("'a': {'type': 'bytes', 'default': 'abc'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: \"abc\" is not a value of type bytes", NULL},
    {PROPS("'a': {'type': 'string', 'default': ['x']}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: string was expected, not an array", NULL},
    {PROPS("'a': {'type': 'string', 'default': null}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.properties.a.default: null is not allowed here: \"a\" is not nullable", NULL},
    /* keys */
    {P("'key': 'id',\n 'properties': {'idd': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.key: \"id\" is not a property of this type", "did you mean \"idd\"?"},
    {P("'key': [],\n 'properties': {}"), SLUICE_INPUT_SYNTAX, "1: nodes.P.key: the key of a node has no property",
     "leave \"key\" out"},
    {P("'key': ['a', 'a'], 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.key[1]: \"a\" stands here twice", NULL},
    {P("'key': 'a', 'properties': {'a': 'int32?'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.key: key property \"a\" must not be nullable", NULL},
    {P("'key': {'a': 1}, 'properties': {'a': 'int32?'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.key: a property or a list of properties was expected, not an object", NULL},
    {P("'key': [1], 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.key[0]: a string was expected, not a number", NULL},
    {P("'key': ['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'], 'properties': {'a': 'int32'}"),
     SLUICE_RESOURCE_LIMIT, "1: nodes.P.key: more than 16 properties", NULL},
    /* unique */
    {P("'unique': ['a'], 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.unique[0]: a list of properties was expected", "[[\"a\"]]"},
    {P("'unique': [[]], 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.unique[0]: a unique tuple without a property", NULL},
    {P("'unique': [['a', 'b'], ['b', 'a']], 'properties': {'a': 'int32', 'b': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.unique[1]: the same unique tuple stands here twice", NULL},
    {P("'unique': [['c']], 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.unique[0][0]: \"c\" is not a property of this type", NULL},
    /* checks */
    {P("'checks': {'b': {}}, 'properties': {'a': 'int32'}"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.b: \"b\" is not a property of this type", NULL},
    {CHECK("'int32'", "'mim': 1"), SLUICE_INPUT_SYNTAX, "1: nodes.P.checks.a.mim: unknown name",
     "did you mean \"min\"?"},
    {CHECK("'string'", "'min': 'a'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.min: a property of type string cannot have this check", NULL},
    {CHECK("'int32'", "'min': 'a'"), SLUICE_INPUT_SYNTAX, "1: nodes.P.checks.a.min: \"a\" is not a value of type int32",
     NULL},
    {CHECK("'int32'", "'min': 2, 'max': 1"), SLUICE_INPUT_SYNTAX, "1: nodes.P.checks.a: \"min\" is above \"max\"",
     NULL},
    {CHECK("'float64'", "'max': 'NaN'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.max: NaN equals nothing and is below and above nothing", NULL},
    {CHECK("'int32'", "'max_length': 3"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.max_length: a property of type int32 cannot have this check", NULL},
    {CHECK("'string'", "'max_length': -3"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.max_length: a whole number, 0 or more, was expected", NULL},
    {CHECK("'string'", "'max_length': 1.5"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.max_length: a whole number, 0 or more, was expected", NULL},
    {CHECK("'string'", "'min_length': 2, 'max_length': 1"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a: \"min_length\" is above \"max_length\"", NULL},
    {CHECK("'string'", "'pattern': 'a('"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.pattern: not a pattern: missing closing parenthesis at character 3", NULL},
    {CHECK("'int32'", "'pattern': 'a'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.pattern: a property of type int32 cannot have this check", NULL},
    {CHECK("'string'", "'enum': []"), SLUICE_INPUT_SYNTAX, "1: nodes.P.checks.a.enum: an enumeration without a value",
     NULL},
    {CHECK("'string'", "'enum': ['a', 'b', 'a']"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.enum: a value stands here twice", NULL},
    {CHECK("'string?'", "'enum': ['a', null]"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a.enum[1]: null is not allowed here: \"a\" is not nullable", NULL},
    {CHECK("{'type': 'int32', 'default': 5}", "'max': 4"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a: the default of \"a\" breaks the check \"max\"", NULL},
    {CHECK("{'type': 'string', 'default': 'xy'}", "'max_length': 1"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a: the default of \"a\" breaks the check \"max_length\"", NULL},
    {CHECK("{'type': 'string', 'default': 'xy'}", "'enum': ['x']"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a: the default of \"a\" breaks the check \"enum\"", NULL},
    {CHECK("{'type': 'string', 'default': 'xyz'}", "'pattern': 'xy'"), SLUICE_INPUT_SYNTAX,
     "1: nodes.P.checks.a: the default of \"a\" breaks the check \"pattern\"", NULL},
    /* edges */
    {EDGE("'to': 'P'"), SLUICE_INPUT_SYNTAX, "2: edges.E: \"from\" is missing: the node type at that end", NULL},
    {EDGE("'from': 'P'"), SLUICE_INPUT_SYNTAX, "2: edges.E: \"to\" is missing: the node type at that end", NULL},
    {EDGE("'from': 'P', 'to': 'p'"), SLUICE_INPUT_SYNTAX, "2: edges.E.to: \"p\" is not a node type",
     "did you mean \"P\"?"},
    {EDGE("'from': 'E', 'to': 'P'"), SLUICE_INPUT_SYNTAX, "2: edges.E.from: \"E\" is not a node type", NULL},
    {EDGE("'from': 'P', 'to': 'P', 'cardinality': {'out': '1..*'}"), SLUICE_INPUT_SYNTAX,
     "2: edges.E.cardinality.out: the lower bound of a cardinality must be 0", NULL},
    {EDGE("'from': 'P', 'to': 'P', 'cardinality': {'out': '0..0'}"), SLUICE_INPUT_SYNTAX,
     "2: edges.E.cardinality.out: the upper bound of a cardinality must be at least 1", NULL},
    {EDGE("'from': 'P', 'to': 'P', 'cardinality': {'in': 'many'}"), SLUICE_INPUT_SYNTAX,
     "2: edges.E.cardinality.in: \"many\" is not a cardinality", "at most one"},
    {EDGE("'from': 'P', 'to': 'P', 'cardinality': {'both': '0..1'}"), SLUICE_INPUT_SYNTAX,
     "2: edges.E.cardinality.both: unknown name", NULL},
};

static char *with_double_quotes(const char *file)
{
    char *copy = strdup(file);
    assert_non_null(copy);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

static void a_faulty_file_is_refused_with_line_path_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        char *file = with_double_quotes(faults[i].file), wanted[512];
        sluice_error err = {0};
        st_schema *schema = NULL;
        sluice_status status = st_schema_parse(file, strlen(file), "s.json", &schema, &err);
        (void)snprintf(wanted, sizeof(wanted), "s.json:%s", faults[i].text);
        if (status != faults[i].code || strcmp(err.text, wanted) != 0)
            fail_msg("%s\n  gave %s: %s\n  not  %s: %s", file, sluice_status_name(status), err.text,
                     sluice_status_name(faults[i].code), wanted);
        if (faults[i].hint ? !strstr(err.hint, faults[i].hint) : err.hint[0] != '\0')
            fail_msg("%s\n  has the hint: %s", file, err.hint);
        assert_null(schema);
        free(file);
    }
}

static void the_message_that_may_be_logged_holds_no_word_of_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        char *file = with_double_quotes(faults[i].file);
        sluice_error err = {0};
        st_schema *schema = NULL;
        (void)st_schema_parse(file, strlen(file), "s.json", &schema, &err);
        assert_true(strcmp(err.message, "the schema file is not valid JSON") == 0 ||
                    strncmp(err.message, "a fault in line ", 16) == 0);
        free(file);
    }
}

static void too_many_of_anything_is_a_stated_limit(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_schema *schema = NULL;
    pf_buffer file = {0};
    ASSERT_OK(pf_buffer_append_text(&file, "{\"nodes\":{", &err));
    for (unsigned i = 0; i <= ST_SCHEMA_TYPES_MAX; i++)
        ASSERT_OK(pf_buffer_append_format(&file, &err, "%s\"T%u\":{}", i ? "," : "", i));
    ASSERT_OK(pf_buffer_append_text(&file, "}}", &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_schema_parse((char *)file.data, file.length, "s.json", &schema, &err));
    file.length = 0;
    ASSERT_OK(pf_buffer_append_text(&file, "{\"nodes\":{\"P\":{\"properties\":{", &err));
    for (unsigned i = 0; i <= ST_SCHEMA_PROPERTIES_MAX; i++)
        ASSERT_OK(pf_buffer_append_format(&file, &err, "%s\"p%u\":\"bool\"", i ? "," : "", i));
    ASSERT_OK(pf_buffer_append_text(&file, "}}}}", &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_schema_parse((char *)file.data, file.length, "s.json", &schema, &err));
    pf_buffer_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faulty_file_is_refused_with_line_path_and_reason),
        cmocka_unit_test(the_message_that_may_be_logged_holds_no_word_of_the_file),
        cmocka_unit_test(too_many_of_anything_is_a_stated_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
