/*
 * Snapshots: pinned states, and what is asked of them by key.
 */
#include "lib/handle.h"
#include "store/read/key_text.h"
#include "store/read/row_json.h"
#include <stdlib.h>
#include <string.h>

sluice_status sluice_snapshot_open(sluice_graph *graph, const char *branch, const char *at,
                                   sluice_snapshot **ret_snapshot, sluice_error *err)
{
    PF_TRY(lib_need(ret_snapshot, "ret_snapshot", err));
    *ret_snapshot = NULL;
    PF_TRY(lib_check(graph, err));
    sluice_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return pf_fail_memory(err);
    sluice_status status = st_snapshot_open(graph->graph, branch, at, &snapshot->snapshot, err);
    if (status != SLUICE_OK) {
        free(snapshot);
        return status;
    }
    snapshot->graph = graph;
    snapshot->holds = 1;
    lib_graph_hold(graph);
    *ret_snapshot = snapshot;
    return SLUICE_OK;
}

void sluice_snapshot_close(sluice_snapshot *snapshot)
{
    if (snapshot)
        lib_snapshot_release(snapshot);
}

void sluice_snapshot_place(const sluice_snapshot *snapshot, sluice_place *ret_place)
{
    const st_view *view = st_snapshot_view(snapshot->snapshot);
    *ret_place = (sluice_place){.generation = view->generation, .index = view->index, .time_us = view->head_time_us};
    pf_id_text(&view->head, ret_place->commit);
}

sluice_status sluice_snapshot_schema(sluice_snapshot *snapshot, char **ret_json, size_t *ret_length, sluice_error *err)
{
    pf_buffer text = {0};
    PF_TRY(lib_need(ret_json, "ret_json", err));
    *ret_json = NULL;
    PF_TRY(lib_check_snapshot(snapshot, err));
    sluice_status status = st_schema_format(st_snapshot_view(snapshot->snapshot)->schema, &text, err);
    if (status == SLUICE_OK)
        return lib_give(&text, ret_json, ret_length, err);
    pf_buffer_free(&text);
    return status;
}

static sluice_status find_type(sluice_snapshot *snapshot, const char *name, const st_type_def **ret_type,
                               sluice_error *err)
{
    PF_TRY(lib_check_snapshot(snapshot, err));
    PF_TRY(lib_need(name, "the type", err));
    return st_snapshot_type(snapshot->snapshot, name, ret_type, err);
}

sluice_status sluice_count(sluice_snapshot *snapshot, const char *type, uint64_t *ret_rows, sluice_error *err)
{
    const st_type_def *def = NULL;
    PF_TRY(lib_need(ret_rows, "ret_rows", err));
    *ret_rows = 0;
    PF_TRY(find_type(snapshot, type, &def, err));
    return st_snapshot_count(snapshot->snapshot, def, ret_rows, err);
}

/* ---- one node ---- */

static sluice_status find_node(sluice_snapshot *snapshot, const st_type_def *type, const char *key_text,
                               st_key_values *key, st_table_reader **ret_reader, bool *ret_found,
                               uint32_t *ret_fragment, uint64_t *ret_position, sluice_error *err)
{
    PF_TRY(lib_need(key_text, "the key", err));
    PF_TRY(st_key_parse_json(type, key_text, strlen(key_text), key, err));
    PF_TRY(st_table_reader_get(snapshot->snapshot, type->table, ret_reader, err));
    return st_table_find_key(*ret_reader, key->columns, key->count, 0, ret_found, ret_fragment, ret_position, err);
}

sluice_status sluice_get(sluice_snapshot *snapshot, const char *type, const char *key_text, char **ret_json,
                         size_t *ret_length, sluice_error *err)
{
    const st_type_def *def = NULL;
    st_table_reader *reader = NULL;
    st_key_values key = {0};
    st_row_json row = {0};
    st_json json;
    pf_buffer text = {0};
    bool found = false;
    st_row_place place = {0};
    sluice_status status;
    PF_TRY(lib_need(ret_json, "ret_json", err));
    *ret_json = NULL;
    if (ret_length)
        *ret_length = 0;
    PF_TRY(find_type(snapshot, type, &def, err));
    PF_GOTO(status, done,
            find_node(snapshot, def, key_text, &key, &reader, &found, &place.fragment, &place.position, err));
    if (!found)
        goto done;
    PF_GOTO(status, done, st_row_json_begin(st_snapshot_view(snapshot->snapshot)->schema, def, &row, err));
    PF_GOTO(status, done, st_row_json_read(&row, snapshot->snapshot, &place, err));
    st_json_begin(&json, &text);
    PF_GOTO(status, done, st_row_json_put(&row, def->key_count == 0, &json, err));
    PF_GOTO(status, done, st_json_end(&json, false, err));
    status = lib_give(&text, ret_json, ret_length, err);
done:
    pf_buffer_free(&text);
    st_row_json_free(&row);
    st_key_values_free(&key);
    return status;
}

/* ---- neighbours ---- */

typedef struct neighbor_walk {
    sluice_neighbor_fn *each;
    void *context;
    pf_buffer key;
    bool stopped;
} neighbor_walk;

static sluice_status tell_neighbor(void *context, const st_type_def *type, const st_column *const *key,
                                   uint32_t key_count, uint64_t row, uint32_t depth, sluice_error *err)
{
    neighbor_walk *walk = context;
    walk->key.length = 0;
    PF_TRY(st_key_to_json(key, key_count, row, &walk->key, err));
    PF_TRY(pf_buffer_append(&walk->key, "", 1, err));
    walk->stopped = !walk->each(walk->context, type->name, (const char *)walk->key.data, depth);
    return walk->stopped ? pf_fail(err, SLUICE_CANCELLED, "stopped by the caller") : SLUICE_OK;
}

static sluice_status walk_from(sluice_snapshot *snapshot, const st_type_def *type, const st_key_values *key,
                               const sluice_neighbor_options *options, neighbor_walk *walk, sluice_error *err)
{
    static const st_direction directions[] = {[SLUICE_OUT] = ST_OUT, [SLUICE_IN] = ST_IN, [SLUICE_BOTH] = ST_BOTH};
    const st_type_def *edge = NULL;
    sluice_error local = {0};
    if ((unsigned)options->direction >= sizeof directions / sizeof directions[0])
        return pf_fail(err, SLUICE_USAGE, "there is no such direction");
    if (options->edge) {
        PF_TRY(st_snapshot_type(snapshot->snapshot, options->edge, &edge, err));
        if (!edge->edge)
            return pf_fail_private(err, SLUICE_USAGE, "`edge` names a type of nodes", "%s is a type of nodes",
                                   edge->name);
    }
    sluice_status status =
        st_neighbours(snapshot->snapshot, type, key->columns, key->count, edge, directions[options->direction],
                      options->depth ? options->depth : 1, tell_neighbor, walk, &local);
    if (status == SLUICE_OK || walk->stopped)
        return SLUICE_OK;
    if (err)
        *err = local;
    return status;
}

sluice_status sluice_neighbors(sluice_snapshot *snapshot, const char *type, const char *key_text,
                               const sluice_neighbor_options *options, sluice_neighbor_fn *each, void *context,
                               sluice_error *err)
{
    static const sluice_neighbor_options defaults;
    const st_type_def *def = NULL;
    st_table_reader *reader = NULL;
    st_key_values key = {0};
    neighbor_walk walk = {.each = each, .context = context};
    bool found = false;
    uint32_t fragment;
    uint64_t position;
    sluice_status status;
    PF_TRY(find_type(snapshot, type, &def, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    PF_GOTO(status, done, find_node(snapshot, def, key_text, &key, &reader, &found, &fragment, &position, err));
    status = found ? walk_from(snapshot, def, &key, options ? options : &defaults, &walk, err)
                   : pf_fail_private(err, SLUICE_NOT_FOUND, "the node is not there", "%s %s: not found", def->name,
                                     key_text);
done:
    pf_buffer_free(&walk.key);
    st_key_values_free(&key);
    return status;
}
