/*
 * Verify: a whole graph is whole; one flipped byte in any file that it reaches is named, and no answer is given from
 * it; rows that break keys, unique tuples or ends are found; a reader of a damaged graph answers right or not at all.
 */
#include "rows_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct problems {
    uint32_t count;
    char text[4096];
} problems;

static sluice_status note_problem(void *context, const char *object, const char *type, const char *problem,
                                  sluice_error *err)
{
    (void)type;
    problems *all = context;
    size_t length = strlen(all->text);
    (void)err;
    all->count++;
    (void)snprintf(all->text + length, sizeof(all->text) - length, "%s: %s\n", object, problem);
    return SLUICE_OK;
}

static problems verify(st_graph *graph, bool quick)
{
    sluice_error err = {0};
    problems all = {0};
    uint64_t checked = 0;
    ASSERT_OK(st_graph_verify(graph, quick, note_problem, &all, &checked, &err));
    if (all.count == 0)
        assert_true(checked > 5);
    return all;
}

static void add_rows(graph_fixture *fixture, uint64_t table, st_edit_add add)
{
    (void)rows_publish(fixture, table, &add);
}

/* A graph that has everything: runs, deletions listed and in a file, a fold with a dead set in a file, a staged edit.
 */
static void fill(graph_fixture *fixture)
{
    sluice_error err = {0};
    static const int64_t from[] = {1, 2, 3}, to[] = {2, 3, 3};
    static const uint64_t notes[] = {ST_ROW_BLOCK + 600};
    static const int64_t about[] = {5};
    st_row_set *set = NULL;
    st_delta delta, *deltas[1] = {&delta};
    add_rows(fixture, PERSON, rows_persons(fixture, 1, 600, 100, true));
    add_rows(fixture, NOTE, rows_notes(fixture, 3));
    add_rows(fixture, KNOWS, rows_knows(fixture, from, to, 3));
    add_rows(fixture, ABOUT, rows_about(fixture, notes, about, 1));
    uint64_t gone[] = {ST_ROW_BLOCK + 599};
    (void)rows_delete(fixture, PERSON, gone, 1);

    ASSERT_OK(st_row_set_new(&set, &err));
    for (uint64_t row = 300; row < 590; row++)
        ASSERT_OK(st_row_set_add(set, ST_ROW_BLOCK + row, &err));
    st_edit edit = {.table = PERSON};
    ASSERT_OK(st_deletion_write(st_graph_volume(fixture->graph), PERSON, "many.bits", set, &edit.deletes, &err));
    st_row_set_free(set);
    fixture_delta(fixture, &delta);
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), &delta, &edit, "deletes", &err));
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);

    st_view *view = fixture_head(fixture);
    st_edit_add add = rows_persons(fixture, 9000, 2, 9, true);
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, PERSON, &add);
    delta.folds = calloc(1, sizeof(st_fold));
    assert_non_null(delta.folds);
    ASSERT_OK(st_fold_stage(fixture->graph, view, PERSON, false, "fold", &delta.folds[0], &err));
    delta.fold_count = 1;
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_view_free(view);
    view = fixture_head(fixture);
    assert_int_equal(st_view_table(view, PERSON)->page_count, 1);
    assert_int_equal(st_view_table(view, PERSON)->edit_count, 1);
    st_view_free(view);
}

static int make(void **state)
{
    static graph_fixture fixture;
    graph_fixture_make(&fixture, 31337);
    *state = &fixture;
    return 0;
}

static int unmake(void **state)
{
    graph_fixture_free(*state);
    return 0;
}

static void a_whole_graph_has_no_problems(void **state)
{
    graph_fixture *fixture = *state;
    fill(fixture);
    st_graph *reader = graph_fixture_open(fixture, PF_READ);
    problems all = verify(reader, false);
    assert_string_equal(all.text, "");
    all = verify(reader, true);
    assert_string_equal(all.text, "");
    const pf_counters *counters = pf_volume_counters(st_graph_volume(reader));
    assert_int_equal(counters->writes + counters->creates + counters->file_syncs + counters->directory_syncs, 0);
    st_graph_close(reader);
}

/* ---- one flipped byte ---- */

typedef struct file_list {
    pf_volume *volume;
    char folder[200];
    char paths[200][200];
    uint32_t count;
} file_list;

static sluice_status note_file(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    file_list *files = context;
    char path[200], before[200];
    int length = snprintf(path, sizeof(path), "%s%s%s", files->folder, files->folder[0] ? "/" : "", name);
    assert_true(length > 0 && (size_t)length < sizeof(path));
    if (kind == PF_KIND_FILE) {
        assert_true(files->count < 200);
        memcpy(files->paths[files->count++], path, sizeof(path));
        return SLUICE_OK;
    }
    memcpy(before, files->folder, sizeof(before));
    memcpy(files->folder, path, sizeof(path));
    sluice_status status = pf_list(files->volume, path, note_file, files, err);
    memcpy(files->folder, before, sizeof(before));
    return status;
}

/* Everything that a reader would answer; NULL when it refuses to. */
static char *answers(st_graph *graph)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    pf_buffer text = {0};
    static const char *const types[] = {"Person", "Note", "KNOWS", "ABOUT"};
    sluice_status status = st_snapshot_open(graph, "main", NULL, &snapshot, &err);
    for (int t = 0; t < 4 && status == SLUICE_OK; t++) {
        st_scan *scan = NULL;
        const st_batch *batch = NULL;
        const st_type_def *type = NULL;
        status = st_snapshot_type(snapshot, types[t], &type, &err);
        if (status == SLUICE_OK)
            status = st_scan_open(snapshot, type, NULL, 0, &scan, &err);
        while (status == SLUICE_OK && (status = st_scan_next(scan, &batch, &err)) == SLUICE_OK && batch)
            for (uint64_t row = 0; row < batch->rows && status == SLUICE_OK; row++)
                for (uint32_t i = 0; i < batch->column_count && status == SLUICE_OK; i++)
                    status = st_value_json(&batch->columns[i], row, &text, &err);
        st_scan_close(scan);
    }
    for (int64_t id = 0; id < 20 && status == SLUICE_OK; id++) {
        st_table_reader *reader = NULL;
        st_column column = {.type = ST_INT64, .length = 1, .values = &id};
        const st_column *key[1] = {&column};
        bool found = false;
        uint32_t fragment;
        uint64_t position;
        status = st_table_reader_get(snapshot, PERSON, &reader, &err);
        if (status == SLUICE_OK)
            status = st_table_find_key(reader, key, 1, 0, &found, &fragment, &position, &err);
        if (status == SLUICE_OK)
            status = pf_buffer_append_text(&text, found ? "y" : "n", &err);
    }
    st_snapshot_close(snapshot);
    if (status == SLUICE_OK)
        status = pf_buffer_append(&text, "", 1, &err);
    if (status == SLUICE_OK)
        return (char *)text.data;
    assert_int_equal(status, SLUICE_CORRUPT);
    pf_buffer_free(&text);
    return NULL;
}

/* Files that verify must know every byte of. */
static bool is_reached(const char *path)
{
    return strncmp(path, "tables/", 7) == 0 || strncmp(path, "schema/", 7) == 0 || strncmp(path, "refs/", 5) == 0;
}

static void check_flip(graph_fixture *fixture, const char *path, uint64_t offset, uint8_t mask, const char *truth)
{
    sluice_error err = {0};
    char full[220];
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    (void)snprintf(full, sizeof(full), "g/%s", path);
    ASSERT_OK(pf_sim_flip(fixture->disk, full, offset, mask, &err));
    ASSERT_OK(pf_sim_actor(fixture->disk, "g", &volume, &err));
    if (st_graph_open_on(volume, PF_READ, &graph, &err) == SLUICE_OK) {
        char *answer = answers(graph);
        if (answer && strcmp(answer, truth) != 0)
            fail_msg("%s at %llu: another answer", path, (unsigned long long)offset);
        free(answer);
        problems all = verify(graph, false);
        if (is_reached(path) && !strstr(all.text, strncmp(path, "refs/", 5) == 0 ? "refs" : path))
            fail_msg("%s at %llu is not named:\n%s", path, (unsigned long long)offset, all.text);
        st_graph_close(graph);
    } else {
        assert_true(err.code == SLUICE_CORRUPT || err.code == SLUICE_UNSUPPORTED_FORMAT);
    }
    ASSERT_OK(pf_sim_flip(fixture->disk, full, offset, mask, &err));
}

static void a_flipped_byte_is_named_and_never_answered_from(void **state) /* N-03 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    static file_list files;
    uint64_t seed = 12345;
    fill(fixture);
    char *truth = answers(fixture->graph);
    assert_non_null(truth);
    files = (file_list){.volume = st_graph_volume(fixture->graph)};
    ASSERT_OK(pf_list(files.volume, "", note_file, &files, &err));
    assert_true(files.count > 20);
    for (uint32_t i = 0; i < files.count; i++) {
        pf_stat stat;
        ASSERT_OK(pf_stat_path(files.volume, files.paths[i], &stat, &err));
        bool reached = is_reached(files.paths[i]), log = strstr(files.paths[i], ".seg") != NULL;
        for (int n = 0; n < (reached ? 12 : log ? 24 : 2) && stat.size > 0; n++)
            check_flip(fixture, files.paths[i], fixture_below(&seed, stat.size),
                       (uint8_t)(1u << fixture_below(&seed, 8)), truth);
    }
    free(truth);
}

static void a_missing_file_is_named(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    static file_list files;
    fill(fixture);
    files = (file_list){.volume = st_graph_volume(fixture->graph), .folder = "tables"};
    ASSERT_OK(pf_list(files.volume, "tables", note_file, &files, &err));
    for (uint32_t i = 0; i < files.count; i++) {
        const char *path = files.paths[i];
        ASSERT_OK(pf_publish(files.volume, path, "cache/away", &err));
        problems all = verify(fixture->graph, true);
        if (!strstr(all.text, path))
            fail_msg("%s is not named:\n%s", path, all.text);
        ASSERT_OK(pf_publish(files.volume, "cache/away", path, &err));
    }
    problems all = verify(fixture->graph, false);
    assert_string_equal(all.text, "");
}

static void rows_that_break_rules_are_found(void **state)
{
    graph_fixture *fixture = *state;
    static const int64_t from[] = {1, 2, 77}, to[] = {2, 88, 1}; /* two ends that do not exist */
    static const uint64_t notes[] = {ST_ROW_BLOCK + 3, ST_ROW_BLOCK + 4};
    static const int64_t about[] = {1, 2};
    add_rows(fixture, PERSON, rows_persons(fixture, 1, 3, 9, true));
    add_rows(fixture, NOTE, rows_notes(fixture, 1)); /* row id 3 */
    problems all = verify(fixture->graph, false);
    assert_string_equal(all.text, "");
    add_rows(fixture, PERSON, rows_persons(fixture, 3, 1, 9, true)); /* key 3 again */
    add_rows(fixture, KNOWS, rows_knows(fixture, from, to, 3));
    add_rows(fixture, KNOWS, rows_knows(fixture, from, to, 1));     /* the same edge again */
    add_rows(fixture, ABOUT, rows_about(fixture, notes, about, 2)); /* no note has row id 4 */
    all = verify(fixture->graph, false);
    assert_non_null(strstr(all.text, "row 0: its key is that of row 2 of tables/64/fragments/"));
    assert_non_null(strstr(all.text, "row 0: its key is that of row 0 of tables/66/fragments/"));
    assert_non_null(strstr(all.text, "row 2: the node at its from end does not exist"));
    assert_non_null(strstr(all.text, "row 1: the node at its to end does not exist"));
    assert_non_null(strstr(all.text, "row 1: the node at its from end does not exist"));
    assert_int_equal(all.count, 5);
    all = verify(fixture->graph, true);
    assert_string_equal(all.text, ""); /* quick looks at no rows */
}

static void totals_that_do_not_fit_are_found(void **state)
{
    graph_fixture *fixture = *state;
    add_rows(fixture, PERSON, rows_persons(fixture, 1, 3, 9, true));
    add_rows(fixture, PERSON, rows_persons(fixture, 11, 3, 9, true));
    uint64_t twice[] = {ST_ROW_BLOCK + 1};
    (void)rows_delete(fixture, PERSON, twice, 1);
    (void)rows_delete(fixture, PERSON, twice, 1); /* as no arbitrated write would */
    problems all = verify(fixture->graph, true);
    assert_int_equal(all.count, 1);
    assert_non_null(strstr(all.text, "tables/64: its entry says 4 rows"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_graph_has_no_problems, make, unmake),
        cmocka_unit_test_setup_teardown(a_flipped_byte_is_named_and_never_answered_from, make, unmake),
        cmocka_unit_test_setup_teardown(a_missing_file_is_named, make, unmake),
        cmocka_unit_test_setup_teardown(rows_that_break_rules_are_found, make, unmake),
        cmocka_unit_test_setup_teardown(totals_that_do_not_fit_are_found, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
