/*
 * What the tests of store/graph share: a schema, a graph on the simulated disk, actors on it.
 */
#ifndef TESTS_GRAPH_SMALL_GRAPH_H
#define TESTS_GRAPH_SMALL_GRAPH_H

#include "platform/sim.h"
#include "store/graph/graph.h"
#include "tests/support/test.h"

st_schema *small_schema(void);
pf_volume *small_actor(pf_sim_disk *disk);
/* Makes a graph on the disk's folder; its id. */
sluice_status small_init(pf_volume *volume, pf_id *ret_id, sluice_error *err);
/* A fresh disk with a graph on it. */
pf_sim_disk *small_disk(uint64_t seed, pf_id *ret_id);
st_graph *small_open(pf_sim_disk *disk, pf_access access);
/* The graph is exactly the empty one: main at generation 1, nothing handed out but what init takes. */
void small_expect_empty(st_graph *graph);

#endif
