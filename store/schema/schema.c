/*
 * Schemas in memory (schema.h): names, look-up, ids, the layout of fragments.
 */
#include "store/schema/schema.h"
#include "platform/check.h"
#include "store/format/utf8.h"
#include "store/schema/constant.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

bool st_name_is_valid(const char *name, size_t length, bool property_of_edge)
{
    if (length < 1 || length > 255 || name[0] == '_' || !st_utf8_is_valid(name, length))
        return false;
    if ((length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.'))
        return false;
    if (property_of_edge &&
        ((length == 4 && memcmp(name, "from", 4) == 0) || (length == 2 && memcmp(name, "to", 2) == 0)))
        return false;
    for (size_t at = 0; at < length;) {
        uint32_t point;
        at += st_utf8_get(name + at, length - at, &point);
        if (point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == '/' || point == '\\' || point == '=' ||
            point == ':')
            return false;
    }
    return true;
}

static void property_free(st_property *property)
{
    free(property->name);
    free(property->renamed_from);
    free(property->pattern);
    st_constant_free(&property->default_value);
    st_constant_free(&property->initial);
    st_constant_free(&property->minimum);
    st_constant_free(&property->maximum);
    for (uint32_t i = 0; i < property->enumeration_count; i++)
        st_constant_free(&property->enumeration[i]);
    free(property->enumeration);
}

st_schema *st_schema_share(st_schema *schema)
{
    schema->shares++;
    return schema;
}

void st_schema_free(st_schema *schema)
{
    if (!schema)
        return;
    if (schema->shares > 0) {
        schema->shares--;
        return;
    }
    for (uint32_t t = 0; t < schema->type_count; t++) {
        st_type_def *type = &schema->types[t];
        for (uint32_t i = 0; i < type->property_count; i++)
            property_free(&type->properties[i]);
        for (uint32_t i = 0; i < type->unique_count; i++)
            free(type->uniques[i].properties);
        free(type->name);
        free(type->renamed_from);
        free(type->properties);
        free(type->key);
        free(type->uniques);
    }
    free(schema->types);
    free(schema);
}

void st_schema_assign_ids(st_schema *schema, uint64_t *next_table, uint64_t *next_property)
{
    for (uint32_t t = 0; t < schema->type_count; t++) {
        st_type_def *type = &schema->types[t];
        type->table = (*next_table)++;
        for (uint32_t i = 0; i < type->property_count; i++)
            type->properties[i].id = (*next_property)++;
        for (uint32_t i = 0; i < type->unique_count; i++)
            type->uniques[i].id = type->next_unique++;
    }
}

const st_type_def *st_schema_find(const st_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (strcmp(schema->types[i].name, name) == 0)
            return &schema->types[i];
    return NULL;
}

const st_type_def *st_schema_find_table(const st_schema *schema, uint64_t table)
{
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].table == table)
            return &schema->types[i];
    return NULL;
}

const char *st_schema_nearest(const st_schema *schema, const char *name)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < schema->type_count; i++)
        st_nearest_offer(&nearest, schema->types[i].name);
    return nearest.best;
}

int st_type_find_property(const st_type_def *type, const char *name)
{
    for (uint32_t i = 0; i < type->property_count; i++)
        if (strcmp(type->properties[i].name, name) == 0)
            return (int)i;
    return -1;
}

int st_type_find_property_id(const st_type_def *type, uint64_t id)
{
    for (uint32_t i = 0; i < type->property_count; i++)
        if (type->properties[i].id == id)
            return (int)i;
    return -1;
}

bool st_type_key_has(const st_type_def *type, uint32_t property)
{
    for (uint32_t i = 0; i < type->key_count; i++)
        if (type->key[i] == property)
            return true;
    return false;
}

const st_unique *st_type_find_unique(const st_type_def *type, uint32_t id)
{
    for (uint32_t i = 0; i < type->unique_count; i++)
        if (type->uniques[i].id == id)
            return &type->uniques[i];
    return NULL;
}

/* ---- the columns of a type's fragments ---- */

static sluice_status set_spec(const char *name, st_type type, bool nullable, uint64_t property,
                              st_column_spec *ret_spec, sluice_error *err)
{
    char *copy = strdup(name);
    if (!copy)
        return pf_fail_memory(err);
    *ret_spec = (st_column_spec){.name = copy, .type = type, .nullable = nullable, .property = property};
    return SLUICE_OK;
}

/* `from` or `to`: the key of the node type at that end. */
static sluice_status set_end_spec(const char *name, const st_type_def *node, st_column_spec *ret_spec,
                                  sluice_error *err)
{
    if (node->key_count == 0)
        return set_spec(name, ST_ROW_ID, false, 0, ret_spec, err);
    if (node->key_count == 1)
        return set_spec(name, node->properties[node->key[0]].type, false, 0, ret_spec, err);
    PF_TRY(set_spec(name, ST_STRUCT, false, 0, ret_spec, err));
    ret_spec->children = calloc(node->key_count, sizeof(st_column_spec));
    if (!ret_spec->children)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < node->key_count; i++) {
        const st_property *member = &node->properties[node->key[i]];
        PF_TRY(set_spec(member->name, member->type, false, member->id, &ret_spec->children[i], err));
        ret_spec->child_count++;
    }
    return SLUICE_OK;
}

sluice_status st_type_columns(const st_schema *schema, const st_type_def *type, st_column_spec **ret_specs,
                              uint32_t *ret_count, sluice_error *err)
{
    uint32_t count = 0, wanted = type->property_count + (type->edge ? 2 : 0);
    sluice_status status = SLUICE_OK;
    st_column_spec *specs = calloc(wanted ? wanted : 1, sizeof(*specs));
    if (!specs)
        return pf_fail_memory(err);
    if (type->edge) {
        PF_GOTO(status, failed, set_end_spec("from", &schema->types[type->from], &specs[count++], err));
        PF_GOTO(status, failed, set_end_spec("to", &schema->types[type->to], &specs[count++], err));
    }
    for (uint32_t i = 0; i < type->property_count; i++) {
        const st_property *property = &type->properties[i];
        PF_GOTO(status, failed,
                set_spec(property->name, property->type, property->nullable, property->id, &specs[count++], err));
    }
    *ret_specs = specs;
    *ret_count = count;
    return SLUICE_OK;
failed:
    st_type_columns_free(specs, count);
    return status;
}

void st_type_columns_free(st_column_spec *specs, uint32_t count)
{
    for (uint32_t i = 0; specs && i < count; i++)
        st_column_spec_free(&specs[i]);
    free(specs);
}
