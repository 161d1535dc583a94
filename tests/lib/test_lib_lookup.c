/*
 * Many look-ups (sluice/lookup.h): what they answer is what sluice_get and a scan say, with adjacency and without, of
 * keys of every form, beside deletions and later commits.
 */
#include "coord/maintain.h"
#include "lib/handle.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int32\",\"name\":\"string?\",\"score\":\"float32?\","
    "\"born\":\"date?\",\"seen\":\"timestamp?\",\"good\":\"bool?\",\"big\":\"uint64?\",\"raw\":\"bytes?\"}},"
    "\"T\":{\"key\":\"name\",\"properties\":{\"name\":\"string\"}},"
    "\"C\":{\"key\":[\"land\",\"number\"],\"properties\":{\"land\":\"string\",\"number\":\"int64\"}},"
    "\"N\":{\"properties\":{\"text\":\"string?\"}}},"
    "\"edges\":{\"PP\":{\"from\":\"P\",\"to\":\"P\"},\"PT\":{\"from\":\"P\",\"to\":\"T\"},"
    "\"CC\":{\"from\":\"C\",\"to\":\"C\"},\"TT\":{\"from\":\"T\",\"to\":\"T\"}}}";

typedef struct fixture {
    char *folder, *path;
    sluice_graph *graph;
    sluice_snapshot *snapshot;
} fixture;

static int make(void **state)
{
    sluice_error err = {0};
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->folder = test_folder_make();
    f->path = test_path(f->folder, "g");
    ASSERT_OK(sluice_create(f->path, schema, sizeof schema - 1, SLUICE_OPTIMISTIC, &f->graph, &err));
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    fixture *f = *state;
    sluice_snapshot_close(f->snapshot);
    sluice_close(f->graph);
    free(f->path);
    test_folder_remove(f->folder);
    free(f);
    return 0;
}

static void commit(fixture *f, const char *lines)
{
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, lines, strlen(lines), &err));
    ASSERT_OK(sluice_commit(f->graph, batch, NULL, NULL, &err));
    sluice_batch_free(batch);
}

static sluice_snapshot *newest(fixture *f)
{
    sluice_error err = {0};
    sluice_snapshot_close(f->snapshot);
    f->snapshot = NULL;
    ASSERT_OK(sluice_snapshot_open(f->graph, NULL, NULL, &f->snapshot, &err));
    return f->snapshot;
}

static void build_index(fixture *f)
{
    const co_maintain_options options = {.kind = CO_INDEX, .graph_path = f->path};
    co_maintain_result result = {0};
    sluice_error err = {0};
    sluice_snapshot_close(f->snapshot);
    f->snapshot = NULL;
    ASSERT_OK(co_maintain_inline(f->graph->graph, &options, &result, &err));
    co_maintain_result_free(&result);
}

static sluice_value whole(int64_t number)
{
    return (sluice_value){.kind = SLUICE_INT64, .int64 = number};
}

static sluice_value text(const char *bytes)
{
    return (sluice_value){.kind = SLUICE_TEXT, .length = (uint32_t)strlen(bytes), .text = bytes};
}

static void assert_text(const sluice_value *value, const char *expected)
{
    assert_int_equal(value->kind, SLUICE_TEXT);
    assert_int_equal(value->length, strlen(expected));
    assert_memory_equal(value->text, expected, value->length);
}

/* ---- rows ---- */

static void a_row_has_each_value_in_its_kind(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    sluice_rows *rows = NULL;
    sluice_value key = whole(-7), values[8];
    bool found = false;
    commit(
        f,
        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":-7,\"name\":\"Ada\",\"score\":1.5,\"born\":\"1970-01-03\","
        "\"seen\":\"1970-01-01T00:00:01Z\",\"good\":true,\"big\":18446744073709551615,\"raw\":\"AQI=\"}}\n"
        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":8}}\n");
    ASSERT_OK(sluice_rows_open(newest(f), "P", NULL, 0, &rows, &err));
    assert_int_equal(sluice_rows_width(rows), 8);
    ASSERT_OK(sluice_rows_get(rows, &key, 1, values, &found, &err));
    assert_true(found);
    assert_true(values[0].kind == SLUICE_INT64 && values[0].int64 == -7);
    assert_text(&values[1], "Ada");
    assert_true(values[2].kind == SLUICE_REAL && values[2].real == 1.5);
    assert_true(values[3].kind == SLUICE_INT64 && values[3].int64 == 2);
    assert_true(values[4].kind == SLUICE_INT64 && values[4].int64 == 1000000);
    assert_true(values[5].kind == SLUICE_BOOL && values[5].boolean);
    assert_true(values[6].kind == SLUICE_UINT64 && values[6].uint64 == UINT64_MAX);
    assert_true(values[7].kind == SLUICE_BYTES && values[7].length == 2 && memcmp(values[7].bytes, "\1\2", 2) == 0);
    key = whole(8);
    ASSERT_OK(sluice_rows_get(rows, &key, 1, values, &found, &err));
    assert_true(found && values[1].kind == SLUICE_NULL && values[7].kind == SLUICE_NULL);
    key = whole(9);
    ASSERT_OK(sluice_rows_get(rows, &key, 1, values, &found, &err));
    assert_false(found);
    sluice_rows_close(rows);
}

static void a_row_is_the_newest_of_its_snapshot(void **state)
{
    static const char *const columns[] = {"name"};
    fixture *f = *state;
    sluice_error err = {0};
    sluice_rows *before = NULL, *after = NULL;
    sluice_snapshot *older = NULL;
    sluice_value key = whole(1), value;
    bool found = false;
    commit(f, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":1,\"name\":\"old\"}}\n");
    ASSERT_OK(sluice_snapshot_open(f->graph, NULL, NULL, &older, &err));
    ASSERT_OK(sluice_rows_open(older, "P", columns, 1, &before, &err));
    sluice_snapshot_close(older); /* the handle holds it */
    commit(f, "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"name\":\"new\"}}\n");
    ASSERT_OK(sluice_rows_open(newest(f), "P", columns, 1, &after, &err));
    ASSERT_OK(sluice_rows_get(after, &key, 1, &value, &found, &err));
    assert_text(&value, "new");
    ASSERT_OK(sluice_rows_get(before, &key, 1, &value, &found, &err));
    assert_text(&value, "old");
    sluice_rows_close(after);
    commit(f, "{\"op\":\"delete\",\"node\":\"P\",\"key\":1}\n");
    ASSERT_OK(sluice_rows_open(newest(f), "P", columns, 1, &after, &err));
    ASSERT_OK(sluice_rows_get(after, &key, 1, &value, &found, &err));
    assert_false(found);
    ASSERT_OK(sluice_rows_get(before, &key, 1, &value, &found, &err));
    assert_true(found);
    sluice_rows_close(before);
    sluice_rows_close(after);
}

static void rows_are_found_by_keys_of_every_form(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    sluice_rows *rows = NULL;
    sluice_value name = text("Turm"), pair[2] = {text("DE"), whole(5)}, id = {.kind = SLUICE_UINT64}, values[2];
    bool found = false;
    commit(f, "{\"op\":\"insert\",\"node\":\"T\",\"set\":{\"name\":\"Turm\"}}\n"
              "{\"op\":\"insert\",\"node\":\"C\",\"set\":{\"land\":\"DE\",\"number\":5}}\n"
              "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"text\":\"first\"}}\n");
    ASSERT_OK(sluice_rows_open(newest(f), "T", NULL, 0, &rows, &err));
    ASSERT_OK(sluice_rows_get(rows, &name, 1, values, &found, &err));
    assert_true(found);
    assert_text(&values[0], "Turm");
    sluice_rows_close(rows);
    ASSERT_OK(sluice_rows_open(f->snapshot, "C", NULL, 0, &rows, &err));
    ASSERT_OK(sluice_rows_get(rows, pair, 2, values, &found, &err));
    assert_true(found && values[1].int64 == 5);
    pair[1] = whole(6);
    ASSERT_OK(sluice_rows_get(rows, pair, 2, values, &found, &err));
    assert_false(found);
    sluice_rows_close(rows);
    ASSERT_OK(sluice_rows_open(f->snapshot, "N", NULL, 0, &rows, &err));
    ASSERT_OK(sluice_rows_get(rows, &id, 1, values, &found, &err));
    assert_false(found);
    id.uint64 = UINT64_C(1) << 40; /* where row ids begin */
    for (uint64_t end = id.uint64 + 100; id.uint64 < end && !found; id.uint64++)
        ASSERT_OK(sluice_rows_get(rows, &id, 1, values, &found, &err));
    assert_true(found);
    assert_text(&values[0], "first");
    sluice_rows_close(rows);
}

static void a_property_that_came_later_has_its_initial_value(void **state)
{
    static const char *const columns[] = {"level", "name"};
    fixture *f = *state;
    sluice_error err = {0};
    sluice_rows *rows = NULL;
    sluice_value key = text("a"), values[2];
    bool found = false;
    char changed[sizeof schema + 64];
    const char *at = strstr(schema, "\"T\":{\"key\":\"name\",\"properties\":{");
    size_t length = (size_t)(at - schema) + strlen("\"T\":{\"key\":\"name\",\"properties\":{");
    commit(f, "{\"op\":\"insert\",\"node\":\"T\",\"set\":{\"name\":\"a\"}}\n");
    (void)snprintf(changed, sizeof changed, "%.*s\"level\":{\"type\":\"int32\",\"default\":3},%s", (int)length, schema,
                   schema + length);
    ASSERT_OK(sluice_schema_apply(f->graph, changed, strlen(changed), false, NULL, NULL, &err));
    ASSERT_OK(sluice_rows_open(newest(f), "T", columns, 2, &rows, &err));
    ASSERT_OK(sluice_rows_get(rows, &key, 1, values, &found, &err));
    assert_true(found && values[0].kind == SLUICE_INT64 && values[0].int64 == 3);
    assert_text(&values[1], "a");
    sluice_rows_close(rows);
}

static void what_is_no_key_is_refused(void **state)
{
    static const char *const unknown[] = {"nothing"};
    fixture *f = *state;
    sluice_error err = {0};
    sluice_rows *rows = NULL;
    sluice_links *links = NULL;
    const sluice_value *keys = NULL;
    const int64_t *numbers = NULL;
    size_t count = 0;
    sluice_value wide = whole(INT64_C(1) << 40), name = text("x"), two[2] = {whole(1), whole(2)}, values[8];
    bool found = false;
    sluice_snapshot *snapshot = newest(f);
    assert_int_equal(sluice_rows_open(snapshot, "Q", NULL, 0, &rows, &err), SLUICE_USAGE);
    assert_int_equal(sluice_rows_open(snapshot, "PP", NULL, 0, &rows, &err), SLUICE_USAGE);
    assert_int_equal(sluice_rows_open(snapshot, "P", unknown, 1, &rows, &err), SLUICE_USAGE);
    assert_null(rows);
    ASSERT_OK(sluice_rows_open(snapshot, "P", NULL, 0, &rows, &err));
    assert_int_equal(sluice_rows_get(rows, &wide, 1, values, &found, &err), SLUICE_USAGE);
    assert_int_equal(sluice_rows_get(rows, &name, 1, values, &found, &err), SLUICE_USAGE);
    assert_int_equal(sluice_rows_get(rows, two, 2, values, &found, &err), SLUICE_USAGE);
    assert_int_equal(sluice_rows_get(rows, NULL, 0, values, &found, &err), SLUICE_USAGE);
    sluice_rows_close(rows);
    assert_int_equal(sluice_links_open(snapshot, "P", SLUICE_OUT, &links, &err), SLUICE_USAGE);
    assert_int_equal(sluice_links_open(snapshot, "PP", SLUICE_BOTH, &links, &err), SLUICE_USAGE);
    ASSERT_OK(sluice_links_open(snapshot, "PT", SLUICE_OUT, &links, &err));
    assert_int_equal(sluice_links_get(links, &name, 1, &keys, &count, &err), SLUICE_USAGE);
    assert_int_equal(sluice_links_get_int64(links, 1, &numbers, &count, &err), SLUICE_USAGE);
    sluice_links_close(links);
    sluice_rows_close(NULL);
    sluice_links_close(NULL);
}

/* ---- links ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* The numbers at the ends, sorted, as text: by the handle that gives numbers and by the one that gives values. */
static void expect_numbers(sluice_links *links, int64_t from, const char *expected)
{
    sluice_error err = {0};
    const int64_t *numbers = NULL;
    const sluice_value *values = NULL;
    size_t count = 0, again = 0, at = 0;
    int64_t sorted[64];
    char line[512] = "";
    sluice_value key = whole(from);
    ASSERT_OK(sluice_links_get_int64(links, from, &numbers, &count, &err));
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        sorted[i] = numbers[i];
    qsort(sorted, count, sizeof *sorted, by_number);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%lld ", (long long)sorted[i]);
    assert_string_equal(line, expected);
    ASSERT_OK(sluice_links_get(links, &key, 1, &values, &again, &err));
    assert_int_equal(again, count);
    for (size_t i = 0; i < count; i++)
        assert_true(values[i].kind == SLUICE_INT64);
    for (size_t i = 0; i < count; i++)
        sorted[i] = values[i].int64;
    qsort(sorted, count, sizeof *sorted, by_number);
    at = 0;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%lld ", (long long)sorted[i]);
    assert_string_equal(line, expected);
}

static void expect_both_ways(fixture *f, const char *out_of_1, const char *in_of_3)
{
    sluice_error err = {0};
    sluice_links *out = NULL, *in = NULL;
    ASSERT_OK(sluice_links_open(newest(f), "PP", SLUICE_OUT, &out, &err));
    ASSERT_OK(sluice_links_open(f->snapshot, "PP", SLUICE_IN, &in, &err));
    assert_int_equal(sluice_links_width(out), 1);
    expect_numbers(out, 1, out_of_1);
    expect_numbers(in, 3, in_of_3);
    expect_numbers(out, 99, "");
    expect_numbers(out, 1, out_of_1); /* again, of what is open */
    sluice_links_close(out);
    sluice_links_close(in);
}

static void links_are_every_edge_with_an_index_and_without(void **state)
{
    fixture *f = *state;
    for (int id = -3; id <= 3; id++) {
        char line[128];
        (void)snprintf(line, sizeof line, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":%d}}\n", id);
        commit(f, line);
    }
    expect_both_ways(f, "", "");
    commit(f, "{\"op\":\"insert\",\"edge\":\"PP\",\"from\":1,\"to\":2}\n{\"op\":\"insert\",\"edge\":\"PP\",\"from\":1,"
              "\"to\":-3}\n"
              "{\"op\":\"insert\",\"edge\":\"PP\",\"from\":2,\"to\":3}\n{\"op\":\"insert\",\"edge\":\"PP\",\"from\":1,"
              "\"to\":2}\n"
              "{\"op\":\"insert\",\"edge\":\"PP\",\"from\":3,\"to\":3}\n");
    expect_both_ways(f, "-3 2 2 ", "2 3 ");
    build_index(f);
    expect_both_ways(f, "-3 2 2 ", "2 3 ");
    commit(f, "{\"op\":\"insert\",\"edge\":\"PP\",\"from\":1,\"to\":3}\n"); /* behind what the index covers */
    expect_both_ways(f, "-3 2 2 3 ", "1 2 3 ");
    commit(f, "{\"op\":\"delete\",\"node\":\"P\",\"key\":2,\"detach\":true}\n"); /* in it */
    expect_both_ways(f, "-3 3 ", "1 3 ");
    build_index(f);
    expect_both_ways(f, "-3 3 ", "1 3 ");
}

/* The texts at the ends, as they come. */
static void expect_names(sluice_links *links, const sluice_value *key, size_t members, size_t expected,
                         const char *name)
{
    sluice_error err = {0};
    const sluice_value *values = NULL;
    size_t count = 0;
    ASSERT_OK(sluice_links_get(links, key, members, &values, &count, &err));
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        assert_text(&values[i * sluice_links_width(links)], name);
}

static void links_lead_to_keys_of_every_form(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    commit(f, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":1}}\n{\"op\":\"insert\",\"node\":\"T\",\"set\":{"
              "\"name\":\"t\"}}\n"
              "{\"op\":\"insert\",\"node\":\"T\",\"set\":{\"name\":\"u\"}}\n"
              "{\"op\":\"insert\",\"node\":\"C\",\"set\":{\"land\":\"DE\",\"number\":1}}\n"
              "{\"op\":\"insert\",\"node\":\"C\",\"set\":{\"land\":\"FR\",\"number\":2}}\n"
              "{\"op\":\"insert\",\"edge\":\"PT\",\"from\":1,\"to\":\"t\"}\n{\"op\":\"insert\",\"edge\":\"TT\","
              "\"from\":\"t\",\"to\":\"u\"}\n"
              "{\"op\":\"insert\",\"edge\":\"TT\",\"from\":\"t\",\"to\":\"u\"}\n"
              "{\"op\":\"insert\",\"edge\":\"CC\",\"from\":{\"land\":\"DE\",\"number\":1},\"to\":{\"land\":\"FR\","
              "\"number\":2}}\n");
    for (int indexed = 0; indexed < 2; indexed++) {
        sluice_links *links = NULL;
        sluice_value one = whole(1), t = text("t"), u = text("u"), de[2] = {text("DE"), whole(1)};
        if (indexed)
            build_index(f);
        ASSERT_OK(sluice_links_open(newest(f), "PT", SLUICE_OUT, &links, &err));
        expect_names(links, &one, 1, 1, "t");
        sluice_links_close(links);
        ASSERT_OK(sluice_links_open(f->snapshot, "TT", SLUICE_OUT, &links, &err));
        expect_names(links, &t, 1, 2, "u");
        expect_names(links, &u, 1, 0, "");
        sluice_links_close(links);
        ASSERT_OK(sluice_links_open(f->snapshot, "TT", SLUICE_IN, &links, &err));
        expect_names(links, &u, 1, 2, "t");
        sluice_links_close(links);
        ASSERT_OK(sluice_links_open(f->snapshot, "CC", SLUICE_OUT, &links, &err));
        assert_int_equal(sluice_links_width(links), 2);
        expect_names(links, de, 2, 1, "FR");
        de[1] = whole(3);
        expect_names(links, de, 2, 0, "");
        sluice_links_close(links);
    }
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_row_has_each_value_in_its_kind),
        IN_GRAPH(a_row_is_the_newest_of_its_snapshot),
        IN_GRAPH(rows_are_found_by_keys_of_every_form),
        IN_GRAPH(a_property_that_came_later_has_its_initial_value),
        IN_GRAPH(what_is_no_key_is_refused),
        IN_GRAPH(links_are_every_edge_with_an_index_and_without),
        IN_GRAPH(links_lead_to_keys_of_every_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
