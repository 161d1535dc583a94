/*
 * Rows that are attached to the record of their commit: read, found, verified and deleted like any others, at any
 * place of the history; moved into staged fragments by folds, whose number stays logarithmic.
 */
#include "rows_fixture.h"
#include "store/state/fold.h"
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

static sluice_status no_problem(void *context, const char *object, const char *problem, sluice_error *err)
{
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

static void a_fold_that_merged_is_void_when_somebody_published(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    for (int64_t id = 1; id <= ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    fold(fixture, 100, true);
    for (int64_t id = 200; id < 200 + ST_FOLD_AT; id++)
        insert(fixture, id, 1);
    st_view *base = fixture_head(fixture);
    st_fold merging = {0}, plain = {0};
    ASSERT_OK(st_fold_stage(fixture->graph, base, PERSON, true, "m", &merging, &err));
    ASSERT_OK(st_fold_stage(fixture->graph, base, PERSON, false, "p", &plain, &err));
    assert_true(merging.merged);
    assert_false(plain.merged);
    assert_true(st_fold_applies(&merging, st_view_table(base, PERSON), 0));
    insert(fixture, 300, 1);
    st_view *head = fixture_head(fixture);
    const st_table_entry *entry = st_view_table(head, PERSON);
    assert_false(st_fold_applies(&merging, entry, 0));
    assert_true(st_fold_applies(&merging, entry, 1)); /* the one edit is the write's own */
    assert_true(st_fold_applies(&plain, entry, 0));
    st_view_free(head);
    st_view_free(base);
    st_fold_free(&merging);
    st_fold_free(&plain);
}

static void rows_that_all_died_leave_nothing(void **state)
{
    graph_fixture *fixture = *state;
    uint64_t rows[ST_FOLD_AT];
    uint32_t attached;
    for (uint32_t i = 0; i < ST_FOLD_AT; i++) {
        insert(fixture, i + 1, 1);
        rows[i] = ST_ROW_BLOCK + i;
    }
    (void)rows_delete(fixture, PERSON, rows, ST_FOLD_AT);
    fold(fixture, 500, true);
    assert_int_equal(fragments(fixture, &attached), 1);
    assert_int_equal(attached, 1);
    assert_scan(fixture, NULL, "32:[500,null,0]\n");
    assert_whole(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attached_rows_are_read_like_others, make, unmake),
        cmocka_unit_test_setup_teardown(an_attached_commit_makes_no_file, make, unmake),
        cmocka_unit_test_setup_teardown(a_fold_moves_attached_rows_into_a_file, make, unmake),
        cmocka_unit_test_setup_teardown(small_fragments_are_merged_in_levels, make, unmake),
        cmocka_unit_test_setup_teardown(a_fold_that_merged_is_void_when_somebody_published, make, unmake),
        cmocka_unit_test_setup_teardown(rows_that_all_died_leave_nothing, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
