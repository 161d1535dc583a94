/*
 * A node's key as text: on the command line, in the library, and in output.
 *
 * One member: its text as in CSV. Several: the texts joined by commas, or (where a text holds a comma) a JSON array of
 * them. A type without key: the row id.
 */
#ifndef STORE_READ_KEY_TEXT_H
#define STORE_READ_KEY_TEXT_H

#include "store/read/snapshot.h"

typedef struct st_key_values {
    st_column_builder *builders[ST_KEY_MEMBERS_MAX];
    st_column views[ST_KEY_MEMBERS_MAX];
    const st_column *columns[ST_KEY_MEMBERS_MAX]; /* row 0 of each */
    uint32_t count;
} st_key_values;

/* USAGE when the text is no key of this type of nodes. Freed by st_key_values_free, also then. */
sluice_status st_key_parse(const st_type_def *type, const char *text, st_key_values *ret_key, sluice_error *err);
/* The same from JSON: a text, number or truth; of several members an array of them; as st_key_to_json writes it. */
sluice_status st_key_parse_json(const st_type_def *type, const char *json, size_t length, st_key_values *ret_key,
                                sluice_error *err);
/* The hint of an error about a key, where the type has none. */
void st_key_hint(const st_type_def *type, sluice_error *err);
void st_key_values_free(st_key_values *key); /* safe on a zeroed one */
/* A key at a row: as one text, and as JSON (a value; several members: an array of them). */
sluice_status st_key_to_text(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                             sluice_error *err);
sluice_status st_key_to_json(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                             sluice_error *err);

#endif
