/*
 * help: the commands and their options, as text and as the manual page sluice(1), both from the table of commands.
 */
#include "cli/help.h"
#include "cli/output.h"
#include <stdio.h>
#include <string.h>

#define HELP_INDENT 32

#define WHAT_IT_IS "A crash-safe property-graph store for one Linux machine, written by many processes at once."

static const struct {
    int status;
    const char *meaning;
} exits[] = {{0, "done"},
             {1, "failed"},
             {2, "usage"},
             {3, "conflict"},
             {4, "bad data"},
             {5, "recovery required"},
             {6, "corrupt"},
             {7, "unsupported"},
             {8, "not found or exists"},
             {9, "another request had this id"},
             {10, "no space or a limit"},
             {130, "interrupted"}};
#define EXITS (sizeof exits / sizeof exits[0])

#define OPTION_TEXT 128

static void option_text(const cli_option *option, char ret_text[OPTION_TEXT])
{
    char letter[8] = "";
    if (option->letter)
        (void)snprintf(letter, sizeof letter, "-%c%s", option->letter, option->name ? ", " : "");
    (void)snprintf(ret_text, OPTION_TEXT, "%s%s%s%s%s", letter, option->name ? "--" : "",
                   option->name ? option->name : "", option->value ? " " : "", option->value ? option->value : "");
}

static sluice_status print_option(cli_run *run, const cli_option *option, sluice_error *err)
{
    char left[OPTION_TEXT];
    option_text(option, left);
    if (strlen(left) > HELP_INDENT - 4) {
        PF_TRY(cli_print(run, err, "  %s\n", left));
        left[0] = '\0';
    }
    return cli_print(run, err, "  %-*s%s\n", HELP_INDENT - 2, left, option->help);
}

sluice_status cli_print_help(cli_run *run, const cli_command *command, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "usage: sluice %s%s%s\n\n%s\n\noptions:\n", command->name,
                     command->operands[0] ? " " : "", command->operands, command->summary));
    for (uint32_t i = 0; i < command->option_count; i++)
        PF_TRY(print_option(run, &command->options[i], err));
    for (uint32_t i = 0; i < CLI_COMMON_OPTIONS; i++)
        PF_TRY(print_option(run, &cli_common_options[i], err));
    return SLUICE_OK;
}

/* ---- the manual page ---- */

/* Text as roff takes it for itself: dashes stay dashes, nothing is a request. */
static sluice_status print_roff(cli_run *run, const char *text, sluice_error *err)
{
    if (*text == '.' || *text == '\'')
        PF_TRY(cli_write(run, "\\&", 2, err));
    for (; *text; text++) {
        const char *as = *text == '-'    ? "\\-"
                         : *text == '\\' ? "\\e"
                         : *text == '"'  ? "\\(dq"
                         : *text == '\'' ? "\\(aq"
                                         : NULL;
        PF_TRY(as ? cli_write(run, as, strlen(as), err) : cli_write(run, text, 1, err));
    }
    return SLUICE_OK;
}

static sluice_status print_roff_line(cli_run *run, const char *before, const char *text, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "%s", before));
    PF_TRY(print_roff(run, text, err));
    return cli_write(run, "\n", 1, err);
}

static sluice_status print_man_option(cli_run *run, const cli_option *option, sluice_error *err)
{
    char left[OPTION_TEXT];
    option_text(option, left);
    PF_TRY(print_roff_line(run, ".TP\n.B ", left, err));
    return print_roff_line(run, "", option->help, err);
}

static sluice_status print_man(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, ".TH SLUICE 1 \"\" \"sluice %s\" \"User Commands\"\n", SLUICE_VERSION));
    PF_TRY(cli_print(run, err,
                     ".SH NAME\nsluice \\- a crash\\-safe property\\-graph store\n"
                     ".SH SYNOPSIS\n.B sluice\n.I COMMAND\n\\&...\n.SH DESCRIPTION\n"));
    PF_TRY(print_roff_line(run, "", WHAT_IT_IS, err));
    PF_TRY(cli_print(run, err, "Options may stand anywhere behind the command. Every command takes these:\n"));
    for (uint32_t i = 0; i < CLI_COMMON_OPTIONS; i++)
        PF_TRY(print_man_option(run, &cli_common_options[i], err));
    PF_TRY(cli_print(run, err, ".SH COMMANDS\n"));
    for (uint32_t i = 0; cli_commands[i]; i++) {
        const cli_command *command = cli_commands[i];
        PF_TRY(cli_print(run, err, ".SS \"sluice %s", command->name));
        PF_TRY(print_roff_line(run, command->operands[0] ? " " : "", command->operands, err));
        PF_TRY(print_roff_line(run, "", command->summary, err));
        for (uint32_t j = 0; j < command->option_count; j++)
            PF_TRY(print_man_option(run, &command->options[j], err));
    }
    PF_TRY(cli_print(run, err, ".SH EXIT STATUS\n"));
    for (uint32_t i = 0; i < EXITS; i++) {
        PF_TRY(cli_print(run, err, ".TP\n.B %d\n", exits[i].status));
        PF_TRY(print_roff_line(run, "", exits[i].meaning, err));
    }
    return SLUICE_OK;
}

enum { HELP_MAN, HELP_OPTIONS };
static const cli_option help_options[HELP_OPTIONS] = {
    [HELP_MAN] = {"man", 0, CLI_FLAG, NULL, "print all of it as the source of a manual page"},
};

static sluice_status run_help(cli_run *run, sluice_error *err)
{
    if (cli_option_value(run, HELP_MAN)->given)
        return print_man(run, err);
    if (run->arguments.operand_count > 0) {
        const cli_command *command = cli_find_command(run->arguments.operands[0]);
        return command ? cli_print_help(run, command, err) : cli_unknown_command(run->arguments.operands[0], err);
    }
    PF_TRY(cli_print(run, err, "usage: sluice COMMAND ...\n\n" WHAT_IT_IS "\n\ncommands:\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(cli_print(run, err, "  %-10s  %s\n", cli_commands[i]->name, cli_commands[i]->summary));
    PF_TRY(cli_print(run, err, "\nsluice help COMMAND says more. Exit statuses:"));
    for (uint32_t i = 0; i < EXITS; i++)
        PF_TRY(cli_print(run, err, "%s%d %s",
                         i == 0    ? " "
                         : i == 5  ? ",\n"
                         : i == 10 ? ",\n"
                                   : ", ",
                         exits[i].status, exits[i].meaning));
    return cli_print(run, err, ".\n");
}

const cli_command cli_help = {.name = "help",
                              .operands = "[COMMAND]",
                              .summary = "List the commands, or say how to use one.",
                              .options = help_options,
                              .option_count = HELP_OPTIONS,
                              .most = 1,
                              .effect = CLI_SAYS,
                              .run = run_help};
