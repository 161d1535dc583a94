#include "worker/ingest/locate.h"

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

sluice_status wk_chunk_visit(const wk_chunk_view *view, const uint64_t *records, uint64_t count, wk_record_fn *each,
                             void *context, sluice_error *err)
{
    const wk_format_ops *format = view->input->format;
    void *reader = NULL;
    wk_record *record = NULL;
    uint64_t done = 0;
    sluice_status status = SLUICE_OK;

    if (count == 0)
        return SLUICE_OK;
    PF_TRY(format->open(view, &reader, err));
    while (done < count) {
        PF_GOTO(status, done, format->next(reader, &record, err));
        if (record == NULL || record->number > records[done]) {
            status = pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
            goto done;
        }
        if (record->number < records[done])
            continue;
        PF_GOTO(status, done, each(context, record, err));
        done++;
    }
done:
    format->close(reader);
    return status;
}
