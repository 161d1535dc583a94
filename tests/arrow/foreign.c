#include "foreign.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static sluice_status read_bytes(void *context, uint64_t offset, void *bytes, size_t length, sluice_error *err)
{
    const foreign_bytes *from = context;

    (void)err;
    assert_true(offset <= from->length && length <= from->length - offset);
    memcpy(bytes, from->bytes + offset, length);
    return SLUICE_OK;
}

st_arrow_source foreign_source(foreign_bytes *bytes)
{
    return (st_arrow_source){.context = bytes, .size = bytes->length, .read = read_bytes};
}

foreign_bytes foreign_sample(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/arrow/%s", TEST_GOLDEN_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, length, file), length);
    (void)fclose(file);
    return (foreign_bytes){bytes, length};
}

void foreign_value(const st_arrow_array *array, uint64_t row, pf_buffer *text)
{
    st_arrow_value value;
    sluice_error err = {0};
    sluice_status status = st_arrow_get(array, row, &value, &err);

    if (status != SLUICE_OK) {
        assert_int_equal(status, SLUICE_CONSTRAINT_TYPE);
        ASSERT_OK(pf_buffer_append_format(text, &err, "[!]"));
        return;
    }
    switch (value.class) {
    case ST_CLASS_NOTHING:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[-]"));
        break;
    case ST_CLASS_SIGNED:
    case ST_CLASS_DAY:
    case ST_CLASS_MOMENT:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[%" PRId64 "]", value.i64));
        break;
    case ST_CLASS_UNSIGNED:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[%" PRIu64 "]", value.u64));
        break;
    case ST_CLASS_FLOATING:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[%g]", value.f64));
        break;
    case ST_CLASS_EXACT:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[%" PRId64 "e-%d]", (int64_t)value.digits, (int)value.scale));
        break;
    case ST_CLASS_TRUTH:
        ASSERT_OK(pf_buffer_append_format(text, &err, "[%s]", value.truth ? "true" : "false"));
        break;
    case ST_CLASS_TEXT:
    case ST_CLASS_BYTES:
        ASSERT_OK(pf_buffer_append(text, "[", 1, &err));
        ASSERT_OK(pf_buffer_append(text, value.bytes, (size_t)value.length, &err));
        ASSERT_OK(pf_buffer_append(text, "]", 1, &err));
        break;
    }
}

sluice_status foreign_batch(const st_arrow_input *input, uint32_t batch, uint64_t first, uint64_t slice,
                            pf_buffer *text, sluice_error *err)
{
    uint32_t count = 0, leaf = 0;
    uint32_t *leaves = calloc((size_t)input->leaf_count + 1, sizeof *leaves);
    st_arrow_reader *reader = NULL;
    sluice_status status;

    assert_non_null(leaves);
    for (uint32_t i = 0; i < input->leaf_count; i++)
        if (st_arrow_field_is_flat(input->leaves[i].field))
            leaves[count++] = i;
    PF_GOTO(status, done, st_arrow_reader_new(input, leaves, count, &reader, err));
    while (first < input->batches[batch].rows) {
        const st_arrow_array *arrays = NULL;
        uint64_t got = 0;
        PF_GOTO(status, done, st_arrow_read(reader, batch, first, slice, &arrays, &got, &leaf, err));
        assert_true(got >= 1 && got <= slice);
        if (count == 0)
            break;
        for (uint64_t row = 0; row < got; row++) {
            for (uint32_t i = 0; i < count; i++)
                foreign_value(&arrays[i], row, text);
            PF_GOTO(status, done, pf_buffer_append(text, "\n", 1, err));
        }
        first += got;
    }
done:
    st_arrow_reader_free(reader);
    free(leaves);
    return status;
}

sluice_status foreign_read(foreign_bytes *bytes, uint64_t slice, pf_buffer *text, sluice_error *err)
{
    st_arrow_source source = foreign_source(bytes);
    st_arrow_input *input = NULL;
    sluice_status status;

    text->length = 0;
    PF_TRY(st_arrow_input_open(&source, &input, err));
    for (uint32_t i = 0; i < input->batch_count; i++)
        PF_GOTO(status, done, foreign_batch(input, i, 0, slice, text, err));
    status = input->damaged ? SLUICE_CORRUPT : SLUICE_OK;
    if (input->damaged && err)
        *err = input->damage;
done:
    st_arrow_input_close(input);
    return status;
}
