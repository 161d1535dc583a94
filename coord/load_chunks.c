/*
 * Inputs as chunks: how many there are, where the records in them begin, and the digest of the request.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/memory.h"
#include "store/format/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_MAX (UINT64_C(1) << 24) /* of all inputs: 256 TiB */

static sluice_status read_input(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                sluice_error *err)
{
    return pf_input_read_at(context, offset, bytes, length, ret_got, err);
}

sluice_status load_files_open(load_job *job, sluice_error *err)
{
    const load_spec *spec = job->spec;

    job->files = calloc((size_t)spec->input_count + 1, sizeof *job->files);
    if (job->files == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < spec->input_count; i++) {
        wk_input *input = &job->files[i].input;
        input->format = wk_format_find(spec->inputs[i].format);
        input->dialect = &spec->inputs[i].dialect;
        input->state = &job->files[i].state;
        input->format->prepare(input);
    }
    return SLUICE_OK;
}

static sluice_status open_source(load_job *job, uint32_t input, sluice_error *err)
{
    const load_input *from = &job->spec->inputs[input];
    load_file *file = &job->files[input];

    if (from->spooled)
        PF_TRY(load_spool_open(job, input, err));
    else
        file->input.source = (wk_source){.context = from->file, .size = from->identity.size, .read = read_input};
    /* A mark that is none of ours is the header's fault to report; the boundary pass reads bytes. */
    if (wk_source_skip_mark(&file->input.source, &file->input.mark, NULL) != SLUICE_OK)
        file->input.mark = 0;
    return SLUICE_OK;
}

sluice_status load_chunks_get(load_job *job, sluice_error *err)
{
    uint64_t chunks = 0;

    if (job->has_chunks)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        load_file *file = &job->files[i];
        PF_TRY(open_source(job, i, err));
        uint64_t count = (file->input.source.size + job->spec->chunk - 1) / job->spec->chunk;
        file->first_task = (uint32_t)chunks;
        file->chunks =
            count ? (uint32_t)count : 1; /* an empty file has a chunk, too: somebody must say that it is empty */
        chunks += file->chunks;
        if (count > CHUNKS_MAX || chunks > CHUNKS_MAX)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the inputs have more than %llu bytes",
                           (unsigned long long)(CHUNKS_MAX * job->spec->chunk));
    }
    job->chunk_count = (uint32_t)chunks;
    job->has_chunks = true;
    return SLUICE_OK;
}

void load_files_close(load_job *job)
{
    for (uint32_t i = 0; job->files && i < job->spec->input_count; i++) {
        wk_input *input = &job->files[i].input;
        if (input->format && input->format->release)
            input->format->release(input);
        free(job->files[i].places);
        (void)pf_close(job->files[i].spool, NULL); /* only read */
    }
    free(job->files);
    job->files = NULL;
}

void load_find_chunk(const load_job *job, uint32_t task, uint32_t *ret_input, uint32_t *ret_chunk)
{
    uint32_t low = 0, high = job->spec->input_count;

    PF_ASSERT(task < job->chunk_count);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (job->files[middle].first_task <= task)
            low = middle;
        else
            high = middle;
    }
    *ret_input = low;
    *ret_chunk = task - job->files[low].first_task;
}

wk_chunk_view load_chunk_view(const load_job *job, uint32_t input, uint32_t chunk)
{
    const load_file *file = &job->files[input];
    return (wk_chunk_view){.input = &file->input,
                           .columns = &file->columns,
                           .start = (uint64_t)chunk * job->spec->chunk,
                           .place = &file->places[chunk],
                           .piece = job->spec->piece};
}

/* ---- boundaries ---- */

static void boundary_name(uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u.json", LOAD_BOUNDARIES, task);
}

static sluice_status scan_chunk(load_job *job, const load_file *file, uint32_t chunk, wk_boundaries *ret_boundaries,
                                sluice_error *err)
{
    uint64_t start = (uint64_t)chunk * job->spec->chunk, left = file->input.source.size - start;
    size_t length = (size_t)(left < job->spec->chunk ? left : job->spec->chunk);
    size_t wanted = length + (left > length); /* and the byte behind, which may decide about the last one */
    uint8_t *bytes = malloc(wanted + WK_LEX_SLACK);
    sluice_status status;

    if (bytes == NULL)
        return pf_fail_memory(err);
    pf_memory_to_fill(bytes, wanted);
    memset(bytes + wanted, 0, WK_LEX_SLACK);
    status = wk_source_read(&file->input.source, start, bytes, wanted, err);
    if (status == SLUICE_OK) {
        size_t mark = chunk == 0 ? (size_t)file->input.mark : 0;
        file->input.format->scan(&file->input, bytes, length, mark, job->spec->piece,
                                 wanted > length ? bytes[length] : WK_AT_END, ret_boundaries);
    }
    free(bytes);
    return status;
}

sluice_status load_boundary_task(load_job *job, uint32_t task, sluice_error *err)
{
    uint32_t input, chunk;
    char name[WK_SPOOL_NAME];
    bool done = false;
    wk_boundaries boundaries;
    pf_buffer buffer = {0};
    sluice_status status;

    boundary_name(task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    load_find_chunk(job, task, &input, &chunk);
    PF_TRY(scan_chunk(job, &job->files[input], chunk, &boundaries, err));
    status = wk_boundaries_encode(&boundaries, &buffer, err);
    if (status == SLUICE_OK)
        status = wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err);
    pf_buffer_free(&buffer);
    return status;
}

static sluice_status read_boundaries(load_job *job, uint32_t task, pf_buffer *buffer, wk_boundaries *ret_boundaries,
                                     sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    bool found = false;

    boundary_name(task, name);
    PF_TRY(wk_spool_get(&job->spool, name, buffer, &found, err));
    if (!found)
        return pf_fail(err, SLUICE_INTERNAL, "the result of boundary task %u is missing", task);
    return wk_boundaries_decode(buffer->data, buffer->length, ret_boundaries, err);
}

sluice_status load_places_get(load_job *job, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    wk_boundaries *boundaries = NULL;
    pf_buffer buffer = {0};

    if (job->has_places)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        load_file *file = &job->files[i];
        free(file->places);
        file->places = calloc(file->chunks, sizeof *file->places);
        free(boundaries);
        boundaries = calloc(file->chunks, sizeof *boundaries);
        if (file->places == NULL || boundaries == NULL) {
            status = pf_fail_memory(err);
            goto done;
        }
        for (uint32_t c = 0; c < file->chunks; c++)
            PF_GOTO(status, done, read_boundaries(job, file->first_task + c, &buffer, &boundaries[c], err));
        PF_GOTO(status, done,
                file->input.format->join(&file->input, boundaries, file->chunks, file->places, &file->shape, err));
    }
    job->has_places = true;
done:
    free(boundaries);
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_inputs_check(load_job *job, sluice_error *err)
{
    for (uint32_t i = 0; i < job->spec->input_count; i++)
        PF_TRY(pf_input_check(job->spec->inputs[i].file, &job->spec->inputs[i].identity, err));
    return SLUICE_OK;
}

/* ---- the request's digest ---- */

/* What decides the outcome beside the bytes. Not the number of workers, not where files lie, not how rejects are shown.
 */
static sluice_status describe_options(const load_job *job, pf_buffer *buffer, sluice_error *err)
{
    static const char *const modes[] = {"insert", "upsert", "overwrite"};
    const co_load_options *options = job->spec->options;
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, "sluice-load-request/1");
    st_json_name(&json, "mode");
    st_json_text(&json, modes[options->mode]);
    st_json_name(&json, "skip");
    st_json_bool(&json, options->skip_bad_rows);
    st_json_name(&json, "max_errors");
    st_json_u64(&json, options->skip_bad_rows ? options->max_errors : 0);
    st_json_name(&json, "ignore_unknown");
    st_json_bool(&json, options->ignore_unknown);
    st_json_name(&json, "if_head");
    st_json_id(&json, &options->if_head);
    st_json_name(&json, "create_from");
    if (options->create_branch)
        st_json_text(&json, options->from ? options->from : ST_MAIN_BRANCH);
    else
        st_json_null(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status describe_input(const load_input *input, pf_buffer *buffer, sluice_error *err)
{
    const wk_dialect *dialect = &input->dialect;
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "type");
    st_json_text(&json, input->type);
    st_json_name(&json, "format");
    st_json_text(&json, dialect->format);
    st_json_name(&json, "delimiter");
    st_json_number(&json, dialect->delimiter);
    st_json_name(&json, "quote");
    st_json_number(&json, dialect->quote);
    st_json_name(&json, "escape");
    st_json_number(&json, dialect->escape);
    st_json_name(&json, "null");
    if (dialect->null_token)
        st_json_text(&json, dialect->null_token);
    else
        st_json_null(&json);
    st_json_name(&json, "header");
    st_json_bool(&json, input->has_header);
    st_json_name(&json, "columns");
    if (dialect->columns)
        st_json_text(&json, dialect->columns);
    else
        st_json_null(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

/* SHA-256 over the options, then per input its description and the XXH3-128 of each chunk. */
sluice_status load_request_digest(load_job *job, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_sha256_stream *stream = NULL;
    pf_buffer text = {0}, buffer = {0};
    sluice_status status;

    PF_TRY(pf_sha256_begin(&stream, err));
    PF_GOTO(status, done, describe_options(job, &text, err));
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        const load_file *file = &job->files[i];
        PF_GOTO(status, done, describe_input(&job->spec->inputs[i], &text, err));
        for (uint32_t c = 0; c < file->chunks; c++) {
            wk_boundaries boundaries = {0};
            char digest[PF_XXH128_TEXT + 24];
            PF_GOTO(status, done, read_boundaries(job, file->first_task + c, &buffer, &boundaries, err));
            pf_xxh128_text(boundaries.digest, digest);
            (void)snprintf(digest + PF_XXH128_TEXT - 1, 24, " %" PRIu64 "\n", boundaries.bytes);
            PF_GOTO(status, done, pf_buffer_append_text(&text, digest, err));
        }
        pf_sha256_add(stream, text.data, text.length);
        text.length = 0;
    }
done:
    *ret_digest = pf_sha256_end(stream);
    pf_buffer_free(&text);
    pf_buffer_free(&buffer);
    return status;
}
