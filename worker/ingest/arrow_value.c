#include "worker/ingest/arrow_value.h"

#include "store/schema/scalar.h"
#include <math.h>
#include <string.h>

#define DAY_US       INT64_C(86400000000)
#define DIGITS_MAX   40 /* of 128 bits */
#define DECIMAL_ROOM (2 * DIGITS_MAX + 8)

bool wk_arrow_fits(const st_arrow_field *field, st_type type)
{
    if (!st_arrow_field_is_flat(field))
        return false;
    bool whole = type == ST_INT32 || type == ST_INT64 || type == ST_UINT64 || type == ST_ROW_ID;
    bool number = whole || type == ST_FLOAT32 || type == ST_FLOAT64;
    switch (st_arrow_field_class(field)) {
    case ST_CLASS_NOTHING: /* a column of nulls */
    case ST_CLASS_TEXT:
        return true;
    case ST_CLASS_SIGNED:
    case ST_CLASS_UNSIGNED:
    case ST_CLASS_EXACT:
        return number;
    case ST_CLASS_FLOATING:
        return number && !whole;
    case ST_CLASS_TRUTH:
        return type == ST_BOOL;
    case ST_CLASS_BYTES:
        return type == ST_BYTES;
    case ST_CLASS_DAY:
    case ST_CLASS_MOMENT:
        return type == ST_DATE || type == ST_TIMESTAMP;
    }
    return false;
}

/* ---- text ---- */

/* The shortest text of a decimal: no zeros behind its point, and no point before nothing. */
static size_t decimal_text(const st_arrow_value *value, char ret_text[DECIMAL_ROOM])
{
    unsigned __int128 left = value->digits < 0 ? -(unsigned __int128)value->digits : (unsigned __int128)value->digits;
    int32_t scale = value->scale;
    char digits[DIGITS_MAX];
    size_t count = 0, length = 0;

    for (; scale > 0 && left % 10 == 0 && left > 0; scale--)
        left /= 10;
    if (left == 0)
        scale = 0;
    for (; left > 0 || (int32_t)count <= scale; left /= 10)
        digits[count++] = (char)('0' + (int)(left % 10));
    if (count == 0)
        digits[count++] = '0';
    if (value->digits < 0)
        ret_text[length++] = '-';
    while (count > 0) {
        ret_text[length++] = digits[--count];
        if (scale > 0 && count == (size_t)scale)
            ret_text[length++] = '.';
    }
    for (; scale < 0 && value->digits != 0; scale++)
        ret_text[length++] = '0';
    return length;
}

static sluice_status append_base64(const st_arrow_value *value, pf_buffer *buffer, sluice_error *err)
{
    size_t room = ((size_t)value->length + 2) / 3 * 4;

    PF_TRY(pf_buffer_reserve(buffer, room, err));
    buffer->length += st_format_base64(value->bytes, (size_t)value->length, (char *)buffer->data + buffer->length);
    return SLUICE_OK;
}

sluice_status wk_arrow_text(const st_arrow_value *value, pf_buffer *buffer, sluice_error *err)
{
    char text[ST_SCALAR_TEXT_MAX > DECIMAL_ROOM ? ST_SCALAR_TEXT_MAX : DECIMAL_ROOM];
    size_t length = 0;

    switch (value->class) {
    case ST_CLASS_NOTHING:
        break;
    case ST_CLASS_SIGNED:
        length = st_format_i64(value->i64, text);
        break;
    case ST_CLASS_UNSIGNED:
        length = st_format_u64(value->u64, text);
        break;
    case ST_CLASS_FLOATING:
        length = value->single ? st_format_f32((float)value->f64, text) : st_format_f64(value->f64, text);
        break;
    case ST_CLASS_EXACT:
        length = decimal_text(value, text);
        break;
    case ST_CLASS_TRUTH:
        return pf_buffer_append_text(buffer, value->truth ? "true" : "false", err);
    case ST_CLASS_TEXT:
        return pf_buffer_append(buffer, value->bytes, (size_t)value->length, err);
    case ST_CLASS_BYTES:
        return append_base64(value, buffer, err);
    case ST_CLASS_DAY:
        if (value->i64 < INT32_MIN || value->i64 > INT32_MAX)
            return pf_buffer_append_format(buffer, err, "day %lld", (long long)value->i64);
        length = st_format_date((int32_t)value->i64, text);
        break;
    case ST_CLASS_MOMENT:
        length = st_format_timestamp(value->i64, text);
        break;
    }
    return pf_buffer_append(buffer, text, length, err);
}

/* ---- values ---- */

/* What a value of a kind that fits may still be: not of the column's type, or out of its range. */
static sluice_status refuse(const wk_target *target, const st_arrow_value *value, st_type type, bool range,
                            wk_fault *fault, sluice_error *err)
{
    pf_buffer text = {0};
    char shown[WK_SHOWN_ROOM];
    sluice_status status = wk_arrow_text(value, &text, err);

    if (status == SLUICE_OK)
        wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %s: %s is %s %s", target->name,
                     wk_shown(text.data, text.length, shown), range ? "out of range for" : "not a", st_type_name(type));
    pf_buffer_free(&text);
    return status;
}

static bool whole_number(const st_arrow_value *value, __int128 *ret)
{
    *ret = value->class == ST_CLASS_UNSIGNED ? (__int128)value->u64 : value->i64;
    return value->class == ST_CLASS_SIGNED || value->class == ST_CLASS_UNSIGNED;
}

static bool in_range(__int128 number, st_type type)
{
    switch ((unsigned)type) {
    case ST_INT32:
        return number >= INT32_MIN && number <= INT32_MAX;
    case ST_INT64:
        return number >= INT64_MIN && number <= INT64_MAX;
    default:
        return number >= 0 && number <= UINT64_MAX;
    }
}

static sluice_status append_whole(st_column_builder *builder, st_type type, __int128 number, sluice_error *err)
{
    switch ((unsigned)type) {
    case ST_INT32:
        return st_append_i32(builder, (int32_t)number, err);
    case ST_INT64:
        return st_append_i64(builder, (int64_t)number, err);
    case ST_FLOAT32:
        return st_append_f32(builder, (float)number, err);
    case ST_FLOAT64:
        return st_append_f64(builder, (double)number, err);
    default:
        return st_append_u64(builder, (uint64_t)number, err);
    }
}

static sluice_status put_floating(const wk_slot *slot, const wk_target *target, const st_arrow_value *value,
                                  wk_fault *fault, sluice_error *err)
{
    if (slot->spec->type == ST_FLOAT64)
        return st_append_f64(slot->builder, value->f64, err);
    float single = (float)value->f64;
    if (isinf(single) && !isinf(value->f64))
        return refuse(target, value, ST_FLOAT32, true, fault, err);
    return st_append_f32(slot->builder, single, err);
}

static sluice_status put_temporal(const wk_slot *slot, const wk_target *target, const st_arrow_value *value,
                                  wk_fault *fault, sluice_error *err)
{
    bool moment = value->class == ST_CLASS_MOMENT;
    int64_t number = value->i64;

    if (slot->spec->type == ST_TIMESTAMP) {
        if (!moment && __builtin_mul_overflow(number, DAY_US, &number))
            return refuse(target, value, ST_TIMESTAMP, true, fault, err);
        return st_append_i64(slot->builder, number, err);
    }
    if (moment && number % DAY_US != 0)
        return refuse(target, value, ST_DATE, false, fault, err);
    if (moment)
        number /= DAY_US;
    if (number < INT32_MIN || number > INT32_MAX)
        return refuse(target, value, ST_DATE, true, fault, err);
    return st_append_i32(slot->builder, (int32_t)number, err);
}

static sluice_status put_bytes(const wk_slot *slot, const wk_target *target, const st_arrow_value *value,
                               wk_fault *fault, sluice_error *err)
{
    if (value->length <= WK_VALUE_MAX)
        return st_append_bytes(slot->builder, value->bytes, (size_t)value->length, err);
    wk_fault_set(fault, SLUICE_RESOURCE_LIMIT, "column %s: a value of %llu bytes is longer than the limit of %llu",
                 target->name, (unsigned long long)value->length, (unsigned long long)WK_VALUE_MAX);
    return SLUICE_OK;
}

/* The fit of kind and type has been looked at for the column. */
static sluice_status put_typed(const wk_slot *slot, const wk_target *target, const st_arrow_value *value,
                               wk_fault *fault, sluice_error *err)
{
    st_type type = slot->spec->type;
    __int128 number;

    if (value->class == ST_CLASS_TRUTH)
        return st_append_bool(slot->builder, value->truth, err);
    if (value->class == ST_CLASS_BYTES)
        return put_bytes(slot, target, value, fault, err);
    if (value->class == ST_CLASS_FLOATING)
        return put_floating(slot, target, value, fault, err);
    if (!whole_number(value, &number))
        return put_temporal(slot, target, value, fault, err);
    if (type != ST_FLOAT32 && type != ST_FLOAT64 && !in_range(number, type))
        return refuse(target, value, type, true, fault, err);
    return append_whole(slot->builder, type, number, err);
}

sluice_status wk_arrow_put(wk_rows *rows, const wk_target *target, const st_arrow_value *value, uint64_t *bytes,
                           wk_fault *fault, sluice_error *err)
{
    char text[DECIMAL_ROOM];

    *bytes += 8;
    if (value->class == ST_CLASS_NOTHING)
        return wk_rows_nothing(rows, target, false, fault, err);
    if (value->class == ST_CLASS_TEXT || value->class == ST_CLASS_BYTES)
        *bytes += value->length;
    if (value->class == ST_CLASS_TEXT)
        return wk_rows_text(rows, target, value->length ? (const char *)value->bytes : "", (size_t)value->length, fault,
                            err);
    if (value->class == ST_CLASS_EXACT)
        return wk_rows_text(rows, target, text, decimal_text(value, text), fault, err);
    wk_slot slot = wk_rows_slot(rows, target);
    PF_TRY(put_typed(&slot, target, value, fault, err));
    if (!fault->present)
        wk_rows_check(&slot, target, fault);
    return SLUICE_OK;
}
