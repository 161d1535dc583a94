/*
 * What the kernel and libc do with robust mutexes when their owner dies, execs, stops or forgets (DESIGN 5). locks/ and
 * shm/ are built on each of these; a machine where one of them fails cannot run Sluice's pool safely.
 */
#include "tests/facts/mutex.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROBUST_LIST_LIMIT 2048

static void a_killed_owner_leaves_ownerdead_and_the_mutex_goes_on(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    test_child_kill(facts_owner(shared));
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
    assert_int_equal(pthread_mutex_consistent(&shared->mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
}

static int unmap_and_leave(void *context)
{
    facts_shared *shared = context;
    int status = pthread_mutex_lock(&shared->mutex);
    return status == 0 && munmap(shared, sizeof *shared) == 0 ? 0 : 1;
}

static void an_owner_that_unmaps_the_region_never_releases(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    test_child_expect_exit(test_child(unmap_and_leave, shared), 0);
    assert_int_equal(facts_lock_within(&shared->mutex, FACTS_SHORT_MS), ETIMEDOUT);
}

static int lock_and_exec(void *context)
{
    facts_shared *shared = context;
    if (pthread_mutex_lock(&shared->mutex) != 0)
        return 1;
    facts_reach(shared, 1);
    (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
    return 1;
}

static void an_owner_that_execs_leaves_ownerdead_and_lives_on(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t pid = test_child(lock_and_exec, shared);
    test_wait_for(&shared->stage, 1);
    assert_int_equal(facts_lock_within(&shared->mutex, TEST_WAIT_MS), EOWNERDEAD);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    test_child_kill(pid);
}

static void an_heir_that_unlocks_without_repair_loses_the_mutex_for_ever(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    test_child_kill(facts_owner(shared));
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
    assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), ENOTRECOVERABLE);
    assert_int_equal(pthread_mutex_consistent(&shared->mutex), EINVAL);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), ENOTRECOVERABLE);
    facts_mutex_init(&shared->mutex);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
}

static int try_what_the_parent_owns(void *context)
{
    facts_shared *shared = context;
    return pthread_mutex_trylock(&shared->mutex) == EBUSY && pthread_mutex_unlock(&shared->mutex) == EPERM ? 0 : 1;
}

static void ownership_is_not_inherited_by_fork(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    assert_int_equal(pthread_mutex_lock(&shared->mutex), 0);
    test_child_expect_exit(test_child(try_what_the_parent_owns, shared), 0);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EDEADLK);
    assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
}

static void an_heir_killed_before_its_repair_leaves_ownerdead_again(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    test_child_kill(facts_owner(shared));
    pid_t heir = facts_owner(shared);
    assert_int_equal(shared->result, EOWNERDEAD);
    test_child_kill(heir);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
}

static void *lock_and_end_thread(void *context)
{
    facts_shared *shared = context;
    shared->result = pthread_mutex_lock(&shared->mutex);
    return NULL;
}

static void a_thread_that_ends_leaves_ownerdead_in_a_living_process(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, lock_and_end_thread, shared), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(shared->result, 0);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
}

static void a_stopped_owner_is_not_dead(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t pid = facts_owner(shared);
    int status = 0;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(facts_lock_within(&shared->mutex, FACTS_SHORT_MS), ETIMEDOUT);
    test_child_kill(pid);
    assert_int_equal(pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
}

static void an_unreaped_owner_has_released(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t pid = facts_owner(shared);
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* dead, and still a zombie */
    assert_int_equal(pthread_mutex_trylock(&shared->mutex), EOWNERDEAD);
    (void)test_child_wait(pid);
}

static int wait_for_the_mutex(void *context)
{
    facts_shared *shared = context;
    facts_reach(shared, 2);
    shared->result = facts_lock_within(&shared->mutex, TEST_WAIT_MS);
    return 0;
}

static void a_blocked_waiter_is_woken_by_the_owners_death(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    pid_t owner = facts_owner(shared);
    pid_t waiter = test_child(wait_for_the_mutex, shared);
    test_wait_for(&shared->stage, 2);
    test_child_kill(owner);
    test_child_expect_exit(waiter, 0);
    assert_int_equal(shared->result, EOWNERDEAD);
}

typedef struct many {
    pthread_mutex_t mutexes[ROBUST_LIST_LIMIT + 52];
} many;

static int lock_many(void *context)
{
    many *all = context;
    for (size_t i = 0; i < sizeof all->mutexes / sizeof all->mutexes[0]; i++) {
        if (pthread_mutex_lock(&all->mutexes[i]) != 0)
            return 1;
    }
    return 0;
}

static void no_more_than_2048_locks_of_a_dead_task_are_released(void **state)
{
    (void)state;
    many *all = test_shared(sizeof *all);
    unsigned dead = 0;
    unsigned busy = 0;
    for (size_t i = 0; i < sizeof all->mutexes / sizeof all->mutexes[0]; i++)
        facts_mutex_init(&all->mutexes[i]);
    test_child_expect_exit(test_child(lock_many, all), 0);
    for (size_t i = 0; i < sizeof all->mutexes / sizeof all->mutexes[0]; i++) {
        int status = pthread_mutex_trylock(&all->mutexes[i]);
        dead += status == EOWNERDEAD;
        busy += status == EBUSY;
    }
    assert_int_equal(dead, ROBUST_LIST_LIMIT);
    assert_int_equal(busy, 52);
}

static int lock_and_leave(void *context)
{
    return pthread_mutex_trylock(&((facts_shared *)context)->mutex) == EBUSY ? 0 : 1;
}

static void a_raw_clone_child_does_not_release(void **state)
{
    (void)state;
    facts_shared *shared = facts_make();
    /* As fork does, but behind libc's back: the child keeps its parent's thread id and has no robust list. */
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    assert_true(pid >= 0);
    if (pid == 0)
        syscall(SYS_exit_group, pthread_mutex_lock(&shared->mutex) == 0 ? 0 : 1);
    test_child_expect_exit(pid, 0);
    test_child_expect_exit(test_child(lock_and_leave, shared), 0);
}

typedef struct fragile {
    pthread_rwlock_t rwlock;
    sem_t semaphore;
} fragile;

static int take_fragile_and_die(void *context)
{
    fragile *shared = context;
    if (pthread_rwlock_wrlock(&shared->rwlock) != 0 || sem_wait(&shared->semaphore) != 0)
        return 1;
    return kill(getpid(), SIGKILL);
}

static void rwlocks_and_semaphores_of_the_dead_stay_taken(void **state)
{
    (void)state;
    fragile *shared = test_shared(sizeof *shared);
    pthread_rwlockattr_t attributes;
    assert_int_equal(pthread_rwlockattr_init(&attributes), 0);
    assert_int_equal(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_rwlock_init(&shared->rwlock, &attributes), 0);
    assert_int_equal(sem_init(&shared->semaphore, 1, 1), 0);
    test_child_expect_signal(test_child(take_fragile_and_die, shared), SIGKILL);
    assert_int_equal(pthread_rwlock_tryrdlock(&shared->rwlock), EBUSY);
    assert_int_equal(sem_trywait(&shared->semaphore), -1);
    assert_int_equal(errno, EAGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_owner_leaves_ownerdead_and_the_mutex_goes_on),
        cmocka_unit_test(an_owner_that_unmaps_the_region_never_releases),
        cmocka_unit_test(an_owner_that_execs_leaves_ownerdead_and_lives_on),
        cmocka_unit_test(an_heir_that_unlocks_without_repair_loses_the_mutex_for_ever),
        cmocka_unit_test(ownership_is_not_inherited_by_fork),
        cmocka_unit_test(an_heir_killed_before_its_repair_leaves_ownerdead_again),
        cmocka_unit_test(a_thread_that_ends_leaves_ownerdead_in_a_living_process),
        cmocka_unit_test(a_stopped_owner_is_not_dead),
        cmocka_unit_test(an_unreaped_owner_has_released),
        cmocka_unit_test(a_blocked_waiter_is_woken_by_the_owners_death),
        cmocka_unit_test(no_more_than_2048_locks_of_a_dead_task_are_released),
        cmocka_unit_test(a_raw_clone_child_does_not_release),
        cmocka_unit_test(rwlocks_and_semaphores_of_the_dead_stay_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
