/*
 * Adjacency of loaded edges: what a step costs when everything is covered, and that verify tells an index which is
 * whole but says something else than the edges (LESSONS table "cost", N-03).
 */
#include "coord/maintain.h"
#include "load_fixture.h"
#include "store/fragment/adjacency.h"
#include "store/fragment/key.h"
#include "worker/maintain/neighbourhood.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\": {\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\"}}},"
                             "\"edges\": {\"K\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {}}}}";

/* 50 nodes; `loads` loads of `edges` edges each, in a ring. */
static void make_graph(load_fixture *f, unsigned loads, unsigned edges)
{
    char *text = NULL;
    size_t size = 0;
    load_fixture_make(f, schema);
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    fprintf(file, "id\n");
    for (unsigned i = 0; i < 50; i++)
        fprintf(file, "%u\n", i);
    fclose(file);
    load_fixture_text(f, "p.csv", text);
    free(text);
    assert_int_not_equal(load_fixture_load(f, "P=p.csv"), 0);
    for (unsigned l = 0; l < loads; l++) {
        file = open_memstream(&text, &size);
        assert_non_null(file);
        fprintf(file, "from,to\n");
        for (unsigned i = 0; i < edges; i++)
            fprintf(file, "%u,%u\n", (i + l) % 50, (i + l + 1) % 50);
        fclose(file);
        load_fixture_text(f, "k.csv", text);
        free(text);
        assert_int_not_equal(load_fixture_load(f, "K=k.csv"), 0);
    }
}

static void maintain(load_fixture *f, co_maintain_kind kind)
{
    sluice_error err = {0};
    co_maintain_options options = {.kind = kind};
    co_maintain_result result;
    ASSERT_OK(co_maintain_inline(f->graph, &options, &result, &err));
    assert_true(result.receipt.committed);
    co_maintain_result_free(&result);
}

static sluice_status count_node(void *context, const st_type_def *type, const st_column *const *key, uint32_t key_count,
                                uint64_t row, uint32_t depth, sluice_error *err)
{
    (void)type;
    (void)key;
    (void)key_count;
    (void)row;
    (void)depth;
    (void)err;
    ++*(unsigned *)context;
    return SLUICE_OK;
}

/* Files mapped by a search of one step from node 7. */
static uint64_t maps_of_a_step(load_fixture *f)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    int64_t start = 7;
    st_column column = {.type = ST_INT64, .length = 1, .values = &start};
    const st_column *key[1] = {&column};
    unsigned found = 0;
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(st_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "P", &type, &err));
    pf_volume_counters_reset(st_graph_volume(graph));
    ASSERT_OK(st_neighbours(snapshot, type, key, 1, NULL, ST_OUT, 1, count_node, &found, &err));
    assert_int_equal(found, 1);
    uint64_t maps = pf_volume_counters(st_graph_volume(graph))->maps;
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    return maps;
}

static void a_step_opens_one_file_however_many_fragments_are_covered(void **state)
{
    (void)state;
    static const unsigned loads[] = {1, 8};
    for (int i = 0; i < 2; i++) {
        load_fixture f;
        make_graph(&f, loads[i], 300);
        assert_int_equal(maps_of_a_step(&f), loads[i]); /* each fragment is scanned */
        maintain(&f, CO_INDEX);
        assert_int_equal(maps_of_a_step(&f), 1); /* keys follow from their hashes: no fragment is opened */
        load_fixture_text(&f, "k.csv", "from,to\n1,2\n");
        assert_int_not_equal(load_fixture_load(&f, "K=k.csv"), 0);
        assert_int_equal(maps_of_a_step(&f), 2); /* and what is not covered */
        load_fixture_free(&f);
    }
}

/* ---- an index that is whole, and wrong ---- */

typedef struct liar {
    load_fixture *f;
    bool truthful;
} liar;

/* Adjacency of the first fragment, with one far end another than the edge's. */
static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    const liar *who = context;
    const st_type_def *type = NULL;
    st_table_reader *reader = NULL;
    PF_TRY(st_snapshot_type(write->base, "K", &type, err));
    PF_TRY(st_table_reader_get(write->base, type->table, &reader, err));
    const st_edit_add *listed = &st_table_reader_list(reader)->fragments[0];
    wk_neighbourhood in = {.volume = st_graph_volume(write->graph),
                           .table = type->table,
                           .fragments = &listed,
                           .count = 1,
                           .direction = ST_ADJACENCY_IN,
                           .number = write->plan_number,
                           .tries = 1};
    char attempt[PF_ID_TEXT], name[72], folder[64];
    uint64_t far[4] = {0};
    const uint64_t *fars[1] = {far};
    st_run_entry near[4];
    st_adjacency_cover cover = {.rows = listed->fragment.rows};
    int64_t ends[5] = {10, 11, 12, 13, 14};
    st_column column = {.type = ST_INT64, .length = 5, .values = ends};
    const st_column *key[1] = {&column};
    st_edit edit = {.table = type->table};
    assert_int_equal(listed->fragment.rows, 4);
    for (uint32_t i = 0; i < 4; i++) {
        near[i] = (st_run_entry){st_key_hash_row(key, 1, i), i};
        far[i] = st_key_hash_row(key, 1, i + 1);
    }
    far[2] ^= !who->truthful;
    pf_id_text(&write->attempt->id, attempt);
    (void)snprintf(in.prefix, sizeof in.prefix, "%s-", attempt);
    (void)snprintf(name, sizeof name, "%s-lie.out", attempt);
    (void)snprintf(cover.fragment, sizeof cover.fragment, "%s", listed->fragment.name);
    edit.adds = calloc(1, sizeof *edit.adds);
    edit.out = calloc(1, sizeof *edit.out);
    assert_true(edit.adds && edit.out);
    edit.add_count = edit.out_count = 1;
    edit.adds[0] = *listed;
    edit.adds[0].runs = calloc(listed->run_count, sizeof *listed->runs);
    assert_non_null(edit.adds[0].runs);
    memcpy(edit.adds[0].runs, listed->runs, listed->run_count * sizeof *listed->runs);
    edit.adds[0].index.present = true;
    (void)snprintf(edit.out[0].fragment, sizeof edit.out[0].fragment, "%s", listed->fragment.name);
    edit.out[0].bytes = listed->fragment.bytes;
    PF_TRY(wk_neighbourhood_write(&in, &edit.adds[0].index.in, err));
    PF_TRY(st_adjacency_write(in.volume, type->table, name, ST_ADJACENCY_OUT, &cover, 1, near, 4, fars,
                              &edit.adds[0].index.out, err));
    (void)snprintf(folder, sizeof folder, "tables/%llu/indexes", (unsigned long long)type->table);
    PF_TRY(pf_sync_dir(in.volume, folder, err));
    return st_delta_add_edit(in.volume, &write->delta, &edit, "lie", err);
}

static sluice_status note_problem(void *context, const char *object, const char *type, const char *problem,
                                  sluice_error *err)
{
    (void)type;
    (void)err;
    assert_non_null(strstr(object, "-lie.out"));
    assert_non_null(strstr(problem, "does not have the edges"));
    ++*(unsigned *)context;
    return SLUICE_OK;
}

static void verify_tells_an_index_that_says_something_else(void **state)
{
    (void)state;
    for (int truthful = 0; truthful < 2; truthful++) {
        load_fixture f;
        sluice_error err = {0};
        liar who = {&f, truthful};
        wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
        co_request request = {.branch = "main", .operation = pf_id_new()};
        co_writer writer = {.adapter = &ad_index, .context = &who, .plan = plan};
        co_attempt attempt = {0};
        co_receipt receipt = {0};
        uint64_t checked = 0;
        unsigned problems = 0;
        make_graph(&f, 0, 0);
        load_fixture_text(&f, "k.csv", "from,to\n10,11\n11,12\n12,13\n13,14\n");
        assert_int_not_equal(load_fixture_load(&f, "K=k.csv"), 0);
        request.request = pf_sha256_of("x", 1);
        ASSERT_OK(co_attempt_make(f.graph, &attempt, &err));
        ASSERT_OK(co_write_run(f.graph, &request, &attempt, &executor, &writer, &receipt, &err));
        ASSERT_OK(co_attempt_finish(f.graph, &attempt, &err));
        assert_true(receipt.committed);
        ASSERT_OK(st_graph_verify(f.graph, false, note_problem, &problems, &checked, &err));
        assert_int_equal(problems, !truthful);
        load_fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_opens_one_file_however_many_fragments_are_covered),
        cmocka_unit_test(verify_tells_an_index_that_says_something_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
