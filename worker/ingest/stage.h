/*
 * Staging a chunk: the records that begin in it are parsed, checked one by one, encoded and written as one fragment
 * with its runs, synced by the process that wrote them. The bytes of fragment and runs are a function of the input and
 * of the schema alone: not of the pieces in which it is read, nor of who works beside.
 */
#ifndef WORKER_INGEST_STAGE_H
#define WORKER_INGEST_STAGE_H

#include "worker/ingest/locate.h"
#include "worker/ingest/names.h"
#include "worker/ingest/rows.h"
#include "worker/ingest/sink.h"
#include "worker/ingest/spool.h"
#include "worker/ingest/staged.h"

#define WK_BATCH_ROWS  WK_SINK_ROWS
#define WK_BATCH_BYTES (UINT64_C(6) << 20) /* as wk_rows_bytes counts */

typedef struct wk_stage {
    const wk_spool *spool; /* volume and attempt */
    uint64_t number;       /* of the names of its files: the first of WK_SINK_NAMES that are this task's alone */
    wk_chunk_view view;
    uint32_t argument, chunk;
    const wk_shape *shape; /* of the whole file */
    bool has_header;       /* record 0 is no data */
    bool compress;
    bool keep_lines;    /* of all records, for messages about them later */
    const char *absent; /* of partial columns: the file of the attempt that gets what wk_rows_absent says; NULL: none */
    /* Load-local names: where those of its rows go (NULL: they have none), and what those of its ends mean. */
    const wk_name_type *name_type;
    wk_staged *ret_names;                                          /* the table and the names as `add` */
    const wk_names *ends[2];                                       /* NULL: the end is a key */
    void (*advance)(void *context, uint64_t rows, uint64_t bytes); /* progress; NULL allowed */
    void *advance_context;
} wk_stage;

sluice_status wk_stage_chunk(const wk_stage *stage, wk_staged *ret_staged, sluice_error *err);

#endif
