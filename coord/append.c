/*
 * Publishing deltas (coord/append.h).
 *
 * Lock rules: the caller holds the branch's publish lock; the reclaim lock is held shared from the look at the named
 * objects until the append is over, so that collection cannot move one in between. Crash rule: the append is the only
 * durable step; before it nothing stands, after it the chain says what happened.
 */
#include "coord/append.h"
#include "coord/epoch.h"
#include "platform/check.h"
#include "platform/sabotage.h"
#include "platform/tally.h"
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

/* Healing may find another end than this handle knew (a record that fell out of the cache): the state is read there. */
static sluice_status encode_healed(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    opening_context *opening = context;
    st_view *head = NULL;
    PF_TRY(st_view_load(opening->graph, opening->log, false, &head, err));
    sluice_status status = st_opening_build(opening->graph, opening->log, head, manifest, attachments, err);
    st_view_free(head);
    return status;
}

sluice_status co_make_reliable(st_graph *graph, st_log *log, sluice_error *err)
{
    sluice_error suspect_error = {0};
    sluice_status status = st_log_check_suspect(log, &suspect_error);
    if (status == SLUICE_SUSPECT) {
        PF_TRY(st_log_refresh(log, err));
        opening_context context = {graph, log, NULL};
        st_opening_source opening = {&context, encode_healed};
        PF_TRY(st_log_heal(log, &opening, err));
    } else if (status != SLUICE_OK) {
        if (err)
            *err = suspect_error;
        return status;
    }
    return st_log_settle(log, err); /* which refreshes */
}

static sluice_status check_object(void *context, const char *path, sluice_error *err)
{
    co_append *append = context;
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(st_graph_volume(append->graph), path, &stat, &stat_error);
    if (PF_SABOTAGE(objects_not_looked_at))
        return SLUICE_OK;
    if (status == SLUICE_NOT_FOUND || (status == SLUICE_OK && (stat.kind != PF_KIND_FILE || stat.size == 0))) {
        append->object_missing = true;
        return pf_fail(err, SLUICE_CORRUPT, "a staged object is gone: %s", path);
    }
    if (status != SLUICE_OK && err)
        *err = stat_error;
    return status;
}

static sluice_status is_there(void *context, const char *path, sluice_error *err)
{
    co_append *append = context;
    pf_stat stat;
    return pf_stat_path(st_graph_volume(append->graph), path, &stat, err);
}

static bool fold_is_there(co_append *append, const st_fold *fold)
{
    if (st_edit_objects(&fold->made, is_there, append, NULL) != SLUICE_OK)
        return false;
    for (uint32_t i = 0; i < fold->page_count; i++) {
        char path[160];
        pf_stat stat;
        (void)snprintf(path, sizeof path, "tables/%llu/lists/%s", (unsigned long long)fold->table, fold->pages[i].file);
        if (pf_stat_path(st_graph_volume(append->graph), path, &stat, NULL) != SLUICE_OK)
            return false;
    }
    return true;
}

/* Every object that the delta names exists. A fold is no part of it: one whose pages are not all there is dropped. */
static sluice_status check_part(co_append *append, st_delta *delta, sluice_error *err)
{
    if (st_delta_changes_schema(delta)) {
        char path[ST_SCHEMA_PATH];
        st_schema_path(&delta->new_schema, path);
        PF_TRY(check_object(append, path, err));
    }
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        const struct st_delta_edit *edit = &delta->edits[i];
        PF_TRY(st_edit_objects(&edit->edit, check_object, append, err));
        if (edit->staged) {
            char path[160];
            (void)snprintf(path, sizeof path, "tables/%llu/lists/%s", (unsigned long long)edit->edit.table, edit->file);
            PF_TRY(check_object(append, path, err));
        }
    }
    for (uint32_t i = delta->fold_count; i-- > 0;) {
        if (fold_is_there(append, &delta->folds[i]))
            continue;
        st_fold_free(&delta->folds[i]);
        delta->folds[i] = delta->folds[--delta->fold_count];
    }
    return SLUICE_OK;
}

static sluice_status check_objects(co_append *append, sluice_error *err)
{
    for (append->missing = 0; append->missing < append->count; append->missing++)
        PF_TRY(check_part(append, append->parts[append->missing].delta, err));
    return SLUICE_OK;
}

static sluice_status check_digests(const co_append *append, sluice_error *err)
{
    for (uint32_t i = 0; i < append->count; i++) {
        if (!pf_sha256_equal(&append->parts[i].delta->built, append->parts[i].digest))
            return pf_fail(err, SLUICE_INTERNAL, "a delta changed after it was prepared");
    }
    return SLUICE_OK;
}

static void bind_times(const co_append *append, int64_t last_us)
{
    for (uint32_t i = 0; i < append->count; i++) {
        st_commit *commit = &append->parts[i].delta->commit;
        commit->time_us = last_us = commit->minted_us > last_us ? commit->minted_us : last_us;
    }
}

static sluice_status build_and_append(co_append *append, const st_view *head, st_delta *const *deltas,
                                      sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0};
    pf_sha256 digest;
    sluice_status status;
    opening_context context = {append->graph, append->log, head};
    st_opening_source opening = {&context, encode_opening};
    PF_GOTO(status, done,
            st_generation_build(append->graph, head, deltas, append->count, append->row_block, &manifest, &attachments,
                                err));
    PF_GOTO(status, done, check_digests(append, err));
    append->generation = head->generation + 1;
    bind_times(append, head->head_time_us);
    append->tried = true;
    status = st_log_append(append->log, &manifest, &attachments, &opening, &append->outcome, &digest, err);
    if (status == SLUICE_OK)
        st_head_published(append->graph, append->log, &digest);
done:
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return status;
}

static sluice_status append_under_reclaim(co_append *append, const st_view *head, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    st_delta **deltas = malloc(((size_t)append->count + 1) * sizeof(*deltas));
    if (!deltas)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < append->count; i++)
        deltas[i] = append->parts[i].delta;
    if (!append->row_block)
        status = st_generation_needs_block(head, deltas, append->count, &append->needs_block, err);
    if (status == SLUICE_OK && !append->needs_block)
        status = build_and_append(append, head, deltas, err);
    free(deltas);
    return status;
}

sluice_status co_append_deltas(co_append *append, sluice_error *err)
{
    st_view *head = NULL;
    append->outcome = ST_APPEND_NOT;
    append->tried = append->needs_block = false;
    append->object_missing = false;
    if (append->epoch)
        PF_TRY(co_epoch_check(append->graph, append->epoch, err));
    PF_TRY(lk_take(append->graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, append->deadline, err));
    sluice_status status;
    PF_GOTO(status, done, check_objects(append, err));
    PF_GOTO(status, done, st_view_load(append->graph, append->log, false, &head, err));
    status = append_under_reclaim(append, head, err);
    if (status == SLUICE_OK && append->tried) {
        pf_tally_add(PF_TALLY_COMMITS, append->count);
        pf_tally_value(PF_SERIES_GROUP, append->count);
    }
done:
    st_view_free(head);
    lk_release(append->graph_locks, LK_GRAPH_RECLAIM);
    return status;
}
