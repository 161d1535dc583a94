/*
 * Jobs: admission, queues, the choice of who is next, and ends (see coord/host/host.h).
 *
 * Places. Each lane has as many as there are workers. A small job takes one; a job with a pool takes as many as its
 * pool has workers, which is at most its graph's share by weight, so that a long job of one graph never keeps another
 * graph waiting for its first. Within a lane the graph that has had least, by weight, is next (stride scheduling); a
 * graph that was idle begins where the others stand, so that nobody saves up turns.
 */
#include "coord/host/host.h"
#include "coord/memory.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRIDE       (UINT64_C(1) << 20)
#define MEMORY_LEAST (UINT64_C(64) << 20) /* a job with less is of no use */

host_job *host_job_find(host_server *host, const pf_id *id)
{
    host_job *job = host->newest;
    while (job && !pf_id_equal(&job->id, id))
        job = job->previous;
    return job;
}

static void drop_request(host_job *job)
{
    free(job->line);
    job->line = NULL;
    for (uint32_t i = 0; i < job->descriptor_count; i++)
        pf_descriptor_close(&job->descriptors[i]);
    job->descriptor_count = 0;
}

void host_job_free(host_job *job)
{
    drop_request(job);
    pf_buffer_free(&job->record);
    pf_buffer_free(&job->output[0]);
    pf_buffer_free(&job->output[1]);
    free(job);
}

static void unlink_job(host_server *host, host_job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else
        host->oldest = job->next;
    if (job->next)
        job->next->previous = job->previous;
    else
        host->newest = job->previous;
}

static void forget_oldest_ended(host_server *host)
{
    for (host_job *job = host->oldest; job && host->ended > HOST_ENDED_KEPT;) {
        host_job *next = job->next;
        if (job->state == HOST_ENDED) {
            unlink_job(host, job);
            host_job_free(job);
            host->ended--;
        }
        job = next;
    }
}

/* ---- queues ---- */

static void enqueue(host_job *job, bool first)
{
    host_graph *graph = job->graph;
    host_job **at = &graph->queue;
    while (*at && !first)
        at = &(*at)->queued_next;
    job->queued_next = *at;
    *at = job;
    job->state = HOST_WAITING;
    graph->queued++;
}

static void dequeue(host_job *job)
{
    host_job **at = &job->graph->queue;
    while (*at != job)
        at = &(*at)->queued_next;
    *at = job->queued_next;
    job->queued_next = NULL;
    job->graph->queued--;
}

/* One writer at a time; readers beside it. */
static bool one_at_a_time(const host_graph *graph)
{
    return graph->mode != HOST_OPTIMISTIC;
}

/* The workers that a job with a pool may have: its graph's share of them. */
static uint32_t share_of(const host_server *host, const host_graph *graph)
{
    uint64_t weights = 0;
    for (const host_graph *other = host->graphs; other; other = other->next)
        weights += other->leaving ? 0 : other->config.weight;
    uint64_t share = weights ? (uint64_t)host->config.workers * graph->config.weight / weights : 1;
    return share > 0 ? (uint32_t)share : 1;
}

/* Of one job: as configured, else its graph's share of half of what there is. */
static uint64_t memory_of(const host_server *host, const host_graph *graph)
{
    uint64_t weights = graph->config.weight;
    if (graph->config.memory)
        return graph->config.memory;
    for (const host_graph *other = host->graphs; other; other = other->next)
        weights += other != graph ? other->config.weight : 0;
    uint64_t memory = host->memory / 2 / weights * graph->config.weight / graph->config.max_jobs;
    return memory > MEMORY_LEAST ? memory : MEMORY_LEAST;
}

/* Jobs of all graphs together stay below what there is: where shares would be too small to work with, jobs wait. One
 * may always run. */
static bool has_memory(const host_server *host, const host_graph *graph)
{
    return host->memory_used == 0 || host->memory_used + memory_of(host, graph) <= host->memory / 4 * 3;
}

/* Of the graph's queue, in the order in which they came, the first that may begin beside what runs. Where writers come
 * one at a time, the first of them is next, whatever its lane. */
static host_job *first_waiting(const host_graph *graph, bool low, host_lane lane)
{
    bool serial = one_at_a_time(graph), blocked = serial && graph->writing > 0;
    uint32_t beside = serial ? graph->running - graph->writing : graph->running;
    for (host_job *job = graph->queue; job; job = job->queued_next) {
        if (job->low != low)
            continue;
        bool writer = serial && !job->reads;
        if (job->lane == lane && (writer ? !blocked : beside < graph->config.max_jobs))
            return job;
        blocked |= writer;
    }
    return NULL;
}

/* Waits for others so long; then it has its turn among them. */
static bool is_patient(const host_job *job, int64_t now)
{
    return job->low && now - job->submitted_ns < HOST_PATIENCE_MS * INT64_C(1000000);
}

/* The first waiting job of this lane that its graph lets start now. */
static host_job *eligible(const host_server *host, const host_graph *graph, host_lane lane, int64_t now)
{
    if (graph->not_before_ns > now || !has_memory(host, graph) ||
        (lane == HOST_SMALL && !host_runner_can_start(host, graph)))
        return NULL;
    host_job *job = first_waiting(graph, false, lane);
    return job ? job : first_waiting(graph, true, lane);
}

static host_job *choose(const host_server *host, host_lane lane, int64_t now)
{
    host_job *best = NULL;
    for (host_graph *graph = host->graphs; graph; graph = graph->next) {
        host_job *job = eligible(host, graph, lane, now);
        if (!job || host->used[lane] + job->workers > host->config.workers)
            continue;
        bool patient = is_patient(job, now), best_patient = best && is_patient(best, now);
        if (!best || (patient == best_patient ? graph->pass[lane] < best->graph->pass[lane] : best_patient))
            best = job;
    }
    return best;
}

static void charge(host_server *host, host_job *job)
{
    host_graph *graph = job->graph;
    if (graph->pass[job->lane] < host->pass[job->lane])
        graph->pass[job->lane] = host->pass[job->lane];
    host->pass[job->lane] = graph->pass[job->lane];
    graph->pass[job->lane] += STRIDE * job->workers / graph->config.weight;
}

static void start(host_server *host, host_job *job)
{
    sluice_error error = {0};
    host->changes++;
    dequeue(job);
    charge(host, job);
    job->state = HOST_RUNNING;
    job->attempts++;
    if (job->started_ns == 0) {
        job->started_ns = pf_monotonic_ns();
        if (!job->low)
            host_count_seconds(&job->graph->waited, job->started_ns - job->submitted_ns);
    }
    job->end_by_ns = job->graph->config.deadline_seconds
                         ? pf_monotonic_ns() + (int64_t)job->graph->config.deadline_seconds * 1000000000
                         : INT64_MAX;
    job->graph->running++;
    job->graph->writing += !job->reads;
    host->used[job->lane] += job->workers;
    job->memory = memory_of(host, job->graph);
    host->memory_used += job->memory;
    if (host_runner_start(host, job, &error) != SLUICE_OK)
        host_job_end(host, job, 0, &error);
}

void host_dispatch(host_server *host)
{
    for (unsigned lane = 0; lane < HOST_LANES; lane++) {
        host_job *job;
        while ((job = choose(host, (host_lane)lane, pf_monotonic_ns())))
            start(host, job);
    }
    forget_oldest_ended(host);
}

int64_t host_next_start(const host_server *host)
{
    int64_t next = INT64_MAX;
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (graph->queue && graph->not_before_ns != 0 && graph->not_before_ns < next)
            next = graph->not_before_ns;
    }
    return next;
}

/* ---- admission ---- */

/* How many of its kind wait: where writers come one at a time, readers stand in no line with them. The supervisor's own
 * jobs are in nobody's way. */
static uint32_t count_waiting(const host_graph *graph, bool reads)
{
    uint32_t count = 0;
    for (const host_job *job = graph->queue; job; job = job->queued_next)
        count += !job->low && (!one_at_a_time(graph) || job->reads == reads);
    return count;
}

/* A writer beside a writer is refused in mode single, where it would wait in mode queued. */
static sluice_status find_room(const host_graph *graph, bool reads, uint32_t more, sluice_error *err)
{
    const host_job *own = graph->maintenance.job; /* waited for in mode single */
    uint32_t queued = count_waiting(graph, reads);
    uint32_t writing = graph->writing - (own && own->state == HOST_RUNNING);
    if (graph->mode == HOST_SINGLE && !reads && writing + queued > 0)
        return pf_fail(err, SLUICE_WRITER_BUSY, "another job is at work on the graph");
    if (graph->held + more > HOST_HELD_MAX)
        return pf_fail(err, SLUICE_QUEUE_FULL, "the jobs of the graph hold %u files", graph->held);
    if (queued < graph->config.queue)
        return SLUICE_OK;
    (void)pf_fail(err, SLUICE_QUEUE_FULL, "%u jobs of the graph are waiting", queued);
    pf_hint(err, "try again later, or give the graph a longer \"queue\" in the supervisor's configuration");
    return SLUICE_QUEUE_FULL;
}

static sluice_status admit(host_server *host, host_job *job, sluice_error *err)
{
    if (host->draining)
        return pf_fail(err, SLUICE_WRITER_BUSY, "the supervisor is ending and takes no more jobs");
    if (!job->graph->ready) {
        *err = job->graph->problem;
        return job->graph->problem.code;
    }
    return find_room(job->graph, job->reads, job->descriptor_count, err);
}

sluice_status host_job_admit(host_server *host, host_job *job, sluice_error *err)
{
    sluice_status status = admit(host, job, err);
    if (status != SLUICE_OK) {
        job->graph->refused++;
        job->graph->refusals[status]++;
        host_job_free(job);
        return status;
    }
    host_job_add(host, job);
    return SLUICE_OK;
}

void host_job_add(host_server *host, host_job *job)
{
    host->changes++;
    job->submitted_ns = pf_monotonic_ns();
    job->graph->held += job->descriptor_count;
    uint32_t share = share_of(host, job->graph);
    unsigned enough = co_memory_workers(memory_of(host, job->graph));
    share = share < enough ? share : enough;
    job->workers = job->lane == HOST_SMALL ? 1 : job->workers == 0 || job->workers > share ? share : job->workers;
    job->previous = host->newest;
    if (host->newest)
        host->newest->next = job;
    else
        host->oldest = job;
    host->newest = job;
    host_ledger_note(job);
    enqueue(job, false);
}

/* ---- the supervisor's own ---- */

static sluice_status put_request(pf_buffer *line, const char *const *words, uint32_t count)
{
    st_json json;
    st_json_begin(&json, line);
    st_json_object(&json);
    st_json_name(&json, "params");
    st_json_object(&json);
    st_json_name(&json, "words");
    st_json_array(&json);
    st_json_text(&json, "graph");
    st_json_text(&json, "--json");
    for (uint32_t i = 0; i < count; i++)
        st_json_text(&json, words[i]);
    st_json_array_end(&json);
    st_json_object_end(&json);
    st_json_object_end(&json);
    PF_TRY(st_json_end(&json, false, NULL));
    return pf_buffer_append(line, "", 1, NULL);
}

host_job *host_job_make_own(const host_server *host, host_graph *graph, const char *command, const char *const *words,
                            uint32_t count)
{
    pf_buffer line = {0};
    host_job *job = calloc(1, sizeof *job);
    if (!job || put_request(&line, words, count) != SLUICE_OK) {
        pf_buffer_free(&line);
        free(job);
        return NULL;
    }
    job->length = line.length - 1;
    job->line = (char *)line.data; /* the job's from here on */
    job->id = pf_id_new();
    job->operation = pf_id_new();
    for (uint32_t i = 0; i < host->program->command_count; i++) {
        if (strcmp(host->program->commands[i].name, command) == 0)
            job->command = &host->program->commands[i];
    }
    PF_ALWAYS(job->command != NULL);
    job->reads = job->command->effect == CO_HOST_READS;
    job->lane = HOST_POOL;
    job->graph = graph;
    job->user = pf_user();
    job->workers = 1;
    job->low = true;
    job->start_by_ns = job->end_by_ns = INT64_MAX;
    return job;
}

/* ---- ends ---- */

static void give_back(host_server *host, const host_job *job)
{
    job->graph->running--;
    job->graph->writing -= !job->reads;
    host->used[job->lane] -= job->workers;
    host->memory_used -= job->memory;
}

static void count_end(const host_job *job)
{
    host_graph *graph = job->graph;
    bool failed = job->failed.code != SLUICE_OK;
    int status = failed ? sluice_status_exit(job->failed.code) : job->exit;
    if (status != 0)
        graph->failed++;
    else
        graph->done++;
    if (status >= 0 && status < (int)HOST_EXITS)
        graph->exits[status]++;
    if (job->started_ns)
        host_count_seconds(&graph->took, job->ended_ns - job->started_ns);
}

void host_job_end(host_server *host, host_job *job, int exit, const sluice_error *failed)
{
    PF_ASSERT(job->state != HOST_ENDED);
    host->changes++;
    if (job->state == HOST_WAITING) {
        dequeue(job);
    } else {
        give_back(host, job);
    }
    job->state = HOST_ENDED;
    job->runner = NULL;
    job->exit = exit;
    job->ended_ns = pf_monotonic_ns();
    if (failed) {
        job->failed = *failed;
        if (job->failed.operation_id[0] == '\0')
            pf_id_text(&job->operation, job->failed.operation_id);
    }
    if (exit != 0 || failed)
        host_log(failed ? "warn" : "info", "job-failed", "graph=%u exit=%d attempts=%u code=%s", job->graph->number,
                 exit, job->attempts, failed ? sluice_status_name(failed->code) : "-");
    if (job == job->graph->maintenance.job)
        host_maintenance_ended(job->graph, job);
    else if (job == job->graph->lineage.job)
        host_lineage_ended(host, job->graph, job);
    else
        count_end(job);
    job->graph->held -= job->descriptor_count;
    drop_request(job);
    host_ledger_drop(job);
    pf_buffer_free(&job->record);
    host_rpc_ended(host, job);
    host->ended++;
}

/* Each crash in a row of a graph's runners doubles the pause before its next job; others go on as before. */
static void back_off(host_graph *graph)
{
    int64_t pause = HOST_BACKOFF_MS;
    for (unsigned i = 1; i < graph->crashes && pause < HOST_BACKOFF_MAX; i++)
        pause *= 2;
    graph->not_before_ns = pf_monotonic_ns() + (pause < HOST_BACKOFF_MAX ? pause : HOST_BACKOFF_MAX) * 1000000;
}

static void end_as_failed(host_server *host, host_job *job)
{
    const sluice_error error = job->failed;
    host_job_end(host, job, 0, &error);
}

/* The job has failed, and its processes are gone. Whether it had committed before, another runner finds out: it keeps
 * the job's place. */
static void look_for_fate(host_server *host, host_job *job)
{
    if (host->over || job->fates++ >= HOST_FATES_MAX) {
        end_as_failed(host, job);
        return;
    }
    job->end_by_ns = pf_monotonic_ns() + HOST_FATE_MS * INT64_C(1000000);
    if (host_runner_start(host, job, NULL) != SLUICE_OK && !job->runner)
        end_as_failed(host, job);
}

void host_job_fate(host_server *host, host_job *job, const host_answer *answer)
{
    sluice_error *error = &job->failed;
    if (answer->fate == CO_FATE_NOTHING) {
        error->committed = error->acknowledged = SLUICE_FALSE;
        error->hint[0] = '\0';
    } else if (answer->fate == CO_FATE_COMMITTED) {
        error->committed = error->acknowledged = SLUICE_TRUE;
        error->hint[0] = '\0';
        pf_id_text(&answer->commit, error->commit_id);
        pf_hint(error, "it was committed before that; the same request with this operation id gets its result");
    }
    end_as_failed(host, job);
}

void host_job_lost(host_server *host, host_job *job, bool crashed, const char *how)
{
    host_graph *graph = job->graph;
    sluice_error error = {0};
    graph->restarts++;
    if (job->fates > 0) {
        look_for_fate(host, job);
        return;
    }
    job->crashes += crashed;
    if (crashed && !job->low) {
        graph->crashes++;
        back_off(graph);
        if (graph->crashes == HOST_CRASHES_MAX)
            host_log("error", "crash-loop", "graph=%u crashes=%u", graph->number, graph->crashes);
    }
    bool again = job->crashes < HOST_CRASHES_MAX && job->attempts < HOST_DEATHS_MAX && !job->once && !job->low &&
                 !job->cancelled && !job->late && !host->draining;
    if (again) {
        give_back(host, job);
        job->runner = NULL;
        job->output[0].length = job->output[1].length = 0;
        enqueue(job, true);
        return;
    }
    if (job->cancelled)
        (void)pf_fail(&error, SLUICE_CANCELLED, "the job was cancelled");
    else if (job->late)
        (void)pf_fail(&error, SLUICE_TIMEOUT, "the job ran longer than %llu s, which its graph allows",
                      (unsigned long long)graph->config.deadline_seconds);
    else
        (void)pf_fail(&error, SLUICE_INTERNAL, "the process of the job ended %u time%s, the last time by %s",
                      job->attempts, job->attempts == 1 ? "" : "s", how);
    error.committed = error.acknowledged = SLUICE_UNKNOWN;
    pf_hint(&error, "the same request with this operation id tells what became of it");
    job->failed = error;
    look_for_fate(host, job);
}

sluice_status host_job_cancel(host_server *host, host_job *job, sluice_error *err)
{
    sluice_error error = {0};
    if (job->state == HOST_ENDED)
        return SLUICE_OK;
    if (job->state == HOST_WAITING) {
        (void)pf_fail(&error, SLUICE_CANCELLED, "the job was cancelled before it began");
        host_job_end(host, job, 0, &error);
        return SLUICE_OK;
    }
    if (job->graph->mode == HOST_QUEUED && !job->reads)
        return pf_fail(err, SLUICE_WRITER_BUSY, "the job has begun: in queued mode only what waits can be cancelled");
    job->cancelled = true;
    if (job->runner && job->fates == 0)
        pf_child_interrupt(&job->runner->child);
    return SLUICE_OK;
}

void host_jobs_tick(host_server *host, int64_t now)
{
    for (host_job *job = host->oldest; job;) {
        host_job *next = job->next;
        sluice_error error = {0};
        if (job->state == HOST_WAITING && now >= job->start_by_ns) {
            (void)pf_fail(&error, SLUICE_TIMEOUT, "the job did not begin before its deadline");
            host_job_end(host, job, 0, &error);
        } else if (job->state == HOST_RUNNING && now >= job->end_by_ns && job->runner) {
            job->late = true;
            pf_child_kill(&job->runner->child);
        }
        job = next;
    }
}

const char *host_state_name(const host_job *job)
{
    if (job->state == HOST_WAITING)
        return job->fates > 0 ? "settling" : job->attempts > 0 ? "retrying" : "queued";
    if (job->state == HOST_RUNNING)
        return job->cancelled ? "cancelling" : "running";
    if (job->failed.code == SLUICE_CANCELLED)
        return "cancelled";
    return job->failed.code != SLUICE_OK || job->exit != 0 ? "failed" : "done";
}
