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

static void read_records(FILE *out, wk_rows *rows, const wk_lexer *lexer, const wk_source *source, uint64_t mark,
                         bool header, uint32_t fields, size_t piece)
{
    wk_csv_start start = {.offset = mark, .line = 1, .piece = piece, .fields = fields};
    wk_csv *csv;
    wk_record *record;
    wk_fault fault = {0};
    sluice_error err;

    ASSERT_OK(wk_csv_open(lexer, source, &start, &csv, &err));
    for (;;) {
        ASSERT_OK(wk_csv_next(csv, &record, &err));
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
    wk_csv_close(csv);
}

char *table_read(const table_request *request)
{
    sluice_error err;
    st_schema *schema = NULL;
    wk_dialect dialect;
    wk_format format;
    wk_packing packing;
    wk_lexer lexer;
    wk_memory_source memory = {request->text, request->length ? request->length : strlen(request->text)};
    wk_source source = wk_source_of_memory(&memory);
    wk_mapping mapping = {0};
    wk_fault fault = {0};
    wk_name *names = NULL;
    uint32_t count = 0;
    uint64_t line = 1, mark = 0;
    pf_buffer storage = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    ASSERT_OK(st_schema_parse(request->schema, strlen(request->schema), "schema", &schema, &err));
    const st_type_def *type = st_schema_find(schema, request->type);
    assert_non_null(type);
    ASSERT_OK(wk_dialect_resolve(&request->dialect, "test.csv", &dialect, &format, &packing, &err));
    wk_lexer_make(&lexer, &dialect);
    ASSERT_OK(wk_source_skip_mark(&source, &mark, &err));
    if (dialect.no_header)
        ASSERT_OK(wk_columns_given(type, dialect.columns, &storage, &names, &count, &err));
    else
        ASSERT_OK(wk_header_read(&lexer, &source, mark, &storage, &names, &count, &line, &fault, &err));
    if (!fault.present)
        ASSERT_OK(wk_mapping_make(schema, type, names, count, request->ignore_unknown, &mapping, &fault, &err));
    if (fault.present)
        print_fault(out, line, &fault);
    else {
        wk_rows_setup setup = {
            .schema = schema, .type = type, .mapping = &mapping, .lexer = &lexer, .null_token = dialect.null_token};
        wk_rows *rows;
        ASSERT_OK(wk_rows_make(&setup, &rows, &err));
        read_records(out, rows, &lexer, &source, mark, !dialect.no_header, count,
                     request->piece ? request->piece : 65536);
        wk_rows_free(rows);
    }
    wk_mapping_free(&mapping);
    free(names);
    pf_buffer_free(&storage);
    st_schema_free(schema);
    fclose(out);
    return text;
}
