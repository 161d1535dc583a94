/*
 * What making and deleting branches, and loads that make one, have in common. Internal to coord/.
 */
#ifndef COORD_BRANCH_IMPL_H
#define COORD_BRANCH_IMPL_H

#include "adapters/adapter.h"
#include "coord/branch.h"
#include "locks/gates.h"

/* Settles every dead intent of the graph. RECOVERY_REQUIRED only for what may concern this branch's name or records: a
 * quarantined intent of `incarnation` (0: none), with visible effects, or without a readable scope. */
sluice_status co_branch_settle(st_graph *graph, uint64_t incarnation, pf_deadline deadline, sluice_error *err);

/* The branch's lock file, "branches/<incarnation>/locks". */
sluice_status co_branch_locks(st_graph *graph, uint64_t incarnation, lk_lockfile **ret_locks, sluice_error *err);

/* A merged branch goes, if its name still stands for this incarnation with this head. For whoever holds an intent's
 * slot: takes the refs lock and the branch's publish lock, and no gate. Done already is done. */
sluice_status co_branch_follow(st_graph *graph, lk_lockfile *graph_locks, const ad_effect *follow,
                               const pf_id *operation, pf_deadline deadline, sluice_error *err);

/* What control/ knows of an operation on a name. *ret_found false: nothing. IDEMPOTENCY_CONFLICT: the id was used for
 * another request, or is older than the receipts kept. */
sluice_status co_receipt_look_up(st_graph *graph, const pf_id *operation, bool given, const pf_sha256 *request,
                                 const char *name, bool *ret_found, st_control_receipt *ret_receipt, sluice_error *err);
/* Has it happened? Its effect is known to have, or stands now. */
sluice_status co_receipt_stands(st_graph *graph, const st_control_receipt *receipt, const char *name, bool *ret_stands,
                                sluice_error *err);

/* Where a new branch begins: pins the place, holds the source's branch gate shared, so that the source stays, and makes
 * the place acknowledged. */
typedef struct co_source {
    st_snapshot *snapshot;
    char *name;           /* of the branch that it was found on */
    char *at;             /* the place on it; NULL: its head when it was pinned */
    uint64_t incarnation; /* of that branch; the view may be of one that it leads into */
    lk_lockfile *locks;
    lk_gates *gates;
} co_source;
/* Finds name and incarnation; pins nothing. */
sluice_status co_source_find(st_graph *graph, const char *from, const char *at, co_source *ret_source,
                             sluice_error *err);
/* The view that the branch begins at is acknowledged on return. */
sluice_status co_source_hold(st_graph *graph, co_source *source, const st_view *view, const pf_id *operation,
                             pf_deadline deadline, sluice_error *err);
/* Makes what a view shows acknowledged, so that others may rely on it. */
sluice_status co_view_acknowledge(st_graph *graph, const st_view *view, pf_deadline deadline, sluice_error *err);
void co_source_close(co_source *source); /* safe on a zeroed one */

/* The control step of making a branch: an incarnation and a block of row ids; where a receipt is given, it gets the
 * incarnation and goes into the same record. */
sluice_status co_branch_mint(st_graph *graph, st_control_receipt *receipt, uint64_t *ret_incarnation,
                             uint64_t *ret_row_block, pf_deadline deadline, sluice_error *err);
/* An error of making or deleting a branch before its name was touched: whatever stands in control/ or was settled of
 * others' work on the way, the branch is as it was. */
void co_branch_not_committed(sluice_error *err);
sluice_status co_receipt_put(st_graph *graph, const st_control_receipt *receipt, pf_deadline deadline,
                             sluice_error *err);
/* ALREADY_EXISTS when the name is taken. */
sluice_status co_branch_check_free(st_graph *graph, const char *name, sluice_error *err);
/* Under the refs lock: READ_SET_CHANGED when the source is not the branch of its name any more. */
sluice_status co_source_check(st_graph *graph, const co_source *source, sluice_error *err);
/* The folder and log of a new branch that begins at the view; no name leads to it. */
sluice_status co_branch_build(st_graph *graph, const st_view *view, uint64_t incarnation, uint64_t row_block,
                              sluice_error *err);

#endif
