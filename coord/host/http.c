/*
 * Metrics, health and the status page of a supervisor over HTTP (see coord/host/host.h), for loopback or a Unix socket.
 *
 * libmicrohttpd with its own epoll set inside ours: it never has a thread, and runs when its set says so. Whoever can
 * connect may read, so nothing here names a graph: graphs have their numbers, as in the logs (`status` on the control
 * socket maps them to names). Everything is made when it is asked for, from counters.
 */
#include "coord/host/host.h"
#include "platform/memory.h"
#include <microhttpd.h>
#include <string.h>

#define CONNECTIONS     64u
#define TIMEOUT_SECONDS 10u
#define MEMORY          16384u

/* ---- metrics ---- */

const double host_seconds_bounds[HOST_SECONDS_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                          0.25,  0.5,    1,     2.5,  10,    60,   600};

void host_count_seconds(host_histogram *histogram, int64_t nanoseconds)
{
    double seconds = (double)nanoseconds / 1e9;
    histogram->sum += seconds;
    histogram->count++;
    for (unsigned i = 0; i < HOST_SECONDS_BUCKETS; i++)
        histogram->buckets[i] += seconds <= host_seconds_bounds[i];
}

#define PUT(...) (void)pf_buffer_append_format(page, NULL, __VA_ARGS__) /* out of memory: the page is shorter */

static void put_head(pf_buffer *page, const char *name, const char *type, const char *help)
{
    PUT("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(pf_buffer *page, const char *name, const char *type, const char *help, double value)
{
    put_head(page, name, type, help);
    PUT("%s %.17g\n", name, value);
}

typedef uint64_t graph_value(const host_graph *graph);

static uint64_t queued_of(const host_graph *graph)
{
    return graph->queued;
}
static uint64_t running_of(const host_graph *graph)
{
    return graph->running;
}
static uint64_t up_of(const host_graph *graph)
{
    return graph->ready;
}
static uint64_t refused_of(const host_graph *graph)
{
    return graph->refused;
}
static uint64_t restarts_of(const host_graph *graph)
{
    return graph->restarts;
}
static uint64_t flushes_of(const host_graph *graph)
{
    return graph->flushes;
}
static uint64_t written_of(const host_graph *graph)
{
    return graph->written;
}

static void put_graphs(pf_buffer *page, const host_server *host, const char *name, const char *type, const char *help,
                       graph_value *value)
{
    put_head(page, name, type, help);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next)
        PUT("%s{graph=\"%u\"} %llu\n", name, graph->number, (unsigned long long)value(graph));
}

static void put_ends(pf_buffer *page, const host_server *host)
{
    put_head(page, "sluice_jobs_ended_total", "counter", "Jobs that ended, by exit status.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (unsigned exit = 0; exit < HOST_EXITS; exit++) {
            if (graph->exits[exit] > 0 || exit == 0)
                PUT("sluice_jobs_ended_total{graph=\"%u\",exit=\"%u\"} %llu\n", graph->number, exit,
                    (unsigned long long)graph->exits[exit]);
        }
    }
}

static void put_histogram(pf_buffer *page, const host_server *host, const char *name, const char *help, bool waiting)
{
    put_head(page, name, "histogram", help);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        const host_histogram *values = waiting ? &graph->waited : &graph->took;
        for (unsigned i = 0; i < HOST_SECONDS_BUCKETS; i++)
            PUT("%s_bucket{graph=\"%u\",le=\"%g\"} %llu\n", name, graph->number, host_seconds_bounds[i],
                (unsigned long long)values->buckets[i]);
        PUT("%s_bucket{graph=\"%u\",le=\"+Inf\"} %llu\n", name, graph->number, (unsigned long long)values->count);
        PUT("%s_sum{graph=\"%u\"} %.9g\n", name, graph->number, values->sum);
        PUT("%s_count{graph=\"%u\"} %llu\n", name, graph->number, (unsigned long long)values->count);
    }
}

static void put_metrics(pf_buffer *page, const host_server *host)
{
    put_head(page, "sluice_build_info", "gauge", "The version that serves.");
    PUT("sluice_build_info{version=\"%s\"} 1\n", SLUICE_VERSION);
    put_one(page, "sluice_uptime_seconds", "gauge", "Since the supervisor began.",
            (double)(pf_monotonic_ns() - host->began_ns) / 1e9);
    put_one(page, "sluice_draining", "gauge", "1 while running jobs are waited for before the end.", host->draining);
    put_one(page, "sluice_workers", "gauge", "Places for work.", host->config.workers);
    put_head(page, "sluice_workers_busy", "gauge", "Places that are taken, by lane.");
    PUT("sluice_workers_busy{lane=\"small\"} %u\nsluice_workers_busy{lane=\"pool\"} %u\n", host->used[HOST_SMALL],
        host->used[HOST_POOL]);
    put_one(page, "sluice_connections", "gauge", "Clients at this moment.", host->client_count);
    put_one(page, "sluice_connections_total", "counter", "Clients that came.", (double)host->connections);
    put_one(page, "sluice_connections_refused_total", "counter", "Clients beyond the bound.",
            (double)host->refused_connections);
    put_one(page, "sluice_requests_total", "counter", "Requests on the control socket.", (double)host->requests);
    put_one(page, "sluice_memory_bytes", "gauge", "Anonymous memory of the supervisor.",
            (double)pf_memory_of(pf_pid()));
    put_graphs(page, host, "sluice_graph_up", "gauge", "1 while the graph is hosted.", up_of);
    put_graphs(page, host, "sluice_jobs_queued", "gauge", "Jobs that wait.", queued_of);
    put_graphs(page, host, "sluice_jobs_running", "gauge", "Jobs that run.", running_of);
    put_graphs(page, host, "sluice_jobs_refused_total", "counter", "Jobs that were not admitted.", refused_of);
    put_graphs(page, host, "sluice_runner_deaths_total", "counter", "Processes that died over a job.", restarts_of);
    put_graphs(page, host, "sluice_flushes_total", "counter", "Syncs of files and folders by standing processes.",
               flushes_of);
    put_graphs(page, host, "sluice_written_bytes_total", "counter", "Bytes written by standing processes.", written_of);
    put_ends(page, host);
    put_histogram(page, host, "sluice_job_wait_seconds", "From admission to the start.", true);
    put_histogram(page, host, "sluice_job_seconds", "From the start to the end.", false);
}

/* ---- the page ---- */

static void put_page(pf_buffer *page, const host_server *host)
{
    PUT("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"5\">"
        "<title>Sluice</title><style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}"
        "td,th{padding:.3em 1em;border-bottom:1px solid #ccc;text-align:right}</style></head><body>\n");
    PUT("<h1>Sluice %s</h1>\n<p>%s for %lld s. Workers: %u, busy: %u. Clients: %u. Requests: %llu.</p>\n",
        SLUICE_VERSION, host->draining ? "draining" : "serving",
        (long long)((pf_monotonic_ns() - host->began_ns) / 1000000000), host->config.workers,
        host->used[HOST_SMALL] + host->used[HOST_POOL], host->client_count, (unsigned long long)host->requests);
    PUT("<table><thead><tr><th>graph</th><th>state</th><th>waiting</th><th>running</th><th>done</th><th>failed</th>"
        "<th>refused</th><th>deaths</th><th>mean seconds</th></tr></thead><tbody>\n");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next)
        PUT("<tr><td>%u</td><td>%s</td><td>%u</td><td>%u</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td>"
            "<td>%.4f</td></tr>\n",
            graph->number, host_graph_state(graph, pf_monotonic_ns()), graph->queued, graph->running,
            (unsigned long long)graph->done, (unsigned long long)graph->failed, (unsigned long long)graph->refused,
            (unsigned long long)graph->restarts, graph->took.count ? graph->took.sum / (double)graph->took.count : 0.0);
    PUT("</tbody></table>\n<p><a href=\"/metrics\">metrics</a> <a href=\"/healthz\">health</a></p></body></html>\n");
}

/* ---- requests ---- */

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned code, const char *type, pf_buffer *page)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(page->length, page->data, MHD_RESPMEM_MUST_COPY);
    pf_buffer_free(page);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **own)
{
    static int known;
    const host_server *host = context;
    pf_buffer made = {0};
    pf_buffer *page = &made;
    (void)version;
    (void)data;
    if (!*own) { /* the head is here: a body may follow, and is passed over */
        *own = &known;
        return MHD_YES;
    }
    if (*size > 0) {
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        PUT("only GET\n");
        return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", page);
    }
    if (strcmp(url, "/metrics") == 0) {
        put_metrics(page, host);
        return respond(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", page);
    }
    if (strcmp(url, "/healthz") == 0) {
        PUT("%s\n", host->draining ? "draining" : "ok");
        return respond(connection, host->draining ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, "text/plain", page);
    }
    if (strcmp(url, "/") == 0) {
        put_page(page, host);
        return respond(connection, MHD_HTTP_OK, "text/html; charset=utf-8", page);
    }
    PUT("there are /, /metrics and /healthz\n");
    return respond(connection, MHD_HTTP_NOT_FOUND, "text/plain", page);
}

/* ---- open and close ---- */

sluice_status host_http_open(host_server *host, sluice_error *err)
{
    int listener = -1;
    const char *place = host->config.http;
    if (!place)
        return SLUICE_OK;
    if (place[0] == '/')
        PF_TRY(pf_socket_listen(place, host->config.socket_mode, &listener, err));
    else
        PF_TRY(pf_socket_listen_local(place, &listener, err));
    host->http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, host, MHD_OPTION_LISTEN_SOCKET, listener,
                                  MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                  TIMEOUT_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_END);
    const union MHD_DaemonInfo *information =
        host->http ? MHD_get_daemon_info(host->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!information) {
        if (!host->http)
            pf_descriptor_close(&listener);
        return pf_fail(err, SLUICE_IO, "the HTTP server could not be started");
    }
    host->http_epoll = information->epoll_fd;
    return pf_watch_descriptor(host->watch, host->http_epoll, HOST_TAG(HOST_TAG_HTTP, 0), true, false, err);
}

void host_http_run(host_server *host)
{
    if (host->http)
        (void)MHD_run(host->http);
}

void host_http_close(host_server *host)
{
    if (!host->http)
        return;
    pf_watch_descriptor_forget(host->watch, host->http_epoll);
    MHD_stop_daemon(host->http);
    host->http = NULL;
    if (host->config.http && host->config.http[0] == '/')
        pf_socket_remove(host->config.http);
}
