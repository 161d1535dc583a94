/*
 * The supervisor's log on standard error: one event a line, as logfmt or as JSON (see coord/host/host.h). What is said
 * are ids, counts, codes and durations; who calls host_log gives it nothing else.
 */
#include "coord/host/host.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 512u

static bool as_json;

void host_log_as(bool json)
{
    as_json = json;
}

static int level_of(const char *name)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(levels[i], name) == 0)
            return i;
    }
    return 2;
}

static bool is_number(const char *text, size_t length)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 15 && digits == length && (digits == 1 || text[0] != '0');
}

/* `key=value key="some value"`, as the members of an object. */
static void put_members(st_json *json, const char *line)
{
    while (*line) {
        char name[64];
        size_t length = strcspn(line, "= ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, line);
        line += length;
        if (*line != '=')
            return;
        bool quoted = *++line == '"';
        line += quoted;
        length = strcspn(line, quoted ? "\"" : " ");
        st_json_name(json, name);
        if (!quoted && is_number(line, length))
            st_json_raw(json, line, length);
        else
            st_json_lossy_text(json, line, length);
        line += length + (quoted && line[length]);
        line += *line == ' ';
    }
}

static void write_json(int64_t now, const char *level, const char *event, const char *members)
{
    pf_buffer line = {0};
    st_json json;
    char time[32];
    (void)snprintf(time, sizeof time, "%lld.%06lld", (long long)(now / 1000000), (long long)(now % 1000000));
    st_json_begin(&json, &line);
    st_json_object(&json);
    st_json_name(&json, "time");
    st_json_raw(&json, time, strlen(time));
    st_json_name(&json, "level");
    st_json_text(&json, level);
    st_json_name(&json, "event");
    st_json_text(&json, event);
    put_members(&json, members);
    st_json_object_end(&json);
    if (st_json_end(&json, true, NULL) == SLUICE_OK)
        (void)fwrite(line.data, 1, line.length, stderr);
    pf_buffer_free(&line);
}

void host_log(const char *level, const char *event, const char *fmt, ...)
{
    const char *wanted = getenv("SLUICE_LOG");
    char members[LINE];
    va_list args;
    if (level_of(level) > level_of(wanted ? wanted : "info"))
        return;
    int64_t now = pf_wall_us();
    va_start(args, fmt);
    (void)vsnprintf(members, sizeof members, fmt, args);
    va_end(args);
    if (as_json)
        write_json(now, level, event, members);
    else
        (void)fprintf(stderr, "time=%lld.%06lld level=%s event=%s %s\n", (long long)(now / 1000000),
                      (long long)(now % 1000000), level, event, members);
    (void)fflush(stderr);
}
