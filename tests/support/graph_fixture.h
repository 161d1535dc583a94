/*
 * A small graph on the simulated disk, and publishing without the write protocol above it: what the tests of
 * store/state and store/read share.
 *
 * Types: Person (64, key id), Note (65, no key), KNOWS (66, Person to Person, keyed by its ends), ABOUT (67, Note to
 * Person).
 */
#ifndef TESTS_SUPPORT_GRAPH_FIXTURE_H
#define TESTS_SUPPORT_GRAPH_FIXTURE_H

#include "locks/oslock.h"
#include "platform/sim.h"
#include "store/state/state.h"
#include "tests/support/test.h"

#define PERSON 64u
#define NOTE   65u
#define KNOWS  66u
#define ABOUT  67u

typedef struct graph_fixture {
    pf_sim_disk *disk;
    st_graph *graph;
    st_log *log;
    lk_lockfile *locks;
    uint64_t counter; /* names of what is staged */
    pf_sha256 schema_identity;
    bool is_clone; /* the world is the other's */
} graph_fixture;

void graph_fixture_make(graph_fixture *fixture, uint64_t seed);
void graph_fixture_free(graph_fixture *fixture);
/* Closes the graph and opens it again as another process would. */
void graph_fixture_reopen(graph_fixture *fixture);
/* A copy of the disk with a handle of its own, to try one way on. Freed like the first. */
void graph_fixture_clone(graph_fixture *fixture, uint64_t seed, graph_fixture *ret_clone);
/* A second handle on the same disk. */
st_graph *graph_fixture_open(graph_fixture *fixture, pf_access access);

/* A fresh name "t<n><suffix>". */
void fixture_name(graph_fixture *fixture, const char *suffix, char *ret_name, size_t room);
/* A delta on the newest schema, kind "test", its own operation id. */
void fixture_delta(graph_fixture *fixture, st_delta *ret_delta);
/* Publishes deltas as one generation, with the head's view reloaded under the publish lock; returns the status of
 * building. */
sluice_status fixture_publish(graph_fixture *fixture, st_delta *const *deltas, uint32_t count, sluice_error *err);
st_view *fixture_head(graph_fixture *fixture);
/* An add of `rows` rows whose fragment has no file: enough for all that reads no rows. */
st_edit_add fixture_fake_add(graph_fixture *fixture, uint64_t rows);
/* Adds the edit of one add to the delta. */
void fixture_add(graph_fixture *fixture, st_delta *delta, uint64_t table, const st_edit_add *add);

/* A small generator, the same everywhere. */
uint64_t fixture_random(uint64_t *state);
static inline uint64_t fixture_below(uint64_t *state, uint64_t bound)
{
    return fixture_random(state) % bound;
}

#endif
