/* The invariants (invariants.h): those that are seen while actors move, and what recovery has to account for. */
#include "invariants.h"

#include "adapters/adapter.h"
#include "coord/audit.h"
#include "ledger.h"
#include "oracle.h"
#include "platform/check.h"
#include <inttypes.h>
#include <string.h>

/* ---- intents of the dead ---- */

/* Both touch P, or both T: their tables overlap, if they are on one branch. */
static bool overlap(const sim_op *one, const sim_op *two)
{
    const bool rows[2] = {one->kind == SIM_OP_LOAD || one->kind == SIM_OP_UPSERT || one->kind == SIM_OP_OVERWRITE,
                          two->kind == SIM_OP_LOAD || two->kind == SIM_OP_UPSERT || two->kind == SIM_OP_OVERWRITE};
    return one->branch == two->branch &&
           ((rows[0] && rows[1]) || (sim_op_is_toy(one->kind) && sim_op_is_toy(two->kind)));
}

static sluice_status is_resolved(sim_run *run, uint32_t op, bool *ret_resolved, sluice_error *err)
{
    pf_id operation = sim_operation(run, op);
    *ret_resolved = false;
    for (co_outcome outcome = CO_OUTCOME_COMMITTED; outcome <= CO_OUTCOME_QUARANTINED && !*ret_resolved; outcome++)
        PF_TRY(co_audit_exists(run->eye, &operation, outcome, ret_resolved, err));
    return SLUICE_OK;
}

/* No intent of somebody who died before that step, and overlaps, is left. */
static void check_left(sim_run *run, const sim_actor_state *actor, uint64_t step, const char *invariant)
{
    for (uint32_t i = 0; i < run->left_count; i++) {
        const sim_left *left = &run->left[i];
        bool resolved = false;
        if (left->step >= step || !overlap(&run->plan->ops[left->op], &run->plan->ops[actor->op]))
            continue;
        sim_oracle_look(run); /* with an eye that lives */
        bool quiet = run->quiet;
        run->quiet = true;
        if (!run->violation[0] && (is_resolved(run, left->op, &resolved, NULL) != SLUICE_OK || !resolved))
            sim_wrong(run, "%s: operation %u goes on while the intent that operation %u left is unresolved", invariant,
                      actor->op, left->op);
        run->quiet = quiet;
    }
}

void sim_invariants_died(sim_run *run, const sim_actor_state *actor, uint32_t op)
{
    if (actor->armed && run->left_count < SIM_OPS_MAX)
        run->left[run->left_count++] = (sim_left){op, fibers_now(run->fibers)};
}

/* ---- what an actor passes ---- */

static bool writes(sim_kind kind)
{
    return kind <= SIM_OP_SCHEMA || sim_op_is_toy(kind) || kind == SIM_OP_ROW || kind == SIM_OP_BLIND;
}

static void check_planned(sim_run *run, const sim_actor_state *actor, pf_failpoint point)
{
    if (writes(run->plan->ops[actor->op].kind) && !actor->in_barrier && !actor->planned)
        sim_wrong(run, "invariant 4: operation %u comes to %s without a plan since its pin", actor->op,
                  pf_failpoint_name(point));
}

void sim_invariants_at_point(sim_run *run, sim_actor_state *actor, pf_failpoint point)
{
    if (point == PF_FP_BARRIER_BEFORE) {
        actor->barrier_step = fibers_now(run->fibers);
        actor->in_barrier = actor->begun = true;
        actor->armed = actor->arms = false;
    } else if (point == PF_FP_BARRIER_AFTER) {
        actor->in_barrier = false;
    } else if (point == PF_FP_PREPARE_AFTER_PIN) {
        actor->planned = false;
        check_left(run, actor, actor->barrier_step, "invariant 1");
    } else if (point == PF_FP_PREPARE_AFTER_PLAN) {
        actor->planned = true;
        actor->plan_step = fibers_now(run->fibers);
    } else if (point == PF_FP_GATES_AFTER) {
        check_planned(run, actor, point);
    } else if (point == PF_FP_ARM_AFTER) {
        check_planned(run, actor, point);
        actor->armed = actor->arms = true;
    } else if (point == PF_FP_PUBLISH_AFTER_LOCK) {
        check_planned(run, actor, point);
        check_left(run, actor, actor->plan_step, "invariant 8");
    } else if (point == PF_FP_NEW_BRANCH_BEFORE_REF) {
        if (!actor->arms && !actor->in_barrier && run->plan->ops[actor->op].kind == SIM_OP_LOAD_BRANCH)
            sim_wrong(run, "invariant 2: operation %u makes a ref without an intent", actor->op);
    } else if (point == PF_FP_FINALIZE_BEFORE_RETIRE) {
        actor->armed = false;
    }
}

void sim_invariants_at_call(sim_run *run, const sim_actor_state *actor, const char *path)
{
    if (actor->fenced && actor->begun)
        sim_wrong(run, "invariant 8: operation %u changes %s after it was fenced", actor->op, path);
    if (strncmp(path, "cache/from", 10) == 0 && sim_op_is_toy(run->plan->ops[actor->op].kind) && !actor->arms &&
        !actor->in_barrier)
        sim_wrong(run, "invariant 2: operation %u moves %s without an intent", actor->op, path);
}

/* ---- what recovery has decided ---- */

static bool has_commit(const sim_run *run, const pf_id *id)
{
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && pf_id_equal(&run->commits[i].id, id))
            return true;
    return false;
}

static int op_of(const sim_run *run, const pf_id *operation)
{
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        pf_id id = sim_operation(run, i);
        if (pf_id_equal(&id, operation))
            return (int)i;
    }
    return -1;
}

static sluice_status on_audit(void *context, const co_audit_row *row, sluice_error *err)
{
    sim_run *run = context;
    int op = op_of(run, &row->operation);
    (void)err;
    sim_ledger_recovered(run->counts, row->kind, row->classification);
    if (!ad_find(row->kind))
        sim_wrong(run, "invariant 6: recovery met an intent of kind %s", row->kind);
    if (row->outcome == CO_OUTCOME_QUARANTINED)
        sim_wrong(run, "invariant 6: the intent of operation %d was quarantined", op);
    if (row->outcome == CO_OUTCOME_DISCARDED && has_commit(run, &row->commit))
        sim_wrong(run, "invariant 6: the audit says that operation %d was discarded, and its commit is there", op);
    if (op < 0)
        return SLUICE_OK;
    if (row->outcome == CO_OUTCOME_COMMITTED && run->plan->ops[op].branch == 0 &&
        run->plan->ops[op].kind != SIM_OP_LOAD_BRANCH && !has_commit(run, &row->commit))
        sim_wrong(run, "invariant 6: the audit says that operation %d was committed, and it is not there", op);
    if (!run->ops[op].was_unknown && !run->lost && !run->errors && !sim_plan_has_twin(run->plan, (uint32_t)op))
        sim_wrong(run, "invariant 8: the intent of operation %d was taken from a living owner", op);
    return SLUICE_OK;
}

static sluice_status check_audited(sim_run *run, sluice_error *err)
{
    for (uint32_t i = 0; i < run->left_count; i++) {
        bool resolved = false;
        PF_TRY(is_resolved(run, run->left[i].op, &resolved, err));
        if (!resolved)
            sim_wrong(run, "invariant 8: nothing in the audit says what became of operation %u", run->left[i].op);
    }
    return SLUICE_OK;
}

/* ---- effects ---- */

static bool is_there(const sim_run *run, const char *path)
{
    pf_stat stat;
    return pf_stat_path(st_graph_volume(run->eye), path, &stat, NULL) == SLUICE_OK;
}

static bool is_committed(const sim_run *run, uint32_t op)
{
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && run->commits[i].op == (int)op)
            return true;
    return false;
}

static void check_effects(sim_run *run)
{
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        char from[64], to[64];
        bool committed = is_committed(run, i);
        if (!sim_op_is_toy(run->plan->ops[i].kind))
            continue;
        sim_toy_path(i, false, from);
        sim_toy_path(i, true, to);
        if (is_there(run, to) != committed || is_there(run, from) == committed)
            sim_wrong(run, "invariant 2: operation %u is %s, and its effect is %s", i,
                      committed ? "committed" : "not committed",
                      is_there(run, to) ? is_there(run, from) ? "done and not done" : "done" : "not done");
    }
}

/* A branch whose merge was to delete it, and which is as it was then, is gone: unless the client was told otherwise, or
 * it may be another one of that name. */
static sluice_status check_followed(sim_run *run, sluice_error *err)
{
    for (uint32_t i = 0; i < run->commit_count; i++) {
        const sim_commit *commit = &run->commits[i];
        st_snapshot *snapshot = NULL;
        bool again = false;
        if (commit->gone || commit->op < 0 || run->plan->ops[commit->op].kind != SIM_OP_MERGE_DELETE)
            continue;
        const sim_op *op = &run->plan->ops[commit->op];
        for (uint32_t k = 0; k < run->plan->op_count; k++)
            again = again || (run->plan->ops[k].other == op->other && (run->plan->ops[k].kind == SIM_OP_BRANCH_CREATE ||
                                                                       run->plan->ops[k].kind == SIM_OP_LOAD_BRANCH));
        if (again || run->ops[commit->op].not_followed)
            continue;
        sluice_status status = st_snapshot_open(run->eye, sim_branch_name(op->other), NULL, &snapshot, err);
        if (status == SLUICE_NOT_FOUND)
            continue;
        PF_TRY(status);
        if (pf_id_equal(&st_snapshot_view(snapshot)->head, &commit->parents[1]))
            sim_wrong(run, "invariant 8: operation %d is committed, and the branch that it was to delete is there",
                      commit->op);
        st_snapshot_close(snapshot);
    }
    return SLUICE_OK;
}

sluice_status sim_invariants_end(sim_run *run, sluice_error *err)
{
    PF_TRY(co_audit_list(run->eye, on_audit, run, err));
    PF_TRY(check_audited(run, err));
    check_effects(run);
    return check_followed(run, err);
}
