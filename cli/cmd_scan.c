/*
 * scan: the rows of a type, chosen by columns and a filter, in list order or by key, in one of several formats.
 *
 * Without --order-by rows stream, however many there are. With it the chosen rows are kept in memory, sorted, and
 * printed.
 */
#include "cli/rows.h"
#include "platform/check.h"
#include "store/read/filter.h"
#include "store/schema/nearest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_COLUMNS, SCAN_WHERE, SCAN_ORDER, SCAN_LIMIT, SCAN_FORMAT, SCAN_BRANCH, SCAN_AT, SCAN_OPTIONS };
static const cli_option scan_options[SCAN_OPTIONS] = {
    [SCAN_COLUMNS] = {"columns", 0, CLI_TEXT, "A,B", "print these columns, in this order"},
    [SCAN_WHERE] = {"where", 0, CLI_TEXT, "EXPR",
                    "only rows that meet comparisons joined by and: age >= 18 and name != 'Ada'"},
    [SCAN_ORDER] = {"order-by", 0, CLI_CHOICE, "key", "sort by key (edges by both ends); keeps the rows in memory"},
    [SCAN_LIMIT] = {"limit", 0, CLI_NUMBER, "N", "print no more than N rows"},
    [SCAN_FORMAT] = {"format", 0, CLI_CHOICE, "table|csv|jsonl|arrow",
                     "how to print rows (default: table; with --json: jsonl; arrow: an IPC stream)"},
    [SCAN_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [SCAN_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};

/* Columns are numbered as in the type's layout. What is scanned is what is printed, filtered or sorted by. */
typedef struct scan_plan {
    const st_type_def *type;
    st_column_spec *specs; /* the layout */
    uint32_t spec_count;
    bool *needed;
    uint32_t *printed; /* columns to print, in order */
    uint32_t printed_count;
    bool row_id;
    uint32_t *scanned; /* columns asked of the store */
    uint32_t scanned_count;
    const st_column_spec **printed_specs;
    const st_column **columns;         /* of the batch at hand, by layout */
    const st_column **printed_columns; /* the same, as printed */
    st_filter *filter;
    cli_rows rows;
    uint64_t left; /* of the limit */
} scan_plan;

static void free_scan(scan_plan *scan)
{
    for (uint32_t i = 0; i < scan->spec_count; i++)
        st_column_spec_free(&scan->specs[i]);
    free(scan->specs);
    free(scan->needed);
    free(scan->printed);
    free(scan->scanned);
    free(scan->printed_specs);
    free(scan->columns);
    free(scan->printed_columns);
    st_filter_free(scan->filter);
    cli_rows_free(&scan->rows);
}

static sluice_status find_column(const scan_plan *scan, const char *name, size_t length, uint32_t *ret_column,
                                 sluice_error *err)
{
    for (uint32_t i = 0; i < scan->spec_count; i++) {
        if (strlen(scan->specs[i].name) == length && memcmp(scan->specs[i].name, name, length) == 0) {
            *ret_column = i;
            return SLUICE_OK;
        }
    }
    char wanted[256];
    st_nearest nearest;
    pf_fail_private(err, SLUICE_USAGE, "--columns names an unknown column", "%s has no column \"%.*s\"",
                    scan->type->name, (int)(length < 300 ? length : 300), name);
    (void)snprintf(wanted, sizeof wanted, "%.*s", (int)(length < sizeof wanted ? length : 0), name);
    st_nearest_begin(&nearest, wanted);
    for (uint32_t i = 0; i < scan->spec_count; i++)
        st_nearest_offer(&nearest, scan->specs[i].name);
    if (nearest.best)
        pf_hint(err, "did you mean %s?", nearest.best);
    return SLUICE_USAGE;
}

/* "a,b" into scan->printed; _row_id may stand first or anywhere, and is printed first. */
static sluice_status choose_columns(scan_plan *scan, const char *list, sluice_error *err)
{
    if (!list) {
        for (uint32_t i = 0; i < scan->spec_count; i++)
            scan->printed[scan->printed_count++] = i;
        scan->row_id = cli_has_row_id(scan->type);
        return SLUICE_OK;
    }
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t column = 0;
        if (length == strlen("_row_id") && memcmp(at, "_row_id", length) == 0) {
            scan->row_id = true;
        } else {
            PF_TRY(find_column(scan, at, length, &column, err));
            if (scan->printed_count == scan->spec_count)
                return pf_fail(err, SLUICE_USAGE, "--columns names a column twice");
            scan->printed[scan->printed_count++] = column;
        }
        at += length;
        if (!*at)
            return SLUICE_OK;
    }
}

static sluice_status allocate(scan_plan *scan, sluice_error *err)
{
    size_t count = (size_t)scan->spec_count + 1;
    scan->needed = calloc(count, sizeof *scan->needed);
    scan->printed = calloc(count, sizeof *scan->printed);
    scan->scanned = calloc(count, sizeof *scan->scanned);
    scan->printed_specs = calloc(count, sizeof(void *));
    scan->columns = calloc(count, sizeof(void *));
    scan->printed_columns = calloc(count, sizeof(void *));
    return scan->needed && scan->printed && scan->scanned && scan->printed_specs && scan->columns &&
                   scan->printed_columns
               ? SLUICE_OK
               : pf_fail_memory(err);
}

/* The columns that rows are sorted by: a node's key, an edge's ends and its own key. */
static bool is_sort_column(const scan_plan *scan, uint32_t column)
{
    uint32_t ends = scan->type->edge ? 2 : 0;
    if (column < ends)
        return true;
    for (uint32_t i = 0; i < scan->type->key_count; i++) {
        if (scan->type->key[i] == column - ends)
            return true;
    }
    return false;
}

static sluice_status prepare(cli_run *run, cli_place *place, scan_plan *scan, sluice_error *err)
{
    const cli_value *where = cli_option_value(run, SCAN_WHERE);
    const cli_value *limit = cli_option_value(run, SCAN_LIMIT);
    PF_TRY(st_snapshot_type(place->snapshot, run->arguments.operands[1], &scan->type, err));
    PF_TRY(
        st_type_columns(st_snapshot_view(place->snapshot)->schema, scan->type, &scan->specs, &scan->spec_count, err));
    PF_TRY(allocate(scan, err));
    PF_TRY(choose_columns(scan, cli_text_or(run, SCAN_COLUMNS, NULL), err));
    for (uint32_t i = 0; i < scan->printed_count; i++) {
        scan->needed[scan->printed[i]] = true;
        scan->printed_specs[i] = &scan->specs[scan->printed[i]];
    }
    if (where->given) {
        PF_TRY(st_filter_parse(where->text, scan->specs, scan->spec_count, &scan->filter, err));
        st_filter_mark(scan->filter, scan->needed);
    }
    for (uint32_t i = 0; i < scan->spec_count; i++) {
        if (cli_option_value(run, SCAN_ORDER)->given && is_sort_column(scan, i))
            scan->needed[i] = true;
        if (scan->needed[i])
            scan->scanned[scan->scanned_count++] = i;
    }
    scan->left = limit->given ? limit->number : UINT64_MAX;
    return SLUICE_OK;
}

static void bind_columns(scan_plan *scan, const st_batch *batch)
{
    for (uint32_t i = 0; i < scan->scanned_count; i++)
        scan->columns[scan->scanned[i]] = &batch->columns[i];
    for (uint32_t i = 0; i < scan->printed_count; i++)
        scan->printed_columns[i] = scan->columns[scan->printed[i]];
}

static sluice_status print_batch(scan_plan *scan, const st_batch *batch, sluice_error *err)
{
    st_batch part = *batch;
    part.rows = batch->rows < scan->left ? batch->rows : scan->left;
    scan->left -= part.rows;
    return cli_rows_add_batch(&scan->rows, scan->printed_columns, &part, err);
}

static sluice_status print_row(scan_plan *scan, uint64_t row, uint64_t row_id, sluice_error *err)
{
    PF_TRY(cli_rows_add(&scan->rows, scan->printed_columns, row, row_id, err));
    scan->left--;
    return SLUICE_OK;
}

typedef sluice_status row_fn(void *context, scan_plan *scan, uint64_t row, uint64_t row_id, sluice_error *err);

/* Hands every row that meets the filter to `each`, until the limit when `limited`. */
static sluice_status walk(cli_place *place, scan_plan *scan, bool limited, row_fn *each, void *context,
                          sluice_error *err)
{
    st_scan *source = NULL;
    const st_batch *batch;
    sluice_status status;
    PF_GOTO(status, done, st_scan_open(place->snapshot, scan->type, scan->scanned, scan->scanned_count, &source, err));
    for (;;) {
        PF_GOTO(status, done, st_scan_next(source, &batch, err));
        if (!batch)
            break;
        bind_columns(scan, batch);
        if (limited && !scan->filter) {
            PF_GOTO(status, done, print_batch(scan, batch, err));
            if (scan->left == 0)
                break;
            continue;
        }
        for (uint64_t row = 0; row < batch->rows; row++) {
            if (limited && scan->left == 0)
                goto done;
            if (!scan->filter || st_filter_meets(scan->filter, scan->columns, row))
                PF_GOTO(status, done, each(context, scan, row, batch->row_ids[row], err));
        }
    }
done:
    st_scan_close(source);
    return status;
}

static sluice_status print_each(void *context, scan_plan *scan, uint64_t row, uint64_t row_id, sluice_error *err)
{
    (void)context;
    return print_row(scan, row, row_id, err);
}

/* ---- sorted ---- */

typedef struct kept_rows {
    st_column_builder **builders; /* one per scanned column */
    pf_buffer row_ids;            /* uint64_t */
    st_column *views;             /* by layout */
    const scan_plan *scan;
    uint64_t rows;
} kept_rows;

static sluice_status keep_each(void *context, scan_plan *scan, uint64_t row, uint64_t row_id, sluice_error *err)
{
    kept_rows *kept = context;
    for (uint32_t i = 0; i < scan->scanned_count; i++)
        PF_TRY(st_append_from(kept->builders[i], scan->columns[scan->scanned[i]], row, err));
    kept->rows++;
    return pf_buffer_append(&kept->row_ids, &row_id, sizeof row_id, err);
}

static const uint64_t *row_ids_of(const kept_rows *kept)
{
    return (const uint64_t *)(const void *)kept->row_ids.data;
}

static int order_of_rows(const void *a, const void *b, void *context)
{
    const kept_rows *kept = context;
    uint64_t row_a = *(const uint64_t *)a;
    uint64_t row_b = *(const uint64_t *)b;
    int order = 0;
    for (uint32_t i = 0; i < kept->scan->spec_count; i++) {
        const st_column *column = &kept->views[i];
        if (is_sort_column(kept->scan, i) && st_value_compare(column, row_a, column, row_b, &order) && order != 0)
            return order;
    }
    const uint64_t *ids = row_ids_of(kept);
    return (ids[row_a] > ids[row_b]) - (ids[row_a] < ids[row_b]);
}

static sluice_status print_sorted(scan_plan *scan, kept_rows *kept, sluice_error *err)
{
    uint64_t *order = calloc(kept->rows + 1, sizeof *order);
    sluice_status status = SLUICE_OK;
    if (!order)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < scan->scanned_count; i++) {
        st_builder_view(kept->builders[i], &kept->views[scan->scanned[i]]);
        scan->columns[scan->scanned[i]] = &kept->views[scan->scanned[i]];
    }
    for (uint32_t i = 0; i < scan->printed_count; i++)
        scan->printed_columns[i] = scan->columns[scan->printed[i]];
    for (uint64_t row = 0; row < kept->rows; row++)
        order[row] = row;
    qsort_r(order, kept->rows, sizeof *order, order_of_rows, kept);
    for (uint64_t row = 0; row < kept->rows && scan->left > 0; row++)
        PF_GOTO(status, done, print_row(scan, order[row], row_ids_of(kept)[order[row]], err));
done:
    free(order);
    return status;
}

static sluice_status scan_sorted(cli_place *place, scan_plan *scan, sluice_error *err)
{
    kept_rows kept = {.scan = scan};
    sluice_status status = SLUICE_OK;
    kept.builders = calloc((size_t)scan->scanned_count + 1, sizeof(void *));
    kept.views = calloc((size_t)scan->spec_count + 1, sizeof *kept.views);
    if (!kept.builders || !kept.views) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < scan->scanned_count; i++)
        PF_GOTO(status, done, st_column_builder_new(&scan->specs[scan->scanned[i]], &kept.builders[i], err));
    PF_GOTO(status, done, walk(place, scan, false, keep_each, &kept, err));
    status = print_sorted(scan, &kept, err);
done:
    for (uint32_t i = 0; kept.builders && i < scan->scanned_count; i++)
        st_column_builder_free(kept.builders[i]);
    free(kept.builders);
    free(kept.views);
    pf_buffer_free(&kept.row_ids);
    return status;
}

static sluice_status run_scan(cli_run *run, sluice_error *err)
{
    const cli_value *format = cli_option_value(run, SCAN_FORMAT);
    cli_format chosen = format->given         ? (cli_format)format->number
                        : run->arguments.json ? CLI_FORMAT_JSONL
                                              : CLI_FORMAT_TABLE;
    cli_place place;
    scan_plan scan = {0};
    sluice_status status =
        cli_open_snapshot(run, cli_text_or(run, SCAN_BRANCH, NULL), cli_text_or(run, SCAN_AT, NULL), &place, err);
    if (status != SLUICE_OK)
        goto done;
    PF_GOTO(status, done, prepare(run, &place, &scan, err));
    PF_GOTO(status, done,
            cli_rows_begin(&scan.rows, chosen, run->out, scan.printed_specs, scan.printed_count, scan.row_id, err));
    if (cli_option_value(run, SCAN_ORDER)->given)
        PF_GOTO(status, done, scan_sorted(&place, &scan, err));
    else
        PF_GOTO(status, done, walk(&place, &scan, true, print_each, NULL, err));
    status = cli_rows_end(&scan.rows, err);
done:
    free_scan(&scan);
    cli_close_snapshot(&place);
    return status;
}

const cli_command cli_scan = {.name = "scan",
                              .operands = "GRAPH TYPE",
                              .summary = "Print the rows of a type.",
                              .options = scan_options,
                              .option_count = SCAN_OPTIONS,
                              .least = 2,
                              .most = 2,
                              .effect = CLI_READS,
                              .run = run_scan};
