/*
 * Runs of phases: what the conductor does with the job's table (see shm/tasks.h).
 *
 * The words of the tasks are written outside of an edit while no run is open, when they mean nothing; opening the run
 * is one edit, whose last store gives them their meaning.
 */
#include "platform/check.h"
#include "shm/tasks_table.h"

static bool phase_is_finished(const shm_tasks *table, uint32_t phase)
{
    for (uint64_t i = 0; i < table->phase_count; i++) {
        if (table->phases[i] >> 32 == phase)
            return true;
    }
    return false;
}

static sluice_status check_limits(const shm_tasks *table, uint32_t count, bool anew, sluice_error *err)
{
    if (count > table->task_capacity)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a phase has %u tasks; this pool holds %llu", count,
                       (unsigned long long)table->task_capacity);
    if (!anew && table->phase_count == SHM_PHASES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a job has more than %u phases", SHM_PHASES_MAX);
    return SLUICE_OK;
}

static void open_run(shm_region *region, uint32_t phase, uint32_t count, bool anew)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    for (uint32_t i = 0; i < count; i++)
        table->tasks[i] = shm_task_word(SHM_TASK_WAITING, 0, 0, 0);
    shm_tasks_edit(region, &edit, SHM_OP_RUN);
    shm_set(&edit, &table->run_serial, table->run_serial + 1);
    shm_set(&edit, &table->run_phase, phase);
    shm_set(&edit, &table->run_anew, anew);
    shm_set(&edit, &table->run_count, count);
    shm_set(&edit, &table->run_next, 0);
    shm_set(&edit, &table->run_finished, 0);
    shm_set(&edit, &table->run_running, 0);
    shm_set(&edit, &table->run_failed, 0);
    shm_set(&edit, &table->run_failed_cell, 0);
    shm_set(&edit, &table->run, SHM_RUN_OPEN);
    shm_edit_commit(&edit);
}

static void set_run(shm_region *region, shm_run_state state)
{
    shm_edit edit;
    shm_tasks_edit(region, &edit, SHM_OP_RUN);
    shm_set(&edit, &region->tasks->run, state);
    shm_edit_commit(&edit);
}

static sluice_status begin_latched(shm_region *region, uint32_t phase, uint32_t count, bool anew,
                                   shm_run_answer *ret_answer, sluice_error *err)
{
    shm_tasks *table = region->tasks;
    *ret_answer = SHM_RUN_IS_DONE;
    if (!anew && phase_is_finished(table, phase))
        return SLUICE_OK;
    PF_TRY(check_limits(table, count, anew, err));
    *ret_answer = SHM_RUN_GOES_ON;
    if (table->run != SHM_RUN_NONE) {
        bool same = !anew && table->run_anew == 0 && table->run_phase == phase && table->run_count == count;
        if (same && (table->run == SHM_RUN_OPEN || table->run_failed != 0))
            return SLUICE_OK; /* the one that a dead conductor left */
        if (table->run_running > 0) {
            set_run(region, SHM_RUN_STOPPED);
            *ret_answer = SHM_RUN_HAS_TO_WAIT;
            return SLUICE_OK;
        }
        set_run(region, SHM_RUN_NONE);
    }
    open_run(region, phase, count, anew);
    return SLUICE_OK;
}

/* Under the latch, which is let go of on failure. */
static sluice_status latch_as_conductor(shm_region *region, shm_owner owner, sluice_error *err)
{
    PF_TRY(shm_tasks_latch(region, err));
    if (region->tasks->conductor == owner && region->tasks->job == SHM_JOB_RUNNING)
        return SLUICE_OK;
    shm_tasks_unlatch(region);
    return pf_fail(err, SLUICE_FENCED, "this worker does not conduct the job any more");
}

sluice_status shm_run_begin(shm_region *region, shm_owner owner, uint32_t phase, uint32_t count, bool anew,
                            shm_run_answer *ret_answer, sluice_error *err)
{
    PF_TRY(latch_as_conductor(region, owner, err));
    sluice_status status = begin_latched(region, phase, count, anew, ret_answer, err);
    shm_tasks_unlatch(region);
    if (status == SLUICE_OK)
        shm_wake(&region->tasks->sequence);
    return status;
}

static void close_finished(shm_region *region)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    shm_tasks_edit(region, &edit, SHM_OP_RUN);
    if (table->run_anew == 0 && !phase_is_finished(table, (uint32_t)table->run_phase)) {
        shm_set(&edit, &table->phases[table->phase_count], table->run_phase << 32 | table->run_count);
        shm_set(&edit, &table->phase_count, table->phase_count + 1);
    }
    shm_set(&edit, &table->run, SHM_RUN_NONE);
    shm_edit_commit(&edit);
}

sluice_status shm_run_look(shm_region *region, shm_owner owner, shm_run_answer *ret_answer, uint32_t *ret_cell,
                           sluice_error *err)
{
    shm_tasks *table = region->tasks;
    PF_TRY(latch_as_conductor(region, owner, err));
    PF_ASSERT(table->run != SHM_RUN_NONE);
    *ret_answer = SHM_RUN_GOES_ON;
    if (table->run_finished == table->run_count) {
        close_finished(region);
        *ret_answer = SHM_RUN_IS_DONE;
    } else if (table->run == SHM_RUN_STOPPED && table->run_running == 0) {
        *ret_answer = table->run_failed != 0 ? SHM_RUN_HAS_FAILED : SHM_RUN_WAS_STOPPED;
        *ret_cell = (uint32_t)table->run_failed_cell;
        set_run(region, SHM_RUN_NONE);
    }
    shm_tasks_unlatch(region);
    return SLUICE_OK;
}

sluice_status shm_run_stop(shm_region *region, shm_owner owner, sluice_error *err)
{
    PF_TRY(latch_as_conductor(region, owner, err));
    if (region->tasks->run == SHM_RUN_OPEN)
        set_run(region, SHM_RUN_STOPPED);
    shm_tasks_unlatch(region);
    return SLUICE_OK;
}
