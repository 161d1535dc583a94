/*
 * What a skipping load tells its user: the rows left out, in order of the input, in the rejects file or to whoever
 * asked to be told, and the inputs of which nothing is left.
 *
 * The conductor leaves all of it in the attempt's folder before it arms its write, under the id that the commit will
 * have. So the answer is that of the plan that was published, whoever published it. The rejects file is opened before
 * any work and has its name only once it is whole.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "store/format/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTCOME_FORMAT "sluice-load-outcome/1"
#define COPY_PIECE     ((size_t)1 << 20)

/* ---- the outcome, as a result in the attempt's folder ---- */

static void outcome_name(const pf_id *commit, char ret_name[WK_SPOOL_NAME])
{
    char id[PF_ID_TEXT];

    pf_id_text(commit, id);
    (void)snprintf(ret_name, WK_SPOOL_NAME, "outcome-%s", id);
}

sluice_status load_outcome_put(const wk_spool *spool, const pf_id *commit, uint32_t plan,
                               const load_left_out_input *inputs, uint32_t count, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    st_json json;
    sluice_status status;

    st_json_begin(&json, &buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, OUTCOME_FORMAT);
    st_json_name(&json, "plan");
    st_json_number(&json, plan);
    st_json_name(&json, "inputs");
    st_json_array(&json);
    for (uint32_t i = 0; i < count; i++) {
        st_json_object(&json);
        st_json_name(&json, "rows");
        st_json_u64(&json, inputs[i].rows);
        st_json_name(&json, "rejected");
        st_json_u64(&json, inputs[i].rejected);
        st_json_name(&json, "first");
        st_json_number(&json, inputs[i].first_item);
        st_json_name(&json, "items");
        st_json_number(&json, inputs[i].items);
        st_json_name(&json, "line");
        st_json_u64(&json, inputs[i].line);
        st_json_name(&json, "text");
        st_json_text(&json, inputs[i].text);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_object_end(&json);
    outcome_name(commit, name);
    PF_GOTO(status, done, st_json_end(&json, true, err));
    status = wk_spool_put(spool, name, buffer.data, buffer.length, NULL, err);
done:
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_outcome_has(const wk_spool *spool, const pf_id *commit, bool *ret_has, sluice_error *err)
{
    char name[WK_SPOOL_NAME];

    outcome_name(commit, name);
    return wk_spool_has(spool, name, ret_has, err);
}

typedef struct outcome {
    bool found;
    uint32_t plan, count;
    load_left_out_input *inputs;
} outcome;

static sluice_status decode_input(const cJSON *item, load_left_out_input *input, sluice_error *err)
{
    const char *text = NULL;
    int64_t first = 0, items = 0;

    PF_TRY(st_json_get_u64(item, "rows", &input->rows, err));
    PF_TRY(st_json_get_u64(item, "rejected", &input->rejected, err));
    PF_TRY(st_json_get_number(item, "first", &first, err));
    PF_TRY(st_json_get_number(item, "items", &items, err));
    PF_TRY(st_json_get_u64(item, "line", &input->line, err));
    PF_TRY(st_json_get_text(item, "text", &text, err));
    input->first_item = (uint32_t)first;
    input->items = (uint32_t)items;
    (void)snprintf(input->text, sizeof input->text, "%s", text);
    return SLUICE_OK;
}

static sluice_status decode_outcome(const pf_buffer *buffer, uint32_t count, outcome *ret_outcome, sluice_error *err)
{
    cJSON *document = NULL;
    const cJSON *list = NULL, *item = NULL;
    int64_t plan = 0;
    sluice_status status;

    PF_TRY(st_json_parse(buffer->data, buffer->length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, OUTCOME_FORMAT, err));
    PF_GOTO(status, done, st_json_get_number(document, "plan", &plan, err));
    PF_GOTO(status, done, st_json_get_array(document, "inputs", &list, err));
    ret_outcome->plan = (uint32_t)plan;
    ret_outcome->inputs = calloc((size_t)count + 1, sizeof *ret_outcome->inputs);
    if (ret_outcome->inputs == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    cJSON_ArrayForEach(item, list)
    {
        if (ret_outcome->count < count)
            PF_GOTO(status, done, decode_input(item, &ret_outcome->inputs[ret_outcome->count++], err));
    }
    if (ret_outcome->count != count)
        status = pf_fail(err, SLUICE_CORRUPT, "a load's outcome is not that of its inputs");
done:
    st_json_free(document);
    return status;
}

static sluice_status get_outcome(const wk_spool *spool, const pf_id *commit, uint32_t count, outcome *ret_outcome,
                                 sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};

    outcome_name(commit, name);
    sluice_status status = wk_spool_get(spool, name, &buffer, &ret_outcome->found, err);
    if (status == SLUICE_OK && ret_outcome->found)
        status = decode_outcome(&buffer, count, ret_outcome, err);
    pf_buffer_free(&buffer);
    return status;
}

/* ---- the rejects file ---- */

sluice_status load_rejects_open(const load_spec *spec, pf_output **ret_output, sluice_error *err)
{
    const char *path = spec->options->rejects_path;
    sluice_error error;

    *ret_output = NULL;
    if (path == NULL)
        return SLUICE_OK;
    if (strcmp(path, "-") == 0)
        return pf_fail(err, SLUICE_USAGE, "--rejects names a file; without it, bad rows are named on standard error");
    for (uint32_t i = 0; i < spec->input_count; i++)
        if (pf_input_is_file(spec->inputs[i].file, path))
            return pf_fail_private(err, SLUICE_USAGE, "the rejects file is an input, too",
                                   "--rejects %s: this file is an input, too", path);
    if (pf_path_is_inside(path, spec->options->graph_path))
        return pf_fail_private(err, SLUICE_USAGE, "the rejects file lies in the graph",
                               "--rejects %s: this is inside the graph, whose files are its own", path);
    if (pf_output_open(path, PF_OUTPUT_SWAP, ret_output, &error) == SLUICE_OK)
        return SLUICE_OK;
    /* Whatever stands in the way: nothing was done yet, and another name helps. */
    return pf_fail_private(err, SLUICE_USAGE, "the rejects file cannot be made", "--rejects: %s", error.text);
}

static sluice_status copy_lines(pf_file *from, pf_output *output, sluice_error *err)
{
    uint8_t *piece = malloc(COPY_PIECE);
    uint64_t at = 0;
    size_t got = 0;
    sluice_status status = SLUICE_OK;

    if (piece == NULL)
        return pf_fail_memory(err);
    do {
        PF_GOTO(status, done, pf_read(from, at, piece, COPY_PIECE, &got, err));
        PF_GOTO(status, done, pf_output_write(output, piece, got, err));
        at += got;
    } while (got > 0);
done:
    free(piece);
    return status;
}

static sluice_status say_line(const co_load_options *options, const char *line, size_t length, sluice_error *err)
{
    cJSON *document = NULL;
    const char *file = NULL, *code = NULL, *message = NULL;
    const cJSON *number;
    sluice_status status;

    PF_TRY(st_json_parse(line, length, &document, err));
    number = st_json_field(document, "line");
    PF_GOTO(status, done, st_json_get_text(document, "file", &file, err));
    PF_GOTO(status, done, st_json_get_text(document, "code", &code, err));
    PF_GOTO(status, done, st_json_get_text(document, "message", &message, err));
    options->reject(options->reject_context, file, cJSON_IsNumber(number) ? (uint64_t)number->valuedouble : 0, code,
                    message);
done:
    st_json_free(document);
    return status;
}

/* Lines without the records: some hundred bytes each. */
static sluice_status say_lines(pf_file *from, const co_load_options *options, sluice_error *err)
{
    pf_buffer buffer = {0};
    uint64_t at = 0;
    size_t got = 0;
    sluice_status status = SLUICE_OK;

    do {
        PF_GOTO(status, done, pf_buffer_reserve(&buffer, COPY_PIECE, err));
        PF_GOTO(status, done, pf_read(from, at, buffer.data + buffer.length, COPY_PIECE, &got, err));
        at += got;
        buffer.length += got;
        size_t begin = 0;
        for (const uint8_t *end; (end = memchr(buffer.data + begin, '\n', buffer.length - begin)) != NULL;) {
            size_t next = (size_t)(end - buffer.data) + 1;
            PF_GOTO(status, done, say_line(options, (const char *)buffer.data + begin, next - begin, err));
            begin = next;
        }
        memmove(buffer.data, buffer.data + begin, buffer.length - begin);
        buffer.length -= begin;
    } while (got > 0);
done:
    pf_buffer_free(&buffer);
    return status;
}

static sluice_status tell_item(const wk_spool *spool, uint32_t plan, uint32_t item, const co_load_options *options,
                               pf_output *output, sluice_error *err)
{
    char name[WK_SPOOL_NAME], path[WK_SPOOL_PATH];
    pf_file *file = NULL;
    sluice_error error;

    load_rejects_name(plan, item, name);
    wk_spool_path(spool, name, path);
    sluice_status status = pf_open(spool->volume, path, PF_READ, &file, &error);
    if (status == SLUICE_NOT_FOUND) /* nothing was left out of this chunk */
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    if (output)
        status = copy_lines(file, output, err);
    else if (options->reject)
        status = say_lines(file, options, err);
    (void)pf_close(file, NULL); /* only read */
    return status;
}

/* ---- the whole of it ---- */

static sluice_status note_bare(const load_spec *spec, const outcome *from, co_load_result *result, sluice_error *err)
{
    result->bare = calloc((size_t)from->count + 1, sizeof *result->bare);
    if (result->bare == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < from->count; i++) {
        const load_left_out_input *input = &from->inputs[i];
        if (input->rows > 0 || input->rejected == 0)
            continue;
        struct co_load_bare *bare = &result->bare[result->bare_count++];
        bare->path = spec->inputs[i].path;
        bare->rejected = input->rejected;
        bare->line = input->line;
        (void)snprintf(bare->text, sizeof bare->text, "%s", input->text);
    }
    return SLUICE_OK;
}

sluice_status load_rejects_tell(const load_spec *spec, const wk_spool *spool, const pf_id *commit, pf_output *output,
                                co_load_result *result, sluice_error *err)
{
    outcome found = {0};
    sluice_status status;

    PF_GOTO(status, done, get_outcome(spool, commit, spec->input_count, &found, err));
    if (!found.found) { /* another run's, whose attempt is over */
        PF_ASSERT(result->receipt.repeated);
        result->unlisted = true;
        pf_output_discard(output);
        return SLUICE_OK;
    }
    result->rejected = 0;
    for (uint32_t i = 0; i < found.count; i++)
        for (uint32_t c = 0; found.inputs[i].rejected > 0 && c < found.inputs[i].items; c++)
            PF_GOTO(status, done,
                    tell_item(spool, found.plan, found.inputs[i].first_item + c, spec->options, output, err));
    for (uint32_t i = 0; i < found.count; i++)
        result->rejected += found.inputs[i].rejected;
    PF_GOTO(status, done, note_bare(spec, &found, result, err));
done:
    free(found.inputs);
    if (status == SLUICE_OK)
        status = pf_output_close(output, true, err);
    else
        pf_output_discard(output);
    return status;
}
