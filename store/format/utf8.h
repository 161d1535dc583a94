/*
 * UTF-8: validation of what came from outside (strict: no overlong forms, no surrogates, nothing above U+10FFFF), and
 * counting of code points. The one check behind string values, names and JSON texts.
 */
#ifndef STORE_FORMAT_UTF8_H
#define STORE_FORMAT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the well-formed sequence at `bytes` (1 to 4), 0 when there is none. */
size_t st_utf8_sequence(const uint8_t *bytes, size_t length);
bool st_utf8_is_valid(const void *bytes, size_t length);
/* Of valid UTF-8. */
uint64_t st_utf8_code_points(const void *bytes, size_t length);
/* Writes one code point (at most 0x10FFFF, no surrogate) as 1 to 4 bytes and returns how many. */
size_t st_utf8_put(uint32_t code_point, uint8_t ret_bytes[4]);
/* Bytes of the code point at the start of valid, non-empty UTF-8; *ret_code_point is its number. */
size_t st_utf8_get(const void *bytes, size_t length, uint32_t *ret_code_point);
/* How many bytes from here on stand for themselves inside a JSON text: ASCII from the space on but quote and backslash.
 */
size_t st_plain_length(const uint8_t *bytes, size_t length);

#endif
