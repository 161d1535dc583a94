/*
 * A JSON Lines file of any bytes: its lines are taken or refused, and the pieces in which it is read change nothing.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const char text_of_schema[] =
    "{\"nodes\": {\"P\": {\"key\": [\"id\", \"k\"], \"properties\": {\"id\": \"int64\", \"k\": \"string\"}}},"
    "\"edges\": {\"E\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"s\": \"string?\", \"b\": \"bool?\", \"d\": "
    "\"float64?\","
    "\"x\": \"bytes?\", \"at\": \"timestamp?\", \"u\": {\"type\": \"uint64\", \"default\": 5}}}}}";

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
        digests[i] = fuzz_read_rows(&input, &columns, i ? 3 : 65536, &rows[i]);
    fuzz_demand(digests[0] == digests[1] && rows[0] == rows[1]);
    st_schema_free(schema);
    return 0;
}
