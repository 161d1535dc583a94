/*
 * Parsing the mount table (see platform/mountinfo.h).
 */
#include "platform/mountinfo.h"

#include <limits.h>
#include <string.h>

#define POINT_MAX 4096u

/* ---- fields ---- */

/* The next field of a line, up to a space; an empty one at its end. */
static pf_slice next_field(pf_slice *line)
{
    pf_slice field = {.at = line->at, .length = 0};

    while (field.length < line->length && field.at[field.length] != ' ')
        field.length++;
    line->at += field.length;
    line->length -= field.length;
    if (line->length > 0) {
        line->at++;
        line->length--;
    }
    return field;
}

static bool parse_number(pf_slice *text, unsigned *ret_value)
{
    unsigned value = 0;
    size_t i = 0;

    for (; i < text->length && text->at[i] >= '0' && text->at[i] <= '9'; i++) {
        if (value > (UINT_MAX - 9) / 10)
            return false;
        value = value * 10 + (unsigned)(text->at[i] - '0');
    }
    if (i == 0)
        return false;
    text->at += i;
    text->length -= i;
    *ret_value = value;
    return true;
}

static bool parse_device(pf_slice text, pf_mount *mount)
{
    if (!parse_number(&text, &mount->major) || text.length == 0 || text.at[0] != ':')
        return false;
    text.at++;
    text.length--;
    return parse_number(&text, &mount->minor) && text.length == 0;
}

static bool parse_line(pf_slice line, pf_mount *ret_mount)
{
    pf_slice id = next_field(&line), device;

    (void)next_field(&line); /* the parent's id */
    device = next_field(&line);
    if (!parse_number(&id, &ret_mount->id) || id.length != 0 || !parse_device(device, ret_mount))
        return false;
    (void)next_field(&line); /* the root inside the file system */
    ret_mount->point = next_field(&line);
    ret_mount->options = next_field(&line);
    while (line.length > 0 && !pf_slice_is(next_field(&line), "-")) {
    }
    ret_mount->type = next_field(&line);
    ret_mount->source = next_field(&line);
    ret_mount->super_options = next_field(&line);
    return ret_mount->point.length > 0 && ret_mount->super_options.length > 0;
}

/* Takes the next line off the text; false at its end. */
static bool next_line(const char **text, pf_slice *ret_line)
{
    if (**text == 0)
        return false;
    *ret_line = (pf_slice){.at = *text, .length = strcspn(*text, "\n")};
    *text += ret_line->length;
    *text += **text == '\n';
    return true;
}

/* ---- slices ---- */

bool pf_slice_is(pf_slice slice, const char *text)
{
    return strlen(text) == slice.length && memcmp(slice.at, text, slice.length) == 0;
}

static bool is_octal(const char *at)
{
    for (unsigned i = 1; i <= 3; i++)
        if (at[i] < '0' || at[i] > '7')
            return false;
    return true;
}

void pf_slice_copy(pf_slice slice, char *ret_text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < slice.length && used + 1 < size; i++) {
        if (slice.at[i] == '\\' && slice.length - i > 3 && is_octal(slice.at + i)) {
            ret_text[used++] = (char)(unsigned char)((slice.at[i + 1] - '0') * 64 + (slice.at[i + 2] - '0') * 8 +
                                                     slice.at[i + 3] - '0');
            i += 3;
        } else {
            ret_text[used++] = slice.at[i];
        }
    }
    ret_text[used] = 0;
}

static bool list_has(pf_slice list, const char *option)
{
    while (list.length > 0) {
        size_t length = 0;
        while (length < list.length && list.at[length] != ',')
            length++;
        if (pf_slice_is((pf_slice){.at = list.at, .length = length}, option))
            return true;
        length += length < list.length;
        list.at += length;
        list.length -= length;
    }
    return false;
}

bool pf_mount_has(const pf_mount *mount, const char *option)
{
    return list_has(mount->options, option) || list_has(mount->super_options, option);
}

/* ---- finding ---- */

bool pf_mount_by_id(const char *mountinfo, unsigned id, pf_mount *ret_mount)
{
    pf_slice line;

    while (next_line(&mountinfo, &line))
        if (parse_line(line, ret_mount) && ret_mount->id == id)
            return true;
    return false;
}

/* `path` is `point` or lies below it. */
static bool lies_in(const char *path, const char *point, size_t length)
{
    if (length == 1 && point[0] == '/')
        return path[0] == '/';
    return strncmp(path, point, length) == 0 && (path[length] == 0 || path[length] == '/');
}

bool pf_mount_by_path(const char *mountinfo, const char *path, pf_mount *ret_mount)
{
    char point[POINT_MAX];
    size_t longest = 0;
    pf_mount mount;
    pf_slice line;

    while (next_line(&mountinfo, &line)) {
        size_t length;
        if (!parse_line(line, &mount))
            continue;
        pf_slice_copy(mount.point, point, sizeof point);
        length = strlen(point);
        if (length >= longest && lies_in(path, point, length)) {
            longest = length;
            *ret_mount = mount;
        }
    }
    return longest > 0;
}
