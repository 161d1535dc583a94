/*
 * top: what a supervisor is doing, again every second; once where standard output is no terminal.
 */
#include "cli/hosted.h"
#include "cli/output.h"
#include "coord/host/call.h"
#include "platform/clock.h"
#include "platform/terminal.h"
#include <stdlib.h>
#include <string.h>

enum { TOP_SOCKET, TOP_TIMES, TOP_OPTIONS };
static const cli_option top_options[TOP_OPTIONS] = {
    [TOP_SOCKET] = {"socket", 0, CLI_TEXT, "PATH", "of the supervisor (default: SLUICE_SOCKET)"},
    [TOP_TIMES] = {"times", 'n', CLI_NUMBER, "N", "end after N looks (default: on a terminal never, else 1)"},
};

#define PAUSE_MS 1000

static const char *const columns[] = {"number", "name",   "state",   "queued",   "running",
                                      "done",   "failed", "refused", "restarts", "seconds_mean"};
#define COLUMNS (sizeof columns / sizeof columns[0])

static sluice_status look(cli_run *run, co_call *call, bool terminal, sluice_error *err)
{
    st_tree *tree = NULL;
    const st_node *result = NULL;
    sluice_status status;
    PF_GOTO(status, done, co_call_ask(call, "status", NULL, &tree, &result, err));
    if (terminal)
        PF_GOTO(status, done, cli_print(run, err, "\033[H\033[J"));
    PF_GOTO(status, done,
            cli_print(run, err, "sluice %s, %s for %s s, process %s: %s of %s workers busy, %s clients\n\n",
                      cli_node_text(result, "version"), cli_node_text(result, "state"),
                      cli_node_text(result, "seconds"), cli_node_text(result, "pid"),
                      cli_node_text(result, "workers_busy"), cli_node_text(result, "workers"),
                      cli_node_text(result, "connections")));
    PF_GOTO(status, done, cli_print_nodes(run, st_node_member(result, "graphs"), columns, COLUMNS, 3, err));
    status = pf_output_flush(run->out, err);
done:
    st_tree_free(tree);
    return status;
}

static sluice_status run_top(cli_run *run, sluice_error *err)
{
    bool terminal = pf_is_terminal(1);
    const cli_value *times = cli_option_value(run, TOP_TIMES);
    uint64_t left = times->given ? times->number : terminal ? UINT64_MAX : 1;
    co_call *call = NULL;
    PF_TRY(cli_connect(run, cli_text_or(run, TOP_SOCKET, NULL), NULL, &call, err));
    sluice_status status = SLUICE_OK;
    while (left-- > 0 && status == SLUICE_OK) {
        status = look(run, call, terminal, err);
        if (left > 0 && status == SLUICE_OK)
            pf_sleep_until(pf_deadline_in_ms(PAUSE_MS).monotonic_ns);
    }
    co_call_close(call);
    return status;
}

const cli_command cli_top = {.name = "top",
                             .operands = "",
                             .summary = "Show what a supervisor is doing, graph by graph.",
                             .options = top_options,
                             .option_count = TOP_OPTIONS,
                             .least = 0,
                             .most = 0,
                             .effect = CLI_SAYS,
                             .run = run_top};
