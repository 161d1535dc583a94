/*
 * Checkpoints: names for commits, kept in control/ (DESIGN 9, OW-005). A checkpoint is a root of collection: its commit
 * can be read, branched from and reverted to until it is deleted, whatever becomes of the branch.
 *
 * Both operations are authority-first: one record of control/ is all of them. Killed before it is whole, nothing
 * happened; after that, all did.
 */
#ifndef COORD_CHECKPOINT_H
#define COORD_CHECKPOINT_H

#include "store/read/snapshot.h"

typedef struct co_checkpoint_request {
    const char *name;
    const char *branch;   /* create: NULL: main */
    const char *at;       /* create: a place on it; NULL: its head */
    bool dry_run;         /* delete: only look */
    pf_id operation;      /* never nil */
    bool operation_given; /* by --op-id: an exact retry gets the first result */
    int64_t wait_ms;      /* bound of every wait; 0: CO_WAIT_MS */
} co_checkpoint_request;

typedef struct co_checkpoint_receipt {
    bool repeated;
    pf_id commit;
    uint64_t generation;
    uint32_t index;
} co_checkpoint_receipt;

/* INVALID_NAME: not a name of a branch's kind, or one that means a place by itself; ALREADY_EXISTS; NOT_FOUND: no such
 * branch or commit; RESOURCE_LIMIT: there are too many. */
sluice_status co_checkpoint_create(st_graph *graph, const co_checkpoint_request *request,
                                   co_checkpoint_receipt *ret_receipt, sluice_error *err);
/* NOT_FOUND. */
sluice_status co_checkpoint_delete(st_graph *graph, const co_checkpoint_request *request,
                                   co_checkpoint_receipt *ret_receipt, sluice_error *err);

#endif
