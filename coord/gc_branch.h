/*
 * Collecting the folders of branches that nothing leads to any more (coord/gc.c calls it).
 */
#ifndef COORD_GC_BRANCH_H
#define COORD_GC_BRANCH_H

#include "coord/recover.h"

/* Moves branches/<incarnation> of every branch that is no root (coord/roots.h) to trash/, and empties and removes what
 * lies in trash/ of such. Adds to the report. A dry run only counts. */
sluice_status co_gc_branches(st_graph *graph, bool dry_run, pf_deadline deadline, co_gc_report *report,
                             sluice_error *err);

#endif
