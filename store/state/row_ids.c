/*
 * Row ids of fragments (list.h): first id plus position, or an explicit, ascending column _row_id, which is read here.
 */
#include "platform/check.h"
#include "store/state/list.h"
#include <stdlib.h>

static sluice_status damaged(const st_edit_add *add, uint64_t table, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "tables/%llu/fragments/%s: its row ids are damaged", (unsigned long long)table,
                   add->fragment.name);
}

static sluice_status open_ids(pf_volume *volume, uint64_t table, const st_edit_add *add, st_fragment **ret_fragment,
                              uint32_t *ret_column, sluice_error *err)
{
    PF_TRY(st_fragment_open(volume, table, &add->fragment, ret_fragment, err));
    int column = st_fragment_find_name(*ret_fragment, "_row_id");
    if (column < 0) {
        st_fragment_close(*ret_fragment);
        return damaged(add, table, err);
    }
    *ret_column = (uint32_t)column;
    return SLUICE_OK;
}

static sluice_status batch_ids(st_fragment *fragment, uint32_t batch, uint32_t column, const uint64_t **ret_ids,
                               uint64_t *ret_count, sluice_error *err)
{
    st_column ids;
    PF_TRY(st_fragment_column(fragment, batch, column, &ids, err));
    if ((ids.type != ST_ROW_ID && ids.type != ST_UINT64) || ids.nulls > 0)
        return pf_fail(err, SLUICE_CORRUPT, "a column of row ids is of another type, or has nulls");
    *ret_ids = ids.values;
    *ret_count = ids.length;
    return SLUICE_OK;
}

sluice_status st_row_ids_bounds(pf_volume *volume, uint64_t table, const st_edit_add *add, uint64_t *ret_low,
                                uint64_t *ret_high, sluice_error *err)
{
    st_fragment *fragment = NULL;
    uint32_t column = 0;
    const uint64_t *ids = NULL;
    uint64_t count = 0;
    sluice_status status;
    if (!add->fragment.explicit_ids) {
        *ret_low = add->first_row;
        return pf_add_u64(add->first_row, add->fragment.rows - 1, ret_high) ? SLUICE_OK : damaged(add, table, err);
    }
    PF_TRY(open_ids(volume, table, add, &fragment, &column, err));
    uint32_t batches = st_fragment_batches(fragment);
    if (batches == 0) {
        status = damaged(add, table, err);
        goto done;
    }
    PF_GOTO(status, done, batch_ids(fragment, 0, column, &ids, &count, err));
    *ret_low = count > 0 ? ids[0] : 0;
    PF_GOTO(status, done, batch_ids(fragment, batches - 1, column, &ids, &count, err));
    *ret_high = count > 0 ? ids[count - 1] : 0;
    if (*ret_low > *ret_high)
        status = damaged(add, table, err);
done:
    st_fragment_close(fragment);
    return status;
}

/* Positions in one batch of the wanted ids (ascending): both sides ascend, so one pass with binary steps. */
static void match_batch(const uint64_t *ids, uint64_t count, uint64_t first_position, const uint64_t *wanted,
                        uint64_t wanted_count, uint64_t *positions, uint64_t *position_count)
{
    uint64_t low = 0;
    for (uint64_t w = 0; w < wanted_count && low < count; w++) {
        uint64_t high = count;
        if (wanted[w] > ids[count - 1])
            return;
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (ids[middle] < wanted[w])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < count && ids[low] == wanted[w])
            positions[(*position_count)++] = first_position + low;
    }
}

static sluice_status explicit_positions(pf_volume *volume, uint64_t table, const st_edit_add *add,
                                        const uint64_t *wanted, uint64_t wanted_count, uint64_t *positions,
                                        uint64_t *position_count, sluice_error *err)
{
    st_fragment *fragment = NULL;
    uint32_t column = 0;
    uint64_t first = 0;
    sluice_status status = SLUICE_OK;
    PF_TRY(open_ids(volume, table, add, &fragment, &column, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        const uint64_t *ids = NULL;
        uint64_t count = 0;
        status = batch_ids(fragment, batch, column, &ids, &count, err);
        if (status == SLUICE_OK && *position_count < wanted_count)
            match_batch(ids, count, first, wanted, wanted_count, positions, position_count);
        first += count;
    }
    st_fragment_close(fragment);
    return status;
}

sluice_status st_row_ids_positions(pf_volume *volume, uint64_t table, const st_item *item, const st_row_set *rows,
                                   uint64_t **ret_positions, uint64_t *ret_count, sluice_error *err)
{
    const st_edit_add *add = &item->add;
    uint64_t *wanted = NULL, wanted_count = 0;
    uint64_t span = item->high - item->low < UINT64_MAX ? item->high - item->low + 1 : UINT64_MAX;
    sluice_status status = SLUICE_OK;
    *ret_positions = NULL;
    *ret_count = 0;
    PF_TRY(st_row_set_range(rows, item->low, span, &wanted, &wanted_count, err));
    if (!add->fragment.explicit_ids || wanted_count == 0) { /* ids less the first one are the positions */
        *ret_positions = wanted;
        *ret_count = wanted_count;
        return SLUICE_OK;
    }
    uint64_t *positions = malloc(wanted_count * sizeof(*positions));
    if (!positions) {
        free(wanted);
        return pf_fail_memory(err);
    }
    for (uint64_t i = 0; i < wanted_count; i++)
        wanted[i] += item->low;
    status = explicit_positions(volume, table, add, wanted, wanted_count, positions, ret_count, err);
    free(wanted);
    if (status != SLUICE_OK || *ret_count == 0) {
        free(positions);
        *ret_count = 0;
        return status;
    }
    *ret_positions = positions;
    return SLUICE_OK;
}

sluice_status st_row_ids_of(pf_volume *volume, uint64_t table, const st_item *item, const uint64_t *positions,
                            uint64_t count, st_row_set *rows, sluice_error *err)
{
    st_fragment *fragment = NULL;
    uint32_t column = 0;
    sluice_status status = SLUICE_OK;
    if (!item->add.fragment.explicit_ids) {
        for (uint64_t i = 0; i < count; i++)
            PF_TRY(st_row_set_add(rows, item->low + positions[i], err));
        return SLUICE_OK;
    }
    PF_TRY(open_ids(volume, table, &item->add, &fragment, &column, err));
    for (uint64_t i = 0; i < count && status == SLUICE_OK; i++) {
        const uint64_t *ids = NULL;
        uint64_t within = 0, length = 0;
        uint32_t batch = 0;
        st_fragment_locate(fragment, positions[i], &batch, &within);
        status = batch_ids(fragment, batch, column, &ids, &length, err);
        if (status == SLUICE_OK && within >= length)
            status = damaged(&item->add, table, err);
        if (status == SLUICE_OK)
            status = st_row_set_add(rows, ids[within], err);
    }
    st_fragment_close(fragment);
    return status;
}
