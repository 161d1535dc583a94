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

static sluice_status retire(co_run *run, sluice_error *err)
{
    PF_TRY(PF_FAILPOINT(FINALIZE_BEFORE_RETIRE, err));
    PF_TRY(co_slot_retire(&run->slot, err));
    run->armed = false;
    return PF_FAILPOINT(FINALIZE_AFTER_RETIRE, err);
}

void co_stage_finalize(co_run *run)
{
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
    pf_hint(err, "Run `sluice recover`, then ask again with the same --op-id.");
    return status;
}
