#include "store/arrow/array.h"

#include "platform/check.h"
#include "store/arrow/bits.h"
#include <stdio.h>

#define DAY_SECONDS 86400
#define VIEW_BYTES  16u
#define VIEW_INLINE 12u

/* ---- types ---- */

static bool is_width(uint32_t bits, uint32_t least, uint32_t most)
{
    return bits >= least && bits <= most && (bits & (bits - 1)) == 0;
}

bool st_arrow_field_is_flat(const st_arrow_field *field)
{
    if (field->has_dictionary && !is_width(field->index_width, 8, 64))
        return false;
    switch ((unsigned)field->kind) {
    case ST_ARROW_NULL:
    case ST_ARROW_BOOL:
    case ST_ARROW_UTF8:
    case ST_ARROW_LARGE_UTF8:
    case ST_ARROW_UTF8_VIEW:
    case ST_ARROW_BINARY:
    case ST_ARROW_LARGE_BINARY:
    case ST_ARROW_BINARY_VIEW:
        return true;
    case ST_ARROW_INT:
        return is_width(field->width, 8, 64);
    case ST_ARROW_DECIMAL:
        return is_width(field->width, 32, 128) && field->scale >= -38 && field->scale <= 38;
    case ST_ARROW_FLOATING_POINT:
        return field->unit <= ST_ARROW_DOUBLE;
    case ST_ARROW_DATE:
        return field->unit <= ST_ARROW_MILLISECONDS_OF_DATE;
    case ST_ARROW_TIMESTAMP:
        return field->unit <= ST_ARROW_NANOSECOND;
    case ST_ARROW_FIXED_SIZE_BINARY:
        return field->width <= INT32_MAX;
    default:
        return false;
    }
}

st_arrow_class st_arrow_field_class(const st_arrow_field *field)
{
    switch ((unsigned)field->kind) {
    case ST_ARROW_INT:
        return field->is_signed ? ST_CLASS_SIGNED : ST_CLASS_UNSIGNED;
    case ST_ARROW_FLOATING_POINT:
        return ST_CLASS_FLOATING;
    case ST_ARROW_DECIMAL:
        return ST_CLASS_EXACT;
    case ST_ARROW_BOOL:
        return ST_CLASS_TRUTH;
    case ST_ARROW_UTF8:
    case ST_ARROW_LARGE_UTF8:
    case ST_ARROW_UTF8_VIEW:
        return ST_CLASS_TEXT;
    case ST_ARROW_BINARY:
    case ST_ARROW_LARGE_BINARY:
    case ST_ARROW_BINARY_VIEW:
    case ST_ARROW_FIXED_SIZE_BINARY:
        return ST_CLASS_BYTES;
    case ST_ARROW_DATE:
        return ST_CLASS_DAY;
    case ST_ARROW_TIMESTAMP:
        return ST_CLASS_MOMENT;
    default:
        return ST_CLASS_NOTHING;
    }
}

static const char *kind_text(uint8_t kind)
{
    static const char *const names[] = {
        [ST_ARROW_NULL] = "null",
        [ST_ARROW_BINARY] = "binary",
        [ST_ARROW_UTF8] = "utf8",
        [ST_ARROW_BOOL] = "bool",
        [ST_ARROW_TIME] = "time",
        [ST_ARROW_INTERVAL] = "interval",
        [ST_ARROW_LIST] = "list",
        [ST_ARROW_STRUCT] = "struct",
        [ST_ARROW_UNION] = "union",
        [ST_ARROW_FIXED_SIZE_BINARY] = "fixed_size_binary",
        [ST_ARROW_FIXED_SIZE_LIST] = "fixed_size_list",
        [ST_ARROW_MAP] = "map",
        [ST_ARROW_DURATION] = "duration",
        [ST_ARROW_LARGE_BINARY] = "large_binary",
        [ST_ARROW_LARGE_UTF8] = "large_utf8",
        [ST_ARROW_LARGE_LIST] = "large_list",
        [ST_ARROW_RUN_END_ENCODED] = "run_end_encoded",
        [ST_ARROW_BINARY_VIEW] = "binary_view",
        [ST_ARROW_UTF8_VIEW] = "utf8_view",
        [ST_ARROW_LIST_VIEW] = "list_view",
        [ST_ARROW_LARGE_LIST_VIEW] = "large_list_view",
    };
    const char *name = kind < sizeof names / sizeof *names ? names[kind] : NULL;
    return name ? name : "unknown";
}

const char *st_arrow_field_text(const st_arrow_field *field, char ret_text[ST_ARROW_TYPE_TEXT])
{
    static const char *const floats[] = {"float16", "float32", "float64"};
    static const char *const units[] = {"s", "ms", "us", "ns"};
    const char *before = field->has_dictionary ? "dictionary of " : "";

    if (field->kind == ST_ARROW_INT)
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%s%sint%u", before, field->is_signed ? "" : "u", field->width);
    else if (field->kind == ST_ARROW_FLOATING_POINT && field->unit <= ST_ARROW_DOUBLE)
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%s%s", before, floats[field->unit]);
    else if (field->kind == ST_ARROW_DATE)
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%sdate%s", before, field->unit == ST_ARROW_DAY ? "32" : "64");
    else if (field->kind == ST_ARROW_TIMESTAMP && field->unit <= ST_ARROW_NANOSECOND)
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%stimestamp[%s%s%.40s]", before, units[field->unit],
                       field->timezone ? ", " : "", field->timezone ? field->timezone : "");
    else if (field->kind == ST_ARROW_DECIMAL)
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%sdecimal%u", before, field->width);
    else
        (void)snprintf(ret_text, ST_ARROW_TYPE_TEXT, "%s%s", before, kind_text(field->kind));
    return ret_text;
}

uint64_t st_arrow_field_width(const st_arrow_field *field)
{
    if (field->has_dictionary)
        return field->index_width / 8;
    switch ((unsigned)field->kind) {
    case ST_ARROW_INT:
    case ST_ARROW_DECIMAL:
        return field->width / 8;
    case ST_ARROW_FLOATING_POINT:
        return (uint64_t)2 << field->unit;
    case ST_ARROW_DATE:
        return field->unit == ST_ARROW_DAY ? 4 : 8;
    case ST_ARROW_TIMESTAMP:
        return 8;
    case ST_ARROW_FIXED_SIZE_BINARY:
        return field->width;
    default:
        return 0;
    }
}

/* ---- reading numbers ---- */

static uint64_t number_at(const uint8_t *at, uint64_t width)
{
    uint64_t value = 0;
    PF_ASSERT(at && width >= 1 && width <= sizeof value);
    memcpy(&value, at, width);
    return value;
}

static int64_t signed_at(const uint8_t *at, uint64_t width)
{
    unsigned unused = (unsigned)(64 - 8 * width);
    PF_ASSERT(unused < 64);
    return (int64_t)(number_at(at, width) << unused) >> unused;
}

static double half_at(const uint8_t *at)
{
    uint64_t half = number_at(at, 2);
    unsigned exponent = (half >> 10) & 31, fraction = half & 1023;
    double magnitude;

    if (exponent == 31)
        magnitude = fraction ? __builtin_nan("") : __builtin_inf();
    else if (exponent == 0)
        magnitude = fraction * 0x1p-24;
    else
        magnitude = exponent >= 25 ? (1024.0 + fraction) * (double)(1u << (exponent - 25))
                                   : (1024.0 + fraction) / (double)(1u << (25 - exponent));
    return half & 0x8000 ? -magnitude : magnitude;
}

static double float_at(const uint8_t *at, uint16_t unit)
{
    float single;
    double value;

    PF_ASSERT(at);
    if (unit == ST_ARROW_HALF)
        return half_at(at);
    if (unit == ST_ARROW_DOUBLE) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&single, at, sizeof single);
    return (double)single;
}

static __int128 wide_at(const uint8_t *at, uint64_t width)
{
    __int128 value;

    PF_ASSERT(at);
    if (width < sizeof value)
        return signed_at(at, width);
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- texts ---- */

static bool lies_in(const st_arrow_part *part, uint64_t from, uint64_t length)
{
    return from >= part->start && from - part->start <= part->length && length <= part->length - (from - part->start);
}

/* Where the text of a row is; false when it leads out of its buffers. */
static bool find_text(const st_arrow_array *array, uint64_t row, const uint8_t **ret_bytes, uint64_t *ret_length)
{
    const uint8_t *at;
    uint64_t from, to, width;
    uint32_t part = 0;

    row += array->offset;
    switch ((unsigned)array->field->kind) {
    case ST_ARROW_FIXED_SIZE_BINARY:
        *ret_length = array->field->width;
        *ret_bytes = *ret_length ? array->values + row * *ret_length : NULL;
        return true;
    case ST_ARROW_UTF8_VIEW:
    case ST_ARROW_BINARY_VIEW:
        at = array->values + row * VIEW_BYTES;
        *ret_length = number_at(at, 4);
        if (*ret_length <= VIEW_INLINE) {
            *ret_bytes = at + 4;
            return true;
        }
        part = (uint32_t)number_at(at + 8, 4);
        from = number_at(at + 12, 4);
        if (*ret_length > INT32_MAX || from > INT32_MAX)
            return false;
        break;
    default:
        width = array->field->kind == ST_ARROW_LARGE_UTF8 || array->field->kind == ST_ARROW_LARGE_BINARY ? 8 : 4;
        at = array->values + row * width;
        from = number_at(at, width);
        to = number_at(at + width, width);
        if (to < from || to > INT64_MAX)
            return false;
        *ret_length = to - from;
        break;
    }
    if (part >= array->part_count) {
        *ret_bytes = NULL;
        return *ret_length == 0;
    }
    if (!lies_in(&array->parts[part], from, *ret_length))
        return false;
    *ret_bytes = *ret_length ? array->parts[part].bytes + (from - array->parts[part].start) : NULL;
    return true;
}

/* ---- checking ---- */

static bool is_null(const st_arrow_array *array, uint64_t row)
{
    return (array->validity && !st_bit(array->validity, array->offset + row)) ||
           (array->parent && !st_bit(array->parent, array->parent_offset + row));
}

/* The number of a dictionary's value; false when there is none. */
static bool index_of(const st_arrow_array *array, uint64_t row, uint64_t *ret_index)
{
    uint64_t width = array->field->index_width / 8;
    const uint8_t *at = array->values + (array->offset + row) * width;

    *ret_index = array->field->index_signed ? (uint64_t)signed_at(at, width) : number_at(at, width);
    return *ret_index < array->dictionary->length;
}

uint64_t st_arrow_first_bad(const st_arrow_array *array)
{
    const uint8_t *bytes;
    uint64_t index, length;
    bool texts =
        st_arrow_field_class(array->field) == ST_CLASS_TEXT || st_arrow_field_class(array->field) == ST_CLASS_BYTES;

    if (!array->dictionary && !texts)
        return array->length;
    for (uint64_t row = 0; row < array->length; row++) {
        if (is_null(array, row)) /* what stands behind a null means nothing */
            continue;
        if (array->dictionary ? !index_of(array, row, &index) : !find_text(array, row, &bytes, &length))
            return row;
    }
    return array->length;
}

/* ---- values ---- */

static sluice_status get_day(const st_arrow_array *array, uint64_t row, st_arrow_value *value, sluice_error *err)
{
    uint64_t width = st_arrow_field_width(array->field);
    int64_t number = signed_at(array->values + (array->offset + row) * width, width);

    value->i64 = number;
    if (array->field->unit == ST_ARROW_DAY)
        return SLUICE_OK;
    value->i64 = number / (DAY_SECONDS * 1000);
    if (number % (DAY_SECONDS * 1000))
        return pf_fail(err, SLUICE_CONSTRAINT_TYPE, "a date64 of %lld ms is no whole day", (long long)number);
    return SLUICE_OK;
}

static sluice_status get_moment(const st_arrow_array *array, uint64_t row, st_arrow_value *value, sluice_error *err)
{
    static const int64_t factors[] = {[ST_ARROW_SECOND] = 1000000, [ST_ARROW_MILLISECOND] = 1000};
    int64_t number = signed_at(array->values + (array->offset + row) * 8, 8);

    value->i64 = number;
    if (array->field->unit == ST_ARROW_MICROSECOND)
        return SLUICE_OK;
    if (array->field->unit == ST_ARROW_NANOSECOND) {
        value->i64 = number / 1000;
        if (number % 1000)
            return pf_fail(err, SLUICE_CONSTRAINT_TYPE, "a timestamp of %lld ns is finer than microseconds",
                           (long long)number);
        return SLUICE_OK;
    }
    if (__builtin_mul_overflow(number, factors[array->field->unit], &value->i64))
        return pf_fail(err, SLUICE_CONSTRAINT_TYPE, "a timestamp of %lld %s is out of range for timestamp",
                       (long long)number, array->field->unit == ST_ARROW_SECOND ? "s" : "ms");
    return SLUICE_OK;
}

static sluice_status get_plain(const st_arrow_array *array, uint64_t row, st_arrow_value *value, sluice_error *err)
{
    const st_arrow_field *field = array->field;
    uint64_t width = field->has_dictionary ? 0 : st_arrow_field_width(field);
    const uint8_t *at = width ? array->values + (array->offset + row) * width : NULL;

    value->class = st_arrow_field_class(field);
    switch (value->class) {
    case ST_CLASS_NOTHING:
        break;
    case ST_CLASS_SIGNED:
        value->i64 = signed_at(at, width);
        break;
    case ST_CLASS_UNSIGNED:
        value->u64 = number_at(at, width);
        break;
    case ST_CLASS_FLOATING:
        value->f64 = float_at(at, field->unit);
        value->single = field->unit != ST_ARROW_DOUBLE;
        break;
    case ST_CLASS_EXACT:
        value->digits = wide_at(at, width);
        value->scale = field->scale;
        break;
    case ST_CLASS_TRUTH:
        value->truth = st_bit(array->values, array->offset + row);
        break;
    case ST_CLASS_TEXT:
    case ST_CLASS_BYTES:
        if (!find_text(array, row, &value->bytes, &value->length))
            return pf_fail(err, SLUICE_CORRUPT, "a text leads out of its buffer");
        break;
    case ST_CLASS_DAY:
        return get_day(array, row, value, err);
    case ST_CLASS_MOMENT:
        return get_moment(array, row, value, err);
    }
    return SLUICE_OK;
}

static uint32_t chunk_of(const st_arrow_dictionary *dictionary, uint64_t index)
{
    uint32_t low = 0, high = dictionary->chunk_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (dictionary->firsts[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

sluice_status st_arrow_get(const st_arrow_array *array, uint64_t row, st_arrow_value *ret_value, sluice_error *err)
{
    uint64_t index;

    PF_ASSERT(row < array->length);
    ret_value->class = ST_CLASS_NOTHING;
    if (is_null(array, row))
        return SLUICE_OK;
    if (array->dictionary == NULL)
        return get_plain(array, row, ret_value, err);
    if (!index_of(array, row, &index))
        return pf_fail(err, SLUICE_CORRUPT, "an index leads out of its dictionary");
    uint32_t chunk = chunk_of(array->dictionary, index);
    const st_arrow_array *values = &array->dictionary->chunks[chunk];
    index -= array->dictionary->firsts[chunk];
    return is_null(values, index) ? SLUICE_OK : get_plain(values, index, ret_value, err);
}
