/*
 * Mutations: a file of JSON Lines, one record a change, as one commit (INTERFACE "Mutations").
 *
 * Records act one after the other, each on what the ones before it have left; what the commit does is their net effect
 * on each object, and all rules are checked on that. `assert` and the properties that are set tie the commit to what it
 * went by: a change of these by somebody else is WRITE_CONFLICT, anything else is planned anew.
 */
#ifndef COORD_MUTATE_H
#define COORD_MUTATE_H

#include "coord/write.h"

#define CO_MUTATE_BYTES_MAX   (UINT64_C(1) << 30)
#define CO_MUTATE_RECORDS_MAX 1000000u

typedef struct co_mutate_options {
    const char *graph_path;
    const char *branch; /* NULL: main */
    const char *path;   /* of the file; "-": standard input. For messages, too */
    bool dry_run;
    pf_id operation; /* nil: none given */
    pf_id if_head;
    const char *message;
    const char *actor; /* NULL: "cli" */
    const char *text;  /* what is in the file, where it is at hand already; NULL: it is read */
    size_t length;
    st_graph *graph;       /* open for writing, and kept; NULL: opened by its path */
    wk_executor *executor; /* with `graph`: whose process this is */
} co_mutate_options;

typedef struct co_mutate_result {
    co_receipt receipt;
    uint64_t inserted, updated, deleted; /* objects; of a dry run what it would do */
    uint64_t skipped;                    /* records whose "if" did not hold */
} co_mutate_result;

/* Reads the file and runs it in this process. */
sluice_status co_mutate(const co_mutate_options *options, co_mutate_result *ret_result, sluice_error *err);
/* The same on an open graph, with the text at hand. */
sluice_status co_mutate_text(st_graph *graph, const co_mutate_options *options, wk_executor *executor, const char *text,
                             size_t length, co_mutate_result *ret_result, sluice_error *err);

#endif
