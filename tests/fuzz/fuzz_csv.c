/*
 * A CSV file of any bytes, with its header (plain, or in the style of neo4j-admin): it is refused, or its records are
 * taken or faulty, and the pieces in which it is read change nothing. The first byte picks the type and the dialect.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const char text_of_schema[] =
    "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\",\"age\":{\"type\":"
    "\"int32\","
    "\"default\":7},\"at\":\"timestamp?\",\"d\":\"date?\",\"f\":\"float32?\",\"x\":\"bytes?\",\"b\":\"bool?\"}},"
    "\"Q\":{\"key\":[\"a\",\"b\"],\"properties\":{\"a\":\"string\",\"b\":\"int64\"}},"
    "\"N\":{\"properties\":{\"text\":\"string?\"}}},"
    "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"properties\":{\"w\":\"int64?\"}},"
    "\"C\":{\"from\":\"Q\",\"to\":\"N\",\"properties\":{}},"
    "\"S\":{\"from\":\"P\",\"to\":\"P\",\"properties\":{\"source\":\"string\"},\"key\":[]}}}";
static const char *const types[] = {"P", "Q", "N", "K", "C", "S"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_schema *schema = NULL;
    wk_format format;
    wk_packing packing;
    wk_dialect given = {0}, dialect;
    wk_fault fault = {.line = 1};
    uint64_t rows[2], digests[2];

    if (size == 0)
        return 0;
    wk_memory_source memory = {data + 1, size - 1};
    wk_input input = {.source = wk_source_of_memory(&memory), .dialect = &dialect};
    wk_columns columns = {.ignore_unknown = data[0] & 8};
    given.no_header = data[0] & 16;
    fuzz_demand(wk_dialect_resolve(&given, data[0] & 32 ? "x.tsv" : "x.csv", &dialect, &format, &packing, NULL) ==
                SLUICE_OK);
    fuzz_demand(st_schema_parse(text_of_schema, sizeof text_of_schema - 1, "schema", &schema, NULL) == SLUICE_OK);
    columns.schema = schema;
    columns.type = st_schema_find(schema, types[(data[0] & 7) % (sizeof types / sizeof types[0])]);
    input.format = wk_format_find(format);
    input.format->prepare(&input);
    if (wk_source_skip_mark(&input.source, &input.mark, NULL) != SLUICE_OK)
        input.mark = 0;
    fuzz_demand(input.format->map(&input, &input, &columns, &fault, NULL) == SLUICE_OK);
    if (fault.present) {
        (void)fuzz_fault(&fault, 0);
    } else {
        for (unsigned i = 0; i < 2; i++)
            digests[i] = fuzz_read_rows(&input, &columns, i ? 3 : 65536, &rows[i]);
        fuzz_demand(digests[0] == digests[1] && rows[0] == rows[1]);
    }
    wk_mapping_free(&columns.mapping);
    st_schema_free(schema);
    return 0;
}
