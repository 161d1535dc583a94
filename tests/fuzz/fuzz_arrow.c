/*
 * Arrow of any bytes: it is refused, or all that it is said to hold can be read, value by value.
 */
#include "store/arrow/input.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 4096u /* of a batch: one of nulls may be said to have any number */

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static sluice_status read_bytes(void *context, uint64_t offset, void *to, size_t length, sluice_error *err)
{
    const bytes *from = context;

    (void)err;
    fuzz_demand(offset <= from->size && length <= from->size - offset);
    memcpy(to, from->data + offset, length);
    return SLUICE_OK;
}

static void read_values(const st_arrow_array *array, uint64_t rows)
{
    static volatile uint8_t sink;

    for (uint64_t row = 0; row < rows; row++) {
        st_arrow_value value;
        sluice_status status = st_arrow_get(array, row, &value, NULL);
        fuzz_demand(status == SLUICE_OK || status == SLUICE_CONSTRAINT_TYPE);
        if (status == SLUICE_OK && (value.class == ST_CLASS_TEXT || value.class == ST_CLASS_BYTES) && value.length)
            sink = (uint8_t)(sink + value.bytes[0] + value.bytes[value.length - 1]);
    }
}

static void read_batch(st_arrow_reader *reader, uint32_t columns, uint32_t batch, uint64_t rows)
{
    uint64_t first = 0;

    while (first < rows && first < ROWS_MAX) {
        const st_arrow_array *arrays = NULL;
        uint64_t count = 0;
        uint32_t leaf = 0;
        sluice_status status = st_arrow_read(reader, batch, first, 129, &arrays, &count, &leaf, NULL);
        fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
        if (status != SLUICE_OK)
            return;
        fuzz_demand(count > 0 && count <= 129 && count <= rows - first);
        for (uint32_t i = 0; i < columns; i++)
            read_values(&arrays[i], count);
        first += count;
    }
}

static void read_input(const st_arrow_input *input)
{
    uint32_t *leaves = calloc((size_t)input->leaf_count + 1, sizeof *leaves), count = 0;
    st_arrow_reader *reader = NULL;

    fuzz_demand(leaves != NULL);
    for (uint32_t i = 0; i < input->leaf_count; i++)
        if (st_arrow_field_is_flat(input->leaves[i].field))
            leaves[count++] = i;
    /* A reader of its own for each batch: one that failed is not asked again. */
    for (uint32_t i = 0; i < input->batch_count && i < 64; i++) {
        fuzz_demand(st_arrow_reader_new(input, leaves, count, &reader, NULL) == SLUICE_OK);
        read_batch(reader, count, i, input->batches[i].rows);
        st_arrow_reader_free(reader);
    }
    free(leaves);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    st_arrow_source source = {.context = &from, .size = size, .read = read_bytes};
    st_arrow_input *input = NULL;
    sluice_status status = st_arrow_input_open(&source, &input, NULL);

    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    if (status == SLUICE_OK)
        read_input(input);
    st_arrow_input_close(input);
    return 0;
}
