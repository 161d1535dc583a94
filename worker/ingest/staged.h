/*
 * What a row task leaves: the fragment and the runs of one chunk, what was left out, and its least fault; as a result
 * file.
 */
#ifndef WORKER_INGEST_STAGED_H
#define WORKER_INGEST_STAGED_H

#include "store/format/json.h"
#include "store/state/state.h"
#include "worker/ingest/fault.h"
#include "worker/ingest/spool.h"

typedef struct wk_staged {
    uint64_t table;
    uint32_t argument, chunk; /* which input, which chunk of it */
    uint32_t tries;           /* names that earlier tries of this task had taken: their files are litter */
    uint64_t first_record;    /* number of the first data record that begins in the chunk */
    uint64_t records;         /* data records that begin in it */
    uint64_t bytes;           /* of input */
    uint64_t bad_count;       /* records left out, ... */
    uint32_t *bad;            /* ... as ascending offsets from first_record */
    bool damaged;             /* the file itself is at fault here: cannot be skipped; */
    wk_fault damage;          /* and how */
    wk_fault least;           /* of all, the damage among them; not present: none */
    uint64_t first_line;      /* of the first data record */
    bool lines_listed;        /* some record does not begin on the line that its number says: the lines are in a file */
    uint32_t *lines;          /* of each record, less first_line; while it is staged only, NULL: as its number says */
    st_edit_add add;          /* add.fragment.rows 0: nothing was written */
    /* Of rows that a plan made from those of the chunk (worker/ingest/complete.h): */
    bool updates; /* they stand in the base and are written anew */
    char
        order[WK_SPOOL_NAME]; /* the file that says which record each is, counted from first_record; "": as they come */
} wk_staged;

void wk_staged_free(wk_staged *staged); /* its insides; safe on a zeroed one */
/* One line of JSON, the edit that adds the fragment in a second one, then the bad offsets as they lie in memory. */
sluice_status wk_staged_encode(const wk_staged *staged, pf_buffer *buffer, sluice_error *err);
sluice_status wk_staged_decode(const void *bytes, size_t length, wk_staged *ret_staged, sluice_error *err);

/* The record in which row `position` of the fragment began, where they stand as they came (else: wk_catalogue_record).
 */
uint64_t wk_staged_record(const wk_staged *staged, uint64_t position);

void wk_fault_encode(const wk_fault *fault, st_json *json);
sluice_status wk_fault_decode(const cJSON *object, wk_fault *ret_fault, sluice_error *err);

#endif
