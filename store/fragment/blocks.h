/*
 * Checksums of mapped files by blocks of 64 KiB: XXH3-128 (low, high: 16 bytes) of each, what runs and adjacency have
 * in their footers.
 */
#ifndef STORE_FRAGMENT_BLOCKS_H
#define STORE_FRAGMENT_BLOCKS_H

#include "platform/digest.h"
#include "store/fragment/sealed.h"

#define ST_BLOCK        65536u
#define ST_BLOCK_DIGEST 16u

/* Digests of the blocks in `bytes`, which begin a block, into `digests`; returns how many. */
static inline uint64_t st_blocks_digest(const uint8_t *bytes, size_t length, uint8_t *digests)
{
    uint64_t blocks = 0;
    for (size_t at = 0; at < length; at += ST_BLOCK, blocks++) {
        pf_xxh128 digest = pf_xxh128_of(bytes + at, length - at < ST_BLOCK ? length - at : ST_BLOCK);
        st_put_u64(digests + ST_BLOCK_DIGEST * blocks, digest.low);
        st_put_u64(digests + ST_BLOCK_DIGEST * blocks + 8, digest.high);
    }
    return blocks;
}

/* Is a block of the first `end` bytes what was written? */
static inline bool st_block_is_whole(const uint8_t *bytes, uint64_t end, uint64_t block, const uint8_t *digests)
{
    uint64_t at = block * ST_BLOCK;
    const uint8_t *listed = digests + ST_BLOCK_DIGEST * block;
    pf_xxh128 expected = {.low = st_get_u64(listed), .high = st_get_u64(listed + 8)};
    return pf_xxh128_equal(pf_xxh128_of(bytes + at, end - at < ST_BLOCK ? end - at : ST_BLOCK), expected);
}

#endif
