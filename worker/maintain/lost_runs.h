/*
 * Runs of a fragment that are lost: not named by the list, without a file, or with one that cannot be opened. They are
 * made again from the fragment's columns; readers do without them meanwhile.
 */
#ifndef WORKER_MAINTAIN_LOST_RUNS_H
#define WORKER_MAINTAIN_LOST_RUNS_H

#include "store/state/state.h"

/* Is any run lost that fragments of the type have? Reads the ends of their files only. */
sluice_status wk_runs_are_lost(pf_volume *volume, const st_type_def *type, const st_edit_add *add, bool *ret_lost,
                               sluice_error *err);
/* Writes those that are lost, named "<prefix><number>.<use>.run" (`tries`: how many numbers it may use), synced, not
 * their folder. *ret_add: the fragment as it is listed, with all of its runs (owned by the caller). */
sluice_status wk_runs_rebuild(pf_volume *volume, const st_type_def *type, const st_edit_add *add, const char *prefix,
                              uint64_t number, uint32_t tries, st_edit_add *ret_add, sluice_error *err);

#endif
