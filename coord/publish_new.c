/*
 * A write that makes its branch: what it does instead of the stages that concern a branch that is there (DESIGN 4, D-6;
 * OW-039, OW-058).
 *
 * Its base is a commit of another branch, captured once: that branch may go on, so there is nothing to arbitrate. The
 * branch is built whole, with this commit as its first generation, before its name makes it exist:
 *
 *   the intent is armed, with the ref as its one visible effect    nothing to be seen; undone
 *   folder, log, CURRENT, the record with the commit, synced       nothing to be seen; undone
 *   the intent is confirmed                                        recovery finishes it from here on (resolve_new.c)
 *   receipt in control/                                            likewise
 *   the ref, by exclusive creation                                 the branch, with the commit
 *   the intent is retired
 *
 * From the arming on under the refs lock (below the intent's slot in the order), and from C on under the source's
 * branch gate, shared. A branch of the name that is there ends it, unless this very operation made it.
 */
#include "coord/append.h"
#include "coord/branch_impl.h"
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sluice_status co_new_find_source(co_run *run, sluice_error *err)
{
    st_graph *graph = run->write.graph;
    sluice_error taken = {0};
    bool found = false;
    st_control_receipt receipt;
    PF_TRY(co_branch_settle(graph, 0, co_run_deadline(run), err));
    sluice_status status = co_branch_check_free(graph, run->request.branch, &taken);
    if (status == SLUICE_ALREADY_EXISTS) /* by this operation, perhaps: its content is not known yet */
        PF_TRY(co_receipt_look_up(graph, &run->request.operation, false, NULL, run->request.branch, &found, &receipt,
                                  err));
    if (status != SLUICE_OK && !found) {
        if (err)
            *err = taken;
        return status;
    }
    if (run->incarnation)
        return SLUICE_OK;
    PF_TRY(co_source_find(graph, run->request.from, NULL, &run->source, err));
    PF_TRY(st_graph_log(graph, run->source.incarnation, &run->log, err));
    PF_TRY(co_branch_locks(graph, run->source.incarnation, &run->locks, err));
    run->incarnation = run->source.incarnation;
    return SLUICE_OK;
}

/* How many rows the commit of a receipt has; unknown once the branch is deleted and collected. */
static void count_rows(const co_run *run, co_receipt *receipt)
{
    st_log *log = NULL;
    st_record record = {0};
    st_generation generation = {0};
    if (st_graph_log(run->write.graph, receipt->incarnation, &log, NULL) != SLUICE_OK ||
        st_log_read_lineage(log, receipt->generation, &record, NULL) != SLUICE_OK)
        return;
    if (st_generation_decode(&record, &generation, NULL) == SLUICE_OK && generation.commit_count > 0) {
        receipt->inserted = generation.commits[0].inserted;
        receipt->updated = generation.commits[0].updated;
        receipt->deleted = generation.commits[0].deleted;
    }
    st_generation_free(&generation);
    st_record_free(&record);
}

/* The operation made an empty branch: files without rows. */
static void answer_empty(co_run *run, const st_control_receipt *receipt)
{
    run->receipt = (co_receipt){.repeated = true,
                                .operation = run->request.operation,
                                .incarnation = receipt->incarnation,
                                .acknowledged = true};
    run->done = true;
}

static void answer(co_run *run, const st_control_receipt *receipt, bool repeated)
{
    if (strcmp(receipt->kind, CO_BRANCH_CREATE) == 0) {
        answer_empty(run, receipt);
        return;
    }
    run->receipt = (co_receipt){.committed = true,
                                .repeated = repeated,
                                .commit = receipt->commit,
                                .operation = run->request.operation,
                                .incarnation = receipt->incarnation,
                                .generation = receipt->generation,
                                .time_us = receipt->time_us,
                                .acknowledged = true};
    count_rows(run, &run->receipt);
    if (run->write.attempt) /* what it staged is named there: also by a conductor that died before this one */
        run->write.attempt->incarnation = receipt->incarnation;
    run->committed = run->acknowledged = SLUICE_TRUE;
    run->done = true;
}

sluice_status co_new_look_up(co_run *run, sluice_error *err)
{
    st_control_receipt receipt = {0};
    bool found = false, stands = false;
    PF_TRY(co_receipt_look_up(run->write.graph, &run->request.operation, run->request.operation_given,
                              &run->request.request, run->request.branch, &found, &receipt, err));
    run->looked_up = true;
    if (found)
        PF_TRY(co_receipt_stands(run->write.graph, &receipt, run->request.branch, &stands, err));
    if (stands)
        answer(run, &receipt, run->request.operation_given);
    else
        PF_TRY(co_branch_check_free(run->write.graph, run->request.branch, err));
    return SLUICE_OK;
}

sluice_status co_new_hold_source(co_run *run, sluice_error *err)
{
    return co_source_hold(run->write.graph, &run->source, st_snapshot_view(run->write.base), &run->request.operation,
                          co_run_deadline(run), err);
}

sluice_status co_new_mint(co_run *run, sluice_error *err)
{
    PF_TRY(co_branch_mint(run->write.graph, NULL, &run->made, &run->row_block, co_run_deadline(run), err));
    run->write.effects = calloc(1, sizeof *run->write.effects);
    if (!run->write.effects)
        return pf_fail_memory(err);
    run->write.effect_count = 1;
    run->write.effects[0].kind = AD_EFFECT_CREATE_REF;
    run->write.effects[0].incarnation = run->made;
    (void)snprintf(run->write.effects[0].branch, sizeof run->write.effects[0].branch, "%s", run->request.branch);
    return SLUICE_OK;
}

/* The branch, whole and synced, with the commit. No name leads to it. */
static sluice_status build(co_run *run, sluice_error *err)
{
    st_graph *graph = run->write.graph;
    st_log *log = NULL;
    lk_lockfile *locks = NULL;
    sluice_status status;
    PF_TRY(co_branch_build(graph, st_snapshot_view(run->write.base), run->made, run->row_block, err));
    PF_TRY(PF_FAILPOINT(NEW_BRANCH_AFTER_FOLDER, err));
    PF_TRY(st_graph_log(graph, run->made, &log, err));
    const co_append_part part = {&run->write.delta, &run->digest};
    co_append append = {.graph = graph,
                        .log = log,
                        .graph_locks = run->graph_locks,
                        .parts = &part,
                        .count = 1,
                        .epoch = &run->write.executor->epoch,
                        .deadline = co_run_deadline(run)};
    PF_TRY(co_branch_locks(graph, run->made, &locks, err));
    PF_GOTO(status, done, lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, append.deadline, err));
    status = co_append_deltas(&append, err);
    if (status == SLUICE_OK && append.needs_block) /* more rows than a block has were refused before */
        status = pf_fail(err, SLUICE_INTERNAL, "a new branch's block of row ids does not hold its first commit");
    lk_release(locks, LK_BYTE_PUBLISH);
done:
    lk_lockfile_close(locks);
    if (status != SLUICE_OK && err) /* what the log says of its record is not said of the branch */
        err->committed = err->acknowledged = SLUICE_FALSE;
    return status;
}

static sluice_status give_to_twin(co_run *run, sluice_error *err)
{
    const co_receipt twins = run->receipt;
    run->done = false;
    run->committed = run->acknowledged = SLUICE_FALSE;
    PF_TRY(co_run_give_up(run, err));
    co_run_note_litter(run);
    run->receipt = twins;
    run->committed = run->acknowledged = SLUICE_TRUE;
    run->done = true;
    return SLUICE_OK;
}

/* Under the refs lock, armed. */
static sluice_status publish_locked(co_run *run, sluice_error *err)
{
    st_graph *graph = run->write.graph;
    const ad_adapter *adapter = run->writer->adapter;
    const st_commit *commit = &run->write.delta.commit;
    const st_view *view = st_snapshot_view(run->write.base);
    PF_TRY(co_new_look_up(run, err));
    if (run->done)
        return give_to_twin(run, err);
    PF_TRY(co_source_check(graph, &run->source, err));
    PF_TRY(build(run, err));
    PF_TRY(PF_FAILPOINT(NEW_BRANCH_BEFORE_CONFIRM, err));
    PF_TRY(co_slot_write(&run->slot, &run->intent, CO_PHASE_CONFIRMED, err));
    PF_TRY(PF_FAILPOINT(NEW_BRANCH_AFTER_CONFIRM, err));
    st_control_receipt receipt = {.operation = commit->operation,
                                  .request = commit->request,
                                  .ref = pf_sha256_of(run->request.branch, strlen(run->request.branch)),
                                  .incarnation = run->made,
                                  .commit = commit->id,
                                  .generation = view->generation + 1,
                                  .time_us = commit->time_us};
    (void)snprintf(receipt.kind, sizeof receipt.kind, "%s", adapter->kind);
    PF_TRY(co_receipt_put(graph, &receipt, co_run_deadline(run), err));
    PF_TRY(PF_FAILPOINT(NEW_BRANCH_BEFORE_REF, err));
    co_run_enter(run, SLUICE_PHASE_EFFECTS);
    run->applied = true;
    sluice_error local = {0};
    sluice_status status = adapter->apply(graph, run->intent.effects, run->intent.effect_count, &local);
    if (status != SLUICE_OK) {
        run->committed = local.committed; /* the name may be there without its barrier */
        if (err)
            *err = local;
        if (status == SLUICE_WRITE_CONFLICT) /* a name that is somebody else's */
            return co_branch_check_free(graph, run->request.branch, err);
        return status;
    }
    answer(run, &receipt, false);
    run->receipt.restarts = run->restarts;
    return SLUICE_OK;
}

sluice_status co_new_publish(co_run *run, sluice_error *err)
{
    const wk_executor *executor = run->write.executor;
    if (executor->allowed && !executor->allowed(executor->context))
        return pf_fail(err, SLUICE_FENCED, "this process was fenced");
    PF_TRY(lk_take(run->graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
    sluice_status status = publish_locked(run, err);
    lk_release(run->graph_locks, LK_GRAPH_REFS);
    return status;
}
