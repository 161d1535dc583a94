/*
 * CSV as a format: columns by the header, records by the record reader (csv.h), fields into rows.
 */
#include "worker/ingest/hints.h"
#include "worker/ingest/infer.h"
#include "worker/ingest/rows_build.h"
#include "worker/ingest/text.h"
#include <stdlib.h>
#include <string.h>

typedef struct csv_reader {
    const wk_columns *columns;
    wk_csv *csv;
} csv_reader;

static void prepare(wk_input *input)
{
    wk_lexer_make(&input->lexer, input->dialect);
}

/* ---- columns ---- */

static sluice_status read_header(const wk_input *owner, pf_buffer *storage, wk_name **ret_names, uint32_t *ret_count,
                                 wk_fault *fault, sluice_error *err)
{
    uint64_t begin = 0;

    PF_TRY(wk_text_begin(&owner->source, &begin, fault, err));
    if (fault->present)
        return SLUICE_OK;
    return wk_header_read(&owner->lexer, &owner->source, begin, storage, ret_names, ret_count, &fault->line, fault,
                          err);
}

static sluice_status map(const wk_input *input, const wk_input *owner, wk_columns *columns, wk_fault *ret_fault,
                         sluice_error *err)
{
    bool given = input->dialect->no_header;
    pf_buffer storage = {0};
    wk_name *names = NULL;
    uint32_t count = 0;
    sluice_status status;

    if (given)
        PF_GOTO(status, done, wk_columns_given(columns->type, input->dialect->columns, &storage, &names, &count, err));
    else
        PF_GOTO(status, done, read_header(owner, &storage, &names, &count, ret_fault, err));
    if (!ret_fault->present)
        status = wk_mapping_make(columns->schema, columns->type, names, count, wk_columns_allow(columns),
                                 &columns->mapping, ret_fault, err);
    if (ret_fault->present && !given)
        wk_hint_heading(names, count, columns->type, ret_fault);
    if (status == SLUICE_OK && ret_fault->present && given) {
        status =
            pf_fail_private(err, SLUICE_USAGE, "--columns does not fit the type", "--columns: %s", ret_fault->text);
        if (ret_fault->hint[0])
            pf_hint(err, "%s", ret_fault->hint);
    }
done:
    free(names);
    pf_buffer_free(&storage);
    return status;
}

/* ---- records ---- */

static void close_reader(void *reader)
{
    csv_reader *r = reader;

    if (r == NULL)
        return;
    wk_csv_close(r->csv);
    free(r);
}

static sluice_status open_reader(const wk_chunk_view *view, void **ret_reader, sluice_error *err)
{
    csv_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return pf_fail_memory(err);
    r->columns = view->columns;
    sluice_status status = wk_text_open(view, view->columns->mapping.field_count, &r->csv, err);
    if (status == SLUICE_OK)
        *ret_reader = r;
    else
        close_reader(r);
    return status;
}

static sluice_status next(void *reader, wk_record **ret_record, sluice_error *err)
{
    csv_reader *r = reader;

    PF_TRY(wk_csv_next(r->csv, ret_record, err));
    if (*ret_record)
        (*ret_record)->mapping = &r->columns->mapping;
    return SLUICE_OK;
}

static void place(const void *reader, uint64_t *ret_number, uint64_t *ret_line)
{
    wk_csv_place(((const csv_reader *)reader)->csv, ret_number, ret_line);
}

static const char *text_of(const wk_input *input, wk_record *record, uint32_t i, size_t *ret_length)
{
    return wk_csv_text(&input->lexer, record, i, ret_length);
}

/* ---- fields ---- */

static bool is_null_token(const wk_dialect *dialect, const wk_field *field, const char *text)
{
    const char *token = dialect->null_token;
    return token && !(field->flags & WK_FIELD_QUOTED) && field->length == strlen(token) &&
           memcmp(text, token, field->length) == 0;
}

/* The text still has its escapes when a null token is looked for: that is compared as it stands. */
static sluice_status add_value(wk_rows *rows, const wk_target *target, wk_record *record, uint32_t i, wk_fault *fault,
                               sluice_error *err)
{
    const wk_field *field = &record->fields[i];
    const char *text = (const char *)record->text + field->start;
    bool nothing = field->length == 0 && !(field->flags & WK_FIELD_QUOTED);
    size_t length;

    if (nothing || is_null_token(rows->input->dialect, field, text))
        return wk_rows_nothing(rows, target, nothing, fault, err);
    text = wk_csv_text(&rows->input->lexer, record, i, &length);
    PF_TRY(wk_rows_text(rows, target, text, length, fault, err));
    if (fault->present && fault->code == SLUICE_CONSTRAINT_TYPE && !(field->flags & WK_FIELD_QUOTED) &&
        wk_rows_may_be_null(rows, target))
        wk_hint_null(text, length, fault);
    return SLUICE_OK;
}

static sluice_status add_field(wk_rows *rows, wk_record *record, uint32_t i, wk_fault *fault, sluice_error *err)
{
    const wk_target *target = &record->mapping->targets[i];
    const wk_field *field = &record->fields[i];
    char shown[WK_SHOWN_ROOM];

    fault->column = i;
    if (field->flags & (WK_FIELD_JUNK | WK_FIELD_BARE_CR)) {
        wk_rows_refuse(fault, SLUICE_INPUT_SYNTAX, target->name[0] ? target->name : "without a name",
                       (field->flags & WK_FIELD_JUNK)
                           ? "there is text behind the closing quote"
                           : "there is a carriage return without a line feed outside quotes");
        if (field->flags & WK_FIELD_JUNK)
            wk_hint_quote((const char *)record->text + field->start, field->length, rows->input->lexer.has_escape,
                          fault);
        else
            wk_hint_line_end(fault);
        return SLUICE_OK;
    }
    switch (target->kind) {
    case WK_TARGET_COLUMN:
    case WK_TARGET_MEMBER:
        return add_value(rows, target, record, i, fault, err);
    case WK_TARGET_LABEL: {
        size_t length;
        const char *text = wk_csv_text(&rows->input->lexer, record, i, &length);
        wk_rows_label(rows, target, text, length, fault);
        break;
    }
    case WK_TARGET_NAMELESS:
        if (field->length > 0)
            wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "column %u has no name, and holds %s", i + 1,
                         wk_shown(record->text + field->start, field->length, shown));
        if (fault->present)
            wk_hint(fault, "give the column a name in the heading (a name of x:IGNORE leaves it out)");
        break;
    case WK_TARGET_IGNORE:
        break;
    }
    return SLUICE_OK;
}

static sluice_status add(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err)
{
    uint32_t wanted = record->mapping->field_count;

    if (record->count != wanted) {
        fault->column = 0;
        wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "there %s %llu value%s for %u column%s",
                     record->count == 1 ? "is" : "are", (unsigned long long)record->count,
                     record->count == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s");
        wk_hint_count(record->count, wanted, fault);
        for (uint32_t i = 0; i < record->kept; i++)
            if (record->fields[i].flags & WK_FIELD_BARE_CR) /* rather one that was meant to end a line */
                wk_hint_line_end(fault);
        return SLUICE_OK;
    }
    for (uint32_t i = 0; i < record->kept && !fault->present; i++)
        PF_TRY(add_field(rows, record, i, fault, err));
    return SLUICE_OK;
}

/* ---- inference ---- */

static bool is_well_formed(const wk_record *record, uint32_t fields)
{
    bool well = record->count == fields && !record->unclosed;

    for (uint32_t i = 0; i < record->kept && well; i++)
        well = !(record->fields[i].flags & (WK_FIELD_JUNK | WK_FIELD_BARE_CR));
    return well;
}

static sluice_status survey_record(const wk_input *input, const wk_survey *survey, wk_record *record, sluice_error *err)
{
    wk_infer_place here = {survey->argument, record->line};

    survey->infer->records++;
    for (uint32_t i = 0; i < record->kept; i++) {
        if (survey->headings[i] == WK_INFER_NONE)
            continue;
        wk_infer_column *column = &survey->infer->columns[survey->headings[i]];
        const wk_field *field = &record->fields[i];
        const char *text = (const char *)record->text + field->start;
        size_t length;
        column->records++;
        if ((field->length == 0 && !(field->flags & WK_FIELD_QUOTED)) || is_null_token(input->dialect, field, text)) {
            wk_infer_null(column);
            continue;
        }
        text = wk_csv_text(&input->lexer, record, i, &length);
        PF_TRY(wk_infer_value(column, WK_KIND_PLAIN, text, length, &here, err));
    }
    return SLUICE_OK;
}

static sluice_status survey_records(const wk_input *input, const wk_survey *survey, sluice_error *err)
{
    wk_csv_start start = {.offset = input->mark, .line = 1, .piece = survey->piece, .fields = survey->heading_count};
    wk_csv *csv = NULL;
    sluice_status status;

    PF_TRY(wk_csv_open(&input->lexer, &input->source, &start, &csv, err));
    for (;;) {
        wk_record *record = NULL;
        PF_GOTO(status, done, wk_text_next(csv, &record, err));
        if (record == NULL)
            break;
        if ((record->number > 0 || !survey->has_header) && is_well_formed(record, survey->heading_count))
            PF_GOTO(status, done, survey_record(input, survey, record, err));
    }
done:
    wk_csv_close(csv);
    return status;
}

static sluice_status survey_input(const wk_input *input, const wk_input *owner, wk_survey *survey, wk_fault *ret_fault,
                                  sluice_error *err)
{
    pf_buffer storage = {0};
    wk_name *names = NULL;
    uint32_t count = 0;
    sluice_status status;

    if (input->dialect->no_header && input->dialect->columns == NULL)
        return pf_fail(err, SLUICE_USAGE, "--infer with --no-header needs the names: --columns");
    if (input->dialect->no_header)
        PF_GOTO(status, done, wk_columns_given(NULL, input->dialect->columns, &storage, &names, &count, err));
    else
        PF_GOTO(status, done, read_header(owner, &storage, &names, &count, ret_fault, err));
    if (ret_fault->present)
        goto done;
    PF_GOTO(status, done, wk_survey_headings(survey, names, count, ret_fault->line ? ret_fault->line : 1, err));
    status = survey_records(input, survey, err);
done:
    free(names);
    pf_buffer_free(&storage);
    return status;
}

const wk_format_ops wk_csv_ops = {.has_header = true,
                                  .prepare = prepare,
                                  .scan = wk_text_scan,
                                  .join = wk_text_join,
                                  .map = map,
                                  .open = open_reader,
                                  .next = next,
                                  .place = place,
                                  .close = close_reader,
                                  .add = add,
                                  .survey = survey_input,
                                  .text = text_of};
