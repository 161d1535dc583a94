/*
 * Receipts: the commits themselves. A look-up goes through the records of the active segment, newest first, then
 * the table that its opening record carries of the segments before: so it costs the same however long the history is.
 */
#include "platform/check.h"
#include "store/state/commit_edit.h"
#include "store/state/manifest.h"
#include <stdlib.h>
#include <string.h>

static st_receipt receipt_of(const st_generation *generation, uint32_t index)
{
    const st_commit *commit = &generation->commits[index];
    return (st_receipt){.operation = commit->operation,
                        .commit = commit->id,
                        .request = commit->request,
                        .incarnation = generation->incarnation,
                        .generation = generation->number,
                        .index = index,
                        .time_us = commit->time_us};
}

sluice_status st_opening_read(st_log *log, st_opening *ret_opening, st_receipt_table *ret_table, sluice_error *err)
{
    st_record record = {0};
    st_attachments attachments = {0};
    const void *bytes = NULL;
    size_t length = 0;
    sluice_status status;
    PF_GOTO(status, done, st_log_read_opening(log, &record, err));
    PF_GOTO(status, done, st_opening_decode(&record, ret_opening, &attachments, err));
    if (ret_table) {
        PF_GOTO(status, done, st_attachment_get(&record, &attachments, ret_opening->receipts, &bytes, &length, err));
        PF_GOTO(status, done, st_receipts_decode(bytes, length, ret_table, err));
    }
done:
    if (status != SLUICE_OK)
        st_opening_free(ret_opening);
    st_attachments_free(&attachments);
    st_record_free(&record);
    return status;
}

static sluice_status collect(const st_generation *generation, st_receipt_table *table, sluice_error *err)
{
    for (uint32_t i = 0; i < generation->commit_count; i++) {
        st_receipt receipt = receipt_of(generation, i);
        if (!pf_id_is_nil(&receipt.operation))
            PF_TRY(st_receipts_add(table, &receipt, err));
    }
    return SLUICE_OK;
}

sluice_status st_receipts_collect(st_graph *graph, st_log *log, uint64_t from, uint64_t until, st_receipt_table *table,
                                  sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t number = from; number < until && status == SLUICE_OK;) {
        st_record record = {0};
        st_generation generation = {0};
        const st_generation *kept = st_record_kept(graph, log, ++number);
        if (kept) {
            status = collect(kept, table, err);
            continue;
        }
        status = st_log_read(log, number, &record, err);
        if (status == SLUICE_OK)
            status = st_generation_decode(&record, &generation, err);
        if (status == SLUICE_OK)
            status = collect(&generation, table, err);
        st_generation_free(&generation);
        st_record_free(&record);
    }
    return status;
}

/* Looks in one record. Decodes it only when the operation's text occurs in it. */
static sluice_status look_in_record(st_log *log, uint64_t number, const pf_id *operation, bool *ret_found,
                                    st_receipt *ret_receipt, sluice_error *err)
{
    char text[PF_ID_TEXT];
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status = st_log_read(log, number, &record, err);
    pf_id_text(operation, text);
    if (status == SLUICE_OK && memmem(record.manifest, record.manifest_length, text, PF_ID_TEXT - 1)) {
        status = st_generation_decode(&record, &generation, err);
        for (uint32_t i = 0; i < generation.commit_count; i++) {
            if (pf_id_equal(&generation.commits[i].operation, operation)) {
                *ret_found = true;
                *ret_receipt = receipt_of(&generation, i);
            }
        }
    }
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

sluice_status st_receipt_find(st_graph *graph, st_log *log, const pf_id *operation, bool *ret_found,
                              st_receipt *ret_receipt, sluice_error *err)
{
    st_receipt_table table = {0};
    st_opening opening = {0};
    sluice_status status = SLUICE_OK;
    (void)graph;
    *ret_found = false;
    *ret_receipt = (st_receipt){0};
    if (pf_id_is_nil(operation))
        return SLUICE_OK;
    PF_TRY(st_opening_read(log, &opening, &table, err));
    for (uint64_t number = st_log_end(log).number; number > opening.number && status == SLUICE_OK && !*ret_found;
         number--)
        status = look_in_record(log, number, operation, ret_found, ret_receipt, err);
    for (uint32_t i = 0; i < table.count && status == SLUICE_OK && !*ret_found; i++) {
        if (pf_id_equal(&table.items[i].operation, operation)) {
            *ret_found = true;
            *ret_receipt = table.items[i];
        }
    }
    if (status == SLUICE_OK && !*ret_found && table.floor_us != INT64_MIN && pf_id_has_time(operation))
        ret_receipt->expired = pf_id_time_ms(operation) <= table.floor_us / 1000;
    st_opening_free(&opening);
    st_receipts_free(&table);
    return status;
}
