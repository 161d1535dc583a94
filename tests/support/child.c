#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pid_t test_child(int (*run)(void *context), void *context)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)alarm(TEST_WAIT_MS / 1000 + 5);
        int status = run(context);
        (void)fflush(NULL);
        _exit(status);
    }
    return pid;
}

int test_child_wait(pid_t pid)
{
    int status = 0;
    int pidfd = pidfd_open(pid, 0);
    assert_true(pidfd >= 0);
    struct pollfd ready = {.fd = pidfd, .events = POLLIN};
    int count;
    do {
        count = poll(&ready, 1, TEST_WAIT_MS);
    } while (count < 0 && errno == EINTR);
    (void)close(pidfd);
    if (count == 0)
        (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (count == 0)
        fail_msg("a child did not end in time");
    return status;
}

void test_child_expect_exit(pid_t pid, int status)
{
    int got = test_child_wait(pid);
    assert_true(WIFEXITED(got));
    assert_int_equal(WEXITSTATUS(got), status);
}

void test_child_expect_signal(pid_t pid, int number)
{
    int got = test_child_wait(pid);
    assert_true(WIFSIGNALED(got));
    assert_int_equal(WTERMSIG(got), number);
}

void test_child_kill(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)test_child_wait(pid);
}

void test_wait_for(const volatile unsigned *flag, unsigned value)
{
    const struct timespec pause = {.tv_nsec = 200000};
    for (int i = 0; i < TEST_WAIT_MS * 5; i++) {
        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) >= value)
            return;
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("what another process was to do did not happen in time");
}

void *test_shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}
