/*
 * Differences between two snapshots (diff.h): candidates of each side, joined by key.
 *
 * A candidate is a live row that the other side may lack or have differently: all live rows of a fragment that only one
 * side lists; of a fragment that both list, the rows that only one side has deleted. As many candidates of `to` as fit
 * into a block are kept by the hash of their key, all of `from` pass by and meet theirs, and the block is told; then
 * the next block. Which of `from` has met one is kept in a bit each: the others are told at the end. So memory is
 * bounded whatever the sides hold, the order is theirs, and nothing is written. Equal hashes are confirmed on the key
 * itself.
 */
#include "store/read/diff.h"
#include "platform/check.h"
#include "platform/memory.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

/* A block's part of the memory, and its rows in any case. */
#define BLOCK_PART  4u
#define BLOCK_LEAST UINT64_C(4096)
#define BLOCK_MOST  (UINT64_C(4) << 20)

typedef struct side {
    st_snapshot *snapshot;
    const st_type_def *type; /* NULL: the table is not there */
    st_table_reader *reader;
    uint32_t *by_name;     /* its fragments, sorted by file name */
    uint32_t *counterpart; /* per fragment: the other side's of the same name, or NO_FRAGMENT */
    uint32_t columns[ST_RUN_COLUMNS_MAX], column_count; /* of the key; 0: row ids */
} side;

#define NO_FRAGMENT UINT32_MAX

typedef struct pair { /* rows of one key: fragment NO_FRAGMENT where a side has none */
    st_row_place from, to;
} pair;

/* The candidates of one side, in its order. */
typedef struct walk {
    side *here;
    const side *there;
    uint32_t fragment;
    uint64_t next;  /* position; of a fragment that both list: index among what the other has deleted */
    bool placeless; /* hashes are not asked for */
    uint64_t *hashes;
    uint64_t room, first, end; /* `hashes` is of the rows from `first` on to `end` of this fragment */
} walk;

typedef struct candidate {
    uint64_t hash;
    pair rows; /* as far as they are known */
} candidate;

typedef struct diff {
    side from, to;
    walk old_rows, new_rows;
    candidate *block; /* some of new_rows, in their order */
    uint64_t count, most;
    uint32_t *table; /* by hash: places in the block, from 1 on; 0: empty */
    uint64_t mask;
    uint8_t *met;               /* a bit for each of old_rows, by their order */
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

static void begin_walk(walk *walk_, side *here, const side *there)
{
    walk_->here = here;
    walk_->there = there;
    walk_->fragment = 0;
    walk_->next = walk_->first = walk_->end = 0;
}

/* No fewer than there are. */
static uint64_t count_candidates(const side *here, const side *there)
{
    uint64_t count = 0;
    for (uint32_t i = 0; here->type && i < st_table_reader_fragments(here->reader); i++) {
        if (here->counterpart[i] == NO_FRAGMENT)
            count += st_table_reader_list(here->reader)->fragments[i].fragment.rows;
        else
            count += st_table_reader_list(there->reader)->dead_count[here->counterpart[i]];
    }
    return count;
}

/* The next position of the walk's fragment that may be a candidate; false: there is none. */
static bool next_position(walk *walk_, uint64_t *ret_position)
{
    const side *here = walk_->here;
    uint32_t twin = here->counterpart[walk_->fragment];
    while (true) {
        if (twin == NO_FRAGMENT) {
            if (walk_->next == st_table_reader_list(here->reader)->fragments[walk_->fragment].fragment.rows)
                return false;
            *ret_position = walk_->next++;
        } else {
            const st_table_list *list = st_table_reader_list(walk_->there->reader);
            if (walk_->next == list->dead_count[twin])
                return false;
            *ret_position = list->dead[twin][walk_->next++];
        }
        if (!st_table_reader_row_is_dead(here->reader, walk_->fragment, *ret_position))
            return true;
    }
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

/* Hashes the whole batch that a row lies in. */
static sluice_status hash_batch(walk *walk_, uint64_t position, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    const side *here = walk_->here;
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    uint64_t row = 0;
    PF_TRY(st_table_reader_fragment(here->reader, walk_->fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &row);
    PF_TRY(st_run_key(here->reader, opened, batch, here->columns, here->column_count, storage, key, err));
    uint64_t rows = st_fragment_batch_rows(opened, batch);
    if (rows > walk_->room) {
        uint64_t *grown = realloc(walk_->hashes, rows * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        walk_->hashes = grown;
        walk_->room = rows;
    }
    st_key_hash_rows(key, here->column_count, rows, walk_->hashes);
    walk_->first = position - row;
    walk_->end = walk_->first + rows;
    return SLUICE_OK;
}

static sluice_status hash_of(walk *walk_, uint64_t position, uint64_t *ret_hash, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    side *here = walk_->here;
    uint64_t row = 0;
    if (here->column_count == 0)
        return st_reader_row_id(here->reader, walk_->fragment, position, ret_hash, err);
    if (here->counterpart[walk_->fragment] != NO_FRAGMENT) { /* single ones */
        PF_TRY(key_at(here, walk_->fragment, position, storage, key, &row, err));
        *ret_hash = st_key_hash_row(key, here->column_count, row);
        return SLUICE_OK;
    }
    if (position < walk_->first || position >= walk_->end)
        PF_TRY(hash_batch(walk_, position, err));
    *ret_hash = walk_->hashes[position - walk_->first];
    return SLUICE_OK;
}

/* Its place and, unless the walk is without, its hash. */
static sluice_status next_candidate(walk *walk_, bool *ret_found, st_row_place *ret_place, uint64_t *ret_hash,
                                    sluice_error *err)
{
    const side *here = walk_->here;
    *ret_found = false;
    while (here->type && walk_->fragment < st_table_reader_fragments(here->reader)) {
        uint64_t position = 0;
        if (next_position(walk_, &position)) {
            *ret_found = true;
            *ret_place = (st_row_place){walk_->fragment, position};
            return walk_->placeless ? SLUICE_OK : hash_of(walk_, position, ret_hash, err);
        }
        walk_->fragment++;
        walk_->next = walk_->first = walk_->end = 0;
    }
    return SLUICE_OK;
}

/* ---- joining ---- */

static uint64_t block_rows(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_RANGE");
    unsigned long entries = value ? strtoul(value, NULL, 10) : 0;
    if (entries > 0)
        return entries;
#endif
    const uint64_t each =
        sizeof(candidate) + 4 * sizeof(uint32_t); /* the table has two places a row, and up to twice that */
    return pf_memory_part(BLOCK_PART, BLOCK_LEAST * each, BLOCK_MOST * each) / each;
}

static sluice_status make_block(diff *diff_, sluice_error *err)
{
    uint64_t from = count_candidates(&diff_->from, &diff_->to), to = count_candidates(&diff_->to, &diff_->from);
    uint64_t most = block_rows(), places = 2;
    diff_->most = to < most ? to : most;
    while (places < diff_->most * 2)
        places *= 2;
    diff_->mask = places - 1;
    diff_->block = malloc((diff_->most + 1) * sizeof *diff_->block);
    diff_->table = malloc(places * sizeof *diff_->table);
    diff_->met = calloc(from / 8 + 1, 1);
    return diff_->block && diff_->table && diff_->met ? SLUICE_OK : pf_fail_memory(err);
}

/* Row ids are no hashes; their neighbours are spread. */
static uint64_t place_of(const diff *diff_, uint64_t hash)
{
    return (hash * UINT64_C(0x9E3779B97F4A7C15) >> 32) & diff_->mask;
}

static sluice_status fill_block(diff *diff_, sluice_error *err)
{
    bool found = true;
    memset(diff_->table, 0, (diff_->mask + 1) * sizeof *diff_->table);
    diff_->count = 0;
    while (diff_->count < diff_->most) {
        candidate *one = &diff_->block[diff_->count];
        *one = (candidate){.rows.from.fragment = NO_FRAGMENT};
        PF_TRY(next_candidate(&diff_->new_rows, &found, &one->rows.to, &one->hash, err));
        if (!found)
            break;
        uint64_t place = place_of(diff_, one->hash);
        while (diff_->table[place] != 0)
            place = (place + 1) & diff_->mask;
        diff_->table[place] = (uint32_t)++diff_->count;
    }
    return SLUICE_OK;
}

static sluice_status same_key(diff *diff_, const st_row_place *from, const st_row_place *to, bool *ret_same,
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

/* A key is live once on each side: whoever has met its row meets no other. */
static sluice_status meet(diff *diff_, const st_row_place *from, uint64_t hash, bool *ret_met, sluice_error *err)
{
    *ret_met = false;
    for (uint64_t place = place_of(diff_, hash); diff_->table[place] != 0 && !*ret_met;
         place = (place + 1) & diff_->mask) {
        candidate *one = &diff_->block[diff_->table[place] - 1];
        if (one->hash != hash || one->rows.from.fragment != NO_FRAGMENT)
            continue;
        PF_TRY(same_key(diff_, from, &one->rows.to, ret_met, err));
        if (*ret_met)
            one->rows.from = *from;
    }
    return SLUICE_OK;
}

/* All of `from` that has met nobody yet passes by the block. */
static sluice_status join_block(diff *diff_, sluice_error *err)
{
    bool found = true, met = false;
    begin_walk(&diff_->old_rows, &diff_->from, &diff_->to);
    for (uint64_t i = 0;; i++) {
        st_row_place place;
        uint64_t hash = 0;
        PF_TRY(next_candidate(&diff_->old_rows, &found, &place, &hash, err));
        if (!found)
            return SLUICE_OK;
        if (diff_->met[i / 8] >> i % 8 & 1)
            continue;
        PF_TRY(meet(diff_, &place, hash, &met, err));
        diff_->met[i / 8] |= (uint8_t)(met << i % 8);
    }
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

static sluice_status tell_deleted(diff *diff_, st_row_change_fn *each, void *context, sluice_error *err)
{
    bool found = true;
    uint64_t none = 0;
    pair rows = {.to.fragment = NO_FRAGMENT};
    begin_walk(&diff_->old_rows, &diff_->from, &diff_->to);
    diff_->old_rows.placeless = true;
    for (uint64_t i = 0;; i++) {
        PF_TRY(next_candidate(&diff_->old_rows, &found, &rows.from, &none, err));
        if (!found)
            return SLUICE_OK;
        if (!(diff_->met[i / 8] >> i % 8 & 1))
            PF_TRY(tell(diff_, &rows, each, context, err));
    }
}

static void free_side(side *side_)
{
    free(side_->by_name);
    free(side_->counterpart);
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
    PF_GOTO(status, done, make_block(&diff_, err));
    begin_walk(&diff_.new_rows, &diff_.to, &diff_.from);
    do {
        PF_GOTO(status, done, fill_block(&diff_, err));
        if (diff_.count > 0)
            PF_GOTO(status, done, join_block(&diff_, err));
        for (uint64_t i = 0; i < diff_.count; i++)
            PF_GOTO(status, done, tell(&diff_, &diff_.block[i].rows, each, context, err));
    } while (diff_.count == diff_.most && diff_.most > 0);
    status = tell_deleted(&diff_, each, context, err);
done:
    for (uint32_t i = 0; i < diff_.absent_count; i++)
        st_column_builder_free(diff_.absent[i]);
    free(diff_.absent);
    free(diff_.older);
    free(diff_.changed);
    free(diff_.block);
    free(diff_.table);
    free(diff_.met);
    free(diff_.old_rows.hashes);
    free(diff_.new_rows.hashes);
    free_side(&diff_.from);
    free_side(&diff_.to);
    return status;
}
