/*
 * Values of mutations: from JSON into the pools, set, compared.
 *
 * Numbers go by their text, so all 64 bits count; a JSON string stands for any type whose text form it is (dates,
 * bytes, NaN), as in files of JSON Lines. Whether null may be, and what a check says, is looked at on the net effect.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include "store/schema/nearest.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- faults ---- */

void mut_fault(mut_job *job, uint32_t record, sluice_status code, const char *fmt, ...)
{
    wk_fault fault = {0};
    char text[WK_FAULT_TEXT];
    va_list arguments;
    va_start(arguments, fmt);
    (void)vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    if (job->on_fault) {
        job->on_fault(job->fault_context, record, code, text);
        return;
    }
    wk_fault_set(&fault, code, "%s", text);
    fault.record = record;
    fault.line = job->lines[record];
    wk_fault_least(&job->fault, &fault);
}

void mut_hint(mut_job *job, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    int length = vsnprintf(job->fault.hint, sizeof job->fault.hint, fmt, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof job->fault.hint)
        job->fault.hint[0] = '\0'; /* as pf_hint */
}

/* ---- JSON ---- */

static bool takes_numbers(st_type type)
{
    return type == ST_INT32 || type == ST_INT64 || type == ST_UINT64 || type == ST_FLOAT32 || type == ST_FLOAT64 ||
           type == ST_ROW_ID;
}

static const char *type_name(const st_column_spec *spec)
{
    return spec->type == ST_STRUCT ? "key" : st_type_name(spec->type);
}

static void misfit(mut_job *job, const st_column_spec *spec, const char *name, const char *what)
{
    mut_fault(job, job->record, SLUICE_CONSTRAINT_TYPE, "column %s: %s is no %s", name, what, type_name(spec));
}

/* One value that is not null and no key of several members. */
static sluice_status add_scalar(mut_job *job, const st_column_spec *spec, const wk_check *check, const char *name,
                                const st_node *node, st_column_builder *builder, sluice_error *err)
{
    const char *text = node->kind == ST_NODE_BOOL ? (node->boolean ? "true" : "false") : node->text;
    size_t length = node->kind == ST_NODE_BOOL ? strlen(text) : node->length;
    sluice_error error = {0};
    wk_fault fault = {0};
    bool fits = node->kind == ST_NODE_STRING || (node->kind == ST_NODE_NUMBER && takes_numbers(spec->type)) ||
                (node->kind == ST_NODE_BOOL && spec->type == ST_BOOL);

    if (!fits) {
        misfit(job, spec, name, st_node_kind_name(node->kind));
        return SLUICE_OK;
    }
    sluice_status status = st_value_parse(spec, text, length, builder, &error);
    if (status == SLUICE_CONSTRAINT_TYPE) {
        mut_fault(job, job->record, status, "column %s: %s", name, error.text);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    if (check && check->is_key && check->any) {
        st_column view;
        st_builder_view(builder, &view);
        wk_check key_only = {.is_key = true, .any = true};
        if (!wk_check_value(&key_only, name, &view, view.length - 1, &fault))
            mut_fault(job, job->record, fault.code, "%s", fault.text);
    }
    return SLUICE_OK;
}

/* A key of several members, as an end of an edge has it. */
static sluice_status add_struct(mut_job *job, const st_column_spec *spec, const char *name, const st_node *node,
                                st_column_builder *builder, sluice_error *err)
{
    const st_node *element = node->kind == ST_NODE_ARRAY ? node->first : NULL;
    uint64_t rows = st_builder_length(builder);
    if ((node->kind != ST_NODE_ARRAY && node->kind != ST_NODE_OBJECT) || node->count != spec->child_count) {
        misfit(job, spec, name, st_node_kind_name(node->kind));
        mut_hint(job, "a key of %u members is a list of them, or an object of their names and values",
                 (unsigned)spec->child_count);
        return SLUICE_OK;
    }
    for (uint32_t i = 0; i < spec->child_count && !mut_failed(job); i++) {
        const st_column_spec *member = &spec->children[i];
        const wk_check key = {.is_key = true, .any = member->type == ST_FLOAT32 || member->type == ST_FLOAT64};
        const st_node *value = element ? element : st_node_member(node, member->name);
        if (value)
            PF_TRY(mut_value(job, member, &key, name, value, false, st_builder_child(builder, i), err));
        else
            mut_fault(job, job->record, SLUICE_INPUT_SYNTAX, "column %s: the key has a member %s", name, member->name);
        element = element ? element->next : NULL;
    }
    if (!mut_failed(job))
        return st_append_struct(builder, err);
    st_builder_truncate(builder, rows);
    return SLUICE_OK;
}

sluice_status mut_value(mut_job *job, const st_column_spec *spec, const wk_check *check, const char *name,
                        const st_node *node, bool may_null, st_column_builder *builder, sluice_error *err)
{
    if (node->kind == ST_NODE_NULL && may_null)
        return st_append_null(builder, err);
    if (node->kind == ST_NODE_NULL) {
        mut_fault(job, job->record, SLUICE_CONSTRAINT_NULL, "column %s: a key has no null", name);
        return SLUICE_OK;
    }
    if (spec->type == ST_STRUCT)
        return add_struct(job, spec, name, node, builder, err);
    return add_scalar(job, spec, check, name, node, builder, err);
}

/* ---- properties by name ---- */

/* The property that a member names; -1 with a fault when the type has none. */
static int property_of(mut_job *job, const mut_type *type, const st_node *member)
{
    char shown[WK_SHOWN_ROOM];
    int property = strlen(member->name) == member->name_length ? st_type_find_property(type->def, member->name) : -1;
    if (property >= 0)
        return property;
    st_nearest nearest;
    st_nearest_begin(&nearest, member->name);
    for (uint32_t i = 0; i < type->def->property_count; i++)
        st_nearest_offer(&nearest, type->def->properties[i].name);
    mut_fault(job, job->record, SLUICE_INPUT_SYNTAX, "%s has no property %s", type->def->name,
              wk_shown(member->name, member->name_length, shown));
    if (nearest.best)
        mut_hint(job, "did you mean %s?", nearest.best);
    return -1;
}

bool mut_same(const mut_type *type, uint32_t column, uint64_t a, uint64_t b)
{
    st_column view;
    const st_column *columns[1] = {&view};
    st_builder_view(type->pool[column], &view);
    return st_key_equal(columns, a, columns, b, 1);
}

bool mut_is_null(const mut_type *type, uint32_t column, uint64_t row)
{
    st_column view;
    st_builder_view(type->pool[column], &view);
    return st_column_is_null(&view, row);
}

/* A member's value into the pool; its row there. */
static sluice_status pool_value(mut_job *job, mut_type *type, uint32_t property, const st_node *member,
                                uint64_t *ret_row, sluice_error *err)
{
    uint32_t column = type->ends + property;
    *ret_row = st_builder_length(type->pool[column]);
    return mut_value(job, &type->specs[column], NULL, type->def->properties[property].name, member, true,
                     type->pool[column], err);
}

sluice_status mut_condition(mut_job *job, mut_object *object, const st_node *members, bool *ret_holds,
                            sluice_error *err)
{
    mut_type *type = object->type;
    *ret_holds = true;
    for (const st_node *member = members->first; member; member = member->next) {
        uint64_t row = 0;
        int property = property_of(job, type, member);
        if (property < 0)
            return SLUICE_OK;
        PF_TRY(pool_value(job, type, (uint32_t)property, member, &row, err));
        if (mut_failed(job))
            return SLUICE_OK;
        uint32_t column = type->ends + (uint32_t)property;
        *ret_holds = *ret_holds && mut_same(type, column, object->values[column], row);
    }
    return SLUICE_OK;
}

static bool is_key(const mut_type *type, uint32_t property)
{
    for (uint32_t i = 0; i < type->def->key_count; i++)
        if (type->def->key[i] == property)
            return true;
    return false;
}

sluice_status mut_set(mut_job *job, mut_object *object, const st_node *members, sluice_error *err)
{
    mut_type *type = object->type;
    for (const st_node *member = members ? members->first : NULL; member; member = member->next) {
        uint64_t row = 0;
        int property = property_of(job, type, member);
        if (property < 0)
            return SLUICE_OK;
        PF_TRY(pool_value(job, type, (uint32_t)property, member, &row, err));
        if (mut_failed(job))
            return SLUICE_OK;
        uint32_t column = type->ends + (uint32_t)property;
        if (!is_key(type, (uint32_t)property)) {
            object->values[column] = row;
            object->records[column] = job->record;
        } else if (!mut_same(type, column, object->values[column], row)) {
            mut_fault(job, job->record, SLUICE_CONSTRAINT_CHECK, "column %s: a key never changes", member->name);
            mut_hint(job, "delete the object and insert another");
            return SLUICE_OK;
        }
    }
    return SLUICE_OK;
}

sluice_status mut_fill(mut_job *job, mut_object *object, sluice_error *err)
{
    mut_type *type = object->type;
    for (uint32_t i = type->ends; i < type->count; i++) {
        if (object->values[i] != MUT_NO_VALUE)
            continue;
        object->values[i] = st_builder_length(type->pool[i]);
        object->records[i] = job->record;
        PF_TRY(st_value_append(&type->def->properties[i - type->ends].default_value, type->pool[i], err));
    }
    return SLUICE_OK;
}

/* ---- for messages ---- */

void mut_key_text(const mut_object *object, char *ret_text, size_t room)
{
    const mut_type *type = object->type;
    pf_buffer text = {0};
    sluice_status status = SLUICE_OK;
    if (!object->named) {
        (void)snprintf(ret_text, room, "%s", "without a key");
        return;
    }
    for (uint32_t i = 0; i < type->key_members && status == SLUICE_OK; i++) {
        st_column view;
        st_builder_view(type->keys[i], &view);
        status = i > 0 ? pf_buffer_append(&text, ",", 1, NULL) : SLUICE_OK;
        if (status == SLUICE_OK)
            status = st_value_json(&view, object->key, &text, NULL);
    }
    (void)snprintf(ret_text, room, "%.*s", status == SLUICE_OK ? (int)text.length : 0,
                   text.data ? (const char *)text.data : "");
    pf_buffer_free(&text);
}
