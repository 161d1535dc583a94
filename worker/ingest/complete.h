/*
 * Completing rows from the base (--mode upsert): what the records of one chunk become under one plan, a slice of its
 * rows after the other, so that memory does not grow with how short they are.
 *
 * A row whose key the base does not have is added as it was staged; one whose key is there gets the values that its
 * record does not give (and the key's own) from the base, and is added again under its row id, unless that leaves it as
 * it is. The chunk's own fragment is used as it stands when all of its rows are new; else added and updated rows are
 * written anew, the updated ones in the order of their row ids. Rows that a later one of the same key stands in for are
 * passed over.
 */
#ifndef WORKER_INGEST_COMPLETE_H
#define WORKER_INGEST_COMPLETE_H

#include "worker/ingest/gone.h"
#include "worker/ingest/side.h"
#include "worker/ingest/sink.h"

typedef struct wk_complete {
    const wk_spool *spool;
    const st_schema *schema;
    const st_type_def *type;
    st_snapshot *base;
    const wk_staged *staged; /* of this chunk */
    st_row_set *dead;        /* positions of the chunk that are passed over; NULL: none */
    const char *absent;      /* the file of what its records did not give */
    const char *stem;        /* of the names of the files that it leaves in the attempt's folder */
    const char *prefix;      /* of the names of fragments and runs; the first 2 * WK_SINK_NAMES numbers from `number` */
    uint64_t number;
    pf_id commit;       /* that will have written the rows */
    uint64_t low, high; /* the positions of the slice */
    bool all_new; /* the base has no key of the chunk (wk_complete_any_known); nothing is dead; the slice is the whole
                     of it */
    bool compress;
} wk_complete;

typedef struct wk_completed {
    wk_staged added,
        updated; /* without rows: nothing; a fault in `added`: the least of a row that cannot be completed */
} wk_completed;

void wk_completed_free(wk_completed *completed); /* its insides; safe on a zeroed one */
#define WK_COMPLETE_SLICE (UINT64_C(1) << 18)    /* rows */
/* Does the base have any key of the chunk? */
sluice_status wk_complete_any_known(const wk_complete *request, bool *ret_known, sluice_error *err);
sluice_status wk_complete_slice(const wk_complete *request, wk_completed *ret_completed, sluice_error *err);

#endif
