/*
 * The progress of a job: one line on a terminal that is written over, JSON events with --json, nothing otherwise. On
 * standard error.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "worker/task.h"

typedef struct cli_progress {
    bool json, terminal;
    bool shown;             /* a line stands on the terminal */
    uint32_t phase;         /* of the last call */
    int64_t phase_began_ms; /* when it was first seen */
} cli_progress;

/* `terminal`: standard error leads to one, though it is none itself. */
void cli_progress_begin(cli_progress *progress, bool json, bool terminal);
/* Fits co_load_options.progress; `context` is the cli_progress. */
void cli_progress_show(void *context, const wk_progress *now, int64_t elapsed_ms);
/* Takes the line away, before anything else is printed on standard error. */
void cli_progress_clear(cli_progress *progress);

#endif
