/*
 * What became of a graph, and looking after it, as a program sees it: differences, feeds, merges, checkpoints, schemas,
 * collection, loads that leave rows out.
 */
#include "lib_fixture.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct listing { /* changes as text, and where to stop */
    char text[4096], cursor[SLUICE_CURSOR_TEXT], commit[SLUICE_ID_TEXT];
    unsigned stop_after, seen;
} listing;

static bool list(void *context, const sluice_change *change)
{
    static const char *const signs[] = {"+", "~", "-", "schema", "."};
    listing *list = context;
    if (list->stop_after > 0 && list->seen == list->stop_after)
        return false;
    list->seen++;
    size_t length = strlen(list->text);
    (void)snprintf(list->text + length, sizeof list->text - length, "%s%s%s %s>%s\n", signs[change->kind],
                   change->type ? change->type : "", change->name ? change->name : "",
                   change->before ? change->before : "", change->after ? change->after : "");
    (void)snprintf(list->cursor, sizeof list->cursor, "%s", change->cursor ? change->cursor : "");
    (void)snprintf(list->commit, sizeof list->commit, "%s", change->commit);
    return true;
}

static void three_commits(sluice_graph *graph)
{
    (void)lib_commit(graph, "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":1,\"name\":\"Ada\"}}\n"
                            "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":2}}\n"
                            "{\"op\":\"insert\",\"edge\":\"KNOWS\",\"from\":1,\"to\":2}\n");
    (void)lib_commit(graph, "{\"op\":\"update\",\"node\":\"Person\",\"key\":1,\"set\":{\"age\":36}}\n");
    (void)lib_commit(graph, "{\"op\":\"delete\",\"node\":\"Person\",\"key\":2,\"detach\":true}\n");
}

static void a_difference_has_what_was_and_what_is(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *from = NULL, *to = NULL;
    listing there = {.stop_after = 0}, back = {.stop_after = 0}, one = {.stop_after = 1};
    three_commits(fixture->graph);
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, "2", &from, &err));
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &to, &err));
    ASSERT_OK(sluice_diff(from, to, list, &there, &err));
    assert_string_equal(there.text, "~Person{\"key\":1} {\"age\":null}>{\"age\":36}\n"
                                    "-Person{\"key\":2} {\"id\":2,\"name\":null,\"age\":null}>\n"
                                    "-KNOWS{\"from\":1,\"to\":2} {\"from\":1,\"to\":2,\"since\":null}>\n");
    ASSERT_OK(sluice_diff(to, from, list, &back, &err));
    assert_int_equal(back.seen, 3);
    ASSERT_OK(sluice_diff(from, to, list, &one, &err));
    assert_int_equal(one.seen, 1);
    sluice_snapshot_close(from);
    sluice_snapshot_close(to);
}

static void a_feed_goes_on_where_it_was_left(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_feed *feed = NULL;
    char cursor[SLUICE_CURSOR_TEXT];
    bool changed = false;
    three_commits(fixture->graph);
    listing whole = {.stop_after = 0};
    ASSERT_OK(sluice_feed_open(fixture->graph, NULL, NULL, &feed, &err));
    ASSERT_OK(sluice_feed_read(feed, list, &whole, &err));
    assert_int_equal(whole.seen, 9);
    sluice_feed_cursor(feed, cursor);
    assert_string_equal(cursor, whole.cursor);
    for (unsigned stop = 1; stop < whole.seen;
         stop++) { /* in the middle of commits, too: what was refused comes again */
        sluice_feed *part = NULL;
        listing first = {.stop_after = stop}, rest = {.stop_after = 0};
        ASSERT_OK(sluice_feed_open(fixture->graph, "main", "1", &part, &err));
        ASSERT_OK(sluice_feed_read(part, list, &first, &err));
        assert_int_equal(first.seen, stop);
        sluice_feed_cursor(part, cursor);
        assert_string_equal(cursor, first.cursor);
        sluice_feed_close(part);
        ASSERT_OK(sluice_feed_open(fixture->graph, NULL, cursor, &part, &err));
        ASSERT_OK(sluice_feed_read(part, list, &rest, &err));
        assert_int_equal(rest.seen, whole.seen - stop);
        assert_string_equal(whole.text + strlen(first.text), rest.text);
        sluice_feed_close(part);
    }
    do /* until nobody has anything more to tell */
        ASSERT_OK(sluice_feed_wait(feed, 0, &changed, &err));
    while (changed);
    sluice_receipt receipt =
        lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Note\",\"set\":{\"done\":true}}\n");
    listing last = {.stop_after = 0};
    ASSERT_OK(sluice_feed_wait(feed, 60000, &changed, &err));
    assert_true(changed);
    ASSERT_OK(sluice_feed_read(feed, list, &last, &err));
    assert_int_equal(last.seen, 2);
    assert_string_equal(last.commit, receipt.commit);
    sluice_feed_close(feed);
    assert_int_equal(sluice_feed_open(fixture->graph, NULL, "sc1x", &feed, &err), SLUICE_USAGE);
    assert_null(feed);
}

static void what_a_feed_would_need_may_be_collected(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_feed *feed = NULL;
    sluice_gc_result result;
    three_commits(fixture->graph);
    sluice_gc_options options = {.keep = 1, .dry_run = true};
    ASSERT_OK(sluice_gc(fixture->graph, &options, &result, &err));
    assert_true(result.generations > 0);
    ASSERT_OK(sluice_feed_open(fixture->graph, NULL, NULL, &feed, &err)); /* it was dry */
    sluice_feed_close(feed);
    options.dry_run = false;
    ASSERT_OK(sluice_gc(fixture->graph, &options, &result, &err));
    assert_int_equal(sluice_feed_open(fixture->graph, NULL, NULL, &feed, &err), SLUICE_NOT_FOUND);
    assert_non_null(strstr(err.details, "\"gap\":true"));
    assert_true(err.hint[0] != '\0');
    ASSERT_OK(sluice_feed_open(fixture->graph, NULL, "head", &feed, &err));
    sluice_feed_close(feed);
}

static bool take_conflict(void *context, const sluice_conflict *conflict)
{
    (void)snprintf(context, 256, "%s %s %s %s", conflict->kind, conflict->type, conflict->key,
                   conflict->property ? conflict->property : "");
    assert_int_equal(strlen(conflict->ours), 36);
    assert_int_equal(strlen(conflict->theirs), 36);
    return true;
}

static void set_name(sluice_graph *graph, const char *branch, int key, const char *name)
{
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_write_options options = {.branch = branch};
    ASSERT_OK(sluice_batch_new(&batch, &err));
    sluice_batch_begin(batch, SLUICE_UPSERT, SLUICE_NODE, "Person");
    sluice_batch_int64(batch, SLUICE_KEY, NULL, key);
    sluice_batch_text(batch, SLUICE_SET, "name", name, strlen(name));
    ASSERT_OK(sluice_batch_end(batch, &err));
    ASSERT_OK(sluice_commit(graph, batch, &options, NULL, &err));
    sluice_batch_free(batch);
}

static void branches_are_merged_or_their_conflicts_told(void **state)
{
    lib_fixture *fixture = *state;
    sluice_graph *graph = fixture->graph;
    sluice_error err = {0};
    sluice_merge_receipt receipt;
    char said[256] = "";
    three_commits(graph);
    ASSERT_OK(sluice_branch_create(graph, "side", NULL, &err));
    ASSERT_OK(sluice_merge(graph, "side", SLUICE_MERGE_FAIL, false, NULL, NULL, NULL, &receipt, &err));
    assert_int_equal(receipt.outcome, SLUICE_MERGE_UP_TO_DATE);
    assert_false(receipt.receipt.committed);
    set_name(graph, "side", 1, "theirs");
    ASSERT_OK(sluice_merge(graph, "side", SLUICE_MERGE_FAIL, false, NULL, NULL, NULL, &receipt, &err));
    assert_int_equal(receipt.outcome, SLUICE_MERGE_FAST_FORWARD);
    assert_true(receipt.receipt.committed && receipt.receipt.acknowledged);
    set_name(graph, "side", 1, "one");
    set_name(graph, NULL, 1, "two");
    assert_int_equal(sluice_merge(graph, "side", SLUICE_MERGE_FAIL, false, NULL, take_conflict, said, &receipt, &err),
                     SLUICE_MERGE_CONFLICT);
    assert_string_equal(said, "divergent-update Person 1 name");
    assert_int_equal(receipt.conflicts_found, 1);
    sluice_write_options options = {.message = "theirs it is"};
    ASSERT_OK(sluice_merge(graph, "side", SLUICE_MERGE_THEIRS, true, &options, NULL, NULL, &receipt, &err));
    assert_int_equal(receipt.outcome, SLUICE_MERGE_MERGED);
    assert_true(receipt.source_deleted);
    char *json = lib_get(graph, "Person", "1");
    assert_non_null(strstr(json, "\"one\""));
    sluice_free(json);
    assert_int_equal(sluice_merge(graph, "side", SLUICE_MERGE_FAIL, false, NULL, NULL, NULL, NULL, &err),
                     SLUICE_NOT_FOUND);
    options.dry_run = true;
    assert_int_equal(sluice_merge(graph, "main", SLUICE_MERGE_FAIL, false, &options, NULL, NULL, NULL, &err),
                     SLUICE_USAGE);
}

static bool count_checkpoint(void *context, const sluice_checkpoint *checkpoint)
{
    assert_string_equal(checkpoint->name, "kept");
    assert_int_equal(checkpoint->generation, 3);
    ++*(unsigned *)context;
    return true;
}

static void checkpoints_keep_what_collection_takes_elsewhere(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    sluice_receipt receipt;
    unsigned count = 0;
    three_commits(fixture->graph);
    ASSERT_OK(sluice_checkpoint_create(fixture->graph, "kept", NULL, "3", &err));
    assert_int_equal(sluice_checkpoint_create(fixture->graph, "kept", NULL, NULL, &err), SLUICE_ALREADY_EXISTS);
    ASSERT_OK(sluice_checkpoints(fixture->graph, count_checkpoint, &count, &err));
    assert_int_equal(count, 1);
    ASSERT_OK(sluice_gc(fixture->graph, &(sluice_gc_options){.keep = 1}, NULL, &err));
    assert_int_equal(sluice_snapshot_open(fixture->graph, NULL, "2", &snapshot, &err), SLUICE_NOT_FOUND);
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, "kept", &snapshot, &err));
    sluice_snapshot_close(snapshot);
    ASSERT_OK(sluice_revert(fixture->graph, "kept", NULL, &receipt, &err));
    assert_true(receipt.committed);
    assert_int_equal(lib_count(fixture->graph, "Person"), 2);
    ASSERT_OK(sluice_checkpoint_delete(fixture->graph, "kept", &err));
    assert_int_equal(sluice_checkpoint_delete(fixture->graph, "kept", &err), SLUICE_NOT_FOUND);
}

static void a_schema_is_applied_or_refused_whole(void **state)
{
    static const char wider[] = "{\"nodes\":{\"Person\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\","
                                "\"age\":\"int64?\",\"mail\":\"string?\"}}},\"edges\":{}}";
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_receipt receipt;
    three_commits(fixture->graph);
    assert_int_equal(sluice_schema_apply(fixture->graph, wider, sizeof wider - 1, false, NULL, &receipt, &err),
                     SLUICE_USAGE);
    assert_false(receipt.committed);
    ASSERT_OK(sluice_schema_apply(fixture->graph, wider, sizeof wider - 1, true, NULL, &receipt, &err));
    assert_true(receipt.committed);
    char *json = lib_get(fixture->graph, "Person", "1");
    assert_string_equal(json, "{\"id\":1,\"age\":36,\"mail\":null}");
    sluice_free(json);
    ASSERT_OK(sluice_schema_apply(fixture->graph, wider, sizeof wider - 1, true, NULL, &receipt, &err));
    assert_false(receipt.committed);
    assert_int_equal(sluice_schema_apply(fixture->graph, "{", 1, true, NULL, NULL, &err), SLUICE_INPUT_SYNTAX);
}

static void take_reject(void *context, const char *input, uint64_t line, const char *code, const char *text)
{
    char *said = context;
    const char *name = strrchr(input, '/');
    size_t length = strlen(said);
    assert_non_null(text);
    (void)snprintf(said + length, 256 - length, "%s:%u %s ", name ? name + 1 : input, (unsigned)line, code);
}

static void a_load_leaves_bad_rows_out_and_names_them(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_receipt receipt;
    char said[256] = "", *path = test_path(fixture->folder, "people.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("id,name,age\n1,a,1\n2,b,x\n1,c,3\n3,d,4\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    sluice_input input = {.type = "Person", .path = path};
    sluice_write_options options = {.context = said, .branch = "new"};
    sluice_load_options how = {.skip_bad_rows = true, .max_errors = 1, .reject = take_reject, .create_branch = true};
    assert_int_not_equal(sluice_load_with(fixture->graph, &input, 1, &how, &options, &receipt, &err), SLUICE_OK);
    assert_int_equal(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_INSERT, NULL, &receipt, &err),
                     SLUICE_CONSTRAINT_TYPE);
    how.max_errors = 0;
    said[0] = '\0';
    ASSERT_OK(sluice_load_with(fixture->graph, &input, 1, &how, &options, &receipt, &err));
    assert_true(receipt.committed);
    assert_int_equal(receipt.skipped, 2);
    assert_string_equal(said, "people.csv:3 CONSTRAINT_TYPE people.csv:4 KEY_CONFLICT ");
    assert_int_equal(lib_count(fixture->graph, "Person"), 0); /* of main */
    free(path);
}

static bool never(void *context, const sluice_change *change)
{
    (void)context;
    (void)change;
    return false;
}

static int use_in_child(void *context)
{
    sluice_error err = {0};
    bool changed;
    sluice_feed *feed = context;
    int refused = sluice_feed_read(feed, never, NULL, &err) == SLUICE_USAGE &&
                  sluice_feed_wait(feed, 0, &changed, &err) == SLUICE_USAGE;
    sluice_feed_close(feed);
    return refused ? 0 : 1;
}

static void a_feed_belongs_to_the_process_that_opened_it(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_feed *feed = NULL;
    bool changed;
    listing whole = {.stop_after = 0};
    three_commits(fixture->graph);
    ASSERT_OK(sluice_feed_open(fixture->graph, NULL, NULL, &feed, &err));
    ASSERT_OK(sluice_feed_wait(feed, 0, &changed, &err));
    test_child_expect_exit(test_child(use_in_child, feed), 0);
    sluice_close(fixture->graph); /* the feed keeps it */
    fixture->graph = NULL;
    ASSERT_OK(sluice_feed_read(feed, list, &whole, &err));
    assert_int_equal(whole.seen, 9);
    sluice_feed_close(feed);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_difference_has_what_was_and_what_is),
        IN_GRAPH(a_feed_goes_on_where_it_was_left),
        IN_GRAPH(what_a_feed_would_need_may_be_collected),
        IN_GRAPH(branches_are_merged_or_their_conflicts_told),
        IN_GRAPH(checkpoints_keep_what_collection_takes_elsewhere),
        IN_GRAPH(a_schema_is_applied_or_refused_whole),
        IN_GRAPH(a_load_leaves_bad_rows_out_and_names_them),
        IN_GRAPH(a_feed_belongs_to_the_process_that_opened_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
