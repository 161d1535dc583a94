#include "store/fragment/run_packet.h"

#include "platform/check.h"
#include "store/fragment/sealed.h"

#include <string.h>

#define SHORT_BITS 57u /* a number of so many lies in eight bytes, wherever it begins */

/* ---- bits ---- */

static unsigned width_of(uint64_t value)
{
    return value ? 64u - (unsigned)__builtin_clzll(value) : 0;
}

static uint64_t bytes_of(uint64_t bits)
{
    return (bits + 7) / 8;
}

static uint64_t words_of(unsigned count)
{
    return (count + 63) / 64;
}

typedef struct bit_writer {
    uint8_t *at;
    uint64_t word;
    unsigned used; /* bits of `word`, below 64 */
} bit_writer;

static inline void put_bits(bit_writer *w, uint64_t value, unsigned bits)
{
    w->word |= value << w->used;
    if (w->used + bits < 64) {
        w->used += bits;
        return;
    }
    st_put_u64(w->at, w->word);
    w->at += 8;
    w->word = w->used ? value >> (64 - w->used) : 0; /* the rest of the value */
    w->used = w->used + bits - 64;
}

/* Up to the next whole byte. */
static void end_bits(bit_writer *w)
{
    for (unsigned done = 0; done < w->used; done += 8)
        *w->at++ = (uint8_t)(w->word >> done);
    w->word = w->used = 0;
}

/* Number `i` of those of `bits` bits. Reads 16 bytes from its first byte on. */
static inline uint64_t get_bits(const uint8_t *bytes, unsigned i, unsigned bits)
{
    if (bits == 0)
        return 0;
    const uint8_t *at = bytes + (size_t)i * bits / 8;
    unsigned skipped = i * bits % 8;
    uint64_t value = st_get_u64(at) >> skipped;
    if (skipped + bits > 64)
        value |= st_get_u64(at + 8) << (64 - skipped);
    return value & UINT64_MAX >> (64 - bits);
}

/* ---- packing ---- */

size_t st_packet_pack(const st_run_entry *entries, unsigned count, unsigned position_bits, uint8_t *ret_bytes)
{
    uint64_t base = entries[0].hash, words = words_of(count), firsts[ST_RUN_PACKET / 64] = {0};
    unsigned hash_bits = width_of(entries[count - 1].hash - base), distinct = 0;
    bit_writer w = {.at = ret_bytes + ST_PACKET_HEAD + 8 * words};

    PF_ASSERT(count > 0 && count <= ST_RUN_PACKET);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && entries[i].hash == entries[i - 1].hash)
            continue;
        firsts[i / 64] |= UINT64_C(1) << i % 64;
        put_bits(&w, entries[i].hash - base, hash_bits);
        distinct++;
    }
    end_bits(&w);
    for (unsigned i = 0; i < count; i++)
        put_bits(&w, entries[i].position, position_bits);
    end_bits(&w);
    memset(ret_bytes, 0, ST_PACKET_HEAD);
    ret_bytes[0] = (uint8_t)hash_bits;
    ret_bytes[2] = (uint8_t)distinct;
    ret_bytes[3] = (uint8_t)(distinct >> 8);
    memcpy(ret_bytes + ST_PACKET_HEAD, firsts, 8 * words);
    size_t length = (size_t)(w.at - ret_bytes), padded = (length + 7) & ~(size_t)7;
    memset(w.at, 0, padded - length);
    return padded;
}

/* ---- reading ---- */

bool st_packet_open(const uint8_t *bytes, uint64_t length, unsigned count, unsigned position_bits, uint64_t base,
                    st_packet *ret_packet)
{
    uint64_t words = words_of(count), firsts = 0;

    if (length < ST_PACKET_HEAD + 8 * words)
        return false;
    ret_packet->base = base;
    ret_packet->count = count;
    ret_packet->position_bits = position_bits;
    ret_packet->hash_bits = bytes[0];
    ret_packet->distinct = bytes[2] | (unsigned)bytes[3] << 8;
    ret_packet->firsts = bytes + ST_PACKET_HEAD;
    ret_packet->hashes = ret_packet->firsts + 8 * words;
    if (ret_packet->hash_bits > 64)
        return false;
    for (uint64_t i = 0; i < words; i++)
        firsts += (unsigned)__builtin_popcountll(st_get_u64(ret_packet->firsts + 8 * i));
    if (count % 64 && st_get_u64(ret_packet->firsts + 8 * (words - 1)) >> count % 64 != 0)
        return false;
    uint64_t hash_bytes = bytes_of((uint64_t)ret_packet->distinct * ret_packet->hash_bits);
    ret_packet->positions = ret_packet->hashes + hash_bytes;
    uint64_t end = ST_PACKET_HEAD + 8 * words + hash_bytes + bytes_of((uint64_t)count * position_bits);
    return firsts == ret_packet->distinct && (ret_packet->firsts[0] & 1) && ((end + 7) & ~UINT64_C(7)) == length;
}

/* Which entry is the first of hash `number`, which there is. */
static unsigned first_of(const st_packet *packet, unsigned number)
{
    unsigned word = 0;

    if (packet->distinct == packet->count)
        return number;
    uint64_t bits = st_get_u64(packet->firsts);
    for (unsigned here; (here = (unsigned)__builtin_popcountll(bits)) <= number; number -= here)
        bits = st_get_u64(packet->firsts + (size_t)8 * ++word);
    for (; number; number--)
        bits &= bits - 1;
    return 64 * word + (unsigned)__builtin_ctzll(bits);
}

unsigned st_packet_seek(const st_packet *packet, uint64_t hash)
{
    unsigned low = 0, high = packet->distinct;

    if (hash <= packet->base)
        return 0;
    uint64_t wanted = hash - packet->base;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (get_bits(packet->hashes, middle, packet->hash_bits) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low == packet->distinct ? packet->count : first_of(packet, low);
}

static inline bool is_first(const st_packet *packet, unsigned entry)
{
    return packet->firsts[entry / 8] >> entry % 8 & 1;
}

/* The same of numbers that are not so wide that one could lie in nine bytes. */
static inline uint64_t get_short_bits(const uint8_t *bytes, unsigned i, unsigned bits)
{
    size_t at = (size_t)i * bits;
    return st_get_u64(bytes + at / 8) >> at % 8 & ((UINT64_C(1) << bits) - 1);
}

static void unpack_positions(const st_packet *packet, unsigned first, unsigned end, st_run_entry *ret_entries)
{
    const uint8_t *positions = packet->positions;
    unsigned bits = packet->position_bits;

    if (bits <= SHORT_BITS)
        for (unsigned i = first; i < end; i++)
            ret_entries[i - first].position = get_short_bits(positions, i, bits);
    else
        for (unsigned i = first; i < end; i++)
            ret_entries[i - first].position = get_bits(positions, i, bits);
}

/* How many hashes begin before an entry. */
static unsigned hashes_before(const st_packet *packet, unsigned entry)
{
    unsigned number = 0;

    for (unsigned word = 0; word < entry / 64; word++)
        number += (unsigned)__builtin_popcountll(st_get_u64(packet->firsts + (size_t)8 * word));
    if (entry % 64)
        number += (unsigned)__builtin_popcountll(st_get_u64(packet->firsts + (size_t)8 * (entry / 64)) &
                                                 ((UINT64_C(1) << entry % 64) - 1));
    return number;
}

void st_packet_unpack(const st_packet *packet, unsigned first, unsigned end, st_run_entry *ret_entries)
{
    unsigned number = hashes_before(packet, first);
    uint64_t hash = 0;

    PF_ASSERT(first < end && end <= packet->count);
    unpack_positions(packet, first, end, ret_entries);
    if (!is_first(packet, first))
        hash = packet->base + get_bits(packet->hashes, number - 1, packet->hash_bits);
    for (unsigned i = first; i < end; i++) {
        if (is_first(packet, i))
            hash = packet->base + get_bits(packet->hashes, number++, packet->hash_bits);
        ret_entries[i - first].hash = hash;
    }
}

bool st_packet_is_canonical(const uint8_t *bytes, uint64_t length, const st_packet *packet, uint64_t *position_bits)
{
    st_run_entry entries[ST_RUN_PACKET];
    uint8_t again[ST_PACKET_BYTES + 8];

    st_packet_unpack(packet, 0, packet->count, entries);
    for (unsigned i = 0; i < packet->count; i++)
        *position_bits |= entries[i].position;
    for (unsigned i = 1; i < packet->count; i++)
        if (entries[i].hash < entries[i - 1].hash ||
            (entries[i].hash == entries[i - 1].hash && entries[i].position <= entries[i - 1].position))
            return false;
    return st_packet_pack(entries, packet->count, packet->position_bits, again) == length &&
           memcmp(again, bytes, length) == 0;
}
