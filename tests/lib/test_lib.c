/*
 * The library as a program sees it: what is made, written, read and refused.
 */
#include "lib_fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_node(sluice_graph *graph, const char *type, const char *key, const char *json)
{
    char *found = lib_get(graph, type, key);
    if (json)
        assert_string_equal(found, json);
    else
        assert_null(found);
    sluice_free(found);
}

static void changes_are_built_value_by_value_or_as_lines(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_SET, "id", INT64_MAX);
    sluice_batch_text(batch, SLUICE_SET, "name", "A \"quoted\"\n name", 16);
    sluice_batch_null(batch, SLUICE_SET, "age");
    ASSERT_OK(sluice_batch_end(batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":2}", 39, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_EDGE, "KNOWS");
    sluice_batch_int64(batch, SLUICE_FROM, NULL, 2);
    sluice_batch_int64(batch, SLUICE_TO, NULL, INT64_MAX);
    sluice_batch_text(batch, SLUICE_SET, "since", "2026-01-31", 10);
    ASSERT_OK(sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Place");
    sluice_batch_text(batch, SLUICE_KEY, "country", "DE", 2);
    sluice_batch_int64(batch, SLUICE_KEY, "number", -1);
    ASSERT_OK(sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Note");
    sluice_batch_double(batch, SLUICE_SET, "weight", INFINITY);
    sluice_batch_bool(batch, SLUICE_SET, "done", true);
    sluice_batch_uint64(batch, SLUICE_SET, "serial", UINT64_MAX);
    ASSERT_OK(sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_ASSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_KEY, NULL, 99);
    sluice_batch_flag(batch, SLUICE_ABSENT);
    ASSERT_OK(sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_UPDATE, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_KEY, NULL, 2);
    sluice_batch_int64(batch, SLUICE_SET, "age", 7);
    sluice_batch_int64(batch, SLUICE_IF, "age", 1);
    ASSERT_OK(sluice_batch_end(batch, &err));
    ASSERT_OK(sluice_commit(fixture->graph, batch, NULL, &receipt, &err));
    assert_true(receipt.committed && receipt.acknowledged && !receipt.repeated);
    assert_int_equal(receipt.inserted, 5);
    assert_int_equal(receipt.skipped, 1);
    assert_int_equal(strlen(receipt.commit), 36);
    sluice_batch_free(batch);

    expect_node(fixture->graph, "Person", "9223372036854775807",
                "{\"id\":9223372036854775807,\"name\":\"A \\\"quoted\\\"\\n name\",\"age\":null}");
    expect_node(fixture->graph, "Person", "2", "{\"id\":2,\"name\":null,\"age\":null}");
    expect_node(fixture->graph, "Person", "3", NULL);
    expect_node(fixture->graph, "Place", "[\"DE\", -1]", "{\"country\":\"DE\",\"number\":-1}");
    expect_node(fixture->graph, "Place", "[\"DE\", 1]", NULL);
    assert_int_equal(lib_count(fixture->graph, "KNOWS"), 1);
    assert_int_equal(lib_count(fixture->graph, "Note"), 1);
}

static void a_change_that_is_built_wrongly_is_dropped_and_the_rest_stays(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_SET, "id", 1);
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_json(batch, "{}", 2, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_commit(fixture->graph, batch, NULL, &receipt, &err));
    ASSERT_OK(sluice_batch_end(batch, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));

    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_SET, "id", 2);
    sluice_batch_int64(batch, SLUICE_KEY, NULL, 2);
    sluice_batch_int64(batch, SLUICE_SET, "age", 2); /* comes back to a part */
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_KEY, NULL, 2);
    sluice_batch_int64(batch, SLUICE_KEY, NULL, 3);
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_text(batch, SLUICE_SET, "name", "\xff", 1);
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, (sluice_op)99, SLUICE_NODE, "Person");
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, NULL);
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));
    sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, (sluice_part)99, "x", 1);
    sluice_batch_flag(batch, (sluice_flag)99);
    ASSERT_FAILS(SLUICE_USAGE, sluice_batch_end(batch, &err));

    ASSERT_OK(sluice_commit(fixture->graph, batch, NULL, &receipt, &err));
    assert_int_equal(receipt.inserted, 1);
    sluice_batch_clear(batch);
    ASSERT_OK(sluice_commit(fixture->graph, batch, NULL, &receipt, &err));
    assert_false(receipt.committed);
    sluice_batch_free(batch);
}

static void a_commit_that_fails_changes_nothing_and_names_the_line(void **state)
{
    lib_fixture *fixture = *state;
    static const char lines[] = "{\"op\":\"insert\",\"node\":\"Person\",\"key\":1}\n"
                                "{\"op\":\"insert\",\"node\":\"Person\",\"key\":1}\n";
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, lines, sizeof lines - 1, &err));
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, sluice_commit(fixture->graph, batch, NULL, &receipt, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_non_null(strstr(err.text, "batch:2"));
    assert_false(receipt.committed);
    assert_int_equal(lib_count(fixture->graph, "Person"), 0);
    sluice_batch_free(batch);
}

static void the_same_operation_gives_the_first_receipt_again(void **state)
{
    lib_fixture *fixture = *state;
    sluice_write_options options = {
        .operation = "01234567-89ab-7def-8123-456789abcdef", .message = "first", .actor = "tester"};
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt first, again;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}\n", 30, &err));
    ASSERT_OK(sluice_commit(fixture->graph, batch, &options, &first, &err));
    sluice_close(fixture->graph);
    ASSERT_OK(sluice_open(fixture->path, SLUICE_WRITE, &fixture->graph, &err));
    ASSERT_OK(sluice_commit(fixture->graph, batch, &options, &again, &err));
    assert_true(again.repeated && !first.repeated);
    assert_string_equal(first.commit, again.commit);
    assert_int_equal(lib_count(fixture->graph, "Note"), 1);
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}", 29, &err));
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, sluice_commit(fixture->graph, batch, &options, &again, &err));
    options.operation = "no uuid";
    ASSERT_FAILS(SLUICE_USAGE, sluice_commit(fixture->graph, batch, &options, &again, &err));
    options = (sluice_write_options){.if_head = "01234567-89ab-7def-8123-456789abcdef"};
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, sluice_commit(fixture->graph, batch, &options, &again, &err));
    options = (sluice_write_options){.if_head = first.commit, .dry_run = true};
    ASSERT_OK(sluice_commit(fixture->graph, batch, &options, &again, &err));
    assert_false(again.committed);
    assert_int_equal(again.inserted, 2);
    assert_int_equal(lib_count(fixture->graph, "Note"), 1);
    sluice_batch_free(batch);
}

static bool yes(void *context)
{
    ++*(unsigned *)context;
    return true;
}

static void a_write_that_is_cancelled_changes_nothing(void **state)
{
    lib_fixture *fixture = *state;
    unsigned asked = 0;
    sluice_write_options options = {.context = &asked, .cancelled = yes};
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}\n", 30, &err));
    ASSERT_FAILS(SLUICE_CANCELLED, sluice_commit(fixture->graph, batch, &options, &receipt, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_true(asked > 0);
    assert_int_equal(lib_count(fixture->graph, "Note"), 0);
    sluice_batch_free(batch);
}

/* ---- reading ---- */

typedef struct reached {
    char text[512];
    unsigned stop_after;
} reached;

static bool add_reached(void *context, const char *type, const char *key, uint32_t depth)
{
    reached *all = context;
    char one[128];
    (void)snprintf(one, sizeof one, "%s %s %u;", type, key, depth);
    assert_true(strlen(all->text) + strlen(one) < sizeof all->text);
    memcpy(all->text + strlen(all->text), one, strlen(one) + 1);
    return all->stop_after == 0 || --all->stop_after > 0;
}

static void neighbours_are_reached_to_a_depth(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    reached all = {{0}, 0};
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":1}\n"
                                     "{\"op\":\"insert\",\"node\":\"Person\",\"key\":2}\n"
                                     "{\"op\":\"insert\",\"node\":\"Person\",\"key\":3}\n"
                                     "{\"op\":\"insert\",\"edge\":\"KNOWS\",\"from\":1,\"to\":2}\n"
                                     "{\"op\":\"insert\",\"edge\":\"KNOWS\",\"from\":2,\"to\":3}\n");
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_neighbors(snapshot, "Person", "1", NULL, add_reached, &all, &err));
    assert_string_equal(all.text, "Person 2 1;");
    all = (reached){{0}, 0};
    sluice_neighbor_options options = {.edge = "KNOWS", .depth = 5};
    ASSERT_OK(sluice_neighbors(snapshot, "Person", "1", &options, add_reached, &all, &err));
    assert_string_equal(all.text, "Person 2 1;Person 3 2;");
    all = (reached){{0}, 1};
    ASSERT_OK(sluice_neighbors(snapshot, "Person", "1", &options, add_reached, &all, &err));
    assert_string_equal(all.text, "Person 2 1;");
    all = (reached){{0}, 0};
    options = (sluice_neighbor_options){.direction = SLUICE_IN};
    ASSERT_OK(sluice_neighbors(snapshot, "Person", "3", &options, add_reached, &all, &err));
    assert_string_equal(all.text, "Person 2 1;");
    ASSERT_FAILS(SLUICE_NOT_FOUND, sluice_neighbors(snapshot, "Person", "9", NULL, add_reached, &all, &err));
    options = (sluice_neighbor_options){.edge = "Person"};
    ASSERT_FAILS(SLUICE_USAGE, sluice_neighbors(snapshot, "Person", "1", &options, add_reached, &all, &err));
    sluice_snapshot_close(snapshot);
}

static void what_is_asked_wrongly_is_refused_by_name(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    sluice_graph *graph = NULL;
    uint64_t rows;
    char *json;
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_count(snapshot, "Persn", &rows, &err));
    assert_non_null(strstr(err.hint, "Person"));
    ASSERT_FAILS(SLUICE_USAGE, sluice_count(snapshot, NULL, &rows, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_count(NULL, "Person", &rows, NULL));
    static const char *const bad[] = {"", "{}", "null", "[1]", "1,2", "\"x\"", "1 2", "]", "1]", "\"", "[[1]]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERT_FAILS(SLUICE_USAGE, sluice_get(snapshot, "Person", bad[i], &json, NULL, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_get(snapshot, "KNOWS", "1", &json, NULL, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_get(snapshot, "Place", "\"DE\"", &json, NULL, &err));
    sluice_snapshot_close(snapshot);
    ASSERT_FAILS(SLUICE_NOT_FOUND, sluice_snapshot_open(fixture->graph, "other", NULL, &snapshot, &err));
    assert_null(snapshot);
    ASSERT_FAILS(SLUICE_NOT_FOUND, sluice_open("no/such/folder", SLUICE_READ, &graph, &err));
    assert_null(graph);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, sluice_open(fixture->folder, SLUICE_READ, &graph, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS,
                 sluice_create(fixture->path, "{\"nodes\":{}}", 12, SLUICE_SINGLE, &graph, &err));
    ASSERT_FAILS(SLUICE_INPUT_SYNTAX, sluice_create("x", "{", 1, SLUICE_SINGLE, &graph, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_open(NULL, SLUICE_READ, &graph, &err));
}

static void a_graph_that_is_open_for_reading_refuses_writes(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    ASSERT_OK(sluice_open(fixture->path, SLUICE_READ, &graph, &err));
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}\n", 30, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, sluice_commit(graph, batch, NULL, NULL, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, sluice_branch_create(graph, "b", NULL, &err));
    sluice_batch_free(batch);
    sluice_close(graph);
}

/* ---- branches and history ---- */

static bool add_branch(void *context, const sluice_branch *branch)
{
    assert_false(branch->damaged);
    assert_int_equal(strlen(branch->head), 36);
    unsigned *seen = context;
    *seen += strcmp(branch->name, "main") == 0 ? 1 : 100;
    return true;
}

static bool add_commit(void *context, const sluice_commit_info *info)
{
    char *kinds = context;
    (void)snprintf(kinds + strlen(kinds), 64, "%s/%s ", info->kind, info->actor);
    return strcmp(info->kind, "stop") != 0;
}

static bool first_only(void *context, const sluice_commit_info *info)
{
    memcpy(context, info->commit, SLUICE_ID_TEXT);
    return false;
}

static void branches_and_snapshots_keep_states_apart(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *before = NULL, *at = NULL;
    sluice_write_options on_branch = {.branch = "b"};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    sluice_place place;
    unsigned seen = 0;
    uint64_t rows;
    char kinds[256] = "", newest[SLUICE_ID_TEXT];
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}\n", 30, &err));
    ASSERT_OK(sluice_branch_create(fixture->graph, "b", NULL, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, sluice_branch_create(fixture->graph, "b", NULL, &err));
    ASSERT_OK(sluice_snapshot_open(fixture->graph, "b", NULL, &before, &err));
    ASSERT_OK(sluice_commit(fixture->graph, batch, &on_branch, &receipt, &err));
    ASSERT_OK(sluice_count(before, "Note", &rows, &err));
    assert_int_equal(rows, 0);
    ASSERT_OK(sluice_snapshot_open(fixture->graph, "b", receipt.commit, &at, &err));
    ASSERT_OK(sluice_count(at, "Note", &rows, &err));
    assert_int_equal(rows, 1);
    sluice_snapshot_place(at, &place);
    assert_string_equal(place.commit, receipt.commit);
    assert_int_equal(place.generation, receipt.generation);
    assert_int_equal(lib_count(fixture->graph, "Note"), 0);
    ASSERT_OK(sluice_branches(fixture->graph, add_branch, &seen, &err));
    assert_int_equal(seen, 101);
    ASSERT_OK(sluice_log(fixture->graph, "b", add_commit, kinds, &err));
    assert_string_equal(kinds, "mutate/library init/cli ");
    ASSERT_OK(sluice_log(fixture->graph, "b", first_only, newest, &err));
    assert_string_equal(newest, receipt.commit);
    sluice_snapshot_close(before);
    ASSERT_OK(sluice_branch_delete(fixture->graph, "b", &err));
    ASSERT_OK(sluice_count(at, "Note", &rows, &err));
    assert_int_equal(rows, 1);
    sluice_snapshot_close(at);
    ASSERT_FAILS(SLUICE_NOT_FOUND, sluice_branch_delete(fixture->graph, "b", &err));
    sluice_batch_free(batch);
}

static void the_schema_comes_back_as_a_schema_file(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    sluice_graph *again = NULL;
    char *json = NULL, *other = NULL, *path = NULL;
    size_t length = 0, other_length = 0;
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_snapshot_schema(snapshot, &json, &length, &err));
    sluice_snapshot_close(snapshot);
    assert_int_equal(strlen(json), length);
    assert_true(asprintf(&path, "%s/other", fixture->folder) > 0);
    ASSERT_OK(sluice_create(path, json, length, SLUICE_OPTIMISTIC, &again, &err));
    ASSERT_OK(sluice_snapshot_open(again, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_snapshot_schema(snapshot, &other, &other_length, &err));
    assert_string_equal(json, other);
    /* the other way round than they were opened */
    sluice_close(again);
    sluice_snapshot_close(snapshot);
    sluice_free(json);
    sluice_free(other);
    free(path);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(changes_are_built_value_by_value_or_as_lines),
        IN_GRAPH(a_change_that_is_built_wrongly_is_dropped_and_the_rest_stays),
        IN_GRAPH(a_commit_that_fails_changes_nothing_and_names_the_line),
        IN_GRAPH(the_same_operation_gives_the_first_receipt_again),
        IN_GRAPH(a_write_that_is_cancelled_changes_nothing),
        IN_GRAPH(neighbours_are_reached_to_a_depth),
        IN_GRAPH(what_is_asked_wrongly_is_refused_by_name),
        IN_GRAPH(a_graph_that_is_open_for_reading_refuses_writes),
        IN_GRAPH(branches_and_snapshots_keep_states_apart),
        IN_GRAPH(the_schema_comes_back_as_a_schema_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
