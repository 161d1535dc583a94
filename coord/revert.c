/*
 * The job of a revert (coord/revert.h): one process, one plan at a time.
 *
 * The plan goes through the tables of both schemas. Where base and target list the same rows nothing is done; else the
 * table's list is replaced by the target's. Since all tables are brought to one state that stood as a whole, no rule
 * can break: ends, unique values and counts held there. That is so only if nothing else moves, so the head is read.
 */
#include "coord/revert.h"
#include "platform/check.h"
#include "store/read/diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct revert_job {
    const co_revert_request *request;
    st_snapshot *target; /* pinned once: what is reverted to never changes */
} revert_job;

static sluice_status count_change(void *context, const st_row_change *change, sluice_error *err)
{
    st_commit *commit = context;
    (void)err;
    commit->inserted += change->kind == ST_INSERTED;
    commit->updated += change->kind == ST_UPDATED;
    commit->deleted += change->kind == ST_DELETED;
    return SLUICE_OK;
}

/* The list of a table, empty where the schema there does not have it. */
static sluice_status get_list(st_snapshot *snapshot, uint64_t table, const st_table_list **ret_list, sluice_error *err)
{
    static const st_table_list nothing;
    st_table_reader *reader = NULL;
    *ret_list = &nothing;
    if (!st_schema_find_table(st_snapshot_view(snapshot)->schema, table))
        return SLUICE_OK;
    PF_TRY(st_table_reader_get(snapshot, table, &reader, err));
    *ret_list = st_table_reader_list(reader);
    return SLUICE_OK;
}

static sluice_status add_gate(co_write *write, uint64_t table, sluice_error *err)
{
    lk_gate_key *gates = realloc(write->gates, ((size_t)write->gate_count + 1) * sizeof *gates);
    if (!gates)
        return pf_fail_memory(err);
    write->gates = gates;
    gates[write->gate_count++] = (lk_gate_key){.kind = table ? LK_GATE_TABLE : LK_GATE_SCHEMA,
                                               .incarnation = st_snapshot_view(write->base)->incarnation,
                                               .table = table,
                                               .exclusive = true};
    return SLUICE_OK;
}

/* A table that the target's schema lacks goes with the schema. */
static sluice_status revert_table(revert_job *job, co_write *write, uint64_t table, sluice_error *err)
{
    const st_table_list *before = NULL, *after = NULL;
    const st_schema *schema = st_snapshot_view(job->target)->schema;
    st_commit *commit = &write->delta.commit;
    uint64_t counted = commit->inserted + commit->updated + commit->deleted;
    st_edit edit = {0};
    char stem[48], id[PF_ID_TEXT];
    PF_TRY(get_list(write->base, table, &before, err));
    PF_TRY(get_list(job->target, table, &after, err));
    if (st_table_list_same(before, after))
        return SLUICE_OK;
    PF_TRY(st_diff_table(write->base, job->target, table, count_change, commit, err));
    if (commit->inserted + commit->updated + commit->deleted == counted) /* the same rows, written again since */
        return SLUICE_OK;
    PF_TRY(st_changes_add_whole(&write->delta.changes, table, err));
    if (!st_schema_find_table(schema, table))
        return SLUICE_OK;
    pf_id_text(&write->attempt->id, id);
    (void)snprintf(stem, sizeof stem, "%s-%ur", id, write->plan_number);
    PF_TRY(st_edit_adopt(write->graph, table, after, stem, &edit, err));
    return st_delta_add_edit(st_graph_volume(write->graph), &write->delta, &edit, stem, err);
}

static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    revert_job *job = context;
    if (!job->target)
        PF_TRY(st_snapshot_open(write->graph, job->request->branch, job->request->to, &job->target, err));
    const st_view *base = st_snapshot_view(write->base), *target = st_snapshot_view(job->target);
    bool schema_moves = !pf_sha256_equal(&base->schema_identity, &target->schema_identity);
    for (uint32_t i = 0; i < target->schema->type_count; i++)
        PF_TRY(revert_table(job, write, target->schema->types[i].table, err));
    for (uint32_t i = 0; i < base->schema->type_count; i++)
        if (!st_schema_find_table(target->schema, base->schema->types[i].table))
            PF_TRY(revert_table(job, write, base->schema->types[i].table, err));
    if (write->delta.edit_count == 0 && !schema_moves)
        return SLUICE_OK;
    if (schema_moves)
        write->delta.new_schema = target->schema_identity;
    write->reads.reads_head = true;
    write->reads.head = base->head;
    PF_TRY(add_gate(write, 0, err));
    for (uint32_t i = 0; i < write->delta.edit_count; i++)
        PF_TRY(add_gate(write, write->delta.edits[i].edit.table, err));
    return SLUICE_OK;
}

static sluice_status digest_request(const co_revert_request *request, pf_sha256 *ret_digest, sluice_error *err)
{
    const char *const parts[] = {"revert", request->to};
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pf_sha256_add(stream, parts[i], strlen(parts[i]) + 1);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

sluice_status co_revert(st_graph *graph, const co_revert_request *request, co_receipt *ret_receipt, sluice_error *err)
{
    revert_job job = {.request = request};
    const co_writer writer = {.adapter = &ad_revert, .context = &job, .plan = plan};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_request write = {.branch = request->branch,
                        .operation = request->operation,
                        .operation_given = request->operation_given,
                        .message = request->message,
                        .if_head = request->if_head,
                        .dry_run = request->dry_run};
    co_attempt attempt = {0};
    PF_TRY(digest_request(request, &write.request, err));
    sluice_error error = {0};
    sluice_status status = co_attempt_make(graph, &attempt, &error);
    if (status != SLUICE_OK) {
        co_write_not_begun(graph, &write, &error);
        if (err)
            *err = error;
        return status;
    }
    status = co_write_run(graph, &write, &attempt, &executor, &writer, ret_receipt, err);
    st_snapshot_close(job.target);
    (void)co_attempt_finish(graph, &attempt, NULL); /* what it cannot remove is gc's */
    return status;
}
