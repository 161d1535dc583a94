/*
 * The user's schema file (schema.h, INTERFACE "Schema file"): from JSON text to an st_schema without ids.
 *
 * The file is read into a tree first (strict JSON, exact numbers), then walked: node types before edge types, since
 * edges name nodes. The first fault ends it; its text names file, line and path.
 */
#include "store/schema/parse.h"
#include "platform/check.h"
#include "store/schema/nearest.h"
#include "store/schema/scalar.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sluice_status st_schema_fault(const st_schema_parser *parser, const st_node *at, sluice_status code, const char *fmt,
                              ...)
{
    char path[512], text[768], safe[64];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    st_node_path(at, path, sizeof(path));
    (void)snprintf(safe, sizeof(safe), "a fault in line %llu of the schema file", (unsigned long long)at->line);
    return pf_fail_private(parser->err, code, safe, "%s:%llu: %s%s%s", parser->file, (unsigned long long)at->line, path,
                           path[0] ? ": " : "", text);
}

sluice_status st_schema_expect(const st_schema_parser *parser, const st_node *node, st_node_kind kind)
{
    if (node->kind == kind)
        return SLUICE_OK;
    return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "%s was expected, not %s", st_node_kind_name(kind),
                           st_node_kind_name(node->kind));
}

sluice_status st_schema_expect_members(const st_schema_parser *parser, const st_node *object, const char *const *names)
{
    PF_TRY(st_schema_expect(parser, object, ST_NODE_OBJECT));
    for (const st_node *member = object->first; member; member = member->next) {
        st_nearest nearest;
        bool known = false;
        st_nearest_begin(&nearest, member->name);
        for (const char *const *name = names; *name && !known; name++) {
            known = strcmp(*name, member->name) == 0;
            st_nearest_offer(&nearest, *name);
        }
        if (known)
            continue;
        sluice_status status = st_schema_fault(parser, member, SLUICE_INPUT_SYNTAX, "unknown name");
        if (nearest.best)
            pf_hint(parser->err, "did you mean \"%s\"?", nearest.best);
        return status;
    }
    return SLUICE_OK;
}

static sluice_status copy_text(const st_schema_parser *parser, const char *text, char **ret_copy)
{
    *ret_copy = strdup(text);
    return *ret_copy ? SLUICE_OK : pf_fail_memory(parser->err);
}

/* Room for `count` zeroed items of an array that the schema owns (at least one, so that NULL always means failure). */
static sluice_status make_array(const st_schema_parser *parser, size_t count, size_t size, void **ret_array)
{
    *ret_array = calloc(count ? count : 1, size);
    return *ret_array ? SLUICE_OK : pf_fail_memory(parser->err);
}

static sluice_status check_name(const st_schema_parser *parser, const st_node *at, const char *name, size_t length,
                                bool property_of_edge)
{
    if (st_name_is_valid(name, length, property_of_edge))
        return SLUICE_OK;
    sluice_status status = st_schema_fault(parser, at, SLUICE_INVALID_NAME, "\"%s\" is not allowed as a name", name);
    if (property_of_edge && (strcmp(name, "from") == 0 || strcmp(name, "to") == 0))
        pf_hint(parser->err, "\"from\" and \"to\" are taken on edges: they are its ends");
    else
        pf_hint(parser->err, "names are 1 to 255 bytes of UTF-8 without control characters and / \\ = :, not \".\" or "
                             "\"..\", and do not begin with \"_\"");
    return status;
}

static sluice_status parse_renamed_from(const st_schema_parser *parser, const st_node *object, bool property_of_edge,
                                        char **ret_name)
{
    const st_node *node = st_node_member(object, "renamed_from");
    if (!node)
        return SLUICE_OK;
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    PF_TRY(check_name(parser, node, node->text, node->length, property_of_edge));
    return copy_text(parser, node->text, ret_name);
}

/* ---- properties ---- */

static sluice_status type_fault(const st_schema_parser *parser, const st_node *node, const char *text)
{
    if (strncmp(text, "list<", 5) == 0 || strncmp(text, "vector<", 7) == 0)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "type \"%s\" is not supported yet", node->text);
    st_nearest nearest;
    st_nearest_begin(&nearest, text);
    for (int type = ST_BOOL; type <= ST_TIMESTAMP; type++)
        st_nearest_offer(&nearest, st_type_name((st_type)type));
    sluice_status status = st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"%s\" is not a type", node->text);
    pf_hint(parser->err,
            "%s%s%stypes are bool, int32, int64, uint64, float32, float64, string, bytes, date, timestamp, "
            "each with \"?\" behind it when it may be null",
            nearest.best ? "did you mean \"" : "", nearest.best ? nearest.best : "", nearest.best ? "\"? " : "");
    return status;
}

static sluice_status parse_type(const st_schema_parser *parser, const st_node *node, st_property *ret_property)
{
    char text[32];
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    size_t length = node->length;
    ret_property->nullable = length > 0 && node->text[length - 1] == '?';
    length -= ret_property->nullable;
    (void)snprintf(text, sizeof(text), "%.*s", length < sizeof(text) ? (int)length : (int)sizeof(text) - 1, node->text);
    if (length >= sizeof(text) || !st_type_parse(text, &ret_property->type))
        return type_fault(parser, node, text);
    return SLUICE_OK;
}

static sluice_status parse_property(const st_schema_parser *parser, const st_node *node, bool edge,
                                    st_property *ret_property)
{
    static const char *const members[] = {"type", "default", "renamed_from", NULL};
    PF_TRY(check_name(parser, node, node->name, node->name_length, edge));
    PF_TRY(copy_text(parser, node->name, &ret_property->name));
    if (node->kind == ST_NODE_STRING)
        return parse_type(parser, node, ret_property);
    if (node->kind != ST_NODE_OBJECT)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX,
                               "a type or an object with \"type\" was expected, not %s", st_node_kind_name(node->kind));
    PF_TRY(st_schema_expect_members(parser, node, members));
    const st_node *type = st_node_member(node, "type"), *fallback = st_node_member(node, "default");
    if (!type)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"type\" is missing");
    PF_TRY(parse_type(parser, type, ret_property));
    if (fallback)
        PF_TRY(st_schema_constant(parser, fallback, ret_property, true, &ret_property->default_value));
    return parse_renamed_from(parser, node, edge, &ret_property->renamed_from);
}

static sluice_status parse_properties(const st_schema_parser *parser, const st_node *object, st_type_def *type)
{
    const st_node *node = st_node_member(object, "properties");
    void *array = NULL;
    if (node)
        PF_TRY(st_schema_expect(parser, node, ST_NODE_OBJECT));
    if (node && node->count > ST_SCHEMA_PROPERTIES_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u properties",
                               (unsigned)ST_SCHEMA_PROPERTIES_MAX);
    PF_TRY(make_array(parser, node ? node->count : 0, sizeof(st_property), &array));
    type->properties = array;
    for (const st_node *member = node ? node->first : NULL; member; member = member->next)
        PF_TRY(parse_property(parser, member, type->edge, &type->properties[type->property_count++]));
    return SLUICE_OK;
}

sluice_status st_schema_property(const st_schema_parser *parser, const st_node *at, const char *name, size_t length,
                                 const st_type_def *type, uint32_t *ret_index)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < type->property_count; i++) {
        if (strlen(type->properties[i].name) == length && memcmp(type->properties[i].name, name, length) == 0) {
            *ret_index = i;
            return SLUICE_OK;
        }
        st_nearest_offer(&nearest, type->properties[i].name);
    }
    sluice_status status =
        st_schema_fault(parser, at, SLUICE_INPUT_SYNTAX, "\"%s\" is not a property of this type", name);
    if (nearest.best)
        pf_hint(parser->err, "did you mean \"%s\"?", nearest.best);
    return status;
}

/* ---- keys and unique tuples: lists of different properties ---- */

static sluice_status add_member(const st_schema_parser *parser, const st_node *node, const st_type_def *type,
                                uint32_t *members, uint32_t *count)
{
    uint32_t index;
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    PF_TRY(st_schema_property(parser, node, node->text, node->length, type, &index));
    for (uint32_t i = 0; i < *count; i++)
        if (members[i] == index)
            return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"%s\" stands here twice", node->text);
    members[(*count)++] = index;
    return SLUICE_OK;
}

/* A property or a list of them. */
static sluice_status parse_members(const st_schema_parser *parser, const st_node *node, const st_type_def *type,
                                   uint32_t **ret_members, uint32_t *ret_count)
{
    void *array = NULL;
    uint32_t wanted = node->kind == ST_NODE_ARRAY ? node->count : 1;
    if (node->kind != ST_NODE_ARRAY && node->kind != ST_NODE_STRING)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX,
                               "a property or a list of properties was expected, not %s",
                               st_node_kind_name(node->kind));
    if (wanted > ST_KEY_MEMBERS_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u properties", ST_KEY_MEMBERS_MAX);
    PF_TRY(make_array(parser, wanted, sizeof(uint32_t), &array));
    *ret_members = array;
    if (node->kind == ST_NODE_STRING)
        return add_member(parser, node, type, *ret_members, ret_count);
    for (const st_node *element = node->first; element; element = element->next)
        PF_TRY(add_member(parser, element, type, *ret_members, ret_count));
    return SLUICE_OK;
}

static sluice_status parse_key(const st_schema_parser *parser, const st_node *object, st_type_def *type)
{
    const st_node *node = st_node_member(object, "key");
    if (!node)
        return SLUICE_OK;
    PF_TRY(parse_members(parser, node, type, &type->key, &type->key_count));
    if (type->edge) {
        type->identity = ST_EDGE_KEYED;
    } else if (type->key_count == 0) {
        sluice_status status = st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "the key of a node has no property");
        pf_hint(parser->err, "leave \"key\" out for nodes that are known by a row id only");
        return status;
    }
    for (uint32_t i = 0; i < type->key_count; i++) {
        const st_property *property = &type->properties[type->key[i]];
        if (property->nullable)
            return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "key property \"%s\" must not be nullable",
                                   property->name);
    }
    return SLUICE_OK;
}

static bool same_members(const st_unique *a, const st_unique *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        bool found = false;
        for (uint32_t j = 0; j < b->count; j++)
            found = found || a->properties[i] == b->properties[j];
        if (!found)
            return false;
    }
    return true;
}

static sluice_status parse_uniques(const st_schema_parser *parser, const st_node *object, st_type_def *type)
{
    const st_node *node = st_node_member(object, "unique");
    void *array = NULL;
    if (!node)
        return SLUICE_OK;
    PF_TRY(st_schema_expect(parser, node, ST_NODE_ARRAY));
    if (node->count > ST_SCHEMA_UNIQUES_MAX)
        return st_schema_fault(parser, node, SLUICE_RESOURCE_LIMIT, "more than %u unique tuples",
                               (unsigned)ST_SCHEMA_UNIQUES_MAX);
    PF_TRY(make_array(parser, node->count, sizeof(st_unique), &array));
    type->uniques = array;
    for (const st_node *tuple = node->first; tuple; tuple = tuple->next) {
        if (tuple->kind == ST_NODE_STRING) {
            sluice_status status =
                st_schema_fault(parser, tuple, SLUICE_INPUT_SYNTAX, "a list of properties was expected");
            pf_hint(parser->err, "each unique tuple is a list of its own: [[\"%s\"]]", tuple->text);
            return status;
        }
        PF_TRY(st_schema_expect(parser, tuple, ST_NODE_ARRAY));
        if (tuple->count == 0)
            return st_schema_fault(parser, tuple, SLUICE_INPUT_SYNTAX, "a unique tuple without a property");
        st_unique *unique = &type->uniques[type->unique_count++];
        PF_TRY(parse_members(parser, tuple, type, &unique->properties, &unique->count));
        for (uint32_t i = 0; i + 1 < type->unique_count; i++)
            if (same_members(unique, &type->uniques[i]))
                return st_schema_fault(parser, tuple, SLUICE_INPUT_SYNTAX, "the same unique tuple stands here twice");
    }
    return SLUICE_OK;
}

/* ---- edges ---- */

static sluice_status parse_end(const st_schema_parser *parser, const st_node *object, const char *name,
                               const st_schema *schema, uint32_t *ret_index)
{
    const st_node *node = st_node_member(object, name);
    st_nearest nearest;
    if (!node)
        return st_schema_fault(parser, object, SLUICE_INPUT_SYNTAX, "\"%s\" is missing: the node type at that end",
                               name);
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    st_nearest_begin(&nearest, node->text);
    for (uint32_t i = 0; i < schema->type_count && !schema->types[i].edge; i++) {
        if (strcmp(schema->types[i].name, node->text) == 0) {
            *ret_index = i;
            return SLUICE_OK;
        }
        st_nearest_offer(&nearest, schema->types[i].name);
    }
    sluice_status status = st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"%s\" is not a node type", node->text);
    if (nearest.best)
        pf_hint(parser->err, "did you mean \"%s\"?", nearest.best);
    return status;
}

static sluice_status bad_range(const st_schema_parser *parser, const st_node *node)
{
    sluice_status status =
        st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"%s\" is not a cardinality", node->text);
    pf_hint(parser->err, "\"0..*\" is any number of edges, \"0..1\" at most one");
    return status;
}

/* "0..5" or "0..*". */
static sluice_status parse_range(const st_schema_parser *parser, const st_node *node, uint64_t *ret_most)
{
    uint64_t least = 0, most = 0;
    PF_TRY(st_schema_expect(parser, node, ST_NODE_STRING));
    const char *dots = strstr(node->text, "..");
    if (!dots || st_parse_u64(node->text, (size_t)(dots - node->text), &least) != ST_PARSE_OK)
        return bad_range(parser, node);
    if (strcmp(dots + 2, "*") == 0)
        most = ST_NO_LIMIT;
    else if (st_parse_u64(dots + 2, strlen(dots + 2), &most) != ST_PARSE_OK || most == ST_NO_LIMIT)
        return bad_range(parser, node);
    if (least != 0)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "the lower bound of a cardinality must be 0");
    if (most == 0)
        return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX,
                               "the upper bound of a cardinality must be at least 1");
    *ret_most = most;
    return SLUICE_OK;
}

static sluice_status parse_cardinality(const st_schema_parser *parser, const st_node *object, st_type_def *type)
{
    static const char *const members[] = {"out", "in", NULL};
    const st_node *node = st_node_member(object, "cardinality");
    type->max_out = type->max_in = ST_NO_LIMIT;
    if (!node)
        return SLUICE_OK;
    PF_TRY(st_schema_expect_members(parser, node, members));
    const st_node *out = st_node_member(node, "out"), *in = st_node_member(node, "in");
    if (out)
        PF_TRY(parse_range(parser, out, &type->max_out));
    return in ? parse_range(parser, in, &type->max_in) : SLUICE_OK;
}

/* ---- types ---- */

static sluice_status check_type_name(const st_schema_parser *parser, const st_node *node, const st_schema *schema,
                                     const st_type_def *type)
{
    PF_TRY(check_name(parser, node, node->name, node->name_length, false));
    for (const st_type_def *other = schema->types; other < type; other++)
        if (strcmp(other->name, node->name) == 0)
            return st_schema_fault(parser, node, SLUICE_INPUT_SYNTAX, "\"%s\" is the name of a node type already",
                                   node->name);
    return SLUICE_OK;
}

static sluice_status parse_type_def(const st_schema_parser *parser, const st_node *node, st_schema *schema, bool edge)
{
    static const char *const node_members[] = {"key", "properties", "unique", "checks", "renamed_from", NULL};
    static const char *const edge_members[] = {"from",   "to",     "key",          "properties", "cardinality",
                                               "unique", "checks", "renamed_from", NULL};
    st_type_def *type = &schema->types[schema->type_count];
    type->edge = edge;
    PF_TRY(check_type_name(parser, node, schema, type));
    PF_TRY(st_schema_expect_members(parser, node, edge ? edge_members : node_members));
    if (edge) {
        PF_TRY(parse_end(parser, node, "from", schema, &type->from));
        PF_TRY(parse_end(parser, node, "to", schema, &type->to));
    }
    schema->type_count++; /* from here on st_schema_free knows it */
    PF_TRY(copy_text(parser, node->name, &type->name));
    PF_TRY(parse_renamed_from(parser, node, false, &type->renamed_from));
    PF_TRY(parse_properties(parser, node, type));
    PF_TRY(parse_key(parser, node, type));
    PF_TRY(parse_uniques(parser, node, type));
    if (edge)
        PF_TRY(parse_cardinality(parser, node, type));
    const st_node *checks = st_node_member(node, "checks");
    return checks ? st_schema_checks(parser, checks, type) : SLUICE_OK;
}

static sluice_status parse_root(const st_schema_parser *parser, const st_node *root, st_schema *schema)
{
    static const char *const members[] = {"nodes", "edges", NULL};
    void *array = NULL;
    PF_TRY(st_schema_expect_members(parser, root, members));
    const st_node *nodes = st_node_member(root, "nodes"), *edges = st_node_member(root, "edges");
    if (!nodes)
        return st_schema_fault(parser, root, SLUICE_INPUT_SYNTAX, "\"nodes\" is missing");
    PF_TRY(st_schema_expect(parser, nodes, ST_NODE_OBJECT));
    if (edges)
        PF_TRY(st_schema_expect(parser, edges, ST_NODE_OBJECT));
    size_t count = (size_t)nodes->count + (edges ? edges->count : 0);
    if (count > ST_SCHEMA_TYPES_MAX)
        return st_schema_fault(parser, root, SLUICE_RESOURCE_LIMIT, "more than %u types",
                               (unsigned)ST_SCHEMA_TYPES_MAX);
    PF_TRY(make_array(parser, count, sizeof(st_type_def), &array));
    schema->types = array;
    for (const st_node *node = nodes->first; node; node = node->next)
        PF_TRY(parse_type_def(parser, node, schema, false));
    for (const st_node *node = edges ? edges->first : NULL; node; node = node->next)
        PF_TRY(parse_type_def(parser, node, schema, true));
    return SLUICE_OK;
}

sluice_status st_schema_parse(const char *text, size_t length, const char *file_for_messages, st_schema **ret_schema,
                              sluice_error *err)
{
    st_schema_parser parser = {.file = file_for_messages, .err = err};
    st_tree *tree = NULL;
    st_schema *schema = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    sluice_status status;
    if (length > ST_SCHEMA_FILE_MAX)
        return pf_fail_private(err, SLUICE_RESOURCE_LIMIT, "the schema file is too large", "%s: more than %u bytes",
                               file_for_messages, (unsigned)ST_SCHEMA_FILE_MAX);
    status = st_tree_parse(text, length, ST_SCHEMA_VALUES_MAX, &tree, &problem, &line, err);
    if (status != SLUICE_OK && problem)
        return pf_fail_private(err, status, "the schema file is not valid JSON", "%s:%llu: not valid JSON: %s",
                               file_for_messages, (unsigned long long)line, problem);
    if (status != SLUICE_OK)
        return status;
    schema = calloc(1, sizeof(*schema));
    status = schema ? parse_root(&parser, st_tree_root(tree), schema) : pf_fail_memory(err);
    st_tree_free(tree);
    if (status != SLUICE_OK) {
        st_schema_free(schema);
        return status;
    }
    *ret_schema = schema;
    return SLUICE_OK;
}
