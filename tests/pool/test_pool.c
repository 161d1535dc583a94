/* The pool at work: results, errors, cancellation, progress, descriptors, starts that fail. */
#include "tests/support/child.h"
#include "tests/support/test.h"
#include "toy.h"
#include "worker/pool_worker.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static void results_are_right_with_any_number_of_workers(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 2, 7, 16};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        sluice_error err;
        toy_spec toy;
        toy_result result = {0};
        toy_make(&toy, 3, 40);
        ASSERT_OK(toy_run(&toy, counts[i], &result, &err));
        assert_int_equal(result.sum, toy_expected(&toy));
        assert_int_equal(toy_missing(&toy), 0);
        assert_int_equal(toy_repeats(&toy), 0); /* nobody died, so nothing ran twice */
        assert_int_equal(toy.shared->conductors, 1);
        assert_int_equal(toy.shared->mark[7], toy.shared->pid_count); /* every worker closed the job */
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD); /* and none is left */
        toy_free(&toy);
    }
}

static void a_number_of_workers_out_of_range_is_refused(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 1);
    ASSERT_FAILS(SLUICE_USAGE, toy_run(&toy, 0, &result, &err));
    ASSERT_FAILS(SLUICE_USAGE, toy_run(&toy, 100000, &result, &err));
    toy_free(&toy);
}

static sluice_status fail_two_tasks(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)toy;
    if (phase != 2 || (index != 5 && index != 6))
        return SLUICE_OK;
    (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "a row is ragged", "edges.csv:%u: a row is ragged", index);
    pf_hint(err, "look at line %u", index);
    pf_details(err, "{\"line\":%u}", index);
    return SLUICE_INPUT_SYNTAX;
}

static void the_error_of_the_lowest_task_crosses_the_region_whole(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 4};
    for (size_t i = 0; i < 2; i++) {
        sluice_error err;
        toy_spec toy;
        toy_result result;
        toy_make(&toy, 3, 20);
        toy.at_task = fail_two_tasks;
        ASSERT_FAILS(SLUICE_INPUT_SYNTAX, toy_run(&toy, counts[i], &result, &err));
        assert_string_equal(err.text, "edges.csv:5: a row is ragged");
        assert_string_equal(err.message, "a row is ragged");
        assert_string_equal(err.hint, "look at line 5");
        assert_string_equal(err.details, "{\"line\":5}");
        for (uint32_t task = 0; task < 20; task++)
            assert_int_equal(toy.shared->ended[3][task], 0); /* the next phase was not begun */
        toy_free(&toy);
    }
}

static sluice_status fail_conducting(toy_spec *toy, sluice_error *err)
{
    (void)toy;
    (void)pf_fail(err, SLUICE_WRITE_CONFLICT, "somebody else was there");
    err->committed = SLUICE_FALSE;
    err->phase = SLUICE_PHASE_PUBLISH;
    return SLUICE_WRITE_CONFLICT;
}

static void the_conductors_error_is_the_jobs(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 2);
    toy.at_conduct = fail_conducting;
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, toy_run(&toy, 3, &result, &err));
    assert_int_equal(err.phase, SLUICE_PHASE_PUBLISH);
    assert_int_equal(err.committed, SLUICE_FALSE);
    toy_free(&toy);
}

static sluice_status refuse_to_open(toy_spec *toy, sluice_error *err)
{
    (void)toy;
    return pf_fail(err, SLUICE_NOT_FOUND, "there is no such graph");
}

static void a_job_that_cannot_be_opened_fails_at_once_with_its_error(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 2);
    toy.at_open = refuse_to_open;
    ASSERT_FAILS(SLUICE_NOT_FOUND, toy_run(&toy, 3, &result, &err));
    assert_string_equal(err.message, "there is no such graph");
    assert_true(toy.shared->pid_count <= 6);
    toy_free(&toy);
}

static sluice_status crash_at_open(toy_spec *toy, sluice_error *err)
{
    (void)toy;
    (void)err;
    (void)raise(SIGKILL);
    return SLUICE_OK;
}

static void a_crash_loop_is_stopped_with_its_cause(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 2);
    toy.at_open = crash_at_open;
    ASSERT_FAILS(SLUICE_INTERNAL, toy_run(&toy, 2, &result, &err));
    assert_non_null(strstr(err.message, "signal 9"));
    assert_true(toy.shared->pid_count >= 9 && toy.shared->pid_count < 20);
    toy_free(&toy);
}

/* Only the first worker opens the job; the others' failing costs the pool nothing but them. */
static sluice_status only_the_first_opens(toy_spec *toy, sluice_error *err)
{
    return atomic_fetch_add(&toy->shared->mark[0], 1) == 0 ? SLUICE_OK : pf_fail(err, SLUICE_IO, "not today");
}

static sluice_status wait_until_others_failed(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    (void)phase;
    (void)index;
    (void)err;
    for (unsigned i = 0; toy->shared->mark[0] < 4 && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    return SLUICE_OK;
}

static void workers_that_cannot_start_do_not_stop_one_that_works(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    sluice_status status = SLUICE_IO;
    /* Which of them comes first is chance: when the second fails before the first works, the job rightly fails. */
    for (int i = 0; status == SLUICE_IO && i < 50 && !pf_deadline_passed(limit); i++) {
        toy_make(&toy, 2, 3);
        toy.at_open = only_the_first_opens;
        toy.at_task = wait_until_others_failed;
        status = toy_run(&toy, 2, &result, &err);
        if (status == SLUICE_OK) {
            assert_int_equal(result.sum, toy_expected(&toy));
            assert_true(toy.shared->mark[0] >= 4);
        }
        toy_free(&toy);
    }
    assert_int_equal(status, SLUICE_OK);
}

/* ---- signals ---- */

static sluice_status interrupt_the_pool(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)err;
    if (phase == 2 && index == 3 && atomic_fetch_add(&toy->shared->mark[0], 1) == 0)
        (void)kill(getppid(), SIGINT);
    return SLUICE_OK;
}

static void an_interrupted_job_ends_cancelled_and_starts_no_more_tasks(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 3};
    for (size_t i = 0; i < 2; i++) {
        sluice_error err;
        toy_spec toy;
        toy_result result;
        toy_make(&toy, 3, TOY_TASKS);
        toy.task_us = 3000;
        toy.at_task = interrupt_the_pool;
        ASSERT_FAILS(SLUICE_CANCELLED, toy_run(&toy, counts[i], &result, &err));
        assert_int_equal(toy.shared->ended[2][TOY_TASKS - 1], 0);
        assert_int_equal(err.committed, SLUICE_FALSE);
        toy_free(&toy);
    }
}

static sluice_status interrupt_when_armed(toy_spec *toy, sluice_error *err)
{
    (void)err;
    if (toy->executor->cancelled(toy->executor->context))
        return SLUICE_CANCELLED;
    /* From here on it is armed: nobody asks any more. */
    (void)kill(getppid(), SIGTERM);
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    for (unsigned i = 0; !toy->executor->cancelled(toy->executor->context) && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    return SLUICE_OK;
}

static void an_interrupt_after_arming_lets_the_job_end(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 4);
    toy.at_conduct = interrupt_when_armed;
    ASSERT_OK(toy_run(&toy, 2, &result, &err));
    assert_int_equal(result.sum, toy_expected(&toy));
    toy_free(&toy);
}

static sluice_status interrupt_twice_and_hang(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)phase;
    (void)index;
    (void)err;
    (void)kill(getppid(), SIGINT);
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    for (unsigned i = 0; !toy->executor->cancelled(toy->executor->context) && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    (void)kill(getppid(), SIGINT);
    while (pause() < 0)
        continue;
    return SLUICE_OK;
}

static void a_second_interrupt_stops_at_once(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 1);
    toy.at_task = interrupt_twice_and_hang;
    ASSERT_FAILS(SLUICE_CANCELLED, toy_run(&toy, 2, &result, &err));
    assert_int_equal(err.committed, SLUICE_UNKNOWN);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    toy_free(&toy);
}

/* ---- progress, descriptors, gates ---- */

typedef struct progress_seen {
    unsigned calls;
    wk_progress last;
    int64_t elapsed_ms;
    bool shrank;
} progress_seen;

static void note_progress(void *context, const wk_progress *progress, int64_t elapsed_ms)
{
    progress_seen *watcher = context;
    watcher->shrank = watcher->shrank || progress->rows < watcher->last.rows || elapsed_ms < watcher->elapsed_ms;
    watcher->last = *progress;
    watcher->elapsed_ms = elapsed_ms;
    watcher->calls++;
}

static void progress_is_shown_and_ends_at_the_whole(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    progress_seen watcher = {0};
    toy_make(&toy, 2, 40);
    toy.task_us = 10000;
    const wk_job job = toy_job(&toy);
    const co_pool_options options = {.workers = 2, .progress_context = &watcher, .progress = note_progress};
    ASSERT_OK(co_pool_run(&job, &options, &result, &err));
    assert_true(watcher.calls >= 2);
    assert_false(watcher.shrank);
    assert_int_equal(watcher.last.rows, 2 * 40 * 10);
    assert_int_equal(watcher.last.bytes, 2 * 40 * 100);
    assert_int_equal(watcher.last.phase, 2);
    assert_int_equal(watcher.last.tasks_done, 40);
    assert_int_equal(watcher.last.tasks_total, 40);
    toy_free(&toy);
}

static int listed = -1;
static int unlisted = -1;

static sluice_status look_at_descriptors(toy_spec *toy, sluice_error *err)
{
    (void)err;
    unsigned open_count = 0;
    for (int fd = 0; fd < 256; fd++)
        open_count += fcntl(fd, F_GETFD) >= 0;
    toy->shared->mark[0] = fcntl(listed, F_GETFD) >= 0;
    toy->shared->mark[1] = fcntl(unlisted, F_GETFD) >= 0;
    toy->shared->mark[2] = open_count;
    return SLUICE_OK;
}

static void workers_keep_what_the_job_lists_and_nothing_else(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 1);
    toy.at_open = look_at_descriptors;
    listed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    unlisted = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(listed >= 0 && unlisted >= 0);
    wk_job job = toy_job(&toy);
    job.descriptors = &listed;
    job.descriptor_count = 1;
    const co_pool_options options = {.workers = 1};
    ASSERT_OK(co_pool_run(&job, &options, &result, &err));
    assert_int_equal(toy.shared->mark[0], 1);
    assert_int_equal(toy.shared->mark[1], 0);
    assert_int_equal(toy.shared->mark[2], 6); /* three standard ones, ours, the bell, the death pipe */
    assert_int_equal(close(listed), 0);
    assert_int_equal(close(unlisted), 0);
    toy_free(&toy);
}

#define LOCKS_PATH "branches/1/locks"

static const lk_gate_key gate_keys[] = {{LK_GATE_SCHEMA, 1, 0, false}, {LK_GATE_TABLE, 1, 64, true}};

/* Takes the gates; the first conductor dies with them, its successor must be told. */
static sluice_status take_gates(toy_spec *toy, sluice_error *err)
{
    pf_volume *volume;
    lk_lockfile *lockfile;
    lk_gates *gates;
    bool orphaned = false;
    pf_id operation = pf_id_new();
    PF_TRY(pf_volume_open(toy->folder, PF_WRITE, &volume, err));
    PF_TRY(lk_lockfile_open(volume, LOCKS_PATH, &lockfile, err));
    PF_TRY(lk_gates_take(lockfile, toy->executor->gates, gate_keys, 2, &operation, pf_deadline_in_ms(TEST_WAIT_MS),
                         &gates, &orphaned, err));
    if (atomic_fetch_add(&toy->shared->mark[0], 1) == 0)
        (void)raise(SIGKILL);
    toy->shared->mark[1] = orphaned;
    lk_gates_settle(gates);
    lk_gates_release(gates);
    PF_TRY(lk_gates_take(lockfile, toy->executor->gates, gate_keys, 2, &operation, pf_deadline_in_ms(TEST_WAIT_MS),
                         &gates, &orphaned, err));
    toy->shared->mark[2] = orphaned;
    lk_gates_release(gates);
    lk_lockfile_close(lockfile);
    pf_volume_close(volume);
    return SLUICE_OK;
}

static void a_dead_conductors_gates_are_orphaned_for_its_successor(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    pf_volume *volume;
    pf_file *file;
    toy_make(&toy, 1, 2);
    ASSERT_OK(pf_volume_open(toy.folder, PF_WRITE, &volume, &err));
    ASSERT_OK(pf_make_folder(volume, "branches", &err));
    ASSERT_OK(pf_make_folder(volume, "branches/1", &err));
    ASSERT_OK(pf_create(volume, LOCKS_PATH, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    toy.at_conduct = take_gates;
    ASSERT_OK(toy_run(&toy, 2, &result, &err));
    assert_int_equal(toy.shared->conductors, 2);
    assert_int_equal(toy.shared->mark[1], 1);
    assert_int_equal(toy.shared->mark[2], 0);
    toy_free(&toy);
}

/* As if the slot had been given to another while this worker was stopped inside a volume call (L-025). */
static sluice_status go_on_after_being_fenced(toy_spec *toy, sluice_error *err)
{
    wk_worker *worker = toy->executor->context;
    shm_word *generation = &worker->region->slots[worker->slot].generation;
    pf_volume *volume;
    pf_file *file;
    unsigned refused = 0;
    PF_TRY(pf_volume_open(toy->folder, PF_WRITE, &volume, err));
    pf_volume_set_fence(volume, toy->executor->allowed, toy->executor->context);
    PF_TRY(pf_create(volume, "fenced", &file, err));
    PF_TRY(pf_write(file, 0, "before", 6, err));
    uint64_t mine = *generation;
    *generation = mine + 1000;
    refused += pf_write(file, 0, "behind", 6, NULL) == SLUICE_FENCED;
    refused += pf_sync(file, NULL) == SLUICE_FENCED;
    refused += pf_publish(volume, "fenced", "published", NULL) == SLUICE_FENCED;
    refused += pf_remove(volume, "fenced", NULL) == SLUICE_FENCED;
    refused += pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, NULL) == SLUICE_FENCED;
    *generation = mine;
    toy->shared->mark[0] = refused;
    toy->shared->mark[1] = (uint32_t)worker->region->slots[worker->slot].refusals;
    char bytes[6];
    PF_TRY(pf_read_exact(file, 0, bytes, sizeof bytes, err));
    toy->shared->mark[2] = memcmp(bytes, "before", sizeof bytes) == 0;
    PF_TRY(pf_close(file, err));
    pf_volume_close(volume);
    return SLUICE_OK;
}

static void a_fenced_worker_that_goes_on_changes_nothing(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 1);
    toy.at_conduct = go_on_after_being_fenced;
    ASSERT_OK(toy_run(&toy, 1, &result, &err));
    assert_int_equal(toy.shared->mark[0], 5);
    assert_int_equal(toy.shared->mark[1], 5); /* each refusal is counted */
    assert_int_equal(toy.shared->mark[2], 1);
    toy_free(&toy);
}

/* ---- a machine that has no processes left ---- */

static void allow_processes_after_a_while(void *context, const wk_progress *progress, int64_t elapsed_ms)
{
    struct rlimit limit;
    unsigned *raised = context;
    (void)progress;
    if (elapsed_ms < 400 || *raised > 0 || getrlimit(RLIMIT_NPROC, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    *raised += setrlimit(RLIMIT_NPROC, &limit) == 0;
}

static int run_without_processes(void *context)
{
    const toy_spec *toy = context;
    sluice_error err;
    toy_result result = {0};
    unsigned raised = 0;
    const wk_job job = toy_job(toy);
    const co_pool_options options = {
        .workers = 2, .progress_context = &raised, .progress = allow_processes_after_a_while};
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 4096};
    /* The limit does not bind root. */
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0))
        return 90;
    if (co_pool_run(&job, &options, &result, &err) != SLUICE_OK)
        return 91;
    return raised == 1 && result.sum == toy_expected(toy) ? 0 : 92;
}

static void a_fork_that_fails_is_tried_again(void **state)
{
    (void)state;
    toy_spec toy;
    toy_make(&toy, 2, 4);
    if (geteuid() == 0)
        assert_int_equal(chown(toy.folder, NOBODY, NOBODY), 0);
    test_child_expect_exit(test_child(run_without_processes, &toy), 0);
    toy_free(&toy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right_with_any_number_of_workers),
        cmocka_unit_test(a_number_of_workers_out_of_range_is_refused),
        cmocka_unit_test(the_error_of_the_lowest_task_crosses_the_region_whole),
        cmocka_unit_test(the_conductors_error_is_the_jobs),
        cmocka_unit_test(a_job_that_cannot_be_opened_fails_at_once_with_its_error),
        cmocka_unit_test(a_crash_loop_is_stopped_with_its_cause),
        cmocka_unit_test(workers_that_cannot_start_do_not_stop_one_that_works),
        cmocka_unit_test(an_interrupted_job_ends_cancelled_and_starts_no_more_tasks),
        cmocka_unit_test(an_interrupt_after_arming_lets_the_job_end),
        cmocka_unit_test(a_second_interrupt_stops_at_once),
        cmocka_unit_test(progress_is_shown_and_ends_at_the_whole),
        cmocka_unit_test(workers_keep_what_the_job_lists_and_nothing_else),
        cmocka_unit_test(a_dead_conductors_gates_are_orphaned_for_its_successor),
        cmocka_unit_test(a_fenced_worker_that_goes_on_changes_nothing),
        cmocka_unit_test(a_fork_that_fails_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
