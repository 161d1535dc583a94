/*
 * Reading: snapshots, scans, point reads, neighbours, counts. Readers pin one generation, never block writers, never
 * take gates and never write (but for the shared lock on the pin file, which a read-only mount or a reader's graph
 * handle cannot make: the pin is then skipped there).
 *
 * Builds with failpoints know SLUICE_NO_PINS=1 and SLUICE_NO_RUNS=1 (everything-off runs, O-13): nothing is pinned, no
 * run is read; answers stay the same.
 */
#ifndef STORE_READ_SNAPSHOT_H
#define STORE_READ_SNAPSHOT_H

#include "store/state/state.h"

typedef struct st_snapshot st_snapshot;

/* The commit that a text names on a branch: "head", a commit id, a generation number (its last commit: ST_INDEX_LAST),
 * a time (the newest commit that is not later); or a checkpoint, whose branch may be another: *log becomes its log.
 * USAGE when it is none of these, NOT_FOUND when there is none or it is not retained. */
sluice_status st_place_find(st_graph *graph, st_log **log, const char *text, uint64_t *ret_generation,
                            uint32_t *ret_index, sluice_error *err);
/* Does the text have the form of a place by itself, so that no checkpoint may be called so? */
bool st_place_is_plain(const char *text);

/* Pins branch `branch` (NULL: main) at the place `at` (NULL: its head). */
sluice_status st_snapshot_open(st_graph *graph, const char *branch, const char *at, st_snapshot **ret_snapshot,
                               sluice_error *err);
/* Pins a commit by its place, also of a branch that has no name any more. NOT_FOUND: collected. */
sluice_status st_snapshot_open_commit(st_graph *graph, const st_reach *place, st_snapshot **ret_snapshot,
                                      sluice_error *err);
void st_snapshot_close(st_snapshot *snapshot); /* NULL allowed */
const st_view *st_snapshot_view(const st_snapshot *snapshot);
/* The same rows as another schema of the same tables would show them: for checking a schema before it stands. Both must
 * outlive it. */
sluice_status st_snapshot_recast(st_snapshot *from, st_schema *schema, st_snapshot **ret_snapshot, sluice_error *err);
/* The type by name; NOT_FOUND... as USAGE (unknown type) with the nearest name as hint. */
sluice_status st_snapshot_type(const st_snapshot *snapshot, const char *name, const st_type_def **ret_type,
                               sluice_error *err);
sluice_status st_snapshot_count(st_snapshot *snapshot, const st_type_def *type, uint64_t *ret_rows, sluice_error *err);

/* One batch of a scan: columns as asked for, in the type's current layout (properties that the fragment lacks are null
 * or their frozen default), plus the row ids; deleted rows are already left out. Valid until the next call on the scan.
 */
typedef struct st_batch {
    uint64_t rows;
    st_column *columns;
    uint32_t column_count;
    const uint64_t *row_ids;
    const pf_id *commits; /* that last changed each row; st_scan_open_fragment with all columns only */
    uint32_t fragment;    /* number of the fragment in the table's list */
    st_fragment *source;  /* where columns lie that are `borrowed`: as long as it is held, they stay */
    const bool *borrowed; /* per column */
} st_batch;
typedef struct st_scan st_scan;
/* `columns`: indexes into st_type_columns' layout of the type; NULL: all. Rows come in list order, then file order. */
sluice_status st_scan_open(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                           st_scan **ret_scan, sluice_error *err);
/* For whoever scans again and again: fragments that are not compressed stay open with the snapshot, so that nothing is
 * mapped and checked twice; without `row_ids` batches have none. */
sluice_status st_scan_open_kept(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns, uint32_t count,
                                bool row_ids, st_scan **ret_scan, sluice_error *err);
/* One fragment of the table's list; all columns come with the commits of the rows: for rewriting it. */
sluice_status st_scan_open_fragment(st_snapshot *snapshot, const st_type_def *type, const uint32_t *columns,
                                    uint32_t count, uint32_t fragment, st_scan **ret_scan, sluice_error *err);
/* *ret_batch NULL at the end. */
sluice_status st_scan_next(st_scan *scan, const st_batch **ret_batch, sluice_error *err);
void st_scan_close(st_scan *scan);
/* The layout: names and types of the columns that batches have, in order. */
const st_column_spec *st_scan_specs(const st_scan *scan, uint32_t *ret_count);

/* Rows chosen, as an Arrow C stream (store/arrow/c_stream.h). */
typedef struct st_stream_options {
    const char *const *columns; /* by name, in this order; "_row_id" as the first one only; NULL: all */
    size_t column_count;
    const char *where; /* a filter (store/read/filter.h); NULL: all rows */
    uint64_t limit;    /* 0: none */
    /* The stream's owner: asked before each batch, let go of with the stream, also when making it fails. NULL: none;
     * then the stream is released before the snapshot is closed. */
    void *owner;
    sluice_status (*check)(void *owner, sluice_error *err);
    void (*release)(void *owner);
} st_stream_options;
struct ArrowArrayStream;
sluice_status st_scan_stream(st_snapshot *snapshot, const st_type_def *type, const st_stream_options *options,
                             struct ArrowArrayStream *ret_stream, sluice_error *err);

/* Which uses of a table have been asked for through this snapshot's reader (1 << st_run_use): what a plan that was made
 * with it must have said that it read. */
unsigned st_snapshot_probes(const st_snapshot *snapshot, uint64_t table);

/* The fragments of a table, opened once per snapshot: for probes on keys. */
typedef struct st_table_reader st_table_reader;
sluice_status st_table_reader_get(st_snapshot *snapshot, uint64_t table, st_table_reader **ret_reader,
                                  sluice_error *err); /* owned by the snapshot */
uint32_t st_table_reader_fragments(const st_table_reader *reader);
/* Fragment i and its run for a use (NULL when the edit names none, or its file is gone: runs are derived, the caller
 * reads the fragment instead; st_table_find_key does that by itself). */
sluice_status st_table_reader_fragment(st_table_reader *reader, uint32_t i, st_fragment **ret_fragment,
                                       sluice_error *err);
/* Column `column` of the type's layout in one batch of an opened fragment of this table. Of a property that was added
 * after the fragment was written: its initial value; such a column may have more rows than the batch. */
sluice_status st_table_reader_column(st_table_reader *reader, st_fragment *fragment, uint32_t batch, uint32_t column,
                                     st_column *ret_column, sluice_error *err);
sluice_status st_table_reader_run(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                  st_run **ret_run, sluice_error *err);
/* What that run would hold, sorted, made in memory from the fragment: for when there is none. Owned by the reader. */
sluice_status st_table_reader_entries(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                      const st_run_entry **ret_entries, uint64_t *ret_count, sluice_error *err);
/* The list that it reads: fragments with their ids, commits and deleted positions. */
const st_table_list *st_table_reader_list(const st_table_reader *reader);
bool st_table_reader_row_is_dead(const st_table_reader *reader, uint32_t i, uint64_t position);
/* Finds the live row whose key equals row `row` of `columns`; *ret_found false when there is none. Columns: nodes their
 * key properties, keyed edges from, to, key properties, anything without a key one column of row ids. */
sluice_status st_table_find_key(st_table_reader *reader, const st_column *const *columns, uint32_t count, uint64_t row,
                                bool *ret_found, uint32_t *ret_fragment, uint64_t *ret_position, sluice_error *err);
/* Every living row that holds row `row` of `columns` under this use: its key, an end, a unique tuple (by its id).
 * Nothing for what holds a null. Columns as st_run_columns gives them. */
typedef sluice_status st_match_fn(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err);
sluice_status st_table_each_match(st_table_reader *reader, st_run_use use, uint32_t unique,
                                  const st_column *const *columns, uint32_t count, uint64_t row, st_match_fn *each,
                                  void *context, sluice_error *err);

/* The same in fragment i alone; *stop is as `each` left it. */
sluice_status st_table_match_in(st_table_reader *reader, uint32_t i, st_run_use use, uint32_t unique,
                                const st_column *const *columns, uint32_t count, uint64_t row, st_match_fn *each,
                                void *context, bool *stop, sluice_error *err);

/* The id of the row at `position` of a fragment. */
sluice_status st_reader_row_id(st_table_reader *reader, uint32_t fragment, uint64_t position, uint64_t *ret_row,
                               sluice_error *err);
/* Appends the row at `position` of fragment i, in the type's current layout (as a scan gives it), to one builder per
 * column of st_type_columns; *ret_row_id: its id. For point reads. */
sluice_status st_table_row(st_snapshot *snapshot, const st_type_def *type, st_table_reader *reader, uint32_t fragment,
                           uint64_t position, st_column_builder *const *builders, uint64_t *ret_row_id,
                           sluice_error *err);

/* A value as text (INTERFACE "Values as text") into a buffer; a JSON value likewise. null is the caller's affair in
 * text. */
sluice_status st_value_text(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err);
sluice_status st_value_json(const st_column *column, uint64_t row, pf_buffer *buffer, sluice_error *err);
/* Parses text into one more value of the builder: bool, integers, floats, date, timestamp, base64, UTF-8;
 * CONSTRAINT_TYPE (no file or line in the text; the caller adds the place). The one parser for CSV values, keys on the
 * command line, filters. */
sluice_status st_value_parse(const st_column_spec *spec, const char *text, size_t length, st_column_builder *builder,
                             sluice_error *err);

/* The order of two values of one type: false when there is none (NaN). Nulls come last. */
bool st_value_compare(const st_column *a, uint64_t row_a, const st_column *b, uint64_t row_b, int *ret_order);

/* Breadth-first neighbours of a node by scanning the edge tables (adjacency indexes later). `edge` NULL: all types. */
typedef enum st_direction { ST_OUT, ST_IN, ST_BOTH } st_direction;
typedef sluice_status st_neighbour_fn(void *context, const st_type_def *type, const st_column *const *key,
                                      uint32_t key_count, uint64_t row, uint32_t depth, sluice_error *err);
sluice_status st_neighbours(st_snapshot *snapshot, const st_type_def *type, const st_column *const *key,
                            uint32_t key_count, const st_type_def *edge, st_direction direction, uint32_t depth,
                            st_neighbour_fn *each, void *context, sluice_error *err);

/* Checks everything that the branch's head and retained generations reach; each problem is one callback. */
typedef sluice_status st_problem_fn(void *context, const char *object, const char *type, const char *problem,
                                    sluice_error *err);
sluice_status st_graph_verify(st_graph *graph, bool quick, st_problem_fn *each, void *context, uint64_t *ret_checked,
                              sluice_error *err);
/* Every byte of the logs, and of the objects that they reach and that are not known to be whole: for a copy. Rows are
 * not looked at: they are what they were. */
typedef bool st_known_fn(void *context, const char *path);
sluice_status st_graph_verify_new(st_graph *graph, st_known_fn *known, st_problem_fn *each, void *context,
                                  uint64_t *ret_checked, sluice_error *err);

#endif
