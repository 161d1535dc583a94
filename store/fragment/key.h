/*
 * Keys: canonical bytes, hashes, equality (LESSONS K-04).
 *
 * A key is one or more columns read at one row (a node's key properties, an edge's from/to and key properties, a unique
 * tuple). Canonical bytes: per member its length as u32 little-endian, then its bytes (integers and bool 8 bytes
 * little-endian two's complement whatever the width, floats as float64 bits with -0.0 as 0.0, strings and bytes as they
 * are, date and timestamp as integers, structs flattened); a null member is length 0xFFFFFFFF. Injective. Equality is
 * equality of canonical bytes, so an int32 equals the int64 of the same value. Hash: a single integer-like member that
 * is not null is mixed by a bijection of 64 bits (so equal hashes are equal keys); anything else is XXH3-64 of the
 * canonical bytes. SLUICE_TEST_EQUAL_HASHES=1 (builds with failpoints) forces all hashes to 7.
 */
#ifndef STORE_FRAGMENT_KEY_H
#define STORE_FRAGMENT_KEY_H

#include "platform/buffer.h"
#include "store/arrow/column.h"

#define ST_KEY_BYTES_MAX 1024u
#define ST_KEY_LEAVES_MAX                                                                                              \
    (3 * ST_KEY_MEMBERS_MAX) /* members after flattening: both ends of an edge and its own key                         \
                              */

/* Hashes rows [0, n) of the key made of `count` columns into ret_hashes. */
void st_key_hash_rows(const st_column *const *columns, uint32_t count, uint64_t rows, uint64_t *ret_hashes);
uint64_t st_key_hash_row(const st_column *const *columns, uint32_t count, uint64_t row);
bool st_key_equal(const st_column *const *a, uint64_t row_a, const st_column *const *b, uint64_t row_b, uint32_t count);
/* Equal as stored, nulls too: floats by their bits, so that NaN is NaN and -0.0 is not 0.0. */
bool st_value_same(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b);
bool st_key_has_null(const st_column *const *columns, uint32_t count, uint64_t row);
/* Appends the canonical bytes. RESOURCE_LIMIT beyond ST_KEY_BYTES_MAX. */
sluice_status st_key_encode(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                            sluice_error *err);
/* True when equal hashes of keys without nulls prove equal keys (one integer-like member, and hashes not forced). */
bool st_key_hash_is_exact(const st_column *const *columns, uint32_t count);

/* The key of one member that a hash stands for, as a column of one row over *ret_word; false for types whose hashes are
 * not exact. */
bool st_key_of_hash(st_type type, uint64_t hash, uint64_t *ret_word, st_column *ret_column);
/* Are the hashes of a single key of this type exact? */
bool st_key_type_is_exact(st_type type);
/* The words that `count` hashes of such a type stand for; hashes lie `stride` apart. */
void st_key_words_of_hashes(const uint64_t *hashes, size_t stride, uint64_t count, uint64_t *restrict ret_words);

#endif
