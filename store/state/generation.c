/*
 * Generation manifests (manifest.h, docs/format.md "Manifest"): what one record of a branch's log publishes.
 */
#include "platform/check.h"
#include "store/state/change.h"
#include "store/state/manifest.h"
#include "store/state/manifest_parts.h"
#include <stdlib.h>
#include <string.h>

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a generation's manifest is damaged: %s", what);
}

void st_commit_free(st_commit *commit)
{
    free(commit->message);
    free(commit->edits);
    free(commit->merged);
    commit->merged = NULL;
    commit->merged_count = 0;
    commit->message = NULL;
    commit->edits = NULL;
    commit->edit_count = 0;
}

bool st_generation_merges(const st_generation *generation)
{
    for (uint32_t i = 0; i < generation->commit_count; i++)
        if (generation->commits[i].merged_count > 0)
            return true;
    return false;
}

void st_generation_free(st_generation *generation)
{
    for (uint32_t i = 0; i < generation->commit_count; i++)
        st_commit_free(&generation->commits[i]);
    free(generation->commits);
    free(generation->pages);
    free(generation->skips);
    *generation = (st_generation){0};
}

/* ---- writing ---- */

static void write_commit_edit(st_json *json, const st_commit_edit *edit)
{
    st_json_object(json);
    st_put_u64(json, "table", edit->table);
    st_json_name(json, "attachment");
    if (edit->attached)
        st_json_unsigned(json, edit->attachment);
    else
        st_json_null(json);
    st_json_name(json, "file");
    if (edit->attached)
        st_json_null(json);
    else
        st_json_text(json, edit->file);
    st_put_sha256(json, "digest", &edit->digest);
    st_put_u64(json, "first", edit->first_row);
    st_put_u64(json, "rows", edit->rows);
    st_put_u64(json, "bytes", edit->bytes);
    st_json_object_end(json);
}

static void write_commit(st_json *json, const st_commit *commit)
{
    st_json_object(json);
    st_put_id(json, "id", &commit->id);
    st_put_id(json, "operation", &commit->operation);
    st_put_sha256(json, "request", &commit->request);
    st_put_sha256(json, "delta", &commit->delta);
    st_put_text(json, "kind", commit->kind);
    st_put_text(json, "actor", commit->actor);
    st_json_name(json, "message");
    if (commit->message)
        st_json_text(json, commit->message);
    else
        st_json_null(json);
    st_put_time(json, "minted", commit->minted_us);
    st_put_time(json, "time", commit->time_us);
    st_put_id(json, "parent", &commit->parents[0]);
    st_put_id(json, "merged", &commit->parents[1]);
    st_merged_write(json, commit);
    st_put_id(json, "epoch", &commit->epoch);
    st_put_u64(json, "inserted", commit->inserted);
    st_put_u64(json, "updated", commit->updated);
    st_put_u64(json, "deleted", commit->deleted);
    if (commit->rejected > 0)
        st_put_u64(json, "rejected", commit->rejected);
    st_json_name(json, "edits");
    st_json_array(json);
    for (uint32_t i = 0; i < commit->edit_count; i++)
        write_commit_edit(json, &commit->edits[i]);
    st_json_array_end(json);
    st_put_number(json, "changes", commit->changes_attachment);
    st_json_object_end(json);
}

sluice_status st_manifest_encode(const st_generation *generation, const st_attachments *attachments, pf_buffer *buffer,
                                 sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_put_text(&json, "format", "sluice-generation/1");
    st_put_u64(&json, "incarnation", generation->incarnation);
    st_put_u64(&json, "number", generation->number);
    st_put_sha256(&json, "schema", &generation->schema_identity);
    st_put_id(&json, "head", &generation->head);
    st_put_time(&json, "time", generation->head_time_us);
    st_put_u64(&json, "row_block", generation->row_block);
    st_put_u64(&json, "next_row", generation->next_row);
    st_json_name(&json, "commits");
    st_json_array(&json);
    for (uint32_t i = 0; i < generation->commit_count; i++)
        write_commit(&json, &generation->commits[i]);
    st_json_array_end(&json);
    st_pages_write(&json, generation->pages, NULL, generation->page_count);
    st_skips_write(&json, generation->skips, generation->skip_count);
    st_put_u64(&json, "merge", generation->merge);
    st_attachments_write(&json, attachments);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

/* ---- reading ---- */

static sluice_status read_commit_edit(const cJSON *object, st_commit_edit *edit, sluice_error *err)
{
    const cJSON *attachment = NULL;
    PF_TRY(st_json_get_u64(object, "table", &edit->table, err));
    PF_TRY(st_take_nullable(object, "attachment", &attachment, err));
    edit->attached = attachment != NULL;
    if (edit->attached)
        PF_TRY(st_take_small(object, "attachment", &edit->attachment, err));
    else
        PF_TRY(st_take_file(object, "file", edit->file, sizeof(edit->file), err));
    PF_TRY(st_json_get_sha256(object, "digest", &edit->digest, err));
    PF_TRY(st_json_get_u64(object, "first", &edit->first_row, err));
    PF_TRY(st_json_get_u64(object, "rows", &edit->rows, err));
    PF_TRY(st_json_get_u64(object, "bytes", &edit->bytes, err));
    return edit->table >= ST_FIRST_TABLE ? SLUICE_OK : damaged("an edit without a table", err);
}

static sluice_status read_message(const cJSON *object, st_commit *commit, sluice_error *err)
{
    const cJSON *item = NULL;
    const char *text = NULL;
    PF_TRY(st_take_nullable(object, "message", &item, err));
    if (!item)
        return SLUICE_OK;
    PF_TRY(st_json_get_text(object, "message", &text, err));
    if (strlen(text) > ST_MESSAGE_MAX)
        return damaged("a message is too long", err);
    commit->message = strdup(text);
    return commit->message ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status read_commit(const cJSON *object, st_commit *commit, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *edits = NULL;
    PF_TRY(st_json_get_id(object, "id", &commit->id, err));
    PF_TRY(st_take_id(object, "operation", &commit->operation, err));
    PF_TRY(st_json_get_sha256(object, "request", &commit->request, err));
    PF_TRY(st_json_get_sha256(object, "delta", &commit->delta, err));
    PF_TRY(st_take_text(object, "kind", commit->kind, sizeof(commit->kind), err));
    PF_TRY(st_take_text(object, "actor", commit->actor, sizeof(commit->actor), err));
    PF_TRY(read_message(object, commit, err));
    PF_TRY(st_take_time(object, "minted", &commit->minted_us, err));
    PF_TRY(st_take_time(object, "time", &commit->time_us, err));
    PF_TRY(st_take_id(object, "parent", &commit->parents[0], err));
    PF_TRY(st_take_id(object, "merged", &commit->parents[1], err));
    PF_TRY(st_merged_read(object, commit, err));
    PF_TRY(st_take_id(object, "epoch", &commit->epoch, err));
    PF_TRY(st_json_get_u64(object, "inserted", &commit->inserted, err));
    PF_TRY(st_json_get_u64(object, "updated", &commit->updated, err));
    PF_TRY(st_json_get_u64(object, "deleted", &commit->deleted, err));
    PF_TRY(st_take_rejected(object, &commit->rejected, err));
    PF_TRY(st_take_list(object, "edits", sizeof(st_commit_edit), &list, &edits, err));
    commit->edits = edits;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_commit_edit(item, &commit->edits[commit->edit_count++], err));
    }
    PF_TRY(st_take_small(object, "changes", &commit->changes_attachment, err));
    return pf_id_is_nil(&commit->id) ? damaged("a commit without an id", err) : SLUICE_OK;
}

/* Members of a group follow each other: parents, times, and the head is the last one. */
static sluice_status check_members(const st_generation *generation, sluice_error *err)
{
    for (uint32_t i = 0; i < generation->commit_count; i++) {
        const st_commit *commit = &generation->commits[i], *before = i > 0 ? commit - 1 : NULL;
        if (commit->time_us < commit->minted_us)
            return damaged("a commit before it was minted", err);
        if (before && (!pf_id_equal(&commit->parents[0], &before->id) || commit->time_us < before->time_us))
            return damaged("a member of a group does not follow the one before", err);
    }
    const st_commit *last = generation->commit_count > 0 ? &generation->commits[generation->commit_count - 1] : NULL;
    if (last && (!pf_id_equal(&generation->head, &last->id) || generation->head_time_us != last->time_us))
        return damaged("its head is not its last commit", err);
    return SLUICE_OK;
}

typedef struct manifest_parts { /* what one document gives */
    st_generation *generation;
    st_attachments *attachments;
    bool compact; /* what a lineage kept: neither pages nor skip pointers nor attachments */
} manifest_parts;

static sluice_status read_no_skips(const cJSON *document, sluice_error *err)
{
    const cJSON *list = NULL;
    PF_TRY(st_json_get_array(document, "skips", &list, err));
    return cJSON_GetArraySize(list) == 0 ? SLUICE_OK : damaged("a collected generation has skip pointers", err);
}

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *commits = NULL;
    st_generation *generation = ((manifest_parts *)value)->generation;
    PF_TRY(st_json_check_format(document, "sluice-generation/1", err));
    PF_TRY(st_json_get_u64(document, "incarnation", &generation->incarnation, err));
    PF_TRY(st_json_get_u64(document, "number", &generation->number, err));
    PF_TRY(st_json_get_sha256(document, "schema", &generation->schema_identity, err));
    PF_TRY(st_json_get_id(document, "head", &generation->head, err));
    PF_TRY(st_take_time(document, "time", &generation->head_time_us, err));
    PF_TRY(st_json_get_u64(document, "row_block", &generation->row_block, err));
    PF_TRY(st_json_get_u64(document, "next_row", &generation->next_row, err));
    PF_TRY(st_take_list(document, "commits", sizeof(st_commit), &list, &commits, err));
    generation->commits = commits;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_commit(item, &generation->commits[generation->commit_count++], err));
    }
    PF_TRY(check_members(generation, err));
    PF_TRY(st_pages_read(document, &generation->pages, NULL, &generation->page_count, err));
    if (((manifest_parts *)value)->compact)
        PF_TRY(read_no_skips(document, err));
    else
        PF_TRY(st_skips_read(document, generation->number, &generation->skips, &generation->skip_count, err));
    PF_TRY(st_json_get_u64(document, "merge", &generation->merge, err));
    if (generation->merge >= generation->number && generation->merge > 0)
        return damaged("a merge that is not before it", err);
    return st_attachments_read(document, ((manifest_parts *)value)->attachments, err);
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    return st_manifest_encode(((const manifest_parts *)value)->generation, ((const manifest_parts *)value)->attachments,
                              buffer, err);
}

sluice_status st_manifest_decode(const st_record *record, st_generation *ret_generation,
                                 st_attachments *ret_attachments, sluice_error *err)
{
    st_generation generation = {0};
    st_attachments attachments = {0};
    manifest_parts parts = {&generation, &attachments, record->collected};
    sluice_status status = SLUICE_OK;
    if (record->kind != ST_RECORD_GENERATION)
        return damaged("it belongs to an opening record", err);
    PF_GOTO(status, failed,
            st_document_decode(record->manifest, record->manifest_length, read_document, write_document, &parts, err));
    if (generation.number != record->number) {
        status = damaged("its number is not the record's", err);
        goto failed;
    }
    *ret_generation = generation;
    *ret_attachments = attachments;
    return SLUICE_OK;
failed:
    st_generation_free(&generation);
    st_attachments_free(&attachments);
    return status;
}

sluice_status st_generation_compact(void *context, const st_record *record, pf_buffer *ret_manifest, sluice_error *err)
{
    st_generation generation = {0};
    const st_attachments none = {0};
    (void)context;
    PF_TRY(st_generation_decode(record, &generation, err));
    generation.page_count = 0;
    generation.skip_count = 0;
    for (uint32_t i = 0; i < generation.commit_count; i++)
        generation.commits[i].changes_attachment = 0;
    sluice_status status = st_manifest_encode(&generation, &none, ret_manifest, err);
    st_generation_free(&generation);
    return status;
}

sluice_status st_generation_decode(const st_record *record, st_generation *ret_generation, sluice_error *err)
{
    st_attachments attachments = {0};
    PF_TRY(st_manifest_decode(record, ret_generation, &attachments, err));
    st_attachments_free(&attachments);
    return SLUICE_OK;
}

sluice_status st_generation_read(st_log *log, uint64_t number, st_record *ret_record, st_generation *ret_generation,
                                 sluice_error *err)
{
    PF_TRY(st_log_read_lineage(log, number, ret_record, err));
    return st_generation_decode(ret_record, ret_generation, err);
}

static sluice_status time_of(st_log *log, uint64_t number, int64_t *ret_us, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status = st_generation_read(log, number, &record, &generation, err);
    *ret_us = generation.head_time_us;
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

sluice_status st_generation_since(st_log *log, uint64_t first, uint64_t last, int64_t us, uint64_t *ret_number,
                                  sluice_error *err)
{
    uint64_t low = first, high = last + 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int64_t time = 0;
        PF_TRY(time_of(log, middle, &time, err));
        if (time < us)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_number = low;
    return SLUICE_OK;
}
