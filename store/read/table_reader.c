/*
 * Table readers (snapshot.h): the fragments of a table, opened as they are needed, for probes on keys.
 *
 * A run answers "which positions may have this key"; a hit is confirmed on the key itself, unless equal hashes prove
 * equal keys. Runs are derived: one that is missing is made again in memory from its fragment; one that is damaged is
 * an error, since nothing is answered from it.
 */
#include "platform/check.h"
#include "store/read/reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

/* The column of a property in fragments that were written before it was added: its initial value, in as many rows as
 * the largest of them has. */
static sluice_status initial_column(st_table_reader *reader, uint32_t property, st_column *ret_column,
                                    sluice_error *err)
{
    const st_type_def *type = reader->type;
    const st_property *added = &type->properties[property];
    uint64_t rows = 0;
    if (!reader->initials)
        reader->initials = calloc((size_t)type->property_count + 1, sizeof(st_column_builder *));
    if (!reader->initials)
        return pf_fail_memory(err);
    if (!reader->initials[property]) {
        st_column_spec spec = {.name = added->name, .type = added->type, .nullable = true};
        PF_TRY(st_column_builder_new(&spec, &reader->initials[property], err));
        for (uint32_t i = 0; i < reader->list.count; i++)
            if (reader->list.fragments[i].fragment.rows > rows)
                rows = reader->list.fragments[i].fragment.rows;
        bool is_null = !added->initial.present || added->initial.is_null;
        if (is_null)
            PF_TRY(st_append_nulls(reader->initials[property], rows, err));
        for (uint64_t row = 0; !is_null && row < rows; row++)
            PF_TRY(st_value_append(&added->initial, reader->initials[property], err));
    }
    st_builder_view(reader->initials[property], ret_column);
    return SLUICE_OK;
}

sluice_status st_table_reader_column(st_table_reader *reader, st_fragment *fragment, uint32_t batch, uint32_t column,
                                     st_column *ret_column, sluice_error *err)
{
    uint32_t ends = reader->type->edge ? 2 : 0;
    int at = st_layout_find(reader->type, fragment, column);
    if (at >= 0)
        return st_fragment_column(fragment, batch, (uint32_t)at, ret_column, err);
    if (column < ends)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end", (unsigned long long)reader->table);
    return initial_column(reader, column - ends, ret_column, err);
}

sluice_status st_run_key(st_table_reader *reader, st_fragment *fragment, uint32_t batch, const uint32_t *columns,
                         uint32_t count, st_column *ret_columns, const st_column **ret_key, sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        PF_TRY(st_table_reader_column(reader, fragment, batch, columns[i], &ret_columns[i], err));
        ret_key[i] = &ret_columns[i];
    }
    return SLUICE_OK;
}

/* ---- the reader ---- */

void st_table_reader_free_initials(st_table_reader *reader)
{
    for (uint32_t i = 0; reader->initials && i < reader->type->property_count; i++)
        st_column_builder_free(reader->initials[i]);
    free(reader->initials);
    reader->initials = NULL;
}

void st_table_reader_free(st_table_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; reader->opened && i < reader->list.count; i++) {
        st_fragment_close(reader->opened[i].fragment);
        for (st_opened_run *run = reader->opened[i].runs, *next; run; run = next) {
            next = run->next;
            st_run_close(run->run);
            free(run->rebuilt);
            free(run);
        }
    }
    free(reader->opened);
    st_table_reader_free_initials(reader);
    st_table_list_free(&reader->list);
    free(reader);
}

static sluice_status reader_new(st_snapshot *snapshot, uint64_t table, st_table_reader **ret_reader, sluice_error *err)
{
    const st_type_def *type = st_schema_find_table(snapshot->view->schema, table);
    if (!type)
        return pf_fail(err, SLUICE_NOT_FOUND, "there is no table %llu", (unsigned long long)table);
    *ret_reader = st_reader_kept(snapshot, table, type);
    if (*ret_reader)
        return SLUICE_OK;
    st_table_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return pf_fail_memory(err);
    *reader =
        (st_table_reader){.graph = snapshot->graph, .schema = snapshot->view->schema, .type = type, .table = table};
    sluice_status status = st_table_materialise(snapshot->graph, snapshot->view, table, &reader->list, err);
    if (status == SLUICE_OK) {
        reader->opened = calloc((size_t)reader->list.count + 1, sizeof(*reader->opened));
        if (!reader->opened)
            status = pf_fail_memory(err);
    }
    if (status != SLUICE_OK) {
        st_table_reader_free(reader);
        return status;
    }
    st_reader_inherit(snapshot, reader);
    *ret_reader = reader;
    return SLUICE_OK;
}

sluice_status st_table_reader_get(st_snapshot *snapshot, uint64_t table, st_table_reader **ret_reader,
                                  sluice_error *err)
{
    for (uint32_t i = 0; i < snapshot->reader_count; i++) {
        if (snapshot->readers[i]->table == table) {
            *ret_reader = snapshot->readers[i];
            return SLUICE_OK;
        }
    }
    st_table_reader **readers =
        realloc(snapshot->readers, ((size_t)snapshot->reader_count + 1) * sizeof(*snapshot->readers));
    if (!readers)
        return pf_fail_memory(err);
    snapshot->readers = readers;
    PF_TRY(reader_new(snapshot, table, &readers[snapshot->reader_count], err));
    *ret_reader = readers[snapshot->reader_count++];
    return SLUICE_OK;
}

unsigned st_snapshot_probes(const st_snapshot *snapshot, uint64_t table)
{
    for (uint32_t i = 0; i < snapshot->reader_count; i++)
        if (snapshot->readers[i]->table == table)
            return snapshot->readers[i]->probed;
    return 0;
}

uint32_t st_table_reader_fragments(const st_table_reader *reader)
{
    return reader->list.count;
}

const st_table_list *st_table_reader_list(const st_table_reader *reader)
{
    return &reader->list;
}

sluice_status st_table_reader_fragment(st_table_reader *reader, uint32_t i, st_fragment **ret_fragment,
                                       sluice_error *err)
{
    PF_ASSERT(i < reader->list.count);
    st_opened *opened = &reader->opened[i];
    if (!opened->fragment)
        PF_TRY(st_fragment_open(st_graph_volume(reader->graph), reader->table, &reader->list.fragments[i].fragment,
                                &opened->fragment, err));
    *ret_fragment = opened->fragment;
    return SLUICE_OK;
}

bool st_table_reader_row_is_dead(const st_table_reader *reader, uint32_t i, uint64_t position)
{
    const uint64_t *dead = reader->list.dead[i];
    uint64_t low = 0, high = reader->list.dead_count[i];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (dead[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->list.dead_count[i] && dead[low] == position;
}

/* ---- runs ---- */

static const st_run_ref *named_run(const st_edit_add *add, st_run_use use, uint32_t unique)
{
    for (uint32_t i = 0; i < add->run_count; i++)
        if (add->runs[i].use == use && (use != ST_RUN_UNIQUE || add->runs[i].unique == unique))
            return &add->runs[i];
    return NULL;
}

static bool is_missing(pf_volume *volume, uint64_t table, const char *name)
{
    char path[160];
    pf_stat stat;
    (void)snprintf(path, sizeof(path), "tables/%llu/keys/%s", (unsigned long long)table, name);
    return pf_stat_path(volume, path, &stat, NULL) == SLUICE_NOT_FOUND;
}

static bool runs_are_off(void)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_NO_RUNS");
    return text && strcmp(text, "1") == 0;
#else
    return false;
#endif
}

static sluice_status open_run(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                              st_opened_run **ret_opened, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(reader->graph);
    for (st_opened_run *run = reader->opened[i].runs; run; run = run->next) {
        if (run->use == use && run->unique == unique) {
            *ret_opened = run;
            return SLUICE_OK;
        }
    }
    st_opened_run *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return pf_fail_memory(err);
    opened->use = use;
    opened->unique = unique;
    const st_run_ref *named = named_run(&reader->list.fragments[i], use, unique);
    if (named && !runs_are_off() && !is_missing(volume, reader->table, named->info.name)) {
        sluice_status status = st_run_open(volume, reader->table, &named->info, &opened->run, err);
        if (status != SLUICE_OK) {
            free(opened);
            return status;
        }
    }
    opened->next = reader->opened[i].runs;
    reader->opened[i].runs = opened;
    *ret_opened = opened;
    return SLUICE_OK;
}

sluice_status st_table_reader_run(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                  st_run **ret_run, sluice_error *err)
{
    st_opened_run *opened = NULL;
    reader->probed |= 1u << use;
    PF_TRY(open_run(reader, i, use, use == ST_RUN_UNIQUE ? unique : 0, &opened, err));
    *ret_run = opened->run;
    return SLUICE_OK;
}

static sluice_status hash_batch(st_table_reader *reader, st_fragment *fragment, uint32_t batch, const uint32_t *columns,
                                uint32_t count, uint64_t first, st_opened_run *opened, sluice_error *err)
{
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint64_t rows = st_fragment_batch_rows(fragment, batch);
    PF_TRY(st_run_key(reader, fragment, batch, columns, count, storage, key, err));
    uint64_t *hashes = malloc((rows + 1) * sizeof(*hashes));
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(key, count, rows, hashes);
    for (uint64_t row = 0; row < rows; row++)
        if (opened->use != ST_RUN_UNIQUE || !st_key_has_null(key, count, row))
            opened->rebuilt[opened->rebuilt_count++] = (st_run_entry){.hash = hashes[row], .position = first + row};
    free(hashes);
    return SLUICE_OK;
}

/* What the run would hold. */
static sluice_status rebuild(st_table_reader *reader, uint32_t i, st_opened_run *opened, sluice_error *err)
{
    uint32_t columns[ST_RUN_COLUMNS_MAX], count = st_run_columns(reader->type, opened->use, opened->unique, columns);
    st_fragment *fragment = NULL;
    uint64_t first = 0;
    sluice_status status = SLUICE_OK;
    if (opened->rebuilt)
        return SLUICE_OK;
    PF_TRY(st_table_reader_fragment(reader, i, &fragment, err));
    opened->rebuilt = malloc((reader->list.fragments[i].fragment.rows + 1) * sizeof(*opened->rebuilt));
    if (!opened->rebuilt)
        return pf_fail_memory(err);
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        status = hash_batch(reader, fragment, batch, columns, count, first, opened, err);
        first += st_fragment_batch_rows(fragment, batch);
    }
    if (status == SLUICE_OK)
        status = st_run_sort(opened->rebuilt, opened->rebuilt_count, err);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    free(opened->rebuilt);
    opened->rebuilt = NULL;
    opened->rebuilt_count = 0;
    return status;
}

sluice_status st_table_reader_entries(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                      const st_run_entry **ret_entries, uint64_t *ret_count, sluice_error *err)
{
    st_opened_run *opened = NULL;
    reader->probed |= 1u << use;
    PF_TRY(open_run(reader, i, use, use == ST_RUN_UNIQUE ? unique : 0, &opened, err));
    PF_TRY(rebuild(reader, i, opened, err));
    *ret_entries = opened->rebuilt;
    *ret_count = opened->rebuilt_count;
    return SLUICE_OK;
}
