/*
 * The status page (see coord/host/host.h), made anew for each request: tables that are whole without any script, and
 * drawings of the last minutes. It says numbers of graphs, and their names only where the configuration says that
 * whoever can connect may know them (`http_names`).
 */
#include "coord/host/host.h"
#include "platform/memory.h"
#include "shm/gate_table.h"
#include <stdio.h>
#include <string.h>

#define PUT(...) (void)pf_buffer_append_format(page, NULL, __VA_ARGS__) /* out of memory: the page is shorter */

#define JOBS_SHOWN 12u
#define STEP_S     (HOST_SAMPLE_MS / 1000.0)

static void put_bytes(pf_buffer *page, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    PUT("%.*f %s", unit > 0 && value < 100 ? 1 : 0, value, units[unit]);
}

static void put_time(pf_buffer *page, int64_t seconds)
{
    if (seconds >= 86400)
        PUT("%lld d %lld h", (long long)(seconds / 86400), (long long)(seconds % 86400 / 3600));
    else if (seconds >= 3600)
        PUT("%lld h %lld min", (long long)(seconds / 3600), (long long)(seconds % 3600 / 60));
    else if (seconds >= 60)
        PUT("%lld min %lld s", (long long)(seconds / 60), (long long)(seconds % 60));
    else
        PUT("%lld s", (long long)seconds);
}

/* "3" or "3 name". */
static void put_graph_name(pf_buffer *page, const host_server *host, const host_graph *graph)
{
    PUT("%u", graph->number);
    if (!host->config.http_names)
        return;
    PUT(" <bdi>");
    host_put_escaped(page, graph->config.name, strlen(graph->config.name));
    PUT("</bdi>");
}

static void put_graph_link(pf_buffer *page, const host_server *host, const host_graph *graph)
{
    PUT("<a href=\"/graph/%u\">", graph->number);
    put_graph_name(page, host, graph);
    PUT("</a>");
}

/* ---- frame ---- */

static void put_head(pf_buffer *page, const char *title)
{
    PUT("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"/icon.svg\">"
        "<link rel=\"stylesheet\" href=\"/style.css\"><noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"
        "<script src=\"/refresh.js\" defer></script></head><body><main>\n",
        title);
}

static void put_foot(pf_buffer *page)
{
    PUT("<footer><a href=\"/\">overview</a><a href=\"/metrics\">metrics</a><a href=\"/healthz\">health</a></footer>\n"
        "</main></body></html>\n");
}

static void put_heads(pf_buffer *page, const char *const *heads, const char *right, uint32_t count)
{
    PUT("<div class=\"panel\"><table><thead><tr>");
    for (uint32_t i = 0; i < count; i++)
        PUT("<th%s>%s</th>", right[i] == 'r' ? " class=\"n\"" : "", heads[i]);
    PUT("</tr></thead><tbody>\n");
}

/* ---- plots ---- */

static void put_plots(pf_buffer *page, const host_server *host, const host_graph *only)
{
    static host_plot commits, latency, jobs, syncs; /* large; there is one thread */
    host_sample sample = {0};
    commits = (host_plot){.title = "Commits", .unit = "/s", .lines = 1};
    latency = (host_plot){.title = "Job latency", .unit = "ms", .lines = 2, .names = {"p50", "p95"}};
    jobs = (host_plot){.title = "Jobs", .unit = "", .lines = 2, .names = {"running", "waiting"}};
    syncs = (host_plot){.title = "Syncs", .unit = "/s", .lines = 2, .names = {"", "conflicts"}};
    for (uint32_t i = 0; i < HOST_SAMPLES; i++) {
        host_sample_get(host, only, i, 1, &sample);
        commits.values[0][i] = sample.commits / STEP_S;
        latency.values[0][i] = host_sample_seconds(&sample, 0.5) * 1000;
        latency.values[1][i] = host_sample_seconds(&sample, 0.95) * 1000;
        jobs.values[0][i] = sample.running;
        jobs.values[1][i] = sample.queued;
        syncs.values[0][i] = sample.syncs / STEP_S;
        syncs.values[1][i] = sample.conflicts / STEP_S;
    }
    host_plot *const all[] = {&commits, &latency, &jobs, &syncs};
    PUT("<div class=\"cards\">\n");
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->now[0] = all[i]->values[0][HOST_SAMPLES - 1];
        all[i]->now[1] = all[i]->values[1][HOST_SAMPLES - 1];
        host_draw_plot(page, all[i]);
    }
    PUT("</div>\n");
}

/* ---- tables ---- */

static void put_graphs(pf_buffer *page, const host_server *host)
{
    static const char *const heads[] = {"graph",   "state",     "mode",      "weight",     "waiting",
                                        "running", "done",      "failed",    "refused",    "deaths",
                                        "commits", "conflicts", "mean time", "maintenance"};
    int64_t now = pf_monotonic_ns();
    PUT("<h2>Graphs</h2>\n");
    put_heads(page, heads, "lllrrrrrrrrrrl", sizeof heads / sizeof heads[0]);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        const char *state = host_graph_state(graph, now), *maintenance = host_maintenance_state(graph, now);
        PUT("<tr><td>");
        put_graph_link(page, host, graph);
        PUT("</td><td class=\"state %s\">%s</td><td>%s</td><td class=\"n\">%u</td>", state, state,
            host_mode_name(graph->mode), graph->config.weight);
        const uint64_t numbers[] = {graph->queued,
                                    graph->running,
                                    graph->done,
                                    graph->failed,
                                    graph->refused,
                                    graph->restarts,
                                    graph->tallies->counts[PF_TALLY_COMMITS],
                                    host_graph_conflicts(graph)};
        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            PUT("<td class=\"n\">%llu</td>", (unsigned long long)numbers[i]);
        PUT("<td class=\"n\">%.1f ms</td><td class=\"state %s\">%s</td></tr>\n",
            graph->took.count ? graph->took.sum * 1000 / (double)graph->took.count : 0.0, maintenance, maintenance);
    }
    PUT("</tbody></table></div>\n");
}

static void put_processes(pf_buffer *page, const host_server *host, const host_graph *only)
{
    static const char *const heads[] = {"process", "graph", "state", "command", "stage",
                                        "attempt", "for",   "jobs",  "memory"};
    int64_t now = pf_monotonic_ns();
    host_runner_view view;
    PUT("<h2>Workers</h2>\n");
    put_heads(page, heads, "rllllrrrr", sizeof heads / sizeof heads[0]);
    PUT("<tr><td class=\"n\">%lld</td><td></td><td class=\"state %s\">%s</td><td>supervisor</td><td></td><td></td><td "
        "class=\"n\">",
        (long long)pf_pid(), host->draining ? "draining" : "serving", host->draining ? "draining" : "serving");
    put_time(page, (now - host->began_ns) / 1000000000);
    PUT("</td><td></td><td class=\"n\">");
    put_bytes(page, pf_memory_of(pf_pid()));
    PUT("</td></tr>\n");
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if ((only && host->runners[i].graph != only) || !host_runner_look(host, i, now, &view))
            continue;
        PUT("<tr><td class=\"n\">%lld</td><td>", (long long)view.pid);
        put_graph_link(page, host, view.graph);
        PUT("</td><td class=\"state %s\">%s</td><td>%s</td><td>%s</td><td class=\"n\">%u</td><td class=\"n\">%.1f "
            "s</td><td "
            "class=\"n\">%llu</td><td class=\"n\">",
            view.state, view.state, view.command, view.stage, view.attempt, (double)view.busy_ns / 1e9,
            (unsigned long long)view.jobs);
        put_bytes(page, view.memory);
        PUT("</td></tr>\n");
    }
    PUT("</tbody></table></div>\n");
}

static void put_gates(pf_buffer *page, const host_server *host, const host_graph *only)
{
    static const char *const heads[] = {"graph", "gate", "branch", "table", "held", "holders", "waiters"};
    static const char *const kinds[] = {[LK_GATE_SCHEMA] = "schema", [LK_GATE_BRANCH] = "branch", "table"};
    shm_gate_look looks[HOST_GATES_SHOWN];
    uint32_t all = 0;
    PUT("<h2>Gates</h2>\n");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        bool shown = graph->seats > 0 && (!only || only == graph);
        uint32_t count = shown ? shm_gates_look(&graph->region, looks, HOST_GATES_SHOWN) : 0;
        for (uint32_t i = 0; i < count; i++) {
            if (all++ == 0)
                put_heads(page, heads, "llrrlrr", sizeof heads / sizeof heads[0]);
            PUT("<tr><td>");
            put_graph_link(page, host, graph);
            PUT("</td><td>%s</td><td class=\"n\">%llu</td><td class=\"n\">%llu</td><td class=\"state %s\">%s</td><td "
                "class=\"n\">%u</td><td class=\"n\">%u</td></tr>\n",
                kinds[looks[i].kind], (unsigned long long)looks[i].incarnation, (unsigned long long)looks[i].table,
                looks[i].orphaned ? "orphaned" : "busy",
                looks[i].orphaned    ? "orphaned"
                : looks[i].exclusive ? "exclusive"
                                     : "shared",
                looks[i].holders, looks[i].waiters);
        }
    }
    PUT(all ? "</tbody></table></div>\n" : "<div class=\"panel\"><p class=\"none\">No gate is held.</p></div>\n");
}

static void put_jobs(pf_buffer *page, const host_server *host, const host_graph *only)
{
    static const char *const heads[] = {"job", "graph", "command", "state", "attempts", "waited", "took"};
    int64_t now = pf_monotonic_ns();
    uint32_t shown = 0;
    PUT("<h2>Queue and latest jobs</h2>\n");
    put_heads(page, heads, "llllrrr", sizeof heads / sizeof heads[0]);
    for (const host_job *job = host->newest; job && shown < JOBS_SHOWN; job = job->previous) {
        if (!job->graph || (only && job->graph != only))
            continue;
        int64_t began = job->started_ns ? job->started_ns : job->state == HOST_ENDED ? job->ended_ns : now;
        int64_t ended = job->state == HOST_ENDED ? job->ended_ns : now;
        const char *state = host_state_name(job);
        PUT("<tr><td>");
        host_put_id(page, &job->id);
        PUT("</td><td>");
        put_graph_link(page, host, job->graph);
        PUT("</td><td>%s%s</td><td class=\"state %s\">%s</td><td class=\"n\">%u</td><td class=\"n\">%.3f s</td><td "
            "class=\"n\">%.3f s</td></tr>\n",
            job->command->name, job->low ? " (own)" : "", strcmp(state, "done") == 0 ? "idle" : state, state,
            job->attempts, (double)(began - job->submitted_ns) / 1e9,
            job->started_ns ? (double)(ended - began) / 1e9 : 0.0);
        shown++;
    }
    PUT("</tbody></table></div>\n");
}

/* ---- pages ---- */

static void put_state(pf_buffer *page, const host_server *host)
{
    const char *state = host->draining ? "draining" : "serving";
    PUT("<p class=\"state %s\">%s for ", state, state);
    put_time(page, (pf_monotonic_ns() - host->began_ns) / 1000000000);
    PUT("</p>");
}

void host_page_put(pf_buffer *page, const host_server *host)
{
    put_head(page, "Sluice");
    PUT("<header><h1>Sluice <small>%s</small></h1>", SLUICE_VERSION);
    put_state(page, host);
    PUT("<p><b>%u</b> of <b>%u</b> workers busy</p><p><b>%u</b> clients</p><p><b>%llu</b> requests</p></header>\n",
        host->used[HOST_SMALL] + host->used[HOST_POOL], host->config.workers, host->client_count,
        (unsigned long long)host->requests);
    put_plots(page, host, NULL);
    put_graphs(page, host);
    put_processes(page, host, NULL);
    put_gates(page, host, NULL);
    put_jobs(page, host, NULL);
    put_foot(page);
}

static void put_lineage(pf_buffer *page, const host_server *host, const host_graph *graph, const char *branch)
{
    const host_lineage *known = &graph->lineage;
    PUT("<h2>Commits of ");
    if (host->config.http_names) {
        PUT("<bdi>");
        host_put_escaped(page, branch, strlen(branch));
        PUT("</bdi></h2>\n<div class=\"panel\">");
    } else {
        PUT("the main branch</h2>\n<div class=\"panel\">");
    }
    if (known->branch && strcmp(known->branch, branch) == 0 && known->text.length > 0)
        host_draw_lineage(page, &known->text, host->config.http_names);
    else
        PUT("<p class=\"none\">%s</p>", known->job ? "They are being read." : "They cannot be read at this moment.");
    PUT("</div>\n");
}

void host_page_put_graph(pf_buffer *page, const host_server *host, const host_graph *graph, const char *branch)
{
    const char *state = host_graph_state(graph, pf_monotonic_ns());
    put_head(page, "Sluice: a graph");
    PUT("<header><h1>Graph ");
    put_graph_name(page, host, graph);
    PUT("</h1><p class=\"state %s\">%s</p><p>mode <b>%s</b></p><p><b>%u</b> waiting, <b>%u</b> running</p><p><a "
        "href=\"/\">all graphs</a></p></header>\n",
        state, state, host_mode_name(graph->mode), graph->queued, graph->running);
    put_plots(page, host, graph);
    put_lineage(page, host, graph, branch);
    put_processes(page, host, graph);
    put_gates(page, host, graph);
    put_jobs(page, host, graph);
    put_foot(page);
}
