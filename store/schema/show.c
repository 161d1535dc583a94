/*
 * The user's form of a schema again (st_schema_format): JSON that st_schema_parse takes, spread over lines.
 */
#include "store/format/json.h"
#include "store/schema/constant.h"
#include "store/schema/schema.h"
#include <math.h>
#include <string.h>

static void show_text(st_json *json, const char *name, const char *text)
{
    st_json_name(json, name);
    st_json_text(json, text);
}

static void show_members(st_json *json, const st_type_def *type, const uint32_t *members, uint32_t count)
{
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++)
        st_json_text(json, type->properties[members[i]].name);
    st_json_array_end(json);
}

static void show_constant(st_json *json, const st_value *value, pf_buffer *scratch)
{
    bool integer = value->type == ST_INT32 || value->type == ST_INT64 || value->type == ST_UINT64;
    bool finite = (value->type == ST_FLOAT32 || value->type == ST_FLOAT64) && isfinite(value->f64);
    if (value->is_null || value->type == ST_BOOL) {
        if (value->is_null)
            st_json_null(json);
        else
            st_json_bool(json, value->boolean);
        return;
    }
    scratch->length = 0;
    sluice_status status = st_constant_write(value, scratch, NULL);
    if (status != SLUICE_OK && json->status == SLUICE_OK)
        json->status = status;
    if (integer || finite)
        st_json_raw(json, (const char *)scratch->data, scratch->length);
    else
        st_json_bytes_text(json, scratch->data, scratch->length);
}

static void show_type_name(st_json *json, const st_property *property)
{
    char text[32];
    size_t length = strlen(st_type_name(property->type));
    memcpy(text, st_type_name(property->type), length);
    if (property->nullable)
        text[length++] = '?';
    st_json_bytes_text(json, text, length);
}

static void show_property(st_json *json, const st_property *property, pf_buffer *scratch)
{
    st_json_name(json, property->name);
    if (!property->default_value.present && !property->renamed_from) {
        show_type_name(json, property);
        return;
    }
    st_json_object(json);
    st_json_name(json, "type");
    show_type_name(json, property);
    if (property->default_value.present) {
        st_json_name(json, "default");
        show_constant(json, &property->default_value, scratch);
    }
    if (property->renamed_from) {
        st_json_name(json, "renamed_from");
        st_json_text(json, property->renamed_from);
    }
    st_json_object_end(json);
}

static bool has_checks(const st_property *property)
{
    return property->minimum.present || property->maximum.present || property->has_min_length ||
           property->has_max_length || property->pattern || property->enumeration_count > 0;
}

static void show_property_checks(st_json *json, const st_property *property, pf_buffer *scratch)
{
    st_json_name(json, property->name);
    st_json_object(json);
    if (property->minimum.present) {
        st_json_name(json, "min");
        show_constant(json, &property->minimum, scratch);
    }
    if (property->maximum.present) {
        st_json_name(json, "max");
        show_constant(json, &property->maximum, scratch);
    }
    if (property->has_min_length) {
        st_json_name(json, "min_length");
        st_json_unsigned(json, property->min_length);
    }
    if (property->has_max_length) {
        st_json_name(json, "max_length");
        st_json_unsigned(json, property->max_length);
    }
    if (property->pattern) {
        st_json_name(json, "pattern");
        st_json_text(json, property->pattern);
    }
    if (property->enumeration_count > 0) {
        st_json_name(json, "enum");
        st_json_array(json);
        for (uint32_t i = 0; i < property->enumeration_count; i++)
            show_constant(json, &property->enumeration[i], scratch);
        st_json_array_end(json);
    }
    st_json_object_end(json);
}

static void show_checks(st_json *json, const st_type_def *type, pf_buffer *scratch)
{
    bool any = false;
    for (uint32_t i = 0; i < type->property_count; i++) {
        if (!has_checks(&type->properties[i]))
            continue;
        if (!any) {
            st_json_name(json, "checks");
            st_json_object(json);
        }
        any = true;
        show_property_checks(json, &type->properties[i], scratch);
    }
    if (any)
        st_json_object_end(json);
}

static void show_range(st_json *json, const char *name, uint64_t most)
{
    char text[ST_SCALAR_TEXT_MAX] = "0..*";
    size_t length = 4;
    if (most != ST_NO_LIMIT)
        length = 3 + st_format_u64(most, text + 3);
    st_json_name(json, name);
    st_json_bytes_text(json, text, length);
}

void st_schema_show_type(st_json *json, const st_schema *schema, const st_type_def *type, pf_buffer *scratch)
{
    st_json_name(json, type->name);
    st_json_object(json);
    if (type->edge) {
        show_text(json, "from", schema->types[type->from].name);
        show_text(json, "to", schema->types[type->to].name);
    }
    if (type->renamed_from) {
        st_json_name(json, "renamed_from");
        st_json_text(json, type->renamed_from);
    }
    if (!type->edge && type->key_count == 1) {
        st_json_name(json, "key");
        st_json_text(json, type->properties[type->key[0]].name);
    } else if (type->edge ? type->identity == ST_EDGE_KEYED : type->key_count > 0) {
        st_json_name(json, "key");
        show_members(json, type, type->key, type->key_count);
    }
    st_json_name(json, "properties");
    st_json_object(json);
    for (uint32_t i = 0; i < type->property_count; i++)
        show_property(json, &type->properties[i], scratch);
    st_json_object_end(json);
    if (type->unique_count > 0) {
        st_json_name(json, "unique");
        st_json_array(json);
        for (uint32_t i = 0; i < type->unique_count; i++)
            show_members(json, type, type->uniques[i].properties, type->uniques[i].count);
        st_json_array_end(json);
    }
    show_checks(json, type, scratch);
    if (type->edge && (type->max_out != ST_NO_LIMIT || type->max_in != ST_NO_LIMIT)) {
        st_json_name(json, "cardinality");
        st_json_object(json);
        show_range(json, "out", type->max_out);
        show_range(json, "in", type->max_in);
        st_json_object_end(json);
    }
    st_json_object_end(json);
}

static void show_kind(st_json *json, const st_schema *schema, const char *name, bool edges, pf_buffer *scratch)
{
    st_json_name(json, name);
    st_json_object(json);
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].edge == edges)
            st_schema_show_type(json, schema, &schema->types[i], scratch);
    st_json_object_end(json);
}

static sluice_status new_line(pf_buffer *buffer, int depth, sluice_error *err)
{
    PF_TRY(pf_buffer_append_text(buffer, "\n", err));
    for (int i = 0; i < depth; i++)
        PF_TRY(pf_buffer_append_text(buffer, "  ", err));
    return SLUICE_OK;
}

/* Spreads compact JSON over lines: objects member by member down to depth 3, everything inside on one line. */
static sluice_status spread(const pf_buffer *compact, pf_buffer *buffer, sluice_error *err)
{
    bool in_string = false;
    int depth = 0, arrays = 0;
    for (size_t i = 0; i < compact->length; i++) {
        char c = (char)compact->data[i];
        bool opens = !in_string && c == '{', closes = !in_string && c == '}';
        bool empty = (opens && compact->data[i + 1] == '}') || (closes && compact->data[i - 1] == '{');
        depth -= closes;
        if (closes && !empty && depth < 3 && arrays == 0)
            PF_TRY(new_line(buffer, depth, err));
        PF_TRY(pf_buffer_append(buffer, &c, 1, err));
        if (in_string && c == '\\')
            PF_TRY(pf_buffer_append(buffer, &compact->data[++i], 1, err));
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && c == ':')
            PF_TRY(pf_buffer_append_text(buffer, " ", err));
        arrays += !in_string && c == '[' ? 1 : !in_string && c == ']' ? -1 : 0;
        depth += opens;
        bool breaks = depth <= 3 && arrays == 0 && !in_string;
        if ((opens && !empty && breaks) || (c == ',' && breaks))
            PF_TRY(new_line(buffer, depth, err));
        else if (c == ',' && !in_string)
            PF_TRY(pf_buffer_append_text(buffer, " ", err));
    }
    return pf_buffer_append_text(buffer, "\n", err);
}

sluice_status st_schema_format(const st_schema *schema, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    pf_buffer scratch = {0}, compact = {0};
    st_json_begin(&json, &compact);
    st_json_object(&json);
    show_kind(&json, schema, "nodes", false, &scratch);
    show_kind(&json, schema, "edges", true, &scratch);
    st_json_object_end(&json);
    sluice_status status = st_json_end(&json, false, err);
    if (status == SLUICE_OK)
        status = spread(&compact, buffer, err);
    pf_buffer_free(&scratch);
    pf_buffer_free(&compact);
    return status;
}
