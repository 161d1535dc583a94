/*
 * What the source did to one table, key by key (LESSONS 4).
 *
 * An object stands, or does not, with its values: in the source (S), in the target (T), and in the states that both
 * come from (B, nearly always one). A side that equals a B has not changed it.
 *
 * | S       | T       | what comes of it                                                        |
 * |---------|---------|-------------------------------------------------------------------------|
 * | equals T          | nothing: both did the same, or neither did anything                     |
 * | changed | as B    | the source's: inserted, updated, deleted                                |
 * | as B    | changed | nothing: the target's stays                                             |
 * | as one B | as another | conflict: each side gave up what the other kept                      |
 * | changed | changed | both there, B too: property by property by the same rules, a property that both changed to
 * other values is a conflict; both there, no B: divergent insert; one there: delete against update |
 *
 * With `ours` or `theirs` such a conflict is settled for the object as a whole. Values are compared typed, properties
 * by their ids. A row that the source inserted keeps its row id: what has no key is known by it on both sides from then
 * on.
 */
#include "coord/merge_job.h"
#include "platform/check.h"
#include "store/fragment/fragment_format.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

typedef struct row { /* of one side: rows of the type's pool */
    bool exists;
    uint64_t *values;
    uint64_t id;
    st_row_place place;
} row;

typedef struct comparing {
    mrg_job *job;
    mut_type *type;
    uint32_t base; /* which of the bases the differences are from */
    row source, bases[MRG_BASES_MAX], target;
} comparing;

sluice_status mrg_row_commit(st_table_reader *reader, uint32_t fragment, uint64_t position, pf_id *ret_commit,
                             sluice_error *err)
{
    const st_edit_add *add = &st_table_reader_list(reader)->fragments[fragment];
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    uint64_t at_row = 0;
    st_column column = {0};
    *ret_commit = add->commit;
    if (!add->fragment.explicit_ids)
        return SLUICE_OK;
    PF_TRY(st_table_reader_fragment(reader, fragment, &opened, err));
    int at = st_fragment_find_name(opened, ST_FRAGMENT_COMMIT);
    st_fragment_locate(opened, position, &batch, &at_row);
    if (at >= 0)
        PF_TRY(st_fragment_column(opened, batch, (uint32_t)at, &column, err));
    if (at < 0 || column.type != ST_COMMIT_ID || column.nulls > 0)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment lacks the commits of its rows");
    *ret_commit = ((const pf_id *)column.values)[at_row];
    return SLUICE_OK;
}

/* ---- a side's table ---- */

static sluice_status open_side(mrg_side *side, const mut_type *type, sluice_error *err)
{
    return st_table_reader_get(mrg_rows(side), type->def->table, &side->reader, err);
}

/* Takes a row of a side into the type's pool. */
static sluice_status take_row(const mrg_side *side, const mut_type *type, const st_row_place *place, row *ret_row,
                              sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    uint64_t at = 0;
    ret_row->exists = true;
    ret_row->place = *place;
    ret_row->values = malloc(((size_t)type->count + 1) * sizeof *ret_row->values);
    if (!ret_row->values)
        return pf_fail_memory(err);
    PF_TRY(st_reader_row_id(side->reader, place->fragment, place->position, &ret_row->id, err));
    PF_TRY(st_table_reader_fragment(side->reader, place->fragment, &opened, err));
    st_fragment_locate(opened, place->position, &batch, &at);
    for (uint32_t i = 0; i < type->count; i++) {
        st_column column;
        ret_row->values[i] = st_builder_length(type->pool[i]);
        if (st_layout_find(type->def, opened, i) < 0 && i >= type->ends) {
            PF_TRY(st_value_append(&type->def->properties[i - type->ends].initial, type->pool[i], err));
            continue;
        }
        PF_TRY(st_table_reader_column(side->reader, opened, batch, i, &column, err));
        PF_TRY(st_append_from(type->pool[i], &column, at, err));
    }
    return SLUICE_OK;
}

/* The object's row on a side, by its key. */
static sluice_status find_row(const mrg_side *side, const mut_type *type, const mut_object *object, row *ret_row,
                              sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    st_row_place place = {0};
    bool found = false;
    mut_key_views(type, storage, key);
    PF_TRY(st_table_find_key(side->reader, key, type->key_members, object->key, &found, &place.fragment,
                             &place.position, err));
    return found ? take_row(side, type, &place, ret_row, err) : SLUICE_OK;
}

/* ---- comparing ---- */

static bool same_row(const mut_type *type, const row *a, const row *b)
{
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    for (uint32_t i = 0; i < type->count; i++)
        if (!mut_same(type, i, a->values[i], b->values[i]))
            return false;
    return true;
}

static bool is_a_base(const comparing *with, const row *row_)
{
    for (uint32_t i = 0; i < with->job->base_count; i++)
        if (same_row(with->type, row_, &with->bases[i]))
            return true;
    return false;
}

static bool is_a_bases_value(const comparing *with, uint32_t column, uint64_t value)
{
    for (uint32_t i = 0; i < with->job->base_count; i++)
        if (with->bases[i].exists && mut_same(with->type, column, value, with->bases[i].values[column]))
            return true;
    return false;
}

static bool any_base(const comparing *with)
{
    for (uint32_t i = 0; i < with->job->base_count; i++)
        if (with->bases[i].exists)
            return true;
    return false;
}

/* ---- taking the source's ---- */

/* A number for what is done to the object: faults come back under it. */
static sluice_status number_object(mrg_job *job, mut_object *object, sluice_error *err)
{
    if (job->record_count + 1 >= job->record_room) {
        uint32_t room = job->record_room ? job->record_room * 2 : 64;
        mut_object **objects = realloc(job->by_record, room * sizeof(mut_object *));
        if (!objects)
            return pf_fail_memory(err);
        job->by_record = objects;
        uint64_t *lines = realloc(job->mut.lines, ((size_t)room + 1) * sizeof *lines);
        if (!lines)
            return pf_fail_memory(err);
        job->mut.lines = lines;
        for (uint32_t i = 0; i <= room; i++)
            lines[i] = i;
        job->mut.line_room = room + 1;
        job->record_room = room;
    }
    job->by_record[job->record_count++] = object;
    object->record = job->mut.record = job->record_count;
    return SLUICE_OK;
}

static sluice_status take_value(const comparing *with, mut_object *object, uint32_t column)
{
    object->values[column] = with->source.values[column];
    object->records[column] = object->record;
    return SLUICE_OK;
}

static sluice_status take_object(const comparing *with, mut_object *object, sluice_error *err)
{
    mrg_job *job = with->job;
    mut_type *type = with->type;
    PF_TRY(number_object(job, object, err));
    object->reads_row = object->existed;
    if (!with->source.exists) {
        object->exists = false;
        object->replaced = object->existed;
        object->reads_object = false;
        return SLUICE_OK;
    }
    for (uint32_t i = 0; i < type->count; i++)
        if (!object->exists || !mut_same(type, i, object->values[i], with->source.values[i]))
            (void)take_value(with, object, i);
    if (object->exists)
        return SLUICE_OK;
    object->exists = true;
    object->keeps_id = true;
    object->row_id = with->source.id;
    object->reads_absent = object->named && !object->existed;
    return type->def->edge ? mut_join_ends(&job->mut, object, err) : SLUICE_OK;
}

/* ---- conflicts ---- */

static sluice_status commits_of(const comparing *with, const mut_object *object, pf_id *ours, pf_id *theirs,
                                sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    st_row_place place = {0};
    st_table_reader *reader = NULL;
    bool found = false;
    *ours = *theirs = (pf_id){{0}};
    if (with->source.exists)
        PF_TRY(mrg_row_commit(with->job->source.reader, with->source.place.fragment, with->source.place.position,
                              theirs, err));
    PF_TRY(mut_reader(&with->job->mut, with->type, &reader, err));
    mut_key_views(with->type, storage, key);
    PF_TRY(st_table_find_key(reader, key, with->type->key_members, object->key, &found, &place.fragment,
                             &place.position, err));
    return found ? mrg_row_commit(reader, place.fragment, place.position, ours, err) : SLUICE_OK;
}

/* Notes a conflict of the whole object, or settles it as the user said. */
static sluice_status settle(const comparing *with, mut_object *object, co_conflict_kind kind, const char *text,
                            sluice_error *err)
{
    pf_id ours, theirs;
    switch (with->job->options->rule) {
    case CO_MERGE_OURS:
        return SLUICE_OK;
    case CO_MERGE_THEIRS:
        return take_object(with, object, err);
    case CO_MERGE_FAIL:
        break;
    }
    PF_TRY(commits_of(with, object, &ours, &theirs, err));
    return mrg_conflict(with->job, kind, object, NULL, &ours, &theirs, text, err);
}

typedef enum choice { KEEP, TAKE, CLASH } choice;

/* One property of an object that both sides changed. */
static choice choose(const comparing *with, uint32_t column)
{
    uint64_t source = with->source.values[column], target = with->target.values[column];
    if (mut_same(with->type, column, source, target))
        return KEEP;
    bool source_as_base = is_a_bases_value(with, column, source);
    bool target_as_base = is_a_bases_value(with, column, target);
    if (source_as_base == target_as_base)
        return CLASH;
    return target_as_base ? TAKE : KEEP;
}

static sluice_status list_clashes(const comparing *with, const mut_object *object, co_conflict_kind kind,
                                  sluice_error *err)
{
    pf_id ours, theirs;
    const mut_type *type = with->type;
    PF_TRY(commits_of(with, object, &ours, &theirs, err));
    for (uint32_t i = 0; i < type->count; i++) {
        bool clashes = kind == CO_CONFLICT_INSERT ? !mut_same(type, i, with->source.values[i], with->target.values[i])
                                                  : choose(with, i) == CLASH;
        if (clashes)
            PF_TRY(mrg_conflict(with->job, kind, object, type->specs[i].name, &ours, &theirs,
                                kind == CO_CONFLICT_INSERT ? "both branches made it, with other values"
                                                           : "both branches changed it, to other values",
                                err));
    }
    return SLUICE_OK;
}

/* Both sides changed an object that both have. */
static sluice_status merge_properties(const comparing *with, mut_object *object, sluice_error *err)
{
    bool clash = false, any = false;
    for (uint32_t i = 0; i < with->type->count; i++) {
        choice chosen = choose(with, i);
        clash |= chosen == CLASH;
        any |= chosen == TAKE;
    }
    if (clash && with->job->options->rule == CO_MERGE_FAIL)
        return list_clashes(with, object, CO_CONFLICT_UPDATE, err);
    if (clash)
        return settle(with, object, CO_CONFLICT_UPDATE, "", err);
    if (!any)
        return SLUICE_OK;
    PF_TRY(number_object(with->job, object, err));
    object->reads_row = true;
    for (uint32_t i = 0; i < with->type->count; i++)
        if (choose(with, i) == TAKE)
            (void)take_value(with, object, i);
    return SLUICE_OK;
}

static sluice_status decide(const comparing *with, mut_object *object, sluice_error *err)
{
    if (same_row(with->type, &with->source, &with->target))
        return SLUICE_OK;
    bool source_as_base = is_a_base(with, &with->source), target_as_base = is_a_base(with, &with->target);
    if (target_as_base && !source_as_base)
        return take_object(with, object, err);
    if (source_as_base && !target_as_base)
        return SLUICE_OK;
    if (with->source.exists && with->target.exists && any_base(with))
        return merge_properties(with, object, err);
    if (with->source.exists && with->target.exists && with->job->options->rule == CO_MERGE_FAIL)
        return list_clashes(with, object, CO_CONFLICT_INSERT, err);
    if (with->source.exists && with->target.exists)
        return settle(with, object, CO_CONFLICT_INSERT, "", err);
    return settle(with, object, CO_CONFLICT_DELETE,
                  with->source.exists ? "deleted here, changed in the other branch"
                                      : "changed here, deleted in the other branch",
                  err);
}

static void free_rows(comparing *with)
{
    free(with->source.values);
    with->source = (row){0};
    for (uint32_t i = 0; i < with->job->base_count; i++) {
        free(with->bases[i].values);
        with->bases[i] = (row){0};
    }
}

static sluice_status compare_object(comparing *with, mut_object *object, const st_row_change *change, sluice_error *err)
{
    mrg_job *job = with->job;
    if (change->kind != ST_DELETED)
        PF_TRY(take_row(&job->source, with->type, &change->to, &with->source, err));
    for (uint32_t i = 0; i < job->base_count; i++) {
        if (i != with->base)
            PF_TRY(find_row(&job->bases[i], with->type, object, &with->bases[i], err));
        else if (change->kind != ST_INSERTED)
            PF_TRY(take_row(&job->bases[i], with->type, &change->from, &with->bases[i], err));
    }
    with->target = (row){.exists = object->exists, .values = object->values};
    return decide(with, object, err);
}

static sluice_status on_change(void *context, const st_row_change *change, sluice_error *err)
{
    comparing *with = context;
    mut_object *object = NULL;
    st_column_builder *id = NULL;
    st_column storage;
    const st_column *key[1] = {&storage};
    sluice_status status = SLUICE_OK;
    if (with->type->key_count > 0) {
        status = mut_of_key(&with->job->mut, with->type, change->key, change->key_row, &object, err);
    } else {
        PF_GOTO(status, done, st_column_builder_new(&with->type->key_specs[0], &id, err));
        PF_GOTO(status, done, st_append_u64(id, change->row_id, err));
        st_builder_view(id, &storage);
        status = mut_of_key(&with->job->mut, with->type, key, 0, &object, err);
    }
    if (status != SLUICE_OK || object->merged)
        goto done;
    object->merged = true;
    status = compare_object(with, object, change, err);
    free_rows(with);
done:
    st_column_builder_free(id);
    return status;
}

sluice_status mrg_compare_table(mrg_job *job, uint32_t number, sluice_error *err)
{
    mut_type *type = &job->mut.types[number];
    comparing with = {.job = job, .type = type};
    PF_TRY(mut_type_need(&job->mut, type, err));
    PF_TRY(open_side(&job->source, type, err));
    for (uint32_t i = 0; i < job->base_count; i++)
        PF_TRY(open_side(&job->bases[i], type, err));
    for (with.base = 0; with.base < job->base_count; with.base++)
        PF_TRY(st_diff_table(mrg_rows(&job->bases[with.base]), mrg_rows(&job->source), type->def->table, on_change,
                             &with, err));
    return SLUICE_OK;
}
