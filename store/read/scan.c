/*
 * Scans (snapshot.h): batch by batch through the fragments of a table, in list order, then file order.
 *
 * Columns come as they lie in the mapped file, uncopied, unless rows of the batch are deleted: then the living ones are
 * copied together in stretches; so are those of a property whose type was made wider. A property that a fragment lacks
 * (it was added later) is what it was said to be then, or null. One fragment is open at a time, or they stay open with
 * the snapshot's reader (st_scan_open_kept).
 */
#include "platform/check.h"
#include "store/fragment/fragment_format.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

typedef struct scan_column {
    uint32_t layout;            /* index into the type's layout */
    int at;                     /* column of the open fragment; -1: lacking */
    st_column_builder *builder; /* for copies and for what is lacking */
} scan_column;

struct st_scan {
    st_snapshot *snapshot;
    const st_type_def *type;
    st_column_spec *layout; /* of the type */
    uint32_t layout_count;
    st_column_spec *specs; /* of the scan: shallow copies */
    scan_column *columns;
    uint32_t count;
    const st_table_list *list; /* `own`, or the snapshot's reader's */
    st_table_list own;
    st_table_reader *keeper; /* keeps fragments open, and has the list; NULL: nobody does */
    bool no_row_ids;
    uint32_t next_fragment, end;
    st_fragment *fragment;
    uint32_t next_batch;
    uint64_t first;     /* position of the next batch in its fragment */
    uint64_t next_dead; /* index into the fragment's dead positions */
    st_batch batch;
    st_column *views;
    bool *borrowed; /* views that lie in the fragment */
    uint64_t *row_ids;
    pf_id *commits; /* with_commits */
    uint64_t row_room;
    bool with_commits;
};

void st_scan_close(st_scan *scan)
{
    if (!scan)
        return;
    st_fragment_close(scan->fragment);
    for (uint32_t i = 0; scan->columns && i < scan->count; i++)
        st_column_builder_free(scan->columns[i].builder);
    free(scan->columns);
    free(scan->views);
    free(scan->borrowed);
    free(scan->specs);
    st_type_columns_free(scan->layout, scan->layout_count);
    st_table_list_free(&scan->own);
    free(scan->row_ids);
    free(scan->commits);
    free(scan);
}

static sluice_status choose_columns(st_scan *scan, const uint32_t *columns, uint32_t count, sluice_error *err)
{
    scan->count = columns ? count : scan->layout_count;
    scan->columns = calloc((size_t)scan->count + 1, sizeof(*scan->columns));
    scan->views = calloc((size_t)scan->count + 1, sizeof(*scan->views));
    scan->specs = calloc((size_t)scan->count + 1, sizeof(*scan->specs));
    scan->borrowed = calloc((size_t)scan->count + 1, sizeof(*scan->borrowed));
    if (!scan->columns || !scan->views || !scan->specs || !scan->borrowed)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < scan->count; i++) {
        uint32_t layout = columns ? columns[i] : i;
        if (layout >= scan->layout_count)
            return pf_fail(err, SLUICE_INTERNAL, "a scan of column %u of %u", (unsigned)layout,
                           (unsigned)scan->layout_count);
        scan->columns[i].layout = layout;
        scan->specs[i] = scan->layout[layout];
    }
    return SLUICE_OK;
}

static sluice_status scan_new(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                              st_scan **ret_scan, sluice_error *err)
{
    st_scan *scan = calloc(1, sizeof(*scan));
    if (!scan)
        return pf_fail_memory(err);
    scan->snapshot = snapshot;
    scan->type = type;
    sluice_status status = st_type_columns(snapshot->view->schema, type, &scan->layout, &scan->layout_count, err);
    if (status == SLUICE_OK)
        status = choose_columns(scan, columns, count, err);
    if (status == SLUICE_OK)
        *ret_scan = scan;
    else
        st_scan_close(scan);
    return status;
}

sluice_status st_scan_open(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                           st_scan **ret_scan, sluice_error *err)
{
    st_scan *scan = NULL;
    PF_TRY(scan_new(snapshot, type, columns, count, &scan, err));
    sluice_status status = st_table_materialise(snapshot->graph, snapshot->view, type->table, &scan->own, err);
    if (status != SLUICE_OK) {
        st_scan_close(scan);
        return status;
    }
    scan->list = &scan->own;
    scan->end = scan->own.count;
    *ret_scan = scan;
    return SLUICE_OK;
}

sluice_status st_scan_open_kept(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                                bool row_ids, st_scan **ret_scan, sluice_error *err)
{
    st_table_reader *reader = NULL;
    PF_TRY(st_table_reader_get(snapshot, type->table, &reader, err));
    PF_TRY(scan_new(snapshot, type, columns, count, ret_scan, err));
    (*ret_scan)->keeper = reader;
    (*ret_scan)->list = &reader->list;
    (*ret_scan)->end = reader->list.count;
    (*ret_scan)->no_row_ids = !row_ids;
    return SLUICE_OK;
}

sluice_status st_scan_open_fragment(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns,
                                    uint32_t count, uint32_t fragment, st_scan **ret_scan, sluice_error *err)
{
    st_table_reader *reader = NULL;
    PF_TRY(st_table_reader_get(snapshot, type->table, &reader, err));
    PF_TRY(scan_new(snapshot, type, columns, count, ret_scan, err));
    PF_ASSERT(fragment < reader->list.count);
    (*ret_scan)->list = &reader->list;
    (*ret_scan)->next_fragment = fragment;
    (*ret_scan)->end = fragment + 1;
    (*ret_scan)->with_commits = columns == NULL;
    return SLUICE_OK;
}

const st_column_spec *st_scan_specs(const st_scan *scan, uint32_t *ret_count)
{
    *ret_count = scan->count;
    return scan->specs;
}

/* As the keeper has it open; else opened, and left with it when it is not compressed: what is unpacked takes memory. */
static sluice_status open_fragment(st_scan *scan, uint32_t i, sluice_error *err)
{
    st_opened *kept = scan->keeper ? &scan->keeper->opened[i] : NULL;
    bool compressed = false;
    if (kept && kept->fragment) {
        scan->fragment = kept->fragment;
        st_fragment_hold(scan->fragment);
        return SLUICE_OK;
    }
    PF_TRY(st_fragment_open(st_graph_volume(scan->snapshot->graph), scan->type->table,
                            &scan->list->fragments[i].fragment, &scan->fragment, err));
    if (!kept)
        return SLUICE_OK;
    PF_TRY(st_fragment_is_compressed(scan->fragment, &compressed, err));
    if (!compressed) {
        kept->fragment = scan->fragment;
        st_fragment_hold(scan->fragment);
    }
    return SLUICE_OK;
}

/* Opens the next fragment that has a living row; *ret_any false at the end. */
static sluice_status next_fragment(st_scan *scan, bool *ret_any, sluice_error *err)
{
    st_fragment_close(scan->fragment);
    scan->fragment = NULL;
    *ret_any = false;
    while (scan->next_fragment < scan->end &&
           scan->list->dead_count[scan->next_fragment] >= scan->list->fragments[scan->next_fragment].fragment.rows)
        scan->next_fragment++;
    if (scan->next_fragment == scan->end)
        return SLUICE_OK;
    PF_TRY(open_fragment(scan, scan->next_fragment++, err));
    scan->next_batch = 0;
    scan->first = 0;
    scan->next_dead = 0;
    for (uint32_t i = 0; i < scan->count; i++)
        scan->columns[i].at = st_layout_find(scan->type, scan->fragment, scan->columns[i].layout);
    *ret_any = true;
    return SLUICE_OK;
}

/* ---- one batch ---- */

typedef struct living {   /* the rows of a batch that are not deleted */
    const uint64_t *dead; /* positions within the batch, less `first` */
    uint64_t dead_count, first, rows, live;
} living;

static sluice_status own_builder(scan_column *column, const st_column_spec *spec, sluice_error *err)
{
    if (!column->builder)
        return st_column_builder_new(spec, &column->builder, err);
    st_builder_truncate(column->builder, 0);
    return SLUICE_OK;
}

/* What a fragment lacks: what the property was when it was added, or null. */
static sluice_status fill_lacking(st_scan *scan, uint32_t i, uint64_t rows, sluice_error *err)
{
    scan_column *column = &scan->columns[i];
    uint32_t ends = scan->type->edge ? 2 : 0;
    if (column->layout < ends)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end",
                       (unsigned long long)scan->type->table);
    const st_value *value = &scan->type->properties[column->layout - ends].initial;
    PF_TRY(own_builder(column, &scan->specs[i], err));
    if (!value->present || value->is_null)
        return st_append_nulls(column->builder, rows, err);
    for (uint64_t row = 0; row < rows; row++)
        PF_TRY(st_value_append(value, column->builder, err));
    return SLUICE_OK;
}

/* The living rows of a column, copied in stretches between the deleted ones. */
static sluice_status copy_living(st_column_builder *builder, const st_column *from, const living *rows,
                                 sluice_error *err)
{
    uint64_t at = 0;
    for (uint64_t d = 0; d <= rows->dead_count; d++) {
        uint64_t end = d < rows->dead_count ? rows->dead[d] - rows->first : rows->rows;
        if (end > at)
            PF_TRY(st_append_slice(builder, from, at, end - at, err));
        at = end + 1;
    }
    return SLUICE_OK;
}

static sluice_status fill_column(st_scan *scan, uint32_t i, uint32_t batch, const living *rows, sluice_error *err)
{
    scan_column *column = &scan->columns[i];
    scan->borrowed[i] = false;
    if (column->at < 0) {
        PF_TRY(fill_lacking(scan, i, rows->live, err));
        st_builder_view(column->builder, &scan->views[i]);
        return SLUICE_OK;
    }
    PF_TRY(st_fragment_column(scan->fragment, batch, (uint32_t)column->at, &scan->views[i], err));
    bool widens = scan->views[i].type != scan->specs[i].type; /* the property's type was made wider */
    if (!st_type_reads_as(scan->views[i].type, scan->specs[i].type))
        return pf_fail(err, SLUICE_CORRUPT, "a column of table %llu is of another type than its property",
                       (unsigned long long)scan->type->table);
    scan->borrowed[i] = rows->dead_count == 0 && !widens;
    if (scan->borrowed[i])
        return SLUICE_OK;
    st_column from = scan->views[i];
    PF_TRY(own_builder(column, &scan->specs[i], err));
    PF_TRY(copy_living(column->builder, &from, rows, err));
    st_builder_view(column->builder, &scan->views[i]);
    return SLUICE_OK;
}

static sluice_status fill_row_ids(st_scan *scan, uint32_t batch, const living *rows, sluice_error *err)
{
    const st_edit_add *add = &scan->list->fragments[scan->next_fragment - 1];
    const uint64_t *ids = NULL;
    if (scan->row_room < rows->live) {
        uint64_t *room = realloc(scan->row_ids, rows->live * sizeof(*room));
        if (!room)
            return pf_fail_memory(err);
        scan->row_ids = room;
        scan->row_room = rows->live;
    }
    if (add->fragment.explicit_ids) {
        st_column column;
        int at = st_fragment_find_name(scan->fragment, "_row_id");
        if (at < 0)
            return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks its row ids",
                           (unsigned long long)scan->type->table);
        PF_TRY(st_fragment_column(scan->fragment, batch, (uint32_t)at, &column, err));
        ids = column.values;
    }
    uint64_t live = 0, d = 0;
    for (uint64_t row = 0; row < rows->rows; row++) {
        if (d < rows->dead_count && rows->dead[d] - rows->first == row) {
            d++;
            continue;
        }
        scan->row_ids[live++] = ids ? ids[row] : add->first_row + rows->first + row;
    }
    return SLUICE_OK;
}

/* The commit that last changed each living row: the fragment's, or its column's. */
static sluice_status fill_commits(st_scan *scan, uint32_t batch, const living *rows, sluice_error *err)
{
    const st_edit_add *add = &scan->list->fragments[scan->next_fragment - 1];
    const pf_id *commits = NULL;
    pf_id *room = realloc(scan->commits, (rows->live + 1) * sizeof(*room));
    if (!room)
        return pf_fail_memory(err);
    scan->commits = room;
    if (add->fragment.explicit_ids) {
        st_column column = {0};
        int at = st_fragment_find_name(scan->fragment, ST_FRAGMENT_COMMIT);
        if (at >= 0)
            PF_TRY(st_fragment_column(scan->fragment, batch, (uint32_t)at, &column, err));
        if (at < 0 || column.type != ST_COMMIT_ID || column.nulls > 0)
            return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks the commits of its rows",
                           (unsigned long long)scan->type->table);
        commits = column.values;
    }
    uint64_t live = 0, d = 0;
    for (uint64_t row = 0; row < rows->rows; row++) {
        if (d < rows->dead_count && rows->dead[d] - rows->first == row)
            d++;
        else
            scan->commits[live++] = commits ? commits[row] : add->commit;
    }
    return SLUICE_OK;
}

static sluice_status fill_batch(st_scan *scan, uint32_t batch, const living *rows, sluice_error *err)
{
    if (!scan->no_row_ids)
        PF_TRY(fill_row_ids(scan, batch, rows, err));
    if (scan->with_commits)
        PF_TRY(fill_commits(scan, batch, rows, err));
    for (uint32_t i = 0; i < scan->count; i++)
        PF_TRY(fill_column(scan, i, batch, rows, err));
    scan->batch = (st_batch){.rows = rows->live,
                             .columns = scan->views,
                             .column_count = scan->count,
                             .row_ids = scan->row_ids,
                             .commits = scan->with_commits ? scan->commits : NULL,
                             .fragment = scan->next_fragment - 1,
                             .source = scan->fragment,
                             .borrowed = scan->borrowed};
    return SLUICE_OK;
}

/* Takes the deleted positions of the next batch off the fragment's. */
static living next_living(st_scan *scan)
{
    uint32_t fragment = scan->next_fragment - 1;
    const uint64_t *dead = scan->list->dead[fragment];
    living rows = {.first = scan->first, .rows = st_fragment_batch_rows(scan->fragment, scan->next_batch)};
    uint64_t begin = scan->next_dead, end = begin;
    while (end < scan->list->dead_count[fragment] && dead[end] < rows.first + rows.rows)
        end++;
    rows.dead = dead ? dead + begin : NULL;
    rows.dead_count = end - begin;
    rows.live = rows.rows - rows.dead_count;
    scan->next_dead = end;
    scan->first += rows.rows;
    return rows;
}

sluice_status st_scan_next(st_scan *scan, const st_batch **ret_batch, sluice_error *err)
{
    *ret_batch = NULL;
    for (;;) {
        if (!scan->fragment || scan->next_batch == st_fragment_batches(scan->fragment)) {
            bool any = false;
            PF_TRY(next_fragment(scan, &any, err));
            if (!any)
                return SLUICE_OK;
            continue;
        }
        living rows = next_living(scan);
        uint32_t batch = scan->next_batch++;
        if (rows.live == 0)
            continue;
        PF_TRY(fill_batch(scan, batch, &rows, err));
        *ret_batch = &scan->batch;
        return SLUICE_OK;
    }
}
