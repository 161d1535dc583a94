/*
 * The job of a merge (coord/merge.h): one process, one plan at a time.
 *
 * Where the histories met (store/state/ancestry.h) tells what it is: the source's head is in the target's history, then
 * there is nothing to do; the target's head is in the source's, a fast-forward; else both went on. The last two publish
 * one commit with two parents, also when no row changes: so that the next merge begins there. Contents decide nothing
 * of this.
 */
#include "coord/branch_impl.h"
#include "coord/merge_job.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *co_merge_outcome_name(co_merge_outcome outcome)
{
    switch (outcome) {
    case CO_MERGE_UP_TO_DATE:
        return "up-to-date";
    case CO_MERGE_FAST_FORWARD:
        return "fast-forward";
    case CO_MERGE_MERGED:
        return "merged";
    }
    return "unknown";
}

void co_merge_result_free(co_merge_result *result)
{
    mrg_conflicts_drop(result);
}

/* ---- the source ---- */

static void close_side(mrg_side *side)
{
    st_snapshot_close(side->cast);
    st_snapshot_close(side->snapshot);
    *side = (mrg_side){0};
}

/* The incarnation behind the source's name. A load that was to make the branch may have died before its name stood. */
static sluice_status find_source(mrg_job *job, uint64_t *ret_incarnation, sluice_error *err)
{
    sluice_error missing = {0};
    sluice_status status = st_ref_read(job->mut.graph, job->options->source, ret_incarnation, &missing);
    if (status == SLUICE_NOT_FOUND) {
        PF_TRY(co_branch_settle(job->mut.graph, 0, pf_deadline_in_ms(CO_WAIT_MS), err));
        return st_ref_read(job->mut.graph, job->options->source, ret_incarnation, err);
    }
    if (status != SLUICE_OK && err)
        *err = missing;
    return status;
}

/* Captured once: an advancing source is harmless, and one that is made again is another branch. What a dead writer of
 * it had confirmed is part of it, so it is settled first. */
static sluice_status capture_source(mrg_job *job, sluice_error *err)
{
    st_graph *graph = job->mut.graph;
    uint64_t now = 0;
    PF_TRY(find_source(job, &now, err));
    if (job->source.snapshot)
        return now == job->source_incarnation
                   ? SLUICE_OK
                   : pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch to merge was deleted and made again");
    job->source_incarnation = now;
    const co_overlap source = {.incarnation = now};
    PF_TRY(co_recover_until(graph, CO_RECOVER_AUTOMATIC, &source, NULL, NULL, pf_deadline_in_ms(CO_WAIT_MS), err));
    PF_TRY(st_snapshot_open(graph, job->options->source, NULL, &job->source.snapshot, err));
    const st_view *view = st_snapshot_view(job->source.snapshot);
    PF_TRY(co_view_acknowledge(graph, view, pf_deadline_in_ms(CO_WAIT_MS), err));
    job->result->source_head = view->head;
    return st_history_of(graph, view, &job->source_history, err);
}

/* ---- a plan ---- */

static void drop_model(mrg_job *job)
{
    mut_model_free(&job->mut);
    mrg_drop_schema(job);
    mrg_drop_whole(job);
    free(job->by_record);
    job->by_record = NULL;
    job->record_count = job->record_room = 0;
    for (uint32_t i = 0; i < job->base_count; i++)
        close_side(&job->bases[i]);
    job->base_count = 0;
    job->failed = SLUICE_OK;
    free(job->adopted);
    job->adopted = NULL;
    job->takes_schema = false;
}

static void drop_plan(mrg_job *job)
{
    drop_model(job);
    mrg_conflicts_drop(job->result);
}

static sluice_status open_bases(mrg_job *job, const st_reach *bases, uint32_t count, sluice_error *err)
{
    if (count > MRG_BASES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the histories of the two branches meet in more than %u places",
                       MRG_BASES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        PF_TRY(st_snapshot_open_commit(job->mut.graph, &bases[i], &job->bases[i].snapshot, err));
        job->base_count++;
    }
    return SLUICE_OK;
}

/* The source's state is the result, and its rules held there: nothing is judged again. */
static sluice_status take_all(mrg_job *job, sluice_error *err)
{
    if (job->takes_schema)
        return mrg_adopt_all(job, err);
    job->adopted = calloc((size_t)job->mut.type_count + 1, sizeof *job->adopted);
    if (!job->adopted)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->mut.type_count; i++) {
        PF_TRY(mrg_is_adopted(job, i, &job->adopted[i], err));
        if (!job->adopted[i])
            PF_TRY(mrg_compare_table(job, i, err));
    }
    mut_settle(&job->mut);
    for (uint32_t i = 0; i < job->mut.type_count; i++)
        if (job->adopted[i])
            PF_TRY(mrg_adopt_table(job, i, err));
    return SLUICE_OK;
}

static sluice_status compare_all(mrg_job *job, sluice_error *err)
{
    if (job->result->outcome == CO_MERGE_FAST_FORWARD)
        return take_all(job, err);
    PF_TRY(mrg_choose_whole(job, err));
    for (uint32_t i = 0; i < job->mut.type_count; i++)
        if (!job->adopted[i])
            PF_TRY(mrg_compare_table(job, i, err));
    if (job->result->conflicts_found > 0) /* the rules are judged on a result, and there is none */
        return SLUICE_OK;
    PF_TRY(mut_check(&job->mut, err));
    PF_TRY(mrg_check_schema(job, err));
    for (uint32_t i = 0; i < job->mut.type_count && job->result->conflicts_found == 0; i++)
        if (job->adopted[i])
            PF_TRY(mrg_adopt_whole(job, i, err));
    return job->failed == SLUICE_OK ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status fail_by_conflicts(const mrg_job *job, sluice_error *err)
{
    unsigned long long found = job->result->conflicts_found;
    sluice_status status =
        pf_fail(err, SLUICE_MERGE_CONFLICT, "%llu conflict%s; nothing was changed", found, found == 1 ? "" : "s");
    pf_details(err, "{\"conflicts\":%llu}", found);
    pf_hint(err,
            "change one of the branches, or let --on-conflict ours or theirs decide where both changed one object");
    return status;
}

static sluice_status add_lineage(mrg_job *job, co_write *write, sluice_error *err)
{
    st_commit *commit = &write->delta.commit;
    write->lineage = true;
    write->reads.reads_head = true;
    write->reads.head = st_snapshot_view(write->base)->head;
    commit->parents[1] = st_snapshot_view(job->source.snapshot)->head;
    return st_history_reduce(job->mut.graph, &job->source_history, &commit->merged, &commit->merged_count, err);
}

/* The source goes after the commit: the intent says which one, so that recovery completes it. */
static sluice_status declare_follow_up(mrg_job *job, co_write *write, sluice_error *err)
{
    if (!job->options->delete_source)
        return SLUICE_OK;
    write->effects = calloc(1, sizeof *write->effects);
    if (!write->effects)
        return pf_fail_memory(err);
    write->effect_count = 1;
    write->effects[0] = (ad_effect){.kind = AD_EFFECT_FOLLOW, .incarnation = job->source_incarnation};
    (void)snprintf(write->effects[0].branch, sizeof write->effects[0].branch, "%s", job->options->source);
    pf_id_text(&job->result->source_head, write->effects[0].from);
    write->arms = job->mut.stages = true;
    return co_write_need_attempt(write, err);
}

static sluice_status plan_rows(mrg_job *job, co_write *write, sluice_error *err)
{
    st_commit *commit = &write->delta.commit;
    if (job->result->conflicts_found == 0)
        PF_TRY(compare_all(job, err));
    if (job->result->conflicts_found > 0)
        return fail_by_conflicts(job, err);
    commit->inserted = job->result->inserted = job->mut.inserted;
    commit->updated = job->result->updated = job->mut.updated;
    commit->deleted = job->result->deleted = job->mut.deleted;
    PF_TRY(mrg_put_schema(job, err));
    PF_TRY(declare_follow_up(job, write, err));
    PF_TRY(mut_add_edits(&job->mut, err));
    PF_TRY(mut_add_sets(&job->mut, err));
    PF_TRY(mut_add_gates(&job->mut, err));
    PF_TRY(mrg_adopt_gates(job, err));
    return add_lineage(job, write, err);
}

static sluice_status plan_merge(mrg_job *job, co_write *write, const st_history *target, sluice_error *err)
{
    st_reach *bases = NULL;
    uint32_t count = 0;
    if (st_history_has(target, &job->source_history.head)) {
        job->result->outcome = CO_MERGE_UP_TO_DATE;
        return SLUICE_OK;
    }
    bool ahead = st_history_has(&job->source_history, &target->head);
    job->result->outcome = ahead ? CO_MERGE_FAST_FORWARD : CO_MERGE_MERGED;
    PF_TRY(st_history_bases(job->mut.graph, target, &job->source_history, &bases, &count, err));
    sluice_status status = open_bases(job, bases, count, err);
    free(bases);
    if (status == SLUICE_OK && ahead)
        job->takes_schema = !pf_sha256_equal(&st_snapshot_view(job->source.snapshot)->schema_identity,
                                             &st_snapshot_view(write->base)->schema_identity);
    else if (status == SLUICE_OK)
        status = mrg_merge_schema(job, err);
    if (status == SLUICE_OK)
        status = mut_model_make(&job->mut, err);
    return status == SLUICE_OK ? plan_rows(job, write, err) : status;
}

static sluice_status plan(void *context, co_write *write, sluice_error *err)
{
    mrg_job *job = context;
    st_history target = {0};
    drop_plan(job);
    job->mut.stages = false;
    job->mut.write = write;
    job->mut.graph = write->graph;
    job->mut.schema = st_snapshot_view(write->base)->schema;
    job->mut.on_fault = mrg_on_fault;
    job->mut.fault_context = job;
    PF_TRY(capture_source(job, err));
    PF_TRY(st_history_of(write->graph, st_snapshot_view(write->base), &target, err));
    sluice_status status = plan_merge(job, write, &target, err);
    st_history_free(&target);
    return status;
}

/* ---- the job ---- */

static sluice_status digest_request(const co_merge_options *options, pf_sha256 *ret_digest, sluice_error *err)
{
    const char *into = options->into ? options->into : ST_MAIN_BRANCH;
    const uint8_t flags[] = {(uint8_t)options->rule, options->delete_source};
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    pf_sha256_add(stream, "sluice-merge-request/1", sizeof "sluice-merge-request/1");
    pf_sha256_add(stream, options->source, strlen(options->source) + 1);
    pf_sha256_add(stream, into, strlen(into) + 1);
    pf_sha256_add(stream, flags, sizeof flags);
    pf_sha256_add(stream, options->if_head.bytes, sizeof options->if_head.bytes);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

/* What the first answer of an exact retry was: a fast-forward had its first parent in the history of the second. */
static sluice_status tell_repeated(st_graph *graph, co_merge_result *result, sluice_error *err)
{
    const co_receipt *receipt = &result->receipt;
    st_log *log = NULL;
    st_record record = {0};
    st_generation generation = {0};
    st_history merged = {0};
    st_reach parent;
    sluice_status status;
    PF_TRY(st_graph_log(graph, receipt->incarnation, &log, err));
    PF_GOTO(status, done, st_log_read_lineage(log, receipt->generation, &record, err));
    PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    if (receipt->index >= generation.commit_count || generation.commits[receipt->index].merged_count == 0) {
        status = pf_fail(err, SLUICE_CORRUPT, "a receipt of a merge names another commit");
        goto done;
    }
    const st_commit *commit = &generation.commits[receipt->index];
    result->source_head = commit->parents[1];
    PF_GOTO(status, done, st_commit_place(graph, log, receipt->generation - 1, &parent, err));
    PF_GOTO(status, done, st_history_of_merged(graph, commit->merged, commit->merged_count, &merged, err));
    result->outcome = st_history_has(&merged, &parent) ? CO_MERGE_FAST_FORWARD : CO_MERGE_MERGED;
done:
    st_history_free(&merged);
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

static void tell_deleted(co_merge_result *result, const char *why)
{
    result->branch_deleted = !why;
    (void)snprintf(result->not_deleted, sizeof result->not_deleted, "%s", why ? why : "");
}

/* What became of the source that was to be deleted. One that is merged already has no commit to follow. */
static void end_source(st_graph *graph, const co_merge_options *options, co_merge_result *result)
{
    uint64_t incarnation;
    sluice_error cause = {0};
    co_branch_receipt receipt;
    if (!options->delete_source)
        return;
    if (result->receipt.repeated) {
        bool gone = st_ref_read(graph, options->source, &incarnation, NULL) == SLUICE_NOT_FOUND;
        tell_deleted(result, gone ? NULL : "a branch of this name is there");
    } else if (result->receipt.committed) {
        tell_deleted(result, result->receipt.followed ? NULL : result->receipt.not_followed);
    } else {
        const co_branch_request request = {
            .name = options->source, .if_head = result->source_head, .operation = pf_id_new()};
        bool gone = co_branch_delete(graph, &request, &receipt, &cause) == SLUICE_OK;
        tell_deleted(result, gone ? NULL : cause.message);
    }
}

static sluice_status check_options(const co_merge_options *options, sluice_error *err)
{
    if (options->delete_source && strcmp(options->source, ST_MAIN_BRANCH) == 0)
        return pf_fail(err, SLUICE_USAGE, "the branch main cannot be deleted");
    if (options->delete_source && options->into && strcmp(options->source, options->into) == 0)
        return pf_fail(err, SLUICE_USAGE, "a branch that is merged into itself is not deleted");
    return SLUICE_OK;
}

sluice_status co_merge(st_graph *graph, const co_merge_options *options, wk_executor *executor,
                       co_merge_result *ret_result, sluice_error *err)
{
    mrg_job job = {.options = options, .result = ret_result, .mut = {.graph = graph}};
    const co_writer writer = {.adapter = &ad_merge, .context = &job, .plan = plan};
    co_request request = {.branch = options->into,
                          .operation = options->operation,
                          .operation_given = !pf_id_is_nil(&options->operation),
                          .message = options->message,
                          .if_head = options->if_head,
                          .dry_run = options->dry_run};
    sluice_status status;
    *ret_result = (co_merge_result){0};
    if (!request.operation_given)
        request.operation = pf_id_new();
    PF_TRY(check_options(options, err));
    PF_TRY(digest_request(options, &request.request, err));
    status = co_write_run(graph, &request, NULL, executor, &writer, &ret_result->receipt, err);
    if (status == SLUICE_OK && (ret_result->receipt.committed || options->dry_run)) {
        mrg_conflicts_drop(ret_result);
        ret_result->inserted = ret_result->receipt.inserted;
        ret_result->updated = ret_result->receipt.updated;
        ret_result->deleted = ret_result->receipt.deleted;
        if (ret_result->receipt.repeated)
            status = tell_repeated(graph, ret_result, err);
    }
    if (status == SLUICE_OK && !options->dry_run)
        end_source(graph, options, ret_result);
    drop_model(&job); /* the conflicts are the answer */
    close_side(&job.source);
    st_history_free(&job.source_history);
    return status;
}
