/*
 * Arrow IPC as a format: a record is a row of a batch, its line the number of the row, from 1. Where the rows lie:
 * arrow_input.h.
 */
#include "platform/check.h"
#include "store/format/json.h"
#include "worker/ingest/arrow_input.h"
#include "worker/ingest/arrow_value.h"
#include "worker/ingest/infer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_ROWS 8192u

typedef struct arrow_reader {
    wk_record record; /* first: a record leads back to its reader */
    const st_arrow_input *input;
    const wk_mapping *mapping;
    st_arrow_reader *rows;
    uint32_t *slots; /* per column of the input: its array, or NO_SLOT */
    uint64_t next, end;
    uint32_t batch; /* of row `next` */
    const st_arrow_array *arrays;
    uint64_t first, count; /* of the arrays' rows in the input */
    uint64_t row;          /* of the record in the arrays */
    pf_buffer text;
} arrow_reader;

#define NO_SLOT UINT32_MAX

static void prepare(wk_input *input)
{
    (void)input;
}

/* ---- columns ---- */

static bool is_value(const wk_target *target)
{
    return target->kind == WK_TARGET_COLUMN || target->kind == WK_TARGET_MEMBER;
}

/* Refuses columns whose values can never be had. */
static void check_types(const st_arrow_input *input, const wk_columns *columns, const st_column_spec *specs,
                        wk_fault *fault)
{
    for (uint32_t i = 0; i < input->leaf_count && !fault->present; i++) {
        const wk_target *target = &columns->mapping.targets[i];
        const st_arrow_field *field = input->leaves[i].field;
        char text[ST_ARROW_TYPE_TEXT];
        fault->column = i;
        if (is_value(target)) {
            const st_column_spec *spec = &specs[target->column];
            if (target->kind == WK_TARGET_MEMBER)
                spec = &spec->children[target->member];
            bool whole_end = spec->type == ST_STRUCT && st_arrow_field_class(field) == ST_CLASS_TEXT;
            if (whole_end || (spec->type != ST_STRUCT && wk_arrow_fits(field, spec->type)))
                continue;
            wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %s: Arrow's %s cannot become %s", target->name,
                         st_arrow_field_text(field, text), st_type_name(spec->type));
            (void)snprintf(fault->hint, sizeof fault->hint, "cast the column to %s first, or leave it out of the file",
                           spec->type == ST_STRUCT ? "a struct of the key's members" : st_type_name(spec->type));
        } else if ((target->kind != WK_TARGET_IGNORE || target->names != WK_NAMES_NOTHING) &&
                   (!st_arrow_field_is_flat(field) ||
                    (target->kind == WK_TARGET_LABEL && st_arrow_field_class(field) != ST_CLASS_TEXT))) {
            wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %u (\"%s\"): Arrow's %s is no text", i + 1,
                         target->name, st_arrow_field_text(field, text));
            (void)snprintf(fault->hint, sizeof fault->hint, "cast the column to text, or leave it out of the file");
        }
    }
}

static sluice_status names_of(const st_arrow_input *input, wk_name **ret_names, sluice_error *err)
{
    wk_name *names = calloc((size_t)input->leaf_count + 1, sizeof *names);

    if (names == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < input->leaf_count; i++)
        names[i] = (wk_name){input->leaves[i].name, strlen(input->leaves[i].name)};
    *ret_names = names;
    return SLUICE_OK;
}

static sluice_status map(const wk_input *input, const wk_input *owner, wk_columns *columns, wk_fault *ret_fault,
                         sluice_error *err)
{
    wk_arrow_state *state = NULL;
    st_column_spec *specs = NULL;
    wk_name *names = NULL;
    uint32_t count = 0;
    sluice_status status;

    (void)owner;
    PF_TRY(wk_arrow_state_get(input, &state, err));
    if (state->input == NULL) {
        *ret_fault = state->fault;
        ret_fault->line = 1;
        return SLUICE_OK;
    }
    PF_TRY(names_of(state->input, &names, err));
    PF_GOTO(status, done,
            wk_mapping_make(columns->schema, columns->type, names, state->input->leaf_count, wk_columns_allow(columns),
                            &columns->mapping, ret_fault, err));
    if (ret_fault->present)
        goto done;
    PF_GOTO(status, done, st_type_columns(columns->schema, columns->type, &specs, &count, err));
    check_types(state->input, columns, specs, ret_fault);
    if (ret_fault->present)
        wk_mapping_free(&columns->mapping);
done:
    st_type_columns_free(specs, count);
    free(names);
    return status;
}

/* ---- records ---- */

static void close_reader(void *reader)
{
    arrow_reader *r = reader;

    if (r == NULL)
        return;
    st_arrow_reader_free(r->rows);
    pf_buffer_free(&r->text);
    free(r->slots);
    free(r);
}

/* The batch that has row `row`, or the number of batches. */
static uint32_t find_batch(const st_arrow_input *input, uint64_t row)
{
    uint32_t low = 0, high = input->batch_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (input->batches[middle].first_row + input->batches[middle].rows <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Arrays for the columns that something is made of. */
static sluice_status open_rows(arrow_reader *r, sluice_error *err)
{
    uint32_t fields = r->mapping->field_count, count = 0;
    uint32_t *leaves = calloc((size_t)fields + 1, sizeof *leaves);

    r->slots = calloc((size_t)fields + 1, sizeof *r->slots);
    if (leaves == NULL || r->slots == NULL) {
        free(leaves);
        return pf_fail_memory(err);
    }
    for (uint32_t i = 0; i < fields; i++) {
        const wk_target *target = &r->mapping->targets[i];
        bool wanted = target->kind != WK_TARGET_IGNORE || target->names != WK_NAMES_NOTHING;
        r->slots[i] = wanted ? count : NO_SLOT;
        if (wanted)
            leaves[count++] = i;
    }
    sluice_status status = st_arrow_reader_new(r->input, leaves, count, &r->rows, err);
    free(leaves);
    return status;
}

static sluice_status open_reader(const wk_chunk_view *view, void **ret_reader, sluice_error *err)
{
    wk_arrow_state *state = NULL;
    arrow_reader *r = NULL;
    sluice_status status;

    PF_TRY(wk_arrow_state_get(view->input, &state, err));
    if (state->input == NULL)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return pf_fail_memory(err);
    r->input = state->input;
    r->mapping = &view->columns->mapping;
    r->next = view->place->first_record;
    r->end = r->next + view->place->records;
    r->batch = find_batch(r->input, r->next);
    PF_GOTO(status, failed, open_rows(r, err));
    *ret_reader = r;
    return SLUICE_OK;
failed:
    close_reader(r);
    return status;
}

/* Where in the input its content is wrong: the column, where one is known. */
static sluice_status blame(const arrow_reader *r, sluice_status status, uint32_t leaf, sluice_error *error,
                           sluice_error *err)
{
    if (!wk_arrow_is_content(status, error)) {
        if (err)
            *err = *error;
        return status;
    }
    (void)pf_fail_private(err, error->code, error->message, "column %s: %s", r->input->leaves[leaf].name, error->text);
    if (error->hint[0])
        pf_hint(err, "%s", error->hint);
    return error->code;
}

static sluice_status read_slice(arrow_reader *r, sluice_error *err)
{
    uint64_t wanted = r->end - r->next;
    uint32_t leaf = 0;
    sluice_error error;

    while (r->batch < r->input->batch_count &&
           r->input->batches[r->batch].first_row + r->input->batches[r->batch].rows <= r->next)
        r->batch++;
    if (r->batch == r->input->batch_count) {
        error = r->input->damage;
        (void)wk_arrow_is_content(error.code, &error);
        if (err)
            *err = error;
        return error.code;
    }
    const st_arrow_batch_place *batch = &r->input->batches[r->batch];
    pf_error_clear(&error);
    sluice_status status =
        st_arrow_read(r->rows, r->batch, r->next - batch->first_row, wanted < SLICE_ROWS ? wanted : SLICE_ROWS,
                      &r->arrays, &r->count, &leaf, &error);
    if (status != SLUICE_OK)
        return blame(r, status, leaf, &error, err);
    r->first = r->next;
    return SLUICE_OK;
}

static sluice_status next(void *reader, wk_record **ret_record, sluice_error *err)
{
    arrow_reader *r = reader;
    uint32_t fields = r->mapping->field_count;

    *ret_record = NULL;
    if (r->next == r->end)
        return SLUICE_OK;
    if (r->count == 0 || r->next - r->first == r->count) {
        r->count = 0;
        PF_TRY(read_slice(r, err));
    }
    r->row = r->next - r->first;
    r->record = (wk_record){
        .number = r->next, .line = r->next + 1, .kept = fields, .count = fields, .mapping = r->mapping, .length = 1};
    r->next++;
    *ret_record = &r->record;
    return SLUICE_OK;
}

static void place(const void *reader, uint64_t *ret_number, uint64_t *ret_line)
{
    const arrow_reader *r = reader;
    *ret_number = r->next;
    *ret_line = r->next + 1;
}

static sluice_status get(arrow_reader *r, uint32_t i, st_arrow_value *ret_value, sluice_error *err)
{
    return st_arrow_get(&r->arrays[r->slots[i]], r->row, ret_value, err);
}

static const char *text_of(const wk_input *input, wk_record *record, uint32_t i, size_t *ret_length)
{
    arrow_reader *r = (arrow_reader *)record;
    st_arrow_value value;

    (void)input;
    r->text.length = 0;
    *ret_length = 0;
    if (r->slots[i] == NO_SLOT || get(r, i, &value, NULL) != SLUICE_OK ||
        wk_arrow_text(&value, &r->text, NULL) != SLUICE_OK)
        return "";
    *ret_length = r->text.length;
    return r->text.length ? (const char *)r->text.data : "";
}

static void show_value(st_json *json, arrow_reader *r, uint32_t i)
{
    st_arrow_value value;
    sluice_error error;
    size_t length;

    pf_error_clear(&error);
    if (get(r, i, &value, &error) != SLUICE_OK) { /* it cannot be said: why */
        st_json_text(json, error.text);
        return;
    }
    const char *text = text_of(NULL, &r->record, i, &length);
    bool number = value.class == ST_CLASS_SIGNED || value.class == ST_CLASS_UNSIGNED || value.class == ST_CLASS_EXACT ||
                  (value.class == ST_CLASS_FLOATING && isfinite(value.f64));
    if (value.class == ST_CLASS_NOTHING)
        st_json_null(json);
    else if (number || value.class == ST_CLASS_TRUTH)
        st_json_raw(json, text, length);
    else
        st_json_lossy_text(json, text, length);
}

/* As an object of the columns that are loaded. */
static sluice_status show(wk_record *record, pf_buffer *buffer, sluice_error *err)
{
    arrow_reader *r = (arrow_reader *)record;
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    for (uint32_t i = 0; i < record->kept; i++) {
        const char *name = r->mapping->targets[i].name;
        if (r->slots[i] == NO_SLOT || !st_utf8_is_valid(name, strlen(name)))
            continue;
        st_json_name(&json, name);
        show_value(&json, r, i);
    }
    st_json_object_end(&json);
    return st_json_end(&json, false, err);
}

/* ---- fields ---- */

static sluice_status add_field(wk_rows *rows, arrow_reader *r, uint32_t i, uint64_t *bytes, wk_fault *fault,
                               sluice_error *err)
{
    const wk_target *target = &r->mapping->targets[i];
    st_arrow_value value;
    sluice_error error;
    size_t length;
    char shown[WK_SHOWN_ROOM];

    if (target->kind == WK_TARGET_IGNORE)
        return SLUICE_OK;
    fault->column = i;
    pf_error_clear(&error);
    sluice_status status = get(r, i, &value, &error);
    if (status == SLUICE_CONSTRAINT_TYPE) {
        wk_fault_set(fault, SLUICE_CONSTRAINT_TYPE, "column %s: %s", target->name, error.text);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    if (is_value(target))
        return wk_arrow_put(rows, target, &value, bytes, fault, err);
    const char *text = text_of(rows->input, &r->record, i, &length);
    if (target->kind == WK_TARGET_LABEL)
        wk_rows_label(rows, target, text, length, fault);
    else if (value.class != ST_CLASS_NOTHING)
        wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "column %u has no name, and holds %s", i + 1,
                     wk_shown(text, length, shown));
    return SLUICE_OK;
}

static sluice_status add(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < record->kept && !fault->present; i++)
        PF_TRY(add_field(rows, (arrow_reader *)record, i, &bytes, fault, err));
    record->length = bytes; /* what batches are measured by */
    return SLUICE_OK;
}

/* ---- inference ---- */

/* What the file's own schema says of a column. */
static sluice_status survey_leaf(wk_infer_column *column, const st_arrow_field *field, const wk_infer_place *here,
                                 sluice_error *err)
{
    const unsigned numbers = WK_INFER_BIT(ST_INT64) | WK_INFER_BIT(ST_UINT64) | WK_INFER_BIT(ST_FLOAT64);
    char text[ST_ARROW_TYPE_TEXT];
    st_type type = ST_STRING;
    unsigned can = 0;

    if (!st_arrow_field_is_flat(field)) {
        (void)st_arrow_field_text(field, text);
        return wk_infer_value(column, WK_KIND_LIST, text, strlen(text), here, err);
    }
    switch (st_arrow_field_class(field)) {
    case ST_CLASS_NOTHING:
        return SLUICE_OK;
    case ST_CLASS_SIGNED:
        type = ST_INT64;
        can = numbers;
        break;
    case ST_CLASS_UNSIGNED:
        type = field->width == 64 ? ST_UINT64 : ST_INT64;
        can = numbers;
        break;
    case ST_CLASS_EXACT:
        type = field->scale > 0 ? ST_FLOAT64 : ST_INT64;
        can = numbers;
        break;
    case ST_CLASS_FLOATING:
        type = ST_FLOAT64;
        break;
    case ST_CLASS_TRUTH:
        type = ST_BOOL;
        break;
    case ST_CLASS_TEXT:
        break;
    case ST_CLASS_BYTES:
        type = ST_BYTES;
        break;
    case ST_CLASS_DAY:
        type = ST_DATE;
        can = WK_INFER_BIT(ST_TIMESTAMP);
        break;
    case ST_CLASS_MOMENT:
        type = ST_TIMESTAMP;
        break;
    }
    wk_infer_declare(column, WK_INFER_BIT(type), can | WK_INFER_BIT(type));
    return SLUICE_OK;
}

static sluice_status survey_input(const wk_input *input, const wk_input *owner, wk_survey *survey, wk_fault *ret_fault,
                                  sluice_error *err)
{
    wk_arrow_state *state = NULL;
    wk_infer_place here = {survey->argument, 1};
    wk_name *names = NULL;
    sluice_status status;

    (void)owner;
    PF_TRY(wk_arrow_state_get(input, &state, err));
    if (state->input == NULL) {
        *ret_fault = state->fault;
        ret_fault->line = 1;
        return SLUICE_OK;
    }
    PF_TRY(names_of(state->input, &names, err));
    PF_GOTO(status, done, wk_survey_headings(survey, names, state->input->leaf_count, 1, err));
    survey->infer->records += state->input->rows;
    for (uint32_t i = 0; i < state->input->leaf_count; i++) {
        if (survey->headings[i] == WK_INFER_NONE)
            continue;
        wk_infer_column *column = &survey->infer->columns[survey->headings[i]];
        column->records += state->input->rows;
        column->stored = true;
        PF_GOTO(status, done, survey_leaf(column, state->input->leaves[i].field, &here, err));
    }
done:
    free(names);
    return status;
}

const wk_format_ops wk_arrow_ops = {.prepare = prepare,
                                    .release = wk_arrow_release,
                                    .scan = wk_arrow_scan,
                                    .join = wk_arrow_join,
                                    .map = map,
                                    .open = open_reader,
                                    .next = next,
                                    .place = place,
                                    .close = close_reader,
                                    .add = add,
                                    .survey = survey_input,
                                    .text = text_of,
                                    .show = show};
