/*
 * The work list of a maintenance job and the results of its tasks: files in the attempt's folder, read by processes of
 * this job only (coord/maintain_job.h).
 */
#include "coord/maintain_job.h"
#include "platform/check.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_PER_ITEM 256u

typedef struct list_head {
    pf_sha256 schema_identity;
    pf_id commit;
    uint64_t generation;
    uint32_t item_count, fragment_count;
} list_head;

void maintain_list_name(uint32_t number, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "work-%u", number);
}

void maintain_item_name(uint32_t number, uint32_t item, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "item-%u-%u", number, item);
}

void maintain_names(const maintain_job *job, uint32_t item, char ret_prefix[48], uint64_t *ret_number)
{
    char attempt[PF_ID_TEXT];
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(ret_prefix, 48, "%s-", attempt);
    *ret_number = ((uint64_t)job->work.number << 40) + (uint64_t)item * NAMES_PER_ITEM;
}

void maintain_advance(void *context, uint64_t rows, uint64_t bytes)
{
    const maintain_job *job = context;
    if (job->executor->advance)
        job->executor->advance(job->executor->context, rows, bytes);
}

void maintain_work_drop(maintain_job *job)
{
    for (uint32_t i = 0; job->results && i < job->work.item_count; i++)
        st_edit_free(&job->results[i]);
    free(job->results);
    job->results = NULL;
    st_snapshot_close(job->base);
    job->base = NULL;
    free(job->work.items);
    free(job->work.fragments);
    job->work = (maintain_work){0};
}

sluice_status maintain_work_add(maintain_work *work, uint64_t table, maintain_task task, const uint32_t *fragments,
                                uint32_t count, sluice_error *err)
{
    maintain_item *items = realloc(work->items, ((size_t)work->item_count + 1) * sizeof *items);
    if (!items)
        return pf_fail_memory(err);
    work->items = items;
    uint32_t *all = realloc(work->fragments, ((size_t)work->fragment_count + count) * sizeof *all);
    if (!all)
        return pf_fail_memory(err);
    work->fragments = all;
    memcpy(all + work->fragment_count, fragments, count * sizeof *all);
    items[work->item_count++] =
        (maintain_item){.table = table, .task = (uint32_t)task, .first = work->fragment_count, .count = count};
    work->fragment_count += count;
    return SLUICE_OK;
}

sluice_status maintain_work_put(maintain_job *job, sluice_error *err)
{
    maintain_work *work = &job->work;
    list_head head;
    pf_buffer bytes = {0};
    bool first = false;
    sluice_status status;

    memset(&head, 0, sizeof head);
    head.schema_identity = work->schema_identity;
    head.commit = work->commit;
    head.generation = work->generation;
    head.item_count = work->item_count;
    head.fragment_count = work->fragment_count;
    PF_GOTO(status, done, pf_buffer_append(&bytes, &head, sizeof head, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, work->items, work->item_count * sizeof *work->items, err));
    PF_GOTO(status, done,
            pf_buffer_append(&bytes, work->fragments, work->fragment_count * sizeof *work->fragments, err));
    for (uint32_t number = 0; number < MAINTAIN_LISTS && !first; number++) {
        char name[WK_SPOOL_NAME];
        maintain_list_name(number, name);
        PF_GOTO(status, done, wk_spool_put(&job->spool, name, bytes.data, bytes.length, &first, err));
        work->number = number;
    }
    work->ready = first;
    status = first ? SLUICE_OK : pf_fail(err, SLUICE_REBASE_EXHAUSTED, "the work was planned %u times", MAINTAIN_LISTS);
done:
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status take_list(maintain_work *work, const pf_buffer *bytes, sluice_error *err)
{
    list_head head;
    size_t items, fragments;
    if (bytes->length < sizeof head)
        return pf_fail(err, SLUICE_INTERNAL, "a work list is too short");
    memcpy(&head, bytes->data, sizeof head);
    items = head.item_count * sizeof *work->items;
    fragments = head.fragment_count * sizeof *work->fragments;
    if (bytes->length != sizeof head + items + fragments)
        return pf_fail(err, SLUICE_INTERNAL, "a work list has another length than it says");
    work->items = malloc(items + 1);
    work->fragments = malloc(fragments + 1);
    if (!work->items || !work->fragments)
        return pf_fail_memory(err);
    memcpy(work->items, bytes->data + sizeof head, items);
    memcpy(work->fragments, bytes->data + sizeof head + items, fragments);
    work->schema_identity = head.schema_identity;
    work->commit = head.commit;
    work->generation = head.generation;
    work->item_count = head.item_count;
    work->fragment_count = head.fragment_count;
    work->ready = true;
    return SLUICE_OK;
}

sluice_status maintain_work_get(maintain_job *job, uint32_t number, bool *ret_found, sluice_error *err)
{
    char name[WK_SPOOL_NAME], commit[PF_ID_TEXT];
    pf_buffer bytes = {0};
    *ret_found = true;
    if (job->work.ready && job->work.number == number && job->base)
        return SLUICE_OK;
    maintain_work_drop(job);
    maintain_list_name(number, name);
    sluice_status status = wk_spool_get(&job->spool, name, &bytes, ret_found, err);
    if (status == SLUICE_OK && *ret_found)
        status = take_list(&job->work, &bytes, err);
    pf_buffer_free(&bytes);
    job->work.number = number;
    if (status == SLUICE_OK && *ret_found) {
        pf_id_text(&job->work.commit, commit);
        status = st_snapshot_open(job->graph, job->spec->branch, commit, &job->base, err);
    }
    if (status != SLUICE_OK)
        maintain_work_drop(job);
    return status;
}

/* ---- results ---- */

sluice_status maintain_put_edit(maintain_job *job, uint32_t item, const st_edit *edit, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer bytes = {0};
    maintain_item_name(job->work.number, item, name);
    sluice_status status = st_edit_encode(edit, &bytes, err);
    if (status == SLUICE_OK)
        status = wk_spool_put(&job->spool, name, bytes.data, bytes.length, NULL, err);
    pf_buffer_free(&bytes);
    return status;
}

sluice_status maintain_get_edit(maintain_job *job, uint32_t item, st_edit *ret_edit, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer bytes = {0};
    bool found = false;
    maintain_item_name(job->work.number, item, name);
    sluice_status status = wk_spool_get(&job->spool, name, &bytes, &found, err);
    if (status == SLUICE_OK && !found)
        status = pf_fail(err, SLUICE_INTERNAL, "the result of item %u is missing", item);
    if (status == SLUICE_OK)
        status = st_edit_decode(bytes.data, bytes.length, ret_edit, err);
    pf_buffer_free(&bytes);
    return status;
}
