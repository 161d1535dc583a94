/*
 * Merging branches whose schemas went apart (coord/merge_job.h).
 *
 * The schemas are merged by ids (store/schema/merge.h). All sides are then seen under the result, so that rows are
 * compared in one layout: renamed properties by their ids, widened values wide, added properties with their initial
 * values. Rows that come from the source are judged by the model; those that the merge leaves as they are, here, where
 * the source demands more of them than the target did. What one side dropped stays dropped unless the other has changed
 * it since: the schema of it, or, of a type, any row.
 */
#include "coord/merge_job.h"
#include "coord/schema_change.h"
#include "platform/check.h"
#include "store/read/reader.h"
#include "store/schema/merge.h"
#include <stdio.h>
#include <stdlib.h>

void mrg_drop_schema(mrg_job *job)
{
    st_evolution_free(&job->changes);
    st_snapshot_close(job->cast);
    job->cast = job->mut.rows = NULL;
    st_snapshot_close(job->source.cast);
    job->source.cast = NULL;
    for (uint32_t i = 0; i < job->base_count; i++) {
        st_snapshot_close(job->bases[i].cast);
        job->bases[i].cast = NULL;
    }
    st_schema_free(job->schema);
    job->schema = NULL;
}

static sluice_status note_clash(void *context, const char *type, const char *property, const char *text,
                                sluice_error *err)
{
    return mrg_schema_conflict(context, type, property, text, err);
}

static sluice_status merge_by_ids(mrg_job *job, sluice_error *err)
{
    const st_schema *bases[MRG_BASES_MAX];
    const st_schema_sides sides = {.ours = st_snapshot_view(job->mut.write->base)->schema,
                                   .theirs = st_snapshot_view(job->source.snapshot)->schema,
                                   .bases = bases,
                                   .base_count = job->base_count};
    for (uint32_t i = 0; i < job->base_count; i++)
        bases[i] = st_snapshot_view(job->bases[i].snapshot)->schema;
    return st_schema_merge(&sides, note_clash, job, &job->schema, err);
}

/* ---- every side under the merge's schema ---- */

static sluice_status cast_side(mrg_side *side, st_schema *schema, const pf_sha256 *identity, sluice_error *err)
{
    if (pf_sha256_equal(&st_snapshot_view(side->snapshot)->schema_identity, identity))
        return SLUICE_OK;
    return st_snapshot_recast(side->snapshot, schema, &side->cast, err);
}

static sluice_status cast_all(mrg_job *job, st_schema *schema, const pf_sha256 *identity, sluice_error *err)
{
    PF_TRY(cast_side(&job->source, schema, identity, err));
    for (uint32_t i = 0; i < job->base_count; i++)
        PF_TRY(cast_side(&job->bases[i], schema, identity, err));
    return SLUICE_OK;
}

/* ---- do the rows of a side fit? ---- */

static sluice_status note_change(void *context, const st_row_change *change, sluice_error *err)
{
    bool *changed = context;
    (void)change;
    (void)err;
    *changed = true;
    return SLUICE_OK;
}

/* A type that the other side dropped: it goes where its rows are as they were in a state that both come from. */
static sluice_status judge_dropped(mrg_job *job, st_snapshot *side, const st_type_def *type, sluice_error *err)
{
    for (uint32_t i = 0; i < job->base_count; i++) {
        bool changed = false;
        if (!st_schema_find_table(st_snapshot_view(job->bases[i].snapshot)->schema, type->table))
            continue;
        PF_TRY(st_diff_table(job->bases[i].snapshot, side, type->table, note_change, &changed, err));
        if (!changed)
            return SLUICE_OK;
    }
    return mrg_schema_conflict(job, type->name, NULL, "one branch dropped it, the other one changed its rows", err);
}

/* What leads from a side's schema to that of the merge: whatever its rows make impossible. */
static sluice_status judge_side(mrg_job *job, st_snapshot *side, const st_evolution *changes, sluice_error *err)
{
    for (uint32_t i = 0; i < changes->count; i++) {
        const st_step *step = &changes->steps[i];
        co_schema_step judged;
        if (step->kind == ST_STEP_DROP_TYPE)
            PF_TRY(judge_dropped(job, side, step->before, err));
        if (step->kind != ST_STEP_ADD_PROPERTY && step->kind != ST_STEP_RETYPE_PROPERTY && step->kind != ST_STEP_KEY &&
            step->kind != ST_STEP_ENDS)
            continue;
        PF_TRY(co_schema_judge(side, step, &judged, err));
        const char *property = step->property_after >= 0 ? step->after->properties[step->property_after].name : NULL;
        if (judged.cost == CO_COST_REFUSED)
            PF_TRY(mrg_schema_conflict(job, step->after->name, property, judged.why, err));
    }
    return SLUICE_OK;
}

static sluice_status judge_source(mrg_job *job, sluice_error *err)
{
    st_evolution changes = {0};
    PF_TRY(st_schema_compare(st_snapshot_view(job->source.snapshot)->schema, job->schema, &changes, err));
    sluice_status status = judge_side(job, job->source.snapshot, &changes, err);
    st_evolution_free(&changes);
    return status;
}

sluice_status mrg_merge_schema(mrg_job *job, sluice_error *err)
{
    const st_view *target = st_snapshot_view(job->mut.write->base);
    pf_sha256 identity;
    if (pf_sha256_equal(&st_snapshot_view(job->source.snapshot)->schema_identity, &target->schema_identity))
        return cast_all(job, target->schema, &target->schema_identity, err);
    PF_TRY(merge_by_ids(job, err));
    if (!job->schema)
        return SLUICE_OK;
    PF_TRY(st_schema_identity(job->schema, &identity, err));
    PF_TRY(judge_source(job, err));
    if (pf_sha256_equal(&identity, &target->schema_identity)) {
        st_schema_free(job->schema);
        job->schema = NULL;
        return cast_all(job, target->schema, &identity, err);
    }
    PF_TRY(st_schema_compare(target->schema, job->schema, &job->changes, err));
    PF_TRY(judge_side(job, job->mut.write->base, &job->changes, err));
    PF_TRY(st_snapshot_recast(job->mut.write->base, job->schema, &job->cast, err));
    job->mut.rows = job->cast;
    job->mut.schema = job->schema;
    return cast_all(job, job->schema, &identity, err);
}

/* ---- rows that stay as they are ---- */

typedef struct staying {
    mrg_job *job;
    const mut_type *type;       /* whose objects stand below */
    const mut_object **objects; /* of the base, by row id */
    uint32_t count;
} staying;

static int by_row_id(const void *a, const void *b)
{
    const mut_object *left = *(const mut_object *const *)a, *right = *(const mut_object *const *)b;
    return (left->row_id > right->row_id) - (left->row_id < right->row_id);
}

static sluice_status sort_objects(staying *rows, const mut_type *type, sluice_error *err)
{
    free(rows->objects);
    rows->type = type;
    rows->count = 0;
    rows->objects = calloc((size_t)type->object_count + 1, sizeof *rows->objects);
    if (!rows->objects)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < type->object_count; i++)
        if (type->objects[i]->existed)
            rows->objects[rows->count++] = type->objects[i];
    qsort(rows->objects, rows->count, sizeof *rows->objects, by_row_id);
    return SLUICE_OK;
}

static bool differs(const mut_object *object, uint32_t property)
{
    uint32_t column = object->type->ends + property;
    return !mut_same(object->type, column, object->values[column], object->base[column]);
}

/* The model has judged it: the merge deletes the row, or gives it another value where the step looks. */
static bool is_elsewhere(void *context, const st_step *step, uint64_t row_id)
{
    const staying *rows = context;
    mut_object wanted = {.row_id = row_id};
    const mut_object *sought = &wanted;
    const mut_object **found =
        rows->count ? bsearch(&sought, rows->objects, rows->count, sizeof *rows->objects, by_row_id) : NULL;
    if (!found)
        return false;
    if (!(*found)->exists)
        return true;
    if (step->property_after >= 0)
        return differs(*found, (uint32_t)step->property_after);
    for (uint32_t i = 0; step->unique && i < step->unique->count; i++)
        if (differs(*found, step->unique->properties[i]))
            return true;
    return false;
}

static sluice_status name_row(const co_schema_breach *breach, pf_buffer *text, sluice_error *err)
{
    for (uint32_t i = 0; i < breach->column_count; i++) {
        PF_TRY(i > 0 ? pf_buffer_append(text, ",", 1, err) : SLUICE_OK);
        PF_TRY(st_value_json(breach->columns[i], breach->row, text, err));
    }
    if (breach->column_count == 0)
        PF_TRY(pf_buffer_append_format(text, err, "%llu", (unsigned long long)breach->row_id));
    return pf_buffer_append(text, "", 1, err);
}

static sluice_status commit_of(const staying *rows, uint64_t row_id, pf_id *ret_commit, sluice_error *err)
{
    st_table_reader *reader = NULL;
    uint32_t fragment = 0;
    uint64_t position = 0;
    bool found = false;
    PF_TRY(st_table_reader_get(rows->job->cast, rows->type->def->table, &reader, err));
    PF_TRY(st_reader_find_row(reader, row_id, &found, &fragment, &position, err));
    return found ? mrg_row_commit(reader, fragment, position, ret_commit, err) : SLUICE_OK;
}

static sluice_status note_breach(void *context, const co_schema_breach *breach, sluice_error *err)
{
    staying *rows = context;
    pf_buffer key = {0};
    pf_id commit = {{0}};
    int at = breach->step->property_after;
    sluice_status status = name_row(breach, &key, err);
    if (status == SLUICE_OK && rows->job->result->conflicts_found < CO_CONFLICTS_MAX)
        status = commit_of(rows, breach->row_id, &commit, err);
    if (status == SLUICE_OK)
        status = mrg_row_conflict(rows->job, breach->code, breach->type->name, (const char *)key.data,
                                  at >= 0 ? breach->type->properties[at].name : NULL, &commit, breach->text, err);
    pf_buffer_free(&key);
    return status;
}

static bool demands(const mrg_job *job, const st_step *step)
{
    if (step->kind != ST_STEP_FORBID_NULL && step->kind != ST_STEP_TIGHTEN_CHECKS && step->kind != ST_STEP_ADD_UNIQUE &&
        step->kind != ST_STEP_TIGHTEN_CARDINALITY)
        return false;
    const st_table_entry *entry = st_view_table(st_snapshot_view(job->mut.write->base), step->after->table);
    return entry && entry->rows > 0;
}

sluice_status mrg_check_schema(mrg_job *job, sluice_error *err)
{
    staying rows = {.job = job};
    const co_schema_watch watch = {.context = &rows, .elsewhere = is_elsewhere, .found = note_breach};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < job->changes.count && status == SLUICE_OK; i++) {
        const st_step *step = &job->changes.steps[i];
        if (!demands(job, step))
            continue;
        const st_evolution one = {.steps = &job->changes.steps[i], .count = 1};
        PF_GOTO(status, done, sort_objects(&rows, mut_type_find(&job->mut, step->after->name), err));
        status = co_schema_look(job->cast, &one, &watch, err);
    }
done:
    free(rows.objects);
    return status;
}

/* ---- the delta ---- */

sluice_status mrg_put_schema(mrg_job *job, sluice_error *err)
{
    co_write *write = job->mut.write;
    if (!job->schema)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->changes.count; i++) {
        const st_type_def *gone = job->changes.steps[i].before;
        const st_table_entry *entry = job->changes.steps[i].kind == ST_STEP_DROP_TYPE
                                          ? st_view_table(st_snapshot_view(write->base), gone->table)
                                          : NULL;
        if (!entry)
            continue;
        write->delta.commit.deleted += entry->rows;
        PF_TRY(st_changes_add_whole(&write->delta.changes, entry->id, err));
    }
    job->result->deleted = write->delta.commit.deleted;
    return st_schema_store(st_graph_volume(write->graph), job->schema, &write->delta.new_schema, err);
}
