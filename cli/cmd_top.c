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

#define NAME_LEAST 8u
#define NUMBERS    6u /* longer than the heads of their columns, all together */

/* A column of the table of graphs, shown where there is so much room. */
static const struct top_column {
    const char *name;
    unsigned from; /* columns of the terminal */
    bool right;
} columns[] = {{"number", 0, false},       {"name", 0, false},    {"state", 0, false},      {"queued", 0, true},
               {"running", 0, true},       {"done", 0, true},     {"failed", 0, true},      {"refused", 90, true},
               {"restarts", 100, true},    {"commits", 70, true}, {"conflicts", 110, true}, {"seconds_mean", 80, true},
               {"maintenance", 120, false}};
#define COLUMNS (sizeof columns / sizeof columns[0])

static const char *const process_columns[] = {"runner", "graph", "command", "stage", "attempt", "seconds", "memory"};
#define PROCESS_COLUMNS (sizeof process_columns / sizeof process_columns[0])

/* ---- the table of graphs ---- */

/* Not longer than `most` bytes, and no character cut. */
static size_t shortened(const char *text, size_t most)
{
    size_t length = strlen(text);
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

static const char *text_of(const st_node *graph, const char *name)
{
    const st_node *nested = strcmp(name, "maintenance") == 0 ? st_node_member(graph, name) : NULL;
    return nested ? cli_node_text(nested, "state") : cli_node_text(graph, name);
}

static sluice_status print_graphs(cli_run *run, const st_node *graphs, unsigned width, sluice_error *err)
{
    uint32_t shown[COLUMNS], count = 0, taken = NUMBERS;
    cli_table table = {0};
    sluice_status status;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        if (columns[i].from > width)
            continue;
        shown[count++] = i;
        taken += (uint32_t)strlen(columns[i].name) + 2;
    }
    size_t most = width == UINT32_MAX ? SIZE_MAX : width > taken + NAME_LEAST ? width - taken : NAME_LEAST;
    PF_GOTO(status, done, cli_table_begin(run->out, count, &table, err));
    for (uint32_t i = 0; i < count; i++) {
        if (columns[shown[i]].right)
            cli_table_right(&table, i);
        PF_GOTO(status, done, cli_table_text(&table, columns[shown[i]].name, err));
    }
    for (const st_node *graph = graphs ? graphs->first : NULL; graph; graph = graph->next) {
        for (uint32_t i = 0; i < count; i++) {
            const char *text = text_of(graph, columns[shown[i]].name);
            PF_GOTO(status, done, cli_table_cell(&table, text, shortened(text, most), err));
        }
    }
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    return status;
}

/* ---- plots, on a terminal ---- */

static double number_of(const st_node *node)
{
    return node->kind == ST_NODE_NUMBER ? strtod(node->text, NULL) : 0;
}

/* The last minutes as bars of one line, their height a share of the highest. */
static sluice_status print_bars(cli_run *run, const char *what, const st_node *values, sluice_error *err)
{
    static const char *const bars[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    double most = 0;
    for (const st_node *value = values->first; value; value = value->next)
        most = number_of(value) > most ? number_of(value) : most;
    PF_TRY(cli_print(run, err, "  %s |", what));
    for (const st_node *value = values->first; value; value = value->next) {
        double share = most > 0 ? number_of(value) / most * 8 : 0;
        PF_TRY(cli_print(run, err, "%s", bars[share > 0 && share < 1 ? 1 : (unsigned)share]));
    }
    return cli_print(run, err, "| %.0f", most);
}

/* Of graphs where anything happened. */
static sluice_status print_plots(cli_run *run, const st_node *graphs, sluice_error *err)
{
    bool first = true;
    for (const st_node *graph = graphs ? graphs->first : NULL; graph; graph = graph->next) {
        const st_node *commits = st_node_member(graph, "recent_commits");
        const st_node *times = st_node_member(graph, "recent_milliseconds");
        double sum = 0;
        if (!commits || commits->kind != ST_NODE_ARRAY || !times || times->kind != ST_NODE_ARRAY)
            continue;
        for (const st_node *value = commits->first; value; value = value->next)
            sum += number_of(value);
        for (const st_node *value = times->first; value; value = value->next)
            sum += number_of(value);
        if (sum <= 0)
            continue;
        PF_TRY(cli_print(run, err, "%s%3s", first ? "\n" : "", cli_node_text(graph, "number")));
        first = false;
        PF_TRY(print_bars(run, "commits in 10 s", commits, err));
        PF_TRY(print_bars(run, "ms, 95 of 100", times, err));
        PF_TRY(cli_print(run, err, "\n"));
    }
    return SLUICE_OK;
}

/* ---- the look ---- */

static sluice_status print_processes(cli_run *run, const st_node *processes, sluice_error *err)
{
    uint32_t busy = 0;
    for (const st_node *process = processes ? processes->first : NULL; process; process = process->next)
        busy += strcmp(cli_node_text(process, "state"), "busy") == 0;
    if (busy == 0)
        return SLUICE_OK;
    PF_TRY(cli_print(run, err, "\n"));
    return cli_print_nodes(run, processes, process_columns, PROCESS_COLUMNS, 4, err);
}

/* A line for each look. */
static sluice_status print_document(cli_run *run, const st_node *result, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    cli_put_node(&document.json, result);
    PF_TRY(cli_json_end(run, &document, err));
    return pf_output_flush(run->out, err);
}

static sluice_status look(cli_run *run, co_call *call, bool terminal, sluice_error *err)
{
    st_tree *tree = NULL;
    const st_node *result = NULL;
    unsigned width = terminal ? pf_terminal_columns() : UINT32_MAX;
    sluice_status status;
    PF_GOTO(status, done, co_call_ask(call, "status", "{\"detail\":true}", &tree, &result, err));
    const st_node *graphs = st_node_member(result, "graphs");
    if (run->arguments.json) {
        status = print_document(run, result, err);
        goto done;
    }
    if (terminal)
        PF_GOTO(status, done, cli_print(run, err, "\033[H\033[J"));
    PF_GOTO(status, done,
            cli_print(run, err, "sluice %s, %s for %s s, process %s: %s of %s workers busy, %s clients\n\n",
                      cli_node_text(result, "version"), cli_node_text(result, "state"),
                      cli_node_text(result, "seconds"), cli_node_text(result, "pid"),
                      cli_node_text(result, "workers_busy"), cli_node_text(result, "workers"),
                      cli_node_text(result, "connections")));
    PF_GOTO(status, done, print_graphs(run, graphs, width, err));
    if (terminal && width >= 100)
        PF_GOTO(status, done, print_plots(run, graphs, err));
    PF_GOTO(status, done, print_processes(run, st_node_member(result, "processes"), err));
    status = pf_output_flush(run->out, err);
done:
    st_tree_free(tree);
    return status;
}

static sluice_status run_top(cli_run *run, sluice_error *err)
{
    bool terminal = pf_is_terminal(1) && !run->arguments.json;
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
