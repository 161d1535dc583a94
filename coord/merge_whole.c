/*
 * Tables that a merge takes over without comparing rows, where both sides went on (coord/merge_job.h): a large load on
 * a branch, say, merged into a target to which others have written meanwhile. Memory does not follow the rows then.
 *
 * Of each side a table is, against the state that both come from: *same*, *appended* (fragments came, no row went), or
 * *other*. By lists alone.
 *
 * | source            | target   | what comes of it                                                     |
 * |-------------------|----------|----------------------------------------------------------------------|
 * | appended or other | same     | the source's list                                                    |
 * | appended          | appended | the source's fragments behind the target's, if no key and no unique  |
 * |                   |          | tuple of these hashes to one of the target's new rows, and the type  |
 * |                   |          | has no cardinality                                                   |
 *
 * Only if no rule over several tables needs a look: an edge table, if the target has deleted no node at its ends and
 * the source's nodes come along (or none went there); a node table, if what the source did to edges on it comes along,
 * and either the source deleted no node or nobody changed these edges in the target. All else goes row by row. So does
 * a merge of few rows, which is met by fewer writers then.
 *
 * Memory: 8 bytes for each key and unique tuple of the target's new rows.
 */
#include "coord/merge_job.h"
#include "platform/check.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

typedef enum change { SAME, APPENDED, OTHER } change;

struct mrg_whole {
    change ours, theirs;
    uint32_t *our_fresh, *their_fresh; /* fragments that came */
    uint32_t our_count, their_count;
    uint64_t rows; /* about how many the source changed */
    bool candidate;
};

void mrg_drop_whole(mrg_job *job)
{
    for (uint32_t i = 0; job->whole && i < job->mut.type_count; i++) {
        free(job->whole[i].our_fresh);
        free(job->whole[i].their_fresh);
    }
    free(job->whole);
    job->whole = NULL;
}

/* ---- lists ---- */

static int by_name(const void *a, const void *b)
{
    const st_edit_add *const *one = a, *const *two = b;
    return strcmp((*one)->fragment.name, (*two)->fragment.name);
}

static bool same_dead(const st_table_list *a, uint32_t i, const st_table_list *b, uint32_t k)
{
    return a->dead_count[i] == b->dead_count[k] &&
           (a->dead_count[i] == 0 || memcmp(a->dead[i], b->dead[k], a->dead_count[i] * sizeof **a->dead) == 0);
}

/* What a side's list is against the base's; *ret_fresh (malloc'd) are the fragments that only it has. */
static sluice_status compare_lists(const st_table_list *base, const st_table_list *side, change *ret_change,
                                   uint32_t **ret_fresh, uint32_t *ret_count, uint64_t *ret_rows, sluice_error *err)
{
    uint32_t met = 0;
    bool dead = false;
    const st_edit_add **sorted = calloc((size_t)base->count + 1, sizeof *sorted);
    *ret_fresh = calloc((size_t)side->count + 1, sizeof **ret_fresh);
    if (!sorted || !*ret_fresh) {
        free(sorted);
        return pf_fail_memory(err);
    }
    for (uint32_t i = 0; i < base->count; i++)
        sorted[i] = &base->fragments[i];
    qsort(sorted, base->count, sizeof *sorted, by_name);
    for (uint32_t i = 0; i < side->count; i++) {
        const st_edit_add *sought = &side->fragments[i];
        const st_edit_add **found = bsearch(&sought, sorted, base->count, sizeof *sorted, by_name);
        if (!found) {
            (*ret_fresh)[(*ret_count)++] = i;
            *ret_rows += sought->fragment.rows - side->dead_count[i];
            continue;
        }
        met++;
        uint32_t k = (uint32_t)(*found - base->fragments);
        dead |= !same_dead(base, k, side, i);
        *ret_rows += side->dead_count[i] > base->dead_count[k] ? side->dead_count[i] - base->dead_count[k] : 0;
    }
    free(sorted);
    *ret_change = met < base->count || dead ? OTHER : *ret_count > 0 ? APPENDED : SAME;
    return SLUICE_OK;
}

static sluice_status look_at(mrg_job *job, uint32_t number, sluice_error *err)
{
    struct mrg_whole *whole = &job->whole[number];
    uint64_t table = job->mut.types[number].def->table, rows = 0;
    st_table_reader *base = NULL, *ours = NULL, *theirs = NULL;
    PF_TRY(st_table_reader_get(job->bases[0].snapshot, table, &base, err));
    PF_TRY(st_table_reader_get(job->mut.write->base, table, &ours, err));
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &theirs, err));
    PF_TRY(compare_lists(st_table_reader_list(base), st_table_reader_list(ours), &whole->ours, &whole->our_fresh,
                         &whole->our_count, &rows, err));
    return compare_lists(st_table_reader_list(base), st_table_reader_list(theirs), &whole->theirs, &whole->their_fresh,
                         &whole->their_count, &whole->rows, err);
}

/* ---- keys of both sides ---- */

typedef struct hashes {
    uint64_t *items; /* of the target's new rows, sorted */
    uint64_t count, room;
    bool met; /* one of the source's is among them */
} hashes;

typedef sluice_status batch_fn(hashes *all, const uint64_t *batch, uint64_t count, sluice_error *err);

static sluice_status keep(hashes *all, const uint64_t *batch, uint64_t count, sluice_error *err)
{
    if (count == 0)
        return SLUICE_OK;
    if (all->room - all->count < count) {
        uint64_t room = 2 * all->room + count;
        uint64_t *items = reallocarray(all->items, room, sizeof *items);
        if (!items)
            return pf_fail_memory(err);
        all->items = items;
        all->room = room;
    }
    PF_ASSERT(all->items);
    memcpy(all->items + all->count, batch, count * sizeof *batch);
    all->count += count;
    return SLUICE_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *one = a, *two = b;
    return (*one > *two) - (*one < *two);
}

static sluice_status seek(hashes *all, const uint64_t *batch, uint64_t count, sluice_error *err)
{
    (void)err;
    for (uint64_t i = 0; i < count && !all->met; i++)
        all->met = bsearch(&batch[i], all->items, all->count, sizeof *batch, by_value) != NULL;
    return SLUICE_OK;
}

/* The hashes of these columns in some fragments, batch by batch; deleted rows among them, which does no harm. */
static sluice_status each_batch(st_table_reader *reader, const uint32_t *fragments, uint32_t count,
                                const uint32_t *columns, uint32_t column_count, batch_fn *each, hashes *all,
                                sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        st_fragment *opened = NULL;
        PF_TRY(st_table_reader_fragment(reader, fragments[i], &opened, err));
        for (uint32_t b = 0; b < st_fragment_batches(opened) && !all->met; b++) {
            st_column storage[ST_RUN_COLUMNS_MAX];
            const st_column *key[ST_RUN_COLUMNS_MAX];
            uint64_t rows = st_fragment_batch_rows(opened, b);
            PF_TRY(st_run_key(reader, opened, b, columns, column_count, storage, key, err));
            uint64_t *batch = malloc(((size_t)rows + 1) * sizeof *batch);
            if (!batch)
                return pf_fail_memory(err);
            st_key_hash_rows(key, column_count, rows, batch);
            uint64_t kept = 0;
            for (uint64_t row = 0; row < rows; row++) /* tuples with a null never collide */
                if (!st_key_has_null(key, column_count, row))
                    batch[kept++] = batch[row];
            sluice_status status = each(all, batch, kept, err);
            free(batch);
            PF_TRY(status);
        }
    }
    return SLUICE_OK;
}

static sluice_status keys_meet(mrg_job *job, uint32_t number, st_run_use use, uint32_t unique, bool *ret_meet,
                               sluice_error *err)
{
    const struct mrg_whole *whole = &job->whole[number];
    const st_type_def *type = job->mut.types[number].def;
    uint32_t columns[ST_RUN_COLUMNS_MAX], count = st_run_columns(type, use, unique, columns);
    st_table_reader *ours = NULL, *theirs = NULL;
    hashes all = {0};
    sluice_status status;
    if (count == 0) /* known by row ids, which are never the same */
        return SLUICE_OK;
    PF_GOTO(status, done, st_table_reader_get(job->mut.write->base, type->table, &ours, err));
    PF_GOTO(status, done, st_table_reader_get(job->source.snapshot, type->table, &theirs, err));
    PF_GOTO(status, done, each_batch(ours, whole->our_fresh, whole->our_count, columns, count, keep, &all, err));
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, by_value);
    status = each_batch(theirs, whole->their_fresh, whole->their_count, columns, count, seek, &all, err);
    *ret_meet |= all.met;
done:
    free(all.items);
    return status;
}

/* Both may have taken a fragment over from a third branch. */
static sluice_status fragments_meet(mrg_job *job, uint32_t number, bool *ret_meet, sluice_error *err)
{
    const struct mrg_whole *whole = &job->whole[number];
    uint64_t table = job->mut.types[number].def->table;
    st_table_reader *ours = NULL, *theirs = NULL;
    PF_TRY(st_table_reader_get(job->mut.write->base, table, &ours, err));
    PF_TRY(st_table_reader_get(job->source.snapshot, table, &theirs, err));
    const st_table_list *here = st_table_reader_list(ours), *there = st_table_reader_list(theirs);
    const st_edit_add **sorted = calloc((size_t)whole->our_count + 1, sizeof *sorted);
    if (!sorted)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < whole->our_count; i++)
        sorted[i] = &here->fragments[whole->our_fresh[i]];
    qsort(sorted, whole->our_count, sizeof *sorted, by_name);
    for (uint32_t i = 0; i < whole->their_count && !*ret_meet; i++) {
        const st_edit_add *sought = &there->fragments[whole->their_fresh[i]];
        *ret_meet = bsearch(&sought, sorted, whole->our_count, sizeof *sorted, by_name) != NULL;
    }
    free(sorted);
    return SLUICE_OK;
}

static sluice_status can_append(mrg_job *job, uint32_t number, bool *ret_can, sluice_error *err)
{
    const st_type_def *type = job->mut.types[number].def;
    bool meet = type->edge && (type->max_out != ST_NO_LIMIT || type->max_in != ST_NO_LIMIT);
    if (!meet)
        PF_TRY(fragments_meet(job, number, &meet, err));
    bool keyed = type->edge ? type->identity == ST_EDGE_KEYED : type->key_count > 0;
    if (keyed && !meet)
        PF_TRY(keys_meet(job, number, ST_RUN_KEY, 0, &meet, err));
    for (uint32_t i = 0; i < type->unique_count && !meet; i++)
        PF_TRY(keys_meet(job, number, ST_RUN_UNIQUE, type->uniques[i].id, &meet, err));
    *ret_can = !meet;
    return SLUICE_OK;
}

/* ---- rules over several tables ---- */

static bool edge_stays(const mrg_job *job, const st_type_def *edge)
{
    const uint32_t ends[] = {edge->from, edge->to};
    for (unsigned i = 0; i < 2; i++) {
        const struct mrg_whole *node = &job->whole[ends[i]];
        if (node->ours == OTHER || (node->theirs == OTHER && !node->candidate))
            return false;
    }
    return true;
}

static bool node_stays(const mrg_job *job, uint32_t number)
{
    for (uint32_t i = 0; i < job->mut.type_count; i++) {
        const st_type_def *edge = job->mut.types[i].def;
        const struct mrg_whole *whole = &job->whole[i];
        if (!edge->edge || (edge->from != number && edge->to != number))
            continue;
        if (whole->theirs != SAME && !whole->candidate)
            return false;
        if (job->whole[number].theirs == OTHER && whole->ours != SAME)
            return false;
    }
    return true;
}

/* Takes out whoever may not be taken over, until nobody is left that may not. */
static void settle(mrg_job *job)
{
    bool again = true;
    while (again) {
        again = false;
        for (uint32_t i = 0; i < job->mut.type_count; i++) {
            const st_type_def *type = job->mut.types[i].def;
            if (!job->whole[i].candidate || (type->edge ? edge_stays(job, type) : node_stays(job, i)))
                continue;
            job->whole[i].candidate = false;
            again = true;
        }
    }
}

static bool is_plain(const mrg_job *job)
{
    return job->base_count == 1 && !job->schema && !job->source.cast && !job->bases[0].cast;
}

sluice_status mrg_choose_whole(mrg_job *job, sluice_error *err)
{
    uint64_t rows = 0;
    job->adopted = calloc((size_t)job->mut.type_count + 1, sizeof *job->adopted);
    job->whole = calloc((size_t)job->mut.type_count + 1, sizeof *job->whole);
    if (!job->adopted || !job->whole)
        return pf_fail_memory(err);
    if (!is_plain(job))
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->mut.type_count; i++) {
        PF_TRY(look_at(job, i, err));
        rows += job->whole[i].rows;
    }
    if (rows <= MRG_ADOPT_ROWS)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->mut.type_count; i++) {
        struct mrg_whole *whole = &job->whole[i];
        whole->candidate =
            whole->theirs != SAME && (whole->ours == SAME || (whole->ours == APPENDED && whole->theirs == APPENDED));
    }
    settle(job); /* before keys are read: for nothing, perhaps */
    for (uint32_t i = 0; i < job->mut.type_count; i++)
        if (job->whole[i].candidate && job->whole[i].ours == APPENDED)
            PF_TRY(can_append(job, i, &job->whole[i].candidate, err));
    settle(job);
    for (uint32_t i = 0; i < job->mut.type_count; i++)
        job->adopted[i] = job->whole[i].candidate;
    return SLUICE_OK;
}

sluice_status mrg_adopt_whole(mrg_job *job, uint32_t number, sluice_error *err)
{
    const struct mrg_whole *whole = &job->whole[number];
    return whole->ours == SAME ? mrg_adopt_table(job, number, err)
                               : mrg_adopt_behind(job, number, whole->their_fresh, whole->their_count, err);
}
