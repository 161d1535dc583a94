/*
 * The job of a mutation: one process, one plan at a time (coord/mutate.h).
 */
#include "coord/mutate_job.h"
#include "platform/check.h"
#include "platform/user_file.h"
#include "platform/watch.h"
#include "store/format/json.h"
#include <string.h>

static const char *display_name(const co_mutate_options *options)
{
    return options->path && strcmp(options->path, "-") != 0 ? options->path : "standard input";
}

/* What decides the outcome beside the bytes: the same text is the same request, wherever it lies. */
sluice_status mut_request_digest(const co_mutate_options *options, const char *text, size_t length,
                                 pf_sha256 *ret_digest, sluice_error *err)
{
    pf_buffer buffer = {0};
    st_json json;
    sluice_status status;
    st_json_begin(&json, &buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, "sluice-mutate-request/1");
    st_json_name(&json, "if_head");
    st_json_id(&json, &options->if_head);
    st_json_object_end(&json);
    PF_GOTO(status, done, st_json_end(&json, true, err));
    PF_GOTO(status, done, pf_buffer_append(&buffer, text, length, err));
    *ret_digest = pf_sha256_of(buffer.data, buffer.length);
done:
    pf_buffer_free(&buffer);
    return status;
}

static sluice_status judge(const mut_job *job, sluice_error *err)
{
    return mut_failed(job) ? wk_fault_fail(&job->fault, display_name(job->options), err) : SLUICE_OK;
}

sluice_status mut_plan(void *context, co_write *write, sluice_error *err)
{
    mut_job *job = context;
    st_commit *commit = &write->delta.commit;
    mut_model_free(job);
    job->write = write;
    job->graph = write->graph;
    job->schema = st_snapshot_view(write->base)->schema;
    PF_TRY(mut_model_make(job, err));
    PF_TRY(mut_apply(job, err));
    PF_TRY(judge(job, err));
    PF_TRY(mut_check(job, err));
    PF_TRY(judge(job, err));
    commit->inserted = job->inserted;
    commit->updated = job->updated;
    commit->deleted = job->deleted;
    if (write->request->dry_run) /* nothing is staged for it */
        return SLUICE_OK;
    PF_TRY(mut_add_edits(job, err));
    if (write->delta.edit_count == 0)
        return SLUICE_OK;
    PF_TRY(mut_add_sets(job, err));
    return mut_add_gates(job, err);
}

sluice_status co_mutate_text(st_graph *graph, const co_mutate_options *options, wk_executor *executor, const char *text,
                             size_t length, co_mutate_result *ret_result, sluice_error *err)
{
    mut_job job = {.graph = graph, .options = options, .text = text, .length = length};
    co_request request = {.branch = options->branch ? options->branch : "main",
                          .operation = options->operation,
                          .operation_given = !pf_id_is_nil(&options->operation),
                          .actor = options->actor,
                          .message = options->message,
                          .if_head = options->if_head,
                          .dry_run = options->dry_run};
    const co_writer writer = {.adapter = &ad_mutate, .context = &job, .plan = mut_plan};
    co_receipt receipt = {0};
    *ret_result = (co_mutate_result){0};
    if (!request.operation_given)
        request.operation = pf_id_new();
    PF_TRY(mut_request_digest(options, text, length, &request.request, err));
    sluice_status status = co_write_run(graph, &request, NULL, executor, &writer, &receipt, err);
    if (status == SLUICE_OK) {
        bool own = !receipt.committed; /* the receipt has the counts of what was committed */
        *ret_result = (co_mutate_result){.receipt = receipt,
                                         .inserted = own ? job.inserted : receipt.inserted,
                                         .updated = own ? job.updated : receipt.updated,
                                         .deleted = own ? job.deleted : receipt.deleted,
                                         .skipped = job.skipped};
    }
    mut_model_free(&job);
    return status;
}

/* ---- as a command ---- */

static bool is_interrupted(void *context)
{
    bool *interrupted = ((void **)context)[1];
    pf_event event = {0};
    if (!*interrupted && pf_watch_next(((void **)context)[0], PF_AT_ONCE, &event, NULL) == SLUICE_OK)
        *interrupted = event.kind == PF_EVENT_INTERRUPT;
    return *interrupted;
}

static sluice_status run_here(const co_mutate_options *options, const char *text, size_t length,
                              co_mutate_result *ret_result, sluice_error *err)
{
    st_graph *graph = NULL;
    pf_watch *watch = NULL;
    bool interrupted = false;
    sluice_status status;
    pf_hold_interrupts(); /* reading could be interrupted; from here on an interrupt is asked for between steps */
    PF_GOTO(status, done, st_graph_open(options->graph_path, PF_WRITE, &graph, err));
    PF_GOTO(status, done, pf_watch_open(&watch, err));
    void *context[2] = {watch, &interrupted};
    wk_executor executor = {.context = context, .workers = 1, .epoch = pf_id_new(), .cancelled = is_interrupted};
    status = co_mutate_text(graph, options, &executor, text, length, ret_result, err);
done:
    pf_watch_close(watch);
    st_graph_close(graph);
    return status;
}

sluice_status co_mutate(const co_mutate_options *options, co_mutate_result *ret_result, sluice_error *err)
{
    pf_buffer read = {0};
    sluice_status status;
    if (!options->text)
        PF_GOTO(status, done, pf_input_read_all(options->path, CO_MUTATE_BYTES_MAX, &read, err));
    const char *text = options->text ? options->text : read.data ? (const char *)read.data : "";
    size_t length = options->text ? options->length : read.length;
    status = options->graph ? co_mutate_text(options->graph, options, options->executor, text, length, ret_result, err)
                            : run_here(options, text, length, ret_result, err);
done:
    pf_buffer_free(&read);
    return status;
}
