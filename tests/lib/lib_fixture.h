/*
 * A graph on the real disk behind the public interface, for the tests of the library.
 *
 * Types: Person (key id; name, age), KNOWS (Person to Person, at most one per pair; since), Note (no key; text).
 */
#ifndef TESTS_LIB_LIB_FIXTURE_H
#define TESTS_LIB_LIB_FIXTURE_H

#include "tests/support/test.h"
#include <sluice/sluice.h>

typedef struct lib_fixture {
    char *folder, *path;
    sluice_graph *graph;
} lib_fixture;
int lib_fixture_make(void **state);
int lib_fixture_free(void **state);
/* Commits lines; must succeed. */
sluice_receipt lib_commit(sluice_graph *graph, const char *lines);
/* Rows of a type at the head of main. */
uint64_t lib_count(sluice_graph *graph, const char *type);
/* A node of main's head as JSON; NULL when it is not there. The caller frees it by sluice_free. */
char *lib_get(sluice_graph *graph, const char *type, const char *key);

#endif
