/*
 * Constants (constant.h). Their text form is that of values everywhere, so that one parser decides what a value is.
 */
#include "store/schema/constant.h"
#include "platform/check.h"
#include "store/format/utf8.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static sluice_status read_bytes(st_value *ret_value, const char *text, size_t length, st_parse *ret_parse,
                                sluice_error *err)
{
    if (ret_value->type == ST_STRING && !st_utf8_is_valid(text, length)) {
        *ret_parse = ST_PARSE_BAD;
        return SLUICE_OK;
    }
    ret_value->bytes = malloc(length + 1);
    if (!ret_value->bytes)
        return pf_fail_memory(err);
    if (ret_value->type == ST_BYTES) {
        *ret_parse = st_parse_base64(text, length, ret_value->bytes, &ret_value->length);
    } else {
        if (length > 0)
            memcpy(ret_value->bytes, text, length);
        ret_value->length = length;
        *ret_parse = ST_PARSE_OK;
    }
    return SLUICE_OK;
}

sluice_status st_constant_read(st_type type, const char *text, size_t length, st_value *ret_value, st_parse *ret_parse,
                               sluice_error *err)
{
    st_value value = {.present = true, .type = type};
    int32_t narrow = 0;
    float narrow_float = 0;
    sluice_status status = SLUICE_OK;
    *ret_parse = ST_PARSE_BAD;
    switch (type) {
    case ST_BOOL:
        *ret_parse = st_parse_bool(text, length, &value.boolean);
        break;
    case ST_INT32:
        *ret_parse = st_parse_i32(text, length, &narrow);
        value.i64 = narrow;
        break;
    case ST_INT64:
        *ret_parse = st_parse_i64(text, length, &value.i64);
        break;
    case ST_UINT64:
        *ret_parse = st_parse_u64(text, length, &value.u64);
        break;
    case ST_FLOAT32:
        *ret_parse = st_parse_f32(text, length, &narrow_float);
        value.f64 = (double)narrow_float;
        break;
    case ST_FLOAT64:
        *ret_parse = st_parse_f64(text, length, &value.f64);
        break;
    case ST_DATE:
        *ret_parse = st_parse_date(text, length, &narrow);
        value.i64 = narrow;
        break;
    case ST_TIMESTAMP:
        *ret_parse = st_parse_timestamp(text, length, &value.i64);
        break;
    case ST_STRING:
    case ST_BYTES:
        status = read_bytes(&value, text, length, ret_parse, err);
        break;
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        PF_NEVER("a property type");
    }
    if (status == SLUICE_OK && *ret_parse == ST_PARSE_OK)
        *ret_value = value;
    else
        st_constant_free(&value);
    return status;
}

static sluice_status write_base64(const st_value *value, pf_buffer *buffer, sluice_error *err)
{
    size_t room;
    if (!pf_add_size(value->length, 2, &room) || !pf_mul_size(room / 3, 4, &room))
        return pf_fail_memory(err);
    PF_TRY(pf_buffer_reserve(buffer, room, err));
    if (room > 0)
        buffer->length += st_format_base64(value->bytes, value->length, (char *)buffer->data + buffer->length);
    return SLUICE_OK;
}

sluice_status st_constant_write(const st_value *value, pf_buffer *buffer, sluice_error *err)
{
    char text[ST_SCALAR_TEXT_MAX];
    size_t length = 0;
    PF_ASSERT(value->present && !value->is_null);
    switch (value->type) {
    case ST_BOOL:
        return pf_buffer_append_text(buffer, value->boolean ? "true" : "false", err);
    case ST_INT32:
    case ST_INT64:
        length = st_format_i64(value->i64, text);
        break;
    case ST_UINT64:
        length = st_format_u64(value->u64, text);
        break;
    case ST_FLOAT32:
        length = st_format_f32((float)value->f64, text);
        break;
    case ST_FLOAT64:
        length = st_format_f64(value->f64, text);
        break;
    case ST_DATE:
        length = st_format_date((int32_t)value->i64, text);
        break;
    case ST_TIMESTAMP:
        length = st_format_timestamp(value->i64, text);
        break;
    case ST_STRING:
        return pf_buffer_append(buffer, value->bytes, value->length, err);
    case ST_BYTES:
        return write_base64(value, buffer, err);
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        PF_NEVER("a property type");
    }
    return pf_buffer_append(buffer, text, length, err);
}

static int compare_floats(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (int)isnan(a) - (int)isnan(b);
    return a < b ? -1 : a > b;
}

int st_constant_compare(const st_value *a, const st_value *b)
{
    PF_ASSERT(a->type == b->type && !a->is_null && !b->is_null);
    switch (a->type) {
    case ST_BOOL:
        return (int)a->boolean - (int)b->boolean;
    case ST_UINT64:
        return a->u64 < b->u64 ? -1 : a->u64 > b->u64;
    case ST_FLOAT32:
    case ST_FLOAT64:
        return compare_floats(a->f64, b->f64);
    case ST_STRING:
    case ST_BYTES: {
        size_t shorter = a->length < b->length ? a->length : b->length;
        int order = shorter ? memcmp(a->bytes, b->bytes, shorter) : 0;
        return order != 0 ? (order < 0 ? -1 : 1) : a->length < b->length ? -1 : a->length > b->length;
    }
    case ST_INT32:
    case ST_INT64:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    return a->i64 < b->i64 ? -1 : a->i64 > b->i64;
}

sluice_status st_value_append(const st_value *value, st_column_builder *builder, sluice_error *err)
{
    if (!value->present || value->is_null)
        return st_append_null(builder, err);
    switch (value->type) {
    case ST_BOOL:
        return st_append_bool(builder, value->boolean, err);
    case ST_INT32:
    case ST_DATE:
        return st_append_i32(builder, (int32_t)value->i64, err);
    case ST_INT64:
    case ST_TIMESTAMP:
        return st_append_i64(builder, value->i64, err);
    case ST_UINT64:
        return st_append_u64(builder, value->u64, err);
    case ST_FLOAT32:
        return st_append_f32(builder, (float)value->f64, err);
    case ST_FLOAT64:
        return st_append_f64(builder, value->f64, err);
    case ST_STRING:
    case ST_BYTES:
        return st_append_bytes(builder, value->bytes, value->length, err);
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    PF_NEVER("a property type");
    return SLUICE_OK;
}

void st_constant_free(st_value *value)
{
    free(value->bytes);
    *value = (st_value){0};
}
