/*
 * Finding a hash among sorted ones that lie `stride` bytes apart in a mapped file.
 */
#ifndef STORE_FRAGMENT_SEARCH_H
#define STORE_FRAGMENT_SEARCH_H

#include "store/fragment/sealed.h"

/* The first of [low, high) whose hash is at least `hash`. Hashes are spread evenly between those at the edges, `from`
 * and `to`, so a guess by proportion lands close; from there the place is bracketed by growing steps and halved. */
static inline uint64_t st_search_hash(const uint8_t *base, size_t stride, uint64_t low, uint64_t high, uint64_t from,
                                      uint64_t to, uint64_t hash)
{
    enum { STEP = 8 };
    uint64_t guess = low;

#define HASH_AT_(i) st_get_u64(base + (i)*stride)
    if (hash > from && hash < to && high > low)
        guess += (uint64_t)((double)(hash - from) / (double)(to - from) * (double)(high - low - 1));
    if (guess < high && HASH_AT_(guess) < hash) {
        low = guess + 1;
        for (uint64_t step = STEP; step < high - low; step *= 2) {
            if (HASH_AT_(low + step) >= hash) {
                high = low + step;
                break;
            }
            low += step + 1;
        }
    } else {
        high = guess;
        for (uint64_t step = STEP; step < high - low; step *= 2) {
            if (HASH_AT_(high - step) < hash) {
                low = high - step + 1;
                break;
            }
            high -= step;
        }
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (HASH_AT_(middle) < hash)
            low = middle + 1;
        else
            high = middle;
    }
#undef HASH_AT_
    return low;
}

#endif
