#include "worker/ingest/fault.h"

#include "store/format/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool wk_fault_before(const wk_fault *a, const wk_fault *b)
{
    if (!a->present || !b->present)
        return a->present;
    if (a->argument != b->argument)
        return a->argument < b->argument;
    if (a->record != b->record)
        return a->record < b->record;
    if (a->column != b->column)
        return a->column < b->column;
    return a->rule < b->rule;
}

void wk_fault_least(wk_fault *least, const wk_fault *other)
{
    if (wk_fault_before(other, least))
        *least = *other;
}

/* Copies text for a terminal: what would move its cursor or is not UTF-8 becomes \xNN. Cut at whole characters. */
static size_t copy_printable(char *to, size_t room, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length;) {
        size_t sequence = st_utf8_sequence((const uint8_t *)text + i, length - i);
        bool plain = sequence > 1 ? !((uint8_t)text[i] == 0xc2 && (uint8_t)text[i + 1] < 0xa0)
                                  : sequence == 1 && (uint8_t)text[i] >= 0x20 && text[i] != 0x7f;
        size_t bytes = sequence ? sequence : 1, wanted = plain ? bytes : 4 * bytes;
        if (used + wanted + 1 > room)
            break;
        if (plain)
            memcpy(to + used, text + i, bytes);
        else
            for (size_t j = 0; j < bytes; j++)
                (void)snprintf(to + used + 4 * j, 5, "\\x%02x", (unsigned)(uint8_t)text[i + j]);
        used += wanted;
        i += bytes;
    }
    to[used] = '\0';
    return used;
}

const char *wk_shown(const void *text, size_t length, char ret_shown[WK_SHOWN_ROOM])
{
    size_t shown = length;

    if (shown > WK_SHOWN_MAX) {
        shown = WK_SHOWN_MAX;
        while (shown > WK_SHOWN_MAX - 4 && (((const uint8_t *)text)[shown] & 0xc0) == 0x80)
            shown--;
    }
    ret_shown[0] = '"';
    size_t used = 1 + copy_printable(ret_shown + 1, WK_SHOWN_ROOM - 6, text, shown);
    memcpy(ret_shown + used, shown < length ? "...\"" : "\"", shown < length ? 5 : 2);
    return ret_shown;
}

void wk_fault_set(wk_fault *fault, sluice_status code, const char *fmt, ...)
{
    char text[WK_FAULT_TEXT];
    va_list arguments;

    va_start(arguments, fmt);
    (void)vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    fault->present = true;
    fault->code = code;
    fault->hint[0] = '\0';
    (void)copy_printable(fault->text, sizeof fault->text, text, strlen(text));
}

void wk_fault_from_error(wk_fault *fault, const sluice_error *error)
{
    wk_fault_set(fault, error->code, "%s", error->text);
    (void)copy_printable(fault->hint, sizeof fault->hint, error->hint, strnlen(error->hint, sizeof error->hint));
}

static const char *safe_text(sluice_status code)
{
    switch ((unsigned)code) {
    case SLUICE_KEY_CONFLICT:
        return "a key of the input is already taken";
    case SLUICE_CONSTRAINT_TYPE:
        return "a value of the input is not of its column's type";
    case SLUICE_CONSTRAINT_NULL:
        return "a value that may not be null is missing in the input";
    case SLUICE_CONSTRAINT_UNIQUE:
        return "a unique value of the input is already taken";
    case SLUICE_CONSTRAINT_ENDPOINT:
        return "an edge of the input names a node that does not exist";
    case SLUICE_CONSTRAINT_CARDINALITY:
        return "the input gives a node more edges than its type allows";
    case SLUICE_CONSTRAINT_CHECK:
        return "a value of the input breaks a check";
    case SLUICE_NOT_FOUND:
        return "an object that the input names does not exist";
    case SLUICE_WRITE_CONFLICT:
        return "what the input asserts does not hold";
    case SLUICE_INPUT_SYNTAX:
        return "the input is not well formed";
    case SLUICE_RESOURCE_LIMIT:
        return "the input exceeds a limit";
    default:
        return "the input cannot be loaded";
    }
}

sluice_status wk_fault_fail(const wk_fault *fault, const char *file, sluice_error *err)
{
    char line[24] = "";

    if (fault->line > 0)
        (void)snprintf(line, sizeof line, ":%llu", (unsigned long long)fault->line);
    (void)pf_fail_private(err, fault->code, safe_text(fault->code), "%s%s: %s", file, line, fault->text);
    if (fault->hint[0])
        pf_hint(err, "%s", fault->hint);
    pf_details(err, "{\"input\":%u,\"line\":%llu,\"column\":%u}", (unsigned)fault->argument,
               (unsigned long long)fault->line, (unsigned)fault->column);
    return fault->code;
}
