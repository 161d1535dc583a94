/*
 * Columns of types in fragments (layout.h).
 */
#include "store/state/layout.h"
#include "platform/check.h"

uint32_t st_run_columns(const st_type_def *type, st_run_use use, uint32_t unique,
                        uint32_t ret_columns[ST_RUN_COLUMNS_MAX])
{
    uint32_t count = 0, ends = type->edge ? 2 : 0;
    const st_unique *tuple = st_type_find_unique(type, unique);
    switch (use) {
    case ST_RUN_FROM:
    case ST_RUN_TO:
        if (type->edge)
            ret_columns[count++] = use == ST_RUN_TO;
        break;
    case ST_RUN_KEY:
        if (type->edge && type->identity == ST_EDGE_PARALLEL)
            break;
        for (uint32_t end = 0; end < ends; end++)
            ret_columns[count++] = end;
        for (uint32_t i = 0; i < type->key_count; i++)
            ret_columns[count++] = ends + type->key[i];
        break;
    case ST_RUN_UNIQUE:
        for (uint32_t i = 0; tuple && i < tuple->count; i++)
            ret_columns[count++] = ends + tuple->properties[i];
        break;
    }
    return count;
}

int st_layout_find(const st_type_def *type, const st_fragment *fragment, uint32_t column)
{
    uint32_t ends = type->edge ? 2 : 0;
    if (column < ends)
        return st_fragment_find_name(fragment, column == 0 ? "from" : "to");
    return st_fragment_find_property(fragment, type->properties[column - ends].id);
}

sluice_status st_layout_describe(const st_schema *schema, const st_type_def *type, st_fragment_writer *writer,
                                 sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = st_schema_encode_type(schema, type, &text, err);
    if (status == SLUICE_OK)
        status = st_fragment_describe(writer, text.data, text.length, err);
    pf_buffer_free(&text);
    return status;
}
