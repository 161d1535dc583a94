/*
 * Resolving one intent of a dead owner: rows 1 to 6 of DESIGN 8, first match wins. The slot is held throughout.
 *
 * | row | found                                              | done                                          | audited
 * |
 * |-----|----------------------------------------------------|-----------------------------------------------|-------------|
 * | 6   | unknown kind, newer strategy, plan damaged         | quarantined by its scope                      |
 * quarantined | | 2   | the branch incarnation is gone                     | visible effects undone | discarded   | | 1
 * | its commit in the branch's history, equal delta    | its end made acknowledged                     | committed   |
 * | 1   | its commit id there with another delta             | nothing: CORRUPT, everything is kept          | - | | 5
 * | its operation there as another commit              | visible effects undone                        | discarded   |
 * | 3   | armed, effects unconfirmed                         | visible effects undone                        |
 * discarded   | | 4   | confirmed, read set holds, objects exist           | the exact delta published: same commit,
 * actor | committed   | | 5   | confirmed, read set met, or an object gone         | visible effects undone | discarded
 * |
 *
 * Rows 1, 3, 4 and 5 are decided under the branch's publish lock, row 1 first, so that what a publisher finished is
 * never taken for a conflict. An intent that makes its branch has rows of its own (coord/resolve_new.c). Then, still
 * under the slot's lock: undo, audit, retire, in this order; a death in between leaves the intent, and the next
 * recoverer comes to the same row or to row 1. No number is compared, only identities.
 */
#include "coord/append.h"
#include "coord/arbitrate.h"
#include "coord/audit.h"
#include "coord/branch_impl.h"
#include "coord/plan.h"
#include "coord/quarantine.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <stdio.h>
#include <string.h>

static void say(co_recovered *line, const char *classification, const char *action, const char *outcome)
{
    (void)snprintf(line->classification, sizeof line->classification, "%s", classification);
    (void)snprintf(line->action, sizeof line->action, "%s", action);
    (void)snprintf(line->outcome, sizeof line->outcome, "%s", outcome);
}

/* Is the incarnation that the intent was written for still the one behind its branch's name? */
static sluice_status branch_is_there(const co_resolution *how, const co_intent *intent, bool *ret_there,
                                     sluice_error *err)
{
    uint64_t incarnation = 0;
    sluice_error read_error = {0};
    sluice_status status = st_ref_read(how->graph, intent->branch, &incarnation, &read_error);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = read_error;
        return status;
    }
    *ret_there = status == SLUICE_OK && incarnation == intent->scope.incarnation;
    return SLUICE_OK;
}

/* Row 4's publish, or why it cannot be. */
static sluice_status roll_forward(const co_resolution *how, st_log *log, const co_intent *intent, st_delta *delta,
                                  uint64_t row_block, co_verdict *ret_verdict, sluice_error *err)
{
    const co_append_part part = {delta, &intent->delta};
    co_append append = {.graph = how->graph,
                        .log = log,
                        .graph_locks = how->graph_locks,
                        .parts = &part,
                        .count = 1,
                        .row_block = row_block,
                        .deadline = how->deadline};
    sluice_error append_error = {0};
    PF_TRY(PF_FAILPOINT(RECOVER_BEFORE_PUBLISH, err));
    sluice_status status = co_append_deltas(&append, &append_error);
    if (status == SLUICE_OK) {
        *ret_verdict = append.needs_block ? CO_V_BLOCK : CO_V_PUBLISHED_NOW;
        return SLUICE_OK;
    }
    if (append.object_missing) { /* inert effects may always be dropped; nothing of it was ever acknowledged */
        *ret_verdict = CO_V_INVALID;
        return SLUICE_OK;
    }
    if (err)
        *err = append_error;
    return status;
}

/* An owner that gives up undoes what came before its commit, then retires: one that died in between, or whose
 * retirement a power loss took back, left a confirmed intent without its effects. */
static sluice_status effects_stand(const co_resolution *how, const co_intent *intent, bool *ret_stand,
                                   sluice_error *err)
{
    const ad_adapter *adapter = ad_find(intent->kind);
    ad_class class = AD_COMPLETE;
    if (intent->effect_count && adapter->classify)
        PF_TRY(adapter->classify(how->graph, intent->effects, intent->effect_count, &class, err));
    *ret_stand = class == AD_COMPLETE || PF_SABOTAGE(undone_effects_believed);
    return SLUICE_OK;
}

/* Rows 1, 3, 4, 5, under the publish lock. */
static sluice_status decide(const co_resolution *how, st_log *log, const co_intent *intent, uint64_t row_block,
                            co_verdict *ret_verdict, sluice_error *err)
{
    co_read_set reads = {0};
    st_delta delta = {0};
    co_finding finding;
    co_found found;
    bool stand = false;
    co_claim claim = {.graph = how->graph,
                      .log = log,
                      .commit = intent->scope.commit,
                      .operation = intent->scope.operation,
                      .delta = intent->delta,
                      .request = intent->request,
                      .verdict = intent->base_generation,
                      .seen = intent->base_generation};
    PF_TRY(co_make_reliable(how->graph, log, err));
    PF_TRY(co_arbitrate(&claim, 0, &finding, &found, err));
    if (finding == CO_FOREIGN)
        return pf_fail(err, SLUICE_CORRUPT, "an intent's commit id stands in its branch with another content");
    if (finding != CO_HOLDS) {
        *ret_verdict = finding == CO_PUBLISHED ? CO_V_PUBLISHED : CO_V_INVALID;
        return SLUICE_OK;
    }
    if (intent->phase != CO_PHASE_CONFIRMED) {
        *ret_verdict = CO_V_UNCONFIRMED;
        return SLUICE_OK;
    }
    PF_TRY(effects_stand(how, intent, &stand, err));
    if (!stand) {
        *ret_verdict = CO_V_INVALID;
        return SLUICE_OK;
    }
    sluice_error plan_error = {0};
    sluice_status status = co_plan_read(st_graph_volume(how->graph), intent, &reads, &delta, &plan_error);
    if (status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT) {
        *ret_verdict = CO_V_UNREADABLE;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = plan_error;
        return status;
    }
    claim.reads = PF_SABOTAGE(recovery_judges_nothing) ? NULL : &reads;
    claim.verdict = intent->base_generation;
    PF_GOTO(status, done, co_arbitrate(&claim, 0, &finding, &found, err));
    if (finding == CO_HOLDS)
        status = roll_forward(how, log, intent, &delta, row_block, ret_verdict, err);
    else
        *ret_verdict = CO_V_INVALID;
done:
    co_read_set_free(&reads);
    st_delta_free(&delta);
    return status;
}

static sluice_status judge_there(const co_resolution *how, const co_intent *intent, co_verdict *ret_verdict,
                                 sluice_error *err)
{
    char folder[64], path[96];
    bool there = false;
    st_log *log = NULL;
    lk_lockfile *locks = NULL;
    uint64_t row_block = 0;
    st_branch_folder(intent->scope.incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/locks", folder);
    PF_TRY(lk_lockfile_open(st_graph_volume(how->graph), path, &locks, err));
    sluice_status status;
    PF_GOTO(status, done, st_graph_log(how->graph, intent->scope.incarnation, &log, err));
    do {
        *ret_verdict = CO_V_GONE;
        PF_GOTO(status, done, lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, how->deadline, err));
        status = branch_is_there(how, intent, &there, err); /* again: it is deleted under this lock */
        if (status == SLUICE_OK && there)
            status = decide(how, log, intent, row_block, ret_verdict, err);
        lk_release(locks, LK_BYTE_PUBLISH);
        if (status == SLUICE_OK && *ret_verdict == CO_V_BLOCK)
            status = st_control_take_row_block(how->graph, how->deadline, &row_block, err);
    } while (status == SLUICE_OK && *ret_verdict == CO_V_BLOCK);
done:
    lk_lockfile_close(locks);
    return status;
}

static sluice_status judge(const co_resolution *how, const co_intent *intent, co_verdict *ret_verdict,
                           sluice_error *err)
{
    sluice_error cause = {0};
    bool there = false;
    PF_TRY(branch_is_there(how, intent, &there, err));
    *ret_verdict = CO_V_GONE;
    if (!there)
        return SLUICE_OK;
    sluice_status status = judge_there(how, intent, ret_verdict, &cause);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    if (branch_is_there(how, intent, &there, NULL) == SLUICE_OK && !there) { /* deleted meanwhile, perhaps collected */
        *ret_verdict = CO_V_GONE;
        return SLUICE_OK;
    }
    if (err)
        *err = cause;
    return status;
}

static sluice_status audit_and_retire(const co_resolution *how, co_slot *slot, const co_intent *intent,
                                      const co_recovered *line, co_outcome outcome, sluice_error *err)
{
    co_audit_row row = {.operation = intent->scope.operation,
                        .commit = intent->scope.commit,
                        .outcome = outcome,
                        .time_us = pf_wall_us()};
    (void)snprintf(row.kind, sizeof row.kind, "%s", intent->kind);
    (void)snprintf(row.classification, sizeof row.classification, "%s", line->classification);
    if (PF_SABOTAGE(retired_before_audit))
        PF_TRY(co_slot_retire(slot, err));
    PF_TRY(PF_FAILPOINT(RECOVER_BEFORE_AUDIT, err));
    PF_TRY(co_audit_write(how->graph, how->graph_locks, &row, how->deadline, err));
    PF_TRY(PF_FAILPOINT(RECOVER_AFTER_AUDIT, err));
    if (outcome == CO_OUTCOME_QUARANTINED)
        PF_TRY(co_quarantine_put(how->graph, how->graph_locks, slot, true, &intent->scope, how->deadline, err));
    else
        PF_TRY(co_slot_retire(slot, err));
    return PF_FAILPOINT(RECOVER_AFTER_RETIRE, err);
}

/* What the commit said would come after it, if what it meant is still as it was (L-042). Only what may end well the
 * next time leaves the intent. */
static sluice_status follow_up(const co_resolution *how, const co_intent *intent, sluice_error *err)
{
    for (uint32_t i = 0; i < intent->effect_count; i++) {
        sluice_error cause = {0};
        if (intent->effects[i].kind != AD_EFFECT_FOLLOW)
            continue;
        sluice_status status = co_branch_follow(how->graph, how->graph_locks, &intent->effects[i],
                                                &intent->scope.operation, how->deadline, &cause);
        if (status != SLUICE_IO && status != SLUICE_NO_SPACE && status != SLUICE_QUOTA && status != SLUICE_FENCED)
            continue;
        if (err)
            *err = cause;
        return status;
    }
    return SLUICE_OK;
}

sluice_status co_resolve(const co_resolution *how, co_slot *slot, const co_intent *intent, co_recovered *line,
                         sluice_error *err)
{
    const ad_adapter *adapter = ad_find(intent->kind);
    co_verdict verdict = CO_V_UNREADABLE;
    co_outcome outcome = CO_OUTCOME_DISCARDED;
    say(line, "unknown", "none", "pending");
    bool understood = adapter && intent->version <= adapter->version && (intent->effect_count == 0 || adapter->undo);
    if (understood && co_intent_made_ref(intent))
        PF_TRY(co_judge_new(how, intent, &verdict, err));
    else if (understood)
        PF_TRY(judge(how, intent, &verdict, err));
    switch (verdict) {
    case CO_V_PUBLISHED:
        say(line, "published", "retire", "pending");
        outcome = CO_OUTCOME_COMMITTED;
        break;
    case CO_V_PUBLISHED_NOW:
        say(line, "roll-forward", "publish", "pending");
        outcome = CO_OUTCOME_COMMITTED;
        break;
    case CO_V_GONE:
        say(line, "branch-gone", intent->effect_count ? "undo" : "discard", "pending");
        break;
    case CO_V_UNCONFIRMED:
        say(line, "unconfirmed", intent->effect_count ? "undo" : "discard", "pending");
        break;
    case CO_V_INVALID:
        say(line, "invalid", intent->effect_count ? "undo" : "discard", "pending");
        break;
    case CO_V_UNREADABLE:
        say(line, "quarantined", "quarantine", "pending");
        outcome = CO_OUTCOME_QUARANTINED;
        break;
    case CO_V_BLOCK:
        return pf_fail(err, SLUICE_INTERNAL, "an intent was not decided");
    }
    if (outcome == CO_OUTCOME_DISCARDED && intent->effect_count && !PF_SABOTAGE(effects_not_undone))
        PF_TRY(adapter->undo(how->graph, intent->effects, intent->effect_count, err));
    if (outcome == CO_OUTCOME_COMMITTED)
        PF_TRY(follow_up(how, intent, err));
    PF_TRY(audit_and_retire(how, slot, intent, line, outcome, err));
    (void)snprintf(line->outcome, sizeof line->outcome, "%s", outcome == CO_OUTCOME_QUARANTINED ? "kept" : "resolved");
    return SLUICE_OK;
}
