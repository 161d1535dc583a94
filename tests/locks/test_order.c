/* The order of everything lockable: what is accepted, what is a defect (DESIGN 5, OW-061). */
#include "locks/order.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned failures;
static lk_rank failed_held;
static lk_rank failed_wanted;

static void note_failure(lk_rank held, lk_rank wanted)
{
    failures++;
    failed_held = held;
    failed_wanted = wanted;
}

static int watch(void **state)
{
    (void)state;
    failures = 0;
    lk_order_failed = note_failure;
    return 0;
}

static void descending_the_order_is_accepted(void **state)
{
    (void)state;
    int actor = 0;
    for (int rank = LK_RANK_ADMISSION; rank <= LK_RANK_LATCH_WORKERS; rank++) {
        lk_order_wait(&actor, (lk_rank)rank, 0);
        lk_order_take(&actor, (lk_rank)rank, 0);
    }
    for (int rank = LK_RANK_ADMISSION; rank <= LK_RANK_LATCH_WORKERS; rank++)
        lk_order_drop(&actor, (lk_rank)rank, 0);
    assert_int_equal(failures, 0);
    lk_order_wait(&actor, LK_RANK_ADMISSION, 0);
    assert_int_equal(failures, 0); /* all of it was dropped */
}

static void waiting_above_what_is_held_is_a_defect(void **state)
{
    (void)state;
    int actor = 0;
    lk_order_take(&actor, LK_RANK_PUBLISH, 0);
    lk_order_wait(&actor, LK_RANK_TABLE_GATE, 64);
    assert_int_equal(failures, 1);
    assert_int_equal(failed_held, LK_RANK_PUBLISH);
    assert_int_equal(failed_wanted, LK_RANK_TABLE_GATE);
    lk_order_wait(&actor, LK_RANK_PUBLISH, 0);
    assert_int_equal(failures, 2); /* beside itself */
    lk_order_drop(&actor, LK_RANK_PUBLISH, 0);
}

static void table_gates_go_by_table_id(void **state)
{
    (void)state;
    int actor = 0;
    lk_order_take(&actor, LK_RANK_TABLE_GATE, 70);
    lk_order_wait(&actor, LK_RANK_TABLE_GATE, 71);
    assert_int_equal(failures, 0);
    lk_order_wait(&actor, LK_RANK_TABLE_GATE, 69);
    assert_int_equal(failures, 1);
    lk_order_drop(&actor, LK_RANK_TABLE_GATE, 70);
}

static void two_actors_of_one_process_do_not_order_each_other(void **state)
{
    (void)state;
    int first = 0;
    int second = 0;
    lk_order_take(&first, LK_RANK_PUBLISH, 0);
    lk_order_wait(&second, LK_RANK_SCHEMA_GATE, 0);
    assert_int_equal(failures, 0);
    lk_order_drop(&first, LK_RANK_PUBLISH, 0);
}

static void a_latch_lies_below_the_locks_of_every_actor(void **state)
{
    (void)state;
    int actor = 0;
    lk_order_take(&actor, LK_RANK_PUBLISH, 0);
    lk_order_wait(NULL, LK_RANK_LATCH_GATES, 0);
    assert_int_equal(failures, 0);
    lk_order_take(NULL, LK_RANK_LATCH_GATES, 0);
    lk_order_wait(&actor, LK_RANK_CONTROL_PUBLISH, 0);
    assert_int_equal(failures, 1);
    lk_order_drop(NULL, LK_RANK_LATCH_GATES, 0);
    lk_order_drop(&actor, LK_RANK_PUBLISH, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(descending_the_order_is_accepted, watch),
        cmocka_unit_test_setup(waiting_above_what_is_held_is_a_defect, watch),
        cmocka_unit_test_setup(table_gates_go_by_table_id, watch),
        cmocka_unit_test_setup(two_actors_of_one_process_do_not_order_each_other, watch),
        cmocka_unit_test_setup(a_latch_lies_below_the_locks_of_every_actor, watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
