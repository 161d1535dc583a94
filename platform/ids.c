/*
 * Identities: UUIDv7 by RFC 9562, text forms by libuuid (see platform/ids.h). Reading one is done here: records hold
 * many.
 */
#include "platform/ids.h"
#include "platform/clock.h"
#include <string.h>
#include <uuid/uuid.h>

pf_id pf_id_new(void)
{
    pf_id id;
    pf_random_bytes(id.bytes, sizeof id.bytes);
    uint64_t milliseconds = (uint64_t)(pf_wall_us() / 1000);
    for (unsigned i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(milliseconds >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0F) | 0x70); /* version 7 */
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3F) | 0x80); /* variant of RFC 4122 */
    return id;
}

/* Hyphens stand before these bytes. */
static bool is_group(unsigned byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void pf_id_text(const pf_id *id, char ret_text[PF_ID_TEXT])
{
    uuid_unparse_lower(id->bytes, ret_text);
}

/* 16: no digit. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    unsigned letter = (unsigned)(uint8_t)c | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 16;
}

bool pf_id_parse(const char *text, pf_id *ret_id)
{
    pf_id id;
    for (unsigned i = 0; i < sizeof id.bytes; i++) {
        if (is_group(i) && *text++ != '-')
            return false;
        unsigned high = digit_of(text[0]), low = high < 16 ? digit_of(text[1]) : 16; /* not behind the text's end */
        if (low == 16)
            return false;
        id.bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    if (*text != '\0')
        return false;
    *ret_id = id;
    return true;
}

bool pf_id_equal(const pf_id *a, const pf_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool pf_id_is_nil(const pf_id *id)
{
    static const pf_id nil;
    return pf_id_equal(id, &nil);
}

bool pf_id_has_time(const pf_id *id)
{
    return (id->bytes[6] & 0xF0) == 0x70 && (id->bytes[8] & 0xC0) == 0x80;
}

int64_t pf_id_time_ms(const pf_id *id)
{
    int64_t milliseconds = 0;
    for (unsigned i = 0; i < 6; i++)
        milliseconds = milliseconds << 8 | id->bytes[i];
    return milliseconds;
}
