/*
 * Files that a write opens each time, kept open with the graph's handle between two writes: the lock files of the graph
 * and of a few branches, with no lock held, and `intents` for reading. A file that is in use is nobody else's: whoever
 * asks meanwhile gets a descriptor of its own, so locks keep excluding each other inside one process.
 */
#ifndef COORD_KEPT_FILES_H
#define COORD_KEPT_FILES_H

#include "locks/oslock.h"
#include "store/graph/graph.h"

sluice_status co_locks_open(st_graph *graph, const char *path, lk_lockfile **ret_lockfile, sluice_error *err);
/* Releases every lock of it. NULL allowed. */
void co_locks_close(st_graph *graph, lk_lockfile *lockfile);
/* The file of intents, for reading. */
sluice_status co_intents_open(st_graph *graph, pf_file **ret_intents, sluice_error *err);
/* NULL allowed. */
void co_intents_close(st_graph *graph, pf_file *intents);

#endif
