/*
 * Values as text and as JSON (snapshot.h): what scan, get, export and messages print. Text is what st_value_parse reads
 * back to the same value; JSON is the same in quotes, but for numbers (bare, all 64 bits), true and false, null, and
 * keys of several members (a list). NaN and the infinities are quoted, since JSON has no numbers for them.
 */
#include "platform/check.h"
#include "platform/ids.h"
#include "store/format/json.h"
#include "store/read/snapshot.h"
#include "store/schema/scalar.h"
#include <math.h>
#include <string.h>

static bool bit(const void *bits, uint64_t row)
{
    return ((const uint8_t *)bits)[row >> 3] >> (row & 7) & 1;
}

static void slice(const st_column *column, uint64_t row, const uint8_t **ret_bytes, size_t *ret_length)
{
    *ret_bytes = column->data ? column->data + column->offsets[row] : (const uint8_t *)"";
    *ret_length = (size_t)(column->offsets[row + 1] - column->offsets[row]);
}

static sluice_status append_base64(const uint8_t *bytes, size_t length, pf_buffer *buffer, sluice_error *err)
{
    PF_TRY(pf_buffer_reserve(buffer, (length + 2) / 3 * 4 + 1, err));
    buffer->length += st_format_base64(bytes, length, (char *)buffer->data + buffer->length);
    return SLUICE_OK;
}

/* Formats a number, date, timestamp or id in place behind the buffer. */
static sluice_status append_scalar(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err)
{
    PF_TRY(pf_buffer_reserve(buffer, ST_SCALAR_TEXT_MAX, err));
    char *text = (char *)buffer->data + buffer->length;
    switch (column->type) {
    case ST_INT32:
        buffer->length += st_format_i64(((const int32_t *)column->values)[row], text);
        break;
    case ST_INT64:
        buffer->length += st_format_i64(((const int64_t *)column->values)[row], text);
        break;
    case ST_UINT64:
    case ST_ROW_ID:
        buffer->length += st_format_u64(((const uint64_t *)column->values)[row], text);
        break;
    case ST_FLOAT32:
        buffer->length += st_format_f32(((const float *)column->values)[row], text);
        break;
    case ST_FLOAT64:
        buffer->length += st_format_f64(((const double *)column->values)[row], text);
        break;
    case ST_DATE:
        buffer->length += st_format_date(((const int32_t *)column->values)[row], text);
        break;
    case ST_TIMESTAMP:
        buffer->length += st_format_timestamp(((const int64_t *)column->values)[row], text);
        break;
    case ST_COMMIT_ID:
        pf_id_text((const pf_id *)column->values + row, text);
        buffer->length += PF_ID_TEXT - 1;
        break;
    case ST_BOOL:
    case ST_STRING:
    case ST_BYTES:
    case ST_STRUCT:
        PF_NEVER("a scalar");
    }
    return SLUICE_OK;
}

sluice_status st_value_text(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err)
{
    const uint8_t *bytes;
    size_t length;
    switch (column->type) {
    case ST_BOOL:
        return pf_buffer_append_text(buffer, bit(column->values, row) ? "true" : "false", err);
    case ST_STRING:
        slice(column, row, &bytes, &length);
        return pf_buffer_append(buffer, bytes, length, err);
    case ST_BYTES:
        slice(column, row, &bytes, &length);
        return append_base64(bytes, length, buffer, err);
    case ST_STRUCT:
        return st_value_json(column, row, buffer, err);
    case ST_INT32:
    case ST_INT64:
    case ST_UINT64:
    case ST_FLOAT32:
    case ST_FLOAT64:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
    case ST_COMMIT_ID:
        break;
    }
    return append_scalar(column, row, buffer, err);
}

static sluice_status append_list(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err)
{
    for (uint32_t i = 0; i < column->child_count; i++) {
        PF_TRY(pf_buffer_append_text(buffer, i ? "," : "[", err));
        PF_TRY(st_value_json(&column->children[i], row, buffer, err));
    }
    return pf_buffer_append_text(buffer, "]", err);
}

static sluice_status append_quoted(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err)
{
    PF_TRY(pf_buffer_append_text(buffer, "\"", err));
    PF_TRY(st_value_text(column, row, buffer, err)); /* no letter of it needs an escape */
    return pf_buffer_append_text(buffer, "\"", err);
}

sluice_status st_value_json(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    const uint8_t *bytes;
    size_t length;
    bool finite = true;
    if (st_column_is_null(column, row))
        return pf_buffer_append_text(buffer, "null", err);
    switch (column->type) {
    case ST_STRING:
        slice(column, row, &bytes, &length);
        st_json_begin(&json, buffer);
        st_json_bytes_text(&json, bytes, length);
        return st_json_end(&json, false, err);
    case ST_STRUCT:
        return append_list(column, row, buffer, err);
    case ST_FLOAT32:
        finite = isfinite(((const float *)column->values)[row]);
        break;
    case ST_FLOAT64:
        finite = isfinite(((const double *)column->values)[row]);
        break;
    case ST_BYTES:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_COMMIT_ID:
        finite = false;
        break;
    case ST_BOOL:
    case ST_INT32:
    case ST_INT64:
    case ST_UINT64:
    case ST_ROW_ID:
        break;
    }
    return finite ? st_value_text(column, row, buffer, err) : append_quoted(column, row, buffer, err);
}
