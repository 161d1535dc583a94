/*
 * Deleting a branch (coord/branch.h). The steps, and what a death after each leaves (LESSONS 6):
 *
 *   the branch's dead intents are settled             nothing else
 *   the intents as they stand are synced              nothing else (a retirement whose owner died before its sync,
 *                                                     lost, would be an intent of a branch that is gone: discarded)
 *   the end of its log is made whole and synced       nothing else
 *   receipt in control/, its creation marked done     the branch; a retry goes on
 *   the ref is removed, if it holds this incarnation  no branch; the barrier is the next writer's
 *   barrier of refs/                                  no branch, durably; its folder is collected later
 * (coord/gc_branch.c)
 *
 * Under the branch gate alone (no writer of it is between arming and retiring), the refs lock, and the branch's publish
 * lock, under which every publisher looks at the ref: so no write of this incarnation comes after. Intents are listed
 * again under each. A branch whose records are damaged can be deleted: only what it would take to read them is left
 * out.
 */
#include "coord/append.h"
#include "coord/branch_impl.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 32u /* as many owners may die under our eyes */

typedef struct deletion {
    st_graph *graph;
    const co_branch_request *request;
    pf_sha256 digest;
    pf_deadline deadline;
    lk_lockfile *graph_locks;
    lk_lockfile *locks; /* the branch's; NULL: damaged */
    lk_gates *gates;
    st_control_receipt receipt;
    bool again; /* an owner died meanwhile */
    bool done;
    bool tried; /* the name may be gone */
    co_branch_receipt *answer;
} deletion;

static sluice_status digest_request(const co_branch_request *request, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    pf_sha256_add(stream, CO_BRANCH_DELETE, sizeof CO_BRANCH_DELETE);
    pf_sha256_add(stream, request->name, strlen(request->name) + 1);
    pf_sha256_add(stream, request->if_head.bytes, sizeof request->if_head.bytes);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

static void answer(deletion *del, bool repeated)
{
    *del->answer = (co_branch_receipt){.repeated = repeated,
                                       .incarnation = del->receipt.incarnation,
                                       .commit = del->receipt.commit,
                                       .generation = del->receipt.generation,
                                       .index = del->receipt.index};
    del->done = true;
}

/* An exact retry of a deletion that happened. One that died before it goes on, at the branch that it meant. */
static sluice_status look_up(deletion *del, sluice_error *err)
{
    const co_branch_request *request = del->request;
    st_control_receipt receipt = {0};
    bool found = false, stands = false;
    if (!request->operation_given)
        return SLUICE_OK;
    PF_TRY(
        co_receipt_look_up(del->graph, &request->operation, true, &del->digest, request->name, &found, &receipt, err));
    if (found)
        PF_TRY(co_receipt_stands(del->graph, &receipt, request->name, &stands, err));
    if (!stands)
        return SLUICE_OK;
    del->receipt = receipt;
    answer(del, true);
    return SLUICE_OK;
}

static sluice_status is_still(const deletion *del, uint64_t incarnation, sluice_error *err)
{
    uint64_t now = 0;
    PF_TRY(st_ref_read(del->graph, del->request->name, &now, err));
    if (now == incarnation)
        return SLUICE_OK;
    return pf_fail_private(err, SLUICE_WRITE_CONFLICT, "the branch was deleted and made again",
                           "the branch \"%s\" was deleted and made again", del->request->name);
}

static bool is_damage(sluice_status status)
{
    return status == SLUICE_CORRUPT || status == SLUICE_NOT_FOUND || status == SLUICE_UNSUPPORTED_FORMAT;
}

static void note_head(deletion *del, const st_view *head)
{
    del->receipt.commit = head->head;
    del->receipt.generation = head->generation;
    del->receipt.index = head->index;
}

static sluice_status check_head(const deletion *del, sluice_error *err)
{
    if (!pf_id_is_nil(&del->request->if_head) && !pf_id_equal(&del->request->if_head, &del->receipt.commit))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch has another head than its deletion is conditional on");
    return SLUICE_OK;
}

/* Its records are complete and durable before its name goes: others may lead into them. Fills the answer. */
static sluice_status complete_log(deletion *del, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_view *head = NULL;
    sluice_error local = {0};
    sluice_status status = st_graph_log(del->graph, incarnation, &log, &local);
    if (status == SLUICE_OK)
        status = co_make_reliable(del->graph, log, &local);
    if (status == SLUICE_OK)
        status = st_log_sync_mark(log, &local);
    if (status == SLUICE_OK)
        status = st_view_load(del->graph, log, false, &head, &local);
    if (status == SLUICE_OK) {
        note_head(del, head);
        st_view_free(head);
    } else if (!is_damage(status)) {
        if (err)
            *err = local;
        return status;
    }
    return check_head(del, err);
}

static bool is_damaged(const deletion *del, uint64_t incarnation)
{
    st_log *log = NULL;
    return is_damage(st_graph_log(del->graph, incarnation, &log, NULL));
}

static sluice_status put_receipt(void *context, st_control *control, sluice_error *err)
{
    const deletion *del = context;
    /* Whatever made the branch is done. Another deletion of it is only when the name is gone: it may have died before.
     */
    st_control_mark_done(control, del->receipt.incarnation, CO_BRANCH_DELETE);
    return st_control_add_receipt(control, &del->receipt, err);
}

/* Is an intent of this branch still there? A dead owner's is settled outside, a live one's may publish. */
static sluice_status list_again(deletion *del, uint64_t incarnation, sluice_error *err)
{
    const co_overlap overlap = {.incarnation = incarnation};
    bool live = false;
    PF_TRY(co_recovery_is_due(del->graph, &overlap, &del->again, err));
    if (del->again)
        return SLUICE_OK;
    PF_TRY(co_recovery_is_live(del->graph, &overlap, &live, err));
    return live ? pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "a write of this branch is being published") : SLUICE_OK;
}

/* Under the branch gate, the refs lock and the publish lock. */
static sluice_status delete_locked(deletion *del, uint64_t incarnation, sluice_error *err)
{
    PF_TRY(look_up(del, err));
    if (del->done)
        return SLUICE_OK;
    if (!is_damaged(del, incarnation)) /* else nobody can settle what it has: recovery discards it once it is gone */
        PF_TRY(list_again(del, incarnation, err));
    if (del->again)
        return SLUICE_OK;
    if (!PF_SABOTAGE(retirements_believed))
        PF_TRY(co_slots_sync(st_graph_volume(del->graph), err));
    PF_TRY(is_still(del, incarnation, err));
    del->receipt = (st_control_receipt){.operation = del->request->operation,
                                        .request = del->digest,
                                        .kind = CO_BRANCH_DELETE,
                                        .ref = pf_sha256_of(del->request->name, strlen(del->request->name)),
                                        .incarnation = incarnation,
                                        .time_us = pf_wall_us()};
    PF_TRY(complete_log(del, incarnation, err));
    PF_TRY(st_control_update(del->graph, put_receipt, del, del->deadline, err));
    PF_TRY(PF_FAILPOINT(BRANCH_BEFORE_REMOVE, err));
    del->tried = true;
    PF_TRY(st_ref_remove(del->graph, del->request->name, incarnation, err));
    answer(del, false);
    (void)PF_FAILPOINT(BRANCH_AFTER_REMOVE, NULL); /* it is gone: an error here changes nothing */
    return SLUICE_OK;
}

/* The locks of a branch that is damaged may be gone: then nobody can be writing to it. */
static sluice_status open_locks(deletion *del, uint64_t incarnation, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = co_branch_locks(del->graph, incarnation, &del->locks, &local);
    if (status == SLUICE_OK || is_damage(status))
        return SLUICE_OK;
    if (err)
        *err = local;
    return status;
}

static sluice_status take_gate(deletion *del, uint64_t incarnation, sluice_error *err)
{
    const lk_gate_key key = {.kind = LK_GATE_BRANCH, .incarnation = incarnation, .exclusive = true};
    bool orphaned = false;
    if (!del->locks)
        return SLUICE_OK;
    return lk_gates_take(del->locks, NULL, &key, 1, &del->request->operation, del->deadline, &del->gates, &orphaned,
                         err);
}

/* One try at the incarnation that the name holds now. */
static sluice_status try_once(deletion *del, uint64_t incarnation, sluice_error *err)
{
    sluice_status status;
    del->again = false;
    PF_TRY(co_branch_settle(del->graph, incarnation, del->deadline, err));
    PF_GOTO(status, done, open_locks(del, incarnation, err));
    PF_GOTO(status, done, take_gate(del, incarnation, err));
    PF_GOTO(status, done, lk_take(del->graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, del->deadline, err));
    status = del->locks ? lk_take(del->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, del->deadline, err) : SLUICE_OK;
    if (status == SLUICE_OK) {
        status = delete_locked(del, incarnation, err);
        if (del->locks)
            lk_release(del->locks, LK_BYTE_PUBLISH);
    }
    lk_release(del->graph_locks, LK_GRAPH_REFS);
done:
    lk_gates_release(del->gates);
    del->gates = NULL;
    lk_lockfile_close(del->locks);
    del->locks = NULL;
    return status;
}

static sluice_status find_branch(const deletion *del, uint64_t *ret_incarnation, sluice_error *err)
{
    PF_TRY(st_ref_read(del->graph, del->request->name, ret_incarnation, err));
    if (strcmp(del->request->name, ST_MAIN_BRANCH) != 0)
        return SLUICE_OK;
    pf_fail(err, SLUICE_USAGE, "the branch main cannot be deleted");
    pf_hint(err, "to begin anew, make another graph with sluice init");
    return SLUICE_USAGE;
}

/* A look at what would go. */
static sluice_status preview(deletion *del, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_view *head = NULL;
    sluice_error local = {0};
    sluice_status status = st_graph_log(del->graph, incarnation, &log, &local);
    if (status == SLUICE_OK)
        status = st_view_load(del->graph, log, true, &head, &local);
    if (status != SLUICE_OK && !is_damage(status)) {
        if (err)
            *err = local;
        return status;
    }
    del->receipt.incarnation = incarnation;
    if (status == SLUICE_OK)
        note_head(del, head);
    st_view_free(head);
    PF_TRY(check_head(del, err));
    answer(del, false);
    return SLUICE_OK;
}

static sluice_status run(deletion *del, sluice_error *err)
{
    uint64_t incarnation = 0;
    PF_TRY(look_up(del, err));
    if (del->done)
        return SLUICE_OK;
    PF_TRY(find_branch(del, &incarnation, err));
    if (del->request->dry_run)
        return preview(del, incarnation, err);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        sluice_error cause = {0};
        sluice_status status = try_once(del, incarnation, &cause);
        if (status == SLUICE_FENCED && !del->tried) /* somebody else deleted it, and its locks are gone */
            PF_TRY(find_branch(del, &incarnation, err));
        if (status != SLUICE_OK && err)
            *err = cause;
        if (status != SLUICE_OK || !del->again)
            return status;
    }
    return pf_fail(err, SLUICE_RECOVERY_REQUIRED, "intents of dead writers keep coming");
}

sluice_status co_branch_delete(st_graph *graph, const co_branch_request *request, co_branch_receipt *ret_receipt,
                               sluice_error *err)
{
    deletion del = {.graph = graph,
                    .request = request,
                    .deadline = pf_deadline_in_ms(request->wait_ms ? request->wait_ms : CO_WAIT_MS),
                    .answer = ret_receipt};
    sluice_status status;
    PF_ASSERT(!pf_id_is_nil(&request->operation));
    *ret_receipt = (co_branch_receipt){0};
    PF_GOTO(status, done, digest_request(request, &del.digest, err));
    PF_GOTO(status, done, lk_lockfile_open(st_graph_volume(graph), "locks/graph", &del.graph_locks, err));
    status = run(&del, err);
done:
    lk_lockfile_close(del.graph_locks);
    if (status != SLUICE_OK && !del.tried)
        co_branch_not_committed(err);
    if (status != SLUICE_OK && err)
        pf_id_text(&request->operation, err->operation_id);
    return status;
}

static sluice_status follow_locked(deletion *del, uint64_t incarnation, sluice_error *err)
{
    sluice_status status;
    PF_TRY(open_locks(del, incarnation, err));
    status = del->locks ? lk_take(del->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, del->deadline, err) : SLUICE_OK;
    if (status == SLUICE_OK) {
        status = delete_locked(del, incarnation, err);
        if (del->locks)
            lk_release(del->locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(del->locks);
    del->locks = NULL;
    if (status == SLUICE_OK && del->again)
        status =
            pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "a dead writer's intent of the branch waits to be settled");
    return status;
}

sluice_status co_branch_follow(st_graph *graph, lk_lockfile *graph_locks, const ad_effect *follow,
                               const pf_id *operation, pf_deadline deadline, sluice_error *err)
{
    co_branch_receipt receipt = {0};
    co_branch_request request = {.name = follow->branch, .operation = *operation};
    deletion del = {.graph = graph, .request = &request, .deadline = deadline, .answer = &receipt};
    uint64_t now = 0;
    sluice_error gone = {0};
    if (!pf_id_parse(follow->from, &request.if_head))
        return pf_fail(err, SLUICE_CORRUPT, "a follow-up that names no commit");
    PF_TRY(digest_request(&request, &del.digest, err));
    PF_TRY(lk_take(graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, deadline, err));
    sluice_status status = st_ref_read(graph, follow->branch, &now, &gone);
    if (status == SLUICE_NOT_FOUND)
        status = SLUICE_OK;
    else if (status == SLUICE_OK)
        status = follow_locked(&del, follow->incarnation, err);
    else if (err)
        *err = gone;
    lk_release(graph_locks, LK_GRAPH_REFS);
    return status;
}
