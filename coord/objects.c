/*
 * Listing staged objects and marking the named ones (coord/objects.h). Reads only; a root that cannot be read stops it
 * (G-03).
 */
#include "coord/objects.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_LENGTH (PF_ID_TEXT - 1)

static const char *const folders[] = {"deletions", "fragments", "indexes", "keys", "lists"};

void co_objects_free(co_objects *objects)
{
    free(objects->items);
    *objects = (co_objects){0};
}

bool co_attempt_of_name(const char *name, pf_id *ret_attempt)
{
    char text[PF_ID_TEXT];
    if (strlen(name) <= ID_LENGTH || name[ID_LENGTH] != '-')
        return false;
    memcpy(text, name, ID_LENGTH);
    text[ID_LENGTH] = '\0';
    return pf_id_parse(text, ret_attempt);
}

typedef struct object_walk {
    st_graph *graph;
    const pf_id *attempt;
    co_objects *objects;
    char table[96];
    const char *folder;
} object_walk;

static sluice_status keep_object(object_walk *walk, const char *name, const pf_id *attempt, sluice_error *err)
{
    co_objects *objects = walk->objects;
    if (objects->count == objects->room) {
        size_t room = objects->room ? objects->room * 2 : 64;
        co_object *grown = realloc(objects->items, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        objects->items = grown;
        objects->room = room;
    }
    co_object *object = &objects->items[objects->count];
    *object = (co_object){.attempt = *attempt};
    int length = snprintf(object->path, sizeof object->path, "%s/%s/%s", walk->table, walk->folder, name);
    if (length < 0 || (size_t)length >= sizeof object->path) {
        objects->unknown++;
        return SLUICE_OK;
    }
    objects->count++;
    return SLUICE_OK;
}

static sluice_status on_file(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    object_walk *walk = context;
    pf_id attempt;
    if (kind != PF_KIND_FILE || !co_attempt_of_name(name, &attempt)) {
        walk->objects->unknown++;
        return SLUICE_OK;
    }
    if (walk->attempt && !pf_id_equal(&attempt, walk->attempt))
        return SLUICE_OK;
    return keep_object(walk, name, &attempt, err);
}

/* Lists a folder that may be absent. */
static sluice_status list_folder(st_graph *graph, const char *path, pf_list_fn *each, void *context, sluice_error *err)
{
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(st_graph_volume(graph), path, &stat, &stat_error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = stat_error;
        return status;
    }
    return pf_list(st_graph_volume(graph), path, each, context, err);
}

static sluice_status on_table(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    object_walk *walk = context;
    if (kind != PF_KIND_FOLDER || strlen(name) > 20) {
        walk->objects->unknown++;
        return SLUICE_OK;
    }
    (void)snprintf(walk->table, sizeof walk->table, "tables/%s", name);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[128];
        walk->folder = folders[i];
        (void)snprintf(path, sizeof path, "%s/%s", walk->table, folders[i]);
        PF_TRY(list_folder(walk->graph, path, on_file, walk, err));
    }
    return SLUICE_OK;
}

static int by_path(const void *a, const void *b)
{
    const co_object *left = a, *right = b;
    return strcmp(left->path, right->path);
}

sluice_status co_objects_list(st_graph *graph, const pf_id *attempt, co_objects *ret_objects, sluice_error *err)
{
    *ret_objects = (co_objects){0};
    object_walk walk = {.graph = graph, .attempt = attempt, .objects = ret_objects};
    sluice_status status = list_folder(graph, "tables", on_table, &walk, err);
    if (status != SLUICE_OK)
        co_objects_free(ret_objects);
    else if (ret_objects->count)
        qsort(ret_objects->items, ret_objects->count, sizeof *ret_objects->items, by_path);
    return status;
}

static sluice_status mark_one(void *context, const char *path, sluice_error *err)
{
    (void)err;
    co_objects *objects = context;
    size_t low = 0, high = objects->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(objects->items[middle].path, path);
        if (order == 0) {
            objects->items[middle].named = true;
            return SLUICE_OK;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SLUICE_OK;
}

sluice_status co_objects_mark(st_graph *graph, co_objects *objects, uint64_t incarnation, uint64_t since,
                              uint64_t *ret_end, sluice_error *err)
{
    st_log *log = NULL;
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    PF_TRY(st_log_check_suspect(log, err)); /* healing may bring back a generation that nobody can read now */
    uint64_t end = st_log_end(log).number, first = st_log_first(log);
    *ret_end = end;
    for (uint64_t number = since + 1 > first ? since + 1 : first; number <= end; number++) {
        st_record record = {0};
        PF_TRY(st_log_read(log, number, &record, err));
        sluice_status status = st_record_objects(graph, &record, false, mark_one, objects, err);
        st_record_free(&record);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

/* ---- what a log keeps ---- */

typedef struct keeping {
    st_graph *graph;
    st_log *log;
    co_objects *objects;
    co_records *records;
} keeping;

bool co_records_have(const co_records *records, uint64_t incarnation, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < records->count; i++)
        if (records->items[i].incarnation == incarnation && records->items[i].generation >= first &&
            records->items[i].generation <= last)
            return true;
    return false;
}

static sluice_status need_record(void *context, uint64_t incarnation, uint64_t generation, sluice_error *err)
{
    co_records *records = ((keeping *)context)->records;
    for (size_t back = 0; back < 8 && back < records->count; back++) { /* most come in rows */
        const st_reach *known = &records->items[records->count - 1 - back];
        if (known->incarnation == incarnation && known->generation == generation)
            return SLUICE_OK;
    }
    if (records->count == records->room) {
        size_t room = records->room ? records->room * 2 : 256;
        st_reach *grown = realloc(records->items, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        records->items = grown;
        records->room = room;
    }
    records->items[records->count++] = (st_reach){incarnation, generation, 0};
    return SLUICE_OK;
}

static sluice_status mark_object(void *context, const char *path, sluice_error *err)
{
    return mark_one(((keeping *)context)->objects, path, err);
}

static sluice_status mark_state(keeping *walk, uint64_t number, sluice_error *err)
{
    st_view *view = NULL;
    PF_TRY(st_view_load_kept(walk->graph, walk->log, number, &view, err));
    sluice_status status = st_view_objects(walk->graph, view, mark_object, need_record, walk, err);
    st_view_free(view);
    return status;
}

/* Is the generation one of several commits? Then the state between two of them begins at the generation before. */
static sluice_status mark_first(keeping *walk, uint64_t number, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    PF_TRY(mark_state(walk, number, err));
    sluice_status status = st_log_read(walk->log, number, &record, err);
    if (status == SLUICE_OK)
        status = st_generation_decode(&record, &generation, err);
    bool group = generation.commit_count > 1;
    st_generation_free(&generation);
    st_record_free(&record);
    return status == SLUICE_OK && group && number > 1 ? mark_state(walk, number - 1, err) : status;
}

static sluice_status mark_range(keeping *walk, uint64_t from, uint64_t to, sluice_error *err)
{
    uint64_t first = st_log_first(walk->log);
    if (from <= first && first > 1) /* a branch that was forked: where it begins */
        PF_TRY(mark_state(walk, first - 1, err));
    from = from < first ? first : from;
    if (from > to)
        return SLUICE_OK;
    if (from > first)
        PF_TRY(mark_first(walk, from, err));
    for (uint64_t number = from; number <= to; number++) {
        st_record record = {0};
        PF_TRY(need_record(walk, st_log_incarnation(walk->log), number, err));
        PF_TRY(st_log_read(walk->log, number, &record, err));
        sluice_status status =
            st_record_objects(walk->graph, &record, number == from && from > first, mark_one, walk->objects, err);
        st_record_free(&record);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

sluice_status co_objects_mark_kept(st_graph *graph, co_objects *objects, co_records *records, uint64_t incarnation,
                                   const st_boundary *boundary, uint64_t floor, uint64_t *ret_end, sluice_error *err)
{
    keeping walk = {.graph = graph, .objects = objects, .records = records};
    PF_TRY(st_graph_log(graph, incarnation, &walk.log, err));
    PF_TRY(st_log_refresh(walk.log, err));
    PF_TRY(st_log_check_suspect(walk.log, err)); /* healing may bring back a generation that nobody can read now */
    uint64_t end = st_log_end(walk.log).number, below = boundary ? boundary->below : 0;
    uint64_t suffix = floor < below ? floor : below;
    *ret_end = end;
    for (uint32_t i = 0; boundary && i < boundary->kept_count && boundary->kept[i].first < suffix; i++) {
        const st_range *kept = &boundary->kept[i];
        if (kept->last >= st_log_first(walk.log))
            PF_TRY(mark_range(&walk, kept->first, kept->last < suffix ? kept->last : suffix - 1, err));
        else if (kept->last + 1 == st_log_first(walk.log))
            PF_TRY(mark_state(&walk, kept->last, err));
    }
    return mark_range(&walk, suffix, end, err);
}
