/*
 * Printing rows (see cli/rows.h), and the order of values.
 */
#include "cli/rows.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_has_row_id(const st_type_def *type)
{
    return !type->edge && type->key_count == 0;
}

/* ---- headings ---- */

static uint32_t flat_columns(const cli_rows *rows)
{
    uint32_t flat = rows->row_id;
    for (uint32_t i = 0; i < rows->count; i++)
        flat += rows->specs[i]->type == ST_STRUCT ? rows->specs[i]->child_count : 1;
    return flat;
}

/* Calls `each` with the flat name of every column that a table or CSV file has. */
typedef sluice_status name_fn(cli_rows *rows, uint32_t column, const st_column_spec *spec, const char *name,
                              sluice_error *err);
static sluice_status each_flat_name(cli_rows *rows, name_fn *each, sluice_error *err)
{
    static const st_column_spec row_id = {.type = ST_ROW_ID};
    uint32_t column = 0;
    if (rows->row_id)
        PF_TRY(each(rows, column++, &row_id, "_row_id", err));
    for (uint32_t i = 0; i < rows->count; i++) {
        const st_column_spec *spec = rows->specs[i];
        if (spec->type != ST_STRUCT) {
            PF_TRY(each(rows, column++, spec, spec->name, err));
            continue;
        }
        for (uint32_t k = 0; k < spec->child_count; k++) {
            pf_buffer name = {0};
            sluice_status status =
                pf_buffer_append_format(&name, err, "%s.%s%c", spec->name, spec->children[k].name, '\0');
            if (status == SLUICE_OK)
                status = each(rows, column++, &spec->children[k], (const char *)name.data, err);
            pf_buffer_free(&name);
            PF_TRY(status);
        }
    }
    return SLUICE_OK;
}

static bool is_number(st_type type)
{
    return type == ST_INT32 || type == ST_INT64 || type == ST_UINT64 || type == ST_FLOAT32 || type == ST_FLOAT64 ||
           type == ST_ROW_ID;
}

static sluice_status head_of_table(cli_rows *rows, uint32_t column, const st_column_spec *spec, const char *name,
                                   sluice_error *err)
{
    if (is_number(spec->type))
        cli_table_right(&rows->table, column);
    return cli_table_text(&rows->table, name, err);
}

/* A text as a CSV field: quoted when it must be, and when it is empty (the unquoted empty field is null). */
static sluice_status append_csv(pf_buffer *line, const uint8_t *text, size_t length, sluice_error *err)
{
    bool plain = length > 0;
    for (size_t i = 0; plain && i < length; i++)
        plain = text[i] != ',' && text[i] != '"' && text[i] != '\n' && text[i] != '\r';
    if (plain && text[0] != ' ' && text[length - 1] != ' ' && text[0] != '\t' && text[length - 1] != '\t')
        return pf_buffer_append(line, text, length, err);
    PF_TRY(pf_buffer_append(line, "\"", 1, err));
    size_t start = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '"')
            continue;
        PF_TRY(pf_buffer_append(line, text + start, i + 1 - start, err));
        start = i; /* the quote again */
    }
    PF_TRY(pf_buffer_append(line, text + start, length - start, err));
    return pf_buffer_append(line, "\"", 1, err);
}

static sluice_status head_of_csv(cli_rows *rows, uint32_t column, const st_column_spec *spec, const char *name,
                                 sluice_error *err)
{
    (void)spec;
    if (column > 0)
        PF_TRY(pf_buffer_append(&rows->line, ",", 1, err));
    return append_csv(&rows->line, (const uint8_t *)name, strlen(name), err);
}

static sluice_status print_line(cli_rows *rows, sluice_error *err)
{
    PF_TRY(pf_buffer_append(&rows->line, "\n", 1, err));
    PF_TRY(pf_output_write(rows->out, rows->line.data, rows->line.length, err));
    rows->line.length = 0;
    return SLUICE_OK;
}

/* The names of a JSON object are the same in every row: encoded once. */
static sluice_status prepare_json_names(cli_rows *rows, sluice_error *err)
{
    rows->name_ends = calloc((size_t)rows->count + 1, sizeof *rows->name_ends);
    if (!rows->name_ends)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i <= rows->count; i++) {
        const char *name = i == 0 ? "_row_id" : rows->specs[i - 1]->name;
        if (i > 0 || rows->row_id) {
            st_json json;
            if (rows->names.length > 0)
                PF_TRY(pf_buffer_append(&rows->names, ",", 1, err));
            st_json_begin(&json, &rows->names);
            st_json_text(&json, name);
            PF_TRY(st_json_end(&json, false, err));
            PF_TRY(pf_buffer_append(&rows->names, ":", 1, err));
        }
        rows->name_ends[i] = rows->names.length;
    }
    return SLUICE_OK;
}

sluice_status cli_rows_begin(cli_rows *rows, cli_format format, pf_output *out, const st_column_spec *const *specs,
                             uint32_t count, bool row_id, sluice_error *err)
{
    *rows = (cli_rows){.format = format, .out = out, .specs = specs, .count = count, .row_id = row_id};
    switch (format) {
    case CLI_FORMAT_TABLE:
        if (flat_columns(rows) == 0)
            return SLUICE_OK;
        PF_TRY(cli_table_begin(out, flat_columns(rows), &rows->table, err));
        return each_flat_name(rows, head_of_table, err);
    case CLI_FORMAT_CSV:
        PF_TRY(each_flat_name(rows, head_of_csv, err));
        return print_line(rows, err);
    case CLI_FORMAT_JSONL:
        return prepare_json_names(rows, err);
    case CLI_FORMAT_ARROW:
    case CLI_FORMAT_ARROW_FILE:
        return cli_arrow_begin(out, format == CLI_FORMAT_ARROW_FILE, specs, count, row_id, &rows->arrow, err);
    }
    return SLUICE_OK;
}

/* ---- rows ---- */

static sluice_status add_table_value(cli_rows *rows, const st_column *column, uint64_t row, sluice_error *err)
{
    rows->line.length = 0;
    if (st_column_is_null(column, row))
        return cli_table_text(&rows->table, "null", err);
    PF_TRY(st_value_text(column, row, &rows->line, err));
    bool doubtful = column->type == ST_STRING &&
                    (rows->line.length == 0 || (rows->line.length == 4 && memcmp(rows->line.data, "null", 4) == 0));
    if (!doubtful)
        return cli_table_cell(&rows->table, rows->line.data, rows->line.length, err);
    char quoted[8];
    (void)snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)rows->line.length, (const char *)rows->line.data);
    return cli_table_text(&rows->table, quoted, err);
}

static sluice_status add_table_row(cli_rows *rows, const st_column *const *columns, uint64_t row, uint64_t row_id,
                                   sluice_error *err)
{
    if (rows->row_id)
        PF_TRY(cli_table_number(&rows->table, row_id, err));
    for (uint32_t i = 0; i < rows->count; i++) {
        if (columns[i]->type != ST_STRUCT)
            PF_TRY(add_table_value(rows, columns[i], row, err));
        else
            for (uint32_t k = 0; k < columns[i]->child_count; k++)
                PF_TRY(add_table_value(rows, &columns[i]->children[k], row, err));
    }
    return SLUICE_OK;
}

static sluice_status add_csv_value(cli_rows *rows, const st_column *column, uint64_t row, bool first, sluice_error *err)
{
    if (!first)
        PF_TRY(pf_buffer_append(&rows->line, ",", 1, err));
    if (st_column_is_null(column, row))
        return SLUICE_OK;
    if (column->type == ST_STRING) {
        const int32_t *offsets = column->offsets + row;
        return append_csv(&rows->line, column->data + offsets[0], (size_t)(offsets[1] - offsets[0]), err);
    }
    size_t before = rows->line.length;
    PF_TRY(st_value_text(column, row, &rows->line, err));
    return rows->line.length > before ? SLUICE_OK : pf_buffer_append_text(&rows->line, "\"\"", err); /* no bytes */
}

static sluice_status add_csv_row(cli_rows *rows, const st_column *const *columns, uint64_t row, uint64_t row_id,
                                 sluice_error *err)
{
    bool first = true;
    if (rows->row_id) {
        PF_TRY(pf_buffer_append_format(&rows->line, err, "%llu", (unsigned long long)row_id));
        first = false;
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        uint32_t members = columns[i]->type == ST_STRUCT ? columns[i]->child_count : 0;
        if (members == 0)
            PF_TRY(add_csv_value(rows, columns[i], row, first, err));
        for (uint32_t k = 0; k < members; k++)
            PF_TRY(add_csv_value(rows, &columns[i]->children[k], row, first && k == 0, err));
        first = false;
    }
    return print_line(rows, err);
}

static sluice_status add_json_row(cli_rows *rows, const st_column *const *columns, uint64_t row, uint64_t row_id,
                                  sluice_error *err)
{
    PF_TRY(pf_buffer_append(&rows->line, "{", 1, err));
    PF_TRY(pf_buffer_append(&rows->line, rows->names.data, rows->name_ends[0], err));
    if (rows->row_id)
        PF_TRY(pf_buffer_append_format(&rows->line, err, "%llu", (unsigned long long)row_id));
    for (uint32_t i = 0; i < rows->count; i++) {
        size_t start = rows->name_ends[i];
        PF_TRY(pf_buffer_append(&rows->line, rows->names.data + start, rows->name_ends[i + 1] - start, err));
        if (st_column_is_null(columns[i], row))
            PF_TRY(pf_buffer_append_text(&rows->line, "null", err));
        else
            PF_TRY(st_value_json(columns[i], row, &rows->line, err));
    }
    PF_TRY(pf_buffer_append(&rows->line, "}", 1, err));
    return print_line(rows, err);
}

sluice_status cli_rows_add(cli_rows *rows, const st_column *const *columns, uint64_t row, uint64_t row_id,
                           sluice_error *err)
{
    switch (rows->format) {
    case CLI_FORMAT_TABLE:
        return add_table_row(rows, columns, row, row_id, err);
    case CLI_FORMAT_CSV:
        return add_csv_row(rows, columns, row, row_id, err);
    case CLI_FORMAT_JSONL:
        return add_json_row(rows, columns, row, row_id, err);
    case CLI_FORMAT_ARROW:
    case CLI_FORMAT_ARROW_FILE:
        return cli_arrow_add(rows->arrow, columns, row, 1, &row_id, err);
    }
    return SLUICE_OK;
}

sluice_status cli_rows_add_batch(cli_rows *rows, const st_column *const *columns, const st_batch *batch,
                                 sluice_error *err)
{
    if (rows->arrow)
        return cli_arrow_add(rows->arrow, columns, 0, batch->rows, batch->row_ids, err);
    for (uint64_t row = 0; row < batch->rows; row++)
        PF_TRY(cli_rows_add(rows, columns, row, batch->row_ids[row], err));
    return SLUICE_OK;
}

sluice_status cli_rows_end(cli_rows *rows, sluice_error *err)
{
    if (rows->arrow)
        return cli_arrow_end(rows->arrow, err);
    return rows->format == CLI_FORMAT_TABLE && rows->table.columns > 0 ? cli_table_end(&rows->table, err) : SLUICE_OK;
}

void cli_rows_free(cli_rows *rows)
{
    cli_table_free(&rows->table);
    pf_buffer_free(&rows->line);
    pf_buffer_free(&rows->names);
    free(rows->name_ends);
    cli_arrow_free(rows->arrow);
    *rows = (cli_rows){0};
}
