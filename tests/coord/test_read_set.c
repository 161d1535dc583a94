/*
 * Arbitration by key: which reads meet which writes, on lists of hashes and on runs, and that a collision is confirmed
 * on the key itself (LESSONS K-01, K-02, K-04; OW-029).
 */
#include "coord/read_set.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A change set of one item over these hashes (ascending). */
static st_changes changes_of(uint64_t table, st_space space, uint32_t unique, const uint64_t *hashes, uint64_t count)
{
    st_changes changes = {.items = calloc(1, sizeof *changes.items), .count = 1};
    assert_non_null(changes.items);
    st_change *item = &changes.items[0];
    item->table = table;
    item->space = space;
    item->unique = unique;
    if (count) {
        item->hashes = malloc(count * sizeof *hashes);
        assert_non_null(item->hashes);
        memcpy(item->hashes, hashes, count * sizeof *hashes);
        item->hash_count = count;
    }
    return changes;
}

static void add(co_read_set *set, co_read_kind kind, uint64_t table, uint32_t unique, const uint64_t *hashes,
                uint64_t count)
{
    sluice_error err = {0};
    co_read read = {.kind = kind};
    read.set.table = table;
    read.set.unique = unique;
    if (count) {
        read.set.hashes = malloc(count * sizeof *hashes);
        assert_non_null(read.set.hashes);
        memcpy(read.set.hashes, hashes, count * sizeof *hashes);
        read.set.hash_count = count;
    }
    ASSERT_OK(co_read_set_add(set, &read, &err));
}

static void free_changes(st_changes *changes)
{
    for (uint32_t i = 0; i < changes->count; i++) {
        free(changes->items[i].hashes);
        free(changes->items[i].runs);
    }
    free(changes->items);
}

static bool meets(const co_read_set *set, st_changes changes)
{
    sluice_error err = {0};
    bool meet = false;
    co_read_kind kind = CO_READ_KIND_COUNT;
    uint64_t table = 0;
    ASSERT_OK(co_read_set_meets(NULL, set, &changes, &meet, &kind, &table, &err));
    if (meet) {
        assert_true(kind < CO_READ_KIND_COUNT);
        assert_true(table > 0);
    }
    free_changes(&changes);
    return meet;
}

static const uint64_t low[] = {1, 5, 9}, high[] = {5, 7}, far_off[] = {100, 200};

static void each_kind_of_read_meets_its_spaces_and_no_others(void **state)
{
    (void)state;
    static const struct {
        co_read_kind kind;
        st_space meets;
    } cells[] = {{CO_READ_KEY_ABSENT, ST_SPACE_KEY_INSERTED},   {CO_READ_KEY_PRESENT, ST_SPACE_KEY_DELETED},
                 {CO_READ_UNIQUE_ABSENT, ST_SPACE_UNIQUE_SET},  {CO_READ_UNIQUE_PRESENT, ST_SPACE_UNIQUE_FREED},
                 {CO_READ_EDGES_EMPTY, ST_SPACE_ENDPOINT_USED}, {CO_READ_COUNT, ST_SPACE_ENDPOINT_USED}};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        co_read_set set = {0};
        add(&set, cells[i].kind, 64, 0, low, 3);
        for (unsigned space = 0; space < ST_SPACE_COUNT; space++) {
            bool want = space == (unsigned)cells[i].meets || space == ST_SPACE_WHOLE_TABLE;
            assert_int_equal(meets(&set, changes_of(64, (st_space)space, 0, high, 2)), want);
            if (space != ST_SPACE_WHOLE_TABLE)
                assert_false(meets(&set, changes_of(64, (st_space)space, 0, far_off, 2)));
        }
        co_read_set_free(&set);
    }
}

static void a_row_that_was_read_meets_whatever_happens_to_its_key(void **state)
{
    (void)state;
    co_read_set set = {0};
    add(&set, CO_READ_ROW, 64, 0, low, 3);
    for (unsigned space = 0; space < ST_SPACE_COUNT; space++) {
        bool want = space == ST_SPACE_KEY_INSERTED || space == ST_SPACE_KEY_DELETED || space == ST_SPACE_ROW_UPDATED ||
                    space == ST_SPACE_WHOLE_TABLE;
        assert_int_equal(meets(&set, changes_of(64, (st_space)space, 0, high, 2)), want);
        assert_int_equal(meets(&set, changes_of(64, (st_space)space, 0, far_off, 2)), space == ST_SPACE_WHOLE_TABLE);
        assert_false(meets(&set, changes_of(65, (st_space)space, 0, high, 2)));
    }
    co_read_set_free(&set);
}

static void a_property_meets_changes_of_it_and_of_whole_rows_and_deletions(void **state)
{
    (void)state;
    static const struct {
        st_space space;
        uint64_t property;
        bool want;
    } cells[] = {{ST_SPACE_ROW_UPDATED, 3, true},   {ST_SPACE_ROW_UPDATED, 4, false},  {ST_SPACE_ROW_UPDATED, 0, true},
                 {ST_SPACE_KEY_DELETED, 0, true},   {ST_SPACE_KEY_INSERTED, 0, false}, {ST_SPACE_UNIQUE_SET, 0, false},
                 {ST_SPACE_ENDPOINT_USED, 0, false}};
    co_read_set set = {0};
    add(&set, CO_READ_PROPERTY, 64, 0, low, 3);
    set.reads[0].set.property = 3;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        st_changes changes = changes_of(64, cells[i].space, 0, high, 2);
        changes.items[0].property = cells[i].property;
        assert_int_equal(meets(&set, changes), cells[i].want);
    }
    co_read_set_free(&set);
}

static void only_objects_and_properties_end_a_write(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_read_set set = {0}, ends = {0};
    for (unsigned kind = 0; kind < CO_READ_KIND_COUNT; kind++) {
        assert_int_equal(co_read_kind_ends((co_read_kind)kind), kind == CO_READ_OBJECT || kind == CO_READ_PROPERTY);
        add(&set, (co_read_kind)kind, 64, 0, low, 3);
    }
    ASSERT_OK(co_read_set_take_ends(&set, &ends, &err));
    assert_int_equal(ends.count, 2);
    assert_int_equal(ends.reads[1].set.hash_count, 3);
    co_read_set_free(&ends);
    co_read_set_free(&set);
}

static void another_table_or_unique_tuple_is_not_met(void **state)
{
    (void)state;
    co_read_set set = {0};
    add(&set, CO_READ_KEY_ABSENT, 64, 0, low, 3);
    add(&set, CO_READ_UNIQUE_ABSENT, 64, 1, low, 3);
    assert_false(meets(&set, changes_of(65, ST_SPACE_KEY_INSERTED, 0, low, 3)));
    assert_false(meets(&set, changes_of(64, ST_SPACE_UNIQUE_SET, 0, low, 3)));
    assert_true(meets(&set, changes_of(64, ST_SPACE_UNIQUE_SET, 1, low, 3)));
    assert_false(meets(&set, changes_of(65, ST_SPACE_WHOLE_TABLE, 0, NULL, 0)));
    co_read_set_free(&set);
}

static void a_missing_change_set_is_everything(void **state)
{
    (void)state;
    co_read_set set = {0};
    add(&set, CO_READ_KEY_PRESENT, 64, 0, low, 3);
    st_changes unknown = changes_of(0, ST_SPACE_KEY_INSERTED, 0, NULL, 0);
    unknown.items[0].whole = true;
    assert_true(meets(&set, unknown));
    st_changes spilled = changes_of(64, ST_SPACE_KEY_DELETED, 0, NULL, 0);
    spilled.items[0].whole = true;
    assert_true(meets(&set, spilled));
    co_read_set_free(&set);
}

static void a_whole_table_read_meets_any_change_of_it(void **state)
{
    (void)state;
    co_read_set set = {0};
    add(&set, CO_READ_WHOLE_TABLE, 64, 0, NULL, 0);
    for (unsigned space = 0; space < ST_SPACE_COUNT; space++) {
        assert_true(meets(&set, changes_of(64, (st_space)space, 0, far_off, 2)));
        assert_false(meets(&set, changes_of(65, (st_space)space, 0, far_off, 2)));
    }
    assert_true(co_read_set_has_whole(&set, 64));
    assert_false(co_read_set_has_whole(&set, 65));
    co_read_set_free(&set);
}

static void an_empty_edge_set_meets_an_edge_table_replaced(void **state)
{
    (void)state;
    co_read_set set = {0};
    add(&set, CO_READ_EDGES_EMPTY, 64, 0, low, 3);
    assert_true(meets(&set, changes_of(70, ST_SPACE_WHOLE_TABLE, 0, NULL, 0)));
    co_read_set_free(&set);
}

static void one_member_among_a_thousand_is_found(void **state)
{
    (void)state;
    co_read_set set = {0};
    for (uint64_t i = 0; i < 1000; i++)
        add(&set, CO_READ_KEY_ABSENT, 64, 0, &(uint64_t){i * 10 + 5}, 1);
    assert_int_equal(set.count, 1000);
    assert_true(meets(&set, changes_of(64, ST_SPACE_KEY_INSERTED, 0, &(uint64_t){7775}, 1)));
    assert_false(meets(&set, changes_of(64, ST_SPACE_KEY_INSERTED, 0, &(uint64_t){7776}, 1)));
    co_read_set_free(&set);
}

static void a_read_set_reads_back_byte_for_byte(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_read_set set = {.incarnation = 3, .reads_head = true, .head = pf_id_new()}, read = {0};
    pf_buffer bytes = {0}, again = {0};
    set.schema_identity = pf_sha256_of("schema", 6);
    add(&set, CO_READ_KEY_ABSENT, 64, 0, low, 3);
    add(&set, CO_READ_UNIQUE_ABSENT, 65, 2, (const uint64_t[]){0, UINT64_MAX}, 2);
    co_read runs = {.kind = CO_READ_COUNT};
    runs.set.table = 70;
    runs.set.runs = calloc(1, sizeof *runs.set.runs);
    runs.set.run_count = 1;
    runs.set.runs[0].table = 70;
    runs.set.runs[0].run.use = ST_RUN_TO;
    (void)snprintf(runs.set.runs[0].run.info.name, sizeof runs.set.runs[0].run.info.name, "%s", "a-1.to.run");
    runs.set.runs[0].run.info.entries = UINT64_MAX;
    (void)snprintf(runs.set.runs[0].fragment.name, sizeof runs.set.runs[0].fragment.name, "%s", "a-1.arrow");
    runs.set.runs[0].fragment.rows = 12;
    runs.set.runs[0].fragment.explicit_ids = true;
    ASSERT_OK(co_read_set_add(&set, &runs, &err));

    ASSERT_OK(co_read_set_encode(&set, &bytes, &err));
    ASSERT_OK(co_read_set_decode(bytes.data, bytes.length, &read, &err));
    assert_int_equal(read.count, 3);
    assert_true(pf_id_equal(&read.head, &set.head));
    assert_int_equal(read.reads[1].set.hashes[1], UINT64_MAX);
    assert_int_equal(read.reads[1].set.unique, 2);
    assert_string_equal(read.reads[2].set.runs[0].run.info.name, "a-1.to.run");
    assert_int_equal(read.reads[2].set.runs[0].run.use, ST_RUN_TO);
    assert_true(read.reads[2].set.runs[0].fragment.explicit_ids);
    ASSERT_OK(co_read_set_encode(&read, &again, &err));
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.data, bytes.data, bytes.length);

    for (size_t i = 0; i < bytes.length; i++) { /* no changed byte is taken for the same set */
        co_read_set other = {0};
        bytes.data[i] ^= 1;
        if (co_read_set_decode(bytes.data, bytes.length, &other, NULL) == SLUICE_OK) {
            again.length = 0;
            ASSERT_OK(co_read_set_encode(&other, &again, &err));
            assert_memory_equal(again.data, bytes.data, bytes.length);
            co_read_set_free(&other);
        }
        bytes.data[i] ^= 1;
    }
    for (size_t length = 0; length < bytes.length; length++) {
        co_read_set other = {0};
        assert_int_not_equal(co_read_set_decode(bytes.data, length, &other, NULL), SLUICE_OK);
    }
    co_read_set_free(&set);
    co_read_set_free(&read);
    pf_buffer_free(&bytes);
    pf_buffer_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_read_meets_its_spaces_and_no_others),
        cmocka_unit_test(a_row_that_was_read_meets_whatever_happens_to_its_key),
        cmocka_unit_test(a_property_meets_changes_of_it_and_of_whole_rows_and_deletions),
        cmocka_unit_test(only_objects_and_properties_end_a_write),
        cmocka_unit_test(another_table_or_unique_tuple_is_not_met),
        cmocka_unit_test(a_missing_change_set_is_everything),
        cmocka_unit_test(a_whole_table_read_meets_any_change_of_it),
        cmocka_unit_test(an_empty_edge_set_meets_an_edge_table_replaced),
        cmocka_unit_test(one_member_among_a_thousand_is_found),
        cmocka_unit_test(a_read_set_reads_back_byte_for_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
