/*
 * The second look of inference: the files of a type as a load would read them, under a schema that is still being
 * found. So whatever a load would refuse in a row is refused here, in its words.
 */
#include "coord/infer_job.h"
#include "worker/ingest/rows.h"
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS 4096u

typedef struct row_walk {
    infer_job *job;
    infer_type *type;
    uint32_t number; /* of the input */
    wk_columns columns;
    wk_rows *rows;
    void *reader;
    infer_rows_fn *each;
    void *context;
    uint64_t places[BATCH_ROWS];
    wk_fault *fault;
    int *end;
    bool stop;
} row_walk;

infer_type *infer_find(infer_job *job, const char *name)
{
    for (uint32_t i = 0; i < job->type_count; i++)
        if (strcmp(job->types[i].name, name) == 0)
            return &job->types[i];
    return NULL;
}

bool infer_names(const infer_type *type)
{
    bool names = type && type->infer.row_id;

    if (type == NULL || type->edge || type->keyed || type->key_count > 0)
        return false;
    for (uint32_t i = 0; type->known && i < type->infer.count; i++)
        names |= type->infer.columns[i].is_id;
    return names;
}

void infer_place_of(uint64_t place, wk_fault *fault)
{
    fault->argument = (uint32_t)(place >> 40);
    fault->line = place & ((UINT64_C(1) << 40) - 1);
}

sluice_status infer_fail(const infer_job *job, const wk_fault *fault, sluice_error *err)
{
    return wk_fault_fail(fault, job->spec.inputs[fault->argument].path, err);
}

/* In files of typed columns nulls are first seen here. */
static void note_nulls(const row_walk *w, const st_column *columns)
{
    uint32_t ends = w->columns.type->edge ? 2 : 0;

    for (uint32_t i = 0; i < w->type->property_count; i++) {
        wk_infer_column *column = &w->type->infer.columns[w->type->properties[i]];
        if (column->stored && columns[i + ends].nulls > 0)
            column->null = true;
    }
}

static sluice_status flush(row_walk *w, sluice_error *err)
{
    static const wk_naming naming[2] = {WK_NAMES_FROM, WK_NAMES_TO};
    static const uint64_t no_ids[BATCH_ROWS];
    infer_rows rows = {.rows = wk_rows_length(w->rows), .places = w->places};

    if (rows.rows == 0)
        return SLUICE_OK;
    for (unsigned end = 0; w->columns.type->edge && end < 2; end++)
        if (w->columns.named[end]) /* for no ids: the names themselves are looked at */
            PF_TRY(wk_rows_resolve(w->rows, naming[end], no_ids, err));
    rows.columns = wk_rows_columns(w->rows, &rows.count);
    if (w->columns.names_rows)
        wk_rows_names(w->rows, WK_NAMES_ROW, &rows.names);
    for (unsigned end = 0; w->columns.type->edge && end < 2; end++) {
        rows.ends[end] = rows.columns[end];
        if (w->columns.named[end])
            wk_rows_names(w->rows, naming[end], &rows.ends[end]);
    }
    note_nulls(w, rows.columns);
    PF_TRY(w->each(w->context, &rows, &w->stop, err));
    wk_rows_reset(w->rows);
    return SLUICE_OK;
}

static void set_place(row_walk *w, uint64_t line)
{
    w->fault->argument = w->number;
    if (w->fault->line == 0)
        w->fault->line = line;
}

/* The end that a field of a record stands for, when another type of key might take it. */
static int end_of_field(const row_walk *w, const wk_record *record)
{
    const wk_mapping *mapping = record->mapping;
    uint32_t i = w->fault->column;

    if (!w->columns.type->edge || mapping == NULL || record->count != mapping->field_count || i >= record->count ||
        w->fault->code != SLUICE_CONSTRAINT_TYPE ||
        (mapping->targets[i].kind != WK_TARGET_COLUMN && mapping->targets[i].kind != WK_TARGET_MEMBER))
        return -1;
    return mapping->targets[i].column < 2 ? (int)mapping->targets[i].column : -1;
}

static sluice_status take_record(row_walk *w, wk_record *record, sluice_error *err)
{
    if (record->unclosed) {
        wk_fault_set(w->fault, SLUICE_INPUT_SYNTAX, "a quote opens here and is never closed");
        set_place(w, record->open_line);
        return SLUICE_OK;
    }
    w->places[wk_rows_length(w->rows)] = infer_place(w->number, record->line);
    PF_TRY(wk_rows_add(w->rows, record, w->fault, err));
    if (w->fault->present) {
        *w->end = end_of_field(w, record);
        set_place(w, record->line);
    }
    return SLUICE_OK;
}

static sluice_status take_records(row_walk *w, sluice_error *err)
{
    const load_input *input = &w->job->spec.inputs[w->number];
    const wk_format_ops *format = w->job->inputs[w->number].input.format;

    while (!w->fault->present && !w->stop) {
        wk_record *record = NULL;
        sluice_error error;
        sluice_status status = format->next(w->reader, &record, &error);
        if (status == SLUICE_RESOURCE_LIMIT) {
            uint64_t number, line;
            format->place(w->reader, &number, &line);
            wk_fault_from_error(w->fault, &error);
            set_place(w, line);
            break;
        }
        if (status != SLUICE_OK) {
            if (err)
                *err = error;
            return status;
        }
        if (record == NULL)
            break;
        if (record->number == 0 && input->has_header)
            continue;
        PF_TRY(take_record(w, record, err));
        if (wk_rows_length(w->rows) == BATCH_ROWS)
            PF_TRY(flush(w, err));
    }
    /* Rows before a bad one count: what is found in them comes first. */
    return w->stop ? SLUICE_OK : flush(w, err);
}

/* All records of an input as one chunk. */
static sluice_status open_reader(row_walk *w, sluice_error *err)
{
    const infer_input *from = &w->job->inputs[w->number];
    wk_boundaries whole = {.bytes = from->input.source.size};
    wk_chunk place;
    wk_shape shape;

    whole.lanes[WK_LEX_RECORD_START].first = from->input.mark;
    PF_TRY(from->input.format->join(&from->input, &whole, 1, &place, &shape, err));
    wk_chunk_view view = {.input = &from->input,
                          .columns = &w->columns,
                          .start = from->input.mark,
                          .place = &place,
                          .piece = w->job->spec.piece};
    if (place.first == WK_NOWHERE)
        return SLUICE_OK;
    return from->input.format->open(&view, &w->reader, err);
}

static sluice_status walk_input(row_walk *w, sluice_error *err)
{
    const load_input *input = &w->job->spec.inputs[w->number];
    const infer_input *from = &w->job->inputs[w->number];
    sluice_status status;

    w->rows = NULL;
    w->reader = NULL;
    PF_TRY(from->input.format->map(&from->input, &w->job->inputs[input->header_of].input, &w->columns, w->fault, err));
    if (w->fault->present) {
        uint32_t column = w->fault->column < from->heading_count ? from->headings[w->fault->column] : WK_INFER_NONE;
        wk_role role = column == WK_INFER_NONE ? WK_ROLE_NONE : w->type->infer.columns[column].role;
        if (w->fault->code == SLUICE_CONSTRAINT_TYPE)
            *w->end = role == WK_ROLE_FROM ? 0 : role == WK_ROLE_TO ? 1 : -1;
        w->fault->argument = input->header_of;
        return SLUICE_OK;
    }
    w->fault->line = 0;
    PF_GOTO(status, done, wk_rows_make(&from->input, &w->columns, &w->rows, err));
    PF_GOTO(status, done, open_reader(w, err));
    if (w->reader != NULL)
        status = take_records(w, err);
done:
    from->input.format->close(w->reader);
    wk_rows_free(w->rows);
    wk_mapping_free(&w->columns.mapping);
    return status;
}

sluice_status infer_walk(infer_job *job, infer_type *type, const st_schema *schema, infer_rows_fn *each, void *context,
                         wk_fault *ret_fault, int *ret_end, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    row_walk *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pf_fail_memory(err);
    *w = (row_walk){.job = job, .type = type, .each = each, .context = context, .fault = ret_fault, .end = ret_end};
    *ret_fault = (wk_fault){0};
    *ret_end = -1;
    for (uint32_t i = 0; i < job->spec.input_count && status == SLUICE_OK && !ret_fault->present && !w->stop; i++) {
        if (&job->types[job->inputs[i].type] != type)
            continue;
        w->number = i;
        w->columns = (wk_columns){.schema = schema,
                                  .type = st_schema_find(schema, type->name),
                                  .ignore_unknown = job->spec.options->ignore_unknown,
                                  .names_rows = infer_names(type)};
        const st_type_def *of = w->columns.type;
        for (unsigned end = 0; of->edge && end < 2; end++)
            w->columns.named[end] = infer_names(infer_find(job, schema->types[end == 0 ? of->from : of->to].name));
        *ret_fault = (wk_fault){.line = 1};
        status = walk_input(w, err);
    }
    free(w);
    return status;
}
