/*
 * The entries of a fragment's runs, gathered row by row and sorted in bounded memory.
 *
 * As long as they fit into this process's part of the memory they stay there. Beyond it each run's entries are sorted
 * and spilled to a file in the attempt's folder ("spill-...", never synced), and merged when the run is written; that
 * file has no name any more from then on. A worker that dies leaves it for the sweep of its attempt.
 */
#ifndef WORKER_INGEST_SORTER_H
#define WORKER_INGEST_SORTER_H

#include "store/fragment/run.h"
#include "worker/ingest/spool.h"

typedef struct wk_sorter wk_sorter;

/* For `runs` runs of about `expected` entries each. `spool` NULL: nothing is ever spilled. In builds with failpoints
 * SLUICE_TEST_SPILL=ENTRIES makes little fit. */
sluice_status wk_sorter_open(const wk_spool *spool, uint32_t runs, uint64_t expected, wk_sorter **ret_sorter,
                             sluice_error *err);
void wk_sorter_close(wk_sorter *sorter); /* NULL allowed */
/* Adds the entries of the rows from `position` on to a run; positions of a run ascend. */
sluice_status wk_sorter_add(wk_sorter *sorter, uint32_t run, const uint64_t *hashes, uint64_t count, uint64_t position,
                            sluice_error *err);
/* Writes the run (store/fragment/run.h) and lets go of its memory: the same bytes, however much was spilled. */
sluice_status wk_sorter_write(wk_sorter *sorter, uint32_t run, pf_volume *volume, uint64_t table, const char *name,
                              st_run_info *ret_info, sluice_error *err);

#endif
