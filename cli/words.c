/*
 * A command line from its words to its exit status (see cli/words.h): finds the command, parses its words, runs it here
 * or by way of a supervisor, tells its error, and ends with the exit status that the code of the error has
 * (include/sluice/error.h).
 */
#include "cli/words.h"
#include "cli/error.h"
#include "cli/help.h"
#include "cli/hosted.h"
#include "cli/output.h"
#include "platform/failpoint.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

#define EXIT_INTERRUPTED 130

const cli_command *const cli_commands[] = {
    &cli_init,      &cli_load,   &cli_mutate,   &cli_get,        &cli_scan,   &cli_count,   &cli_describe,
    &cli_neighbors, &cli_export, &cli_log,      &cli_show,       &cli_diff,   &cli_changes, &cli_checkpoint,
    &cli_revert,    &cli_schema, &cli_optimize, &cli_index,      &cli_status, &cli_verify,  &cli_recover,
    &cli_gc,        &cli_backup, &cli_salvage,  &cli_branch,     &cli_merge,  &cli_serve,   &cli_jobs,
    &cli_cancel,    &cli_top,    &cli_version,  &cli_completion, &cli_help,   NULL};

const cli_command *cli_find_command(const char *name)
{
    for (uint32_t i = 0; cli_commands[i]; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    }
    return NULL;
}

sluice_status cli_unknown_command(const char *word, sluice_error *err)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, word);
    for (uint32_t i = 0; cli_commands[i]; i++)
        st_nearest_offer(&nearest, cli_commands[i]->name);
    pf_fail_private(err, SLUICE_USAGE, "the command is not known", "unknown command \"%s\"", word);
    if (nearest.best)
        pf_hint(err, "did you mean %s? `sluice help %s` says how; `sluice help` lists the commands", nearest.best,
                nearest.best);
    else
        pf_hint(err, "`sluice help` lists the commands");
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

typedef sluice_status settle_fn(cli_run *run, sluice_error *err);

static sluice_status run_command(cli_run *run, char *const *words, uint32_t count, const char **operands,
                                 settle_fn *settle, sluice_error *err)
{
    const cli_command *command = run->command;
    PF_TRY(cli_parse(command->options, command->option_count, words, count, operands, &run->arguments, err));
    if (run->arguments.help)
        return cli_print_help(run, command, err);
    PF_TRY(check_operands(run, err));
    PF_TRY(pf_failpoints_init(err));
    PF_TRY(settle ? settle(run, err) : cli_serve_elsewhere(run, words, count, err));
    if (run->served)
        return SLUICE_OK;
    sluice_status status = command->run(run, err);
    if (status == SLUICE_NOT_FOUND && command->effect != CLI_SAYS)
        cli_hint_at_branch(run, operands, err);
    return status;
}

/* The first word names the command; `sluice --help` and `sluice --version` are commands too. */
static sluice_status choose_command(const char *word, char *const *words, uint32_t count, cli_run *run,
                                    sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        run->arguments.json |= strcmp(words[i], "--json") == 0;
    if (!word) {
        pf_fail(err, SLUICE_USAGE, "no command is given");
        pf_hint(err, "`sluice help` lists the commands");
        return SLUICE_USAGE;
    }
    run->arguments.json |= strcmp(word, "--json") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    else if (strcmp(word, "--version") == 0)
        word = "version";
    run->command = cli_find_command(word);
    return run->command ? SLUICE_OK : cli_unknown_command(word, err);
}

/* The one code whose exit status depends on how it came about: here nothing but a signal of the user cancels. */
static int exit_status_of(sluice_status status)
{
    return status == SLUICE_CANCELLED ? EXIT_INTERRUPTED : sluice_status_exit(status);
}

static void tell_what_stands(const cli_run *run, sluice_error *err)
{
    if (run->stands.changed) {
        err->committed = SLUICE_TRUE;
        err->acknowledged = run->stands.acknowledged ? SLUICE_TRUE : SLUICE_FALSE;
        if (!pf_id_is_nil(&run->stands.commit))
            pf_id_text(&run->stands.commit, err->commit_id);
        if (!pf_id_is_nil(&run->stands.operation))
            pf_id_text(&run->stands.operation, err->operation_id);
    } else if (run->served && run->command->effect == CLI_WRITES) {
        err->committed = err->acknowledged = SLUICE_UNKNOWN;
        pf_hint(err, "the supervisor has done its part; `sluice jobs` shows what became of it");
    }
}

static int finish(cli_run *run, sluice_status status, sluice_error *err)
{
    if (status == SLUICE_OK && !run->reader_gone)
        status = pf_output_flush(run->out, err);
    if (status != SLUICE_OK) {
        tell_what_stands(run, err);
        cli_print_error(run, err);
        if (run->arguments.json && !run->document_printed)
            cli_print_error_document(run, err);
    }
    sluice_status closed = pf_output_close(run->out, false, NULL);
    if (run->reader_gone)
        closed = SLUICE_OK;
    if (status == SLUICE_OK && closed == SLUICE_OK && run->served)
        return run->served_exit;
    return exit_status_of(status != SLUICE_OK ? status : closed);
}

int cli_run_words(const char *command, char *const *words, uint32_t count, const struct co_host_task *task,
                  settle_fn *settle)
{
    sluice_error err = {0};
    cli_run run = {.hosted = task};
    const char **operands = NULL;
    sluice_status status = pf_output_open("-", PF_OUTPUT_REPLACE, &run.out, &err);
    if (status != SLUICE_OK) {
        cli_print_error(&run, &err);
        return sluice_status_exit(status);
    }
    status = choose_command(command, words, count, &run, &err);
    if (status == SLUICE_OK) {
        operands = calloc((size_t)count + 2, sizeof *operands);
        status = operands ? run_command(&run, words, count, operands, settle, &err) : pf_fail_memory(&err);
    }
    int exit_status = finish(&run, status, &err);
    pf_buffer_free(&run.text);
    free(operands);
    return exit_status;
}
