/*
 * Failpoints (see platform/failpoint.h): the parsed SLUICE_FAILPOINT, the passage counters, and the actions.
 *
 * A rule strikes when the counter of its point reaches exactly n, so it strikes once over all processes that share the
 * counters. Counters start in this process; pf_failpoints_share moves what was counted so far into the shared cells.
 */
#include "platform/failpoint.h"

static const char *const names[PF_FAILPOINT_COUNT] = {
#define PF_FAILPOINT_NAME(identifier, name) name,
    PF_FAILPOINTS(PF_FAILPOINT_NAME)
#undef PF_FAILPOINT_NAME
};

const char *pf_failpoint_name(pf_failpoint point)
{
    return (unsigned)point < PF_FAILPOINT_COUNT ? names[point] : "none";
}

#if SLUICE_FAILPOINTS

#include "platform/check.h"
#include "platform/clock.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RULES_MAX    16
#define SLEEP_MS_MAX UINT64_C(600000)

typedef enum action { ACTION_KILL, ACTION_STOP, ACTION_ERROR, ACTION_SLEEP, ACTION_KILLPOOL, ACTION_CRASH } action;

typedef struct rule {
    pf_failpoint point;
    action action;
    uint32_t milliseconds;
    uint32_t passage; /* 0: each */
} rule;

static const char *const action_names[] = {
    [ACTION_KILL] = "kill",   [ACTION_STOP] = "stop",         [ACTION_ERROR] = "error",
    [ACTION_SLEEP] = "sleep", [ACTION_KILLPOOL] = "killpool", [ACTION_CRASH] = "crash"};

static rule rules[RULES_MAX];
static unsigned rule_count;
static uint32_t own_counters[PF_FAILPOINT_COUNT];
static uint32_t *counters = own_counters;
static int supervisor;
static pf_failpoint_watch *watcher;
static void *watcher_context;
static const char *trace; /* opened for each line: workers close what they inherit */

static bool parse_number(const char *text, size_t length, uint64_t most, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (length == 0 || length > 9)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_value = value;
    return value <= most;
}

static bool parse_action(const char *text, size_t length, rule *ret_rule)
{
    uint64_t number;
    for (size_t i = 0; i < sizeof action_names / sizeof action_names[0]; i++) {
        if (i != ACTION_SLEEP && strlen(action_names[i]) == length && memcmp(text, action_names[i], length) == 0) {
            ret_rule->action = (action)i;
            return true;
        }
    }
    if (length <= 6 || memcmp(text, "sleep:", 6) != 0 || !parse_number(text + 6, length - 6, SLEEP_MS_MAX, &number))
        return false;
    ret_rule->action = ACTION_SLEEP;
    ret_rule->milliseconds = (uint32_t)number;
    return true;
}

/* One "name=action[@n]". */
static bool parse_rule(const char *text, size_t length, rule *ret_rule)
{
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return false;
    size_t name_length = (size_t)(equals - text);
    const char *word = equals + 1;
    size_t word_length = length - name_length - 1;
    const char *at = memchr(word, '@', word_length);
    *ret_rule = (rule){.point = PF_FAILPOINT_COUNT, .passage = 1};
    if (at && word_length - (size_t)(at - word) == 2 && at[1] == '*') {
        ret_rule->passage = 0;
        word_length = (size_t)(at - word);
    } else if (at) {
        uint64_t number;
        if (!parse_number(at + 1, word_length - (size_t)(at - word) - 1, UINT32_MAX, &number) || number == 0)
            return false;
        ret_rule->passage = (uint32_t)number;
        word_length = (size_t)(at - word);
    }
    for (unsigned i = 0; i < PF_FAILPOINT_COUNT; i++) {
        if (strlen(names[i]) == name_length && memcmp(names[i], text, name_length) == 0)
            ret_rule->point = (pf_failpoint)i;
    }
    return ret_rule->point != PF_FAILPOINT_COUNT && parse_action(word, word_length, ret_rule);
}

/* One line about a passage; what cannot be written is missing, and the test that looks for it fails. */
static void note(pf_failpoint point, uint32_t passage, const char *what)
{
    char line[96];
    int length = snprintf(line, sizeof line, "%s %u%s%s\n", names[point], passage, *what ? " " : "", what);
    int file = open(trace, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    if (length > 0 && (size_t)length < sizeof line)
        (void)!write(file, line, (size_t)length);
    (void)close(file);
}

sluice_status pf_failpoints_init(sluice_error *err)
{
    const char *text = getenv("SLUICE_FAILPOINT");
    rule_count = 0;
    trace = getenv("SLUICE_FAILPOINT_TRACE");
    memset(own_counters, 0, sizeof own_counters);
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (rule_count == RULES_MAX)
            return pf_fail(err, SLUICE_USAGE, "SLUICE_FAILPOINT: more than %d rules", RULES_MAX);
        if (!parse_rule(text, length, &rules[rule_count])) {
            rule_count = 0;
            return pf_fail_private(err, SLUICE_USAGE, "SLUICE_FAILPOINT: a rule is not understood",
                                   "SLUICE_FAILPOINT: \"%.*s\" is not name=action[@n]",
                                   (int)(length < 200 ? length : 200), text);
        }
        rule_count++;
        text += length;
        text += *text == ',';
    }
    return SLUICE_OK;
}

void pf_failpoints_share(uint32_t *cells)
{
    if (cells == counters)
        return;
    if (!cells) { /* the pool is over: what it counted goes on in this process */
        memcpy(own_counters, counters, sizeof own_counters);
        counters = own_counters;
        return;
    }
    for (unsigned i = 0; i < PF_FAILPOINT_COUNT; i++)
        __atomic_fetch_add(&cells[i], own_counters[i], __ATOMIC_RELAXED);
    memset(own_counters, 0, sizeof own_counters);
    counters = cells;
}

void pf_failpoints_pool(int supervisor_pid)
{
    supervisor = supervisor_pid;
}

void pf_failpoints_forget(void)
{
    rule_count = 0;
    (void)unsetenv("SLUICE_FAILPOINT");
}

static sluice_status strike(const rule *struck, sluice_error *err)
{
    if (trace)
        note(struck->point, struck->passage, action_names[struck->action]);
    switch (struck->action) {
    case ACTION_KILLPOOL:
        if (supervisor > 0)
            (void)kill(supervisor, SIGKILL);
        (void)kill(getpid(), SIGKILL);
        break;
    case ACTION_KILL:
        (void)kill(getpid(), SIGKILL);
        break;
    case ACTION_STOP:
        (void)kill(getpid(), SIGSTOP);
        break;
    case ACTION_CRASH:
        abort();
    case ACTION_SLEEP:
        pf_sleep_until(pf_deadline_in_ms(struck->milliseconds).monotonic_ns);
        break;
    case ACTION_ERROR:
        return pf_fail(err, SLUICE_IO, "failpoint %s", names[struck->point]);
    }
    return SLUICE_OK;
}

void pf_failpoints_watch(pf_failpoint_watch *watch, void *context)
{
    watcher = watch;
    watcher_context = context;
}

sluice_status pf_failpoint_hit(pf_failpoint point, sluice_error *err)
{
    PF_ASSERT((unsigned)point < PF_FAILPOINT_COUNT);
    if (watcher)
        watcher(watcher_context, point);
    if (rule_count == 0 && !trace)
        return SLUICE_OK;
    uint32_t passage = __atomic_add_fetch(&counters[point], 1, __ATOMIC_RELAXED);
    if (trace)
        note(point, passage, "");
    for (unsigned i = 0; i < rule_count; i++) {
        if (rules[i].point == point && (rules[i].passage == passage || rules[i].passage == 0))
            PF_TRY(strike(&rules[i], err));
    }
    return SLUICE_OK;
}

#else

#include <stdlib.h>

/* A build without failpoints says so, instead of letting a test believe that something was tried. */
sluice_status pf_failpoints_init(sluice_error *err)
{
    const char *text = getenv("SLUICE_FAILPOINT");
    if (text && *text)
        return pf_fail(err, SLUICE_USAGE, "SLUICE_FAILPOINT is set, but this build has no failpoints");
    return SLUICE_OK;
}

void pf_failpoints_share(uint32_t *cells)
{
    (void)cells;
}

void pf_failpoints_pool(int supervisor_pid)
{
    (void)supervisor_pid;
}

void pf_failpoints_forget(void)
{
}

void pf_failpoints_watch(pf_failpoint_watch *watch, void *context)
{
    (void)watch;
    (void)context;
}

sluice_status pf_failpoint_hit(pf_failpoint point, sluice_error *err)
{
    (void)point;
    (void)err;
    return SLUICE_OK;
}

#endif
