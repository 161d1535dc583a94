/*
 * Staging a chunk: the records that begin in it are parsed, checked one by one, encoded and written as one fragment
 * with its runs, synced by the process that wrote them. The bytes of fragment and runs are a function of the input and
 * of the schema alone: not of the pieces in which it is read, nor of who works beside.
 */
#ifndef WORKER_INGEST_STAGE_H
#define WORKER_INGEST_STAGE_H

#include "store/fragment/key.h"
#include "worker/ingest/locate.h"
#include "worker/ingest/rows.h"
#include "worker/ingest/spool.h"
#include "worker/ingest/staged.h"

#define WK_BATCH_ROWS  65536u
#define WK_BATCH_BYTES (UINT64_C(8) << 20) /* of input */

typedef struct wk_stage {
    const wk_spool *spool; /* volume and attempt */
    uint64_t number;       /* of the names of its files: the first of 256 that are this task's alone */
    wk_chunk_view view;
    uint32_t argument, chunk;
    const wk_shape *shape; /* of the whole file */
    bool has_header;       /* record 0 is no data */
    bool compress;
    wk_rows_setup rows;
    void (*advance)(void *context, uint64_t rows, uint64_t bytes); /* progress; NULL allowed */
    void *advance_context;
} wk_stage;

sluice_status wk_stage_chunk(const wk_stage *stage, wk_staged *ret_staged, sluice_error *err);

/* Which runs the fragments of a type have, in order: columns are indexes into the type's layout. */
typedef struct wk_run_plan {
    st_run_use use;
    uint32_t unique;
    uint32_t columns[ST_KEY_LEAVES_MAX];
    uint32_t count;
} wk_run_plan;
/* At most 3 + the number of unique tuples; the caller frees the array. */
sluice_status wk_run_plans(const st_type_def *type, wk_run_plan **ret_plans, uint32_t *ret_count, sluice_error *err);

#endif
