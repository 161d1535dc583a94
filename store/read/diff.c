/*
 * Differences between two snapshots (diff.h): candidates of each side, joined by key.
 *
 * A candidate is a live row that the other side may lack or have differently: all live rows of a fragment that only one
 * side lists; of a fragment that both list, the rows that only one side has deleted. Candidates are sorted by the hash
 * of their key and merged; equal hashes are confirmed on the key itself.
 */
#include "store/read/diff.h"
#include "platform/check.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    uint64_t hash, position;
    uint32_t fragment;
} candidate;

typedef struct side {
    st_snapshot *snapshot;
    const st_type_def *type; /* NULL: the table is not there */
    st_table_reader *reader;
    uint32_t *by_name;     /* its fragments, sorted by file name */
    uint32_t *counterpart; /* per fragment: the other side's of the same name, or NO_FRAGMENT */
    uint32_t columns[ST_RUN_COLUMNS_MAX], column_count; /* of the key; 0: row ids */
    candidate *candidates;
    uint64_t count, room;
} side;

#define NO_FRAGMENT UINT32_MAX

typedef struct pair { /* rows of one key: fragment NO_FRAGMENT where a side has none */
    st_row_place from, to;
} pair;

typedef struct diff {
    side from, to;
    pair *pairs;
    uint64_t pair_count;
    int *older;                 /* per property of `to`'s type: its index in `from`'s type, or -1 */
    st_column_builder **absent; /* per property of `to`'s type: what older rows have, as a column */
    uint32_t absent_count;
    uint32_t *changed;
} diff;

/* ---- the two lists ---- */

static const char *fragment_name(const side *side_, uint32_t fragment)
{
    return st_table_reader_list(side_->reader)->fragments[fragment].fragment.name;
}

static int compare_names(const void *a, const void *b, void *context)
{
    return strcmp(fragment_name(context, *(const uint32_t *)a), fragment_name(context, *(const uint32_t *)b));
}

static sluice_status open_side(side *side_, st_snapshot *snapshot, uint64_t table, sluice_error *err)
{
    side_->snapshot = snapshot;
    side_->type = st_schema_find_table(st_snapshot_view(snapshot)->schema, table);
    if (!side_->type)
        return SLUICE_OK;
    PF_TRY(st_table_reader_get(snapshot, table, &side_->reader, err));
    side_->column_count = st_run_columns(side_->type, ST_RUN_KEY, 0, side_->columns);
    uint32_t count = st_table_reader_fragments(side_->reader);
    side_->by_name = malloc(((size_t)count + 1) * sizeof *side_->by_name);
    side_->counterpart = malloc(((size_t)count + 1) * sizeof *side_->counterpart);
    if (!side_->by_name || !side_->counterpart)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        side_->by_name[i] = i;
        side_->counterpart[i] = NO_FRAGMENT;
    }
    qsort_r(side_->by_name, count, sizeof *side_->by_name, compare_names, side_);
    return SLUICE_OK;
}

static void match_fragments(side *a, side *b)
{
    uint32_t i = 0, j = 0;
    while (i < st_table_reader_fragments(a->reader) && j < st_table_reader_fragments(b->reader)) {
        int order = strcmp(fragment_name(a, a->by_name[i]), fragment_name(b, b->by_name[j]));
        if (order == 0) {
            a->counterpart[a->by_name[i]] = b->by_name[j];
            b->counterpart[b->by_name[j]] = a->by_name[i];
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* ---- candidates ---- */

static sluice_status add_candidate(side *side_, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err)
{
    if (side_->count == side_->room) {
        uint64_t room = side_->room ? side_->room * 2 : 256;
        candidate *grown = realloc(side_->candidates, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        side_->candidates = grown;
        side_->room = room;
    }
    side_->candidates[side_->count++] = (candidate){.hash = hash, .position = position, .fragment = fragment};
    return SLUICE_OK;
}

static sluice_status key_at(side *side_, uint32_t fragment, uint64_t position, st_column *storage,
                            const st_column **ret_key, uint64_t *ret_row, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    PF_TRY(st_table_reader_fragment(side_->reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, ret_row);
    return st_run_key(side_->reader, opened, batch, side_->columns, side_->column_count, storage, ret_key, err);
}

static sluice_status add_row(side *side_, uint32_t fragment, uint64_t position, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint64_t row = 0, hash = 0;
    if (side_->column_count == 0) {
        PF_TRY(st_reader_row_id(side_->reader, fragment, position, &hash, err));
    } else {
        PF_TRY(key_at(side_, fragment, position, storage, key, &row, err));
        hash = st_key_hash_row(key, side_->column_count, row);
    }
    return add_candidate(side_, fragment, position, hash, err);
}

/* Of a fragment that both list: what this side has and the other has deleted. */
static sluice_status add_deleted_there(side *here, const side *there, uint32_t fragment, sluice_error *err)
{
    const st_table_list *list = st_table_reader_list(there->reader);
    uint32_t twin = here->counterpart[fragment];
    for (uint64_t i = 0; i < list->dead_count[twin]; i++) {
        uint64_t position = list->dead[twin][i];
        if (!st_table_reader_row_is_dead(here->reader, fragment, position))
            PF_TRY(add_row(here, fragment, position, err));
    }
    return SLUICE_OK;
}

/* All live rows of a batch of a fragment that only this side lists. */
static sluice_status add_batch(side *side_, uint32_t fragment, st_fragment *opened, uint32_t batch, uint64_t first,
                               sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint64_t rows = st_fragment_batch_rows(opened, batch);
    sluice_status status = SLUICE_OK;
    PF_TRY(st_run_key(side_->reader, opened, batch, side_->columns, side_->column_count, storage, key, err));
    uint64_t *hashes = malloc(((size_t)rows + 1) * sizeof *hashes);
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(key, side_->column_count, rows, hashes);
    for (uint64_t row = 0; row < rows && status == SLUICE_OK; row++) {
        if (!st_table_reader_row_is_dead(side_->reader, fragment, first + row))
            status = add_candidate(side_, fragment, first + row, hashes[row], err);
    }
    free(hashes);
    return status;
}

static sluice_status add_fragment(side *side_, uint32_t fragment, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint64_t first = 0;
    PF_TRY(st_table_reader_fragment(side_->reader, fragment, &opened, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(opened); batch++) {
        uint64_t rows = st_fragment_batch_rows(opened, batch);
        if (side_->column_count > 0) {
            PF_TRY(add_batch(side_, fragment, opened, batch, first, err));
        } else {
            for (uint64_t row = 0; row < rows; row++) {
                if (!st_table_reader_row_is_dead(side_->reader, fragment, first + row))
                    PF_TRY(add_row(side_, fragment, first + row, err));
            }
        }
        first += rows;
    }
    return SLUICE_OK;
}

static int compare_candidates(const void *a, const void *b)
{
    const candidate *one = a, *two = b;
    if (one->hash != two->hash)
        return one->hash < two->hash ? -1 : 1;
    if (one->fragment != two->fragment)
        return one->fragment < two->fragment ? -1 : 1;
    return (one->position > two->position) - (one->position < two->position);
}

static sluice_status collect(side *here, const side *there, sluice_error *err)
{
    for (uint32_t i = 0; here->type && i < st_table_reader_fragments(here->reader); i++) {
        if (here->counterpart[i] == NO_FRAGMENT)
            PF_TRY(add_fragment(here, i, err));
        else
            PF_TRY(add_deleted_there(here, there, i, err));
    }
    if (here->count > 1)
        qsort(here->candidates, here->count, sizeof *here->candidates, compare_candidates);
    return SLUICE_OK;
}

/* ---- joining ---- */

static sluice_status same_key(diff *diff_, const candidate *from, const candidate *to, bool *ret_same,
                              sluice_error *err)
{
    st_column storage[2][ST_RUN_COLUMNS_MAX];
    const st_column *key[2][ST_RUN_COLUMNS_MAX];
    uint64_t rows[2];
    *ret_same = diff_->to.column_count == 0; /* the hash is the row id */
    if (*ret_same)
        return SLUICE_OK;
    PF_TRY(key_at(&diff_->from, from->fragment, from->position, storage[0], key[0], &rows[0], err));
    PF_TRY(key_at(&diff_->to, to->fragment, to->position, storage[1], key[1], &rows[1], err));
    *ret_same = st_key_equal(key[0], rows[0], key[1], rows[1], diff_->to.column_count);
    return SLUICE_OK;
}

static uint64_t group_end(const side *side_, uint64_t begin)
{
    uint64_t end = begin;
    while (end < side_->count && side_->candidates[end].hash == side_->candidates[begin].hash)
        end++;
    return end;
}

static void add_pair(diff *diff_, const candidate *from, const candidate *to)
{
    pair *made = &diff_->pairs[diff_->pair_count++];
    *made = (pair){.from.fragment = NO_FRAGMENT, .to.fragment = NO_FRAGMENT};
    if (from)
        made->from = (st_row_place){from->fragment, from->position};
    if (to)
        made->to = (st_row_place){to->fragment, to->position};
}

/* The candidates of one hash on both sides: nearly always one and one. A key is live once on each side, so whoever is
 * paired is taken out by a mark. */
static sluice_status join_group(diff *diff_, candidate *from, uint64_t from_count, candidate *to, uint64_t to_count,
                                sluice_error *err)
{
    for (uint64_t j = 0; j < to_count; j++) {
        candidate *met = NULL;
        for (uint64_t i = 0; i < from_count && !met; i++) {
            bool same = false;
            if (from[i].fragment == NO_FRAGMENT)
                continue;
            PF_TRY(same_key(diff_, &from[i], &to[j], &same, err));
            met = same ? &from[i] : NULL;
        }
        add_pair(diff_, met, &to[j]);
        if (met)
            met->fragment = NO_FRAGMENT;
    }
    for (uint64_t i = 0; i < from_count; i++) {
        if (from[i].fragment != NO_FRAGMENT)
            add_pair(diff_, &from[i], NULL);
    }
    return SLUICE_OK;
}

static int compare_places(const st_row_place *a, const st_row_place *b)
{
    if (a->fragment != b->fragment)
        return a->fragment < b->fragment ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* By place in `to`; rows that are not there (their fragment is the greatest number) by place in `from`. */
static int compare_pairs(const void *a, const void *b)
{
    const pair *one = a, *two = b;
    if (one->to.fragment == NO_FRAGMENT && two->to.fragment == NO_FRAGMENT)
        return compare_places(&one->from, &two->from);
    return compare_places(&one->to, &two->to);
}

static sluice_status join(diff *diff_, sluice_error *err)
{
    side *from = &diff_->from, *to = &diff_->to;
    uint64_t i = 0, j = 0;
    diff_->pairs = calloc((size_t)from->count + to->count + 1, sizeof *diff_->pairs);
    if (!diff_->pairs)
        return pf_fail_memory(err);
    while (i < from->count || j < to->count) {
        bool from_first = j == to->count || (i < from->count && from->candidates[i].hash < to->candidates[j].hash);
        bool to_first = i == from->count || (j < to->count && to->candidates[j].hash < from->candidates[i].hash);
        uint64_t next_i = to_first ? i : group_end(from, i), next_j = from_first ? j : group_end(to, j);
        PF_TRY(join_group(diff_, from->candidates + i, next_i - i, to->candidates + j, next_j - j, err));
        i = next_i;
        j = next_j;
    }
    if (diff_->pair_count > 1)
        qsort(diff_->pairs, diff_->pair_count, sizeof *diff_->pairs, compare_pairs);
    return SLUICE_OK;
}

/* ---- comparing values ---- */

static sluice_status prepare_properties(diff *diff_, sluice_error *err)
{
    const st_type_def *from = diff_->from.type, *to = diff_->to.type;
    size_t count = (size_t)to->property_count + 1;
    diff_->older = malloc(count * sizeof *diff_->older);
    diff_->absent = calloc(count, sizeof(st_column_builder *));
    diff_->changed = malloc(count * sizeof *diff_->changed);
    if (!diff_->older || !diff_->absent || !diff_->changed)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < to->property_count; i++) {
        const st_property *property = &to->properties[i];
        st_column_spec spec = {.name = property->name, .type = property->type, .nullable = true};
        diff_->older[i] = -1;
        for (uint32_t j = 0; j < from->property_count; j++) {
            if (from->properties[j].id == property->id)
                diff_->older[i] = (int)j;
        }
        PF_TRY(st_column_builder_new(&spec, &diff_->absent[i], err));
        diff_->absent_count++;
        PF_TRY(st_value_append(&property->initial, diff_->absent[i], err));
    }
    return SLUICE_OK;
}

/* The value of a property of `to` in a row of either side: a column and a row in it. */
static sluice_status value_at(diff *diff_, side *side_, const st_row_place *place, uint32_t property,
                              st_column *ret_column, uint64_t *ret_row, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    PF_TRY(st_table_reader_fragment(side_->reader, place->fragment, &opened, err));
    int at = st_fragment_find_property(opened, diff_->to.type->properties[property].id);
    if (at < 0 || (side_ == &diff_->from && diff_->older[property] < 0)) {
        st_builder_view(diff_->absent[property], ret_column);
        *ret_row = 0;
        return SLUICE_OK;
    }
    st_fragment_locate(opened, place->position, &batch, ret_row);
    return st_fragment_column(opened, batch, (uint32_t)at, ret_column, err);
}

/* The properties that differ, into diff->changed. Ends of edges are part of the key, or never change. */
static sluice_status compare_rows(diff *diff_, const pair *rows, uint32_t *ret_count, sluice_error *err)
{
    *ret_count = 0;
    for (uint32_t i = 0; i < diff_->to.type->property_count; i++) {
        st_column before, after;
        uint64_t row_before = 0, row_after = 0;
        PF_TRY(value_at(diff_, &diff_->from, &rows->from, i, &before, &row_before, err));
        PF_TRY(value_at(diff_, &diff_->to, &rows->to, i, &after, &row_after, err));
        if (!st_value_same(&before, row_before, &after, row_after))
            diff_->changed[(*ret_count)++] = i;
    }
    return SLUICE_OK;
}

/* Fills change->key: of a parallel edge its ends, which are no key and yet what people know it by. */
static sluice_status name_row(side *side_, const st_row_place *place, st_column *storage, const st_column **key,
                              st_row_change *change, sluice_error *err)
{
    static const uint32_t both_ends[] = {0, 1};
    PF_ASSERT(side_->type); /* it has the row */
    bool parallel = side_->type->edge && side_->column_count == 0;
    uint32_t count = parallel ? 2 : side_->column_count, batch = 0;
    st_fragment *opened = NULL;
    if (side_->column_count == 0)
        PF_TRY(st_reader_row_id(side_->reader, place->fragment, place->position, &change->row_id, err));
    PF_TRY(st_table_reader_fragment(side_->reader, place->fragment, &opened, err));
    st_fragment_locate(opened, place->position, &batch, &change->key_row);
    change->key = key;
    change->key_count = count;
    return st_run_key(side_->reader, opened, batch, parallel ? both_ends : side_->columns, count, storage, key, err);
}

static sluice_status tell(diff *diff_, const pair *rows, st_row_change_fn *each, void *context, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    st_row_change change = {.kind = ST_UPDATED, .from = rows->from, .to = rows->to, .properties = diff_->changed};
    if (rows->from.fragment == NO_FRAGMENT)
        change.kind = ST_INSERTED;
    else if (rows->to.fragment == NO_FRAGMENT)
        change.kind = ST_DELETED;
    else
        PF_TRY(compare_rows(diff_, rows, &change.property_count, err));
    if (change.kind == ST_UPDATED && change.property_count == 0)
        return SLUICE_OK;
    if (change.kind == ST_DELETED)
        PF_TRY(name_row(&diff_->from, &rows->from, storage, key, &change, err));
    else
        PF_TRY(name_row(&diff_->to, &rows->to, storage, key, &change, err));
    return each(context, &change, err);
}

static void free_side(side *side_)
{
    free(side_->by_name);
    free(side_->counterpart);
    free(side_->candidates);
}

sluice_status st_diff_table(st_snapshot *from, st_snapshot *to, uint64_t table, st_row_change_fn *each, void *context,
                            sluice_error *err)
{
    diff diff_ = {0};
    sluice_status status;
    PF_GOTO(status, done, open_side(&diff_.from, from, table, err));
    PF_GOTO(status, done, open_side(&diff_.to, to, table, err));
    if (diff_.from.type && diff_.to.type) {
        match_fragments(&diff_.from, &diff_.to);
        PF_GOTO(status, done, prepare_properties(&diff_, err));
    }
    PF_GOTO(status, done, collect(&diff_.from, &diff_.to, err));
    PF_GOTO(status, done, collect(&diff_.to, &diff_.from, err));
    PF_GOTO(status, done, join(&diff_, err));
    for (uint64_t i = 0; i < diff_.pair_count && status == SLUICE_OK; i++)
        status = tell(&diff_, &diff_.pairs[i], each, context, err);
done:
    for (uint32_t i = 0; i < diff_.absent_count; i++)
        st_column_builder_free(diff_.absent[i]);
    free(diff_.absent);
    free(diff_.older);
    free(diff_.changed);
    free(diff_.pairs);
    free_side(&diff_.from);
    free_side(&diff_.to);
    return status;
}
