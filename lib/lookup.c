/*
 * Look-ups (sluice/lookup.h): rows by key, links by node. Each handle keeps what it has opened.
 */
#include "lib/handle.h"
#include "lib/value.h"
#include "platform/check.h"
#include "store/read/links.h"
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

struct sluice_rows {
    sluice_snapshot *snapshot;
    const st_type_def *type;
    st_table_reader *reader;
    uint32_t *columns; /* properties */
    uint32_t width, fragments;
    int32_t *places; /* per fragment and column: where it stands there; NOT_LOOKED_UP, ABSENT */
    lib_key key;
};
enum { NOT_LOOKED_UP = -2, ABSENT = -1 };

static sluice_status choose_columns(sluice_rows *rows, const char *const *columns, size_t count, sluice_error *err)
{
    const st_type_def *type = rows->type;
    rows->width = columns ? (uint32_t)count : type->property_count;
    if (columns && count > type->property_count)
        return pf_fail(err, SLUICE_USAGE, "more columns than the type has properties");
    rows->columns = malloc(((size_t)rows->width + 1) * sizeof *rows->columns);
    if (!rows->columns)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < rows->width; i++) {
        int found = (int)i;
        if (columns) {
            PF_TRY(lib_need(columns[i], "the name of a column", err));
            found = st_type_find_property(type, columns[i]);
        }
        if (found < 0)
            return pf_fail_private(err, SLUICE_USAGE, "a property that the type does not have",
                                   "%s has no property \"%s\"", type->name, columns[i]);
        rows->columns[i] = (uint32_t)found;
    }
    return SLUICE_OK;
}

static sluice_status make_places(sluice_rows *rows, sluice_error *err)
{
    size_t count = (size_t)rows->fragments * rows->width;
    rows->places = malloc((count + 1) * sizeof *rows->places);
    if (!rows->places)
        return pf_fail_memory(err);
    for (size_t i = 0; i < count; i++)
        rows->places[i] = NOT_LOOKED_UP;
    return SLUICE_OK;
}

sluice_status sluice_rows_open(sluice_snapshot *snapshot, const char *type, const char *const *columns,
                               size_t column_count, sluice_rows **ret_rows, sluice_error *err)
{
    sluice_status status;
    PF_TRY(lib_need(ret_rows, "ret_rows", err));
    *ret_rows = NULL;
    PF_TRY(lib_check_snapshot(snapshot, err));
    PF_TRY(lib_need(type, "the type", err));
    sluice_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return pf_fail_memory(err);
    PF_GOTO(status, failed, st_snapshot_type(snapshot->snapshot, type, &rows->type, err));
    if (rows->type->edge) {
        status = pf_fail_private(err, SLUICE_USAGE, "a type of edges has no key", "%s is a type of edges", type);
        goto failed;
    }
    PF_GOTO(status, failed, choose_columns(rows, columns, column_count, err));
    PF_GOTO(status, failed, st_table_reader_get(snapshot->snapshot, rows->type->table, &rows->reader, err));
    rows->fragments = st_table_reader_fragments(rows->reader);
    PF_GOTO(status, failed, make_places(rows, err));
    rows->snapshot = snapshot;
    lib_snapshot_hold(snapshot);
    *ret_rows = rows;
    return SLUICE_OK;
failed:
    sluice_rows_close(rows);
    return status;
}

void sluice_rows_close(sluice_rows *rows)
{
    if (!rows)
        return;
    if (rows->snapshot)
        lib_snapshot_release(rows->snapshot);
    free(rows->columns);
    free(rows->places);
    free(rows);
}

size_t sluice_rows_width(const sluice_rows *rows)
{
    return rows->width;
}

static sluice_status read_value(sluice_rows *rows, uint32_t fragment, st_fragment *opened, uint32_t batch, uint64_t row,
                                uint32_t i, sluice_value *ret_value, sluice_error *err)
{
    int32_t *place = &rows->places[(size_t)fragment * rows->width + i];
    st_column column;
    if (*place == NOT_LOOKED_UP)
        *place = st_layout_find(rows->type, opened, rows->columns[i]);
    if (*place == ABSENT)
        PF_TRY(st_table_reader_column(rows->reader, opened, batch, rows->columns[i], &column, err));
    else
        PF_TRY(st_fragment_column(opened, batch, (uint32_t)*place, &column, err));
    *ret_value = lib_value_at(&column, row);
    return SLUICE_OK;
}

sluice_status sluice_rows_get(sluice_rows *rows, const sluice_value *key, size_t members, sluice_value *ret_values,
                              bool *ret_found, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t fragment = 0, batch = 0;
    uint64_t position = 0, row = 0;
    PF_TRY(lib_need(ret_found, "ret_found", err));
    *ret_found = false;
    PF_TRY(lib_need(rows, "the rows", err));
    PF_TRY(lib_check_snapshot(rows->snapshot, err));
    PF_TRY(lib_key_fill(&rows->key, rows->type, key, members, err));
    PF_TRY(
        st_table_find_key(rows->reader, rows->key.pointers, rows->key.count, 0, ret_found, &fragment, &position, err));
    if (!*ret_found || rows->width == 0)
        return SLUICE_OK;
    PF_TRY(lib_need(ret_values, "ret_values", err));
    PF_TRY(st_table_reader_fragment(rows->reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &row);
    for (uint32_t i = 0; i < rows->width; i++)
        PF_TRY(read_value(rows, fragment, opened, batch, row, i, &ret_values[i], err));
    return SLUICE_OK;
}

/* ---- links ---- */

struct sluice_links {
    sluice_snapshot *snapshot;
    st_links *links;
    uint32_t width;
    sluice_value *values;
    size_t count, room; /* of values */
    lib_key key;
};

sluice_status sluice_links_open(sluice_snapshot *snapshot, const char *edge, sluice_direction direction,
                                sluice_links **ret_links, sluice_error *err)
{
    const st_type_def *type = NULL;
    PF_TRY(lib_need(ret_links, "ret_links", err));
    *ret_links = NULL;
    PF_TRY(lib_check_snapshot(snapshot, err));
    PF_TRY(lib_need(edge, "the type", err));
    PF_TRY(st_snapshot_type(snapshot->snapshot, edge, &type, err));
    if (!type->edge)
        return pf_fail_private(err, SLUICE_USAGE, "links are followed over a type of edges", "%s is a type of nodes",
                               edge);
    if (direction != SLUICE_OUT && direction != SLUICE_IN)
        return pf_fail(err, SLUICE_USAGE, "links are followed one way: SLUICE_OUT or SLUICE_IN");
    sluice_links *links = calloc(1, sizeof *links);
    if (!links)
        return pf_fail_memory(err);
    sluice_status status =
        st_links_open(snapshot->snapshot, type, direction == SLUICE_IN ? ST_IN : ST_OUT, &links->links, err);
    if (status != SLUICE_OK) {
        free(links);
        return status;
    }
    links->width = lib_key_width(st_links_end(links->links, true));
    links->snapshot = snapshot;
    lib_snapshot_hold(snapshot);
    *ret_links = links;
    return SLUICE_OK;
}

void sluice_links_close(sluice_links *links)
{
    if (!links)
        return;
    st_links_close(links->links);
    lib_snapshot_release(links->snapshot);
    free(links->values);
    free(links);
}

size_t sluice_links_width(const sluice_links *links)
{
    return links->width;
}

static sluice_status reserve(sluice_links *links, uint64_t more, sluice_error *err)
{
    if (more <= links->room - links->count)
        return SLUICE_OK;
    size_t room = links->count + more + links->room + 64;
    sluice_value *values = realloc(links->values, room * sizeof *values);
    if (!values)
        return pf_fail_memory(err);
    links->values = values;
    links->room = room;
    return SLUICE_OK;
}

static sluice_status take_key(void *context, const st_column *members, uint32_t count, uint64_t row, sluice_error *err)
{
    sluice_links *links = context;
    if (count != links->width)
        return pf_fail(err, SLUICE_CORRUPT, "an end has %u members, its type's key %u", (unsigned)count,
                       (unsigned)links->width);
    PF_TRY(reserve(links, count, err));
    for (uint32_t i = 0; i < count; i++)
        links->values[links->count++] = lib_value_at(&members[i], row);
    return SLUICE_OK;
}

static sluice_status take_words(sluice_links *links, sluice_error *err)
{
    const uint64_t *words = NULL;
    uint64_t count = 0;
    st_type type = lib_key_type(st_links_end(links->links, true), 0);
    PF_TRY(st_links_words(links->links, &links->key.whole, &words, &count, err));
    PF_TRY(reserve(links, count, err));
    for (uint64_t i = 0; i < count; i++)
        links->values[links->count++] = lib_value_of_word(type, words[i]);
    return SLUICE_OK;
}

static sluice_status begin(sluice_links *links, const sluice_value *key, size_t members, sluice_error *err)
{
    PF_TRY(lib_need(links, "the links", err));
    PF_TRY(lib_check_snapshot(links->snapshot, err));
    links->count = 0;
    return lib_key_fill(&links->key, st_links_end(links->links, false), key, members, err);
}

sluice_status sluice_links_get(sluice_links *links, const sluice_value *key, size_t members,
                               const sluice_value **ret_keys, size_t *ret_count, sluice_error *err)
{
    PF_TRY(lib_need(ret_keys, "ret_keys", err));
    PF_TRY(lib_need(ret_count, "ret_count", err));
    *ret_keys = NULL;
    *ret_count = 0;
    PF_TRY(begin(links, key, members, err));
    if (st_links_are_words(links->links))
        PF_TRY(take_words(links, err));
    else
        PF_TRY(st_links_each(links->links, &links->key.whole, take_key, links, err));
    *ret_keys = links->values;
    *ret_count = links->count / links->width;
    return SLUICE_OK;
}

/* One whole number: what lib_value_at gives as int64, and its word is. */
static bool is_int64(const st_type_def *type)
{
    st_type key = lib_key_type(type, 0);
    return lib_key_width(type) == 1 && (key == ST_INT32 || key == ST_INT64 || key == ST_DATE || key == ST_TIMESTAMP);
}

/* Where hashes do not tell the keys (builds for tests may force them to be equal). */
static sluice_status numbers_of_values(sluice_links *links, const int64_t **ret_keys, size_t *ret_count,
                                       sluice_error *err)
{
    PF_TRY(st_links_each(links->links, &links->key.whole, take_key, links, err));
    for (size_t i = 0; i < links->count; i++) { /* numbers are shorter than values: each is read before it is covered */
        int64_t number = links->values[i].int64;
        memcpy((uint8_t *)links->values + i * sizeof number, &number, sizeof number);
    }
    *ret_keys = (const int64_t *)(const void *)links->values;
    *ret_count = links->count;
    return SLUICE_OK;
}

sluice_status sluice_links_get_int64(sluice_links *links, int64_t key, const int64_t **ret_keys, size_t *ret_count,
                                     sluice_error *err)
{
    const sluice_value value = {.kind = SLUICE_INT64, .int64 = key};
    const uint64_t *words = NULL;
    uint64_t count = 0;
    PF_TRY(lib_need(ret_keys, "ret_keys", err));
    PF_TRY(lib_need(ret_count, "ret_count", err));
    *ret_keys = NULL;
    *ret_count = 0;
    PF_TRY(begin(links, &value, 1, err));
    if (!is_int64(st_links_end(links->links, false)) || !is_int64(st_links_end(links->links, true)))
        return pf_fail(err, SLUICE_USAGE, "the keys at both ends must be one whole number: use sluice_links_get");
    if (!st_links_are_words(links->links))
        return numbers_of_values(links, ret_keys, ret_count, err);
    PF_TRY(st_links_words(links->links, &links->key.whole, &words, &count, err));
    *ret_keys = (const int64_t *)words;
    *ret_count = count;
    return SLUICE_OK;
}
