/*
 * Which jobs have not ended, kept over the end of the supervisor (see coord/host/host.h).
 *
 * cache/jobs of a graph has a slot for each: filled when the job is admitted, and emptied when it has ended. The next
 * supervisor finds what a killed one left there and reports it: such a job has failed, and one more process settles
 * what its own processes left and looks whether it had committed, as for any job whose processes died. So `jobs` and
 * `watch` know it by its id, and nobody has to guess; the same operation id tells the same. Nothing is run again by
 * itself: inputs were descriptors of clients that have seen their connection end.
 *
 * Never synced: a loss of power ends the clients, too. Like all of cache/ it may be missing or damaged, and then less
 * is reported. A slot is written whole, by one call. Jobs that only read are not kept.
 */
#include "coord/host/host.h"
#include "store/format/document.h"
#include <stdlib.h>
#include <string.h>

#define LEDGER_FILE "cache/jobs"
#define LEDGER_SLOT 1024u

static sluice_status put_record(const host_job *job, const st_node *words, pf_buffer *record)
{
    st_json json;
    st_json_begin(&json, record);
    st_json_object(&json);
    st_json_name(&json, "job");
    st_json_id(&json, &job->id);
    st_json_name(&json, "operation");
    st_json_id(&json, &job->operation);
    st_json_name(&json, "user");
    st_json_unsigned(&json, job->user);
    st_json_name(&json, "command");
    st_json_text(&json, job->command->name);
    st_json_name(&json, "params"); /* as in a request: where to look stands in the words */
    st_json_object(&json);
    st_json_name(&json, "words");
    st_json_array(&json);
    for (const st_node *word = words ? words->first : NULL; word; word = word->next)
        st_json_bytes_text(&json, word->text, word->length);
    st_json_array_end(&json);
    st_json_object_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, NULL);
}

void host_ledger_describe(host_job *job, const st_node *words)
{
    if (job->reads)
        return;
    sluice_status status = put_record(job, words, &job->record);
    if (status == SLUICE_OK && job->record.length > LEDGER_SLOT) { /* reported, its outcome unknown */
        job->record.length = 0;
        status = put_record(job, NULL, &job->record);
    }
    if (status != SLUICE_OK)
        pf_buffer_free(&job->record);
}

void host_ledger_note(host_job *job)
{
    host_graph *graph = job->graph;
    uint8_t slot[LEDGER_SLOT] = {0};
    uint32_t number = 0;
    while (number < HOST_LEDGER_SLOTS && graph->ledger_used[number])
        number++;
    if (!graph->ledger || job->record.length == 0 || number == HOST_LEDGER_SLOTS)
        return;
    memcpy(slot, job->record.data, job->record.length);
    if (pf_write(graph->ledger, (uint64_t)number * LEDGER_SLOT, slot, sizeof slot, NULL) != SLUICE_OK)
        return;
    graph->ledger_used[number] = true;
    job->ledger_slot = number + 1;
}

void host_ledger_drop(host_job *job)
{
    host_graph *graph = job->graph;
    if (job->ledger_slot == 0)
        return;
    (void)pf_write(graph->ledger, (uint64_t)(job->ledger_slot - 1) * LEDGER_SLOT, "", 1, NULL);
    graph->ledger_used[job->ledger_slot - 1] = false;
    job->ledger_slot = 0;
}

/* ---- after a start ---- */

static const co_host_command *command_of(const host_server *host, const st_node *root)
{
    const st_node *name = st_node_member(root, "command");
    for (uint32_t i = 0; name && name->kind == ST_NODE_STRING && i < host->program->command_count; i++) {
        if (strcmp(host->program->commands[i].name, name->text) == 0)
            return &host->program->commands[i];
    }
    return NULL;
}

static bool read_id(const st_node *root, const char *name, pf_id *ret_id)
{
    const st_node *node = st_node_member(root, name);
    return node && node->kind == ST_NODE_STRING && pf_id_parse(node->text, ret_id);
}

static bool fill(const host_server *host, host_job *job, const st_node *root)
{
    const st_node *user = root->kind == ST_NODE_OBJECT ? st_node_member(root, "user") : NULL;
    const st_node *params = user ? st_node_member(root, "params") : NULL;
    const st_node *words = params && params->kind == ST_NODE_OBJECT ? st_node_member(params, "words") : NULL;
    bool good = user && user->kind == ST_NODE_NUMBER && words && words->kind == ST_NODE_ARRAY &&
                read_id(root, "job", &job->id) && read_id(root, "operation", &job->operation) &&
                (job->command = command_of(host, root));
    for (const st_node *word = good ? words->first : NULL; word; word = word->next)
        good = good && word->kind == ST_NODE_STRING && strlen(word->text) == word->length;
    job->user = good ? (uint32_t)strtoul(user->text, NULL, 10) : 0;
    return good;
}

/* NULL: not one that could be believed. */
static host_job *read_record(const host_server *host, host_graph *graph, const char *text, size_t length)
{
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    host_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->line = strndup(text, length);
    job->length = length;
    bool good = job->line && pf_buffer_append(&job->record, text, length, NULL) == SLUICE_OK &&
                st_tree_parse(text, length, HOST_NODES_MAX, &tree, &problem, &line, NULL) == SLUICE_OK &&
                fill(host, job, st_tree_root(tree));
    st_tree_free(tree);
    if (!good) {
        host_job_free(job);
        return NULL;
    }
    (void)pf_fail(&job->failed, SLUICE_IO, "the supervisor ended before the job had");
    job->failed.committed = job->failed.acknowledged = SLUICE_UNKNOWN;
    pf_hint(&job->failed, "the same request with this operation id tells what became of it");
    job->graph = graph;
    job->lane = HOST_POOL;
    job->workers = 1;
    job->reads = true; /* it changes nothing, it looks */
    job->fates = 1;
    job->start_by_ns = job->end_by_ns = INT64_MAX;
    return job;
}

void host_ledger_open(host_server *host, host_graph *graph)
{
    pf_buffer kept = {0};
    uint32_t found = 0;
    (void)st_document_read(graph->volume, LEDGER_FILE, (size_t)HOST_LEDGER_SLOTS * LEDGER_SLOT, &kept, NULL);
    (void)pf_remove(graph->volume, LEDGER_FILE, NULL);
    if (pf_create(graph->volume, LEDGER_FILE, &graph->ledger, NULL) != SLUICE_OK)
        graph->ledger = NULL; /* then what is admitted now is not reported later */
    for (size_t at = 0; at < kept.length; at += LEDGER_SLOT) {
        size_t room = kept.length - at < LEDGER_SLOT ? kept.length - at : LEDGER_SLOT;
        const uint8_t *end = kept.data[at] == '{' ? memchr(kept.data + at, '\n', room) : NULL;
        host_job *job =
            end ? read_record(host, graph, (const char *)kept.data + at, (size_t)(end - (kept.data + at)) + 1) : NULL;
        if (!job)
            continue;
        found++;
        host_job_add(host, job);
    }
    if (found > 0)
        host_log("warn", "jobs-interrupted", "graph=%u jobs=%u", graph->number, found);
    pf_buffer_free(&kept);
}

void host_ledger_close(host_graph *graph)
{
    (void)pf_close(graph->ledger, NULL);
    graph->ledger = NULL;
}
