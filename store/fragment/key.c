/*
 * Keys: one definition of canonical bytes, and the hash and the equality that follow from it (LESSONS K-04).
 *
 * Hashes are stored in runs and compared between processes and releases: neither mix() nor the canonical bytes may
 * change without a new format version of runs.
 */
#include "store/fragment/key.h"

#include "store/arrow/bits.h"

#include <stdlib.h>

#define XXH_INLINE_ALL /* keys are short: the call would cost more than the hash */
#include <xxhash.h>

#define NULL_LENGTH UINT32_MAX
#define FORCED_HASH 7u
#define WORD_BYTES  8u
#define STATE_ALIGN 64u /* of xxHash's streaming state */

/* A member of a key after flattening. Members of a struct that is null are null. */
typedef struct leaf {
    const st_column *column;
    const st_column *parent; /* NULL: not in a struct */
} leaf;

static bool hashes_are_forced(void)
{
#if SLUICE_FAILPOINTS
    static _Thread_local int forced = -1;
    if (forced < 0) {
        const char *value = getenv("SLUICE_TEST_EQUAL_HASHES");
        forced = value && strcmp(value, "1") == 0;
    }
    return forced;
#else
    return false;
#endif
}

/* The finaliser of splitmix64: a bijection. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Its inverse: the multipliers are those of the other two, modulo 2^64. */
static inline uint64_t unmix(uint64_t x)
{
    x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642B2D24D8EC3u;
    x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96DE1B173F119089u;
    return x ^ (x >> 30) ^ (x >> 60);
}

static uint32_t flatten(const st_column *const *columns, uint32_t count, leaf ret_leaves[ST_KEY_LEAVES_MAX])
{
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < count; i++) {
        const st_column *column = columns[i];
        bool nested = column->type == ST_STRUCT;
        uint32_t members = nested ? column->child_count : 1;
        PF_ALWAYS(members <= ST_KEY_LEAVES_MAX - leaves);
        for (uint32_t m = 0; m < members; m++)
            ret_leaves[leaves++] = nested ? (leaf){&column->children[m], column} : (leaf){column, NULL};
    }
    return leaves;
}

static inline bool leaf_is_null(const leaf *member, uint64_t row)
{
    return st_column_is_null(member->column, row) || (member->parent && st_column_is_null(member->parent, row));
}

static inline bool is_integer_like(st_type type)
{
    switch (type) {
    case ST_BOOL:
    case ST_INT32:
    case ST_INT64:
    case ST_UINT64:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
        return true;
    case ST_FLOAT32:
    case ST_FLOAT64:
    case ST_STRING:
    case ST_BYTES:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    return false;
}

static inline uint64_t float_bits(double value)
{
    uint64_t bits;
    if (value == 0)
        value = 0; /* -0.0 */
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The 64 bits that stand for an integer-like or floating value. */
static inline uint64_t word_at(const st_column *column, uint64_t row)
{
    switch (column->type) {
    case ST_BOOL:
        return st_bit(column->values, row);
    case ST_INT32:
    case ST_DATE:
        return (uint64_t)(int64_t)((const int32_t *)column->values)[row];
    case ST_INT64:
    case ST_UINT64:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
        return ((const uint64_t *)column->values)[row];
    case ST_FLOAT32:
        return float_bits((double)((const float *)column->values)[row]);
    case ST_FLOAT64:
        return float_bits(((const double *)column->values)[row]);
    case ST_STRING:
    case ST_BYTES:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    PF_NEVER("a value of 64 bits");
    return 0;
}

/* The bytes of a value of any type but null: where they are, or in *scratch. */
static inline const uint8_t *value_at(const st_column *column, uint64_t row, uint8_t scratch[WORD_BYTES],
                                      uint32_t *ret_length)
{
    if (column->type == ST_STRING || column->type == ST_BYTES) {
        *ret_length = (uint32_t)(column->offsets[row + 1] - column->offsets[row]);
        return *ret_length ? column->data + column->offsets[row] : scratch;
    }
    if (column->type == ST_COMMIT_ID) {
        *ret_length = 16;
        return (const uint8_t *)column->values + row * 16;
    }
    uint64_t word = word_at(column, row);
    for (unsigned i = 0; i < WORD_BYTES; i++)
        scratch[i] = (uint8_t)(word >> (8 * i));
    *ret_length = WORD_BYTES;
    return scratch;
}

static inline void put_length(uint8_t bytes[4], uint32_t length)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(length >> (8 * i));
}

/* memcpy for lengths that are mostly small: two copies that overlap, without a call. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 32) {
        memcpy(to, from, length);
    } else if (length >= 16) {
        memcpy(to, from, 16);
        memmove(to + length - 16, from + length - 16, 16);
    } else if (length >= 8) {
        memcpy(to, from, 8);
        memmove(to + length - 8, from + length - 8, 8);
    } else {
        for (size_t i = 0; i < length; i++)
            to[i] = from[i];
    }
}

/* Writes the canonical bytes as far as they fit; returns how many there are. */
static inline size_t encode(const leaf *leaves, uint32_t count, uint64_t row, uint8_t *bytes, size_t capacity)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t scratch[WORD_BYTES];
        uint32_t length = 0;
        bool null = leaf_is_null(&leaves[i], row);
        const uint8_t *value = null ? scratch : value_at(leaves[i].column, row, scratch, &length);
        if (at <= capacity && (size_t)length + 4 <= capacity - at) {
            put_length(bytes + at, null ? NULL_LENGTH : length);
            copy_short(bytes + at + 4, value, length);
        }
        at += (size_t)length + 4;
    }
    return at;
}

/* XXH3-64 of canonical bytes that are longer than a key may be: probes hash what they are given. */
static uint64_t hash_long(const leaf *leaves, uint32_t count, uint64_t row)
{
    /* The state wants 64-byte alignment, which the sanitizer's own stack does not keep: aligned by hand. */
    uint8_t room[sizeof(XXH3_state_t) + STATE_ALIGN];
    XXH3_state_t *state = (XXH3_state_t *)(void *)(room + (STATE_ALIGN - (uintptr_t)room % STATE_ALIGN));
    XXH3_64bits_reset(state);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t scratch[WORD_BYTES], framed[4];
        uint32_t length = 0;
        bool null = leaf_is_null(&leaves[i], row);
        const uint8_t *value = null ? scratch : value_at(leaves[i].column, row, scratch, &length);
        put_length(framed, null ? NULL_LENGTH : length);
        XXH3_64bits_update(state, framed, sizeof framed);
        XXH3_64bits_update(state, value, length);
    }
    return XXH3_64bits_digest(state);
}

static inline uint64_t hash_leaves(const leaf *leaves, uint32_t count, uint64_t row)
{
    uint8_t bytes[ST_KEY_BYTES_MAX];
    if (count == 1 && is_integer_like(leaves[0].column->type) && !leaf_is_null(&leaves[0], row))
        return mix(word_at(leaves[0].column, row));
    size_t length = encode(leaves, count, row, bytes, sizeof bytes);
    return length <= sizeof bytes ? XXH3_64bits(bytes, length) : hash_long(leaves, count, row);
}

/* One integer column without nulls: a loop that the compiler can unroll. False when it is not one. */
static bool hash_integers(const st_column *column, uint64_t rows, uint64_t *restrict ret_hashes)
{
    if (column->validity)
        return false;
    if (column->type == ST_INT32 || column->type == ST_DATE) {
        const int32_t *values = column->values;
        for (uint64_t i = 0; i < rows; i++)
            ret_hashes[i] = mix((uint64_t)(int64_t)values[i]);
        return true;
    }
    if (is_integer_like(column->type) && column->type != ST_BOOL) {
        const uint64_t *values = column->values;
        for (uint64_t i = 0; i < rows; i++)
            ret_hashes[i] = mix(values[i]);
        return true;
    }
    return false;
}

/* One text column without nulls, the commonest key that is no integer. */
static bool hash_texts(const leaf *only, uint64_t rows, uint64_t *restrict ret_hashes)
{
    const st_column *column = only->column;
    uint8_t bytes[ST_KEY_BYTES_MAX];

    if ((column->type != ST_STRING && column->type != ST_BYTES) || column->validity)
        return false;
    for (uint64_t i = 0; i < rows; i++) {
        uint32_t length = (uint32_t)(column->offsets[i + 1] - column->offsets[i]);
        if (length > sizeof bytes - 4) {
            ret_hashes[i] = hash_long(only, 1, i);
            continue;
        }
        put_length(bytes, length);
        if (length)
            copy_short(bytes + 4, column->data + column->offsets[i], length);
        ret_hashes[i] = XXH3_64bits(bytes, (size_t)length + 4);
    }
    return true;
}

void st_key_hash_rows(const st_column *const *columns, uint32_t count, uint64_t rows, uint64_t *ret_hashes)
{
    leaf leaves[ST_KEY_LEAVES_MAX];
    uint32_t leaf_count = flatten(columns, count, leaves);

    if (hashes_are_forced()) {
        for (uint64_t i = 0; i < rows; i++)
            ret_hashes[i] = FORCED_HASH;
        return;
    }
    if (leaf_count == 1 && !leaves[0].parent &&
        (hash_integers(leaves[0].column, rows, ret_hashes) || hash_texts(&leaves[0], rows, ret_hashes)))
        return;
    for (uint64_t i = 0; i < rows; i++)
        ret_hashes[i] = hash_leaves(leaves, leaf_count, i);
}

uint64_t st_key_hash_row(const st_column *const *columns, uint32_t count, uint64_t row)
{
    leaf leaves[ST_KEY_LEAVES_MAX];
    uint32_t leaf_count = flatten(columns, count, leaves);
    return hashes_are_forced() ? FORCED_HASH : hash_leaves(leaves, leaf_count, row);
}

bool st_key_equal(const st_column *const *a, uint64_t row_a, const st_column *const *b, uint64_t row_b, uint32_t count)
{
    leaf leaves_a[ST_KEY_LEAVES_MAX], leaves_b[ST_KEY_LEAVES_MAX];
    uint32_t count_a = flatten(a, count, leaves_a), count_b = flatten(b, count, leaves_b);

    if (count_a != count_b)
        return false;
    for (uint32_t i = 0; i < count_a; i++) {
        bool null = leaf_is_null(&leaves_a[i], row_a);
        if (null != leaf_is_null(&leaves_b[i], row_b))
            return false;
        if (null)
            continue;
        uint8_t scratch_a[WORD_BYTES], scratch_b[WORD_BYTES];
        uint32_t length_a, length_b;
        const uint8_t *value_a = value_at(leaves_a[i].column, row_a, scratch_a, &length_a);
        const uint8_t *value_b = value_at(leaves_b[i].column, row_b, scratch_b, &length_b);
        if (length_a != length_b || memcmp(value_a, value_b, length_a) != 0)
            return false;
    }
    return true;
}

static bool same_children(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    bool same = a->child_count == b->child_count;

    for (uint32_t i = 0; i < a->child_count && same; i++) /* members are no structs: one level deep */
        same = st_value_same(&a->children[i], row_a, &b->children[i], row_b);
    return same;
}

bool st_value_same(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    bool null_a = st_column_is_null(a, row_a), null_b = st_column_is_null(b, row_b);
    if (null_a || null_b)
        return null_a && null_b;
    if (a->type != b->type) /* widened between the two */
        return st_key_equal(&a, row_a, &b, row_b, 1);
    size_t width = st_type_width(a->type);
    if (a->type == ST_STRUCT)
        return same_children(a, row_a, b, row_b);
    if (a->type == ST_BOOL)
        return st_bit(a->values, row_a) == st_bit(b->values, row_b);
    if (width > 0)
        return memcmp((const uint8_t *)a->values + row_a * width, (const uint8_t *)b->values + row_b * width, width) ==
               0;
    int32_t length = a->offsets[row_a + 1] - a->offsets[row_a];
    return length == b->offsets[row_b + 1] - b->offsets[row_b] &&
           (length == 0 || memcmp(a->data + a->offsets[row_a], b->data + b->offsets[row_b], (size_t)length) == 0);
}

bool st_key_has_null(const st_column *const *columns, uint32_t count, uint64_t row)
{
    leaf leaves[ST_KEY_LEAVES_MAX];
    uint32_t leaf_count = flatten(columns, count, leaves);
    for (uint32_t i = 0; i < leaf_count; i++)
        if (leaf_is_null(&leaves[i], row))
            return true;
    return false;
}

sluice_status st_key_encode(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                            sluice_error *err)
{
    leaf leaves[ST_KEY_LEAVES_MAX];
    uint8_t bytes[ST_KEY_BYTES_MAX];
    size_t length = encode(leaves, flatten(columns, count, leaves), row, bytes, sizeof bytes);

    if (length > sizeof bytes)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a key has %zu bytes, more than %u", length, ST_KEY_BYTES_MAX);
    return pf_buffer_append(buffer, bytes, length, err);
}

bool st_key_hash_is_exact(const st_column *const *columns, uint32_t count)
{
    leaf leaves[ST_KEY_LEAVES_MAX];
    return flatten(columns, count, leaves) == 1 && is_integer_like(leaves[0].column->type) && !hashes_are_forced();
}

bool st_key_of_hash(st_type type, uint64_t hash, uint64_t *ret_word, st_column *ret_column)
{
    if (!is_integer_like(type) || hashes_are_forced())
        return false;
    *ret_word = unmix(hash); /* little-endian: narrower values are its first bytes */
    *ret_column = (st_column){.type = type, .length = 1, .values = ret_word};
    return true;
}

bool st_key_type_is_exact(st_type type)
{
    return is_integer_like(type) && !hashes_are_forced();
}

void st_key_words_of_hashes(const uint64_t *hashes, size_t stride, uint64_t count, uint64_t *restrict ret_words)
{
    for (uint64_t i = 0; i < count; i++)
        ret_words[i] = unmix(hashes[i * stride]);
}
