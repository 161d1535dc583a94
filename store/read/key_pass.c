/*
 * Passes over keys (key_pass.h).
 */
#include "store/read/key_pass.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define ROWS_PER_PASS (UINT64_C(4) << 20)

uint32_t st_key_parts(uint64_t live_rows)
{
    return (uint32_t)(live_rows / ROWS_PER_PASS + 1);
}

void st_key_pass_free(st_key_pass *pass)
{
    free(pass->rows);
    pass->rows = NULL;
    pass->count = pass->room = 0;
}

/* Which of `parts` equal ranges a hash falls into. */
static uint32_t part_of(uint64_t hash, uint32_t parts)
{
    return (uint32_t)((hash >> 32) * parts >> 32);
}

static sluice_status hash_batch(const st_hash_walk *walk, uint32_t i, st_fragment *fragment, uint32_t batch,
                                uint64_t first, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint64_t rows = st_fragment_batch_rows(fragment, batch);
    sluice_status status = SLUICE_OK;
    PF_TRY(st_run_key(walk->reader, fragment, batch, walk->columns, walk->column_count, storage, key, err));
    uint64_t *hashes = malloc((rows + 1) * sizeof(*hashes));
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(key, walk->column_count, rows, hashes);
    for (uint64_t row = 0; row < rows && status == SLUICE_OK; row++) {
        if (part_of(hashes[row], walk->parts) != walk->part ||
            st_table_reader_row_is_dead(walk->reader, i, first + row) ||
            (walk->skips_nulls && st_key_has_null(key, walk->column_count, row)))
            continue;
        status = walk->row(walk->context, i, first + row, hashes[row], err);
    }
    free(hashes);
    return status;
}

sluice_status st_hash_rows(const st_hash_walk *walk, sluice_error *err)
{
    for (uint32_t i = 0; i < walk->reader->list.count; i++) {
        st_fragment *fragment = NULL;
        uint64_t first = 0;
        PF_TRY(st_table_reader_fragment(walk->reader, i, &fragment, err));
        for (uint32_t batch = 0; batch < st_fragment_batches(fragment); batch++) {
            PF_TRY(hash_batch(walk, i, fragment, batch, first, err));
            first += st_fragment_batch_rows(fragment, batch);
        }
    }
    return SLUICE_OK;
}

/* ---- passes ---- */

static sluice_status gather(void *context, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err)
{
    st_key_pass *pass = context;
    if (pass->count == pass->room) {
        uint64_t room = pass->room ? pass->room * 2 : 4096;
        st_key_row *rows = realloc(pass->rows, room * sizeof(*rows));
        if (!rows)
            return pf_fail_memory(err);
        pass->rows = rows;
        pass->room = room;
    }
    pass->rows[pass->count++] = (st_key_row){hash, fragment, (uint32_t)position};
    return SLUICE_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const st_key_row *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->fragment != y->fragment)
        return x->fragment < y->fragment ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

sluice_status st_row_key_read(st_table_reader *reader, const uint32_t *columns, uint32_t count, uint32_t fragment,
                              uint64_t position, st_row_key *ret_key, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    PF_TRY(st_table_reader_fragment(reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &ret_key->row);
    return st_run_key(reader, opened, batch, columns, count, ret_key->storage, ret_key->columns, err);
}

sluice_status st_key_pass_fill(st_key_pass *pass, sluice_error *err)
{
    st_hash_walk walk = {.reader = pass->reader,
                         .columns = pass->columns,
                         .column_count = pass->column_count,
                         .part = pass->part,
                         .parts = pass->parts,
                         .skips_nulls = pass->skips_nulls,
                         .row = gather,
                         .context = pass};
    pass->count = 0;
    PF_TRY(st_hash_rows(&walk, err));
    if (pass->count > 1)
        qsort(pass->rows, pass->count, sizeof(*pass->rows), compare_rows);
    if (pass->count > 0) {
        st_row_key any;
        PF_TRY(st_row_key_read(pass->reader, pass->columns, pass->column_count, pass->rows[0].fragment,
                               pass->rows[0].position, &any, err));
        pass->exact = st_key_hash_is_exact(any.columns, pass->column_count);
    }
    return SLUICE_OK;
}

/* ---- groups ---- */

/* Moves the rows that have the key of the first one up to it, in their order; how many there are with it. */
static sluice_status gather_equal(st_key_pass *pass, st_key_row *rows, uint64_t count, uint64_t *ret_equal,
                                  sluice_error *err)
{
    st_row_key first, other;
    *ret_equal = 1;
    PF_TRY(st_row_key_read(pass->reader, pass->columns, pass->column_count, rows[0].fragment, rows[0].position, &first,
                           err));
    for (uint64_t i = 1; i < count; i++) {
        st_key_row row = rows[i];
        PF_TRY(
            st_row_key_read(pass->reader, pass->columns, pass->column_count, row.fragment, row.position, &other, err));
        if (!st_key_equal(first.columns, first.row, other.columns, other.row, pass->column_count))
            continue;
        memmove(rows + *ret_equal + 1, rows + *ret_equal, (i - *ret_equal) * sizeof(*rows));
        rows[(*ret_equal)++] = row;
    }
    return SLUICE_OK;
}

sluice_status st_key_pass_groups(st_key_pass *pass, st_key_group_fn *group, void *context, sluice_error *err)
{
    for (uint64_t first = 0, end; first < pass->count; first = end) {
        end = first + 1;
        while (end < pass->count && pass->rows[end].hash == pass->rows[first].hash)
            end++;
        for (uint64_t at = first, equal; at + 1 < end; at += equal) {
            equal = end - at;
            if (!pass->exact)
                PF_TRY(gather_equal(pass, pass->rows + at, end - at, &equal, err));
            if (equal > 1)
                PF_TRY(group(context, pass->rows + at, equal, err));
        }
    }
    return SLUICE_OK;
}
