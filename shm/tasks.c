/*
 * The job's table: taking work, finishing it, and what a dead owner leaves (see shm/tasks.h). Runs of phases: runs.c.
 *
 * Everything is under the tasks latch and changed by edits, so a death at any instruction leaves the state before or
 * after one of the functions below. What a dead owner holds stays its own until the supervisor, which alone can prove
 * the death, buries it; until then nobody else runs that task.
 */
#include "platform/check.h"
#include "shm/tasks_table.h"

void shm_tasks_init(shm_region *region)
{
    lk_latch_init(&region->tasks->latch);
    region->tasks->task_capacity = region->config.tasks;
}

sluice_status shm_tasks_latch(shm_region *region, sluice_error *err)
{
    return shm_latch_take(region, &region->tasks->latch, LK_RANK_LATCH_TASKS, shm_tasks_repair, err);
}

void shm_tasks_unlatch(shm_region *region)
{
    lk_latch_release(&region->tasks->latch, LK_RANK_LATCH_TASKS);
}

void shm_tasks_edit(shm_region *region, shm_edit *edit, shm_operation operation)
{
    shm_edit_begin(edit, &region->tasks->intent, region->tasks, operation);
}

/* ---- check and repair ---- */

static bool check_run(const shm_tasks *table)
{
    uint64_t running = 0;
    uint64_t finished = 0;
    if (table->run > SHM_RUN_STOPPED)
        return false;
    if (table->run == SHM_RUN_NONE)
        return true;
    if (table->run_count > table->task_capacity || table->run_failed > table->run_count ||
        table->run_next > table->run_count || (table->run_failed != 0 && table->run != SHM_RUN_STOPPED))
        return false;
    for (uint64_t i = 0; i < table->run_count; i++) {
        uint64_t word = table->tasks[i];
        shm_task_state state = shm_task_state_of(word);
        running += state == SHM_TASK_RUNNING;
        finished += state == SHM_TASK_DONE;
        if ((state == SHM_TASK_RUNNING) != (shm_task_owner_of(word) != 0) ||
            (state == SHM_TASK_WAITING && i < table->run_next) ||
            (state == SHM_TASK_FAILED && (table->run_failed == 0 || i + 1 < table->run_failed)))
            return false;
    }
    if (table->run_failed != 0 && shm_task_state_of(table->tasks[table->run_failed - 1]) != SHM_TASK_FAILED)
        return false;
    return running == table->run_running && finished == table->run_finished;
}

/* No owner runs two tasks of a run at once. */
static bool check_owners(const shm_tasks *table, uint32_t workers)
{
    bool seen[SHM_WORKERS_MAX] = {false};
    if (table->conductor != 0 && shm_owner_slot(table->conductor) >= workers)
        return false;
    for (uint64_t i = 0; table->run != SHM_RUN_NONE && i < table->run_count; i++) {
        shm_owner owner = shm_task_owner_of(table->tasks[i]);
        uint32_t slot = shm_owner_slot(owner);
        if (owner == 0)
            continue;
        if (slot >= workers || seen[slot])
            return false;
        seen[slot] = true;
    }
    return true;
}

static bool check_phases(const shm_tasks *table)
{
    if (table->phase_count > SHM_PHASES_MAX)
        return false;
    for (uint64_t i = 0; i < table->phase_count; i++) {
        for (uint64_t j = 0; j < i; j++) {
            if (table->phases[i] >> 32 == table->phases[j] >> 32)
                return false;
        }
    }
    return true;
}

bool shm_tasks_check(const shm_region *region)
{
    const shm_tasks *table = region->tasks;
    return table->intent.phase == 0 && table->task_capacity == region->config.tasks && table->job <= SHM_JOB_OVER &&
           (table->job != SHM_JOB_OVER || table->outcome_cell <= region->config.workers) && check_run(table) &&
           check_owners(table, region->config.workers) && check_phases(table);
}

bool shm_tasks_repair(void *context)
{
    shm_region *region = context;
    shm_tasks *table = region->tasks;
    size_t length = sizeof *table + region->config.tasks * sizeof table->tasks[0];
    if (shm_edit_undo(&table->intent, table, length) && shm_tasks_check(region))
        return true;
    shm_region_poison(region);
    return false;
}

/* ---- workers ---- */

static void become_conductor(shm_tasks *table, shm_edit *edit, shm_owner owner)
{
    shm_set(edit, &table->conductor_tries,
            table->finished_ever > table->conductor_finished ? 1 : table->conductor_tries + 1);
    shm_set(edit, &table->conductor_finished, table->finished_ever);
    shm_set(edit, &table->conductor_lasting, table->lasting_ever);
    shm_set(edit, &table->conductor, owner);
}

/* The lowest waiting task; run_count when there is none. */
static uint64_t find_waiting(const shm_tasks *table)
{
    uint64_t i = table->run_next;
    while (i < table->run_count && shm_task_state_of(table->tasks[i]) != SHM_TASK_WAITING)
        i++;
    return i;
}

static void take_task(shm_tasks *table, shm_edit *edit, uint64_t index, shm_owner owner)
{
    uint64_t word = table->tasks[index];
    shm_set(edit, &table->tasks[index],
            shm_task_word(SHM_TASK_RUNNING, shm_task_tries_of(word) + 1, shm_task_crashes_of(word), owner));
    shm_set(edit, &table->run_running, table->run_running + 1);
    shm_set(edit, &table->run_next, index + 1);
}

sluice_status shm_tasks_take(shm_region *region, shm_owner owner, bool may_conduct, shm_work *ret_work,
                             sluice_error *err)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    *ret_work = (shm_work){.kind = SHM_WORK_NONE};
    PF_TRY(shm_tasks_latch(region, err));
    uint64_t index = table->run == SHM_RUN_OPEN ? find_waiting(table) : table->run_count;
    if (table->job != SHM_JOB_RUNNING) {
        ret_work->kind = table->job == SHM_JOB_OVER ? SHM_WORK_OVER : SHM_WORK_NONE;
    } else if (may_conduct && table->conductor == 0) {
        shm_tasks_edit(region, &edit, SHM_OP_TAKE);
        become_conductor(table, &edit, owner);
        shm_edit_commit(&edit);
        ret_work->kind = SHM_WORK_CONDUCT;
    } else if (index < table->run_count) {
        shm_tasks_edit(region, &edit, SHM_OP_TAKE);
        take_task(table, &edit, index, owner);
        shm_edit_commit(&edit);
        *ret_work = (shm_work){SHM_WORK_TASK, (uint32_t)table->run_phase, (uint32_t)index, table->run_serial};
    }
    shm_tasks_unlatch(region);
    return SLUICE_OK;
}

static void end_task(shm_tasks *table, shm_edit *edit, uint64_t index, bool failed, uint32_t cell)
{
    uint64_t word = table->tasks[index];
    shm_set(
        edit, &table->tasks[index],
        shm_task_word(failed ? SHM_TASK_FAILED : SHM_TASK_DONE, shm_task_tries_of(word), shm_task_crashes_of(word), 0));
    shm_set(edit, &table->run_running, table->run_running - 1);
    if (!failed) {
        shm_set(edit, &table->run_finished, table->run_finished + 1);
        shm_set(edit, &table->finished_ever, table->finished_ever + 1);
        if (table->run_anew == 0)
            shm_set(edit, &table->lasting_ever, table->lasting_ever + 1);
        return;
    }
    if (table->run_failed == 0 || index + 1 < table->run_failed) {
        shm_set(edit, &table->run_failed_cell, cell);
        shm_set(edit, &table->run_failed, index + 1);
    }
    shm_set(edit, &table->run, SHM_RUN_STOPPED);
}

sluice_status shm_tasks_finish(shm_region *region, shm_owner owner, const shm_work *work, bool failed,
                               sluice_error *err)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    PF_TRY(shm_tasks_latch(region, err));
    bool ours = table->run != SHM_RUN_NONE && table->run_serial == work->serial && work->index < table->run_count &&
                shm_task_owner_of(table->tasks[work->index]) == owner;
    if (ours) {
        shm_tasks_edit(region, &edit, SHM_OP_FINISH);
        end_task(table, &edit, work->index, failed, shm_owner_slot(owner));
        shm_edit_commit(&edit);
    }
    shm_tasks_unlatch(region);
    if (!ours)
        return pf_fail(err, SLUICE_FENCED, "task %u of phase %u is no longer this worker's", work->index, work->phase);
    shm_wake(&table->sequence);
    return SLUICE_OK;
}

/* ---- the supervisor ---- */

/* The task that this owner runs; run_count when none. */
static uint64_t find_owned(const shm_tasks *table, shm_owner owner)
{
    uint64_t count = table->run == SHM_RUN_NONE ? 0 : table->run_count;
    uint64_t i = 0;
    while (i < count && shm_task_owner_of(table->tasks[i]) != owner)
        i++;
    return i < count ? i : table->run_count;
}

/* Crashes of conductors up to and with this one: since any task finished, and since lasting work did. */
static uint32_t crashes_since_progress(const shm_tasks *table, bool crashed)
{
    bool progress = table->finished_ever > table->conductor_finished;
    return (progress ? 0 : (uint32_t)table->conductor_crashes) + crashed;
}

static uint32_t crashes_since_lasting_work(const shm_tasks *table, bool crashed)
{
    bool lasting = table->lasting_ever > table->conductor_lasting;
    return (lasting ? 0 : (uint32_t)table->conductor_relapses) + crashed;
}

static void judge_task(const shm_tasks *table, uint64_t index, bool crashed, const shm_limits *limits, shm_loss *loss)
{
    uint32_t crashes = shm_task_crashes_of(table->tasks[index]) + crashed;
    uint32_t tries = shm_task_tries_of(table->tasks[index]);
    loss->had_task = true;
    loss->phase = (uint32_t)table->run_phase;
    loss->index = (uint32_t)index;
    loss->task_fails = crashes >= limits->crashes || tries >= limits->deaths;
    loss->times = crashes >= limits->crashes ? crashes : tries;
}

/* A crash inside a task is the task's; but where plans are made anew, tasks begin anew, so as a relapse it counts. */
static void judge_conductor(const shm_tasks *table, bool crashed, const shm_limits *limits, shm_loss *loss)
{
    uint32_t crashes = crashes_since_progress(table, crashed && !loss->had_task);
    uint32_t relapses = crashes_since_lasting_work(table, crashed);
    bool stuck = table->finished_ever == table->conductor_finished && table->conductor_tries >= limits->deaths;
    loss->conducted = true;
    loss->job_fails = crashes >= limits->crashes || relapses >= limits->relapses || stuck;
    if (loss->job_fails)
        loss->times = crashes >= limits->crashes ? crashes : stuck ? (uint32_t)table->conductor_tries : relapses;
}

static void judge_loss(const shm_tasks *table, shm_owner dead, bool crashed, const shm_limits *limits,
                       shm_loss *ret_loss)
{
    *ret_loss = (shm_loss){0};
    uint64_t index = find_owned(table, dead);
    if (table->run != SHM_RUN_NONE && index < table->run_count)
        judge_task(table, index, crashed, limits, ret_loss);
    if (table->conductor == dead && table->job == SHM_JOB_RUNNING)
        judge_conductor(table, crashed, limits, ret_loss);
}

sluice_status shm_tasks_loss(shm_region *region, shm_owner dead, bool crashed, const shm_limits *limits,
                             shm_loss *ret_loss, sluice_error *err)
{
    PF_TRY(shm_tasks_latch(region, err));
    judge_loss(region->tasks, dead, crashed, limits, ret_loss);
    shm_tasks_unlatch(region);
    return SLUICE_OK;
}

static void give_back_task(shm_tasks *table, shm_edit *edit, uint64_t index, bool crashed)
{
    uint64_t word = table->tasks[index];
    shm_set(edit, &table->tasks[index],
            shm_task_word(SHM_TASK_WAITING, shm_task_tries_of(word), shm_task_crashes_of(word) + crashed, 0));
    shm_set(edit, &table->run_running, table->run_running - 1);
    if (index < table->run_next)
        shm_set(edit, &table->run_next, index);
}

static void give_back_conducting(shm_tasks *table, shm_edit *edit, bool crashed, bool had_task)
{
    shm_set(edit, &table->conductor_crashes, crashes_since_progress(table, crashed && !had_task));
    shm_set(edit, &table->conductor_relapses, crashes_since_lasting_work(table, crashed));
    shm_set(edit, &table->conductor, 0);
}

static void end_job(shm_tasks *table, shm_edit *edit, sluice_status outcome, uint32_t cell)
{
    shm_set(edit, &table->conductor, 0);
    shm_set(edit, &table->outcome, (uint64_t)outcome);
    shm_set(edit, &table->outcome_cell, cell);
    if (table->run == SHM_RUN_OPEN)
        shm_set(edit, &table->run, SHM_RUN_STOPPED);
    shm_set(edit, &table->job, SHM_JOB_OVER);
}

sluice_status shm_tasks_bury(shm_region *region, shm_owner dead, bool crashed, const shm_limits *limits,
                             sluice_error *err)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    shm_loss loss;
    PF_TRY(shm_tasks_latch(region, err));
    judge_loss(table, dead, crashed, limits, &loss);
    if (loss.had_task || loss.conducted) {
        shm_tasks_edit(region, &edit, SHM_OP_DEATH);
        if (loss.had_task && loss.task_fails)
            end_task(table, &edit, loss.index, true, shm_owner_slot(dead));
        else if (loss.had_task)
            give_back_task(table, &edit, loss.index, crashed);
        if (loss.job_fails)
            end_job(table, &edit, SLUICE_INTERNAL, shm_owner_slot(dead));
        else if (loss.conducted)
            give_back_conducting(table, &edit, crashed, loss.had_task);
        shm_edit_commit(&edit);
    }
    shm_tasks_unlatch(region);
    shm_wake(&table->sequence);
    return SLUICE_OK;
}

static sluice_status change_job(shm_region *region, shm_owner owner, shm_job_state state, sluice_status outcome,
                                uint32_t cell, sluice_error *err)
{
    shm_tasks *table = region->tasks;
    shm_edit edit;
    PF_TRY(shm_tasks_latch(region, err));
    bool ours = owner == 0 || table->conductor == owner;
    if (ours && table->job != SHM_JOB_OVER) {
        shm_tasks_edit(region, &edit, SHM_OP_JOB);
        if (state == SHM_JOB_OVER)
            end_job(table, &edit, outcome, cell);
        else
            shm_set(&edit, &table->job, state);
        shm_edit_commit(&edit);
    }
    shm_tasks_unlatch(region);
    if (!ours)
        return pf_fail(err, SLUICE_FENCED, "the job is conducted by another worker now");
    shm_wake(&table->sequence);
    return SLUICE_OK;
}

sluice_status shm_job_start(shm_region *region, sluice_error *err)
{
    return change_job(region, 0, SHM_JOB_RUNNING, SLUICE_OK, 0, err);
}

sluice_status shm_job_fail(shm_region *region, sluice_status outcome, sluice_error *err)
{
    return change_job(region, 0, SHM_JOB_OVER, outcome, region->config.workers, err);
}

sluice_status shm_job_end(shm_region *region, shm_owner owner, sluice_status outcome, sluice_error *err)
{
    return change_job(region, owner, SHM_JOB_OVER, outcome, shm_owner_slot(owner), err);
}

/* ---- onlookers ---- */

bool shm_job_is_over(const shm_region *region, sluice_status *ret_outcome, uint32_t *ret_cell)
{
    const shm_tasks *table = region->tasks;
    if (table->job != SHM_JOB_OVER)
        return false;
    *ret_outcome = (sluice_status)table->outcome;
    *ret_cell = (uint32_t)table->outcome_cell;
    return true;
}

void shm_run_progress(const shm_region *region, uint32_t *ret_phase, uint32_t *ret_done, uint32_t *ret_total)
{
    const shm_tasks *table = region->tasks;
    *ret_phase = (uint32_t)table->run_phase;
    *ret_done = (uint32_t)table->run_finished;
    *ret_total = (uint32_t)table->run_count;
}

uint64_t shm_tasks_finished(const shm_region *region)
{
    return region->tasks->finished_ever;
}
