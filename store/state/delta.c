/*
 * Deltas (state.h): what a write contributes, made once in Prepare. Encoded for intents and digested; slots that G
 * binds (parents[0], time, ids of rows, pages) are no part of it, nor are the folds that ride along.
 */
#include "platform/check.h"
#include "platform/clock.h"
#include "store/state/build.h"
#include "store/state/fold.h"
#include "store/state/manifest_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void st_delta_free(st_delta *delta)
{
    st_commit_free(&delta->commit);
    for (uint32_t i = 0; i < delta->edit_count; i++)
        st_edit_free(&delta->edits[i].edit);
    free(delta->edits);
    st_changes_free(&delta->changes);
    for (uint32_t i = 0; i < delta->fold_count; i++)
        st_fold_free(&delta->folds[i]);
    free(delta->folds);
    *delta = (st_delta){0};
}

bool st_delta_changes_schema(const st_delta *delta)
{
    static const pf_sha256 none;
    return !pf_sha256_equal(&delta->new_schema, &none);
}

static sluice_status get_edit(void *context, uint32_t at, const st_edit **ret_edit, sluice_error *err)
{
    const st_delta *delta = context;
    (void)err;
    *ret_edit = &delta->edits[at].edit;
    return SLUICE_OK;
}

st_edit_source st_delta_edits(const st_delta *delta)
{
    union { /* the callback's context is not const; get_edit does not change it */
        const st_delta *from;
        void *context;
    } delta_ = {.from = delta};
    return (st_edit_source){.context = delta_.context, .count = delta->edit_count, .get = get_edit};
}

/* ---- writing ---- */

static void write_edit(st_json *json, const struct st_delta_edit *edit)
{
    st_json_object(json);
    st_json_name(json, "edit");
    st_edit_write(json, &edit->edit);
    st_json_name(json, "file");
    if (edit->staged)
        st_json_text(json, edit->file);
    else
        st_json_null(json);
    st_put_sha256(json, "digest", &edit->digest);
    st_json_object_end(json);
}

sluice_status st_delta_encode(const st_delta *delta, pf_buffer *buffer, sluice_error *err)
{
    const st_commit *commit = &delta->commit;
    st_edit_source edits = st_delta_edits(delta);
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_put_text(&json, "format", "sluice-delta/1");
    st_put_id(&json, "id", &commit->id);
    st_put_id(&json, "operation", &commit->operation);
    st_put_sha256(&json, "request", &commit->request);
    st_put_text(&json, "kind", commit->kind);
    st_put_text(&json, "actor", commit->actor);
    st_json_name(&json, "message");
    if (commit->message)
        st_json_text(&json, commit->message);
    else
        st_json_null(&json);
    st_put_time(&json, "minted", commit->minted_us);
    st_put_id(&json, "merged", &commit->parents[1]);
    st_merged_write(&json, commit);
    st_put_id(&json, "epoch", &commit->epoch);
    st_put_u64(&json, "inserted", commit->inserted);
    st_put_u64(&json, "updated", commit->updated);
    st_put_u64(&json, "deleted", commit->deleted);
    if (commit->rejected > 0)
        st_put_u64(&json, "rejected", commit->rejected);
    st_put_sha256(&json, "schema", &delta->schema_identity);
    if (st_delta_changes_schema(delta))
        st_put_sha256(&json, "new_schema", &delta->new_schema);
    st_json_name(&json, "edits");
    st_json_array(&json);
    for (uint32_t i = 0; i < delta->edit_count; i++)
        write_edit(&json, &delta->edits[i]);
    st_json_array_end(&json);
    st_json_name(&json, "changes");
    PF_TRY(st_changes_write(&json, &delta->changes, &edits, err));
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

pf_sha256 st_delta_digest(const st_delta *delta)
{
    pf_buffer bytes = {0};
    pf_sha256 digest;
    if (st_delta_encode(delta, &bytes, NULL) == SLUICE_OK)
        digest = pf_sha256_of(bytes.data, bytes.length);
    else
        pf_random_bytes(digest.bytes, sizeof(digest.bytes)); /* equals no other: the write is refused, not confused */
    pf_buffer_free(&bytes);
    return digest;
}

/* ---- reading ---- */

static sluice_status check_digest(const struct st_delta_edit *edit, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = st_edit_encode(&edit->edit, &bytes, err);
    if (status == SLUICE_OK) {
        pf_sha256 digest = pf_sha256_of(bytes.data, bytes.length);
        if (!pf_sha256_equal(&digest, &edit->digest))
            status = pf_fail(err, SLUICE_CORRUPT, "a delta is damaged: an edit has another digest");
    }
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status read_edit(const cJSON *object, struct st_delta_edit *edit, sluice_error *err)
{
    const cJSON *inner = NULL, *file = NULL;
    PF_TRY(st_json_get_object(object, "edit", &inner, err));
    PF_TRY(st_edit_read(inner, &edit->edit, err));
    PF_TRY(st_take_nullable(object, "file", &file, err));
    edit->staged = file != NULL;
    if (edit->staged)
        PF_TRY(st_take_file(object, "file", edit->file, sizeof(edit->file), err));
    PF_TRY(st_json_get_sha256(object, "digest", &edit->digest, err));
    return check_digest(edit, err);
}

static sluice_status read_commit(const cJSON *document, st_commit *commit, sluice_error *err)
{
    const cJSON *message = NULL;
    const char *text = NULL;
    PF_TRY(st_json_get_id(document, "id", &commit->id, err));
    PF_TRY(st_take_id(document, "operation", &commit->operation, err));
    PF_TRY(st_json_get_sha256(document, "request", &commit->request, err));
    PF_TRY(st_take_text(document, "kind", commit->kind, sizeof(commit->kind), err));
    PF_TRY(st_take_text(document, "actor", commit->actor, sizeof(commit->actor), err));
    PF_TRY(st_take_nullable(document, "message", &message, err));
    if (message) {
        PF_TRY(st_json_get_text(document, "message", &text, err));
        commit->message = strdup(text);
        if (!commit->message)
            return pf_fail_memory(err);
    }
    PF_TRY(st_take_time(document, "minted", &commit->minted_us, err));
    PF_TRY(st_take_id(document, "merged", &commit->parents[1], err));
    PF_TRY(st_merged_read(document, commit, err));
    PF_TRY(st_take_id(document, "epoch", &commit->epoch, err));
    PF_TRY(st_json_get_u64(document, "inserted", &commit->inserted, err));
    PF_TRY(st_json_get_u64(document, "updated", &commit->updated, err));
    PF_TRY(st_json_get_u64(document, "deleted", &commit->deleted, err));
    return st_take_rejected(document, &commit->rejected, err);
}

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    st_delta *delta = value;
    const cJSON *list = NULL, *item = NULL, *changes = NULL;
    void *edits = NULL;
    PF_TRY(st_json_check_format(document, "sluice-delta/1", err));
    PF_TRY(read_commit(document, &delta->commit, err));
    PF_TRY(st_json_get_sha256(document, "schema", &delta->schema_identity, err));
    if (st_json_field(document, "new_schema"))
        PF_TRY(st_json_get_sha256(document, "new_schema", &delta->new_schema, err));
    PF_TRY(st_take_list(document, "edits", sizeof(*delta->edits), &list, &edits, err));
    delta->edits = edits;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_edit(item, &delta->edits[delta->edit_count++], err));
    }
    PF_TRY(st_json_get_object(document, "changes", &changes, err));
    st_edit_source source = st_delta_edits(delta);
    return st_changes_read(changes, &source, &delta->changes, err);
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    return st_delta_encode(value, buffer, err);
}

sluice_status st_delta_decode(const void *bytes, size_t length, st_delta *ret_delta, sluice_error *err)
{
    st_delta delta = {0};
    sluice_status status = st_document_decode(bytes, length, read_document, write_document, &delta, err);
    if (status == SLUICE_OK)
        *ret_delta = delta;
    else
        st_delta_free(&delta);
    return status;
}

/* ---- making ---- */

static sluice_status check_edit(const st_edit *edit, sluice_error *err)
{
    for (uint32_t i = 0; i < edit->add_count; i++)
        if (edit->adds[i].fragment.rows == 0)
            return pf_fail(err, SLUICE_INTERNAL, "an edit adds a fragment without rows");
    if (edit->add_count == 0 && edit->out_count == 0 && !edit->deletes.present && edit->delete_count == 0 &&
        !edit->replace)
        return pf_fail(err, SLUICE_INTERNAL, "an edit that does nothing");
    return SLUICE_OK;
}

static bool has_attached(const st_edit *edit)
{
    for (uint32_t i = 0; i < edit->add_count; i++)
        if (edit->adds[i].fragment.attached)
            return true;
    return false;
}

static sluice_status stage_edit(pf_volume *volume, struct st_delta_edit *edit, const pf_buffer *bytes, const char *stem,
                                sluice_error *err)
{
    char folder[64];
    int length = snprintf(edit->file, sizeof(edit->file), "%s-e.json", stem);
    if (length < 0 || (size_t)length >= sizeof(edit->file))
        return pf_fail(err, SLUICE_INTERNAL, "the name of a staged edit is too long");
    PF_TRY(st_list_file_write(volume, edit->edit.table, edit->file, bytes, err));
    (void)snprintf(folder, sizeof(folder), "tables/%llu/lists", (unsigned long long)edit->edit.table);
    PF_TRY(pf_sync_dir(volume, folder, err));
    edit->staged = true;
    return SLUICE_OK;
}

sluice_status st_delta_add_edit(pf_volume *volume, st_delta *delta, st_edit *edit, const char *stem, sluice_error *err)
{
    struct st_delta_edit made = {.edit = *edit};
    pf_buffer bytes = {0};
    sluice_status status;
    *edit = (st_edit){0};
    struct st_delta_edit *edits = realloc(delta->edits, ((size_t)delta->edit_count + 1) * sizeof(*edits));
    if (!edits) {
        status = pf_fail_memory(err);
        goto done;
    }
    delta->edits = edits;
    PF_GOTO(status, done, check_edit(&made.edit, err));
    PF_GOTO(status, done, st_edit_encode(&made.edit, &bytes, err));
    made.digest = pf_sha256_of(bytes.data, bytes.length);
    if (bytes.length > ST_ATTACHED_EDIT_MAX && has_attached(&made.edit)) {
        status = pf_fail(err, SLUICE_INTERNAL, "a large edit with attached fragments");
        goto done;
    }
    if (bytes.length > ST_ATTACHED_EDIT_MAX)
        PF_GOTO(status, done, stage_edit(volume, &made, &bytes, stem, err));
    delta->edits[delta->edit_count++] = made;
    made = (struct st_delta_edit){0};
done:
    st_edit_free(&made.edit);
    pf_buffer_free(&bytes);
    return status;
}

/* Rows of one edit that have no ids yet. */
bool st_edit_rows_to_number(const st_edit *edit, uint64_t *ret_rows)
{
    *ret_rows = 0;
    for (uint32_t i = 0; i < edit->add_count && edit->out_count == 0; i++) {
        const st_edit_add *add = &edit->adds[i];
        if (!add->fragment.explicit_ids && !add->first_row_given &&
            !pf_add_u64(*ret_rows, add->fragment.rows, ret_rows))
            return false;
    }
    return true;
}

sluice_status st_delta_rows(st_delta *const *deltas, uint32_t count, uint64_t *ret_rows, sluice_error *err)
{
    bool fits = true;
    *ret_rows = 0;
    for (uint32_t d = 0; d < count; d++) {
        for (uint32_t i = 0; i < deltas[d]->edit_count; i++) {
            uint64_t rows;
            fits = fits && st_edit_rows_to_number(&deltas[d]->edits[i].edit, &rows) &&
                   pf_add_u64(*ret_rows, rows, ret_rows);
        }
    }
    return fits && *ret_rows <= ST_ROW_BLOCK
               ? SLUICE_OK
               : pf_fail(err, SLUICE_RESOURCE_LIMIT, "a write of more rows than a block has ids");
}

sluice_status st_generation_needs_block(const st_view *head, st_delta *const *deltas, uint32_t count, bool *ret_needs,
                                        sluice_error *err)
{
    uint64_t rows = 0, last, end;
    PF_TRY(st_delta_rows(deltas, count, &rows, err));
    if (!pf_add_u64(head->row_block, ST_ROW_BLOCK, &end) || !pf_add_u64(head->next_row, rows, &last))
        *ret_needs = rows > 0;
    else
        *ret_needs = rows > 0 && last > end;
    return SLUICE_OK;
}
