/*
 * Branch control: making and deleting branches (DESIGN 9, LESSONS 6, docs/protocol.md "Branch control"). These are
 * control operations, no commits: they emit no lineage, and the ref is their authority.
 *
 * Names are data, any two different ones are different branches. An incarnation is minted once and never comes back, so
 * a branch that is deleted and made again is another one to everybody who knew the first.
 */
#ifndef COORD_BRANCH_H
#define COORD_BRANCH_H

#include "store/read/snapshot.h"

#define CO_BRANCH_CREATE "branch-create" /* kinds of receipts in control/ */
#define CO_BRANCH_DELETE "branch-delete"

typedef struct co_branch_request {
    const char *name;
    const char *from;     /* create: a branch, a commit of any branch, or a checkpoint; NULL: main */
    const char *at;       /* create: a place on that branch; NULL: its head */
    pf_id if_head;        /* delete: only if this is its head; nil: whatever it is */
    bool dry_run;         /* delete: only look */
    pf_id operation;      /* never nil */
    bool operation_given; /* by --op-id: an exact retry gets the first result */
    pf_sha256 request;    /* create, as part of another request: that one's digest; zero: this one's own */
    int64_t wait_ms;      /* bound of every wait; 0: CO_WAIT_MS */
} co_branch_request;

typedef struct co_branch_receipt {
    bool repeated;
    uint64_t incarnation;
    pf_id commit; /* create: where it begins; delete: its last head, nil when that could not be read */
    uint64_t generation;
    uint32_t index;
} co_branch_receipt;

/* Makes a branch that begins at a commit of another one. Copies no data: its first record names what the other lists.
 * ALREADY_EXISTS; NOT_FOUND (no such source); READ_SET_CHANGED when the source was deleted meanwhile. */
sluice_status co_branch_create(st_graph *graph, const co_branch_request *request, co_branch_receipt *ret_receipt,
                               sluice_error *err);
/* Deletes a branch: its name goes, its folder is collected once nothing leads into it. Readers that pinned it go on,
 * its writers end with READ_SET_CHANGED or NOT_FOUND. The branch main stays (USAGE). WRITE_CONFLICT: made again
 * meanwhile; READ_SET_CHANGED: another head than expected; LIVE_WRITER_CONTENTION: a write of it is being published. */
sluice_status co_branch_delete(st_graph *graph, const co_branch_request *request, co_branch_receipt *ret_receipt,
                               sluice_error *err);

#endif
