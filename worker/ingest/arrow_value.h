/*
 * Values of Arrow into the columns of a type.
 *
 * Numbers, dates and timestamps come from their own kinds, exactly: integers of any width where they are in range;
 * floats where they are no whole-number column's, rounded to float32 as text is; decimals as their text; dates also
 * into timestamps (their midnight), timestamps also into dates (midnights only) and never finer than microseconds. Text
 * is read as a quoted CSV field is, whatever the column's type. Bytes and truth values come as they are. Everything
 * else is refused for the column as a whole, before a row is read.
 */
#ifndef WORKER_INGEST_ARROW_VALUE_H
#define WORKER_INGEST_ARROW_VALUE_H

#include "store/arrow/array.h"
#include "worker/ingest/rows_build.h"

/* Can values of this field go into a column of this type? */
bool wk_arrow_fits(const st_arrow_field *field, st_type type);
/* Appends a value, or sets the fault (code and text). *bytes grows by what it takes. */
sluice_status wk_arrow_put(wk_rows *rows, const wk_target *target, const st_arrow_value *value, uint64_t *bytes,
                           wk_fault *fault, sluice_error *err);
/* A value as text, appended to `buffer`; nothing for null. */
sluice_status wk_arrow_text(const st_arrow_value *value, pf_buffer *buffer, sluice_error *err);

#endif
