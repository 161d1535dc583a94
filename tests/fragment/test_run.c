/*
 * Runs: every entry is found where it belongs, at every size around the edges of packets and blocks; no damage goes
 * unseen by verify or by a reader that touches it (LESSONS N-03).
 */
#include "store/fragment/run.h"
#include "table_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "0190-1.run"

static st_run_entry *random_entries(uint64_t count, uint64_t spread, uint64_t seed)
{
    test_random random = {seed};
    st_run_entry *entries = malloc((count + 1) * sizeof *entries);
    assert_non_null(entries);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = test_random_next(&random);
        entries[i] = (st_run_entry){spread ? value % spread * (UINT64_MAX / spread) : value, i};
    }
    return entries;
}

static int compare(const void *x, const void *y)
{
    const st_run_entry *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

static void sorting_is_by_hash_then_position(void **state)
{
    (void)state;
    sluice_error err = {0};
    const uint64_t counts[] = {0, 1, 2, 3, 24, 25, 26, 255, 1000, 65536, 100000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (uint64_t shape = 0; shape < 6; shape++) {
            uint64_t count = counts[c];
            st_run_entry *entries = random_entries(count, shape == 1 ? 3 : shape == 2 ? 1000 : 0, c);
            test_random random = {shape};
            for (uint64_t i = 0; i < count && shape >= 3; i++) {
                if (shape == 3)
                    entries[i].hash >>= 40; /* nothing in the leading bits */
                else if (shape == 4)
                    entries[i].position = test_random_next(&random);
                else
                    entries[i] = (st_run_entry){7, count - i};
            }
            st_run_entry *expected = malloc((count + 1) * sizeof *expected);
            assert_non_null(expected);
            memcpy(expected, entries, count * sizeof *entries);
            qsort(expected, count, sizeof *expected, compare);
            ASSERT_OK(st_run_sort(entries, count, &err));
            if (count)
                assert_memory_equal(entries, expected, count * sizeof *entries);
            free(entries);
            free(expected);
        }
    }
}

static st_run_info write_run(table_dir *dir, const char *name, const st_run_entry *entries, uint64_t count)
{
    sluice_error err = {0};
    st_run_info info;
    st_run_entry *copy = malloc((count + 1) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, entries, count * sizeof *copy);
    ASSERT_OK(st_run_write(dir->volume, TABLE, name, copy, count, &info, &err));
    free(copy);
    assert_int_equal(info.entries, count);
    assert_string_equal(info.name, name);
    return info;
}

/* Every distinct hash, and its neighbours, found as often as it occurs; all entries in order, singly and in bulk. */
static void check_contents(st_run *run, const st_run_entry *sorted, uint64_t count, uint64_t step)
{
    sluice_error err = {0};
    st_run_cursor cursor;
    const st_run_entry *entry;
    bool may;

    ASSERT_OK(st_run_seek(run, 0, UINT64_MAX, &cursor, &err));
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_OK(st_run_next(&cursor, &entry, &err));
        assert_non_null(entry);
        assert_memory_equal(entry, &sorted[i], sizeof *entry);
    }
    ASSERT_OK(st_run_next(&cursor, &entry, &err));
    assert_null(entry);

    uint64_t many, seen = 0;
    ASSERT_OK(st_run_seek(run, 0, UINT64_MAX, &cursor, &err));
    do {
        ASSERT_OK(st_run_next_many(&cursor, &entry, &many, &err));
        if (many)
            assert_memory_equal(entry, &sorted[seen], many * sizeof *entry);
        seen += many;
    } while (many);
    assert_int_equal(seen, count);

    for (uint64_t i = 0; i < count; i += step) {
        uint64_t first = i, last = i;
        while (first && sorted[first - 1].hash == sorted[i].hash)
            first--;
        while (last + 1 < count && sorted[last + 1].hash == sorted[i].hash)
            last++;
        ASSERT_OK(st_run_seek(run, sorted[i].hash, sorted[i].hash, &cursor, &err));
        assert_int_equal(cursor.next, first);
        assert_int_equal(cursor.end, last + 1);
        ASSERT_OK(st_run_may_contain(run, sorted[i].hash, &may, &err));
        assert_true(may);
        if (last + 1 < count && sorted[last + 1].hash - sorted[i].hash > 1) {
            ASSERT_OK(st_run_seek(run, sorted[i].hash + 1, sorted[last + 1].hash - 1, &cursor, &err));
            assert_int_equal(cursor.next, cursor.end);
            ASSERT_OK(st_run_seek(run, sorted[i].hash + 1, UINT64_MAX, &cursor, &err));
            assert_int_equal(cursor.next, last + 1);
            assert_int_equal(cursor.end, count);
        }
    }
}

static void every_entry_is_found_at_every_size(void **state)
{
    (void)state;
    sluice_error err = {0};
    const uint64_t counts[] = {0,   1,    2,    63,   64,   65,   255,  256,   257,
                               513, 4091, 4092, 4093, 8187, 8188, 8189, 70000, 200000};
    table_dir dir = table_dir_simulate();
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (uint64_t spread = 0; spread < 3; spread++) {
            char name[32];
            snprintf(name, sizeof name, "%zu-%llu.run", c, (unsigned long long)spread);
            uint64_t count = counts[c];
            st_run_entry *entries = random_entries(count, spread == 2 ? 5 : spread, c);
            st_run_info info = write_run(&dir, name, entries, count);
            qsort(entries, count, sizeof *entries, compare);
            st_run *run;
            ASSERT_OK(st_run_open(dir.volume, TABLE, &info, &run, &err));
            assert_int_equal(st_run_entries(run), count);
            check_contents(run, entries, count, spread ? count / 7 + 1 : count / 999 + 1);
            ASSERT_OK(st_run_verify(run, &err));
            st_run_close(run);
            free(entries);
        }
    }
    table_dir_remove(&dir);
}

static void the_filter_rules_out_most_absent_hashes(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_run_entry *entries = random_entries(50000, 0, 1);
    st_run_info info = write_run(&dir, NAME, entries, 50000);
    st_run *run;
    ASSERT_OK(st_run_open(dir.volume, TABLE, &info, &run, &err));
    test_random random = {99};
    unsigned wrong = 0;
    for (int i = 0; i < 20000; i++) {
        bool may;
        ASSERT_OK(st_run_may_contain(run, test_random_next(&random), &may, &err));
        wrong += may;
    }
    assert_in_range(wrong, 0, 600); /* expected: about one in a hundred */
    st_run_close(run);
    free(entries);
    table_dir_remove(&dir);
}

static void a_seek_reads_one_block(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_run_entry *entries = random_entries(40000, 0, 5);
    st_run_info info = write_run(&dir, NAME, entries, 40000);
    qsort(entries, 40000, sizeof *entries, compare);
    pf_buffer bytes = table_dir_read(&dir, "keys/" NAME);
    bytes.data[65536 + 100] ^= 1; /* block 1 */
    table_dir_write(&dir, "keys/" NAME, bytes.data, bytes.length);
    st_run *run;
    st_run_cursor cursor;
    const st_run_entry *entry;
    ASSERT_OK(st_run_open(dir.volume, TABLE, &info, &run, &err));
    uint64_t refused = 0, first = UINT64_MAX;
    for (uint64_t i = 0; i < 40000; i += 50) {
        sluice_status status = st_run_seek(run, entries[i].hash, entries[i].hash, &cursor, &err);
        if (status == SLUICE_OK)
            status = st_run_next(&cursor, &entry, &err);
        if (status == SLUICE_OK) {
            assert_int_equal(entry->position, entries[i].position);
            continue;
        }
        assert_int_equal(status, SLUICE_CORRUPT);
        assert_true(first == UINT64_MAX || i - first <= 50 * refused + 50); /* they follow each other */
        first = first == UINT64_MAX ? i : first;
        refused++;
    }
    assert_in_range(refused, 40000 / 50 / 10,
                    40000 / 50 / 3); /* a packet of a third and of a fifth block is not asked for */
    assert_non_null(strstr(err.message, "tables/70/keys/" NAME));
    assert_non_null(strstr(err.hint, "salvage"));
    ASSERT_OK(st_run_seek(run, 0, UINT64_MAX, &cursor, &err));
    sluice_status status = SLUICE_OK;
    uint64_t seen = 0;
    for (; status == SLUICE_OK; seen++) {
        status = st_run_next(&cursor, &entry, &err);
        assert_true(status != SLUICE_OK || entry != NULL);
    }
    assert_int_equal(status, SLUICE_CORRUPT);
    assert_in_range(seen, first / 2, first + 51);
    st_run_close(run);
    pf_buffer_free(&bytes);
    free(entries);
    table_dir_remove(&dir);
}

/* Reads everything that a reader can reach. */
static sluice_status read_all(table_dir *dir, const st_run_info *info, const st_run_entry *sorted, bool *ret_verified)
{
    sluice_error err = {0};
    st_run *run;
    st_run_cursor cursor;
    const st_run_entry *entry = sorted;
    sluice_status status = st_run_open(dir->volume, TABLE, info, &run, &err);
    *ret_verified = false;
    if (status != SLUICE_OK)
        return status;
    *ret_verified = st_run_verify(run, &err) == SLUICE_OK;
    st_run_close(run);
    ASSERT_OK(st_run_open(dir->volume, TABLE, info, &run, &err));
    status = st_run_seek(run, 0, UINT64_MAX, &cursor, &err);
    while (status == SLUICE_OK && entry)
        status = st_run_next(&cursor, &entry, &err);
    for (uint64_t i = 0; i < info->entries && status == SLUICE_OK; i++) {
        bool may;
        status = st_run_may_contain(run, sorted[i].hash, &may, &err);
    }
    st_run_close(run);
    return status;
}

static void one_flipped_byte_anywhere_is_found(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_run_entry *entries = random_entries(40, 0, 3);
    st_run_info info = write_run(&dir, NAME, entries, 40);
    qsort(entries, 40, sizeof *entries, compare);
    pf_buffer bytes = table_dir_read(&dir, "keys/" NAME);
    bool verified;
    assert_int_equal(bytes.length, info.bytes);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] ^= 0x10;
        table_dir_write(&dir, "keys/" NAME, bytes.data, bytes.length);
        assert_int_equal(read_all(&dir, &info, entries, &verified), SLUICE_CORRUPT);
        assert_false(verified);
        bytes.data[i] ^= 0x10;
    }
    for (size_t length = 0; length < bytes.length; length++) {
        table_dir_write(&dir, "keys/" NAME, bytes.data, length);
        assert_int_equal(read_all(&dir, &info, entries, &verified), SLUICE_CORRUPT);
    }
    table_dir_write(&dir, "keys/" NAME, bytes.data, bytes.length);
    assert_int_equal(read_all(&dir, &info, entries, &verified), SLUICE_OK);
    assert_true(verified);
    pf_buffer_free(&bytes);
    free(entries);
    table_dir_remove(&dir);
}

/* Bytes that carry their own right digests: no crash, typed errors only. */
static void hostile_bytes_are_refused_or_harmless(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_run_entry *entries = random_entries(40, 0, 3);
    st_run_info info = write_run(&dir, NAME, entries, 40);
    qsort(entries, 40, sizeof *entries, compare);
    pf_buffer bytes = table_dir_read(&dir, "keys/" NAME);
    uint64_t footer_length;
    memcpy(&footer_length, bytes.data + bytes.length - 16, 8);
    test_random random = {11};
    bool verified;
    for (int round = 0; round < 3000; round++) {
        uint8_t *copy = malloc(bytes.length);
        assert_non_null(copy);
        memcpy(copy, bytes.data, bytes.length);
        for (uint64_t flips = 1 + test_random_next(&random) % 4; flips; flips--) {
            uint64_t at = test_random_next(&random) % footer_length;
            copy[bytes.length - 1 - at] = (uint8_t)(test_random_next(&random) >> (round % 3 ? 0 : 62));
        }
        uint64_t length;
        memcpy(&length, copy + bytes.length - 16, 8);
        st_run_info hostile = info;
        if (length <= bytes.length)
            hostile.footer = pf_sha256_of(copy + bytes.length - length, length);
        table_dir_write(&dir, "keys/" NAME, copy, bytes.length);
        sluice_status status = read_all(&dir, &hostile, entries, &verified);
        assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
        free(copy);
    }
    pf_buffer_free(&bytes);
    free(entries);
    table_dir_remove(&dir);
}

static void an_edit_that_says_otherwise_is_corruption(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_run_entry *entries = random_entries(10, 0, 3);
    st_run_info info = write_run(&dir, NAME, entries, 10), other = info;
    st_run *run;
    other.entries++;
    ASSERT_FAILS(SLUICE_CORRUPT, st_run_open(dir.volume, TABLE, &other, &run, &err));
    other = info;
    memcpy(other.name, "absent.run", sizeof "absent.run");
    ASSERT_FAILS(SLUICE_CORRUPT, st_run_open(dir.volume, TABLE, &other, &run, &err));
    assert_null(run);
    assert_non_null(strstr(err.message, "tables/70/keys/absent.run"));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, st_run_write(dir.volume, TABLE, NAME, entries, 10, &other, &err));
    free(entries);
    table_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_is_by_hash_then_position),
        cmocka_unit_test(every_entry_is_found_at_every_size),
        cmocka_unit_test(the_filter_rules_out_most_absent_hashes),
        cmocka_unit_test(a_seek_reads_one_block),
        cmocka_unit_test(one_flipped_byte_anywhere_is_found),
        cmocka_unit_test(hostile_bytes_are_refused_or_harmless),
        cmocka_unit_test(an_edit_that_says_otherwise_is_corruption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
