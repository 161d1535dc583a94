/* Forked workers, the sealed shared memory and futex waits. */
#include "platform/process.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void ignore_signal(int number)
{
    (void)number;
}

/* In the child: what pf_fork promises of it, as bits. */
static int child_state(void)
{
    int bits = 0;
    int signal_number = 0;
    sigset_t mask;
    struct sigaction handler;
    if (prctl(PR_GET_PDEATHSIG, &signal_number) == 0 && signal_number == SIGKILL)
        bits |= 1;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        bits |= 2;
    if (getsid(0) == getpid())
        bits |= 4;
    if (sigaction(SIGUSR1, NULL, &handler) == 0 && handler.sa_handler == SIG_DFL)
        bits |= 8;
    if (sigprocmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGTERM))
        bits |= 16;
    return bits;
}

static void a_worker_starts_in_the_promised_state(void **state)
{
    (void)state;
    sluice_error err;
    pf_child child;
    bool in_child = false;
    bool ended = false;
    int status = 0;
    sigset_t blocked;
    sigset_t before;
    sigset_t after;
    assert_true(signal(SIGUSR1, ignore_signal) != SIG_ERR);
    assert_int_equal(sigemptyset(&blocked), 0);
    assert_int_equal(sigaddset(&blocked, SIGUSR2), 0);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    ASSERT_OK(pf_fork(&child, &in_child, &err));
    if (in_child)
        _exit(child.pid == getpid() && child.pidfd == -1 ? child_state() : 0);
    assert_true(child.pid > 0 && child.pidfd >= 0);
    assert_true(fcntl(child.pidfd, F_GETFD) & FD_CLOEXEC);
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 31);
    assert_int_equal(child.pidfd, -1);
    /* The parent's own mask is as it was. */
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, &after), 0);
    assert_true(sigismember(&after, SIGUSR2));
    assert_false(sigismember(&after, SIGTERM));
    assert_true(signal(SIGUSR1, SIG_DFL) != SIG_ERR);
}

static void a_wait_ends_at_its_deadline_and_a_kill_ends_the_child(void **state)
{
    (void)state;
    sluice_error err;
    pf_child child;
    bool in_child = false;
    bool ended = true;
    int status = 0;
    ASSERT_OK(pf_fork(&child, &in_child, &err));
    if (in_child) {
        for (;;)
            (void)pause();
    }
    ASSERT_OK(pf_child_wait(&child, PF_AT_ONCE, &ended, &status, &err));
    assert_false(ended);
    pf_deadline deadline = pf_deadline_in_ms(3);
    ASSERT_OK(pf_child_wait(&child, deadline, &ended, &status, &err));
    assert_false(ended);
    assert_true(pf_deadline_passed(deadline));
    pf_child_kill(&child);
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pf_child_kill(&child); /* nobody any more: nothing happens */
}

typedef struct family {
    unsigned worker; /* pid of the grandchild */
} family;

static int supervise(void *context)
{
    family *shared = context;
    sluice_error err;
    pf_child child;
    bool in_child = false;
    if (pf_fork(&child, &in_child, &err) != SLUICE_OK)
        return 1;
    if (in_child) /* tells itself, so that it is set up when the supervisor is killed */
        __atomic_store_n(&shared->worker, (unsigned)getpid(), __ATOMIC_RELEASE);
    while (pause() < 0)
        continue;
    return 0;
}

static void a_worker_dies_with_its_parent(void **state)
{
    (void)state;
    family *shared = test_shared(sizeof *shared);
    /* Orphans come to us, so that their end can be seen. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t supervisor = test_child(supervise, shared);
    test_wait_for(&shared->worker, 1);
    test_child_kill(supervisor);
    test_child_expect_signal((pid_t)shared->worker, SIGKILL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static void shared_memory_is_zeroed_sealed_and_seen_by_children(void **state)
{
    (void)state;
    sluice_error err;
    pf_shared_memory memory;
    pf_child child;
    bool in_child = false;
    bool ended = false;
    int status = 0;
    ASSERT_OK(pf_shared_memory_make(1 << 20, &memory, &err));
    uint32_t *words = memory.address;
    for (size_t i = 0; i < (1u << 20) / 4; i++)
        assert_int_equal(words[i], 0);
    assert_int_equal(ftruncate(memory.fd, 4096), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(memory.fd, 1 << 21), -1);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0), MAP_FAILED);
    assert_int_equal(fcntl(memory.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    void *observer = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory.fd, 0);
    assert_true(observer != MAP_FAILED);
    ASSERT_OK(pf_fork(&child, &in_child, &err));
    if (in_child) {
        words[7] = 77;
        _exit(0);
    }
    ASSERT_OK(pf_child_wait(&child, pf_deadline_in_ms(TEST_WAIT_MS), &ended, &status, &err));
    assert_true(ended && status == 0);
    assert_int_equal(words[7], 77);
    assert_int_equal(((uint32_t *)observer)[7], 77);
    assert_int_equal(munmap(observer, 4096), 0);
    pf_shared_memory_free(&memory);
    assert_null(memory.address);
    pf_shared_memory_free(&memory);
}

static void shared_memory_beyond_its_limit_is_refused_before_it_is_allocated(void **state)
{
    (void)state;
    sluice_error err;
    pf_shared_memory memory;
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_shared_memory_make(0, &memory, &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_shared_memory_make(PF_SHARED_MEMORY_MAX + 1, &memory, &err));
}

static int wake_when_told(void *context)
{
    uint32_t *words = context;
    pf_futex_wait(&words[1], 0, pf_deadline_in_ms(TEST_WAIT_MS));
    __atomic_store_n(&words[0], 1, __ATOMIC_RELEASE);
    pf_futex_wake_all(&words[0]);
    return 0;
}

static void a_futex_wait_ends_by_wake_by_value_and_by_deadline(void **state)
{
    (void)state;
    uint32_t *words = test_shared(8);
    pf_futex_wait(&words[0], 5, PF_FOREVER); /* the value is another: at once */
    pf_futex_wait(&words[0], 0, PF_AT_ONCE);
    pf_deadline deadline = pf_deadline_in_ms(3);
    while (!pf_deadline_passed(deadline))
        pf_futex_wait(&words[0], 0, deadline);
    pid_t pid = test_child(wake_when_told, words);
    __atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
    pf_futex_wake_all(&words[1]);
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    while (__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 0 && !pf_deadline_passed(limit))
        pf_futex_wait(&words[0], 0, limit);
    assert_int_equal(words[0], 1);
    test_child_expect_exit(pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_starts_in_the_promised_state),
        cmocka_unit_test(a_wait_ends_at_its_deadline_and_a_kill_ends_the_child),
        cmocka_unit_test(a_worker_dies_with_its_parent),
        cmocka_unit_test(shared_memory_is_zeroed_sealed_and_seen_by_children),
        cmocka_unit_test(shared_memory_beyond_its_limit_is_refused_before_it_is_allocated),
        cmocka_unit_test(a_futex_wait_ends_by_wake_by_value_and_by_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
