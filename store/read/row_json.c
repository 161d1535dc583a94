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

/* ---- changed rows ---- */

void st_change_text_clear(st_change_text *text)
{
    text->name.length = text->before.length = text->after.length = 0;
}

void st_change_text_free(st_change_text *text)
{
    st_row_json_free(&text->older);
    st_row_json_free(&text->newer);
    pf_buffer_free(&text->name);
    pf_buffer_free(&text->before);
    pf_buffer_free(&text->after);
}

sluice_status st_change_text_begin(st_change_text *text, st_snapshot *from, st_snapshot *to, uint64_t table,
                                   sluice_error *err)
{
    const st_schema *older = st_snapshot_view(from)->schema, *newer = st_snapshot_view(to)->schema;
    const st_type_def *before = st_schema_find_table(older, table), *after = st_schema_find_table(newer, table);
    st_row_json_free(&text->older);
    st_row_json_free(&text->newer);
    text->type = after ? after : before;
    if (before)
        PF_TRY(st_row_json_begin(older, before, &text->older, err));
    return after ? st_row_json_begin(newer, after, &text->newer, err) : SLUICE_OK;
}

/* Ends a text that was written, for use as a string. */
static sluice_status end_text(st_json *json, sluice_error *err)
{
    PF_TRY(st_json_end(json, false, err));
    return pf_buffer_append(json->buffer, "", 1, err);
}

/* The members of an object, without its brackets. */
static sluice_status put_name(st_change_text *text, const st_row_change *change, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, &text->name);
    PF_TRY(st_row_change_name(text->type, change, &json, err));
    return end_text(&json, err);
}

static sluice_status put_row(const st_row_json *row, pf_buffer *text, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, text);
    PF_TRY(st_row_json_put(row, false, &json, err));
    return end_text(&json, err);
}

/* The property of a row's own type with this id, as a column; -1 when it has none. */
static int64_t column_of(const st_row_json *row, uint64_t property)
{
    for (uint32_t i = 0; i < row->type->property_count; i++) {
        if (row->type->properties[i].id == property)
            return (int64_t)i + (row->type->edge ? 2 : 0);
    }
    return -1;
}

/* The properties that were updated, under the names that they have now. */
static sluice_status put_properties(const st_change_text *text, const st_row_change *change, const st_row_json *row,
                                    pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    for (uint32_t i = 0; i < change->property_count; i++) {
        const st_property *property = &text->type->properties[change->properties[i]];
        int64_t column = column_of(row, property->id);
        if (column >= 0) {
            PF_TRY(st_row_json_value(row, (uint32_t)column, property->name, &json, err));
        } else {
            st_json_name(&json, property->name);
            st_json_null(&json);
        }
    }
    st_json_object_end(&json);
    return end_text(&json, err);
}

sluice_status st_change_text_put(st_change_text *text, st_snapshot *from, st_snapshot *to, const st_row_change *change,
                                 sluice_error *err)
{
    st_change_text_clear(text);
    PF_TRY(put_name(text, change, err));
    if (change->kind != ST_INSERTED)
        PF_TRY(st_row_json_read(&text->older, from, &change->from, err));
    if (change->kind != ST_DELETED)
        PF_TRY(st_row_json_read(&text->newer, to, &change->to, err));
    if (change->kind == ST_INSERTED)
        return put_row(&text->newer, &text->after, err);
    if (change->kind == ST_DELETED)
        return put_row(&text->older, &text->before, err);
    PF_TRY(put_properties(text, change, &text->older, &text->before, err));
    return put_properties(text, change, &text->newer, &text->after, err);
}
