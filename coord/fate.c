/*
 * The fate of a write (see coord/fate.h). Its intent, if it armed one, is finished or given up first; then its receipt
 * is in the branch's log or never will be.
 */
#include "coord/fate.h"
#include "coord/append.h"
#include "coord/branch_impl.h"
#include "coord/recovery.h"
#include "coord/write.h"

#define LOOK_AGAIN_MS 5

static sluice_status is_its_own(void *context, const co_scope *scope, sluice_error *err)
{
    pf_id *operation = context;
    (void)err;
    if (pf_id_equal(&scope->operation, operation))
        *operation = (pf_id){0};
    return SLUICE_OK;
}

/* Until no intent of the operation is left. A process that is killed holds its slot for a moment after it is gone. */
static sluice_status settle(st_graph *graph, const pf_id *operation, pf_deadline deadline, sluice_error *err)
{
    for (;;) {
        pf_id sought = *operation;
        bool unknown = false;
        PF_TRY(co_branch_settle(graph, 0, deadline, err));
        PF_TRY(co_recovery_scopes(graph, is_its_own, &sought, &unknown, err));
        if (!pf_id_is_nil(&sought))
            return SLUICE_OK;
        if (pf_deadline_passed(deadline))
            return pf_fail(err, SLUICE_RECOVERY_REQUIRED, "the intent of the operation is not resolved");
        pf_sleep_until(pf_deadline_in_ms(LOOK_AGAIN_MS).monotonic_ns);
    }
}

/* Nobody is answered on the strength of an end that may still go. */
static sluice_status acknowledge(st_graph *graph, uint64_t incarnation, st_log *log, pf_deadline deadline,
                                 sluice_error *err)
{
    lk_lockfile *locks = NULL;
    PF_TRY(co_branch_locks(graph, incarnation, &locks, err));
    sluice_status status = lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, deadline, err);
    if (status == SLUICE_OK) {
        status = co_make_reliable(graph, log, err);
        lk_release(locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(locks);
    return status;
}

sluice_status co_find_fate(st_graph *graph, const char *branch, const pf_id *operation, co_fate *ret_fate,
                           sluice_error *err)
{
    pf_deadline deadline = pf_deadline_in_ms(CO_WAIT_MS);
    uint64_t incarnation = 0;
    st_log *log = NULL;
    st_receipt receipt = {0};
    sluice_error missing = {0};
    *ret_fate = (co_fate){0};
    PF_TRY(settle(graph, operation, deadline, err));
    sluice_status status = st_ref_read(graph, branch, &incarnation, &missing);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = missing;
        return status;
    }
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    PF_TRY(st_receipt_find(graph, log, operation, &ret_fate->committed, &receipt, err));
    ret_fate->commit = receipt.commit;
    if (ret_fate->committed && receipt.generation > st_log_end(log).acknowledged)
        return acknowledge(graph, incarnation, log, deadline, err);
    return SLUICE_OK;
}
