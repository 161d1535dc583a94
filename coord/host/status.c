/*
 * What a supervisor says of itself to a client: its graphs, their processes and gates, as far as the client may know of
 * them (see coord/host/host.h). A look, not a promise: what is counted elsewhere may have moved on.
 */
#include "coord/host/host.h"
#include "platform/memory.h"
#include "shm/gate_table.h"
#include <string.h>

static void put_text(st_json *json, const char *name, const char *text)
{
    st_json_name(json, name);
    st_json_text(json, text);
}

static void put_number(st_json *json, const char *name, uint64_t number)
{
    st_json_name(json, name);
    st_json_unsigned(json, number);
}

/* In whole milliseconds. */
static void put_seconds(st_json *json, const char *name, int64_t nanoseconds)
{
    int64_t milliseconds = nanoseconds / 1000000;
    st_json_name(json, name);
    st_json_double(json, (double)milliseconds / 1000);
}

const char *host_graph_state(const host_graph *graph, int64_t now)
{
    return graph->leaving                       ? "leaving"
           : !graph->ready                      ? "failed"
           : graph->crashes >= HOST_CRASHES_MAX ? "crash-loop" /* until a job comes through */
           : graph->not_before_ns > now         ? "backing-off"
           : graph->running > 0                 ? "working"
                                                : "idle";
}

uint64_t host_graph_conflicts(const host_graph *graph)
{
    uint64_t count = 0;
    for (unsigned code = 0; code < PF_TALLY_CODES; code++)
        count += sluice_status_exit((sluice_status)code) == 3 ? graph->tallies->failures[code] : 0;
    return count;
}

/* ---- graphs ---- */

static void put_maintenance(st_json *json, const host_graph *graph, int64_t now)
{
    const host_maintenance *own = &graph->maintenance;
    st_json_name(json, "maintenance");
    st_json_object(json);
    put_text(json, "state", host_maintenance_state(graph, now));
    if (own->job)
        put_text(json, "task", host_task_names[own->task]);
    for (unsigned task = 0; task < HOST_TASKS; task++) {
        st_json_name(json, host_task_names[task]);
        st_json_object(json);
        for (unsigned outcome = 0; outcome < HOST_OUTCOMES; outcome++)
            put_number(json, host_outcome_names[outcome], own->runs[task][outcome]);
        st_json_object_end(json);
    }
    if (own->ran) {
        put_text(json, "last_task", host_task_names[own->last_task]);
        put_text(json, "last_outcome", host_outcome_names[own->last_outcome]);
        st_json_name(json, "last_seconds");
        st_json_number(json, own->last_us / 1000000);
    }
    put_number(json, "failures_in_a_row", own->failures);
    if (own->next_ns > now && !own->job)
        put_seconds(json, "next_in_seconds", own->next_ns - now);
    st_json_object_end(json);
}

/* In so many steps over the time that is kept, the oldest first. */
static void put_recent(st_json *json, const host_server *host, const host_graph *graph)
{
    host_sample sample;
    uint32_t step = HOST_SAMPLES / HOST_RECENT;
    for (unsigned slow = 0; slow < 2; slow++) {
        st_json_name(json, slow ? "recent_milliseconds" : "recent_commits");
        st_json_array(json);
        for (uint32_t i = 0; i < HOST_RECENT; i++) {
            host_sample_get(host, graph, i * step, step, &sample);
            st_json_unsigned(json, slow ? (uint64_t)(host_sample_seconds(&sample, 0.95) * 1000) : sample.commits);
        }
        st_json_array_end(json);
    }
}

static void put_graph(st_json *json, const host_server *host, const host_graph *graph, int64_t now, bool detail)
{
    double mean = graph->took.count ? graph->took.sum * 1e6 / (double)graph->took.count : 0;
    st_json_object(json);
    put_number(json, "number", graph->number);
    put_text(json, "name", graph->config.name);
    put_text(json, "state", host_graph_state(graph, now));
    if (!graph->ready) {
        put_text(json, "problem", sluice_status_name(graph->problem.code));
        st_json_name(json, "message");
        st_json_lossy_text(json, graph->problem.message, strlen(graph->problem.message));
    }
    put_text(json, "mode", host_mode_name(graph->mode));
    put_number(json, "weight", graph->config.weight);
    put_number(json, "max_jobs", graph->config.max_jobs);
    put_number(json, "queued", graph->queued);
    put_number(json, "running", graph->running);
    put_number(json, "done", graph->done);
    put_number(json, "failed", graph->failed);
    put_number(json, "refused", graph->refused);
    put_number(json, "restarts", graph->restarts);
    put_number(json, "commits", graph->tallies->counts[PF_TALLY_COMMITS]);
    put_number(json, "conflicts", host_graph_conflicts(graph));
    st_json_name(json, "seconds_mean");
    st_json_double(json, (double)(int64_t)mean / 1e6);
    put_maintenance(json, graph, now);
    if (detail)
        put_recent(json, host, graph);
    st_json_object_end(json);
}

/* ---- gates and processes ---- */

static void put_gates(st_json *json, const host_graph *graph)
{
    shm_gate_look looks[HOST_GATES_SHOWN];
    static const char *const kinds[] = {
        [LK_GATE_SCHEMA] = "schema", [LK_GATE_BRANCH] = "branch", [LK_GATE_TABLE] = "table"};
    uint32_t count = graph->seats > 0 ? shm_gates_look(&graph->region, looks, HOST_GATES_SHOWN) : 0;
    for (uint32_t i = 0; i < count; i++) {
        st_json_object(json);
        put_number(json, "graph", graph->number);
        put_text(json, "gate", kinds[looks[i].kind]);
        put_number(json, "branch", looks[i].incarnation);
        put_number(json, "table", looks[i].table);
        put_text(json, "mode", looks[i].exclusive ? "exclusive" : "shared");
        put_number(json, "holders", looks[i].holders);
        put_number(json, "waiters", looks[i].waiters);
        st_json_name(json, "orphaned");
        st_json_bool(json, looks[i].orphaned);
        st_json_object_end(json);
    }
}

bool host_runner_look(const host_server *host, uint32_t number, int64_t now, host_runner_view *ret_view)
{
    static const char *const states[] = {
        [HOST_RUNNER_IDLE] = "idle", [HOST_RUNNER_BUSY] = "busy", [HOST_RUNNER_LEAVING] = "leaving"};
    const host_runner *runner = &host->runners[number];
    const host_job *job = runner->job;
    if (runner->state == HOST_RUNNER_NONE || runner->state == HOST_RUNNER_DEAD)
        return false;
    uint32_t stage = job ? runner->graph->tallies->places[number] : SLUICE_PHASE_NONE;
    *ret_view = (host_runner_view){.number = number,
                                   .graph = runner->graph,
                                   .state = states[runner->state],
                                   .command = job ? job->command->name : "",
                                   .stage = stage > SLUICE_PHASE_NONE && stage <= SLUICE_PHASE_RECOVER
                                                ? sluice_phase_name((sluice_phase)stage)
                                                : "",
                                   .attempt = job ? job->attempts : 0,
                                   .jobs = runner->jobs,
                                   .pid = runner->child.pid,
                                   .memory = pf_memory_of(runner->child.pid),
                                   .busy_ns = job && job->started_ns ? now - job->started_ns : 0};
    return true;
}

static void put_process(st_json *json, const host_runner_view *view)
{
    st_json_object(json);
    put_number(json, "runner", view->number);
    put_number(json, "graph", view->graph->number);
    st_json_name(json, "pid");
    st_json_number(json, view->pid);
    put_text(json, "state", view->state);
    put_text(json, "command", view->command);
    put_text(json, "stage", view->stage);
    put_number(json, "attempt", view->attempt);
    put_seconds(json, "seconds", view->busy_ns);
    put_number(json, "jobs", view->jobs);
    put_number(json, "memory", view->memory);
    st_json_object_end(json);
}

/* ---- the whole ---- */

/* Costs more than the rest: memory is asked of the kernel, the tables of gates are gone through. */
static void put_detail(st_json *json, const host_server *host, const host_client *client, int64_t now)
{
    host_runner_view view;
    st_json_name(json, "processes");
    st_json_array(json);
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        if (host->runners[i].state != HOST_RUNNER_NONE && host_may_use(client, host->runners[i].graph) &&
            host_runner_look(host, i, now, &view))
            put_process(json, &view);
    }
    st_json_array_end(json);
    st_json_name(json, "gates");
    st_json_array(json);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (host_may_use(client, graph))
            put_gates(json, graph);
    }
    st_json_array_end(json);
}

void host_status_put(st_json *json, const host_server *host, const host_client *client, bool detail)
{
    int64_t now = pf_monotonic_ns();
    put_text(json, "version", SLUICE_VERSION);
    put_number(json, "pid", (uint64_t)pf_pid());
    put_text(json, "state", host->draining ? "draining" : "serving");
    put_seconds(json, "seconds", now - host->began_ns);
    put_number(json, "workers", host->config.workers);
    put_number(json, "workers_busy", host->used[HOST_SMALL] + host->used[HOST_POOL]);
    put_number(json, "connections", host->client_count);
    st_json_name(json, "graphs");
    st_json_array(json);
    for (const host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (host_may_use(client, graph))
            put_graph(json, host, graph, now, detail);
    }
    st_json_array_end(json);
    if (detail)
        put_detail(json, host, client, now);
}
