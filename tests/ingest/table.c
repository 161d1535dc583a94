#include "table.h"

#include "store/read/snapshot.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_fault(FILE *out, uint64_t line, const wk_fault *fault)
{
    fprintf(out, "%llu.%u %s %s\n", (unsigned long long)line, fault->column + 1, sluice_status_name(fault->code),
            fault->text);
}

static void print_rows(FILE *out, wk_rows *rows)
{
    uint32_t count;
    sluice_error err;
    const st_column *columns = wk_rows_columns(rows, &count);
    pf_buffer buffer = {0};

    for (uint64_t row = 0; row < wk_rows_length(rows); row++) {
        for (uint32_t i = 0; i < count; i++) {
            if (st_column_is_null(&columns[i], row)) {
                fprintf(out, "[-]");
                continue;
            }
            buffer.length = 0;
            ASSERT_OK(st_value_text(&columns[i], row, &buffer, &err));
            fprintf(out, "[%.*s]", (int)buffer.length, (const char *)buffer.data);
        }
        fprintf(out, "\n");
    }
    pf_buffer_free(&buffer);
}

static void read_records(FILE *out, wk_rows *rows, const wk_chunk_view *view, bool header)
{
    const wk_format_ops *format = view->input->format;
    void *reader;
    wk_record *record;
    wk_fault fault = {0};
    sluice_error err;

    ASSERT_OK(format->open(view, &reader, &err));
    for (;;) {
        ASSERT_OK(format->next(reader, &record, &err));
        if (record == NULL)
            break;
        if (header && record->number == 0)
            continue;
        ASSERT_OK(wk_rows_add(rows, record, &fault, &err));
        if (fault.present)
            print_fault(out, record->line, &fault);
        else {
            print_rows(out, rows);
            wk_rows_reset(rows);
        }
    }
    format->close(reader);
}

char *table_read(const table_request *request)
{
    sluice_error err;
    st_schema *schema = NULL;
    wk_dialect dialect;
    wk_format format;
    wk_packing packing;
    wk_memory_source memory = {request->text, request->length ? request->length : strlen(request->text)};
    wk_input input = {.source = wk_source_of_memory(&memory), .dialect = &dialect};
    wk_columns columns = {.ignore_unknown = request->ignore_unknown};
    wk_fault fault = {.line = 1};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    ASSERT_OK(st_schema_parse(request->schema, strlen(request->schema), "schema", &schema, &err));
    columns.schema = schema;
    columns.type = st_schema_find(schema, request->type);
    assert_non_null(columns.type);
    ASSERT_OK(wk_dialect_resolve(&request->dialect, request->name ? request->name : "test.csv", &dialect, &format,
                                 &packing, &err));
    input.format = wk_format_find(format);
    input.format->prepare(&input);
    if (wk_source_skip_mark(&input.source, &input.mark, NULL) != SLUICE_OK)
        input.mark = 0; /* the format says so */
    ASSERT_OK(input.format->map(&input, &input, &columns, &fault, &err));
    if (fault.present)
        print_fault(out, fault.line, &fault);
    else {
        wk_chunk place = {.first = input.mark, .first_line = 1};
        wk_chunk_view view = {.input = &input,
                              .columns = &columns,
                              .start = input.mark,
                              .place = &place,
                              .piece = request->piece ? request->piece : 65536};
        wk_rows *rows;
        ASSERT_OK(wk_rows_make(&input, &columns, &rows, &err));
        read_records(out, rows, &view, input.format->has_header && !dialect.no_header);
        wk_rows_free(rows);
    }
    wk_mapping_free(&columns.mapping);
    st_schema_free(schema);
    fclose(out);
    return text;
}
