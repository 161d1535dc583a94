/* See row_json.h. */
#include "store/read/row_json.h"
#include "store/read/key_text.h"
#include <stdlib.h>

sluice_status st_row_json_begin(const st_schema *schema, const st_type_def *type, st_row_json *ret_row,
                                sluice_error *err)
{
    *ret_row = (st_row_json){.type = type};
    PF_TRY(st_type_columns(schema, type, &ret_row->specs, &ret_row->count, err));
    ret_row->builders = calloc((size_t)ret_row->count + 1, sizeof(st_column_builder *));
    if (!ret_row->builders)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < ret_row->count; i++)
        PF_TRY(st_column_builder_new(&ret_row->specs[i], &ret_row->builders[i], err));
    return SLUICE_OK;
}

void st_row_json_free(st_row_json *row)
{
    for (uint32_t i = 0; row->builders && i < row->count; i++)
        st_column_builder_free(row->builders[i]);
    free(row->builders);
    st_type_columns_free(row->specs, row->count);
    *row = (st_row_json){0};
}

sluice_status st_row_json_read(st_row_json *row, st_snapshot *snapshot, const st_row_place *place, sluice_error *err)
{
    st_table_reader *reader = NULL;
    for (uint32_t i = 0; i < row->count; i++)
        st_builder_truncate(row->builders[i], 0);
    PF_TRY(st_table_reader_get(snapshot, row->type->table, &reader, err));
    return st_table_row(snapshot, row->type, reader, place->fragment, place->position, row->builders, &row->row_id,
                        err);
}

sluice_status st_row_json_value(const st_row_json *row, uint32_t column, const char *name, st_json *json,
                                sluice_error *err)
{
    st_column view;
    pf_buffer value = {0};
    st_builder_view(row->builders[column], &view);
    sluice_status status =
        st_column_is_null(&view, 0) ? pf_buffer_append_text(&value, "null", err) : st_value_json(&view, 0, &value, err);
    st_json_name(json, name);
    st_json_raw(json, (const char *)value.data, value.length);
    pf_buffer_free(&value);
    return status;
}

sluice_status st_row_json_put(const st_row_json *row, bool row_id, st_json *json, sluice_error *err)
{
    st_json_object(json);
    if (row_id) {
        st_json_name(json, "_row_id");
        st_json_unsigned(json, row->row_id);
    }
    for (uint32_t i = 0; i < row->count; i++)
        PF_TRY(st_row_json_value(row, i, row->specs[i].name, json, err));
    st_json_object_end(json);
    return SLUICE_OK;
}

static sluice_status put_part(st_json *json, const char *name, const st_row_change *change, uint32_t first,
                              uint32_t count, sluice_error *err)
{
    pf_buffer value = {0};
    sluice_status status = st_key_to_json(change->key + first, count, change->key_row, &value, err);
    if (status == SLUICE_OK) {
        st_json_name(json, name);
        st_json_raw(json, (const char *)value.data, value.length);
    }
    pf_buffer_free(&value);
    return status;
}

sluice_status st_row_change_name(const st_type_def *type, const st_row_change *change, st_json *json, sluice_error *err)
{
    uint32_t ends = type->edge ? 2 : 0;
    if (type->edge) {
        PF_TRY(put_part(json, "from", change, 0, 1, err));
        PF_TRY(put_part(json, "to", change, 1, 1, err));
    }
    if (change->key_count > ends)
        PF_TRY(put_part(json, "key", change, ends, change->key_count - ends, err));
    if (change->row_id > 0) {
        st_json_name(json, "_row_id");
        st_json_unsigned(json, change->row_id);
    }
    return SLUICE_OK;
}
