/*
 * Metrics, health and the status page of a supervisor over HTTP (see coord/host/host.h), for loopback or a Unix socket.
 *
 * libmicrohttpd with its own epoll set inside ours: it never has a thread, and runs when its set says so. Whoever can
 * connect may read, so nothing here names a graph: graphs have their numbers, as in the logs (`status` on the control
 * socket maps them to names). Everything is made when it is asked for, from counters.
 */
#include "coord/host/host.h"
#include <microhttpd.h>
#include <string.h>

#define CONNECTIONS     64u
#define TIMEOUT_SECONDS 10u
#define MEMORY          16384u

#define PUT(...) (void)pf_buffer_append_format(page, NULL, __VA_ARGS__) /* out of memory: the page is shorter */

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
        host_metrics_put(page, host);
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
        PF_TRY(pf_socket_listen(place, host->config.socket_mode & 0660, &listener, err)); /* operators, not tenants */
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
