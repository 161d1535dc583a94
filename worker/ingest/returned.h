/*
 * Unique tuples that come back: an update that is refused leaves its row of the base as it was, with the tuples that it
 * was to give up; rows of the load that have taken one of them are refused then, too.
 */
#ifndef WORKER_INGEST_RETURNED_H
#define WORKER_INGEST_RETURNED_H

#include "worker/ingest/probe.h"

typedef struct wk_returned wk_returned;

/* `run`: of a unique tuple, over all hashes. Everything in it must outlive this. */
sluice_status wk_returned_open(const wk_probe_run *run, wk_returned **ret_returned, sluice_error *err);
void wk_returned_close(wk_returned *returned); /* NULL allowed */
/* One row of the base whose tuple is back; reports at once when there are many. */
sluice_status wk_returned_add(wk_returned *returned, uint64_t place, sluice_error *err);
/* Reports the rows of the load that have a tuple of those added, in no order. */
sluice_status wk_returned_flush(wk_returned *returned, sluice_error *err);

#endif
