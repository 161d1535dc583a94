/*
 * Passes over the keys of a table: its living rows by the hash of some columns, in ranges that fit into memory, sorted;
 * and the groups of rows that have equal values there. For whoever must see all rows: verify, changes of a schema.
 *
 * Keys are compared by hash first: the rows whose hash falls into one of `parts` equal ranges are gathered and sorted,
 * range by range, so that memory stays bounded whatever the size of the table; equal hashes are then compared by value.
 */
#ifndef STORE_READ_KEY_PASS_H
#define STORE_READ_KEY_PASS_H

#include "store/read/reader.h"

/* Calls `row` for each living row of a table with its hash over these columns, if it falls into the part. */
typedef sluice_status st_hashed_row_fn(void *context, uint32_t fragment, uint64_t position, uint64_t hash,
                                       sluice_error *err);
typedef struct st_hash_walk {
    st_table_reader *reader;
    const uint32_t *columns; /* of the type's layout */
    uint32_t column_count, part, parts;
    bool skips_nulls; /* unique tuples: one with a null never collides */
    st_hashed_row_fn *row;
    void *context;
} st_hash_walk;
sluice_status st_hash_rows(const st_hash_walk *walk, sluice_error *err);

typedef struct st_row_key { /* the key of one row; valid while the reader is */
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *columns[ST_RUN_COLUMNS_MAX];
    uint64_t row;
} st_row_key;
sluice_status st_row_key_read(st_table_reader *reader, const uint32_t *columns, uint32_t count, uint32_t fragment,
                              uint64_t position, st_row_key *ret_key, sluice_error *err);

typedef struct st_key_row {
    uint64_t hash;
    uint32_t fragment, position;
} st_key_row;
typedef struct st_key_pass { /* the caller sets reader, columns, skips_nulls, parts, and part for each pass */
    st_table_reader *reader;
    uint32_t columns[ST_RUN_COLUMNS_MAX], column_count;
    bool skips_nulls;
    uint32_t part, parts;
    /* of the part: */
    bool exact;       /* equal hashes prove equal keys */
    st_key_row *rows; /* by hash, then place */
    uint64_t count, room;
} st_key_pass;
void st_key_pass_free(st_key_pass *pass); /* its insides */
/* How many parts a table of so many rows is read in. */
uint32_t st_key_parts(uint64_t live_rows);
sluice_status st_key_pass_fill(st_key_pass *pass, sluice_error *err);
/* Calls `group` for all rows of one value, two at least, by place; a change of schema counts them, verify names them.
 */
typedef sluice_status st_key_group_fn(void *context, const st_key_row *rows, uint64_t count, sluice_error *err);
sluice_status st_key_pass_groups(st_key_pass *pass, st_key_group_fn *group, void *context, sluice_error *err);

#endif
