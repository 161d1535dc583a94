/*
 * The graphs that a supervisor hosts: they come with a configuration and go with another (see coord/host/host.h).
 *
 * Who hosts a graph holds the host byte of its locks/graph for as long, so that no two supervisors host one. Where its
 * clients find it stands in cache/host, which is a hint: whoever reads it asks at that socket.
 */
#include "store/graph/graph.h"
#include "coord/host/host.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define HINT_FILE "cache/host"

static void leave_hint(const host_server *host, const host_graph *graph)
{
    pf_file *file = NULL;
    (void)pf_remove(graph->volume, HINT_FILE, NULL);
    (void)pf_make_folder(graph->volume, "cache", NULL);
    if (pf_create(graph->volume, HINT_FILE, &file, NULL) != SLUICE_OK)
        return; /* clients then need SLUICE_SOCKET */
    (void)pf_write(file, 0, host->config.socket, strlen(host->config.socket), NULL);
    (void)pf_close(file, NULL);
}

static void close_graph(host_graph *graph)
{
    if (graph->ready)
        (void)pf_remove(graph->volume, HINT_FILE, NULL);
    host_ledger_close(graph);
    lk_lockfile_close(graph->locks);
    pf_volume_close(graph->volume);
    graph->locks = NULL;
    graph->volume = NULL;
    graph->ready = false;
}

/* A supervisor that was killed leaves the byte a little after it is gone itself, when the last process that it was
 * forking is. */
static sluice_status take_host_byte(host_graph *graph, sluice_error *err)
{
    sluice_status status =
        lk_take(graph->locks, LK_GRAPH_HOST, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(HOST_TAKEOVER_MS), err);
    if (status != SLUICE_LIVE_WRITER_CONTENTION)
        return status;
    return pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "another supervisor hosts the graph");
}

/* What the configuration says of it counts; where that says nothing of the kind, the graph's own mode does. A
 * graph.json that cannot be read is for those to tell who work on the graph. */
static void find_mode(host_graph *graph)
{
    static const host_mode modes[] = {
        [ST_MODE_OPTIMISTIC] = HOST_OPTIMISTIC, [ST_MODE_SINGLE] = HOST_SINGLE, [ST_MODE_QUEUED] = HOST_QUEUED};
    st_write_mode own = ST_MODE_OPTIMISTIC;
    (void)st_graph_mode_of(graph->volume, &own, NULL);
    graph->mode = graph->config.mode != HOST_OPTIMISTIC ? graph->config.mode : modes[own];
}

static sluice_status open_graph(host_server *host, host_graph *graph, sluice_error *err)
{
    bool open = false; /* pf_volume_open says it better */
    PF_TRY(pf_folder_identity(graph->config.path, &graph->device, &graph->inode, &open, err));
    PF_TRY(pf_volume_open(graph->config.path, PF_WRITE, &graph->volume, err));
    PF_TRY(lk_lockfile_open(graph->volume, "locks/graph", &graph->locks, err));
    PF_TRY(take_host_byte(graph, err));
    find_mode(graph);
    if (!graph->disk.address)
        PF_TRY(pf_shared_memory_make(sizeof(uint64_t), &graph->disk, err));
    leave_hint(host, graph);
    graph->ready = true;
    return SLUICE_OK;
}

static void try_open(host_server *host, host_graph *graph)
{
    graph->problem = (sluice_error){0};
    if (open_graph(host, graph, &graph->problem) != SLUICE_OK) {
        close_graph(graph);
        host_log("error", "graph-not-hosted", "graph=%u code=%s", graph->number,
                 sluice_status_name(graph->problem.code));
        return;
    }
    host_ledger_open(host, graph);
    host_log("info", "graph-hosted", "graph=%u weight=%u max_jobs=%u", graph->number, graph->config.weight,
             graph->config.max_jobs);
    host_runner_ahead(host, graph);
}

static host_graph *find_by_path(const host_server *host, const char *path)
{
    host_graph *graph = host->graphs;
    while (graph && strcmp(graph->config.path, path) != 0)
        graph = graph->next;
    return graph;
}

/* Takes the strings of `fresh` over. */
static void change(host_graph *graph, host_graph_config *fresh)
{
    host_graph_config_free(&graph->config);
    graph->config = *fresh;
    *fresh = (host_graph_config){0};
    graph->leaving = false;
}

static host_graph *add(host_server *host)
{
    host_graph **at = &host->graphs;
    host_graph *graph = calloc(1, sizeof *graph);
    if (!graph || pf_shared_memory_make(sizeof *graph->tallies, &graph->tally_memory, NULL) != SLUICE_OK) {
        free(graph);
        return NULL;
    }
    graph->tallies = graph->tally_memory.address;
    while (*at)
        at = &(*at)->next;
    *at = graph;
    graph->number = ++host->graphs_ever;
    return graph;
}

void host_graphs_apply(host_server *host, host_config *config)
{
    for (host_graph *graph = host->graphs; graph; graph = graph->next)
        graph->listed = false;
    for (uint32_t i = 0; i < config->graph_count; i++) {
        host_graph *graph = find_by_path(host, config->graphs[i].path);
        if (!graph)
            graph = add(host);
        if (!graph) {
            host_log("error", "graph-not-hosted", "code=RESOURCE_LIMIT");
            continue;
        }
        change(graph, &config->graphs[i]);
        graph->listed = true;
        if (!graph->ready)
            try_open(host, graph);
        else
            find_mode(graph);
    }
    for (host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (!graph->listed && !graph->leaving) {
            graph->leaving = true;
            host_maintenance_stop(host, graph);
            host_runners_dismiss(host, graph);
            host_log("info", "graph-leaves", "graph=%u", graph->number);
        }
    }
}

static bool is_in_use(const host_server *host, const host_graph *graph)
{
    if (graph->queued + graph->running > 0)
        return true;
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state != HOST_RUNNER_NONE && host->runners[i].graph == graph)
            return true;
    }
    return false;
}

static void free_graph(host_server *host, host_graph *graph)
{
    for (host_job *job = host->oldest; job; job = job->next) {
        if (job->graph == graph)
            job->graph = NULL; /* it has ended */
    }
    close_graph(graph);
    pf_shared_memory_free(&graph->disk);
    host_region_free(graph);
    pf_shared_memory_free(&graph->tally_memory);
    host_graph_config_free(&graph->config);
    host_lineage_free(graph);
    free(graph);
}

void host_graphs_sweep(host_server *host)
{
    host_graph **at = &host->graphs;
    while (*at) {
        host_graph *graph = *at;
        if (!graph->leaving || is_in_use(host, graph)) {
            at = &graph->next;
            continue;
        }
        *at = graph->next;
        host_log("info", "graph-left", "graph=%u", graph->number);
        free_graph(host, graph);
    }
}

void host_graphs_close(host_server *host)
{
    while (host->graphs) {
        host_graph *graph = host->graphs;
        host->graphs = graph->next;
        free_graph(host, graph);
    }
}
