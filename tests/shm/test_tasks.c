/* The job's table: taking, finishing, runs of phases, failures, deaths, limits. */
#include "shm/tasks.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define WORKERS 3u

static const shm_limits limits = {.crashes = 5, .relapses = 12, .deaths = 30};

typedef struct setting {
    shm_region region;
    shm_token tokens[WORKERS];
    shm_owner owners[WORKERS];
} setting;

static void assign(setting *pool, uint32_t slot)
{
    pool->tokens[slot] = shm_slot_assign(&pool->region, slot);
    pool->owners[slot] = shm_token_owner(&pool->tokens[slot]);
}

static int make(void **state)
{
    sluice_error err;
    setting *pool = calloc(1, sizeof *pool);
    const shm_config config = {WORKERS, 8, 2, 2, 64};
    assert_non_null(pool);
    ASSERT_OK(shm_region_make(&config, &pool->region, &err));
    for (uint32_t slot = 0; slot < WORKERS; slot++)
        assign(pool, slot);
    ASSERT_OK(shm_job_start(&pool->region, &err));
    *state = pool;
    return 0;
}

static int unmake(void **state)
{
    setting *pool = *state;
    assert_true(shm_tasks_check(&pool->region));
    shm_region_free(&pool->region);
    free(pool);
    return 0;
}

static shm_work take(setting *pool, uint32_t slot)
{
    sluice_error err;
    shm_work work;
    ASSERT_OK(shm_tasks_take(&pool->region, pool->owners[slot], true, &work, &err));
    assert_true(shm_tasks_check(&pool->region));
    return work;
}

static void finish(setting *pool, uint32_t slot, const shm_work *work, bool failed)
{
    sluice_error err;
    ASSERT_OK(shm_tasks_finish(&pool->region, pool->owners[slot], work, failed, &err));
    assert_true(shm_tasks_check(&pool->region));
}

static shm_run_answer begin(setting *pool, uint32_t slot, uint32_t phase, uint32_t count, bool anew)
{
    sluice_error err;
    shm_run_answer answer;
    ASSERT_OK(shm_run_begin(&pool->region, pool->owners[slot], phase, count, anew, &answer, &err));
    assert_true(shm_tasks_check(&pool->region));
    return answer;
}

static shm_run_answer look(setting *pool, uint32_t slot, uint32_t *ret_cell)
{
    sluice_error err;
    shm_run_answer answer;
    ASSERT_OK(shm_run_look(&pool->region, pool->owners[slot], &answer, ret_cell, &err));
    return answer;
}

/* The supervisor's part after it reaped the worker of a slot, and its successor. */
static shm_loss lose_by(setting *pool, uint32_t slot, bool crashed)
{
    sluice_error err;
    shm_loss loss;
    ASSERT_OK(shm_tasks_loss(&pool->region, pool->owners[slot], crashed, &limits, &loss, &err));
    shm_slot_revoke(&pool->region, slot);
    ASSERT_OK(shm_tasks_bury(&pool->region, pool->owners[slot], crashed, &limits, &err));
    assert_true(shm_tasks_check(&pool->region));
    assign(pool, slot);
    return loss;
}

static shm_loss lose(setting *pool, uint32_t slot)
{
    return lose_by(pool, slot, true);
}

static void expect_task(shm_work work, uint32_t phase, uint32_t index)
{
    assert_int_equal(work.kind, SHM_WORK_TASK);
    assert_int_equal(work.phase, phase);
    assert_int_equal(work.index, index);
}

static void the_first_comer_conducts_and_others_wait(void **state)
{
    setting *pool = *state;
    assert_int_equal(take(pool, 1).kind, SHM_WORK_CONDUCT);
    assert_int_equal(take(pool, 0).kind, SHM_WORK_NONE);
    assert_int_equal(take(pool, 2).kind, SHM_WORK_NONE);
}

static void a_phase_runs_in_order_and_ends_when_all_are_done(void **state)
{
    setting *pool = *state;
    uint32_t cell = 0;
    (void)take(pool, 0);
    assert_int_equal(begin(pool, 0, 4, 3, false), SHM_RUN_GOES_ON);
    shm_work first = take(pool, 1);
    shm_work second = take(pool, 2);
    shm_work third = take(pool, 0); /* the conductor helps */
    expect_task(first, 4, 0);
    expect_task(second, 4, 1);
    expect_task(third, 4, 2);
    finish(pool, 2, &second, false);
    finish(pool, 0, &third, false);
    assert_int_equal(take(pool, 2).kind, SHM_WORK_NONE);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_GOES_ON);
    finish(pool, 1, &first, false);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
    assert_int_equal(begin(pool, 0, 4, 3, false), SHM_RUN_IS_DONE); /* finished for good */
    assert_int_equal(begin(pool, 0, 5, 0, false), SHM_RUN_GOES_ON); /* an empty one ends at the first look */
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
}

static void a_phase_asked_anew_runs_again(void **state)
{
    setting *pool = *state;
    uint32_t cell = 0;
    (void)take(pool, 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(begin(pool, 0, 9, 1, true), SHM_RUN_GOES_ON);
        shm_work work = take(pool, 1);
        expect_task(work, 9, 0);
        finish(pool, 1, &work, false);
        assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
    }
}

static void after_a_failure_no_task_is_started_and_the_lowest_error_counts(void **state)
{
    setting *pool = *state;
    uint32_t cell = 99;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 6, false);
    shm_work low = take(pool, 1);
    shm_work high = take(pool, 2);
    finish(pool, 2, &high, true);
    assert_int_equal(take(pool, 0).kind, SHM_WORK_NONE);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_GOES_ON); /* one still runs */
    finish(pool, 1, &low, true);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_HAS_FAILED);
    assert_int_equal(cell, 1);
}

static void a_higher_failure_does_not_hide_a_lower_one(void **state)
{
    setting *pool = *state;
    uint32_t cell = 99;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 6, false);
    shm_work low = take(pool, 1);
    shm_work high = take(pool, 2);
    finish(pool, 1, &low, true);
    finish(pool, 2, &high, true);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_HAS_FAILED);
    assert_int_equal(cell, 1);
}

static void a_dead_workers_task_is_given_to_another_first(void **state)
{
    setting *pool = *state;
    uint32_t cell = 0;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 3, false);
    shm_work lost = take(pool, 1);
    shm_work second = take(pool, 2);
    shm_loss loss = lose(pool, 1);
    assert_true(loss.had_task && !loss.conducted && !loss.task_fails);
    sluice_error err;
    shm_token dead = {.slot = 1, .generation = 2, .random = 0};
    /* The dead one's answer, should it ever come, is refused. */
    ASSERT_FAILS(SLUICE_FENCED, shm_tasks_finish(&pool->region, shm_token_owner(&dead), &lost, false, &err));
    shm_work again = take(pool, 0);
    expect_task(again, 1, 0);
    finish(pool, 0, &again, false);
    finish(pool, 2, &second, false);
    shm_work third = take(pool, 1);
    expect_task(third, 1, 2);
    finish(pool, 1, &third, false);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
}

static void a_task_that_crashes_its_worker_each_time_fails(void **state)
{
    setting *pool = *state;
    uint32_t cell = 99;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 2, false);
    for (uint32_t i = 1; i <= limits.crashes; i++) {
        expect_task(take(pool, 1), 1, 0);
        shm_loss loss = lose(pool, 1);
        assert_int_equal(loss.times, i);
        assert_int_equal(loss.task_fails, i == limits.crashes);
    }
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_HAS_FAILED);
    assert_int_equal(cell, 1);
}

static void a_task_that_is_killed_from_outside_survives_many_deaths_and_not_all(void **state)
{
    setting *pool = *state;
    uint32_t cell = 99;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 2, false);
    for (uint32_t i = 1; i <= limits.deaths; i++) {
        expect_task(take(pool, 1), 1, 0);
        bool crashed = i % 10 == 0; /* a crash now and then is among them, too few to count */
        assert_int_equal(lose_by(pool, 1, crashed).task_fails, i == limits.deaths);
    }
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_HAS_FAILED);
}

static void a_dead_conductors_successor_repeats_no_finished_work(void **state)
{
    setting *pool = *state;
    uint32_t cell = 0;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 1, false);
    shm_work work = take(pool, 1);
    finish(pool, 1, &work, false);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
    (void)begin(pool, 0, 2, 3, false);
    shm_work first = take(pool, 1);
    finish(pool, 1, &first, false);
    shm_work second = take(pool, 1);
    shm_work third = take(pool, 0); /* dies with the conductor */
    shm_loss loss = lose(pool, 0);
    assert_true(loss.conducted && loss.had_task);
    assert_int_equal(loss.index, third.index);
    assert_int_equal(take(pool, 2).kind, SHM_WORK_CONDUCT);
    assert_int_equal(begin(pool, 2, 1, 1, false), SHM_RUN_IS_DONE);
    assert_int_equal(begin(pool, 2, 2, 3, false), SHM_RUN_GOES_ON);
    shm_work again = take(pool, 2);
    expect_task(again, 2, third.index);
    finish(pool, 2, &again, false);
    assert_int_equal(look(pool, 2, &cell), SHM_RUN_GOES_ON);
    finish(pool, 1, &second, false);
    assert_int_equal(look(pool, 2, &cell), SHM_RUN_IS_DONE);
}

static void a_successors_plan_waits_for_the_stragglers_of_the_old_one(void **state)
{
    setting *pool = *state;
    uint32_t cell = 0;
    (void)take(pool, 0);
    (void)begin(pool, 0, 7, 2, true);
    shm_work straggler = take(pool, 1);
    (void)lose(pool, 0);
    assert_int_equal(take(pool, 2).kind, SHM_WORK_CONDUCT);
    assert_int_equal(begin(pool, 2, 7, 2, true), SHM_RUN_HAS_TO_WAIT);
    assert_int_equal(take(pool, 0).kind, SHM_WORK_NONE); /* nothing of the old run starts any more */
    finish(pool, 1, &straggler, false);
    assert_int_equal(begin(pool, 2, 7, 2, true), SHM_RUN_GOES_ON);
    expect_task(take(pool, 1), 7, 0); /* also what was finished runs again */
    assert_int_equal(look(pool, 2, &cell), SHM_RUN_GOES_ON);
}

static void an_old_conductor_can_do_nothing(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_run_answer answer;
    uint32_t cell = 0;
    (void)take(pool, 0);
    shm_owner old = pool->owners[0];
    (void)lose(pool, 0);
    ASSERT_FAILS(SLUICE_FENCED, shm_run_begin(&pool->region, old, 1, 1, false, &answer, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_run_look(&pool->region, old, &answer, &cell, &err));
    ASSERT_FAILS(SLUICE_FENCED, shm_job_end(&pool->region, old, SLUICE_OK, &err));
    assert_int_equal(take(pool, 1).kind, SHM_WORK_CONDUCT);
}

static void a_conductor_that_dies_without_progress_fails_the_job(void **state)
{
    setting *pool = *state;
    sluice_status outcome = SLUICE_OK;
    uint32_t cell = 99;
    for (uint32_t i = 1; i <= limits.crashes; i++) {
        assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
        assert_int_equal(lose(pool, 0).job_fails, i == limits.crashes);
    }
    assert_true(shm_job_is_over(&pool->region, &outcome, &cell));
    assert_int_equal(outcome, SLUICE_INTERNAL);
    assert_int_equal(cell, 0);
    assert_int_equal(take(pool, 1).kind, SHM_WORK_OVER);
}

static void a_conductor_that_is_killed_from_outside_has_many_lives_and_not_all(void **state)
{
    setting *pool = *state;
    for (uint32_t i = 1; i <= limits.deaths; i++) {
        assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
        assert_int_equal(lose_by(pool, 0, false).job_fails, i == limits.deaths);
    }
    assert_int_equal(take(pool, 1).kind, SHM_WORK_OVER);
}

static void a_task_that_crashes_its_conductor_is_to_blame_and_not_the_conductor(void **state)
{
    setting *pool = *state;
    uint32_t cell = 99;
    for (uint32_t i = 1; i <= limits.crashes; i++) {
        assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
        (void)begin(pool, 0, 1, 2, false);
        expect_task(take(pool, 0), 1, 0);
        shm_loss loss = lose(pool, 0);
        assert_false(loss.job_fails);
        assert_int_equal(loss.task_fails, i == limits.crashes);
    }
    assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
    (void)begin(pool, 0, 1, 2, false);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_HAS_FAILED);
    assert_int_equal(cell, 0);
}

/* Each life forgets what tasks of the plan before have done: blame of a task would begin anew for ever. */
static void a_task_done_anew_that_crashes_its_conductor_ends_the_job_at_last(void **state)
{
    setting *pool = *state;
    for (uint32_t i = 1; i <= limits.relapses; i++) {
        assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
        (void)begin(pool, 0, 700, 1, true);
        expect_task(take(pool, 0), 700, 0);
        assert_int_equal(lose(pool, 0).job_fails, i == limits.relapses);
    }
    assert_int_equal(take(pool, 1).kind, SHM_WORK_OVER);
}

/* One life: opens a phase, has its task done by another, crashes. */
static shm_loss live_once(setting *pool, uint32_t phase, bool anew)
{
    assert_int_equal(take(pool, 0).kind, SHM_WORK_CONDUCT);
    (void)begin(pool, 0, phase, 1, anew);
    shm_work work = take(pool, 1);
    finish(pool, 1, &work, false);
    return lose(pool, 0);
}

/* Work that stays gives a conductor any number of lives; work that is done anew each time only a bounded one. */
static void progress_gives_a_conductor_new_lives(void **state)
{
    setting *pool = *state;
    for (uint32_t i = 0; i < 4 * limits.relapses; i++)
        assert_false(live_once(pool, i, false).job_fails);
    for (uint32_t i = 2; i <= limits.relapses; i++) /* the last lasting work was done in the life before */
        assert_int_equal(live_once(pool, 500, true).job_fails, i == limits.relapses);
}

static void full_tables_are_typed_errors(void **state)
{
    setting *pool = *state;
    sluice_error err;
    shm_run_answer answer;
    uint32_t cell;
    (void)take(pool, 0);
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, shm_run_begin(&pool->region, pool->owners[0], 1, 9, false, &answer, &err));
    for (uint32_t phase = 0; phase < SHM_PHASES_MAX; phase++) {
        (void)begin(pool, 0, phase, 0, false);
        assert_int_equal(look(pool, 0, &cell), SHM_RUN_IS_DONE);
    }
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT,
                 shm_run_begin(&pool->region, pool->owners[0], SHM_PHASES_MAX, 0, false, &answer, &err));
    assert_int_equal(begin(pool, 0, 3, 0, false), SHM_RUN_IS_DONE);
}

static void a_stopped_run_starts_nothing_and_says_so(void **state)
{
    setting *pool = *state;
    sluice_error err;
    uint32_t cell = 0;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 3, false);
    shm_work work = take(pool, 1);
    ASSERT_OK(shm_run_stop(&pool->region, pool->owners[0], &err));
    assert_int_equal(take(pool, 2).kind, SHM_WORK_NONE);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_GOES_ON);
    finish(pool, 1, &work, false);
    assert_int_equal(look(pool, 0, &cell), SHM_RUN_WAS_STOPPED);
}

static void an_ended_job_stays_ended(void **state)
{
    setting *pool = *state;
    sluice_error err;
    sluice_status outcome = SLUICE_INTERNAL;
    uint32_t cell = 99;
    assert_false(shm_job_is_over(&pool->region, &outcome, &cell));
    (void)take(pool, 2);
    ASSERT_OK(shm_job_end(&pool->region, pool->owners[2], SLUICE_OK, &err));
    ASSERT_OK(shm_job_fail(&pool->region, SLUICE_INTERNAL, &err)); /* too late */
    assert_true(shm_job_is_over(&pool->region, &outcome, &cell));
    assert_int_equal(outcome, SLUICE_OK);
    assert_int_equal(take(pool, 0).kind, SHM_WORK_OVER);
}

/* Each field of the table broken in turn: the check must see it, else no repair could be trusted. */
static void the_check_sees_planted_damage(void **state)
{
    setting *pool = *state;
    shm_tasks *table = pool->region.tasks;
    (void)take(pool, 0);
    (void)begin(pool, 0, 1, 4, false);
    shm_work work = take(pool, 1);
    finish(pool, 1, &work, false);
    (void)take(pool, 2);
    assert_true(shm_tasks_check(&pool->region));
    const struct {
        shm_word *word;
        uint64_t value;
    } damage[] = {{&table->job, 9},          {&table->run, 7},
                  {&table->run_count, 999},  {&table->run_count, 3 * 64},
                  {&table->run_finished, 2}, {&table->run_running, 0},
                  {&table->run_failed, 2},   {&table->run_next, 3},
                  {&table->conductor, 77},   {&table->phase_count, 4000},
                  {&table->tasks[0], 0},     {&table->tasks[1], 1},
                  {&table->tasks[2], 3},     {&table->tasks[2], table->tasks[1]},
                  {&table->intent.phase, 1}};
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        uint64_t before = *damage[i].word;
        *damage[i].word = damage[i].value;
        assert_false(shm_tasks_check(&pool->region));
        *damage[i].word = before;
        assert_true(shm_tasks_check(&pool->region));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_comer_conducts_and_others_wait, make, unmake),
        cmocka_unit_test_setup_teardown(a_phase_runs_in_order_and_ends_when_all_are_done, make, unmake),
        cmocka_unit_test_setup_teardown(a_phase_asked_anew_runs_again, make, unmake),
        cmocka_unit_test_setup_teardown(after_a_failure_no_task_is_started_and_the_lowest_error_counts, make, unmake),
        cmocka_unit_test_setup_teardown(a_higher_failure_does_not_hide_a_lower_one, make, unmake),
        cmocka_unit_test_setup_teardown(a_dead_workers_task_is_given_to_another_first, make, unmake),
        cmocka_unit_test_setup_teardown(a_task_that_crashes_its_worker_each_time_fails, make, unmake),
        cmocka_unit_test_setup_teardown(a_task_that_is_killed_from_outside_survives_many_deaths_and_not_all, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(a_dead_conductors_successor_repeats_no_finished_work, make, unmake),
        cmocka_unit_test_setup_teardown(a_successors_plan_waits_for_the_stragglers_of_the_old_one, make, unmake),
        cmocka_unit_test_setup_teardown(an_old_conductor_can_do_nothing, make, unmake),
        cmocka_unit_test_setup_teardown(a_conductor_that_dies_without_progress_fails_the_job, make, unmake),
        cmocka_unit_test_setup_teardown(a_conductor_that_is_killed_from_outside_has_many_lives_and_not_all, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(a_task_that_crashes_its_conductor_is_to_blame_and_not_the_conductor, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(a_task_done_anew_that_crashes_its_conductor_ends_the_job_at_last, make, unmake),
        cmocka_unit_test_setup_teardown(progress_gives_a_conductor_new_lives, make, unmake),
        cmocka_unit_test_setup_teardown(full_tables_are_typed_errors, make, unmake),
        cmocka_unit_test_setup_teardown(a_stopped_run_starts_nothing_and_says_so, make, unmake),
        cmocka_unit_test_setup_teardown(an_ended_job_stays_ended, make, unmake),
        cmocka_unit_test_setup_teardown(the_check_sees_planted_damage, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
