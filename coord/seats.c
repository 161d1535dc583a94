/*
 * Starting, reaping and killing the workers of a pool (see coord/supervisor.h).
 *
 * Order at a death, never another: the process is reaped (only that proves it), then its token is taken back, then what
 * it held is given away (burial.c), then its seat is taken again. Between fork and its main loop a worker allocates
 * nothing.
 */
#include "coord/supervisor.h"
#include "platform/check.h"
#include <signal.h>
#include <sys/wait.h>

static void become_worker(co_supervisor *supervisor, const co_seat *seat, wk_place *ret_place)
{
    pf_close_other_descriptors(supervisor->keep, supervisor->keep_count);
    pf_forbid_core();
    pf_failpoints_pool((int)pf_parent_pid());
    *ret_place = (wk_place){.region = &supervisor->region,
                            .token = seat->token,
                            .job = supervisor->job,
                            .workers = supervisor->seat_count,
                            .memory = supervisor->options->share,
                            .given_up = supervisor->given_up,
                            .given_up_count = supervisor->given_up_count,
                            .bell = pf_watch_bell(supervisor->watch),
                            .death_pipe = supervisor->pipe.worker};
}

/* A start that failed is tried again later; without any worker the job fails in the end. */
static void note_fork_failure(co_supervisor *supervisor, co_seat *seat, const sluice_error *cause)
{
    int64_t now = pf_monotonic_ns();
    shm_slot_revoke(&supervisor->region, seat->token.slot);
    seat->backoff_ms = seat->backoff_ms == 0 ? CO_BACKOFF_FIRST_MS : seat->backoff_ms * 2;
    if (seat->backoff_ms > CO_BACKOFF_LAST_MS)
        seat->backoff_ms = CO_BACKOFF_LAST_MS;
    seat->start_at_ns = now + seat->backoff_ms * 1000000;
    if (supervisor->fork_failing_ns == 0)
        supervisor->fork_failing_ns = now;
    if (co_seats_taken(supervisor) || now - supervisor->fork_failing_ns < CO_FORK_MS * INT64_C(1000000))
        return;
    shm_error_put(&supervisor->region, supervisor->region.config.workers, cause);
    (void)shm_job_fail(&supervisor->region, cause->code, NULL); /* a busy latch: at the next failure */
}

static sluice_status start_one(co_supervisor *supervisor, uint32_t number, bool *ret_in_child, wk_place *ret_place,
                               sluice_error *err)
{
    co_seat *seat = &supervisor->seats[number];
    sluice_error cause;
    seat->token = shm_slot_assign(&supervisor->region, number);
    if (pf_fork(&seat->child, ret_in_child, &cause) != SLUICE_OK) {
        note_fork_failure(supervisor, seat, &cause);
        return SLUICE_OK;
    }
    if (*ret_in_child) {
        become_worker(supervisor, seat, ret_place);
        return SLUICE_OK;
    }
    supervisor->fork_failing_ns = 0;
    seat->state = CO_SEAT_TAKEN;
    seat->pid = seat->child.pid;
    seat->started_ns = pf_monotonic_ns();
    seat->stopped_since_ns = 0;
    seat->finished_before = shm_tasks_finished(&supervisor->region);
    seat->memory_kills = pf_memory_kills();
    shm_slot_started(&supervisor->region, number, seat->pid);
    return pf_watch_child(supervisor->watch, &seat->child, number, err);
}

sluice_status co_seats_start(co_supervisor *supervisor, bool *ret_in_child, wk_place *ret_place, sluice_error *err)
{
    *ret_in_child = false;
    for (uint32_t i = 0; i < supervisor->seat_count && !*ret_in_child; i++) {
        const co_seat *seat = &supervisor->seats[i];
        if (seat->state == CO_SEAT_EMPTY && seat->start_at_ns <= pf_monotonic_ns())
            PF_TRY(start_one(supervisor, i, ret_in_child, ret_place, err));
    }
    return SLUICE_OK;
}

int64_t co_seats_next_start(const co_supervisor *supervisor)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        const co_seat *seat = &supervisor->seats[i];
        if (seat->state == CO_SEAT_EMPTY && seat->start_at_ns < next)
            next = seat->start_at_ns;
    }
    return next;
}

bool co_is_crash(int wait_status, uint64_t memory_kills_before)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    if (!WIFSIGNALED(wait_status))
        return true;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        if (WTERMSIG(wait_status) == crashes[i])
            return true;
    }
    return WTERMSIG(wait_status) == SIGKILL && pf_memory_kills() != memory_kills_before;
}

static sluice_status reap(co_supervisor *supervisor, uint32_t number, pf_deadline deadline, sluice_error *err)
{
    co_seat *seat = &supervisor->seats[number];
    bool ended = false;
    PF_TRY(pf_child_wait(&seat->child, deadline, &ended, &seat->wait_status, err));
    if (!ended)
        return pf_fail(err, SLUICE_INTERNAL, "a worker that was killed does not end");
    seat->state = CO_SEAT_ENDED;
    seat->crashed = co_is_crash(seat->wait_status, seat->memory_kills);
    shm_slot_revoke(&supervisor->region, number);
    return SLUICE_OK;
}

sluice_status co_seats_reap(co_supervisor *supervisor, uint32_t seat, sluice_error *err)
{
    PF_ASSERT(seat < supervisor->seat_count && supervisor->seats[seat].state == CO_SEAT_TAKEN);
    pf_watch_forget(supervisor->watch, &supervisor->seats[seat].child);
    return reap(supervisor, seat, pf_deadline_in_ms(CO_LEAVE_MS), err);
}

bool co_seats_taken(const co_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state == CO_SEAT_TAKEN)
            return true;
    }
    return false;
}

sluice_status co_seats_kill(co_supervisor *supervisor, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state == CO_SEAT_TAKEN)
            pf_child_kill(&supervisor->seats[i].child);
    }
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state != CO_SEAT_TAKEN)
            continue;
        sluice_status reaped = co_seats_reap(supervisor, i, status == SLUICE_OK ? err : NULL);
        if (status == SLUICE_OK)
            status = reaped;
    }
    return status;
}

void co_seats_kill_stopped(co_supervisor *supervisor, int64_t now)
{
    int64_t patience_ns = supervisor->options->stopped_seconds * INT64_C(1000000000);
    for (uint32_t i = 0; patience_ns > 0 && i < supervisor->seat_count; i++) {
        co_seat *seat = &supervisor->seats[i];
        if (seat->state != CO_SEAT_TAKEN)
            continue;
        if (!pf_child_is_stopped(&seat->child))
            seat->stopped_since_ns = 0;
        else if (seat->stopped_since_ns == 0)
            seat->stopped_since_ns = now;
        else if (now - seat->stopped_since_ns > patience_ns)
            pf_child_kill(&seat->child);
    }
}
