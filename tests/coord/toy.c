/* The toy writer (toy.h). */
#include "toy.h"
#include "store/fragment/key.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_text[] = "{\"nodes\":{\"A\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}},"
                                  "\"B\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}}}";

toy_writer toy_of(const char *type, int64_t first, uint32_t count)
{
    toy_writer toy = {.type = type, .count = count};
    assert_true(count <= TOY_KEYS);
    for (uint32_t i = 0; i < count; i++)
        toy.keys[i] = first + i;
    return toy;
}

void toy_init(pf_volume *volume, st_write_mode mode)
{
    sluice_error err = {0};
    st_schema *schema = NULL;
    pf_id id;
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "schema.json", &schema, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, mode, &id, &err));
    st_schema_free(schema);
}

st_graph *toy_open(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_WRITE, &graph, &err));
    return graph;
}

pf_sim_disk *toy_disk(uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    pf_sim_world_install(seed);
    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    toy_init(volume, ST_MODE_OPTIMISTIC);
    pf_volume_close(volume);
    return disk;
}

/* ---- the payload half: fragment, key run ---- */

static sluice_status build_keys(const toy_writer *toy, st_column_spec *spec, st_column_builder **ret_builder,
                                sluice_error *err)
{
    PF_TRY(st_column_builder_new(spec, ret_builder, err));
    for (uint32_t i = 0; i < toy->count; i++)
        PF_TRY(st_append_i64(*ret_builder, toy->keys[i], err));
    return SLUICE_OK;
}

static sluice_status write_payload(toy_writer *toy, co_write *write, const st_type_def *type, const st_column *column,
                                   const st_column_spec *spec, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(write->graph);
    char name[64], id[PF_ID_TEXT];
    st_run_entry entries[TOY_KEYS];
    uint64_t hashes[TOY_KEYS];
    st_fragment_writer *writer = NULL;
    pf_id_text(&write->attempt->id, id);
    unsigned fresh = (unsigned)pf_random_u64(); /* a successor under the same attempt must not meet these names */
    (void)snprintf(name, sizeof name, "%s-%x.arrow", id, fresh);
    PF_TRY(st_fragment_create(volume, type->table, name, spec, 1, false, &writer, err));
    sluice_status status = st_fragment_write(writer, column, column[0].length, err);
    if (status != SLUICE_OK) {
        st_fragment_abandon(writer);
        return status;
    }
    PF_TRY(st_fragment_finish(writer, &toy->fragment, err));
    const st_column *key[1] = {column};
    st_key_hash_rows(key, 1, toy->count, hashes);
    for (uint32_t i = 0; i < toy->count; i++)
        entries[i] = (st_run_entry){hashes[i], i};
    (void)snprintf(name, sizeof name, "%s-%x.run", id, fresh);
    toy->run.use = ST_RUN_KEY;
    PF_TRY(st_run_write(volume, type->table, name, entries, toy->count, &toy->run.info, err));
    char path[96];
    (void)snprintf(path, sizeof path, "tables/%llu/fragments", (unsigned long long)type->table);
    PF_TRY(pf_sync_dir(volume, path, err));
    (void)snprintf(path, sizeof path, "tables/%llu/keys", (unsigned long long)type->table);
    return pf_sync_dir(volume, path, err);
}

static sluice_status with_column(toy_writer *toy, co_write *write, bool payload, sluice_error *err);

static sluice_status payload(void *context, co_write *write, sluice_error *err)
{
    toy_writer *toy = context;
    if (toy->count == 0)
        return SLUICE_OK;
    toy->payloads++;
    return with_column(toy, write, true, err);
}

/* ---- the plan half: probes, delta, read set, gates ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static sluice_status sorted_hashes(const toy_writer *toy, const st_column *column, st_change *change, sluice_error *err)
{
    const st_column *key[1] = {column};
    change->hashes = malloc(toy->count * sizeof *change->hashes);
    if (!change->hashes)
        return pf_fail_memory(err);
    change->hash_count = toy->count;
    st_key_hash_rows(key, 1, toy->count, change->hashes);
    qsort(change->hashes, toy->count, sizeof *change->hashes, by_value);
    return SLUICE_OK;
}

static sluice_status probe(const toy_writer *toy, co_write *write, const st_column *column, sluice_error *err)
{
    st_table_reader *reader = NULL;
    const st_column *key[1] = {column};
    PF_TRY(st_table_reader_get(write->base, toy->table, &reader, err));
    for (uint32_t i = 0; i < toy->count; i++) {
        bool found = false;
        uint32_t fragment;
        uint64_t position;
        PF_TRY(st_table_find_key(reader, key, 1, i, &found, &fragment, &position, err));
        if (found)
            return pf_fail_private(err, SLUICE_KEY_CONFLICT, "a key is there already", "the key %lld is there already",
                                   (long long)toy->keys[i]);
    }
    return SLUICE_OK;
}

static sluice_status make_edit(const toy_writer *toy, struct st_delta_edit *edit, sluice_error *err)
{
    edit->edit.table = toy->table;
    edit->edit.adds = calloc(1, sizeof *edit->edit.adds);
    if (!edit->edit.adds)
        return pf_fail_memory(err);
    edit->edit.add_count = 1;
    edit->edit.adds[0].fragment = toy->fragment;
    edit->edit.adds[0].runs = malloc(sizeof *edit->edit.adds[0].runs);
    if (!edit->edit.adds[0].runs)
        return pf_fail_memory(err);
    edit->edit.adds[0].runs[0] = toy->run;
    edit->edit.adds[0].run_count = 1;
    return SLUICE_OK;
}

static sluice_status stage_edit(const toy_writer *toy, co_write *write, struct st_delta_edit *edit, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(write->graph);
    pf_buffer bytes = {0};
    pf_file *file = NULL;
    char path[192], folder[96], id[PF_ID_TEXT];
    sluice_status status;
    PF_GOTO(status, done, st_edit_encode(&edit->edit, &bytes, err));
    edit->digest = pf_sha256_of(bytes.data, bytes.length);
    if (toy->attached)
        goto done;
    pf_id_text(&write->attempt->id, id);
    edit->staged = true;
    (void)snprintf(edit->file, sizeof edit->file, "%s-%u.json", id, write->plan_number);
    (void)snprintf(folder, sizeof folder, "tables/%llu/lists", (unsigned long long)toy->table);
    (void)snprintf(path, sizeof path, "%s/%s", folder, edit->file);
    PF_GOTO(status, done, pf_create(volume, path, &file, err));
    status = pf_write(file, 0, bytes.data, bytes.length, err);
    if (status == SLUICE_OK)
        status = pf_sync(file, err);
    (void)pf_close(file, NULL);
    if (status == SLUICE_OK)
        status = pf_sync_dir(volume, folder, err);
done:
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status declare_gates(const toy_writer *toy, co_write *write, sluice_error *err)
{
    uint64_t incarnation = st_snapshot_view(write->base)->incarnation;
    write->gates = calloc(3, sizeof *write->gates);
    if (!write->gates)
        return pf_fail_memory(err);
    write->gates[0] = (lk_gate_key){.kind = LK_GATE_SCHEMA, .incarnation = incarnation};
    write->gates[1] = (lk_gate_key){.kind = LK_GATE_BRANCH, .incarnation = incarnation};
    write->gates[2] = (lk_gate_key){
        .kind = LK_GATE_TABLE, .incarnation = incarnation, .table = toy->table, .exclusive = toy->exclusive};
    write->gate_count = 3;
    return SLUICE_OK;
}

static sluice_status declare_effects(const toy_writer *toy, co_write *write, sluice_error *err)
{
    if (toy->effect_count == 0)
        return SLUICE_OK;
    write->effects = malloc(toy->effect_count * sizeof *write->effects);
    if (!write->effects)
        return pf_fail_memory(err);
    memcpy(write->effects, toy->effects, toy->effect_count * sizeof *write->effects);
    write->effect_count = toy->effect_count;
    return SLUICE_OK;
}

static sluice_status make_plan(toy_writer *toy, co_write *write, const st_column *column, sluice_error *err)
{
    co_read read = {.kind = toy->reads_table ? CO_READ_WHOLE_TABLE : CO_READ_KEY_ABSENT};
    if (toy->count == 0)
        return SLUICE_OK;
    if (!toy->blind)
        PF_TRY(probe(toy, write, column, err));
    write->delta.edits = calloc(1, sizeof *write->delta.edits);
    write->delta.changes.items = calloc(1, sizeof *write->delta.changes.items);
    if (!write->delta.edits || !write->delta.changes.items)
        return pf_fail_memory(err);
    write->delta.edit_count = 1;
    write->delta.changes.count = 1;
    write->delta.changes.items[0].table = toy->table;
    write->delta.changes.items[0].space = ST_SPACE_KEY_INSERTED;
    write->delta.commit.inserted = toy->count;
    PF_TRY(sorted_hashes(toy, column, &write->delta.changes.items[0], err));
    PF_TRY(make_edit(toy, &write->delta.edits[0], err));
    PF_TRY(stage_edit(toy, write, &write->delta.edits[0], err));
    read.set.table = toy->table;
    if (!toy->reads_table)
        PF_TRY(sorted_hashes(toy, column, &read.set, err));
    PF_TRY(co_read_set_add(&write->reads, &read, err));
    PF_TRY(declare_effects(toy, write, err));
    return declare_gates(toy, write, err);
}

static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    toy_writer *toy = context;
    toy->plans++;
    toy->write = write;
    if (toy->before_plan)
        toy->before_plan(toy->context);
    PF_TRY(with_column(toy, write, false, err));
    if (toy->after_plan)
        toy->after_plan(toy->context);
    return SLUICE_OK;
}

static sluice_status with_column(toy_writer *toy, co_write *write, bool is_payload, sluice_error *err)
{
    const st_type_def *type = NULL;
    st_column_spec *specs = NULL;
    st_column_builder *builder = NULL;
    st_column column;
    uint32_t count = 0;
    const st_view *view = st_snapshot_view(write->base);
    PF_TRY(st_snapshot_type(write->base, toy->type, &type, err));
    toy->table = type->table;
    PF_TRY(st_type_columns(view->schema, type, &specs, &count, err));
    sluice_status status = build_keys(toy, &specs[0], &builder, err);
    if (status == SLUICE_OK) {
        st_builder_view(builder, &column);
        status =
            is_payload ? write_payload(toy, write, type, &column, &specs[0], err) : make_plan(toy, write, &column, err);
    }
    st_column_builder_free(builder);
    for (uint32_t i = 0; i < count; i++)
        st_column_spec_free(&specs[i]);
    free(specs);
    return status;
}

/* ---- running it, and looking at what came of it ---- */

wk_executor toy_executor(void)
{
    return (wk_executor){.workers = 1, .epoch = pf_id_new()};
}

sluice_status toy_conduct(st_graph *graph, toy_writer *toy, const toy_options *options, co_attempt *attempt,
                          co_receipt *ret_receipt, sluice_error *err)
{
    static const toy_options none;
    static const pf_sha256 zero;
    wk_executor executor = toy_executor();
    options = options ? options : &none;
    co_request request = {.branch = options->branch ? options->branch : "main",
                          .creates = options->creates,
                          .from = options->from,
                          .operation = pf_id_is_nil(&options->operation) ? pf_id_new() : options->operation,
                          .operation_given = options->given,
                          .request = options->request,
                          .if_head = options->if_head,
                          .wait_ms = options->wait_ms};
    if (pf_sha256_equal(&request.request, &zero))
        request.request = pf_sha256_of(toy->keys, toy->count * sizeof toy->keys[0]);
    co_writer writer = {
        .adapter = toy->adapter ? toy->adapter : &ad_load, .context = toy, .payload = payload, .plan = plan};
    *ret_receipt = (co_receipt){0};
    return co_write_run(graph, &request, attempt, options->executor ? options->executor : &executor, &writer,
                        ret_receipt, err);
}

sluice_status toy_write(st_graph *graph, toy_writer *toy, const toy_options *options, co_receipt *ret_receipt,
                        sluice_error *err)
{
    co_attempt attempt = {0};
    co_receipt receipt = {0};
    sluice_error error = {0};
    sluice_status status = co_attempt_make(graph, &attempt, &error);
    if (status != SLUICE_OK) {
        static const toy_options none;
        const toy_options *with = options ? options : &none;
        const co_request request = {.branch = with->branch,
                                    .creates = with->creates,
                                    .operation = with->operation,
                                    .operation_given = with->given};
        co_write_not_begun(graph, &request, &error);
        if (err)
            *err = error;
        return status;
    }
    status = toy_conduct(graph, toy, options, &attempt, &receipt, err);
    (void)co_attempt_finish(graph, &attempt, NULL);
    if (ret_receipt)
        *ret_receipt = receipt;
    return status;
}

static int by_key(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

uint32_t toy_keys(st_graph *graph, const char *type_name, int64_t *ret_keys, uint32_t room)
{
    return toy_keys_on(graph, NULL, type_name, ret_keys, room);
}

uint32_t toy_keys_on(st_graph *graph, const char *branch, const char *type_name, int64_t *ret_keys, uint32_t room)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    uint32_t count = 0;
    ASSERT_OK(st_snapshot_open(graph, branch, NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, type_name, &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        for (uint64_t i = 0; i < batch->rows; i++, count++)
            if (count < room)
                ret_keys[count] = ((const int64_t *)batch->columns[0].values)[i];
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    qsort(ret_keys, count < room ? count : room, sizeof *ret_keys, by_key);
    return count;
}

bool toy_holds(st_graph *graph, const char *type, const int64_t *keys, uint32_t count)
{
    int64_t found[256];
    uint32_t there = toy_keys(graph, type, found, 256);
    return there == count && (count == 0 || memcmp(found, keys, count * sizeof *keys) == 0);
}
