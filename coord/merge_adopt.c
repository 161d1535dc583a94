/*
 * Tables of a fast-forward that are taken over as they are: the source's list becomes the target's, by one edit that
 * replaces the list and names the same fragments, under the same row ids and commits. Nothing is copied but rows that
 * lie in the source's records (they are few: folds stage them) and the positions of deleted rows.
 *
 * The edit names all that it needs, so the source's own log may go.
 */
#include "coord/merge_job.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADOPT_ROWS 4096u /* changed rows from which a list is taken over; fewer are written one by one */

static int by_name(const void *a, const void *b)
{
    const st_edit_add *const *one = a, *const *two = b;
    return strcmp((*one)->fragment.name, (*two)->fragment.name);
}

/* The fragments of a list by name; malloc'd. */
static const st_edit_add **sort_list(const st_table_list *list)
{
    const st_edit_add **sorted = calloc((size_t)list->count + 1, sizeof *sorted);
    for (uint32_t i = 0; sorted && i < list->count; i++)
        sorted[i] = &list->fragments[i];
    if (sorted)
        qsort(sorted, list->count, sizeof *sorted, by_name);
    return sorted;
}

/* About how many rows of `list` the other one lacks: of fragments that only it has, or that have lost rows since. */
static uint64_t count_lacking(const st_table_list *list, const st_table_list *other, const st_edit_add **sorted)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const st_edit_add *sought = &list->fragments[i];
        const st_edit_add **found = bsearch(&sought, sorted, other->count, sizeof *sorted, by_name);
        if (!found) {
            rows += sought->fragment.rows - list->dead_count[i];
            continue;
        }
        uint64_t there = other->dead_count[*found - other->fragments];
        rows += there > list->dead_count[i] ? there - list->dead_count[i] : 0;
    }
    return rows;
}

sluice_status mrg_is_adopted(mrg_job *job, uint32_t number, bool *ret_adopted, sluice_error *err)
{
    mut_type *type = &job->mut.types[number];
    st_table_reader *source = NULL, *target = NULL;
    *ret_adopted = false;
    PF_TRY(st_table_reader_get(job->source.snapshot, type->def->table, &source, err));
    PF_TRY(st_table_reader_get(job->mut.write->base, type->def->table, &target, err));
    const st_table_list *theirs = st_table_reader_list(source), *ours = st_table_reader_list(target);
    const st_edit_add **sorted_theirs = sort_list(theirs), **sorted_ours = sort_list(ours);
    if (sorted_theirs && sorted_ours)
        *ret_adopted =
            count_lacking(theirs, ours, sorted_ours) + count_lacking(ours, theirs, sorted_theirs) > ADOPT_ROWS;
    bool failed = !sorted_theirs || !sorted_ours;
    free(sorted_theirs);
    free(sorted_ours);
    return failed ? pf_fail_memory(err) : SLUICE_OK;
}

/* ---- the edit ---- */

/* Which rows they are is not looked at: the counts are what the table has more or less. */
static void count_rows(mrg_job *job, uint64_t table)
{
    const st_table_entry *theirs = st_view_table(st_snapshot_view(job->source.snapshot), table);
    const st_table_entry *ours = st_view_table(st_snapshot_view(job->mut.write->base), table);
    uint64_t there = theirs ? theirs->rows : 0, here = ours ? ours->rows : 0;
    job->mut.inserted += there > here ? there - here : 0;
    job->mut.deleted += here > there ? here - there : 0;
}

static sluice_status adopt(mrg_job *job, uint64_t table, sluice_error *err)
{
    co_write *write = job->mut.write;
    st_graph *graph = job->mut.graph;
    char id[PF_ID_TEXT], stem[48];
    st_table_reader *source = NULL;
    st_edit edit = {0};
    PF_TRY(co_write_need_attempt(write, err));
    write->arms = job->mut.stages = true;
    pf_id_text(&write->attempt->id, id);
    (void)snprintf(stem, sizeof stem, "%s-g%x", id, (unsigned)write->plan_number);
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &source, err));
    PF_TRY(st_edit_adopt(graph, table, st_table_reader_list(source), stem, &edit, err));
    PF_TRY(st_delta_add_edit(st_graph_volume(graph), &write->delta, &edit, stem, err));
    count_rows(job, table);
    return st_changes_add_whole(&write->delta.changes, table, err);
}

sluice_status mrg_adopt_table(mrg_job *job, uint32_t number, sluice_error *err)
{
    return adopt(job, job->mut.types[number].def->table, err);
}

/* Does the target list the same? */
static sluice_status is_same(mrg_job *job, uint64_t table, bool *ret_same, sluice_error *err)
{
    const st_view *view = st_snapshot_view(job->mut.write->base);
    st_table_reader *source = NULL;
    st_table_list ours = {0};
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &source, err));
    const st_table_list *theirs = st_table_reader_list(source);
    *ret_same = theirs->count == 0;
    if (!st_view_table(view, table)) /* a type that is new here */
        return SLUICE_OK;
    PF_TRY(st_table_materialise(job->mut.graph, view, table, &ours, err));
    *ret_same = st_table_list_same(theirs, &ours);
    st_table_list_free(&ours);
    return SLUICE_OK;
}

sluice_status mrg_adopt_all(mrg_job *job, sluice_error *err)
{
    const st_view *view = st_snapshot_view(job->source.snapshot);
    for (uint32_t i = 0; i < view->schema->type_count; i++) {
        bool same = false;
        PF_TRY(is_same(job, view->schema->types[i].table, &same, err));
        if (!same)
            PF_TRY(adopt(job, view->schema->types[i].table, err));
    }
    job->mut.write->delta.new_schema = view->schema_identity;
    return SLUICE_OK;
}

sluice_status mrg_adopt_gates(mrg_job *job, sluice_error *err)
{
    co_write *write = job->mut.write;
    uint64_t incarnation = st_snapshot_view(write->base)->incarnation;
    lk_gate_key *gates =
        realloc(write->gates, ((size_t)write->gate_count + job->mut.type_count + 1) * sizeof *write->gates);
    if (!gates)
        return pf_fail_memory(err);
    write->gates = gates;
    for (uint32_t i = 0; st_delta_changes_schema(&write->delta) && i < write->gate_count; i++)
        gates[i].exclusive = gates[i].kind == LK_GATE_SCHEMA;
    for (uint32_t i = 0; job->adopted && i < job->mut.type_count; i++)
        if (job->adopted[i])
            gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_TABLE,
                                                       .incarnation = incarnation,
                                                       .table = job->mut.types[i].def->table,
                                                       .exclusive = true};
    return SLUICE_OK;
}
