/*
 * The supervisor needs little and that little always; the rest is divided evenly, and the kernel holds each worker to
 * its share. Workers that nobody asked for are not started when there is no memory for them: what a job writes does
 * not depend on their number.
 */
#include "coord/memory.h"
#include "platform/memory.h"
#include <string.h>

#define MIB               (UINT64_C(1) << 20)
#define SUPERVISOR        (4 * MIB)
#define WORKER_LEAST      (30 * MIB) /* a batch of rows on its way into a file, and sorting by parts beside it */
#define PART_OF_AVAILABLE 2u         /* without --memory */

static uint64_t least_for(unsigned workers)
{
    return SUPERVISOR + workers * WORKER_LEAST;
}

unsigned co_memory_workers(uint64_t memory)
{
    uint64_t workers = memory > least_for(1) ? (memory - SUPERVISOR) / WORKER_LEAST : 1;
    return workers < UINT32_MAX ? (unsigned)workers : UINT32_MAX;
}

static sluice_status choose(uint64_t given, unsigned asked_workers, unsigned *ret_workers, uint64_t *ret_share,
                            sluice_error *err)
{
    uint64_t available = pf_memory_available();
    uint64_t memory = given > 0 ? given : available / PART_OF_AVAILABLE;
    bool asked = false;

    PF_TRY(co_pool_workers(asked_workers, ret_workers, &asked, err));
    while (!asked && *ret_workers > 1 && memory < least_for(*ret_workers))
        --*ret_workers;
    uint64_t least = least_for(*ret_workers);
    if (given == 0 && memory < least && least <= available)
        memory = least; /* half is a courtesy to others, not a need */
    if (memory < least) {
        (void)pf_fail(err, SLUICE_RESOURCE_LIMIT, "%lluM of memory are too little for %u worker%s: the least is %lluM",
                      (unsigned long long)(memory / MIB), *ret_workers, *ret_workers == 1 ? "" : "s",
                      (unsigned long long)(least / MIB));
        pf_hint(err, "give --memory %lluM or more%s", (unsigned long long)(least / MIB),
                *ret_workers > 1 ? ", or fewer --workers" : "");
        return SLUICE_RESOURCE_LIMIT;
    }
    *ret_share = (memory - SUPERVISOR) / *ret_workers;
    return SLUICE_OK;
}

sluice_status co_memory_run(const wk_job *job, uint64_t memory, unsigned workers, co_pool_options *pool, void *result,
                            sluice_error *err)
{
    PF_TRY(choose(memory, workers, &pool->workers, &pool->share, err));
    sluice_status status = co_pool_run(job, pool, result, err);
    if (status == SLUICE_RESOURCE_LIMIT && err && strstr(err->message, PF_NO_MEMORY) && err->hint[0] == '\0')
        pf_hint(err, "each of %u worker%s may have %lluM: give --memory more, or fewer --workers", pool->workers,
                pool->workers == 1 ? "" : "s", (unsigned long long)(pool->share / MIB));
    return status;
}
