/*
 * Real child processes for tests, with bounded waits: a child is killed when its parent dies and by its own alarm, and
 * every wait has a deadline after which the child is killed and the test fails.
 */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#define TEST_WAIT_MS 120000

/* Forks and runs `run` in the child, whose exit status it returns. Returns the child's pid. */
pid_t test_child(int (*run)(void *context), void *context);
/* Waits for its end; wait status as waitpid's. */
int test_child_wait(pid_t pid);
/* Waits for it to end by exit(status). */
void test_child_expect_exit(pid_t pid, int status);
void test_child_expect_signal(pid_t pid, int number);
/* SIGKILL and reap. */
void test_child_kill(pid_t pid);
/* Waits until *flag (in shared memory) is at least `value`. */
void test_wait_for(const volatile unsigned *flag, unsigned value);
/* Shared, zeroed anonymous memory for parent and children. */
void *test_shared(size_t size);

#endif
