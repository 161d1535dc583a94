/*
 * A JSON document from a user as a tree: for small files that are read as a whole (schemas, configuration). Exact
 * numbers (their text), line numbers, and the path of each node for messages. Duplicate names are refused.
 */
#ifndef STORE_FORMAT_TREE_H
#define STORE_FORMAT_TREE_H

#include "platform/buffer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum st_node_kind {
    ST_NODE_OBJECT,
    ST_NODE_ARRAY,
    ST_NODE_STRING,
    ST_NODE_NUMBER,
    ST_NODE_BOOL,
    ST_NODE_NULL
} st_node_kind;

typedef struct st_node {
    st_node_kind kind;
    uint64_t line;
    const char *name; /* of a member: decoded, zero-terminated; NULL for elements and the root */
    size_t name_length;
    const char *text; /* string: decoded; number: as written; zero-terminated */
    size_t length;
    bool boolean;
    const struct st_node *parent, *first, *next; /* members and elements in the order of the text */
    uint32_t count;                              /* of members or elements */
    uint32_t position;                           /* among its siblings */
} st_node;

typedef struct st_tree st_tree;

/* INPUT_SYNTAX with *ret_problem (no text of the input) and *ret_line set, RESOURCE_LIMIT over `max_nodes`. */
sluice_status st_tree_parse(const char *text, size_t length, uint32_t max_nodes, st_tree **ret_tree,
                            const char **ret_problem, uint64_t *ret_line, sluice_error *err);
void st_tree_free(st_tree *tree); /* NULL allowed */
const st_node *st_tree_root(const st_tree *tree);
/* The member of an object; NULL when absent. */
const st_node *st_node_member(const st_node *object, const char *name);
/* "an object", "a string", ... for messages; static storage. */
const char *st_node_kind_name(st_node_kind kind);
/* The way from the root, "nodes.Person.key[1]"; names with dots or odd characters in quotes. Always terminated. */
void st_node_path(const st_node *node, char *ret_path, size_t size);

#endif
