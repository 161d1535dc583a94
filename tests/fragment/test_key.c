/*
 * Keys (LESSONS K-04): canonical bytes are injective and the same for every way of storing a value; hashes and equality
 * follow from them; the hash values themselves are part of the format of runs.
 */
#include "store/fragment/key.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

static st_column_builder *builder_of(st_type type)
{
    sluice_error err = {0};
    st_column_spec spec = {.name = (char *)(uintptr_t) "k", .type = type, .nullable = true};
    st_column_builder *builder;
    ASSERT_OK(st_column_builder_new(&spec, &builder, &err));
    return builder;
}

static st_column_builder *texts(const char *const *values, uint32_t count)
{
    sluice_error err = {0};
    st_column_builder *builder = builder_of(ST_STRING);
    for (uint32_t i = 0; i < count; i++) {
        if (values[i])
            ASSERT_OK(st_append_bytes(builder, values[i], strlen(values[i]), &err));
        else
            ASSERT_OK(st_append_null(builder, &err));
    }
    return builder;
}

static pf_buffer canonical(const st_column *const *columns, uint32_t count, uint64_t row)
{
    sluice_error err = {0};
    pf_buffer buffer = {0};
    ASSERT_OK(st_key_encode(columns, count, row, &buffer, &err));
    return buffer;
}

static void members_are_framed_so_that_no_two_keys_share_bytes(void **state)
{
    (void)state;
    const char *const first[] = {"a", "ab", "", NULL, "abc", NULL, ""};
    const char *const second[] = {"bc", "c", "abc", "abc", "", NULL, NULL};
    st_column_builder *a = texts(first, 7), *b = texts(second, 7);
    st_column columns[2];
    st_builder_view(a, &columns[0]);
    st_builder_view(b, &columns[1]);
    const st_column *const key[] = {&columns[0], &columns[1]};
    for (uint64_t i = 0; i < 7; i++) {
        for (uint64_t j = 0; j < 7; j++) {
            pf_buffer x = canonical(key, 2, i), y = canonical(key, 2, j);
            bool same = x.length == y.length && memcmp(x.data, y.data, x.length) == 0;
            assert_int_equal(same, i == j);
            assert_int_equal(st_key_equal(key, i, key, j, 2), i == j);
            assert_int_equal(st_key_hash_row(key, 2, i) == st_key_hash_row(key, 2, j), i == j);
            pf_buffer_free(&x);
            pf_buffer_free(&y);
        }
        assert_int_equal(st_key_has_null(key, 2, i), i == 3 || i >= 5);
    }
    st_column_builder_free(a);
    st_column_builder_free(b);
}

static void canonical_bytes_are_what_the_format_says(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_builder *number = builder_of(ST_INT32), *text = builder_of(ST_BYTES), *flag = builder_of(ST_BOOL);
    ASSERT_OK(st_append_i32(number, -2, &err));
    ASSERT_OK(st_append_bytes(text, "\0\xFF", 2, &err));
    ASSERT_OK(st_append_bool(flag, true, &err));
    ASSERT_OK(st_append_null(number, &err));
    ASSERT_OK(st_append_bytes(text, "", 0, &err));
    ASSERT_OK(st_append_bool(flag, false, &err));
    st_column columns[3];
    st_builder_view(number, &columns[0]);
    st_builder_view(text, &columns[1]);
    st_builder_view(flag, &columns[2]);
    const st_column *const key[] = {&columns[0], &columns[1], &columns[2]};
    static const uint8_t first[] = {8, 0, 0,    0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0,
                                    0, 0, 0xFF, 8, 0,    0,    0,    1,    0,    0,    0,    0,    0, 0, 0};
    static const uint8_t second[] = {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    pf_buffer bytes = canonical(key, 3, 0);
    assert_int_equal(bytes.length, sizeof first);
    assert_memory_equal(bytes.data, first, sizeof first);
    assert_true(st_key_hash_row(key, 3, 0) == XXH3_64bits(first, sizeof first));
    pf_buffer_free(&bytes);
    bytes = canonical(key, 3, 1);
    assert_int_equal(bytes.length, sizeof second);
    assert_memory_equal(bytes.data, second, sizeof second);
    assert_true(st_key_hash_row(key, 3, 1) == XXH3_64bits(second, sizeof second));
    pf_buffer_free(&bytes);
    st_column_builder_free(number);
    st_column_builder_free(text);
    st_column_builder_free(flag);
}

static void one_integer_is_mixed_by_the_bijection_of_the_format(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_builder *wide = builder_of(ST_INT64), *narrow = builder_of(ST_INT32), *ids = builder_of(ST_ROW_ID);
    for (int i = -50; i < 50; i++) {
        ASSERT_OK(st_append_i64(wide, i, &err));
        ASSERT_OK(st_append_i32(narrow, i, &err));
        ASSERT_OK(st_append_u64(ids, (uint64_t)i, &err));
    }
    st_column w, n, u;
    st_builder_view(wide, &w);
    st_builder_view(narrow, &n);
    st_builder_view(ids, &u);
    const st_column *const kw[] = {&w}, *const kn[] = {&n}, *const ku[] = {&u};
    uint64_t hw[100], hn[100], hu[100];
    st_key_hash_rows(kw, 1, 100, hw);
    st_key_hash_rows(kn, 1, 100, hn);
    st_key_hash_rows(ku, 1, 100, hu);
    assert_memory_equal(hw, hn, sizeof hw);
    assert_memory_equal(hw, hu, sizeof hw);
    assert_true(hw[50] == 0);                   /* of 0 */
    assert_true(hw[51] == 0x5692161D100B05E5u); /* of 1: splitmix64's finaliser */
    assert_true(st_key_hash_is_exact(kw, 1));
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(st_key_hash_row(kw, 1, i) == hw[i]);
        assert_true(st_key_equal(kw, i, kn, i, 1));
        assert_false(st_key_equal(kw, i, kn, 99 - i, 1));
    }
    st_column_builder_free(wide);
    st_column_builder_free(narrow);
    st_column_builder_free(ids);
}

static void a_key_follows_from_its_exact_hash(void **state)
{
    (void)state;
    static const struct {
        st_type type;
        int64_t values[4];
    } kinds[] = {{ST_BOOL, {0, 1, 1, 0}},
                 {ST_INT32, {0, -1, INT32_MIN, INT32_MAX}},
                 {ST_DATE, {0, -1, 20000, INT32_MAX}},
                 {ST_INT64, {0, -1, INT64_MIN, INT64_MAX}},
                 {ST_UINT64, {0, -1, INT64_MIN, 77}},
                 {ST_TIMESTAMP, {0, -1, INT64_MIN, 77}},
                 {ST_ROW_ID, {1, INT64_MAX, INT64_C(1) << 40, 77}}};
    sluice_error err = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        st_column_builder *builder = builder_of(kinds[k].type);
        for (int i = 0; i < 4; i++) {
            int64_t value = kinds[k].values[i];
            if (kinds[k].type == ST_BOOL)
                ASSERT_OK(st_append_bool(builder, value, &err));
            else if (kinds[k].type == ST_INT32 || kinds[k].type == ST_DATE)
                ASSERT_OK(st_append_i32(builder, (int32_t)value, &err));
            else
                ASSERT_OK(st_append_values(builder, &value, 1, &err));
        }
        st_column column, back;
        st_builder_view(builder, &column);
        const st_column *const key[] = {&column}, *const again[] = {&back};
        for (uint64_t row = 0; row < 4; row++) {
            uint64_t word;
            assert_true(st_key_of_hash(kinds[k].type, st_key_hash_row(key, 1, row), &word, &back));
            assert_true(st_key_equal(key, row, again, 0, 1));
            assert_int_equal(back.type, kinds[k].type);
        }
        st_column_builder_free(builder);
    }
    uint64_t word;
    st_column back;
    assert_false(st_key_of_hash(ST_STRING, 7, &word, &back));
    assert_false(st_key_of_hash(ST_FLOAT64, 7, &word, &back));
    assert_false(st_key_of_hash(ST_STRUCT, 7, &word, &back));
}

static void negative_zero_is_zero(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_builder *wide = builder_of(ST_FLOAT64), *narrow = builder_of(ST_FLOAT32);
    const double values[] = {0.0, -0.0, 1.5, INFINITY};
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(st_append_f64(wide, values[i], &err));
        ASSERT_OK(st_append_f32(narrow, (float)values[i], &err));
    }
    st_column w, n;
    st_builder_view(wide, &w);
    st_builder_view(narrow, &n);
    const st_column *const kw[] = {&w}, *const kn[] = {&n};
    assert_true(st_key_equal(kw, 0, kw, 1, 1));
    assert_true(st_key_hash_row(kw, 1, 0) == st_key_hash_row(kw, 1, 1));
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(st_key_equal(kw, i, kn, i, 1));
        assert_true(st_key_hash_row(kw, 1, i) == st_key_hash_row(kn, 1, i));
    }
    assert_false(st_key_hash_is_exact(kw, 1));
    st_column_builder_free(wide);
    st_column_builder_free(narrow);
}

static void a_struct_is_its_members_in_a_row(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec members[2] = {{.name = (char *)(uintptr_t) "A", .type = ST_INT64},
                                 {.name = (char *)(uintptr_t) "B", .type = ST_STRING}};
    st_column_spec spec = {
        .name = (char *)(uintptr_t) "from", .type = ST_STRUCT, .children = members, .child_count = 2};
    st_column_builder *ends, *a = builder_of(ST_INT64), *b = builder_of(ST_STRING);
    ASSERT_OK(st_column_builder_new(&spec, &ends, &err));
    for (int i = 0; i < 70; i++) {
        ASSERT_OK(st_append_i64(st_builder_child(ends, 0), i, &err));
        ASSERT_OK(st_append_bytes(st_builder_child(ends, 1), "xyz", (size_t)i % 4, &err));
        ASSERT_OK(st_append_struct(ends, &err));
        ASSERT_OK(st_append_i64(a, i, &err));
        ASSERT_OK(st_append_bytes(b, "xyz", (size_t)i % 4, &err));
    }
    st_column e, va, vb;
    st_builder_view(ends, &e);
    st_builder_view(a, &va);
    st_builder_view(b, &vb);
    const st_column *const nested[] = {&e}, *const flat[] = {&va, &vb};
    uint64_t hashes[70], flat_hashes[70];
    st_key_hash_rows(nested, 1, 70, hashes);
    st_key_hash_rows(flat, 2, 70, flat_hashes);
    assert_memory_equal(hashes, flat_hashes, sizeof hashes);
    for (uint64_t i = 0; i < 70; i++) {
        pf_buffer x = canonical(nested, 1, i), y = canonical(flat, 2, i);
        assert_int_equal(x.length, y.length);
        assert_memory_equal(x.data, y.data, x.length);
        pf_buffer_free(&x);
        pf_buffer_free(&y);
    }
    st_column_builder_free(ends);
    st_column_builder_free(a);
    st_column_builder_free(b);
}

static void long_keys_hash_but_do_not_encode(void **state)
{
    (void)state;
    sluice_error err = {0};
    char *text = malloc(5000);
    assert_non_null(text);
    memset(text, 'k', 5000);
    st_column_builder *builder = builder_of(ST_STRING);
    const size_t lengths[] = {1019, 1020, 1021, 4000, 4999};
    for (int i = 0; i < 5; i++)
        ASSERT_OK(st_append_bytes(builder, text, lengths[i], &err));
    st_column column;
    st_builder_view(builder, &column);
    const st_column *const key[] = {&column};
    for (uint64_t i = 0; i < 5; i++) {
        pf_buffer buffer = {0};
        uint8_t framed[5004] = {(uint8_t)lengths[i], (uint8_t)(lengths[i] >> 8), 0, 0};
        memset(framed + 4, 'k', lengths[i]);
        assert_true(st_key_hash_row(key, 1, i) == XXH3_64bits(framed, lengths[i] + 4));
        if (lengths[i] + 4 <= ST_KEY_BYTES_MAX)
            ASSERT_OK(st_key_encode(key, 1, i, &buffer, &err));
        else
            ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_key_encode(key, 1, i, &buffer, &err));
        pf_buffer_free(&buffer);
    }
    st_column_builder_free(builder);
    free(text);
}

static void forced_hashes(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_builder *builder = builder_of(ST_INT64);
    ASSERT_OK(st_append_i64(builder, 1, &err));
    ASSERT_OK(st_append_i64(builder, 2, &err));
    st_column column;
    st_builder_view(builder, &column);
    const st_column *const key[] = {&column};
    uint64_t hashes[2];
    st_key_hash_rows(key, 1, 2, hashes);
    assert_true(hashes[0] == 7 && hashes[1] == 7 && st_key_hash_row(key, 1, 1) == 7);
    assert_false(st_key_hash_is_exact(key, 1));
    uint64_t word;
    assert_false(st_key_of_hash(ST_INT64, 7, &word, &column));
    assert_false(st_key_equal(key, 0, key, 1, 1));
    st_column_builder_free(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_framed_so_that_no_two_keys_share_bytes),
        cmocka_unit_test(canonical_bytes_are_what_the_format_says),
        cmocka_unit_test(one_integer_is_mixed_by_the_bijection_of_the_format),
        cmocka_unit_test(a_key_follows_from_its_exact_hash),
        cmocka_unit_test(negative_zero_is_zero),
        cmocka_unit_test(a_struct_is_its_members_in_a_row),
        cmocka_unit_test(long_keys_hash_but_do_not_encode),
    };
    const struct CMUnitTest forced[] = {cmocka_unit_test(forced_hashes)};
    const char *value = getenv("SLUICE_TEST_EQUAL_HASHES");
    /* Read once per process: what the variable says decides which tests can be run. */
    if (value && strcmp(value, "1") == 0)
        return cmocka_run_group_tests(forced, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
