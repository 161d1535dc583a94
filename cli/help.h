/*
 * The help texts, made from the table of commands.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

sluice_status cli_print_help(cli_run *run, const cli_command *command, sluice_error *err);

#endif
