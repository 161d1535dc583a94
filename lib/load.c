/*
 * Loads: the job of `sluice load`, in this thread. Streams are spooled first, as Arrow IPC in a temporary file: a load
 * reads its inputs more than once.
 */
#include "coord/load.h"
#include "lib/batch.h"
#include "worker/ingest/arrow_spool.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct spooled_inputs {
    co_load_input *inputs;
    pf_scratch **scratch; /* per input; NULL: a file */
    char (*names)[300];   /* of the streams, for messages */
    size_t count;
} spooled_inputs;

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_scratch_append(context, bytes, length, err);
}

static void release_stream(struct ArrowArrayStream *stream)
{
    if (stream && stream->release)
        stream->release(stream);
}

static void free_inputs(spooled_inputs *spooled)
{
    for (size_t i = 0; spooled->scratch && i < spooled->count; i++)
        pf_scratch_close(spooled->scratch[i]);
    free(spooled->inputs);
    free(spooled->scratch);
    free(spooled->names);
}

static sluice_status take_input(const sluice_input *given, spooled_inputs *spooled, size_t i, sluice_error *err)
{
    co_load_input *input = &spooled->inputs[i];
    uint64_t rows = 0;
    PF_TRY(lib_need(given->type, "an input's type", err));
    if ((given->path != NULL) == (given->stream != NULL))
        return pf_fail(err, SLUICE_USAGE, "an input has either a path or a stream");
    *input = (co_load_input){.type = given->type, .path = given->path};
    if (given->path)
        return SLUICE_OK;
    (void)snprintf(spooled->names[i], sizeof spooled->names[i], "stream of %s", given->type);
    PF_TRY(pf_scratch_open(&spooled->scratch[i], err));
    PF_TRY(wk_arrow_spool(given->stream, put, spooled->scratch[i], &rows, err));
    input->path = spooled->names[i];
    input->scratch = spooled->scratch[i];
    input->format = "arrow";
    return SLUICE_OK;
}

static sluice_status take_inputs(const sluice_input *given, size_t count, spooled_inputs *spooled, sluice_error *err)
{
    spooled->inputs = calloc(count + 1, sizeof *spooled->inputs);
    spooled->scratch = calloc(count + 1, sizeof(pf_scratch *));
    spooled->names = calloc(count + 1, sizeof *spooled->names);
    if (!spooled->inputs || !spooled->scratch || !spooled->names)
        return pf_fail_memory(err);
    spooled->count = count;
    for (size_t i = 0; i < count; i++)
        PF_TRY(take_input(&given[i], spooled, i, err));
    return SLUICE_OK;
}

/* ---- who looks on ---- */

static void tell_progress(void *context, const wk_progress *progress, int64_t elapsed_ms)
{
    const sluice_write_options *options = context;
    (void)elapsed_ms;
    options->progress(options->context, progress->rows, progress->bytes);
}

static bool ask_cancelled(void *context)
{
    const sluice_write_options *options = context;
    return options->cancelled(options->context);
}

typedef struct load_request { /* context of the calls below */
    sluice_write_options options;
    const sluice_load_options *how;
} load_request;

static void tell_reject(void *context, const char *file, uint64_t line, const char *code, const char *text)
{
    const load_request *request = context;
    request->how->reject(request->options.context, file, line, code, text);
}

static sluice_status run(sluice_graph *graph, const spooled_inputs *spooled, co_load_mode mode, load_request *request,
                         sluice_receipt *ret_receipt, sluice_error *err)
{
    co_load_result result = {0};
    sluice_write_options *given = &request->options;
    const sluice_load_options *how = request->how;
    co_load_options options = {.branch = given->branch,
                               .create_branch = how->create_branch,
                               .from = how->from,
                               .compress = how->compress,
                               .ignore_unknown = how->ignore_unknown,
                               .memory = how->memory,
                               .skip_bad_rows = how->skip_bad_rows,
                               .max_errors = how->max_errors > 0 ? how->max_errors : UINT64_MAX,
                               .reject_context = request,
                               .reject = how->reject ? tell_reject : NULL,
                               .inputs = spooled->inputs,
                               .input_count = (uint32_t)spooled->count,
                               .mode = mode,
                               .dry_run = given->dry_run,
                               .message = given->message,
                               .actor = given->actor ? given->actor : LIB_ACTOR,
                               .progress_context = given,
                               .progress = given->progress ? tell_progress : NULL,
                               .cancelled = given->cancelled ? ask_cancelled : NULL};
    PF_TRY(lib_id(given->operation, "the operation id", &options.operation, err));
    PF_TRY(lib_id(given->if_head, "if_head", &options.if_head, err));
    PF_TRY(co_load_inline(graph->graph, &options, &result, err));
    if (ret_receipt) {
        lib_fill_receipt(&result.receipt, ret_receipt);
        ret_receipt->skipped = result.rejected;
        for (uint32_t i = 0; !result.receipt.committed && i < result.type_count; i++)
            ret_receipt->inserted += result.types[i].rows;
    }
    co_load_result_free(&result);
    return SLUICE_OK;
}

sluice_status sluice_load(sluice_graph *graph, const sluice_input *inputs, size_t input_count, sluice_load_mode mode,
                          const sluice_write_options *options, sluice_receipt *ret_receipt, sluice_error *err)
{
    sluice_load_options how = {.mode = mode};
    return sluice_load_with(graph, inputs, input_count, &how, options, ret_receipt, err);
}

sluice_status sluice_load_with(sluice_graph *graph, const sluice_input *inputs, size_t input_count,
                               const sluice_load_options *how, const sluice_write_options *options,
                               sluice_receipt *ret_receipt, sluice_error *err)
{
    static const co_load_mode modes[] = {[SLUICE_LOAD_INSERT] = CO_LOAD_INSERT,
                                         [SLUICE_LOAD_UPSERT] = CO_LOAD_UPSERT,
                                         [SLUICE_LOAD_OVERWRITE] = CO_LOAD_OVERWRITE};
    static const sluice_load_options plain;
    load_request request = {.how = how ? how : &plain};
    spooled_inputs spooled = {0};
    sluice_status status;
    if (options)
        request.options = *options;
    if (ret_receipt)
        *ret_receipt = (sluice_receipt){0};
    PF_GOTO(status, done, lib_check(graph, err));
    if (!inputs || input_count == 0 || input_count > UINT16_MAX)
        status = pf_fail(err, SLUICE_USAGE, "there is no input to load, or there are too many");
    else if ((unsigned)request.how->mode >= sizeof modes / sizeof modes[0])
        status = pf_fail(err, SLUICE_USAGE, "there is no such mode");
    else
        status = take_inputs(inputs, input_count, &spooled, err);
    if (status == SLUICE_OK)
        status = run(graph, &spooled, modes[request.how->mode], &request, ret_receipt, err);
done:
    for (size_t i = 0; inputs && i < input_count; i++)
        release_stream(inputs[i].stream);
    free_inputs(&spooled);
    return status;
}
