/*
 * JSON Lines as a format: records are lines, each an object with names of its own (jsonl.h).
 *
 * The names of a record are its header: they are resolved by the rules for columns (header.h). Records of one file
 * seldom have many different lists of names, so what a list means is kept (a shape).
 */
#include "platform/digest.h"
#include "store/format/tokens.h"
#include "worker/ingest/infer.h"
#include "worker/ingest/jsonl.h"
#include "worker/ingest/rows_build.h"
#include "worker/ingest/text.h"
#include <stdlib.h>
#include <string.h>

#define SHAPES_MAX       64u /* kept; where a list is kept follows from its hash */
#define SHAPE_NAMES_MAX  1024u
#define SHAPE_BYTES_MAX  65536u
#define SHAPE_OF_THE_BIG 0u /* the place of all that have more names or bytes: only the last one is kept */

typedef struct name_shape {
    uint64_t hash;
    pf_buffer names; /* as in wk_json_line */
    wk_mapping mapping;
    wk_fault fault; /* then there is no mapping */
} name_shape;

typedef struct jsonl_reader {
    const wk_columns *columns;
    wk_csv *lines;
    wk_json_line line;
    wk_record record;
    wk_fault fault;
    name_shape *shapes[SHAPES_MAX];
} jsonl_reader;

static void prepare(wk_input *input)
{
    wk_lexer_make_lines(&input->lexer);
}

static sluice_status map(const wk_input *input, const wk_input *owner, wk_columns *columns, wk_fault *ret_fault,
                         sluice_error *err)
{
    uint64_t begin;

    (void)owner;
    (void)columns;
    return wk_text_begin(&input->source, &begin, ret_fault, err);
}

/* ---- shapes ---- */

typedef struct indexed_name {
    wk_name name;
    uint32_t index;
} indexed_name;

static int by_name(const void *a, const void *b)
{
    const indexed_name *left = a, *right = b;
    size_t shorter = left->name.length < right->name.length ? left->name.length : right->name.length;
    int order = shorter ? memcmp(left->name.text, right->name.text, shorter) : 0;

    if (order == 0 && left->name.length != right->name.length)
        order = left->name.length < right->name.length ? -1 : 1;
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* The first name that was there before. */
static sluice_status check_twice(const wk_name *names, uint32_t count, wk_fault *fault, sluice_error *err)
{
    indexed_name *sorted = calloc((size_t)count + 1, sizeof *sorted);
    uint32_t first = count;
    char shown[WK_SHOWN_ROOM];

    if (sorted == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = (indexed_name){names[i], i};
    qsort(sorted, count, sizeof *sorted, by_name);
    for (uint32_t i = 1; i < count; i++)
        if (sorted[i].name.length == sorted[i - 1].name.length && sorted[i].index < first &&
            memcmp(sorted[i].name.text, sorted[i - 1].name.text, sorted[i].name.length) == 0)
            first = sorted[i].index;
    free(sorted);
    if (first == count)
        return SLUICE_OK;
    fault->column = first;
    wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "column %s is named twice",
                 wk_shown(names[first].text, names[first].length, shown));
    return SLUICE_OK;
}

static void free_shape(name_shape *s)
{
    if (s == NULL)
        return;
    pf_buffer_free(&s->names);
    wk_mapping_free(&s->mapping);
    free(s);
}

static sluice_status resolve(const wk_columns *columns, uint32_t count, name_shape *s, sluice_error *err)
{
    wk_name *names = calloc((size_t)count + 1, sizeof *names);
    size_t at = 0;
    sluice_status status;

    if (names == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length;
        memcpy(&length, s->names.data + at, sizeof length);
        names[i] = (wk_name){(const char *)s->names.data + at + sizeof length, length};
        at += sizeof length + length;
    }
    status = check_twice(names, count, &s->fault, err);
    if (status == SLUICE_OK && !s->fault.present)
        status = wk_mapping_make(columns->schema, columns->type, names, count, wk_columns_allow(columns), &s->mapping,
                                 &s->fault, err);
    /* What is missing in one record is a value, not a column of the file. */
    if (s->fault.present && s->fault.column == count)
        s->fault.code = SLUICE_CONSTRAINT_NULL;
    free(names);
    return status;
}

static sluice_status find_shape(jsonl_reader *r, const name_shape **ret_shape, sluice_error *err)
{
    const pf_buffer *names = &r->line.names;
    bool big = r->line.count > SHAPE_NAMES_MAX || names->length > SHAPE_BYTES_MAX;
    uint64_t hash = pf_xxh64_of(names->data, names->length);
    name_shape **place = &r->shapes[big ? SHAPE_OF_THE_BIG : 1 + hash % (SHAPES_MAX - 1)];
    sluice_status status;

    *ret_shape = *place;
    if (*place && (*place)->hash == hash && (*place)->names.length == names->length &&
        (names->length == 0 || memcmp((*place)->names.data, names->data, names->length) == 0))
        return SLUICE_OK;
    free_shape(*place);
    *place = calloc(1, sizeof **place);
    if (*place == NULL)
        return pf_fail_memory(err);
    (*place)->hash = hash;
    status = pf_buffer_append(&(*place)->names, names->data, names->length, err);
    if (status == SLUICE_OK)
        status = resolve(r->columns, r->line.count, *place, err);
    *ret_shape = *place;
    return status;
}

/* ---- records ---- */

static void close_reader(void *reader)
{
    jsonl_reader *r = reader;

    if (r == NULL)
        return;
    for (unsigned i = 0; i < SHAPES_MAX; i++)
        free_shape(r->shapes[i]);
    wk_json_line_free(&r->line);
    wk_csv_close(r->lines);
    free(r);
}

static sluice_status open_reader(const wk_chunk_view *view, void **ret_reader, sluice_error *err)
{
    jsonl_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return pf_fail_memory(err);
    r->columns = view->columns;
    sluice_status status = wk_text_open(view, 1, &r->lines, err);
    if (status == SLUICE_OK)
        *ret_reader = r;
    else
        close_reader(r);
    return status;
}

static sluice_status next(void *reader, wk_record **ret_record, sluice_error *err)
{
    jsonl_reader *r = reader;
    wk_record *line = NULL, *record = &r->record;
    const name_shape *found = NULL;

    *ret_record = NULL;
    PF_TRY(wk_csv_next(r->lines, &line, err));
    if (line == NULL)
        return SLUICE_OK;
    PF_TRY(wk_json_line_read(&r->line, r->columns->type, (const char *)line->text, line->fields[0].length, &r->fault,
                             err));
    *record = *line;
    record->fields = r->line.fields;
    record->kept = 0;
    record->count = 0;
    record->fault = &r->fault;
    if (!r->fault.present) {
        PF_TRY(find_shape(r, &found, err));
        record->fault = found->fault.present ? &found->fault : NULL;
    }
    if (record->fault == NULL) {
        record->kept = r->line.count;
        record->count = r->line.count;
        record->mapping = &found->mapping;
    }
    *ret_record = record;
    return SLUICE_OK;
}

static void place(const void *reader, uint64_t *ret_number, uint64_t *ret_line)
{
    wk_csv_place(((const jsonl_reader *)reader)->lines, ret_number, ret_line);
}

/* Escapes are resolved where they stand. */
static const char *text_of(const wk_input *input, wk_record *record, uint32_t i, size_t *ret_length)
{
    wk_field *field = &record->fields[i];
    char *text = (char *)record->text + field->start;

    (void)input;
    if (field->flags & WK_FIELD_REWRITE) {
        st_token token = {.kind = ST_TOKEN_STRING, .text = text, .length = field->length, .escaped = true};
        field->length = st_token_decode_to(&token, text);
        field->flags &= ~(unsigned)WK_FIELD_REWRITE;
    }
    *ret_length = field->length;
    return text;
}

/* ---- values ---- */

/* What a value of this kind is called, where a column of the type does not take it; NULL: it may. */
static const char *misfit(unsigned flags, st_type type)
{
    bool number = type == ST_INT32 || type == ST_INT64 || type == ST_UINT64 || type == ST_FLOAT32 ||
                  type == ST_FLOAT64 || type == ST_ROW_ID;

    if ((flags & WK_FIELD_NUMBER) && !number)
        return "a number";
    if ((flags & WK_FIELD_WORD) && type != ST_BOOL)
        return "a bool";
    if ((flags & WK_FIELD_LIST) && type != ST_STRUCT)
        return "a list";
    return (flags & WK_FIELD_OBJECT) ? "an object" : NULL;
}

static sluice_status add_value(wk_rows *rows, const wk_target *target, wk_record *record, uint32_t i, wk_fault *fault,
                               sluice_error *err)
{
    const st_column_spec *spec = &rows->specs[target->column];
    unsigned flags = record->fields[i].flags;
    size_t length;
    char shown[WK_SHOWN_ROOM];

    if (target->kind == WK_TARGET_MEMBER)
        spec = &spec->children[target->member];
    if (flags & WK_FIELD_NULL)
        return wk_rows_nothing(rows, target, false, fault, err);
    const char *kind = misfit(flags, spec->type), *text = text_of(rows->input, record, i, &length);
    if (kind == NULL)
        return wk_rows_text(rows, target, text, length, fault, err);
    wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %s: %s is %s, and the column is of type %s", target->name,
                 wk_shown(text, length, shown), kind, spec->type == ST_STRUCT ? "key" : st_type_name(spec->type));
    return SLUICE_OK;
}

static sluice_status add_field(wk_rows *rows, wk_record *record, uint32_t i, wk_fault *fault, sluice_error *err)
{
    const wk_target *target = &record->mapping->targets[i];
    const wk_field *field = &record->fields[i];

    fault->column = i;
    switch (target->kind) {
    case WK_TARGET_COLUMN:
    case WK_TARGET_MEMBER:
        return add_value(rows, target, record, i, fault, err);
    case WK_TARGET_LABEL: {
        size_t length;
        const char *text = text_of(rows->input, record, i, &length);
        wk_rows_label(rows, target, text, length, fault);
        break;
    }
    case WK_TARGET_NAMELESS:
        if (!(field->flags & WK_FIELD_NULL))
            wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "value %u has an empty name", i + 1);
        break;
    case WK_TARGET_IGNORE:
        break;
    }
    return SLUICE_OK;
}

static sluice_status add(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err)
{
    if (record->fault != NULL)
        *fault = *record->fault;
    for (uint32_t i = 0; i < record->kept && !fault->present; i++)
        PF_TRY(add_field(rows, record, i, fault, err));
    return SLUICE_OK;
}

/* ---- inference ---- */

static wk_kind kind_of(unsigned flags)
{
    if (flags & WK_FIELD_NUMBER)
        return WK_KIND_NUMBER;
    if (flags & WK_FIELD_WORD)
        return WK_KIND_WORD;
    if (flags & WK_FIELD_LIST)
        return WK_KIND_LIST;
    return (flags & WK_FIELD_OBJECT) ? WK_KIND_OBJECT : WK_KIND_TEXT;
}

static sluice_status survey_line(const wk_input *input, const wk_survey *survey, wk_json_line *line, wk_record *record,
                                 sluice_error *err)
{
    static const st_type_def any_edge = {.edge = true}; /* whose ends may be objects, should it be one */
    wk_infer_place here = {survey->argument, record->line};
    wk_record fields = *record;
    wk_fault fault = {0};
    size_t at = 0;

    PF_TRY(wk_json_line_read(line, &any_edge, (const char *)record->text, record->fields[0].length, &fault, err));
    if (fault.present)
        return SLUICE_OK;
    fields.fields = line->fields;
    survey->infer->records++;
    for (uint32_t i = 0; i < line->count; i++) {
        uint32_t found, length;
        memcpy(&length, line->names.data + at, sizeof length);
        PF_TRY(wk_infer_find(survey->infer, (const char *)line->names.data + at + sizeof length, length, &here, &found,
                             err));
        at += sizeof length + length;
        if (found == WK_INFER_NONE)
            continue;
        wk_infer_column *column = &survey->infer->columns[found];
        column->records++;
        if (line->fields[i].flags & WK_FIELD_NULL) {
            wk_infer_null(column);
            continue;
        }
        size_t bytes;
        wk_kind kind = kind_of(line->fields[i].flags);
        const char *text = text_of(input, &fields, i, &bytes);
        PF_TRY(wk_infer_value(column, kind, text, bytes, &here, err));
    }
    return SLUICE_OK;
}

static sluice_status survey_input(const wk_input *input, const wk_input *owner, wk_survey *survey, wk_fault *ret_fault,
                                  sluice_error *err)
{
    wk_csv_start start = {.line = 1, .piece = survey->piece, .fields = 1};
    wk_csv *lines = NULL;
    wk_json_line line = {0};
    sluice_status status;

    (void)owner;
    PF_TRY(wk_text_begin(&input->source, &start.offset, ret_fault, err));
    if (ret_fault->present)
        return SLUICE_OK;
    PF_TRY(wk_csv_open(&input->lexer, &input->source, &start, &lines, err));
    for (;;) {
        wk_record *record = NULL;
        PF_GOTO(status, done, wk_text_next(lines, &record, err));
        if (record == NULL)
            break;
        PF_GOTO(status, done, survey_line(input, survey, &line, record, err));
    }
done:
    wk_json_line_free(&line);
    wk_csv_close(lines);
    return status;
}

const wk_format_ops wk_jsonl_ops = {.prepare = prepare,
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
