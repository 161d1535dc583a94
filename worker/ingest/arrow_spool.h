/*
 * Batches that a producer in the same process hands over (Arrow C stream) as an IPC stream, which a load then takes
 * like any other Arrow input: worker processes cannot call the producer.
 *
 * The stream is written with the widest type of each kind (int64, uint64, float64, utf8 ...), dictionaries resolved,
 * members of structs as columns "from.A", decimals as text; by the rules of loading (arrow_value.h) that makes no
 * difference to the rows.
 */
#ifndef WORKER_INGEST_ARROW_SPOOL_H
#define WORKER_INGEST_ARROW_SPOOL_H

#include "store/arrow/c_stream.h"

typedef sluice_status wk_arrow_put_fn(void *context, const void *bytes, size_t length, sluice_error *err);

/* Takes the stream over and releases it, whatever comes of it. UNSUPPORTED_FORMAT for a column that no property can
 * come from, CONSTRAINT_TYPE for a value that cannot be said exactly, with column and row; IO when the producer fails.
 */
sluice_status wk_arrow_spool(struct ArrowArrayStream *stream, wk_arrow_put_fn *put, void *context, uint64_t *ret_rows,
                             sluice_error *err);

#endif
