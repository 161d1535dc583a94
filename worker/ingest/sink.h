/*
 * A fragment and its runs, written batch by batch by one process and synced by it: the files of one task's output.
 * Nothing is made before the first row. Names are those of the task alone: a try that died leaves its names taken, and
 * the next one goes on behind them. The bytes depend on the rows alone.
 */
#ifndef WORKER_INGEST_SINK_H
#define WORKER_INGEST_SINK_H

#include "store/fragment/key.h"
#include "store/state/state.h"
#include "worker/ingest/spool.h"

#define WK_SINK_NAMES 256u /* numbers that a task may use for one fragment */

/* Which runs the fragments of a type have, in order: columns are indexes into the type's layout. */
typedef struct wk_run_plan {
    st_run_use use;
    uint32_t unique;
    uint32_t columns[ST_KEY_LEAVES_MAX];
    uint32_t count;
} wk_run_plan;
/* At most 3 + the number of unique tuples; the caller frees the array. */
sluice_status wk_run_plans(const st_type_def *type, wk_run_plan **ret_plans, uint32_t *ret_count, sluice_error *err);

/* Do equal hashes of this plan's keys prove that they are equal? A matter of types only. */
sluice_status wk_run_is_exact(const st_schema *schema, const st_type_def *type, const wk_run_plan *plan,
                              bool *ret_exact, sluice_error *err);

typedef struct wk_sink_setup {
    pf_volume *volume;
    const st_schema *schema; /* in which the type stands; outlives the sink */
    const st_type_def *type;
    const st_column_spec *specs; /* the type's layout, perhaps with _row_id and _commit behind it; outlive the sink */
    uint32_t count;
    char prefix[48];       /* of its files' names: "<attempt id>-" ... */
    uint64_t number;       /* the first of WK_SINK_NAMES */
    const wk_spool *spool; /* where entries of runs go that do not fit into memory; NULL: they have to fit */
    uint64_t expected;     /* about how many rows; 0: not known */
    bool compress;
} wk_sink_setup;

typedef struct wk_sink wk_sink;
sluice_status wk_sink_open(const wk_sink_setup *setup, wk_sink **ret_sink, sluice_error *err);
/* One record batch of at most WK_SINK_ROWS rows, in the order of the specs; 0 rows: nothing. */
#define WK_SINK_ROWS 65536u
sluice_status wk_sink_write(wk_sink *sink, const st_column *columns, uint64_t rows, sluice_error *err);
uint64_t wk_sink_rows(const wk_sink *sink);
uint32_t wk_sink_tries(const wk_sink *sink); /* names that earlier tries had taken: their files are litter */
/* Completes and syncs the files (not their folders). *ret_add gets fragment and runs (owned by the caller); without
 * rows it is left as it is. */
sluice_status wk_sink_finish(wk_sink *sink, st_edit_add *ret_add, sluice_error *err);
void wk_sink_close(wk_sink *sink); /* what is not finished stays as litter. NULL allowed */

#endif
