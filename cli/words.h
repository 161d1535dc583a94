/*
 * A command line as words, run from the first check to its exit status: by main, and by a supervisor's runner.
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli/command.h"

/* Runs `command` (a name, or an option that stands for one) with the words behind it, prints what it has to say on the
 * standard descriptors, and returns its exit status. `task` and `settle`: of a runner, which has the last say in what
 * was parsed; NULL for a command line, which may be handed to a supervisor. */
int cli_run_words(const char *command, char *const *words, uint32_t count, const struct co_host_task *task,
                  sluice_status (*settle)(cli_run *run, sluice_error *err));

#endif
