/*
 * A scan as an Arrow C stream (snapshot.h).
 */
#include "store/arrow/c_stream.h"
#include "store/read/snapshot.h"
#include <stdlib.h>
#include <string.h>

typedef struct scan_batches {
    st_scan *scan;
    bool row_ids;
    uint32_t count; /* columns of the scan */
    st_column *columns;
} scan_batches;

static void close_batches(void *context)
{
    scan_batches *from = context;

    st_scan_close(from->scan);
    free(from->columns);
    free(from);
}

static sluice_status next_batch(void *context, const st_column **ret_columns, sluice_error *err)
{
    scan_batches *from = context;
    const st_batch *batch = NULL;

    *ret_columns = NULL;
    PF_TRY(st_scan_next(from->scan, &batch, err));
    if (!batch)
        return SLUICE_OK;
    if (from->row_ids)
        from->columns[0] = (st_column){.type = ST_ROW_ID, .length = batch->rows, .values = batch->row_ids};
    if (from->count)
        memcpy(from->columns + from->row_ids, batch->columns, from->count * sizeof *from->columns);
    *ret_columns = from->columns;
    return SLUICE_OK;
}

sluice_status st_scan_stream(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                             bool row_ids, struct ArrowArrayStream *ret_stream, sluice_error *err)
{
    static char row_id_name[] = "_row_id";
    scan_batches *from = calloc(1, sizeof *from);
    st_c_batches batches = {.context = from, .next = next_batch, .close = close_batches};
    st_column_spec *specs = NULL;
    sluice_status status;

    ret_stream->release = NULL;
    if (!from)
        return pf_fail_memory(err);
    from->row_ids = row_ids;
    PF_GOTO(status, failed, st_scan_open(snapshot, type, columns, count, &from->scan, err));
    const st_column_spec *scanned = st_scan_specs(from->scan, &from->count);
    specs = calloc((size_t)from->count + 1, sizeof *specs);
    from->columns = calloc((size_t)from->count + 1, sizeof *from->columns);
    if (!specs || !from->columns) {
        status = pf_fail_memory(err);
        goto failed;
    }
    specs[0] = (st_column_spec){.name = row_id_name, .type = ST_ROW_ID};
    memcpy(specs + row_ids, scanned, from->count * sizeof *specs);
    status =
        st_c_stream_make(specs, from->count + row_ids, &batches, ret_stream, err); /* closes the batches if it fails */
    free(specs);
    return status;
failed:
    free(specs);
    close_batches(from);
    return status;
}
