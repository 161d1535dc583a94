/*
 * The `sluice` program: finds the command, parses its words, runs it, tells its error, and ends with the exit status
 * that the code of the error has (include/sluice/error.h).
 */
#include "cli/command.h"
#include "cli/error.h"
#include "cli/help.h"
#include "cli/output.h"
#include "platform/failpoint.h"
#include "platform/terminal.h"
#include <stdlib.h>
#include <string.h>

#define EXIT_INTERRUPTED 130

const cli_command *const cli_commands[] = {&cli_init,   &cli_load,       &cli_mutate,  &cli_get,     &cli_scan,
                                           &cli_count,  &cli_neighbors,  &cli_export,  &cli_log,     &cli_show,
                                           &cli_diff,   &cli_checkpoint, &cli_revert,  &cli_schema,  &cli_optimize,
                                           &cli_index,  &cli_status,     &cli_verify,  &cli_recover, &cli_gc,
                                           &cli_branch, &cli_merge,      &cli_version, &cli_help,    NULL};

const cli_command *cli_find_command(const char *name)
{
    for (uint32_t i = 0; cli_commands[i]; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    }
    return NULL;
}

static sluice_status unknown_command(const char *word, sluice_error *err)
{
    const char *nearest = NULL;
    uint32_t best = UINT32_MAX;
    uint32_t distance;
    for (uint32_t i = 0; cli_commands[i]; i++) {
        if (cli_is_near(word, cli_commands[i]->name, &distance) && distance < best) {
            best = distance;
            nearest = cli_commands[i]->name;
        }
    }
    pf_fail_private(err, SLUICE_USAGE, "the command is not known", "unknown command \"%s\"", word);
    if (nearest)
        pf_hint(err, "did you mean: sluice %s", nearest);
    else
        pf_hint(err, "sluice help lists the commands");
    return SLUICE_USAGE;
}

static sluice_status check_operands(const cli_run *run, sluice_error *err)
{
    const cli_command *command = run->command;
    uint32_t count = run->arguments.operand_count;
    if (count >= command->least && count <= command->most)
        return SLUICE_OK;
    pf_fail(err, SLUICE_USAGE, "%s: %s", command->name,
            count < command->least ? "operands are missing" : "too many operands");
    pf_hint(err, "usage: sluice %s %s", command->name, command->operands);
    return SLUICE_USAGE;
}

static sluice_status run_command(cli_run *run, char *const *words, uint32_t count, const char **operands,
                                 sluice_error *err)
{
    const cli_command *command = run->command;
    PF_TRY(cli_parse(command->options, command->option_count, words, count, operands, &run->arguments, err));
    if (run->arguments.help)
        return cli_print_help(run, command, err);
    PF_TRY(check_operands(run, err));
    PF_TRY(pf_failpoints_init(err));
    return command->run(run, err);
}

/* The first word that is no option names the command; `sluice --help` and `sluice --version` are commands too. */
static sluice_status choose_command(int argc, char **argv, cli_run *run, sluice_error *err)
{
    for (int i = 1; i < argc; i++)
        run->arguments.json |= strcmp(argv[i], "--json") == 0;
    if (argc < 2) {
        pf_fail(err, SLUICE_USAGE, "no command is given");
        pf_hint(err, "sluice help lists the commands");
        return SLUICE_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    else if (strcmp(word, "--version") == 0)
        word = "version";
    run->command = cli_find_command(word);
    return run->command ? SLUICE_OK : unknown_command(word, err);
}

/* The one code whose exit status depends on how it came about: here nothing but a signal of the user cancels. */
static int exit_status_of(sluice_status status)
{
    return status == SLUICE_CANCELLED ? EXIT_INTERRUPTED : sluice_status_exit(status);
}

static int finish(cli_run *run, sluice_status status, sluice_error *err)
{
    if (status == SLUICE_OK)
        status = pf_output_flush(run->out, err);
    if (status != SLUICE_OK) {
        cli_print_error(err);
        if (run->arguments.json && !run->document_printed)
            cli_print_error_document(run, err);
    }
    sluice_status closed = pf_output_close(run->out, false, NULL);
    return exit_status_of(status != SLUICE_OK ? status : closed);
}

#if SLUICE_JEMALLOC
/* Read by the allocator when it starts. Every process here is of one thread; and a bound of memory (platform/memory.h)
 * counts what is mapped, so nothing is mapped ahead or kept mapped for later. */
const char *malloc_conf = "narenas:1,retain:false";
#endif

int main(int argc, char **argv)
{
    sluice_error err = {0};
    cli_run run = {0};
    const char **operands = NULL;
    pf_standard_prepare();
    sluice_status status = pf_output_open("-", PF_OUTPUT_REPLACE, &run.out, &err);
    if (status != SLUICE_OK) {
        cli_print_error(&err);
        return sluice_status_exit(status);
    }
    status = choose_command(argc, argv, &run, &err);
    if (status == SLUICE_OK) {
        operands = calloc((size_t)argc, sizeof *operands);
        status = operands ? run_command(&run, argv + 2, (uint32_t)(argc - 2), operands, &err) : pf_fail_memory(&err);
    }
    int exit_status = finish(&run, status, &err);
    free(operands);
    return exit_status;
}
