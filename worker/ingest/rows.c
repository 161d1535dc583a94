#include "worker/ingest/rows_build.h"

#include "platform/check.h"
#include "store/format/utf8.h"
#include "store/fragment/key.h"
#include "store/read/snapshot.h"
#include "worker/ingest/hints.h"
#include "worker/ingest/quick.h"
#include <stdlib.h>
#include <string.h>

/* Members that together must keep the limit of a key: a node's key, an end, an edge's own key, a unique tuple. */
typedef struct wk_key_group {
    uint32_t *columns; /* in the type's layout; an end is one column */
    uint32_t count;
    const char *what;
} key_group;

/* ---- making ---- */

static bool is_key_property(const st_type_def *type, uint32_t property)
{
    for (uint32_t i = 0; i < type->key_count; i++)
        if (type->key[i] == property)
            return true;
    return false;
}

static sluice_status make_checks(wk_rows *rows, sluice_error *err)
{
    const st_type_def *type = rows->columns->type;

    rows->checks = calloc(rows->count + 1, sizeof *rows->checks);
    rows->member_checks = calloc(2, sizeof *rows->member_checks);
    if (rows->checks == NULL || rows->member_checks == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < rows->count; i++) {
        bool end = i < rows->ends;
        const st_property *property = end ? NULL : &type->properties[i - rows->ends];
        bool key = end || is_key_property(type, i - rows->ends);
        PF_TRY(wk_check_make(property, rows->specs[i].type, key, &rows->checks[i], err));
        for (uint32_t m = 0; end && m < rows->specs[i].child_count; m++)
            PF_TRY(wk_check_make(NULL, rows->specs[i].children[m].type, true, &rows->member_checks[i][m], err));
    }
    return SLUICE_OK;
}

static bool can_be_long(const st_column_spec *spec)
{
    if (spec->type == ST_STRING || spec->type == ST_BYTES)
        return true;
    return spec->child_count > 0; /* of several members, one may be long, and all together */
}

static sluice_status add_group(wk_rows *rows, const uint32_t *columns, uint32_t count, uint32_t offset,
                               const char *what, sluice_error *err)
{
    key_group *group = &rows->groups[rows->group_count];
    bool can = count > ST_KEY_MEMBERS_MAX;

    for (uint32_t i = 0; i < count; i++)
        can |= can_be_long(&rows->specs[columns[i] + offset]);
    if (!can)
        return SLUICE_OK;
    group->columns = calloc(count, sizeof *group->columns);
    if (group->columns == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        group->columns[i] = columns[i] + offset;
    group->count = count;
    group->what = what;
    rows->group_count++;
    return SLUICE_OK;
}

static sluice_status make_groups(wk_rows *rows, sluice_error *err)
{
    const st_type_def *type = rows->columns->type;

    rows->groups = calloc(rows->ends + 1 + type->unique_count, sizeof *rows->groups);
    if (rows->groups == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < rows->ends; i++)
        PF_TRY(add_group(rows, &i, 1, 0, "a key", err));
    PF_TRY(add_group(rows, type->key, type->key_count, rows->ends, "a key", err));
    for (uint32_t i = 0; i < type->unique_count; i++)
        PF_TRY(add_group(rows, type->uniques[i].properties, type->uniques[i].count, rows->ends, "a unique value", err));
    return SLUICE_OK;
}

/* Bytes of a row in a column, without those of texts. */
static uint64_t bytes_of_slot(const st_column_spec *spec)
{
    uint64_t bytes = spec->child_count > 0 ? 0 : st_type_width(spec->type);

    for (uint32_t i = 0; i < spec->child_count; i++)
        bytes += bytes_of_slot(&spec->children[i]);
    return bytes > 0 ? bytes : sizeof(int32_t);
}

static sluice_status make_names(wk_rows *rows, sluice_error *err)
{
    static char name[] = "name";
    const wk_columns *columns = rows->columns;
    const bool wanted[3] = {columns->names_rows, columns->named[0], columns->named[1]};
    const st_column_spec spec = {.name = name, .type = ST_STRING, .nullable = true};

    for (unsigned i = 0; i < 3; i++)
        if (wanted[i])
            PF_TRY(st_column_builder_new(&spec, &rows->names[i], err));
    return SLUICE_OK;
}

sluice_status wk_rows_make(const wk_input *input, const wk_columns *columns, wk_rows **ret_rows, sluice_error *err)
{
    sluice_status status;
    wk_rows *rows = calloc(1, sizeof *rows);

    if (rows == NULL)
        return pf_fail_memory(err);
    rows->input = input;
    rows->columns = columns;
    rows->ends = columns->type->edge ? 2 : 0;
    PF_GOTO(status, failed, st_type_columns(columns->schema, columns->type, &rows->specs, &rows->count, err));
    rows->builders = calloc(rows->count + 1, sizeof(st_column_builder *));
    rows->views = calloc(rows->count + 1, sizeof *rows->views);
    if (rows->builders == NULL || rows->views == NULL) {
        status = pf_fail_memory(err);
        goto failed;
    }
    /* Where a value may be missing although the type asks for one, a null stands for it until rows are completed. */
    for (uint32_t i = rows->ends; columns->partial && i < rows->count; i++)
        rows->specs[i].nullable |= columns->mapping.present == NULL || !columns->mapping.present[i];
    for (uint32_t i = 0; i < rows->count; i++) {
        PF_GOTO(status, failed, st_column_builder_new(&rows->specs[i], &rows->builders[i], err));
        rows->row_bytes += bytes_of_slot(&rows->specs[i]);
    }
    PF_GOTO(status, failed, make_names(rows, err));
    PF_GOTO(status, failed, make_checks(rows, err));
    PF_GOTO(status, failed, make_groups(rows, err));
    PF_GOTO(status, failed, wk_quick_make(rows, &rows->quick, err));
    *ret_rows = rows;
    return SLUICE_OK;
failed:
    wk_rows_free(rows);
    return status;
}

void wk_rows_free(wk_rows *rows)
{
    if (rows == NULL)
        return;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->builders)
            st_column_builder_free(rows->builders[i]);
        if (rows->checks)
            wk_check_free(&rows->checks[i]);
        for (uint32_t m = 0; rows->member_checks && i < rows->ends && m < ST_KEY_MEMBERS_MAX; m++)
            wk_check_free(&rows->member_checks[i][m]);
    }
    for (uint32_t i = 0; i < rows->group_count; i++)
        free(rows->groups[i].columns);
    free(rows->groups);
    free(rows->member_checks);
    free(rows->checks);
    free(rows->builders);
    free(rows->views);
    st_type_columns_free(rows->specs, rows->count);
    for (unsigned i = 0; i < 3; i++)
        st_column_builder_free(rows->names[i]);
    wk_quick_free(rows->quick);
    pf_buffer_free(&rows->absent);
    free(rows);
}

/* ---- one value ---- */

void wk_rows_refuse(wk_fault *fault, sluice_status code, const char *name, const char *what)
{
    wk_fault_set(fault, code, "column %s: %s", name, what);
}

/* A value that the text parser did not take. Only what concerns the text itself is a fault; the rest is an error. */
static sluice_status not_taken(const char *name, st_type type, const sluice_error *error, wk_fault *fault,
                               sluice_error *err)
{
    if (error->code == SLUICE_CONSTRAINT_TYPE) {
        wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %s: %s", name, error->text);
        wk_hint_type(type, fault);
        return SLUICE_OK;
    }
    if (err)
        *err = *error;
    return error->code;
}

static sluice_status add_default(wk_rows *rows, uint32_t column, const st_property *property, sluice_error *err)
{
    rows->default_bytes += property->default_value.length;
    return st_value_append(&property->default_value, rows->builders[column], err);
}

sluice_status wk_rows_nothing(wk_rows *rows, const wk_target *target, bool may_default, wk_fault *fault,
                              sluice_error *err)
{
    uint32_t column = target->column;
    const st_property *property = column < rows->ends ? NULL : &rows->columns->type->properties[column - rows->ends];

    if (target->kind == WK_TARGET_COLUMN && may_default && property && property->default_value.present)
        return add_default(rows, column, property, err);
    if (target->kind == WK_TARGET_COLUMN && property && property->nullable)
        return st_append_null(rows->builders[column], err);
    wk_rows_refuse(fault, SLUICE_CONSTRAINT_NULL, target->name, "there is no value, and it may not be null");
    wk_hint(fault, "give it a value%s, or --on-error skip to leave such rows out",
            wk_rows_slot(rows, target).spec->type == ST_STRING ? " (an empty text is \"\")" : "");
    return SLUICE_OK;
}

bool wk_rows_may_be_null(const wk_rows *rows, const wk_target *target)
{
    return target->kind == WK_TARGET_COLUMN && rows->specs[target->column].nullable;
}

wk_slot wk_rows_slot(const wk_rows *rows, const wk_target *target)
{
    uint32_t column = target->column, member = target->member;

    if (target->kind == WK_TARGET_MEMBER)
        return (wk_slot){&rows->specs[column].children[member], st_builder_child(rows->builders[column], member),
                         &rows->member_checks[column][member]};
    return (wk_slot){&rows->specs[column], rows->builders[column], &rows->checks[column]};
}

void wk_rows_check(const wk_slot *slot, const wk_target *target, wk_fault *fault)
{
    st_column view;

    if (!slot->check->any)
        return;
    st_builder_view(slot->builder, &view);
    (void)wk_check_value(slot->check, target->name, &view, view.length - 1, fault);
}

sluice_status wk_rows_text(wk_rows *rows, const wk_target *target, const char *text, size_t length, wk_fault *fault,
                           sluice_error *err)
{
    wk_slot slot = wk_rows_slot(rows, target);
    sluice_error error;

    if (length > WK_VALUE_MAX) {
        wk_fault_set(fault, SLUICE_RESOURCE_LIMIT, "column %s: a value of %zu bytes is longer than the limit of %llu",
                     target->name, length, (unsigned long long)WK_VALUE_MAX);
        return SLUICE_OK;
    }
    if (slot.spec->type == ST_STRING && length > 0 && memchr(text, 0, length) != NULL) {
        wk_rows_refuse(fault, SLUICE_INPUT_SYNTAX, target->name, "there is a NUL byte in the text");
        wk_hint(fault, "take such bytes out first, for instance: tr -d '\\000'");
        return SLUICE_OK;
    }
    if (st_value_parse(slot.spec, text, length, slot.builder, &error) != SLUICE_OK)
        return not_taken(target->name, slot.spec->type, &error, fault, err);
    wk_rows_check(&slot, target, fault);
    return SLUICE_OK;
}

void wk_rows_label(const wk_rows *rows, const wk_target *target, const char *text, size_t length, wk_fault *fault)
{
    const char *type = rows->columns->type->name;
    char shown[WK_SHOWN_ROOM];

    if (length != strlen(type) || memcmp(text, type, length) != 0)
        wk_fault_set(fault, SLUICE_CONSTRAINT_CHECK, "column %s: %s is not the type %s", target->name,
                     wk_shown(text, length, shown), type);
}

/* ---- what every record needs ---- */

static uint64_t member_bytes(const st_column *column, uint64_t row)
{
    uint64_t bytes = 0;

    if (column->type == ST_STRING || column->type == ST_BYTES)
        return 4 + (uint64_t)(column->offsets[row + 1] - column->offsets[row]);
    if (column->child_count == 0)
        return 4 + 8;
    for (uint32_t i = 0; i < column->child_count; i++)
        bytes += member_bytes(&column->children[i], row);
    return bytes;
}

/* The input column that a column of the type comes from, for the place of a fault. */
static uint32_t field_of(const wk_mapping *mapping, uint32_t column)
{
    for (uint32_t i = 0; i < mapping->field_count; i++)
        if ((mapping->targets[i].kind == WK_TARGET_COLUMN || mapping->targets[i].kind == WK_TARGET_MEMBER) &&
            mapping->targets[i].column == column)
            return i;
    return 0;
}

static void check_groups(wk_rows *rows, const wk_mapping *mapping, wk_fault *fault)
{
    for (uint32_t g = 0; g < rows->group_count && !fault->present; g++) {
        const key_group *group = &rows->groups[g];
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < group->count; i++) {
            st_column view;
            st_builder_view(rows->builders[group->columns[i]], &view);
            bytes += member_bytes(&view, rows->length);
        }
        if (bytes <= ST_KEY_BYTES_MAX)
            continue;
        fault->column = field_of(mapping, group->columns[0]);
        wk_fault_set(fault, SLUICE_RESOURCE_LIMIT, "column %s: %s of %llu bytes is longer than the limit of %u",
                     rows->specs[group->columns[0]].name, group->what, (unsigned long long)bytes, ST_KEY_BYTES_MAX);
    }
}

static bool has_members(const wk_mapping *mapping, uint32_t column)
{
    for (uint32_t i = 0; i < mapping->field_count; i++)
        if (mapping->targets[i].kind == WK_TARGET_MEMBER && mapping->targets[i].column == column)
            return true;
    return false;
}

/* Ends given by members are closed; what no input column fills gets its default, or null. */
static sluice_status add_rest(wk_rows *rows, const wk_mapping *mapping, sluice_error *err)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (i < rows->ends) {
            if (rows->specs[i].child_count > 0 && has_members(mapping, i))
                PF_TRY(st_append_struct(rows->builders[i], err));
            continue;
        }
        if (mapping->present[i])
            continue;
        const st_property *property = &rows->columns->type->properties[i - rows->ends];
        if (property->default_value.present)
            PF_TRY(add_default(rows, i, property, err));
        else
            PF_TRY(st_append_null(rows->builders[i], err));
    }
    return SLUICE_OK;
}

static sluice_status note_absent(wk_rows *rows, const wk_mapping *mapping, sluice_error *err)
{
    uint8_t bits[(ST_SCHEMA_PROPERTIES_MAX + 2 + 7) / 8];
    size_t stride = wk_rows_absent_stride(rows->count);

    memset(bits, 0, stride);
    for (uint32_t i = 0; i < rows->count; i++)
        if (!mapping->present[i])
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    return pf_buffer_append(&rows->absent, bits, stride, err);
}

/* ---- load-local names ---- */

static sluice_status append_name(wk_rows *rows, unsigned which, const char *text, size_t length, sluice_error *err)
{
    const char *space = rows->columns->spaces[which];
    pf_buffer name = {0};
    sluice_status status;

    if (space == NULL)
        return st_append_bytes(rows->names[which], text, length, err);
    PF_GOTO(status, done, pf_buffer_append(&name, space, strlen(space) + 1, err)); /* the zero is no part of a space */
    PF_GOTO(status, done, pf_buffer_append(&name, text, length, err));
    status = st_append_bytes(rows->names[which], name.data, name.length, err);
done:
    pf_buffer_free(&name);
    return status;
}

/* A row may have no name; an edge has both ends. */
static sluice_status add_name(wk_rows *rows, wk_record *record, uint32_t i, wk_fault *fault, sluice_error *err)
{
    const wk_target *target = &record->mapping->targets[i];
    unsigned which = target->names - WK_NAMES_ROW;
    size_t length = 0;
    const char *text = "";

    if (record->fields == NULL || (record->fields[i].flags & WK_FIELD_NULL) == 0)
        text = rows->input->format->text(rows->input, record, i, &length);
    if (rows->names[which] == NULL && rows->columns->mapping.targets) /* nobody asks for them */
        return SLUICE_OK;
    fault->column = i;
    if (rows->names[which] == NULL)
        wk_rows_refuse(fault, SLUICE_INPUT_SYNTAX, target->name, "the first record of the file has no such name");
    else if (length > ST_KEY_BYTES_MAX)
        wk_rows_refuse(fault, SLUICE_RESOURCE_LIMIT, target->name, "a name is longer than a key may be");
    else if (length > 0 && !st_utf8_is_valid(text, length))
        wk_rows_refuse(fault, SLUICE_INPUT_SYNTAX, target->name, "a name is not UTF-8");
    else if (length > 0 && memchr(text, 0, length) != NULL)
        wk_rows_refuse(fault, SLUICE_INPUT_SYNTAX, target->name, "there is a NUL byte in the text");
    else if (length > 0)
        return append_name(rows, which, text, length, err);
    else if (target->names == WK_NAMES_ROW)
        return st_append_null(rows->names[which], err);
    else
        wk_rows_refuse(fault, SLUICE_CONSTRAINT_NULL, target->name, "there is no value, and it may not be null");
    return SLUICE_OK;
}

static sluice_status add_names(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err)
{
    const wk_mapping *mapping = record->mapping;

    for (uint32_t i = 0; i < mapping->field_count && i < record->kept && !fault->present; i++)
        if (mapping->targets[i].names != WK_NAMES_NOTHING)
            PF_TRY(add_name(rows, record, i, fault, err));
    if (!fault->present && rows->names[0] &&
        st_builder_length(rows->names[0]) == rows->length) /* no such column here */
        return st_append_null(rows->names[0], err);
    return SLUICE_OK;
}

void wk_rows_names(const wk_rows *rows, wk_naming which, st_column *ret_texts)
{
    st_builder_view(rows->names[which - WK_NAMES_ROW], ret_texts);
}

sluice_status wk_rows_resolve(wk_rows *rows, wk_naming which, const uint64_t *ids, sluice_error *err)
{
    return st_append_values(rows->builders[which == WK_NAMES_TO], ids, rows->length, err);
}

/* ---- one record ---- */

static sluice_status add_values(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err)
{
    PF_TRY(rows->input->format->add(rows, record, fault, err));
    if (!fault->present)
        PF_TRY(add_names(rows, record, fault, err));
    if (fault->present)
        return SLUICE_OK;
    PF_TRY(add_rest(rows, record->mapping, err));
    check_groups(rows, record->mapping, fault);
    return SLUICE_OK;
}

sluice_status wk_rows_add(wk_rows *rows, wk_record *record, wk_fault *ret_fault, sluice_error *err)
{
    sluice_status status;

    ret_fault->present = false;
    rows->default_bytes = 0;
    if (record->plain && rows->quick && wk_quick_add(rows, record)) {
        rows->length++;
        rows->bytes += record->length + rows->row_bytes;
        return SLUICE_OK;
    }
    status = add_values(rows, record, ret_fault, err);
    if (status != SLUICE_OK || ret_fault->present) {
        for (uint32_t i = 0; i < rows->count; i++)
            if (i >= rows->ends || !rows->columns->named[i])
                st_builder_truncate(rows->builders[i], rows->length);
        for (unsigned i = 0; i < 3; i++)
            if (rows->names[i])
                st_builder_truncate(rows->names[i], rows->length);
        return status;
    }
    if (rows->columns->partial)
        PF_TRY(note_absent(rows, record->mapping, err));
    rows->length++;
    rows->bytes += record->length + rows->row_bytes + rows->default_bytes;
    return SLUICE_OK;
}

uint64_t wk_rows_length(const wk_rows *rows)
{
    return rows->length;
}

uint64_t wk_rows_bytes(const wk_rows *rows)
{
    return rows->bytes;
}

const st_column *wk_rows_columns(wk_rows *rows, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        PF_ASSERT(st_builder_length(rows->builders[i]) == rows->length);
        st_builder_view(rows->builders[i], &rows->views[i]);
    }
    *ret_count = rows->count;
    return rows->views;
}

const st_column_spec *wk_rows_specs(const wk_rows *rows, uint32_t *ret_count)
{
    *ret_count = rows->count;
    return rows->specs;
}

void wk_rows_reset(wk_rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++)
        st_builder_truncate(rows->builders[i], 0);
    for (unsigned i = 0; i < 3; i++)
        if (rows->names[i])
            st_builder_truncate(rows->names[i], 0);
    rows->length = 0;
    rows->bytes = 0;
    rows->absent.length = 0;
}

const uint8_t *wk_rows_absent(const wk_rows *rows)
{
    return rows->absent.data;
}
