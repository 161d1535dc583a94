/*
 * Loads that replace whole types (--mode overwrite).
 *
 * The new rows are the type's whole list, under new row ids; nothing of the base counts as their neighbour. A node type
 * may lose keys that edges of the base still name: unless the same load replaces those edges too, they would be
 * stranded, which ends the load. What was replaced is read and changed as a whole, so no other commit to these tables
 * fits between base and commit; and since a rule of another table may rest on it (edges on their nodes), the edges'
 * tables are read as far as that somebody else replaces them. A conflict is not planned around: what to do about the
 * other's rows is the user's to say.
 */
#include "coord/load_job.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool load_replaces(const load_job *job, const st_type_def *type)
{
    if (job->spec->options->mode != CO_LOAD_OVERWRITE)
        return false;
    for (uint32_t i = 0; i < job->spec->input_count; i++)
        if (job->files[i].columns.type == type)
            return true;
    return false;
}

static sluice_status add_stranded(load_job *job, const st_type_def *edge, st_run_use use, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;
    const st_type_def *node = &schema->types[use == ST_RUN_FROM ? edge->from : edge->to];
    wk_probe probe;

    if (!load_replaces(job, node))
        return SLUICE_OK;
    PF_TRY(wk_probe_make_stranded(edge, node, use, job->plan.base, &probe, err));
    if (probe.entries == 0)
        return SLUICE_OK;
    wk_probe *grown = realloc(job->plan.probes, ((size_t)job->plan.probe_count + 1) * sizeof *grown);
    if (grown == NULL)
        return pf_fail_memory(err);
    job->plan.probes = grown;
    job->plan.probes[job->plan.probe_count++] = probe;
    return SLUICE_OK;
}

sluice_status load_overwrite_probes(load_job *job, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;

    if (job->spec->options->mode != CO_LOAD_OVERWRITE)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        wk_probe *probe = &job->plan.probes[i];
        probe->alone = load_replaces(job, probe->type);
        probe->node_alone = probe->node && load_replaces(job, probe->node);
    }
    for (uint32_t i = 0; i < schema->type_count; i++) {
        const st_type_def *type = &schema->types[i];
        if (!type->edge || load_replaces(job, type))
            continue;
        PF_TRY(add_stranded(job, type, ST_RUN_FROM, err));
        PF_TRY(add_stranded(job, type, ST_RUN_TO, err));
    }
    return SLUICE_OK;
}

/* ---- reads and changes ---- */

static sluice_status add_whole_read(co_read_kind kind, uint64_t table, co_write *write, sluice_error *err)
{
    co_read read = {.kind = kind, .set = {.table = table}};
    return co_read_set_add(&write->reads, &read, err);
}

sluice_status load_overwrite_sets(const load_job *job, const st_type_def *type, co_write *write, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;

    PF_TRY(st_changes_add_whole(&write->delta.changes, type->table, err));
    PF_TRY(add_whole_read(CO_READ_WHOLE_TABLE, type->table, write, err));
    /* Of edges that were looked at: a read of no key is met by a replacement of the table alone. */
    for (uint32_t i = 0; !type->edge && i < schema->type_count; i++) {
        const st_type_def *edge = &schema->types[i];
        if (edge->edge && (&schema->types[edge->from] == type || &schema->types[edge->to] == type))
            PF_TRY(add_whole_read(CO_READ_KEY_PRESENT, edge->table, write, err));
    }
    return SLUICE_OK;
}

/* ---- an edge that would be stranded ---- */

static sluice_status show_key(wk_side *side, st_run_use use, const wk_event *event, char *text, size_t room,
                              sluice_error *err)
{
    wk_run_plan plan = {.use = use, .columns = {use == ST_RUN_TO}, .count = 1};
    pf_buffer buffer = {0};
    wk_key key;
    sluice_status status;

    text[0] = '\0';
    PF_GOTO(status, done, wk_side_key(side, &plan, event->other_item, event->other_position, &key, err));
    for (uint32_t i = 0; i < key.count; i++) {
        char shown[WK_SHOWN_ROOM];
        size_t used = strlen(text);
        buffer.length = 0;
        PF_GOTO(status, done, st_value_text(key.columns[i], key.row, &buffer, err));
        (void)snprintf(text + used, room - used, "%s%s", i ? ", " : "", wk_shown(buffer.data, buffer.length, shown));
    }
done:
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_fault_of_stranded(load_job *job, const wk_event *event, wk_fault *ret_fault, sluice_error *err)
{
    const wk_probe *probe = &job->plan.probes[event->probe];
    char from[160], to[160];
    wk_side *side = NULL;
    sluice_status status;

    PF_GOTO(status, done, wk_side_of_base(job->plan.base, probe->type, &side, err));
    PF_GOTO(status, done, show_key(side, ST_RUN_FROM, event, from, sizeof from, err));
    PF_GOTO(status, done, show_key(side, ST_RUN_TO, event, to, sizeof to, err));
    wk_fault_set(ret_fault, SLUICE_CONSTRAINT_ENDPOINT,
                 "the edge %s from %s to %s would lose its end: %s %s is not among the new rows", probe->type->name,
                 from, to, probe->node->name, probe->plan.use == ST_RUN_FROM ? from : to);
    (void)snprintf(ret_fault->hint, sizeof ret_fault->hint, "overwrite %.200s in the same load, too",
                   probe->type->name);
    ret_fault->rule = probe->rule;
    ret_fault->record = UINT64_MAX; /* behind all rows of its input */
    for (uint32_t i = job->spec->input_count; i-- > 0;)
        if (job->files[i].columns.type == probe->node)
            ret_fault->argument = i;
done:
    wk_side_close(side);
    return status;
}
