/*
 * What became of a write whose process is gone: for whoever has to answer in its place (a supervisor).
 */
#ifndef COORD_FATE_H
#define COORD_FATE_H

#include "store/graph/graph.h"

typedef struct co_fate {
    bool committed; /* and acknowledged; else it is not, and never will be */
    pf_id commit;
} co_fate;

/* Settles what dead writers left, and then looks for the operation on the branch (by its name; one that is not there
 * has no commits). Everybody who worked under the operation id has ended before. An error: it cannot be told now. */
sluice_status co_find_fate(st_graph *graph, const char *branch, const pf_id *operation, co_fate *ret_fate,
                           sluice_error *err);

#endif
