/*
 * Merging branches that changed the schema (S-02, S-03, LESSONS 4): what comes of each pair of changes, that the merged
 * rows keep the merged rules, and which rows and parts are told when they do not.
 */
#include "coord/recover.h"
#include "coord/schema_change.h"
#include "merge_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID                      "\"id\":\"string\","
#define AGE                     "\"age\":\"int32?\","
#define NAME                    "\"name\":\"string?\""
#define NODES(properties, more) "{\"nodes\":{\"N\":{\"key\":\"id\",\"properties\":{" ID properties "}" more "},"
#define F                       "\"F\":{\"properties\":{\"x\":\"int64?\"}}"
#define EDGE(name, more)        "\"" name "\":{\"from\":\"N\",\"to\":\"N\"" more "}"
#define K                       EDGE("K", ",\"properties\":{\"w\":\"int64?\"},\"key\":[]")
#define L                       EDGE("L", ",\"properties\":{\"w\":\"int64?\"}")
#define M                       EDGE("M", ",\"key\":[],\"cardinality\":{\"out\":\"0..1\"}")
#define EDGES                   "\"edges\":{" K "," L "," M "}}"
#define RULES                   ",\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}"
#define WITH(properties, more)  NODES(properties, more) F "}," EDGES

#define SET(key, set)          "{\"op\":\"update\",\"node\":\"N\",\"key\":\"" key "\",\"set\":{" set "}}\n"
#define NEW(set)               "{\"op\":\"insert\",\"node\":\"N\",\"set\":{" set "}}\n"
#define LINK(type, from, to)   "{\"op\":\"insert\",\"edge\":\"" type "\",\"from\":\"" from "\",\"to\":\"" to "\"}\n"
#define UNLINK(type, from, to) "{\"op\":\"delete\",\"edge\":\"" type "\",\"from\":\"" from "\",\"to\":\"" to "\"}\n"

typedef struct side {
    const char *before, *schema, *after; /* lines, a schema file, lines; NULL: none */
} side;
typedef struct merge_case {
    const char *name;
    side ours, theirs;
    const char *holds[4]; /* lines that the merge has */
    const char *lacks[2];
    const char *conflicts; /* NULL: none. "kind type property;..." */
} merge_case;

static const merge_case cases[] = {
    {.name = "a property that the source added comes with its values, and its initial one where nobody gave any",
     .ours = {.after = SET("A", "\"age\":31") NEW("\"id\":\"T\"")},
     .theirs = {.schema = WITH(AGE NAME ",\"z\":{\"type\":\"int64\",\"default\":7}", RULES),
                .after = SET("B", "\"z\":8") NEW("\"id\":\"S\"")},
     .holds = {"N \"A\" 31 null 7\n", "N \"B\" null null 8\n", "N \"S\" null null 7\n", "N \"T\" null null 7\n"}},
    {.name = "properties of both sides stand side by side",
     .ours = {.schema = WITH(AGE NAME ",\"t\":\"bool?\"", RULES), .after = SET("A", "\"t\":true")},
     .theirs = {.schema = WITH(AGE NAME ",\"s\":\"date?\"", RULES), .after = SET("A", "\"s\":\"2026-01-31\"")},
     .holds = {"N \"A\" 30 null true \"2026-01-31\"\n", "N \"B\" null null null null\n"}},
    {.name = "both add a property of one name",
     .ours = {.schema = WITH(AGE NAME ",\"z\":\"bool?\"", RULES)},
     .theirs = {.schema = WITH(AGE NAME ",\"z\":\"bool?\"", RULES)},
     .conflicts = "schema N z;"},
    {.name = "renamed here, its values changed there",
     .ours = {.schema = WITH("\"years\":{\"type\":\"int32?\",\"renamed_from\":\"age\"}," NAME,
                             ",\"unique\":[[\"name\"]],\"checks\":{\"years\":{\"min\":0,\"max\":150}}")},
     .theirs = {.after = SET("A", "\"age\":44")},
     .holds = {"N \"A\" 44 null\n"}},
    {.name = "renamed there, made wide here",
     .ours = {.schema = WITH("\"age\":\"int64?\"," NAME, RULES), .after = SET("B", "\"age\":3")},
     .theirs = {.schema = WITH("\"years\":{\"type\":\"int32?\",\"renamed_from\":\"age\"}," NAME,
                               ",\"unique\":[[\"name\"]],\"checks\":{\"years\":{\"min\":0,\"max\":150}}"),
                .after = SET("A", "\"years\":4")},
     .holds = {"N \"A\" 4 null\n", "N \"B\" 3 null\n"}},
    {.name = "dropped there: its values go, also those written since",
     .ours = {.after = SET("A", "\"age\":31,\"name\":\"a\"")},
     .theirs = {.schema = WITH(NAME, ",\"unique\":[[\"name\"]]"), .after = SET("B", "\"name\":\"b\"")},
     .holds = {"N \"A\" \"a\"\n", "N \"B\" \"b\"\n"}},
    {.name = "dropped there, another default here",
     .ours = {.schema = WITH("\"age\":{\"type\":\"int32?\",\"default\":1}," NAME, RULES)},
     .theirs = {.schema = WITH(NAME, ",\"unique\":[[\"name\"]]")},
     .conflicts = "schema N age;"},
    {.name = "a bound is set there after the rows were mended there",
     .ours = {.after = SET("B", "\"age\":10")},
     .theirs = {.before = SET("A", "\"age\":5"),
                .schema = WITH(AGE NAME, ",\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":20}}")},
     .holds = {"N \"A\" 5 null\n", "N \"B\" 10 null\n"}},
    {.name = "a bound is set there, and rows that break it were written here",
     .ours = {.after = SET("B", "\"age\":40") SET("C", "\"age\":50") SET("D", "\"age\":20")},
     .theirs = {.before = SET("A", "\"age\":5"),
                .schema = WITH(AGE NAME, ",\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":20}}")},
     .conflicts = "value N age;value N age;"},
    {.name = "a bound is set here, and rows that break it were written there",
     .ours = {.before = SET("A", "\"age\":5"),
              .schema = WITH(AGE NAME, ",\"unique\":[[\"name\"]],\"checks\":{\"age\":{\"min\":0,\"max\":20}}")},
     .theirs = {.after = SET("B", "\"age\":40") NEW("\"id\":\"S\",\"age\":41")},
     .conflicts = "value N ;value N ;"},
    {.name = "no null any more there, null here",
     .ours = {.after = NEW("\"id\":\"T\"") NEW("\"id\":\"U\",\"age\":1")},
     .theirs = {.before = SET("B", "\"age\":1") SET("C", "\"age\":1") SET("D", "\"age\":1"),
                .schema = WITH("\"age\":\"int32\"," NAME, RULES)},
     .conflicts = "value N age;"},
    {.name = "no null any more here, null there",
     .ours = {.before = SET("B", "\"age\":1") SET("C", "\"age\":1") SET("D", "\"age\":1"),
              .schema = WITH("\"age\":\"int32\"," NAME, RULES)},
     .theirs = {.after = NEW("\"id\":\"S\"") SET("A", "\"age\":null")},
     .conflicts = "value N ;value N ;"},
    {.name = "a unique value there, twins here",
     .ours = {.after = SET("B", "\"age\":7") SET("C", "\"age\":7") SET("D", "\"age\":30")},
     .theirs = {.schema =
                    WITH(AGE NAME, ",\"unique\":[[\"name\"],[\"age\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}"),
                .after = SET("A", "\"age\":31")},
     .conflicts = "unique N ;"},
    {.name = "a unique value there, its twin one of each side",
     .ours = {.after = SET("B", "\"age\":31")},
     .theirs = {.schema =
                    WITH(AGE NAME, ",\"unique\":[[\"name\"],[\"age\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}"),
                .after = SET("A", "\"age\":31")},
     .conflicts = "unique N ;"},
    {.name = "a unique value of each side",
     .ours = {.schema = WITH(AGE NAME ",\"t\":\"int32?\"",
                             ",\"unique\":[[\"name\"],[\"t\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}"),
              .after = SET("A", "\"t\":1")},
     .theirs = {.schema =
                    WITH(AGE NAME, ",\"unique\":[[\"name\"],[\"age\"]],\"checks\":{\"age\":{\"min\":0,\"max\":150}}"),
                .after = SET("B", "\"age\":1")},
     .holds = {"N \"A\" 30 null 1\n", "N \"B\" 1 null null\n"}},
    {.name = "fewer edges there, too many here",
     .ours = {.after = LINK("K", "B", "D") LINK("K", "B", "A")},
     .theirs = {.schema = NODES(AGE NAME, RULES) F "},\"edges\":{" EDGE(
                    "K", ",\"properties\":{\"w\":\"int64?\"},\"key\":[],\"cardinality\":{\"out\":\"0..2\"}") "," L "," M
                                                                                                             "}}"},
     .conflicts = "cardinality K ;"},
    {.name = "fewer edges there, and the merge takes one away",
     .ours = {.after = LINK("K", "B", "D") LINK("K", "B", "A")},
     .theirs = {.before = UNLINK("K", "B", "C"),
                .schema = NODES(AGE NAME, RULES) F "},\"edges\":{" EDGE(
                    "K", ",\"properties\":{\"w\":\"int64?\"},\"key\":[],\"cardinality\":{\"out\":\"0..2\"}") "," L "," M
                                                                                                             "}}"},
     .holds = {"K \"B\" \"D\" null\n", "K \"B\" \"A\" null\n"},
     .lacks = {"K \"B\" \"C\" 1\n"}},
    {.name = "a type that the source added comes with its rows",
     .ours = {.after = SET("A", "\"age\":31")},
     .theirs = {.schema = NODES(AGE NAME, RULES) F
                ",\"W\":{\"key\":\"k\",\"properties\":{\"k\":\"int32\"}}},\"edges\":{" K "," L "," M ","
                "\"V\":{\"from\":\"W\",\"to\":\"N\"}}}",
                .after = "{\"op\":\"insert\",\"node\":\"W\",\"set\":{\"k\":1}}\n"
                         "{\"op\":\"insert\",\"edge\":\"V\",\"from\":1,\"to\":\"A\"}\n"},
     .holds = {"W 1\n", "V 1 \"A\"\n", "N \"A\" 31 null\n"}},
    {.name = "edges of an added type to a node that is deleted here",
     .ours = {.after = "{\"op\":\"delete\",\"node\":\"N\",\"key\":\"A\"}\n"},
     .theirs = {.schema = NODES(AGE NAME, RULES) F
                ",\"W\":{\"key\":\"k\",\"properties\":{\"k\":\"int32\"}}},\"edges\":{" K "," L "," M ","
                "\"V\":{\"from\":\"W\",\"to\":\"N\"}}}",
                .after = "{\"op\":\"insert\",\"node\":\"W\",\"set\":{\"k\":1}}\n"
                         "{\"op\":\"insert\",\"edge\":\"V\",\"from\":1,\"to\":\"A\"}\n"},
     .conflicts = "orphan-edge V ;"},
    {.name = "a type that the source dropped goes",
     .ours = {.after = SET("A", "\"age\":31")},
     .theirs = {.schema = NODES(AGE NAME, RULES) F "},\"edges\":{" K "," M "}}"},
     .holds = {"N \"A\" 31 null\n"},
     .lacks = {"L \"B\""}},
    {.name = "a type that the source dropped has other rows here",
     .ours = {.after = LINK("L", "A", "C")},
     .theirs = {.schema = NODES(AGE NAME, RULES) F "},\"edges\":{" K "," M "}}"},
     .conflicts = "schema L ;"},
    {.name = "a type that is dropped here has other rows there",
     .ours = {.schema = NODES(AGE NAME, RULES) F "},\"edges\":{" K "," M "}}"},
     .theirs = {.after = LINK("L", "A", "C")},
     .conflicts = "schema L ;"},
    {.name = "a type that is dropped here stays away",
     .ours = {.schema = NODES(AGE NAME, RULES) F "},\"edges\":{" K "," M "}}"},
     .theirs = {.after = SET("A", "\"age\":31")},
     .holds = {"N \"A\" 31 null\n"},
     .lacks = {"L \"B\""}},
    {.name = "a value that must be there is added to what was empty there and is not here",
     .ours = {.after = "{\"op\":\"insert\",\"node\":\"F\",\"set\":{\"x\":1}}\n"},
     .theirs = {.schema = NODES(AGE NAME, RULES) "\"F\":{\"properties\":{\"x\":\"int64?\",\"y\":\"int64\"}}}," EDGES},
     .conflicts = "schema F y;"},
};

static sluice_status apply_schema(st_graph *graph, const char *branch, const char *text)
{
    sluice_error err = {0};
    co_receipt receipt;
    const co_schema_request request = {.branch = branch,
                                       .text = text,
                                       .length = strlen(text),
                                       .file = "schema.json",
                                       .allow_data_loss = true,
                                       .operation = pf_id_new()};
    sluice_status status = co_schema_apply(graph, &request, &receipt, &err);
    if (status != SLUICE_OK)
        print_message("%s %s\n", err.message, err.text);
    return status;
}

static void act(st_graph *graph, const char *branch, const side *what)
{
    if (what->before)
        change(graph, branch, what->before);
    if (what->schema)
        assert_int_equal(apply_schema(graph, branch, what->schema), SLUICE_OK);
    if (what->after)
        change(graph, branch, what->after);
}

static void on_conflicts(const co_merge_result *result, const char *wanted)
{
    char found[512] = "";
    for (uint32_t i = 0; i < result->conflict_count; i++) {
        const co_conflict *one = &result->conflicts[i];
        size_t at = strlen(found);
        (void)snprintf(found + at, sizeof found - at, "%s %s %s;", co_conflict_kind_name(one->kind), one->type,
                       one->property ? one->property : "");
        if (one->kind == CO_CONFLICT_SCHEMA)
            assert_false(pf_id_is_nil(&one->ours) || pf_id_is_nil(&one->theirs));
    }
    assert_string_equal(found, wanted);
    assert_int_equal(result->conflicts_found, result->conflict_count);
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

static void expect_case(st_graph *graph, const merge_case *one)
{
    sluice_error err = {0};
    co_merge_result result;
    uint64_t checked = 0;
    print_message("%s\n", one->name);
    branch_make(graph, "t", "main");
    branch_make(graph, "s", "main");
    act(graph, "t", &one->ours);
    act(graph, "s", &one->theirs);
    pf_id before = head_of(graph, "t");
    sluice_status status = merge(graph, "s", "t", CO_MERGE_FAIL, &result);
    pf_id after = head_of(graph, "t");
    on_conflicts(&result, one->conflicts ? one->conflicts : "");
    assert_int_equal(status, one->conflicts ? SLUICE_MERGE_CONFLICT : SLUICE_OK);
    assert_int_equal(pf_id_equal(&before, &after), one->conflicts != NULL);
    co_merge_result_free(&result);
    if (!one->conflicts) {
        char *text = content(graph, "t");
        for (unsigned i = 0; i < 4 && one->holds[i]; i++)
            if (!strstr(text, one->holds[i]))
                fail_msg("%s lacks %s", text, one->holds[i]);
        for (unsigned i = 0; i < 2 && one->lacks[i]; i++)
            assert_null(strstr(text, one->lacks[i]));
        free(text);
        expect_merge(graph, "s", "t", CO_MERGE_UP_TO_DATE);
        change(graph, "s", NEW("\"id\":\"Y\"")); /* both go on, each under its schema */
        expect_merge(graph, "s", "t", CO_MERGE_MERGED);
        expect_merge(graph, "t", "s", CO_MERGE_FAST_FORWARD);
        expect_same_content(graph, "s", "t");
    }
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    branch_remove(graph, "t");
    branch_remove(graph, "s");
}

static void each_pair_of_changes_ends_as_the_table_says(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(41);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_case(fixture.graph, &cases[i]);
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_pair_of_changes_ends_as_the_table_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
