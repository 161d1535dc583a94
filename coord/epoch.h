/*
 * Epochs: each shared region has a random id, which every publish under it carries. It is void once the region was
 * given up, and then publishes nothing any more, on any branch.
 *
 * The second net behind fences and reaped workers: the supervisor that gives a region up has waited for the end of all
 * who had it mapped. Voiding is one record of control/, written by whoever first writes from the region that took the
 * damaged one's place; nobody else touches control/ for it.
 */
#ifndef COORD_EPOCH_H
#define COORD_EPOCH_H

#include "store/graph/graph.h"
#include "worker/task.h"

/* Voids what the executor's region took the place of; nothing is written when all of it is void already. */
sluice_status co_epochs_void(st_graph *graph, const wk_executor *executor, pf_deadline deadline, sluice_error *err);
/* FENCED: it is void. Asked under the publish lock. */
sluice_status co_epoch_check(st_graph *graph, const pf_id *epoch, sluice_error *err);

#endif
