/*
 * Schemas: the types of a graph with their properties, keys and constraints.
 *
 * Two forms. The *schema file* of a user (INTERFACE: names only). The *accepted schema*, which has ids: canonical JSON
 * at schema/<sha256>.json; its SHA-256 is the schema identity (a read-set member); the *shape* digest leaves ids out.
 * Ids of types (table ids, from 64 on) and of properties come from control/ and never come back.
 */
#ifndef STORE_SCHEMA_SCHEMA_H
#define STORE_SCHEMA_SCHEMA_H

#include "platform/buffer.h"
#include "platform/digest.h"
#include "platform/volume.h"
#include "store/arrow/column.h"

struct st_json;

/* Limits of a schema file; RESOURCE_LIMIT beyond. */
#define ST_SCHEMA_FILE_MAX       (16u << 20)
#define ST_SCHEMA_VALUES_MAX     1000000u /* JSON values in the file */
#define ST_SCHEMA_TYPES_MAX      1024u
#define ST_SCHEMA_PROPERTIES_MAX 4096u /* of one type */
#define ST_SCHEMA_UNIQUES_MAX    64u   /* of one type */
#define ST_SCHEMA_ENUM_MAX       65536u
#define ST_SCHEMA_TEXT_MAX       65536u /* bytes of a constant or a pattern */

typedef struct st_value { /* a constant in a schema: default, minimum, enum member */
    bool present, is_null;
    st_type type;
    bool boolean;
    int64_t i64;    /* int32, int64, date, timestamp */
    uint64_t u64;   /* uint64 */
    double f64;     /* float32, float64 */
    uint8_t *bytes; /* string, bytes (owned) */
    size_t length;
} st_value;

typedef struct st_property {
    uint64_t id; /* 0 before acceptance */
    char *name;
    st_type type;
    bool nullable;
    st_value default_value; /* of rows that are written without a value */
    st_value initial;       /* of rows that were written before the property was added; frozen then. Absent: null */
    char *renamed_from;     /* NULL when absent; not part of the identity */
    /* checks */
    st_value minimum, maximum;
    bool has_min_length, has_max_length;
    uint64_t min_length, max_length; /* code points (bytes for type bytes) */
    char *pattern;                   /* PCRE2, whole match; NULL when absent */
    st_value *enumeration;
    uint32_t enumeration_count;
} st_property;

typedef struct st_unique {
    uint32_t id;          /* within the type; never given twice: runs and change sets name tuples by it */
    uint32_t *properties; /* indexes into the type's properties */
    uint32_t count;
} st_unique;

#define ST_NO_LIMIT UINT64_MAX
typedef enum st_edge_identity { ST_EDGE_PARALLEL, ST_EDGE_KEYED } st_edge_identity;

typedef struct st_type_def {
    uint64_t table; /* table id; 0 before acceptance */
    char *name;
    bool edge;
    char *renamed_from;
    st_property *properties;
    uint32_t property_count;
    uint32_t *key; /* node: key properties (count 0: keyed by row id); edge: identifying properties, possibly none */
    uint32_t key_count;
    st_edge_identity identity; /* edges: KEYED for "key": [...] (also []), PARALLEL when absent */
    st_unique *uniques;
    uint32_t unique_count, next_unique; /* the id of the next unique tuple */
    uint32_t from, to;                  /* edges: indexes into the schema's types */
    uint64_t max_out, max_in;           /* edges; ST_NO_LIMIT for "*" */
} st_type_def;

typedef struct st_schema {
    st_type_def *types; /* nodes first, then edges, each in the order of the file */
    uint32_t type_count;
    uint32_t shares; /* owners beyond the first one; all in one thread */
} st_schema;

/* Parses a user's schema file. CONSTRAINT-like faults of the file are INPUT_SYNTAX (exit 4) with the JSON path and line
 * in the terminal text; names that are not allowed INVALID_NAME; size and count limits RESOURCE_LIMIT. 64-bit numbers
 * are read exactly (not through doubles). */
sluice_status st_schema_parse(const char *text, size_t length, const char *file_for_messages, st_schema **ret_schema,
                              sluice_error *err);
void st_schema_free(st_schema *schema); /* NULL allowed; the last owner's frees it */
/* One more owner, of a schema that nobody changes any more. */
st_schema *st_schema_share(st_schema *schema);
/* Hands out ids: types get *next_table++, properties *next_property++ (in order). */
void st_schema_assign_ids(st_schema *schema, uint64_t *next_table, uint64_t *next_property);
/* Canonical JSON of the accepted schema (with ids), and back; decoding re-encodes and compares bytes (else CORRUPT). */
sluice_status st_schema_encode(const st_schema *schema, pf_buffer *buffer, sluice_error *err);
/* Of one type alone, an edge's with those of its ends: a schema by itself. */
sluice_status st_schema_encode_type(const st_schema *schema, const st_type_def *type, pf_buffer *buffer,
                                    sluice_error *err);
sluice_status st_schema_decode(const void *bytes, size_t length, st_schema **ret_schema, sluice_error *err);
/* The user's form again, pretty-printed JSON (schema show). */
sluice_status st_schema_format(const st_schema *schema, pf_buffer *buffer, sluice_error *err);
/* One member of "nodes" or "edges" of that form, compact. */
void st_schema_show_type(struct st_json *json, const st_schema *schema, const st_type_def *type, pf_buffer *scratch);
/* SHA-256 of the canonical JSON. */
sluice_status st_schema_identity(const st_schema *schema, pf_sha256 *ret_identity, sluice_error *err);
/* SHA-256 of the same without ids: equal for two files that say the same. */
sluice_status st_schema_shape(const st_schema *schema, pf_sha256 *ret_shape, sluice_error *err);
const st_type_def *st_schema_find(const st_schema *schema, const char *name); /* NULL when absent */
const st_type_def *st_schema_find_table(const st_schema *schema, uint64_t table);
/* The name that comes nearest, for did-you-mean; NULL when none is near. */
const char *st_schema_nearest(const st_schema *schema, const char *name);
/* The index of a property by name, or by its id; -1 when absent. */
int st_type_find_property(const st_type_def *type, const char *name);
int st_type_find_property_id(const st_type_def *type, uint64_t id);
bool st_type_key_has(const st_type_def *type, uint32_t property);           /* is it a member of the key? */
const st_unique *st_type_find_unique(const st_type_def *type, uint32_t id); /* NULL when absent */
/* Appends a constant to a column of its type (null when it is null or not present). */
sluice_status st_value_append(const st_value *value, st_column_builder *builder, sluice_error *err);
/* The physical columns of a type's fragments: nodes its properties; edges `from`, `to` (the key of the end's type: a
 * single member as itself, several as ST_STRUCT, a type without key ST_ROW_ID), then properties. Caller frees each and
 * the array. */
sluice_status st_type_columns(const st_schema *schema, const st_type_def *type, st_column_spec **ret_specs,
                              uint32_t *ret_count, sluice_error *err);
/* Frees what st_type_columns made. NULL allowed. */
void st_type_columns_free(st_column_spec *specs, uint32_t count);
/* Names: 1..255 bytes of UTF-8 as INTERFACE says. */
bool st_name_is_valid(const char *name, size_t length, bool property_of_edge);

#define ST_SCHEMA_PATH 96
void st_schema_path(const pf_sha256 *identity, char ret_path[ST_SCHEMA_PATH]);
/* schema/<sha256>.json: written exclusively and synced with its folder (an existing equal one is synced and reused). */
sluice_status st_schema_store(pf_volume *volume, const st_schema *schema, pf_sha256 *ret_identity, sluice_error *err);
sluice_status st_schema_fetch(pf_volume *volume, const pf_sha256 *identity, st_schema **ret_schema, sluice_error *err);

#endif
