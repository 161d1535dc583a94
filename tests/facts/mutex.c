#include "tests/facts/mutex.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <time.h>
#include <unistd.h>

void facts_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    assert_int_equal(pthread_mutexattr_init(&attributes), 0);
    assert_int_equal(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    assert_int_equal(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK), 0);
    assert_int_equal(pthread_mutex_init(mutex, &attributes), 0);
    assert_int_equal(pthread_mutexattr_destroy(&attributes), 0);
}

facts_shared *facts_make(void)
{
    facts_shared *shared = test_shared(sizeof *shared);
    facts_mutex_init(&shared->mutex);
    facts_mutex_init(&shared->other);
    return shared;
}

int facts_lock_within(pthread_mutex_t *mutex, int64_t milliseconds)
{
    struct timespec until;
    if (clock_gettime(CLOCK_MONOTONIC, &until) != 0)
        return -1;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    until.tv_sec += (time_t)(milliseconds / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

void facts_reach(facts_shared *shared, unsigned stage)
{
    __atomic_store_n(&shared->stage, stage, __ATOMIC_RELEASE);
}

static int own_and_stay(void *context)
{
    facts_shared *shared = context;
    shared->result = pthread_mutex_lock(&shared->mutex);
    facts_reach(shared, 1);
    while (pause() < 0)
        continue;
    return 0;
}

pid_t facts_owner(facts_shared *shared)
{
    facts_reach(shared, 0);
    pid_t pid = test_child(own_and_stay, shared);
    test_wait_for(&shared->stage, 1);
    return pid;
}
