/*
 * The metrics of a supervisor as Prometheus text (see coord/host/host.h, docs/operations.md "Metrics").
 *
 * What a graph's processes did comes from its tallies (platform/tally.h), which they add to when it happens; what the
 * supervisor did itself from its own counters. Labels are the numbers of graphs and runners and words of ours: no name,
 * path, key or value, and as many as the configuration has graphs. A histogram's count is the sum of its cells as they
 * were read, so a line that is read in the middle of an event still agrees with the others.
 */
#include "coord/host/host.h"
#include "platform/memory.h"
#include "shm/gate_table.h"
#include <stdio.h>

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

static void put_value(pf_buffer *page, const char *name, const host_graph *graph, const char *label, const char *word,
                      uint64_t value)
{
    PUT("%s{graph=\"%u\"", name, graph->number);
    if (label)
        PUT(",%s=\"%s\"", label, word);
    PUT("} %llu\n", (unsigned long long)value);
}

/* ---- what the supervisor knows of its graphs ---- */

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

static void put_graphs(pf_buffer *page, const host_server *host, const char *name, const char *help, graph_value *value)
{
    put_head(page, name, "gauge", help);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next)
        put_value(page, name, graph, NULL, NULL, value(graph));
}

static void put_ends(pf_buffer *page, const host_server *host)
{
    static const char name[] = "sluice_jobs_ended_total";
    put_head(page, name, "counter", "Jobs that ended, by exit status.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (unsigned exit = 0; exit < HOST_EXITS; exit++) {
            if (graph->exits[exit] > 0 || exit == 0)
                PUT("%s{graph=\"%u\",exit=\"%u\"} %llu\n", name, graph->number, exit,
                    (unsigned long long)graph->exits[exit]);
        }
    }
}

static void put_seconds(pf_buffer *page, const host_server *host, const char *name, const char *help, bool waiting)
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

/* ---- what its processes counted ---- */

static const struct {
    const char *name, *label, *word, *help; /* one help for each name, at its first */
    pf_tally tally;
} counters[] = {
    {"sluice_commits_total", NULL, NULL, "Commits that were appended and acknowledged.", PF_TALLY_COMMITS},
    {"sluice_write_restarts_total", NULL, NULL, "Plans that were made again for a newer base.",
     PF_TALLY_WRITE_RESTARTS},
    {"sluice_recoveries_total", "outcome", "retired", "Intents of dead writers that were settled, by what was done.",
     PF_TALLY_RECOVER_RETIRE},
    {"sluice_recoveries_total", "outcome", "published", NULL, PF_TALLY_RECOVER_PUBLISH},
    {"sluice_recoveries_total", "outcome", "discarded", NULL, PF_TALLY_RECOVER_DISCARD},
    {"sluice_recoveries_total", "outcome", "undone", NULL, PF_TALLY_RECOVER_UNDO},
    {"sluice_recoveries_total", "outcome", "quarantined", NULL, PF_TALLY_RECOVER_QUARANTINE},
    {"sluice_fsyncs_total", "kind", "file", "Syncs of files and of folders.", PF_TALLY_FILE_SYNCS},
    {"sluice_fsyncs_total", "kind", "folder", NULL, PF_TALLY_FOLDER_SYNCS},
    {"sluice_read_bytes_total", NULL, NULL, "Bytes read by calls, mapped files aside.", PF_TALLY_BYTES_READ},
    {"sluice_written_bytes_total", NULL, NULL, "Bytes written to the graph.", PF_TALLY_BYTES_WRITTEN},
};
#define COUNTERS (sizeof counters / sizeof counters[0])

static void put_counters(pf_buffer *page, const host_server *host)
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        if (!counters[i].help)
            continue;
        put_head(page, counters[i].name, "counter", counters[i].help);
        for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
            for (unsigned k = i; k < COUNTERS && (k == i || !counters[k].help); k++)
                put_value(page, counters[k].name, graph, counters[k].label, counters[k].word,
                          graph->tallies->counts[counters[k].tally]);
        }
    }
}

static void put_restarts(pf_buffer *page, const host_server *host)
{
    static const char name[] = "sluice_worker_deaths_total";
    put_head(page, name, "counter", "Processes that died over their work, and were followed by others.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        put_value(page, name, graph, "process", "runner", graph->restarts);
        put_value(page, name, graph, "process", "worker", graph->tallies->counts[PF_TALLY_WORKER_DEATHS]);
    }
}

#define CODE_OF(code, exit, retryable, action) SLUICE_##code,
static const sluice_status codes[] = {SLUICE_CODES(CODE_OF)};
#define CODES (sizeof codes / sizeof codes[0])
_Static_assert(CODES < PF_TALLY_CODES, "every code has a tally");

/* Conflicts are there from the start, so that the first one is seen as an increase; other failures once they came. */
static void put_failures(pf_buffer *page, const host_server *host, const char *name, const char *help, bool conflicts)
{
    put_head(page, name, "counter", help);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (unsigned i = 0; i < CODES; i++) {
            bool conflict = sluice_status_exit(codes[i]) == 3 && codes[i] != SLUICE_QUEUE_FULL;
            uint64_t value = graph->tallies->failures[codes[i]];
            if (conflict == conflicts && (conflicts || value > 0))
                put_value(page, name, graph, "code", sluice_status_name(codes[i]), value);
        }
    }
}

static void put_refusals(pf_buffer *page, const host_server *host)
{
    static const char name[] = "sluice_jobs_refused_total";
    put_head(page, name, "counter", "Jobs that were not admitted, by code.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (unsigned i = 0; i < CODES; i++) {
            if (graph->refusals[codes[i]] > 0 || codes[i] == SLUICE_QUEUE_FULL)
                put_value(page, name, graph, "code", sluice_status_name(codes[i]), graph->refusals[codes[i]]);
        }
    }
}

static void put_series(pf_buffer *page, const host_graph *graph, const char *name, const char *stage, pf_series series)
{
    const pf_series_cells *cells = &graph->tallies->series[series];
    const uint64_t *bounds = pf_series_bounds(series);
    double unit = series == PF_SERIES_GROUP ? 1 : 1e9;
    uint64_t count = 0;
    char more[48] = "";
    if (stage)
        (void)snprintf(more, sizeof more, ",stage=\"%s\"", stage);
    for (unsigned i = 0; i < PF_TALLY_BOUNDS; i++) {
        count += cells->cells[i];
        PUT("%s_bucket{graph=\"%u\"%s,le=\"%g\"} %llu\n", name, graph->number, more, (double)bounds[i] / unit,
            (unsigned long long)count);
    }
    count += cells->cells[PF_TALLY_BOUNDS];
    PUT("%s_bucket{graph=\"%u\"%s,le=\"+Inf\"} %llu\n", name, graph->number, more, (unsigned long long)count);
    PUT("%s_sum{graph=\"%u\"%s} %.9g\n", name, graph->number, more, (double)cells->sum / unit);
    PUT("%s_count{graph=\"%u\"%s} %llu\n", name, graph->number, more, (unsigned long long)count);
}

static void put_all_series(pf_buffer *page, const host_server *host)
{
    static const struct {
        const char *name, *help;
        pf_series series;
    } all[] = {{"sluice_fsync_seconds", "Syncs of files.", PF_SERIES_SYNC},
               {"sluice_gate_wait_seconds", "From asking for a write's gates to having them all, or giving up.",
                PF_SERIES_GATE_WAIT},
               {"sluice_gate_hold_seconds", "From having a write's gates to letting go of them.", PF_SERIES_GATE_HOLD},
               {"sluice_publish_group_commits", "Commits that were published by one append.", PF_SERIES_GROUP}};
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        put_head(page, all[i].name, "histogram", all[i].help);
        for (const host_graph *graph = host->graphs; graph; graph = graph->next)
            put_series(page, graph, all[i].name, NULL, all[i].series);
    }
    put_head(page, "sluice_write_stage_seconds", "histogram", "Stages of the write protocol, each time one was left.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (int stage = SLUICE_PHASE_BARRIER; stage <= SLUICE_PHASE_FINALIZE; stage++)
            put_series(page, graph, "sluice_write_stage_seconds", sluice_phase_name((sluice_phase)stage),
                       (pf_series)(PF_SERIES_PHASE + stage));
    }
}

static void put_maintenance(pf_buffer *page, const host_server *host)
{
    static const char name[] = "sluice_maintenance_runs_total";
    put_head(page, name, "counter", "Maintenance that ended, by task and outcome.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (unsigned task = 0; task < HOST_TASKS; task++) {
            for (unsigned outcome = 0; outcome < HOST_OUTCOMES; outcome++)
                PUT("%s{graph=\"%u\",task=\"%s\",outcome=\"%s\"} %llu\n", name, graph->number, host_task_names[task],
                    host_outcome_names[outcome], (unsigned long long)graph->maintenance.runs[task][outcome]);
        }
    }
}

/* ---- gates ---- */

static void put_gates(pf_buffer *page, const host_server *host)
{
    shm_gate_look looks[HOST_GATES_SHOWN];
    for (unsigned waits = 0; waits < 2; waits++) {
        const char *name = waits ? "sluice_gate_waiters" : "sluice_gate_holders";
        put_head(page, name, "gauge",
                 waits ? "Standing processes that wait for a gate." : "Gates that standing processes hold.");
        for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
            uint32_t count = graph->seats > 0 ? shm_gates_look(&graph->region, looks, HOST_GATES_SHOWN) : 0;
            uint64_t sum = 0;
            for (uint32_t i = 0; i < count; i++)
                sum += waits ? looks[i].waiters : looks[i].holders;
            put_value(page, name, graph, NULL, NULL, sum);
        }
    }
}

/* ---- processes ---- */

static bool is_alive(const host_runner *runner)
{
    return runner->state != HOST_RUNNER_NONE && runner->state != HOST_RUNNER_DEAD;
}

static const char *const heap_kinds[] = {"allocated", "active", "resident"};

/* What allocators say of themselves; a process that has not looked yet, or has another allocator, is not there. */
static void put_heaps(pf_buffer *page, const host_server *host)
{
    pf_heap own;
    put_head(page, "sluice_supervisor_heap_bytes", "gauge", "The supervisor's memory, as its allocator counts it.");
    if (pf_heap_look(&own)) {
        const uint64_t values[] = {own.allocated, own.active, own.resident};
        for (unsigned i = 0; i < 3; i++)
            PUT("sluice_supervisor_heap_bytes{kind=\"%s\"} %llu\n", heap_kinds[i], (unsigned long long)values[i]);
    }
    put_head(page, "sluice_runner_heap_bytes", "gauge",
             "The same of each process at work or waiting for work, when it last ended a job.");
    for (uint32_t number = 0; number < HOST_RUNNERS_MAX; number++) {
        const host_runner *runner = &host->runners[number];
        for (unsigned i = 0; is_alive(runner) && i < 3; i++) {
            uint64_t value = runner->graph->tallies->heaps[number][i];
            if (value > 0)
                PUT("sluice_runner_heap_bytes{graph=\"%u\",runner=\"%u\",kind=\"%s\"} %llu\n", runner->graph->number,
                    number, heap_kinds[i], (unsigned long long)value);
        }
    }
}

static void put_processes(pf_buffer *page, const host_server *host)
{
    static const char *const states[] = {
        [HOST_RUNNER_IDLE] = "idle", [HOST_RUNNER_BUSY] = "busy", [HOST_RUNNER_LEAVING] = "leaving"};
    put_one(page, "sluice_supervisor_memory_bytes", "gauge", "Anonymous memory of the supervisor.",
            (double)pf_memory_of(pf_pid()));
    put_head(page, "sluice_runner_memory_bytes", "gauge", "Anonymous memory of a process at work or waiting for work.");
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        const host_runner *runner = &host->runners[i];
        if (is_alive(runner))
            PUT("sluice_runner_memory_bytes{graph=\"%u\",runner=\"%u\"} %llu\n", runner->graph->number, i,
                (unsigned long long)pf_memory_of(runner->child.pid));
    }
    put_head(page, "sluice_runners", "gauge", "Processes of a graph, by state.");
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        for (int state = HOST_RUNNER_IDLE; state <= HOST_RUNNER_LEAVING; state++) {
            uint64_t count = 0;
            for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++)
                count += host->runners[i].graph == graph && (int)host->runners[i].state == state;
            put_value(page, "sluice_runners", graph, "state", states[state], count);
        }
    }
}

/* ---- all ---- */

static void put_supervisor(pf_buffer *page, const host_server *host)
{
    put_head(page, "sluice_build_info", "gauge", "The version that serves.");
    PUT("sluice_build_info{version=\"%s\"} 1\n", SLUICE_VERSION);
    put_one(page, "sluice_start_time_seconds", "gauge", "When the supervisor began, in Unix time.",
            (double)host->began_us / 1e6);
    put_one(page, "sluice_draining", "gauge", "One while running jobs are waited for before the end.", host->draining);
    put_one(page, "sluice_workers", "gauge", "Places for work.", host->config.workers);
    put_head(page, "sluice_workers_busy", "gauge", "Places that are taken, by lane.");
    PUT("sluice_workers_busy{lane=\"small\"} %u\nsluice_workers_busy{lane=\"pool\"} %u\n", host->used[HOST_SMALL],
        host->used[HOST_POOL]);
    put_one(page, "sluice_connections", "gauge", "Clients at this moment.", host->client_count);
    put_one(page, "sluice_connections_accepted_total", "counter", "Clients that came.", (double)host->connections);
    put_one(page, "sluice_connections_refused_total", "counter", "Clients beyond the bound.",
            (double)host->refused_connections);
    put_one(page, "sluice_requests_total", "counter", "Requests on the control socket.", (double)host->requests);
    put_one(page, "sluice_status_renderings_total", "counter", "Answers to `status` that were made anew.",
            (double)host->renderings);
}

void host_metrics_put(pf_buffer *page, const host_server *host)
{
    put_supervisor(page, host);
    put_processes(page, host);
    put_heaps(page, host);
    put_graphs(page, host, "sluice_graph_up", "One while the graph is hosted.", up_of);
    put_graphs(page, host, "sluice_jobs_queued", "Jobs that wait.", queued_of);
    put_graphs(page, host, "sluice_jobs_running", "Jobs that run.", running_of);
    put_refusals(page, host);
    put_ends(page, host);
    put_seconds(page, host, "sluice_job_wait_seconds", "From admission to the start.", true);
    put_seconds(page, host, "sluice_job_seconds", "From the start to the end.", false);
    put_counters(page, host);
    put_restarts(page, host);
    put_failures(page, host, "sluice_conflicts_total", "Writes that ended in a conflict, by code.", true);
    put_failures(page, host, "sluice_write_failures_total", "Writes that failed otherwise, by code.", false);
    put_all_series(page, host);
    put_gates(page, host);
    put_maintenance(page, host);
}
