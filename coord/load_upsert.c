/*
 * Loads that add rows or update them by key (--mode upsert): the plan half that completes what the rows staged.
 *
 * Under each plan every chunk is completed from its base (worker/ingest/complete.h): the catalogue of the plan has, per
 * chunk, the rows that are added and the rows that are updated. Of rows with one key the last one alone is completed
 * (load_last.c). Rules are then checked on what the rows became. Base rows that are written anew give up their unique
 * tuples, so that rows may swap them.
 *
 *   | of the load                | read           | change                                         |
 *   | every key, found or not    | ROW            | KEY_INSERTED of the added, ROW_UPDATED of the  |
 *   |                            |                | updated                                        |
 *   | unique tuples of these     | UNIQUE_ABSENT  | UNIQUE_SET; of the updated those that they did |
 *   |                            |                | not have; UNIQUE_FREED of those that they had  |
 *   | ends of added edges        | as in an insert| as in an insert                                |
 *
 * So whatever somebody else does to one of these keys has the plan made again, and it decides anew what is an update.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/arrow/bits.h"
#include "worker/ingest/complete.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool load_completes(const load_job *job)
{
    return job->spec->options->mode == CO_LOAD_UPSERT;
}

const wk_catalogue *load_plan_rows(const load_job *job)
{
    PF_ASSERT(!load_completes(job) || job->plan.has_rows);
    return load_completes(job) ? &job->plan.rows : &job->catalogue;
}

/* ---- the tasks ---- */

#define STEM_ROOM      40u
#define NAMES_PER_TASK (UINT64_C(1) << 20) /* of fragments: more slices than a chunk has rows for */

/* A chunk is completed slice by slice. */
typedef struct slice {
    uint32_t item, number;
} slice;

/* Builds with failpoints know SLUICE_TEST_SLICE: rows of a slice. */
uint64_t load_slice_rows(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_SLICE");
    unsigned long rows = value ? strtoul(value, NULL, 10) : 0;
    if (rows > 0 && rows < WK_COMPLETE_SLICE)
        return rows;
#endif
    return WK_COMPLETE_SLICE;
}

static uint32_t slices_of(const wk_staged *staged)
{
    uint64_t rows = staged->add.fragment.rows;
    return rows == 0 ? 1 : (uint32_t)((rows - 1) / load_slice_rows() + 1);
}

static bool next_slice(const load_job *job, slice *at)
{
    if (++at->number >= slices_of(&job->catalogue.items[at->item])) {
        at->number = 0;
        at->item++;
    }
    return at->item < job->catalogue.count;
}

static void stem_of(const load_job *job, slice at, char ret_stem[STEM_ROOM])
{
    (void)snprintf(ret_stem, STEM_ROOM, "plan-%u-%u-%u", job->plan.number, at.item, at.number);
}

static void result_name(const load_job *job, slice at, const char *what, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u-%u-%u-%s.json", LOAD_COMPLETE, job->plan.number, at.item,
                   at.number, what);
}

void load_absent_name(const load_job *job, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "absent-%u-%u", job->payload.number, task);
}

static sluice_status put_result(const load_job *job, slice at, const char *what, const wk_staged *staged,
                                sluice_error *err)
{
    pf_buffer buffer = {0};
    char name[WK_SPOOL_NAME];
    sluice_status status = wk_staged_encode(staged, &buffer, err);

    result_name(job, at, what, name);
    if (status == SLUICE_OK)
        status = wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err);
    pf_buffer_free(&buffer);
    return status;
}

static sluice_status complete_slice(load_job *job, slice at, const wk_complete *chunk, bool all_new, sluice_error *err)
{
    wk_complete request = *chunk;
    wk_completed completed = {0};
    char stem[STEM_ROOM];
    sluice_status status = SLUICE_OK;

    stem_of(job, at, stem);
    request.stem = stem;
    request.number += (uint64_t)at.number * 2 * WK_SINK_NAMES;
    request.all_new = all_new;
    if (!all_new) {
        request.low = at.number * load_slice_rows();
        request.high = request.high - request.low > load_slice_rows() ? request.low + load_slice_rows() : request.high;
    }
    if (!all_new || at.number == 0) /* the first slice stands for the whole chunk */
        PF_TRY(wk_complete_slice(&request, &completed, err));
    PF_GOTO(status, done, put_result(job, at, "added", &completed.added, err));
    PF_GOTO(status, done, put_result(job, at, "updated", &completed.updated, err));
done:
    wk_completed_free(&completed);
    return status;
}

sluice_status load_complete_task(load_job *job, uint32_t task, sluice_error *err)
{
    char absent[WK_SPOOL_NAME], attempt[PF_ID_TEXT], prefix[48], name[WK_SPOOL_NAME];
    const wk_staged *staged;
    slice at = {.item = task};
    bool done = false, known = true, whole = false;

    PF_TRY(load_plan_get(job, err));
    if (task >= job->catalogue.count)
        return SLUICE_OK;
    staged = &job->catalogue.items[task];
    uint32_t slices = slices_of(staged);
    result_name(job, (slice){task, slices - 1}, "updated", name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    if (load_judges_whole(job))
        PF_TRY(load_dead_get(job, WK_RULE_STRANDED, &whole, err));
    else
        PF_TRY(load_last_get(job, &whole, err));
    if (!whole) /* a task of a plan that died, met by the next one */
        return SLUICE_OK;
    load_absent_name(job, task, absent);
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(prefix, sizeof prefix, "%s-p%u-", attempt, job->plan.number);
    wk_complete request = {.spool = &job->spool,
                           .schema = job->payload.schema,
                           .type = job->files[staged->argument].columns.type,
                           .base = job->plan.base,
                           .staged = staged,
                           .dead = job->catalogue.dead ? job->catalogue.dead[task] : NULL,
                           .absent = absent,
                           .prefix = prefix,
                           .number = (uint64_t)task * NAMES_PER_TASK,
                           .commit = job->plan.write,
                           .high = staged->add.fragment.rows,
                           .compress = job->spec->options->compress};
    PF_ALWAYS((uint64_t)slices * 2 * WK_SINK_NAMES <= NAMES_PER_TASK);
    if (slices > 1 && request.dead == NULL)
        PF_TRY(wk_complete_any_known(&request, &known, err));
    for (; at.number < slices; at.number++)
        PF_TRY(complete_slice(job, at, &request, !known, err));
    return PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
}

/* ---- the plan's catalogue ---- */

void load_plan_rows_drop(load_job *job)
{
    wk_catalogue *rows = &job->plan.rows;

    for (uint32_t i = 0; i < rows->count; i++)
        wk_staged_free(&rows->items[i]);
    for (uint32_t i = 0; i < rows->hidden_count; i++)
        st_row_set_free(rows->hidden[i].rows);
    free(rows->items);
    free(rows->hidden);
    *rows = (wk_catalogue){0};
    job->plan.has_rows = false;
}

static sluice_status get_result(const load_job *job, slice at, const char *what, pf_buffer *buffer,
                                wk_staged *ret_staged, bool *ret_found, sluice_error *err)
{
    char name[WK_SPOOL_NAME];

    result_name(job, at, what, name);
    PF_TRY(wk_spool_get(&job->spool, name, buffer, ret_found, err));
    if (!*ret_found)
        return SLUICE_OK;
    return wk_staged_decode(buffer->data, buffer->length, ret_staged, err);
}

/* The rows of the base that the chunks of a type write anew. */
static sluice_status add_hidden(load_job *job, const st_type_def *type, sluice_error *err)
{
    wk_catalogue *rows = &job->plan.rows;
    struct wk_hidden *hidden = &rows->hidden[rows->hidden_count];

    *hidden = (struct wk_hidden){.table = type->table};
    PF_TRY(st_row_set_new(&hidden->rows, err));
    rows->hidden_count++;
    for (slice at = {0}; at.item < job->catalogue.count; (void)next_slice(job, &at)) {
        char stem[STEM_ROOM];
        wk_gone gone = {0};
        if (job->catalogue.items[at.item].table != type->table)
            continue;
        stem_of(job, at, stem);
        sluice_status status = wk_gone_get(&job->spool, stem, type, &gone, err);
        if (status == SLUICE_OK)
            status = st_row_set_add_many(hidden->rows, gone.places, gone.count, err);
        wk_gone_free(&gone);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

sluice_status load_plan_rows_get(load_job *job, bool *ret_ready, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;
    wk_catalogue *rows = &job->plan.rows;
    pf_buffer buffer = {0};
    bool found = true;
    size_t room = 0;
    sluice_status status = SLUICE_OK;

    *ret_ready = true;
    if (!load_completes(job) || job->plan.has_rows)
        return SLUICE_OK;
    rows->spool = &job->spool;
    for (uint32_t i = 0; i < job->catalogue.count; i++)
        room += 2 * (size_t)slices_of(&job->catalogue.items[i]);
    rows->items = calloc(room + 1, sizeof *rows->items);
    rows->hidden = calloc((size_t)schema->type_count + 1, sizeof *rows->hidden);
    if (rows->items == NULL || rows->hidden == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    slice at = {0};
    do {
        PF_GOTO(status, done, get_result(job, at, "added", &buffer, &rows->items[rows->count], &found, err));
        rows->count += found;
        if (found)
            PF_GOTO(status, done, get_result(job, at, "updated", &buffer, &rows->items[rows->count], &found, err));
        rows->count += found;
    } while (found && next_slice(job, &at));
    *ret_ready = found;
    if (!found)
        goto done;
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].unique_count > 0)
            PF_GOTO(status, done, add_hidden(job, &schema->types[i], err));
    job->plan.has_rows = true;
done:
    pf_buffer_free(&buffer);
    if (status != SLUICE_OK || !*ret_ready)
        load_plan_rows_drop(job);
    return status;
}

sluice_status load_complete_run(load_job *job, co_write *write, sluice_error *err)
{
    bool ready = false;

    if (!load_completes(job))
        return SLUICE_OK;
    write->attempt->litter = true; /* what is completed stands in for what was staged */
    if (!load_judges_whole(job))
        PF_TRY(load_last_run(job, err));
    PF_TRY(job->executor->run(job->executor->context, LOAD_COMPLETE | WK_PHASE_ANEW, job->catalogue.count, err));
    PF_TRY(load_plan_rows_get(job, &ready, err));
    if (!ready)
        return pf_fail(err, SLUICE_INTERNAL, "the result of completing a chunk is missing");
    return load_sync_folders(job, &job->plan.rows, err);
}

/* Of one key one row is left, and what became of it went by what the base has: there is nothing more to check. Where
 * bad rows are skipped, a rule says which one that is; else load_last.c has said it. */
void load_upsert_probes(load_job *job)
{
    uint32_t kept = 0;

    if (!load_completes(job))
        return;
    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        wk_probe *probe = &job->plan.probes[i];
        bool of_key = probe->rule == WK_RULE_KEY || probe->rule == WK_RULE_IDENTITY;
        if (of_key && !load_judges_whole(job))
            continue;
        if (of_key) {
            probe->rule = WK_RULE_KEY; /* also of edges: which row counts comes before what it collides with */
            probe->alone = probe->last_counts = true;
        }
        job->plan.probes[kept++] = *probe;
    }
    job->plan.probe_count = kept;
}

/* ---- a row that cannot be completed ---- */

static sluice_status take_line(void *context, wk_record *record, sluice_error *err)
{
    (void)err;
    *(uint64_t *)context = record->line;
    return SLUICE_OK;
}

sluice_status load_complete_least(load_job *job, wk_fault *ret_fault, sluice_error *err)
{
    const wk_catalogue *rows = &job->plan.rows;
    uint32_t item = 0;

    *ret_fault = (wk_fault){0};
    for (uint32_t i = 0; i < rows->count; i++) {
        const wk_fault *fault = &rows->items[i].least;
        if (fault->present && (!ret_fault->present || wk_fault_before(fault, ret_fault))) {
            *ret_fault = *fault;
            item = i;
        }
    }
    if (!ret_fault->present)
        return SLUICE_OK;
    PF_TRY(load_places_get(job, err));
    wk_chunk_view view = load_chunk_view(job, rows->items[item].argument, rows->items[item].chunk);
    return wk_chunk_visit(&view, &ret_fault->record, 1, take_line, &ret_fault->line, err);
}

/* ---- the edit: what is deleted for being added again ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static sluice_status list_rows(const st_row_set *set, st_edit *edit, sluice_error *err)
{
    uint64_t count = 0;

    PF_TRY(st_row_set_rows(set, &edit->delete_rows, &count, err));
    edit->delete_count = (uint32_t)count;
    return SLUICE_OK;
}

static sluice_status write_rows(const load_job *job, const co_write *write, st_row_set *set, st_edit *edit,
                                sluice_error *err)
{
    char attempt[PF_ID_TEXT], name[72], folder[64];

    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(name, sizeof name, "%s-p%u.gone", attempt, write->plan_number);
    (void)snprintf(folder, sizeof folder, "tables/%" PRIu64 "/deletions", edit->table);
    PF_TRY(st_deletion_write(job->spool.volume, edit->table, name, set, &edit->deletes, err));
    return pf_sync_dir(job->spool.volume, folder, err);
}

sluice_status load_upsert_deletes(const load_job *job, const st_type_def *type, co_write *write, st_edit *edit,
                                  sluice_error *err)
{
    st_row_set *set = NULL;
    sluice_status status = SLUICE_OK;

    if (!load_completes(job))
        return SLUICE_OK;
    PF_TRY(st_row_set_new(&set, err));
    for (slice at = {0}; at.item < job->catalogue.count && status == SLUICE_OK; (void)next_slice(job, &at)) {
        char stem[STEM_ROOM];
        wk_gone gone = {0};
        if (job->catalogue.items[at.item].table != type->table)
            continue;
        stem_of(job, at, stem);
        status = wk_gone_get(&job->spool, stem, type, &gone, err);
        if (status == SLUICE_OK)
            status = st_row_set_add_many(set, gone.rows, gone.count, err);
        wk_gone_free(&gone);
    }
    if (status == SLUICE_OK && st_row_set_count(set) > 0)
        status = st_row_set_count(set) <= ST_LISTED_ROWS_MAX ? list_rows(set, edit, err)
                                                             : write_rows(job, write, set, edit, err);
    st_row_set_free(set);
    return status;
}

/* ---- unique tuples, properties ---- */

sluice_status load_upsert_tuples(const load_job *job, const st_type_def *type, uint32_t unique, bool freed,
                                 uint64_t limit, load_hashes *ret_hashes, sluice_error *err)
{
    sluice_status status = SLUICE_OK;

    *ret_hashes = (load_hashes){0};
    for (slice at = {0}; at.item < job->catalogue.count && status == SLUICE_OK && !ret_hashes->many;
         (void)next_slice(job, &at)) {
        char stem[STEM_ROOM];
        wk_gone gone = {0};
        if (job->catalogue.items[at.item].table != type->table)
            continue;
        stem_of(job, at, stem);
        status = wk_gone_get(&job->spool, stem, type, &gone, err);
        const struct wk_gone_tuples *tuples = status == SLUICE_OK ? &gone.tuples[unique] : NULL;
        uint64_t more = tuples ? (freed ? tuples->freed_count : tuples->set_count) : 0;
        ret_hashes->many = more > limit - ret_hashes->count;
        if (more > 0 && !ret_hashes->many) {
            uint64_t *items = realloc(ret_hashes->items, (ret_hashes->count + more) * sizeof *items);
            if (items == NULL) {
                status = pf_fail_memory(err);
            } else {
                memcpy(items + ret_hashes->count, freed ? tuples->freed : tuples->set, more * sizeof *items);
                ret_hashes->items = items;
                ret_hashes->count += more;
            }
        }
        wk_gone_free(&gone);
    }
    if (ret_hashes->count > 0)
        qsort(ret_hashes->items, ret_hashes->count, sizeof *ret_hashes->items, by_value);
    return status;
}

sluice_status load_upsert_changed(const load_job *job, const st_type_def *type, bool *changed, sluice_error *err)
{
    uint32_t ends = type->edge ? 2 : 0;
    sluice_status status = SLUICE_OK;

    for (slice at = {0}; at.item < job->catalogue.count && status == SLUICE_OK; (void)next_slice(job, &at)) {
        char stem[STEM_ROOM];
        wk_gone gone = {0};
        if (job->catalogue.items[at.item].table != type->table)
            continue;
        stem_of(job, at, stem);
        status = wk_gone_get(&job->spool, stem, type, &gone, err);
        for (uint32_t p = 0; status == SLUICE_OK && gone.changed && p < type->property_count; p++)
            changed[p] |= st_bit(gone.changed, p + ends);
        wk_gone_free(&gone);
    }
    return status;
}
