/*
 * The job's table: its conductor, the run of one phase, the tasks of that run, and the phases that are finished for
 * good.
 *
 * A job has one conductor at a time; which worker that is, is an entry like a task. The conductor opens runs: a phase
 * with tasks 0 .. count-1, taken in ascending order by whoever is idle. A finished phase is remembered, so that the
 * successor of a dead conductor does not repeat it. A task's word: state in bits 0-1, times taken in bits 2-9, owner
 * from bit 16 on.
 *
 * All functions take the tasks latch and answer TIMEOUT or FENCED when it cannot be had (shm_latch_take); FENCED also
 * when the owner is not, or no longer, the one who holds the task or conducts. Nobody waits in here.
 */
#ifndef SHM_TASKS_H
#define SHM_TASKS_H

#include "shm/slots.h"

typedef enum shm_job_state { SHM_JOB_NONE, SHM_JOB_RUNNING, SHM_JOB_OVER } shm_job_state;
typedef enum shm_run_state {
    SHM_RUN_NONE,   /* the task words mean nothing */
    SHM_RUN_OPEN,   /* waiting tasks may be taken */
    SHM_RUN_STOPPED /* none is started any more; running ones end */
} shm_run_state;
typedef enum shm_task_state { SHM_TASK_WAITING, SHM_TASK_RUNNING, SHM_TASK_DONE, SHM_TASK_FAILED } shm_task_state;

void shm_tasks_init(shm_region *region); /* by the region's builder */
/* Invariants of the table; true while no edit is open. */
bool shm_tasks_check(const shm_region *region);
/* Undoes an open edit and checks; on damage poisons the region and answers false. For latches: `region` is a
 * shm_region. */
bool shm_tasks_repair(void *region);

/* ---- workers ---- */

typedef enum shm_work_kind {
    SHM_WORK_NONE, /* nothing now: wait on tasks->sequence */
    SHM_WORK_TASK,
    SHM_WORK_CONDUCT,
    SHM_WORK_OVER /* the job has ended */
} shm_work_kind;

typedef struct shm_work {
    shm_work_kind kind;
    uint32_t phase, index;
    uint64_t serial; /* of the run */
} shm_work;

sluice_status shm_tasks_take(shm_region *region, shm_owner owner, bool may_conduct, shm_work *ret_work,
                             sluice_error *err);
/* The task ended; a failed one's error lies in the owner's error cell. */
sluice_status shm_tasks_finish(shm_region *region, shm_owner owner, const shm_work *work, bool failed,
                               sluice_error *err);

/* ---- the conductor ---- */

typedef enum shm_run_answer {
    SHM_RUN_IS_DONE,     /* finished, now or earlier */
    SHM_RUN_GOES_ON,     /* tasks wait or run: help, and look again */
    SHM_RUN_HAS_TO_WAIT, /* tasks of an older run still end: look again */
    SHM_RUN_HAS_FAILED,  /* *ret_cell holds the error of the lowest failed task */
    SHM_RUN_WAS_STOPPED  /* by shm_run_stop, and nothing failed */
} shm_run_answer;

/* Opens a run of this phase, or goes on with the one that a dead conductor left. `anew`: whatever finished before does
 * not count, and is not remembered. RESOURCE_LIMIT for more tasks or phases than the table holds. */
sluice_status shm_run_begin(shm_region *region, shm_owner owner, uint32_t phase, uint32_t count, bool anew,
                            shm_run_answer *ret_answer, sluice_error *err);
sluice_status shm_run_look(shm_region *region, shm_owner owner, shm_run_answer *ret_answer, uint32_t *ret_cell,
                           sluice_error *err);
sluice_status shm_run_stop(shm_region *region, shm_owner owner, sluice_error *err);
/* The job has ended with this status; an error lies in the owner's error cell, a result in the result cell. */
sluice_status shm_job_end(shm_region *region, shm_owner owner, sluice_status outcome, sluice_error *err);

/* ---- the supervisor ---- */

sluice_status shm_job_start(shm_region *region, sluice_error *err);
/* Ends the job unless it has ended: its error lies in the supervisor's error cell. */
sluice_status shm_job_fail(shm_region *region, sluice_status outcome, sluice_error *err);

/* How often is too often. A crash is a death that the work itself may have caused; any other came from outside
 * (somebody's kill) and tells little about the work. */
typedef struct shm_limits {
    uint32_t crashes;  /* of one task; of conductors in a row without any task finished */
    uint32_t relapses; /* crashes of conductors, inside of tasks or not, without lasting work finished: plans that were
                        * made anew do not count */
    uint32_t deaths;   /* of any kind: of one task; of conductors in a row without any task finished */
} shm_limits;
#define SHM_TASK_TRIES_MAX   255u /* counted up to */
#define SHM_TASK_CRASHES_MAX 63u

typedef struct shm_loss { /* what a dead owner had */
    bool conducted;
    bool had_task;
    bool job_fails;  /* the conductor was lost too often */
    bool task_fails; /* the task was */
    uint32_t phase, index;
    uint32_t times; /* that it was lost, when something fails */
} shm_loss;

/* What shm_tasks_bury will do. When something fails by it, the supervisor first writes the cause into the dead owner's
 * error cell. */
sluice_status shm_tasks_loss(shm_region *region, shm_owner dead, bool crashed, const shm_limits *limits,
                             shm_loss *ret_loss, sluice_error *err);
/* Gives the dead owner's task and the conducting back, or fails them. */
sluice_status shm_tasks_bury(shm_region *region, shm_owner dead, bool crashed, const shm_limits *limits,
                             sluice_error *err);

/* ---- without the latch, for whoever looks on ---- */

bool shm_job_is_over(const shm_region *region, sluice_status *ret_outcome, uint32_t *ret_cell);
void shm_run_progress(const shm_region *region, uint32_t *ret_phase, uint32_t *ret_done, uint32_t *ret_total);
uint64_t shm_tasks_finished(const shm_region *region);

#endif
