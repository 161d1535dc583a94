/*
 * The main loop of the supervisor: events, signals, time (see coord/host/host.h).
 *
 * A turn takes one event and then does what follows from it: starts jobs, sends answers, lets graphs go. So nothing is
 * freed in the middle of a turn that something else of the turn still looks at.
 */
#include "coord/host/host.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/memory.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_WORDS_MS 1000 /* for the answers that are still to be sent at the end */

/* ---- signals ---- */

static void drain(host_server *host)
{
    host->draining = true;
    pf_notify_manager("STOPPING=1");
    host_log("info", "draining", "clients=%u", host->client_count);
    for (host_job *job = host->oldest; job; job = job->next) {
        sluice_error error = {0};
        if (job->state != HOST_WAITING)
            continue;
        (void)pf_fail(&error, SLUICE_WRITER_BUSY, "the supervisor ended before the job began");
        host_job_end(host, job, 0, job->fates > 0 ? &job->failed : &error);
    }
    for (host_graph *graph = host->graphs; graph; graph = graph->next)
        host_maintenance_stop(host, graph);
    host_runners_dismiss(host, NULL);
}

static void reload(host_server *host)
{
    host_config config;
    sluice_error error = {0};
    char reloading[64];
    (void)snprintf(reloading, sizeof reloading, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)(pf_monotonic_ns() / 1000));
    pf_notify_manager(reloading);
    if (host_config_read(host->config_file, &config, &error) != SLUICE_OK) {
        host_log("error", "not-reloaded", "code=%s message=\"%s\"", sluice_status_name(error.code), error.message);
        if (!host->config.log_json)
            (void)fprintf(
                stderr, "sluice: %s (%s)\n", error.text[0] ? error.text : error.message,
                sluice_status_name(error.code)); /* for whoever sent the signal; it is the operator's own file */
        return;
    }
    host->config.workers = config.workers;
    host->config.requests_per_second = config.requests_per_second;
    host->config.stopped_seconds = config.stopped_seconds;
    host->config.http_names = config.http_names;
    host->config.log_json = config.log_json;
    host_log_as(config.log_json);
    host->memory = pf_memory_available();
    host_status_forget(host);
    host_graphs_apply(host, &config);
    host_config_free(&config);
    host_log("info", "reloaded", "workers=%u", host->config.workers);
}

static void take_signal(host_server *host, uint32_t number)
{
    if (number == SIGHUP) {
        if (!host->draining) {
            reload(host);
            pf_notify_manager("READY=1"); /* with the old configuration, if the new one is none */
        }
        return;
    }
    if (++host->interrupts == 1) {
        drain(host);
        return;
    }
    host_log("warn", "stopped", "signal=%u", number);
    host_runners_kill(host);
    host->over = true;
}

/* ---- events ---- */

static sluice_status take_event(host_server *host, const pf_event *event, sluice_error *err)
{
    uint32_t number = event->tag & 0xffff;
    switch (event->kind) {
    case PF_EVENT_CHILD:
        host->changes++;
        host_runner_ended(host, event->tag);
        break;
    case PF_EVENT_INTERRUPT:
        host->changes++;
        take_signal(host, event->signal);
        break;
    case PF_EVENT_DESCRIPTOR:
        switch ((host_tag)(event->tag >> 16)) {
        case HOST_TAG_LISTENER:
            return host_clients_accept(host, err);
        case HOST_TAG_CLIENT:
            host_client_event(host, number, event->readable, event->writable);
            break;
        case HOST_TAG_CHANNEL:
            host_runner_channel(host, number, event->readable, event->writable);
            break;
        case HOST_TAG_OUTPUT:
            host_runner_output(host, number, 0);
            break;
        case HOST_TAG_ERRORS:
            host_runner_output(host, number, 1);
            break;
        case HOST_TAG_HTTP:
            host_http_run(host);
            break;
        }
        break;
    case PF_EVENT_BELL:
    case PF_EVENT_NONE:
        break;
    }
    return SLUICE_OK;
}

static void tick(host_server *host)
{
    int64_t now = pf_monotonic_ns();
    if (now < host->next_tick_ns)
        return;
    host->changes++;
    host->next_tick_ns = now + HOST_TICK_MS * INT64_C(1000000);
    host_jobs_tick(host, now);
    host_maintenance_tick(host, now);
    host_runners_tick(host, now);
    host_regions_tick(host, now);
    host_clients_tick(host, now);
    host_samples_tick(host, now);
    host_http_tick(host, now);
    if (host->watchdog_ms > 0 && now >= host->next_watchdog_ns) {
        pf_notify_manager("WATCHDOG=1");
        host->next_watchdog_ns = now + host->watchdog_ms * 1000000;
    }
}

static bool is_done(const host_server *host)
{
    return host->over || (host->draining && !host_runners_left(host));
}

static sluice_status turn(host_server *host, sluice_error *err)
{
    pf_event event;
    int64_t wake_ns = host_next_start(host);
    if (wake_ns > host->next_tick_ns)
        wake_ns = host->next_tick_ns;
    bool left = host_clients_wait(host);
    PF_TRY(pf_watch_next(host->watch, left ? PF_AT_ONCE : (pf_deadline){wake_ns}, &event, err));
    PF_TRY(take_event(host, &event, err));
    host_clients_go_on(host);
    tick(host);
    host_dispatch(host);
    host_clients_flush(host);
    host_graphs_sweep(host);
    return SLUICE_OK;
}

/* ---- the whole ---- */

static sluice_status open_host(host_server *host, sluice_error *err)
{
    PF_TRY(host_config_read(host->config_file, &host->config, err));
    host_log_as(host->config.log_json);
    PF_TRY(pf_shared_memory_make(sizeof(uint32_t) * PF_FAILPOINT_COUNT, &host->failpoints, err));
    pf_failpoints_share(host->failpoints.address);
    PF_TRY(pf_watch_open(&host->watch, err));
    PF_TRY(pf_watch_hangups(host->watch, err));
    pf_raise_descriptors();
    host->memory = pf_memory_available();
    PF_TRY(host_http_open(host, err));
    host_graphs_apply(host, &host->config);
    /* Last: who is let in finds every graph hosted, and said so in its folder. */
    PF_TRY(pf_socket_listen(host->config.socket, host->config.socket_mode, &host->listener, err));
    PF_TRY(pf_watch_descriptor(host->watch, host->listener, HOST_TAG(HOST_TAG_LISTENER, 0), true, false, err));
    host->watchdog_ms = pf_watchdog_ms();
    pf_notify_manager("READY=1");
    host_log("info", "serving", "pid=%d workers=%u graphs=%u", (int)pf_pid(), host->config.workers,
             host->config.graph_count);
    return SLUICE_OK;
}

/* Answers that clients have not taken, for a while. */
static void send_last_words(host_server *host)
{
    pf_deadline deadline = pf_deadline_in_ms(LAST_WORDS_MS);
    pf_event event;
    bool left = true;
    while (left && !pf_deadline_passed(deadline)) {
        left = false;
        host_clients_flush(host);
        for (uint32_t i = 0; i < host->config.connections; i++)
            left |= host->clients[i] && host->clients[i]->out.length > host->clients[i]->sent;
        if (!left || pf_watch_next(host->watch, deadline, &event, NULL) != SLUICE_OK)
            return;
        for (uint32_t i = 0; i < host->config.connections; i++) {
            if (host->clients[i] && host->clients[i]->out.length > host->clients[i]->sent)
                host_client_touch(host, host->clients[i]);
        }
    }
}

static void close_host(host_server *host)
{
    if (host->watch)
        send_last_words(host);
    for (uint32_t i = 0; i < HOST_CONNECTIONS_MAX; i++) {
        if (host->clients[i])
            host_client_close(host, host->clients[i]);
    }
    host_runners_kill(host);
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state != HOST_RUNNER_NONE && host->runners[i].state != HOST_RUNNER_DEAD) {
            host->draining = true;
            host_runner_ended(host, i);
        }
    }
    host_graphs_close(host);
    while (host->oldest) {
        host_job *job = host->oldest;
        host->oldest = job->next;
        host_job_free(job);
    }
    if (host->listener >= 0)
        pf_socket_remove(host->config.socket);
    pf_descriptor_close(&host->listener);
    host_http_close(host);
    host_status_forget(host);
    pf_watch_close(host->watch);
    host_config_free(&host->config);
    pf_failpoints_share(NULL);
    pf_shared_memory_free(&host->failpoints);
}

sluice_status co_serve(const char *config_file, const co_host_program *program, sluice_error *err)
{
    host_server *host = calloc(1, sizeof *host);
    if (!host)
        return pf_fail_memory(err);
    host->config_file = config_file;
    host->program = program;
    host->listener = -1;
    host->began_ns = pf_monotonic_ns();
    host->began_us = pf_wall_us();
    sluice_status status = open_host(host, err);
    while (status == SLUICE_OK && !is_done(host))
        status = turn(host, err);
    close_host(host);
    host_log("info", "ended", "code=%s", sluice_status_name(status));
    free(host);
    return status;
}

sluice_status co_serve_check(const char *config_file, uint32_t *ret_graphs, sluice_error *err)
{
    host_config config;
    PF_TRY(host_config_read(config_file, &config, err));
    *ret_graphs = config.graph_count;
    host_config_free(&config);
    return SLUICE_OK;
}
