/* The columns of a drawn history: a line stays in its column, merges and forks are where they belong. */
#include "coord/lanes.h"
#include "tests/support/test.h"

static co_lane_row next(co_lanes *lanes, uint8_t commit, uint8_t first, uint8_t second)
{
    co_lane_row row = {.commit.bytes[0] = commit, .parent_count = (first != 0) + (second != 0u)};
    row.parents[0].bytes[0] = first;
    row.parents[1].bytes[0] = second;
    co_lanes_next(lanes, &row);
    return row;
}

static void a_straight_history_has_one_column(void **state)
{
    (void)state;
    co_lanes lanes = {0};
    for (uint8_t commit = 9; commit > 0; commit--) {
        const co_lane_row row = next(&lanes, commit, (uint8_t)(commit - 1), 0);
        assert_int_equal(row.column, 0);
        assert_int_equal(row.above, commit < 9);
        assert_int_equal(row.below, commit > 1);
    }
    assert_int_equal(lanes.used, 1);
}

/* 5 merges 4 (of a branch) into 3; both come from 2. */
static void a_merge_opens_a_column_and_the_fork_closes_it(void **state)
{
    (void)state;
    co_lanes lanes = {0};
    co_lane_row row = next(&lanes, 5, 3, 4);
    assert_int_equal(row.column, 0);
    assert_int_equal(row.lines[1], 1);
    assert_int_equal(row.below, 3);
    row = next(&lanes, 4, 2, 0);
    assert_int_equal(row.column, 1);
    assert_int_equal(row.ends, 2);
    row = next(&lanes, 3, 2, 0);
    assert_int_equal(row.column, 0);
    assert_int_equal(row.lines[0], 0);
    assert_int_equal(row.below, 3);
    row = next(&lanes, 2, 1, 0);
    assert_int_equal(row.column, 0);
    assert_int_equal(row.ends, 3);
    assert_int_equal(lanes.used, 2);
}

static void more_lines_than_columns_share_the_last_one(void **state)
{
    (void)state;
    co_lanes lanes = {0};
    for (unsigned i = 0; i < 3 * CO_LANES_MAX; i++) {
        const co_lane_row row = next(&lanes, (uint8_t)(200 - i), (uint8_t)(100 - 2 * i), (uint8_t)(99 - 2 * i));
        assert_true(row.column < CO_LANES_MAX && row.lines[0] < CO_LANES_MAX && row.lines[1] < CO_LANES_MAX);
    }
    assert_int_equal(lanes.used, CO_LANES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_straight_history_has_one_column),
        cmocka_unit_test(a_merge_opens_a_column_and_the_fork_closes_it),
        cmocka_unit_test(more_lines_than_columns_share_the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
