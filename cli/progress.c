/*
 * Showing progress (see cli/progress.h). The time left is that of the phase at hand: its tasks are of about one size.
 */
#include "cli/progress.h"
#include "cli/output.h"
#include "platform/terminal.h"
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 240

void cli_progress_begin(cli_progress *progress, bool json, bool terminal)
{
    *progress = (cli_progress){.json = json, .terminal = terminal || pf_is_terminal(2)};
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

static void show_line(cli_progress *progress, const wk_progress *now, int64_t elapsed_ms)
{
    char line[LINE_MAX_BYTES];
    char read[CLI_SIZE_TEXT];
    char rate[CLI_SIZE_TEXT];
    char left[64] = "";
    unsigned columns = pf_terminal_columns();
    int64_t in_phase_ms = elapsed_ms - progress->phase_began_ms;
    cli_size_text(now->bytes, read);
    cli_size_text(elapsed_ms > 0 ? now->bytes * 1000 / (uint64_t)elapsed_ms : 0, rate);
    if (now->tasks_done > 0 && now->tasks_total > now->tasks_done && in_phase_ms > 500) {
        int64_t seconds = in_phase_ms * (now->tasks_total - now->tasks_done) / now->tasks_done / 1000 + 1;
        (void)snprintf(left, sizeof left, ", %lld s left in this phase", (long long)seconds);
    }
    int length = snprintf(line, sizeof line, "%llu rows, %s, %s/s, %u of %u tasks%s", (unsigned long long)now->rows,
                          read, rate, now->tasks_done, now->tasks_total, left);
    if (length < 0)
        return;
    if (columns < sizeof line && (unsigned)length >= columns)
        line[columns - 1] = '\0';
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
    progress->shown = true;
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

void cli_progress_clear(cli_progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    progress->shown = false;
}
