/*
 * What the kernel does about parent death, proofs of death, sealed memory and futex words (DESIGN 5 to 7).
 */
#include "tests/facts/mutex.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int stay(void *context)
{
    facts_shared *shared = context;
    shared->pid = (unsigned)getpid();
    facts_reach(shared, 1);
    while (pause() < 0)
        continue;
    return 0;
}

static void *fork_in_a_thread(void *context)
{
    facts_shared *shared = context;
    (void)test_child(stay, shared); /* its parent-death signal is SIGKILL */
    test_wait_for(&shared->stage, 1);
    return NULL;
}

static void the_parent_death_signal_comes_when_the_forking_thread_ends(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fork_in_a_thread, shared), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_child_expect_signal((pid_t)shared->pid, SIGKILL); /* while we, its parent process, live on */
}

static int parent_that_stays(void *context)
{
    (void)test_child(stay, context);
    while (pause() < 0)
        continue;
    return 0;
}

static void the_parent_death_signal_comes_when_the_parent_is_killed(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t parent = test_child(parent_that_stays, shared);
    test_wait_for(&shared->stage, 1);
    test_child_kill(parent);
    test_child_expect_signal((pid_t)shared->pid, SIGKILL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static int grandchild_asks(void *context)
{
    (void)context;
    pid_t pid = fork();
    if (pid == 0) {
        int number = -1;
        _exit(prctl(PR_GET_PDEATHSIG, &number) == 0 && number == 0 ? 0 : 1);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

static void the_parent_death_signal_is_not_inherited(void **state)
{
    (void)state;
    test_child_expect_exit(test_child(grandchild_asks, NULL), 0);
}

static void a_zombie_answers_kill_but_its_pidfd_is_readable(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t pid = test_child(stay, shared);
    test_wait_for(&shared->stage, 1);
    int pidfd = pidfd_open(pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&ended, 1, 0), 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_int_equal(poll(&ended, 1, 0), 0); /* stopped is not ended */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(poll(&ended, 1, TEST_WAIT_MS), 1);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(pidfd_send_signal(pidfd, 0, NULL, 0), 0);
    test_child_expect_signal(pid, SIGKILL);
    assert_int_equal(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), -1);
    assert_int_equal(errno, ESRCH); /* never another process, whatever its number */
    assert_int_equal(close(pidfd), 0);
}

static void a_sealed_memfd_cannot_be_cut_grown_or_newly_written(void **state)
{
    (void)state;
    int fd = memfd_create("facts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, 8192), 0);
    unsigned char *mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mine != MAP_FAILED);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
    assert_int_equal(ftruncate(fd, 4096), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 16384), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_ptr_equal(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    mine[0] = 7; /* the mapping that was there before goes on */
    const unsigned char *observer = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(observer != MAP_FAILED);
    assert_int_equal(observer[0], 7);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(munmap(mine, 8192), 0);
    assert_int_equal(close(fd), 0);
}

static int wait_on_a_word(void *context)
{
    facts_shared *shared = context;
    struct timespec limit = {.tv_nsec = FACTS_SHORT_MS * 1000000L};
    facts_reach(shared, 2);
    long woken = syscall(SYS_futex, &shared->pid, FUTEX_WAIT, 0, &limit, NULL, 0);
    return woken == -1 && errno == ETIMEDOUT ? 0 : 1;
}

static void a_death_wakes_no_other_futex_word(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t owner = facts_owner(shared);
    pid_t waiter = test_child(wait_on_a_word, shared);
    test_wait_for(&shared->stage, 2);
    test_child_kill(owner);
    test_child_expect_exit(waiter, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parent_death_signal_comes_when_the_forking_thread_ends),
        cmocka_unit_test(the_parent_death_signal_comes_when_the_parent_is_killed),
        cmocka_unit_test(the_parent_death_signal_is_not_inherited),
        cmocka_unit_test(a_zombie_answers_kill_but_its_pidfd_is_readable),
        cmocka_unit_test(a_sealed_memfd_cannot_be_cut_grown_or_newly_written),
        cmocka_unit_test(a_death_wakes_no_other_futex_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
