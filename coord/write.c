/*
 * The driver of the write protocol: stages A to H in order, restarts with a budget, and the error envelope
 * (coord/write.h).
 *
 * A stage either goes on, sends the write back to A, or is done. Whatever ends it, the error says where it stood and
 * what is known about the commit; `committed` is false until stage G's append was tried, and unknown only when the log
 * could not be read again, or when an armed intent is left to recovery.
 */
#include "coord/append.h"
#include "coord/epoch.h"
#include "coord/events.h"
#include "coord/kept_files.h"
#include "coord/recovery.h"
#include "coord/run.h"
#include "locks/line.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/tally.h"
#include <stdio.h>
#include <stdlib.h>

pf_deadline co_run_deadline(const co_run *run)
{
    return pf_deadline_in_ms(run->request.wait_ms ? run->request.wait_ms : CO_WAIT_MS);
}

void co_run_enter(co_run *run, sluice_phase phase)
{
    if (run->phase == phase)
        return;
    if (run->phase != SLUICE_PHASE_NONE)
        pf_tally_since((pf_series)(PF_SERIES_PHASE + (int)run->phase), run->phase_since);
    run->phase = phase;
    run->phase_since = pf_tally_clock();
    pf_tally_place(phase);
}

sluice_status co_run_check(co_run *run, sluice_error *err)
{
    const wk_executor *executor = run->write.executor;
    if (executor->allowed && !executor->allowed(executor->context))
        return pf_fail(err, SLUICE_FENCED, "this process was fenced");
    if (executor->cancelled && executor->cancelled(executor->context))
        return pf_fail(err, SLUICE_CANCELLED, "cancelled before it was armed; nothing has changed");
    return SLUICE_OK;
}

void co_run_note_litter(co_run *run)
{
    if (run->write.attempt)
        run->write.attempt->litter = true;
}

sluice_status co_fail_other_request(sluice_error *err)
{
    pf_fail(err, SLUICE_IDEMPOTENCY_CONFLICT, "this operation id was used for another request");
    pf_hint(err, "that one stands; give this one another id, or none");
    return SLUICE_IDEMPOTENCY_CONFLICT;
}

void co_run_drop_plan(co_run *run)
{
    lk_gates_release(run->gates);
    run->gates = NULL;
    lk_gates_release(run->source.gates);
    run->source.gates = NULL;
    lk_lockfile_close(run->source.locks);
    run->source.locks = NULL;
    while (run->folder_count > 0)
        lk_release(run->locks, LK_FOLDER + run->folders[--run->folder_count]);
    st_delta_free(&run->write.delta);
    run->write.delta = (st_delta){0};
    co_read_set_free(&run->write.reads);
    run->write.reads = (co_read_set){0};
    free(run->write.gates);
    run->write.gates = NULL;
    run->write.gate_count = 0;
    free(run->write.effects);
    run->write.effects = NULL;
    run->write.effect_count = 0;
    free(run->tables);
    run->tables = NULL;
    run->table_count = 0;
    co_intent_free(&run->intent);
    run->intent = (co_intent){0};
    st_snapshot_close(run->write.base);
    run->write.base = NULL;
}

sluice_status co_run_answer_found(co_run *run, const co_found *found, bool repeated, sluice_error *err)
{
    st_log_position end = st_log_end(run->log);
    if (found->generation >
        end.acknowledged) { /* nobody is answered on the strength of an end that may still go (§2) */
        run->committed = run->acknowledged = SLUICE_UNKNOWN; /* if this fails */
        PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
        sluice_status status = co_make_reliable(run->write.graph, run->log, err);
        lk_release(run->locks, LK_BYTE_PUBLISH);
        PF_TRY(status);
        run->committed = run->acknowledged = SLUICE_TRUE;
    }
    run->receipt = (co_receipt){.committed = true,
                                .repeated = repeated,
                                .commit = found->commit,
                                .operation = run->request.operation,
                                .incarnation = run->incarnation,
                                .generation = found->generation,
                                .index = found->index,
                                .time_us = found->time_us,
                                .inserted = found->inserted,
                                .updated = found->updated,
                                .deleted = found->deleted,
                                .acknowledged = true,
                                .restarts = run->restarts};
    run->done = true;
    return SLUICE_OK;
}

static sluice_status check_run(void *context, sluice_error *err)
{
    return co_run_check(context, err);
}

/* Single and queued writers take the admission lock alone, queued ones in turn; optimistic ones share it (DESIGN 10).
 */
static sluice_status admit(co_run *run, sluice_error *err)
{
    st_write_mode mode = st_graph_mode(run->write.graph);
    sluice_error busy = {0};
    if (run->admitted || run->request.creates) /* nobody else writes to a branch that is not there */
        return SLUICE_OK;
    pf_lock_mode lock = mode == ST_MODE_OPTIMISTIC ? PF_LOCK_SHARED : PF_LOCK_EXCLUSIVE;
    pf_deadline deadline = mode == ST_MODE_SINGLE ? PF_AT_ONCE : co_run_deadline(run);
    sluice_status status = mode == ST_MODE_QUEUED
                               ? lk_line_take(run->locks, LK_BYTE_ADMISSION, deadline, check_run, run, &busy)
                               : lk_take(run->locks, LK_BYTE_ADMISSION, lock, deadline, &busy);
    run->admitted = status == SLUICE_OK;
    if (status == SLUICE_LIVE_WRITER_CONTENTION && mode == ST_MODE_SINGLE)
        return pf_fail(err, SLUICE_WRITER_BUSY, "another writer is at work on this branch");
    if (status != SLUICE_OK && err)
        *err = busy;
    return status;
}

/* The incarnation behind the branch's name. A load that was to make the branch may have died before its name stood:
 * recovery makes it then. */
static sluice_status find_incarnation(co_run *run, uint64_t *ret_incarnation, sluice_error *err)
{
    sluice_error missing = {0};
    sluice_status status = st_ref_read(run->write.graph, run->request.branch, ret_incarnation, &missing);
    if (status == SLUICE_NOT_FOUND) {
        PF_TRY(co_branch_settle(run->write.graph, 0, co_run_deadline(run), err));
        return st_ref_read(run->write.graph, run->request.branch, ret_incarnation, err);
    }
    if (status != SLUICE_OK && err)
        *err = missing;
    return status;
}

static sluice_status open_branch(co_run *run, uint64_t incarnation, sluice_error *err)
{
    char folder[64], path[96];
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/locks", folder);
    PF_TRY(co_locks_open(run->write.graph, path, &run->locks, err));
    return st_graph_log(run->write.graph, incarnation, &run->log, err);
}

/* The branch as it is called now: its incarnation, log and lock file. One that was deleted since its name was read may
 * be collected under our eyes: what is missing then says nothing. */
static sluice_status find_branch(co_run *run, sluice_error *err)
{
    for (;;) {
        uint64_t incarnation = 0, now = 0;
        sluice_error failed = {0};
        PF_TRY(find_incarnation(run, &incarnation, err));
        if (run->incarnation == incarnation)
            return SLUICE_OK;
        if (run->incarnation) /* made again under the same name: a write never moves to another branch by itself (B-01)
                               */
            return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted and made again");
        sluice_status status = open_branch(run, incarnation, &failed);
        if (status == SLUICE_OK) {
            run->incarnation = incarnation;
            return SLUICE_OK;
        }
        co_locks_close(run->write.graph, run->locks);
        run->locks = NULL;
        run->log = NULL;
        sluice_status name = st_ref_read(run->write.graph, run->request.branch, &now, NULL);
        if (name == SLUICE_NOT_FOUND || (name == SLUICE_OK && now != incarnation))
            continue;
        if (err)
            *err = failed;
        return status;
    }
}

/* One pass from A to G. */
static sluice_status pass(co_run *run, co_next *ret_next, sluice_error *err)
{
    co_run_enter(run, SLUICE_PHASE_BARRIER);
    *ret_next = CO_GO_ON;
    PF_TRY(run->request.creates ? co_new_find_source(run, err) : find_branch(run, err));
    PF_TRY(admit(run, err));
    PF_TRY(co_stage_barrier(run, err));
    co_run_enter(run, SLUICE_PHASE_PREPARE);
    PF_TRY(co_stage_prepare(run, ret_next, err));
    if (*ret_next != CO_GO_ON)
        return SLUICE_OK;
    co_run_enter(run, SLUICE_PHASE_GATES);
    PF_TRY(co_stage_gates(run, ret_next, err));
    if (*ret_next != CO_GO_ON)
        return SLUICE_OK;
    co_run_enter(run, SLUICE_PHASE_REVALIDATE);
    PF_TRY(co_stage_revalidate(run, ret_next, err));
    if (*ret_next != CO_GO_ON)
        return SLUICE_OK;
    co_run_enter(run, SLUICE_PHASE_ARM);
    PF_TRY(co_stage_arm(run, err));
    co_run_enter(run, SLUICE_PHASE_PUBLISH);
    if (run->request.creates) {
        *ret_next = CO_DONE;
        return co_new_publish(run, err);
    }
    return co_stage_publish(run, ret_next, err);
}

sluice_status co_run_fail_ends(const co_found *found, sluice_error *err)
{
    sluice_status status = pf_fail(err, SLUICE_WRITE_CONFLICT, "another commit changed what this write relies on");
    pf_details(err, "{\"table\":\"%llu\",\"read\":\"%s\"}", (unsigned long long)found->table,
               co_read_kind_name(found->kind));
    pf_hint(err, "read again what it goes by, and decide anew");
    return status;
}

/* A plan is given up: what would have ended the write stays, to be judged up to the next pin. */
static sluice_status keep_ends(co_run *run, sluice_error *err)
{
    if (!run->write.base)
        return SLUICE_OK;
    run->left_from = st_snapshot_view(run->write.base)->generation;
    co_read_set_free(&run->left);
    return co_read_set_take_ends(&run->write.reads, &run->left, err);
}

/* The budget of a restart, and the typed end of it. */
static sluice_status count_restart(co_run *run, sluice_error *err)
{
    const ad_adapter *adapter = run->writer->adapter;
    bool met = run->finding == CO_MET;
    if (met && co_read_kind_ends(run->found.kind))
        return co_run_fail_ends(&run->found, err);
    if (!pf_id_is_nil(&run->request.if_head) && run->finding == CO_MOVED)
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch has another head than the write is conditional on");
    if (!adapter->replays || run->writer->once)
        return pf_fail(err, met ? SLUICE_WRITE_CONFLICT : SLUICE_READ_SET_CHANGED,
                       "another commit changed what this write read");
    if (run->restarts >= adapter->retry_budget) {
        sluice_status status = pf_fail(err, SLUICE_REBASE_EXHAUSTED, "gave up after %u restarts", run->restarts);
        pf_details(err, "{\"attempts\":%u,\"table\":\"%llu\",\"read\":\"%s\"}", run->restarts + 1,
                   (unsigned long long)(met ? run->found.table : 0),
                   met ? co_read_kind_name(run->found.kind) : "schema");
        return status;
    }
    run->restarts++;
    pf_tally_add(PF_TALLY_WRITE_RESTARTS, 1);
    co_event_restart(run->write.graph, &run->request, run->restarts);
    return SLUICE_OK;
}

static sluice_status drive(co_run *run, sluice_error *err)
{
    for (;;) {
        co_next next = CO_GO_ON;
        PF_TRY(pass(run, &next, err));
        if (next == CO_GO_ON || next == CO_DONE)
            return SLUICE_OK;
        if (run->armed)
            PF_TRY(co_run_give_up(run, err));
        PF_TRY(keep_ends(run, err));
        co_run_drop_plan(run);
        co_run_note_litter(run);
        if (next == CO_AGAIN_AFTER_CONFLICT)
            PF_TRY(count_restart(run, err));
        else if (++run->barriers > CO_BARRIERS_MAX)
            return pf_fail(err, SLUICE_RECOVERY_REQUIRED, "intents of dead writers keep coming");
    }
}

static sluice_status is_of_operation(void *context, const co_scope *scope, sluice_error *err)
{
    co_run *run = context;
    (void)err;
    if (pf_id_equal(&scope->operation, &run->request.operation))
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
    return SLUICE_OK;
}

/* A log that met an I/O error gets back, when it is healed, the newest record that anyone may have seen. */
static sluice_status healing_may_bring(co_run *run, bool *ret_none, sluice_error *err)
{
    sluice_error suspect = {0};
    sluice_status status = st_log_check_suspect(run->log, &suspect);
    if (status == SLUICE_SUSPECT)
        *ret_none = false;
    else if (status != SLUICE_OK && err)
        *err = suspect;
    return status == SLUICE_SUSPECT ? SLUICE_OK : status;
}

/* Is it known that the operation has no receipt and no intent? When it has one and the request's content is known, the
 * run is done. The intents are listed first: what has left its slot by then has its record in the log. */
static sluice_status look_for_operation(co_run *run, bool *ret_none, sluice_error *err)
{
    st_receipt receipt = {0};
    bool unreadable = false, found = false;
    *ret_none = false;
    PF_TRY(co_recovery_scopes(run->write.graph, is_of_operation, run, &unreadable, err));
    if (unreadable || run->committed != SLUICE_FALSE)
        return SLUICE_OK;
    if (co_run_request_known(run)) {
        sluice_error look_error = {0};
        sluice_status status = co_run_look_up(run, &look_error);
        if (status == SLUICE_ALREADY_EXISTS && run->request.creates) /* a branch of that name, and no receipt */
            status = SLUICE_OK;
        if (status != SLUICE_OK && err)
            *err = look_error;
        *ret_none = status == SLUICE_OK && !run->done;
        return status == SLUICE_OK && run->log && !run->request.creates ? healing_may_bring(run, ret_none, err)
                                                                        : status;
    }
    if (run->request.creates) { /* its log is the source's: the receipt is in control/ */
        st_control_receipt made;
        PF_TRY(co_receipt_look_up(run->write.graph, &run->request.operation, false, NULL, run->request.branch, &found,
                                  &made, err));
        *ret_none = !found;
        return SLUICE_OK;
    }
    PF_TRY(st_log_refresh(run->log, err));
    PF_TRY(st_receipt_find(run->write.graph, run->log, &run->request.operation, &found, &receipt, err));
    *ret_none = !found && !receipt.expired;
    return healing_may_bring(run, ret_none, err);
}

/* A write that failed (the branch is busy, an intent's owner hangs, a call fails, ...) may have been asked for before,
 * by somebody who died without an answer, or by a twin who lives and published after this one looked: what became of
 * that is looked for now, with nothing armed here any more. Its receipt is the answer; where that cannot be told,
 * nobody knows whether it is committed. */
static sluice_status look_behind_failure(co_run *run, sluice_status failed, sluice_error *err)
{
    sluice_error look_error = {0};
    bool none = false;
    if (!run->request.operation_given || run->committed != SLUICE_FALSE)
        return failed;
    if (failed == SLUICE_NOT_FOUND && !run->log && !run->request.creates) /* no such branch */
        return failed;
    sluice_status status =
        run->log || run->request.creates ? look_for_operation(run, &none, &look_error) : SLUICE_RECOVERY_REQUIRED;
    if (run->done) {
        pf_error_clear(err);
        return SLUICE_OK;
    }
    if (status == SLUICE_IDEMPOTENCY_CONFLICT) {
        if (err)
            *err = look_error;
        return status;
    }
    if (!none)
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
    return failed;
}

/* What is armed is given up; then what the operation's answer is. */
static sluice_status end_failed(co_run *run, sluice_status status, sluice_error *err)
{
    if (run->armed && run->committed == SLUICE_FALSE) {
        sluice_status left = co_run_give_up(run, err);
        status = left == SLUICE_OK ? status : left;
    }
    co_run_note_litter(run);
    return look_behind_failure(run, status, err);
}

static void fill_envelope(co_run *run, sluice_status status, sluice_error *err)
{
    if (!err)
        return;
    err->code = status;
    err->phase = run->phase;
    err->committed = run->committed;
    err->acknowledged = run->acknowledged;
    pf_id_text(&run->request.operation, err->operation_id);
    if (run->committed != SLUICE_FALSE)
        pf_id_text(&run->receipt.commit, err->commit_id);
}

sluice_status co_write_run(st_graph *graph, const co_request *request, co_attempt *attempt, wk_executor *executor,
                           const co_writer *writer, co_receipt *ret_receipt, sluice_error *err)
{
    co_run run = {.request = *request, .writer = writer, .volume = st_graph_volume(graph)};
    int64_t began = pf_monotonic_ns();
    PF_ASSERT(!pf_id_is_nil(&request->operation));
    run.write = (co_write){.graph = graph, .request = &run.request, .executor = executor, .attempt = attempt};
    if (!run.request.branch)
        run.request.branch = "main";
    if (executor->allowed)
        pf_volume_set_fence(run.volume, executor->allowed, executor->context);
    /* Staged names carry the plan's number; a conductor that takes over from a dead one must not meet its names. */
    run.write.plan_number = (uint32_t)pf_random_u64() & 0x7fffff00u;

    sluice_status status = co_locks_open(graph, "locks/graph", &run.graph_locks, err);
    if (status == SLUICE_OK)
        status = co_epochs_void(graph, executor, co_run_deadline(&run), err);
    if (status == SLUICE_OK)
        status = drive(&run, err);
    if (status != SLUICE_OK)
        status = end_failed(&run, status, err);
    if (status == SLUICE_OK) {
        co_run_enter(&run, SLUICE_PHASE_FINALIZE);
        co_stage_finalize(&run);
        *ret_receipt = run.receipt;
        if (run.receipt.committed)
            co_event_commit(graph, writer->adapter->kind, &run.receipt, began);
    } else {
        if (status != SLUICE_FENCED && run.committed == SLUICE_FALSE && executor->allowed &&
            !executor->allowed(executor->context)) { /* whatever failed, failed because of that */
            pf_error_clear(err);
            status = pf_fail(err, SLUICE_FENCED, "this process was fenced");
        }
        fill_envelope(&run, status, err);
        pf_tally_failure(status);
        co_event_failure(graph, &run.request, writer->adapter->kind, status, run.phase, run.committed);
    }
    co_run_enter(&run, SLUICE_PHASE_NONE);
    if (run.write.attempt && (run.armed || run.committed == SLUICE_UNKNOWN))
        run.write.attempt->uncertain = true;
    co_slot_release(&run.slot);
    co_run_drop_plan(&run);
    co_read_set_free(&run.left);
    if (run.write.attempt == &run.own)
        (void)co_attempt_finish(graph, &run.own, NULL); /* what it cannot remove is collection's */
    if (run.folds.litter && !run.armed && run.committed != SLUICE_UNKNOWN)
        (void)co_attempt_forget(graph, &run.folds, NULL); /* likewise */
    co_locks_close(graph, run.locks);                     /* and with it admission */
    co_locks_close(graph, run.graph_locks);
    co_source_close(&run.source);
    return status;
}

void co_write_not_begun(st_graph *graph, const co_request *request, sluice_error *err)
{
    co_run run = {.request = *request, .volume = st_graph_volume(graph)};
    uint64_t incarnation = 0;
    bool none = false;
    if (err->operation_id[0] == '\0')
        pf_id_text(&request->operation, err->operation_id);
    else
        return; /* of a write that began */
    if (!request->operation_given || err->committed != SLUICE_FALSE)
        return;
    run.write = (co_write){.graph = graph, .request = &run.request};
    if (!request->creates) {
        sluice_status status = st_ref_read(graph, request->branch ? request->branch : "main", &incarnation, NULL);
        if (status == SLUICE_NOT_FOUND)
            return; /* no such branch, nor a commit of it */
        if (status == SLUICE_OK)
            (void)st_graph_log(graph, incarnation, &run.log, NULL);
    }
    if (run.log || request->creates)
        (void)look_for_operation(&run, &none, NULL);
    if (!none)
        err->committed = err->acknowledged = SLUICE_UNKNOWN;
}
