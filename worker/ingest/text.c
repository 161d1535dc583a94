#include "worker/ingest/text.h"

void wk_text_scan(const wk_input *input, const uint8_t *bytes, size_t length, size_t offset, size_t piece, int next,
                  wk_boundaries *ret_boundaries)
{
    wk_boundary_chunk(&input->lexer, bytes, length, offset, piece, next, ret_boundaries);
}

sluice_status wk_text_join(const wk_input *input, const wk_boundaries *boundaries, uint32_t count, wk_chunk *ret_chunks,
                           wk_shape *ret_shape, sluice_error *err)
{
    (void)input;
    (void)err;
    wk_boundaries_join(boundaries, count, ret_chunks, ret_shape);
    return SLUICE_OK;
}

sluice_status wk_count_lines(const wk_source *source, uint64_t from, uint64_t to, uint64_t *line, sluice_error *err)
{
    uint8_t piece[4096];

    while (from < to) {
        size_t length = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        PF_TRY(wk_source_read(source, from, piece, length, err));
        *line += wk_lex_count_lines(piece, length);
        from += length;
    }
    return SLUICE_OK;
}

sluice_status wk_text_open(const wk_chunk_view *view, uint32_t fields, wk_csv **ret_csv, sluice_error *err)
{
    wk_csv_start start = {.offset = view->place->first,
                          .line = view->place->first_line,
                          .number = view->place->first_record,
                          .piece = view->piece,
                          .fields = fields,
                          .record_max = view->record_max};

    /* Lines of the chunk before its first record belong to the record before. */
    PF_TRY(wk_count_lines(&view->input->source, view->start, view->place->first, &start.line, err));
    return wk_csv_open(&view->input->lexer, &view->input->source, &start, ret_csv, err);
}

sluice_status wk_text_next(wk_csv *csv, wk_record **ret_record, sluice_error *err)
{
    sluice_error error;
    sluice_status status = wk_csv_next(csv, ret_record, &error);

    if (status == SLUICE_RESOURCE_LIMIT) {
        *ret_record = NULL;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_text_begin(const wk_source *source, uint64_t *ret_offset, wk_fault *ret_fault, sluice_error *err)
{
    sluice_error error = {0};
    sluice_status status = wk_source_skip_mark(source, ret_offset, &error);

    if (status == SLUICE_INPUT_SYNTAX) {
        wk_fault_from_error(ret_fault, &error);
        ret_fault->line = 1;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}
