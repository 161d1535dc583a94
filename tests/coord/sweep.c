/* Writers for tests of maintenance (sweep.h). */
#include "sweep.h"
#include "store/read/reader.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sweep_writer {
    const char *type_name;
    sweep_kind kind;
    const int64_t *keys;
    uint32_t count;
} sweep_writer;

static sluice_status find_rows(const sweep_writer *sweep, co_write *write, const st_type_def *type, uint64_t *rows,
                               uint64_t *hashes, sluice_error *err)
{
    st_table_reader *reader = NULL;
    PF_TRY(st_table_reader_get(write->base, type->table, &reader, err));
    for (uint32_t i = 0; i < sweep->count; i++) {
        st_column column = {.type = ST_INT64, .length = 1, .values = &sweep->keys[i]};
        const st_column *key[1] = {&column};
        bool found = false;
        uint32_t fragment = 0;
        uint64_t position = 0;
        PF_TRY(st_table_find_key(reader, key, 1, 0, &found, &fragment, &position, err));
        if (!found)
            return pf_fail(err, SLUICE_KEY_CONFLICT, "a key is not there");
        PF_TRY(st_reader_row_id(reader, fragment, position, &rows[i], err));
        hashes[i] = st_key_hash_row(key, 1, 0);
    }
    return SLUICE_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* The rows once more, in a fragment of their own; no run (the test's rows are few). */
static sluice_status write_anew(const sweep_writer *sweep, co_write *write, const st_type_def *type,
                                const uint64_t *rows, st_edit *edit, sluice_error *err)
{
    static char id_name[] = "id", row_name[] = "_row_id", commit_name[] = "_commit";
    st_column_spec specs[3] = {{.name = id_name, .type = ST_INT64, .property = type->properties[0].id},
                               {.name = row_name, .type = ST_ROW_ID},
                               {.name = commit_name, .type = ST_COMMIT_ID}};
    pf_id commits[SWEEP_ROWS];
    st_fragment_writer *writer = NULL;
    char name[64], attempt[PF_ID_TEXT], folder[64];
    for (uint32_t i = 0; i < sweep->count; i++)
        commits[i] = write->delta.commit.id;
    st_column columns[3] = {{.type = ST_INT64, .length = sweep->count, .values = sweep->keys},
                            {.type = ST_ROW_ID, .length = sweep->count, .values = rows},
                            {.type = ST_COMMIT_ID, .length = sweep->count, .values = commits}};
    pf_id_text(&write->attempt->id, attempt);
    (void)snprintf(name, sizeof name, "%s-%x.arrow", attempt, (unsigned)pf_random_u64());
    PF_TRY(st_fragment_create(st_graph_volume(write->graph), type->table, name, specs, 3, false, &writer, err));
    sluice_status status = st_fragment_write(writer, columns, columns[0].length, err);
    if (status != SLUICE_OK) {
        st_fragment_abandon(writer);
        return status;
    }
    edit->adds = calloc(1, sizeof *edit->adds);
    assert_non_null(edit->adds);
    PF_TRY(st_fragment_finish(writer, &edit->adds[0].fragment, err));
    edit->add_count = 1;
    (void)snprintf(folder, sizeof folder, "tables/%llu/fragments", (unsigned long long)type->table);
    return pf_sync_dir(st_graph_volume(write->graph), folder, err);
}

static sluice_status add_change(co_write *write, uint64_t table, st_space space, const uint64_t *hashes, uint32_t count)
{
    st_changes *changes = &write->delta.changes;
    changes->items = calloc(1, sizeof *changes->items);
    assert_non_null(changes->items);
    changes->count = 1;
    changes->items[0] = (st_change){.table = table, .space = space, .whole = hashes == NULL};
    if (!hashes)
        return SLUICE_OK;
    changes->items[0].hashes = malloc(count * sizeof *hashes);
    assert_non_null(changes->items[0].hashes);
    memcpy(changes->items[0].hashes, hashes, count * sizeof *hashes);
    changes->items[0].hash_count = count;
    qsort(changes->items[0].hashes, count, sizeof *hashes, by_value);
    return SLUICE_OK;
}

static sluice_status make_edit(const sweep_writer *sweep, co_write *write, const st_type_def *type, st_edit *edit,
                               sluice_error *err)
{
    static const st_space spaces[] = {ST_SPACE_KEY_DELETED, ST_SPACE_ROW_UPDATED, ST_SPACE_WHOLE_TABLE};
    uint64_t rows[SWEEP_ROWS], hashes[SWEEP_ROWS];
    if (sweep->kind == SWEEP_REPLACE) {
        edit->replace = true;
        return add_change(write, type->table, spaces[sweep->kind], NULL, 0);
    }
    PF_TRY(find_rows(sweep, write, type, rows, hashes, err));
    if (sweep->kind == SWEEP_UPDATE)
        PF_TRY(write_anew(sweep, write, type, rows, edit, err));
    edit->delete_rows = malloc(sweep->count * sizeof *rows);
    assert_non_null(edit->delete_rows);
    memcpy(edit->delete_rows, rows, sweep->count * sizeof *rows);
    edit->delete_count = sweep->count;
    qsort(edit->delete_rows, sweep->count, sizeof *rows, by_value);
    return add_change(write, type->table, spaces[sweep->kind], hashes, sweep->count);
}

static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    const sweep_writer *sweep = context;
    const st_view *view = st_snapshot_view(write->base);
    const st_type_def *type = NULL;
    char stem[64], attempt[PF_ID_TEXT];
    PF_TRY(st_snapshot_type(write->base, sweep->type_name, &type, err));
    st_edit edit = {.table = type->table};
    sluice_status status = make_edit(sweep, write, type, &edit, err);
    if (status != SLUICE_OK) {
        st_edit_free(&edit);
        return status;
    }
    co_read read = {.kind = sweep->kind == SWEEP_REPLACE ? CO_READ_WHOLE_TABLE : CO_READ_ROW, .set.table = type->table};
    if (sweep->kind != SWEEP_REPLACE) {
        read.set.hashes = malloc(sweep->count * sizeof(uint64_t));
        assert_non_null(read.set.hashes);
        memcpy(read.set.hashes, write->delta.changes.items[0].hashes, sweep->count * sizeof(uint64_t));
        read.set.hash_count = sweep->count;
    }
    pf_id_text(&write->attempt->id, attempt);
    (void)snprintf(stem, sizeof stem, "%s-p%u", attempt, write->plan_number);
    PF_TRY(st_delta_add_edit(st_graph_volume(write->graph), &write->delta, &edit, stem, err));
    PF_TRY(co_read_set_add(&write->reads, &read, err));
    write->gates = calloc(3, sizeof *write->gates);
    assert_non_null(write->gates);
    write->gates[0] = (lk_gate_key){.kind = LK_GATE_SCHEMA, .incarnation = view->incarnation};
    write->gates[1] = (lk_gate_key){.kind = LK_GATE_BRANCH, .incarnation = view->incarnation};
    write->gates[2] = (lk_gate_key){.kind = LK_GATE_TABLE,
                                    .incarnation = view->incarnation,
                                    .table = type->table,
                                    .exclusive = sweep->kind == SWEEP_REPLACE};
    write->gate_count = 3;
    return SLUICE_OK;
}

sluice_status sweep_write(st_graph *graph, const char *type, sweep_kind kind, const int64_t *keys, uint32_t count,
                          sluice_error *err)
{
    sweep_writer sweep = {.type_name = type, .kind = kind, .keys = keys, .count = count};
    wk_executor executor = toy_executor();
    co_request request = {.branch = "main", .operation = pf_id_new()};
    co_writer writer = {.adapter = &ad_load, .context = &sweep, .plan = plan};
    co_attempt attempt = {0};
    co_receipt receipt = {0};
    assert_true(count <= SWEEP_ROWS);
    request.request = pf_sha256_of(&request.operation, sizeof request.operation);
    PF_TRY(co_attempt_make(graph, &attempt, err));
    sluice_status status = co_write_run(graph, &request, &attempt, &executor, &writer, &receipt, err);
    (void)co_attempt_finish(graph, &attempt, NULL);
    return status;
}

/* ---- looking ---- */

static st_snapshot *look(st_graph *graph, const char *type_name, const st_type_def **ret_type, st_table_reader **ret)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, type_name, ret_type, &err));
    ASSERT_OK(st_table_reader_get(snapshot, (*ret_type)->table, ret, &err));
    return snapshot;
}

uint32_t sweep_fragments(st_graph *graph, const char *type_name)
{
    const st_type_def *type;
    st_table_reader *reader;
    st_snapshot *snapshot = look(graph, type_name, &type, &reader);
    uint32_t count = st_table_reader_fragments(reader);
    st_snapshot_close(snapshot);
    return count;
}

uint32_t sweep_rows(st_graph *graph, const char *type_name, sweep_row ret_rows[SWEEP_ROWS])
{
    const st_type_def *type;
    st_table_reader *reader;
    st_snapshot *snapshot = look(graph, type_name, &type, &reader);
    uint32_t count = 0;
    sluice_error err = {0};
    for (uint32_t i = 0; i < st_table_reader_fragments(reader); i++) {
        st_scan *scan = NULL;
        const st_batch *batch = NULL;
        ASSERT_OK(st_scan_open_fragment(snapshot, type, NULL, 0, i, &scan, &err));
        for (;;) {
            ASSERT_OK(st_scan_next(scan, &batch, &err));
            if (!batch)
                break;
            assert_true(count + batch->rows <= SWEEP_ROWS);
            const int64_t *ids = batch->columns[0].values;
            for (uint64_t r = 0; r < batch->rows; r++)
                ret_rows[count++] = (sweep_row){ids[r], batch->row_ids[r], batch->commits[r]};
        }
        st_scan_close(scan);
    }
    st_snapshot_close(snapshot);
    return count;
}

sluice_status sweep_maintain(st_graph *graph, co_maintain_kind kind, const char *type, co_receipt *ret_receipt,
                             sluice_error *err)
{
    co_maintain_options options = {.kind = kind, .types = &type, .type_count = type != NULL};
    co_maintain_result result = {0};
    sluice_status status = co_maintain_inline(graph, &options, &result, err);
    if (ret_receipt)
        *ret_receipt = result.receipt;
    if (status == SLUICE_OK)
        co_maintain_result_free(&result);
    return status;
}
