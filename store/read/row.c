/*
 * Single rows (snapshot.h, reader.h): by position, in the type's current layout; by row id.
 */
#include "platform/check.h"
#include "store/read/reader.h"

static sluice_status id_column(st_table_reader *reader, st_fragment *fragment, uint32_t batch, st_column *ret_column,
                               sluice_error *err)
{
    int at = st_fragment_find_name(fragment, "_row_id");
    if (at < 0)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks its row ids",
                       (unsigned long long)reader->table);
    return st_fragment_column(fragment, batch, (uint32_t)at, ret_column, err);
}

sluice_status st_reader_row_id(st_table_reader *reader, uint32_t fragment, uint64_t position, uint64_t *ret_row,
                               sluice_error *err)
{
    const st_edit_add *add = &reader->list.fragments[fragment];
    st_fragment *opened = NULL;
    st_column ids;
    uint32_t batch = 0;
    uint64_t row = 0;
    if (!add->fragment.explicit_ids) {
        *ret_row = add->first_row + position;
        return SLUICE_OK;
    }
    PF_TRY(st_table_reader_fragment(reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &row);
    PF_TRY(id_column(reader, opened, batch, &ids, err));
    *ret_row = ((const uint64_t *)ids.values)[row];
    return SLUICE_OK;
}

/* In a column of ascending ids: where `row` is, or the number of rows. */
static uint64_t find_in_column(const st_column *ids, uint64_t row)
{
    const uint64_t *values = ids->values;
    uint64_t low = 0, high = ids->length;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (values[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ids->length && values[low] == row ? low : ids->length;
}

static sluice_status find_explicit(st_table_reader *reader, uint32_t i, uint64_t row, bool *ret_found,
                                   uint64_t *ret_position, sluice_error *err)
{
    st_fragment *fragment = NULL;
    uint64_t first = 0;
    PF_TRY(st_table_reader_fragment(reader, i, &fragment, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && !*ret_found; batch++) {
        st_column ids;
        PF_TRY(id_column(reader, fragment, batch, &ids, err));
        uint64_t at = find_in_column(&ids, row);
        *ret_found = at < ids.length;
        *ret_position = first + at;
        first += ids.length;
    }
    return SLUICE_OK;
}

sluice_status st_reader_find_row(st_table_reader *reader, uint64_t row, bool *ret_found, uint32_t *ret_fragment,
                                 uint64_t *ret_position, sluice_error *err)
{
    bool dead_found = false;
    uint32_t dead_fragment = 0;
    uint64_t dead_position = 0;
    *ret_found = false;
    for (uint32_t i = 0; i < reader->list.count; i++) {
        const st_edit_add *add = &reader->list.fragments[i];
        bool here = false;
        uint64_t position = 0;
        if (add->fragment.explicit_ids) {
            PF_TRY(find_explicit(reader, i, row, &here, &position, err));
        } else if (row >= add->first_row && row - add->first_row < add->fragment.rows) {
            here = true;
            position = row - add->first_row;
        }
        if (!here)
            continue;
        if (!st_table_reader_row_is_dead(reader, i, position)) { /* an update leaves its dead row behind */
            *ret_found = true;
            *ret_fragment = i;
            *ret_position = position;
            return SLUICE_OK;
        }
        dead_found = true;
        dead_fragment = i;
        dead_position = position;
    }
    *ret_found = dead_found;
    *ret_fragment = dead_fragment;
    *ret_position = dead_position;
    return SLUICE_OK;
}

sluice_status st_table_row(st_snapshot *snapshot, const st_type_def *type, st_table_reader *reader, uint32_t fragment,
                           uint64_t position, st_column_builder *const *builders, uint64_t *ret_row_id,
                           sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0, ends = type->edge ? 2 : 0;
    uint64_t row = 0;
    (void)snapshot;
    PF_ASSERT(fragment < reader->list.count && type->table == reader->table);
    PF_TRY(st_table_reader_fragment(reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &row);
    for (uint32_t column = 0; column < type->property_count + ends; column++) {
        int at = st_layout_find(type, opened, column);
        st_column values;
        if (at < 0 && column < ends)
            return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end",
                           (unsigned long long)type->table);
        if (at < 0) {
            PF_TRY(st_value_append(&type->properties[column - ends].initial, builders[column], err));
            continue;
        }
        PF_TRY(st_fragment_column(opened, batch, (uint32_t)at, &values, err));
        if (!st_type_reads_as(values.type, builders[column]->type))
            return pf_fail(err, SLUICE_CORRUPT, "a column of table %llu is of another type than its property",
                           (unsigned long long)type->table);
        PF_TRY(st_append_from(builders[column], &values, row, err));
    }
    return st_reader_row_id(reader, fragment, position, ret_row_id, err);
}
