/*
 * Opening what a command reads: the graph, and a snapshot of one branch at one place.
 */
#include "cli/command.h"

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
