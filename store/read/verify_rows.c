/*
 * Verify: the rows of a branch's head (verify.h). Totals of the entries against the lists; in full mode that no key and
 * no unique tuple occurs twice and that every edge has its ends.
 *
 * Keys are compared by hash first: the rows whose hash falls into one of several equal ranges are gathered and sorted,
 * range by range, so that memory stays bounded whatever the size of the table; equal hashes are then compared by value.
 */
#include "platform/check.h"
#include "store/read/verify.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_PER_PASS (UINT64_C(4) << 20)
#define NAMED_MAX     5u /* problems of one kind that are named one by one */

typedef struct key_row {
    uint64_t hash;
    uint32_t fragment, position;
} key_row;

typedef struct key_pass {
    st_verify *verify;
    st_table_reader *reader;
    uint32_t columns[ST_RUN_COLUMNS_MAX], column_count;
    bool skips_nulls; /* unique tuples: one with a null never collides */
    bool exact;       /* equal hashes prove equal keys */
    uint32_t part, parts;
    key_row *rows;
    uint64_t count, room;
    uint64_t problems;
    const char *what; /* "its key" */
} key_pass;

/* Which of `parts` equal ranges a hash falls into. */
static uint32_t part_of(uint64_t hash, uint32_t parts)
{
    return (uint32_t)((hash >> 32) * parts >> 32);
}

static void fragment_path(const st_table_reader *reader, uint32_t fragment, char ret_path[160])
{
    (void)snprintf(ret_path, 160, "tables/%" PRIu64 "/fragments/%s", reader->table,
                   reader->list.fragments[fragment].fragment.name);
}

/* Calls `row` for each living row of a table with its hash over these columns, if it falls into the part. */
typedef sluice_status row_fn(void *context, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err);

typedef struct hash_walk {
    st_table_reader *reader;
    const uint32_t *columns;
    uint32_t column_count, part, parts;
    bool skips_nulls;
    row_fn *row;
    void *context;
} hash_walk;

static sluice_status hash_batch(const hash_walk *walk, uint32_t i, st_fragment *fragment, uint32_t batch,
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

static sluice_status hash_rows(const hash_walk *walk, sluice_error *err)
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

/* ---- duplicates ---- */

static sluice_status gather(void *context, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err)
{
    key_pass *pass = context;
    if (pass->count == pass->room) {
        uint64_t room = pass->room ? pass->room * 2 : 4096;
        key_row *rows = realloc(pass->rows, room * sizeof(*rows));
        if (!rows)
            return pf_fail_memory(err);
        pass->rows = rows;
        pass->room = room;
    }
    pass->rows[pass->count++] = (key_row){hash, fragment, (uint32_t)position};
    return SLUICE_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const key_row *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->fragment != y->fragment)
        return x->fragment < y->fragment ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

typedef struct row_key { /* the key of one row */
    st_column storage[ST_RUN_COLUMNS_MAX];
    const st_column *columns[ST_RUN_COLUMNS_MAX];
    uint64_t row;
} row_key;

static sluice_status read_key(st_table_reader *reader, const uint32_t *columns, uint32_t count, uint32_t fragment,
                              uint64_t position, row_key *ret_key, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    PF_TRY(st_table_reader_fragment(reader, fragment, &opened, err));
    st_fragment_locate(opened, position, &batch, &ret_key->row);
    return st_run_key(reader, opened, batch, columns, count, ret_key->storage, ret_key->columns, err);
}

static sluice_status report_twice(key_pass *pass, const key_row *later, const key_row *earlier, sluice_error *err)
{
    char path[160], other[160];
    if (++pass->problems > NAMED_MAX)
        return SLUICE_OK;
    fragment_path(pass->reader, later->fragment, path);
    fragment_path(pass->reader, earlier->fragment, other);
    return st_verify_report(pass->verify, path, err, "row %u: %s is that of row %u of %s", later->position, pass->what,
                            earlier->position, other);
}

static sluice_status compare_group(key_pass *pass, const key_row *rows, uint64_t count, sluice_error *err)
{
    for (uint64_t b = 1; b < count; b++) {
        row_key one, two;
        if (pass->exact) {
            PF_TRY(report_twice(pass, &rows[b], &rows[b - 1], err));
            continue;
        }
        PF_TRY(
            read_key(pass->reader, pass->columns, pass->column_count, rows[b].fragment, rows[b].position, &one, err));
        for (uint64_t a = 0; a < b; a++) {
            PF_TRY(read_key(pass->reader, pass->columns, pass->column_count, rows[a].fragment, rows[a].position, &two,
                            err));
            if (!st_key_equal(one.columns, one.row, two.columns, two.row, pass->column_count))
                continue;
            PF_TRY(report_twice(pass, &rows[b], &rows[a], err));
            break;
        }
    }
    return SLUICE_OK;
}

static sluice_status find_duplicates(key_pass *pass, sluice_error *err)
{
    for (uint64_t first = 0; first < pass->count;) {
        uint64_t end = first + 1;
        while (end < pass->count && pass->rows[end].hash == pass->rows[first].hash)
            end++;
        if (end - first > 1)
            PF_TRY(compare_group(pass, pass->rows + first, end - first, err));
        first = end;
    }
    return SLUICE_OK;
}

static sluice_status fill_pass(key_pass *pass, sluice_error *err)
{
    hash_walk walk = {.reader = pass->reader,
                      .columns = pass->columns,
                      .column_count = pass->column_count,
                      .part = pass->part,
                      .parts = pass->parts,
                      .skips_nulls = pass->skips_nulls,
                      .row = gather,
                      .context = pass};
    pass->count = 0;
    PF_TRY(hash_rows(&walk, err));
    if (pass->count > 1)
        qsort(pass->rows, pass->count, sizeof(*pass->rows), compare_rows);
    if (pass->count > 0) {
        row_key any;
        PF_TRY(read_key(pass->reader, pass->columns, pass->column_count, pass->rows[0].fragment, pass->rows[0].position,
                        &any, err));
        pass->exact = st_key_hash_is_exact(any.columns, pass->column_count);
    }
    return SLUICE_OK;
}

/* ---- ends ---- */

typedef struct end_check {
    key_pass *nodes; /* the part of the node table's keys, sorted */
    st_table_reader *edges;
    uint32_t column; /* 0: from, 1: to */
    uint64_t problems;
} end_check;

static sluice_status report_end(st_verify *verify, end_check *check, uint32_t fragment, uint64_t position,
                                sluice_error *err)
{
    char path[160];
    if (++check->problems > NAMED_MAX)
        return SLUICE_OK;
    fragment_path(check->edges, fragment, path);
    return st_verify_report(verify, path, err, "row %" PRIu64 ": the node at its %s end does not exist", position,
                            check->column == 0 ? "from" : "to");
}

static sluice_status check_end(void *context, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err)
{
    end_check *check = context;
    key_pass *nodes = check->nodes;
    uint64_t low = 0, high = nodes->count;
    row_key end, node;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (nodes->rows[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < nodes->count && nodes->rows[low].hash == hash && nodes->exact)
        return SLUICE_OK;
    if (low < nodes->count && nodes->rows[low].hash == hash)
        PF_TRY(read_key(check->edges, &check->column, 1, fragment, position, &end, err));
    for (; low < nodes->count && nodes->rows[low].hash == hash; low++) {
        PF_TRY(read_key(nodes->reader, nodes->columns, nodes->column_count, nodes->rows[low].fragment,
                        nodes->rows[low].position, &node, err));
        if (end.columns[0]->type != ST_STRUCT) {
            if (st_key_equal(end.columns, end.row, node.columns, node.row, 1))
                return SLUICE_OK;
            continue;
        }
        const st_column *members[ST_KEY_MEMBERS_MAX];
        for (uint32_t i = 0; i < end.columns[0]->child_count; i++)
            members[i] = &end.columns[0]->children[i];
        if (end.columns[0]->child_count == nodes->column_count &&
            st_key_equal(members, end.row, node.columns, node.row, nodes->column_count))
            return SLUICE_OK;
    }
    return report_end(nodes->verify, check, fragment, position, err);
}

/* Ends that are row ids: each is looked up by itself. */
static sluice_status check_row_id_end(void *context, uint32_t fragment, uint64_t position, uint64_t hash,
                                      sluice_error *err)
{
    end_check *check = context;
    row_key end;
    bool found = false;
    uint32_t at = 0;
    uint64_t place = 0;
    (void)hash;
    PF_TRY(read_key(check->edges, &check->column, 1, fragment, position, &end, err));
    uint64_t row = ((const uint64_t *)end.columns[0]->values)[end.row];
    PF_TRY(st_reader_find_row(check->nodes->reader, row, &found, &at, &place, err));
    if (found && !st_table_reader_row_is_dead(check->nodes->reader, at, place))
        return SLUICE_OK;
    return report_end(check->nodes->verify, check, fragment, position, err);
}

static sluice_status report_more(st_verify *verify, uint64_t table, uint64_t problems, const char *kind,
                                 sluice_error *err)
{
    char object[64];
    if (problems <= NAMED_MAX)
        return SLUICE_OK;
    (void)snprintf(object, sizeof(object), "tables/%" PRIu64, table);
    return st_verify_report(verify, object, err, "%" PRIu64 " more rows of the same kind: %s", problems - NAMED_MAX,
                            kind);
}

/* ---- tables ---- */

typedef struct rows_check {
    st_verify *verify;
    st_snapshot *snapshot;
} rows_check;

/* All edges whose end `column` is a node of this table, in the part of `nodes`. */
static sluice_status check_ends_of(rows_check *check, key_pass *nodes, bool by_row_id, uint64_t *problems,
                                   sluice_error *err)
{
    const st_schema *schema = check->snapshot->view->schema;
    uint32_t slot = 0;
    for (uint32_t t = 0; t < schema->type_count; t++) {
        const st_type_def *edge = &schema->types[t];
        for (uint32_t column = 0; column < 2 && edge->edge; column++, slot++) {
            if (schema->types[column == 0 ? edge->from : edge->to].table != nodes->reader->table)
                continue;
            end_check ends = {.nodes = nodes, .column = column, .problems = problems[slot]};
            PF_TRY(st_table_reader_get(check->snapshot, edge->table, &ends.edges, err));
            hash_walk walk = {.reader = ends.edges,
                              .columns = &ends.column,
                              .column_count = 1,
                              .part = nodes->part,
                              .parts = nodes->parts,
                              .row = by_row_id ? check_row_id_end : check_end,
                              .context = &ends};
            PF_TRY(hash_rows(&walk, err));
            problems[slot] = ends.problems;
        }
    }
    return SLUICE_OK;
}

static sluice_status report_more_ends(rows_check *check, const uint64_t *problems, sluice_error *err)
{
    const st_schema *schema = check->snapshot->view->schema;
    uint32_t slot = 0;
    for (uint32_t t = 0; t < schema->type_count; t++)
        for (uint32_t column = 0; column < 2 && schema->types[t].edge; column++, slot++)
            PF_TRY(
                report_more(check->verify, schema->types[t].table, problems[slot], "an end that does not exist", err));
    return SLUICE_OK;
}

/* One set of columns of a table: no value twice; with `ends`, also the edges that end in it. */
static sluice_status check_columns(rows_check *check, st_table_reader *reader, st_run_use use, uint32_t unique,
                                   uint64_t live_rows, bool ends, sluice_error *err)
{
    key_pass pass = {.verify = check->verify,
                     .reader = reader,
                     .skips_nulls = use == ST_RUN_UNIQUE,
                     .parts = (uint32_t)(live_rows / ROWS_PER_PASS + 1),
                     .what = use == ST_RUN_UNIQUE ? "its unique tuple" : "its key"};
    uint32_t slots = 2 * check->snapshot->view->schema->type_count;
    sluice_status status = SLUICE_OK;
    uint64_t *problems = calloc((size_t)slots + 1, sizeof(*problems));
    if (!problems)
        return pf_fail_memory(err);
    pass.column_count = st_run_columns(reader->type, use, unique, pass.columns);
    if (pass.column_count > 0) {
        for (pass.part = 0; pass.part < pass.parts && status == SLUICE_OK; pass.part++) {
            status = fill_pass(&pass, err);
            if (status == SLUICE_OK)
                status = find_duplicates(&pass, err);
            if (status == SLUICE_OK && ends)
                status = check_ends_of(check, &pass, false, problems, err);
        }
    } else if (ends) { /* known by row ids */
        pass.parts = 1;
        status = check_ends_of(check, &pass, true, problems, err);
    }
    if (status == SLUICE_OK)
        status = report_more(check->verify, reader->table, pass.problems, "a value that stands twice", err);
    if (status == SLUICE_OK)
        status = report_more_ends(check, problems, err);
    free(pass.rows);
    free(problems);
    return status;
}

static sluice_status check_totals(rows_check *check, const st_table_reader *reader, uint64_t *ret_rows,
                                  sluice_error *err)
{
    const st_table_entry *entry = st_view_table(check->snapshot->view, reader->table);
    uint64_t rows = 0, bytes = 0;
    char object[64];
    for (uint32_t i = 0; i < reader->list.count; i++) {
        rows += reader->list.fragments[i].fragment.rows - reader->list.dead_count[i];
        bytes += reader->list.fragments[i].fragment.bytes;
    }
    *ret_rows = rows;
    if (entry ? entry->rows == rows && entry->bytes == bytes : rows == 0)
        return SLUICE_OK;
    (void)snprintf(object, sizeof(object), "tables/%" PRIu64, reader->table);
    return st_verify_report(check->verify, object, err,
                            "its entry says %" PRIu64 " rows and %" PRIu64 " bytes, its list has %" PRIu64
                            " and %" PRIu64,
                            entry ? entry->rows : 0, entry ? entry->bytes : 0, rows, bytes);
}

static sluice_status check_table(rows_check *check, const st_type_def *type, sluice_error *err)
{
    st_table_reader *reader = NULL;
    uint64_t rows = 0;
    PF_TRY(st_table_reader_get(check->snapshot, type->table, &reader, err));
    PF_TRY(check_totals(check, reader, &rows, err));
    if (check->verify->quick)
        return SLUICE_OK;
    PF_TRY(check_columns(check, reader, ST_RUN_KEY, 0, rows, !type->edge, err));
    for (uint32_t i = 0; i < type->unique_count; i++)
        PF_TRY(check_columns(check, reader, ST_RUN_UNIQUE, type->uniques[i].id, rows, false, err));
    return SLUICE_OK;
}

sluice_status st_verify_rows(st_verify *verify, const char *branch, sluice_error *err)
{
    rows_check check = {.verify = verify};
    sluice_error found = {0};
    char object[64];
    sluice_status status = st_snapshot_open(verify->graph, branch, NULL, &check.snapshot, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(verify, "branches", status, &found, err);
    const st_schema *schema = check.snapshot->view->schema;
    for (uint32_t i = 0; i < schema->type_count && status == SLUICE_OK; i++) {
        (void)snprintf(object, sizeof(object), "tables/%" PRIu64, schema->types[i].table);
        found = (sluice_error){0};
        status = st_verify_judge(verify, object, check_table(&check, &schema->types[i], &found), &found, err);
    }
    st_snapshot_close(check.snapshot);
    return status;
}
