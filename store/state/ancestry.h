/*
 * Ancestry over merges: which commits belong to the history of a commit, and where two histories met last.
 *
 * A history holds, of each branch's log, everything up to one place (its commits are a chain): so it is a list of
 * reaches, one per log. It follows from the lineage (the log, then those it was forked from) and the merges in it, each
 * of which names the reaches of its second parent; from merge to merge leads a pointer in every generation, so the cost
 * is in the number of merges, not in that of commits. Because main's log stays, a merge leaves out what main's place in
 * its list implies. What it names outlives the branches: a merged and deleted branch is still known here.
 */
#ifndef STORE_STATE_ANCESTRY_H
#define STORE_STATE_ANCESTRY_H

#include "store/state/lineage.h"

typedef struct st_history {
    st_reach *items; /* one per incarnation */
    uint32_t count, room;
    st_reach head; /* the commit itself, where it stands */
} st_history;
void st_history_free(st_history *history); /* safe on a zeroed one */

/* The history of the commit that a view shows. */
sluice_status st_history_of(st_graph *graph, const st_view *view, st_history *ret_history, sluice_error *err);
/* The history that a merge commit keeps of its second parent, whole again. */
sluice_status st_history_of_merged(st_graph *graph, const st_reach *reaches, uint32_t count, st_history *ret_history,
                                   sluice_error *err);
/* The place of the commit that a view shows, in the log where it stands. */
sluice_status st_view_place(st_graph *graph, const st_view *view, st_reach *ret_place, sluice_error *err);
/* The place of the last commit of a generation of this lineage, also of a collected one. */
sluice_status st_commit_place(st_graph *graph, st_log *log, uint64_t generation, st_reach *ret_place,
                              sluice_error *err);
bool st_history_has(const st_history *history, const st_reach *commit);
/* What a merge commit keeps of the history of its second parent: its place first, then the rest without what main's
 * place implies. Malloc'd. */
sluice_status st_history_reduce(st_graph *graph, const st_history *history, st_reach **ret_reaches, uint32_t *ret_count,
                                sluice_error *err);
/* The newest commits that both histories have: none of them is in the history of another. Malloc'd; ordered by place,
 * so that every caller sees the same first one. CORRUPT where history is missing. */
sluice_status st_history_bases(st_graph *graph, const st_history *one, const st_history *two, st_reach **ret_bases,
                               uint32_t *ret_count, sluice_error *err);

#endif
