/* Little-endian numbers in the bytes of coord/'s own formats. */
#ifndef COORD_BYTES_H
#define COORD_BYTES_H

#include <stdint.h>

static inline void co_put_u32(uint8_t *bytes, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline void co_put_u64(uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t co_get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t co_get_u64(const uint8_t *bytes)
{
    return (uint64_t)co_get_u32(bytes) | (uint64_t)co_get_u32(bytes + 4) << 32;
}

#endif
