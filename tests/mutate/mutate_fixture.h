/*
 * Graphs on the simulated disk for tests of mutations, and what they do to each other.
 *
 * Types: P (key id; a, b, u unique; s text), Q (no key), E (P to P, at most one per pair), L (P to P, at most one out),
 * R (P to Q, parallel).
 */
#ifndef TESTS_MUTATE_MUTATE_FIXTURE_H
#define TESTS_MUTATE_MUTATE_FIXTURE_H

#include "coord/mutate.h"
#include "platform/sim.h"
#include "tests/support/test.h"

pf_sim_disk *mutate_disk(uint64_t seed);
/* An actor of the disk with the graph open for writing. */
st_graph *mutate_open(pf_sim_disk *disk);

typedef struct mutate_try {
    const char *text;
    pf_id operation;                   /* nil: none given */
    void (*after_plan)(void *context); /* after each plan, before its gates */
    void *context;
    /* filled: */
    unsigned plans;
    sluice_status status;
    sluice_error error;
    co_mutate_result result;
} mutate_try;
void mutate_run(st_graph *graph, mutate_try *try_);
/* Must succeed. */
co_mutate_result mutate_text(st_graph *graph, const char *text);

/* The rows of a type as JSON values, sorted, one a line: "[1,2,null]\n". The caller frees. */
char *mutate_rows(st_graph *graph, const char *type);
void mutate_expect(st_graph *graph, const char *type, const char *rows);
/* Row ids of a type, in the order of a scan. */
uint32_t mutate_row_ids(st_graph *graph, const char *type, uint64_t *ret_ids, uint32_t room);
/* verify finds nothing. */
void mutate_expect_whole(st_graph *graph);

#endif
