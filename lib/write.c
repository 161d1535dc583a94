/*
 * Commits: batches go through the same job as `sluice mutate`, in this thread.
 */
#include "coord/mutate.h"
#include "lib/batch.h"

bool lib_is_cancelled(void *context)
{
    const sluice_write_options *options = context;
    return options->cancelled(options->context);
}

void lib_advance(void *context, uint64_t rows, uint64_t bytes)
{
    const sluice_write_options *options = context;
    if (options->progress)
        options->progress(options->context, rows, bytes);
}

void lib_fill_receipt(const co_receipt *from, sluice_receipt *ret_receipt)
{
    *ret_receipt = (sluice_receipt){.committed = from->committed,
                                    .repeated = from->repeated,
                                    .acknowledged = from->acknowledged,
                                    .generation = from->generation,
                                    .index = from->index,
                                    .time_us = from->time_us,
                                    .inserted = from->inserted,
                                    .updated = from->updated,
                                    .deleted = from->deleted,
                                    .restarts = from->restarts};
    lib_id_text(&from->commit, ret_receipt->commit);
    lib_id_text(&from->operation, ret_receipt->operation);
}

sluice_status sluice_commit(sluice_graph *graph, const sluice_batch *batch, const sluice_write_options *options,
                            sluice_receipt *ret_receipt, sluice_error *err)
{
    static const sluice_write_options defaults;
    sluice_write_options given = options ? *options : defaults;
    co_mutate_options request = {.path = "batch",
                                 .branch = given.branch,
                                 .dry_run = given.dry_run,
                                 .message = given.message,
                                 .actor = given.actor ? given.actor : LIB_ACTOR};
    co_mutate_result result = {0};
    const char *text;
    size_t length;
    if (ret_receipt)
        *ret_receipt = (sluice_receipt){0};
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_batch_text(batch, &text, &length, err));
    PF_TRY(lib_id(given.operation, "the operation id", &request.operation, err));
    PF_TRY(lib_id(given.if_head, "if_head", &request.if_head, err));
    wk_executor executor = {.context = &given,
                            .workers = 1,
                            .advance = lib_advance,
                            .epoch = graph->epoch,
                            .cancelled = given.cancelled ? lib_is_cancelled : NULL};
    PF_TRY(co_mutate_text(graph->graph, &request, &executor, text, length, &result, err));
    if (!ret_receipt)
        return SLUICE_OK;
    lib_fill_receipt(&result.receipt, ret_receipt);
    ret_receipt->inserted = result.inserted;
    ret_receipt->updated = result.updated;
    ret_receipt->deleted = result.deleted;
    ret_receipt->skipped = result.skipped;
    return SLUICE_OK;
}
