/*
 * A deletion file of any bytes, its checksums made right: it is refused, or is a set like any other.
 */
#include "store/fragment/deletion.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_row_set *set;

    if (size < 64)
        return 0;
    uint8_t *bytes = malloc(size);
    fuzz_demand(bytes != NULL);
    memcpy(bytes, data, size);
    pf_xxh128 content = pf_xxh128_of(bytes + 64, size - 64);
    memcpy(bytes + 40, &content.low, 8);
    memcpy(bytes + 48, &content.high, 8);
    uint64_t check = pf_xxh64_of(bytes, 56);
    memcpy(bytes + 56, &check, 8);
    sluice_status status = st_deletion_decode(bytes, size, FUZZ_TABLE, "input", &set, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    if (status == SLUICE_OK) {
        uint64_t *rows, count;
        if (st_row_set_count(set) < 1u << 20) {
            fuzz_demand(st_row_set_rows(set, &rows, &count, NULL) == SLUICE_OK);
            for (uint64_t i = 0; i < count; i++)
                fuzz_demand((!i || rows[i] > rows[i - 1]) && st_row_set_contains(set, rows[i]));
            free(rows);
        }
        st_row_set_free(set);
    }
    free(bytes);
    return 0;
}
