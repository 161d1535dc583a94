/*
 * A node's key on the command line and in output.
 *
 * One member: its text as in CSV. Several: the texts joined by commas, or (where a text holds a comma) a JSON array of
 * them. A type without key: the row id.
 */
#ifndef CLI_KEY_H
#define CLI_KEY_H

#include "store/read/snapshot.h"

typedef struct cli_key {
    st_column_builder *builders[ST_KEY_MEMBERS_MAX];
    st_column views[ST_KEY_MEMBERS_MAX];
    const st_column *columns[ST_KEY_MEMBERS_MAX]; /* row 0 of each */
    uint32_t count;
} cli_key;

/* USAGE when the text is no key of this type of nodes. Freed by cli_key_free, also then. */
sluice_status cli_key_parse(const st_type_def *type, const char *text, cli_key *ret_key, sluice_error *err);
void cli_key_free(cli_key *key); /* safe on a zeroed one */
/* A key at a row: as one text, and as JSON (a value; several members: an array of them). */
sluice_status cli_key_text(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                           sluice_error *err);
sluice_status cli_key_json(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                           sluice_error *err);

#endif
