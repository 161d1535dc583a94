/*
 * Opening records (manifest.h, docs/format.md "Opening record"): the state that a segment continues, whole, with the
 * table of receipts; so that older segments are needed for nothing that is read every day, and can go.
 *
 * State pages keep the addresses under which generations know them; the opening record says where it repeats each. A
 * new branch's first opening record is where its pages are, so it gives them addresses of its own: (branch, continued
 * number).
 */
#include "platform/check.h"
#include "store/state/manifest_parts.h"
#include "store/state/page.h"
#include <stdlib.h>
#include <string.h>

void st_opening_free(st_opening *opening)
{
    free(opening->pages);
    free(opening->places);
    free(opening->skips);
    *opening = (st_opening){0};
}

/* ---- the document ---- */

static void write_fork(st_json *json, const st_fork *fork)
{
    st_json_name(json, "fork");
    if (fork->incarnation == 0) {
        st_json_null(json);
        return;
    }
    st_json_object(json);
    st_put_u64(json, "incarnation", fork->incarnation);
    st_put_u64(json, "generation", fork->generation);
    st_put_number(json, "index", fork->index);
    st_json_object_end(json);
}

sluice_status st_opening_encode(const st_opening *opening, const st_attachments *attachments, pf_buffer *buffer,
                                sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_put_text(&json, "format", "sluice-opening-state/1");
    st_put_u64(&json, "incarnation", opening->incarnation);
    st_put_u64(&json, "number", opening->number);
    st_put_number(&json, "index", opening->index);
    st_put_sha256(&json, "schema", &opening->schema_identity);
    st_put_id(&json, "head", &opening->head);
    st_put_time(&json, "time", opening->head_time_us);
    st_put_u64(&json, "row_block", opening->row_block);
    st_put_u64(&json, "next_row", opening->next_row);
    write_fork(&json, &opening->fork);
    st_pages_write(&json, opening->pages, opening->places, opening->page_count);
    st_skips_write(&json, opening->skips, opening->skip_count);
    st_put_u64(&json, "merge", opening->merge);
    st_put_number(&json, "receipts", opening->receipts);
    st_attachments_write(&json, attachments);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

typedef struct manifest_parts {
    st_opening *opening;
    st_attachments *attachments;
} manifest_parts;

static sluice_status read_fork(const cJSON *document, st_fork *fork, sluice_error *err)
{
    const cJSON *item = NULL;
    PF_TRY(st_take_nullable(document, "fork", &item, err));
    if (!item)
        return SLUICE_OK;
    PF_TRY(st_json_get_u64(item, "incarnation", &fork->incarnation, err));
    PF_TRY(st_json_get_u64(item, "generation", &fork->generation, err));
    return st_take_small(item, "index", &fork->index, err);
}

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    st_opening *opening = ((manifest_parts *)value)->opening;
    PF_TRY(st_json_check_format(document, "sluice-opening-state/1", err));
    PF_TRY(st_json_get_u64(document, "incarnation", &opening->incarnation, err));
    PF_TRY(st_json_get_u64(document, "number", &opening->number, err));
    PF_TRY(st_take_small(document, "index", &opening->index, err));
    PF_TRY(st_json_get_sha256(document, "schema", &opening->schema_identity, err));
    PF_TRY(st_take_id(document, "head", &opening->head, err));
    PF_TRY(st_take_time(document, "time", &opening->head_time_us, err));
    PF_TRY(st_json_get_u64(document, "row_block", &opening->row_block, err));
    PF_TRY(st_json_get_u64(document, "next_row", &opening->next_row, err));
    PF_TRY(read_fork(document, &opening->fork, err));
    PF_TRY(st_pages_read(document, &opening->pages, &opening->places, &opening->page_count, err));
    PF_TRY(st_skips_read(document, opening->number, &opening->skips, &opening->skip_count, err));
    PF_TRY(st_json_get_u64(document, "merge", &opening->merge, err));
    PF_TRY(st_take_small(document, "receipts", &opening->receipts, err));
    return st_attachments_read(document, ((manifest_parts *)value)->attachments, err);
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    return st_opening_encode(((const manifest_parts *)value)->opening, ((const manifest_parts *)value)->attachments,
                             buffer, err);
}

sluice_status st_opening_decode(const st_record *record, st_opening *ret_opening, st_attachments *ret_attachments,
                                sluice_error *err)
{
    st_opening opening = {0};
    st_attachments attachments = {0};
    manifest_parts parts = {&opening, &attachments};
    sluice_status status;
    if (record->kind != ST_RECORD_OPENING)
        return pf_fail(err, SLUICE_CORRUPT, "record %llu is no opening record", (unsigned long long)record->number);
    status = st_document_decode(record->manifest, record->manifest_length, read_document, write_document, &parts, err);
    if (status == SLUICE_OK && opening.number != record->number)
        status = pf_fail(err, SLUICE_CORRUPT, "an opening record says that it continues another generation");
    if (status == SLUICE_OK) {
        *ret_opening = opening;
        *ret_attachments = attachments;
        return SLUICE_OK;
    }
    st_opening_free(&opening);
    st_attachments_free(&attachments);
    return status;
}

/* ---- building ---- */

typedef struct opening_build {
    st_opening opening;
    st_attachments attachments;
    pf_buffer *bytes; /* of the attachments */
    pf_buffer page;
} opening_build;

static void build_free(opening_build *build)
{
    st_opening_free(&build->opening);
    st_attachments_free(&build->attachments);
    pf_buffer_free(&build->page);
}

static sluice_status add_page(opening_build *build, const st_state_page *page, sluice_error *err)
{
    st_opening *opening = &build->opening;
    opening->pages[opening->page_count] = *page;
    PF_TRY(st_attach(&build->attachments, build->bytes, build->page.data, build->page.length,
                     &opening->places[opening->page_count], err));
    opening->page_count++;
    return SLUICE_OK;
}

/* The pages as the generation has them; they encode to the bytes that they were read from. */
static sluice_status repeat_pages(opening_build *build, const st_view *view, sluice_error *err)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < view->page_count; i++) {
        const st_state_page *page = &view->pages[i];
        uint32_t taken = 0;
        PF_ASSERT(first + page->entries <= view->table_count);
        build->page.length = 0;
        PF_TRY(st_state_page_encode(view->tables + first, page->entries, &build->page, &taken, err));
        pf_sha256 digest = pf_sha256_of(build->page.data, build->page.length);
        if (taken != page->entries || !pf_sha256_equal(&digest, &page->digest))
            return pf_fail(err, SLUICE_INTERNAL, "a state page changed in memory");
        PF_TRY(add_page(build, page, err));
        first += taken;
    }
    return SLUICE_OK;
}

/* Fresh pages, addressed by the record that is being built. */
static sluice_status make_pages(opening_build *build, const st_view *view, sluice_error *err)
{
    for (uint32_t first = 0; first < view->table_count;) {
        uint32_t taken = 0;
        build->page.length = 0;
        PF_TRY(st_state_page_encode(view->tables + first, view->table_count - first, &build->page, &taken, err));
        st_state_page page = {.incarnation = build->opening.incarnation,
                              .generation = build->opening.number,
                              .attachment = build->attachments.count,
                              .entries = taken,
                              .digest = pf_sha256_of(build->page.data, build->page.length)};
        PF_TRY(add_page(build, &page, err));
        first += taken;
    }
    return SLUICE_OK;
}

static sluice_status attach_receipts(opening_build *build, const st_receipt_table *table, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = st_receipts_encode(table, &bytes, err);
    if (status == SLUICE_OK)
        status = st_attach(&build->attachments, build->bytes, bytes.data, bytes.length, &build->opening.receipts, err);
    pf_buffer_free(&bytes);
    return status;
}

/* What every opening record of a state says; pages and receipts come after. */
static sluice_status start(opening_build *build, const st_view *view, sluice_error *err)
{
    st_opening *opening = &build->opening;
    size_t most = view->table_count + 1;
    opening->number = view->generation;
    opening->index = view->index;
    opening->schema_identity = view->schema_identity;
    opening->head = view->head;
    opening->head_time_us = view->head_time_us;
    opening->pages = calloc(most, sizeof(*opening->pages));
    opening->places = calloc(most, sizeof(*opening->places));
    opening->skips = calloc(view->skip_count + 1, sizeof(*opening->skips));
    if (!opening->pages || !opening->places || !opening->skips)
        return pf_fail_memory(err);
    for (uint32_t k = 0; k < view->skip_count; k++)
        opening->skips[k] = view->skips[k];
    opening->skip_count = view->skip_count;
    opening->merge = view->merge;
    return SLUICE_OK;
}

sluice_status st_opening_build(st_graph *graph, st_log *log, const st_view *head, pf_buffer *ret_manifest,
                               pf_buffer *ret_attachments, sluice_error *err)
{
    opening_build build = {.bytes = ret_attachments};
    st_opening before = {0};
    st_receipt_table receipts = {0};
    sluice_status status;
    PF_ASSERT(head->page_count > 0 || head->table_count == 0);
    PF_GOTO(status, done, st_opening_read(log, &before, &receipts, err));
    PF_GOTO(status, done, start(&build, head, err));
    build.opening.incarnation = head->incarnation;
    build.opening.row_block = head->row_block;
    build.opening.next_row = head->next_row;
    build.opening.fork = before.fork;
    PF_GOTO(status, done, repeat_pages(&build, head, err));
    PF_GOTO(status, done, st_receipts_collect(graph, log, before.number, head->generation, &receipts, err));
    st_receipts_trim(&receipts, head->head_time_us);
    PF_GOTO(status, done, attach_receipts(&build, &receipts, err));
    PF_GOTO(status, done, st_opening_encode(&build.opening, &build.attachments, ret_manifest, err));
done:
    st_opening_free(&before);
    st_receipts_free(&receipts);
    build_free(&build);
    return status;
}

sluice_status st_opening_build_fork(st_graph *graph, const st_view *view, uint64_t incarnation, uint64_t row_block,
                                    pf_buffer *ret_manifest, pf_buffer *ret_attachments, sluice_error *err)
{
    opening_build build = {.bytes = ret_attachments};
    st_receipt_table none = {.floor_us = INT64_MIN};
    sluice_status status;
    (void)graph;
    PF_GOTO(status, done, start(&build, view, err));
    build.opening.incarnation = incarnation;
    build.opening.row_block = row_block;
    build.opening.next_row = row_block;
    build.opening.fork =
        (st_fork){.incarnation = view->incarnation, .generation = view->generation, .index = view->index};
    PF_GOTO(status, done, make_pages(&build, view, err));
    PF_GOTO(status, done, attach_receipts(&build, &none, err));
    PF_GOTO(status, done, st_opening_encode(&build.opening, &build.attachments, ret_manifest, err));
done:
    build_free(&build);
    return status;
}

sluice_status st_opening_build_first(pf_buffer *ret_manifest, pf_buffer *ret_attachments, sluice_error *err)
{
    opening_build build = {.bytes = ret_attachments, .opening = {.incarnation = ST_MAIN_INCARNATION}};
    st_receipt_table none = {.floor_us = INT64_MIN};
    sluice_status status = attach_receipts(&build, &none, err);
    if (status == SLUICE_OK)
        status = st_opening_encode(&build.opening, &build.attachments, ret_manifest, err);
    build_free(&build);
    return status;
}
