/* See cursor.h. */
#include "store/read/cursor.h"
#include "platform/check.h"
#include "platform/digest.h"
#include "store/schema/scalar.h"
#include <string.h>

#define PREFIX "sc1"
#define BODY   44u /* incarnation, generation, index, commit, told: little-endian */
#define CHECK  4u

static void put_number(uint8_t *bytes, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void st_cursor_text(const st_cursor *cursor, char ret_text[ST_CURSOR_TEXT])
{
    uint8_t bytes[BODY + CHECK];
    put_number(bytes, cursor->incarnation, 8);
    put_number(bytes + 8, cursor->generation, 8);
    put_number(bytes + 16, cursor->index, 4);
    memcpy(bytes + 20, cursor->commit.bytes, 16);
    put_number(bytes + 36, cursor->told, 8);
    put_number(bytes + BODY, pf_xxh64_of(bytes, BODY), CHECK);
    memcpy(ret_text, PREFIX, 3);
    size_t length = st_format_base64(bytes, sizeof bytes, ret_text + 3);
    PF_ALWAYS(length + 3 == ST_CURSOR_TEXT - 1);
    for (char *at = ret_text + 3; at < ret_text + ST_CURSOR_TEXT - 1; at++)
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    ret_text[ST_CURSOR_TEXT - 1] = '\0';
}

bool st_cursor_parse(const char *text, st_cursor *ret_cursor, bool *ret_whole)
{
    char plain[ST_CURSOR_TEXT];
    uint8_t bytes[BODY + CHECK];
    size_t length = strlen(text), got = 0;
    *ret_whole = false;
    if (strncmp(text, PREFIX, 3) != 0 || length + 8 < ST_CURSOR_TEXT) /* a shorter one is some other word */
        return false;
    if (length != ST_CURSOR_TEXT - 1)
        return true;
    for (size_t i = 3; i < length; i++) {
        if (text[i] == '+' || text[i] == '/')
            return true;
        plain[i - 3] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    }
    if (st_parse_base64(plain, length - 3, bytes, &got) != ST_PARSE_OK || got != sizeof bytes ||
        get_number(bytes + BODY, CHECK) != (pf_xxh64_of(bytes, BODY) & UINT32_MAX))
        return true;
    *ret_cursor = (st_cursor){.incarnation = get_number(bytes, 8),
                              .generation = get_number(bytes + 8, 8),
                              .index = (uint32_t)get_number(bytes + 16, 4),
                              .told = get_number(bytes + 36, 8)};
    memcpy(ret_cursor->commit.bytes, bytes + 20, 16);
    *ret_whole = true;
    return true;
}
