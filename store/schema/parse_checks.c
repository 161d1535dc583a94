/*
 * Constants and checks of the user's schema file (parse.h): bounds, lengths, patterns, enumerations, defaults.
 *
 * Patterns are compiled once here (PCRE2, UTF), so that a bad one is a fault of the schema and never of a load.
 */
#include "platform/check.h"
#include "store/format/utf8.h"
#include "store/schema/constant.h"
#include "store/schema/parse.h"
#include "store/schema/pattern.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(st_type type)
{
    return type == ST_INT32 || type == ST_INT64 || type == ST_UINT64 || type == ST_FLOAT32 || type == ST_FLOAT64;
}

static bool is_float(st_type type)
{
    return type == ST_FLOAT32 || type == ST_FLOAT64;
}

/* How JSON spells a value of this type: numbers bare (floats that JSON lacks as strings), true and false, else strings.
 */
static bool kind_fits(const st_node *node, st_type type)
{
    if (type == ST_BOOL)
        return node->kind == ST_NODE_BOOL;
    if (is_number(type) && node->kind == ST_NODE_NUMBER)
        return true;
    return node->kind == ST_NODE_STRING && (!is_number(type) || (is_float(type) && strchr("NI-", node->text[0])));
}

sluice_status st_schema_constant(const st_schema_parser *parser, const st_node *node, const st_property *property,
                                 bool null_allowed, st_value *ret_value)
{
    st_type type = property->type;
    st_parse parse = ST_PARSE_BAD;
    if (node->kind == ST_NODE_NULL) {
        if (!null_allowed || !property->nullable)
            return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX,
                                   "null is not allowed here: \"%s\" is not nullable", property->name);
        *ret_value = (st_value){.present = true, .is_null = true, .type = type};
        return SLUICE_OK;
    }
    if (node->kind == ST_NODE_STRING && node->length > ST_SCHEMA_TEXT_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u bytes", (unsigned)ST_SCHEMA_TEXT_MAX);
    const char *text = node->kind == ST_NODE_BOOL ? (node->boolean ? "true" : "false") : node->text;
    if (kind_fits(node, type))
        PF_TRY(st_constant_read(type, text, strlen(text), ret_value, &parse, parser->err));
    if (parse == ST_PARSE_OK)
        return SLUICE_OK;
    if (parse == ST_PARSE_RANGE)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "%s is out of range for %s", text,
                               st_type_name(type));
    if (!text)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "%s was expected, not %s", st_type_name(type),
                               st_node_kind_name(node->kind));
    const char *quote = node->kind == ST_NODE_STRING ? "\"" : "";
    return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "%s%s%s is not a value of type %s", quote, text, quote,
                           st_type_name(type));
}

/* ---- single checks ---- */

static sluice_status not_for_type(const st_schema_parser *parser, const st_node *node, const st_property *property)
{
    return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "a property of type %s cannot have this check",
                           st_type_name(property->type));
}

static sluice_status refuse_nan(const st_schema_parser *parser, const st_node *node, const st_value *value)
{
    if (is_float(value->type) && isnan(value->f64))
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "NaN equals nothing and is below and above nothing");
    return SLUICE_OK;
}

static sluice_status parse_bound(const st_schema_parser *parser, const st_node *node, const st_property *property,
                                 st_value *ret_value)
{
    if (!is_number(property->type) && property->type != ST_DATE && property->type != ST_TIMESTAMP)
        return not_for_type(parser, node, property);
    PF_TRY(st_schema_constant(parser, node, property, false, ret_value));
    return refuse_nan(parser, node, ret_value);
}

static sluice_status parse_length(const st_schema_parser *parser, const st_node *node, const st_property *property,
                                  bool *ret_present, uint64_t *ret_value)
{
    if (property->type != ST_STRING && property->type != ST_BYTES)
        return not_for_type(parser, node, property);
    if (node->kind != ST_NODE_NUMBER || st_parse_u64(node->text, node->length, ret_value) != ST_PARSE_OK)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "a whole number, 0 or more, was expected");
    *ret_present = true;
    return SLUICE_OK;
}

static sluice_status parse_pattern(const st_schema_parser *parser, const st_node *node, st_property *property)
{
    sluice_error reason = {0};
    st_pattern *pattern = NULL;
    if (property->type != ST_STRING)
        return not_for_type(parser, node, property);
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    if (node->length > ST_SCHEMA_TEXT_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u bytes", (unsigned)ST_SCHEMA_TEXT_MAX);
    sluice_status status = st_pattern_compile(node->text, &pattern, &reason);
    if (status == SLUICE_INPUT_SYNTAX)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "%s", reason.message);
    if (status != SLUICE_OK)
        return pf_fail_memory(parser->err);
    st_pattern_free(pattern);
    property->pattern = strdup(node->text);
    return property->pattern ? SLUICE_OK : pf_fail_memory(parser->err);
}

static int compare_constants(const void *a, const void *b)
{
    return st_constant_compare(*(const st_value *const *)a, *(const st_value *const *)b);
}

/* No member twice; found by sorting pointers, since enumerations may be long. */
static sluice_status check_enum(const st_schema_parser *parser, const st_node *node, const st_property *property)
{
    sluice_status status = SLUICE_OK;
    const st_value **sorted = malloc(property->enumeration_count * sizeof(*sorted));
    if (!sorted)
        return pf_fail_memory(parser->err);
    for (uint32_t i = 0; i < property->enumeration_count; i++)
        sorted[i] = &property->enumeration[i];
    qsort(sorted, property->enumeration_count, sizeof(*sorted), compare_constants);
    for (uint32_t i = 1; i < property->enumeration_count && status == SLUICE_OK; i++)
        if (st_constant_compare(sorted[i - 1], sorted[i]) == 0)
            status = st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "a value stands here twice");
    free(sorted);
    return status;
}

static sluice_status parse_enum(const st_schema_parser *parser, const st_node *node, st_property *property)
{
    PF_TRY(st_schema_expect(parser, node, ST_NODE_ARRAY));
    if (node->count == 0)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "an enumeration without a value");
    if (node->count > ST_SCHEMA_ENUM_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u values",
                               (unsigned)ST_SCHEMA_ENUM_MAX);
    property->enumeration = calloc(node->count, sizeof(st_value));
    if (!property->enumeration)
        return pf_fail_memory(parser->err);
    for (const st_node *element = node->first; element; element = element->next) {
        st_value *value = &property->enumeration[property->enumeration_count++];
        PF_TRY(st_schema_constant(parser, element, property, false, value));
        PF_TRY(refuse_nan(parser, element, value));
    }
    return check_enum(parser, node, property);
}

/* ---- together ---- */

static const char *broken_check(const st_property *property, const st_value *value)
{
    if (property->minimum.present && st_constant_compare(value, &property->minimum) < 0)
        return "min";
    if (property->maximum.present && st_constant_compare(value, &property->maximum) > 0)
        return "max";
    uint64_t length = property->type == ST_STRING ? st_utf8_code_points(value->bytes, value->length) : value->length;
    if (property->has_min_length && length < property->min_length)
        return "min_length";
    if (property->has_max_length && length > property->max_length)
        return "max_length";
    bool listed = property->enumeration_count == 0;
    for (uint32_t i = 0; i < property->enumeration_count && !listed; i++)
        listed = st_constant_compare(value, &property->enumeration[i]) == 0;
    return listed ? NULL : "enum";
}

static sluice_status check_default_pattern(const st_schema_parser *parser, const st_node *at,
                                           const st_property *property)
{
    st_pattern *pattern = NULL;
    PF_TRY(st_pattern_compile(property->pattern, &pattern, parser->err));
    st_match match = st_pattern_match(pattern, property->default_value.bytes, property->default_value.length);
    st_pattern_free(pattern);
    if (match == ST_MATCH_YES)
        return SLUICE_OK;
    return st_schema_fault(parser, at, SLUICE_INPUT_SYNTAX, "the default of \"%s\" breaks the check \"pattern\"",
                           property->name);
}

sluice_status st_schema_check_property(const st_schema_parser *parser, const st_node *at, const st_property *property)
{
    const st_value *fallback = &property->default_value;
    if (property->minimum.present && property->maximum.present &&
        st_constant_compare(&property->minimum, &property->maximum) > 0)
        return st_schema_fault(parser, at, SLUICE_INPUT_SYNTAX, "\"min\" is above \"max\"");
    if (property->has_min_length && property->has_max_length && property->min_length > property->max_length)
        return st_schema_fault(parser, at, SLUICE_INPUT_SYNTAX, "\"min_length\" is above \"max_length\"");
    if (!fallback->present || fallback->is_null)
        return SLUICE_OK;
    const char *broken = broken_check(property, fallback);
    if (broken)
        return st_schema_fault(parser, at, SLUICE_INPUT_SYNTAX, "the default of \"%s\" breaks the check \"%s\"",
                               property->name, broken);
    if (property->pattern)
        return check_default_pattern(parser, at, property);
    return SLUICE_OK;
}

static sluice_status parse_check(const st_schema_parser *parser, const st_node *node, st_property *property)
{
    static const char *const members[] = {"min", "max", "min_length", "max_length", "pattern", "enum", NULL};
    PF_TRY(st_schema_expect_members(parser, node, members));
    const st_node *member = st_node_member(node, "min");
    if (member)
        PF_TRY(parse_bound(parser, member, property, &property->minimum));
    if ((member = st_node_member(node, "max")))
        PF_TRY(parse_bound(parser, member, property, &property->maximum));
    if ((member = st_node_member(node, "min_length")))
        PF_TRY(parse_length(parser, member, property, &property->has_min_length, &property->min_length));
    if ((member = st_node_member(node, "max_length")))
        PF_TRY(parse_length(parser, member, property, &property->has_max_length, &property->max_length));
    if ((member = st_node_member(node, "pattern")))
        PF_TRY(parse_pattern(parser, member, property));
    if ((member = st_node_member(node, "enum")))
        PF_TRY(parse_enum(parser, member, property));
    return st_schema_check_property(parser, node, property);
}

sluice_status st_schema_checks(const st_schema_parser *parser, const st_node *node, st_type_def *type)
{
    PF_TRY(st_schema_expect(parser, node, ST_NODE_OBJECT));
    for (const st_node *member = node->first; member; member = member->next) {
        uint32_t index;
        PF_TRY(st_schema_property(parser, member, member->name, member->name_length, type, &index));
        PF_TRY(parse_check(parser, member, &type->properties[index]));
    }
    return SLUICE_OK;
}
