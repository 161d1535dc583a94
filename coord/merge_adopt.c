/*
 * Tables that are taken over as they are: the source's list becomes the target's, by one edit that replaces the list
 * (or what the source has added goes behind it) and names the same fragments, under the same row ids and commits.
 * Nothing is copied but rows that lie in the source's records (they are few: folds stage them) and the positions of
 * deleted rows. In a fast-forward that goes for tables of which many rows changed, or which are large, so that
 * comparing would cost more than naming; beside a target that went on, merge_whole.c says which.
 *
 * The edit names all that it needs, so the source's own log may go.
 */
#include "coord/merge_job.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADOPT_BYTES (UINT64_C(512) << 10) /* of a table that is taken over for a single row */

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
    if (sorted_theirs && sorted_ours) {
        const st_table_entry *entry = st_view_table(st_snapshot_view(job->mut.write->base), type->def->table);
        uint64_t lacking = count_lacking(theirs, ours, sorted_ours) + count_lacking(ours, theirs, sorted_theirs);
        *ret_adopted = lacking > MRG_ADOPT_ROWS || (lacking > 0 && entry && entry->bytes > ADOPT_BYTES);
    }
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

/* The list as the target's, or (`behind`) behind it. */
static sluice_status adopt_list(mrg_job *job, uint64_t table, const st_table_list *list, bool behind, sluice_error *err)
{
    co_write *write = job->mut.write;
    char id[PF_ID_TEXT], stem[48];
    st_edit edit = {0};
    PF_TRY(co_write_need_attempt(write, err));
    write->arms = job->mut.stages = true;
    pf_id_text(&write->attempt->id, id);
    (void)snprintf(stem, sizeof stem, "%s-g%x", id, (unsigned)write->plan_number);
    PF_TRY(st_edit_adopt(job->mut.graph, table, list, stem, &edit, err));
    edit.replace = !behind;
    PF_TRY(st_delta_add_edit(st_graph_volume(job->mut.graph), &write->delta, &edit, stem, err));
    return st_changes_add_whole(&write->delta.changes, table, err);
}

static sluice_status adopt(mrg_job *job, uint64_t table, sluice_error *err)
{
    st_table_reader *source = NULL;
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &source, err));
    PF_TRY(adopt_list(job, table, st_table_reader_list(source), false, err));
    count_rows(job, table);
    return SLUICE_OK;
}

sluice_status mrg_adopt_table(mrg_job *job, uint32_t number, sluice_error *err)
{
    return adopt(job, job->mut.types[number].def->table, err);
}

sluice_status mrg_adopt_behind(mrg_job *job, uint32_t number, const uint32_t *fragments, uint32_t count,
                               sluice_error *err)
{
    uint64_t table = job->mut.types[number].def->table;
    st_table_reader *source = NULL;
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &source, err));
    const st_table_list *all = st_table_reader_list(source);
    st_table_list some = {.fragments = calloc((size_t)count + 1, sizeof *some.fragments),
                          .dead = calloc((size_t)count + 1, sizeof *some.dead),
                          .dead_count = calloc((size_t)count + 1, sizeof *some.dead_count)};
    sluice_status status = some.fragments && some.dead && some.dead_count ? SLUICE_OK : pf_fail_memory(err);
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) { /* lent */
        some.fragments[i] = all->fragments[fragments[i]];
        some.dead[i] = all->dead[fragments[i]];
        some.dead_count[i] = all->dead_count[fragments[i]];
        job->mut.inserted += some.fragments[i].fragment.rows - some.dead_count[i];
        some.count++;
    }
    if (status == SLUICE_OK)
        status = adopt_list(job, table, &some, true, err);
    free(some.fragments);
    free(some.dead);
    free(some.dead_count);
    return status;
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
