/*
 * Inside of verify: what verify.c (refs, logs, records, pages), verify_objects.c (files below tables/) and
 * verify_rows.c (keys, unique tuples, ends) share.
 */
#ifndef STORE_READ_VERIFY_H
#define STORE_READ_VERIFY_H

#include "store/read/reader.h"
#include "store/state/gone.h"

typedef struct st_path_set {
    char **paths;
    uint64_t room, count;
} st_path_set;

typedef struct st_index_sums { /* of the adjacency file that was looked at last, see verify_index.c */
    char file[72];
    uint64_t *sums;
} st_index_sums;

typedef struct st_verify {
    st_graph *graph;
    bool quick;
    st_problem_fn *each;
    void *context;
    uint64_t checked;
    void (*watch)(void *context, uint64_t objects); /* objects below tables/ so far; NULL: nobody looks on */
    bool (*known)(void *context, const char *path); /* what need not be looked at again; NULL: nothing */
    st_path_set seen;                               /* objects that were checked already */
    st_path_set reported;                           /* files below tables/ that were named as damaged */
    st_schema *schema;                              /* of the record at hand */
    pf_sha256 schema_identity;
    st_index_sums index_sums[2]; /* by direction */
} st_verify;

/* Reports a problem of an object. */
sluice_status st_verify_report(st_verify *verify, const char *object, sluice_error *err, const char *fmt, ...)
    PF_PRINTF(4, 5);
/* What a check of `object` gave: damage is reported and then no failure of verify itself. */
sluice_status st_verify_judge(st_verify *verify, const char *object, sluice_status status, const sluice_error *found,
                              sluice_error *err);
/* Takes a path in; *ret_new says whether it was not there. */
sluice_status st_path_set_add(st_path_set *set, const char *path, bool *ret_new, sluice_error *err);
/* Is this path new? It is then noted, and counted as checked. */
sluice_status st_verify_first(st_verify *verify, const char *path, bool *ret_first, sluice_error *err);

/* Fragments, runs and deletion sets that an add names. */
sluice_status st_verify_add(st_verify *verify, uint64_t table, const st_edit_add *add, sluice_error *err);
/* The adjacency that covers it (verify_index.c). */
sluice_status st_verify_index(st_verify *verify, uint64_t table, const st_edit_add *add, sluice_error *err);
/* `gone`: what the state at hand can do without, since collection may have taken it; NULL: nothing. */
sluice_status st_verify_edit(st_verify *verify, const st_edit *edit, const st_gone *gone, sluice_error *err);
/* A page of a folded list, with everything below. */
sluice_status st_verify_list(st_verify *verify, uint64_t table, const st_list_ref *ref, const st_gone *gone,
                             sluice_error *err);
void st_path_set_free(st_path_set *set);

/* The rows of a branch's head: totals; in full mode keys, unique tuples and ends too. */
sluice_status st_verify_rows(st_verify *verify, const char *branch, sluice_error *err);

/* st_graph_verify while somebody looks on; both functions get `context`. */
sluice_status st_graph_verify_watched(st_graph *graph, bool quick, st_problem_fn *each,
                                      void (*watch)(void *context, uint64_t objects), void *context,
                                      uint64_t *ret_checked, sluice_error *err);

#endif
