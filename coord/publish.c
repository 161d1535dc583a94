/*
 * Stage G: the publish (OW-077 to OW-083).
 *
 * One critical section of the branch's publish lock: read the branch's end anew, settle it, look for my own commit and
 * operation, judge what came since D, check that everything named exists, append one record and flush it. What takes
 * long (more to judge than the horizon, a new block of row ids) is done outside and the section is entered again.
 */
#include "coord/append.h"
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"

static sluice_status check_identity(co_run *run, sluice_error *err)
{
    uint64_t incarnation = 0;
    PF_TRY(pf_volume_check_identity(run->volume, err));
    sluice_error read_error = {0};
    sluice_status status = st_ref_read(run->write.graph, run->request.branch, &incarnation, &read_error);
    if (status == SLUICE_NOT_FOUND || (status == SLUICE_OK && incarnation != run->incarnation))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted while the write was prepared");
    if (status != SLUICE_OK && err)
        *err = read_error;
    return status;
}

/* What the append's outcome says about the commit (DESIGN 10): committed is false only when the chain surely lacks it.
 */
static sluice_status answer_append(co_run *run, const co_append *append, sluice_status status, sluice_error *err)
{
    const st_commit *commit = &run->write.delta.commit;
    run->receipt = (co_receipt){.commit = commit->id,
                                .operation = run->request.operation,
                                .incarnation = run->incarnation,
                                .generation = append->generation,
                                .time_us = commit->time_us,
                                .inserted = commit->inserted,
                                .updated = commit->updated,
                                .deleted = commit->deleted,
                                .restarts = run->restarts};
    switch (append->outcome) {
    case ST_APPEND_ACKNOWLEDGED:
        run->committed = run->acknowledged = SLUICE_TRUE;
        run->receipt.committed = run->receipt.acknowledged = true;
        run->done = true;
        return SLUICE_OK;
    case ST_APPEND_VISIBLE:
        run->committed = SLUICE_TRUE;
        pf_error_clear(err);
        return pf_fail(err, SLUICE_SUSPECT, "the commit is visible, but its last barrier failed");
    case ST_APPEND_UNKNOWN:
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
        pf_error_clear(err);
        return pf_fail(err, SLUICE_CORRUPT, "the branch's log could not be read again after an append failed");
    case ST_APPEND_NOT:
        break;
    }
    PF_ASSERT(status != SLUICE_OK);
    return status;
}

/* Under the publish lock. *ret_block: a row block is needed first. */
static sluice_status publish_once(co_run *run, co_next *ret_next, bool *ret_block, sluice_error *err)
{
    PF_TRY(PF_FAILPOINT(PUBLISH_AFTER_LOCK, err));
    PF_TRY(check_identity(run, err));
    PF_TRY(co_make_reliable(run->write.graph, run->log, err));
    PF_TRY(co_arbitrate(&run->claim, CO_HORIZON, &run->finding, &run->found, err));
    if (run->finding != CO_HOLDS)
        return SLUICE_OK;
    co_append append = {.graph = run->write.graph,
                        .log = run->log,
                        .graph_locks = run->graph_locks,
                        .delta = &run->write.delta,
                        .digest = &run->digest,
                        .epoch = &run->write.executor->epoch,
                        .row_block = run->row_block,
                        .deadline = co_run_deadline(run)};
    sluice_status status = co_append_delta(&append, err);
    *ret_block = status == SLUICE_OK && append.needs_block;
    if (*ret_block)
        return SLUICE_OK;
    *ret_next = CO_DONE;
    return answer_append(run, &append, status, err);
}

sluice_status co_stage_publish(co_run *run, co_next *ret_next, sluice_error *err)
{
    const wk_executor *executor = run->write.executor;
    for (;;) {
        bool block = false;
        *ret_next = CO_GO_ON;
        run->phase = SLUICE_PHASE_PUBLISH;
        if (executor->allowed && !executor->allowed(executor->context))
            return pf_fail(err, SLUICE_FENCED, "this process was fenced");
        PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
        sluice_status status = publish_once(run, ret_next, &block, err);
        lk_release(run->locks, LK_BYTE_PUBLISH);
        if (status != SLUICE_OK || *ret_next == CO_DONE)
            return status;
        if (block) {
            PF_TRY(st_control_take_row_block(run->write.graph, co_run_deadline(run), &run->row_block, err));
        } else if (run->finding == CO_FAR) {
            run->phase = SLUICE_PHASE_REVALIDATE;
            PF_TRY(co_stage_revalidate(run, ret_next, err));
            if (*ret_next != CO_GO_ON)
                return SLUICE_OK;
        } else {
            return co_run_judge(run, ret_next, err);
        }
    }
}
