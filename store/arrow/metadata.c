/*
 * Arrow schemas as structs: their release, custom metadata, and what they mean as columns.
 */
#include "store/arrow/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_PROPERTY "sluice.property"
#define KEY_TYPE     "sluice.type" /* tells a row id from a uint64: both are Int(64, unsigned) */
#define TYPE_ROW_ID  "row_id"

/* ---- release ---- */

void st_arrow_pairs_free(st_arrow_pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        free(pairs->items[i].key);
        free(pairs->items[i].value);
    }
    free(pairs->items);
    *pairs = (st_arrow_pairs){0};
}

/* Depth is at most ST_ARROW_DEPTH_MAX, by how fields are made. */
static void fields_free(st_arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(fields[i].name);
        free(fields[i].timezone);
        st_arrow_pairs_free(&fields[i].metadata);
        fields_free(fields[i].children, fields[i].child_count);
    }
    free(fields);
}

void st_arrow_schema_free(st_arrow_schema *schema)
{
    fields_free(schema->fields, schema->field_count);
    st_arrow_pairs_free(&schema->metadata);
    *schema = (st_arrow_schema){0};
}

void st_arrow_batch_free(st_arrow_batch *batch)
{
    free(batch->nodes);
    free(batch->buffers);
    free(batch->variadic);
    *batch = (st_arrow_batch){0};
}

void st_arrow_message_free(st_arrow_message *message)
{
    st_arrow_schema_free(&message->schema);
    st_arrow_batch_free(&message->batch);
}

void st_arrow_footer_free(st_arrow_footer *footer)
{
    st_arrow_schema_free(&footer->schema);
    free(footer->batches);
    free(footer->dictionaries);
    st_arrow_pairs_free(&footer->metadata);
    *footer = (st_arrow_footer){0};
}

/* ---- custom metadata ---- */

sluice_status st_arrow_pairs_add(st_arrow_pairs *pairs, const char *key, const char *value, size_t value_length,
                                 sluice_error *err)
{
    if (value_length >= UINT32_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a value of custom metadata is too long");
    st_arrow_pair *items = realloc(pairs->items, (pairs->count + 1) * sizeof *items);
    if (!items)
        return pf_fail_memory(err);
    pairs->items = items;
    st_arrow_pair pair = {.key = strdup(key),
                          .value = malloc(value_length + 1),
                          .key_length = (uint32_t)strlen(key),
                          .value_length = (uint32_t)value_length};
    if (!pair.key || !pair.value) {
        free(pair.key);
        free(pair.value);
        return pf_fail_memory(err);
    }
    if (value_length)
        memcpy(pair.value, value, value_length);
    pair.value[value_length] = '\0';
    items[pairs->count++] = pair;
    return SLUICE_OK;
}

const char *st_arrow_pairs_find(const st_arrow_pairs *pairs, const char *key, uint32_t *ret_length)
{
    size_t length = strlen(key);
    for (uint32_t i = 0; i < pairs->count; i++) {
        const st_arrow_pair *pair = &pairs->items[i];
        if (pair->key_length == length && memcmp(pair->key, key, length) == 0) {
            *ret_length = pair->value_length;
            return pair->value;
        }
    }
    *ret_length = 0;
    return NULL;
}

/* ---- columns and fields ---- */

static void set_kind(st_arrow_field *field, st_type type)
{
    static const st_arrow_field kinds[] = {
        [ST_BOOL] = {.kind = ST_ARROW_BOOL},
        [ST_INT32] = {.kind = ST_ARROW_INT, .width = 32, .is_signed = true},
        [ST_INT64] = {.kind = ST_ARROW_INT, .width = 64, .is_signed = true},
        [ST_UINT64] = {.kind = ST_ARROW_INT, .width = 64},
        [ST_FLOAT32] = {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_SINGLE},
        [ST_FLOAT64] = {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_DOUBLE},
        [ST_STRING] = {.kind = ST_ARROW_UTF8},
        [ST_BYTES] = {.kind = ST_ARROW_BINARY},
        [ST_DATE] = {.kind = ST_ARROW_DATE, .unit = ST_ARROW_DAY},
        [ST_TIMESTAMP] = {.kind = ST_ARROW_TIMESTAMP, .unit = ST_ARROW_MICROSECOND},
        [ST_ROW_ID] = {.kind = ST_ARROW_INT, .width = 64},
        [ST_COMMIT_ID] = {.kind = ST_ARROW_FIXED_SIZE_BINARY, .width = 16},
        [ST_STRUCT] = {.kind = ST_ARROW_STRUCT},
    };
    *field = kinds[type];
}

static sluice_status field_from_spec(const st_column_spec *spec, st_arrow_field *field, sluice_error *err)
{
    char text[24];

    set_kind(field, spec->type);
    field->nullable = spec->nullable;
    field->name = strdup(spec->name);
    if (!field->name)
        return pf_fail_memory(err);
    if (spec->type == ST_TIMESTAMP && !(field->timezone = strdup("UTC")))
        return pf_fail_memory(err);
    if (spec->type == ST_ROW_ID)
        PF_TRY(st_arrow_pairs_add(&field->metadata, KEY_TYPE, TYPE_ROW_ID, strlen(TYPE_ROW_ID), err));
    if (!spec->property)
        return SLUICE_OK;
    int length = snprintf(text, sizeof text, "%" PRIu64, spec->property);
    return st_arrow_pairs_add(&field->metadata, KEY_PROPERTY, text, (size_t)length, err);
}

static sluice_status make_fields(uint32_t count, st_arrow_field **ret_fields, uint32_t *ret_count, sluice_error *err)
{
    *ret_fields = calloc(count ? count : 1, sizeof **ret_fields);
    if (!*ret_fields)
        return pf_fail_memory(err);
    *ret_count = count;
    return SLUICE_OK;
}

sluice_status st_arrow_schema_from_specs(const st_column_spec *specs, uint32_t count, st_arrow_schema *ret_schema,
                                         sluice_error *err)
{
    sluice_status status;

    *ret_schema = (st_arrow_schema){0};
    PF_GOTO(status, failed, make_fields(count, &ret_schema->fields, &ret_schema->field_count, err));
    for (uint32_t i = 0; i < count; i++) {
        st_arrow_field *field = &ret_schema->fields[i];
        PF_GOTO(status, failed, field_from_spec(&specs[i], field, err));
        if (specs[i].child_count)
            PF_GOTO(status, failed, make_fields(specs[i].child_count, &field->children, &field->child_count, err));
        for (uint32_t m = 0; m < specs[i].child_count; m++)
            PF_GOTO(status, failed, field_from_spec(&specs[i].children[m], &field->children[m], err));
    }
    return SLUICE_OK;
failed:
    st_arrow_schema_free(ret_schema);
    return status;
}

static bool pair_equals(const st_arrow_pairs *pairs, const char *key, const char *expected)
{
    uint32_t length;
    const char *value = st_arrow_pairs_find(pairs, key, &length);
    return value && length == strlen(expected) && memcmp(value, expected, length) == 0;
}

/* False when no column type stands for the field. */
static bool type_of(const st_arrow_field *field, st_type *ret_type)
{
    if (field->has_dictionary || (field->child_count && field->kind != ST_ARROW_STRUCT))
        return false;
    for (st_type type = ST_BOOL; type <= ST_STRUCT; type++) {
        st_arrow_field expected;
        set_kind(&expected, type);
        if (type == ST_UINT64 && pair_equals(&field->metadata, KEY_TYPE, TYPE_ROW_ID))
            continue;
        if (field->kind == expected.kind && field->width == expected.width && field->is_signed == expected.is_signed &&
            field->unit == expected.unit) {
            *ret_type = type;
            return type != ST_TIMESTAMP || (field->timezone && strcmp(field->timezone, "UTC") == 0);
        }
    }
    return false;
}

/* Decimal digits without a leading zero, as we write them. */
static bool parse_property(const st_arrow_pairs *pairs, uint64_t *ret_property)
{
    uint32_t length;
    const char *text = st_arrow_pairs_find(pairs, KEY_PROPERTY, &length);

    *ret_property = 0;
    if (!text)
        return true;
    if (length == 0 || length > 20 || text[0] == '0')
        return false;
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || !pf_mul_u64(*ret_property, 10, ret_property) ||
            !pf_add_u64(*ret_property, (uint64_t)(text[i] - '0'), ret_property))
            return false;
    }
    return true;
}

static sluice_status spec_from_field(const st_arrow_field *field, st_column_spec *spec, sluice_error *err)
{
    spec->nullable = field->nullable;
    if (!type_of(field, &spec->type))
        return pf_fail_private(err, SLUICE_UNSUPPORTED_FORMAT, "a column has a type that is not supported",
                               "column \"%s\" has a type that is not supported (Arrow type %u)", field->name,
                               field->kind);
    if (!parse_property(&field->metadata, &spec->property))
        return pf_fail(err, SLUICE_CORRUPT, "a column has no valid property id");
    spec->name = strdup(field->name);
    return spec->name ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status members_from_field(const st_arrow_field *field, st_column_spec *spec, sluice_error *err)
{
    if (field->child_count == 0 || field->child_count > ST_KEY_MEMBERS_MAX)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a struct column has %u members", field->child_count);
    spec->children = calloc(field->child_count, sizeof *spec->children);
    if (!spec->children)
        return pf_fail_memory(err);
    for (uint32_t m = 0; m < field->child_count; m++) {
        spec->child_count = m + 1;
        PF_TRY(spec_from_field(&field->children[m], &spec->children[m], err));
        if (spec->children[m].type == ST_STRUCT)
            return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a member of a struct column is a struct");
    }
    return SLUICE_OK;
}

sluice_status st_arrow_specs_from_schema(const st_arrow_schema *schema, st_column_spec **ret_specs, uint32_t *ret_count,
                                         sluice_error *err)
{
    sluice_status status;
    uint32_t count = 0;
    st_column_spec *specs = calloc(schema->field_count + 1, sizeof *specs);

    *ret_specs = NULL;
    *ret_count = 0;
    if (!specs)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        count = i + 1;
        PF_GOTO(status, failed, spec_from_field(&schema->fields[i], &specs[i], err));
        if (specs[i].type == ST_STRUCT)
            PF_GOTO(status, failed, members_from_field(&schema->fields[i], &specs[i], err));
    }
    *ret_specs = specs;
    *ret_count = count;
    return SLUICE_OK;
failed:
    for (uint32_t i = 0; i < count; i++)
        st_column_spec_free(&specs[i]);
    free(specs);
    return status;
}
