/*
 * A schema file of any bytes: it is refused with a place and a reason, or it is understood, and what is shown and
 * stored of it is understood as the same.
 */
#include "store/schema/schema.h"
#include "support.h"

static void check(st_schema *schema)
{
    pf_buffer shown = {0}, stored = {0};
    pf_sha256 shape, again;
    st_schema *other = NULL;
    uint64_t table = 64, property = 1;

    fuzz_demand(st_schema_format(schema, &shown, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_parse((const char *)shown.data, shown.length, "shown", &other, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_shape(schema, &shape, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_shape(other, &again, NULL) == SLUICE_OK);
    fuzz_demand(pf_sha256_equal(&shape, &again));
    st_schema_free(other);
    st_schema_assign_ids(schema, &table, &property);
    fuzz_demand(st_schema_encode(schema, &stored, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_decode(stored.data, stored.length, &other, NULL) == SLUICE_OK);
    st_schema_free(other);
    pf_buffer_free(&shown);
    pf_buffer_free(&stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_schema *schema = NULL;
    sluice_error err = {0};
    sluice_status status = st_schema_parse((const char *)data, size, "schema", &schema, &err);

    fuzz_demand(status != SLUICE_INTERNAL && status != SLUICE_CORRUPT && status != SLUICE_IO);
    fuzz_demand(status == SLUICE_OK || err.text[0]);
    if (status == SLUICE_OK)
        check(schema);
    st_schema_free(schema);
    return 0;
}
