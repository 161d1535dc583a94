/*
 * Looking rows up by what they hold (snapshot.h): by key, by an end, by a unique tuple; by row id where there is no
 * key.
 *
 * Each fragment's run for that use gives the candidates, or what it would hold; every candidate that lives is confirmed
 * on the values themselves, unless equal hashes prove equal keys.
 */
#include "platform/check.h"
#include "store/read/reader.h"
#include <string.h>

typedef struct probe {
    st_table_reader *reader;
    st_run_use use;
    uint32_t unique;
    const st_column *const *columns; /* what is sought */
    uint32_t count;
    uint64_t row, hash;
    bool exact, stop;
    st_match_fn *each;
    void *context;
} probe;

static sluice_status confirm(const probe *probe_, uint32_t i, uint64_t position, bool *ret_equal, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint32_t columns[ST_RUN_COLUMNS_MAX], batch = 0;
    uint64_t row = 0;
    st_fragment *fragment = NULL;
    *ret_equal = probe_->exact;
    if (probe_->exact)
        return SLUICE_OK;
    uint32_t count = st_run_columns(probe_->reader->type, probe_->use, probe_->unique, columns);
    PF_ASSERT(count == probe_->count);
    PF_TRY(st_table_reader_fragment(probe_->reader, i, &fragment, err));
    st_fragment_locate(fragment, position, &batch, &row);
    PF_TRY(st_run_key(probe_->reader, fragment, batch, columns, count, storage, key, err));
    *ret_equal = st_key_equal(key, row, probe_->columns, probe_->row, count);
    return SLUICE_OK;
}

static sluice_status consider(probe *probe_, uint32_t i, uint64_t position, sluice_error *err)
{
    bool equal = false;
    if (position >= probe_->reader->list.fragments[i].fragment.rows)
        return pf_fail(err, SLUICE_CORRUPT, "a run of table %llu names a row that its fragment does not have",
                       (unsigned long long)probe_->reader->table);
    if (st_table_reader_row_is_dead(probe_->reader, i, position))
        return SLUICE_OK;
    PF_TRY(confirm(probe_, i, position, &equal, err));
    return equal ? probe_->each(probe_->context, i, position, &probe_->stop, err) : SLUICE_OK;
}

static sluice_status look_in_run(probe *probe_, uint32_t i, st_run *run, sluice_error *err)
{
    st_run_cursor cursor;
    const st_run_entry *entry = NULL;
    bool may = false;
    PF_TRY(st_run_may_contain(run, probe_->hash, &may, err));
    if (!may)
        return SLUICE_OK;
    PF_TRY(st_run_seek(run, probe_->hash, probe_->hash, &cursor, err));
    for (;;) {
        PF_TRY(st_run_next(&cursor, &entry, err));
        if (!entry || probe_->stop)
            return SLUICE_OK;
        PF_TRY(consider(probe_, i, entry->position, err));
    }
}

static sluice_status look_in_entries(probe *probe_, uint32_t i, const st_run_entry *entries, uint64_t count,
                                     sluice_error *err)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (entries[middle].hash < probe_->hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && entries[low].hash == probe_->hash && !probe_->stop; low++)
        PF_TRY(consider(probe_, i, entries[low].position, err));
    return SLUICE_OK;
}

static probe probe_of(st_table_reader *reader, st_run_use use, uint32_t unique, const st_column *const *columns,
                      uint32_t count, uint64_t row, st_match_fn *each, void *context)
{
    reader->probed |= 1u << use;
    return (probe){.reader = reader,
                   .use = use,
                   .unique = unique,
                   .columns = columns,
                   .count = count,
                   .row = row,
                   .hash = st_key_hash_row(columns, count, row),
                   .exact = st_key_hash_is_exact(columns, count),
                   .each = each,
                   .context = context};
}

static sluice_status look_in(probe *probe_, uint32_t i, sluice_error *err)
{
    st_run *run = NULL;
    const st_run_entry *entries = NULL;
    uint64_t entry_count = 0;
    PF_TRY(st_table_reader_run(probe_->reader, i, probe_->use, probe_->unique, &run, err));
    if (run)
        return look_in_run(probe_, i, run, err);
    PF_TRY(st_table_reader_entries(probe_->reader, i, probe_->use, probe_->unique, &entries, &entry_count, err));
    return look_in_entries(probe_, i, entries, entry_count, err);
}

sluice_status st_table_match_in(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                const st_column *const *columns, uint32_t count, uint64_t row, st_match_fn *each,
                                void *context, bool *stop, sluice_error *err)
{
    if (st_key_has_null(columns, count, row))
        return SLUICE_OK;
    probe probe_ = probe_of(reader, use, unique, columns, count, row, each, context);
    sluice_status status = look_in(&probe_, i, err);
    *stop = probe_.stop;
    return status;
}

sluice_status st_table_each_match(st_table_reader *reader, st_run_use use, uint32_t unique,
                                  const st_column *const *columns, uint32_t count, uint64_t row, st_match_fn *each,
                                  void *context, sluice_error *err)
{
    if (st_key_has_null(columns, count, row))
        return SLUICE_OK;
    probe probe_ = probe_of(reader, use, unique, columns, count, row, each, context);
    for (uint32_t i = 0; i < reader->list.count && !probe_.stop; i++)
        PF_TRY(look_in(&probe_, i, err));
    return SLUICE_OK;
}

/* ---- by key ---- */

static sluice_status find_by_row_id(st_table_reader *reader, const st_column *key, uint64_t row, bool *ret_found,
                                    uint32_t *ret_fragment, uint64_t *ret_position, sluice_error *err)
{
    uint64_t id;
    if (key->type != ST_ROW_ID && key->type != ST_UINT64)
        return pf_fail(err, SLUICE_INTERNAL, "rows of table %llu are known by their ids only",
                       (unsigned long long)reader->table);
    memcpy(&id, (const uint8_t *)key->values + row * sizeof(id), sizeof(id));
    PF_TRY(st_reader_find_row(reader, id, ret_found, ret_fragment, ret_position, err));
    *ret_found = *ret_found && !st_table_reader_row_is_dead(reader, *ret_fragment, *ret_position);
    return SLUICE_OK;
}

typedef struct found_row {
    bool found;
    uint32_t fragment;
    uint64_t position;
} found_row;

static sluice_status take_first(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err)
{
    (void)err;
    *(found_row *)context = (found_row){true, fragment, position};
    *stop = true;
    return SLUICE_OK;
}

sluice_status st_table_find_key(st_table_reader *reader, const st_column *const *columns, uint32_t count, uint64_t row,
                                bool *ret_found, uint32_t *ret_fragment, uint64_t *ret_position, sluice_error *err)
{
    uint32_t wanted[ST_RUN_COLUMNS_MAX];
    found_row found = {0};
    *ret_found = false;
    reader->probed |= 1u << ST_RUN_KEY;
    if (st_run_columns(reader->type, ST_RUN_KEY, 0, wanted) == 0)
        return count == 1
                   ? find_by_row_id(reader, columns[0], row, ret_found, ret_fragment, ret_position, err)
                   : pf_fail(err, SLUICE_INTERNAL, "a key of %u columns for a table without one", (unsigned)count);
    PF_TRY(st_table_each_match(reader, ST_RUN_KEY, 0, columns, count, row, take_first, &found, err));
    *ret_found = found.found;
    *ret_fragment = found.fragment;
    *ret_position = found.position;
    return SLUICE_OK;
}
