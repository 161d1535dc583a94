/*
 * From a record's number back to the record: for messages and for lists of rejected rows. Rare, so the chunk is simply
 * read again.
 */
#ifndef WORKER_INGEST_LOCATE_H
#define WORKER_INGEST_LOCATE_H

#include "worker/ingest/boundary.h"
#include "worker/ingest/csv.h"

typedef struct wk_chunk_view { /* where the records of a chunk are */
    const wk_lexer *lexer;
    const wk_source *source;
    uint64_t start; /* offset of the chunk's first byte */
    const wk_chunk *place;
    uint32_t fields;
    size_t piece;
    uint64_t record_max;
} wk_chunk_view;

/* Opens a reader before the chunk's first record, lines counted. */
sluice_status wk_chunk_open(const wk_chunk_view *view, wk_csv **ret_csv, sluice_error *err);

typedef sluice_status wk_record_fn(void *context, wk_record *record, sluice_error *err);
/* Calls `each` for the records with these numbers (ascending, all of them beginning in the chunk). */
sluice_status wk_chunk_visit(const wk_chunk_view *view, const uint64_t *records, uint64_t count, wk_record_fn *each,
                             void *context, sluice_error *err);
/* The line of source[to], when that of source[from] is *line. */
sluice_status wk_count_lines(const wk_source *source, uint64_t from, uint64_t to, uint64_t *line, sluice_error *err);

#endif
