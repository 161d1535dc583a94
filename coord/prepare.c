/*
 * Stage A, the recovery barrier, and stage B, prepare (OW-037, OW-047 to OW-059).
 *
 * A ends before the base is pinned. B holds no gate and moves no authority: it pins, looks the operation up before
 * anything is staged, and runs the writer's two halves. The payload half runs once for each schema that it meets; the
 * plan half always runs again.
 */
#include "coord/append.h"
#include "coord/audit.h"
#include "coord/recovery.h"
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HINT_GENERATIONS 64u /* how far back a key conflict looks for the same request */

sluice_status co_stage_barrier(co_run *run, sluice_error *err)
{
    sluice_error suspect_error = {0};
    PF_TRY(PF_FAILPOINT(BARRIER_BEFORE, err));
    PF_TRY(co_run_check(run, err));
    sluice_status status = st_log_check_suspect(run->log, &suspect_error);
    if (status == SLUICE_SUSPECT) {
        PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
        status = co_make_reliable(run->write.graph, run->log, err);
        lk_release(run->locks, LK_BYTE_PUBLISH);
        PF_TRY(status);
    } else if (status != SLUICE_OK) {
        if (err)
            *err = suspect_error;
        return status;
    }
    bool known =
        run->request.tables && run->barriers == 0; /* sent back here: by something that the caller did not name */
    co_overlap overlap = {.incarnation = run->incarnation,
                          .tables = known ? run->request.tables : NULL,
                          .table_count = known ? run->request.table_count : 0,
                          .tables_unknown = !known};
    PF_TRY(co_recover_until(run->write.graph, CO_RECOVER_AUTOMATIC, &overlap, NULL, NULL, co_run_deadline(run), err));
    return PF_FAILPOINT(BARRIER_AFTER, err);
}

/* ---- the operation's first look-up (R-02) ---- */

static sluice_status answer_receipt(co_run *run, const st_receipt *receipt, sluice_error *err)
{
    co_found found = {.generation = receipt->generation,
                      .index = receipt->index,
                      .commit = receipt->commit,
                      .time_us = receipt->time_us};
    st_record record = {0};
    st_generation generation = {0};
    sluice_error read_error = {0};
    sluice_status status = st_log_read_lineage(run->log, receipt->generation, &record, &read_error);
    if (status == SLUICE_OK)
        status = st_generation_decode(&record, &generation, &read_error);
    if (status == SLUICE_OK && receipt->index < generation.commit_count) {
        found.inserted = generation.commits[receipt->index].inserted;
        found.updated = generation.commits[receipt->index].updated;
        found.deleted = generation.commits[receipt->index].deleted;
    }
    st_generation_free(&generation);
    st_record_free(&record);
    if (status != SLUICE_OK &&
        status != SLUICE_NOT_FOUND) { /* a collected generation's counts are gone, its receipt stays */
        if (err)
            *err = read_error;
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
        return status;
    }
    return co_run_answer_found(run, &found, run->request.operation_given, err);
}

/* Looks for the operation in (seen, end], which nobody has looked at yet. */
static sluice_status look_for_twin(co_run *run, uint64_t seen, sluice_error *err)
{
    co_finding finding;
    co_found found;
    co_claim claim = {.graph = run->write.graph,
                      .log = run->log,
                      .operation = run->request.operation,
                      .request = run->request.request,
                      .request_matters = run->request.operation_given,
                      .verdict = seen,
                      .seen = seen};
    PF_TRY(st_log_refresh(run->log, err));
    PF_TRY(co_arbitrate(&claim, 0, &finding, &found, err));
    run->claim.seen = st_log_end(run->log).number;
    if (finding == CO_MISUSED)
        return co_fail_other_request(err);
    return finding == CO_REPEATED ? co_run_answer_found(run, &found, run->request.operation_given, err) : SLUICE_OK;
}

sluice_status co_run_look_up(co_run *run, sluice_error *err)
{
    if (run->request.creates)
        return co_new_look_up(run, err);
    if (run->looked_up) /* expiry is judged at the first look only: what came since stands in the log */
        return look_for_twin(run, run->claim.seen, err);
    st_receipt receipt = {0};
    bool found = false;
    PF_TRY(st_log_refresh(run->log, err));
    uint64_t end = st_log_end(run->log).number;
    if (!PF_SABOTAGE(receipts_not_looked_up))
        PF_TRY(st_receipt_find(run->write.graph, run->log, &run->request.operation, &found, &receipt, err));
    run->looked_up = true;
    run->claim.seen = end;
    if (found && run->request.operation_given && !pf_sha256_equal(&receipt.request, &run->request.request))
        return co_fail_other_request(err);
    if (found)
        return answer_receipt(run, &receipt, err);
    if (receipt.expired && run->request.operation_given) {
        sluice_status status =
            pf_fail(err, SLUICE_IDEMPOTENCY_CONFLICT,
                    "this operation id is older than the receipts kept: expired, its outcome is unknown");
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
        return status;
    }
    return SLUICE_OK;
}

/* For an id of this command's own making, which nobody else can have used before: only a predecessor of this conductor,
 * dead now, may have published under it, and only after the job's first base. */
static sluice_status look_for_predecessor(co_run *run, sluice_error *err)
{
    if (!run->first_known)
        return co_run_look_up(run, err);
    run->looked_up = true;
    run->claim.seen = run->first_base;
    if (!run->write.attempt) /* no predecessor: what comes from here on, arbitration sees */
        return SLUICE_OK;
    return look_for_twin(run, run->first_base, err);
}

/* A change that would have ended the write may have come after the last plan was judged and before this pin. */
static sluice_status judge_left(co_run *run, sluice_error *err)
{
    co_finding finding;
    co_found found;
    co_claim claim = {.graph = run->write.graph,
                      .log = run->log,
                      .reads = &run->left,
                      .verdict = run->left_from,
                      .seen = run->left_from};
    if (run->left.count == 0)
        return SLUICE_OK;
    PF_TRY(st_log_refresh(run->log, err));
    PF_TRY(co_arbitrate(&claim, 0, &finding, &found, err));
    if (finding == CO_MET)
        return co_run_fail_ends(&found, err);
    if (finding != CO_HOLDS)
        return pf_fail(err, SLUICE_WRITE_CONFLICT, "the schema changed under a write that relies on rows");
    co_read_set_free(&run->left);
    return SLUICE_OK;
}

sluice_status co_write_need_attempt(co_write *write, sluice_error *err)
{
    co_run *run = (co_run *)write; /* its first member, as above */
    if (write->attempt)
        return SLUICE_OK;
    PF_TRY(co_attempt_make(write->graph, &run->own, err));
    run->own.incarnation = run->incarnation;
    run->own.since = run->first_base;
    write->attempt = &run->own;
    return SLUICE_OK;
}

bool co_run_request_known(const co_run *run)
{
    static const pf_sha256 none;
    return !pf_sha256_equal(&run->request.request, &none);
}

sluice_status co_write_set_request(co_write *write, const pf_sha256 *request, bool *ret_done, sluice_error *err)
{
    co_run *run = (co_run *)write; /* its first member: the machine hands out no other co_write */
    run->request.request = *request;
    run->write.delta.commit.request = *request;
    *ret_done = false;
    if (run->looked_up)
        return SLUICE_OK;
    PF_TRY(co_run_look_up(run, err));
    *ret_done = run->done;
    return SLUICE_OK;
}

/* ---- base, payload, plan ---- */

/* The first base of the job, also of conductors before this one: nothing that the job staged is named at or before it.
 * It is kept in the attempt's folder, unsynced: a power loss ends the job with everybody in it. */
static sluice_status find_first_base(co_run *run, uint64_t base, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_error create_error = {0};
    char path[80], text[32];
    size_t got = 0;
    int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)base);
    run->first_base = base;
    run->first_known = true;
    if (!run->write.attempt) /* nothing staged, one process: no predecessor */
        return SLUICE_OK;
    (void)snprintf(path, sizeof path, "%s/since", run->write.attempt->folder);
    sluice_status status = pf_create(run->volume, path, &file, &create_error);
    if (status == SLUICE_OK) {
        status = pf_write(file, 0, text, (size_t)length, err);
    } else if (status == SLUICE_ALREADY_EXISTS) {
        co_run_note_litter(run); /* of the predecessor */
        PF_TRY(pf_open(run->volume, path, PF_READ, &file, err));
        status = pf_read(file, 0, text, sizeof text - 1, &got, err);
        text[got] = '\0';
        run->first_known = got > 1 && text[got - 1] == '\n'; /* else its writer died inside */
        run->first_base = run->first_known ? strtoull(text, NULL, 10) : 0;
    } else if (err) {
        *err = create_error;
    }
    (void)pf_close(file, NULL);
    return status;
}

static sluice_status pin(co_run *run, sluice_error *err)
{
    bool creates = run->request.creates;
    PF_TRY(st_snapshot_open(run->write.graph, creates ? run->source.name : run->request.branch,
                            creates ? run->source.at : NULL, &run->write.base, err));
    const st_view *view = st_snapshot_view(run->write.base);
    co_attempt *attempt = run->write.attempt;
    if (view->incarnation != run->incarnation && !creates) /* a place to begin at may be of an ancestor */
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted and made again");
    if (run->pinned)
        return SLUICE_OK;
    PF_TRY(find_first_base(run, view->generation, err));
    run->pinned = true;
    if (attempt) {
        attempt->incarnation = view->incarnation;
        attempt->since = run->first_base;
    }
    return SLUICE_OK;
}

/* The parts of the plan that are the machine's: identities, times, what every read set holds. */
static sluice_status start_plan(co_run *run, sluice_error *err)
{
    const st_view *view = st_snapshot_view(run->write.base);
    st_commit *commit = &run->write.delta.commit;
    const char *actor = run->request.actor ? run->request.actor : "cli";
    commit->id = pf_id_new();
    commit->operation = run->request.operation;
    commit->request = run->request.request;
    commit->minted_us = pf_wall_us();
    commit->epoch = run->write.executor->epoch;
    (void)snprintf(commit->kind, sizeof commit->kind, "%s", run->writer->adapter->kind);
    (void)snprintf(commit->actor, sizeof commit->actor, "%s", actor);
    if (run->request.message && !(commit->message = strdup(run->request.message)))
        return pf_fail_memory(err);
    run->write.arms = run->writer->adapter->arms;
    run->write.lineage = false;
    run->write.delta.schema_identity = view->schema_identity;
    run->write.reads.incarnation = view->incarnation;
    run->write.reads.schema_identity = view->schema_identity;
    run->write.reads.reads_head = !pf_id_is_nil(&run->request.if_head);
    run->write.reads.head = run->request.if_head;
    run->write.plan_number++;
    return SLUICE_OK;
}

static sluice_status check_limits(const co_run *run, sluice_error *err)
{
    if (run->request.message && strlen(run->request.message) > ST_MESSAGE_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a commit's message has at most %u bytes", ST_MESSAGE_MAX);
    if (run->request.actor && strlen(run->request.actor) >= ST_ACTOR_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "an actor has at most %u bytes", ST_ACTOR_MAX - 1);
    return SLUICE_OK;
}

/* The tables that the plan writes or read: what an intent of it overlaps. */
static sluice_status collect_tables(co_run *run, sluice_error *err)
{
    const st_delta *delta = &run->write.delta;
    const co_read_set *reads = &run->write.reads;
    size_t room = (size_t)delta->edit_count + reads->count + run->write.gate_count + 1;
    run->tables = calloc(room, sizeof *run->tables);
    if (!run->tables)
        return pf_fail_memory(err);
    for (size_t i = 0; i < room - 1; i++) {
        uint64_t table = i < delta->edit_count ? delta->edits[i].edit.table
                         : i < (size_t)delta->edit_count + reads->count
                             ? reads->reads[i - delta->edit_count].set.table
                             : run->write.gates[i - delta->edit_count - reads->count].table;
        uint32_t known = 0;
        while (known < run->table_count && run->tables[known] != table)
            known++;
        if (table && known == run->table_count)
            run->tables[run->table_count++] = table;
    }
    return SLUICE_OK;
}

/* A key conflict after an interrupted load is often that load itself, finished by recovery: say so (DECISIONS). */
static void hint_at_twin(co_run *run, sluice_error *err)
{
    if (!err || !co_run_request_known(run) || st_log_refresh(run->log, NULL) != SLUICE_OK)
        return;
    uint64_t end = st_log_end(run->log).number, first = st_log_first(run->log);
    for (uint64_t back = 0; back < HINT_GENERATIONS && end >= first + back; back++) {
        st_record record = {0};
        st_generation generation = {0};
        bool audited = false;
        if (st_log_read(run->log, end - back, &record, NULL) != SLUICE_OK)
            return;
        sluice_status status = st_generation_decode(&record, &generation, NULL);
        for (uint32_t i = 0; status == SLUICE_OK && i < generation.commit_count; i++) {
            const st_commit *commit = &generation.commits[i];
            if (!pf_sha256_equal(&commit->request, &run->request.request))
                continue;
            char id[PF_ID_TEXT];
            pf_id_text(&commit->id, id);
            (void)co_audit_exists(run->write.graph, &commit->operation, CO_OUTCOME_COMMITTED, &audited, NULL);
            pf_hint(err, audited ? "this load was completed by recovery as %s" : "the same request was committed as %s",
                    id);
            back = HINT_GENERATIONS;
        }
        st_generation_free(&generation);
        st_record_free(&record);
    }
}

/* Nothing to do, or nothing to be done: no commit. A conditional write still compares its head (P-16); under the
 * publish lock it cannot move.
 */
static sluice_status nothing_to_do(co_run *run, sluice_error *err)
{
    if (!pf_id_is_nil(&run->request.if_head)) {
        st_view *head = NULL;
        PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
        sluice_status status = co_make_reliable(run->write.graph, run->log, err); /* the answer relies on this head */
        if (status == SLUICE_OK)
            status = st_view_load(run->write.graph, run->log, false, &head, err);
        if (status == SLUICE_OK && !pf_id_equal(&head->head, &run->request.if_head))
            status =
                pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch has another head than the write is conditional on");
        lk_release(run->locks, LK_BYTE_PUBLISH);
        st_view_free(head);
        PF_TRY(status);
    }
    run->receipt = (co_receipt){.operation = run->request.operation,
                                .incarnation = run->incarnation,
                                .acknowledged = true,
                                .restarts = run->restarts};
    if (run->request.dry_run) {
        run->receipt.inserted = run->write.delta.commit.inserted;
        run->receipt.updated = run->write.delta.commit.updated;
        run->receipt.deleted = run->write.delta.commit.deleted;
    }
    run->done = true;
    co_run_note_litter(run);
    return SLUICE_OK;
}

/* The folder of a table, at once or not at all: whoever holds it (an optimize, another fold) merges. */
static bool take_folder(void *context, uint64_t table)
{
    co_run *run = context;
    for (uint32_t i = 0; i < run->folder_count; i++)
        if (run->folders[i] == table)
            return true;
    if (run->folder_count == CO_FOLDERS_MAX ||
        lk_take(run->locks, LK_FOLDER + table, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, NULL) != SLUICE_OK)
        return false;
    run->folders[run->folder_count++] = table;
    return true;
}

/* Where a write without an attempt stages its folds: under an id of their own. No folder keeps collection from them,
 * and none need: G drops a fold that is not whole, and what it names is named before collection looks again. */
static co_attempt *attempt_of_folds(co_run *run)
{
    if (run->write.attempt)
        return run->write.attempt;
    if (pf_id_is_nil(&run->folds.id))
        run->folds = (co_attempt){.id = pf_id_new(), .incarnation = run->incarnation, .since = run->first_base};
    return &run->folds;
}

/* A table with many small edits is folded along with the write; the fold is dropped in G where it does not fit any
 * more. Who may not fold makes no attempt either: while one folds, the others of a pool only go on. */
static sluice_status add_folds(co_run *run, sluice_error *err)
{
    char stem[56], id[PF_ID_TEXT];
    sluice_error gone = {0};
    run->only_folds = false;
    if (!st_delta_wants_folds(st_snapshot_view(run->write.base), &run->write.delta, take_folder, run))
        return SLUICE_OK;
    co_attempt *attempt = attempt_of_folds(run);
    run->only_folds = attempt == &run->folds && !attempt->litter;
    attempt->litter = true;
    pf_id_text(&attempt->id, id);
    (void)snprintf(stem, sizeof stem, "%s-%uf", id, run->write.plan_number);
    sluice_status status = st_delta_add_folds(run->write.graph, st_snapshot_view(run->write.base), &run->write.delta,
                                              stem, take_folder, run, &gone);
    run->fold_count = run->write.delta.fold_count;
    if (status == SLUICE_OK || (status == SLUICE_NOT_FOUND && attempt == &run->folds)) {
        run->only_folds = run->only_folds && status == SLUICE_OK; /* else collection was there: it goes on without */
        return SLUICE_OK;
    }
    if (err)
        *err = gone;
    return status;
}

static sluice_status run_payload(co_run *run, sluice_error *err)
{
    const st_view *view = st_snapshot_view(run->write.base);
    if (run->request.creates && !run->looked_up && (co_run_request_known(run) || !run->request.operation_given))
        PF_TRY(co_run_look_up(run, err));
    else if (run->request.creates)
        (void)0;                                                   /* looked for again under the refs lock */
    else if (run->looked_up && run->claim.seen < view->generation) /* a later base: a twin may stand before it */
        PF_TRY(look_for_twin(run, run->claim.seen, err));
    else if (!run->looked_up && !run->request.operation_given)
        PF_TRY(look_for_predecessor(run, err));
    else if (!run->looked_up && co_run_request_known(run))
        PF_TRY(co_run_look_up(run, err));
    if (run->done || (run->has_payload && pf_sha256_equal(&run->payload_schema, &view->schema_identity)))
        return SLUICE_OK;
    PF_TRY(co_run_check(run, err));
    if (run->writer->payload)
        PF_TRY(run->writer->payload(run->writer->context, &run->write, err));
    run->has_payload = true;
    run->payload_schema = view->schema_identity;
    if (!run->looked_up)
        PF_TRY(co_run_look_up(run, err));
    return SLUICE_OK;
}

/* SLUICE_CHECK_READS=1 in builds with failpoints: what a validator read of the base stands in the read set, or this is
 * a bug of its adapter (OW-024). */
static void assert_reads_said(const co_run *run)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_CHECK_READS");
    uint64_t table = 0;
    st_run_use use = ST_RUN_KEY;
    if (text && strcmp(text, "1") == 0)
        PF_ALWAYS(!co_read_set_misses_probe(&run->write.reads, run->write.base, &table, &use));
#else
    (void)run;
#endif
}

sluice_status co_stage_prepare(co_run *run, co_next *ret_next, sluice_error *err)
{
    PF_TRY(check_limits(run, err));
    PF_TRY(pin(run, err));
    PF_TRY(PF_FAILPOINT(PREPARE_AFTER_PIN, err));
    const st_view *view = st_snapshot_view(run->write.base);
    if (!pf_id_is_nil(&run->request.if_head) && !pf_id_equal(&view->head, &run->request.if_head))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch has another head than the write is conditional on");
    PF_TRY(run_payload(run, err));
    *ret_next = CO_DONE;
    if (run->done)
        return SLUICE_OK;
    PF_TRY(judge_left(run, err));
    PF_TRY(co_run_check(run, err));
    PF_TRY(start_plan(run, err));
    sluice_status status = run->writer->plan(run->writer->context, &run->write, err);
    if (status == SLUICE_KEY_CONFLICT)
        hint_at_twin(run, err);
    PF_TRY(status);
    PF_TRY(PF_FAILPOINT(PREPARE_AFTER_PLAN, err));
    PF_TRY(co_run_check(run, err));
    bool changes = run->write.delta.edit_count || run->write.lineage || st_delta_changes_schema(&run->write.delta);
    if (!changes || run->request.dry_run)
        return nothing_to_do(run, err);
    assert_reads_said(run);
    PF_TRY(add_folds(run, err));
    PF_TRY(collect_tables(run, err));
    run->digest = st_delta_digest(&run->write.delta);
    run->claim = (co_claim){.graph = run->write.graph,
                            .log = run->log,
                            .reads = &run->write.reads,
                            .commit = run->write.delta.commit.id,
                            .operation = run->request.operation,
                            .delta = run->digest,
                            .request = run->request.request,
                            .request_matters = run->request.operation_given,
                            .verdict = view->generation,
                            .seen = run->claim.seen};
    *ret_next = CO_GO_ON;
    return SLUICE_OK;
}
