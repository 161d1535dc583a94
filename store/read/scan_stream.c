/*
 * Scans as Arrow C streams (snapshot.h): columns and rows chosen, batch by batch.
 *
 * Without a filter or limit a batch goes on as the scan gives it, and its arrays point into the fragment, which they
 * hold. With them the rows that stay are copied together.
 */
#include "store/arrow/c_stream.h"
#include "store/fragment/fragment.h"
#include "store/read/filter.h"
#include "store/read/snapshot.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

static char row_id_name[] = "_row_id"; /* never written */

typedef struct scan_stream {
    void *owner;
    sluice_status (*check)(void *owner, sluice_error *err);
    void (*release)(void *owner);
    st_scan *scan;
    bool row_id;
    st_column_spec *layout; /* of the type */
    uint32_t layout_count;
    uint32_t *scanned; /* columns of the layout that the store is asked for; the first `given` are given out */
    uint32_t scanned_count, given;
    st_filter *filter;
    const st_column **by_layout; /* the batch at hand, for the filter */
    uint64_t left;
    bool selects;                 /* a filter or a limit */
    st_column_builder **builders; /* of what is given out, when it selects */
    st_column *columns;           /* the same, of one batch */
    bool *kept;
} scan_stream;

static void close_stream(void *context)
{
    scan_stream *scan = context;
    st_scan_close(scan->scan);
    for (uint32_t i = 0; scan->builders && i < scan->given + scan->row_id; i++)
        st_column_builder_free(scan->builders[i]);
    free(scan->builders);
    free(scan->columns);
    free(scan->kept);
    free(scan->scanned);
    free(scan->by_layout);
    st_filter_free(scan->filter);
    st_type_columns_free(scan->layout, scan->layout_count);
    if (scan->release)
        scan->release(scan->owner);
    free(scan);
}

/* ---- what is asked for ---- */

static sluice_status add_column(scan_stream *scan, const st_type_def *type, const char *name, bool first,
                                sluice_error *err)
{
    if (first && name && strcmp(name, "_row_id") == 0) {
        scan->row_id = true;
        return SLUICE_OK;
    }
    st_nearest nearest;
    st_nearest_begin(&nearest, name ? name : "");
    for (uint32_t i = 0; name && i < scan->layout_count; i++) {
        st_nearest_offer(&nearest, scan->layout[i].name);
        if (strcmp(scan->layout[i].name, name) != 0)
            continue;
        if (scan->given == scan->layout_count)
            return pf_fail(err, SLUICE_USAGE, "a column is asked for twice");
        scan->scanned[scan->given++] = i;
        return SLUICE_OK;
    }
    pf_fail_private(err, SLUICE_USAGE, "an unknown column is asked for", "%s has no column \"%s\"", type->name,
                    name ? name : "");
    if (nearest.best)
        pf_hint(err, "did you mean %s?", nearest.best);
    return SLUICE_USAGE;
}

static sluice_status choose(scan_stream *scan, const st_type_def *type, const st_stream_options *options,
                            sluice_error *err)
{
    if (options->columns) {
        for (size_t i = 0; i < options->column_count; i++)
            PF_TRY(add_column(scan, type, options->columns[i], i == 0, err));
        return SLUICE_OK;
    }
    scan->row_id = !type->edge && type->key_count == 0;
    for (; scan->given < scan->layout_count; scan->given++)
        scan->scanned[scan->given] = scan->given;
    return SLUICE_OK;
}

/* Columns that only the filter looks at come behind those that are given out. */
static sluice_status add_filter(scan_stream *scan, const char *where, sluice_error *err)
{
    scan->scanned_count = scan->given;
    if (!where)
        return SLUICE_OK;
    bool *needed = calloc((size_t)scan->layout_count + 1, sizeof *needed);
    if (!needed)
        return pf_fail_memory(err);
    sluice_status status = st_filter_parse(where, scan->layout, scan->layout_count, &scan->filter, err);
    if (status == SLUICE_OK)
        st_filter_mark(scan->filter, needed);
    for (uint32_t i = 0; i < scan->layout_count && status == SLUICE_OK; i++) {
        bool given = false;
        for (uint32_t k = 0; k < scan->given; k++)
            given |= scan->scanned[k] == i;
        if (needed[i] && !given)
            scan->scanned[scan->scanned_count++] = i;
    }
    free(needed);
    return status;
}

/* ---- batches ---- */

static sluice_status make_builders(scan_stream *scan, const st_column_spec *specs, sluice_error *err)
{
    uint32_t count = scan->given + scan->row_id;
    scan->builders = calloc((size_t)count + 1, sizeof(st_column_builder *));
    if (!scan->builders)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(st_column_builder_new(&specs[i], &scan->builders[i], err));
    return SLUICE_OK;
}

static sluice_status keep_rows(scan_stream *scan, uint64_t first, uint64_t count, sluice_error *err)
{
    for (uint32_t i = 0; count > 0 && i < scan->given + scan->row_id; i++)
        PF_TRY(st_append_slice(scan->builders[i], &scan->columns[i], first, count, err));
    return SLUICE_OK;
}

/* Copies the rows that meet the filter, in stretches, up to the limit. */
static sluice_status select_rows(scan_stream *scan, const st_batch *batch, uint64_t *ret_rows, sluice_error *err)
{
    uint64_t begin = 0, row = 0;
    *ret_rows = 0;
    for (uint32_t i = 0; i < scan->given + scan->row_id; i++)
        st_builder_truncate(scan->builders[i], 0);
    for (; row < batch->rows && *ret_rows < scan->left; row++) {
        if (!scan->filter || st_filter_meets(scan->filter, scan->by_layout, row)) {
            ++*ret_rows;
            continue;
        }
        PF_TRY(keep_rows(scan, begin, row - begin, err));
        begin = row + 1;
    }
    PF_TRY(keep_rows(scan, begin, row - begin, err));
    scan->left -= *ret_rows;
    for (uint32_t i = 0; i < scan->given + scan->row_id; i++)
        st_builder_view(scan->builders[i], &scan->columns[i]);
    return SLUICE_OK;
}

static void hold_fragment(void *fragment)
{
    st_fragment_hold(fragment);
}

static void let_fragment_go(void *fragment)
{
    st_fragment_close(fragment);
}

static sluice_status next_batch(void *context, st_c_batch *ret_batch, sluice_error *err)
{
    scan_stream *scan = context;
    const st_batch *batch = NULL;
    *ret_batch = (st_c_batch){0};
    if (scan->check)
        PF_TRY(scan->check(scan->owner, err));
    while (scan->left > 0) {
        PF_TRY(st_scan_next(scan->scan, &batch, err));
        if (!batch)
            return SLUICE_OK;
        if (scan->row_id)
            scan->columns[0] = (st_column){.type = ST_ROW_ID, .length = batch->rows, .values = batch->row_ids};
        for (uint32_t i = 0; i < scan->given; i++) {
            scan->columns[i + scan->row_id] = batch->columns[i];
            scan->kept[i + scan->row_id] = !scan->selects && batch->borrowed[i];
        }
        for (uint32_t i = 0; i < scan->scanned_count; i++)
            scan->by_layout[scan->scanned[i]] = &batch->columns[i];
        *ret_batch = (st_c_batch){.rows = batch->rows,
                                  .kept = scan->kept,
                                  .keeper = batch->source,
                                  .hold = hold_fragment,
                                  .let_go = let_fragment_go};
        if (scan->selects)
            PF_TRY(select_rows(scan, batch, &ret_batch->rows, err));
        if (ret_batch->rows == 0)
            continue;
        ret_batch->columns = scan->columns;
        return SLUICE_OK;
    }
    return SLUICE_OK;
}

static sluice_status open_stream(scan_stream *scan, st_snapshot *snapshot, const st_type_def *type,
                                 const st_stream_options *options, sluice_error *err)
{
    PF_TRY(st_type_columns(st_snapshot_view(snapshot)->schema, type, &scan->layout, &scan->layout_count, err));
    size_t room = (size_t)scan->layout_count + 2;
    scan->scanned = calloc(room, sizeof *scan->scanned);
    scan->by_layout = calloc(room, sizeof(st_column *));
    scan->columns = calloc(room, sizeof *scan->columns);
    scan->kept = calloc(room, sizeof *scan->kept);
    if (!scan->scanned || !scan->by_layout || !scan->columns || !scan->kept)
        return pf_fail_memory(err);
    PF_TRY(choose(scan, type, options, err));
    PF_TRY(add_filter(scan, options->where, err));
    return st_scan_open_kept(snapshot, type, scan->scanned, scan->scanned_count, scan->row_id, &scan->scan, err);
}

sluice_status st_scan_stream(st_snapshot *snapshot, const st_type_def *type, const st_stream_options *options,
                             struct ArrowArrayStream *ret_stream, sluice_error *err)
{
    static const st_stream_options defaults;
    scan_stream *scan = calloc(1, sizeof *scan);
    st_c_batches batches = {.context = scan, .next = next_batch, .close = close_stream};
    st_column_spec *specs = NULL;
    sluice_status status;

    ret_stream->release = NULL;
    options = options ? options : &defaults;
    if (!scan) {
        if (options->release)
            options->release(options->owner);
        return pf_fail_memory(err);
    }
    *scan = (scan_stream){.owner = options->owner,
                          .check = options->check,
                          .release = options->release,
                          .left = options->limit ? options->limit : UINT64_MAX,
                          .selects = options->limit || options->where};
    PF_GOTO(status, failed, open_stream(scan, snapshot, type, options, err));
    specs = calloc((size_t)scan->layout_count + 2, sizeof *specs);
    if (!specs) {
        status = pf_fail_memory(err);
        goto failed;
    }
    specs[0] = (st_column_spec){.name = row_id_name, .type = ST_ROW_ID};
    for (uint32_t i = 0; i < scan->given; i++)
        specs[i + scan->row_id] = scan->layout[scan->scanned[i]];
    if (scan->selects)
        PF_GOTO(status, failed, make_builders(scan, specs, err));
    /* closes the batches if it fails */
    status = st_c_stream_make(specs, scan->given + scan->row_id, &batches, ret_stream, err);
    free(specs);
    return status;
failed:
    free(specs);
    close_stream(scan);
    return status;
}
