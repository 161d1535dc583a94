/*
 * A commit that folds, cut short at every call by the death of its process or by power loss: the list is what it was or
 * what it became, whole, and the next writer folds and goes on.
 */
#include "tests/support/graph_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Publishes one fragment of 2 rows (and, with `rows`, deletes these), with a fold; false when a call failed. */
static bool folding_commit(graph_fixture *fixture, const uint64_t *rows, uint32_t count)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_view *view = NULL;
    char stem[40];
    st_edit_add add = fixture_fake_add(fixture, 2);
    st_edit edit = {.table = PERSON, .adds = malloc(sizeof(add)), .add_count = 1};
    assert_non_null(edit.adds);
    edit.adds[0] = add;
    if (count > 0) {
        edit.delete_rows = calloc(count, sizeof(*rows));
        assert_non_null(edit.delete_rows);
        memcpy(edit.delete_rows, rows, count * sizeof(*rows));
        edit.delete_count = count;
    }
    fixture_delta(fixture, &delta);
    fixture_name(fixture, "", stem, sizeof(stem));
    bool done = st_delta_add_edit(st_graph_volume(fixture->graph), &delta, &edit, stem, &err) == SLUICE_OK &&
                st_view_load(fixture->graph, fixture->log, true, &view, &err) == SLUICE_OK &&
                st_delta_add_folds(fixture->graph, view, &delta, stem, NULL, NULL, &err) == SLUICE_OK;
    if (done) {
        pf_buffer manifest = {0}, attachments = {0};
        st_append_outcome outcome = ST_APPEND_NOT;
        pf_sha256 digest;
        done = lk_take(fixture->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(1000), &err) == SLUICE_OK;
        if (done)
            done =
                st_generation_build(fixture->graph, view, deltas, 1, 0, &manifest, &attachments, &err) == SLUICE_OK &&
                st_log_append(fixture->log, &manifest, &attachments, NULL, &outcome, &digest, &err) == SLUICE_OK;
        lk_release(fixture->locks, LK_BYTE_PUBLISH);
        pf_buffer_free(&manifest);
        pf_buffer_free(&attachments);
    }
    st_view_free(view);
    st_delta_free(&delta);
    return done;
}

/* Living rows of the table; *ret_folded: nothing stands behind the folded list but the newest edit. */
static uint64_t look(graph_fixture *fixture, bool *ret_folded)
{
    sluice_error err = {0};
    st_table_list list = {0};
    uint64_t rows = 0;
    st_view *view = fixture_head(fixture);
    const st_table_entry *entry = st_view_table(view, PERSON);
    *ret_folded = entry->edit_count == 1 && entry->page_count > 0;
    ASSERT_OK(st_table_materialise(fixture->graph, view, PERSON, &list, &err));
    for (uint32_t i = 0; i < list.count; i++)
        rows += list.fragments[i].fragment.rows - list.dead_count[i];
    assert_int_equal(rows, entry->rows);
    st_table_list_free(&list);
    st_view_free(view);
    return rows;
}

static void publish_small(graph_fixture *fixture)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit_add add = fixture_fake_add(fixture, 400);
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, PERSON, &add);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
}

static void a_fold_cut_short_leaves_the_old_list_or_the_new_one(void **state)
{
    static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_RANDOM, PF_SIM_TEAR_LAST};
    (void)state;
    graph_fixture base;
    uint64_t many[300];
    bool folded = false;
    unsigned olds = 0, news = 0;
    graph_fixture_make(&base, 77);
    for (uint32_t i = 0; i < ST_FOLD_AT - 1; i++)
        publish_small(&base);
    for (uint32_t i = 0; i < 300; i++)
        many[i] = ST_ROW_BLOCK + i;                /* enough for a dead set in a file of its own, once folded */
    assert_true(folding_commit(&base, many, 300)); /* not yet: 31 edits stood before it */
    uint64_t before = look(&base, &folded);
    assert_false(folded);
    for (uint64_t k = 1; k < 40; k++) {
        bool any = false;
        for (unsigned c = 0; c < 6; c++) {
            graph_fixture one;
            graph_fixture_clone(&base, 1000 + k * 10 + c, &one);
            pf_volume *volume = st_graph_volume(one.graph);
            pf_sim_crash_at(volume, k, c & 1, c == 0 ? PF_SIM_DIE : PF_SIM_POWER_LOSS, losses[c == 0 ? 0 : c % 4]);
            bool done = folding_commit(&one, NULL, 0);
            any = any || pf_sim_is_dead(volume);
            graph_fixture_reopen(&one);
            uint64_t after = look(&one, &folded);
            assert_true(after == before + 2 || (after == before && !done));
            assert_true(after == before || folded);
            olds += after == before;
            news += after == before + 2;
            sluice_error err = {0};
            st_log_position end = st_log_end(one.log);
            if (end.number > end.acknowledged)
                ASSERT_OK(st_log_settle(one.log, &err));
            assert_true(folding_commit(&one, NULL, 0)); /* the next writer */
            assert_int_equal(look(&one, &folded), after + 2);
            assert_int_equal(folded, after == before); /* one edit, or the next fold is far */
            graph_fixture_free(&one);
        }
        if (!any)
            break;
        assert_true(k < 39);
    }
    assert_true(olds > 0 && news > 0);
    graph_fixture_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_fold_cut_short_leaves_the_old_list_or_the_new_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
