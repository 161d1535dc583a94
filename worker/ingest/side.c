#include "worker/ingest/side.h"

#include "platform/check.h"
#include "platform/memory.h"
#include "store/state/layout.h"
#include "worker/ingest/plain.h"
#include <stdlib.h>
#include <string.h>

/* Of the process's memory, for fragments held open on one side. */
#define PART     8u
#define ROOM_MIN (UINT64_C(1) << 20)
#define ROOM_MAX (UINT64_C(64) << 20)

typedef struct open_fragment {
    st_fragment *fragment;    /* a staged one, or the plain copy of a compressed one; NULL: neither */
    bool is_copy, is_readers; /* of the base, not compressed: the reader has it */
    uint64_t used;
} open_fragment;

struct wk_side {
    pf_volume *volume;
    const st_type_def *type;
    uint32_t count;
    const wk_catalogue *catalogue; /* of a load */
    uint32_t *items;               /* of the catalogue that are this table's */
    open_fragment *open;           /* per fragment */
    uint64_t held, room;           /* bytes of those that are open */
    uint64_t clock;
    const wk_spool *spool;
    st_table_reader *reader; /* of the base */
    const st_row_set *hidden;
    st_row_set *const *except;
    pf_buffer *orders; /* per fragment of a load: its file of order, once read */
};

static sluice_status make_load(pf_volume *volume, const st_type_def *type, const wk_catalogue *catalogue, bool updates,
                               wk_side **ret_side, sluice_error *err)
{
    wk_side *side = calloc(1, sizeof *side);

    if (side == NULL)
        return pf_fail_memory(err);
    side->items = calloc((size_t)catalogue->count + 1, sizeof *side->items);
    side->open = calloc((size_t)catalogue->count + 1, sizeof *side->open);
    if (side->items == NULL || side->open == NULL) {
        wk_side_close(side);
        return pf_fail_memory(err);
    }
    side->room = pf_memory_part(PART, ROOM_MIN, ROOM_MAX);
    side->volume = volume;
    side->type = type;
    side->catalogue = catalogue;
    for (uint32_t i = 0; i < catalogue->count; i++)
        if (catalogue->items[i].table == type->table && catalogue->items[i].add.fragment.rows > 0 &&
            (updates || !catalogue->items[i].updates))
            side->items[side->count++] = i;
    *ret_side = side;
    return SLUICE_OK;
}

sluice_status wk_side_of_load(pf_volume *volume, const st_type_def *type, const wk_catalogue *catalogue,
                              wk_side **ret_side, sluice_error *err)
{
    return make_load(volume, type, catalogue, true, ret_side, err);
}

sluice_status wk_side_of_added(pf_volume *volume, const st_type_def *type, const wk_catalogue *catalogue,
                               wk_side **ret_side, sluice_error *err)
{
    return make_load(volume, type, catalogue, false, ret_side, err);
}

sluice_status wk_side_of_base(st_snapshot *base, const st_type_def *type, wk_side **ret_side, sluice_error *err)
{
    sluice_status status;
    wk_side *side = calloc(1, sizeof *side);

    if (side == NULL)
        return pf_fail_memory(err);
    side->type = type;
    status = st_table_reader_get(base, type->table, &side->reader, err);
    if (status != SLUICE_OK) {
        free(side);
        return status;
    }
    side->count = st_table_reader_fragments(side->reader);
    side->room = pf_memory_part(PART, ROOM_MIN, ROOM_MAX);
    side->open = calloc((size_t)side->count + 1, sizeof *side->open);
    if (side->open == NULL) {
        wk_side_close(side);
        return pf_fail_memory(err);
    }
    *ret_side = side;
    return SLUICE_OK;
}

void wk_side_set_spool(wk_side *side, const wk_spool *spool)
{
    side->spool = spool;
}

void wk_side_close(wk_side *side)
{
    if (side == NULL)
        return;
    for (uint32_t i = 0; side->open && i < side->count; i++)
        st_fragment_close(side->open[i].fragment);
    for (uint32_t i = 0; side->orders && i < side->count; i++)
        pf_buffer_free(&side->orders[i]);
    free(side->orders);
    free(side->open);
    free(side->items);
    free(side);
}

void wk_side_hide(wk_side *side, const st_row_set *rows)
{
    PF_ASSERT(side->reader != NULL);
    side->hidden = rows;
}

void wk_side_except(wk_side *side, st_row_set *const *rows)
{
    PF_ASSERT(side->reader == NULL);
    side->except = rows;
}

/* ---- which record a row is ---- */

static sluice_status record_of(const wk_staged *staged, const pf_buffer *order, uint64_t position, uint64_t *ret_record,
                               sluice_error *err)
{
    uint32_t offset;

    if (position >= order->length / sizeof offset)
        return pf_fail(err, SLUICE_CORRUPT, "a task's result is not whole");
    memcpy(&offset, order->data + position * sizeof offset, sizeof offset);
    *ret_record = staged->first_record + offset;
    return SLUICE_OK;
}

static sluice_status read_order(const wk_catalogue *catalogue, uint32_t item, pf_buffer *order, sluice_error *err)
{
    bool found = false;

    PF_ASSERT(catalogue->spool != NULL);
    PF_TRY(wk_spool_get(catalogue->spool, catalogue->items[item].order, order, &found, err));
    return found ? SLUICE_OK : pf_fail(err, SLUICE_INTERNAL, "the order of a plan's rows is missing");
}

sluice_status wk_catalogue_record(const wk_catalogue *catalogue, uint32_t item, uint64_t position, uint64_t *ret_record,
                                  sluice_error *err)
{
    const wk_staged *staged = &catalogue->items[item];
    pf_buffer order = {0};
    sluice_status status;

    if (staged->order[0] == '\0') {
        *ret_record = wk_staged_record(staged, position);
        return SLUICE_OK;
    }
    status = read_order(catalogue, item, &order, err);
    if (status == SLUICE_OK)
        status = record_of(staged, &order, position, ret_record, err);
    pf_buffer_free(&order);
    return status;
}

sluice_status wk_side_record(wk_side *side, uint32_t fragment, uint64_t position, uint64_t *ret_record,
                             sluice_error *err)
{
    const wk_staged *staged = &side->catalogue->items[wk_side_item(side, fragment)];

    if (staged->order[0] == '\0') {
        *ret_record = wk_staged_record(staged, position);
        return SLUICE_OK;
    }
    if (side->orders == NULL)
        side->orders = calloc(side->count, sizeof *side->orders);
    if (side->orders == NULL)
        return pf_fail_memory(err);
    if (side->orders[fragment].length == 0)
        PF_TRY(read_order(side->catalogue, side->items[fragment], &side->orders[fragment], err));
    return record_of(staged, &side->orders[fragment], position, ret_record, err);
}

bool wk_side_is_base(const wk_side *side)
{
    return side->reader != NULL;
}

uint32_t wk_side_count(const wk_side *side)
{
    return side->count;
}

uint32_t wk_side_item(const wk_side *side, uint32_t fragment)
{
    PF_ASSERT(side->reader == NULL && fragment < side->count);
    return side->items[fragment];
}

bool wk_side_is_dead(const wk_side *side, uint32_t fragment, uint64_t position)
{
    if (side->reader)
        return st_table_reader_row_is_dead(side->reader, fragment, position) ||
               (side->hidden && st_row_set_contains(side->hidden, wk_row_code(fragment, position)));
    const st_row_set *dead = side->catalogue->dead ? side->catalogue->dead[side->items[fragment]] : NULL;
    const st_row_set *except = side->except ? side->except[side->items[fragment]] : NULL;
    return (dead && st_row_set_contains(dead, position)) || (except && st_row_set_contains(except, position));
}

static sluice_status base_entries(wk_side *side, uint32_t fragment, st_run_use use, uint32_t unique,
                                  wk_entries *ret_entries, sluice_error *err)
{
    PF_TRY(st_table_reader_run(side->reader, fragment, use, unique, &ret_entries->run, err));
    if (ret_entries->run == NULL)
        return st_table_reader_entries(side->reader, fragment, use, unique, &ret_entries->entries, &ret_entries->count,
                                       err);
    ret_entries->count = st_run_entries(ret_entries->run);
    return SLUICE_OK;
}

sluice_status wk_side_entries(wk_side *side, uint32_t fragment, st_run_use use, uint32_t unique,
                              wk_entries *ret_entries, sluice_error *err)
{
    *ret_entries = (wk_entries){0};
    if (side->reader)
        return base_entries(side, fragment, use, unique, ret_entries, err);
    const st_edit_add *add = &side->catalogue->items[side->items[fragment]].add;
    for (uint32_t i = 0; i < add->run_count; i++)
        if (add->runs[i].use == use && (use != ST_RUN_UNIQUE || add->runs[i].unique == unique)) {
            PF_TRY(st_run_open(side->volume, side->type->table, &add->runs[i].info, &ret_entries->run, err));
            ret_entries->own = true;
            ret_entries->count = st_run_entries(ret_entries->run);
            return SLUICE_OK;
        }
    return pf_fail(err, SLUICE_INTERNAL, "a staged fragment has no run of use %d", (int)use);
}

/* Closes what was not read for the longest time, until there is room; what was read last stays. */
static void make_room(wk_side *side, uint64_t more)
{
    while (side->held + more > side->room) {
        open_fragment *oldest = NULL;
        for (uint32_t i = 0; i < side->count; i++) {
            open_fragment *at = &side->open[i];
            if (at->fragment && at->used + WK_SIDE_KEPT < side->clock && (!oldest || at->used < oldest->used))
                oldest = at;
        }
        if (oldest == NULL)
            return;
        side->held -= st_fragment_memory(oldest->fragment);
        st_fragment_close(oldest->fragment);
        oldest->fragment = NULL;
    }
}

static const st_fragment_info *info_of(const wk_side *side, uint32_t fragment)
{
    return side->reader ? &st_table_reader_list(side->reader)->fragments[fragment].fragment
                        : &side->catalogue->items[side->items[fragment]].add.fragment;
}

/* Fills open[fragment]. */
static sluice_status open_one(wk_side *side, uint32_t fragment, sluice_error *err)
{
    open_fragment *at = &side->open[fragment];
    const st_fragment_info *info = info_of(side, fragment);
    st_fragment *opened = NULL;
    bool compressed = false;
    sluice_status status;

    if (side->reader)
        PF_TRY(st_table_reader_fragment(side->reader, fragment, &opened, err));
    else
        PF_TRY(st_fragment_open(side->volume, side->type->table, info, &opened, err));
    status = st_fragment_is_compressed(opened, &compressed, err);
    if (status == SLUICE_OK && compressed && side->spool && !info->attached) {
        if (!side->reader)
            st_fragment_close(opened);
        PF_TRY(wk_plain_open(side->spool, side->type, info, &at->fragment, err));
        at->is_copy = true;
    } else if (status == SLUICE_OK && side->reader) {
        at->is_readers = true;
        return SLUICE_OK;
    } else if (status == SLUICE_OK) {
        at->fragment = opened;
    } else {
        if (!side->reader)
            st_fragment_close(opened);
        return status;
    }
    make_room(side, st_fragment_memory(at->fragment));
    side->held += st_fragment_memory(at->fragment);
    return SLUICE_OK;
}

/* One column of the key, from the copy where that has it. */
static sluice_status read_column(wk_side *side, const open_fragment *at, uint32_t fragment, uint32_t batch,
                                 uint32_t column, st_column *ret_column, sluice_error *err)
{
    st_fragment *readers = NULL;
    int found = at->is_copy ? st_layout_find(side->type, at->fragment, column) : -1;

    if (found >= 0)
        return st_fragment_column(at->fragment, batch, (uint32_t)found, ret_column, err);
    if (side->reader == NULL) /* of this load: by the layout */
        return st_fragment_column(at->fragment, batch, column, ret_column, err);
    PF_TRY(st_table_reader_fragment(side->reader, fragment, &readers, err));
    return st_table_reader_column(side->reader, readers, batch, column, ret_column, err);
}

sluice_status wk_side_key(wk_side *side, const wk_run_plan *plan, uint32_t fragment, uint64_t position, wk_key *ret_key,
                          sluice_error *err)
{
    open_fragment *at = &side->open[fragment];
    st_fragment *opened = at->fragment;
    uint32_t batch = 0;

    PF_ASSERT(fragment < side->count);
    at->used = ++side->clock;
    if (opened == NULL && !at->is_readers)
        PF_TRY(open_one(side, fragment, err));
    opened = at->fragment;
    if (at->is_readers)
        PF_TRY(st_table_reader_fragment(side->reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &ret_key->row);
    ret_key->count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        st_column found;
        PF_TRY(read_column(side, at, fragment, batch, plan->columns[i], &found, err));
        uint32_t members = found.type == ST_STRUCT ? found.child_count : 1;
        for (uint32_t m = 0; m < members; m++) {
            PF_ALWAYS(ret_key->count < ST_KEY_LEAVES_MAX);
            ret_key->storage[ret_key->count] = found.type == ST_STRUCT ? found.children[m] : found;
            ret_key->columns[ret_key->count] = &ret_key->storage[ret_key->count];
            ret_key->count++;
        }
    }
    return SLUICE_OK;
}
