/*
 * Rows: records of an input become values of a type's columns, checked by every rule that looks at one record only.
 *
 * A record is taken whole or not at all: when a value is bad, what was appended for it is taken back, and the fault of
 * its least column is reported. A record with too few or too many values is faulty as a whole.
 */
#ifndef WORKER_INGEST_ROWS_H
#define WORKER_INGEST_ROWS_H

#include "worker/ingest/check.h"
#include "worker/ingest/format.h"

/* `input` and `columns` must outlive it. */
sluice_status wk_rows_make(const wk_input *input, const wk_columns *columns, wk_rows **ret_rows, sluice_error *err);
void wk_rows_free(wk_rows *rows); /* NULL allowed */
/* Appends a record, or sets *ret_fault (column, code, text; its place is the caller's). */
sluice_status wk_rows_add(wk_rows *rows, wk_record *record, wk_fault *ret_fault, sluice_error *err);
uint64_t wk_rows_length(const wk_rows *rows);
/* Bytes of input behind the rows that it holds, and what they take beside: what batches are measured by. So a batch
 * needs no more memory than that, also when short records make wide rows, and does not depend on pieces. */
uint64_t wk_rows_bytes(const wk_rows *rows);
/* The columns, in the type's layout; valid until the next add, reset or free. */
const st_column *wk_rows_columns(wk_rows *rows, uint32_t *ret_count);
const st_column_spec *wk_rows_specs(const wk_rows *rows, uint32_t *ret_count);
/* Load-local names: those of the rows; those of an end, in whose place the ids that they stand for are then put. */
void wk_rows_names(const wk_rows *rows, wk_naming which, st_column *ret_texts);
sluice_status wk_rows_resolve(wk_rows *rows, wk_naming which, const uint64_t *ids, sluice_error *err);
/* Of partial columns: the bits of each row, wk_rows_absent_stride bytes, of the columns that no value came for. */
const uint8_t *wk_rows_absent(const wk_rows *rows);
static inline size_t wk_rows_absent_stride(uint32_t columns)
{
    return (columns + 7) / 8;
}
void wk_rows_reset(wk_rows *rows);

#endif
