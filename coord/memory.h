/*
 * Memory of a job (--memory): the bound of all its processes, and each worker's share of it.
 */
#ifndef COORD_MEMORY_H
#define COORD_MEMORY_H

#include "coord/pool.h"

/* Runs a job (co_pool_run) within `memory` bytes, 0: half of what the machine or the cgroup has. `pool` gets how many
 * workers (`workers`: as asked for, 0: by itself) and each one's share. RESOURCE_LIMIT when the memory is too little
 * for the workers that were asked for, or a worker's share was for what it had to do; the hint says what would help. */
sluice_status co_memory_run(const wk_job *job, uint64_t memory, unsigned workers, co_pool_options *pool, void *result,
                            sluice_error *err);
/* The most workers that so much is enough for; at least 1. */
unsigned co_memory_workers(uint64_t memory);

#endif
