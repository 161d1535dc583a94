/*
 * What is done to graphs in the recovery matrix: the graph that all begin with, each kind of write and control
 * operation that changes one, and what a reader says of it.
 */
#ifndef TESTS_MATRIX_ACTS_H
#define TESTS_MATRIX_ACTS_H

#include "load_fixture.h"
#include "platform/failpoint.h"

typedef sluice_status matrix_run(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err);

typedef struct matrix_writer {
    const char *name;
    matrix_run *run;
    pf_failpoint dead_at;     /* recover, gc: a load that lost its process there came before */
    bool after_dead, settles; /* settles: in the end it is done, whatever happens */
    bool follows;             /* something comes after its commit: without it, it is as new */
    bool unseen;              /* it changes no row, branch or name */
    /* Of those in matrix_more only: */
    void (*prepare)(load_fixture *f); /* what else comes before it */
    matrix_run *halfway;              /* does a part of it that may stand by itself */
    bool unsettled;                   /* what was prepared may be gone after a power loss */
    bool copies;                      /* into the folder "copy" of the disk */
} matrix_writer;

#define MATRIX_WRITERS 18u
extern const matrix_writer matrix_writers[MATRIX_WRITERS];
/* Too dear, or too special, for every window. */
#define MATRIX_MORE 17u
extern const matrix_writer matrix_more[MATRIX_MORE];

void matrix_base(load_fixture *f);
/* The same disk once more, without processes; files to load are shared. */
void matrix_copy(const load_fixture *base, uint64_t seed, load_fixture *ret_copy);
/* Prepares a copy of the base for a writer. */
void matrix_prepare(const load_fixture *base, const matrix_writer *writer, load_fixture *ret_ready);
/* A fresh process does it; it must succeed. */
void matrix_do(load_fixture *f, matrix_run *run);
matrix_run matrix_mutate, matrix_merge, matrix_collect, matrix_recover;
/* One more node and its removal: what is said stays the same. */
matrix_run matrix_next_write;

/* Rows of all branches, names of branches and checkpoints; as a fresh process sees them. */
char *matrix_see(load_fixture *f);
/* What the folder "copy" holds. */
char *matrix_see_copy(load_fixture *f);
/* verify finds nothing. */
void matrix_expect_whole(load_fixture *f);
/* Nothing is left to collect, and verify finds nothing. */
void matrix_expect_nothing_left(load_fixture *f);

#endif
