/*
 * Edits: what one write does to one table (state.h, docs/format.md "Edit"). Canonical JSON, attached to a record or
 * staged under tables/<id>/lists/; its digest stands in the commit. First row ids and the commit id are bound in G and
 * stand in the commit, so an edit is the same whoever publishes in between; only ids that the plan took itself are part
 * of it ("given").
 */
#include "platform/check.h"
#include "store/state/codec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum id_form { IDS_BOUND, IDS_GIVEN, IDS_COLUMN } id_form;
static const char *const id_forms[] = {[IDS_BOUND] = "bound", [IDS_GIVEN] = "given", [IDS_COLUMN] = "column"};

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "an edit is damaged: %s", what);
}

void st_add_free(st_edit_add *add)
{
    free(add->runs);
    free(add->fragment.content);
    add->runs = NULL;
    add->run_count = 0;
    add->fragment.content = NULL;
}

sluice_status st_add_copy(const st_edit_add *from, st_edit_add *ret_to, sluice_error *err)
{
    size_t bytes = from->fragment.content ? (size_t)from->fragment.bytes : 0;
    *ret_to = *from;
    ret_to->runs = calloc(from->run_count ? from->run_count : 1, sizeof(*from->runs));
    ret_to->fragment.content = bytes > 0 ? malloc(bytes) : NULL;
    if (!ret_to->runs || (bytes > 0 && !ret_to->fragment.content)) {
        st_add_free(ret_to);
        return pf_fail_memory(err);
    }
    if (from->run_count > 0)
        memcpy(ret_to->runs, from->runs, from->run_count * sizeof(*from->runs));
    if (bytes > 0)
        memcpy(ret_to->fragment.content, from->fragment.content, bytes);
    return SLUICE_OK;
}

void st_edit_free(st_edit *edit)
{
    for (uint32_t i = 0; i < edit->add_count; i++)
        st_add_free(&edit->adds[i]);
    free(edit->adds);
    free(edit->delete_rows);
    free(edit->out);
    *edit = (st_edit){0};
}

/* ---- writing ---- */

static void write_add(st_json *json, const st_edit_add *add)
{
    id_form form = add->fragment.explicit_ids ? IDS_COLUMN : add->first_row_given ? IDS_GIVEN : IDS_BOUND;
    st_json_object(json);
    st_fragment_info_write(json, &add->fragment);
    if (add->fragment.attached)
        st_put_bool(json, "attached", true);
    st_put_text(json, "ids", id_forms[form]);
    if (form == IDS_GIVEN)
        st_put_u64(json, "first", add->first_row);
    if (add->commit_given)
        st_put_id(json, "commit", &add->commit);
    st_runs_write(json, add->runs, add->run_count);
    st_index_write(json, &add->index);
    st_dead_write(json, "dead", &add->dead);
    st_json_object_end(json);
}

static void write_delete(st_json *json, const st_edit *edit)
{
    if (edit->delete_count == 0) {
        st_dead_write(json, "delete", &edit->deletes);
        return;
    }
    st_json_name(json, "delete");
    st_json_array(json);
    for (uint32_t i = 0; i < edit->delete_count; i++)
        st_json_u64(json, edit->delete_rows[i]);
    st_json_array_end(json);
}

static void write_substitute(st_json *json, const st_edit *edit)
{
    st_json_name(json, "substitute");
    if (edit->out_count == 0) {
        st_json_null(json);
        return;
    }
    st_json_array(json);
    for (uint32_t i = 0; i < edit->out_count; i++) {
        st_json_object(json);
        st_put_text(json, "fragment", edit->out[i].fragment);
        st_put_u64(json, "bytes", edit->out[i].bytes);
        st_dead_write(json, "applied", &edit->out[i].applied);
        if (edit->out[i].incoming > 0)
            st_put_number(json, "incoming", edit->out[i].incoming);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

void st_edit_write(st_json *json, const st_edit *edit)
{
    st_json_object(json);
    st_put_text(json, "format", "sluice-edit/1");
    st_put_u64(json, "table", edit->table);
    st_json_name(json, "add");
    st_json_array(json);
    for (uint32_t i = 0; i < edit->add_count; i++)
        write_add(json, &edit->adds[i]);
    st_json_array_end(json);
    write_delete(json, edit);
    write_substitute(json, edit);
    st_put_bool(json, "replace", edit->replace);
    st_json_object_end(json);
}

sluice_status st_edit_encode(const st_edit *edit, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_edit_write(&json, edit);
    return st_json_end(&json, true, err);
}

/* ---- reading ---- */

static sluice_status read_add(const cJSON *object, st_edit_add *add, sluice_error *err)
{
    uint32_t form = 0;
    PF_TRY(st_fragment_info_read(object, &add->fragment, err));
    if (st_json_field(object, "attached"))
        PF_TRY(st_json_get_bool(object, "attached", &add->fragment.attached, err));
    if (add->fragment.attached && add->fragment.bytes > ST_ATTACHED_EDIT_MAX)
        return damaged("an attached fragment of too many bytes", err);
    PF_TRY(st_take_word(object, "ids", id_forms, 3, &form, err));
    add->fragment.explicit_ids = form == IDS_COLUMN;
    add->first_row_given = form == IDS_GIVEN;
    if (add->first_row_given) {
        uint64_t end;
        PF_TRY(st_json_get_u64(object, "first", &add->first_row, err));
        if (add->first_row == 0 || !pf_add_u64(add->first_row, add->fragment.rows, &end))
            return damaged("row ids", err);
    }
    add->commit_given = st_json_field(object, "commit") != NULL;
    if (add->commit_given)
        PF_TRY(st_json_get_id(object, "commit", &add->commit, err));
    PF_TRY(st_runs_read(object, &add->runs, &add->run_count, err));
    PF_TRY(st_index_read(object, &add->index, err));
    PF_TRY(st_dead_read(object, "dead", &add->dead, err));
    return add->dead.rows <= add->fragment.rows ? SLUICE_OK : damaged("more rows left out than there are", err);
}

static sluice_status read_delete(const cJSON *object, st_edit *edit, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *rows = NULL;
    if (!cJSON_IsArray(st_json_field(object, "delete")))
        return st_dead_read(object, "delete", &edit->deletes, err);
    PF_TRY(st_take_list(object, "delete", sizeof(uint64_t), &list, &rows, err));
    edit->delete_rows = rows;
    cJSON_ArrayForEach(item, list)
    {
        uint64_t row;
        if (edit->delete_count == ST_LISTED_ROWS_MAX || !cJSON_IsString(item) ||
            !st_json_text_is_u64(item->valuestring, &row) ||
            (edit->delete_count > 0 && row <= edit->delete_rows[edit->delete_count - 1]))
            return damaged("deleted rows", err);
        edit->delete_rows[edit->delete_count++] = row;
    }
    return edit->delete_count > 0 ? SLUICE_OK : damaged("deleted rows", err);
}

static sluice_status read_substitute(const cJSON *object, st_edit *edit, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *out = NULL;
    PF_TRY(st_take_nullable(object, "substitute", &item, err));
    if (!item)
        return SLUICE_OK;
    PF_TRY(st_take_list(object, "substitute", sizeof(st_edit_out), &list, &out, err));
    edit->out = out;
    cJSON_ArrayForEach(item, list)
    {
        st_edit_out *leaving = &edit->out[edit->out_count++];
        PF_TRY(st_take_file(item, "fragment", leaving->fragment, sizeof(leaving->fragment), err));
        PF_TRY(st_json_get_u64(item, "bytes", &leaving->bytes, err));
        PF_TRY(st_dead_read(item, "applied", &leaving->applied, err));
        if (st_json_field(item, "incoming"))
            PF_TRY(st_take_small(item, "incoming", &leaving->incoming, err));
    }
    return edit->out_count > 0 ? SLUICE_OK : damaged("an empty substitution", err);
}

sluice_status st_edit_read(const cJSON *object, st_edit *edit, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *adds = NULL;
    PF_TRY(st_json_check_format(object, "sluice-edit/1", err));
    PF_TRY(st_json_get_u64(object, "table", &edit->table, err));
    PF_TRY(st_take_list(object, "add", sizeof(st_edit_add), &list, &adds, err));
    edit->adds = adds;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_add(item, &edit->adds[edit->add_count++], err));
    }
    PF_TRY(read_delete(object, edit, err));
    PF_TRY(read_substitute(object, edit, err));
    PF_TRY(st_json_get_bool(object, "replace", &edit->replace, err));
    if (edit->table < ST_FIRST_TABLE || (edit->replace && edit->out_count > 0))
        return damaged("its table, or a substitution in a replacement", err);
    return SLUICE_OK;
}

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    return st_edit_read(document, value, err);
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    return st_edit_encode(value, buffer, err);
}

sluice_status st_edit_decode(const void *bytes, size_t length, st_edit *ret_edit, sluice_error *err)
{
    st_edit edit = {0};
    sluice_status status = st_document_decode(bytes, length, read_document, write_document, &edit, err);
    if (status == SLUICE_OK)
        *ret_edit = edit;
    else
        st_edit_free(&edit);
    return status;
}

/* ---- what an edit names ---- */

static sluice_status name_object(uint64_t table, const char *folder, const char *name, st_object_fn *each,
                                 void *context, sluice_error *err)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "tables/%llu/%s/%s", (unsigned long long)table, folder, name);
    return each(context, path, err);
}

sluice_status st_edit_objects(const st_edit *edit, st_object_fn *each, void *context, sluice_error *err)
{
    for (uint32_t i = 0; i < edit->add_count; i++) {
        const st_edit_add *add = &edit->adds[i];
        if (!add->fragment.attached)
            PF_TRY(name_object(edit->table, "fragments", add->fragment.name, each, context, err));
        for (uint32_t r = 0; r < add->run_count; r++)
            PF_TRY(name_object(edit->table, "keys", add->runs[r].info.name, each, context, err));
        if (add->index.present) {
            PF_TRY(name_object(edit->table, "indexes", add->index.out.name, each, context, err));
            PF_TRY(name_object(edit->table, "indexes", add->index.in.name, each, context, err));
        }
        if (add->dead.present)
            PF_TRY(name_object(edit->table, "deletions", add->dead.name, each, context, err));
    }
    if (edit->deletes.present)
        PF_TRY(name_object(edit->table, "deletions", edit->deletes.name, each, context, err));
    for (uint32_t i = 0; i < edit->out_count; i++)
        if (edit->out[i].applied.present)
            PF_TRY(name_object(edit->table, "deletions", edit->out[i].applied.name, each, context, err));
    return SLUICE_OK;
}
