/*
 * Control documents: canonical JSON (fixed key order, no spare white space, one LF at the end), written by this writer
 * and read into cJSON's tree. 64-bit integers, ids and digests are strings in control documents, since cJSON keeps
 * numbers as doubles.
 *
 * st_json_parse refuses: not UTF-8, U+0000 (also escaped), duplicate names, depth over 32, bytes behind the document.
 * Whoever decodes a control document re-encodes it and compares the bytes (F-07): st_json_check_canonical does that.
 */
#ifndef STORE_FORMAT_JSON_H
#define STORE_FORMAT_JSON_H

#include "platform/buffer.h"
#include "platform/digest.h"
#include "platform/ids.h"
#include "store/format/utf8.h"
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#define ST_JSON_DEPTH 32

/* A writer over a buffer; the first error sticks and is returned by st_json_end. */
typedef struct st_json {
    pf_buffer *buffer;
    sluice_status status;
    bool comma; /* a comma is due before the next item */
    int depth;
} st_json;

void st_json_begin(st_json *json, pf_buffer *buffer);
sluice_status st_json_end(st_json *json, bool final_newline, sluice_error *err);
void st_json_object(st_json *json); /* { */
void st_json_object_end(st_json *json);
void st_json_array(st_json *json); /* [ */
void st_json_array_end(st_json *json);
void st_json_name(st_json *json, const char *name);
void st_json_text(st_json *json, const char *text);                      /* UTF-8 */
void st_json_bytes_text(st_json *json, const void *text, size_t length); /* UTF-8 of a given length, may hold NUL */
/* The same for bytes of unknown origin (a rejected record, a file name): what is not UTF-8 becomes U+FFFD. In the other
 * two it is an error (INTERNAL at st_json_end). */
void st_json_lossy_text(st_json *json, const void *text, size_t length);
void st_json_bool(st_json *json, bool value);
void st_json_null(st_json *json);
void st_json_named_text(st_json *json, const char *name, const char *text); /* lossy; NULL or empty: null */
void st_json_named_truth(st_json *json, const char *name, sluice_truth truth);
void st_json_number(st_json *json, int64_t value);    /* a bare number: |value| < 2^53 in control documents */
void st_json_unsigned(st_json *json, uint64_t value); /* likewise; for output to users any value */
void st_json_u64(st_json *json, uint64_t value);      /* "123": a 64-bit integer as a string */
void st_json_double(st_json *json, double value);     /* shortest form that reads back equal; finite only */
void st_json_raw(st_json *json, const char *text, size_t length); /* already JSON */
void st_json_id(st_json *json, const pf_id *id);
void st_json_sha256(st_json *json, const pf_sha256 *digest);

/* CORRUPT with the byte where it breaks; whoever reads a user's document maps that to INPUT_SYNTAX. */
sluice_status st_json_parse(const void *bytes, size_t length, cJSON **ret_document, sluice_error *err);
/* What st_json_parse gave, which lies in one piece (cJSON_Delete is not for it); NULL allowed. */
void st_json_free(cJSON *document);
/* The member of that name; NULL when there is none, or no object. */
const cJSON *st_json_field(const cJSON *object, const char *name);
/* Field readers for control documents: CORRUPT with the document's kind and the field's name when absent or of another
 * type. */
sluice_status st_json_get_u64(const cJSON *object, const char *name, uint64_t *ret_value, sluice_error *err);
sluice_status st_json_get_number(const cJSON *object, const char *name, int64_t *ret_value, sluice_error *err);
sluice_status st_json_get_text(const cJSON *object, const char *name, const char **ret_text, sluice_error *err);
sluice_status st_json_get_id(const cJSON *object, const char *name, pf_id *ret_id, sluice_error *err);
sluice_status st_json_get_sha256(const cJSON *object, const char *name, pf_sha256 *ret_digest, sluice_error *err);
/* A decimal number without sign, spaces or leading zeros that fits 64 bits. */
bool st_json_text_is_u64(const char *text, uint64_t *ret_value);
sluice_status st_json_get_array(const cJSON *object, const char *name, const cJSON **ret_array, sluice_error *err);
sluice_status st_json_get_object(const cJSON *object, const char *name, const cJSON **ret_object, sluice_error *err);
sluice_status st_json_get_bool(const cJSON *object, const char *name, bool *ret_value, sluice_error *err);
/* "format" of the document must be `expected` ("sluice-edit/1"): another version is UNSUPPORTED_FORMAT, else CORRUPT.
 */
sluice_status st_json_check_format(const cJSON *object, const char *expected, sluice_error *err);
/* The bytes that were read equal the bytes that the decoded value encodes to (CORRUPT otherwise). */
sluice_status st_json_check_canonical(const void *read, size_t read_length, const pf_buffer *encoded,
                                      sluice_error *err);

#endif
