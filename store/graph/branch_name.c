/*
 * Branch names: data, never paths. Compared byte by byte; any two different names are different branches.
 */
#include "store/format/json.h"
#include "store/graph/graph.h"

#include <string.h>

#define NAME_MAX_BYTES 255u

static bool has_control(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < 0x20 || bytes[i] == 0x7F)
            return true;
        if (bytes[i] == 0xC2 && i + 1 < length && bytes[i + 1] < 0xA0) /* U+0080 to U+009F */
            return true;
    }
    return false;
}

bool st_branch_name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_BYTES || !st_utf8_is_valid(name, length) ||
        has_control((const uint8_t *)name, length))
        return false;
    if (name[0] == '/' || name[length - 1] == '/')
        return false;
    for (size_t i = 1; i < length; i++)
        if (name[i] == name[i - 1] && (name[i] == '/' || name[i] == '.'))
            return false;
    return true;
}
