/*
 * `sluice serve`: one supervisor that hosts several graphs of several tenants (DESIGN 7).
 *
 * The supervisor does no work of a graph. It listens, admits jobs, and hands each to a runner: a process that it forked
 * for one graph and that never serves another. A runner runs a command of the program, the very code that the command
 * line runs by itself, so a hosted command answers in the same words. Small commands (mutate) are run one after the
 * other by runners that stay, with their graph open; others by a runner of their own, which has a pool of its own
 * (coord/pool.h) and ends with them.
 */
#ifndef COORD_HOST_SERVE_H
#define COORD_HOST_SERVE_H

#include "store/graph/graph.h"
#include "worker/task.h"

/* What a runner is asked to do. */
typedef struct co_host_task {
    const char *graph_path; /* as configured: what the words say about the place is not looked at */
    st_graph *graph;        /* open for writing, in runners that stay; else NULL */
    wk_executor *executor;  /* likewise */
    const char *command;
    char **words; /* behind the command */
    uint32_t word_count;
    const char *text; /* what the client read in its own place (the records of a mutation); NULL: nothing */
    size_t text_length;
    bool terminal;            /* the client's standard error is one */
    bool foreign;             /* the client is another user than the supervisor: no path is opened for it */
    pf_id operation;          /* for a job that brought none: the same one at each attempt */
    unsigned attempt;         /* from 1 */
    unsigned workers;         /* that a pool may have */
    const sluice_error *full; /* why nothing may be added to the graph; NULL: it may */
    uint64_t memory;          /* that the job may have; 0: no bound */
    unsigned stopped_seconds; /* a process of a pool that stands still for longer is ended; 0: never */
} co_host_task;

typedef enum co_host_effect {
    CO_HOST_WRITES,
    CO_HOST_READS,
    CO_HOST_BY_VERB /* list, show and plan read */
} co_host_effect;

typedef struct co_host_command {
    const char *name;
    bool small; /* one process, soon done */
    co_host_effect effect;
} co_host_command;

/* What became of a job whose process died, told by the next one. */
typedef enum co_host_fate { CO_FATE_UNKNOWN, CO_FATE_NOTHING, CO_FATE_COMMITTED } co_host_fate;

typedef struct co_host_program {
    const co_host_command *commands; /* that may be submitted */
    uint32_t command_count;
    int (*run)(co_host_task *task); /* in a runner, its standard output and error are the client's; the exit status */
    co_host_fate (*find_fate)(co_host_task *task,
                              pf_id *ret_commit); /* in a runner, when no other process of it is left */
} co_host_program;

/* Serves until SIGTERM or SIGINT: the first drains, the second ends at once. `check`: reads the configuration only. */
sluice_status co_serve(const char *config_file, const co_host_program *program, sluice_error *err);
/* Is the configuration in order? *ret_graphs: how many it names. */
sluice_status co_serve_check(const char *config_file, uint32_t *ret_graphs, sluice_error *err);

#endif
