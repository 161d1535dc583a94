/*
 * Scalar values as text, both ways (INTERFACE "Values as text"): the one core behind CSV values, keys on the command
 * line, constants in schemas, filters and output. Exact, without locale, without allocation.
 *
 * Numbers: an optional minus, digits; floats also a fraction, an exponent, NaN, Infinity, -Infinity; read to the
 * nearest value, written in the shortest form that reads back equal. No plus sign in front, no spaces, no hexadecimal,
 * nothing behind. Dates: YYYY-MM-DD. Timestamps: a date, "T" or one space, HH:MM[:SS[.fraction]], then Z, an offset
 * (+HH, +HHMM, +HH:MM) or nothing (UTC); a date alone is its midnight; digits of a fraction beyond microseconds must be
 * zeros. Years have four digits, or more, or a minus, where a value from Arrow lies outside 0000 to 9999.
 */
#ifndef STORE_SCHEMA_SCALAR_H
#define STORE_SCHEMA_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum st_parse {
    ST_PARSE_OK,
    ST_PARSE_BAD,  /* not of this form */
    ST_PARSE_RANGE /* of this form, and beyond what the type holds */
} st_parse;

st_parse st_parse_bool(const char *text, size_t length, bool *ret_value);
st_parse st_parse_i32(const char *text, size_t length, int32_t *ret_value);
st_parse st_parse_i64(const char *text, size_t length, int64_t *ret_value);
st_parse st_parse_u64(const char *text, size_t length, uint64_t *ret_value);
st_parse st_parse_f32(const char *text, size_t length, float *ret_value);
st_parse st_parse_f64(const char *text, size_t length, double *ret_value);
st_parse st_parse_date(const char *text, size_t length, int32_t *ret_days);
st_parse st_parse_timestamp(const char *text, size_t length, int64_t *ret_us);

/* Standard base64 with padding, strict. *ret_length bytes of ret_bytes, which has room for length / 4 * 3. */
st_parse st_parse_base64(const char *text, size_t length, uint8_t *ret_bytes, size_t *ret_length);

/* Each writes its text (not terminated) into at least ST_SCALAR_TEXT_MAX bytes and returns its length. */
#define ST_SCALAR_TEXT_MAX 48
size_t st_format_i64(int64_t value, char *ret_text);
size_t st_format_u64(uint64_t value, char *ret_text);
size_t st_format_f32(float value, char *ret_text);
size_t st_format_f64(double value, char *ret_text);
size_t st_format_date(int32_t days, char *ret_text);
size_t st_format_timestamp(int64_t us, char *ret_text);
/* ret_text has room for (length + 2) / 3 * 4. */
size_t st_format_base64(const void *bytes, size_t length, char *ret_text);

#endif
