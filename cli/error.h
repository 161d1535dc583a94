/*
 * Telling an error: for people on standard error, with --json also as one document on standard output.
 *
 *   sluice: people.csv:12: column age: "abc" is not an int32 (CONSTRAINT_TYPE)
 *   hint: ...
 *   operation 0190…: committed: no
 *
 * The document carries only what may be stored and sent: the safe message, a hint that knows the code alone, ids and
 * counts.
 */
#ifndef CLI_ERROR_H
#define CLI_ERROR_H

#include "cli/command.h"

/* One line on standard error, for what is not an error of the command: "sluice: TEXT". */
void cli_note(const char *fmt, ...) PF_PRINTF(1, 2);
/* A line of what a command does, for people, on standard error as it stands. (A co_infer_said: context unused.) */
void cli_say(void *context, const char *line);
/* The message, a hint, what became of the operation. Where the hint says GRAPH, the graph of the line is named, as a
 * shell takes it: commands in `...` work when they are pasted. `run` NULL: no line was read. */
void cli_print_error(const cli_run *run, const sluice_error *error);
/* Best effort: the command fails already. */
void cli_print_error_document(cli_run *run, const sluice_error *error);

#endif
