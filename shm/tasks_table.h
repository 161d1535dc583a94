/* The inside of the job's table, shared by tasks.c and runs.c: task words, and taking its latch. */
#ifndef SHM_TASKS_TABLE_H
#define SHM_TASKS_TABLE_H

#include "shm/tasks.h"

static inline shm_task_state shm_task_state_of(uint64_t word)
{
    return (shm_task_state)(word & 3);
}

static inline uint32_t shm_task_tries_of(uint64_t word)
{
    return (uint32_t)(word >> 2 & SHM_TASK_TRIES_MAX);
}

static inline uint32_t shm_task_crashes_of(uint64_t word)
{
    return (uint32_t)(word >> 10 & SHM_TASK_CRASHES_MAX);
}

static inline shm_owner shm_task_owner_of(uint64_t word)
{
    return word >> 16;
}

static inline uint64_t shm_task_word(shm_task_state state, uint32_t tries, uint32_t crashes, shm_owner owner)
{
    uint64_t few_tries = tries < SHM_TASK_TRIES_MAX ? tries : SHM_TASK_TRIES_MAX;
    uint64_t few_crashes = crashes < SHM_TASK_CRASHES_MAX ? crashes : SHM_TASK_CRASHES_MAX;
    return owner << 16 | few_crashes << 10 | few_tries << 2 | (uint64_t)state;
}

sluice_status shm_tasks_latch(shm_region *region, sluice_error *err);
void shm_tasks_unlatch(shm_region *region);
void shm_tasks_edit(shm_region *region, shm_edit *edit, shm_operation operation);

#endif
