/*
 * The order of values (snapshot.h): of numbers by size, of texts and bytes by their bytes, nulls last.
 */
#include "platform/check.h"
#include "store/read/snapshot.h"
#include <string.h>

static int sign_of(bool less, bool greater)
{
    return (int)greater - (int)less;
}

static int compare_bytes(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    size_t length_a = (size_t)(a->offsets[row_a + 1] - a->offsets[row_a]);
    size_t length_b = (size_t)(b->offsets[row_b + 1] - b->offsets[row_b]);
    size_t shorter = length_a < length_b ? length_a : length_b;
    int order = shorter ? memcmp(a->data + a->offsets[row_a], b->data + b->offsets[row_b], shorter) : 0;
    return order ? order : sign_of(length_a<length_b, length_a> length_b);
}

static bool bit_at(const st_column *column, uint64_t row)
{
    return (((const uint8_t *)column->values)[row >> 3] >> (row & 7)) & 1;
}

#define COMPARE_AS(type)                                                                                               \
    do {                                                                                                               \
        type left = ((const type *)a->values)[row_a];                                                                  \
        type right = ((const type *)b->values)[row_b];                                                                 \
        *ret_order = sign_of(left<right, left> right);                                                                 \
        return left == right || *ret_order != 0;                                                                       \
    } while (0)

bool st_value_compare(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b, int *ret_order)
{
    bool null_a = st_column_is_null(a, row_a);
    bool null_b = st_column_is_null(b, row_b);
    PF_ASSERT(a->type == b->type);
    *ret_order = sign_of(null_b, null_a);
    if (null_a || null_b)
        return true;
    switch (a->type) {
    case ST_BOOL:
        *ret_order = (int)bit_at(a, row_a) - (int)bit_at(b, row_b);
        return true;
    case ST_INT32:
    case ST_DATE:
        COMPARE_AS(int32_t);
    case ST_INT64:
    case ST_TIMESTAMP:
        COMPARE_AS(int64_t);
    case ST_UINT64:
    case ST_ROW_ID:
        COMPARE_AS(uint64_t);
    case ST_FLOAT32:
        COMPARE_AS(float);
    case ST_FLOAT64:
        COMPARE_AS(double);
    case ST_STRING:
    case ST_BYTES:
        *ret_order = compare_bytes(a, row_a, b, row_b);
        return true;
    case ST_COMMIT_ID:
        *ret_order = memcmp((const uint8_t *)a->values + 16 * row_a, (const uint8_t *)b->values + 16 * row_b, 16);
        return true;
    case ST_STRUCT:
        for (uint32_t i = 0; i < a->child_count; i++) {
            if (!st_value_compare(&a->children[i], row_a, &b->children[i], row_b, ret_order) || *ret_order != 0)
                return *ret_order != 0;
        }
        *ret_order = 0;
        return true;
    }
    return false;
}
