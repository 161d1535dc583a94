/*
 * Making a branch (coord/branch.h). The steps, and what a death after each leaves (LESSONS 6;
 * tests/coord/test_branch*):
 *
 *   receipt in control/ with the minted incarnation   nothing to be seen; a retry replaces it
 *   folder, log and CURRENT, synced                   nothing to be seen; the folder is litter
 *   the ref, by exclusive creation                    the branch; the barrier is the next writer's
 *   barrier of refs/                                  the branch, durable
 *
 * All of it under the refs lock, so that two creators, a creator and a deleter, and collection of folders without a
 * name exclude each other; before that the source's branch gate, shared, so that its deletion waits or is seen. Number
 * of calls and bytes: those of a log's first segment with one page per some dozens of types, whatever the graph holds.
 */
#include "coord/branch_impl.h"
#include "coord/write.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/failpoint.h"
#include <stdio.h>
#include <string.h>

static sluice_status digest_request(const co_branch_request *request, pf_sha256 *ret_digest, sluice_error *err)
{
    static const pf_sha256 none;
    *ret_digest = request->request;
    if (!pf_sha256_equal(&request->request, &none))
        return SLUICE_OK;
    const char *const parts[] = {CO_BRANCH_CREATE, request->name, request->from ? request->from : ST_MAIN_BRANCH,
                                 request->at ? request->at : ""};
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pf_sha256_add(stream, parts[i], strlen(parts[i]) + 1);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

static void answer(const st_control_receipt *receipt, bool repeated, co_branch_receipt *ret_receipt)
{
    *ret_receipt = (co_branch_receipt){.repeated = repeated,
                                       .incarnation = receipt->incarnation,
                                       .commit = receipt->commit,
                                       .generation = receipt->generation,
                                       .index = receipt->index};
}

/* An exact retry: *ret_done when this operation made the branch before. */
static sluice_status look_up(st_graph *graph, const co_branch_request *request, const pf_sha256 *digest, bool *ret_done,
                             co_branch_receipt *ret_receipt, sluice_error *err)
{
    st_control_receipt receipt = {0};
    *ret_done = false;
    if (!request->operation_given)
        return SLUICE_OK;
    PF_TRY(co_receipt_look_up(graph, &request->operation, true, digest, request->name, ret_done, &receipt, err));
    if (*ret_done)
        PF_TRY(co_receipt_stands(graph, &receipt, request->name, ret_done, err));
    if (*ret_done)
        answer(&receipt, true, ret_receipt);
    return SLUICE_OK;
}

/* Under the refs lock. *ret_tried: the name may be there. */
static sluice_status create_locked(st_graph *graph, const co_branch_request *request, const pf_sha256 *digest,
                                   const co_source *source, pf_deadline deadline, co_branch_receipt *ret_receipt,
                                   bool *ret_tried, sluice_error *err)
{
    const st_view *view = st_snapshot_view(source->snapshot);
    bool done = false;
    uint64_t incarnation = 0, row_block = 0;
    PF_TRY(look_up(graph, request, digest, &done, ret_receipt, err));
    if (done)
        return SLUICE_OK;
    PF_TRY(co_branch_check_free(graph, request->name, err));
    PF_TRY(co_source_check(graph, source, err));
    st_control_receipt receipt = {.operation = request->operation,
                                  .request = *digest,
                                  .kind = CO_BRANCH_CREATE,
                                  .ref = pf_sha256_of(request->name, strlen(request->name)),
                                  .commit = view->head,
                                  .generation = view->generation,
                                  .index = view->index,
                                  .time_us = pf_wall_us()};
    PF_TRY(co_branch_mint(graph, &receipt, &incarnation, &row_block, deadline, err));
    PF_TRY(PF_FAILPOINT(BRANCH_AFTER_RECEIPT, err));
    PF_TRY(co_branch_build(graph, view, incarnation, row_block, err));
    PF_TRY(PF_FAILPOINT(BRANCH_BEFORE_REF, err));
    *ret_tried = true;
    PF_TRY(st_ref_create(graph, request->name, incarnation, err));
    answer(&receipt, false, ret_receipt);
    (void)PF_FAILPOINT(BRANCH_AFTER_REF, NULL); /* it stands: an error here changes nothing */
    return SLUICE_OK;
}

static sluice_status create(st_graph *graph, const co_branch_request *request, const pf_sha256 *digest,
                            co_branch_receipt *ret_receipt, bool *ret_tried, sluice_error *err)
{
    pf_deadline deadline = pf_deadline_in_ms(request->wait_ms ? request->wait_ms : CO_WAIT_MS);
    lk_lockfile *graph_locks = NULL;
    co_source source = {0};
    bool done = false;
    sluice_status status;
    PF_TRY(co_branch_settle(graph, 0, deadline, err));
    sluice_error taken = {0};
    status = co_branch_check_free(graph, request->name, &taken); /* first: a twin writes its receipt before the name */
    PF_TRY(look_up(graph, request, digest, &done, ret_receipt, err));
    if (done)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = taken;
        return status;
    }
    PF_GOTO(status, done, co_source_find(graph, request->from, request->at, &source, err));
    PF_GOTO(status, done, st_snapshot_open(graph, source.name, source.at, &source.snapshot, err));
    PF_GOTO(status, done,
            co_source_hold(graph, &source, st_snapshot_view(source.snapshot), &request->operation, deadline, err));
    PF_GOTO(status, done, lk_lockfile_open(st_graph_volume(graph), "locks/graph", &graph_locks, err));
    PF_GOTO(status, done, lk_take(graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, deadline, err));
    status = create_locked(graph, request, digest, &source, deadline, ret_receipt, ret_tried, err);
    lk_release(graph_locks, LK_GRAPH_REFS);
done:
    lk_lockfile_close(graph_locks);
    co_source_close(&source);
    return status;
}

sluice_status co_branch_create(st_graph *graph, const co_branch_request *request, co_branch_receipt *ret_receipt,
                               sluice_error *err)
{
    pf_sha256 digest;
    bool tried = false;
    PF_ASSERT(!pf_id_is_nil(&request->operation));
    *ret_receipt = (co_branch_receipt){0};
    sluice_status status = digest_request(request, &digest, err);
    if (status == SLUICE_OK)
        status = create(graph, request, &digest, ret_receipt, &tried, err);
    if (status != SLUICE_OK && !tried)
        co_branch_not_committed(err);
    if (status != SLUICE_OK && err)
        pf_id_text(&request->operation, err->operation_id);
    return status;
}
