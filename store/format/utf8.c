/*
 * UTF-8 (utf8.h). Plain text is mostly ASCII, so eight bytes at a time are tested for a high bit first; the rest goes
 * through the table of well-formed sequences (Unicode 15, table 3-7), one sequence at a time.
 */
#include "store/format/utf8.h"
#include "platform/check.h"
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

size_t st_utf8_sequence(const uint8_t *bytes, size_t left)
{
    const uint8_t *p = bytes;
    uint8_t low = 0x80, high = 0xBF;
    size_t length;
    if (left == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        length = 2;
    } else if ((p[0] & 0xF0) == 0xE0) {
        length = 3;
        low = p[0] == 0xE0 ? 0xA0 : low;
        high = p[0] == 0xED ? 0x9F : high;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        length = 4;
        low = p[0] == 0xF0 ? 0x90 : low;
        high = p[0] == 0xF4 ? 0x8F : high;
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

bool st_utf8_is_valid(const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    size_t at = 0;
    while (at < length) {
        while (length - at >= 8) {
            uint64_t word;
            memcpy(&word, p + at, 8);
            if (word & HIGH_BITS)
                break;
            at += 8;
        }
        if (at == length)
            break;
        size_t step = st_utf8_sequence(p + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

uint64_t st_utf8_code_points(const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    uint64_t points = 0;
    for (size_t i = 0; i < length; i++)
        points += (p[i] & 0xC0) != 0x80;
    return points;
}

size_t st_utf8_put(uint32_t code_point, uint8_t ret_bytes[4])
{
    if (code_point < 0x80) {
        ret_bytes[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        ret_bytes[0] = (uint8_t)(0xC0 | (code_point >> 6));
        ret_bytes[1] = (uint8_t)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        ret_bytes[0] = (uint8_t)(0xE0 | (code_point >> 12));
        ret_bytes[1] = (uint8_t)(0x80 | ((code_point >> 6) & 0x3F));
        ret_bytes[2] = (uint8_t)(0x80 | (code_point & 0x3F));
        return 3;
    }
    ret_bytes[0] = (uint8_t)(0xF0 | (code_point >> 18));
    ret_bytes[1] = (uint8_t)(0x80 | ((code_point >> 12) & 0x3F));
    ret_bytes[2] = (uint8_t)(0x80 | ((code_point >> 6) & 0x3F));
    ret_bytes[3] = (uint8_t)(0x80 | (code_point & 0x3F));
    return 4;
}

size_t st_utf8_get(const void *bytes, size_t length, uint32_t *ret_code_point)
{
    const uint8_t *p = bytes;
    static const uint8_t first_bits[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    PF_ASSERT(length > 0);
    size_t step = st_utf8_sequence(p, length);
    PF_ASSERT(step > 0);
    uint32_t point = p[0] & first_bits[step];
    for (size_t i = 1; i < step; i++)
        point = point << 6 | (p[i] & 0x3Fu);
    *ret_code_point = point;
    return step;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not 0 when any of the eight bytes is zero. */
static uint64_t any_zero(uint64_t eight)
{
    return (eight - EACH(1)) & ~eight & EACH(0x80);
}

static bool all_plain(const uint8_t *bytes)
{
    uint64_t eight;
    memcpy(&eight, bytes, sizeof(eight));
    uint64_t below_space = (eight - EACH(0x20)) & ~eight & EACH(0x80);
    return (below_space | (eight & EACH(0x80)) | any_zero(eight ^ EACH('"')) | any_zero(eight ^ EACH('\\'))) == 0;
}

size_t st_plain_length(const uint8_t *bytes, size_t length)
{
    size_t at = 0;
    while (length - at >= sizeof(uint64_t) && all_plain(bytes + at))
        at += sizeof(uint64_t);
    while (at < length && bytes[at] >= 0x20 && bytes[at] < 0x80 && bytes[at] != '"' && bytes[at] != '\\')
        at++;
    return at;
}
