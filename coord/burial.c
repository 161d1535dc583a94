/*
 * After a death: giving back what the worker held, its obituary, back-off and the end of a crash loop; and workers that
 * stand still inside a latch (see coord/supervisor.h).
 *
 * The dead worker's token is taken back before this. Its error cell is the supervisor's now, and gets the cause when
 * its task or the job fails by this death. Each step may find a latch busy; the whole is then done again, and what was
 * done already is found done.
 */
#include "coord/supervisor.h"
#include "platform/check.h"
#include "platform/tally.h"
#include <stdio.h>
#include <sys/wait.h>

static const shm_limits limits = {.crashes = WK_TASK_TRIES, .relapses = CO_RELAPSES_MAX, .deaths = CO_DEATHS_MAX};

static void describe_end(int wait_status, char *text, size_t size)
{
    if (WIFSIGNALED(wait_status))
        (void)snprintf(text, size, "signal %d", WTERMSIG(wait_status));
    else
        (void)snprintf(text, size, "exit status %d", WEXITSTATUS(wait_status));
}

/* The cause of a failure by death, where the conductor, or the caller of the pool, will look for it. */
static void write_cause(co_supervisor *supervisor, uint32_t number, const shm_loss *loss)
{
    sluice_error cause;
    char how[32];
    describe_end(supervisor->seats[number].wait_status, how, sizeof how);
    if (loss->job_fails)
        (void)pf_fail(&cause, SLUICE_INTERNAL,
                      "the job's conductor ended %u times without progress, the last time by %s", loss->times, how);
    else
        (void)pf_fail(&cause, SLUICE_INTERNAL, "task %u of phase %u ended its worker %u times, the last time by %s",
                      loss->index, loss->phase, loss->times, how);
    pf_details(&cause, "{\"phase\":%u,\"task\":%u,\"times\":%u}", loss->phase, loss->index, loss->times);
    shm_error_put(&supervisor->region, number, &cause);
}

static sluice_status give_back(co_supervisor *supervisor, uint32_t number)
{
    shm_region *region = &supervisor->region;
    shm_owner dead = shm_token_owner(&supervisor->seats[number].token);
    bool crashed = supervisor->seats[number].crashed;
    shm_loss loss;
    PF_TRY(shm_gates_bury(region, number, NULL));
    PF_TRY(shm_publish_bury(region, number, NULL));
    PF_TRY(shm_tasks_loss(region, dead, crashed, &limits, &loss, NULL));
    if (loss.task_fails || loss.job_fails)
        write_cause(supervisor, number, &loss);
    PF_TRY(shm_tasks_bury(region, dead, crashed, &limits, NULL));
    shm_progress_drop(region, number);
    return SLUICE_OK;
}

static void write_obituary(co_supervisor *supervisor, uint32_t number)
{
    const co_seat *seat = &supervisor->seats[number];
    const shm_slot *slot = &supervisor->region.slots[number];
    const shm_death death = {.slot = number,
                             .generation = seat->token.generation,
                             .pid = (uint64_t)seat->pid,
                             .wait_status = (uint32_t)seat->wait_status,
                             .stage = (shm_stage)slot->stage,
                             .phase = (uint32_t)slot->phase,
                             .index = (uint32_t)slot->index};
    shm_obituary_write(&supervisor->region, &death);
    if (seat->wait_status != 0)
        pf_tally_add(PF_TALLY_WORKER_DEATHS, 1);
}

static void fail_job(co_supervisor *supervisor, const sluice_error *cause)
{
    shm_error_put(&supervisor->region, supervisor->region.config.workers, cause);
    (void)shm_job_fail(&supervisor->region, cause->code, NULL); /* a busy latch: the next death says it again */
}

static bool somebody_works(const co_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state == CO_SEAT_TAKEN && supervisor->region.slots[i].stage != SHM_STARTING)
            return true;
    }
    return false;
}

/* A worker ended before it could work. With others at work that costs a seat for a while; with nobody at work it is the
 * job that cannot be opened, or a crash loop. */
static void judge_start_failure(co_supervisor *supervisor, uint32_t number)
{
    const co_seat *seat = &supervisor->seats[number];
    sluice_error cause;
    char how[32];
    if (somebody_works(supervisor)) {
        supervisor->start_failures = 0;
        return;
    }
    supervisor->start_failures++;
    if (WIFEXITED(seat->wait_status) && WEXITSTATUS(seat->wait_status) == WK_LEFT_UNOPENED) {
        shm_error_get(&supervisor->region, number, supervisor->region.errors[number].error.code, &cause);
        fail_job(supervisor, &cause);
    } else if (supervisor->start_failures >= CO_START_FAILURES(supervisor->seat_count)) {
        describe_end(seat->wait_status, how, sizeof how);
        (void)pf_fail(&cause, SLUICE_INTERNAL, "workers end before they can work: %u in a row, the last one by %s",
                      supervisor->start_failures, how);
        fail_job(supervisor, &cause);
    }
}

/* Back-off is for crashes: each in a row without progress doubles it. After a kill from outside only the shortest pause
 * is made, so that the pool is at work again when the kills end. */
static void plan_restart(co_supervisor *supervisor, co_seat *seat)
{
    int64_t now = pf_monotonic_ns();
    bool progress = shm_tasks_finished(&supervisor->region) != seat->finished_before ||
                    now - seat->started_ns >= CO_STEADY_MS * INT64_C(1000000);
    if (progress)
        seat->backoff_ms = 0;
    int64_t pause_ms = seat->backoff_ms;
    if (!seat->crashed && pause_ms > CO_BACKOFF_FIRST_MS)
        pause_ms = CO_BACKOFF_FIRST_MS;
    seat->start_at_ns = now + pause_ms * 1000000;
    if (seat->backoff_ms == 0)
        seat->backoff_ms = CO_BACKOFF_FIRST_MS;
    else if (seat->crashed)
        seat->backoff_ms = seat->backoff_ms < CO_BACKOFF_LAST_MS / 2 ? seat->backoff_ms * 2 : CO_BACKOFF_LAST_MS;
    seat->state = CO_SEAT_EMPTY;
}

void co_bury_ended(co_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        co_seat *seat = &supervisor->seats[i];
        if (seat->state != CO_SEAT_ENDED || give_back(supervisor, i) != SLUICE_OK)
            continue;
        write_obituary(supervisor, i);
        if (supervisor->region.slots[i].stage == SHM_STARTING)
            judge_start_failure(supervisor, i);
        else
            supervisor->start_failures = 0;
        plan_restart(supervisor, seat);
        shm_wake_all(&supervisor->region);
    }
}

static void kill_by_pid(co_supervisor *supervisor, int32_t pid)
{
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state == CO_SEAT_TAKEN && supervisor->seats[i].pid == pid)
            pf_child_kill(&supervisor->seats[i].child);
    }
}

bool co_latch_is_stuck(co_latch_watch *watched, int64_t now)
{
    int32_t owner = lk_latch_owner(watched->latch);
    uint64_t holds = watched->latch->holds;
    if (owner != 0 && owner == watched->owner && holds == watched->holds)
        return now - watched->since_ns > CO_STUCK_LATCH_MS * INT64_C(1000000);
    watched->owner = owner;
    watched->holds = holds;
    watched->since_ns = now;
    return false;
}

void co_watch_latches(co_supervisor *supervisor)
{
    int64_t now = pf_monotonic_ns();
    for (size_t i = 0; i < sizeof supervisor->latches / sizeof supervisor->latches[0]; i++) {
        if (co_latch_is_stuck(&supervisor->latches[i], now))
            kill_by_pid(supervisor, supervisor->latches[i].owner);
    }
}
