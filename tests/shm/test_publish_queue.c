/* The publish queue: order, groups of one, burial, tickets that are kept, fencing (DESIGN 4, P-07, P-08, P-10). */
#include "shm/publish_queue.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define WORKERS 4u

typedef struct setting {
    shm_region region;
    shm_publisher at[WORKERS];
    uint64_t tickets[WORKERS];
} setting;

static int make(void **state)
{
    sluice_error err;
    setting *pool = calloc(1, sizeof *pool);
    const shm_config config = {WORKERS, 2, 3, 2, 128};
    assert_non_null(pool);
    ASSERT_OK(shm_region_make(&config, &pool->region, &err));
    pool->region.latch_wait_ms = 2000;
    for (uint32_t slot = 0; slot < WORKERS; slot++)
        pool->at[slot] = (shm_publisher){&pool->region, shm_slot_assign(&pool->region, slot)};
    *state = pool;
    return 0;
}

static int unmake(void **state)
{
    setting *pool = *state;
    assert_true(shm_publish_check(&pool->region));
    shm_region_free(&pool->region);
    free(pool);
    return 0;
}

static void enter_at(setting *pool, uint32_t slot, uint64_t branch, bool alone)
{
    sluice_error err;
    const shm_offer offer = {{1, 1, branch}, alone, 5};
    assert_true(shm_publish_own(&pool->at[slot]) == SHM_PUBLISH_FREE);
    memset(shm_publish_slice(&pool->region, slot), (int)slot + 1, 5);
    ASSERT_OK(shm_publish_enter(&pool->at[slot], &offer, &pool->tickets[slot], &err));
    assert_true(shm_publish_check(&pool->region));
}

static void enter(setting *pool, uint32_t slot)
{
    enter_at(pool, slot, 1, false);
}

static shm_publish_answer look(setting *pool, uint32_t slot)
{
    sluice_error err;
    shm_publish_answer answer;
    ASSERT_OK(shm_publish_look(&pool->at[slot], &answer, &err));
    assert_true(shm_publish_check(&pool->region));
    return answer;
}

static bool leads(setting *pool, uint32_t slot)
{
    return look(pool, slot).leads;
}

static void expect_taken(setting *pool, uint32_t leader, uint32_t count, const uint32_t *expected)
{
    sluice_error err;
    uint32_t slots[WORKERS], taken;
    ASSERT_OK(shm_publish_take(&pool->at[leader], slots, &taken, &err));
    assert_int_equal(taken, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(slots[i], expected[i]);
    assert_true(shm_publish_check(&pool->region));
}

static void decide(setting *pool, uint32_t leader, uint32_t slot, bool again)
{
    sluice_error err;
    ASSERT_OK(shm_publish_decide(&pool->at[leader], slot, again, &err));
    assert_true(shm_publish_check(&pool->region));
}

static void resign(setting *pool, uint32_t leader)
{
    sluice_error err;
    ASSERT_OK(shm_publish_resign(&pool->at[leader], false, &err));
}

static void leave(setting *pool, uint32_t slot)
{
    sluice_error err;
    ASSERT_OK(shm_publish_leave(&pool->at[slot], &err));
}

static void die(setting *pool, uint32_t slot)
{
    sluice_error err;
    shm_slot_revoke(&pool->region, slot);
    ASSERT_OK(shm_publish_bury(&pool->region, slot, &err));
    assert_true(shm_publish_check(&pool->region));
}

static void a_group_is_all_that_is_ready_in_order_of_arrival(void **state)
{
    setting *pool = *state;
    const uint32_t order[] = {2, 0, 3};
    const uint8_t *bytes;
    size_t length;
    enter(pool, 2);
    enter(pool, 0);
    enter(pool, 3);
    assert_true(leads(pool, 3));
    assert_false(leads(pool, 2)); /* one leads */
    expect_taken(pool, 3, 3, order);
    assert_true(shm_publish_offered(&pool->at[3], 0, &bytes, &length));
    assert_int_equal(length, 5);
    assert_int_equal(bytes[4], 1);
    enter(pool, 1); /* comes too late for this one */
    for (uint32_t i = 0; i < 3; i++)
        decide(pool, 3, order[i], false);
    assert_int_equal(look(pool, 2).state, SHM_PUBLISH_DECIDED);
    assert_false(leads(pool, 1));
    resign(pool, 3);
    leave(pool, 3);
    assert_true(leads(pool, 1));
}

static void branches_are_led_by_themselves(void **state)
{
    setting *pool = *state;
    const uint32_t first[] = {0, 2}, second[] = {1};
    enter_at(pool, 0, 1, false);
    enter_at(pool, 1, 2, false);
    enter_at(pool, 2, 1, false);
    assert_true(leads(pool, 0));
    assert_true(leads(pool, 1));
    expect_taken(pool, 0, 2, first);
    expect_taken(pool, 1, 1, second);
}

static void what_goes_alone_closes_the_group_before_it(void **state)
{
    setting *pool = *state;
    const uint32_t first[] = {0}, second[] = {1}, third[] = {2};
    enter(pool, 0);
    enter_at(pool, 1, 1, true);
    enter(pool, 2);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 1, first);
    expect_taken(pool, 0, 1, second);
    expect_taken(pool, 0, 1, third);
}

static void a_write_that_comes_again_keeps_its_ticket_and_one_that_published_goes_to_the_end(void **state)
{
    setting *pool = *state;
    const uint32_t group[] = {0, 1}, order[] = {1, 2, 0};
    enter(pool, 0);
    enter(pool, 1);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 2, group);
    decide(pool, 0, 0, false);
    decide(pool, 0, 1, false); /* refused, say */
    resign(pool, 0);
    leave(pool, 0);
    leave(pool, 1);
    enter(pool, 2);
    pool->tickets[0] = 0;
    enter(pool, 0);
    enter(pool, 1);
    assert_true(leads(pool, 2));
    expect_taken(pool, 2, 3, order);
}

static void what_a_dead_leader_took_is_ready_again(void **state)
{
    setting *pool = *state;
    sluice_error err;
    const uint32_t group[] = {0, 1, 2}, rest[] = {2};
    bool out = true;
    enter(pool, 0);
    enter(pool, 1);
    enter(pool, 2);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 3, group);
    decide(pool, 0, 1, false);
    die(pool, 0);
    assert_int_equal(look(pool, 1).state, SHM_PUBLISH_DECIDED); /* that was said */
    ASSERT_OK(shm_publish_withdraw(&pool->at[2], false, &out, &err));
    assert_false(out); /* it may have been published */
    assert_true(leads(pool, 2));
    expect_taken(pool, 2, 1, rest);
}

static void a_dead_waiters_entry_is_removed_unless_it_is_taken(void **state)
{
    setting *pool = *state;
    const uint32_t group[] = {0, 2};
    enter(pool, 0);
    enter(pool, 1);
    enter(pool, 2);
    die(pool, 1);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 2, group);
    die(pool, 2);
    pool->at[2].token = shm_slot_assign(&pool->region, 2); /* its successor */
    assert_int_not_equal(shm_publish_own(&pool->at[2]), SHM_PUBLISH_FREE);
    decide(pool, 0, 2, false);
    assert_int_equal(shm_publish_own(&pool->at[2]), SHM_PUBLISH_FREE);
}

static void who_is_not_taken_may_go_and_who_is_may_only_stop_waiting(void **state)
{
    setting *pool = *state;
    sluice_error err;
    const uint32_t group[] = {0, 1};
    bool out = false;
    enter(pool, 0);
    enter(pool, 1);
    enter(pool, 2);
    ASSERT_OK(shm_publish_withdraw(&pool->at[2], true, &out, &err));
    assert_true(out);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 2, group);
    ASSERT_OK(shm_publish_withdraw(&pool->at[1], false, &out, &err));
    assert_false(out);
    assert_int_equal(look(pool, 1).state, SHM_PUBLISH_TAKEN);
    ASSERT_OK(shm_publish_withdraw(&pool->at[1], true, &out, &err));
    assert_false(out);
    assert_int_not_equal(shm_publish_own(&pool->at[1]), SHM_PUBLISH_FREE);
    decide(pool, 0, 1, true); /* again, for nobody */
    assert_int_equal(shm_publish_own(&pool->at[1]), SHM_PUBLISH_FREE);
}

static void a_fenced_worker_changes_nothing_and_is_passed_over(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_publish_answer answer;
    const uint32_t group[] = {1};
    uint32_t slots[WORKERS], count;
    enter(pool, 0);
    enter(pool, 1);
    assert_true(leads(pool, 1));
    shm_slot_revoke(&pool->region, 0);
    ASSERT_FAILS(SLUICE_FENCED, shm_publish_look(&pool->at[0], &answer, &err));
    expect_taken(pool, 1, 1, group);
    shm_slot_revoke(&pool->region, 1);
    ASSERT_FAILS(SLUICE_FENCED, shm_publish_take(&pool->at[1], slots, &count, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_publish_decide(&pool->at[1], 1, false, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_publish_resign(&pool->at[1], false, &err));
}

static void a_slice_that_is_not_what_was_offered_is_noticed(void **state)
{
    setting *pool = *state;
    const uint32_t group[] = {0};
    const uint8_t *bytes;
    size_t length;
    enter(pool, 0);
    assert_true(leads(pool, 0));
    expect_taken(pool, 0, 1, group);
    shm_publish_slice(&pool->region, 0)[3] ^= 1;
    assert_false(shm_publish_offered(&pool->at[0], 0, &bytes, &length));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_group_is_all_that_is_ready_in_order_of_arrival),
        TEST(branches_are_led_by_themselves),
        TEST(what_goes_alone_closes_the_group_before_it),
        TEST(a_write_that_comes_again_keeps_its_ticket_and_one_that_published_goes_to_the_end),
        TEST(what_a_dead_leader_took_is_ready_again),
        TEST(a_dead_waiters_entry_is_removed_unless_it_is_taken),
        TEST(who_is_not_taken_may_go_and_who_is_may_only_stop_waiting),
        TEST(a_fenced_worker_changes_nothing_and_is_passed_over),
        TEST(a_slice_that_is_not_what_was_offered_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
