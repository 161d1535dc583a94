/*
 * Runners: the processes that do the work, as their parent sees them (see coord/host/host.h).
 *
 * What goes to a runner: an order and the request, with the job's descriptors. What comes back: whatever it writes to
 * its standard output and error, and then, through the channel, its answer (the command's exit status). Output that was
 * written before the answer is read before the answer is believed. A runner that ends without an answer has died over
 * its job.
 */
#include "coord/host/host.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/memory.h"
#include "store/format/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define READ_STEP 65536u

static uint32_t number_of(const host_server *host, const host_runner *runner)
{
    return (uint32_t)(runner - host->runners);
}

/* ---- starting ---- */

/* In the child. Never returns: what the supervisor has on its stack is not the runner's. */
static _Noreturn void become_runner(host_server *host, const host_runner *runner, const int far[3])
{
    const int keep[] = {far[0]};
    const host_place place = {.program = host->program,
                              .graph_path = runner->graph->config.path,
                              .channel = far[0],
                              .stays = runner->stays,
                              .region = runner->seated ? &runner->graph->region : NULL,
                              .token = runner->token,
                              .disk = runner->graph->disk.address,
                              .given_up = runner->graph->given_up,
                              .given_up_count = runner->graph->given_up_count};
    host_regions_leave(host, runner->graph, runner->seated);
    pf_tallies_share(runner->graph->tallies, number_of(host, runner));
    if (pf_descriptor_become(far[1], 1, NULL) != SLUICE_OK || pf_descriptor_become(far[2], 2, NULL) != SLUICE_OK)
        pf_leave(1);
    pf_close_other_descriptors(keep, 1);
    pf_forbid_core();
    pf_failpoints_pool((int)pf_parent_pid());
    const char *only = getenv("SLUICE_FAILPOINT_GRAPH"); /* a test's: the rules are for one graph */
    if (only && strcmp(only, runner->graph->config.name) != 0)
        pf_failpoints_forget();
    pf_leave(host_work(&place));
}

static sluice_status watch_runner(host_server *host, host_runner *runner, sluice_error *err)
{
    uint32_t number = number_of(host, runner);
    PF_TRY(pf_watch_child(host->watch, &runner->child, number, err));
    PF_TRY(pf_watch_descriptor(host->watch, runner->channel, HOST_TAG(HOST_TAG_CHANNEL, number), true, false, err));
    PF_TRY(pf_watch_descriptor(host->watch, runner->output[0], HOST_TAG(HOST_TAG_OUTPUT, number), true, false, err));
    return pf_watch_descriptor(host->watch, runner->output[1], HOST_TAG(HOST_TAG_ERRORS, number), true, false, err);
}

static sluice_status fork_runner(host_server *host, host_graph *graph, bool stays, host_runner *runner,
                                 sluice_error *err)
{
    int channel[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    bool in_child = false;
    sluice_status status;
    *runner = (host_runner){.channel = -1, .output = {-1, -1}, .graph = graph, .stays = stays};
    graph->tallies->places[number_of(host, runner)] = SLUICE_PHASE_NONE;
    for (unsigned i = 0; i < 3; i++)
        graph->tallies->heaps[number_of(host, runner)][i] = 0;
    if (stays)
        PF_TRY(host_region_seat(graph, runner, err));
    PF_GOTO(status, done, pf_socket_pair(channel, err));
    PF_GOTO(status, done, pf_pipe_make(out, err));
    PF_GOTO(status, done, pf_pipe_make(errors, err));
    PF_GOTO(status, done, pf_fork(&runner->child, &in_child, err));
    if (in_child) {
        const int far[3] = {channel[1], out[1], errors[1]};
        become_runner(host, runner, far);
    }
    runner->channel = channel[0];
    runner->output[0] = out[0];
    runner->output[1] = errors[0];
    runner->reads[0] = runner->reads[1] = true;
    runner->state = HOST_RUNNER_IDLE;
    runner->idle_since_ns = pf_monotonic_ns();
    runner->memory_kills = pf_memory_kills();
    channel[0] = out[0] = errors[0] = -1;
    if (runner->seated)
        shm_slot_started(&graph->region, runner->token.slot, runner->child.pid);
    status = watch_runner(host, runner, err);
    if (status != SLUICE_OK)
        pf_child_kill(&runner->child); /* its end is waited for like any other */
done:
    if (status != SLUICE_OK && runner->state == HOST_RUNNER_NONE && runner->seated) {
        host_region_unseat(runner); /* nobody has sat there: there is nothing to bury */
        graph->seat_taken[runner->token.slot] = false;
        runner->seated = false;
    }
    for (unsigned i = 0; i < 2; i++) {
        pf_descriptor_close(&channel[i]);
        pf_descriptor_close(&out[i]);
        pf_descriptor_close(&errors[i]);
    }
    return status;
}

static bool is_idle(const host_runner *runner, const host_graph *graph)
{
    return runner->state == HOST_RUNNER_IDLE && runner->graph == graph && runner->stays;
}

static host_runner *find_idle(host_server *host, const host_graph *graph)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (is_idle(&host->runners[i], graph))
            return &host->runners[i];
    }
    return NULL;
}

bool host_runner_can_start(const host_server *host, const host_graph *graph)
{
    if (host_region_is_damaged(graph))
        return false;
    for (uint32_t i = 0; i < graph->seats; i++) {
        if (!graph->seat_taken[i])
            return true;
    }
    for (uint32_t i = 0; graph->seats > 0 && i < HOST_RUNNERS_MAX; i++) {
        if (is_idle(&host->runners[i], graph))
            return true;
    }
    return graph->seats == 0; /* it is made with the first one */
}

static host_runner *find_free(host_server *host)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state == HOST_RUNNER_NONE)
            return &host->runners[i];
    }
    return NULL;
}

/* An idle runner leaves when its channel is closed. */
static void dismiss(host_server *host, host_runner *runner)
{
    pf_watch_descriptor_forget(host->watch, runner->channel);
    pf_descriptor_close(&runner->channel);
    runner->state = HOST_RUNNER_LEAVING;
}

static uint32_t count_idle(const host_server *host, const host_runner **ret_oldest)
{
    uint32_t idle = 0;
    *ret_oldest = NULL;
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        const host_runner *runner = &host->runners[i];
        if (runner->state != HOST_RUNNER_IDLE)
            continue;
        idle++;
        if (!*ret_oldest || runner->idle_since_ns < (*ret_oldest)->idle_since_ns)
            *ret_oldest = runner;
    }
    return idle;
}

/* As many wait ahead as there are workers; the one that waited longest makes room. */
static void make_room(host_server *host)
{
    const host_runner *oldest;
    if (count_idle(host, &oldest) >= host->config.workers)
        dismiss(host, &host->runners[number_of(host, oldest)]);
}

void host_runner_ahead(host_server *host, host_graph *graph)
{
    const host_runner *oldest;
    host_runner *runner = find_free(host);
    if (!runner || !graph->ready || count_idle(host, &oldest) >= host->config.workers || find_idle(host, graph))
        return;
    sluice_error error = {0};
    if (fork_runner(host, graph, true, runner, &error) != SLUICE_OK && runner->channel < 0)
        runner->state = HOST_RUNNER_NONE; /* the first job tries again, and tells */
}

static void send_orders(host_server *host, host_runner *runner)
{
    size_t done = 0;
    if (runner->channel < 0)
        return;
    /* A broken channel is a dead runner: its end comes as an event of its own. */
    (void)pf_socket_send(runner->channel, runner->orders.data, runner->orders.length, runner->descriptors,
                         runner->descriptor_count, &done, NULL);
    if (done > 0)
        runner->descriptor_count = 0;
    if (done < runner->orders.length)
        memmove(runner->orders.data, runner->orders.data + done, runner->orders.length - done);
    runner->orders.length -= done;
    pf_watch_descriptor_change(host->watch, runner->channel, HOST_TAG(HOST_TAG_CHANNEL, number_of(host, runner)), true,
                               runner->orders.length > 0);
}

sluice_status host_runner_start(host_server *host, host_job *job, sluice_error *err)
{
    bool stays = job->lane == HOST_SMALL && job->fates == 0;
    const host_order order = {.length = job->length,
                              .memory = job->memory,
                              .quota = job->graph->config.quota,
                              .operation = job->operation,
                              .command = (uint32_t)(job->command - host->program->commands),
                              .descriptors = job->fates > 0 ? 0 : job->descriptor_count,
                              .attempt = job->attempts,
                              .workers = job->workers,
                              .foreign = job->user != pf_user(),
                              .stopped_seconds = host->config.stopped_seconds,
                              .looks = job->fates > 0};
    host_runner *runner = stays ? find_idle(host, job->graph) : NULL;
    if (!runner) {
        if (stays)
            make_room(host);
        runner = find_free(host);
        if (!runner)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "%u processes are at work", HOST_RUNNERS_MAX);
        PF_TRY(fork_runner(host, job->graph, stays, runner, err));
    }
    runner->state = HOST_RUNNER_BUSY;
    runner->job = job;
    job->runner = runner;
    runner->jobs++;
    runner->orders.length = 0;
    runner->answer_length = 0;
    runner->tail_length[0] = runner->tail_length[1] = 0;
    PF_TRY(pf_buffer_append(&runner->orders, &order, sizeof order, err));
    PF_TRY(pf_buffer_append(&runner->orders, job->line, job->length, err));
    memcpy(runner->descriptors, job->descriptors, sizeof job->descriptors);
    runner->descriptor_count = order.descriptors;
    send_orders(host, runner);
    return SLUICE_OK;
}

/* ---- output ---- */

static void listen_to(host_server *host, host_runner *runner, unsigned stream, bool reads)
{
    if (runner->output[stream] < 0 || runner->reads[stream] == reads)
        return;
    runner->reads[stream] = reads;
    pf_watch_descriptor_change(host->watch, runner->output[stream],
                               HOST_TAG(stream == 0 ? HOST_TAG_OUTPUT : HOST_TAG_ERRORS, number_of(host, runner)),
                               reads, false);
}

void host_runner_pace(host_server *host, host_job *job)
{
    if (!job->runner)
        return;
    bool slow = host_rpc_output(host, job, 0, NULL, 0);
    listen_to(host, job->runner, 0, !slow);
    listen_to(host, job->runner, 1, !slow);
}

/* How many bytes at the end are the beginning of a character. */
static uint32_t open_end(const uint8_t *bytes, size_t length)
{
    for (uint32_t back = 1; back <= 3 && back <= length; back++) {
        uint8_t byte = bytes[length - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        uint32_t needs = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        return needs > back ? back : 0;
    }
    return 0;
}

static void say(host_server *host, host_job *job, unsigned stream, const uint8_t *bytes, size_t length)
{
    pf_buffer *kept = &job->output[stream];
    size_t room = kept->length < HOST_OUTPUT_KEPT ? HOST_OUTPUT_KEPT - kept->length : 0;
    (void)pf_buffer_append(kept, bytes, length < room ? length : room,
                           NULL); /* kept for later, where there is memory */
    (void)host_rpc_output(host, job, stream, bytes, length);
    host_runner_pace(host, job);
}

/* Reads what is there, at most so many times; true when there was no more. */
static bool read_output(host_server *host, host_runner *runner, unsigned stream, unsigned times)
{
    static uint8_t bytes[READ_STEP + sizeof runner->tail[0]];
    size_t got = 0;
    bool again = false;
    while (times-- > 0) {
        uint32_t before = runner->tail_length[stream];
        memcpy(bytes, runner->tail[stream], before);
        if (pf_pipe_read(runner->output[stream], bytes + before, READ_STEP, &got, &again, NULL) != SLUICE_OK || again)
            return true;
        if (got == 0) {
            pf_watch_descriptor_forget(host->watch, runner->output[stream]);
            pf_descriptor_close(&runner->output[stream]);
            return true;
        }
        got += before;
        uint32_t tail = open_end(bytes, got);
        memcpy(runner->tail[stream], bytes + got - tail, tail);
        runner->tail_length[stream] = tail;
        if (runner->job)
            say(host, runner->job, stream, bytes, got - tail);
    }
    return false;
}

static void finish_death(host_server *host, host_runner *runner);

void host_runner_output(host_server *host, uint32_t number, unsigned stream)
{
    host_runner *runner = &host->runners[number];
    if (runner->output[stream] >= 0)
        (void)read_output(host, runner, stream, 4);
    if (runner->state == HOST_RUNNER_DEAD)
        finish_death(host, runner);
}

/* All that was said before now. */
static void drain(host_server *host, host_runner *runner)
{
    for (unsigned stream = 0; stream < 2; stream++) {
        while (runner->output[stream] >= 0 && !read_output(host, runner, stream, UINT32_MAX))
            continue;
        if (runner->tail_length[stream] > 0 && runner->job)
            say(host, runner->job, stream, runner->tail[stream], runner->tail_length[stream]);
        runner->tail_length[stream] = 0;
        listen_to(host, runner, stream, true);
    }
}

/* ---- answers and ends ---- */

static void take_answer(host_server *host, host_runner *runner)
{
    host_answer answer;
    host_job *job = runner->job;
    memcpy(&answer, runner->answer, sizeof answer);
    drain(host, runner);
    if (job->fates == 0)
        runner->graph->crashes = 0;
    runner->job = NULL;
    runner->answer_length = 0;
    runner->state = HOST_RUNNER_IDLE;
    runner->idle_since_ns = pf_monotonic_ns();
    if (!runner->stays || runner->jobs >= HOST_RUNNER_JOBS || runner->graph->leaving || host->draining)
        dismiss(host, runner);
    if (job->fates > 0)
        host_job_fate(host, job, &answer);
    else
        host_job_end(host, job, (int)(answer.exit & 0xff), NULL);
}

void host_runner_channel(host_server *host, uint32_t number, bool readable, bool writable)
{
    host_runner *runner = &host->runners[number];
    size_t got = 0;
    uint32_t count = 0;
    bool again = false, lost = false;
    if (runner->channel < 0)
        return;
    if (writable && runner->orders.length > 0)
        send_orders(host, runner);
    if (!readable)
        return;
    sluice_status status =
        pf_socket_receive(runner->channel, runner->answer + runner->answer_length,
                          sizeof runner->answer - runner->answer_length, NULL, 0, &count, &lost, &got, &again, NULL);
    if (again)
        return;
    if (status != SLUICE_OK || got == 0) { /* its end comes as an event of its own */
        pf_watch_descriptor_forget(host->watch, runner->channel);
        pf_descriptor_close(&runner->channel);
        if (runner->state == HOST_RUNNER_IDLE)
            runner->state = HOST_RUNNER_LEAVING;
        return;
    }
    runner->answer_length += (uint32_t)got;
    if (runner->answer_length == sizeof runner->answer && runner->job)
        take_answer(host, runner);
}

/* A pool goes with the runner above it, and nothing is decided before all of it is gone: then nobody is left who could
 * write to the runner's output. */
static bool is_silent(host_server *host, host_runner *runner)
{
    if (runner->job)
        drain(host, runner);
    for (unsigned stream = 0; stream < 2; stream++) {
        if (runner->output[stream] >= 0 && runner->job && !runner->stays)
            return false;
        if (runner->output[stream] >= 0)
            pf_watch_descriptor_forget(host->watch, runner->output[stream]);
        pf_descriptor_close(&runner->output[stream]);
    }
    return true;
}

/* The rest of a death, once what the runner held is given back: its job goes on elsewhere. */
static void finish_death(host_server *host, host_runner *runner)
{
    host_job *job = runner->job;
    char how[32];
    if (!is_silent(host, runner) || !host_region_bury(runner))
        return;
    runner->job = NULL;
    runner->state = HOST_RUNNER_NONE;
    if (!job)
        return;
    if (WIFSIGNALED(runner->wait_status))
        (void)snprintf(how, sizeof how, "signal %d", WTERMSIG(runner->wait_status));
    else
        (void)snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(runner->wait_status));
    host_log("warn", "runner-died", "graph=%u attempt=%u how=\"%s\"", job->graph->number, job->attempts, how);
    host_job_lost(host, job, co_is_crash(runner->wait_status, runner->memory_kills), how);
}

void host_runner_ended(host_server *host, uint32_t number)
{
    host_runner *runner = &host->runners[number];
    bool ended = false;
    pf_watch_forget(host->watch, &runner->child);
    if (pf_child_wait(&runner->child, pf_deadline_in_ms(CO_LEAVE_MS), &ended, &runner->wait_status, NULL) !=
            SLUICE_OK ||
        !ended)
        return;
    host_region_unseat(runner);
    if (runner->channel >= 0 && runner->job) /* an answer may have come before the end */
        host_runner_channel(host, number, true, false);
    if (runner->channel >= 0)
        pf_watch_descriptor_forget(host->watch, runner->channel);
    pf_descriptor_close(&runner->channel);
    pf_buffer_free(&runner->orders);
    if (runner->job)
        runner->job->runner = NULL;
    runner->state = HOST_RUNNER_DEAD;
    finish_death(host, runner);
}

void host_runners_dismiss(host_server *host, const host_graph *graph)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        host_runner *runner = &host->runners[i];
        if (runner->state == HOST_RUNNER_IDLE && (!graph || runner->graph == graph))
            dismiss(host, runner);
    }
}

/* A process that stands still is ended. (A test may want to see what its fence is worth: then it is only fenced.) */
static void end_stopped(host_runner *runner)
{
#if SLUICE_FAILPOINTS
    if (getenv("SLUICE_FENCE_ONLY")) {
        host_region_unseat(runner);
        host_log("warn", "runner-fenced", "graph=%u", runner->graph->number);
        return;
    }
#endif
    pf_child_kill(&runner->child);
}

void host_runners_tick(host_server *host, int64_t now)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        host_runner *runner = &host->runners[i];
        if (runner->state == HOST_RUNNER_DEAD)
            finish_death(host, runner);
        if (runner->state == HOST_RUNNER_NONE || runner->state == HOST_RUNNER_DEAD || host->config.stopped_seconds == 0)
            continue;
        if (!pf_child_is_stopped(&runner->child))
            runner->stopped_since_ns = 0;
        else if (runner->stopped_since_ns == 0)
            runner->stopped_since_ns = now;
        else if (now - runner->stopped_since_ns > host->config.stopped_seconds * INT64_C(1000000000))
            end_stopped(runner);
    }
}

bool host_runners_left(const host_server *host)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state != HOST_RUNNER_NONE)
            return true;
    }
    return false;
}

void host_runners_kill(host_server *host)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state != HOST_RUNNER_NONE && host->runners[i].state != HOST_RUNNER_DEAD)
            pf_child_kill(&host->runners[i].child);
    }
}
