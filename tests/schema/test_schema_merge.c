/*
 * Merging schemas three ways (LESSONS 4 "schema changed on both sides", S-02, S-03): each kind of change against each
 * other one, by ids; what comes of it, or which clashes.
 */
#include "store/schema/evolve.h"
#include "store/schema/merge.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P(rest) "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"" rest
#define KNOWS   "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\"}}}"
#define BASE    P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}}," KNOWS)
/* P with these properties, Q and K as in the base */
#define WITH(properties, more) P(properties "}" more "},\"Q\":{\"properties\":{\"x\":\"int32?\"}}}," KNOWS)

typedef struct merge_case {
    const char *name, *ours, *theirs;
    const char *merged;  /* NULL: it clashes ... */
    const char *clashes; /* ... like this: "type.property;..." */
} merge_case;

static const merge_case rows[] = {
    {"one side changes nothing", BASE, WITH(",\"a\":\"int64?\",\"b\":\"string?\",\"c\":\"date?\"", ""),
     WITH(",\"a\":\"int64?\",\"b\":\"string?\",\"c\":\"date?\"", ""), NULL},
    {"both add properties", WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"c\":\"date?\"", ""),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"d\":\"bool?\"", ""),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"c\":\"date?\",\"d\":\"bool?\"", ""), NULL},
    {"both add a property of one name", WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"c\":\"date?\"", ""),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"c\":\"date?\"", ""), NULL, "P.c;"},
    {"one renames, the other widens", WITH(",\"z\":{\"type\":\"int32?\",\"renamed_from\":\"a\"},\"b\":\"string?\"", ""),
     WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""), WITH(",\"z\":\"int64?\",\"b\":\"string?\"", ""), NULL},
    {"both rename one property", WITH(",\"z\":{\"type\":\"int32?\",\"renamed_from\":\"a\"},\"b\":\"string?\"", ""),
     WITH(",\"y\":{\"type\":\"int32?\",\"renamed_from\":\"a\"},\"b\":\"string?\"", ""), NULL, "P.z;"},
    {"both widen", WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""), WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""),
     WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""), NULL},
    {"one widens, the other gives a default and a bound",
     WITH(",\"a\":{\"type\":\"int32?\",\"default\":4},\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":1}}"),
     WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""),
     WITH(",\"a\":{\"type\":\"int64?\",\"default\":4},\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":1}}"), NULL},
    {"bounds of both sides", WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":1}}"),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"checks\":{\"a\":{\"max\":9}}"),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":1,\"max\":9}}"), NULL},
    {"one bound, two values", WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":1}}"),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"checks\":{\"a\":{\"min\":2}}"), NULL, "P.a;"},
    {"one drops, the other leaves alone", WITH(",\"a\":\"int32?\"", ""),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\",\"c\":\"date?\"", ""), WITH(",\"a\":\"int32?\",\"c\":\"date?\"", ""),
     NULL},
    {"one drops, the other changes", WITH(",\"a\":\"int32?\"", ""), WITH(",\"a\":\"int32?\",\"b\":\"string\"", ""),
     NULL, "P.b;"},
    {"both drop", WITH(",\"a\":\"int32?\"", ""), WITH(",\"a\":\"int32?\"", ""), WITH(",\"a\":\"int32?\"", ""), NULL},
    {"unique tuples of both sides", WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"a\"]]"),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"b\"],[\"a\"]]"),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"a\"],[\"b\"]]"), NULL},
    {"a unique tuple of what is dropped", WITH(",\"a\":\"int32?\"", ""),
     WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"b\"]]"), NULL, "P;"},
    {"both add a type of one name",
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}},\"R\":{}}," KNOWS),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}},\"R\":{}}," KNOWS), NULL, "R;"},
    {"types of both sides",
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}},\"R\":{}}," KNOWS),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}},\"S\":{}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\"},\"L\":{\"from\":\"S\",\"to\":\"P\"}}}"),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}},\"R\":{},\"S\":{}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\"},\"L\":{\"from\":\"S\",\"to\":\"P\"}}}"),
     NULL},
    {"one drops a type, the other leaves it alone", P(",\"a\":\"int32?\",\"b\":\"string?\"}}}," KNOWS),
     WITH(",\"a\":\"int32?\",\"b\":\"string\"", ""), P(",\"a\":\"int32?\",\"b\":\"string\"}}}," KNOWS), NULL},
    {"one drops a type, the other changes it",
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int64?\"}}}," KNOWS),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}}}," KNOWS), NULL, "Q;"},
    {"one drops a type, the other leads edges to it", P(",\"a\":\"int32?\",\"b\":\"string?\"}}}," KNOWS),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\"},\"L\":{\"from\":\"Q\",\"to\":\"P\"}}}"),
     NULL, "L;"},
    {"cardinality and a name of the type",
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"cardinality\":{\"out\":\"0..2\"}}}}"),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"KK\":{\"renamed_from\":\"K\",\"from\":\"P\",\"to\":\"P\",\"cardinality\":{\"in\":\"0..3\"}}}}"),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"KK\":{\"from\":\"P\",\"to\":\"P\",\"cardinality\":{\"out\":\"0..2\",\"in\":\"0..3\"}}}}"),
     NULL},
    {"two maxima",
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"cardinality\":{\"out\":\"0..2\"}}}}"),
     P(",\"a\":\"int32?\",\"b\":\"string?\"}},\"Q\":{\"properties\":{\"x\":\"int32?\"}}},"
       "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"cardinality\":{\"out\":\"0..3\"}}}}"),
     NULL, "K;"},
};

static st_schema *parse(const char *text)
{
    sluice_error err = {0};
    st_schema *schema = NULL;
    ASSERT_OK(st_schema_parse(text, strlen(text), "schema.json", &schema, &err));
    return schema;
}

static st_schema *evolve(const st_schema *base, const char *text, uint64_t first)
{
    sluice_error err = {0};
    st_evolution evolution = {0};
    st_schema *schema = parse(text);
    ASSERT_OK(st_schema_evolve(base, schema, &evolution, &err));
    st_evolution_free(&evolution);
    st_schema_assign_missing_ids(schema, first, first);
    return schema;
}

static sluice_status note(void *context, const char *type, const char *property, const char *text, sluice_error *err)
{
    char *notes = context;
    size_t at = strlen(notes);
    assert_true(text[0] != '\0');
    (void)err;
    (void)snprintf(notes + at, 512 - at, "%s%s%s;", type ? type : "", property ? "." : "", property ? property : "");
    return SLUICE_OK;
}

static void expect(const st_schema *base, const merge_case *row)
{
    sluice_error err = {0};
    char notes[512] = "";
    st_schema *merged = NULL, *wanted = NULL;
    st_schema *ours = evolve(base, row->ours, 1000), *theirs = evolve(base, row->theirs, 2000);
    const st_schema_sides sides = {.ours = ours, .theirs = theirs, .bases = &base, .base_count = 1};
    print_message("%s\n", row->name);
    ASSERT_OK(st_schema_merge(&sides, note, notes, &merged, &err));
    assert_string_equal(notes, row->clashes ? row->clashes : "");
    assert_int_equal(merged == NULL, row->merged == NULL);
    if (merged) {
        pf_sha256 one, two;
        wanted = parse(row->merged);
        ASSERT_OK(st_schema_shape(merged, &one, &err));
        ASSERT_OK(st_schema_shape(wanted, &two, &err));
        assert_true(pf_sha256_equal(&one, &two));
        for (uint32_t i = 0; i < merged->type_count; i++) { /* ids are those that a side gave */
            const st_type_def *type = &merged->types[i];
            const st_type_def *here = st_schema_find_table(ours, type->table),
                              *there = st_schema_find_table(theirs, type->table);
            assert_true(here || there);
            for (uint32_t p = 0; p < type->property_count; p++)
                assert_true((here && st_type_find_property_id(here, type->properties[p].id) >= 0) ||
                            (there && st_type_find_property_id(there, type->properties[p].id) >= 0));
            for (uint32_t u = 0; u < type->unique_count; u++)
                assert_true(type->uniques[u].id < type->next_unique);
        }
    }
    st_schema_free(wanted);
    st_schema_free(merged);
    st_schema_free(ours);
    st_schema_free(theirs);
}

static void each_pair_of_changes_ends_as_the_table_says(void **state)
{
    (void)state;
    uint64_t table = 64, property = 1;
    st_schema *base = parse(BASE);
    st_schema_assign_ids(base, &table, &property);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(base, &rows[i]);
    st_schema_free(base);
}

static void unique_tuples_that_come_in_never_take_an_id_of_the_target(void **state)
{
    (void)state;
    sluice_error err = {0};
    uint64_t table = 64, property = 1;
    char notes[512] = "";
    st_schema *base = parse(BASE), *merged = NULL;
    st_schema_assign_ids(base, &table, &property);
    st_schema *ours = evolve(base, WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"a\"]]"), 1000);
    st_schema *theirs = evolve(base, WITH(",\"a\":\"int32?\",\"b\":\"string?\"", ",\"unique\":[[\"b\"]]"), 2000);
    const st_schema_sides sides = {
        .ours = ours, .theirs = theirs, .bases = (const st_schema *const *)&base, .base_count = 1};
    assert_int_equal(ours->types[0].uniques[0].id, theirs->types[0].uniques[0].id);
    ASSERT_OK(st_schema_merge(&sides, note, notes, &merged, &err));
    assert_int_equal(merged->types[0].unique_count, 2);
    assert_int_equal(merged->types[0].uniques[0].id, ours->types[0].uniques[0].id);
    assert_int_not_equal(merged->types[0].uniques[1].id, ours->types[0].uniques[0].id);
    st_schema_free(merged);
    st_schema_free(ours);
    st_schema_free(theirs);
    st_schema_free(base);
}

static void what_equals_one_of_several_bases_has_not_changed(void **state)
{
    (void)state;
    sluice_error err = {0};
    uint64_t table = 64, property = 1;
    char notes[512] = "";
    st_schema *first = parse(BASE), *merged = NULL;
    st_schema_assign_ids(first, &table, &property);
    st_schema *second = evolve(first, WITH(",\"a\":\"int64?\",\"b\":\"string?\"", ""), 1000);
    st_schema *theirs =
        evolve(first, WITH(",\"a\":\"int32?\",\"y\":{\"type\":\"string?\",\"renamed_from\":\"b\"}", ""), 2000);
    const st_schema *bases[] = {first, second};
    st_schema_sides sides = {.ours = second, .theirs = theirs, .bases = bases, .base_count = 2};
    ASSERT_OK(st_schema_merge(&sides, note, notes, &merged, &err)); /* each kept a type that the other gave up */
    assert_null(merged);
    assert_string_equal(notes, "P.a;");
    sides.base_count = 1;
    ASSERT_OK(st_schema_merge(&sides, note, notes, &merged, &err));
    assert_non_null(merged);
    assert_int_equal(merged->types[0].properties[1].type, ST_INT64);
    assert_string_equal(merged->types[0].properties[2].name, "y");
    st_schema_free(merged);
    st_schema_free(second);
    st_schema_free(theirs);
    st_schema_free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_of_changes_ends_as_the_table_says),
        cmocka_unit_test(unique_tuples_that_come_in_never_take_an_id_of_the_target),
        cmocka_unit_test(what_equals_one_of_several_bases_has_not_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
