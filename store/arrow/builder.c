/*
 * Column builders: growth, nulls, bulk appends, undo and views. The appends of single values are inlined (column.h).
 *
 * Invariants: buffers are aligned to ST_COLUMN_ALIGNMENT and grow by doubling; validity, where it exists, covers
 * `capacity` rows and is 1 from `length` on; bool bits are 0 from `length` on; offsets[length] == data_length. A failed
 * append leaves the builder as it was (a struct row's members may be longer: truncate drops them).
 */
#include "store/arrow/bits.h"
#include "store/arrow/column.h"

#include <stdlib.h>

#define FIRST_ROWS  64u
#define FIRST_BYTES 512u

static bool has_offsets(st_type type)
{
    return type == ST_STRING || type == ST_BYTES;
}

static uint64_t value_bytes(st_type type, uint64_t rows)
{
    return type == ST_BOOL ? (rows + 7) / 8 : rows * st_type_width(type);
}

static sluice_status builder_init(st_column_builder *builder, const st_column_spec *spec, sluice_error *err)
{
    *builder = (st_column_builder){.type = spec->type};
    if ((spec->type == ST_STRUCT) != (spec->child_count > 0) || spec->child_count > ST_KEY_MEMBERS_MAX)
        return pf_fail(err, SLUICE_INTERNAL, "a struct column needs 1 to %d members", ST_KEY_MEMBERS_MAX);
    return SLUICE_OK;
}

static void builder_release(st_column_builder *builder)
{
    free(builder->values);
    free(builder->offsets);
    free(builder->data);
    free(builder->validity);
}

sluice_status st_column_builder_new(const st_column_spec *spec, st_column_builder **ret_builder, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    st_column_builder *builder = malloc(sizeof *builder);

    *ret_builder = NULL;
    if (!builder)
        return pf_fail_memory(err);
    PF_GOTO(status, failed, builder_init(builder, spec, err));
    if (spec->child_count) {
        builder->children = calloc(spec->child_count, sizeof *builder->children);
        builder->child_views = calloc(spec->child_count, sizeof *builder->child_views);
        if (!builder->children || !builder->child_views) {
            status = pf_fail_memory(err);
            goto failed;
        }
    }
    for (uint32_t i = 0; i < spec->child_count; i++) {
        if (spec->children[i].type == ST_STRUCT) {
            status = pf_fail(err, SLUICE_INTERNAL, "a member of a struct column is a struct");
            goto failed;
        }
        PF_GOTO(status, failed, builder_init(&builder->children[i], &spec->children[i], err));
        builder->child_count = i + 1;
    }
    *ret_builder = builder;
    return SLUICE_OK;
failed:
    st_column_builder_free(builder);
    return status;
}

void st_column_builder_free(st_column_builder *builder)
{
    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->child_count; i++)
        builder_release(&builder->children[i]);
    free(builder->children);
    free(builder->child_views);
    builder_release(builder);
    free(builder);
}

/* A larger aligned block with the first `used` bytes of `block`, which is freed. NULL without memory: `block` stays. */
static void *regrow(void *block, uint64_t used, uint64_t size)
{
    uint64_t rounded = (size + ST_COLUMN_ALIGNMENT - 1) & ~(uint64_t)(ST_COLUMN_ALIGNMENT - 1);
    void *larger = aligned_alloc(ST_COLUMN_ALIGNMENT, rounded);

    if (!larger)
        return NULL;
    if (used)
        memcpy(larger, block, used);
    free(block);
    return larger;
}

static uint64_t doubled(uint64_t capacity, uint64_t first, uint64_t needed, uint64_t maximum)
{
    uint64_t larger = capacity ? capacity * 2 : first;
    if (larger < needed)
        larger = needed;
    return larger < maximum ? larger : maximum;
}

static sluice_status grow_rows(st_column_builder *builder, uint64_t needed, sluice_error *err)
{
    uint64_t old = builder->capacity;
    /* Whole groups of 64 rows, so that validity and bool bits grow by whole words; never beyond what offsets can count.
     */
    uint64_t capacity = (doubled(old, FIRST_ROWS, needed, ST_COLUMN_ROWS_MAX + 1) + 63) & ~(uint64_t)63;

    if (has_offsets(builder->type)) {
        uint64_t used = builder->offsets ? (builder->length + 1) * sizeof(int32_t) : 0;
        int32_t *offsets = regrow(builder->offsets, used, (capacity + 1) * sizeof(int32_t));
        if (!offsets)
            return pf_fail_memory(err);
        if (!used)
            offsets[0] = 0;
        builder->offsets = offsets;
    } else if (builder->type != ST_STRUCT) {
        uint64_t used = value_bytes(builder->type, builder->length);
        uint8_t *values = regrow(builder->values, used, value_bytes(builder->type, capacity));
        if (!values)
            return pf_fail_memory(err);
        if (builder->type == ST_BOOL)
            memset(values + used, 0, value_bytes(ST_BOOL, capacity) - used);
        builder->values = values;
    }
    if (builder->validity) {
        uint8_t *validity = regrow(builder->validity, old / 8, capacity / 8);
        if (!validity)
            return pf_fail_memory(err);
        memset(validity + old / 8, 0xFF, (capacity - old) / 8);
        builder->validity = validity;
    }
    builder->capacity = capacity;
    return SLUICE_OK;
}

sluice_status st_builder_reserve(st_column_builder *builder, uint64_t rows, uint64_t bytes, sluice_error *err)
{
    if (rows > ST_COLUMN_ROWS_MAX - builder->length)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a column would have more than %llu rows",
                       (unsigned long long)ST_COLUMN_ROWS_MAX);
    if (builder->length + rows > builder->capacity)
        PF_TRY(grow_rows(builder, builder->length + rows, err));
    if (!has_offsets(builder->type))
        return SLUICE_OK;
    if (bytes > ST_COLUMN_BYTES_MAX - builder->data_length)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a column would have more than %llu bytes of text",
                       (unsigned long long)ST_COLUMN_BYTES_MAX);
    uint64_t needed = builder->data_length + bytes;
    if (needed > builder->data_capacity) {
        uint64_t capacity = doubled(builder->data_capacity, FIRST_BYTES, needed, ST_COLUMN_BYTES_MAX);
        uint8_t *data = regrow(builder->data, builder->data_length, capacity);
        if (!data)
            return pf_fail_memory(err);
        builder->data = data;
        builder->data_capacity = capacity;
    }
    return SLUICE_OK;
}

static sluice_status make_validity(st_column_builder *builder, sluice_error *err)
{
    if (builder->validity || !builder->capacity)
        return SLUICE_OK;
    builder->validity = regrow(NULL, 0, builder->capacity / 8);
    if (!builder->validity)
        return pf_fail_memory(err);
    memset(builder->validity, 0xFF, builder->capacity / 8);
    return SLUICE_OK;
}

/* Appends slots that hold the zero value (of members too); their validity is not touched. */
static sluice_status append_zero_slots(st_column_builder *builder, uint64_t count, sluice_error *err)
{
    PF_TRY(st_builder_reserve(builder, count, 0, err));
    if (has_offsets(builder->type)) {
        for (uint64_t i = 1; i <= count; i++)
            builder->offsets[builder->length + i] = (int32_t)builder->data_length;
    } else if (builder->type != ST_STRUCT && builder->type != ST_BOOL && count) {
        size_t width = st_type_width(builder->type);
        memset(builder->values + builder->length * width, 0, count * width);
    }
    builder->length += count;
    return SLUICE_OK;
}

sluice_status st_append_nulls(st_column_builder *builder, uint64_t count, sluice_error *err)
{
    uint64_t first = builder->length;

    if (!count)
        return SLUICE_OK;
    PF_TRY(st_builder_reserve(builder, count, 0, err));
    PF_TRY(make_validity(builder, err));
    for (uint32_t i = 0; i < builder->child_count; i++)
        PF_TRY(append_zero_slots(&builder->children[i], count, err));
    PF_TRY(append_zero_slots(builder, count, err));
    st_bits_fill(builder->validity, first, count, false);
    builder->nulls += count;
    return SLUICE_OK;
}

sluice_status st_append_null(st_column_builder *builder, sluice_error *err)
{
    return st_append_nulls(builder, 1, err);
}

sluice_status st_append_bool(st_column_builder *builder, bool value, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_BOOL);
    PF_TRY(st_builder_room_(builder, err));
    if (value)
        st_bit_set(builder->values, builder->length);
    builder->length++;
    return SLUICE_OK;
}

st_column_builder *st_builder_child(st_column_builder *builder, uint32_t member)
{
    PF_ASSERT(member < builder->child_count);
    return &builder->children[member];
}

sluice_status st_append_struct(st_column_builder *builder, sluice_error *err)
{
    PF_ASSERT(builder->type == ST_STRUCT);
    PF_TRY(st_builder_room_(builder, err));
    builder->length++;
    for (uint32_t i = 0; i < builder->child_count; i++)
        PF_ASSERT(builder->children[i].length == builder->length);
    return SLUICE_OK;
}

sluice_status st_append_values(st_column_builder *builder, const void *values, uint64_t count, sluice_error *err)
{
    size_t width = st_type_width(builder->type);

    PF_ASSERT(width);
    PF_TRY(st_builder_reserve(builder, count, 0, err));
    if (count)
        memcpy(builder->values + builder->length * width, values, count * width);
    builder->length += count;
    return SLUICE_OK;
}

static sluice_status append_text_slice(st_column_builder *builder, const st_column *from, uint64_t first,
                                       uint64_t count, sluice_error *err)
{
    const int32_t *source = from->offsets + first;
    uint64_t bytes = (uint64_t)(source[count] - source[0]);

    PF_TRY(st_builder_reserve(builder, count, bytes, err));
    if (bytes)
        memcpy(builder->data + builder->data_length, from->data + source[0], bytes);
    int32_t shift = (int32_t)builder->data_length - source[0];
    int32_t *offsets = builder->offsets + builder->length;
    for (uint64_t i = 1; i <= count; i++)
        offsets[i] = source[i] + shift;
    builder->data_length += bytes;
    builder->length += count;
    return SLUICE_OK;
}

/* The slots of a slice (of a column without members), without their validity. */
static sluice_status append_slots(st_column_builder *builder, const st_column *from, uint64_t first, uint64_t count,
                                  sluice_error *err)
{
    if (has_offsets(builder->type))
        return append_text_slice(builder, from, first, count, err);
    if (builder->type == ST_BOOL) {
        PF_TRY(st_builder_reserve(builder, count, 0, err));
        st_bits_copy(builder->values, builder->length, from->values, first, count);
        builder->length += count;
        return SLUICE_OK;
    }
    const uint8_t *values = from->values;
    return st_append_values(builder, values + first * st_type_width(builder->type), count, err);
}

static sluice_status append_widened(st_column_builder *builder, const st_column *from, uint64_t first, uint64_t count,
                                    sluice_error *err)
{
    for (uint64_t row = first; row < first + count; row++) {
        if (st_column_is_null(from, row))
            PF_TRY(st_append_null(builder, err));
        else if (from->type == ST_INT32)
            PF_TRY(st_append_i64(builder, ((const int32_t *)from->values)[row], err));
        else
            PF_TRY(st_append_f64(builder, (double)((const float *)from->values)[row], err));
    }
    return SLUICE_OK;
}

sluice_status st_append_slice(st_column_builder *builder, const st_column *from, uint64_t first, uint64_t count,
                              sluice_error *err)
{
    uint64_t start = builder->length;
    uint64_t nulls = from->validity ? count - st_bits_count(from->validity, first, count) : 0;

    if (st_type_widens(from->type, builder->type))
        return append_widened(builder, from, first, count, err);
    PF_ASSERT(builder->type == from->type && first <= from->length && count <= from->length - first);
    if (!count)
        return SLUICE_OK;
    PF_TRY(st_builder_reserve(builder, count, 0, err));
    if (nulls)
        PF_TRY(make_validity(builder, err));
    if (builder->type == ST_STRUCT) {
        PF_ASSERT(builder->child_count == from->child_count);
        for (uint32_t i = 0; i < builder->child_count; i++)
            PF_TRY(append_slots(&builder->children[i], &from->children[i], first, count, err));
        builder->length += count;
    } else {
        PF_TRY(append_slots(builder, from, first, count, err));
    }
    if (nulls)
        st_bits_copy(builder->validity, start, from->validity, first, count);
    builder->nulls += nulls;
    return SLUICE_OK;
}

sluice_status st_append_from(st_column_builder *builder, const st_column *from, uint64_t row, sluice_error *err)
{
    return st_append_slice(builder, from, row, 1, err);
}

static void truncate_slots(st_column_builder *builder, uint64_t length)
{
    if (length >= builder->length)
        return;
    uint64_t dropped = builder->length - length;
    if (builder->nulls) {
        builder->nulls -= dropped - st_bits_count(builder->validity, length, dropped);
        st_bits_fill(builder->validity, length, dropped, true);
    }
    if (builder->type == ST_BOOL)
        st_bits_fill(builder->values, length, dropped, false);
    if (has_offsets(builder->type))
        builder->data_length = (uint64_t)builder->offsets[length];
    builder->length = length;
}

void st_builder_truncate(st_column_builder *builder, uint64_t length)
{
    for (uint32_t i = 0; i < builder->child_count; i++)
        truncate_slots(&builder->children[i], length);
    truncate_slots(builder, length);
}

static void view_flat(const st_column_builder *builder, st_column *ret_column)
{
    static const _Alignas(ST_COLUMN_ALIGNMENT) int32_t no_offsets[16];

    *ret_column = (st_column){
        .type = builder->type,
        .length = builder->length,
        .nulls = builder->nulls,
        .validity = builder->nulls ? builder->validity : NULL,
        .values = builder->values,
        .offsets = has_offsets(builder->type) && !builder->offsets ? no_offsets : builder->offsets,
        .data = builder->data,
    };
}

void st_builder_view(const st_column_builder *builder, st_column *ret_column)
{
    view_flat(builder, ret_column);
    for (uint32_t i = 0; i < builder->child_count; i++)
        view_flat(&builder->children[i], &builder->child_views[i]);
    ret_column->children = builder->child_views;
    ret_column->child_count = builder->child_count;
}
