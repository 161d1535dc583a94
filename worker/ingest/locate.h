/*
 * The records of a chunk: one after the other, or, from a record's number, back to the record (for messages and for
 * lists of rejected rows: rare, so the chunk is simply read again).
 */
#ifndef WORKER_INGEST_LOCATE_H
#define WORKER_INGEST_LOCATE_H

#include "worker/ingest/csv.h"
#include "worker/ingest/format.h"

typedef sluice_status wk_record_fn(void *context, wk_record *record, sluice_error *err);
/* Calls `each` for the records with these numbers (ascending, all of them beginning in the chunk). */
sluice_status wk_chunk_visit(const wk_chunk_view *view, const uint64_t *records, uint64_t count, wk_record_fn *each,
                             void *context, sluice_error *err);
/* The line of source[to], when that of source[from] is *line. */
sluice_status wk_count_lines(const wk_source *source, uint64_t from, uint64_t to, uint64_t *line, sluice_error *err);
/* For text: a reader of lines or CSV records before the chunk's first one, lines counted. */
sluice_status wk_text_open(const wk_chunk_view *view, uint32_t fields, wk_csv **ret_csv, sluice_error *err);

#endif
