/* The inline executor: order of tasks, the first error, phases that are done, phases that are run anew. */
#include "worker/task.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct trace {
    uint32_t calls[64]; /* phase * 100 + index */
    uint32_t count;
    uint32_t fail_at; /* phase * 100 + index; 0: none */
    bool fail_open;
    unsigned opened, closed;
    const uint32_t (*runs)[2]; /* phase, count; ended by 0, 0 */
} trace;

static sluice_status open_job(const void *spec, wk_executor *executor, void **ret_context, sluice_error *err)
{
    trace *seen;
    memcpy(&seen, spec, sizeof seen);
    assert_int_equal(executor->workers, 1);
    assert_false(pf_id_is_nil(&executor->epoch));
    if (seen->fail_open)
        return pf_fail(err, SLUICE_NOT_FOUND, "nothing to open");
    seen->opened++;
    *ret_context = seen;
    return SLUICE_OK;
}

static void close_job(void *context)
{
    ((trace *)context)->closed++;
}

static sluice_status note_task(void *context, uint32_t phase, uint32_t index, sluice_error *err)
{
    trace *seen = context;
    seen->calls[seen->count++] = phase * 100 + index;
    if (seen->fail_at == phase * 100 + index)
        return pf_fail(err, SLUICE_INPUT_SYNTAX, "task %u failed", index);
    return SLUICE_OK;
}

static sluice_status conduct_runs(void *context, wk_executor *executor, void *result, sluice_error *err)
{
    trace *seen = context;
    for (uint32_t i = 0; seen->runs[i][1] != 0; i++)
        PF_TRY(executor->run(executor->context, seen->runs[i][0], seen->runs[i][1], err));
    executor->advance(executor->context, 1, 1);
    *(uint32_t *)result = seen->count;
    return SLUICE_OK;
}

static sluice_status run(trace *seen, uint32_t *ret_result, sluice_error *err)
{
    wk_job job = {.spec = &seen,
                  .result_size = sizeof(uint32_t),
                  .open = open_job,
                  .close = close_job,
                  .task = note_task,
                  .conduct = conduct_runs};
    return wk_run_inline(&job, ret_result, err);
}

static void tasks_run_in_order_and_the_result_is_returned(void **state)
{
    (void)state;
    static const uint32_t runs[][2] = {{1, 3}, {2, 2}, {0, 0}};
    static const uint32_t expected[] = {100, 101, 102, 200, 201};
    trace seen = {.runs = runs, .fail_at = UINT32_MAX};
    uint32_t result = 0;
    assert_int_equal(run(&seen, &result, NULL), SLUICE_OK);
    assert_int_equal(result, 5);
    assert_memory_equal(seen.calls, expected, sizeof expected);
    assert_int_equal(seen.opened, 1);
    assert_int_equal(seen.closed, 1);
}

static void the_first_error_ends_the_phase_and_the_job(void **state)
{
    (void)state;
    static const uint32_t runs[][2] = {{1, 5}, {2, 5}, {0, 0}};
    trace seen = {.runs = runs, .fail_at = 102};
    uint32_t result = 0;
    sluice_error err = {0};
    assert_int_equal(run(&seen, &result, &err), SLUICE_INPUT_SYNTAX);
    assert_string_equal(err.message, "task 2 failed");
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.closed, 1);
}

static void a_finished_phase_runs_again_only_when_asked_anew(void **state)
{
    (void)state;
    static const uint32_t runs[][2] = {{1, 2}, {1, 2}, {1 | WK_PHASE_ANEW, 2}, {0, 0}};
    static const uint32_t expected[] = {100, 101, 100, 101};
    trace seen = {.runs = runs, .fail_at = UINT32_MAX};
    uint32_t result = 0;
    assert_int_equal(run(&seen, &result, NULL), SLUICE_OK);
    assert_int_equal(result, 4);
    assert_memory_equal(seen.calls, expected, sizeof expected);
}

static void a_job_that_cannot_open_conducts_nothing(void **state)
{
    (void)state;
    static const uint32_t runs[][2] = {{1, 1}, {0, 0}};
    trace seen = {.runs = runs, .fail_open = true};
    uint32_t result = 7;
    sluice_error err = {0};
    assert_int_equal(run(&seen, &result, &err), SLUICE_NOT_FOUND);
    assert_int_equal(result, 7);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_in_order_and_the_result_is_returned),
        cmocka_unit_test(the_first_error_ends_the_phase_and_the_job),
        cmocka_unit_test(a_finished_phase_runs_again_only_when_asked_anew),
        cmocka_unit_test(a_job_that_cannot_open_conducts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
