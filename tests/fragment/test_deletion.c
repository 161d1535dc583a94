/*
 * Row sets and deletion files: sets behave as sets, equal sets give equal bytes, damaged and hostile files are refused.
 */
#include "store/fragment/deletion.h"
#include "table_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "0190-1.rows"
#define PATH "tables/70/deletions/" NAME

static st_row_set *new_set(void)
{
    sluice_error err = {0};
    st_row_set *set;
    ASSERT_OK(st_row_set_new(&set, &err));
    return set;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void a_row_set_holds_what_was_added(void **state)
{
    (void)state;
    sluice_error err = {0};
    for (uint64_t seed = 0; seed < 6; seed++) {
        enum { COUNT = 5000 };
        test_random random = {seed};
        uint64_t *rows = malloc(COUNT * sizeof *rows), *got, got_count;
        assert_non_null(rows);
        for (int i = 0; i < COUNT; i++) /* dense, sparse, over several high words, one after the other */
            rows[i] = seed == 0   ? (uint64_t)i
                      : seed == 1 ? test_random_next(&random) % 9000
                      : seed == 2 ? test_random_next(&random) >> 20
                                  : ((uint64_t)seed << 40) + ((test_random_next(&random) % 3) << 32) +
                                        test_random_next(&random) % 100000;
        st_row_set *set = new_set(), *single = new_set();
        ASSERT_OK(st_row_set_add_many(set, rows, COUNT, &err));
        for (int i = COUNT; i > 0; i--)
            ASSERT_OK(st_row_set_add(single, rows[i - 1], &err));
        qsort(rows, COUNT, sizeof *rows, compare);
        uint64_t distinct = 0;
        for (int i = 0; i < COUNT; i++)
            if (!distinct || rows[i] != rows[distinct - 1])
                rows[distinct++] = rows[i];
        assert_int_equal(st_row_set_count(set), distinct);
        assert_int_equal(st_row_set_count(single), distinct);
        ASSERT_OK(st_row_set_rows(set, &got, &got_count, &err));
        assert_int_equal(got_count, distinct);
        assert_memory_equal(got, rows, distinct * sizeof *rows);
        free(got);
        for (uint64_t i = 0; i < distinct; i += 7) {
            assert_true(st_row_set_contains(set, rows[i]));
            if (i + 1 < distinct && rows[i + 1] > rows[i] + 1)
                assert_false(st_row_set_contains(set, rows[i] + 1));
        }
        for (uint64_t i = 0; i + 40 < distinct; i += 97) {
            ASSERT_OK(st_row_set_range(set, rows[i], rows[i + 40] - rows[i], &got, &got_count, &err));
            assert_int_equal(got_count, 40);
            assert_int_equal(st_row_set_count_range(set, rows[i], rows[i + 40] - rows[i]), 40);
            for (uint64_t k = 0; k < 40; k++)
                assert_int_equal(got[k], rows[i + k] - rows[i]);
            free(got);
        }
        free(rows);
        st_row_set_free(set);
        st_row_set_free(single);
    }
}

static void ranges_end_with_the_numbers(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_row_set *set = new_set();
    uint64_t *rows, count;
    ASSERT_OK(st_row_set_range(set, 0, UINT64_MAX, &rows, &count, &err));
    assert_null(rows);
    ASSERT_OK(st_row_set_add(set, UINT64_MAX, &err));
    ASSERT_OK(st_row_set_add(set, UINT32_MAX, &err));
    ASSERT_OK(st_row_set_add(set, (uint64_t)UINT32_MAX + 1, &err));
    assert_int_equal(st_row_set_count_range(set, UINT64_MAX - 5, UINT64_MAX), 1);
    assert_int_equal(st_row_set_count_range(set, 0, 0), 0);
    assert_int_equal(st_row_set_count_range(set, UINT32_MAX, 1), 1);
    assert_int_equal(st_row_set_count_range(set, UINT32_MAX, 2), 2);
    assert_int_equal(st_row_set_count_range(set, 0, UINT32_MAX), 0);
    st_row_set_free(set);
}

/* Arrays, bitsets and runs, in three parts. */
static st_row_set *varied_set(void)
{
    sluice_error err = {0};
    st_row_set *set = new_set();
    test_random random = {4};
    for (uint64_t i = 0; i < 50; i++)
        ASSERT_OK(st_row_set_add(set, test_random_next(&random) % 65536, &err));
    for (uint64_t i = 0; i < 300; i++)
        ASSERT_OK(st_row_set_add(set, 1000000 + i, &err));
    for (uint64_t i = 0; i < 12000; i++)
        ASSERT_OK(st_row_set_add(set, ((uint64_t)1 << 40) + test_random_next(&random) % 65536, &err));
    ASSERT_OK(st_row_set_add(set, ((uint64_t)1 << 50) + 5, &err));
    return set;
}

static void files_bring_back_the_same_set(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_row_set *set = varied_set(), *back, *empty = new_set();
    st_dead_ref ref, none;
    uint64_t *a, *b, count_a, count_b;
    ASSERT_OK(st_deletion_write(dir.volume, TABLE, NAME, set, &ref, &err));
    assert_true(ref.present);
    assert_string_equal(ref.name, NAME);
    ASSERT_OK(st_deletion_read(dir.volume, TABLE, &ref, &back, &err));
    ASSERT_OK(st_row_set_rows(set, &a, &count_a, &err));
    ASSERT_OK(st_row_set_rows(back, &b, &count_b, &err));
    assert_int_equal(count_a, count_b);
    assert_int_equal(count_a, ref.rows);
    assert_memory_equal(a, b, count_a * sizeof *a);
    free(a);
    free(b);
    st_row_set_free(back);
    ASSERT_OK(st_deletion_write(dir.volume, TABLE, "empty.rows", empty, &none, &err));
    ASSERT_OK(st_deletion_read(dir.volume, TABLE, &none, &back, &err));
    assert_int_equal(st_row_set_count(back), 0);
    st_row_set_free(back);
    st_row_set_free(empty);
    st_row_set_free(set);
    table_dir_remove(&dir);
}

static void equal_sets_give_equal_bytes(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_row_set *set = varied_set(), *other = new_set(), *merged = new_set();
    uint64_t *rows, count;
    ASSERT_OK(st_row_set_rows(set, &rows, &count, &err));
    for (uint64_t i = count; i > 0; i--)
        ASSERT_OK(st_row_set_add(other, rows[i - 1], &err));
    free(rows);
    ASSERT_OK(st_row_set_add_set(merged, other, &err));
    ASSERT_OK(st_row_set_add_set(merged, set, &err));
    st_dead_ref a, b, c;
    ASSERT_OK(st_deletion_write(dir.volume, TABLE, "a", set, &a, &err));
    ASSERT_OK(st_deletion_write(dir.volume, TABLE, "b", other, &b, &err));
    ASSERT_OK(st_deletion_write(dir.volume, TABLE, "c", merged, &c, &err));
    assert_memory_equal(&a.digest, &b.digest, sizeof a.digest);
    assert_memory_equal(&a.digest, &c.digest, sizeof a.digest);
    st_row_set_free(set);
    st_row_set_free(other);
    st_row_set_free(merged);
    table_dir_remove(&dir);
}

static pf_buffer small_file(table_dir *dir, st_dead_ref *ret_ref)
{
    sluice_error err = {0};
    st_row_set *set = new_set();
    for (uint64_t i = 0; i < 40; i++) {
        ASSERT_OK(st_row_set_add(set, i * i, &err));
        ASSERT_OK(st_row_set_add(set, ((uint64_t)9 << 32) + 70000 + i, &err));
    }
    ASSERT_OK(st_deletion_write(dir->volume, TABLE, NAME, set, ret_ref, &err));
    st_row_set_free(set);
    return table_dir_read(dir, "deletions/" NAME);
}

static void one_flipped_byte_anywhere_is_found(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_dead_ref ref;
    st_row_set *set;
    pf_buffer bytes = small_file(&dir, &ref);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] ^= 0x04;
        table_dir_write(&dir, "deletions/" NAME, bytes.data, bytes.length);
        ASSERT_FAILS(SLUICE_CORRUPT, st_deletion_read(dir.volume, TABLE, &ref, &set, &err));
        sluice_status alone = st_deletion_decode(bytes.data, bytes.length, TABLE, PATH, &set, &err);
        assert_true(alone == SLUICE_CORRUPT || alone == SLUICE_UNSUPPORTED_FORMAT);
        bytes.data[i] ^= 0x04;
    }
    for (size_t length = 0; length < bytes.length; length++) {
        table_dir_write(&dir, "deletions/" NAME, bytes.data, length);
        ASSERT_FAILS(SLUICE_CORRUPT, st_deletion_read(dir.volume, TABLE, &ref, &set, &err));
        ASSERT_FAILS(SLUICE_CORRUPT, st_deletion_decode(bytes.data, length, TABLE, PATH, &set, &err));
    }
    assert_non_null(strstr(err.message, PATH));
    memcpy(ref.name, "absent", 7);
    ASSERT_FAILS(SLUICE_CORRUPT, st_deletion_read(dir.volume, TABLE, &ref, &set, &err));
    pf_buffer_free(&bytes);
    table_dir_remove(&dir);
}

/* Bytes with right checksums around wrong structure. */
static void hostile_bytes_are_refused_or_harmless(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_dead_ref ref;
    pf_buffer bytes = small_file(&dir, &ref);
    test_random random = {21};
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(bytes.length);
        assert_non_null(copy);
        memcpy(copy, bytes.data, bytes.length);
        for (uint64_t flips = 1 + test_random_next(&random) % 3; flips; flips--)
            copy[8 + test_random_next(&random) % (bytes.length - 8)] =
                (uint8_t)(test_random_next(&random) >> (round % 2 ? 0 : 61));
        pf_xxh128 content = pf_xxh128_of(copy + 64, bytes.length - 64);
        memcpy(copy + 40, &content.low, 8);
        memcpy(copy + 48, &content.high, 8);
        uint64_t check = pf_xxh64_of(copy, 56);
        memcpy(copy + 56, &check, 8);
        st_row_set *set;
        sluice_status status = st_deletion_decode(copy, bytes.length, TABLE, PATH, &set, &err);
        assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
        if (status == SLUICE_OK) {
            uint64_t *rows, count;
            ASSERT_OK(st_row_set_rows(set, &rows, &count, &err));
            for (uint64_t i = 0; i < count; i++) {
                assert_true(st_row_set_contains(set, rows[i]));
                assert_true(!i || rows[i] > rows[i - 1]);
            }
            free(rows);
            st_row_set_free(set);
        }
        free(copy);
    }
    pf_buffer_free(&bytes);
    table_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_set_holds_what_was_added),     cmocka_unit_test(ranges_end_with_the_numbers),
        cmocka_unit_test(files_bring_back_the_same_set),      cmocka_unit_test(equal_sets_give_equal_bytes),
        cmocka_unit_test(one_flipped_byte_anywhere_is_found), cmocka_unit_test(hostile_bytes_are_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
