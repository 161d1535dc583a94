/*
 * Publishing a delta (coord/append.h).
 *
 * Lock rules: the caller holds the branch's publish lock; the reclaim lock is held shared from the look at the named
 * objects until the append is over, so that collection cannot move one in between. Crash rule: the append is the only
 * durable step; before it nothing stands, after it the chain says what happened.
 */
#include "coord/append.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct opening_context {
    st_graph *graph;
    st_log *log;
    const st_view *head;
} opening_context;

static sluice_status encode_opening(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    const opening_context *opening = context;
    return st_opening_build(opening->graph, opening->log, opening->head, manifest, attachments, err);
}

sluice_status co_make_reliable(st_graph *graph, st_log *log, sluice_error *err)
{
    sluice_error suspect_error = {0};
    PF_TRY(st_log_refresh(log, err));
    sluice_status status = st_log_check_suspect(log, &suspect_error);
    if (status == SLUICE_SUSPECT) {
        st_view *head = NULL;
        PF_TRY(st_view_load(graph, log, false, &head, err));
        opening_context context = {graph, log, head};
        st_opening_source opening = {&context, encode_opening};
        status = st_log_heal(log, &opening, err);
        st_view_free(head);
        PF_TRY(status);
    } else if (status != SLUICE_OK) {
        if (err)
            *err = suspect_error;
        return status;
    }
    return st_log_settle(log, err);
}

static sluice_status check_epoch(co_append *append, sluice_error *err)
{
    st_control control = {0};
    if (!append->epoch)
        return SLUICE_OK;
    PF_TRY(st_control_read(append->graph, &control, err));
    bool is_void = st_control_is_voided(&control, append->epoch);
    st_control_free(&control);
    return is_void ? pf_fail(err, SLUICE_FENCED, "this process's epoch was voided") : SLUICE_OK;
}

static sluice_status check_object(void *context, const char *path, sluice_error *err)
{
    co_append *append = context;
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(st_graph_volume(append->graph), path, &stat, &stat_error);
    if (status == SLUICE_NOT_FOUND || (status == SLUICE_OK && (stat.kind != PF_KIND_FILE || stat.size == 0))) {
        append->object_missing = true;
        return pf_fail(err, SLUICE_CORRUPT, "a staged object is gone: %s", path);
    }
    if (status != SLUICE_OK && err)
        *err = stat_error;
    return status;
}

static sluice_status check_objects(co_append *append, sluice_error *err)
{
    for (uint32_t i = 0; i < append->delta->edit_count; i++) {
        const struct st_delta_edit *edit = &append->delta->edits[i];
        PF_TRY(st_edit_objects(&edit->edit, check_object, append, err));
        if (edit->staged) {
            char path[160];
            (void)snprintf(path, sizeof path, "tables/%llu/lists/%s", (unsigned long long)edit->edit.table, edit->file);
            PF_TRY(check_object(append, path, err));
        }
    }
    return SLUICE_OK;
}

/* Rows that the delta adds and whose ids are bound to it now. False on overflow. */
static bool rows_to_number(const st_delta *delta, uint64_t *ret_rows)
{
    *ret_rows = 0;
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        const st_edit *edit = &delta->edits[i].edit;
        for (uint32_t k = 0; k < edit->add_count; k++)
            if (!edit->adds[k].fragment.explicit_ids && !pf_add_u64(*ret_rows, edit->adds[k].fragment.rows, ret_rows))
                return false;
    }
    return true;
}

static sluice_status check_rows(co_append *append, const st_view *head, sluice_error *err)
{
    uint64_t rows = 0, last = 0, block_end = head->row_block + ST_ROW_BLOCK;
    if (!rows_to_number(append->delta, &rows) || rows > ST_ROW_BLOCK)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a write of more rows than a block has ids");
    append->needs_block = append->row_block == 0 && (!pf_add_u64(head->next_row, rows, &last) || last > block_end);
    return SLUICE_OK;
}

static sluice_status build_and_append(co_append *append, const st_view *head, sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0};
    pf_sha256 digest;
    sluice_status status;
    st_delta *deltas[1] = {append->delta};
    opening_context context = {append->graph, append->log, head};
    st_opening_source opening = {&context, encode_opening};
    PF_GOTO(status, done,
            st_generation_build(append->graph, head, deltas, 1, append->row_block, &manifest, &attachments, err));
    pf_sha256 now = st_delta_digest(append->delta);
    if (!pf_sha256_equal(&now, append->digest)) {
        status = pf_fail(err, SLUICE_INTERNAL, "a delta changed after it was prepared");
        goto done;
    }
    append->generation = head->generation + 1;
    status = st_log_append(append->log, &manifest, &attachments, &opening, &append->outcome, &digest, err);
done:
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return status;
}

sluice_status co_append_delta(co_append *append, sluice_error *err)
{
    st_view *head = NULL;
    append->outcome = ST_APPEND_NOT;
    append->needs_block = false;
    append->object_missing = false;
    PF_TRY(check_epoch(append, err));
    PF_TRY(lk_take(append->graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, append->deadline, err));
    sluice_status status;
    PF_GOTO(status, done, check_objects(append, err));
    PF_GOTO(status, done, st_view_load(append->graph, append->log, false, &head, err));
    PF_GOTO(status, done, check_rows(append, head, err));
    if (!append->needs_block)
        status = build_and_append(append, head, err);
done:
    st_view_free(head);
    lk_release(append->graph_locks, LK_GRAPH_RECLAIM);
    return status;
}
