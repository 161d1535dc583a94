/*
 * What tests of merges share: a small graph on a simulated disk, mutations as text, and what a branch holds as text.
 *
 * Nodes A (age 30, alone), B, C, D; one edge B to C of type K (one per pair of ends), one of type L (parallel edges).
 */
#ifndef TESTS_MERGE_MERGE_FIXTURE_H
#define TESTS_MERGE_MERGE_FIXTURE_H

#include "coord/branch.h"
#include "coord/merge.h"
#include "coord/mutate.h"
#include "platform/sim.h"
#include "tests/support/test.h"

typedef struct merge_fixture {
    pf_sim_disk *disk;
    st_graph *graph;
} merge_fixture;

merge_fixture fixture_make(uint64_t seed);
void fixture_free(merge_fixture *fixture);
st_graph *fixture_open(pf_sim_disk *disk);

void branch_make(st_graph *graph, const char *name, const char *from);
void branch_remove(st_graph *graph, const char *name);
/* Lines of mutations; fails the test unless they are done. An empty text does nothing. */
void change(st_graph *graph, const char *branch, const char *text);
sluice_status try_change(st_graph *graph, const char *branch, const char *text);
/* Everything that the branch holds, in an order of its own; malloc'd. */
char *content(st_graph *graph, const char *branch);
void expect_same_content(st_graph *graph, const char *one, const char *two);
pf_id head_of(st_graph *graph, const char *branch);
wk_executor merge_executor(void);
sluice_status merge(st_graph *graph, const char *source, const char *into, co_merge_rule rule,
                    co_merge_result *ret_result);
/* Must be done, with this outcome. */
void expect_merge(st_graph *graph, const char *source, const char *into, co_merge_outcome outcome);
/* Must fail with exactly one conflict of this kind, and leave the target as it was. */
void expect_conflict(st_graph *graph, const char *source, const char *into, co_conflict_kind kind);

#endif
