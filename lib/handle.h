/*
 * The inside of the library's handles.
 *
 * Each counts who needs it: its user until it is closed, and what was made from it. Whoever is last lets it go. Counts
 * are plain numbers, because a graph's handle and all that hangs on it belong to one thread at a time.
 */
#ifndef LIB_HANDLE_H
#define LIB_HANDLE_H

#include "platform/fail.h"
#include "platform/ids.h"
#include "store/read/snapshot.h"
#include <sluice/sluice.h>

struct sluice_graph {
    st_graph *graph;
    char *path;
    pf_id epoch; /* of its writes: nobody else knows it */
    unsigned holds;
};

struct sluice_snapshot {
    sluice_graph *graph;
    st_snapshot *snapshot;
    unsigned holds;
};

/* USAGE in a forked child, and for what is missing. */
sluice_status lib_check(const sluice_graph *graph, sluice_error *err);
sluice_status lib_check_snapshot(const sluice_snapshot *snapshot, sluice_error *err);
/* A text that must be there. */
sluice_status lib_need(const void *argument, const char *what, sluice_error *err);
/* An id as text; NULL gives nil. */
sluice_status lib_id(const char *text, const char *what, pf_id *ret_id, sluice_error *err);
void lib_id_text(const pf_id *id, char *ret_text); /* nil: empty */
/* Hands a buffer's bytes, with a zero byte behind them, to the caller; frees the buffer in any case. */
sluice_status lib_give(pf_buffer *buffer, char **ret_text, size_t *ret_length, sluice_error *err);

#define LIB_ACTOR "library" /* of commits whose writer gives no other */

void lib_graph_hold(sluice_graph *graph);
void lib_graph_release(sluice_graph *graph);
void lib_snapshot_hold(sluice_snapshot *snapshot);
void lib_snapshot_release(sluice_snapshot *snapshot);

#endif
