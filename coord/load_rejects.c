/*
 * The rows that a skipping load leaves out, in words: chunk by chunk, each read once more. A row that is bad by itself
 * is judged again, which gives the same fault; what the later rules refuse stands in their lists.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/format/json.h"
#include "store/format/utf8.h"
#include "store/schema/scalar.h"
#include "worker/ingest/events.h"
#include "worker/ingest/whole.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW ((uint64_t)1 << 15) /* rows whose refusals are in memory at once */
#define FLUSH  ((size_t)1 << 20)

/* ---- lines of rows ---- */

void load_lines_name(uint32_t payload, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "lines-%u-%u", payload, task);
}

void load_lines_close(load_job *job)
{
    (void)pf_close(job->lines.file, NULL); /* only read */
    job->lines = (load_lines){0};
}

sluice_status load_line_get(load_job *job, uint32_t item, uint64_t position, uint64_t *ret_line, sluice_error *err)
{
    const wk_staged *staged = &job->catalogue.items[item];
    uint64_t number = wk_staged_record(staged, position) - staged->first_record;
    uint32_t line = (uint32_t)number;

    if (staged->lines_listed) {
        if (job->lines.file == NULL || job->lines.item != item) {
            char name[WK_SPOOL_NAME], path[WK_SPOOL_PATH];
            load_lines_close(job);
            load_lines_name(job->payload.number, item, name);
            wk_spool_path(&job->spool, name, path);
            PF_TRY(pf_open(job->spool.volume, path, PF_READ, &job->lines.file, err));
            job->lines.item = item;
        }
        PF_TRY(pf_read_exact(job->lines.file, number * sizeof line, &line, sizeof line, err));
    }
    *ret_line = staged->first_line + line;
    return SLUICE_OK;
}

/* ---- the rows of one chunk ---- */

typedef struct walk {
    load_job *job;
    uint32_t item;
    const wk_staged *staged;
    wk_rows *rows; /* to judge bad rows again; made when the first is met */
    uint64_t bad_at;
    wk_event_array events; /* of the rows in [low, high), by position */
    uint64_t event_at, low, high;
    pf_buffer record;
} walk;

static int by_position(const void *a, const void *b)
{
    const wk_event *left = a, *right = b;
    if (left->position != right->position)
        return left->position < right->position ? -1 : 1;
    return (left->probe > right->probe) - (left->probe < right->probe);
}

static sluice_status read_window(walk *w, uint64_t position, sluice_error *err)
{
    const load_job *job = w->job;

    w->low = position - position % WINDOW;
    w->high = w->low + WINDOW;
    w->events.count = 0;
    w->event_at = 0;
    for (uint32_t rule = WK_RULE_KEY; rule < job->plan.dead_below; rule++) {
        uint32_t tasks = load_rule_lists(job, rule);
        for (uint32_t task = 0; task < tasks; task++) {
            char name[WK_SPOOL_NAME];
            bool found;
            load_events_name(job->plan.number, LOAD_PROBES + rule, task, name);
            PF_TRY(wk_events_find(&job->spool, name, w->item, w->low, w->high, &w->events, &found, err));
            if (!found)
                return pf_fail(err, SLUICE_INTERNAL, "the result of a probe task is missing");
        }
    }
    if (load_judges_whole(job)) { /* rows that cannot stand: the list of their chunk */
        char name[WK_SPOOL_NAME];
        bool found;
        load_events_name(job->plan.number, LOAD_WHOLE, w->item, name);
        PF_TRY(wk_events_find(&job->spool, name, w->item, w->low, w->high, &w->events, &found, err));
    }
    if (w->events.count > 0)
        qsort(w->events.items, w->events.count, sizeof *w->events.items, by_position);
    return SLUICE_OK;
}

static sluice_status fault_of(walk *w, const wk_event *event, wk_record *record, wk_fault *ret_fault, sluice_error *err)
{
    if (event->probe < w->job->plan.probe_count)
        return load_fault_of_record(w->job, event, record, ret_fault, err);
    *ret_fault = (wk_fault){.argument = w->staged->argument, .record = record->number, .line = record->line};
    wk_weak_fault(w->job->files[w->staged->argument].columns.type, event, ret_fault);
    return SLUICE_OK;
}

/* The fault of a row that one rule refused, by any of its probes: the least. */
static sluice_status judge_refused(walk *w, uint64_t position, wk_record *record, wk_fault *ret_fault,
                                   sluice_error *err)
{
    if (position >= w->high)
        PF_TRY(read_window(w, position, err));
    while (w->event_at < w->events.count && w->events.items[w->event_at].position < position)
        w->event_at++;
    for (; w->event_at < w->events.count && w->events.items[w->event_at].position == position; w->event_at++) {
        wk_fault fault;
        PF_TRY(fault_of(w, &w->events.items[w->event_at], record, &fault, err));
        wk_fault_least(ret_fault, &fault);
    }
    return ret_fault->present ? SLUICE_OK : pf_fail(err, SLUICE_INTERNAL, "a row was left out for no reason");
}

static sluice_status judge_bad(walk *w, wk_record *record, wk_fault *ret_fault, sluice_error *err)
{
    const load_file *file = &w->job->files[w->staged->argument];

    if (w->rows == NULL)
        PF_TRY(wk_rows_make(&file->input, &file->columns, &w->rows, err));
    PF_TRY(wk_rows_add(w->rows, record, ret_fault, err));
    if (!ret_fault->present)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
    ret_fault->argument = w->staged->argument;
    ret_fault->record = record->number;
    if (ret_fault->line == 0)
        ret_fault->line = record->line;
    return SLUICE_OK;
}

/* Before it is judged: resolving quotes moves bytes. */
static sluice_status keep_text(walk *w, wk_record *record, sluice_error *err)
{
    const wk_format_ops *format = w->job->files[w->staged->argument].input.format;
    size_t length = record->length;

    w->record.length = 0;
    if (format->show)
        return format->show(record, &w->record, err);
    if (length > 0 && record->text[length - 1] == '\n')
        length -= length > 1 && record->text[length - 2] == '\r' ? 2 : 1;
    return pf_buffer_append(&w->record, record->text, length, err);
}

static sluice_status take(walk *w, wk_record *record, wk_fault *ret_fault, sluice_error *err)
{
    uint64_t offset = record->number - w->staged->first_record, position = offset - w->bad_at;

    *ret_fault = (wk_fault){0};
    if (w->bad_at < w->staged->bad_count && w->staged->bad[w->bad_at] == offset) {
        w->bad_at++;
        PF_TRY(keep_text(w, record, err));
        return judge_bad(w, record, ret_fault, err);
    }
    if (!load_is_left_out(w->job, w->item, position))
        return SLUICE_OK;
    PF_TRY(keep_text(w, record, err));
    return judge_refused(w, position, record, ret_fault, err);
}

static sluice_status walk_records(walk *w, uint64_t left, load_reject_fn *each, void *context, sluice_error *err)
{
    wk_chunk_view view = load_chunk_view(w->job, w->staged->argument, w->staged->chunk);
    const wk_format_ops *format = view.input->format;
    void *reader = NULL;
    bool enough = false;
    sluice_status status;

    PF_TRY(format->open(&view, &reader, err));
    while (left > 0 && !enough) {
        wk_record *record = NULL;
        wk_fault fault;
        PF_GOTO(status, done, format->next(reader, &record, err));
        if (record == NULL || record->number >= w->staged->first_record + w->staged->records) {
            status = pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
            goto done;
        }
        if (record->number < w->staged->first_record) /* the header */
            continue;
        PF_GOTO(status, done, take(w, record, &fault, err));
        if (!fault.present)
            continue;
        left--;
        PF_GOTO(status, done, each(context, &fault, &w->record, &enough, err));
    }
    status = SLUICE_OK;
done:
    format->close(reader);
    return status;
}

sluice_status load_rejects_each(load_job *job, uint32_t item, load_reject_fn *each, void *context, sluice_error *err)
{
    walk w = {.job = job, .item = item, .staged = &job->catalogue.items[item]};
    uint64_t left = load_left_out(job, item);
    sluice_status status;

    if (left == 0)
        return SLUICE_OK;
    PF_TRY(load_places_get(job, err));
    status = walk_records(&w, left, each, context, err);
    wk_rows_free(w.rows);
    wk_event_array_free(&w.events);
    pf_buffer_free(&w.record);
    return status;
}

/* ---- as lines of JSON ---- */

void load_rejects_name(uint32_t plan, uint32_t item, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u-%u.json", LOAD_REJECTS, plan, item);
}

typedef struct writing {
    const load_job *job;
    wk_spool_file file;
    pf_buffer lines;
} writing;

/* What is not UTF-8 stands as U+FFFD in "record", and byte for byte in "record_base64". */
static sluice_status put_record(st_json *json, const pf_buffer *record, sluice_error *err)
{
    st_json_name(json, "record");
    st_json_lossy_text(json, record->data, record->length);
    if (st_utf8_is_valid(record->data, record->length))
        return SLUICE_OK;
    size_t length = (record->length + 2) / 3 * 4;
    char *text = malloc(length + 1);
    if (text == NULL)
        return pf_fail_memory(err);
    (void)st_format_base64(record->data, record->length, text);
    st_json_name(json, "record_base64");
    st_json_bytes_text(json, text, length);
    free(text);
    return SLUICE_OK;
}

static sluice_status on_reject(void *context, const wk_fault *fault, const pf_buffer *record, bool *ret_enough,
                               sluice_error *err)
{
    writing *to = context;
    const char *path = to->job->spec->inputs[fault->argument].path;
    st_json json;

    (void)ret_enough;
    st_json_begin(&json, &to->lines);
    st_json_object(&json);
    st_json_name(&json, "file");
    st_json_lossy_text(&json, path, strlen(path));
    st_json_name(&json, "line");
    st_json_unsigned(&json, fault->line);
    st_json_name(&json, "code");
    st_json_text(&json, sluice_status_name(fault->code));
    st_json_name(&json, "message");
    st_json_text(&json, fault->text);
    if (to->job->spec->options->rejects_path)
        PF_TRY(put_record(&json, record, err));
    st_json_object_end(&json);
    PF_TRY(st_json_end(&json, true, err));
    if (to->lines.length < FLUSH)
        return SLUICE_OK;
    PF_TRY(wk_spool_append(&to->file, to->lines.data, to->lines.length, err));
    to->lines.length = 0;
    return SLUICE_OK;
}

static sluice_status write_rejects(load_job *job, uint32_t item, const char *name, sluice_error *err)
{
    writing to = {.job = job};
    sluice_status status;

    PF_TRY(wk_spool_begin(&job->spool, name, &to.file, err));
    status = load_rejects_each(job, item, on_reject, &to, err);
    if (status == SLUICE_OK)
        status = wk_spool_append(&to.file, to.lines.data, to.lines.length, err);
    pf_buffer_free(&to.lines);
    if (status == SLUICE_OK)
        return wk_spool_end(&to.file, NULL, err);
    wk_spool_abandon(&to.file);
    return status;
}

sluice_status load_reject_task(load_job *job, uint32_t task, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    bool whole = false, done = false;

    PF_TRY(load_plan_get(job, err));
    PF_TRY(load_dead_get(job, WK_RULE_STRANDED, &whole, err));
    if (!whole || task >= job->catalogue.count || load_left_out(job, task) == 0)
        return SLUICE_OK;
    load_rejects_name(job->plan.number, task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (!done)
        PF_TRY(write_rejects(job, task, name, err));
    return PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
}
