/*
 * Memory of a job (--memory): the bound of all its processes, and each worker's share of it.
 */
#ifndef COORD_MEMORY_H
#define COORD_MEMORY_H

#include "coord/pool.h"

/* How many workers, and how much memory each of them may have. `given` 0: half of what the machine or the cgroup has.
 * RESOURCE_LIMIT when that is too little for the workers that were asked for. */
sluice_status co_memory_choose(uint64_t given, unsigned asked_workers, unsigned *ret_workers, uint64_t *ret_share,
                               sluice_error *err);
/* The most workers that so much is enough for; at least 1. */
unsigned co_memory_workers(uint64_t memory);
/* Says of a job that failed for lack of memory what would help. */
sluice_status co_memory_blame(sluice_status status, const co_pool_options *pool, sluice_error *err);

#endif
