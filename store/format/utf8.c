/*
 * UTF-8 as Unicode defines it (no overlong forms, no surrogates, nothing above U+10FFFF).
 */
#include "store/format/json.h"

static bool is_tail(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t st_utf8_sequence(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    uint8_t first = bytes[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4 || length < 2 || !is_tail(bytes[1]))
        return 0;
    if (first < 0xE0)
        return 2;
    if (length < 3 || !is_tail(bytes[2]))
        return 0;
    if (first < 0xF0) {
        bool overlong = first == 0xE0 && bytes[1] < 0xA0;
        bool surrogate = first == 0xED && bytes[1] >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (length < 4 || !is_tail(bytes[3]))
        return 0;
    bool overlong = first == 0xF0 && bytes[1] < 0x90;
    bool beyond = first == 0xF4 && bytes[1] >= 0x90;
    return overlong || beyond ? 0 : 4;
}

bool st_utf8_is_valid(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length > 0) {
        size_t size = st_utf8_sequence(at, length);
        if (size == 0)
            return false;
        at += size;
        length -= size;
    }
    return true;
}
