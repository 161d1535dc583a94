/*
 * The pool of a history: a region in ordinary memory, whose workers are the actors' processes. Gates and publish queue
 * are the real ones; who waits there lets others run. The supervisor is the simulation: a process that dies is buried
 * at once, as one that was reaped, and its successor has another place. A power loss ends the region with everybody.
 *
 * Latches are never waited for: nobody lets others run while he holds one.
 */
#include "platform/check.h"
#include "run.h"
#include <stdlib.h>

#define SLICE 16384u

void sim_pool_begin(sim_run *run)
{
    const shm_config config = {SIM_WORKERS_MAX, 4, 64, 16, SLICE};
    if (!run->plan->pool)
        return;
    PF_ALWAYS(run->pool_count < SIM_POOLS_MAX);
    sim_pool *pool = calloc(1, sizeof *pool);
    PF_ALWAYS(pool && shm_region_make(&config, &pool->region, NULL) == SLUICE_OK);
    run->pools[run->pool_count++] = pool;
}

void sim_pool_free(sim_run *run)
{
    for (uint32_t i = 0; i < run->pool_count; i++) {
        PF_ALWAYS(shm_publish_check(&run->pools[i]->region) && shm_gates_check(&run->pools[i]->region));
        shm_region_free(&run->pools[i]->region);
        free(run->pools[i]);
    }
}

static bool is_allowed(void *context)
{
    sim_worker *worker = context;
    return shm_token_allowed(worker->publisher.region, &worker->publisher.token);
}

sim_worker *sim_pool_join(sim_run *run)
{
    sim_pool *pool = run->pool_count ? run->pools[run->pool_count - 1] : NULL;
    if (!pool || pool->count == SIM_WORKERS_MAX)
        return NULL;
    sim_worker *worker = &pool->workers[pool->count];
    shm_token token = shm_slot_assign(&pool->region, pool->count);
    *worker = (sim_worker){
        .run = run, .slot = pool->count++, .user = {&pool->region, token}, .publisher = {&pool->region, token}};
    worker->hooks = shm_gate_hooks(&worker->user);
    worker->executor = (wk_executor){.context = worker,
                                     .workers = 1,
                                     .gates = &worker->hooks,
                                     .publisher = &worker->publisher,
                                     .epoch = pool->region.header->epoch,
                                     .allowed = is_allowed};
    return worker;
}

void sim_pool_fence(sim_worker *worker)
{
    shm_slot_revoke(worker->publisher.region, worker->slot);
}

void sim_pool_bury(sim_worker *worker)
{
    bool quiet = worker->run->quiet;
    worker->run->quiet = true;
    sim_pool_fence(worker);
    PF_ALWAYS(shm_gates_bury(worker->publisher.region, worker->slot, NULL) == SLUICE_OK);
    PF_ALWAYS(shm_publish_bury(worker->publisher.region, worker->slot, NULL) == SLUICE_OK);
    worker->run->quiet = quiet;
    shm_wake_all(worker->publisher.region);
}

wk_executor sim_pool_executor(const sim_actor_state *actor)
{
    if (actor->worker)
        return actor->worker->executor;
    return (wk_executor){.workers = 1, .epoch = pf_id_new()};
}
