/* The supervisor's one wait, the death pipe, and descriptors of a forked worker. */
#include "platform/watch.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(pf_child *child, bool *ret_in_child)
{
    sluice_error err;
    ASSERT_OK(pf_fork(child, ret_in_child, &err));
}

static void a_childs_end_is_an_event_until_it_is_forgotten(void **state)
{
    (void)state;
    sluice_error err;
    pf_watch *watch;
    pf_child child;
    pf_event event;
    bool in_child;
    bool ended;
    int status;
    ASSERT_OK(pf_watch_open(&watch, &err));
    start(&child, &in_child);
    if (in_child)
        pf_leave(3);
    ASSERT_OK(pf_watch_child(watch, &child, 41, &err));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(pf_watch_next(watch, pf_deadline_in_ms(TEST_WAIT_MS), &event, &err));
        assert_int_equal(event.kind, PF_EVENT_CHILD);
        assert_int_equal(event.tag, 41);
    }
    pf_watch_forget(watch, &child);
    ASSERT_OK(pf_child_wait(&child, PF_AT_ONCE, &ended, &status, &err));
    assert_true(ended && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    pf_deadline deadline = pf_deadline_in_ms(3);
    ASSERT_OK(pf_watch_next(watch, deadline, &event, &err));
    assert_int_equal(event.kind, PF_EVENT_NONE);
    assert_true(pf_deadline_passed(deadline));
    pf_watch_close(watch);
    pf_watch_close(NULL);
}

static void interrupts_are_events_and_act_again_after_the_close(void **state)
{
    (void)state;
    sluice_error err;
    pf_watch *watch;
    pf_event event;
    const int signals[] = {SIGINT, SIGTERM};
    sigset_t mask;
    ASSERT_OK(pf_watch_open(&watch, &err));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kill(getpid(), signals[i]), 0);
        ASSERT_OK(pf_watch_next(watch, pf_deadline_in_ms(TEST_WAIT_MS), &event, &err));
        assert_int_equal(event.kind, PF_EVENT_INTERRUPT);
        assert_int_equal(event.signal, signals[i]);
    }
    pf_watch_close(watch);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGINT) || sigismember(&mask, SIGTERM));
}

static void a_bell_rung_by_children_is_one_event(void **state)
{
    (void)state;
    sluice_error err;
    pf_watch *watch;
    pf_child child;
    pf_event event;
    bool in_child;
    bool ended;
    int status;
    ASSERT_OK(pf_watch_open(&watch, &err));
    start(&child, &in_child);
    if (in_child) {
        pf_bell_ring(pf_watch_bell(watch));
        pf_bell_ring(pf_watch_bell(watch));
        pf_leave(0);
    }
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended);
    ASSERT_OK(pf_watch_next(watch, PF_AT_ONCE, &event, &err));
    assert_int_equal(event.kind, PF_EVENT_BELL);
    ASSERT_OK(pf_watch_next(watch, PF_AT_ONCE, &event, &err));
    assert_int_equal(event.kind, PF_EVENT_NONE);
    pf_watch_close(watch);
}

static void the_death_pipe_tells_when_the_last_copy_is_gone(void **state)
{
    (void)state;
    sluice_error err;
    pf_death_pipe pipe_ends;
    ASSERT_OK(pf_death_pipe_make(&pipe_ends, &err));
    assert_false(pf_supervisor_is_gone(pipe_ends.worker));
    int copy = dup(pipe_ends.supervisor);
    assert_int_equal(close(pipe_ends.supervisor), 0);
    pipe_ends.supervisor = -1;
    assert_false(pf_supervisor_is_gone(pipe_ends.worker));
    assert_int_equal(close(copy), 0);
    assert_true(pf_supervisor_is_gone(pipe_ends.worker));
    pf_death_pipe_close(&pipe_ends);
    assert_int_equal(pipe_ends.worker, -1);
    pf_death_pipe_close(&pipe_ends);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void a_worker_keeps_the_listed_descriptors_only(void **state)
{
    (void)state;
    sluice_error err;
    pf_child child;
    bool in_child;
    bool ended;
    int status;
    int fds[6];
    for (int i = 0; i < 6; i++) {
        fds[i] = fcntl(1, F_DUPFD_CLOEXEC, 20 + 3 * i);
        assert_true(fds[i] >= 0);
    }
    start(&child, &in_child);
    if (in_child) {
        const int keep[] = {fds[4], -1, fds[1], fds[1]};
        int kept = 0;
        pf_close_other_descriptors(keep, 4);
        for (int i = 0; i < 6; i++)
            kept |= is_open(fds[i]) << i;
        pf_leave(is_open(0) && is_open(1) && is_open(2) && !is_open(3) ? kept : 99);
    }
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1 << 4 | 1 << 1);
    start(&child, &in_child);
    if (in_child) {
        pf_close_other_descriptors(NULL, 0);
        pf_leave(is_open(fds[0]) || is_open(fds[5]));
    }
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && status == 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(close(fds[i]), 0);
}

static void a_worker_leaves_no_core_file(void **state)
{
    (void)state;
    sluice_error err;
    pf_child child;
    bool in_child;
    bool ended;
    int status;
    start(&child, &in_child);
    if (in_child) {
        struct rlimit limit;
        pf_forbid_core();
        pf_leave(getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != 0);
    }
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && status == 0);
}

static void a_plain_kill_is_none_for_want_of_memory(void **state)
{
    (void)state;
    sluice_error err;
    bool ended;
    int status;
    bool unchanged = false;
    for (int i = 0; i < 20 && !unchanged; i++) { /* some other process may really be ended for it meanwhile */
        pf_child child;
        bool in_child;
        uint64_t before = pf_memory_kills();
        start(&child, &in_child);
        if (in_child) {
            while (pause() < 0)
                continue;
        }
        pf_child_kill(&child);
        ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
        assert_true(ended && WIFSIGNALED(status));
        unchanged = pf_memory_kills() == before;
    }
    assert_true(unchanged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_childs_end_is_an_event_until_it_is_forgotten),
        cmocka_unit_test(interrupts_are_events_and_act_again_after_the_close),
        cmocka_unit_test(a_bell_rung_by_children_is_one_event),
        cmocka_unit_test(a_plain_kill_is_none_for_want_of_memory),
        cmocka_unit_test(the_death_pipe_tells_when_the_last_copy_is_gone),
        cmocka_unit_test(a_worker_keeps_the_listed_descriptors_only),
        cmocka_unit_test(a_worker_leaves_no_core_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
