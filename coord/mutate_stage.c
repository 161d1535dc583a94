/*
 * The edits of a mutation, one per table: rows that go (deleted, or written anew), new rows without ids, changed rows
 * under their ids.
 *
 * Small edits are attached to the record, rows and all, so that the commit is one flush and stages nothing. When one of
 * them is too large for that, all are staged like those of a load, and the write arms.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/fragment/fragment_format.h"
#include "worker/ingest/sink.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTACHED_ROWS  2048u                       /* of one edit, before its size is tried */
#define ATTACHED_BYTES (ST_ATTACHED_EDIT_MAX / 2)  /* of the rows of one edit; the other half is the edit's */
#define ATTACHED_ALL   (4u * ST_ATTACHED_EDIT_MAX) /* of all rows of a record */

typedef struct table_edit {
    mut_job *job;
    mut_type *type;
    mut_object **inserted, **changed; /* by record; by row id */
    uint32_t inserted_count, changed_count;
    uint64_t *gone; /* row ids, ascending */
    uint32_t gone_count;
    st_edit edit;
} table_edit;

static void free_table_edit(table_edit *table)
{
    free(table->inserted);
    free(table->changed);
    free(table->gone);
    st_edit_free(&table->edit);
}

/* ---- which rows ---- */

static int by_record(const void *a, const void *b)
{
    const mut_object *left = *(mut_object *const *)a, *right = *(mut_object *const *)b;
    return (left->record > right->record) - (left->record < right->record);
}

static int by_row_id(const void *a, const void *b)
{
    const mut_object *left = *(mut_object *const *)a, *right = *(mut_object *const *)b;
    return (left->row_id > right->row_id) - (left->row_id < right->row_id);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static sluice_status gather(table_edit *table, sluice_error *err)
{
    mut_type *type = table->type;
    size_t room = (size_t)type->object_count + 1;
    table->inserted = calloc(room, sizeof(mut_object *));
    table->changed = calloc(room, sizeof(mut_object *));
    table->gone = calloc(room, sizeof(*table->gone));
    if (!table->inserted || !table->changed || !table->gone)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < type->object_count; i++) {
        mut_object *object = type->objects[i];
        bool comes = object->exists && !object->existed;
        if (comes && !object->keeps_id)
            table->inserted[table->inserted_count++] = object;
        if (object->changed || (comes && object->keeps_id))
            table->changed[table->changed_count++] = object;
        if (object->changed || (object->existed && !object->exists))
            table->gone[table->gone_count++] = object->row_id;
    }
    qsort(table->inserted, table->inserted_count, sizeof(mut_object *), by_record);
    qsort(table->changed, table->changed_count, sizeof(mut_object *), by_row_id);
    qsort(table->gone, table->gone_count, sizeof(*table->gone), by_value);
    table->edit.table = type->def->table;
    return SLUICE_OK;
}

/* ---- columns ---- */

typedef struct row_columns {
    st_column_spec *specs; /* the type's, and perhaps ours; borrowed */
    st_column_builder **builders;
    st_column *views;
    uint32_t count;
} row_columns;

static sluice_status columns_make(const mut_type *type, bool ids, row_columns *ret, sluice_error *err)
{
    static char id_name[] = ST_FRAGMENT_ROW_ID, commit_name[] = ST_FRAGMENT_COMMIT;
    ret->specs = calloc((size_t)type->count + 2, sizeof(*ret->specs));
    ret->builders = calloc((size_t)type->count + 2, sizeof(st_column_builder *));
    ret->views = calloc((size_t)type->count + 2, sizeof(*ret->views));
    if (!ret->specs || !ret->builders || !ret->views)
        return pf_fail_memory(err);
    memcpy(ret->specs, type->specs, type->count * sizeof(*ret->specs));
    ret->specs[type->count] = (st_column_spec){.name = id_name, .type = ST_ROW_ID};
    ret->specs[type->count + 1] = (st_column_spec){.name = commit_name, .type = ST_COMMIT_ID};
    ret->count = type->count + (ids ? 2 : 0);
    for (uint32_t i = 0; i < ret->count; i++)
        PF_TRY(st_column_builder_new(&ret->specs[i], &ret->builders[i], err));
    return SLUICE_OK;
}

static void columns_free(row_columns *columns)
{
    for (uint32_t i = 0; columns->builders && i < columns->count; i++)
        st_column_builder_free(columns->builders[i]);
    free(columns->builders);
    free(columns->views);
    free(columns->specs);
}

/* Rows [first, end) of the objects. */
static sluice_status columns_fill(const table_edit *table, mut_object *const *objects, uint32_t first, uint32_t end,
                                  row_columns *columns, sluice_error *err)
{
    const mut_type *type = table->type;
    const pf_id *commit = &table->job->write->delta.commit.id;
    for (uint32_t c = 0; c < columns->count; c++) {
        st_column pool = {0};
        st_builder_truncate(columns->builders[c], 0);
        if (c < type->count)
            st_builder_view(type->pool[c], &pool);
        for (uint32_t i = first; i < end; i++) {
            if (c < type->count)
                PF_TRY(st_append_from(columns->builders[c], &pool, objects[i]->values[c], err));
            else if (c == type->count)
                PF_TRY(st_append_u64(columns->builders[c], objects[i]->row_id, err));
            else
                PF_TRY(st_append_bytes(columns->builders[c], commit->bytes, sizeof(commit->bytes), err));
        }
        st_builder_view(columns->builders[c], &columns->views[c]);
    }
    return SLUICE_OK;
}

/* ---- attached ---- */

static sluice_status attach_rows(table_edit *table, uint32_t count, const row_columns *into, st_edit_add *add,
                                 sluice_error *err)
{
    char id[PF_ID_TEXT], name[sizeof(add->fragment.name)];
    st_fragment_writer *writer = NULL;
    pf_id_text(&table->job->write->delta.commit.id, id);
    (void)snprintf(name, sizeof(name), "%s-%" PRIu64 ".arrow", id, table->job->staged++);
    PF_TRY(st_fragment_create(NULL, table->type->def->table, name, into->specs, into->count, false, &writer, err));
    sluice_status status = st_fragment_write(writer, into->views, count, err);
    if (status != SLUICE_OK) {
        st_fragment_abandon(writer);
        return status;
    }
    return st_fragment_finish(writer, &add->fragment, err);
}

static sluice_status attach(table_edit *table, mut_object *const *objects, uint32_t count, bool ids, sluice_error *err)
{
    row_columns columns = {0};
    sluice_status status;
    if (count == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, columns_make(table->type, ids, &columns, err));
    PF_GOTO(status, done, columns_fill(table, objects, 0, count, &columns, err));
    PF_GOTO(status, done, attach_rows(table, count, &columns, &table->edit.adds[table->edit.add_count], err));
    table->edit.add_count++;
done:
    columns_free(&columns);
    return status;
}

/* SLUICE_NO_ATTACH=1 in builds with failpoints: everything is staged (everything-off runs). */
static bool attaching_is_off(void)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_NO_ATTACH");
    return text && strcmp(text, "1") == 0;
#else
    return false;
#endif
}

static sluice_status attach_all(table_edit *table, uint64_t *bytes, bool *ret_fits, sluice_error *err)
{
    *ret_fits = !attaching_is_off() && table->inserted_count + table->changed_count <= ATTACHED_ROWS &&
                table->gone_count <= ST_LISTED_ROWS_MAX;
    if (!*ret_fits)
        return SLUICE_OK;
    table->edit.adds = calloc(2, sizeof(*table->edit.adds));
    if (!table->edit.adds)
        return pf_fail_memory(err);
    PF_TRY(attach(table, table->inserted, table->inserted_count, false, err));
    PF_TRY(attach(table, table->changed, table->changed_count, true, err));
    uint64_t own = 0;
    for (uint32_t i = 0; i < table->edit.add_count; i++)
        own += table->edit.adds[i].fragment.bytes;
    *bytes += own;
    *ret_fits = own <= ATTACHED_BYTES && *bytes <= ATTACHED_ALL;
    return SLUICE_OK;
}

static sluice_status list_gone(table_edit *table, sluice_error *err)
{
    if (table->gone_count == 0)
        return SLUICE_OK;
    table->edit.delete_rows = malloc(table->gone_count * sizeof(*table->gone));
    if (!table->edit.delete_rows)
        return pf_fail_memory(err);
    memcpy(table->edit.delete_rows, table->gone, table->gone_count * sizeof(*table->gone));
    table->edit.delete_count = table->gone_count;
    return SLUICE_OK;
}

/* ---- staged ---- */

static void stem_of(const table_edit *table, char ret_stem[64])
{
    char id[PF_ID_TEXT];
    pf_id_text(&table->job->write->attempt->id, id);
    (void)snprintf(ret_stem, 64, "%s-m%u", id, (unsigned)table->job->write->plan_number);
}

static sluice_status sync_folder(const table_edit *table, const char *folder, sluice_error *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "tables/%" PRIu64 "/%s", table->type->def->table, folder);
    return pf_sync_dir(st_graph_volume(table->job->graph), path, err);
}

static sluice_status write_rows(table_edit *table, mut_object *const *objects, uint32_t count, row_columns *columns,
                                wk_sink *sink, sluice_error *err)
{
    for (uint32_t first = 0; first < count;) {
        uint32_t end = count - first < WK_SINK_ROWS ? count : first + WK_SINK_ROWS;
        PF_TRY(columns_fill(table, objects, first, end, columns, err));
        PF_TRY(wk_sink_write(sink, columns->views, end - first, err));
        first = end;
    }
    return wk_sink_finish(sink, &table->edit.adds[table->edit.add_count++], err); /* what it holds is freed with it */
}

static sluice_status stage(table_edit *table, mut_object *const *objects, uint32_t count, bool ids, sluice_error *err)
{
    mut_job *job = table->job;
    row_columns columns = {0};
    wk_sink *sink = NULL;
    char id[PF_ID_TEXT];
    sluice_status status;
    if (count == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, columns_make(table->type, ids, &columns, err));
    pf_id_text(&job->write->attempt->id, id);
    wk_sink_setup setup = {.volume = st_graph_volume(job->graph),
                           .schema = job->schema,
                           .type = table->type->def,
                           .specs = columns.specs,
                           .count = columns.count,
                           .number = ((uint64_t)job->write->plan_number << 24) + WK_SINK_NAMES * job->staged++};
    (void)snprintf(setup.prefix, sizeof setup.prefix, "%s-", id);
    PF_GOTO(status, done, wk_sink_open(&setup, &sink, err));
    status = write_rows(table, objects, count, &columns, sink, err);
done:
    wk_sink_close(sink);
    columns_free(&columns);
    return status;
}

static sluice_status stage_gone(table_edit *table, sluice_error *err)
{
    st_row_set *set = NULL;
    char stem[64], name[72];
    if (table->gone_count <= ST_LISTED_ROWS_MAX)
        return list_gone(table, err);
    stem_of(table, stem);
    (void)snprintf(name, sizeof(name), "%s.dead", stem);
    PF_TRY(st_row_set_new(&set, err));
    sluice_status status = st_row_set_add_many(set, table->gone, table->gone_count, err);
    if (status == SLUICE_OK)
        status = st_deletion_write(st_graph_volume(table->job->graph), table->type->def->table, name, set,
                                   &table->edit.deletes, err);
    st_row_set_free(set);
    PF_TRY(status);
    return sync_folder(table, "deletions", err);
}

static sluice_status stage_all(table_edit *table, sluice_error *err)
{
    st_edit_free(&table->edit);
    table->edit = (st_edit){.table = table->type->def->table, .adds = calloc(2, sizeof(st_edit_add))};
    if (!table->edit.adds)
        return pf_fail_memory(err);
    PF_TRY(stage(table, table->inserted, table->inserted_count, false, err));
    PF_TRY(stage(table, table->changed, table->changed_count, true, err));
    if (table->edit.add_count > 0) {
        PF_TRY(sync_folder(table, "fragments", err));
        PF_TRY(sync_folder(table, "keys", err));
    }
    return stage_gone(table, err);
}

/* ---- all tables ---- */

static sluice_status hand_over(table_edit *table, sluice_error *err)
{
    char stem[64] = "";
    if (table->job->write->attempt)
        stem_of(table, stem);
    return st_delta_add_edit(st_graph_volume(table->job->graph), &table->job->write->delta, &table->edit, stem, err);
}

static sluice_status add_edits(mut_job *job, table_edit *tables, uint32_t count, sluice_error *err)
{
    bool fits = !job->stages;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(gather(&tables[i], err));
    for (uint32_t i = 0; i < count && fits; i++)
        PF_TRY(attach_all(&tables[i], &bytes, &fits, err));
    if (!fits) {
        PF_TRY(co_write_need_attempt(job->write, err));
        job->write->arms = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (fits)
            PF_TRY(list_gone(&tables[i], err));
        else
            PF_TRY(stage_all(&tables[i], err));
        PF_TRY(hand_over(&tables[i], err));
    }
    return SLUICE_OK;
}

static bool has_effect(const mut_type *type)
{
    for (uint32_t i = 0; i < type->object_count; i++)
        if (type->objects[i]->exists != type->objects[i]->existed || type->objects[i]->changed)
            return true;
    return false;
}

sluice_status mut_add_edits(mut_job *job, sluice_error *err)
{
    uint32_t count = 0;
    table_edit *tables = calloc((size_t)job->type_count + 1, sizeof(*tables));
    if (!tables)
        return pf_fail_memory(err);
    job->staged = 0;
    for (uint32_t i = 0; i < job->type_count; i++)
        if (has_effect(&job->types[i]))
            tables[count++] = (table_edit){.job = job, .type = &job->types[i]};
    sluice_status status = add_edits(job, tables, count, err);
    for (uint32_t i = 0; i < count; i++)
        free_table_edit(&tables[i]);
    free(tables);
    return status;
}
