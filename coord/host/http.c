/*
 * Metrics, health and the status page of a supervisor over HTTP (see coord/host/host.h), for loopback or a Unix socket.
 *
 * libmicrohttpd with its own epoll set inside ours: it never has a thread, and runs when its set says so. Whoever can
 * connect may read, so nothing here names a graph, a branch or a user unless the configuration allows it: graphs have
 * their numbers, as in the logs (`status` on the control socket maps them to names). On loopback only requests to
 * loopback by name are answered, so that a page from elsewhere, whose own name was made to point here, reads nothing.
 * Everything is made when it is asked for, from counters; a request for commits that have to be read first is held back
 * for a moment.
 */
#include "coord/host/host.h"
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS     HOST_HTTP_MAX
#define TIMEOUT_SECONDS 10u
#define MEMORY          16384u
#define PATIENCE_MS     2000 /* for commits to be read */

#define PUT(...) (void)pf_buffer_append_format(page, NULL, __VA_ARGS__) /* out of memory: the page is shorter */

/* ---- requests that wait ---- */

/* They are answered anew once they are resumed. */
static bool hold(host_server *host, struct MHD_Connection *connection, const host_graph *graph)
{
    for (unsigned i = 0; i < HOST_HTTP_MAX; i++) {
        host_http_held *held = &host->http_held[i];
        if (held->connection)
            continue;
        *held = (host_http_held){connection, graph, pf_monotonic_ns() + PATIENCE_MS * INT64_C(1000000)};
        MHD_suspend_connection(connection);
        return true;
    }
    return false;
}

static void resume(host_server *host, const host_graph *graph, int64_t until_ns)
{
    bool any = false;
    for (unsigned i = 0; i < HOST_HTTP_MAX; i++) {
        host_http_held *held = &host->http_held[i];
        if (!held->connection || (graph && held->graph != graph) || held->until_ns > until_ns)
            continue;
        MHD_resume_connection(held->connection);
        *held = (host_http_held){0};
        any = true;
    }
    if (any)
        host_http_run(host);
}

void host_http_wake(host_server *host, const host_graph *graph)
{
    resume(host, graph, INT64_MAX);
}

void host_http_tick(host_server *host, int64_t now)
{
    resume(host, NULL, now);
    host_http_run(host);
}

/* ---- requests ---- */

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned code, const char *type, pf_buffer *page)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                                    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"}};
    struct MHD_Response *response = MHD_create_response_from_buffer(page->length, page->data, MHD_RESPMEM_MUST_COPY);
    pf_buffer_free(page);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", type);
    for (unsigned i = 0; i < sizeof headers / sizeof headers[0]; i++)
        (void)MHD_add_response_header(response, headers[i][0], headers[i][1]);
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned code, const char *text)
{
    pf_buffer page = {0};
    (void)pf_buffer_append(&page, text, strlen(text), NULL);
    return respond(connection, code, "text/plain; charset=utf-8", &page);
}

static bool is_here(const host_server *host, struct MHD_Connection *connection)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *name = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    if (host->config.http[0] == '/') /* who can open the socket is meant */
        return true;
    for (unsigned i = 0; name && i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 && (name[length] == ':' || name[length] == '\0'))
            return true;
    }
    return false;
}

static enum MHD_Result answer_health(const host_server *host, struct MHD_Connection *connection)
{
    pf_buffer made = {0};
    pf_buffer *page = &made;
    uint32_t graphs = 0, lost = 0;
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        graphs += !graph->leaving;
        lost += !graph->leaving && !graph->ready;
    }
    if (host->draining)
        return respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "draining\n");
    if (lost == 0)
        return respond_text(connection, MHD_HTTP_OK, "ok\n");
    PUT("degraded: %u of %u graphs are not hosted\n", lost, graphs);
    return respond(connection, MHD_HTTP_OK, "text/plain; charset=utf-8", page);
}

static enum MHD_Result answer_graph(host_server *host, struct MHD_Connection *connection, const char *number, bool held)
{
    pf_buffer page = {0};
    char *end = NULL;
    unsigned long wanted = number[0] >= '0' && number[0] <= '9' ? strtoul(number, &end, 10) : 0;
    const char *given = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "branch");
    const char *branch = given && given[0] && strlen(given) < 256 && host->config.http_names ? given : "main";
    host_graph *graph = host->graphs;
    while (graph && (graph->number != wanted || !end || *end != '\0'))
        graph = graph->next;
    if (!graph)
        return respond_text(connection, MHD_HTTP_NOT_FOUND, "there is no such graph\n");
    if (!held && !host_lineage_is_known(graph, branch)) {
        host_lineage_ask(host, graph, branch);
        if (graph->lineage.job && hold(host, connection, graph))
            return MHD_YES;
    }
    host_page_put_graph(&page, host, graph, branch);
    return respond(connection, MHD_HTTP_OK, "text/html; charset=utf-8", &page);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **own)
{
    static int seen, waited; /* what was done with the request so far */
    static const struct {
        const char *url, *type, *text;
    } files[] = {{"/style.css", "text/css; charset=utf-8", host_page_style},
                 {"/refresh.js", "text/javascript; charset=utf-8", host_page_script},
                 {"/icon.svg", "image/svg+xml", host_page_icon}};
    host_server *host = context;
    pf_buffer page = {0};
    (void)version;
    (void)data;
    if (!*own) { /* the head is here: a body may follow, and is passed over */
        *own = &seen;
        return MHD_YES;
    }
    if (*size > 0) {
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (!is_here(host, connection))
        return respond_text(connection, MHD_HTTP_FORBIDDEN, "ask for 127.0.0.1 or localhost\n");
    if (strcmp(url, "/metrics") == 0) {
        host_metrics_put(&page, host);
        return respond(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &page);
    }
    if (strcmp(url, "/healthz") == 0)
        return answer_health(host, connection);
    if (strncmp(url, "/graph/", 7) == 0) {
        bool held = *own == &waited;
        *own = &waited;
        return answer_graph(host, connection, url + 7, held);
    }
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(url, files[i].url) != 0)
            continue;
        (void)pf_buffer_append(&page, files[i].text, strlen(files[i].text), NULL);
        return respond(connection, MHD_HTTP_OK, files[i].type, &page);
    }
    if (strcmp(url, "/") != 0)
        return respond_text(connection, MHD_HTTP_NOT_FOUND, "there are /, /graph/NUMBER, /metrics and /healthz\n");
    host_page_put(&page, host);
    return respond(connection, MHD_HTTP_OK, "text/html; charset=utf-8", &page);
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
    host->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, host,
                                  MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
                                  MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                  (size_t)MEMORY, MHD_OPTION_END);
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
    resume(host, NULL, INT64_MAX);
    pf_watch_descriptor_forget(host->watch, host->http_epoll);
    MHD_stop_daemon(host->http);
    host->http = NULL;
    if (host->config.http && host->config.http[0] == '/')
        pf_socket_remove(host->config.http);
}
