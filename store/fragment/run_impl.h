/*
 * The inside of runs (run.h): layout and filter, for the writer and for the reader.
 */
#ifndef STORE_FRAGMENT_RUN_IMPL_H
#define STORE_FRAGMENT_RUN_IMPL_H

#include "store/fragment/blocks.h"
#include "store/fragment/run.h"

#define RUN_VERSION       2u
#define RUN_VERSION_PLAIN 1u /* entries of 16 bytes: read, no longer written */
#define RUN_HEADER        64u
#define RUN_TAIL          16u
#define RUN_PLAIN_ENTRY   ((uint64_t)sizeof(st_run_entry))
#define RUN_ENTRIES_MAX   ((uint64_t)1 << 32) /* so that filter_block_of does not overflow */
#define RUN_OFFSET_UNIT   8u                  /* offsets of packets count so many bytes */

#define RUN_MAGIC        "SLUICEK1"
#define RUN_FOOTER_MAGIC "SLUICEKF"
#define RUN_END_MAGIC    "SLUICEKE"

typedef struct run_footer {
    uint8_t magic[8];
    uint32_t version, block_size;
    uint64_t table, entries;
    uint64_t filter_offset, filter_blocks;
    uint64_t end; /* E: where the footer begins */
    uint64_t blocks, fences;
    uint64_t last_hash;     /* 0 without entries */
    uint64_t position_bits; /* not in version 1 */
} run_footer;
#define RUN_FOOTER_PLAIN 80u
_Static_assert(sizeof(run_footer) == 88, "the footer's layout is the format");

/* ---- the filter: one cache line per look-up ---- */

#define RUN_FILTER_BITS_PER_HASH 10u
#define RUN_FILTER_WORDS         8u
#define RUN_FILTER_BLOCK         32u

static const uint32_t run_filter_salts[RUN_FILTER_WORDS] = {0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du,
                                                            0x705495C7u, 0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u};

static inline uint64_t run_filter_block_of(uint64_t hash, uint64_t blocks)
{
    return ((hash >> 32) * blocks) >> 32;
}

static inline void run_filter_add(uint32_t block[RUN_FILTER_WORDS], uint64_t hash)
{
    for (unsigned i = 0; i < RUN_FILTER_WORDS; i++)
        block[i] |= 1u << (((uint32_t)hash * run_filter_salts[i]) >> 27);
}

static inline bool run_filter_has(const uint32_t block[RUN_FILTER_WORDS], uint64_t hash)
{
    uint32_t missing = 0;
    for (unsigned i = 0; i < RUN_FILTER_WORDS; i++)
        missing |= ~block[i] & (1u << (((uint32_t)hash * run_filter_salts[i]) >> 27));
    return missing == 0;
}

/* Where filter and footer lie behind entries that end at `entries_end`. */
static inline void run_lay_out(run_footer *layout, uint64_t entries_end, uint64_t filter_blocks)
{
    layout->filter_offset = (entries_end + 63) & ~(uint64_t)63;
    layout->filter_blocks = filter_blocks;
    layout->end = (layout->filter_offset + filter_blocks * RUN_FILTER_BLOCK + 63) & ~(uint64_t)63;
    layout->blocks = (layout->end + ST_BLOCK - 1) / ST_BLOCK;
}

#endif
