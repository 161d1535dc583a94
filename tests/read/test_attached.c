/*
 * Rows that are attached to the record of their commit: read, found, verified and deleted like any others, at any
 * place of the history; moved into staged fragments by folds, whose number stays logarithmic.
 */
#include "rows_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make(void **state)
{
    graph_fixture *fixture = calloc(1, sizeof(*fixture));
    graph_fixture_make(fixture, 7);
    *state = fixture;
    rows_attached = true;
    return 0;
}

static int unmake(void **state)
{
    rows_attached = false;
    graph_fixture_free(*state);
    free(*state);
    return 0;
}

static pf_id insert(graph_fixture *fixture, int64_t first, uint64_t count)
{
    st_edit_add add = rows_persons(fixture, first, count, 9, false);
    return rows_publish(fixture, PERSON, &add);
}

static sluice_status no_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    (void)err;
    print_error("%s: %s\n", object, problem);
    fail();
    return SLUICE_OK;
}

static void assert_whole(graph_fixture *fixture)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    ASSERT_OK(st_graph_verify(fixture->graph, false, no_problem, NULL, &checked, &err));
    assert_true(checked > 2);
}

static bool always(void *context, uint64_t table)
{
    (void)context;
    (void)table;
    return true;
}

/* Publishes one more person, and a fold with it. */
static void fold(graph_fixture *fixture, int64_t id, bool merge)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    char stem[40];
    st_view *view = fixture_head(fixture);
    st_edit_add add = rows_persons(fixture, id, 1, 9, false);
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, PERSON, &add);
    fixture_name(fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_folds(fixture->graph, view, &delta, stem, merge ? always : NULL, NULL, &err));
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_view_free(view);
}

static uint32_t fragments(graph_fixture *fixture, uint32_t *ret_attached)
{
    sluice_error err = {0};
    st_view *view = fixture_head(fixture);
    st_table_list list = {0};
    uint64_t rows = 0, bytes = 0;
    *ret_attached = 0;
    ASSERT_OK(st_table_materialise(fixture->graph, view, PERSON, &list, &err));
    for (uint32_t i = 0; i < list.count; i++) {
        *ret_attached += list.fragments[i].fragment.attached;
        rows += list.fragments[i].fragment.rows - list.dead_count[i];
        bytes += list.fragments[i].fragment.bytes;
    }
    const st_table_entry *entry = st_view_table(view, PERSON);
    assert_int_equal(rows, entry->rows);
    assert_int_equal(bytes, entry->bytes);
    uint32_t count = list.count;
    st_table_list_free(&list);
    st_view_free(view);
    return count;
}

static void assert_scan(graph_fixture *fixture, const char *at, const char *want)
{
    st_snapshot *snapshot = rows_open(fixture->graph, at);
    char *rows = rows_scan(snapshot, "Person", NULL, 0);
    assert_string_equal(rows, want);
    free(rows);
    st_snapshot_close(snapshot);
}

static void attached_rows_are_read_like_others(void **state)
{
    graph_fixture *fixture = *state;
    char first[PF_ID_TEXT];
    pf_id commit = insert(fixture, 1, 2);
    pf_id_text(&commit, first);
    insert(fixture, 7, 1);
    graph_fixture_reopen(fixture);
    assert_scan(fixture, NULL, "0:[1,\"p1\",1]\n1:[2,\"p2\",2]\n2:[7,\"p7\",7]\n");
    uint64_t row = ST_ROW_BLOCK + 1;
    (void)rows_delete(fixture, PERSON, &row, 1);
    assert_scan(fixture, NULL, "0:[1,\"p1\",1]\n2:[7,\"p7\",7]\n");
    assert_scan(fixture, first, "0:[1,\"p1\",1]\n1:[2,\"p2\",2]\n");
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    assert_true(rows_has_person(snapshot, 7));
    assert_false(rows_has_person(snapshot, 2));
    st_snapshot_close(snapshot);
    assert_whole(fixture);
}

static sluice_status count_name(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    (void)name;
    (void)kind;
    (void)err;
    ++*(unsigned *)context;
    return SLUICE_OK;
}

static void an_attached_commit_makes_no_file(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    unsigned names = 0;
    insert(fixture, 1, 2);
    ASSERT_OK(pf_list(st_graph_volume(fixture->graph), "tables/64/fragments", count_name, &names, &err));
    assert_int_equal(names, 0);
}

static void a_fold_moves_attached_rows_into_a_file(void **state)
{
    graph_fixture *fixture = *state;
    uint32_t attached;
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    uint64_t row = ST_ROW_BLOCK + 4;
    (void)rows_delete(fixture, PERSON, &row, 1);
    assert_int_equal(fragments(fixture, &attached), ST_FOLD_AT);
    assert_int_equal(attached, ST_FOLD_AT);
    st_snapshot *before = rows_open(fixture->graph, NULL);
    fold(fixture, 100, false);
    assert_true(rows_has_person(before, 1)); /* as it was */
    st_snapshot_close(before);
    assert_int_equal(fragments(fixture, &attached), 2);
    assert_int_equal(attached, 1);
    graph_fixture_reopen(fixture);
    st_snapshot *after = rows_open(fixture->graph, NULL);
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        assert_int_equal(rows_has_person(after, id), id != 5);
    assert_true(rows_has_person(after, 100));
    st_snapshot_close(after);
    assert_whole(fixture);
    /* deleted by id, where it lies now */
    row = ST_ROW_BLOCK + 7;
    (void)rows_delete(fixture, PERSON, &row, 1);
    after = rows_open(fixture->graph, NULL);
    assert_false(rows_has_person(after, 8));
    st_snapshot_close(after);
    assert_whole(fixture);
}

static void small_fragments_are_merged_in_levels(void **state)
{
    graph_fixture *fixture = *state;
    uint32_t attached, most = 0;
    int64_t id = 1;
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i + 1 < ST_FOLD_AT; i++)
            insert(fixture, id++, 1);
        fold(fixture, id++, true);
        uint32_t count = fragments(fixture, &attached);
        most = count - attached > most ? count - attached : most;
    }
    assert_true(most <= 6); /* of 1,280 rows in 40 folds */
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    for (int64_t k = 1; k < id; k++)
        assert_true(rows_has_person(snapshot, k));
    st_snapshot_close(snapshot);
    assert_whole(fixture);
}

/* A delta of one row more, with a fold that merges upon the head as it is now. */
static void stage_merging(graph_fixture *fixture, int64_t id, st_delta *ret_delta)
{
    sluice_error err = {0};
    char stem[40];
    st_view *base = fixture_head(fixture);
    st_edit_add add = rows_persons(fixture, id, 1, 9, false);
    fixture_delta(fixture, ret_delta);
    fixture_add(fixture, ret_delta, PERSON, &add);
    fixture_name(fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_folds(fixture->graph, base, ret_delta, stem, always, NULL, &err));
    assert_int_equal(ret_delta->fold_count, 1);
    assert_true(ret_delta->folds[0].merged);
    st_view_free(base);
}

static uint32_t edits(graph_fixture *fixture)
{
    st_view *view = fixture_head(fixture);
    uint32_t count = st_view_table(view, PERSON)->edit_count;
    st_view_free(view);
    return count;
}

/* Rows that came and went behind it, in other generations and in its own, are no hindrance. */
static void a_fold_that_merges_is_applied_behind_others_commits(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    const uint64_t gone[] = {ST_ROW_BLOCK + 3, ST_ROW_BLOCK + ST_FOLD_AT + 5};
    st_delta other, delta, *deltas[2] = {&other, &delta};
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    fold(fixture, 100, true);
    for (int64_t id = 200; id < 200 + ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    stage_merging(fixture, 400, &delta);
    insert(fixture, 300, 1);
    (void)rows_delete(fixture, PERSON, gone, 2);
    st_edit_add add = rows_persons(fixture, 301, 1, 9, false);
    fixture_delta(fixture, &other);
    fixture_add(fixture, &other, PERSON, &add);
    ASSERT_OK(fixture_publish(fixture, deltas, 2, &err));
    assert_int_equal(edits(fixture), 4);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    for (int64_t id = 1; id <= ST_FOLD_AT; id++) {
        assert_int_equal(rows_has_person(snapshot, id), id != 4);
        assert_int_equal(rows_has_person(snapshot, 199 + id), id != 5);
    }
    assert_true(rows_has_person(snapshot, 300) && rows_has_person(snapshot, 301) && rows_has_person(snapshot, 400));
    st_snapshot_close(snapshot);
    st_delta_free(&other);
    st_delta_free(&delta);
    assert_whole(fixture);
}

/* Takes the first staged fragment of the table out, and brings it in again by its own name. */
static void substitute_one(graph_fixture *fixture)
{
    sluice_error err = {0};
    st_table_list list = {0};
    st_edit edit = {.table = PERSON};
    st_delta delta, *deltas[1] = {&delta};
    char stem[40];
    uint32_t at = 0;
    st_view *head = fixture_head(fixture);
    ASSERT_OK(st_table_materialise(fixture->graph, head, PERSON, &list, &err));
    while (list.fragments[at].fragment.attached)
        at++;
    edit.out = calloc(1, sizeof *edit.out);
    edit.out_count = 1;
    (void)snprintf(edit.out[0].fragment, sizeof edit.out[0].fragment, "%s", list.fragments[at].fragment.name);
    edit.out[0].bytes = list.fragments[at].fragment.bytes;
    edit.adds = calloc(1, sizeof *edit.adds);
    edit.add_count = 1;
    edit.adds[0] = list.fragments[at];
    list.fragments[at].runs = NULL; /* they are the edit's now */
    list.fragments[at].run_count = 0;
    fixture_delta(fixture, &delta);
    fixture_name(fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), &delta, &edit, stem, &err));
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_table_list_free(&list);
    st_view_free(head);
}

static void a_fold_that_merged_is_void_when_fragments_were_taken_out(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    fold(fixture, 100, true);
    for (int64_t id = 200; id < 200 + ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    stage_merging(fixture, 400, &delta);
    substitute_one(fixture);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    assert_true(edits(fixture) > ST_FOLD_AT);
    st_snapshot *snapshot = rows_open(fixture->graph, NULL);
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        assert_true(rows_has_person(snapshot, id) && rows_has_person(snapshot, 199 + id));
    st_snapshot_close(snapshot);
    st_delta_free(&delta);
    assert_whole(fixture);
}

static void rows_that_all_died_leave_nothing(void **state)
{
    graph_fixture *fixture = *state;
    uint64_t rows[ST_FOLD_AT];
    uint32_t attached;
    char left[64];
    for (uint32_t i = 0; i < ST_FOLD_AT; i++) {
        insert(fixture, i + 1, 1);
        rows[i] = ST_ROW_BLOCK + i;
    }
    (void)rows_delete(fixture, PERSON, rows, ST_FOLD_AT);
    fold(fixture, 500, true);
    assert_int_equal(fragments(fixture, &attached), 1);
    assert_int_equal(attached, 1);
    (void)snprintf(left, sizeof left, "%u:[500,null,0]\n", ST_FOLD_AT);
    assert_scan(fixture, NULL, left);
    assert_whole(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attached_rows_are_read_like_others, make, unmake),
        cmocka_unit_test_setup_teardown(an_attached_commit_makes_no_file, make, unmake),
        cmocka_unit_test_setup_teardown(a_fold_moves_attached_rows_into_a_file, make, unmake),
        cmocka_unit_test_setup_teardown(small_fragments_are_merged_in_levels, make, unmake),
        cmocka_unit_test_setup_teardown(a_fold_that_merges_is_applied_behind_others_commits, make, unmake),
        cmocka_unit_test_setup_teardown(a_fold_that_merged_is_void_when_fragments_were_taken_out, make, unmake),
        cmocka_unit_test_setup_teardown(rows_that_all_died_leave_nothing, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
