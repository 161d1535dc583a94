/*
 * Resolving the intent of a write that makes its branch (coord/resolve.c has the other rows; OW-058, L-040). Under the
 * slot's lock and the refs lock.
 *
 * | found                                                        | done                                        |
 * audited   |
 * |--------------------------------------------------------------|---------------------------------------------|-----------|
 * | the name holds its incarnation                               | made durable                                |
 * committed | | its receipt says done: the branch was deleted since          | nothing: it stays deleted | committed |
 * | armed: the branch may not be whole                           | nothing to undo; the folder is collected    |
 * discarded | | confirmed, the name holds another incarnation                | somebody else's: the folder is collected
 * | discarded | | confirmed, no such name, its commit stands with equal delta  | receipt, then the ref | committed | |
 * confirmed, no such name, the branch does not hold the commit | quarantined: it was whole once              |
 * quarantined |
 */
#include "coord/append.h"
#include "coord/arbitrate.h"
#include "coord/branch_impl.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <stdio.h>
#include <string.h>

const ad_effect *co_intent_made_ref(const co_intent *intent)
{
    for (uint32_t i = 0; i < intent->effect_count; i++)
        if (intent->effects[i].kind == AD_EFFECT_CREATE_REF &&
            intent->effects[i].incarnation == intent->scope.incarnation)
            return &intent->effects[i];
    return NULL;
}

/* Is the branch whole, with the intent's commit as its first? *ret_commit says when it was made. */
static sluice_status find_commit(const co_resolution *how, const co_intent *intent, bool *ret_whole, int64_t *ret_time,
                                 uint64_t *ret_generation, sluice_error *err)
{
    st_log *log = NULL;
    co_finding finding = CO_HOLDS;
    co_found found = {0};
    lk_lockfile *locks = NULL;
    co_claim claim = {.graph = how->graph,
                      .commit = intent->scope.commit,
                      .operation = intent->scope.operation,
                      .delta = intent->delta,
                      .request = intent->request,
                      .verdict = intent->base_generation,
                      .seen = intent->base_generation};
    *ret_whole = false;
    PF_TRY(st_graph_log(how->graph, intent->scope.incarnation, &log, err));
    claim.log = log;
    PF_TRY(co_branch_locks(how->graph, intent->scope.incarnation, &locks, err));
    sluice_status status = lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, how->deadline, err);
    if (status == SLUICE_OK) {
        status = co_make_reliable(how->graph, log, err);
        lk_release(locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(locks);
    if (status == SLUICE_OK)
        status = co_arbitrate(&claim, 0, &finding, &found, err);
    *ret_whole = status == SLUICE_OK && finding == CO_PUBLISHED;
    *ret_time = found.time_us;
    *ret_generation = found.generation;
    return status;
}

static sluice_status make_ref(const co_resolution *how, const co_intent *intent, const ad_effect *ref, co_verdict *ret,
                              sluice_error *err)
{
    bool whole = false;
    sluice_error local = {0};
    st_control_receipt receipt = {.operation = intent->scope.operation,
                                  .request = intent->request,
                                  .ref = pf_sha256_of(ref->branch, strlen(ref->branch)),
                                  .incarnation = intent->scope.incarnation,
                                  .commit = intent->scope.commit};
    (void)snprintf(receipt.kind, sizeof receipt.kind, "%s", intent->kind);
    sluice_status status = find_commit(how, intent, &whole, &receipt.time_us, &receipt.generation, &local);
    if (status == SLUICE_CORRUPT || status == SLUICE_NOT_FOUND || (status == SLUICE_OK && !whole)) {
        *ret = CO_V_UNREADABLE;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    PF_TRY(PF_FAILPOINT(RECOVER_BEFORE_PUBLISH, err));
    PF_TRY(co_receipt_put(how->graph, &receipt, how->deadline, err));
    PF_TRY(st_ref_create(how->graph, ref->branch, ref->incarnation, err));
    *ret = CO_V_PUBLISHED_NOW;
    return SLUICE_OK;
}

static sluice_status decide(const co_resolution *how, const co_intent *intent, const ad_effect *ref, co_verdict *ret,
                            sluice_error *err)
{
    bool known = false;
    uint64_t holds = 0;
    st_control_receipt receipt = {0};
    sluice_error local = {0};
    PF_TRY(co_receipt_look_up(how->graph, &intent->scope.operation, false, NULL, ref->branch, &known, &receipt, err));
    if (known && receipt.incarnation == ref->incarnation && receipt.done) {
        *ret = CO_V_PUBLISHED;
        return SLUICE_OK;
    }
    sluice_status status = st_ref_read(how->graph, ref->branch, &holds, &local); /* durable, either way */
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = local;
        return status;
    }
    if (status == SLUICE_OK && holds == ref->incarnation)
        *ret = CO_V_PUBLISHED;
    else if (intent->phase != CO_PHASE_CONFIRMED)
        *ret = CO_V_UNCONFIRMED;
    else if (status == SLUICE_OK)
        *ret = CO_V_INVALID;
    else
        return make_ref(how, intent, ref, ret, err);
    return SLUICE_OK;
}

sluice_status co_judge_new(const co_resolution *how, const co_intent *intent, co_verdict *ret_verdict,
                           sluice_error *err)
{
    const ad_effect *ref = co_intent_made_ref(intent);
    if (!ref)
        return pf_fail(err, SLUICE_INTERNAL, "an intent that makes no branch");
    PF_TRY(lk_take(how->graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, how->deadline, err));
    sluice_status status = decide(how, intent, ref, ret_verdict, err);
    lk_release(how->graph_locks, LK_GRAPH_REFS);
    return status;
}
