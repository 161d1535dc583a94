#include "store/arrow/c_format.h"

#include <stdlib.h>
#include <string.h>

#define CHILDREN_MAX 65536

typedef struct simple {
    const char *format;
    st_arrow_field field;
} simple;

static const simple simples[] = {
    {"n", {.kind = ST_ARROW_NULL}},
    {"b", {.kind = ST_ARROW_BOOL}},
    {"c", {.kind = ST_ARROW_INT, .width = 8, .is_signed = true}},
    {"C", {.kind = ST_ARROW_INT, .width = 8}},
    {"s", {.kind = ST_ARROW_INT, .width = 16, .is_signed = true}},
    {"S", {.kind = ST_ARROW_INT, .width = 16}},
    {"i", {.kind = ST_ARROW_INT, .width = 32, .is_signed = true}},
    {"I", {.kind = ST_ARROW_INT, .width = 32}},
    {"l", {.kind = ST_ARROW_INT, .width = 64, .is_signed = true}},
    {"L", {.kind = ST_ARROW_INT, .width = 64}},
    {"e", {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_HALF}},
    {"f", {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_SINGLE}},
    {"g", {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_DOUBLE}},
    {"z", {.kind = ST_ARROW_BINARY}},
    {"Z", {.kind = ST_ARROW_LARGE_BINARY}},
    {"vz", {.kind = ST_ARROW_BINARY_VIEW}},
    {"u", {.kind = ST_ARROW_UTF8}},
    {"U", {.kind = ST_ARROW_LARGE_UTF8}},
    {"vu", {.kind = ST_ARROW_UTF8_VIEW}},
    {"tdD", {.kind = ST_ARROW_DATE, .unit = ST_ARROW_DAY}},
    {"tdm", {.kind = ST_ARROW_DATE, .unit = ST_ARROW_MILLISECONDS_OF_DATE}},
    {"+s", {.kind = ST_ARROW_STRUCT}},
    {"+l", {.kind = ST_ARROW_LIST}},
    {"+L", {.kind = ST_ARROW_LARGE_LIST}},
    {"+m", {.kind = ST_ARROW_MAP}},
    {"+r", {.kind = ST_ARROW_RUN_END_ENCODED}},
    {"+vl", {.kind = ST_ARROW_LIST_VIEW}},
    {"+vL", {.kind = ST_ARROW_LARGE_LIST_VIEW}},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "d:PRECISION,SCALE[,BITS]" */
static bool parse_decimal(const char *text, st_arrow_field *field)
{
    char *end = NULL;
    long bits = 128;

    (void)strtol(text, &end, 10);
    if (*end != ',')
        return false;
    long scale = strtol(end + 1, &end, 10);
    if (*end == ',')
        bits = strtol(end + 1, &end, 10);
    if (*end || scale < -1000 || scale > 1000 || bits < 1 || bits > 256)
        return false;
    field->kind = ST_ARROW_DECIMAL;
    field->scale = (int32_t)scale;
    field->width = (uint32_t)bits;
    return true;
}

/* "ts" and a unit, then ":" and a zone or nothing. */
static bool parse_moment(const char *text, st_arrow_field *field, sluice_error *err, sluice_status *status)
{
    static const char units[] = "smun";
    const char *unit = text[0] ? strchr(units, text[0]) : NULL;

    if (!unit || text[1] != ':')
        return false;
    field->kind = ST_ARROW_TIMESTAMP;
    field->unit = (uint16_t)(unit - units);
    if (text[2] && !(field->timezone = strdup(text + 2)))
        *status = pf_fail_memory(err);
    return true;
}

static bool parse_kind(const char *format, st_arrow_field *field, sluice_error *err, sluice_status *status)
{
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        if (strcmp(simples[i].format, format) == 0) {
            field->kind = simples[i].field.kind;
            field->width = simples[i].field.width;
            field->is_signed = simples[i].field.is_signed;
            field->unit = simples[i].field.unit;
            return true;
        }
    if (begins(format, "ts"))
        return parse_moment(format + 2, field, err, status);
    if (begins(format, "d:"))
        return parse_decimal(format + 2, field);
    if (begins(format, "w:")) {
        char *end = NULL;
        unsigned long width = strtoul(format + 2, &end, 10);
        field->kind = ST_ARROW_FIXED_SIZE_BINARY;
        field->width = (uint32_t)width;
        return end != format + 2 && *end == '\0' && width <= INT32_MAX;
    }
    field->kind = begins(format, "+w:")  ? ST_ARROW_FIXED_SIZE_LIST
                  : begins(format, "+u") ? ST_ARROW_UNION
                  : begins(format, "tD") ? ST_ARROW_DURATION
                  : begins(format, "ti") ? ST_ARROW_INTERVAL
                  : begins(format, "tt") ? ST_ARROW_TIME
                                         : 0; /* not known: never flat */
    return true;
}

static sluice_status malformed(sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a producer's schema is malformed");
}

static sluice_status take_flat(const struct ArrowSchema *schema, st_arrow_field *field, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    const struct ArrowSchema *values = schema->dictionary ? schema->dictionary : schema;
    st_arrow_field index = {0};

    *field = (st_arrow_field){.nullable = (schema->flags & ARROW_FLAG_NULLABLE) != 0};
    field->name = strdup(schema->name ? schema->name : "");
    if (!field->name)
        return pf_fail_memory(err);
    if (!schema->format || !values->format || schema->n_children < 0 || schema->n_children > CHILDREN_MAX)
        return malformed(err);
    if (!parse_kind(values->format, field, err, &status))
        return malformed(err);
    if (!schema->dictionary || status != SLUICE_OK)
        return status;
    if (!parse_kind(schema->format, &index, err, &status) || index.kind != ST_ARROW_INT || values->dictionary) {
        free(index.timezone);
        return malformed(err);
    }
    field->has_dictionary = true;
    field->index_width = index.width;
    field->index_signed = index.is_signed;
    return status;
}

static sluice_status take_field(const struct ArrowSchema *schema, unsigned depth, st_arrow_field *field,
                                sluice_error *err)
{
    if (depth > ST_ARROW_DEPTH_MAX)
        return malformed(err);
    PF_TRY(take_flat(schema, field, err));
    if (schema->n_children == 0)
        return SLUICE_OK;
    field->children = calloc((size_t)schema->n_children, sizeof *field->children);
    if (!field->children)
        return pf_fail_memory(err);
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (!schema->children || !schema->children[i])
            return malformed(err);
        field->child_count = (uint32_t)i + 1;
        PF_TRY(take_field(schema->children[i], depth + 1, &field->children[i], err));
    }
    return SLUICE_OK;
}

sluice_status st_c_field(const struct ArrowSchema *schema, st_arrow_field *ret_field, sluice_error *err)
{
    return take_field(schema, 0, ret_field, err);
}
