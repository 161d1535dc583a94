#include "worker/ingest/whole.h"

#include "platform/check.h"
#include "store/arrow/bits.h"
#include "worker/ingest/rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES (UINT64_C(8) << 20) /* of strings in one batch */

typedef struct making {
    const wk_whole *request;
    const wk_staged *staged;
    bool known;     /* the base has some of the rows, */
    bool rewritten; /* and there are unique tuples: a fragment of whole rows is written */
    uint32_t ends, count;
    st_column_spec *specs;
    bool *of_key; /* per column: an end or a member of the key */
    uint64_t low, high;
    pf_buffer absent; /* of the slice */
    size_t stride;
    wk_base *bases;
    uint64_t *places;
    wk_events weak;
    wk_spool_file bases_file;
    st_fragment *fragment;
    st_column *batch;      /* the columns of one batch of it, */
    uint32_t batch_number; /* plus one; 0: none */
    st_table_reader *reader;
    st_column_builder **old, **new;
    st_column *views; /* of the old row; of the new ones when they are written */
    uint64_t rows, bytes;
    wk_sink *sink;
    pf_buffer scratch;
} making;

static void bases_name(const char *stem, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "%s-bases", stem);
}

/* ---- one row ---- */

static bool is_absent(const making *m, uint64_t position, uint32_t column)
{
    return st_bit(m->absent.data + (position - m->low) * m->stride, column);
}

static sluice_status add_weak(making *m, uint64_t position, uint32_t why, uint32_t what, sluice_error *err)
{
    const wk_event event = {.probe = why, .item = m->request->item, .position = position, .other_item = what};
    return wk_events_add(&m->weak, &event, err);
}

static sluice_status judge_new(making *m, uint64_t position, sluice_error *err)
{
    const st_type_def *type = m->request->type;

    for (uint32_t i = 0; i < type->property_count; i++) {
        const st_property *property = &type->properties[i];
        if (!property->nullable && !property->default_value.present && is_absent(m, position, i + m->ends))
            return add_weak(m, position, WK_WEAK_LACKS, i, err);
    }
    return SLUICE_OK;
}

static sluice_status load_batch(making *m, uint32_t batch, sluice_error *err)
{
    if (m->batch_number == batch + 1)
        return SLUICE_OK;
    m->batch_number = 0;
    for (uint32_t i = 0; i < m->count; i++)
        PF_TRY(st_fragment_column(m->fragment, batch, i, &m->batch[i], err));
    m->batch_number = batch + 1;
    return SLUICE_OK;
}

static uint64_t bytes_of(const st_column *column, uint64_t row)
{
    uint64_t bytes = 0;

    if (column->offsets)
        return (uint64_t)(column->offsets[row + 1] - column->offsets[row]);
    for (uint32_t i = 0; i < column->child_count; i++)
        bytes += bytes_of(&column->children[i], row);
    return bytes;
}

static sluice_status append(making *m, uint32_t column, const st_column *from, uint64_t row, sluice_error *err)
{
    m->bytes += bytes_of(from, row);
    return st_append_from(m->new[column], from, row, err);
}

/* Which tuples the row changes, and whether one of them is too long. */
static sluice_status judge_tuples(making *m, uint64_t position, sluice_error *err)
{
    const st_type_def *type = m->request->type;
    const st_column *old[ST_KEY_LEAVES_MAX], *new[ST_KEY_LEAVES_MAX];
    st_column views[ST_KEY_LEAVES_MAX];
    bool weak = false;

    for (uint32_t u = 0; u < type->unique_count; u++) {
        const st_unique *unique = &type->uniques[u];
        bool same = true;
        for (uint32_t i = 0; i < unique->count; i++) {
            uint32_t column = unique->properties[i] + m->ends;
            st_builder_view(m->new[column], &views[i]);
            old[i] = &m->views[column];
            new[i] = &views[i];
            same = same && st_value_same(old[i], 0, new[i], m->rows);
        }
        if (same)
            continue;
        m->bases[position - m->low].changes |= UINT64_C(1) << u;
        if (unique->count < 2 || weak || st_key_has_null(new, unique->count, m->rows))
            continue;
        sluice_error error;
        m->scratch.length = 0;
        sluice_status status = st_key_encode(new, unique->count, m->rows, &m->scratch, &error);
        weak = status == SLUICE_RESOURCE_LIMIT;
        if (weak)
            PF_TRY(add_weak(m, position, WK_WEAK_LONG, u, err));
        else if (status != SLUICE_OK) {
            if (err)
                *err = error;
            return status;
        }
    }
    return SLUICE_OK;
}

static sluice_status complete_row(making *m, uint64_t position, uint64_t row, uint64_t place, sluice_error *err)
{
    uint64_t row_id;

    for (uint32_t i = 0; i < m->count; i++)
        st_builder_truncate(m->old[i], 0);
    PF_TRY(st_table_row(m->request->base, m->request->type, m->reader, (uint32_t)(place >> 32), (uint32_t)place, m->old,
                        &row_id, err));
    for (uint32_t i = 0; i < m->count; i++)
        st_builder_view(m->old[i], &m->views[i]);
    for (uint32_t i = 0; i < m->count; i++) {
        bool keep = m->of_key[i] || is_absent(m, position, i);
        PF_TRY(append(m, i, keep ? &m->views[i] : &m->batch[i], keep ? 0 : row, err));
    }
    return judge_tuples(m, position, err);
}

static sluice_status flush(making *m, sluice_error *err)
{
    for (uint32_t i = 0; i < m->count; i++)
        st_builder_view(m->new[i], &m->views[i]);
    PF_TRY(wk_sink_write(m->sink, m->views, m->rows, err));
    for (uint32_t i = 0; i < m->count; i++)
        st_builder_truncate(m->new[i], 0);
    m->rows = m->bytes = 0;
    return SLUICE_OK;
}

static sluice_status write_row(making *m, uint64_t position, sluice_error *err)
{
    uint64_t place = m->bases[position - m->low].place, row = 0;
    uint32_t batch = 0;

    st_fragment_locate(m->fragment, position, &batch, &row);
    PF_TRY(load_batch(m, batch, err));
    if (place != WK_MATCH_NONE)
        PF_TRY(complete_row(m, position, row, place, err));
    for (uint32_t i = 0; place == WK_MATCH_NONE && i < m->count; i++)
        PF_TRY(append(m, i, &m->batch[i], row, err));
    m->rows++;
    return m->rows == WK_SINK_ROWS || m->bytes >= BATCH_BYTES ? flush(m, err) : SLUICE_OK;
}

/* ---- slices ---- */

static wk_match match_of(const making *m)
{
    const wk_whole *request = m->request;
    return (wk_match){.volume = request->spool->volume,
                      .schema = request->schema,
                      .type = request->type,
                      .base = request->base,
                      .staged = request->staged,
                      .low = m->low,
                      .high = m->high};
}

static sluice_status make_slice(making *m, sluice_error *err)
{
    const wk_whole *request = m->request;
    const wk_match match = match_of(m);
    uint64_t count = m->high - m->low, found = 0;

    PF_TRY(wk_spool_get_range(request->spool, request->absent, m->low * m->stride, count * m->stride, &m->absent, err));
    memset(m->places, 0xff, count * sizeof *m->places);
    if (m->known)
        PF_TRY(wk_match_rows(&match, m->places, &found, err));
    for (uint64_t i = 0; i < count; i++)
        m->bases[i] = (wk_base){.place = m->places[i]};
    for (uint64_t position = m->low; position < m->high; position++) {
        if (m->places[position - m->low] == WK_MATCH_NONE)
            PF_TRY(judge_new(m, position, err));
        if (m->rewritten)
            PF_TRY(write_row(m, position, err));
    }
    return m->known ? wk_spool_append(&m->bases_file, m->bases, count * sizeof *m->bases, err) : SLUICE_OK;
}

static sluice_status make_slices(making *m, sluice_error *err)
{
    uint64_t rows = m->staged->add.fragment.rows;

    for (m->low = 0; m->low < rows; m->low = m->high) {
        m->high = rows - m->low > m->request->slice ? m->low + m->request->slice : rows;
        PF_TRY(make_slice(m, err));
    }
    return m->rewritten ? flush(m, err) : SLUICE_OK;
}

/* ---- all of it ---- */

static sluice_status make_builders(const making *m, st_column_builder ***ret_builders, sluice_error *err)
{
    *ret_builders = calloc((size_t)m->count + 1, sizeof(st_column_builder *));
    if (*ret_builders == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < m->count; i++)
        PF_TRY(st_column_builder_new(&m->specs[i], &(*ret_builders)[i], err));
    return SLUICE_OK;
}

static sluice_status open_rewriting(making *m, sluice_error *err)
{
    const wk_whole *request = m->request;
    const st_type_def *type = request->type;
    wk_sink_setup setup = {.volume = request->spool->volume,
                           .schema = request->schema,
                           .type = type,
                           .specs = m->specs,
                           .count = m->count,
                           .number = request->number,
                           .spool = request->spool,
                           .expected = m->staged->add.fragment.rows};

    m->of_key = calloc((size_t)m->count + 1, sizeof *m->of_key);
    m->views = calloc((size_t)m->count + 1, sizeof *m->views);
    m->batch = calloc((size_t)m->count + 1, sizeof *m->batch);
    if (m->of_key == NULL || m->views == NULL || m->batch == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < m->ends; i++)
        m->of_key[i] = true;
    for (uint32_t i = 0; i < type->key_count; i++)
        m->of_key[type->key[i] + m->ends] = true;
    (void)snprintf(setup.prefix, sizeof setup.prefix, "%s", request->prefix);
    PF_TRY(make_builders(m, &m->old, err));
    PF_TRY(make_builders(m, &m->new, err));
    PF_TRY(st_table_reader_get(request->base, type->table, &m->reader, err));
    PF_TRY(st_fragment_open(request->spool->volume, type->table, &m->staged->add.fragment, &m->fragment, err));
    return wk_sink_open(&setup, &m->sink, err);
}

static sluice_status open_all(making *m, sluice_error *err)
{
    const wk_whole *request = m->request;
    uint64_t rows = m->staged->add.fragment.rows, room = rows < request->slice ? rows : request->slice;
    wk_match match = match_of(m);
    char name[WK_SPOOL_NAME];
    uint64_t found = 0;

    PF_TRY(st_type_columns(request->schema, request->type, &m->specs, &m->count, err));
    m->ends = request->type->edge ? 2 : 0;
    for (uint32_t i = m->ends; i < m->count; i++)
        m->specs[i].nullable = true; /* of a weak row a value may be missing */
    m->stride = wk_rows_absent_stride(m->count);
    m->places = malloc((room + 1) * sizeof *m->places);
    m->bases = malloc((room + 1) * sizeof *m->bases);
    if (m->places == NULL || m->bases == NULL)
        return pf_fail_memory(err);
    match.high = rows;
    PF_TRY(wk_match_rows(&match, NULL, &found, err));
    m->known = found > 0;
    m->rewritten = m->known && request->type->unique_count > 0;
    PF_TRY(wk_events_begin(request->spool, request->weak, &m->weak, err));
    bases_name(request->stem, name);
    if (m->known)
        PF_TRY(wk_spool_begin(request->spool, name, &m->bases_file, err));
    return m->rewritten ? open_rewriting(m, err) : SLUICE_OK;
}

static sluice_status finish(making *m, wk_staged *whole, sluice_error *err)
{
    pf_buffer buffer = {0};
    sluice_status status = SLUICE_OK;

    if (m->bases_file.file)
        PF_TRY(wk_spool_end(&m->bases_file, NULL, err));
    PF_TRY(wk_events_end(&m->weak, err));
    PF_GOTO(status, done, wk_staged_encode(m->staged, &buffer, err));
    PF_GOTO(status, done, wk_staged_decode(buffer.data, buffer.length, whole, err));
    if (m->rewritten) {
        free(whole->add.runs);
        whole->add = (st_edit_add){0};
        status = wk_sink_finish(m->sink, &whole->add, err);
    }
done:
    pf_buffer_free(&buffer);
    return status;
}

static void close_all(making *m)
{
    if (m->bases_file.file)
        wk_spool_abandon(&m->bases_file);
    if (m->weak.file.file)
        wk_events_abandon(&m->weak);
    for (uint32_t i = 0; i < m->count; i++) {
        st_column_builder_free(m->old ? m->old[i] : NULL);
        st_column_builder_free(m->new ? m->new[i] : NULL);
    }
    free(m->old);
    free(m->new);
    free(m->of_key);
    free(m->views);
    free(m->batch);
    free(m->places);
    free(m->bases);
    wk_sink_close(m->sink);
    st_fragment_close(m->fragment);
    st_type_columns_free(m->specs, m->count);
    pf_buffer_free(&m->absent);
    pf_buffer_free(&m->scratch);
}

sluice_status wk_whole_make(const wk_whole *request, wk_staged *ret_whole, sluice_error *err)
{
    making m = {.request = request, .staged = request->staged};
    sluice_status status;

    *ret_whole = (wk_staged){0};
    PF_GOTO(status, done, open_all(&m, err));
    PF_GOTO(status, done, make_slices(&m, err));
    PF_GOTO(status, done, finish(&m, ret_whole, err));
done:
    close_all(&m);
    if (status != SLUICE_OK)
        wk_staged_free(ret_whole);
    return status;
}

void wk_weak_fault(const st_type_def *type, const wk_event *event, wk_fault *ret_fault)
{
    if (event->probe == WK_WEAK_LACKS)
        wk_fault_set(ret_fault, SLUICE_CONSTRAINT_NULL,
                     "column %s: the key is new, and there is no value for this column, which may not be null",
                     type->properties[event->other_item].name);
    else
        wk_fault_set(ret_fault, SLUICE_RESOURCE_LIMIT,
                     "column %s: the unique value, completed by what is stored, is longer than the limit of %u bytes",
                     type->properties[type->uniques[event->other_item].properties[0]].name, ST_KEY_BYTES_MAX);
    ret_fault->column = UINT32_MAX; /* behind all columns that there are */
}

/* ---- where the base has the rows ---- */

sluice_status wk_bases_open(const wk_spool *spool, const char *stem, pf_file **ret_file, sluice_error *err)
{
    char name[WK_SPOOL_NAME], path[WK_SPOOL_PATH];
    sluice_error error;

    *ret_file = NULL;
    bases_name(stem, name);
    wk_spool_path(spool, name, path);
    sluice_status status = pf_open(spool->volume, path, PF_READ, ret_file, &error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_bases_read(pf_file *file, uint64_t position, uint64_t count, wk_base *ret_bases, sluice_error *err)
{
    return pf_read_exact(file, position * sizeof *ret_bases, ret_bases, count * sizeof *ret_bases, err);
}
