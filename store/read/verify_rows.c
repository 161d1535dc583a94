/*
 * Verify: the rows of a branch's head (verify.h). Totals of the entries against the lists; in full mode that no key and
 * no unique tuple occurs twice and that every edge has its ends.
 */
#include "platform/check.h"
#include "store/read/key_pass.h"
#include "store/read/verify.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 5u /* problems of one kind that are named one by one */

static void fragment_path(const st_table_reader *reader, uint32_t fragment, char ret_path[160])
{
    (void)snprintf(ret_path, 160, "tables/%" PRIu64 "/fragments/%s", reader->table,
                   reader->list.fragments[fragment].fragment.name);
}

/* ---- duplicates ---- */

typedef struct column_check {
    st_verify *verify;
    st_key_pass pass;
    uint64_t problems;
    const char *what; /* "its key" */
} column_check;

static sluice_status report_group(void *context, const st_key_row *rows, uint64_t count, sluice_error *err)
{
    column_check *check = context;
    char path[160], other[160];
    for (uint64_t i = 1; i < count; i++) {
        if (++check->problems > NAMED_MAX)
            continue;
        fragment_path(check->pass.reader, rows[i].fragment, path);
        fragment_path(check->pass.reader, rows[i - 1].fragment, other);
        PF_TRY(st_verify_report(check->verify, path, err, "row %u: %s is that of row %u of %s", rows[i].position,
                                check->what, rows[i - 1].position, other));
    }
    return SLUICE_OK;
}

/* ---- ends ---- */

typedef struct end_check {
    st_verify *verify;
    st_key_pass *nodes; /* the part of the node table's keys, sorted */
    st_table_reader *edges;
    uint32_t column; /* 0: from, 1: to */
    uint64_t problems;
} end_check;

static sluice_status report_end(end_check *check, uint32_t fragment, uint64_t position, sluice_error *err)
{
    char path[160];
    if (++check->problems > NAMED_MAX)
        return SLUICE_OK;
    fragment_path(check->edges, fragment, path);
    return st_verify_report(check->verify, path, err, "row %" PRIu64 ": the node at its %s end does not exist",
                            position, check->column == 0 ? "from" : "to");
}

static sluice_status check_end(void *context, uint32_t fragment, uint64_t position, uint64_t hash, sluice_error *err)
{
    end_check *check = context;
    st_key_pass *nodes = check->nodes;
    uint64_t low = 0, high = nodes->count;
    st_row_key end, node;
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
        PF_TRY(st_row_key_read(check->edges, &check->column, 1, fragment, position, &end, err));
    for (; low < nodes->count && nodes->rows[low].hash == hash; low++) {
        PF_TRY(st_row_key_read(nodes->reader, nodes->columns, nodes->column_count, nodes->rows[low].fragment,
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
    return report_end(check, fragment, position, err);
}

/* Ends that are row ids: each is looked up by itself. */
static sluice_status check_row_id_end(void *context, uint32_t fragment, uint64_t position, uint64_t hash,
                                      sluice_error *err)
{
    end_check *check = context;
    st_row_key end;
    bool found = false;
    uint32_t at = 0;
    uint64_t place = 0;
    (void)hash;
    PF_TRY(st_row_key_read(check->edges, &check->column, 1, fragment, position, &end, err));
    uint64_t row = ((const uint64_t *)end.columns[0]->values)[end.row];
    PF_TRY(st_reader_find_row(check->nodes->reader, row, &found, &at, &place, err));
    if (found && !st_table_reader_row_is_dead(check->nodes->reader, at, place))
        return SLUICE_OK;
    return report_end(check, fragment, position, err);
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
static sluice_status check_ends_of(rows_check *check, st_key_pass *nodes, bool by_row_id, uint64_t *problems,
                                   sluice_error *err)
{
    const st_schema *schema = check->snapshot->view->schema;
    uint32_t slot = 0;
    for (uint32_t t = 0; t < schema->type_count; t++) {
        const st_type_def *edge = &schema->types[t];
        for (uint32_t column = 0; column < 2 && edge->edge; column++, slot++) {
            if (schema->types[column == 0 ? edge->from : edge->to].table != nodes->reader->table)
                continue;
            end_check ends = {.verify = check->verify, .nodes = nodes, .column = column, .problems = problems[slot]};
            PF_TRY(st_table_reader_get(check->snapshot, edge->table, &ends.edges, err));
            st_hash_walk walk = {.reader = ends.edges,
                                 .columns = &ends.column,
                                 .column_count = 1,
                                 .part = nodes->part,
                                 .parts = nodes->parts,
                                 .row = by_row_id ? check_row_id_end : check_end,
                                 .context = &ends};
            PF_TRY(st_hash_rows(&walk, err));
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
    column_check columns = {
        .verify = check->verify,
        .what = use == ST_RUN_UNIQUE ? "its unique tuple" : "its key",
        .pass = {.reader = reader, .skips_nulls = use == ST_RUN_UNIQUE, .parts = st_key_parts(live_rows)}};
    st_key_pass *pass = &columns.pass;
    uint32_t slots = 2 * check->snapshot->view->schema->type_count;
    sluice_status status = SLUICE_OK;
    uint64_t *problems = calloc((size_t)slots + 1, sizeof(*problems));
    if (!problems)
        return pf_fail_memory(err);
    pass->column_count = st_run_columns(reader->type, use, unique, pass->columns);
    if (pass->column_count > 0) {
        for (pass->part = 0; pass->part < pass->parts && status == SLUICE_OK; pass->part++) {
            status = st_key_pass_fill(pass, err);
            if (status == SLUICE_OK)
                status = st_key_pass_groups(pass, report_group, &columns, err);
            if (status == SLUICE_OK && ends)
                status = check_ends_of(check, pass, false, problems, err);
        }
    } else if (ends) { /* known by row ids */
        pass->parts = 1;
        status = check_ends_of(check, pass, true, problems, err);
    }
    if (status == SLUICE_OK)
        status = report_more(check->verify, reader->table, columns.problems, "a value that stands twice", err);
    if (status == SLUICE_OK)
        status = report_more_ends(check, problems, err);
    st_key_pass_free(pass);
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
