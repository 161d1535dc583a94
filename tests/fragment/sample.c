/*
 * Sample rows: what row i holds, written and compared (see sample.h).
 */
#include "sample.h"

#include "store/arrow/bits.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(text) ((char *)(uintptr_t)(text))

static st_column_spec members[2] = {{.name = NAME("A"), .type = ST_INT64, .property = 21},
                                    {.name = NAME("B"), .type = ST_STRING, .property = 22}};

const st_column_spec sample_specs[SAMPLE_COLUMNS] = {
    {.name = NAME("flag"), .type = ST_BOOL, .nullable = true, .property = 1},
    {.name = NAME("i32"), .type = ST_INT32, .nullable = true, .property = 2},
    {.name = NAME("i64"), .type = ST_INT64, .nullable = true, .property = 3},
    {.name = NAME("u64"), .type = ST_UINT64, .nullable = true, .property = 4},
    {.name = NAME("f32"), .type = ST_FLOAT32, .nullable = true, .property = 5},
    {.name = NAME("f64"), .type = ST_FLOAT64, .nullable = true, .property = 6},
    {.name = NAME("text"), .type = ST_STRING, .nullable = true, .property = 7},
    {.name = NAME("blob"), .type = ST_BYTES, .nullable = true, .property = 8},
    {.name = NAME("day"), .type = ST_DATE, .nullable = true, .property = 9},
    {.name = NAME("moment"), .type = ST_TIMESTAMP, .nullable = true, .property = 18446744073709551615u},
    {.name = NAME("from"), .type = ST_STRUCT, .children = members, .child_count = 2},
    {.name = NAME("_row_id"), .type = ST_ROW_ID},
    {.name = NAME("_commit"), .type = ST_COMMIT_ID},
};

void sample_begin(sample *rows)
{
    sluice_error err = {0};
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
        ASSERT_OK(st_column_builder_new(&sample_specs[c], &rows->builders[c], &err));
}

void sample_end(sample *rows)
{
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
        st_column_builder_free(rows->builders[c]);
}

void sample_clear(sample *rows)
{
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
        st_builder_truncate(rows->builders[c], 0);
}

void sample_view(const sample *rows, st_column ret_columns[SAMPLE_COLUMNS])
{
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
        st_builder_view(rows->builders[c], &ret_columns[c]);
}

static bool is_null(uint32_t column, uint64_t i)
{
    return sample_specs[column].nullable && i % 7 == column % 7;
}

static size_t text_of(uint64_t i, char text[64])
{
    if (i % 11 == 0)
        return 0;
    return (size_t)snprintf(text, 64, "row-%llu%.*s", (unsigned long long)i, (int)(2 * (i % 3)), "\u00e9\u00e9");
}

static sluice_status append(sample *rows, uint32_t c, uint64_t i, sluice_error *err)
{
    st_column_builder *builder = rows->builders[c];
    char text[64];
    uint8_t bytes[16];
    int64_t n = (int64_t)i;

    memset(bytes, (int)(i & 0xFF), sizeof bytes);
    if (is_null(c, i))
        return st_append_null(builder, err);
    switch (c) {
    case 0:
        return st_append_bool(builder, i % 3 == 0, err);
    case 1:
        return st_append_i32(builder, (int32_t)(n * 7 - 1000), err);
    case 2:
        return st_append_i64(builder, n * 1234567890123 - 5, err);
    case 3:
        return st_append_u64(builder, UINT64_MAX - i, err);
    case 4:
        return st_append_f32(builder, (float)n / 4, err);
    case 5:
        return st_append_f64(builder, (double)n / 8 - 100, err);
    case 6:
        return st_append_bytes(builder, text, text_of(i, text), err);
    case 7:
        return st_append_bytes(builder, bytes, i % 5, err);
    case 8:
        return st_append_i32(builder, (int32_t)(n % 40000 - 3000), err);
    case 9:
        return st_append_i64(builder, n * 1000003 - 1000000000, err);
    case 10:
        PF_TRY(st_append_i64(st_builder_child(builder, 0), n, err));
        PF_TRY(st_append_bytes(st_builder_child(builder, 1), text, text_of(i, text), err));
        return st_append_struct(builder, err);
    case 11:
        return st_append_u64(builder, ((uint64_t)1 << 40) + i, err);
    default:
        return st_append_bytes(builder, bytes, 16, err);
    }
}

void sample_append(sample *rows, uint64_t i)
{
    sluice_error err = {0};
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
        ASSERT_OK(append(rows, c, i, &err));
}

st_fragment_info sample_write(pf_volume *volume, uint64_t table, const char *name, uint64_t first, uint64_t count,
                              uint64_t batch, bool compress)
{
    sluice_error err = {0};
    st_fragment_writer *writer;
    st_fragment_info info;
    st_column columns[SAMPLE_COLUMNS];
    sample rows;

    sample_begin(&rows);
    ASSERT_OK(st_fragment_create(volume, table, name, sample_specs, SAMPLE_COLUMNS, compress, &writer, &err));
    for (uint64_t i = first; i < first + count; i++) {
        sample_append(&rows, i);
        if (i + 1 == first + count || (i + 1 - first) % batch == 0) {
            sample_view(&rows, columns);
            ASSERT_OK(st_fragment_write(writer, columns, columns[0].length, &err));
            sample_clear(&rows);
        }
    }
    ASSERT_OK(st_fragment_finish(writer, &info, &err));
    sample_end(&rows);
    assert_int_equal(info.rows, count);
    assert_true(info.explicit_ids);
    return info;
}

st_fragment_info sample_write_some(pf_volume *volume, uint64_t table, const char *name, const uint32_t *numbers,
                                   uint32_t count, uint64_t rows, uint64_t batch, bool compress)
{
    sluice_error err = {0};
    st_fragment_writer *writer;
    st_fragment_info info;
    st_column columns[SAMPLE_COLUMNS], some[SAMPLE_COLUMNS];
    st_column_spec specs[SAMPLE_COLUMNS];
    sample all;

    for (uint32_t c = 0; c < count; c++)
        specs[c] = sample_specs[numbers[c]];
    sample_begin(&all);
    ASSERT_OK(st_fragment_create(volume, table, name, specs, count, compress, &writer, &err));
    for (uint64_t i = 0; i < rows; i++) {
        sample_append(&all, i);
        if (i + 1 < rows && (i + 1) % batch)
            continue;
        sample_view(&all, columns);
        for (uint32_t c = 0; c < count; c++)
            some[c] = columns[numbers[c]];
        ASSERT_OK(st_fragment_write(writer, some, some[0].length, &err));
        sample_clear(&all);
    }
    ASSERT_OK(st_fragment_finish(writer, &info, &err));
    sample_end(&all);
    return info;
}

static bool same_slot(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    size_t width = st_type_width(a->type);
    if (a->type != b->type || st_column_is_null(a, row_a) != st_column_is_null(b, row_b))
        return false;
    if (st_column_is_null(a, row_a))
        return true;
    if (a->type == ST_BOOL)
        return st_bit(a->values, row_a) == st_bit(b->values, row_b);
    if (width)
        return memcmp((const uint8_t *)a->values + row_a * width, (const uint8_t *)b->values + row_b * width, width) ==
               0;
    int32_t length = a->offsets[row_a + 1] - a->offsets[row_a];
    return length == b->offsets[row_b + 1] - b->offsets[row_b] &&
           (!length || memcmp(a->data + a->offsets[row_a], b->data + b->offsets[row_b], (size_t)length) == 0);
}

static bool same_value(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    bool same = a->type == b->type && a->child_count == b->child_count;
    if (a->type != ST_STRUCT)
        return same && same_slot(a, row_a, b, row_b);
    for (uint32_t m = 0; same && m < a->child_count; m++)
        same = same_slot(&a->children[m], row_a, &b->children[m], row_b);
    return same;
}

bool sample_row_is(const st_column *columns, const uint32_t *numbers, uint32_t count, uint64_t at, uint64_t i)
{
    static sample expected; /* one row, kept between calls: this is called for every row */
    st_column want[SAMPLE_COLUMNS];
    bool same = true;

    if (!expected.builders[0])
        sample_begin(&expected);
    sample_clear(&expected);
    sample_append(&expected, i);
    sample_view(&expected, want);
    for (uint32_t c = 0; c < count && same; c++)
        same = same_value(&columns[c], at, &want[numbers ? numbers[c] : c], 0);
    return same;
}

void sample_write_all(const char *root)
{
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 1000, 100000};
    static const char *const folders[] = {"tables", "tables/70", "tables/70/fragments"};
    sluice_error err = {0};
    pf_volume *volume;

    ASSERT_OK(pf_volume_open(root, PF_WRITE, &volume, &err));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ASSERT_OK(pf_make_folder(volume, folders[i], &err));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int compress = 0; compress < 2; compress++) {
            char name[64];
            snprintf(name, sizeof name, "%s-%llu.arrow", compress ? "zstd" : "plain", (unsigned long long)counts[i]);
            sample_write(volume, 70, name, 0, counts[i], counts[i] > 1000 ? 65536 : 300, compress);
        }
    }
    pf_volume_close(volume);
}
