/*
 * A fragment of any bytes: it is refused, or all its columns can be read to their last byte.
 */
#include "store/fragment/fragment.h"
#include "support.h"

#include <string.h>

static volatile uint64_t sum;

static void read_bytes(const void *bytes, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++)
        sum += ((const uint8_t *)bytes)[i];
}

static void read_column(const st_column *column)
{
    uint64_t bits = (column->length + 7) / 8;
    if (column->validity)
        read_bytes(column->validity, bits);
    if (column->type == ST_BOOL)
        read_bytes(column->values, bits);
    else if (st_type_width(column->type))
        read_bytes(column->values, column->length * st_type_width(column->type));
    for (uint64_t i = 0; column->offsets && i < column->length; i++) {
        fuzz_demand(column->offsets[i] >= 0 && column->offsets[i] <= column->offsets[i + 1]);
        read_bytes(column->data + column->offsets[i], (uint64_t)(column->offsets[i + 1] - column->offsets[i]));
    }
    for (uint32_t m = 0; m < column->child_count; m++)
        read_column(&column->children[m]);
}

static void read_fragment(st_fragment *fragment)
{
    for (uint32_t b = 0; b < st_fragment_batches(fragment); b++) {
        for (uint32_t c = 0; c < st_fragment_columns(fragment); c++) {
            st_column column;
            sluice_status status = st_fragment_column(fragment, b, c, &column, NULL);
            fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
            if (status != SLUICE_OK)
                continue;
            fuzz_demand(column.length == st_fragment_batch_rows(fragment, b));
            read_column(&column);
        }
    }
    sluice_status status = st_fragment_verify(fragment, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_fragment_info info = {.name = FUZZ_NAME, .rows = 20, .bytes = size, .explicit_ids = true};
    st_fragment *fragment;
    pf_volume *volume;
    uint32_t length = 0;

    if (size < 26)
        return 0;
    memcpy(&length, data + size - 10, sizeof length);
    if (length <= size - 10)
        info.footer = pf_sha256_of(data + size - 10 - length, length);
    pf_sim_disk *disk = fuzz_disk("fragments", data, size, &volume);
    sluice_status status = st_fragment_open(volume, FUZZ_TABLE, &info, &fragment, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    if (status == SLUICE_OK)
        read_fragment(fragment);
    st_fragment_close(fragment);
    fuzz_disk_free(disk, volume);
    return 0;
}
