/*
 * A robust, error-checking, process-shared mutex in shared memory, and processes that lock it, for the tests of facts.
 */
#ifndef TESTS_FACTS_MUTEX_H
#define TESTS_FACTS_MUTEX_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define FACTS_SHORT_MS 30 /* a wait that is expected to end by its deadline */

typedef struct facts_shared {
    pthread_mutex_t mutex;
    pthread_mutex_t other;
    unsigned stage; /* what a child has reached; see test_wait_for */
    int result;     /* what a child saw */
    unsigned pid;
} facts_shared;

facts_shared *facts_make(void);
void facts_mutex_init(pthread_mutex_t *mutex);
/* Locks with a monotonic deadline. */
int facts_lock_within(pthread_mutex_t *mutex, int64_t milliseconds);
/* Raises shared->stage to `stage` and wakes nobody: tests poll. */
void facts_reach(facts_shared *shared, unsigned stage);
/* A child that locks shared->mutex, reaches stage 1, and stays. */
pid_t facts_owner(facts_shared *shared);

#endif
