/* The gate table: sharing, arrival order, passing over, orphans, full tables, fencing (DESIGN 5, L-023). */
#include "shm/gate_table.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define WORKERS 4u
#define MS      INT64_C(1000000)

typedef struct setting {
    shm_region region;
    shm_token tokens[WORKERS];
    pf_id operations[WORKERS];
} setting;

static int make(void **state)
{
    sluice_error err;
    setting *pool = calloc(1, sizeof *pool);
    const shm_config config = {WORKERS, 2, 3, 2, 64};
    assert_non_null(pool);
    ASSERT_OK(shm_region_make(&config, &pool->region, &err));
    for (uint32_t slot = 0; slot < WORKERS; slot++) {
        pool->tokens[slot] = shm_slot_assign(&pool->region, slot);
        pool->operations[slot] = pf_id_new();
    }
    *state = pool;
    return 0;
}

static int unmake(void **state)
{
    setting *pool = *state;
    assert_true(shm_gates_check(&pool->region));
    shm_region_free(&pool->region);
    free(pool);
    return 0;
}

static lk_gate_key table_gate(uint64_t table, bool exclusive)
{
    return (lk_gate_key){LK_GATE_TABLE, 1, table, exclusive};
}

static shm_gate_answer try_at(setting *pool, uint32_t slot, lk_gate_key key, int64_t now_ms)
{
    sluice_error err;
    shm_gate_answer answer;
    ASSERT_OK(
        shm_gate_try(&pool->region, &pool->tokens[slot], &key, &pool->operations[slot], now_ms * MS, &answer, &err));
    assert_true(shm_gates_check(&pool->region));
    return answer;
}

static bool enters(setting *pool, uint32_t slot, lk_gate_key key)
{
    return try_at(pool, slot, key, 1).entered;
}

static void leave(setting *pool, uint32_t slot, lk_gate_key key)
{
    sluice_error err;
    ASSERT_OK(shm_gate_leave(&pool->region, &pool->tokens[slot], &key, &err));
    assert_true(shm_gates_check(&pool->region));
}

static void shared_holders_share_and_an_exclusive_one_is_alone(void **state)
{
    setting *pool = *state;
    assert_true(enters(pool, 0, table_gate(70, false)));
    assert_true(enters(pool, 1, table_gate(70, false)));
    assert_false(enters(pool, 2, table_gate(70, true)));
    assert_true(enters(pool, 3, table_gate(71, true))); /* another gate */
    leave(pool, 0, table_gate(70, false));
    assert_false(enters(pool, 2, table_gate(70, true)));
    leave(pool, 1, table_gate(70, false));
    assert_true(enters(pool, 2, table_gate(70, true)));
    assert_false(enters(pool, 0, table_gate(70, false)));
    leave(pool, 2, table_gate(70, true));
    assert_true(enters(pool, 0, table_gate(70, false)));
    leave(pool, 0, table_gate(70, false));
    leave(pool, 3, table_gate(71, true));
    for (uint32_t i = 0; i < pool->region.config.gates; i++)
        assert_int_equal(pool->region.gates->gates[i].used, 0);
}

static void waiters_enter_in_order_of_arrival(void **state)
{
    setting *pool = *state;
    assert_true(enters(pool, 0, table_gate(70, true)));
    assert_false(enters(pool, 1, table_gate(70, true)));
    assert_false(enters(pool, 2, table_gate(70, false)));
    assert_false(enters(pool, 3, table_gate(70, false)));
    leave(pool, 0, table_gate(70, true));
    assert_false(enters(pool, 2, table_gate(70, false))); /* 1 is before it */
    assert_false(enters(pool, 0, table_gate(70, true)));  /* a holder that comes back stands at the end */
    assert_true(enters(pool, 1, table_gate(70, true)));
    leave(pool, 1, table_gate(70, true));
    assert_false(enters(pool, 3, table_gate(70, false)));
    assert_true(enters(pool, 2, table_gate(70, false)));
    assert_true(enters(pool, 3, table_gate(70, false))); /* its turn, and it shares */
    leave(pool, 2, table_gate(70, false));
    assert_false(enters(pool, 0, table_gate(70, true)));
    leave(pool, 3, table_gate(70, false));
    assert_true(enters(pool, 0, table_gate(70, true)));
    leave(pool, 0, table_gate(70, true));
}

static void one_that_does_not_take_its_turn_is_passed_over(void **state)
{
    setting *pool = *state;
    assert_true(try_at(pool, 0, table_gate(70, true), 0).entered);
    assert_false(try_at(pool, 1, table_gate(70, true), 0).entered); /* and then it is stopped */
    assert_false(try_at(pool, 2, table_gate(70, true), 0).entered);
    leave(pool, 0, table_gate(70, true));
    assert_false(try_at(pool, 2, table_gate(70, true), 1000).entered); /* from now on 1 could enter */
    assert_false(try_at(pool, 2, table_gate(70, true), 1000 + SHM_TURN_MS).entered);
    assert_false(try_at(pool, 2, table_gate(70, true), 1001 + SHM_TURN_MS).entered); /* 1 goes to the end */
    assert_true(try_at(pool, 2, table_gate(70, true), 1002 + SHM_TURN_MS).entered);
    assert_false(try_at(pool, 1, table_gate(70, true), 1003 + SHM_TURN_MS).entered);
    leave(pool, 2, table_gate(70, true));
    assert_true(try_at(pool, 1, table_gate(70, true), 1004 + SHM_TURN_MS).entered); /* resumed, it still gets in */
    leave(pool, 1, table_gate(70, true));
}

static void who_gives_up_is_no_longer_in_the_way(void **state)
{
    setting *pool = *state;
    sluice_error err;
    assert_true(enters(pool, 0, table_gate(70, false)));
    assert_false(enters(pool, 1, table_gate(70, true)));
    assert_false(enters(pool, 2, table_gate(70, false)));
    ASSERT_OK(shm_gate_give_up(&pool->region, &pool->tokens[1], &err));
    assert_true(enters(pool, 2, table_gate(70, false)));
    leave(pool, 0, table_gate(70, false));
    leave(pool, 2, table_gate(70, false));
    ASSERT_OK(shm_gate_give_up(&pool->region, &pool->tokens[2], &err)); /* waits for nothing */
}

static void bury(setting *pool, uint32_t slot)
{
    sluice_error err;
    shm_slot_revoke(&pool->region, slot);
    ASSERT_OK(shm_gates_bury(&pool->region, slot, &err));
    assert_true(shm_gates_check(&pool->region));
    pool->tokens[slot] = shm_slot_assign(&pool->region, slot);
}

static void a_dead_holders_gate_is_orphaned_until_settled(void **state)
{
    setting *pool = *state;
    sluice_error err;
    lk_gate_key key = table_gate(70, true);
    assert_true(enters(pool, 0, key));
    assert_true(enters(pool, 0, table_gate(71, false)));
    shm_gate_answer busy = try_at(pool, 1, key, 1);
    assert_false(busy.entered);
    assert_true(pf_id_equal(&busy.holder_operation, &pool->operations[0]));
    bury(pool, 0);
    shm_gate_answer heir = try_at(pool, 1, key, 1);
    assert_true(heir.entered && heir.orphaned);
    assert_true(pf_id_equal(&heir.orphan_operation, &pool->operations[0]));
    bury(pool, 1); /* dies before it recovered: the next is heir, now of 1 */
    heir = try_at(pool, 2, key, 1);
    assert_true(heir.entered && heir.orphaned);
    leave(pool, 2, key); /* gave up without settling: the mark stays */
    heir = try_at(pool, 3, key, 1);
    assert_true(heir.entered && heir.orphaned);
    ASSERT_OK(shm_gate_settle(&pool->region, &pool->tokens[3], &key, &err));
    leave(pool, 3, key);
    heir = try_at(pool, 0, key, 1);
    assert_true(heir.entered && !heir.orphaned);
    leave(pool, 0, key);
}

static void a_dead_waiter_is_forgotten(void **state)
{
    setting *pool = *state;
    assert_true(enters(pool, 0, table_gate(70, false)));
    assert_false(enters(pool, 1, table_gate(70, true)));
    bury(pool, 1);
    assert_true(enters(pool, 2, table_gate(70, false)));
    leave(pool, 0, table_gate(70, false));
    leave(pool, 2, table_gate(70, false));
}

static void full_tables_are_typed_errors(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_gate_answer answer;
    lk_gate_key more = table_gate(73, false);
    assert_true(enters(pool, 0, table_gate(70, false)));
    assert_true(enters(pool, 0, table_gate(71, false)));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT,
                 shm_gate_try(&pool->region, &pool->tokens[0], &more, &pool->operations[0], 1, &answer, &err));
    assert_true(enters(pool, 1, table_gate(72, false)));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT,
                 shm_gate_try(&pool->region, &pool->tokens[2], &more, &pool->operations[2], 1, &answer, &err));
    assert_true(enters(pool, 2, table_gate(72, false)));
    leave(pool, 1, table_gate(72, false));
    leave(pool, 2, table_gate(72, false));
    assert_true(enters(pool, 2, more)); /* an idle entry is free again */
}

static void a_fenced_worker_enters_and_leaves_nothing(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_gate_answer answer;
    lk_gate_key key = table_gate(70, true);
    assert_true(enters(pool, 0, key));
    shm_token old = pool->tokens[0];
    bury(pool, 0);
    assert_true(enters(pool, 0, key)); /* its successor in the same slot */
    ASSERT_FAILS(SLUICE_FENCED, shm_gate_leave(&pool->region, &old, &key, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_gate_settle(&pool->region, &old, &key, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_gate_give_up(&pool->region, &old, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_gate_try(&pool->region, &old, &key, &pool->operations[0], 1, &answer, &err));
    assert_false(enters(pool, 1, key));
}

static void the_hooks_wait_and_give_up_at_the_deadline(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_gate_user user = {&pool->region, pool->tokens[1]};
    lk_gate_hooks hooks = shm_gate_hooks(&user);
    lk_gate_key key = table_gate(70, true);
    bool orphaned;
    pf_id orphan;
    char holder[PF_ID_TEXT];
    pf_id_text(&pool->operations[0], holder);
    assert_true(enters(pool, 0, key));
    pf_deadline deadline = pf_deadline_in_ms(10);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 hooks.enter(hooks.context, &key, &pool->operations[1], deadline, &orphaned, &orphan, &err));
    assert_true(pf_deadline_passed(deadline));
    assert_non_null(strstr(err.details, holder));                              /* busy names the holder (U-10) */
    assert_int_equal(shm_sequence(&pool->region.gates->gates[0].sequence), 0); /* nobody waits: nobody is woken */
    assert_false(enters(pool, 1, key));
    leave(pool, 0, key);
    assert_int_equal(shm_sequence(&pool->region.gates->gates[0].sequence), 1);
    ASSERT_OK(hooks.enter(hooks.context, &key, &pool->operations[1], PF_AT_ONCE, &orphaned, &orphan, &err));
    assert_false(orphaned);
    hooks.settle(hooks.context, &key);
    hooks.leave(hooks.context, &key);
    assert_true(enters(pool, 0, key));
    shm_region_cancel(&pool->region);
    ASSERT_FAILS(SLUICE_CANCELLED, hooks.enter(hooks.context, &key, &pool->operations[1],
                                               pf_deadline_in_ms(TEST_WAIT_MS), &orphaned, &orphan, &err));
}

static unsigned ticks;

static void count_tick(int number)
{
    (void)number;
    ticks++;
}

static void a_wait_interrupted_by_signals_keeps_its_bound(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_gate_user user = {&pool->region, pool->tokens[1]};
    lk_gate_hooks hooks = shm_gate_hooks(&user);
    lk_gate_key key = table_gate(70, true);
    bool orphaned;
    pf_id orphan;
    struct sigaction action = {.sa_handler = count_tick}; /* without SA_RESTART */
    struct itimerval every = {{0, 500}, {0, 500}};
    struct itimerval never = {{0, 0}, {0, 0}};
    assert_true(enters(pool, 0, key));
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    pf_deadline deadline = pf_deadline_in_ms(30);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 hooks.enter(hooks.context, &key, &pool->operations[1], deadline, &orphaned, &orphan, &err));
    assert_true(pf_deadline_passed(deadline));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(ticks > 5);
}

typedef struct waiter {
    setting *pool;
    volatile unsigned *told;
} waiter;

static int wait_at_the_gate(void *context)
{
    waiter *mine = context;
    shm_gate_user user = {&mine->pool->region, mine->pool->tokens[1]};
    lk_gate_hooks hooks = shm_gate_hooks(&user);
    lk_gate_key key = table_gate(70, true);
    bool orphaned = false;
    pf_id orphan;
    *mine->told = 1;
    sluice_status status = hooks.enter(hooks.context, &key, &mine->pool->operations[1], pf_deadline_in_ms(TEST_WAIT_MS),
                                       &orphaned, &orphan, NULL);
    return status == SLUICE_OK ? (orphaned ? 2 : 0) : 1;
}

static void a_waiting_process_is_let_in_by_a_leave_and_by_a_death(void **state)
{
    setting *pool = *state;
    waiter request = {pool, test_shared(sizeof(unsigned))};
    assert_true(enters(pool, 0, table_gate(70, true)));
    pid_t pid = test_child(wait_at_the_gate, &request);
    test_wait_for(request.told, 1);
    leave(pool, 0, table_gate(70, true));
    test_child_expect_exit(pid, 0);
    bury(pool, 1); /* it left holding the gate: an end without leaving is a death */
    request.told = test_shared(sizeof(unsigned));
    assert_true(enters(pool, 0, table_gate(70, true)));
    pid = test_child(wait_at_the_gate, &request);
    test_wait_for(request.told, 1);
    bury(pool, 0);
    shm_wake_all(&pool->region);
    test_child_expect_exit(pid, 2);
}

static void the_check_sees_planted_damage(void **state)
{
    setting *pool = *state;
    shm_gate *gates = pool->region.gates->gates;
    shm_holder *first = (shm_holder *)(void *)pool->region.holders;
    shm_holder *second = (shm_holder *)(void *)(pool->region.holders + pool->region.holder_stride);
    assert_true(enters(pool, 0, table_gate(70, true)));
    assert_true(enters(pool, 0, table_gate(71, false)));
    assert_false(enters(pool, 1, table_gate(70, false)));
    const struct {
        shm_word *word;
        uint64_t value;
    } damage[] = {{&gates[0].used, 0},
                  {&gates[2].used, 1},
                  {&gates[0].orphaned, 2},
                  {&gates[1].table, 70},
                  {&first->held_count, 9},
                  {&first->held_count, 1},
                  {&first->held[1], first->held[0]},
                  {&first->held[1], 2 * 2},
                  {&first->held[1], 99 * 2},
                  {&second->waits_for, 3},
                  {&second->waits_for, 99},
                  {&second->wait_ticket, 0},
                  {&second->wait_ticket, 77},
                  {&second->waits_exclusive, 2},
                  {&pool->region.gates->intent.phase, 1}};
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        uint64_t before = *damage[i].word;
        *damage[i].word = damage[i].value;
        assert_false(shm_gates_check(&pool->region));
        *damage[i].word = before;
        assert_true(shm_gates_check(&pool->region));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shared_holders_share_and_an_exclusive_one_is_alone, make, unmake),
        cmocka_unit_test_setup_teardown(waiters_enter_in_order_of_arrival, make, unmake),
        cmocka_unit_test_setup_teardown(one_that_does_not_take_its_turn_is_passed_over, make, unmake),
        cmocka_unit_test_setup_teardown(who_gives_up_is_no_longer_in_the_way, make, unmake),
        cmocka_unit_test_setup_teardown(a_dead_holders_gate_is_orphaned_until_settled, make, unmake),
        cmocka_unit_test_setup_teardown(a_dead_waiter_is_forgotten, make, unmake),
        cmocka_unit_test_setup_teardown(full_tables_are_typed_errors, make, unmake),
        cmocka_unit_test_setup_teardown(a_fenced_worker_enters_and_leaves_nothing, make, unmake),
        cmocka_unit_test_setup_teardown(the_hooks_wait_and_give_up_at_the_deadline, make, unmake),
        cmocka_unit_test_setup_teardown(a_wait_interrupted_by_signals_keeps_its_bound, make, unmake),
        cmocka_unit_test_setup_teardown(a_waiting_process_is_let_in_by_a_leave_and_by_a_death, make, unmake),
        cmocka_unit_test_setup_teardown(the_check_sees_planted_damage, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
