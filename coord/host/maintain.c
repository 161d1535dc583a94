/*
 * Looking after graphs: optimize and gc at intervals, where the configuration asks for them (see coord/host/host.h).
 *
 * A round is one job after the other: optimize of each branch, then gc. Each is the very command that a person would
 * run, with its thresholds as conditions (`--if-fragments`, `--if-frees`, …), so whether there is anything to do is
 * decided where the graph is open, and most jobs find nothing. Such a job waits in the graph's queue like any other and
 * takes a place that nobody else wants; one that has waited long has its turn among the others. There is never more
 * than one for a graph, and none beside a user's own optimize or gc. One that fails ends the round, and the pause
 * before the next is doubled with each failure in a row. When the next one is due is kept (schedule.c): it is no later
 * for a start in between. */
#include "coord/host/host.h"
#include "platform/check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MAX_S 86400u /* of failures; never less than the configured one */

const char *const host_task_names[HOST_TASKS] = {[HOST_OPTIMIZE] = "optimize", [HOST_GC] = "gc"};
const char *const host_outcome_names[HOST_OUTCOMES] = {
    [HOST_DONE] = "done", [HOST_NOTHING] = "nothing", [HOST_FAILED] = "failed"};

const char *host_maintenance_state(const host_graph *graph, int64_t now)
{
    const host_maintenance *own = &graph->maintenance;
    if (own->job)
        return own->job->state == HOST_WAITING ? "waiting" : "running";
    if (graph->config.maintenance.every_seconds == 0)
        return "off";
    return own->failures > 0 && own->next_ns > now ? "backing-off" : "idle";
}

/* ---- the job ---- */

#define WORDS_MAX 8u

typedef struct maintain_words {
    pf_buffer texts[WORDS_MAX];
    const char *words[WORDS_MAX];
    uint32_t count;
    bool whole;
} maintain_words;

static void add(maintain_words *words, const char *fmt, ...) PF_PRINTF(2, 3);

static void add(maintain_words *words, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    PF_ASSERT(words->count < WORDS_MAX);
    words->whole &=
        length >= 0 && pf_buffer_append(&words->texts[words->count], text, (size_t)length + 1, NULL) == SLUICE_OK;
    if (length >= 0)
        free(text);
    words->words[words->count] = (const char *)words->texts[words->count].data;
    words->count++;
}

static void add_number(maintain_words *words, const char *option, uint64_t number)
{
    if (number > 0)
        add(words, "--%s=%llu", option, (unsigned long long)number);
}

static host_job *make_job(const host_server *host, host_graph *graph)
{
    const host_maintenance_config *wanted = &graph->config.maintenance;
    const host_maintenance *own = &graph->maintenance;
    maintain_words words = {.whole = true};
    if (own->task == HOST_OPTIMIZE) {
        add(&words, "--branch=%s", wanted->branches[own->branch]);
        add_number(&words, "if-fragments", wanted->fragments);
        add_number(&words, "if-edits", wanted->edits);
        add_number(&words, "if-dead", wanted->dead_bytes);
    } else {
        add_number(&words, "if-frees", wanted->gc_bytes);
        add_number(&words, "keep", wanted->keep);
        if (wanted->older_than[0])
            add(&words, "--older-than=%s", wanted->older_than);
    }
    host_job *job =
        words.whole ? host_job_make_own(host, graph, host_task_names[own->task], words.words, words.count) : NULL;
    for (uint32_t i = 0; i < words.count; i++)
        pf_buffer_free(&words.texts[i]);
    return job;
}

/* ---- rounds ---- */

/* The next task of the round from here on that the configuration asks for; HOST_TASKS: the round is over. */
static host_task next_task(const host_maintenance_config *wanted, host_task task, uint32_t branch)
{
    if (task == HOST_OPTIMIZE && wanted->optimize && branch < wanted->branch_count)
        return HOST_OPTIMIZE;
    return task <= HOST_GC && wanted->gc ? HOST_GC : HOST_TASKS;
}

uint64_t host_maintenance_pause(const host_graph *graph)
{
    uint64_t pause = graph->config.maintenance.every_seconds;
    for (unsigned i = 0; i < graph->maintenance.failures && pause < PAUSE_MAX_S; i++)
        pause = pause * 2 < PAUSE_MAX_S ? pause * 2 : PAUSE_MAX_S;
    return pause;
}

static void end_round(host_graph *graph)
{
    host_maintenance *own = &graph->maintenance;
    own->task = HOST_OPTIMIZE;
    own->branch = 0;
    own->next_ns = pf_monotonic_ns() + (int64_t)host_maintenance_pause(graph) * 1000000000;
}

static void end_round_and_keep(host_graph *graph)
{
    end_round(graph);
    host_schedule_keep(graph);
}

/* Did it change anything? By what the command said. */
static bool did_something(const host_job *job)
{
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    const pf_buffer *said = &job->output[0];
    bool did = true; /* also when it cannot be told */
    if (said->length > 0 && st_tree_parse((const char *)said->data, said->length, HOST_NODES_MAX, &tree, &problem,
                                          &line, NULL) == SLUICE_OK) {
        const st_node *root = st_tree_root(tree);
        const st_node *commit = root->kind == ST_NODE_OBJECT ? st_node_member(root, "commit") : NULL;
        const st_node *files = root->kind == ST_NODE_OBJECT ? st_node_member(root, "files") : NULL;
        const st_node *generations = root->kind == ST_NODE_OBJECT ? st_node_member(root, "generations") : NULL;
        if (commit)
            did = commit->kind == ST_NODE_OBJECT;
        else if (files && generations && files->kind == ST_NODE_NUMBER && generations->kind == ST_NODE_NUMBER)
            did = strcmp(files->text, "0") != 0 || strcmp(generations->text, "0") != 0;
    }
    st_tree_free(tree);
    return did;
}

void host_maintenance_ended(host_graph *graph, const host_job *job)
{
    host_maintenance *own = &graph->maintenance;
    host_task task = own->task;
    PF_ASSERT(own->job == job);
    own->job = NULL;
    if (job->cancelled || job->started_ns == 0) { /* taken back */
        end_round(graph);
        return;
    }
    bool failed = job->failed.code != SLUICE_OK || job->exit != 0;
    host_outcome outcome = failed ? HOST_FAILED : did_something(job) ? HOST_DONE : HOST_NOTHING;
    own->runs[task][outcome]++;
    own->failures = failed ? own->failures + 1 : 0;
    own->branch++;
    own->task = next_task(&graph->config.maintenance, task == HOST_GC ? HOST_TASKS : task, own->branch);
    if (failed || own->task == HOST_TASKS)
        end_round_and_keep(graph);
    if (outcome != HOST_NOTHING) {
        own->ran = true;
        own->last_task = task;
        own->last_outcome = outcome;
        own->last_us = pf_wall_us();
    }
    host_log(failed                 ? "warn"
             : outcome == HOST_DONE ? "info"
                                    : "debug",
             "maintenance-ended", "graph=%u task=%s outcome=%s exit=%d milliseconds=%lld failures=%u", graph->number,
             host_task_names[task], host_outcome_names[outcome],
             failed ? sluice_status_exit(job->failed.code) + job->exit : 0,
             (long long)((job->ended_ns - job->started_ns) / 1000000), own->failures);
}

void host_maintenance_stop(host_server *host, host_graph *graph)
{
    host_job *job = graph->maintenance.job;
    sluice_error error = {0};
    if (!job)
        return;
    job->cancelled = true;
    if (job->state == HOST_WAITING) {
        (void)pf_fail(&error, SLUICE_CANCELLED, "it is not wanted any more");
        host_job_end(host, job, 0, &error);
    } else if (job->runner && job->fates == 0) {
        pf_child_interrupt(&job->runner->child);
    }
}

/* Is somebody doing the same? */
static bool is_at_work(const host_server *host, const host_graph *graph)
{
    for (const host_job *job = host->newest; job; job = job->previous) {
        if (job->graph == graph && job->state != HOST_ENDED &&
            (strcmp(job->command->name, "optimize") == 0 || strcmp(job->command->name, "gc") == 0))
            return true;
    }
    return false;
}

static void look_after(host_server *host, host_graph *graph, int64_t now)
{
    const host_maintenance_config *wanted = &graph->config.maintenance;
    host_maintenance *own = &graph->maintenance;
    if (own->job || !graph->ready || graph->leaving)
        return;
    if (wanted->every_seconds == 0) {
        if (own->next_ns != 0)
            host_schedule_forget(graph);
        own->next_ns = 0;
        own->failures = 0;
        return;
    }
    if (own->next_ns == 0 && !host_schedule_read(graph))
        end_round_and_keep(graph);
    if (now < own->next_ns || is_at_work(host, graph))
        return;
    own->task = next_task(wanted, own->task, own->branch);
    if (own->task == HOST_TASKS) {
        end_round_and_keep(graph);
        return;
    }
    own->job = make_job(host, graph);
    if (!own->job) {
        own->failures++;
        end_round_and_keep(graph);
        return;
    }
    host_log("debug", "maintenance-started", "graph=%u task=%s", graph->number, host_task_names[own->task]);
    host_job_add(host, own->job);
}

void host_maintenance_tick(host_server *host, int64_t now)
{
    for (host_graph *graph = host->graphs; graph && !host->draining; graph = graph->next)
        look_after(host, graph, now);
}
