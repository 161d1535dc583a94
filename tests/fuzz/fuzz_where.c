/*
 * A where-expression of any bytes: it is refused for a reason, or can be asked of rows of every type of value, and of
 * nulls.
 */
#include "store/read/filter.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS 10u

static char name_b[] = "b", name_i[] = "i", name_l[] = "long one", name_u[] = "u", name_f[] = "f", name_d[] = "d",
            name_s[] = "s", name_x[] = "x", name_day[] = "day", name_at[] = "at";
static const st_column_spec specs[COLUMNS] = {
    {.name = name_b, .type = ST_BOOL},      {.name = name_i, .type = ST_INT32},   {.name = name_l, .type = ST_INT64},
    {.name = name_u, .type = ST_UINT64},    {.name = name_f, .type = ST_FLOAT32}, {.name = name_d, .type = ST_FLOAT64},
    {.name = name_s, .type = ST_STRING},    {.name = name_x, .type = ST_BYTES},   {.name = name_day, .type = ST_DATE},
    {.name = name_at, .type = ST_TIMESTAMP}};

static void ask(const st_filter *filter)
{
    static const uint64_t values[2] = {UINT64_C(0x4008000000000001), 0};
    static const int32_t offsets[3] = {0, 3, 3};
    static const uint8_t first_only = 1;
    st_column columns[COLUMNS];
    const st_column *asked[COLUMNS];
    bool needed[COLUMNS] = {false};

    st_filter_mark(filter, needed);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        bool text = specs[i].type == ST_STRING || specs[i].type == ST_BYTES;
        columns[i] = (st_column){.type = specs[i].type, .length = 2, .validity = &first_only};
        columns[i].values = text ? NULL : values;
        columns[i].offsets = text ? offsets : NULL;
        columns[i].data = text ? (const uint8_t *)"abc" : NULL;
        asked[i] = needed[i] ? &columns[i] : NULL;
    }
    for (uint64_t row = 0; row < 2; row++)
        (void)st_filter_meets(filter, asked, row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_filter *filter = NULL;
    sluice_error err = {0};
    char *text = malloc(size + 1);

    fuzz_demand(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    sluice_status status = st_filter_parse(text, specs, COLUMNS, &filter, &err);
    fuzz_demand(status == SLUICE_OK || status == SLUICE_USAGE || status == SLUICE_RESOURCE_LIMIT);
    fuzz_demand(status == SLUICE_OK || err.text[0]);
    if (status == SLUICE_OK)
        ask(filter);
    st_filter_free(filter);
    free(text);
    return 0;
}
