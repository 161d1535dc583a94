/*
 * The pool: one region, its workers, and the supervisor's loop until the job has ended (see coord/pool.h).
 *
 * Crash rules. Worker: see burial.c. Supervisor: its workers are killed with it by the kernel (parent-death signal; the
 * death pipe is the second net), and what they had made durable is settled by recovery. Region damaged: all workers are
 * killed and reaped, a new region with a new epoch is made, and the job is conducted again from what is on disk.
 */
#include "coord/supervisor.h"
#include "platform/check.h"
#include "platform/memory.h"
#include <stdlib.h>
#include <string.h>

/* Every worker is reaped before. */
static void free_region(co_supervisor *supervisor)
{
    pf_failpoints_share(NULL);
    shm_region_free(&supervisor->region);
}

static sluice_status make_region(co_supervisor *supervisor, sluice_error *err)
{
    const shm_config config = SHM_CONFIG_DEFAULT(supervisor->seat_count);
    PF_TRY(shm_region_make(&config, &supervisor->region, err));
    pf_failpoints_share(supervisor->region.failpoints->passages);
    supervisor->latches[0] = (co_latch_watch){.latch = &supervisor->region.tasks->latch};
    supervisor->latches[1] = (co_latch_watch){.latch = &supervisor->region.gates->latch};
    supervisor->latches[2] = (co_latch_watch){.latch = &supervisor->region.publish->latch};
    for (uint32_t i = 0; i < supervisor->seat_count; i++)
        supervisor->seats[i] = (co_seat){.state = CO_SEAT_EMPTY, .child = {.pid = -1, .pidfd = -1}};
    supervisor->start_failures = 0;
    supervisor->fork_failing_ns = 0;
    if (supervisor->interrupts > 0)
        shm_region_cancel(&supervisor->region);
    sluice_status status = shm_job_start(&supervisor->region, err);
    if (status != SLUICE_OK)
        free_region(supervisor);
    return status;
}

static void show_progress(co_supervisor *supervisor)
{
    wk_progress now;
    shm_progress_sum(&supervisor->region, &now.rows, &now.bytes);
    shm_run_progress(&supervisor->region, &now.phase, &now.tasks_done, &now.tasks_total);
    /* What a lost task had counted is taken back; what is shown only grows. */
    if (now.rows < supervisor->shown.rows)
        now.rows = supervisor->shown.rows;
    if (now.bytes < supervisor->shown.bytes)
        now.bytes = supervisor->shown.bytes;
    supervisor->shown = now;
    if (supervisor->options->progress)
        supervisor->options->progress(supervisor->options->progress_context, &now,
                                      (pf_monotonic_ns() - supervisor->began_ns) / 1000000);
}

/* What all processes have now. A sample: what is gone before the next one is not seen. */
static void measure_memory(co_supervisor *supervisor)
{
    uint64_t bytes = pf_memory_of(pf_pid());
    for (uint32_t i = 0; i < supervisor->seat_count; i++) {
        if (supervisor->seats[i].state == CO_SEAT_TAKEN)
            bytes += pf_memory_of(supervisor->seats[i].pid);
    }
    if (bytes > supervisor->memory_peak)
        supervisor->memory_peak = bytes;
}

/* The first signal asks the conductor, which may be past the point where it can; the second one does not ask. */
static sluice_status interrupt(co_supervisor *supervisor, uint32_t signal, sluice_error *err)
{
    if (++supervisor->interrupts == 1) {
        shm_region_cancel(&supervisor->region);
        return SLUICE_OK;
    }
    PF_TRY(co_seats_kill(supervisor, err));
    (void)pf_fail(err, SLUICE_CANCELLED, "stopped by a second signal %u", signal);
    if (err)
        err->committed = err->acknowledged = SLUICE_UNKNOWN;
    pf_hint(err, "`sluice log GRAPH` shows whether the write was published; the next writer settles what it left");
    return SLUICE_CANCELLED;
}

/* Until the job has ended or the region is damaged. *ret_in_child: this is a worker now. */
static sluice_status supervise(co_supervisor *supervisor, bool *ret_in_child, wk_place *ret_place, sluice_error *err)
{
    sluice_status outcome;
    uint32_t cell;
    pf_event event;
    while (!shm_job_is_over(&supervisor->region, &outcome, &cell) &&
           shm_region_state(&supervisor->region) == SHM_READY) {
        PF_TRY(co_seats_start(supervisor, ret_in_child, ret_place, err));
        if (*ret_in_child)
            return SLUICE_OK;
        int64_t now = pf_monotonic_ns();
        if (now >= supervisor->next_tick_ns) {
            supervisor->next_tick_ns = now + CO_TICK_MS * INT64_C(1000000);
            co_watch_latches(supervisor);
            co_seats_kill_stopped(supervisor, now);
            show_progress(supervisor);
            measure_memory(supervisor);
        }
        int64_t wake_ns = co_seats_next_start(supervisor);
        if (wake_ns > supervisor->next_tick_ns)
            wake_ns = supervisor->next_tick_ns;
        PF_TRY(pf_watch_next(supervisor->watch, (pf_deadline){wake_ns}, &event, err));
        if (event.kind == PF_EVENT_CHILD)
            PF_TRY(co_seats_reap(supervisor, event.tag, err));
        else if (event.kind == PF_EVENT_INTERRUPT)
            PF_TRY(interrupt(supervisor, event.signal, err));
        co_bury_ended(supervisor);
    }
    return SLUICE_OK;
}

/* The job is over: idle workers leave at once. Who does not, and all of them at a signal, are killed by the caller. */
static sluice_status dismiss(co_supervisor *supervisor, sluice_error *err)
{
    pf_deadline deadline = pf_deadline_in_ms(CO_LEAVE_MS);
    pf_event event = {.kind = PF_EVENT_BELL};
    measure_memory(supervisor);
    shm_region_end(&supervisor->region);
    while (co_seats_taken(supervisor) && event.kind != PF_EVENT_NONE && event.kind != PF_EVENT_INTERRUPT) {
        PF_TRY(pf_watch_next(supervisor->watch, deadline, &event, err));
        if (event.kind == PF_EVENT_CHILD)
            PF_TRY(co_seats_reap(supervisor, event.tag, err));
    }
    return SLUICE_OK;
}

static sluice_status take_outcome(const co_supervisor *supervisor, void *result, sluice_error *err)
{
    sluice_status outcome = SLUICE_INTERNAL;
    uint32_t cell = 0;
    sluice_error failed;
    PF_ALWAYS(shm_job_is_over(&supervisor->region, &outcome, &cell));
    if (outcome == SLUICE_OK) {
        memcpy(result, supervisor->region.result->bytes, supervisor->job->result_size);
        return SLUICE_OK;
    }
    shm_error_get(&supervisor->region, cell, outcome, &failed);
    if (err)
        *err = failed;
    return failed.code;
}

/* One region's life. *ret_damaged: the job is to be conducted again, in a new one. */
static sluice_status run_in_region(co_supervisor *supervisor, void *result, bool *ret_damaged, pf_id *ret_epoch,
                                   sluice_error *err)
{
    bool in_child = false;
    wk_place place;
    PF_TRY(make_region(supervisor, err));
    sluice_status status = supervise(supervisor, &in_child, &place, err);
    if (in_child)
        pf_leave(wk_work(&place));
    *ret_damaged = status == SLUICE_OK && shm_region_state(&supervisor->region) == SHM_POISONED;
    if (status == SLUICE_OK && !*ret_damaged)
        status = dismiss(supervisor, err);
    sluice_status killed = co_seats_kill(supervisor, status == SLUICE_OK ? err : NULL);
    if (status == SLUICE_OK)
        status = killed;
    if (status == SLUICE_OK && !*ret_damaged) {
        show_progress(supervisor);
        status = take_outcome(supervisor, result, err);
    }
    *ret_epoch = supervisor->region.header->epoch;
    if (!co_seats_taken(supervisor))
        free_region(supervisor);
    return status;
}

static sluice_status run_job(co_supervisor *supervisor, void *result, sluice_error *err)
{
    for (unsigned regions = 0; regions < CO_REGIONS_MAX; regions++) {
        bool damaged = false;
        pf_id epoch;
        PF_TRY(run_in_region(supervisor, result, &damaged, &epoch, err));
        if (!damaged)
            return SLUICE_OK;
        supervisor->given_up[supervisor->given_up_count++] = epoch;
    }
    return pf_fail(err, SLUICE_INTERNAL, "the job damaged the shared region %u times", CO_REGIONS_MAX);
}

/* What every worker keeps open beside the standard descriptors. */
static sluice_status list_descriptors(co_supervisor *supervisor, sluice_error *err)
{
    const wk_job *job = supervisor->job;
    supervisor->keep = malloc((job->descriptor_count + 2) * sizeof *supervisor->keep);
    if (!supervisor->keep)
        return pf_fail_memory(err);
    supervisor->keep[supervisor->keep_count++] = pf_watch_bell(supervisor->watch);
    supervisor->keep[supervisor->keep_count++] = supervisor->pipe.worker;
    for (uint32_t i = 0; i < job->descriptor_count; i++)
        supervisor->keep[supervisor->keep_count++] = job->descriptors[i];
    return SLUICE_OK;
}

sluice_status co_pool_run(const wk_job *job, const co_pool_options *options, void *result, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    if (options->workers == 0 || options->workers > SHM_WORKERS_MAX)
        return pf_fail(err, SLUICE_USAGE, "a pool has 1 to %u workers", SHM_WORKERS_MAX);
    PF_ALWAYS(job->result_size <= WK_RESULT_MAX);
    co_supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (!supervisor)
        return pf_fail_memory(err);
    supervisor->job = job;
    supervisor->options = options;
    supervisor->seat_count = options->workers;
    supervisor->pipe = (pf_death_pipe){.supervisor = -1, .worker = -1};
    supervisor->began_ns = pf_monotonic_ns();
    PF_GOTO(status, done, pf_watch_open(&supervisor->watch, err));
    PF_GOTO(status, done, pf_death_pipe_make(&supervisor->pipe, err));
    PF_GOTO(status, done, list_descriptors(supervisor, err));
    status = run_job(supervisor, result, err);
    if (options->peak)
        *options->peak = supervisor->memory_peak;
done:
    pf_death_pipe_close(&supervisor->pipe);
    pf_watch_close(supervisor->watch);
    free(supervisor->keep);
    free(supervisor);
    return status;
}

sluice_status co_pool_workers(unsigned asked, unsigned *ret_workers, bool *ret_asked, sluice_error *err)
{
    const char *text = getenv("SLUICE_WORKERS");
    char *end = NULL;

    *ret_workers = asked > 0 ? asked : pf_processors();
    *ret_asked = asked > 0 || (text != NULL && *text != '\0');
    if (asked > 0 || !*ret_asked)
        return SLUICE_OK;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > UINT32_MAX)
        return pf_fail_private(err, SLUICE_USAGE, "SLUICE_WORKERS is no number of workers",
                               "SLUICE_WORKERS: \"%s\" is no number of workers", text);
    *ret_workers = (unsigned)value;
    return SLUICE_OK;
}
