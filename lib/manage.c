/*
 * Merging, checkpoints, schemas, reverts and collection: the jobs of the command, in this thread.
 */
#include "coord/checkpoint.h"
#include "coord/merge.h"
#include "coord/recover.h"
#include "coord/revert.h"
#include "coord/schema_change.h"
#include "lib/batch.h"

static const sluice_write_options no_options;

static sluice_status no_dry_run(const sluice_write_options *options, sluice_error *err)
{
    return options->dry_run ? pf_fail(err, SLUICE_USAGE, "this has no dry run") : SLUICE_OK;
}

/* ---- merging ---- */

static void tell_conflicts(const co_merge_result *result, sluice_conflict_fn *each, void *context)
{
    bool more = each != NULL;
    for (uint32_t i = 0; i < result->conflict_count && more; i++) {
        const co_conflict *from = &result->conflicts[i];
        sluice_conflict conflict = {.kind = co_conflict_kind_name(from->kind),
                                    .type = from->type,
                                    .key = from->key,
                                    .property = from->property,
                                    .text = from->text};
        lib_id_text(&from->ours, conflict.ours);
        lib_id_text(&from->theirs, conflict.theirs);
        more = each(context, &conflict);
    }
}

sluice_status sluice_merge(sluice_graph *graph, const char *source, sluice_merge_rule rule, bool delete_source,
                           const sluice_write_options *options, sluice_conflict_fn *each, void *context,
                           sluice_merge_receipt *ret_receipt, sluice_error *err)
{
    static const co_merge_rule rules[] = {[SLUICE_MERGE_FAIL] = CO_MERGE_FAIL,
                                          [SLUICE_MERGE_OURS] = CO_MERGE_OURS,
                                          [SLUICE_MERGE_THEIRS] = CO_MERGE_THEIRS};
    static const sluice_merge_outcome outcomes[] = {[CO_MERGE_UP_TO_DATE] = SLUICE_MERGE_UP_TO_DATE,
                                                    [CO_MERGE_FAST_FORWARD] = SLUICE_MERGE_FAST_FORWARD,
                                                    [CO_MERGE_MERGED] = SLUICE_MERGE_MERGED};
    sluice_write_options given = options ? *options : no_options;
    co_merge_options request = {
        .source = source, .into = given.branch, .delete_source = delete_source, .message = given.message};
    co_merge_result result = {0};
    if (ret_receipt)
        *ret_receipt = (sluice_merge_receipt){0};
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(source, "the source", err));
    PF_TRY(no_dry_run(&given, err));
    if ((unsigned)rule >= sizeof rules / sizeof rules[0])
        return pf_fail(err, SLUICE_USAGE, "there is no such rule");
    request.rule = rules[rule];
    PF_TRY(lib_id(given.operation, "the operation id", &request.operation, err));
    PF_TRY(lib_id(given.if_head, "if_head", &request.if_head, err));
    wk_executor executor = {.context = &given,
                            .workers = 1,
                            .epoch = graph->epoch,
                            .advance = lib_advance,
                            .cancelled = given.cancelled ? lib_is_cancelled : NULL};
    sluice_status status = co_merge(graph->graph, &request, &executor, &result, err);
    if (status == SLUICE_MERGE_CONFLICT)
        tell_conflicts(&result, each, context);
    if (ret_receipt) {
        ret_receipt->conflicts_found = result.conflicts_found;
        if (status == SLUICE_OK) {
            ret_receipt->outcome = outcomes[result.outcome];
            ret_receipt->source_deleted = result.branch_deleted;
            lib_fill_receipt(&result.receipt, &ret_receipt->receipt);
            ret_receipt->receipt.inserted = result.inserted;
            ret_receipt->receipt.updated = result.updated;
            ret_receipt->receipt.deleted = result.deleted;
        }
    }
    co_merge_result_free(&result);
    return status;
}

/* ---- checkpoints ---- */

sluice_status sluice_checkpoints(sluice_graph *graph, sluice_checkpoint_fn *each, void *context, sluice_error *err)
{
    st_control control = {0};
    bool more = true;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    PF_TRY(st_control_read(graph->graph, &control, err));
    for (uint32_t i = 0; i < control.checkpoint_count && more; i++) {
        const st_checkpoint *from = &control.checkpoints[i];
        sluice_checkpoint checkpoint = {
            .name = from->name, .generation = from->generation, .index = from->index, .time_us = from->time_us};
        pf_id_text(&from->commit, checkpoint.commit);
        more = each(context, &checkpoint);
    }
    st_control_free(&control);
    return SLUICE_OK;
}

sluice_status sluice_checkpoint_create(sluice_graph *graph, const char *name, const char *branch, const char *at,
                                       sluice_error *err)
{
    co_checkpoint_request request = {.name = name, .branch = branch, .at = at, .operation = pf_id_new()};
    co_checkpoint_receipt receipt;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(name, "the name", err));
    return co_checkpoint_create(graph->graph, &request, &receipt, err);
}

sluice_status sluice_checkpoint_delete(sluice_graph *graph, const char *name, sluice_error *err)
{
    co_checkpoint_request request = {.name = name, .operation = pf_id_new()};
    co_checkpoint_receipt receipt;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(name, "the name", err));
    return co_checkpoint_delete(graph->graph, &request, &receipt, err);
}

/* ---- schema, revert, collection ---- */

static sluice_status hand_over(sluice_status status, const co_receipt *receipt, sluice_receipt *ret_receipt)
{
    if (status == SLUICE_OK && ret_receipt)
        lib_fill_receipt(receipt, ret_receipt);
    return status;
}

sluice_status sluice_schema_apply(sluice_graph *graph, const char *schema, size_t length, bool allow_data_loss,
                                  const sluice_write_options *options, sluice_receipt *ret_receipt, sluice_error *err)
{
    const sluice_write_options *given = options ? options : &no_options;
    co_schema_request request = {.branch = given->branch,
                                 .text = schema,
                                 .length = length,
                                 .file = "schema",
                                 .allow_data_loss = allow_data_loss,
                                 .operation_given = given->operation != NULL,
                                 .message = given->message};
    co_receipt receipt = {0};
    if (ret_receipt)
        *ret_receipt = (sluice_receipt){0};
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(schema, "the schema", err));
    PF_TRY(no_dry_run(given, err));
    PF_TRY(lib_id(given->operation, "the operation id", &request.operation, err));
    PF_TRY(lib_id(given->if_head, "if_head", &request.if_head, err));
    if (!given->operation)
        request.operation = pf_id_new();
    return hand_over(co_schema_apply(graph->graph, &request, &receipt, err), &receipt, ret_receipt);
}

sluice_status sluice_revert(sluice_graph *graph, const char *to, const sluice_write_options *options,
                            sluice_receipt *ret_receipt, sluice_error *err)
{
    const sluice_write_options *given = options ? options : &no_options;
    co_revert_request request = {
        .branch = given->branch, .to = to, .operation_given = given->operation != NULL, .message = given->message};
    co_receipt receipt = {0};
    if (ret_receipt)
        *ret_receipt = (sluice_receipt){0};
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(to, "the place", err));
    PF_TRY(no_dry_run(given, err));
    PF_TRY(lib_id(given->operation, "the operation id", &request.operation, err));
    PF_TRY(lib_id(given->if_head, "if_head", &request.if_head, err));
    if (!given->operation)
        request.operation = pf_id_new();
    return hand_over(co_revert(graph->graph, &request, &receipt, err), &receipt, ret_receipt);
}

sluice_status sluice_gc(sluice_graph *graph, const sluice_gc_options *options, sluice_gc_result *ret_result,
                        sluice_error *err)
{
    static const sluice_gc_options defaults;
    const sluice_gc_options *given = options ? options : &defaults;
    co_gc_report report = {0};
    if (ret_result)
        *ret_result = (sluice_gc_result){0};
    PF_TRY(lib_check(graph, err));
    if (given->keep_seconds > INT64_MAX / 1000000)
        return pf_fail(err, SLUICE_USAGE, "keep_seconds is too large");
    co_gc_options request = {.dry_run = given->dry_run,
                             .keep = given->keep,
                             .age_given = given->keep_seconds > 0,
                             .age_us = (int64_t)given->keep_seconds * 1000000};
    PF_TRY(co_gc_with(graph->graph, &request, &report, err));
    if (ret_result)
        *ret_result =
            (sluice_gc_result){.files = report.files, .bytes = report.bytes, .generations = report.generations};
    return SLUICE_OK;
}
