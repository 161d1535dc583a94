/*
 * Stepping: a child that runs one function an instruction at a time, under ptrace, and is killed where the test wants.
 *
 * What counts is a change: an instruction after which the watched memory, or the child's robust list as the kernel will
 * walk it, is not as it was. The child is killed after the n-th change, so the number does not depend on how many
 * instructions lie in between; all the instructions that change nothing are equal to the change before them, which the
 * pass itself has seen.
 */
#ifndef TESTS_SHM_STEP_H
#define TESTS_SHM_STEP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct step_subject {
    void *memory; /* shared */
    size_t length;
    void (*run)(void *context);
    void *context;
    void (*after_change)(unsigned change); /* in the test, while the child stands there; NULL: nothing */
} step_subject;

/* False when the kernel refuses ptrace here; `*ret_why` then says how. */
bool step_is_possible(const char **ret_why);
/* Runs the subject in a child; kills it after change number `kill_after` (0: lets it run to its end), and reaps it.
 * Returns the changes seen; less than kill_after: it ended before. */
unsigned step_run(const step_subject *subject, unsigned kill_after);

#endif
