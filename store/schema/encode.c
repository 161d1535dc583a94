/*
 * The accepted schema as canonical JSON (schema.h, docs/format.md "Schema"), and its digests.
 *
 * One writer makes both: with ids (the canonical form; its digest is the identity) and without (the shape). Constants
 * stand there as their text, whatever their type, so that no 64-bit number or float ever passes through a JSON number.
 */
#include "platform/check.h"
#include "store/format/json.h"
#include "store/schema/constant.h"
#include "store/schema/schema.h"
#include <string.h>

static void write_constant(st_json *json, const char *name, const st_value *value, pf_buffer *scratch)
{
    if (!value->present)
        return;
    if (name)
        st_json_name(json, name);
    if (value->is_null) {
        st_json_null(json);
        return;
    }
    scratch->length = 0;
    sluice_status status = st_constant_write(value, scratch, NULL);
    if (status != SLUICE_OK && json->status == SLUICE_OK)
        json->status = status;
    st_json_bytes_text(json, scratch->data, scratch->length);
}

static void write_property(st_json *json, const st_property *property, bool ids, pf_buffer *scratch)
{
    st_json_object(json);
    if (ids) {
        st_json_name(json, "id");
        st_json_u64(json, property->id);
    }
    st_json_name(json, "name");
    st_json_text(json, property->name);
    st_json_name(json, "type");
    st_json_text(json, st_type_name(property->type));
    st_json_name(json, "nullable");
    st_json_bool(json, property->nullable);
    write_constant(json, "default", &property->default_value, scratch);
    if (ids)
        write_constant(json, "initial", &property->initial, scratch);
    write_constant(json, "min", &property->minimum, scratch);
    write_constant(json, "max", &property->maximum, scratch);
    if (property->has_min_length) {
        st_json_name(json, "min_length");
        st_json_u64(json, property->min_length);
    }
    if (property->has_max_length) {
        st_json_name(json, "max_length");
        st_json_u64(json, property->max_length);
    }
    if (property->pattern) {
        st_json_name(json, "pattern");
        st_json_text(json, property->pattern);
    }
    if (property->enumeration_count > 0) {
        st_json_name(json, "enum");
        st_json_array(json);
        for (uint32_t i = 0; i < property->enumeration_count; i++)
            write_constant(json, NULL, &property->enumeration[i], scratch);
        st_json_array_end(json);
    }
    st_json_object_end(json);
}

static void write_members(st_json *json, const st_type_def *type, const uint32_t *members, uint32_t count, bool ids)
{
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        if (ids)
            st_json_u64(json, type->properties[members[i]].id);
        else
            st_json_text(json, type->properties[members[i]].name);
    }
    st_json_array_end(json);
}

static void write_uniques(st_json *json, const st_type_def *type, bool ids)
{
    if (ids && type->next_unique > 0) {
        st_json_name(json, "next_unique");
        st_json_u64(json, type->next_unique);
    }
    if (type->unique_count == 0)
        return;
    st_json_name(json, "unique");
    st_json_array(json);
    for (uint32_t i = 0; i < type->unique_count; i++) {
        if (ids) {
            st_json_object(json);
            st_json_name(json, "id");
            st_json_u64(json, type->uniques[i].id);
            st_json_name(json, "properties");
        }
        write_members(json, type, type->uniques[i].properties, type->uniques[i].count, ids);
        if (ids)
            st_json_object_end(json);
    }
    st_json_array_end(json);
}

static void write_end(st_json *json, const char *name, const st_type_def *node, bool ids)
{
    st_json_name(json, name);
    if (ids)
        st_json_u64(json, node->table);
    else
        st_json_text(json, node->name);
}

static void write_limit(st_json *json, const char *name, uint64_t limit)
{
    if (limit == ST_NO_LIMIT)
        return;
    st_json_name(json, name);
    st_json_u64(json, limit);
}

static void write_type(st_json *json, const st_schema *schema, const st_type_def *type, bool ids, pf_buffer *scratch)
{
    st_json_object(json);
    if (ids) {
        st_json_name(json, "table");
        st_json_u64(json, type->table);
    }
    st_json_name(json, "name");
    st_json_text(json, type->name);
    st_json_name(json, "kind");
    st_json_text(json, type->edge ? "edge" : "node");
    if (type->edge) {
        write_end(json, "from", &schema->types[type->from], ids);
        write_end(json, "to", &schema->types[type->to], ids);
    }
    st_json_name(json, "properties");
    st_json_array(json);
    for (uint32_t i = 0; i < type->property_count; i++)
        write_property(json, &type->properties[i], ids, scratch);
    st_json_array_end(json);
    if (type->edge ? type->identity == ST_EDGE_KEYED : type->key_count > 0) {
        st_json_name(json, "key");
        write_members(json, type, type->key, type->key_count, ids);
    }
    write_uniques(json, type, ids);
    if (type->edge) {
        write_limit(json, "out", type->max_out);
        write_limit(json, "in", type->max_in);
    }
    st_json_object_end(json);
}

/* NULL: all of the types; else this one and, of an edge, those of its ends. */
static bool belongs(const st_schema *schema, const st_type_def *only, uint32_t i)
{
    const st_type_def *type = &schema->types[i];
    return !only || type == only || (only->edge && (i == only->from || i == only->to));
}

static sluice_status encode(const st_schema *schema, const st_type_def *only, bool ids, pf_buffer *buffer,
                            sluice_error *err)
{
    st_json json;
    pf_buffer scratch = {0};
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, "sluice-schema/1");
    st_json_name(&json, "types");
    st_json_array(&json);
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (belongs(schema, only, i))
            write_type(&json, schema, &schema->types[i], ids, &scratch);
    st_json_array_end(&json);
    st_json_object_end(&json);
    pf_buffer_free(&scratch);
    return st_json_end(&json, true, err);
}

sluice_status st_schema_encode(const st_schema *schema, pf_buffer *buffer, sluice_error *err)
{
    return encode(schema, NULL, true, buffer, err);
}

sluice_status st_schema_encode_type(const st_schema *schema, const st_type_def *type, pf_buffer *buffer,
                                    sluice_error *err)
{
    return encode(schema, type, true, buffer, err);
}

static sluice_status digest(const st_schema *schema, bool ids, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = encode(schema, NULL, ids, &text, err);
    if (status == SLUICE_OK)
        *ret_digest = pf_sha256_of(text.data, text.length);
    pf_buffer_free(&text);
    return status;
}

sluice_status st_schema_identity(const st_schema *schema, pf_sha256 *ret_identity, sluice_error *err)
{
    return digest(schema, true, ret_identity, err);
}

sluice_status st_schema_shape(const st_schema *schema, pf_sha256 *ret_shape, sluice_error *err)
{
    return digest(schema, false, ret_shape, err);
}
