/*
 * Runs of bits in Arrow's order (least significant first): counting, filling and copying at any bit offset, by words.
 */
#ifndef STORE_ARROW_BITS_H
#define STORE_ARROW_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool st_bit(const uint8_t *bits, uint64_t i)
{
    return (bits[i >> 3] >> (i & 7)) & 1;
}

static inline void st_bit_set(uint8_t *bits, uint64_t i)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] | (1u << (i & 7)));
}

static inline void st_bit_clear(uint8_t *bits, uint64_t i)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] & ~(1u << (i & 7)));
}

/* How many of the bits [first, first + count) are 1. Reads no byte outside the range. */
static inline uint64_t st_bits_count(const uint8_t *bits, uint64_t first, uint64_t count)
{
    uint64_t ones = 0;
    while (count && (first & 7)) {
        ones += st_bit(bits, first++);
        count--;
    }
    bits += first >> 3;
    for (; count >= 64; count -= 64, bits += 8) {
        uint64_t word;
        memcpy(&word, bits, 8);
        ones += (uint64_t)__builtin_popcountll(word);
    }
    for (uint64_t i = 0; i < count; i++)
        ones += st_bit(bits, i);
    return ones;
}

static inline void st_bits_fill(uint8_t *bits, uint64_t first, uint64_t count, bool value)
{
    while (count && (first & 7)) {
        value ? st_bit_set(bits, first) : st_bit_clear(bits, first);
        first++;
        count--;
    }
    if (count >= 8)
        memset(bits + (first >> 3), value ? 0xFF : 0, count >> 3);
    first += count & ~(uint64_t)7;
    for (uint64_t i = 0; i < (count & 7); i++)
        value ? st_bit_set(bits, first + i) : st_bit_clear(bits, first + i);
}

/* 64 bits from bit `at` on; all of them must lie inside the buffer. */
static inline uint64_t st_bits_word(const uint8_t *bits, uint64_t at)
{
    uint64_t word;
    memcpy(&word, bits + (at >> 3), 8);
    unsigned shift = (unsigned)(at & 7);
    return shift ? (word >> shift) | ((uint64_t)bits[(at >> 3) + 8] << (64 - shift)) : word;
}

/* Copies `count` bits from `from` at from_at to `to` at to_at; other bits of `to` keep their value. No overlap. */
static inline void st_bits_copy(uint8_t *to, uint64_t to_at, const uint8_t *from, uint64_t from_at, uint64_t count)
{
    while (count && (to_at & 7)) {
        st_bit(from, from_at++) ? st_bit_set(to, to_at) : st_bit_clear(to, to_at);
        to_at++;
        count--;
    }
    for (; count >= 64; count -= 64, to_at += 64, from_at += 64) {
        uint64_t word = st_bits_word(from, from_at);
        memcpy(to + (to_at >> 3), &word, 8);
    }
    for (; count; count--, to_at++, from_at++)
        st_bit(from, from_at) ? st_bit_set(to, to_at) : st_bit_clear(to, to_at);
}

#endif
