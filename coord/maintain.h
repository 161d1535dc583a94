/*
 * Maintenance of tables: optimize (small fragments and those with many deleted rows become big ones) and index (the
 * adjacency of edge tables; key runs that are lost). Both are jobs on the pool, like a load, and publish one
 * substitution per table, all in one commit, beside readers and writers (coord/maintain_job.h).
 */
#ifndef COORD_MAINTAIN_H
#define COORD_MAINTAIN_H

#include "coord/pool.h"
#include "coord/write.h"

typedef enum co_maintain_kind { CO_OPTIMIZE, CO_INDEX } co_maintain_kind;

#define CO_FRAGMENT_BYTES (UINT64_C(64) << 20) /* of a fragment that optimize makes, about */

typedef struct co_maintain_options {
    co_maintain_kind kind;
    const char *graph_path;
    const char *branch;       /* NULL: main */
    const char *const *types; /* none: all */
    uint32_t type_count;
    bool compress;           /* optimize: what it writes; fragments that are not compressed are written anew */
    uint64_t fragment_bytes; /* 0: CO_FRAGMENT_BYTES */
    /* optimize: types of which none of those that are given (not 0) is reached are passed by */
    uint64_t if_fragments;    /* that are small */
    uint64_t if_edits;        /* behind the folded list */
    uint64_t if_dead;         /* bytes of rows that are deleted, about */
    unsigned workers;         /* 0: SLUICE_WORKERS, else the machine's processors */
    uint64_t memory;          /* bytes of anonymous memory of all processes; 0: half of what there is */
    unsigned stopped_seconds; /* coord/pool.h */
    pf_id operation;          /* nil: none given */
    pf_id if_head;
    const char *message;
    void *progress_context;
    void (*progress)(void *context, const wk_progress *progress, int64_t elapsed_ms);
} co_maintain_options;

typedef struct co_maintain_size { /* of a table */
    uint64_t fragments, bytes;
    uint64_t indexed; /* fragments that adjacency covers */
} co_maintain_size;

typedef struct co_maintain_result {
    co_receipt receipt;
    double seconds;
    uint64_t memory_peak; /* bytes of anonymous memory that all processes together were seen to have */
    uint32_t table_count;
    struct co_maintain_table {
        uint64_t table;
        co_maintain_size before, after; /* just before the commit and just after it */
    } * tables;                         /* every type of the command, in its order */
} co_maintain_result;
void co_maintain_result_free(co_maintain_result *result); /* its insides; safe on a zeroed one */

/* Runs the job in an embedded pool of workers. Nothing to do: no commit, and success. LIVE_WRITER_CONTENTION when
 * another optimize or index of one of the tables does not end in time; WRITE_CONFLICT when all that it was to replace
 * was taken away meanwhile (overwrite, revert). */
sluice_status co_maintain(const co_maintain_options *options, co_maintain_result *ret_result, sluice_error *err);
/* The same in this process on an open graph (tests on the sim volume). */
sluice_status co_maintain_inline(st_graph *graph, const co_maintain_options *options, co_maintain_result *ret_result,
                                 sluice_error *err);

#endif
