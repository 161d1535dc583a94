/*
 * What a mutation read and what it changed, for arbitration (read_set.h, K-01): all as lists of hashes.
 *
 * | for                                  | read                    | change                      |
 * | a key that was not there             | KEY_ABSENT              | KEY_INSERTED                |
 * | a row that was looked at, or written | ROW                     | ROW_UPDATED, by property    |
 * | a property that is set by an update  | PROPERTY (ends it)      |                             |
 * | what is deleted, what is asserted    | OBJECT (ends it)        | KEY_DELETED                 |
 * | ends of a new edge                   | KEY_PRESENT; COUNT      | ENDPOINT_USED               |
 * | a deleted node, a detached one       | EDGES_EMPTY             |                             |
 * | a unique tuple                       | UNIQUE_ABSENT           | UNIQUE_SET, UNIQUE_FREED    |
 *
 * What ends the write comes first, so that it is what a conflict is called. A list beyond its bound counts as
 * everything.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define LISTED_MAX 65536u

typedef bool pick_fn(const mut_object *object, uint32_t column);

typedef struct list {
    uint64_t *hashes;
    uint64_t count, room;
} list;

static sluice_status push(list *to, uint64_t hash, sluice_error *err)
{
    if (to->count == to->room) {
        uint64_t room = to->room ? to->room * 2 : 16;
        uint64_t *hashes = realloc(to->hashes, room * sizeof(*hashes));
        if (!hashes)
            return pf_fail_memory(err);
        to->hashes = hashes;
        to->room = room;
    }
    to->hashes[to->count++] = hash;
    return SLUICE_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Sorted, each once; takes the list over. */
static st_change make_set(list *from, uint64_t table, st_space space)
{
    st_change set = {.table = table, .space = space};
    if (from->count > LISTED_MAX) {
        set.whole = true;
        free(from->hashes);
    } else {
        qsort(from->hashes, from->count, sizeof(*from->hashes), by_value);
        for (uint64_t i = 0; i < from->count; i++)
            if (i == 0 || from->hashes[i] != from->hashes[set.hash_count - 1])
                from->hashes[set.hash_count++] = from->hashes[i];
        set.hashes = from->hashes;
    }
    *from = (list){0};
    return set;
}

static sluice_status add_read(mut_job *job, list *from, co_read_kind kind, uint64_t table, st_space space,
                              uint64_t property, uint32_t unique, sluice_error *err)
{
    if (from->count == 0)
        return SLUICE_OK;
    co_read read = {.kind = kind, .set = make_set(from, table, space)};
    read.set.property = property;
    read.set.unique = unique;
    sluice_status status = co_read_set_add(&job->write->reads, &read, err);
    if (status != SLUICE_OK)
        free(read.set.hashes);
    return status;
}

static sluice_status add_change(mut_job *job, list *from, uint64_t table, st_space space, uint64_t property,
                                uint32_t unique, sluice_error *err)
{
    st_changes *changes = &job->write->delta.changes;
    if (from->count == 0)
        return SLUICE_OK;
    st_change *items = realloc(changes->items, ((size_t)changes->count + 1) * sizeof(*items));
    if (!items)
        return pf_fail_memory(err);
    changes->items = items;
    items[changes->count] = make_set(from, table, space);
    items[changes->count].property = property;
    items[changes->count++].unique = unique;
    return SLUICE_OK;
}

/* ---- picking ---- */

static bool ends_by_object(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->reads_object;
}
static bool ends_by_property(const mut_object *object, uint32_t column)
{
    return object->reads_property[column];
}
static bool reads_absent(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->reads_absent;
}
static bool reads_row(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->reads_row;
}
static bool reads_edges(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->reads_edges || (!object->type->def->edge && object->existed && !object->exists);
}
static bool was_inserted(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->named && object->type->key_count > 0 && object->exists && !object->existed;
}
static bool was_deleted(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->existed && !object->exists;
}
static bool was_replaced(const mut_object *object, uint32_t column)
{
    (void)column;
    return object->changed && object->replaced;
}
static bool was_changed(const mut_object *object, uint32_t column)
{
    return object->changed && !object->replaced &&
           !mut_same(object->type, column, object->values[column], object->base[column]);
}

static sluice_status pick(const mut_type *type, pick_fn *picks, uint32_t column, list *into, sluice_error *err)
{
    for (uint32_t i = 0; i < type->object_count; i++)
        if (picks(type->objects[i], column))
            PF_TRY(push(into, type->objects[i]->hash, err));
    return SLUICE_OK;
}

static sluice_status read_picked(mut_job *job, const mut_type *type, pick_fn *picks, co_read_kind kind, st_space space,
                                 uint32_t column, sluice_error *err)
{
    list hashes = {0};
    uint64_t property = kind == CO_READ_PROPERTY ? type->def->properties[column - type->ends].id : 0;
    sluice_status status = pick(type, picks, column, &hashes, err);
    if (status == SLUICE_OK)
        status = add_read(job, &hashes, kind, type->def->table, space, property, 0, err);
    free(hashes.hashes);
    return status;
}

static sluice_status change_picked(mut_job *job, const mut_type *type, pick_fn *picks, st_space space, uint32_t column,
                                   uint64_t property, sluice_error *err)
{
    list hashes = {0};
    sluice_status status = pick(type, picks, column, &hashes, err);
    if (status == SLUICE_OK)
        status = add_change(job, &hashes, type->def->table, space, property, 0, err);
    free(hashes.hashes);
    return status;
}

/* ---- ends of new edges ---- */

static bool is_new_edge(const mut_object *object)
{
    return object->type->def->edge && object->exists && !object->existed;
}

static sluice_status add_end(mut_job *job, mut_type *type, uint32_t end, sluice_error *err)
{
    const mut_type *node = &job->types[end == 0 ? type->def->from : type->def->to];
    bool limited = (end == 0 ? type->def->max_out : type->def->max_in) != ST_NO_LIMIT;
    list present = {0}, used = {0}, counted = {0};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < type->object_count && status == SLUICE_OK; i++) {
        const mut_object *edge = type->objects[i], *at = edge->ends[end];
        if (!at) /* no edge that was inserted here, or was deleted here and came back */
            continue;
        if (at->existed)
            status = push(&present, at->hash, err);
        if (status == SLUICE_OK && is_new_edge(edge))
            status = push(&used, at->hash, err);
        if (status == SLUICE_OK && is_new_edge(edge) && limited)
            status = push(&counted, at->hash, err);
    }
    if (status == SLUICE_OK)
        status = add_read(job, &present, CO_READ_KEY_PRESENT, node->def->table, ST_SPACE_KEY_DELETED, 0, 0, err);
    if (status == SLUICE_OK)
        status = add_read(job, &counted, CO_READ_COUNT, type->def->table, ST_SPACE_ENDPOINT_USED, 0, 0, err);
    if (status == SLUICE_OK)
        status = add_change(job, &used, node->def->table, ST_SPACE_ENDPOINT_USED, 0, 0, err);
    free(present.hashes);
    free(used.hashes);
    free(counted.hashes);
    return status;
}

/* ---- unique tuples ---- */

static sluice_status add_unique(mut_job *job, mut_type *type, const st_unique *unique, sluice_error *err)
{
    list read = {0}, set = {0}, freed = {0};
    uint64_t table = type->def->table;
    sluice_status status = mut_tuple_hashes(job, type, unique, false, &read.hashes, &read.count, err);
    if (status == SLUICE_OK)
        status = mut_tuple_hashes(job, type, unique, false, &set.hashes, &set.count, err);
    if (status == SLUICE_OK)
        status = mut_tuple_hashes(job, type, unique, true, &freed.hashes, &freed.count, err);
    if (status == SLUICE_OK)
        status = add_read(job, &read, CO_READ_UNIQUE_ABSENT, table, ST_SPACE_UNIQUE_SET, 0, unique->id, err);
    if (status == SLUICE_OK)
        status = add_change(job, &set, table, ST_SPACE_UNIQUE_SET, 0, unique->id, err);
    if (status == SLUICE_OK)
        status = add_change(job, &freed, table, ST_SPACE_UNIQUE_FREED, 0, unique->id, err);
    free(read.hashes);
    free(set.hashes);
    free(freed.hashes);
    return status;
}

static sluice_status add_type(mut_job *job, mut_type *type, sluice_error *err)
{
    PF_TRY(read_picked(job, type, reads_absent, CO_READ_KEY_ABSENT, ST_SPACE_KEY_INSERTED, 0, err));
    PF_TRY(read_picked(job, type, reads_row, CO_READ_ROW, ST_SPACE_ROW_UPDATED, 0, err));
    PF_TRY(read_picked(job, type, reads_edges, CO_READ_EDGES_EMPTY, ST_SPACE_ENDPOINT_USED, 0, err));
    PF_TRY(change_picked(job, type, was_inserted, ST_SPACE_KEY_INSERTED, 0, 0, err));
    PF_TRY(change_picked(job, type, was_deleted, ST_SPACE_KEY_DELETED, 0, 0, err));
    PF_TRY(change_picked(job, type, was_replaced, ST_SPACE_ROW_UPDATED, 0, 0, err));
    for (uint32_t i = type->ends; i < type->count; i++)
        PF_TRY(change_picked(job, type, was_changed, ST_SPACE_ROW_UPDATED, i, type->def->properties[i - type->ends].id,
                             err));
    for (uint32_t end = 0; end < type->ends; end++)
        PF_TRY(add_end(job, type, end, err));
    for (uint32_t i = 0; i < type->def->unique_count; i++)
        PF_TRY(add_unique(job, type, &type->def->uniques[i], err));
    return SLUICE_OK;
}

sluice_status mut_add_sets(mut_job *job, sluice_error *err)
{
    for (uint32_t i = 0; i < job->type_count; i++) {
        const mut_type *type = &job->types[i];
        PF_TRY(read_picked(job, type, ends_by_object, CO_READ_OBJECT, ST_SPACE_ROW_UPDATED, 0, err));
        for (uint32_t c = type->ends; c < type->count && type->object_count > 0; c++)
            PF_TRY(read_picked(job, type, ends_by_property, CO_READ_PROPERTY, ST_SPACE_ROW_UPDATED, c, err));
    }
    for (uint32_t i = 0; i < job->type_count; i++)
        if (job->types[i].object_count > 0)
            PF_TRY(add_type(job, &job->types[i], err));
    return SLUICE_OK;
}

/* Shared gates of everything that is written or was asked about. */
sluice_status mut_add_gates(mut_job *job, sluice_error *err)
{
    co_write *write = job->write;
    uint64_t incarnation = st_snapshot_view(write->base)->incarnation;
    write->gates = calloc((size_t)job->type_count + 2, sizeof(*write->gates));
    if (!write->gates)
        return pf_fail_memory(err);
    write->gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_SCHEMA, .incarnation = incarnation};
    write->gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_BRANCH, .incarnation = incarnation};
    for (uint32_t i = 0; i < job->type_count; i++)
        if (job->types[i].probed || job->types[i].object_count > 0)
            write->gates[write->gate_count++] =
                (lk_gate_key){.kind = LK_GATE_TABLE, .incarnation = incarnation, .table = job->types[i].def->table};
    return SLUICE_OK;
}
