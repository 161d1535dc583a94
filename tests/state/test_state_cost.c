/*
 * The cost of a commit and of opening does not grow with the number of small commits (G-09): counted at 1,000, 5,000
 * and 10,000 commits into one table, each with one fragment, folding along the way.
 */
#include "platform/sim.h"
#include "tests/support/graph_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 1000u /* commits that are averaged: longer than a segment lasts */
/* Counts do not depend on the build: with sanitizers, which are slow, the first windows are enough. */
#if defined(__SANITIZE_ADDRESS__)
#define WINDOWS 3u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WINDOWS 3u
#endif
#endif
#define GROUP 32u
#ifndef WINDOWS
#define WINDOWS 10u
#endif

typedef struct cost {
    double calls, syncs, written, read;
    uint64_t greatest_syncs; /* of one commit that neither folds nor opens a segment */
} cost;

static void one_commit(graph_fixture *fixture, bool *ret_folded)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit_add add = fixture_fake_add(fixture, 3);
    char stem[40];
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, PERSON, &add);
    st_view *view = fixture_head(fixture);
    fixture_name(fixture, "-f", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_folds(fixture->graph, view, &delta, stem, NULL, NULL, &err));
    st_view_free(view);
    *ret_folded = delta.fold_count > 0;
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
}

static cost run_window(graph_fixture *fixture)
{
    pf_volume *volume = st_graph_volume(fixture->graph);
    cost sum = {0};
    for (unsigned i = 0; i < WINDOW; i++) {
        bool folded = false;
        uint64_t segment = st_log_end(fixture->log).segment;
        pf_volume_counters_reset(volume);
        one_commit(fixture, &folded);
        const pf_counters *counters = pf_volume_counters(volume);
        sum.calls += (double)counters->calls / WINDOW;
        sum.syncs += (double)(counters->file_syncs + counters->directory_syncs) / WINDOW;
        sum.written += (double)counters->bytes_written / WINDOW;
        sum.read += (double)counters->bytes_read / WINDOW;
        if (!folded && segment == st_log_end(fixture->log).segment && counters->file_syncs > sum.greatest_syncs)
            sum.greatest_syncs = counters->file_syncs;
    }
    return sum;
}

static cost open_cost(graph_fixture *fixture)
{
    sluice_error err = {0};
    st_graph *graph = graph_fixture_open(fixture, PF_READ);
    st_log *log = NULL;
    st_view *view = NULL;
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    ASSERT_OK(st_view_load(graph, log, true, &view, &err));
    const pf_counters *counters = pf_volume_counters(st_graph_volume(graph));
    cost sum = {.calls = (double)counters->calls, .read = (double)counters->bytes_read};
    st_view_free(view);
    st_graph_close(graph);
    return sum;
}

static void assert_flat(double early, double late, double factor, const char *what)
{
    if (late > early * factor)
        fail_msg("%s grew from %.1f to %.1f", what, early, late);
}

static void ten_thousand_commits_cost_the_same_each(void **state)
{
    (void)state;
    graph_fixture fixture;
    sluice_error err = {0};
    cost at[WINDOWS], opened[WINDOWS];
    graph_fixture_make(&fixture, 17);
    for (unsigned k = 0; k < WINDOWS; k++) {
        at[k] = run_window(&fixture);
        opened[k] = open_cost(&fixture);
        assert_int_equal(at[k].greatest_syncs, 1); /* a commit is one flush */
    }
    for (unsigned k = WINDOWS / 2; k < WINDOWS; k++) {
        assert_flat(at[1].calls, at[k].calls, 1.15, "calls of a commit");
        assert_flat(at[1].syncs, at[k].syncs, 1.15, "syncs of a commit");
        assert_flat(at[1].written, at[k].written, 1.5,
                    "bytes written by a commit"); /* the table of receipts fills up */
        assert_flat(at[1].read, at[k].read, 1.5, "bytes read by a commit");
        assert_flat(opened[1].calls, opened[k].calls, 1.15, "calls of opening");
        assert_true(opened[k].read < 7.0 * 1024 * 1024); /* one segment and its opening record */
    }
    st_view *view = fixture_head(&fixture);
    const st_table_entry *entry = st_view_table(view, PERSON);
    assert_int_equal(entry->rows, 3 * WINDOWS * WINDOW);
    assert_true(entry->edit_count <= ST_FOLD_AT);
    assert_true(entry->page_count <= 3 * 8);
    st_table_list list = {0};
    ASSERT_OK(st_table_materialise(fixture.graph, view, PERSON, &list, &err));
    assert_int_equal(list.count, WINDOWS * WINDOW);
    for (uint32_t i = 0; i < list.count; i++)
        assert_int_equal(list.fragments[i].first_row, ST_ROW_BLOCK + 3 * (uint64_t)i);
    st_table_list_free(&list);
    st_view_free(view);

    /* the first commits are still found, by id and by operation only while the table of receipts keeps them */
    st_record record = {0};
    st_generation generation = {0};
    uint64_t found_at = 0;
    uint32_t index = 9;
    bool found = false;
    st_receipt receipt;
    ASSERT_OK(st_log_read(fixture.log, 40, &record, &err));
    ASSERT_OK(st_generation_decode(&record, &generation, &err));
    pf_volume_counters_reset(st_graph_volume(fixture.graph));
    ASSERT_OK(st_commit_find(fixture.graph, fixture.log, &generation.commits[0].id, &found_at, &index, &err));
    assert_int_equal(found_at, 40);
    ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &generation.commits[0].operation, &found, &receipt, &err));
    assert_true(found && receipt.generation == 40);
    st_generation_free(&generation);
    st_record_free(&record);

    /* and a late one by bisection, however many commits came in the same minute */
    uint64_t late = st_log_end(fixture.log).number - 300;
    ASSERT_OK(st_log_read(fixture.log, late, &record, &err));
    ASSERT_OK(st_generation_decode(&record, &generation, &err));
    pf_volume_counters_reset(st_graph_volume(fixture.graph));
    ASSERT_OK(st_commit_find(fixture.graph, fixture.log, &generation.commits[0].id, &found_at, &index, &err));
    assert_int_equal(found_at, late);
    assert_true(pf_volume_counters(st_graph_volume(fixture.graph))->bytes_read < UINT64_C(16) << 20);
    st_generation_free(&generation);
    st_record_free(&record);
    graph_fixture_free(&fixture);
}

/* Beyond the bound receipts go, oldest first, and an operation from before is "expired", never new. */
static void receipts_are_kept_up_to_their_bounds(void **state)
{
    (void)state;
    graph_fixture fixture;
    sluice_error err = {0};
    pf_id first = {{0}}, before_all = pf_id_new();
    st_receipt receipt;
    bool found = false;
    graph_fixture_make(&fixture, 18);
    for (unsigned i = 0; i < 420; i++) { /* a segment more than ST_RECEIPTS_MAX */
        st_delta members[GROUP], *deltas[GROUP];
        for (unsigned k = 0; k < GROUP; k++) {
            st_edit edit = {.table = PERSON, .replace = true}; /* keeps the entry short */
            deltas[k] = &members[k];
            fixture_delta(&fixture, &members[k]);
            ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture.graph), &members[k], &edit, "x", &err));
        }
        if (i == 0)
            first = members[3].commit.operation;
        ASSERT_OK(fixture_publish(&fixture, deltas, GROUP, &err));
        if (i == 0) {
            ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &first, &found, &receipt, &err));
            assert_true(found && receipt.index == 3);
        }
        for (unsigned k = 0; k < GROUP; k++)
            st_delta_free(&members[k]);
    }
    ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &first, &found, &receipt, &err));
    assert_false(found);
    assert_true(receipt.expired);
    ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &before_all, &found, &receipt, &err));
    pf_id fresh = pf_id_new(), no_time = {{0x44, 0x44}};
    ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &fresh, &found, &receipt, &err));
    assert_false(found || receipt.expired);
    ASSERT_OK(st_receipt_find(fixture.graph, fixture.log, &no_time, &found, &receipt, &err));
    assert_false(found || receipt.expired);
    graph_fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_commits_cost_the_same_each),
        cmocka_unit_test(receipts_are_kept_up_to_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
