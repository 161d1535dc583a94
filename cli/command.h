/*
 * The commands of the program: a table, one run function each, and what every run has at hand.
 *
 * A run function prints its result through run->out (standard output, buffered) and returns; main.c turns a failure
 * into the error line, the hint, the error document and the exit status. Nothing else is printed on standard output,
 * and nothing at all is printed by the modules below.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"
#include "platform/user_file.h"
#include "store/read/snapshot.h"

typedef struct cli_command cli_command;

/* What this command has made true, whatever fails after it: an error of printing says so. */
typedef struct cli_stands {
    bool changed, acknowledged;
    pf_id commit, operation; /* nil: none */
} cli_stands;

typedef struct cli_run {
    const cli_command *command;
    cli_arguments arguments;
    pf_output *out;
    bool document_printed; /* the result says what is wrong: no error document after it */
    bool reader_gone;      /* nobody reads standard output any more, and that is how this command ends */
    cli_stands stands;
    bool served; /* a supervisor has run it, with this exit status */
    int served_exit;
    pf_buffer text; /* standard input, where it had to be read before it was known who runs the command; else empty */
    const char *graph_said;            /* hosted: the graph as its user named it */
    const struct co_host_task *hosted; /* this is a supervisor's runner, with this task; NULL: a command line */
} cli_run;

typedef enum cli_effect { CLI_READS, CLI_WRITES, CLI_SAYS /* about itself: touches no graph */ } cli_effect;

struct cli_command {
    const char *name;
    const char *operands; /* as shown in the help: "GRAPH TYPE KEY..." */
    const char *summary;
    const cli_option *options;
    uint32_t option_count;
    uint32_t least, most; /* operands */
    cli_effect effect;
    sluice_status (*run)(cli_run *run, sluice_error *err);
};

extern const cli_command cli_init, cli_load, cli_mutate, cli_scan, cli_get, cli_count, cli_neighbors, cli_export,
    cli_log, cli_show, cli_diff, cli_checkpoint, cli_revert, cli_status, cli_verify, cli_recover, cli_gc, cli_branch,
    cli_merge, cli_schema, cli_serve, cli_jobs, cli_cancel, cli_top, cli_optimize, cli_index, cli_version, cli_help;
extern const cli_command cli_backup, cli_salvage, cli_completion, cli_describe, cli_changes;
/* All of them, in the order of the help; ends with NULL. */
extern const cli_command *const cli_commands[];
const cli_command *cli_find_command(const char *name);                  /* NULL when absent */
sluice_status cli_unknown_command(const char *word, sluice_error *err); /* USAGE, with the nearest one as hint */

static inline const cli_value *cli_option_value(const cli_run *run, uint32_t which)
{
    return &run->arguments.values[which];
}
static inline const char *cli_text_or(const cli_run *run, uint32_t which, const char *otherwise)
{
    const cli_value *value = cli_option_value(run, which);
    return value->given ? value->text : otherwise;
}

/* The option --memory: USAGE when it is nothing. */
sluice_status cli_check_memory(const cli_run *run, uint32_t which, sluice_error *err);
/* Holds this process to it, or to half of what there is. A supervisor's runner has its
 * share already, and goes back to it after a command with a tighter one. */
sluice_status cli_bound_memory(const cli_run *run, uint32_t which, sluice_error *err);

/* Opens operand 0 as a graph for reading, pins the branch at the place (NULL: main, its head). Both are closed by
 * cli_close_snapshot, which is safe on zeroed ones. */
typedef struct cli_place {
    st_graph *graph;
    st_snapshot *snapshot;
} cli_place;
sluice_status cli_open_snapshot(const cli_run *run, const char *branch, const char *at, cli_place *ret_place,
                                sluice_error *err);
void cli_close_snapshot(cli_place *place);
/* After NOT_FOUND: when a branch that the line names is not there but one that is called nearly so, says which.
 * `operands` as they were parsed, NULL behind them. */
void cli_hint_at_branch(const cli_run *run, const char *const *operands, sluice_error *err);

#endif
