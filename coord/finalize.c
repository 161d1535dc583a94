/*
 * Stage H, and the way out for a write that gives up after arming (OW-074, OW-084).
 *
 * Both end with the intent retired. After success that is best effort: an intent that stays is found published by the
 * next barrier. After a refusal it must happen before the answer, because recovery would publish what the caller was
 * told is not committed; when it cannot, the answer is that the outcome is unknown.
 */
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <stdio.h>

static sluice_status retire(co_run *run, sluice_error *err)
{
    PF_TRY(PF_FAILPOINT(FINALIZE_BEFORE_RETIRE, err));
    PF_TRY(co_slot_retire(&run->slot, err));
    run->armed = false;
    return PF_FAILPOINT(FINALIZE_AFTER_RETIRE, err);
}

/* What the commit said would come after it. Its failure changes nothing of the commit: it is told (M-07). */
static void follow_up(co_run *run)
{
    for (uint32_t i = 0; run->armed && i < run->intent.effect_count; i++) {
        const ad_effect *effect = &run->intent.effects[i];
        sluice_error cause = {0};
        if (effect->kind != AD_EFFECT_FOLLOW)
            continue;
        sluice_status status = PF_FAILPOINT(FINALIZE_BEFORE_FOLLOW, &cause);
        if (status == SLUICE_OK)
            status = co_branch_follow(run->write.graph, run->graph_locks, effect, &run->request.operation,
                                      co_run_deadline(run), &cause);
        run->receipt.followed = status == SLUICE_OK;
        (void)snprintf(run->receipt.not_followed, sizeof run->receipt.not_followed, "%s",
                       status == SLUICE_OK ? "" : cause.message);
    }
}

void co_stage_finalize(co_run *run)
{
    follow_up(run);
    if (run->armed && PF_FAILPOINT(FINALIZE_BEFORE_AUDIT, NULL) == SLUICE_OK)
        (void)retire(run, NULL); /* no user error: the next barrier proves the commit and removes the intent */
    co_slot_release(&run->slot);
}

sluice_status co_run_give_up(co_run *run, sluice_error *err)
{
    const ad_adapter *adapter = run->writer->adapter;
    sluice_error cause = {0};
    sluice_status status = SLUICE_OK;
    if (run->applied)
        status = adapter->undo(run->write.graph, run->intent.effects, run->intent.effect_count, &cause);
    if (status == SLUICE_OK) {
        status = retire(run, &cause);
        if (!run->armed) /* retired; what failed behind it changes nothing */
            status = SLUICE_OK;
    }
    co_slot_release(&run->slot);
    run->applied = false;
    if (status == SLUICE_OK)
        return SLUICE_OK;
    run->armed = false; /* the slot is let go of: it is recovery's now */
    run->committed = run->acknowledged = SLUICE_UNKNOWN;
    pf_error_clear(err);
    if (status == SLUICE_FENCED)
        return pf_fail(err, SLUICE_FENCED, "this process was fenced with a write armed; recovery decides its outcome");
    status = pf_fail(err, SLUICE_RECOVERY_REQUIRED, "a write gave up and could not retire its intent");
    pf_hint(err, "run `sluice recover GRAPH`, then ask again with the same --op-id.");
    return status;
}
