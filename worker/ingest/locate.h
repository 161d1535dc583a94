/*
 * From a record's number back to the record: for messages and for lists of rejected rows. Rare, so the chunk is simply
 * read again.
 */
#ifndef WORKER_INGEST_LOCATE_H
#define WORKER_INGEST_LOCATE_H

#include "worker/ingest/format.h"

typedef sluice_status wk_record_fn(void *context, wk_record *record, sluice_error *err);
/* Calls `each` for the records with these numbers (ascending, all of them beginning in the chunk). */
sluice_status wk_chunk_visit(const wk_chunk_view *view, const uint64_t *records, uint64_t count, wk_record_fn *each,
                             void *context, sluice_error *err);

#endif
