#include "worker/ingest/complete.h"

#include "platform/check.h"
#include "store/arrow/bits.h"
#include "store/read/snapshot.h"
#include "worker/ingest/match.h"
#include "worker/ingest/rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES (UINT64_C(8) << 20) /* of strings in one batch */
#define NEW         WK_MATCH_NONE       /* a row that the base does not have, */
#define LACKING     (UINT64_MAX - 1)    /* one of these without a value that it must have, */
#define PASSED      (UINT64_MAX - 2)    /* and one that is passed over */

typedef struct match {
    uint64_t row; /* its id */
    uint64_t position;
} match;

typedef struct hashes { /* grows as needed */
    uint64_t *items;
    uint64_t count, room;
} hashes;

typedef struct output { /* one of the two fragments */
    wk_sink *sink;
    st_column_builder **builders;
    uint64_t rows, bytes;
    pf_buffer order; /* per row: its record, counted from the chunk's first */
    const char *name;
} output;

typedef struct completing {
    const wk_complete *request;
    const wk_staged *staged;
    uint64_t rows; /* of the slice */
    uint32_t ends;
    st_column_spec *specs; /* the layout, then _row_id and _commit */
    uint32_t count;        /* of the layout */
    bool *of_key;          /* per column: an end or a member of the key */
    st_fragment *fragment; /* the chunk's, */
    st_column *batch;      /* the columns of one batch of it, */
    uint32_t batch_number; /* plus one; 0: none */
    pf_buffer absent;
    size_t stride;
    st_table_reader *reader;
    uint64_t *places; /* per row of the slice: where the base has it */
    match *matches;
    uint64_t match_count, kept; /* kept: those that change */
    st_column_builder **old;    /* one row of the base */
    st_column *views;           /* of it */
    output added, updated;
    hashes *freed, *set; /* per unique tuple */
    uint64_t *gone_places;
    uint64_t *changed; /* bits of the columns that some updated row changes */
    wk_fault least;
    pf_buffer scratch;
} completing;

/* ---- which rows the base has ---- */

static uint64_t *place_of(const completing *c, uint64_t position)
{
    PF_ASSERT(position >= c->request->low && position < c->request->high);
    return &c->places[position - c->request->low];
}

static wk_match match_of(const wk_complete *request)
{
    return (wk_match){.volume = request->spool->volume,
                      .schema = request->schema,
                      .type = request->type,
                      .base = request->base,
                      .staged = request->staged,
                      .dead = request->dead,
                      .low = request->low,
                      .high = request->high};
}

static int by_row(const void *a, const void *b)
{
    const match *left = a, *right = b;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    return left->position < right->position ? -1 : left->position > right->position;
}

static sluice_status sort_matches(completing *c, sluice_error *err)
{
    uint64_t at = 0;

    c->matches = malloc((c->match_count + 1) * sizeof *c->matches);
    c->gone_places = malloc((c->match_count + 1) * sizeof *c->gone_places);
    if (c->matches == NULL || c->gone_places == NULL)
        return pf_fail_memory(err);
    for (uint64_t position = c->request->low; position < c->request->high; position++) {
        uint64_t place = *place_of(c, position);
        if (place >= PASSED)
            continue;
        PF_TRY(st_reader_row_id(c->reader, (uint32_t)(place >> 32), (uint32_t)place, &c->matches[at].row, err));
        c->matches[at++].position = position;
    }
    qsort(c->matches, c->match_count, sizeof *c->matches, by_row);
    return SLUICE_OK;
}

/* ---- values ---- */

static bool is_absent(const completing *c, uint64_t position, uint32_t column)
{
    return st_bit(c->absent.data + (position - c->request->low) * c->stride, column);
}

static sluice_status load_batch(completing *c, uint32_t batch, sluice_error *err)
{
    if (c->batch_number == batch + 1)
        return SLUICE_OK;
    c->batch_number = 0;
    for (uint32_t i = 0; i < c->count; i++)
        PF_TRY(st_fragment_column(c->fragment, batch, i, &c->batch[i], err));
    c->batch_number = batch + 1;
    return SLUICE_OK;
}

static uint64_t bytes_of(const st_column *column, uint64_t row)
{
    uint64_t bytes = 0;

    if (column->offsets)
        return (uint64_t)(column->offsets[row + 1] - column->offsets[row]);
    for (uint32_t i = 0; i < column->child_count; i++)
        if (column->children[i].offsets)
            bytes += (uint64_t)(column->children[i].offsets[row + 1] - column->children[i].offsets[row]);
    return bytes;
}

static sluice_status append(output *out, uint32_t column, const st_column *from, uint64_t row, sluice_error *err)
{
    out->bytes += bytes_of(from, row);
    return st_append_from(out->builders[column], from, row, err);
}

static sluice_status flush(completing *c, output *out, sluice_error *err)
{
    uint32_t count = c->count + (out == &c->updated ? 2 : 0);
    st_column *views = c->views; /* the old row is done with */

    for (uint32_t i = 0; i < count; i++)
        st_builder_view(out->builders[i], &views[i]);
    PF_TRY(wk_sink_write(out->sink, views, out->rows, err));
    for (uint32_t i = 0; i < count; i++)
        st_builder_truncate(out->builders[i], 0);
    out->rows = out->bytes = 0;
    return SLUICE_OK;
}

static sluice_status end_row(completing *c, output *out, uint64_t position, sluice_error *err)
{
    uint32_t record = (uint32_t)(wk_staged_record(c->staged, position) - c->staged->first_record);

    out->rows++;
    PF_TRY(pf_buffer_append(&out->order, &record, sizeof record, err));
    return out->rows == WK_SINK_ROWS || out->bytes >= BATCH_BYTES ? flush(c, out, err) : SLUICE_OK;
}

/* ---- rows that are new ---- */

static void refuse(completing *c, uint64_t position, const wk_fault *found)
{
    wk_fault fault = *found;

    fault.argument = c->staged->argument;
    fault.record = wk_staged_record(c->staged, position);
    fault.column = UINT32_MAX; /* behind all columns that there are */
    wk_fault_least(&c->least, &fault);
}

/* Must a new row have a value that its record does not give? */
static bool lacks_value(completing *c, uint64_t position)
{
    const st_type_def *type = c->request->type;

    for (uint32_t i = 0; i < type->property_count; i++) {
        const st_property *property = &type->properties[i];
        wk_fault fault = {0};
        if (property->nullable || property->default_value.present || !is_absent(c, position, i + c->ends))
            continue;
        wk_fault_set(&fault, SLUICE_CONSTRAINT_NULL,
                     "column %s: the key is new, and there is no value for this column, which may not be null",
                     property->name);
        refuse(c, position, &fault);
        return true;
    }
    return false;
}

static void mark_passed(completing *c)
{
    PF_ASSERT(c->request->dead == NULL || !c->request->all_new);
    for (uint64_t position = c->request->low; c->request->dead && position < c->request->high; position++)
        if (st_row_set_contains(c->request->dead, position))
            *place_of(c, position) = PASSED;
}

static bool find_lacking(completing *c)
{
    bool any = false;

    for (uint64_t position = c->request->low; position < c->request->high; position++)
        if ((c->request->all_new || *place_of(c, position) == NEW) && lacks_value(c, position)) {
            if (!c->request->all_new)
                *place_of(c, position) = LACKING;
            any = true;
        }
    return any;
}

static sluice_status add_new_row(completing *c, uint64_t row, uint64_t position, sluice_error *err)
{
    for (uint32_t i = 0; i < c->count; i++)
        PF_TRY(append(&c->added, i, &c->batch[i], row, err));
    return end_row(c, &c->added, position, err);
}

static sluice_status add_new_rows(completing *c, sluice_error *err)
{
    uint64_t position = 0;

    for (uint32_t batch = 0; batch < st_fragment_batches(c->fragment) && position < c->request->high; batch++) {
        uint64_t end = position + st_fragment_batch_rows(c->fragment, batch), first = position;
        uint64_t from = position < c->request->low ? c->request->low : position;
        position = end;
        if (from >= end)
            continue;
        PF_TRY(load_batch(c, batch, err));
        for (; from < end && from < c->request->high; from++)
            if (*place_of(c, from) == NEW)
                PF_TRY(add_new_row(c, from - first, from, err));
    }
    return flush(c, &c->added, err);
}

/* ---- rows that the base has ---- */

static sluice_status read_old(completing *c, uint64_t place, sluice_error *err)
{
    uint64_t row_id;

    for (uint32_t i = 0; i < c->count; i++)
        st_builder_truncate(c->old[i], 0);
    PF_TRY(st_table_row(c->request->base, c->request->type, c->reader, (uint32_t)(place >> 32), (uint32_t)place, c->old,
                        &row_id, err));
    for (uint32_t i = 0; i < c->count; i++)
        st_builder_view(c->old[i], &c->views[i]);
    return SLUICE_OK;
}

static sluice_status complete_row(completing *c, const match *found, bool *ret_changed, sluice_error *err)
{
    uint32_t batch = 0;
    uint64_t row = 0;

    *ret_changed = false;
    st_fragment_locate(c->fragment, found->position, &batch, &row);
    PF_TRY(load_batch(c, batch, err));
    for (uint32_t i = 0; i < c->count; i++) {
        bool keep =
            c->of_key[i] || is_absent(c, found->position, i) || st_value_same(&c->batch[i], row, &c->views[i], 0);
        PF_TRY(append(&c->updated, i, keep ? &c->views[i] : &c->batch[i], keep ? 0 : row, err));
        if (!keep) {
            c->changed[i / 64] |= UINT64_C(1) << i % 64;
            *ret_changed = true;
        }
    }
    return SLUICE_OK;
}

static sluice_status add_hash(hashes *list, uint64_t hash, sluice_error *err)
{
    if (list->count == list->room) {
        uint64_t room = list->room ? list->room * 2 : 64;
        uint64_t *items = realloc(list->items, room * sizeof *items);
        if (items == NULL)
            return pf_fail_memory(err);
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = hash;
    return SLUICE_OK;
}

/* A tuple may have members of old and new, which nobody has measured together yet. */
static sluice_status check_length(completing *c, const st_unique *unique, const st_column *const *tuple, uint64_t row,
                                  uint64_t position, sluice_error *err)
{
    sluice_error error;
    wk_fault fault = {0};

    c->scratch.length = 0;
    if (unique->count < 2 || st_key_encode(tuple, unique->count, row, &c->scratch, &error) == SLUICE_OK)
        return SLUICE_OK;
    if (error.code != SLUICE_RESOURCE_LIMIT) {
        if (err)
            *err = error;
        return error.code;
    }
    wk_fault_set(&fault, SLUICE_RESOURCE_LIMIT,
                 "column %s: the unique value, completed by what is stored, is longer than the limit of %u bytes",
                 c->request->type->properties[unique->properties[0]].name, ST_KEY_BYTES_MAX);
    refuse(c, position, &fault);
    return SLUICE_OK;
}

/* Which unique tuples the row gives up, and which it takes. */
static sluice_status note_tuples(completing *c, uint64_t position, sluice_error *err)
{
    const st_type_def *type = c->request->type;
    const st_column *old[ST_KEY_LEAVES_MAX], *new[ST_KEY_LEAVES_MAX];
    st_column views[ST_KEY_LEAVES_MAX];

    for (uint32_t u = 0; u < type->unique_count; u++) {
        const st_unique *unique = &type->uniques[u];
        bool same = true;
        uint64_t row = c->updated.rows;
        for (uint32_t i = 0; i < unique->count; i++) {
            uint32_t column = unique->properties[i] + c->ends;
            st_builder_view(c->updated.builders[column], &views[i]);
            old[i] = &c->views[column];
            new[i] = &views[i];
            same = same && st_value_same(old[i], 0, new[i], row);
        }
        if (same)
            continue;
        if (!st_key_has_null(old, unique->count, 0))
            PF_TRY(add_hash(&c->freed[u], st_key_hash_row(old, unique->count, 0), err));
        if (st_key_has_null(new, unique->count, row))
            continue;
        PF_TRY(add_hash(&c->set[u], st_key_hash_row(new, unique->count, row), err));
        PF_TRY(check_length(c, unique, new, row, position, err));
    }
    return SLUICE_OK;
}

static sluice_status update_row(completing *c, const match *found, sluice_error *err)
{
    output *out = &c->updated;
    uint64_t before = out->bytes;
    bool changed = false;

    PF_TRY(read_old(c, *place_of(c, found->position), err));
    PF_TRY(complete_row(c, found, &changed, err));
    if (!changed) {
        for (uint32_t i = 0; i < c->count; i++)
            st_builder_truncate(out->builders[i], out->rows);
        out->bytes = before;
        return SLUICE_OK;
    }
    PF_TRY(st_append_u64(out->builders[c->count], found->row, err));
    PF_TRY(st_append_bytes(out->builders[c->count + 1], c->request->commit.bytes, 16, err));
    PF_TRY(note_tuples(c, found->position, err));
    c->gone_places[c->kept] = *place_of(c, found->position);
    c->matches[c->kept++].row = found->row;
    return end_row(c, out, found->position, err);
}

static sluice_status update_rows(completing *c, sluice_error *err)
{
    for (uint64_t i = 0; i < c->match_count; i++)
        PF_TRY(update_row(c, &(match){c->matches[i].row, c->matches[i].position}, err));
    return flush(c, &c->updated, err);
}

/* ---- what is left behind ---- */

static void file_name(const completing *c, const char *what, char ret_name[WK_SPOOL_NAME])
{
    int length = snprintf(ret_name, WK_SPOOL_NAME, "%s-%s", c->request->stem, what);
    PF_ALWAYS(length > 0 && (size_t)length < WK_SPOOL_NAME);
}

static sluice_status finish_output(completing *c, output *out, wk_staged *staged, sluice_error *err)
{
    staged->table = c->staged->table;
    staged->argument = c->staged->argument;
    staged->chunk = c->staged->chunk;
    staged->first_record = c->staged->first_record;
    staged->updates = out == &c->updated;
    PF_TRY(wk_sink_finish(out->sink, &staged->add, err));
    staged->tries = wk_sink_tries(out->sink);
    if (staged->add.fragment.rows == 0)
        return SLUICE_OK;
    file_name(c, out->name, staged->order);
    return wk_spool_put(c->request->spool, staged->order, out->order.data, out->order.length, NULL, err);
}

static sluice_status write_gone(const completing *c, sluice_error *err)
{
    const st_type_def *type = c->request->type;
    wk_gone gone = {.count = c->kept,
                    .places = c->gone_places,
                    .changed = (const uint8_t *)c->changed,
                    .unique_count = type->unique_count,
                    .tuples = calloc((size_t)type->unique_count + 1, sizeof *gone.tuples)};
    uint64_t *rows = malloc((c->kept + 1) * sizeof *rows);
    sluice_status status = gone.tuples && rows ? SLUICE_OK : pf_fail_memory(err);

    for (uint64_t i = 0; status == SLUICE_OK && i < c->kept; i++)
        rows[i] = c->matches[i].row;
    for (uint32_t u = 0; status == SLUICE_OK && u < type->unique_count; u++)
        gone.tuples[u] = (struct wk_gone_tuples){.freed = c->freed[u].items,
                                                 .set = c->set[u].items,
                                                 .freed_count = c->freed[u].count,
                                                 .set_count = c->set[u].count};
    gone.rows = rows;
    if (status == SLUICE_OK && c->kept > 0)
        status = wk_gone_put(c->request->spool, c->request->stem, type, &gone, err);
    free(gone.tuples);
    free(rows);
    return status;
}

/* ---- all of it ---- */

static sluice_status make_builders(const completing *c, uint32_t count, st_column_builder ***ret_builders,
                                   sluice_error *err)
{
    *ret_builders = calloc((size_t)count + 1, sizeof(st_column_builder *));
    if (*ret_builders == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(st_column_builder_new(&c->specs[i], &(*ret_builders)[i], err));
    return SLUICE_OK;
}

static void free_builders(st_column_builder **builders, uint32_t count)
{
    for (uint32_t i = 0; builders && i < count; i++)
        st_column_builder_free(builders[i]);
    free(builders);
}

static sluice_status open_output(completing *c, output *out, const char *name, sluice_error *err)
{
    const wk_complete *request = c->request;
    bool updates = out == &c->updated;
    wk_sink_setup setup = {.volume = request->spool->volume,
                           .schema = request->schema,
                           .type = request->type,
                           .specs = c->specs,
                           .count = c->count + (updates ? 2 : 0),
                           .number = request->number + (updates ? WK_SINK_NAMES : 0),
                           .compress = request->compress,
                           .spool = request->spool,
                           .expected = c->rows};

    (void)snprintf(setup.prefix, sizeof setup.prefix, "%s", request->prefix);
    out->name = name;
    PF_TRY(make_builders(c, setup.count, &out->builders, err));
    return wk_sink_open(&setup, &out->sink, err);
}

static void close_output(const completing *c, output *out)
{
    free_builders(out->builders, c->count + (out == &c->updated ? 2 : 0));
    wk_sink_close(out->sink);
    pf_buffer_free(&out->order);
}

/* The layout, with the columns of rewritten rows behind it. */
static sluice_status make_specs(completing *c, sluice_error *err)
{
    static char row_id[] = "_row_id", commit[] = "_commit";
    const st_type_def *type = c->request->type;
    st_column_spec *specs = NULL;

    PF_TRY(st_type_columns(c->request->schema, type, &specs, &c->count, err));
    c->specs = realloc(specs, ((size_t)c->count + 2) * sizeof *specs);
    if (c->specs == NULL) {
        st_type_columns_free(specs, c->count);
        return pf_fail_memory(err);
    }
    c->specs[c->count] = (st_column_spec){.name = row_id, .type = ST_ROW_ID};
    c->specs[c->count + 1] = (st_column_spec){.name = commit, .type = ST_COMMIT_ID};
    c->ends = type->edge ? 2 : 0;
    c->of_key = calloc((size_t)c->count + 1, sizeof *c->of_key);
    c->views = calloc((size_t)c->count + 2, sizeof *c->views);
    c->batch = calloc((size_t)c->count + 1, sizeof *c->batch);
    c->changed = calloc(wk_gone_column_words(type) + 1, sizeof *c->changed);
    c->freed = calloc((size_t)type->unique_count + 1, sizeof *c->freed);
    c->set = calloc((size_t)type->unique_count + 1, sizeof *c->set);
    if (c->of_key == NULL || c->views == NULL || c->batch == NULL || c->changed == NULL || c->freed == NULL ||
        c->set == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < c->ends; i++)
        c->of_key[i] = true;
    for (uint32_t i = 0; i < type->key_count; i++)
        c->of_key[type->key[i] + c->ends] = true;
    return SLUICE_OK;
}

static sluice_status open_inputs(completing *c, sluice_error *err)
{
    const wk_complete *request = c->request;

    c->stride = wk_rows_absent_stride(c->count);
    PF_TRY(wk_spool_get_range(request->spool, request->absent, request->low * c->stride, c->rows * c->stride,
                              &c->absent, err));
    if (request->all_new)
        return SLUICE_OK;
    c->places = malloc((c->rows + 1) * sizeof *c->places);
    if (c->places == NULL)
        return pf_fail_memory(err);
    memset(c->places, 0xff, c->rows * sizeof *c->places);
    PF_TRY(st_table_reader_get(request->base, request->type->table, &c->reader, err));
    return st_fragment_open(request->spool->volume, request->type->table, &c->staged->add.fragment, &c->fragment, err);
}

static void close_all(completing *c)
{
    close_output(c, &c->added);
    close_output(c, &c->updated);
    free_builders(c->old, c->count);
    for (uint32_t u = 0; c->freed && c->set && u < c->request->type->unique_count; u++) {
        free(c->freed[u].items);
        free(c->set[u].items);
    }
    free(c->freed);
    free(c->set);
    free(c->gone_places);
    free(c->matches);
    free(c->places);
    free(c->of_key);
    free(c->views);
    free(c->batch);
    free(c->changed);
    st_fragment_close(c->fragment);
    st_type_columns_free(c->specs, c->count);
    pf_buffer_free(&c->absent);
    pf_buffer_free(&c->scratch);
}

/* All rows are new: the chunk's fragment is what is added. */
static sluice_status use_as_staged(const completing *c, wk_staged *added, sluice_error *err)
{
    pf_buffer buffer = {0};
    sluice_status status = wk_staged_encode(c->staged, &buffer, err);

    if (status == SLUICE_OK)
        status = wk_staged_decode(buffer.data, buffer.length, added, err);
    pf_buffer_free(&buffer);
    return status;
}

static sluice_status run(completing *c, wk_completed *out, sluice_error *err)
{
    const wk_match keys = match_of(c->request);
    bool whole = c->rows == c->staged->add.fragment.rows && c->request->dead == NULL;

    PF_TRY(make_specs(c, err));
    PF_TRY(open_inputs(c, err));
    if (!c->request->all_new)
        PF_TRY(wk_match_rows(&keys, c->places, &c->match_count, err));
    mark_passed(c);
    bool lacking = find_lacking(c);
    if (whole && c->match_count == 0 && (!lacking || c->request->all_new)) {
        PF_TRY(use_as_staged(c, &out->added, err));
        out->added.least = c->least; /* then the load is lost, and what it would add does not matter */
        return SLUICE_OK;
    }
    PF_TRY(make_builders(c, c->count, &c->old, err));
    PF_TRY(open_output(c, &c->added, "added", err));
    PF_TRY(open_output(c, &c->updated, "updated", err));
    PF_TRY(sort_matches(c, err));
    PF_TRY(add_new_rows(c, err));
    PF_TRY(update_rows(c, err));
    PF_TRY(finish_output(c, &c->added, &out->added, err));
    PF_TRY(finish_output(c, &c->updated, &out->updated, err));
    out->added.least = c->least;
    return write_gone(c, err);
}

sluice_status wk_complete_any_known(const wk_complete *request, bool *ret_known, sluice_error *err)
{
    const wk_match keys = match_of(request);
    uint64_t count = 0;
    sluice_status status = wk_match_rows(&keys, NULL, &count, err);

    *ret_known = count > 0;
    return status;
}

sluice_status wk_complete_slice(const wk_complete *request, wk_completed *ret_completed, sluice_error *err)
{
    completing c = {.request = request, .staged = request->staged, .rows = request->high - request->low};
    sluice_status status;

    *ret_completed = (wk_completed){0};
    if (c.rows == 0)
        return SLUICE_OK;
    status = run(&c, ret_completed, err);
    close_all(&c);
    if (status != SLUICE_OK)
        wk_completed_free(ret_completed);
    return status;
}

void wk_completed_free(wk_completed *completed)
{
    wk_staged_free(&completed->added);
    wk_staged_free(&completed->updated);
}
