/*
 * The rules, on the net effect: null, checks of values, unique tuples (LESSONS K-06), ends and counts.
 *
 * A tuple may be taken that another object of the file gives up, by deletion or by another value: so two may swap.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include <stdlib.h>

/* ---- values ---- */

static void check_value(mut_job *job, const mut_object *object, uint32_t column)
{
    const mut_type *type = object->type;
    const char *name = type->specs[column].name;
    wk_fault fault = {0};
    st_column view;
    if (column < type->ends) /* looked at when it was read */
        return;
    if (mut_is_null(type, column, object->values[column])) {
        if (!type->specs[column].nullable)
            mut_fault(job, object->records[column], SLUICE_CONSTRAINT_NULL,
                      "column %s: there is no value, and it may not be null", name);
        return;
    }
    st_builder_view(type->pool[column], &view);
    if (type->checks[column].any && !wk_check_value(&type->checks[column], name, &view, object->values[column], &fault))
        mut_fault(job, object->records[column], fault.code, "%s", fault.text);
}

/* What a record changed: nothing, when all values are as they were. */
static void settle(mut_job *job, mut_object *object)
{
    const mut_type *type = object->type;
    for (uint32_t i = 0; i < type->count && object->exists; i++) {
        bool differs = !object->existed || !mut_same(type, i, object->values[i], object->base[i]);
        object->changed = object->changed || (object->existed && differs);
        if (differs)
            check_value(job, object, i);
    }
    job->inserted += object->exists && !object->existed;
    job->deleted += !object->exists && object->existed;
    job->updated += object->changed;
}

/* ---- unique tuples ---- */

typedef struct tuple {
    uint64_t hash;
    uint64_t row; /* of the columns below */
    mut_object *object;
    uint32_t record;
} tuple;

typedef struct tuples {
    mut_job *job;
    mut_type *type;
    const st_unique *unique;
    st_column_builder *builders[ST_KEY_MEMBERS_MAX];
    st_column views[ST_KEY_MEMBERS_MAX];
    const st_column *columns[ST_KEY_MEMBERS_MAX];
    tuple *items;
    uint32_t count;
    const mut_object **by_row; /* objects of the base, by row id */
    uint32_t by_row_count;
    const tuple *asked;
} tuples;

static bool sets_tuple(const tuples *all, const mut_object *object)
{
    bool sets = object->exists && !object->existed;
    for (uint32_t i = 0; i < all->unique->count && object->exists && object->existed; i++) {
        uint32_t column = all->type->ends + all->unique->properties[i];
        sets = sets || !mut_same(all->type, column, object->values[column], object->base[column]);
    }
    return sets;
}

/* `values`: as they are now, or in the base. */
static sluice_status add_tuple(tuples *all, mut_object *object, const uint64_t *values, sluice_error *err)
{
    tuple *item = &all->items[all->count];
    *item = (tuple){.object = object, .row = all->count};
    for (uint32_t i = 0; i < all->unique->count; i++) {
        uint32_t column = all->type->ends + all->unique->properties[i];
        if (mut_is_null(all->type, column, values[column])) /* never collides */
            return SLUICE_OK;
        item->record = object->records[column] > item->record ? object->records[column] : item->record;
    }
    for (uint32_t i = 0; i < all->unique->count; i++) {
        uint32_t column = all->type->ends + all->unique->properties[i];
        st_column from;
        st_builder_view(all->type->pool[column], &from);
        PF_TRY(st_append_from(all->builders[i], &from, values[column], err));
    }
    all->count++;
    return SLUICE_OK;
}

static int by_hash(const void *a, const void *b)
{
    const tuple *left = a, *right = b;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return (left->record > right->record) - (left->record < right->record);
}

static int by_row(const void *a, const void *b)
{
    const mut_object *left = *(const mut_object *const *)a, *right = *(const mut_object *const *)b;
    return (left->row_id > right->row_id) - (left->row_id < right->row_id);
}

static void collide(tuples *all, const tuple *item, const tuple *other)
{
    const char *name = all->type->def->properties[all->unique->properties[0]].name;
    PF_ASSERT(item);
    if (other)
        mut_fault(all->job, item->record, SLUICE_CONSTRAINT_UNIQUE, "column %s: line %llu has the same unique value",
                  name, (unsigned long long)all->job->lines[other->record]);
    else
        mut_fault(all->job, item->record, SLUICE_CONSTRAINT_UNIQUE, "column %s: the unique value is taken", name);
}

/* A row of the base has the tuple: does it keep it? */
static sluice_status meet(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err)
{
    tuples *all = context;
    mut_object wanted = {0};
    const mut_object *sought = &wanted, **found = NULL;
    PF_TRY(st_reader_row_id(all->type->reader, fragment, position, &wanted.row_id, err));
    if (all->by_row_count > 0)
        found = bsearch(&sought, all->by_row, all->by_row_count, sizeof(*all->by_row), by_row);
    if (found && (!(*found)->exists || sets_tuple(all, *found)))
        return SLUICE_OK;
    collide(all, all->asked, NULL);
    *stop = true;
    return SLUICE_OK;
}

static sluice_status check_length(tuples *all, const tuple *item, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_error error = {0};
    sluice_status status = st_key_encode(all->columns, all->unique->count, item->row, &bytes, &error);
    pf_buffer_free(&bytes);
    if (status == SLUICE_RESOURCE_LIMIT)
        mut_fault(all->job, item->record, status, "a unique value: %s", error.text);
    return status == SLUICE_OK || status == SLUICE_RESOURCE_LIMIT ? SLUICE_OK : pf_fail_memory(err);
}

static void hash(tuples *all)
{
    for (uint32_t i = 0; i < all->unique->count; i++) {
        st_builder_view(all->builders[i], &all->views[i]);
        all->columns[i] = &all->views[i];
    }
    for (uint32_t i = 0; i < all->count; i++)
        all->items[i].hash = st_key_hash_row(all->columns, all->unique->count, all->items[i].row);
}

static sluice_status judge(tuples *all, sluice_error *err)
{
    st_table_reader *reader = NULL;
    PF_TRY(mut_reader(all->job, all->type, &reader, err));
    hash(all);
    for (uint32_t i = 0; i < all->count; i++)
        PF_TRY(check_length(all, &all->items[i], err));
    qsort(all->items, all->count, sizeof(*all->items), by_hash);
    for (uint32_t i = 0; i < all->count; i++) {
        for (uint32_t k = i; k-- > 0 && all->items[k].hash == all->items[i].hash;)
            if (st_key_equal(all->columns, all->items[k].row, all->columns, all->items[i].row, all->unique->count)) {
                collide(all, &all->items[i], &all->items[k]);
                break;
            }
        all->asked = &all->items[i];
        PF_TRY(st_table_each_match(reader, ST_RUN_UNIQUE, all->unique->id, all->columns, all->unique->count,
                                   all->items[i].row, meet, all, err));
    }
    return SLUICE_OK;
}

static sluice_status begin(tuples *all, sluice_error *err)
{
    all->items = calloc((size_t)all->type->object_count + 1, sizeof(*all->items));
    all->by_row = calloc((size_t)all->type->object_count + 1, sizeof(*all->by_row));
    if (!all->items || !all->by_row)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < all->unique->count; i++)
        PF_TRY(st_column_builder_new(&all->type->specs[all->type->ends + all->unique->properties[i]], &all->builders[i],
                                     err));
    return SLUICE_OK;
}

static void end(tuples *all)
{
    for (uint32_t i = 0; i < all->unique->count; i++)
        st_column_builder_free(all->builders[i]);
    free(all->items);
    free(all->by_row);
}

static sluice_status check_unique(mut_job *job, mut_type *type, const st_unique *unique, sluice_error *err)
{
    tuples all = {.job = job, .type = type, .unique = unique};
    sluice_status status;
    PF_ASSERT(unique->count <= ST_KEY_MEMBERS_MAX);
    PF_GOTO(status, done, begin(&all, err));
    for (uint32_t i = 0; i < type->object_count; i++) {
        mut_object *object = type->objects[i];
        if (object->existed)
            all.by_row[all.by_row_count++] = object;
        if (sets_tuple(&all, object))
            PF_GOTO(status, done, add_tuple(&all, object, object->values, err));
    }
    qsort(all.by_row, all.by_row_count, sizeof(*all.by_row), by_row);
    if (all.count > 0)
        status = judge(&all, err);
done:
    end(&all);
    return status;
}

sluice_status mut_tuple_hashes(mut_job *job, mut_type *type, const st_unique *unique, bool freed, uint64_t **ret_hashes,
                               uint64_t *ret_count, sluice_error *err)
{
    tuples all = {.job = job, .type = type, .unique = unique};
    sluice_status status;
    PF_GOTO(status, done, begin(&all, err));
    for (uint32_t i = 0; i < type->object_count; i++) {
        mut_object *object = type->objects[i];
        bool gives_up = object->existed && (!object->exists || sets_tuple(&all, object));
        if (freed ? gives_up : sets_tuple(&all, object))
            PF_GOTO(status, done, add_tuple(&all, object, freed ? object->base : object->values, err));
    }
    hash(&all);
    *ret_count = 0;
    *ret_hashes = malloc(((size_t)all.count + 1) * sizeof(**ret_hashes));
    if (!*ret_hashes)
        status = pf_fail_memory(err);
    while (*ret_hashes && *ret_count < all.count) {
        (*ret_hashes)[*ret_count] = all.items[*ret_count].hash;
        ++*ret_count;
    }
done:
    end(&all);
    return status;
}

void mut_settle(mut_job *job)
{
    for (uint32_t i = 0; i < job->type_count; i++)
        for (uint32_t k = 0; k < job->types[i].object_count; k++)
            settle(job, job->types[i].objects[k]);
}

sluice_status mut_check(mut_job *job, sluice_error *err)
{
    PF_TRY(mut_check_ends(job, err)); /* first: it may meet more objects */
    for (uint32_t i = 0; i < job->type_count; i++) {
        mut_type *type = &job->types[i];
        for (uint32_t k = 0; k < type->object_count; k++)
            settle(job, type->objects[k]);
        for (uint32_t u = 0; u < type->def->unique_count && type->object_count > 0; u++)
            PF_TRY(check_unique(job, type, &type->def->uniques[u], err));
    }
    return SLUICE_OK;
}
