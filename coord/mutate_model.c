/*
 * The model of a mutation: what each type has in memory, and the objects, found by key in a table of their own and then
 * in the base.
 *
 * Values lie in one pool of columns per type; an object names rows of it, of each column by itself. Keys lie in columns
 * of their own, in step, so that they can be hashed and compared like those of the base.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include "store/fragment/fragment_format.h"
#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

static sluice_status make_key(mut_type *type, sluice_error *err)
{
    static char row_id[] = ST_FRAGMENT_ROW_ID;
    type->key_count = st_run_columns(type->def, ST_RUN_KEY, 0, type->key_columns);
    type->key_members = type->key_count > 0 ? type->key_count : 1;
    type->key_specs = calloc(type->key_members, sizeof(*type->key_specs));
    type->keys = calloc(type->key_members, sizeof(st_column_builder *));
    if (!type->key_specs || !type->keys)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < type->key_members; i++) {
        type->key_specs[i] = type->key_count > 0 ? type->specs[type->key_columns[i]]
                                                 : (st_column_spec){.name = row_id, .type = ST_ROW_ID};
        PF_TRY(st_column_builder_new(&type->key_specs[i], &type->keys[i], err));
    }
    return SLUICE_OK;
}

static bool is_key_column(const mut_type *type, uint32_t column)
{
    for (uint32_t i = 0; i < type->key_count; i++)
        if (type->key_columns[i] == column)
            return true;
    return false;
}

static sluice_status make_type(mut_job *job, mut_type *type, sluice_error *err)
{
    PF_TRY(st_type_columns(job->schema, type->def, &type->specs, &type->count, err));
    type->pool = calloc((size_t)type->count + 1, sizeof(st_column_builder *));
    type->checks = calloc((size_t)type->count + 1, sizeof(*type->checks));
    if (!type->pool || !type->checks)
        return pf_fail_memory(err);
    PF_TRY(make_key(type, err));
    for (uint32_t i = 0; i < type->count; i++) {
        const st_property *property = i < type->ends ? NULL : &type->def->properties[i - type->ends];
        PF_TRY(st_column_builder_new(&type->specs[i], &type->pool[i], err));
        PF_TRY(wk_check_make(property, type->specs[i].type, property == NULL || is_key_column(type, i),
                             &type->checks[i], err));
    }
    return SLUICE_OK;
}

sluice_status mut_model_make(mut_job *job, sluice_error *err)
{
    job->types = calloc((size_t)job->schema->type_count + 1, sizeof(*job->types));
    if (!job->types)
        return pf_fail_memory(err);
    job->type_count = job->schema->type_count;
    for (uint32_t i = 0; i < job->type_count; i++) {
        mut_type *type = &job->types[i];
        type->def = &job->schema->types[i];
        type->ends = type->def->edge ? 2 : 0;
    }
    return SLUICE_OK;
}

static void free_object(mut_object *object)
{
    free(object->base);
    free(object->values);
    free(object->records);
    free(object->reads_property);
    free(object);
}

static void free_type(mut_type *type)
{
    for (uint32_t i = 0; i < type->object_count; i++)
        free_object(type->objects[i]);
    free(type->objects);
    free(type->slots);
    for (uint32_t i = 0; type->pool && i < type->count; i++)
        st_column_builder_free(type->pool[i]);
    for (uint32_t i = 0; type->checks && i < type->count; i++)
        wk_check_free(&type->checks[i]);
    for (uint32_t i = 0; type->keys && i < type->key_members; i++)
        st_column_builder_free(type->keys[i]);
    free(type->pool);
    free(type->checks);
    free(type->keys);
    free(type->key_specs); /* the columns' */
    st_type_columns_free(type->specs, type->count);
}

void mut_model_free(mut_job *job)
{
    for (uint32_t i = 0; job->types && i < job->type_count; i++)
        free_type(&job->types[i]);
    free(job->types);
    free(job->lines);
    job->types = NULL;
    job->lines = NULL;
    job->line_room = job->record = 0;
    job->fault = (wk_fault){0};
    job->inserted = job->updated = job->deleted = job->skipped = 0;
}

mut_type *mut_type_find(mut_job *job, const char *name)
{
    const st_type_def *def = st_schema_find(job->schema, name);
    return def ? &job->types[def - job->schema->types] : NULL;
}

sluice_status mut_type_need(mut_job *job, mut_type *type, sluice_error *err)
{
    return type->specs ? SLUICE_OK : make_type(job, type, err);
}

static st_snapshot *mut_rows(const mut_job *job)
{
    return job->rows ? job->rows : job->write->base;
}

sluice_status mut_reader(mut_job *job, mut_type *type, st_table_reader **ret_reader, sluice_error *err)
{
    PF_TRY(mut_type_need(job, type, err));
    if (!type->reader)
        PF_TRY(st_table_reader_get(mut_rows(job), type->def->table, &type->reader, err));
    type->probed = true;
    *ret_reader = type->reader;
    return SLUICE_OK;
}

/* ---- keys ---- */

void mut_key_views(const mut_type *type, st_column *storage, const st_column **ret_key)
{
    for (uint32_t i = 0; i < type->key_members; i++) {
        st_builder_view(type->keys[i], &storage[i]);
        ret_key[i] = &storage[i];
    }
}

void mut_end_view(const mut_type *node, st_column *members, st_column *ret_column)
{
    for (uint32_t i = 0; i < node->key_members; i++)
        st_builder_view(node->keys[i], &members[i]);
    *ret_column = members[0];
    if (node->key_members > 1)
        *ret_column = (st_column){
            .type = ST_STRUCT, .length = members[0].length, .children = members, .child_count = node->key_members};
}

static void drop_key(mut_type *type, uint64_t key)
{
    for (uint32_t i = 0; i < type->key_members; i++)
        st_builder_truncate(type->keys[i], key);
}

/* ---- the table of objects ---- */

static mut_object *look_up(const mut_type *type, uint64_t hash, uint64_t key)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *columns[ST_RUN_COLUMNS_MAX];
    if (type->slot_count == 0)
        return NULL;
    mut_key_views(type, storage, columns);
    for (uint32_t at = (uint32_t)hash & (type->slot_count - 1); type->slots[at];
         at = (at + 1) & (type->slot_count - 1)) {
        mut_object *object = type->slots[at];
        if (object->hash == hash && st_key_equal(columns, object->key, columns, key, type->key_members))
            return object;
    }
    return NULL;
}

static void put(mut_object **slots, uint32_t slot_count, mut_object *object)
{
    uint32_t at = (uint32_t)object->hash & (slot_count - 1);
    while (slots[at])
        at = (at + 1) & (slot_count - 1);
    slots[at] = object;
}

static sluice_status enter(mut_type *type, mut_object *object, sluice_error *err)
{
    if (2 * (type->named_count + 1) > type->slot_count) {
        uint32_t slot_count = type->slot_count ? type->slot_count * 2 : 64;
        mut_object **slots = calloc(slot_count, sizeof(mut_object *));
        if (!slots)
            return pf_fail_memory(err);
        for (uint32_t i = 0; i < type->slot_count; i++)
            if (type->slots[i])
                put(slots, slot_count, type->slots[i]);
        free(type->slots);
        type->slots = slots;
        type->slot_count = slot_count;
    }
    put(type->slots, type->slot_count, object);
    type->named_count++;
    object->named = true;
    return SLUICE_OK;
}

static sluice_status make_object(mut_type *type, mut_object **ret_object, sluice_error *err)
{
    if (type->object_count == type->object_room) {
        uint32_t room = type->object_room ? type->object_room * 2 : 16;
        mut_object **objects = realloc(type->objects, room * sizeof(mut_object *));
        if (!objects)
            return pf_fail_memory(err);
        type->objects = objects;
        type->object_room = room;
    }
    mut_object *object = calloc(1, sizeof(*object));
    if (!object)
        return pf_fail_memory(err);
    *object = (mut_object){.type = type};
    object->records = calloc((size_t)type->count + 1, sizeof(*object->records));
    object->values = malloc(((size_t)type->count + 1) * sizeof(*object->values));
    object->reads_property = calloc((size_t)type->count + 1, sizeof(*object->reads_property));
    if (!object->records || !object->values || !object->reads_property) {
        free_object(object);
        return pf_fail_memory(err);
    }
    for (uint32_t i = 0; i < type->count; i++)
        object->values[i] = MUT_NO_VALUE;
    type->objects[type->object_count++] = object;
    *ret_object = object;
    return SLUICE_OK;
}

/* Takes the row of the base into the object. */
static sluice_status load_row(mut_job *job, mut_object *object, uint32_t fragment, uint64_t position, sluice_error *err)
{
    mut_type *type = object->type;
    object->base = malloc(((size_t)type->count + 1) * sizeof(*object->base));
    if (!object->base)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < type->count; i++)
        object->base[i] = object->values[i] = st_builder_length(type->pool[i]);
    PF_TRY(st_table_row(mut_rows(job), type->def, type->reader, fragment, position, type->pool, &object->row_id, err));
    object->existed = object->exists = true;
    return SLUICE_OK;
}

/* The object of the newest key, which stands in the last row of the keys: known, in the base, or nowhere. */
static sluice_status find_key(mut_job *job, mut_type *type, mut_object **ret_object, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *columns[ST_RUN_COLUMNS_MAX];
    uint64_t key = st_builder_length(type->keys[0]) - 1, position = 0;
    uint32_t fragment = 0;
    bool found = false;
    st_table_reader *reader = NULL;
    mut_key_views(type, storage, columns);
    uint64_t hash = st_key_hash_row(columns, type->key_members, key);
    *ret_object = look_up(type, hash, key);
    if (*ret_object) {
        drop_key(type, key);
        return SLUICE_OK;
    }
    PF_TRY(make_object(type, ret_object, err));
    mut_object *object = *ret_object;
    object->key = key;
    object->hash = hash;
    PF_TRY(enter(type, object, err));
    PF_TRY(mut_reader(job, type, &reader, err));
    PF_TRY(st_table_find_key(reader, columns, type->key_members, key, &found, &fragment, &position, err));
    if (found)
        return load_row(job, object, fragment, position, err);
    for (uint32_t i = 0; i < type->key_count; i++) { /* its key is what it will have */
        uint32_t column = type->key_columns[i];
        object->values[column] = st_builder_length(type->pool[column]);
        PF_TRY(st_append_from(type->pool[column], columns[i], key, err));
    }
    return SLUICE_OK;
}

sluice_status mut_new(mut_job *job, mut_type *type, mut_object **ret_object, sluice_error *err)
{
    PF_TRY(mut_type_need(job, type, err));
    return make_object(type, ret_object, err);
}

/* ---- by name ---- */

static sluice_status add_member(mut_job *job, mut_type *type, uint32_t i, const char *name, const st_node *node,
                                sluice_error *err)
{
    const wk_check *check = type->key_count > 0 ? &type->checks[type->key_columns[i]] : NULL;
    return mut_value(job, &type->key_specs[i], check, name, node, false, type->keys[i], err);
}

/* Where member `i` (of `count`) of a key in JSON stands: the value itself, in a list, or by name. */
static const st_node *member_node(const st_node *key, uint32_t i, uint32_t count, const char *name)
{
    if (key->kind == ST_NODE_OBJECT)
        return key->count == count ? st_node_member(key, name) : NULL;
    if (key->kind != ST_NODE_ARRAY)
        return count == 1 ? key : NULL;
    const st_node *node = key->count == count ? key->first : NULL;
    while (node && i-- > 0)
        node = node->next;
    return node;
}

static sluice_status add_properties(mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_type *type = record->type;
    const st_type_def *def = type->def;
    for (uint32_t i = 0; i < def->key_count && !mut_failed(job); i++) {
        const char *name = def->properties[def->key[i]].name;
        const st_node *node =
            record->key ? member_node(record->key, i, def->key_count, name) : st_node_member(record->set, name);
        if (!node) {
            mut_fault(job, record->number, SLUICE_INPUT_SYNTAX, "the key of %s is %s", def->name,
                      def->key_count == 1 ? "one value"
                                          : "a list of its values, or an object of their names and values");
            return SLUICE_OK;
        }
        PF_TRY(add_member(job, type, type->ends + i, name, node, err));
    }
    return SLUICE_OK;
}

sluice_status mut_find(mut_job *job, const mut_record *record, mut_object **ret_object, sluice_error *err)
{
    mut_type *type = record->type;
    uint64_t before = st_builder_length(type->keys[0]);
    pf_buffer bytes = {0};
    sluice_error error = {0};
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *columns[ST_RUN_COLUMNS_MAX];

    *ret_object = NULL;
    if (type->key_count == 0) {
        PF_TRY(add_member(job, type, 0, "_row_id", record->row_id ? record->row_id : record->key, err));
    } else {
        if (type->def->edge) {
            PF_TRY(add_member(job, type, 0, "from", record->from, err));
            if (!mut_failed(job))
                PF_TRY(add_member(job, type, 1, "to", record->to, err));
        }
        if (!mut_failed(job))
            PF_TRY(add_properties(job, record, err));
    }
    if (!mut_failed(job)) {
        uint32_t ends = type->key_count > 0 ? type->ends : 0; /* longer than a node's key they name none */
        mut_key_views(type, storage, columns);
        sluice_status status = st_key_encode(columns + ends, type->key_members - ends, before, &bytes, &error);
        pf_buffer_free(&bytes);
        if (status == SLUICE_RESOURCE_LIMIT)
            mut_fault(job, record->number, status, "%s", error.text);
        else if (status != SLUICE_OK)
            return pf_fail_memory(err);
    }
    if (mut_failed(job)) {
        drop_key(type, before);
        return SLUICE_OK;
    }
    return find_key(job, type, ret_object, err);
}

sluice_status mut_of_key(mut_job *job, mut_type *type, const st_column *const *key, uint64_t row,
                         mut_object **ret_object, sluice_error *err)
{
    PF_TRY(mut_type_need(job, type, err));
    for (uint32_t i = 0; i < type->key_members; i++)
        PF_TRY(st_append_from(type->keys[i], key[i], row, err));
    return find_key(job, type, ret_object, err);
}

sluice_status mut_of_end(mut_job *job, mut_type *node, const st_column *column, uint64_t row, mut_object **ret_object,
                         sluice_error *err)
{
    PF_TRY(mut_type_need(job, node, err));
    for (uint32_t i = 0; i < node->key_members; i++)
        PF_TRY(st_append_from(node->keys[i], column->type == ST_STRUCT ? &column->children[i] : column, row, err));
    return find_key(job, node, ret_object, err);
}

/* ---- by row ---- */

sluice_status mut_of_row(mut_job *job, mut_type *type, uint32_t fragment, uint64_t position, mut_object **ret_object,
                         sluice_error *err)
{
    uint32_t batch = 0;
    uint64_t row = 0, id = 0;
    st_fragment *opened = NULL;
    PF_TRY(mut_type_need(job, type, err));
    if (type->key_count == 0) {
        PF_TRY(st_reader_row_id(type->reader, fragment, position, &id, err));
        PF_TRY(st_append_u64(type->keys[0], id, err));
        return find_key(job, type, ret_object, err);
    }
    PF_TRY(st_table_reader_fragment(type->reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &row);
    for (uint32_t i = 0; i < type->key_count; i++) {
        st_column column;
        PF_TRY(st_table_reader_column(type->reader, opened, batch, type->key_columns[i], &column, err));
        PF_TRY(st_append_from(type->keys[i], &column, row, err));
    }
    return find_key(job, type, ret_object, err);
}
