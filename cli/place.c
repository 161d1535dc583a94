/*
 * Opening what a command reads: the graph, and a snapshot of one branch at one place; and what to say of a branch that
 * is not there.
 */
#include "cli/command.h"
#include "store/schema/nearest.h"
#include <stdio.h>
#include <string.h>

sluice_status cli_open_snapshot(const cli_run *run, const char *branch, const char *at, cli_place *ret_place,
                                sluice_error *err)
{
    *ret_place = (cli_place){0};
    PF_TRY(st_graph_open(run->arguments.operands[0], PF_READ, &ret_place->graph, err));
    return st_snapshot_open(ret_place->graph, branch, at, &ret_place->snapshot, err);
}

void cli_close_snapshot(cli_place *place)
{
    st_snapshot_close(place->snapshot);
    st_graph_close(place->graph);
    *place = (cli_place){0};
}

#define NAME_MAX_BYTES 255u

typedef struct near_branch {
    st_nearest nearest;
    char best[NAME_MAX_BYTES + 1];
} near_branch;

static sluice_status offer_branch(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    near_branch *near = context;
    const char *before = near->nearest.best;
    (void)incarnation;
    (void)err;
    if (!name)
        return SLUICE_OK;
    st_nearest_offer(&near->nearest, name);
    if (near->nearest.best != before) { /* the name goes, the copy stays */
        (void)snprintf(near->best, sizeof near->best, "%s", name);
        near->nearest.best = near->best;
    }
    return SLUICE_OK;
}

static void hint_at_nearest(st_graph *graph, const char *name, sluice_error *err)
{
    near_branch near;
    uint64_t incarnation;
    if (err->hint[0] || st_ref_read(graph, name, &incarnation, NULL) != SLUICE_NOT_FOUND)
        return;
    st_nearest_begin(&near.nearest, name);
    if (st_ref_list(graph, offer_branch, &near, NULL) == SLUICE_OK && near.nearest.best)
        pf_hint(err, "did you mean the branch \"%s\"?", near.best);
    else
        pf_hint(err, "`sluice branch list GRAPH` lists the branches, sluice branch create GRAPH NAME makes one");
}

void cli_hint_at_branch(const cli_run *run, const char *const *operands, sluice_error *err)
{
    const cli_command *command = run->command;
    const char *word;
    uint32_t verbs = cli_choice(command->operands, 1, &word) > 0; /* stands before the graph */
    bool by_operand = command == &cli_branch || command == &cli_merge;
    st_graph *graph = NULL;
    if (err->hint[0] || !operands[verbs] || st_graph_open(operands[verbs], PF_READ, &graph, NULL) != SLUICE_OK)
        return;
    for (uint32_t i = 0; i < command->option_count; i++) {
        const char *name = command->options[i].name;
        if (name && (strcmp(name, "branch") == 0 || strcmp(name, "from") == 0) && cli_option_value(run, i)->given)
            hint_at_nearest(graph, cli_option_value(run, i)->text, err);
    }
    for (uint32_t i = verbs + 1; by_operand && operands[i]; i++)
        hint_at_nearest(graph, operands[i], err);
    st_graph_close(graph);
}
