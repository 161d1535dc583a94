/*
 * Columns in memory, in Arrow's own layout (64-byte aligned buffers, validity bits, least significant first).
 *
 * An st_column either owns its buffers (built by an st_column_builder) or borrows them (from a mapped fragment); in
 * both cases it is read-only. Rows of one column are at most 2^31 - 1, the bytes of a string column too. Bits behind
 * the last row (of validity and of bool values) mean nothing.
 */
#ifndef STORE_ARROW_COLUMN_H
#define STORE_ARROW_COLUMN_H

#include "platform/buffer.h"
#include "platform/check.h"
#include "platform/fail.h"
#include "store/schema/type.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ST_KEY_MEMBERS_MAX  16
#define ST_COLUMN_ROWS_MAX  ((uint64_t)INT32_MAX)
#define ST_COLUMN_BYTES_MAX ((uint64_t)INT32_MAX)
#define ST_COLUMN_ALIGNMENT 64u

typedef struct st_column {
    st_type type;
    uint64_t length;
    uint64_t nulls;
    const uint8_t *validity;          /* NULL: no nulls */
    const void *values;               /* fixed-width values, or the bits of a bool; NULL for string, bytes, struct */
    const int32_t *offsets;           /* string, bytes: length + 1 */
    const uint8_t *data;              /* string, bytes */
    const struct st_column *children; /* struct: one per key member, never null */
    uint32_t child_count;
} st_column;

static inline bool st_column_is_null(const st_column *column, uint64_t row)
{
    return column->validity && !((column->validity[row >> 3] >> (row & 7)) & 1);
}

/* What a column is called and which property it stands for. */
typedef struct st_column_spec {
    char *name; /* physical name in the fragment at the time of writing (owned) */
    st_type type;
    bool nullable;
    uint64_t property;               /* stable property id (0 for from, to, _row_id, _commit) */
    struct st_column_spec *children; /* struct: members, 1 to ST_KEY_MEMBERS_MAX, none of them a struct */
    uint32_t child_count;
} st_column_spec;

sluice_status st_column_spec_copy(const st_column_spec *from, st_column_spec *ret_to, sluice_error *err);
void st_column_spec_free(st_column_spec *spec); /* its insides; safe on a zeroed one */

/*
 * Appends values to a column. One builder per column; append exactly one value (or null) per row. The struct is open
 * only so that appends can be inlined: nobody else touches its fields.
 *
 * Validity bits exist from the first null on, and are 1 from the start behind the last row, so that appending a value
 * never touches them. The slot of a null is zero: equal rows give equal bytes. After st_builder_truncate(builder, 0)
 * the memory is kept, which is how a builder serves one batch after the other.
 */
typedef struct st_column_builder {
    uint8_t *values;
    int32_t *offsets; /* capacity + 1 */
    uint8_t *data;
    uint8_t *validity; /* NULL until the first null */
    uint64_t length, capacity;
    uint64_t data_length, data_capacity;
    uint64_t nulls;
    st_type type;
    uint32_t child_count;
    struct st_column_builder *children;
    st_column *child_views;
} st_column_builder;
sluice_status st_column_builder_new(const st_column_spec *spec, st_column_builder **ret_builder, sluice_error *err);
void st_column_builder_free(st_column_builder *builder); /* NULL allowed */

/* Makes room for that many more rows, and bytes of strings; RESOURCE_LIMIT beyond what a column may hold. */
sluice_status st_builder_reserve(st_column_builder *builder, uint64_t rows, uint64_t bytes, sluice_error *err);
sluice_status st_append_null(st_column_builder *builder, sluice_error *err);
sluice_status st_append_bool(st_column_builder *builder, bool value, sluice_error *err);
static inline sluice_status st_append_i32(st_column_builder *builder, int32_t value,
                                          sluice_error *err); /* int32, date */
static inline sluice_status st_append_i64(st_column_builder *builder, int64_t value,
                                          sluice_error *err); /* int64, timestamp */
static inline sluice_status st_append_u64(st_column_builder *builder, uint64_t value,
                                          sluice_error *err); /* uint64, row id */
static inline sluice_status st_append_f32(st_column_builder *builder, float value, sluice_error *err);
static inline sluice_status st_append_f64(st_column_builder *builder, double value, sluice_error *err);
/* string, bytes; commit id: exactly 16 bytes. UTF-8 of strings is the caller's to check. */
static inline sluice_status st_append_bytes(st_column_builder *builder, const void *bytes, size_t length,
                                            sluice_error *err);
/* For a struct column: the builder of member i (append to each member once per row, then call st_append_struct). */
st_column_builder *st_builder_child(st_column_builder *builder, uint32_t member);
sluice_status st_append_struct(st_column_builder *builder, sluice_error *err);
/* Appends row `row` of `from` (same type, or one that widens to the builder's). */
sluice_status st_append_from(st_column_builder *builder, const st_column *from, uint64_t row, sluice_error *err);
/* In bulk: rows [first, first + count) of `from` (same or widening type); `count` fixed-width values (not bool) without
 * nulls; nulls. */
sluice_status st_append_slice(st_column_builder *builder, const st_column *from, uint64_t first, uint64_t count,
                              sluice_error *err);
sluice_status st_append_values(st_column_builder *builder, const void *values, uint64_t count, sluice_error *err);
sluice_status st_append_nulls(st_column_builder *builder, uint64_t count, sluice_error *err);
/* Drops the rows from `length` on (to undo a row that turned out bad). Members of a struct too, also those of a row
 * whose st_append_struct had not been called. */
void st_builder_truncate(st_column_builder *builder, uint64_t length);
static inline uint64_t st_builder_length(const st_column_builder *builder)
{
    return builder->length;
}
/* A view of what was built so far; valid until the next append, truncate or free. */
void st_builder_view(const st_column_builder *builder, st_column *ret_column);

/* ---- the inlined appends ---- */

static inline sluice_status st_builder_room_(st_column_builder *builder, sluice_error *err)
{
    return builder->length < builder->capacity ? SLUICE_OK : st_builder_reserve(builder, 1, 0, err);
}

#define ST_BUILDER_APPEND_(builder, ctype, value, err)                                                                 \
    do {                                                                                                               \
        PF_TRY(st_builder_room_((builder), (err)));                                                                    \
        ctype st_value_ = (value);                                                                                     \
        memcpy((builder)->values + (builder)->length * sizeof st_value_, &st_value_, sizeof st_value_);                \
        (builder)->length++;                                                                                           \
        return SLUICE_OK;                                                                                              \
    } while (0)

static inline sluice_status st_append_i32(st_column_builder *builder, int32_t value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_INT32 || builder->type == ST_DATE);
    ST_BUILDER_APPEND_(builder, int32_t, value, err);
}

static inline sluice_status st_append_i64(st_column_builder *builder, int64_t value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_INT64 || builder->type == ST_TIMESTAMP);
    ST_BUILDER_APPEND_(builder, int64_t, value, err);
}

static inline sluice_status st_append_u64(st_column_builder *builder, uint64_t value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_UINT64 || builder->type == ST_ROW_ID);
    ST_BUILDER_APPEND_(builder, uint64_t, value, err);
}

static inline sluice_status st_append_f32(st_column_builder *builder, float value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_FLOAT32);
    ST_BUILDER_APPEND_(builder, float, value, err);
}

static inline sluice_status st_append_f64(st_column_builder *builder, double value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_FLOAT64);
    ST_BUILDER_APPEND_(builder, double, value, err);
}

static inline sluice_status st_append_bytes(st_column_builder *builder, const void *bytes, size_t length,
                                            sluice_error *err)
{
    if (builder->type == ST_COMMIT_ID) {
        PF_ASSERT(length == 16);
        return st_append_values(builder, bytes, 1, err);
    }
    PF_ASSERT(builder->type == ST_STRING || builder->type == ST_BYTES);
    if (builder->length == builder->capacity || builder->data_capacity - builder->data_length < length)
        PF_TRY(st_builder_reserve(builder, 1, length, err));
    if (length)
        memcpy(builder->data + builder->data_length, bytes, length);
    builder->data_length += length;
    builder->length++;
    builder->offsets[builder->length] = (int32_t)builder->data_length;
    return SLUICE_OK;
}

#endif
