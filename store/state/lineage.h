/*
 * Where the history of a branch leads: through its own log, then into the branch that it was forked from, up to the
 * fork, and so on to main. A branch's log holds its own generations only; numbers go on from the fork's, so along a
 * lineage each generation number stands in one log.
 *
 * A branch that is deleted keeps its folder for as long as another one leads into it (coord/roots.h).
 */
#ifndef STORE_STATE_LINEAGE_H
#define STORE_STATE_LINEAGE_H

#include "store/state/manifest.h"

/* Where the branch of this log began; incarnation 0: main. */
sluice_status st_log_fork(st_log *log, st_fork *ret_fork, sluice_error *err);
/* The log of this lineage in which generation `number` stands; *ret_last: the last commit of it that belongs to the
 * lineage, ST_INDEX_LAST when all do. Says nothing about whether the generation can (still) be read there. */
sluice_status st_lineage_log(st_graph *graph, st_log *log, uint64_t number, st_log **ret_log, uint32_t *ret_last,
                             sluice_error *err);
/* One step back: the log that this one was forked from, and the last generation of it that belongs to the lineage with
 * its last commit. *ret_parent NULL: there is none, the lineage begins in this log. */
sluice_status st_lineage_parent(st_graph *graph, st_log *log, st_log **ret_parent, uint64_t *ret_number,
                                uint32_t *ret_last, sluice_error *err);
/* Commits of a lineage, newest first, until *stop or the oldest that can still be read. */
typedef sluice_status st_lineage_fn(void *context, const st_generation *generation, uint32_t index, bool *stop,
                                    sluice_error *err);
sluice_status st_lineage_each(st_graph *graph, st_log *log, st_lineage_fn *each, void *context, sluice_error *err);

#endif
