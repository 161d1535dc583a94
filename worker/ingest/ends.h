/*
 * Ends at a glance: whether the ends of a range are all there, which nearly always they are.
 *
 * Where a hash proves its key, the hashes of the range's nodes go into a table in memory, and those of the ends are
 * looked for in it, run by run, in no order. That all are there says everything; anything else says nothing, and the
 * runs are merged (probe.c), which finds what is missing in the order of the input.
 */
#ifndef WORKER_INGEST_ENDS_H
#define WORKER_INGEST_ENDS_H

#include "worker/ingest/stream.h"

/* `nodes`: all that may be meant. False also where the table would take more memory than there is for it. */
sluice_status wk_ends_are_there(wk_side *edges, st_run_use use, wk_side *nodes, wk_range range, bool *ret_there,
                                sluice_error *err);

#endif
