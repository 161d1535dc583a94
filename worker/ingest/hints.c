#include "worker/ingest/hints.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wk_hint(wk_fault *fault, const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    int length = vsnprintf(fault->hint, sizeof fault->hint, fmt, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof fault->hint)
        fault->hint[0] = '\0'; /* as pf_hint */
}

void wk_hint_type(st_type type, wk_fault *fault)
{
    static const char *const hints[] = {
        [ST_BOOL] = "write true or false",
        [ST_INT32] = "write a whole number from -2147483648 to 2147483647, in digits only, such as -12",
        [ST_INT64] =
            "write a whole number from -9223372036854775808 to 9223372036854775807, in digits only, such as -12",
        [ST_UINT64] = "write a whole number from 0 to 18446744073709551615, in digits only",
        [ST_FLOAT32] =
            "write a number with a point and without thousands marks, such as -1.5 or 2e10 (or NaN, Infinity)",
        [ST_FLOAT64] =
            "write a number with a point and without thousands marks, such as -1.5 or 2e10 (or NaN, Infinity)",
        [ST_STRING] = "convert the file to UTF-8 first, for instance: iconv -f LATIN1 -t UTF-8",
        [ST_BYTES] = "write the bytes in base64 with its padding, such as c2x1aWNlIQ==",
        [ST_DATE] = "write a date such as 2026-01-31",
        [ST_TIMESTAMP] =
            "write a time such as 2026-01-31T12:34:56.789Z, or with an offset such as +01:00 in place of the Z",
    };

    if ((size_t)type < sizeof hints / sizeof *hints && hints[type])
        wk_hint(fault, "%s", hints[type]);
}

void wk_hint_null(const char *text, size_t length, wk_fault *fault)
{
    static const char *const words[] = {"NULL", "null", "Null", "\\N", "NA", "N/A",
                                        "n/a",  "None", "nil",  "NaN", "-",  "?"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
            wk_hint(fault, "if this stands for no value, add: --null '%s'", words[i]);
}

void wk_hint_quote(const char *text, size_t length, bool has_escape, wk_fault *fault)
{
    if (!has_escape && length > 0 && memmem(text, length, "\\\"", 2) != NULL)
        wk_hint(fault, "if a backslash stands before quotes in this file, add: --escape '\\'");
    else
        wk_hint(fault, "a quote inside quotes is written twice, as in \"say \"\"yes\"\"\"");
}

void wk_hint_line_end(wk_fault *fault)
{
    wk_hint(fault, "lines end with LF or CR LF; convert the file first, for instance: tr '\\r' '\\n'");
}

void wk_hint_count(uint64_t given, uint32_t wanted, wk_fault *fault)
{
    if (given > wanted)
        wk_hint(fault, "put quotes around a value that holds the delimiter, or --on-error skip to leave such rows out");
    else
        wk_hint(fault,
                "a value that is not there still needs its delimiter, or --on-error skip to leave such rows out");
}

/* One name that holds what often delimits names. */
static bool hint_at_delimiter(const wk_name *name, wk_fault *fault)
{
    static const char *const flags[] = {"';'", "tab", "'|'"};
    static const char marks[] = {';', '\t', '|'};
    int found = -1;

    for (int i = 0; i < 3; i++)
        if (name->length > 0 && memchr(name->text, marks[i], name->length) != NULL)
            found = found < 0 ? i : 3;
    if (found < 0 || found == 3)
        return false;
    wk_hint(fault, "if that is several columns, add: --delimiter %s", flags[found]);
    return true;
}

/* All columns of a type as --columns wants them; false when they have no room. */
static bool list_columns(const st_type_def *type, char *list, size_t room)
{
    size_t used = (size_t)snprintf(list, room, "%s", type->edge ? "from,to" : "");

    for (uint32_t i = 0; i < type->property_count && used < room; i++) {
        if (strpbrk(type->properties[i].name, ",' ") != NULL)
            return false;
        used += (size_t)snprintf(list + used, room - used, "%s%s", used ? "," : "", type->properties[i].name);
    }
    return used < room;
}

static bool is_word(const wk_name *name, const char *word)
{
    return name->length == strlen(word) && (name->length == 0 || memcmp(name->text, word, name->length) == 0);
}

/* Letters, digits, underscores, no digit first: what names of columns mostly are, and all values of a row seldom. */
static bool is_plain_name(const wk_name *name)
{
    bool plain = name->length > 0 && !(name->text[0] >= '0' && name->text[0] <= '9');

    for (size_t i = 0; i < name->length; i++) {
        char c = name->text[i];
        plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    return plain;
}

/* Is a name one of the type's heading? */
static bool is_known(const wk_name *name, const st_type_def *type)
{
    static const char *const ends[] = {"from", "to", "src", "dst", "source", "target"};
    bool known = name->length > 0 && memchr(name->text, ':', name->length) != NULL;

    for (uint32_t i = 0; i < type->property_count; i++)
        known |= is_word(name, type->properties[i].name);
    for (size_t i = 0; type->edge && i < sizeof ends / sizeof *ends; i++)
        known |= is_word(name, ends[i]);
    return known;
}

void wk_hint_heading(const wk_name *names, uint32_t count, const st_type_def *type, wk_fault *fault)
{
    char list[160];
    bool any_known = false, all_plain = true, from = false, to = false;

    for (uint32_t i = 0; i < count; i++) {
        any_known |= is_known(&names[i], type);
        all_plain &= is_plain_name(&names[i]);
        from |= is_word(&names[i], "from");
        to |= is_word(&names[i], "to");
    }
    if (from && to && !type->edge) {
        wk_hint(fault, "from and to are columns of edges: is it the file of another type?");
        return;
    }

    if (count == 1 && hint_at_delimiter(&names[0], fault))
        return;
    if (!any_known && !all_plain && count == type->property_count + (type->edge ? 2 : 0) &&
        list_columns(type, list, sizeof list))
        wk_hint(fault, "if the first line is no heading, add: --no-header --columns %s", list);
}
