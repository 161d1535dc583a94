/*
 * Columns in memory, in Arrow's own layout (64-byte aligned buffers, validity bits, least significant first).
 *
 * An st_column either owns its buffers (built by an st_column_builder) or borrows them (from a mapped fragment); in both
 * cases it is read-only. Rows of one column are at most 2^31 - 1, the bytes of a string column too.
 */
#ifndef STORE_ARROW_COLUMN_H
#define STORE_ARROW_COLUMN_H

#include "platform/buffer.h"
#include "platform/fail.h"
#include "store/schema/type.h"
#include <stdbool.h>
#include <stdint.h>

#define ST_KEY_MEMBERS_MAX 16

typedef struct st_column {
    st_type type;
    uint64_t length;
    uint64_t nulls;
    const uint8_t *validity;  /* NULL: no nulls */
    const void *values;       /* fixed-width values, or the bits of a bool; NULL for string, bytes, struct */
    const int32_t *offsets;   /* string, bytes: length + 1 */
    const uint8_t *data;      /* string, bytes */
    const struct st_column *children; /* struct: one per key member, never null */
    uint32_t child_count;
} st_column;

static inline bool st_column_is_null(const st_column *column, uint64_t row)
{
    return column->validity && !((column->validity[row >> 3] >> (row & 7)) & 1);
}

/* What a column is called and which property it stands for. */
typedef struct st_column_spec {
    char *name;      /* physical name in the fragment at the time of writing (owned) */
    st_type type;
    bool nullable;
    uint64_t property; /* stable property id (0 for from, to, _row_id, _commit) */
    struct st_column_spec *children; /* struct: members */
    uint32_t child_count;
} st_column_spec;

sluice_status st_column_spec_copy(const st_column_spec *from, st_column_spec *ret_to, sluice_error *err);
void st_column_spec_free(st_column_spec *spec); /* its insides; safe on a zeroed one */

/* Appends values to a column. One builder per column; append exactly one value (or null) per row. */
typedef struct st_column_builder st_column_builder;
sluice_status st_column_builder_new(const st_column_spec *spec, st_column_builder **ret_builder, sluice_error *err);
void st_column_builder_free(st_column_builder *builder);
sluice_status st_append_null(st_column_builder *builder, sluice_error *err);
sluice_status st_append_bool(st_column_builder *builder, bool value, sluice_error *err);
sluice_status st_append_i32(st_column_builder *builder, int32_t value, sluice_error *err); /* int32, date */
sluice_status st_append_i64(st_column_builder *builder, int64_t value, sluice_error *err); /* int64, timestamp */
sluice_status st_append_u64(st_column_builder *builder, uint64_t value, sluice_error *err); /* uint64, row id */
sluice_status st_append_f32(st_column_builder *builder, float value, sluice_error *err);
sluice_status st_append_f64(st_column_builder *builder, double value, sluice_error *err);
sluice_status st_append_bytes(st_column_builder *builder, const void *bytes, size_t length, sluice_error *err);
/* For a struct column: the builder of member i (append to each member once per row, then call st_append_struct). */
st_column_builder *st_builder_child(st_column_builder *builder, uint32_t member);
sluice_status st_append_struct(st_column_builder *builder, sluice_error *err);
/* Appends row `row` of `from` (same type). */
sluice_status st_append_from(st_column_builder *builder, const st_column *from, uint64_t row, sluice_error *err);
/* Drops the rows from `length` on (to undo a row that turned out bad). */
void st_builder_truncate(st_column_builder *builder, uint64_t length);
uint64_t st_builder_length(const st_column_builder *builder);
/* A view of what was built so far; valid until the next append, truncate or free. */
void st_builder_view(const st_column_builder *builder, st_column *ret_column);

#endif
