/*
 * Stage C, the gates, and stage D, revalidation under them (OW-060 to OW-067).
 *
 * Gates order writers; they prove nothing. Under them the intents are listed once more, since an owner may have died
 * between A and now, in another pool that leaves no mark in our region: then everything goes back to A with no gate
 * held. D judges all that was published since the base against the read set, without the publish lock and without
 * bound, and keeps the verdict.
 */
#include "coord/recovery.h"
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"

sluice_status co_stage_gates(co_run *run, co_next *ret_next, sluice_error *err)
{
    if (run->request.creates) {
        *ret_next = CO_GO_ON;
        PF_TRY(co_new_hold_source(run, err));
        PF_TRY(PF_FAILPOINT(GATES_AFTER, err));
        return co_run_check(run, err);
    }
    bool orphaned = false, due = false;
    co_overlap overlap = {.incarnation = run->incarnation, .tables = run->tables, .table_count = run->table_count};
    PF_TRY(lk_gates_take(run->locks, run->write.executor->gates, run->write.gates, run->write.gate_count,
                         &run->request.operation, co_run_deadline(run), &run->gates, &orphaned, err));
    PF_TRY(co_recovery_is_due(run->write.graph, &overlap, &due, err));
    if (due) {
        *ret_next = CO_AGAIN;
        return SLUICE_OK;
    }
    lk_gates_settle(run->gates);
    *ret_next = CO_GO_ON;
    PF_TRY(PF_FAILPOINT(GATES_AFTER, err));
    return co_run_check(run, err);
}

static sluice_status check_branch(co_run *run, sluice_error *err)
{
    uint64_t incarnation = 0;
    sluice_error read_error = {0};
    sluice_status status = st_ref_read(run->write.graph, run->request.branch, &incarnation, &read_error);
    if (status == SLUICE_NOT_FOUND ||
        (status == SLUICE_OK && incarnation != run->incarnation && !PF_SABOTAGE(incarnation_not_compared)))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted while the write was prepared");
    if (status != SLUICE_OK && err)
        *err = read_error;
    return status;
}

sluice_status co_run_judge(co_run *run, co_next *ret_next, sluice_error *err)
{
    switch (run->finding) {
    case CO_HOLDS:
        *ret_next = CO_GO_ON;
        return SLUICE_OK;
    case CO_MET:
    case CO_MOVED:
        *ret_next = CO_AGAIN_AFTER_CONFLICT;
        return SLUICE_OK;
    case CO_PUBLISHED:
        *ret_next = CO_DONE;
        return co_run_answer_found(run, &run->found, false, err);
    case CO_REPEATED: /* by a twin that was faster: this plan is given up, its answer is the twin's */
        *ret_next = CO_DONE;
        if (run->armed)
            PF_TRY(co_run_give_up(run, err));
        co_run_note_litter(run);
        return co_run_answer_found(run, &run->found, run->request.operation_given, err);
    case CO_MISUSED:
        return co_fail_other_request(err);
    case CO_FOREIGN:
        return pf_fail(err, SLUICE_CORRUPT, "this write's commit id stands in the branch with another content");
    case CO_FAR:
        break;
    }
    return pf_fail(err, SLUICE_INTERNAL, "a finding of arbitration that nobody handles");
}

sluice_status co_stage_revalidate(co_run *run, co_next *ret_next, sluice_error *err)
{
    *ret_next = CO_GO_ON;
    if (run->request.creates) /* the place that it begins at is captured: nothing can have changed */
        return PF_FAILPOINT(REVALIDATE_AFTER, err);
    PF_TRY(check_branch(run, err));
    PF_TRY(st_log_refresh(run->log, err));
    PF_TRY(co_arbitrate(&run->claim, 0, &run->finding, &run->found, err));
    PF_TRY(co_run_judge(run, ret_next, err));
    if (*ret_next != CO_GO_ON)
        return SLUICE_OK;
    return PF_FAILPOINT(REVALIDATE_AFTER, err);
}
