/*
 * Column builders: what was appended is what the view shows, in Arrow's layout, through growth, nulls, undo and bulk
 * copies.
 */
#include "store/arrow/bits.h"
#include "store/arrow/column.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static st_column_spec spec_of(st_type type)
{
    return (st_column_spec){.name = (char *)(uintptr_t) "c", .type = type, .nullable = true, .property = 7};
}

static st_column_builder *builder_of(st_type type)
{
    st_column_spec spec = spec_of(type);
    st_column_builder *builder;
    assert_int_equal(st_column_builder_new(&spec, &builder, NULL), SLUICE_OK);
    return builder;
}

static void types_have_names_and_widths(void **state)
{
    (void)state;
    st_type type;
    for (int i = ST_BOOL; i <= ST_STRUCT; i++) {
        int expected = i <= ST_TIMESTAMP;
        assert_int_equal(st_type_parse(st_type_name((st_type)i), &type), expected);
        if (expected)
            assert_int_equal(type, i);
    }
    assert_int_equal(st_type_parse("int16", &type), 0);
    assert_int_equal(st_type_width(ST_DATE), 4);
    assert_int_equal(st_type_width(ST_COMMIT_ID), 16);
    assert_int_equal(st_type_width(ST_BOOL), 0);
}

static void values_survive_growth(void **state)
{
    (void)state;
    for (uint64_t rows = 0; rows < 300; rows = rows < 66 ? rows + 1 : rows + 77) {
        st_column_builder *numbers = builder_of(ST_INT64), *flags = builder_of(ST_BOOL), *texts = builder_of(ST_STRING);
        for (uint64_t i = 0; i < rows; i++) {
            char text[32];
            int length = snprintf(text, sizeof text, "%.*s%llu", (int)(i % 7), "xxxxxxx", (unsigned long long)i);
            assert_int_equal(st_append_i64(numbers, (int64_t)i * -3, NULL), SLUICE_OK);
            assert_int_equal(st_append_bool(flags, i % 3 == 0, NULL), SLUICE_OK);
            assert_int_equal(st_append_bytes(texts, text, (size_t)length, NULL), SLUICE_OK);
        }
        st_column n, f, t;
        st_builder_view(numbers, &n);
        st_builder_view(flags, &f);
        st_builder_view(texts, &t);
        assert_int_equal(n.length, rows);
        assert_int_equal(t.length, rows);
        assert_null(n.validity);
        assert_int_equal(t.offsets[0], 0);
        for (uint64_t i = 0; i < rows; i++) {
            char text[32];
            int length = snprintf(text, sizeof text, "%.*s%llu", (int)(i % 7), "xxxxxxx", (unsigned long long)i);
            assert_int_equal(((const int64_t *)n.values)[i], (int64_t)i * -3);
            assert_int_equal(st_bit(f.values, i), i % 3 == 0);
            assert_int_equal(t.offsets[i + 1] - t.offsets[i], length);
            assert_memory_equal(t.data + t.offsets[i], text, (size_t)length);
        }
        if (rows) {
            assert_int_equal((uintptr_t)n.values % 64, 0);
            assert_int_equal((uintptr_t)t.offsets % 64, 0);
            assert_int_equal((uintptr_t)t.data % 64, 0);
        }
        st_column_builder_free(numbers);
        st_column_builder_free(flags);
        st_column_builder_free(texts);
    }
}

static void append_any(st_column_builder *builder, uint64_t i)
{
    uint8_t bytes[16];
    memset(bytes, (int)i, sizeof bytes);
    sluice_status status = SLUICE_INTERNAL;
    switch (builder->type) {
    case ST_BOOL:
        status = st_append_bool(builder, i & 1, NULL);
        break;
    case ST_INT32:
    case ST_DATE:
        status = st_append_i32(builder, (int32_t)i - 5, NULL);
        break;
    case ST_INT64:
    case ST_TIMESTAMP:
        status = st_append_i64(builder, (int64_t)i - 5, NULL);
        break;
    case ST_UINT64:
    case ST_ROW_ID:
        status = st_append_u64(builder, UINT64_MAX - i, NULL);
        break;
    case ST_FLOAT32:
        status = st_append_f32(builder, (float)i / 2, NULL);
        break;
    case ST_FLOAT64:
        status = st_append_f64(builder, (double)i / 2, NULL);
        break;
    case ST_STRING:
    case ST_BYTES:
        status = st_append_bytes(builder, bytes, i % 17, NULL);
        break;
    case ST_COMMIT_ID:
        status = st_append_bytes(builder, bytes, 16, NULL);
        break;
    case ST_STRUCT:
        for (uint32_t m = 0; m < builder->child_count; m++)
            append_any(st_builder_child(builder, m), i + m);
        status = st_append_struct(builder, NULL);
        break;
    }
    assert_int_equal(status, SLUICE_OK);
}

static st_column_builder *builder_of_any(st_type type)
{
    st_column_spec members[2] = {spec_of(ST_INT32), spec_of(ST_STRING)};
    st_column_spec spec = spec_of(type);
    if (type == ST_STRUCT) {
        spec.children = members;
        spec.child_count = 2;
    }
    st_column_builder *builder;
    assert_int_equal(st_column_builder_new(&spec, &builder, NULL), SLUICE_OK);
    return builder;
}

static void assert_same_slots(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(st_column_is_null(a, row_a), st_column_is_null(b, row_b));
    size_t width = st_type_width(a->type);
    if (a->type == ST_STRUCT) {
        for (uint32_t m = 0; m < a->child_count; m++)
            assert_same_slots(&a->children[m], row_a, &b->children[m], row_b);
    } else if (a->type == ST_BOOL) {
        assert_int_equal(st_bit(a->values, row_a), st_bit(b->values, row_b));
    } else if (width) {
        assert_memory_equal((const uint8_t *)a->values + row_a * width, (const uint8_t *)b->values + row_b * width,
                            width);
    } else {
        int32_t length = a->offsets[row_a + 1] - a->offsets[row_a];
        assert_int_equal(length, b->offsets[row_b + 1] - b->offsets[row_b]);
        if (length)
            assert_memory_equal(a->data + a->offsets[row_a], b->data + b->offsets[row_b], (size_t)length);
    }
}

static bool null_at(uint64_t i)
{
    return i % 5 == 3;
}

static void slices_copy_every_type_at_every_bit_offset(void **state)
{
    (void)state;
    for (int type = ST_BOOL; type <= ST_STRUCT; type++) {
        st_column_builder *source = builder_of_any((st_type)type);
        for (uint64_t i = 0; i < 200; i++) {
            if (null_at(i))
                assert_int_equal(st_append_null(source, NULL), SLUICE_OK);
            else
                append_any(source, i);
        }
        st_column from;
        st_builder_view(source, &from);
        assert_int_equal(from.nulls, 40);
        for (uint64_t first = 0; first < 70; first += 3) {
            for (uint64_t lead = 0; lead < 10; lead++) {
                st_column_builder *copy = builder_of_any((st_type)type);
                uint64_t count = 130 - first - lead;
                for (uint64_t i = 0; i < lead; i++)
                    append_any(copy, i);
                assert_int_equal(st_append_slice(copy, &from, first, count, NULL), SLUICE_OK);
                assert_int_equal(st_append_from(copy, &from, 3, NULL), SLUICE_OK);
                append_any(copy, 1);
                st_column to;
                st_builder_view(copy, &to);
                assert_int_equal(to.length, lead + count + 2);
                assert_int_equal(to.nulls, to.length - st_bits_count(to.validity, 0, to.length));
                for (uint64_t i = 0; i < count; i++)
                    assert_same_slots(&to, lead + i, &from, first + i);
                assert_same_slots(&to, lead + count, &from, 3);
                assert_false(st_column_is_null(&to, lead + count + 1));
                st_column_builder_free(copy);
            }
        }
        st_column_builder_free(source);
    }
}

static void truncate_undoes_rows_and_their_nulls(void **state)
{
    (void)state;
    for (int type = ST_BOOL; type <= ST_STRUCT; type++) {
        st_column_builder *builder = builder_of_any((st_type)type);
        for (uint64_t i = 0; i < 150; i++)
            null_at(i) ? (void)st_append_null(builder, NULL) : append_any(builder, i);
        st_builder_truncate(builder, 64);
        for (uint64_t i = 64; i < 70; i++)
            append_any(builder, i);
        st_column view;
        st_builder_view(builder, &view);
        assert_int_equal(view.length, 70);
        assert_int_equal(view.nulls, 13);
        for (uint64_t i = 0; i < 70; i++)
            assert_int_equal(st_column_is_null(&view, i), i < 64 && null_at(i));
        if (type == ST_BOOL)
            for (uint64_t i = 64; i < 70; i++)
                assert_int_equal(st_bit(view.values, i), i & 1);
        st_builder_truncate(builder, 0);
        st_builder_view(builder, &view);
        assert_int_equal(view.length, 0);
        assert_null(view.validity);
        append_any(builder, 1);
        st_builder_view(builder, &view);
        assert_int_equal(view.nulls, 0);
        st_column_builder_free(builder);
    }
}

static void truncate_drops_members_of_an_unfinished_struct_row(void **state)
{
    (void)state;
    st_column_builder *builder = builder_of_any(ST_STRUCT);
    append_any(builder, 1);
    append_any(st_builder_child(builder, 0), 2);
    st_builder_truncate(builder, 1);
    assert_int_equal(st_builder_length(st_builder_child(builder, 0)), 1);
    append_any(builder, 3);
    assert_int_equal(st_builder_length(builder), 2);
    st_column_builder_free(builder);
}

static void null_slots_are_zero_after_an_undone_value(void **state)
{
    (void)state;
    st_column_builder *builder = builder_of(ST_INT64);
    assert_int_equal(st_append_i64(builder, -1, NULL), SLUICE_OK);
    st_builder_truncate(builder, 0);
    assert_int_equal(st_append_null(builder, NULL), SLUICE_OK);
    st_column view;
    st_builder_view(builder, &view);
    assert_int_equal(((const int64_t *)view.values)[0], 0);
    st_column_builder_free(builder);
}

static void bulk_values_and_nulls(void **state)
{
    (void)state;
    st_column_builder *builder = builder_of(ST_FLOAT32);
    float values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = (float)i;
    assert_int_equal(st_append_values(builder, values, 1000, NULL), SLUICE_OK);
    assert_int_equal(st_append_nulls(builder, 77, NULL), SLUICE_OK);
    assert_int_equal(st_append_values(builder, values, 3, NULL), SLUICE_OK);
    st_column view;
    st_builder_view(builder, &view);
    assert_int_equal(view.length, 1080);
    assert_int_equal(view.nulls, 77);
    assert_memory_equal(view.values, values, sizeof values);
    assert_true(st_column_is_null(&view, 1000) && st_column_is_null(&view, 1076));
    assert_false(st_column_is_null(&view, 999) || st_column_is_null(&view, 1077));
    st_column_builder_free(builder);
}

static void a_column_has_limits(void **state)
{
    (void)state;
    st_column_builder *builder = builder_of(ST_STRING);
    sluice_error err = {0};
    assert_int_equal(st_append_bytes(builder, "x", 1, NULL), SLUICE_OK);
    assert_int_equal(st_builder_reserve(builder, ST_COLUMN_ROWS_MAX, 0, &err), SLUICE_RESOURCE_LIMIT);
    assert_int_equal(st_builder_reserve(builder, 1, ST_COLUMN_BYTES_MAX, &err), SLUICE_RESOURCE_LIMIT);
    assert_int_equal(st_builder_length(builder), 1);
    st_column_builder_free(builder);
}

static void specs_copy_deeply_and_refuse_nested_structs(void **state)
{
    (void)state;
    st_column_spec members[2] = {spec_of(ST_INT32), spec_of(ST_STRING)};
    st_column_spec spec = spec_of(ST_STRUCT), copy;
    spec.children = members;
    spec.child_count = 2;
    assert_int_equal(st_column_spec_copy(&spec, &copy, NULL), SLUICE_OK);
    assert_ptr_not_equal(copy.name, spec.name);
    assert_string_equal(copy.children[1].name, "c");
    assert_int_equal(copy.children[1].type, ST_STRING);
    assert_int_equal(copy.children[1].property, 7);
    st_column_spec_free(&copy);
    st_column_spec_free(&copy);

    members[1].type = ST_STRUCT;
    st_column_builder *builder;
    assert_int_equal(st_column_spec_copy(&spec, &copy, NULL), SLUICE_INTERNAL);
    assert_int_equal(st_column_builder_new(&spec, &builder, NULL), SLUICE_INTERNAL);
    assert_null(builder);
    spec.child_count = 0;
    assert_int_equal(st_column_spec_copy(&spec, &copy, NULL), SLUICE_INTERNAL);
    assert_int_equal(st_column_builder_new(&spec, &builder, NULL), SLUICE_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_names_and_widths),
        cmocka_unit_test(values_survive_growth),
        cmocka_unit_test(slices_copy_every_type_at_every_bit_offset),
        cmocka_unit_test(truncate_undoes_rows_and_their_nulls),
        cmocka_unit_test(truncate_drops_members_of_an_unfinished_struct_row),
        cmocka_unit_test(null_slots_are_zero_after_an_undone_value),
        cmocka_unit_test(bulk_values_and_nulls),
        cmocka_unit_test(a_column_has_limits),
        cmocka_unit_test(specs_copy_deeply_and_refuse_nested_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
