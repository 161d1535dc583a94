/*
 * The progress of a job: one line on a terminal that is written over, JSON events with --json, nothing otherwise. On
 * standard error.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "worker/task.h"

typedef struct cli_progress {
    bool json, terminal;
    bool shown;                          /* a line stands on the terminal */
    int64_t began_ns, next_ns, every_ns; /* of counted work; nothing is shown before */
    uint32_t phase;                      /* of the last call */
    int64_t phase_began_ms;              /* when it was first seen */
} cli_progress;

/* `terminal`: standard error leads to one, though it is none itself. */
void cli_progress_begin(cli_progress *progress, bool json, bool terminal);
/* Fits co_load_options.progress; `context` is the cli_progress. */
void cli_progress_show(void *context, const wk_progress *now, int64_t elapsed_ms);
/* Work that is counted: so many of so many things ("files", "rows"). */
typedef struct cli_work {
    const char *unit;
    uint64_t done, total; /* total: about; 0: not known */
    uint64_t bytes;       /* that went with it; 0: none is said */
} cli_work;
/* Is anything shown at all? Else a caller need not find out what there is to do. */
bool cli_progress_wanted(const cli_progress *progress);
/* Five times a second (every SLUICE_PROGRESS_MS) it says what was done, how fast, and how long the rest takes. */
void cli_progress_count(cli_progress *progress, const cli_work *work);
/* Takes the line away, before anything else is printed on standard error. */
void cli_progress_clear(cli_progress *progress);

#endif
