/*
 * The records of a mutation, one after the other: each finds its object as the ones before it have left it.
 *
 * Asking for something that cannot be done where it stands (an insert of what is there, an update of what is not, an
 * assertion that does not hold) is the record's fault and ends the file. What is a matter of the net effect is left to
 * the checks behind.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"

#define KEY_ROOM 160

static void missing(mut_job *job, const mut_object *object, bool deletes)
{
    char key[KEY_ROOM];
    mut_key_text(object, key, sizeof key);
    mut_fault(job, job->record, SLUICE_NOT_FOUND, "there is no %s %s", object->type->def->name, key);
    if (deletes)
        mut_hint(job, "there is nothing to delete: leave this line out");
    else if (object->type->key_count > 0)
        mut_hint(job, "\"op\": \"upsert\" inserts what is not there");
}

/* An object comes to be, or comes back. */
static sluice_status create(mut_job *job, mut_object *object, const mut_record *record, sluice_error *err)
{
    mut_type *type = object->type;
    for (uint32_t i = 0; i < type->count; i++) {
        bool stays = i < type->ends;
        for (uint32_t k = 0; k < type->key_count; k++)
            stays = stays || type->key_columns[k] == i;
        if (!stays)
            object->values[i] = MUT_NO_VALUE;
        object->records[i] = job->record;
    }
    object->exists = true;
    object->record = job->record;
    PF_TRY(mut_set(job, object, record->set, err));
    if (!mut_failed(job))
        PF_TRY(mut_fill(job, object, err));
    return !mut_failed(job) && type->def->edge ? mut_join_ends(job, object, err) : SLUICE_OK;
}

static sluice_status add_end(mut_job *job, mut_object *edge, uint32_t end, const st_node *node, sluice_error *err)
{
    mut_type *type = edge->type;
    edge->values[end] = st_builder_length(type->pool[end]);
    edge->records[end] = job->record;
    return mut_value(job, &type->specs[end], &type->checks[end], type->specs[end].name, node, false, type->pool[end],
                     err);
}

static sluice_status insert(mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_object *object = NULL;
    char key[KEY_ROOM];
    if (record->type->key_count > 0) {
        PF_TRY(mut_find(job, record, &object, err));
    } else {
        PF_TRY(mut_new(job, record->type, &object, err));
        if (record->type->def->edge)
            PF_TRY(add_end(job, object, 0, record->from, err));
        if (record->type->def->edge && !mut_failed(job))
            PF_TRY(add_end(job, object, 1, record->to, err));
    }
    if (mut_failed(job))
        return SLUICE_OK;
    if (object->exists) {
        mut_key_text(object, key, sizeof key);
        mut_fault(job, job->record, SLUICE_KEY_CONFLICT, "%s %s is there already", object->type->def->name, key);
        mut_hint(job, "\"op\": \"upsert\" changes what is there");
        return SLUICE_OK;
    }
    object->reads_absent = object->reads_absent || (object->named && !object->existed);
    return create(job, object, record, err);
}

static sluice_status set_properties(mut_job *job, mut_object *object, const mut_record *record, bool ends_write,
                                    sluice_error *err)
{
    object->reads_row = object->reads_row || object->existed;
    PF_TRY(mut_set(job, object, record->set, err));
    for (uint32_t i = 0; i < object->type->count && ends_write; i++)
        if (object->records[i] == job->record && object->existed && !object->replaced)
            object->reads_property[i] = true;
    return SLUICE_OK;
}

static sluice_status upsert(mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_object *object = NULL;
    PF_TRY(mut_find(job, record, &object, err));
    if (mut_failed(job))
        return SLUICE_OK;
    if (object->exists)
        return set_properties(job, object, record, false, err);
    object->reads_absent = object->reads_absent || !object->existed;
    return create(job, object, record, err);
}

/* Finds the target of an update or a delete and asks its condition; NULL when there is nothing to do. */
static sluice_status find_target(mut_job *job, const mut_record *record, mut_object **ret_object, sluice_error *err)
{
    mut_object *object = NULL;
    bool holds = true;
    *ret_object = NULL;
    PF_TRY(mut_find(job, record, &object, err));
    if (mut_failed(job))
        return SLUICE_OK;
    if (!object->exists) {
        missing(job, object, record->op == MUT_DELETE);
        return SLUICE_OK;
    }
    if (record->condition) {
        PF_TRY(mut_condition(job, object, record->condition, &holds, err));
        object->reads_row = object->reads_row || object->existed;
    }
    if (mut_failed(job))
        return SLUICE_OK;
    job->skipped += !holds;
    *ret_object = holds ? object : NULL;
    return SLUICE_OK;
}

static sluice_status update(mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_object *object = NULL;
    PF_TRY(find_target(job, record, &object, err));
    return object ? set_properties(job, object, record, true, err) : SLUICE_OK;
}

static sluice_status delete (mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_object *object = NULL;
    PF_TRY(find_target(job, record, &object, err));
    if (!object)
        return SLUICE_OK;
    if (record->detach)
        PF_TRY(mut_detach(job, object, err));
    object->reads_object = object->reads_object || object->existed;
    object->exists = false;
    object->replaced = object->existed;
    object->record = job->record;
    return SLUICE_OK;
}

static sluice_status assert_record(mut_job *job, const mut_record *record, sluice_error *err)
{
    mut_object *object = NULL;
    bool holds = true;
    char key[KEY_ROOM];
    PF_TRY(mut_find(job, record, &object, err));
    if (mut_failed(job))
        return SLUICE_OK;
    /* what this file has inserted itself is read as absent already */
    object->reads_object = object->reads_object || object->existed || !object->exists;
    if (object->exists && record->condition)
        PF_TRY(mut_condition(job, object, record->condition, &holds, err));
    if (mut_failed(job))
        return SLUICE_OK;
    if (object->exists != record->absent && holds)
        return SLUICE_OK;
    mut_key_text(object, key, sizeof key);
    mut_fault(job, job->record, SLUICE_WRITE_CONFLICT, "the assertion does not hold: %s %s %s", object->type->def->name,
              key,
              !object->exists  ? "is not there"
              : record->absent ? "is there"
                               : "has other values");
    return SLUICE_OK;
}

static sluice_status apply(mut_job *job, const mut_record *record, sluice_error *err)
{
    switch (record->op) {
    case MUT_INSERT:
        return insert(job, record, err);
    case MUT_UPSERT:
        return upsert(job, record, err);
    case MUT_UPDATE:
        return update(job, record, err);
    case MUT_DELETE:
        return delete (job, record, err);
    case MUT_ASSERT:
        return assert_record(job, record, err);
    }
    return pf_fail(err, SLUICE_INTERNAL, "an op that nobody knows");
}

sluice_status mut_apply(mut_job *job, sluice_error *err)
{
    size_t at = 0;
    uint64_t line = 0;
    for (bool any = true; any && !mut_failed(job);) {
        st_tree *tree = NULL;
        mut_record record;
        sluice_status status = mut_record_next(job, &at, &line, &tree, &record, &any, err);
        if (status == SLUICE_OK && any && !mut_failed(job))
            status = apply(job, &record, err);
        st_tree_free(tree);
        PF_TRY(status);
    }
    return SLUICE_OK;
}
