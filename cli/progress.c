/*
 * Showing progress (see cli/progress.h). The time left is that of the phase at hand: its tasks are of about one size.
 */
#include "cli/progress.h"
#include "cli/output.h"
#include "platform/clock.h"
#include "platform/terminal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 240
#define SHOW_EVERY_MS  200

void cli_progress_begin(cli_progress *progress, bool json, bool terminal)
{
    *progress = (cli_progress){.json = json, .terminal = terminal || pf_is_terminal(2), .began_ns = pf_monotonic_ns()};
    const char *every = getenv("SLUICE_PROGRESS_MS");
    progress->every_ns = (every ? strtol(every, NULL, 10) % 3600000 : SHOW_EVERY_MS) * INT64_C(1000000);
    progress->next_ns = progress->began_ns + progress->every_ns;
}

static void show_event(const wk_progress *now, int64_t elapsed_ms)
{
    char line[256];
    int length = snprintf(line, sizeof line,
                          "{\"event\":\"progress\",\"phase\":%u,\"tasks_done\":%u,\"tasks_total\":%u,\"rows\":%llu,"
                          "\"bytes\":%llu,\"seconds\":%.1f}\n",
                          now->phase, now->tasks_done, now->tasks_total, (unsigned long long)now->rows,
                          (unsigned long long)now->bytes, (double)elapsed_ms / 1000);
    if (length > 0 && (size_t)length < sizeof line)
        (void)fwrite(line, 1, (size_t)length, stderr);
}

/* Cut at the terminal's width, so that it can be written over. */
static void put_line(cli_progress *progress, char line[LINE_MAX_BYTES])
{
    unsigned columns = pf_terminal_columns();
    if (columns > 0 && columns < LINE_MAX_BYTES)
        line[columns - 1] = '\0';
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
    progress->shown = true;
}

static void show_line(cli_progress *progress, const wk_progress *now, int64_t elapsed_ms)
{
    char line[LINE_MAX_BYTES];
    char read[CLI_SIZE_TEXT];
    char rate[CLI_SIZE_TEXT];
    char left[64] = "";
    int64_t in_phase_ms = elapsed_ms - progress->phase_began_ms;
    cli_size_text(now->bytes, read);
    cli_size_text(elapsed_ms > 0 ? now->bytes * 1000 / (uint64_t)elapsed_ms : 0, rate);
    if (now->tasks_done > 0 && now->tasks_total > now->tasks_done && in_phase_ms > 500) {
        int64_t seconds = in_phase_ms * (now->tasks_total - now->tasks_done) / now->tasks_done / 1000 + 1;
        (void)snprintf(left, sizeof left, ", %lld s left in this phase", (long long)seconds);
    }
    (void)snprintf(line, sizeof line, "%llu rows, %s, %s/s, %u of %u tasks%s", (unsigned long long)now->rows, read,
                   rate, now->tasks_done, now->tasks_total, left);
    put_line(progress, line);
}

void cli_progress_show(void *context, const wk_progress *now, int64_t elapsed_ms)
{
    cli_progress *progress = context;
    if (now->phase != progress->phase) {
        progress->phase = now->phase;
        progress->phase_began_ms = elapsed_ms;
    }
    if (progress->json)
        show_event(now, elapsed_ms);
    else if (progress->terminal)
        show_line(progress, now, elapsed_ms);
}

/* ---- counted work ---- */

bool cli_progress_wanted(const cli_progress *progress)
{
    return progress->json || progress->terminal;
}

static void count_line(cli_progress *progress, const cli_work *now, double seconds)
{
    char line[LINE_MAX_BYTES], of[32] = "", bytes[CLI_SIZE_TEXT], rate[CLI_SIZE_TEXT],
                               moved[2 * CLI_SIZE_TEXT + 8] = "", left[48] = "";
    if (now->total > 0)
        (void)snprintf(of, sizeof of, " of %llu", (unsigned long long)now->total);
    if (now->bytes > 0) {
        cli_size_text(now->bytes, bytes);
        cli_size_text((uint64_t)((double)now->bytes / seconds), rate);
        (void)snprintf(moved, sizeof moved, ", %s, %s/s", bytes, rate);
    } else {
        (void)snprintf(moved, sizeof moved, ", %.0f/s", (double)now->done / seconds);
    }
    if (now->done > 0 && now->total > now->done)
        (void)snprintf(left, sizeof left, ", %.0f s left",
                       seconds * (double)(now->total - now->done) / (double)now->done + 1);
    (void)snprintf(line, sizeof line, "%llu%s %s%s%s", (unsigned long long)now->done, of, now->unit, moved, left);
    put_line(progress, line);
}

void cli_progress_count(cli_progress *progress, const cli_work *work)
{
    cli_work known = *work, *now = &known;
    if (known.total > 0 && known.total < known.done) /* it was about so many */
        known.total = known.done;
    int64_t time = cli_progress_wanted(progress) ? pf_monotonic_ns() : 0;
    if (time < progress->next_ns || time == 0)
        return;
    double seconds = (double)(time - progress->began_ns) / 1e9;
    progress->next_ns = time + progress->every_ns;
    if (progress->json)
        (void)fprintf(stderr,
                      "{\"event\":\"progress\",\"unit\":\"%s\",\"done\":%llu,\"total\":%llu,\"bytes\":%llu,"
                      "\"seconds\":%.1f}\n",
                      now->unit, (unsigned long long)now->done, (unsigned long long)now->total,
                      (unsigned long long)now->bytes, seconds);
    else
        count_line(progress, now, seconds);
}

void cli_progress_clear(cli_progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    progress->shown = false;
}
