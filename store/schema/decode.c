/*
 * Reading an accepted schema back (st_schema_decode). The bytes are hostile until proved otherwise: every field is
 * checked, references are resolved by id, and the decoded schema must encode to the same bytes again.
 */
#include "platform/check.h"
#include "store/format/json.h"
#include "store/schema/constant.h"
#include "store/schema/schema.h"
#include <stdlib.h>
#include <string.h>

static sluice_status corrupt(sluice_error *err, const char *what)
{
    return pf_fail(err, SLUICE_CORRUPT, "an accepted schema is damaged: %s", what);
}

static sluice_status copy_text(const char *text, char **ret_copy, sluice_error *err)
{
    *ret_copy = strdup(text);
    return *ret_copy ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status make_array(const cJSON *items, uint32_t most, size_t size, void **ret_array, sluice_error *err)
{
    int count = items ? cJSON_GetArraySize(items) : 0;
    if (count < 0 || (uint32_t)count > most)
        return corrupt(err, "a list is too long");
    *ret_array = calloc(count ? (size_t)count : 1, size);
    return *ret_array ? SLUICE_OK : pf_fail_memory(err);
}

/* ---- properties ---- */

static sluice_status read_constant(const cJSON *item, const st_property *property, st_value *ret_value,
                                   sluice_error *err)
{
    st_parse parse = ST_PARSE_BAD;
    if (cJSON_IsNull(item)) {
        if (!property->nullable)
            return corrupt(err, "a null constant");
        *ret_value = (st_value){.present = true, .is_null = true, .type = property->type};
        return SLUICE_OK;
    }
    if (!cJSON_IsString(item))
        return corrupt(err, "a constant is no text");
    PF_TRY(st_constant_read(property->type, item->valuestring, strlen(item->valuestring), ret_value, &parse, err));
    return parse == ST_PARSE_OK ? SLUICE_OK : corrupt(err, "a constant does not fit its type");
}

/* A constant that may be absent; null only as a default. */
static sluice_status read_optional(const cJSON *object, const char *name, const st_property *property,
                                   st_value *ret_value, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!item)
        return SLUICE_OK;
    if (cJSON_IsNull(item) && ret_value != &property->default_value)
        return corrupt(err, "a bound is null");
    return read_constant(item, property, ret_value, err);
}

static sluice_status read_length(const cJSON *object, const char *name, bool *ret_present, uint64_t *ret_length,
                                 sluice_error *err)
{
    if (!st_json_field(object, name))
        return SLUICE_OK;
    *ret_present = true;
    return st_json_get_u64(object, name, ret_length, err);
}

static sluice_status read_enum(const cJSON *object, st_property *property, sluice_error *err)
{
    const cJSON *items, *item;
    void *array = NULL;
    if (!st_json_field(object, "enum"))
        return SLUICE_OK;
    PF_TRY(st_json_get_array(object, "enum", &items, err));
    PF_TRY(make_array(items, ST_SCHEMA_ENUM_MAX, sizeof(st_value), &array, err));
    property->enumeration = array;
    cJSON_ArrayForEach(item, items)
    {
        if (cJSON_IsNull(item))
            return corrupt(err, "a null in an enumeration");
        PF_TRY(read_constant(item, property, &property->enumeration[property->enumeration_count++], err));
    }
    return SLUICE_OK;
}

static sluice_status read_property(const cJSON *object, bool edge, st_property *property, sluice_error *err)
{
    const char *text;
    PF_TRY(st_json_get_u64(object, "id", &property->id, err));
    PF_TRY(st_json_get_text(object, "name", &text, err));
    if (property->id == 0 || !st_name_is_valid(text, strlen(text), edge))
        return corrupt(err, "a property without a proper id or name");
    PF_TRY(copy_text(text, &property->name, err));
    PF_TRY(st_json_get_text(object, "type", &text, err));
    if (!st_type_parse(text, &property->type))
        return corrupt(err, "an unknown type");
    PF_TRY(st_json_get_bool(object, "nullable", &property->nullable, err));
    PF_TRY(read_optional(object, "default", property, &property->default_value, err));
    PF_TRY(read_optional(object, "initial", property, &property->initial, err));
    PF_TRY(read_optional(object, "min", property, &property->minimum, err));
    PF_TRY(read_optional(object, "max", property, &property->maximum, err));
    PF_TRY(read_length(object, "min_length", &property->has_min_length, &property->min_length, err));
    PF_TRY(read_length(object, "max_length", &property->has_max_length, &property->max_length, err));
    if (st_json_field(object, "pattern")) {
        PF_TRY(st_json_get_text(object, "pattern", &text, err));
        PF_TRY(copy_text(text, &property->pattern, err));
    }
    return read_enum(object, property, err);
}

static sluice_status read_properties(const cJSON *object, st_type_def *type, sluice_error *err)
{
    const cJSON *items, *item;
    void *array = NULL;
    PF_TRY(st_json_get_array(object, "properties", &items, err));
    PF_TRY(make_array(items, ST_SCHEMA_PROPERTIES_MAX, sizeof(st_property), &array, err));
    type->properties = array;
    cJSON_ArrayForEach(item, items)
    {
        PF_TRY(read_property(item, type->edge, &type->properties[type->property_count++], err));
    }
    return SLUICE_OK;
}

/* ---- keys, unique tuples ---- */

static sluice_status read_members(const cJSON *items, const st_type_def *type, uint32_t **ret_members,
                                  uint32_t *ret_count, sluice_error *err)
{
    const cJSON *item;
    void *array = NULL;
    PF_TRY(make_array(items, ST_KEY_MEMBERS_MAX, sizeof(uint32_t), &array, err));
    *ret_members = array;
    cJSON_ArrayForEach(item, items)
    {
        uint64_t id;
        uint32_t index = 0;
        if (!cJSON_IsString(item) || !st_json_text_is_u64(item->valuestring, &id))
            return corrupt(err, "a key member is no id");
        while (index < type->property_count && type->properties[index].id != id)
            index++;
        if (index == type->property_count)
            return corrupt(err, "a key member that the type does not have");
        for (uint32_t i = 0; i < *ret_count; i++)
            if ((*ret_members)[i] == index)
                return corrupt(err, "a key member twice");
        (*ret_members)[(*ret_count)++] = index;
    }
    return SLUICE_OK;
}

static sluice_status read_key(const cJSON *object, st_type_def *type, sluice_error *err)
{
    const cJSON *items;
    if (!st_json_field(object, "key"))
        return SLUICE_OK;
    PF_TRY(st_json_get_array(object, "key", &items, err));
    PF_TRY(read_members(items, type, &type->key, &type->key_count, err));
    if (type->edge)
        type->identity = ST_EDGE_KEYED;
    else if (type->key_count == 0)
        return corrupt(err, "a node key without a member");
    for (uint32_t i = 0; i < type->key_count; i++)
        if (type->properties[type->key[i]].nullable)
            return corrupt(err, "a nullable key member");
    return SLUICE_OK;
}

static sluice_status read_unique(const cJSON *item, const st_type_def *type, st_unique *unique, sluice_error *err)
{
    const cJSON *members = NULL;
    uint64_t id = 0;
    PF_TRY(st_json_get_u64(item, "id", &id, err));
    PF_TRY(st_json_get_array(item, "properties", &members, err));
    if (id >= type->next_unique || cJSON_GetArraySize(members) == 0)
        return corrupt(err, "a unique tuple");
    unique->id = (uint32_t)id;
    PF_TRY(read_members(members, type, &unique->properties, &unique->count, err));
    for (const st_unique *earlier = type->uniques; earlier < unique; earlier++)
        if (earlier->id == unique->id)
            return corrupt(err, "the id of a unique tuple twice");
    return SLUICE_OK;
}

static sluice_status read_uniques(const cJSON *object, st_type_def *type, sluice_error *err)
{
    const cJSON *items, *item;
    void *array = NULL;
    uint64_t next = 0;
    if (st_json_field(object, "next_unique"))
        PF_TRY(st_json_get_u64(object, "next_unique", &next, err));
    if (next > UINT32_MAX)
        return corrupt(err, "too many unique tuples");
    type->next_unique = (uint32_t)next;
    if (!st_json_field(object, "unique"))
        return SLUICE_OK;
    PF_TRY(st_json_get_array(object, "unique", &items, err));
    PF_TRY(make_array(items, ST_SCHEMA_UNIQUES_MAX, sizeof(st_unique), &array, err));
    type->uniques = array;
    cJSON_ArrayForEach(item, items)
    {
        PF_TRY(read_unique(item, type, &type->uniques[type->unique_count++], err));
    }
    return SLUICE_OK;
}

/* ---- types ---- */

static sluice_status read_limit(const cJSON *object, const char *name, uint64_t *ret_limit, sluice_error *err)
{
    *ret_limit = ST_NO_LIMIT;
    if (!st_json_field(object, name))
        return SLUICE_OK;
    PF_TRY(st_json_get_u64(object, name, ret_limit, err));
    return *ret_limit > 0 ? SLUICE_OK : corrupt(err, "a cardinality of none");
}

static sluice_status read_end(const cJSON *object, const char *name, const st_schema *schema, uint32_t *ret_index,
                              sluice_error *err)
{
    uint64_t table;
    PF_TRY(st_json_get_u64(object, name, &table, err));
    for (uint32_t i = 0; i + 1 < schema->type_count; i++) {
        if (schema->types[i].table == table && !schema->types[i].edge) {
            *ret_index = i;
            return SLUICE_OK;
        }
    }
    return corrupt(err, "an edge type without its node type");
}

static sluice_status read_type(const cJSON *object, st_schema *schema, sluice_error *err)
{
    const char *name, *kind;
    st_type_def *type = &schema->types[schema->type_count++];
    PF_TRY(st_json_get_u64(object, "table", &type->table, err));
    PF_TRY(st_json_get_text(object, "name", &name, err));
    PF_TRY(st_json_get_text(object, "kind", &kind, err));
    type->edge = strcmp(kind, "edge") == 0;
    if (type->table == 0 || !st_name_is_valid(name, strlen(name), false) || (!type->edge && strcmp(kind, "node") != 0))
        return corrupt(err, "a type without a proper id, name or kind");
    if (!type->edge && schema->type_count > 1 && schema->types[schema->type_count - 2].edge)
        return corrupt(err, "a node type behind an edge type");
    PF_TRY(copy_text(name, &type->name, err));
    if (type->edge) {
        PF_TRY(read_end(object, "from", schema, &type->from, err));
        PF_TRY(read_end(object, "to", schema, &type->to, err));
        PF_TRY(read_limit(object, "out", &type->max_out, err));
        PF_TRY(read_limit(object, "in", &type->max_in, err));
    }
    PF_TRY(read_properties(object, type, err));
    PF_TRY(read_key(object, type, err));
    return read_uniques(object, type, err);
}

/* ---- the whole: no id and no name twice ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts and looks for neighbours that are equal. */
static bool has_twins(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, size, compare);
    for (size_t i = 1; i < count; i++)
        if (compare((char *)items + (i - 1) * size, (char *)items + i * size) == 0)
            return true;
    return false;
}

static sluice_status check_twins(const st_schema *schema, sluice_error *err)
{
    size_t properties = 0, most = schema->type_count;
    sluice_status status = SLUICE_OK;
    bool twins = false;
    for (uint32_t t = 0; t < schema->type_count; t++)
        properties += schema->types[t].property_count;
    most += properties;
    uint64_t *ids = calloc(most + 1, sizeof(*ids));
    const char **names = calloc(most + 1, sizeof(*names));
    if (!ids || !names) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t t = 0; t < schema->type_count; t++) {
        ids[t] = schema->types[t].table;
        names[t] = schema->types[t].name;
    }
    twins = has_twins(ids, schema->type_count, sizeof(*ids), compare_u64) ||
            has_twins(names, schema->type_count, sizeof(*names), compare_texts);
    size_t count = 0;
    for (uint32_t t = 0; t < schema->type_count; t++) {
        const st_type_def *type = &schema->types[t];
        for (uint32_t i = 0; i < type->property_count; i++) {
            ids[count++] = type->properties[i].id;
            names[i] = type->properties[i].name;
        }
        twins = twins || has_twins(names, type->property_count, sizeof(*names), compare_texts);
    }
    if (twins || has_twins(ids, count, sizeof(*ids), compare_u64))
        status = corrupt(err, "an id or a name stands there twice");
done:
    free(ids);
    free(names);
    return status;
}

static sluice_status read_schema(const cJSON *document, st_schema *schema, sluice_error *err)
{
    const cJSON *items, *item;
    void *array = NULL;
    PF_TRY(st_json_check_format(document, "sluice-schema/1", err));
    PF_TRY(st_json_get_array(document, "types", &items, err));
    PF_TRY(make_array(items, ST_SCHEMA_TYPES_MAX, sizeof(st_type_def), &array, err));
    schema->types = array;
    cJSON_ArrayForEach(item, items)
    {
        PF_TRY(read_type(item, schema, err));
    }
    return check_twins(schema, err);
}

sluice_status st_schema_decode(const void *bytes, size_t length, st_schema **ret_schema, sluice_error *err)
{
    cJSON *document = NULL;
    pf_buffer again = {0};
    sluice_status status = SLUICE_OK;
    st_schema *schema = calloc(1, sizeof(*schema));
    if (!schema)
        return pf_fail_memory(err);
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, read_schema(document, schema, err));
    PF_GOTO(status, done, st_schema_encode(schema, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_schema = schema;
    schema = NULL;
done:
    st_schema_free(schema);
    st_json_free(document);
    pf_buffer_free(&again);
    return status;
}
