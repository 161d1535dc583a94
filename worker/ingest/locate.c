#include "worker/ingest/locate.h"

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
