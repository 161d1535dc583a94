/*
 * The strict JSON reader. A scanner walks the text first and admits exactly RFC 8259 in UTF-8, without U+0000 and no
 * deeper than ST_JSON_DEPTH; cJSON's own parser is lenient (raw control characters, "01", a byte order mark, bytes
 * behind the document) and allocates every node and text by itself. json_tree.c then builds cJSON's tree in one piece
 * of memory, and looks for duplicate names where escapes are gone.
 */
#include "store/format/json_tree.h"

#include "platform/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_INTEGER 9007199254740992.0 /* 2^53: up to here a double holds every integer */

typedef struct scanner {
    const uint8_t *bytes;
    size_t length, at;
    size_t values; /* so many were met */
    uint32_t depth;
    uint8_t closing[ST_JSON_DEPTH]; /* the bracket that each open container waits for */
} scanner;

static uint8_t peek(const scanner *scan)
{
    return scan->at < scan->length ? scan->bytes[scan->at] : 0; /* a NUL in the text is refused wherever it stands */
}

static bool take(scanner *scan, uint8_t byte)
{
    if (peek(scan) != byte || scan->at >= scan->length)
        return false;
    scan->at++;
    return true;
}

static void skip_space(scanner *scan)
{
    if (peek(scan) > ' ')
        return;
    while (peek(scan) == ' ' || peek(scan) == '\t' || peek(scan) == '\n' || peek(scan) == '\r')
        scan->at++;
}

static bool scan_hex4(scanner *scan, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = peek(scan);
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        unit = unit * 16 + digit;
        scan->at++;
    }
    *ret_unit = unit;
    return true;
}

static bool scan_escape(scanner *scan)
{
    uint32_t unit, low;
    uint8_t c = peek(scan);

    if (c != 'u') {
        scan->at++;
        return c != 0 && strchr("\"\\/bfnrt", c) != NULL;
    }
    scan->at++;
    if (!scan_hex4(scan, &unit) || unit == 0)
        return false;
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return false;
    if (unit < 0xD800 || unit > 0xDBFF)
        return true;
    return take(scan, '\\') && take(scan, 'u') && scan_hex4(scan, &low) && low >= 0xDC00 && low <= 0xDFFF;
}

static bool scan_string(scanner *scan)
{
    if (!take(scan, '"'))
        return false;
    for (;;) {
        scan->at += st_plain_length(scan->bytes + scan->at, scan->length - scan->at);
        if (scan->at >= scan->length)
            return false;
        uint8_t c = scan->bytes[scan->at];
        if (c < 0x20)
            return false;
        if (c == '"') {
            scan->at++;
            return true;
        }
        if (c == '\\') {
            scan->at++;
            if (!scan_escape(scan))
                return false;
            continue;
        }
        size_t size = st_utf8_sequence(scan->bytes + scan->at, scan->length - scan->at);
        if (size == 0)
            return false;
        scan->at += size;
    }
}

static bool scan_digits(scanner *scan)
{
    size_t start = scan->at;
    while (peek(scan) >= '0' && peek(scan) <= '9')
        scan->at++;
    return scan->at > start;
}

static bool scan_number(scanner *scan)
{
    (void)take(scan, '-');
    if (!take(scan, '0') && !scan_digits(scan))
        return false;
    if (take(scan, '.') && !scan_digits(scan))
        return false;
    if (peek(scan) == 'e' || peek(scan) == 'E') {
        scan->at++;
        if (!take(scan, '+'))
            (void)take(scan, '-');
        return scan_digits(scan);
    }
    return true;
}

static bool scan_word(scanner *scan, const char *word)
{
    size_t length = strlen(word);
    if (scan->length - scan->at < length || memcmp(scan->bytes + scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

/* A value up to its first inner one: scalars wholly, containers only their opening bracket. */
static bool scan_value_start(scanner *scan, bool *ret_opened)
{
    uint8_t c = peek(scan);
    scan->values++;
    *ret_opened = c == '{' || c == '[';
    if (*ret_opened) {
        if (scan->depth == ST_JSON_DEPTH)
            return false;
        scan->closing[scan->depth++] = c == '{' ? '}' : ']';
        scan->at++;
        return true;
    }
    if (c == '"')
        return scan_string(scan);
    if (c == 't')
        return scan_word(scan, "true");
    if (c == 'f')
        return scan_word(scan, "false");
    if (c == 'n')
        return scan_word(scan, "null");
    return scan_number(scan);
}

static bool scan_name(scanner *scan)
{
    skip_space(scan);
    if (!scan_string(scan))
        return false;
    skip_space(scan);
    return take(scan, ':');
}

static bool scan_document(scanner *scan)
{
    for (;;) {
        bool opened;
        skip_space(scan);
        if (!scan_value_start(scan, &opened))
            return false;
        if (opened) {
            skip_space(scan);
            if (peek(scan) != scan->closing[scan->depth - 1]) {
                if (scan->closing[scan->depth - 1] == '}' && !scan_name(scan))
                    return false;
                continue;
            }
        }
        /* A value is complete: close what ends here, then go on behind a comma. */
        for (;;) {
            skip_space(scan);
            if (scan->depth == 0)
                return scan->at == scan->length;
            if (!take(scan, scan->closing[scan->depth - 1]))
                break;
            scan->depth--;
        }
        if (!take(scan, ','))
            return false;
        if (scan->closing[scan->depth - 1] == '}' && !scan_name(scan))
            return false;
    }
}

sluice_status st_json_parse(const void *bytes, size_t length, cJSON **ret_document, sluice_error *err)
{
    scanner scan = {.bytes = bytes, .length = length};

    *ret_document = NULL;
    if (!scan_document(&scan))
        return pf_fail(err, SLUICE_CORRUPT, "a JSON document is not well formed at byte %zu", scan.at);
    return st_json_build(bytes, length, scan.values, ret_document, err);
}

/* ---- fields ---- */

static sluice_status wrong_field(const char *name, const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a control document: \"%s\" is not %s", name, what);
}

const cJSON *st_json_field(const cJSON *object, const char *name)
{
    const cJSON *child = object && (object->type & 0xFF) == cJSON_Object ? object->child : NULL;
    while (child && (child->string[0] != name[0] || strcmp(child->string, name) != 0))
        child = child->next;
    return child;
}

bool st_json_text_is_u64(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (!*text || (text[0] == '0' && text[1]))
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (!pf_mul_u64(value, 10, &value) || !pf_add_u64(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

sluice_status st_json_get_text(const cJSON *object, const char *name, const char **ret_text, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsString(item))
        return wrong_field(name, "a text", err);
    *ret_text = item->valuestring;
    return SLUICE_OK;
}

sluice_status st_json_get_u64(const cJSON *object, const char *name, uint64_t *ret_value, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsString(item) || !st_json_text_is_u64(item->valuestring, ret_value))
        return wrong_field(name, "a 64-bit number in quotes", err);
    return SLUICE_OK;
}

sluice_status st_json_get_number(const cJSON *object, const char *name, int64_t *ret_value, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < EXACT_INTEGER) ||
        item->valuedouble != trunc(item->valuedouble))
        return wrong_field(name, "an exact integer", err);
    *ret_value = (int64_t)item->valuedouble;
    return SLUICE_OK;
}

sluice_status st_json_get_id(const cJSON *object, const char *name, pf_id *ret_id, sluice_error *err)
{
    char canonical[PF_ID_TEXT];
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsString(item) || !pf_id_parse(item->valuestring, ret_id))
        return wrong_field(name, "an id", err);
    pf_id_text(ret_id, canonical);
    return strcmp(canonical, item->valuestring) == 0 ? SLUICE_OK : wrong_field(name, "an id in canonical form", err);
}

sluice_status st_json_get_sha256(const cJSON *object, const char *name, pf_sha256 *ret_digest, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsString(item) || !pf_sha256_parse(item->valuestring, ret_digest))
        return wrong_field(name, "a SHA-256", err);
    return SLUICE_OK;
}

sluice_status st_json_get_array(const cJSON *object, const char *name, const cJSON **ret_array, sluice_error *err)
{
    *ret_array = st_json_field(object, name);
    return cJSON_IsArray(*ret_array) ? SLUICE_OK : wrong_field(name, "a list", err);
}

sluice_status st_json_get_object(const cJSON *object, const char *name, const cJSON **ret_object, sluice_error *err)
{
    *ret_object = st_json_field(object, name);
    return cJSON_IsObject(*ret_object) ? SLUICE_OK : wrong_field(name, "an object", err);
}

sluice_status st_json_get_bool(const cJSON *object, const char *name, bool *ret_value, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!cJSON_IsBool(item))
        return wrong_field(name, "true or false", err);
    *ret_value = cJSON_IsTrue(item);
    return SLUICE_OK;
}

/* "sluice-edit/1" and "sluice-edit/2" differ in version only: the part up to the slash is the same. */
static bool same_kind(const char *a, const char *b)
{
    const char *slash = strchr(b, '/');
    return slash && strncmp(a, b, (size_t)(slash - b) + 1) == 0;
}

sluice_status st_json_check_format(const cJSON *object, const char *expected, sluice_error *err)
{
    const cJSON *item = st_json_field(object, "format");
    if (!cJSON_IsString(item))
        return wrong_field("format", "a text", err);
    if (strcmp(item->valuestring, expected) == 0)
        return SLUICE_OK;
    if (same_kind(item->valuestring, expected))
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a control document has a format other than %s", expected);
    return pf_fail(err, SLUICE_CORRUPT, "a control document is not of the format %s", expected);
}

sluice_status st_json_check_canonical(const void *read, size_t read_length, const pf_buffer *encoded, sluice_error *err)
{
    if (read_length == encoded->length && (read_length == 0 || memcmp(read, encoded->data, read_length) == 0))
        return SLUICE_OK;
    return pf_fail(err, SLUICE_CORRUPT, "a control document is not in canonical form");
}
