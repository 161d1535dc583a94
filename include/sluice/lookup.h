/*
 * Many look-ups: rows by key, and the nodes at the other ends of a node's edges, without texts and without memory that
 * is allocated for each. For programs that ask a snapshot thousands of times; sluice_get and sluice_neighbors answer a
 * single question more handily.
 *
 *   sluice_rows *people;
 *   const char *columns[] = {"name", "age"};
 *   sluice_value key = {.kind = SLUICE_INT64, .int64 = 7}, values[2];
 *   bool found;
 *   sluice_rows_open(snapshot, "Person", columns, 2, &people, err);
 *   sluice_rows_get(people, &key, 1, values, &found, err);      as often as is wanted
 *   sluice_rows_close(people);
 *
 * Handles hold their snapshot, may be closed in any order, and belong to the thread of their graph's handle.
 */
#ifndef SLUICE_LOOKUP_H
#define SLUICE_LOOKUP_H

#include <sluice/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types of a schema, in fewer kinds: int32, int64, date (days) and timestamp (microseconds, both since 1970) are
 * int64; float32 and float64 real; string text; row ids of types without key uint64. */
typedef enum sluice_value_kind {
    SLUICE_NULL,
    SLUICE_BOOL,
    SLUICE_INT64,
    SLUICE_UINT64,
    SLUICE_REAL,
    SLUICE_TEXT,
    SLUICE_BYTES
} sluice_value_kind;
typedef struct sluice_value {
    sluice_value_kind kind;
    uint32_t length; /* of text and bytes */
    union {
        bool boolean;
        int64_t int64;
        uint64_t uint64;
        double real;
        const char *text; /* not ended by a zero byte */
        const uint8_t *bytes;
    };
} sluice_value;

/* ---- rows by key ---- */

typedef struct sluice_rows sluice_rows;
/* Rows of a type of nodes. `columns`: names of properties, in the order of the values; NULL: all, in the schema's. */
sluice_status sluice_rows_open(sluice_snapshot *snapshot, const char *type, const char *const *columns,
                               size_t column_count, sluice_rows **ret_rows, sluice_error *err);
void sluice_rows_close(sluice_rows *rows);         /* NULL allowed */
size_t sluice_rows_width(const sluice_rows *rows); /* values of a row */
/* The row with this key: its members in the schema's order (of a type without key the row id). Fills one value for each
 * column; texts and bytes lie in the graph's files and stay valid until the handle is closed. *ret_found false (and
 * SLUICE_OK): there is none. USAGE: not a key of this type. */
sluice_status sluice_rows_get(sluice_rows *rows, const sluice_value *key, size_t members, sluice_value *ret_values,
                              bool *ret_found, sluice_error *err);

/* ---- the ends of edges ---- */

typedef struct sluice_links sluice_links;
/* Edges of one type, followed one way: SLUICE_OUT gives where edges from a node lead, SLUICE_IN where edges to it come
 * from. Goes by adjacency (`sluice index`) where there is one, else by the sorted runs that every load leaves. */
sluice_status sluice_links_open(sluice_snapshot *snapshot, const char *edge, sluice_direction direction,
                                sluice_links **ret_links, sluice_error *err);
void sluice_links_close(sluice_links *links);         /* NULL allowed */
size_t sluice_links_width(const sluice_links *links); /* members of a key at the far ends */
/* The keys at the other ends of a node's edges, once for every edge, in no order that means anything: *ret_count times
 * as many values as a key has members, valid until the next call on the handle. A node without edges, or that is not
 * there, has none. */
sluice_status sluice_links_get(sluice_links *links, const sluice_value *key, size_t members,
                               const sluice_value **ret_keys, size_t *ret_count, sluice_error *err);
/* The same where keys are one whole number at both ends (int32, int64, date, timestamp): the numbers themselves, which
 * costs least. USAGE for other types. */
sluice_status sluice_links_get_int64(sluice_links *links, int64_t key, const int64_t **ret_keys, size_t *ret_count,
                                     sluice_error *err);

#ifdef __cplusplus
}
#endif

#endif
