/*
 * The canonical JSON writer: fixed key order (the caller's), no spare white space, the shortest escapes, one LF at the
 * end. One value has one encoding, so that bytes can be compared and digested.
 *
 * The first error sticks in json->status; everything after it is skipped and st_json_end reports it.
 */
#include "store/format/json.h"

#include "platform/check.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Room for so many bytes more; false after an error. */
static inline bool make_room(st_json *json, size_t length)
{
    pf_buffer *buffer = json->buffer;
    if (json->status != SLUICE_OK)
        return false;
    if (length > buffer->capacity - buffer->length)
        json->status = pf_buffer_reserve(buffer, length, NULL);
    return json->status == SLUICE_OK;
}

static inline void put(st_json *json, const void *bytes, size_t length)
{
    if (length == 0 || !make_room(json, length))
        return;
    memcpy(json->buffer->data + json->buffer->length, bytes, length);
    json->buffer->length += length;
}

/* What precedes a value or a name: the comma that the item before it left due. */
static void separate(st_json *json)
{
    if (json->comma)
        put(json, ",", 1);
    json->comma = true;
}

void st_json_begin(st_json *json, pf_buffer *buffer)
{
    *json = (st_json){.buffer = buffer, .status = SLUICE_OK, .comma = false, .depth = 0};
}

sluice_status st_json_end(st_json *json, bool final_newline, sluice_error *err)
{
    PF_ASSERT(json->status != SLUICE_OK || json->depth == 0);
    if (final_newline)
        put(json, "\n", 1);
    if (json->status == SLUICE_OK)
        return SLUICE_OK;
    if (json->status == SLUICE_RESOURCE_LIMIT)
        return pf_fail_memory(err);
    return pf_fail(err, json->status,
                   "a JSON document could not be written: a text is not UTF-8 or a number not finite");
}

static void open_bracket(st_json *json, const char *bracket)
{
    separate(json);
    put(json, bracket, 1);
    json->comma = false;
    json->depth++;
}

static void close_bracket(st_json *json, const char *bracket)
{
    PF_ASSERT(json->depth > 0);
    put(json, bracket, 1);
    json->comma = true;
    json->depth--;
}

void st_json_object(st_json *json)
{
    open_bracket(json, "{");
}

void st_json_object_end(st_json *json)
{
    close_bracket(json, "}");
}

void st_json_array(st_json *json)
{
    open_bracket(json, "[");
}

void st_json_array_end(st_json *json)
{
    close_bracket(json, "]");
}

void st_json_name(st_json *json, const char *name)
{
    st_json_text(json, name);
    put(json, ":", 1);
    json->comma = false;
}

static void put_escape(st_json *json, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    char long_form[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    char short_form[2] = {'\\', 0};

    switch (byte) {
    case '"':
    case '\\':
        short_form[1] = (char)byte;
        break;
    case '\b':
        short_form[1] = 'b';
        break;
    case '\f':
        short_form[1] = 'f';
        break;
    case '\n':
        short_form[1] = 'n';
        break;
    case '\r':
        short_form[1] = 'r';
        break;
    case '\t':
        short_form[1] = 't';
        break;
    default:
        put(json, long_form, sizeof(long_form));
        return;
    }
    put(json, short_form, sizeof(short_form));
}

/* A quoted text. Bytes that are not UTF-8 become U+FFFD when `lossy`, else they are an error. */
static void put_quoted(st_json *json, const uint8_t *bytes, size_t length, bool lossy)
{
    size_t start = 0, at = st_plain_length(bytes, length);

    separate(json);
    if (at == length && length < SIZE_MAX - 2 && make_room(json, length + 2)) {
        uint8_t *to = json->buffer->data + json->buffer->length;
        to[0] = '"';
        if (length > 0)
            memcpy(to + 1, bytes, length);
        to[length + 1] = '"';
        json->buffer->length += length + 2;
        return;
    }
    put(json, "\"", 1);
    while (at < length && json->status == SLUICE_OK) {
        size_t size = st_utf8_sequence(bytes + at, length - at);
        bool plain = size > 1 || (size == 1 && bytes[at] >= 0x20 && bytes[at] != '"' && bytes[at] != '\\');
        if (plain) {
            at += size;
            continue;
        }
        put(json, bytes + start, at - start);
        if (size == 1)
            put_escape(json, bytes[at]);
        else if (lossy)
            put(json, REPLACEMENT, sizeof(REPLACEMENT) - 1);
        else if (json->status == SLUICE_OK)
            json->status = SLUICE_INTERNAL;
        at++;
        start = at;
    }
    if (start < at)
        put(json, bytes + start, at - start);
    put(json, "\"", 1);
}

void st_json_text(st_json *json, const char *text)
{
    put_quoted(json, (const uint8_t *)text, strlen(text), false);
}

void st_json_bytes_text(st_json *json, const void *text, size_t length)
{
    put_quoted(json, text, length, false);
}

void st_json_lossy_text(st_json *json, const void *text, size_t length)
{
    put_quoted(json, text, length, true);
}

void st_json_raw(st_json *json, const char *text, size_t length)
{
    separate(json);
    put(json, text, length);
}

void st_json_bool(st_json *json, bool value)
{
    st_json_raw(json, value ? "true" : "false", value ? 4 : 5);
}

void st_json_null(st_json *json)
{
    st_json_raw(json, "null", 4);
}

void st_json_named_text(st_json *json, const char *name, const char *text)
{
    st_json_name(json, name);
    if (text && text[0])
        st_json_lossy_text(json, text, strlen(text));
    else
        st_json_null(json);
}

void st_json_named_truth(st_json *json, const char *name, sluice_truth truth)
{
    st_json_name(json, name);
    if (truth == SLUICE_UNKNOWN)
        st_json_null(json);
    else
        st_json_bool(json, truth == SLUICE_TRUE);
}

#define DIGITS 20 /* of a 64-bit number at most */

/* The number's digits in front of `end`; returns the first. */
static char *put_digits(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

void st_json_number(st_json *json, int64_t value)
{
    char text[DIGITS + 1];
    char *start = put_digits(text + sizeof(text), value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--start = '-';
    st_json_raw(json, start, (size_t)(text + sizeof(text) - start));
}

void st_json_unsigned(st_json *json, uint64_t value)
{
    char text[DIGITS];
    const char *start = put_digits(text + sizeof(text), value);
    st_json_raw(json, start, (size_t)(text + sizeof(text) - start));
}

void st_json_u64(st_json *json, uint64_t value)
{
    char text[DIGITS + 2];
    text[sizeof(text) - 1] = '"';
    char *start = put_digits(text + sizeof(text) - 1, value);
    *--start = '"';
    st_json_raw(json, start, (size_t)(text + sizeof(text) - start));
}

void st_json_double(st_json *json, double value)
{
    char text[40];
    int length = 0;

    if (!isfinite(value)) {
        if (json->status == SLUICE_OK)
            json->status = SLUICE_INTERNAL;
        return;
    }
    /* Every decimal of up to 15 digits survives the way through a normal double, so fewer need not be tried there. */
    int digits = value != 0 && fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    for (; digits <= DBL_DECIMAL_DIG; digits++) {
        length = snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    st_json_raw(json, text, (size_t)length);
}

void st_json_id(st_json *json, const pf_id *id)
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    st_json_bytes_text(json, text, sizeof(text) - 1);
}

void st_json_sha256(st_json *json, const pf_sha256 *digest)
{
    char text[PF_SHA256_TEXT];
    pf_sha256_text(digest, text);
    st_json_bytes_text(json, text, sizeof(text) - 1);
}
