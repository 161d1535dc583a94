#include "worker/ingest/arrow_input.h"

#include <stdlib.h>
#include <string.h>

void wk_arrow_scan(const wk_input *input, const uint8_t *bytes, size_t length, size_t offset, size_t piece, int next,
                   wk_boundaries *ret_boundaries)
{
    (void)input;
    (void)offset;
    (void)piece;
    (void)next;
    memset(ret_boundaries, 0, sizeof *ret_boundaries);
    ret_boundaries->bytes = length;
    ret_boundaries->digest = pf_xxh128_of(bytes, length);
}

/* ---- the input ---- */

static sluice_status read_source(void *context, uint64_t offset, void *bytes, size_t length, sluice_error *err)
{
    return wk_source_read(context, offset, bytes, length, err);
}

bool wk_arrow_is_content(sluice_status status, sluice_error *error)
{
    if (status == SLUICE_CORRUPT)
        error->code = SLUICE_INPUT_SYNTAX;
    if (status == SLUICE_CORRUPT && !error->hint[0])
        pf_hint(error, "the file is damaged or not complete: write it again, and close its writer");
    if (status == SLUICE_UNSUPPORTED_FORMAT && !error->hint[0])
        pf_hint(error,
                "write it again with a present version of Arrow, for instance with pyarrow.feather.write_feather");
    return status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT || status == SLUICE_RESOURCE_LIMIT;
}

sluice_status wk_arrow_state_get(const wk_input *input, wk_arrow_state **ret_state, sluice_error *err)
{
    wk_arrow_state *state = *input->state;
    sluice_error error;

    *ret_state = state;
    if (state)
        return SLUICE_OK;
    state = calloc(1, sizeof *state);
    if (state == NULL)
        return pf_fail_memory(err);
    state->source = input->source;
    st_arrow_source source = {.context = &state->source, .size = input->source.size, .read = read_source};
    pf_error_clear(&error);
    sluice_status status = st_arrow_input_open(&source, &state->input, &error);
    if (status != SLUICE_OK && !wk_arrow_is_content(status, &error)) {
        free(state);
        if (err)
            *err = error;
        return status;
    }
    if (status != SLUICE_OK)
        wk_fault_from_error(&state->fault, &error);
    *input->state = *ret_state = state;
    return SLUICE_OK;
}

void wk_arrow_release(wk_input *input)
{
    wk_arrow_state *state = *input->state;

    if (state == NULL)
        return;
    st_arrow_input_close(state->input);
    free(state);
    *input->state = NULL;
}

/* ---- chunks ---- */

/* How many rows of the batch lie before byte `at`. */
static uint64_t rows_before(const st_arrow_batch_place *batch, uint64_t at)
{
    uint64_t begin = batch->at.offset, length = batch->at.body + batch->at.body_length - begin;

    if (at <= begin)
        return 0;
    if (batch->compressed || at - begin >= length)
        return batch->rows;
    return (uint64_t)(((unsigned __int128)(at - begin) * batch->rows + length - 1) / length);
}

static uint32_t chunk_of(uint64_t at, uint64_t size, uint32_t count)
{
    uint64_t chunk = size ? at / size : 0;
    return chunk < count ? (uint32_t)chunk : count - 1;
}

static sluice_status add_records(wk_chunk *chunk, uint64_t records, sluice_error *err)
{
    chunk->records += records;
    if (chunk->records < UINT32_MAX)
        return SLUICE_OK;
    return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a part of an Arrow input has more than %u rows", UINT32_MAX - 1);
}

sluice_status wk_arrow_join(const wk_input *input, const wk_boundaries *boundaries, uint32_t count,
                            wk_chunk *ret_chunks, wk_shape *ret_shape, sluice_error *err)
{
    wk_arrow_state *state = NULL;
    uint64_t size = boundaries[0].bytes; /* of all chunks but the last */

    PF_TRY(wk_arrow_state_get(input, &state, err));
    *ret_shape = (wk_shape){0};
    memset(ret_chunks, 0, count * sizeof *ret_chunks);
    for (uint32_t i = 0; state->input && i < state->input->batch_count; i++) {
        const st_arrow_batch_place *batch = &state->input->batches[i];
        uint32_t chunk = chunk_of(batch->at.offset, size, count);
        for (uint64_t done = 0; done < batch->rows; chunk++) {
            uint64_t upto = chunk + 1 < count ? rows_before(batch, (chunk + 1) * size) : batch->rows;
            PF_TRY(add_records(&ret_chunks[chunk], upto - done, err));
            done = upto;
        }
    }
    if (state->input && state->input->damaged)
        PF_TRY(add_records(&ret_chunks[chunk_of(state->input->damaged_at, size, count)], 1, err));
    for (uint32_t c = 0; c < count; c++) {
        ret_chunks[c].first = ret_chunks[c].records ? c * size : WK_NOWHERE;
        ret_chunks[c].first_record = ret_shape->records;
        ret_chunks[c].first_line = ret_shape->records + 1;
        ret_shape->records += ret_chunks[c].records;
    }
    ret_shape->lines = ret_shape->records;
    return SLUICE_OK;
}
