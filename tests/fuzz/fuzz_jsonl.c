/*
 * A JSON Lines file of any bytes: its lines are taken or refused, and the pieces in which it is read change nothing.
 */
#include "support.h"
#include "worker/ingest/rows.h"

#include <stdlib.h>
#include <string.h>

static const char text_of_schema[] =
    "{\"nodes\": {\"P\": {\"key\": [\"id\", \"k\"], \"properties\": {\"id\": \"int64\", \"k\": \"string\"}}},"
    "\"edges\": {\"E\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"s\": \"string?\", \"b\": \"bool?\", \"d\": "
    "\"float64?\","
    "\"x\": \"bytes?\", \"at\": \"timestamp?\", \"u\": {\"type\": \"uint64\", \"default\": 5}}}}}";

/* Rows taken, and a digest over the faults of the others. */
static uint64_t read_all(const wk_input *input, const wk_columns *columns, size_t piece, uint64_t *ret_rows)
{
    wk_chunk place = {.first = input->mark, .first_line = 1};
    wk_chunk_view view = {.input = input, .columns = columns, .start = input->mark, .place = &place, .piece = piece};
    wk_rows *rows = NULL;
    void *reader = NULL;
    wk_record *record = NULL;
    uint64_t digest = 0;

    fuzz_demand(wk_rows_make(input, columns, &rows, NULL) == SLUICE_OK);
    fuzz_demand(input->format->open(&view, &reader, NULL) == SLUICE_OK);
    for (;;) {
        wk_fault fault = {0};
        fuzz_demand(input->format->next(reader, &record, NULL) == SLUICE_OK);
        if (record == NULL)
            break;
        fuzz_demand(wk_rows_add(rows, record, &fault, NULL) == SLUICE_OK);
        if (fault.present) {
            fuzz_demand(fault.code != SLUICE_OK && fault.code != SLUICE_INTERNAL);
            digest = digest * 31 + pf_xxh64_of(fault.text, strlen(fault.text)) + record->line;
        }
    }
    *ret_rows = wk_rows_length(rows);
    input->format->close(reader);
    wk_rows_free(rows);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_schema *schema = NULL;
    wk_dialect dialect = {.delimiter = ','};
    wk_memory_source memory = {data, size};
    wk_input input = {
        .format = wk_format_find(WK_FORMAT_JSONL), .dialect = &dialect, .source = wk_source_of_memory(&memory)};
    uint64_t rows[2], digests[2];

    fuzz_demand(st_schema_parse(text_of_schema, sizeof text_of_schema - 1, "schema", &schema, NULL) == SLUICE_OK);
    wk_columns columns = {.schema = schema, .type = st_schema_find(schema, "E"), .ignore_unknown = size & 1};
    input.format->prepare(&input);
    if (wk_source_skip_mark(&input.source, &input.mark, NULL) != SLUICE_OK)
        input.mark = 0;
    for (unsigned i = 0; i < 2; i++)
        digests[i] = read_all(&input, &columns, i ? 3 : 65536, &rows[i]);
    fuzz_demand(digests[0] == digests[1] && rows[0] == rows[1]);
    st_schema_free(schema);
    return 0;
}
