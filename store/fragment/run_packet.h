/*
 * Packets: up to 256 entries of a run, packed (docs/format.md, "Run").
 *
 *   0   u8 width h of a hash, u8 0, u16 number of different hashes d, u32 0
 *   8   a bit for each entry: it is the first of its hash; zeros up to a whole 64-bit word
 *   …   d hashes of h bits, less the first hash of the packet, which stands in the run's footer; the lowest bits first;
 *       behind them, from the next whole byte on, the positions of all entries, of the width of the run
 *   …   zeros up to a multiple of 8
 *
 * So a hash costs what tells it from its neighbours, once, and a position what the rows of the fragment need. Each
 * number lies where arithmetic says, so a look-up unpacks no more than it asks for. The bits of numbers are read by
 * eight bytes at a time, up to 16 bytes behind a packet: behind the last one lies the footer.
 */
#ifndef STORE_FRAGMENT_RUN_PACKET_H
#define STORE_FRAGMENT_RUN_PACKET_H

#include "store/fragment/run.h"

#include <stddef.h>

#define ST_PACKET_HEAD 8u
/* Head, bits, hashes and positions at their widest, padding. */
#define ST_PACKET_BYTES (ST_PACKET_HEAD + ST_RUN_PACKET / 8 + 2 * 8 * ST_RUN_PACKET + 8)

/* Packs 1 to ST_RUN_PACKET sorted entries; returns the bytes, of which ret_bytes has ST_PACKET_BYTES + 8. */
size_t st_packet_pack(const st_run_entry *entries, unsigned count, unsigned position_bits, uint8_t *ret_bytes);

typedef struct st_packet { /* one that is being read */
    const uint8_t *firsts, *hashes, *positions;
    uint64_t base;
    unsigned count, distinct, hash_bits, position_bits;
} st_packet;

/* False: these bytes are no packet of `count` entries. */
bool st_packet_open(const uint8_t *bytes, uint64_t length, unsigned count, unsigned position_bits, uint64_t base,
                    st_packet *ret_packet);
/* The first entry whose hash is at least `hash`; `count` when there is none. */
unsigned st_packet_seek(const st_packet *packet, uint64_t hash);
/* Unpacks entries [first, end). */
void st_packet_unpack(const st_packet *packet, unsigned first, unsigned end, st_run_entry *ret_entries);
/* Is it packed as st_packet_pack would have done it (order, widths, zeros)? Adds the bits that its positions have. */
bool st_packet_is_canonical(const uint8_t *bytes, uint64_t length, const st_packet *packet, uint64_t *position_bits);

#endif
