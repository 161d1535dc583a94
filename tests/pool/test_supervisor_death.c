/*
 * The supervisor killed, at any stage of its workers: none of them is left, by the kernel's signal or by the death
 * pipe; and what the pool holds on purpose stays held until the last one is gone (R188, R198, L-048).
 */
#include "platform/failpoint.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "toy.h"
#include "worker/pool_worker.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4u
#define GONE_MS 60000 /* far more than it takes; a worker that survives would stay for ever */

static int adopt_orphans(void **state)
{
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

typedef struct pool_command {
    toy_spec toy;
    const char *rule; /* failpoint; NULL: none */
    int descriptor;   /* listed for workers; -1: none */
} pool_command;

/* What `sluice load` would be: a process whose only thread runs a pool. */
static int run_command(void *context)
{
    pool_command *mine = context;
    sluice_error err;
    toy_result result;
    wk_job job = toy_job(&mine->toy);
    const co_pool_options options = {.workers = WORKERS};
    if (mine->rule && (setenv("SLUICE_FAILPOINT", mine->rule, 1) != 0 || pf_failpoints_init(&err) != SLUICE_OK))
        return 90;
    job.descriptors = &mine->descriptor;
    job.descriptor_count = mine->descriptor >= 0;
    return co_pool_run(&job, &options, &result, &err) == SLUICE_OK ? 0 : 1;
}

static void make_command(pool_command *command, uint32_t phases, uint32_t tasks)
{
    *command = (pool_command){.descriptor = -1};
    toy_make(&command->toy, phases, tasks);
}

static void wait_for_word(_Atomic uint32_t *word, uint32_t value)
{
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    for (unsigned i = 0; *word < value && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    assert_true(*word >= value);
}

/* Every worker that was ever started ends in time, as our children by now; returns how many ended by exit status
 * `by_exit`. */
static unsigned expect_all_gone(const pool_command *command)
{
    unsigned exited = 0;
    int64_t began = pf_monotonic_ns();
    uint32_t count = command->toy.shared->pid_count;
    assert_true(count <= TOY_PIDS);
    for (uint32_t i = 0; i < count; i++) {
        pid_t pid = (pid_t)command->toy.shared->pids[i];
        int status = 0;
        pid_t ended = pid == 0 ? -1 : waitpid(pid, &status, WNOHANG);
        if (ended < 0)
            continue; /* reaped by its supervisor while that lived */
        if (ended == 0)
            status = test_child_wait(pid);
        if (WIFEXITED(status)) {
            /* DONE: the others ended the job while the supervisor's death was still on its way. */
            assert_true(WEXITSTATUS(status) == WK_LEFT_ORPHANED ||
                        (command->rule && WEXITSTATUS(status) == WK_LEFT_DONE));
            exited++;
        } else {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
    }
    assert_true(pf_monotonic_ns() - began < GONE_MS * INT64_C(1000000));
    /* Also those that had not come as far as telling their number. */
    pf_deadline limit = pf_deadline_in_ms(GONE_MS);
    pid_t left;
    for (unsigned i = 0; (left = waitpid(-1, NULL, WNOHANG)) >= 0 && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    assert_int_equal(left, -1);
    assert_int_equal(errno, ECHILD);
    return exited;
}

static sluice_status hang_in_task(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)phase;
    (void)index;
    (void)err;
    atomic_fetch_add(&toy->shared->mark[0], 1);
    while (pause() < 0)
        continue;
    return SLUICE_OK;
}

static sluice_status hang_conducting(toy_spec *toy, sluice_error *err)
{
    return hang_in_task(toy, 0, 0, err);
}

static sluice_status hang_opening(toy_spec *toy, sluice_error *err)
{
    return hang_in_task(toy, 0, 0, err);
}

static sluice_status stop_in_task(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    (void)phase;
    (void)index;
    (void)err;
    toy->shared->mark[3] = (uint32_t)getpid();
    atomic_fetch_add(&toy->shared->mark[0], 1);
    (void)raise(SIGSTOP);
    return SLUICE_OK;
}

static void a_killed_supervisor_takes_its_workers_with_it(void **state)
{
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        pool_command command;
        make_command(&command, 1, 8);
        if (stage == 0)
            command.toy.at_open = hang_opening;
        else if (stage == 1)
            command.toy.at_task = hang_in_task;
        else if (stage == 2)
            command.toy.at_task = stop_in_task; /* a stopped process is killed as well */
        else
            command.toy.at_conduct = hang_conducting; /* one conducts, three are idle */
        pid_t pid = test_child(run_command, &command);
        wait_for_word(&command.toy.shared->mark[0], stage == 3 ? 1 : WORKERS);
        test_child_kill(pid);
        (void)expect_all_gone(&command);
        toy_free(&command.toy);
    }
}

/* As if the kernel's signal were lost. */
static sluice_status refuse_the_death_signal(toy_spec *toy, sluice_error *err)
{
    (void)toy;
    (void)err;
    (void)prctl(PR_SET_PDEATHSIG, 0);
    return SLUICE_OK;
}

static sluice_status tell_and_wait(toy_spec *toy, uint32_t phase, uint32_t index, sluice_error *err)
{
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    (void)err;
    (void)phase;
    (void)index;
    atomic_fetch_add(&toy->shared->mark[0], 1);
    for (unsigned i = 0; toy->shared->mark[1] == 0 && !pf_deadline_passed(limit); i++)
        pf_backoff(i, limit);
    return SLUICE_OK;
}

static void without_the_death_signal_the_death_pipe_ends_workers_at_their_next_turn(void **state)
{
    (void)state;
    pool_command command;
    make_command(&command, 2, 1); /* one task: its worker is busy, the others wait, the conductor too */
    command.toy.at_open = refuse_the_death_signal;
    command.toy.at_task = tell_and_wait;
    pid_t pid = test_child(run_command, &command);
    wait_for_word(&command.toy.shared->pid_count, WORKERS);
    wait_for_word(&command.toy.shared->mark[0], 1);
    test_child_kill(pid);
    command.toy.shared->mark[1] = 1; /* and the task ends by itself */
    assert_int_equal(expect_all_gone(&command), WORKERS);
    toy_free(&command.toy);
}

static bool can_lock(const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    bool got = fcntl(fd, F_OFD_SETLK, &whole) == 0;
    assert_int_equal(close(fd), 0);
    return got;
}

static void what_the_pool_holds_is_held_until_its_last_orphan_is_gone(void **state)
{
    (void)state;
    pool_command command;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    make_command(&command, 1, 1);
    char *path = test_path(command.toy.folder, "lock");
    command.toy.at_open = refuse_the_death_signal;
    command.toy.at_task = stop_in_task;
    command.descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(command.descriptor >= 0);
    assert_int_equal(fcntl(command.descriptor, F_OFD_SETLK, &whole), 0);
    pid_t pid = test_child(run_command, &command);
    assert_int_equal(close(command.descriptor), 0); /* now it is the command's and its workers' alone */
    wait_for_word(&command.toy.shared->pid_count, WORKERS);
    wait_for_word(&command.toy.shared->mark[0], 1);
    pid_t stopped = (pid_t)command.toy.shared->mark[3];
    assert_false(can_lock(path));
    test_child_kill(pid);
    /* The idle ones leave; the stopped one is an orphan that still could do harm. */
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (command.toy.shared->pids[i] != stopped)
            test_child_expect_exit((pid_t)command.toy.shared->pids[i], WK_LEFT_ORPHANED);
    }
    assert_false(can_lock(path));
    test_child_kill(stopped);
    assert_true(can_lock(path));
    free(path);
    toy_free(&command.toy);
}

static void killpool_ends_supervisor_and_workers(void **state)
{
    (void)state;
    static const char *const rules[] = {"worker.after_start=killpool@2", "worker.after_take=killpool@1",
                                        "worker.after_take=killpool@5", "worker.before_done=killpool@3"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        pool_command command;
        make_command(&command, 2, 8);
        command.rule = rules[i];
        test_child_expect_signal(test_child(run_command, &command), SIGKILL);
        (void)expect_all_gone(&command);
        command.rule = NULL; /* the same command again, on what the first one left */
        test_child_expect_exit(test_child(run_command, &command), 0);
        toy_free(&command.toy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_supervisor_takes_its_workers_with_it),
        cmocka_unit_test(without_the_death_signal_the_death_pipe_ends_workers_at_their_next_turn),
        cmocka_unit_test(what_the_pool_holds_is_held_until_its_last_orphan_is_gone),
        cmocka_unit_test(killpool_ends_supervisor_and_workers),
    };
    return cmocka_run_group_tests(tests, adopt_orphans, NULL);
}
