#include "worker/maintain/compact.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/fragment/fragment_format.h"
#include "worker/ingest/sink.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES (UINT64_C(8) << 20) /* of strings, from which on a batch is written */

typedef struct source { /* a fragment that is merged in; open only while its rows are among those next in order */
    uint32_t fragment;
    uint64_t next; /* row id of its next row */
    st_scan *scan;
    const st_batch *batch;
    uint64_t at; /* row of the batch */
} source;

typedef struct merge {
    const wk_compaction *compaction;
    const st_table_list *list;
    source *sources; /* a heap by next row id */
    uint32_t count;
    st_column_spec *specs; /* the layout, then _row_id and _commit, unless the list says them */
    uint32_t layout_count, count_all;
    st_column_builder **builders;
    st_column *views;
    wk_sink *sink;
    uint64_t pending; /* rows in the builders */
    uint64_t last;    /* row id written last; 0: none */
    bool bound;       /* one stretch of row ids from `first` on, all of `commit` */
    uint64_t first;
    pf_id commit;
} merge;

/* ---- the heap ---- */

static void sift_down(merge *m, uint32_t at)
{
    source moving = m->sources[at];
    for (uint32_t child; (child = 2 * at + 1) < m->count; at = child) {
        if (child + 1 < m->count && m->sources[child + 1].next < m->sources[child].next)
            child++;
        if (moving.next <= m->sources[child].next)
            break;
        m->sources[at] = m->sources[child];
    }
    m->sources[at] = moving;
}

/* The least row id of all sources but the first. */
static uint64_t limit_of(const merge *m)
{
    uint64_t limit = UINT64_MAX;
    for (uint32_t child = 1; child <= 2 && child < m->count; child++)
        if (m->sources[child].next < limit)
            limit = m->sources[child].next;
    return limit;
}

/* ---- sources ---- */

/* The first row that lives in a fragment whose ids follow from the first one. *ret_any false: none lives. */
static uint64_t first_living(const st_table_list *list, uint32_t fragment, bool *ret_any)
{
    uint64_t position = 0;
    while (position < list->dead_count[fragment] && list->dead[fragment][position] == position)
        position++;
    *ret_any = position < list->fragments[fragment].fragment.rows;
    return list->fragments[fragment].first_row + position;
}

static void close_source(source *from)
{
    st_scan_close(from->scan);
    from->scan = NULL;
    from->batch = NULL;
}

/* The next batch; *ret_any false, and the source closed, at the end. */
static sluice_status next_batch(source *from, bool *ret_any, sluice_error *err)
{
    PF_TRY(st_scan_next(from->scan, &from->batch, err));
    from->at = 0;
    *ret_any = from->batch != NULL;
    if (*ret_any)
        from->next = from->batch->row_ids[0];
    else
        close_source(from);
    return SLUICE_OK;
}

static sluice_status open_source(const merge *m, source *from, bool *ret_any, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    PF_TRY(st_scan_open_fragment(compaction->base, compaction->type, NULL, 0, from->fragment, &from->scan, err));
    return next_batch(from, ret_any, err);
}

/* Finds where each source begins. Ids in a column are looked at, and the fragment is closed again until its turn. */
static sluice_status begin_sources(merge *m, sluice_error *err)
{
    for (uint32_t i = 0; i < m->compaction->count; i++) {
        source from = {.fragment = m->compaction->fragments[i]};
        bool any = false;
        if (m->list->fragments[from.fragment].fragment.explicit_ids) {
            sluice_status status = open_source(m, &from, &any, err);
            close_source(&from);
            PF_TRY(status);
        } else {
            from.next = first_living(m->list, from.fragment, &any);
        }
        if (any)
            m->sources[m->count++] = from;
    }
    for (uint32_t i = m->count / 2; i-- > 0;)
        sift_down(m, i);
    return SLUICE_OK;
}

/* ---- ids that the list can say ---- */

static int by_first_row(const void *a, const void *b)
{
    const st_edit_add *const *one = a, *const *two = b;
    return ((*one)->first_row > (*two)->first_row) - ((*one)->first_row < (*two)->first_row);
}

static bool follow_each_other(const st_edit_add *const *sorted, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (sorted[i]->first_row != sorted[i - 1]->first_row + sorted[i - 1]->fragment.rows ||
            !pf_id_equal(&sorted[i]->commit, &sorted[0]->commit))
            return false;
    return true;
}

/* Do all rows live, follow each other, and come from one commit, as those of one load? Then the list says ids and
 * commit of what comes in, as it did before, and no column has to: narrow rows would grow by 24 bytes. */
static sluice_status find_bound(merge *m, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    bool plain = true; /* no columns of ids, and no row of a dead one */
    const st_edit_add **sorted = calloc((size_t)compaction->count + 1, sizeof *sorted);
    if (!sorted)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < compaction->count; i++) {
        sorted[i] = &m->list->fragments[compaction->fragments[i]];
        plain &= !sorted[i]->fragment.explicit_ids && m->list->dead_count[compaction->fragments[i]] == 0;
    }
    qsort(sorted, compaction->count, sizeof *sorted, by_first_row);
    m->bound = plain && follow_each_other(sorted, compaction->count);
    m->first = sorted[0]->first_row;
    m->commit = sorted[0]->commit;
    free(sorted);
    return SLUICE_OK;
}

/* ---- output ---- */

static uint64_t built_bytes(const st_column_builder *builder)
{
    uint64_t bytes = builder->data_length;
    for (uint32_t i = 0; i < builder->child_count; i++)
        bytes += builder->children[i].data_length;
    return bytes;
}

static sluice_status flush(merge *m, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    uint64_t rows = m->pending, bytes = 0;
    for (uint32_t i = 0; i < m->count_all; i++) {
        bytes += built_bytes(m->builders[i]);
        st_builder_view(m->builders[i], &m->views[i]);
    }
    PF_TRY(wk_sink_write(m->sink, m->views, rows, err));
    for (uint32_t i = 0; i < m->count_all; i++)
        st_builder_truncate(m->builders[i], 0);
    m->pending = 0;
    if (compaction->advance)
        compaction->advance(compaction->advance_context, rows, bytes);
    return SLUICE_OK;
}

static bool is_full(const merge *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->layout_count; i++)
        bytes += built_bytes(m->builders[i]);
    return bytes >= BATCH_BYTES || m->pending >= WK_SINK_ROWS;
}

/* Bytes of strings in a batch: rows of one that has many are taken singly, so that no batch outgrows its columns. */
static uint64_t column_bytes(const st_column *column)
{
    uint64_t bytes = column->offsets ? (uint64_t)(column->offsets[column->length] - column->offsets[0]) : 0;
    for (uint32_t i = 0; i < column->child_count; i++)
        if (column->children[i].offsets)
            bytes += (uint64_t)(column->children[i].offsets[column->length] - column->children[i].offsets[0]);
    return bytes;
}

static bool is_wide(const st_batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->column_count; i++)
        bytes += column_bytes(&batch->columns[i]);
    return bytes > BATCH_BYTES;
}

/* How many rows of the batch come before `limit`, and are taken at once. */
static sluice_status count_rows(const merge *m, const source *from, uint64_t limit, uint64_t *ret_rows,
                                sluice_error *err)
{
    const st_batch *batch = from->batch;
    uint64_t most = is_wide(batch) ? 1 : WK_SINK_ROWS - m->pending;
    uint64_t last = m->last, rows = 0;
    for (; rows < most && from->at + rows < batch->rows && batch->row_ids[from->at + rows] < limit; rows++) {
        uint64_t row = batch->row_ids[from->at + rows];
        if (row <= last)
            break;
        last = row;
    }
    *ret_rows = rows;
    return rows > 0 ? SLUICE_OK
                    : pf_fail(err, SLUICE_CORRUPT,
                              "tables/%" PRIu64 "/fragments/%s is damaged: a row id stands twice, or out of order",
                              m->compaction->type->table, m->list->fragments[from->fragment].fragment.name);
}

static sluice_status take_rows(merge *m, source *from, uint64_t rows, sluice_error *err)
{
    const st_batch *batch = from->batch;
    for (uint32_t i = 0; i < m->layout_count; i++)
        PF_TRY(st_append_slice(m->builders[i], &batch->columns[i], from->at, rows, err));
    if (!m->bound) {
        PF_TRY(st_append_values(m->builders[m->layout_count], batch->row_ids + from->at, rows, err));
        PF_TRY(st_append_values(m->builders[m->layout_count + 1], batch->commits + from->at, rows, err));
    }
    from->at += rows;
    m->pending += rows;
    m->last = batch->row_ids[from->at - 1];
    return is_full(m) ? flush(m, err) : SLUICE_OK;
}

/* One step: the rows of the first source that come before those of all others. */
static sluice_status step(merge *m, sluice_error *err)
{
    source *from = &m->sources[0];
    uint64_t rows = 0;
    bool any = true;
    if (!from->scan)
        PF_TRY(open_source(m, from, &any, err));
    if (any) {
        PF_TRY(count_rows(m, from, limit_of(m), &rows, err));
        PF_TRY(take_rows(m, from, rows, err));
        if (from->at < from->batch->rows)
            from->next = from->batch->row_ids[from->at];
        else
            PF_TRY(next_batch(from, &any, err));
    }
    if (!any) {
        m->sources[0] = m->sources[--m->count];
        m->sources[m->count] = (source){0};
    }
    if (m->count > 0)
        sift_down(m, 0);
    return SLUICE_OK;
}

/* ---- the whole ---- */

static sluice_status make_columns(merge *m, sluice_error *err)
{
    static char row_id[] = ST_FRAGMENT_ROW_ID, commit[] = ST_FRAGMENT_COMMIT;
    const st_schema *schema = st_snapshot_view(m->compaction->base)->schema;
    st_column_spec *layout = NULL;
    PF_TRY(st_type_columns(schema, m->compaction->type, &layout, &m->layout_count, err));
    m->specs = realloc(layout, ((size_t)m->layout_count + 2) * sizeof *m->specs);
    if (!m->specs) {
        st_type_columns_free(layout, m->layout_count);
        m->layout_count = 0;
        return pf_fail_memory(err);
    }
    m->specs[m->layout_count] = (st_column_spec){.name = row_id, .type = ST_ROW_ID};
    m->specs[m->layout_count + 1] = (st_column_spec){.name = commit, .type = ST_COMMIT_ID};
    m->count_all = m->layout_count + (m->bound ? 0 : 2);
    m->builders = calloc((size_t)m->count_all + 1, sizeof(st_column_builder *));
    m->views = calloc((size_t)m->count_all + 1, sizeof *m->views);
    if (!m->builders || !m->views)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < m->count_all; i++)
        PF_TRY(st_column_builder_new(&m->specs[i], &m->builders[i], err));
    return SLUICE_OK;
}

static void free_merge(merge *m)
{
    for (uint32_t i = 0; m->sources && i < m->count; i++)
        close_source(&m->sources[i]);
    for (uint32_t i = 0; m->builders && i < m->count_all; i++)
        st_column_builder_free(m->builders[i]);
    free(m->builders);
    free(m->views);
    free(m->sources);
    wk_sink_close(m->sink);
    st_type_columns_free(m->specs, m->layout_count);
}

static uint64_t living_rows(const merge *m)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < m->compaction->count; i++) {
        uint32_t fragment = m->compaction->fragments[i];
        rows += m->list->fragments[fragment].fragment.rows - m->list->dead_count[fragment];
    }
    return rows;
}

static sluice_status merge_rows(merge *m, st_edit *edit, bool *ret_tried, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    wk_sink_setup setup = {.volume = compaction->volume,
                           .schema = st_snapshot_view(compaction->base)->schema,
                           .type = compaction->type,
                           .number = compaction->number,
                           .spool = compaction->spool,
                           .expected = living_rows(m),
                           .compress = compaction->compress};
    memcpy(setup.prefix, compaction->prefix, sizeof setup.prefix);
    PF_TRY(find_bound(m, err));
    PF_TRY(make_columns(m, err));
    setup.specs = m->specs;
    setup.count = m->count_all;
    PF_TRY(wk_sink_open(&setup, &m->sink, err));
    PF_TRY(begin_sources(m, err));
    while (m->count > 0)
        PF_TRY(step(m, err));
    PF_TRY(flush(m, err));
    *ret_tried |= wk_sink_tries(m->sink) > 0;
    if (wk_sink_rows(m->sink) == 0)
        return SLUICE_OK;
    edit->adds = calloc(1, sizeof *edit->adds);
    if (!edit->adds)
        return pf_fail_memory(err);
    edit->add_count = 1;
    PF_TRY(wk_sink_finish(m->sink, edit->adds, err));
    if (m->bound) {
        edit->adds->first_row_given = edit->adds->commit_given = true;
        edit->adds->first_row = m->first;
        edit->adds->commit = m->commit;
    }
    return SLUICE_OK;
}

/* The deletions of an outgoing fragment as a file: the one that its list entry names, or a new one. */
static sluice_status name_dead(const merge *m, uint32_t i, st_dead_ref *ret_ref, bool *ret_tried, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    uint32_t fragment = compaction->fragments[i];
    uint64_t count = m->list->dead_count[fragment];
    st_row_set *set = NULL;
    sluice_error error = {0};
    if (count == 0)
        return SLUICE_OK;
    if (m->list->fragments[fragment].dead.present) {
        *ret_ref = m->list->fragments[fragment].dead;
        return SLUICE_OK;
    }
    PF_TRY(st_row_set_new(&set, err));
    sluice_status status = st_row_set_add_many(set, m->list->dead[fragment], count, &error);
    for (uint32_t try = 0; status == SLUICE_OK && !ret_ref->present; try++) {
        char name[sizeof ret_ref->name];
        (void)snprintf(name, sizeof name, "%s%" PRIu64 "-%u.dead", compaction->prefix, compaction->number + try, i);
        status = st_deletion_write(compaction->volume, compaction->type->table, name, set, ret_ref, &error);
        if (status == SLUICE_ALREADY_EXISTS && try + 1 < WK_SINK_NAMES) {
            *ret_tried = true;
            status = SLUICE_OK;
        }
    }
    st_row_set_free(set);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

static sluice_status name_leaving(const merge *m, st_edit *edit, bool *ret_tried, sluice_error *err)
{
    const wk_compaction *compaction = m->compaction;
    edit->out = calloc((size_t)compaction->count + 1, sizeof *edit->out);
    if (!edit->out)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < compaction->count; i++) {
        const st_fragment_info *info = &m->list->fragments[compaction->fragments[i]].fragment;
        st_edit_out *out = &edit->out[edit->out_count++];
        memcpy(out->fragment, info->name, sizeof out->fragment);
        out->bytes = info->bytes;
        PF_TRY(name_dead(m, i, &out->applied, ret_tried, err));
    }
    edit->out[0].incoming = edit->add_count;
    return SLUICE_OK;
}

sluice_status wk_compact(const wk_compaction *compaction, st_edit *ret_edit, bool *ret_tried, sluice_error *err)
{
    merge m = {.compaction = compaction};
    st_edit edit = {.table = compaction->type->table};
    st_table_reader *reader = NULL;
    sluice_status status;
    PF_ASSERT(compaction->count > 0);
    PF_GOTO(status, done, st_table_reader_get(compaction->base, compaction->type->table, &reader, err));
    m.list = st_table_reader_list(reader);
    m.sources = calloc(compaction->count, sizeof *m.sources);
    if (!m.sources) {
        status = pf_fail_memory(err);
        goto done;
    }
    PF_GOTO(status, done, merge_rows(&m, &edit, ret_tried, err));
    PF_GOTO(status, done, name_leaving(&m, &edit, ret_tried, err));
    *ret_edit = edit;
    edit = (st_edit){0};
done:
    st_edit_free(&edit);
    free_merge(&m);
    return status;
}
