/*
 * The pool when processes die: workers at random moments and at each failpoint, conductors, poisoned tasks, stopped
 * latch holders, a damaged region (L-048, R180).
 */
#include "platform/failpoint.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include "toy.h"
#include "worker/pool_worker.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- random deaths ---- */

#define DEATHS_PER_COUNT 50u /* by four numbers of workers: 200 */

/* One job whose workers die at moments drawn from the seed. Returns how many were replaced. */
static uint32_t run_with_deaths(unsigned workers, uint32_t seed)
{
    sluice_error err;
    toy_spec toy;
    toy_result result = {0};
    toy_make(&toy, 3, 24);
    toy.task_us = seed % 3 == 0 ? 0 : 1000; /* also without a pause: deaths then fall into the table's updates */
    toy.seed = seed;
    toy.kill_us = 12000;
    toy.shared->kills_left = 25;
    ASSERT_OK(toy_run(&toy, workers, &result, &err));
    uint32_t started = toy.shared->pid_count;
    uint32_t replaced = started > workers ? started - workers : 0;
    assert_int_equal(result.sum, toy_expected(&toy));
    assert_int_equal(toy_missing(&toy), 0);
    assert_true(toy_repeats(&toy) <= 25); /* no task ran again but by a death */
    toy_free(&toy);
    return replaced;
}

static void workers_killed_at_random_moments_lose_and_double_nothing(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 2, 7, 16};
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t deaths = 0;
        for (uint32_t seed = 1; deaths < DEATHS_PER_COUNT; seed++) {
            assert_true(seed < 200);
            deaths += run_with_deaths(counts[i], 1000 * i + seed);
        }
    }
}

/* ---- failpoints ---- */

typedef struct failpoint_trial {
    char rule[64];
    toy_spec *toy;
    unsigned workers;
    sluice_status expected;
} failpoint_trial;

/* In a process of its own: failpoints are read once, and counted over its pool. */
static int run_trial(void *context)
{
    failpoint_trial *mine = context;
    sluice_error err;
    toy_result result = {0};
    if (setenv("SLUICE_FAILPOINT", mine->rule, 1) != 0 || pf_failpoints_init(&err) != SLUICE_OK)
        return 90;
    if (toy_run(mine->toy, mine->workers, &result, &err) != mine->expected)
        return 91;
    if (mine->expected != SLUICE_OK)
        return strstr(err.message, "failpoint") ? 0 : 92;
    return result.sum == toy_expected(mine->toy) && toy_missing(mine->toy) == 0 ? 0 : 93;
}

static uint32_t try_rule(const char *point, const char *action, unsigned passage, sluice_status expected)
{
    toy_spec toy;
    failpoint_trial trial = {.toy = &toy, .workers = 3, .expected = expected};
    toy_make(&toy, 2, 3);
    assert_true(snprintf(trial.rule, sizeof trial.rule, "%s=%s@%u", point, action, passage) < (int)sizeof trial.rule);
    test_child_expect_exit(test_child(run_trial, &trial), 0);
    uint32_t conductors = toy.shared->conductors;
    toy_free(&toy);
    return conductors;
}

static void a_worker_killed_at_each_failpoint_is_made_up_for(void **state)
{
    (void)state;
    for (unsigned passage = 1; passage <= 7; passage++) {
        (void)try_rule("worker.after_start", "kill", passage, SLUICE_OK);
        (void)try_rule("worker.after_take", "kill", passage, SLUICE_OK);
        (void)try_rule("worker.before_done", "kill", passage, SLUICE_OK);
    }
}

/* Six tasks: the seventh end of work is the conductor's, whose job is done but not recorded. */
static void a_conductor_killed_before_it_is_done_is_succeeded(void **state)
{
    (void)state;
    assert_int_equal(try_rule("worker.before_done", "kill", 7, SLUICE_OK), 2);
    assert_int_equal(try_rule("worker.after_take", "kill", 1, SLUICE_OK), 1); /* before it conducted at all */
}

static void an_error_at_a_failpoint_is_the_jobs(void **state)
{
    (void)state;
    (void)try_rule("worker.after_take", "error", 1, SLUICE_IO);
    (void)try_rule("worker.after_take", "error", 3, SLUICE_IO);
    (void)try_rule("worker.before_done", "error", 7, SLUICE_IO);
}

/* ---- poison ---- */

static sluice_status crash_in_one_task(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)err;
    if (phase == 1 && index == 3) {
        atomic_fetch_add(&toy->shared->mark[0], 1);
        (void)raise(SIGSEGV);
    }
    return SLUICE_OK;
}

static void a_task_that_always_crashes_fails_the_job_and_not_the_pool(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 4};
    for (size_t i = 0; i < 2; i++) {
        sluice_error err;
        toy_spec toy;
        toy_result result = {0};
        toy_make(&toy, 2, 8);
        toy.at_task = crash_in_one_task;
        ASSERT_FAILS(SLUICE_INTERNAL, toy_run(&toy, counts[i], &result, &err));
        assert_non_null(strstr(err.message, "task 3 of phase 1"));
        assert_non_null(strstr(err.message, "5 times"));
        assert_non_null(strstr(err.details, "\"task\":3"));
        assert_int_equal(toy.shared->mark[0], WK_TASK_TRIES);
        assert_int_equal(toy.shared->ended[2][0], 0);
        toy.at_task = NULL;
        ASSERT_OK(toy_run(&toy, counts[i], &result, &err));
        assert_int_equal(result.sum, toy_expected(&toy));
        toy_free(&toy);
    }
}

static sluice_status crash_while_conducting(toy_spec *toy, sluice_error *err)
{
    (void)toy;
    (void)err;
    (void)raise(SIGSEGV);
    return SLUICE_OK;
}

static void a_conductor_that_always_crashes_fails_the_job(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result = {0};
    toy_make(&toy, 1, 2);
    toy.at_conduct = crash_while_conducting;
    ASSERT_FAILS(SLUICE_INTERNAL, toy_run(&toy, 3, &result, &err));
    assert_non_null(strstr(err.message, "conductor"));
    assert_non_null(strstr(err.message, "signal 11"));
    /* The first life finished tasks; then a bounded number of lives without any. */
    assert_in_range(toy.shared->conductors, WK_TASK_TRIES, WK_TASK_TRIES + 1);
    assert_int_equal(toy_repeats(&toy), 0);
    toy_free(&toy);
}

/* ---- a holder that is stopped inside a latch ---- */

static void take_latch_and(wk_worker *worker, bool gates, int signal)
{
    lk_latch *latch = gates ? &worker->region->gates->latch : &worker->region->tasks->latch;
    lk_rank rank = gates ? LK_RANK_LATCH_GATES : LK_RANK_LATCH_TASKS;
    lk_latch_result result = lk_latch_take(latch, rank, pf_deadline_in_ms(TEST_WAIT_MS),
                                           gates ? shm_gates_repair : shm_tasks_repair, worker->region);
    if (result == LK_HELD || result == LK_HELD_AFTER_DEATH)
        (void)raise(signal);
}

static sluice_status stop_inside_the_tasks_latch(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)err;
    if (phase == 1 && index == 2 && atomic_fetch_add(&toy->shared->mark[0], 1) == 0)
        take_latch_and(toy->executor->context, false, SIGSTOP);
    return SLUICE_OK;
}

static sluice_status stop_inside_the_gates_latch(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)err;
    if (phase == 1 && index == 2 && atomic_fetch_add(&toy->shared->mark[0], 1) == 0)
        take_latch_and(toy->executor->context, true, SIGSTOP);
    return SLUICE_OK;
}

static void a_stopped_latch_holder_is_killed_and_the_job_goes_on(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sluice_error err;
        toy_spec toy;
        toy_result result = {0};
        toy_make(&toy, 2, 6);
        toy.at_task = i == 0 ? stop_inside_the_tasks_latch : stop_inside_the_gates_latch;
        int64_t began = pf_monotonic_ns();
        ASSERT_OK(toy_run(&toy, 2, &result, &err));
        assert_true(pf_monotonic_ns() - began > INT64_C(1500000000)); /* not before the bound */
        assert_int_equal(result.sum, toy_expected(&toy));
        assert_int_equal(toy_missing(&toy), 0);
        assert_true(toy.shared->mark[0] >= 2);
        toy_free(&toy);
    }
}

static sluice_status die_inside_a_latch(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    static const int signals[] = {SIGKILL, SIGINT, SIGSEGV, SIGTERM};
    uint32_t number = atomic_fetch_add(&toy->shared->mark[0], 1);
    (void)err;
    (void)phase;
    (void)index;
    if (number % 3 == 0 && number < 24)
        take_latch_and(toy->executor->context, number % 2 == 0, signals[number / 6]);
    return SLUICE_OK;
}

static void workers_that_die_inside_latches_hold_nobody_up(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result = {0};
    toy_make(&toy, 2, 24);
    toy.at_task = die_inside_a_latch;
    ASSERT_OK(toy_run(&toy, 4, &result, &err));
    assert_int_equal(result.sum, toy_expected(&toy));
    assert_true(toy.shared->pid_count >= 4 + 7);
    toy_free(&toy);
}

/* ---- a region beyond repair ---- */

static sluice_status damage_the_region(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    wk_worker *worker = toy->executor->context;
    uint32_t wanted = toy->shared->mark[1];
    uint32_t epoch;
    (void)err;
    if (phase != 1 || index != 2 || atomic_fetch_add(&toy->shared->mark[0], 1) >= wanted)
        return SLUICE_OK;
    memcpy(&epoch, toy->executor->epoch.bytes, sizeof epoch);
    toy->shared->mark[2] = epoch;
    (void)lk_latch_take(&worker->region->tasks->latch, LK_RANK_LATCH_TASKS, pf_deadline_in_ms(TEST_WAIT_MS),
                        shm_tasks_repair, worker->region);
    worker->region->tasks->run = 77; /* in no edit: nobody can know what it was */
    (void)raise(SIGKILL);
    return SLUICE_OK;
}

static sluice_status note_given_up(toy_spec *toy, sluice_error *err)
{
    uint32_t epoch;
    (void)err;
    toy->shared->mark[3] = toy->executor->given_up_count;
    memcpy(&epoch, toy->executor->given_up[0].bytes, sizeof epoch);
    toy->shared->mark[4] = epoch;
    return SLUICE_OK;
}

static void a_damaged_region_is_replaced_and_the_job_done_in_a_new_one(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result = {0};
    toy_make(&toy, 2, 6);
    toy.at_task = damage_the_region;
    toy.at_conduct = note_given_up;
    toy.shared->mark[1] = 1;
    ASSERT_OK(toy_run(&toy, 3, &result, &err));
    assert_int_equal(result.sum, toy_expected(&toy));
    assert_int_equal(toy.shared->conductors, 2);
    uint32_t epoch;
    memcpy(&epoch, result.epoch.bytes, sizeof epoch);
    assert_int_not_equal(epoch, toy.shared->mark[2]); /* a new region, a new epoch */
    assert_int_equal(toy.shared->mark[3], 1);         /* whose writes void the old one */
    assert_int_equal(toy.shared->mark[4], toy.shared->mark[2]);
    toy_free(&toy);
}

static void a_job_that_damages_each_region_is_given_up(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result = {0};
    toy_make(&toy, 2, 6);
    toy.at_task = damage_the_region;
    toy.shared->mark[1] = 99;
    ASSERT_FAILS(SLUICE_INTERNAL, toy_run(&toy, 3, &result, &err));
    assert_non_null(strstr(err.message, "region"));
    assert_int_equal(toy.shared->mark[0], 3);
    toy_free(&toy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_killed_at_random_moments_lose_and_double_nothing),
        cmocka_unit_test(a_worker_killed_at_each_failpoint_is_made_up_for),
        cmocka_unit_test(a_conductor_killed_before_it_is_done_is_succeeded),
        cmocka_unit_test(an_error_at_a_failpoint_is_the_jobs),
        cmocka_unit_test(a_task_that_always_crashes_fails_the_job_and_not_the_pool),
        cmocka_unit_test(a_conductor_that_always_crashes_fails_the_job),
        cmocka_unit_test(a_stopped_latch_holder_is_killed_and_the_job_goes_on),
        cmocka_unit_test(workers_that_die_inside_latches_hold_nobody_up),
        cmocka_unit_test(a_damaged_region_is_replaced_and_the_job_done_in_a_new_one),
        cmocka_unit_test(a_job_that_damages_each_region_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
