/*
 * Inside of the schema parser: what parse.c (types, properties, keys) and parse_checks.c (constants, checks) share.
 */
#ifndef STORE_SCHEMA_PARSE_H
#define STORE_SCHEMA_PARSE_H

#include "store/format/tree.h"
#include "store/schema/schema.h"

typedef struct st_schema_parser {
    const char *file; /* as messages name it */
    sluice_error *err;
} st_schema_parser;

/* Fills the error: FILE:LINE, the path of the node, then the text. Returns the code. */
sluice_status st_schema_fault(const st_schema_parser *parser, const st_node *at, sluice_status code, const char *fmt,
                              ...) PF_PRINTF(4, 5);
/* The node has this kind, else a fault that says what was expected. */
sluice_status st_schema_expect(const st_schema_parser *parser, const st_node *node, st_node_kind kind);
/* Every member of the object has one of these names (NULL-terminated list), else a fault with the nearest as hint. */
sluice_status st_schema_expect_members(const st_schema_parser *parser, const st_node *object, const char *const *names);

/* A constant for this property. Null only where `null_allowed`. */
sluice_status st_schema_constant(const st_schema_parser *parser, const st_node *node, const st_property *property,
                                 bool null_allowed, st_value *ret_value);
/* The member "checks" of a type: constraints of its properties. */
sluice_status st_schema_checks(const st_schema_parser *parser, const st_node *node, st_type_def *type);
/* Checks that belong together: minimum and maximum, lengths, and that the default keeps them. `at` is for messages. */
sluice_status st_schema_check_property(const st_schema_parser *parser, const st_node *at, const st_property *property);
/* The property of this name; a fault with the nearest as hint when the type has none. */
sluice_status st_schema_property(const st_schema_parser *parser, const st_node *at, const char *name, size_t length,
                                 const st_type_def *type, uint32_t *ret_index);

#endif
