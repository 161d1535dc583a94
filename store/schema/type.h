/*
 * Value types of properties, and their Arrow counterparts:
 *   bool Bool · int32 Int(32) · int64 Int(64) · uint64 Int(64, unsigned) · float32/float64 FloatingPoint · string Utf8
 * · bytes Binary · date Date(DAY), days since 1970-01-01 as int32 · timestamp Timestamp(MICROSECOND, "UTC"), int64.
 * ST_STRUCT occurs only as the type of a column that holds a key of several members (`from`, `to`).
 */
#ifndef STORE_SCHEMA_TYPE_H
#define STORE_SCHEMA_TYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum st_type {
    ST_BOOL,
    ST_INT32,
    ST_INT64,
    ST_UINT64,
    ST_FLOAT32,
    ST_FLOAT64,
    ST_STRING,
    ST_BYTES,
    ST_DATE,
    ST_TIMESTAMP,
    ST_ROW_ID,    /* uint64; only as a key: types without a key, and the column _row_id */
    ST_COMMIT_ID, /* FixedSizeBinary(16); only the column _commit */
    ST_STRUCT
} st_type;

const char *st_type_name(st_type type);                 /* "int64", ...; "row id", "commit id", "struct" for ours */
int st_type_parse(const char *name, st_type *ret_type); /* 1 when `name` is a property type of the schema file */
/* Can every value of one type be told in the other, so that fragments of it need not be written again? int32 in int64,
 * float32 in float64. */
int st_type_widens(st_type from, st_type to);
int st_type_reads_as(st_type stored, st_type wanted); /* the same, or wider as it is read */
size_t st_type_width(st_type type);                   /* bytes per value; 0 for bool (a bit), string, bytes, struct */

#endif
