#include "worker/ingest/stage.h"

#include "platform/check.h"
#include "worker/ingest/hints.h"
#include "worker/ingest/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct staging {
    const wk_stage *stage;
    wk_staged *out;
    wk_rows *rows;
    const wk_format_ops *format;
    void *reader;
    wk_sink *sink;
    wk_sink *names; /* NULL: rows have none */
    wk_spool_file absent;
    bool absent_open;
    uint64_t bad_room;
    uint64_t seen;  /* bytes of records since the last word of progress */
    wk_fault fault; /* of the record at hand */
} staging;

/* ---- batches ---- */

static sluice_status write_names(staging *s, uint64_t rows, sluice_error *err)
{
    st_column texts;

    if (s->names == NULL)
        return SLUICE_OK;
    wk_rows_names(s->rows, WK_NAMES_ROW, &texts);
    return wk_sink_write(s->names, &texts, rows, err);
}

static sluice_status resolve_ends(staging *s, uint64_t rows, sluice_error *err)
{
    static const wk_naming which[2] = {WK_NAMES_FROM, WK_NAMES_TO};

    for (unsigned end = 0; end < 2; end++) {
        st_column texts;
        if (s->stage->ends[end] == NULL)
            continue;
        uint64_t *ids = malloc(rows * sizeof *ids);
        if (ids == NULL)
            return pf_fail_memory(err);
        wk_rows_names(s->rows, which[end], &texts);
        sluice_status status = wk_names_find(s->stage->ends[end], &texts, rows, ids, err);
        if (status == SLUICE_OK)
            status = wk_rows_resolve(s->rows, which[end], ids, err);
        free(ids);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

static sluice_status flush_batch(staging *s, sluice_error *err)
{
    uint64_t rows = wk_rows_length(s->rows);
    uint32_t count;

    if (rows == 0)
        return SLUICE_OK;
    PF_TRY(write_names(s, rows, err));
    PF_TRY(resolve_ends(s, rows, err));
    PF_TRY(wk_sink_write(s->sink, wk_rows_columns(s->rows, &count), rows, err));
    if (s->absent_open)
        PF_TRY(wk_spool_append(&s->absent, wk_rows_absent(s->rows), rows * wk_rows_absent_stride(count), err));
    wk_rows_reset(s->rows);
    if (s->stage->advance)
        s->stage->advance(s->stage->advance_context, rows, s->seen);
    s->seen = 0;
    return SLUICE_OK;
}

/* ---- records ---- */

static sluice_status leave_out(staging *s, wk_fault *fault, const wk_record *record, sluice_error *err)
{
    wk_staged *out = s->out;

    fault->argument = s->stage->argument;
    fault->record = record->number;
    fault->rule = 0;
    if (fault->line == 0)
        fault->line = record->line;
    wk_fault_least(&out->least, fault);
    if (out->bad_count == s->bad_room) {
        uint64_t room = s->bad_room ? s->bad_room * 2 : 64;
        uint32_t *bad = realloc(out->bad, room * sizeof *bad);
        if (bad == NULL)
            return pf_fail_memory(err);
        out->bad = bad;
        s->bad_room = room;
    }
    out->bad[out->bad_count++] = (uint32_t)(record->number - out->first_record);
    return SLUICE_OK;
}

/* A fault that ends the reading of the file; the rest of it cannot be told apart into records. */
static void give_up(staging *s, wk_fault *fault, uint64_t record, uint64_t line)
{
    fault->argument = s->stage->argument;
    fault->record = record;
    fault->line = line;
    fault->rule = 0;
    if (fault->hint[0] == '\0')
        wk_hint(fault, "mend the file, or make it again: the rest of it cannot be read");
    s->out->damaged = true;
    s->out->damage = *fault;
    wk_fault_least(&s->out->least, fault);
}

/* Keeps the line of a record once one does not begin where its number says. */
static sluice_status note_line(staging *s, const wk_record *record, sluice_error *err)
{
    wk_staged *out = s->out;
    uint64_t number = record->number - out->first_record;

    if (number == 0)
        out->first_line = record->line;
    if (out->lines == NULL) {
        if (record->line - out->first_line == number)
            return SLUICE_OK;
        out->lines = malloc(out->records * sizeof *out->lines);
        if (out->lines == NULL)
            return pf_fail_memory(err);
        for (uint64_t i = 0; i < number; i++)
            out->lines[i] = (uint32_t)i;
        out->lines_listed = true;
    }
    out->lines[number] = (uint32_t)(record->line - out->first_line);
    return SLUICE_OK;
}

static sluice_status take_record(staging *s, uint64_t number, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    wk_fault *fault = &s->fault;
    wk_record *record = NULL;
    sluice_error error;
    sluice_status status = s->format->next(s->reader, &record, &error);

    if (status == SLUICE_RESOURCE_LIMIT || status == SLUICE_INPUT_SYNTAX || status == SLUICE_UNSUPPORTED_FORMAT) {
        uint64_t reached, line;
        s->format->place(s->reader, &reached, &line);
        wk_fault_from_error(fault, &error);
        give_up(s, fault, number, line);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    /* The boundary pass saw a record here: it was another file then. */
    if (record == NULL || record->number != number || record->unclosed)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
    s->seen += record->length;
    if (number == 0 && stage->has_header)
        return SLUICE_OK;
    if (stage->keep_lines)
        PF_TRY(note_line(s, record, err));
    if (fault->present)
        *fault = (wk_fault){0};
    PF_TRY(wk_rows_add(s->rows, record, fault, err));
    if (fault->present)
        return leave_out(s, fault, record, err);
    if (wk_rows_length(s->rows) >= WK_BATCH_ROWS || wk_rows_bytes(s->rows) >= WK_BATCH_BYTES)
        return flush_batch(s, err);
    return SLUICE_OK;
}

static sluice_status take_records(staging *s, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    const wk_chunk *place = stage->view.place;

    PF_TRY(s->format->open(&stage->view, &s->reader, err));
    for (uint64_t i = 0; i < place->records && !s->out->damaged; i++) {
        uint64_t number = place->first_record + i;
        if (stage->shape->unclosed && number + 1 == stage->shape->records) {
            wk_fault fault = {0};
            uint64_t open_line = place->first_line;
            PF_TRY(wk_count_lines(&stage->view.input->source, stage->view.start, stage->shape->open_quote, &open_line,
                                  err));
            wk_fault_set(&fault, SLUICE_INPUT_SYNTAX, "a quote opens here and is never closed");
            wk_hint(&fault, WK_HINT_UNCLOSED);
            give_up(s, &fault, number, open_line);
            break;
        }
        PF_TRY(take_record(s, number, err));
    }
    return SLUICE_OK;
}

static sluice_status make_staging(staging *s, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    char attempt[PF_ID_TEXT];
    wk_sink_setup setup = {.volume = stage->spool->volume,
                           .schema = stage->view.columns->schema,
                           .type = stage->view.columns->type,
                           .number = stage->number,
                           .compress = stage->compress,
                           .spool = stage->spool,
                           .expected = s->out->records};

    PF_TRY(wk_rows_make(stage->view.input, stage->view.columns, &s->rows, err));
    setup.specs = wk_rows_specs(s->rows, &setup.count);
    pf_id_text(&stage->spool->attempt, attempt);
    (void)snprintf(setup.prefix, sizeof setup.prefix, "%s-", attempt);
    if (stage->absent) {
        PF_TRY(wk_spool_begin(stage->spool, stage->absent, &s->absent, err));
        s->absent_open = true;
    }
    PF_TRY(wk_sink_open(&setup, &s->sink, err));
    if (stage->name_type == NULL)
        return SLUICE_OK;
    setup.type = &stage->name_type->type;
    setup.specs = &stage->name_type->spec;
    setup.count = 1;
    (void)snprintf(setup.prefix, sizeof setup.prefix, "%s-n", attempt);
    return wk_sink_open(&setup, &s->names, err);
}

static void free_staging(staging *s)
{
    s->format->close(s->reader);
    if (s->absent_open)
        wk_spool_abandon(&s->absent);
    wk_sink_close(s->sink);
    wk_sink_close(s->names);
    wk_rows_free(s->rows);
}

sluice_status wk_stage_chunk(const wk_stage *stage, wk_staged *ret_staged, sluice_error *err)
{
    staging s = {.stage = stage, .out = ret_staged, .format = stage->view.input->format};
    bool header_here = stage->has_header && stage->view.place->first_record == 0 && stage->view.place->records > 0;
    sluice_status status = SLUICE_OK;

    memset(ret_staged, 0, sizeof *ret_staged);
    ret_staged->table = stage->view.columns->type->table;
    ret_staged->argument = stage->argument;
    ret_staged->chunk = stage->chunk;
    ret_staged->first_record = stage->view.place->first_record + header_here;
    ret_staged->records = stage->view.place->records - header_here;
    if (stage->view.place->records == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, make_staging(&s, err));
    PF_GOTO(status, done, take_records(&s, err));
    PF_GOTO(status, done, flush_batch(&s, err));
    if (s.absent_open) {
        s.absent_open = false;
        PF_GOTO(status, done, wk_spool_end(&s.absent, NULL, err));
    }
    PF_GOTO(status, done, wk_sink_finish(s.sink, &ret_staged->add, err));
    ret_staged->tries = wk_sink_tries(s.sink);
    if (s.names)
        PF_GOTO(status, done, wk_sink_finish(s.names, &stage->ret_names->add, err));
done:
    free_staging(&s);
    if (status != SLUICE_OK)
        wk_staged_free(ret_staged);
    return status;
}
