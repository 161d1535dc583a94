#include "step.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS_MAX     5000000u
#define TRACE_REFUSED 77

static volatile unsigned *finished; /* set by the child; outside of what is watched */

static pid_t start(const step_subject *subject)
{
    if (!finished)
        finished = test_shared(sizeof *finished);
    *finished = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)alarm(TEST_WAIT_MS / 1000 + 40);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(TRACE_REFUSED);
        (void)raise(SIGSTOP);
        subject->run(subject->context);
        *finished = 1;
        for (;;)
            (void)raise(SIGSTOP);
    }
    return pid;
}

/* Tracer and child on one processor: a step is two switches, and waking another processor costs ten times as much. */
static void stay_on_one_processor(void)
{
    cpu_set_t one;
    int processor = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(processor >= 0 ? (unsigned)processor : 0u, &one);
    (void)sched_setaffinity(0, sizeof one, &one); /* only slower when it is not allowed */
}

bool step_is_possible(const char **ret_why)
{
    step_subject nothing = {.run = NULL};
    stay_on_one_processor();
    int status = 0;
    pid_t pid = start(&nothing);
    *ret_why = "ptrace is refused by the kernel here (container without CAP_SYS_PTRACE?)";
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TRACE_REFUSED)
        return false;
    assert_true(WIFSTOPPED(status));
    bool possible = ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 || (errno != EPERM && errno != EACCES);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status))
        continue;
    return possible;
}

/* What the kernel goes by when this process dies: the head of its robust list and the operation that is under way. */
typedef struct robust_state {
    struct robust_list_head head;
} robust_state;

static void read_robust(pid_t pid, void *address, robust_state *ret_state)
{
    struct iovec local = {ret_state, sizeof *ret_state};
    struct iovec remote = {address, sizeof *ret_state};
    assert_int_equal(process_vm_readv(pid, &local, 1, &remote, 1, 0), (ssize_t)sizeof *ret_state);
}

static void *robust_address(pid_t pid)
{
    void *address = NULL;
    size_t length = 0;
    assert_int_equal(syscall(SYS_get_robust_list, pid, &address, &length), 0);
    assert_int_equal(length, sizeof(struct robust_list_head));
    assert_non_null(address);
    return address;
}

static void end(pid_t pid)
{
    int status = 0;
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status))
        continue;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

unsigned step_run(const step_subject *subject, unsigned kill_after)
{
    int status = 0;
    unsigned changes = 0;
    robust_state before;
    robust_state now;
    uint8_t *seen = malloc(subject->length);
    assert_non_null(seen);
    pid_t pid = start(subject);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    void *robust = robust_address(pid);
    memcpy(seen, subject->memory, subject->length);
    read_robust(pid, robust, &before);
    for (unsigned steps = 0; *finished == 0 && (kill_after == 0 || changes < kill_after); steps++) {
        assert_true(steps < STEPS_MAX);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        read_robust(pid, robust, &now);
        if (memcmp(&before, &now, sizeof now) == 0 && memcmp(seen, subject->memory, subject->length) == 0)
            continue;
        changes++;
        before = now;
        memcpy(seen, subject->memory, subject->length);
        if (subject->after_change)
            subject->after_change(changes);
    }
    end(pid);
    free(seen);
    return changes;
}
