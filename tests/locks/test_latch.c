/* Latches: death of a holder, of its heir, a stopped holder, a table beyond repair (DESIGN 5, R180, R182, R184). */
#include "locks/latch.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANK LK_RANK_LATCH_TASKS

typedef struct table {
    lk_latch latch;
    unsigned value;   /* 0 when whole */
    unsigned repairs; /* begun */
    unsigned told;    /* by a child */
    unsigned die_in;  /* die in this many repairs */
    bool beyond_repair;
} table;

static bool repair_table(void *context)
{
    table *shared = context;
    shared->repairs++;
    if (shared->die_in > 0) {
        shared->die_in--;
        (void)kill(getpid(), SIGKILL);
    }
    if (shared->beyond_repair)
        return false;
    shared->value = 0;
    return true;
}

static int make(void **state)
{
    table *shared = test_shared(sizeof *shared);
    lk_latch_init(&shared->latch);
    *state = shared;
    return 0;
}

static lk_latch_result take(table *shared, int64_t wait_ms)
{
    return lk_latch_take(&shared->latch, RANK, pf_deadline_in_ms(wait_ms), repair_table, shared);
}

static int take_and_die(void *context)
{
    table *shared = context;
    if (take(shared, TEST_WAIT_MS) == LK_TIMEOUT)
        return 1;
    shared->value = 7;
    (void)kill(getpid(), SIGKILL);
    return 1;
}

static int take_and_stay(void *context)
{
    table *shared = context;
    if (take(shared, TEST_WAIT_MS) != LK_HELD)
        return 1;
    __atomic_store_n(&shared->told, 1, __ATOMIC_RELEASE);
    while (pause() < 0)
        continue;
    return 0;
}

static void a_free_latch_is_held_and_released(void **state)
{
    table *shared = *state;
    assert_int_equal(lk_latch_owner(&shared->latch), 0);
    assert_int_equal(take(shared, 0), LK_HELD);
    assert_int_equal(lk_latch_owner(&shared->latch), getpid());
    assert_int_equal(shared->latch.holds, 1);
    lk_latch_release(&shared->latch, RANK);
    assert_int_equal(lk_latch_owner(&shared->latch), 0);
    assert_int_equal(take(shared, 0), LK_HELD);
    lk_latch_release(&shared->latch, RANK);
    assert_int_equal(shared->latch.holds, 2);
    assert_int_equal(shared->repairs, 0);
}

static void the_heir_of_a_dead_holder_repairs(void **state)
{
    table *shared = *state;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    assert_int_equal(shared->value, 7);
    assert_int_equal(lk_latch_owner(&shared->latch), 0); /* dead, so nobody */
    assert_int_equal(take(shared, TEST_WAIT_MS), LK_HELD_AFTER_DEATH);
    assert_int_equal(shared->value, 0);
    lk_latch_release(&shared->latch, RANK);
    assert_int_equal(take(shared, 0), LK_HELD);
    lk_latch_release(&shared->latch, RANK);
    assert_int_equal(shared->repairs, 1);
}

static void a_try_finds_a_dead_holder_too(void **state)
{
    table *shared = *state;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    assert_int_equal(lk_latch_take(&shared->latch, RANK, PF_AT_ONCE, repair_table, shared), LK_HELD_AFTER_DEATH);
    lk_latch_release(&shared->latch, RANK);
}

static void a_waiter_becomes_heir_when_the_holder_dies(void **state)
{
    table *shared = *state;
    pid_t holder = test_child(take_and_stay, shared);
    test_wait_for(&shared->told, 1);
    assert_int_equal(take(shared, 5), LK_TIMEOUT);
    assert_int_equal(lk_latch_owner(&shared->latch), holder);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(take(shared, TEST_WAIT_MS), LK_HELD_AFTER_DEATH);
    lk_latch_release(&shared->latch, RANK);
    (void)test_child_wait(holder);
}

static void an_heir_that_dies_in_the_repair_leaves_it_to_the_next(void **state)
{
    table *shared = *state;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    shared->die_in = 2;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    assert_int_equal(shared->repairs, 2);
    assert_int_equal(shared->value, 7);
    assert_int_equal(take(shared, TEST_WAIT_MS), LK_HELD_AFTER_DEATH);
    assert_int_equal(shared->value, 0);
    lk_latch_release(&shared->latch, RANK);
    assert_int_equal(take(shared, 0), LK_HELD); /* by now it is an ordinary latch again */
    lk_latch_release(&shared->latch, RANK);
}

static void a_stopped_holder_keeps_the_latch_until_it_is_killed(void **state)
{
    table *shared = *state;
    pid_t holder = test_child(take_and_stay, shared);
    test_wait_for(&shared->told, 1);
    assert_int_equal(kill(holder, SIGSTOP), 0);
    uint64_t holds = shared->latch.holds;
    assert_int_equal(take(shared, 20), LK_TIMEOUT);
    assert_int_equal(lk_latch_owner(&shared->latch), holder);
    assert_int_equal(shared->latch.holds, holds);
    test_child_kill(holder);
    assert_int_equal(take(shared, TEST_WAIT_MS), LK_HELD_AFTER_DEATH);
    lk_latch_release(&shared->latch, RANK);
}

static void a_table_beyond_repair_poisons_and_frees_the_latch(void **state)
{
    table *shared = *state;
    shared->beyond_repair = true;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    assert_int_equal(take(shared, TEST_WAIT_MS), LK_POISONED);
    /* Not unusable for ever: whoever comes next gets it, and has to look at the region's state. */
    assert_int_equal(take(shared, 0), LK_HELD);
    lk_latch_release(&shared->latch, RANK);
}

static void a_latch_that_cannot_be_recovered_is_told(void **state)
{
    table *shared = *state;
    test_child_expect_signal(test_child(take_and_die, shared), SIGKILL);
    assert_int_equal(pthread_mutex_lock(&shared->latch.mutex), EOWNERDEAD);
    assert_int_equal(pthread_mutex_unlock(&shared->latch.mutex), 0); /* what no path of ours does */
    assert_int_equal(take(shared, 0), LK_POISONED);
    assert_int_equal(take(shared, 5), LK_POISONED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_free_latch_is_held_and_released, make),
        cmocka_unit_test_setup(the_heir_of_a_dead_holder_repairs, make),
        cmocka_unit_test_setup(a_try_finds_a_dead_holder_too, make),
        cmocka_unit_test_setup(a_waiter_becomes_heir_when_the_holder_dies, make),
        cmocka_unit_test_setup(an_heir_that_dies_in_the_repair_leaves_it_to_the_next, make),
        cmocka_unit_test_setup(a_stopped_holder_keeps_the_latch_until_it_is_killed, make),
        cmocka_unit_test_setup(a_table_beyond_repair_poisons_and_frees_the_latch, make),
        cmocka_unit_test_setup(a_latch_that_cannot_be_recovered_is_told, make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
