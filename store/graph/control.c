/*
 * The control state: read from, and changed through, the log in control/ (incarnation 0), the same mechanism as a
 * branch.
 *
 * A change is authority-first: one record, appended under control's publish lock, is all of it. Killed before the
 * record is whole it did not happen; after that it did, and numbers that it handed out are a gap at worst. Nothing is
 * ever handed out from an end that is not acknowledged: a change settles the end before it reads it, and answers only
 * what was flushed.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <string.h>

#define CONTROL_INCARNATION UINT64_C(0)

sluice_status st_control_make(pf_volume *volume, const st_control *first, sluice_error *err)
{
    static const pf_sha256 nothing;
    const pf_buffer none = {0};
    pf_buffer manifest = {0};
    st_log *log = NULL;
    st_append_outcome outcome;
    pf_sha256 digest;
    sluice_status status;

    PF_GOTO(status, done, st_control_encode(first, &manifest, err));
    PF_GOTO(status, done,
            st_log_make(volume, ST_CONTROL_FOLDER, CONTROL_INCARNATION, 0, &nothing, &manifest, &none, err));
    PF_GOTO(status, done, st_log_open(volume, ST_CONTROL_FOLDER, CONTROL_INCARNATION, PF_WRITE, &log, err));
    PF_GOTO(status, done, st_log_append(log, &manifest, NULL, NULL, &outcome, &digest, err));
    PF_GOTO(status, done, st_log_sync_mark(log, err));
    PF_GOTO(status, done, st_log_check_suspect(log, err)); /* a mark that was not written: make it afresh */
done:
    st_log_close(log);
    pf_buffer_free(&manifest);
    return status;
}

sluice_status st_control_log(st_graph *graph, st_log **ret_log, sluice_error *err)
{
    if (!graph->control)
        PF_TRY(st_graph_open_log(graph, ST_CONTROL_FOLDER, CONTROL_INCARNATION, &graph->control, err));
    *ret_log = graph->control;
    return SLUICE_OK;
}

/* The state at the log's end, as this handle knows it. */
static sluice_status read_state(st_log *log, pf_buffer *ret_bytes, st_control *ret_control, sluice_error *err)
{
    st_record record = {0};
    sluice_status status;
    uint64_t number = st_log_end(log).number;

    /* Right behind a segment switch the newest state stands in the opening record. */
    PF_TRY(st_log_read_opening(log, &record, err));
    if (record.number != number) {
        st_record_free(&record);
        PF_TRY(st_log_read(log, number, &record, err));
    }
    PF_GOTO(status, done, st_control_decode(record.manifest, record.manifest_length, ret_control, err));
    ret_bytes->length = 0;
    status = pf_buffer_append(ret_bytes, record.manifest, record.manifest_length, err);
    if (status != SLUICE_OK)
        st_control_free(ret_control);
done:
    st_record_free(&record);
    return status;
}

sluice_status st_control_read(st_graph *graph, st_control *ret_control, sluice_error *err)
{
    st_log *log;
    pf_buffer bytes = {0};
    PF_TRY(st_control_log(graph, &log, err));
    PF_TRY(st_log_refresh(log, err));
    sluice_status status = read_state(log, &bytes, ret_control, err);
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status check_record(void *context, const st_record *record, sluice_error *err)
{
    st_control control = {0};
    PF_TRY(st_control_decode(record->manifest, record->manifest_length, &control, err));
    st_control_free(&control);
    (*(uint64_t *)context)++;
    return SLUICE_OK;
}

sluice_status st_control_verify(st_graph *graph, uint64_t *ret_records, sluice_error *err)
{
    st_log *log;
    *ret_records = 0;
    PF_TRY(st_control_log(graph, &log, err));
    return st_log_verify(log, check_record, ret_records, err);
}

/* ---- changing ---- */

/* An opening record of control/ carries the state that stands at the end that it continues. */
static sluice_status encode_opening(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    st_control control = {0};
    (void)attachments;
    PF_TRY(read_state(context, manifest, &control, err));
    st_control_free(&control);
    return SLUICE_OK;
}

static void check_never_lowered(const st_control *before, const st_control *after)
{
    PF_ALWAYS(after->next_table >= before->next_table && after->next_property >= before->next_property &&
              after->next_incarnation >= before->next_incarnation && after->next_row_block >= before->next_row_block);
}

/* Decodes `before` once more, so that `change` works on a copy of its own. */
static sluice_status apply_change(const pf_buffer *before, st_control_change_fn *change, void *context,
                                  pf_buffer *ret_after, sluice_error *err)
{
    st_control old = {0}, control = {0};
    sluice_status status;

    PF_GOTO(status, done, st_control_decode(before->data, before->length, &old, err));
    PF_GOTO(status, done, st_control_decode(before->data, before->length, &control, err));
    PF_GOTO(status, done, change(context, &control, err));
    check_never_lowered(&old, &control);
    PF_GOTO(status, done, st_control_encode(&control, ret_after, err));
done:
    st_control_free(&old);
    st_control_free(&control);
    return status;
}

/* Under control's publish lock. */
static sluice_status update_locked(st_log *log, st_control_change_fn *change, void *context, sluice_error *err)
{
    pf_buffer before = {0}, after = {0};
    st_control control = {0};
    st_opening_source opening = {.context = log, .encode = encode_opening};
    st_append_outcome outcome;
    pf_sha256 digest;
    sluice_status status;

    PF_GOTO(status, done, st_log_heal(log, &opening, err));
    PF_GOTO(status, done, st_log_settle(log, err));
    PF_GOTO(status, done, read_state(log, &before, &control, err));
    PF_GOTO(status, done, apply_change(&before, change, context, &after, err));
    if (after.length == before.length && memcmp(after.data, before.data, after.length) == 0)
        goto done;
    PF_GOTO(status, done, st_log_append(log, &after, NULL, &opening, &outcome, &digest, err));
done:
    st_control_free(&control);
    pf_buffer_free(&before);
    pf_buffer_free(&after);
    return status;
}

sluice_status st_control_update(st_graph *graph, st_control_change_fn *change, void *context, pf_deadline deadline,
                                sluice_error *err)
{
    st_log *log;

    PF_ASSERT(graph->access == PF_WRITE);
    PF_TRY(st_control_log(graph, &log, err));
    if (!graph->control_locks)
        PF_TRY(lk_lockfile_open(graph->volume, ST_CONTROL_FOLDER "/locks", &graph->control_locks, err));
    PF_TRY(lk_take(graph->control_locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, deadline, err));
    sluice_status status = update_locked(log, change, context, err);
    lk_release(graph->control_locks, LK_BYTE_PUBLISH);
    return status;
}

static sluice_status take_row_block(void *context, st_control *control, sluice_error *err)
{
    uint64_t *first = context;
    if (!pf_mul_u64(control->next_row_block, ST_ROW_BLOCK, first))
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the graph has handed out all of its row ids");
    control->next_row_block++;
    return SLUICE_OK;
}

sluice_status st_control_take_row_block(st_graph *graph, pf_deadline deadline, uint64_t *ret_first, sluice_error *err)
{
    return st_control_update(graph, take_row_block, ret_first, deadline, err);
}

typedef struct taking { /* how many are wanted, and the first of each */
    uint64_t tables, properties;
    uint64_t table, property;
} taking;

static sluice_status take_ids(void *context, st_control *control, sluice_error *err)
{
    taking *wanted = context;
    wanted->table = control->next_table;
    wanted->property = control->next_property;
    if (!pf_add_u64(control->next_table, wanted->tables, &control->next_table) ||
        !pf_add_u64(control->next_property, wanted->properties, &control->next_property))
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the graph has handed out all of its numbers");
    return SLUICE_OK;
}

sluice_status st_control_take_ids(st_graph *graph, uint64_t tables, uint64_t properties, pf_deadline deadline,
                                  uint64_t *ret_table, uint64_t *ret_property, sluice_error *err)
{
    taking wanted = {.tables = tables, .properties = properties};
    PF_TRY(st_control_update(graph, take_ids, &wanted, deadline, err));
    *ret_table = wanted.table;
    *ret_property = wanted.property;
    return SLUICE_OK;
}
