/*
 * Which rows of a chunk the base has, by their key (--mode upsert): where each of them stands there.
 */
#ifndef WORKER_INGEST_MATCH_H
#define WORKER_INGEST_MATCH_H

#include "worker/ingest/side.h"

#define WK_MATCH_NONE UINT64_MAX /* a row that the base does not have */

typedef struct wk_match {
    pf_volume *volume;
    const st_schema *schema;
    const st_type_def *type;
    st_snapshot *base;
    const wk_staged *staged; /* of the chunk */
    st_row_set *dead;        /* positions that are passed over; NULL: none */
    uint64_t low, high;      /* the positions that are looked at */
} wk_match;

/* Sets places[position - low] to the wk_row_code of each row that the base has, and leaves the others alone; *ret_count
 * is how many there are. `places` NULL: one is enough to know. */
sluice_status wk_match_rows(const wk_match *request, uint64_t *places, uint64_t *ret_count, sluice_error *err);

#endif
