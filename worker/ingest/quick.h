/*
 * Quick rows: records of text in which all is as it is nearly always.
 *
 * Where every column of a type is filled by one field, without checks, names or members, a record whose fields are
 * plain text goes straight from the text into the columns. Whatever is unusual in the least (a value that does not
 * parse, text that is not ASCII, an empty field that is no null) leaves the rows as they were: the record is then taken
 * in the usual way, which alone knows faults. So this way says nothing that the other would not.
 */
#ifndef WORKER_INGEST_QUICK_H
#define WORKER_INGEST_QUICK_H

#include "worker/ingest/rows_build.h"

/* NULL when no record of these columns can be taken so. */
sluice_status wk_quick_make(const wk_rows *rows, struct wk_quick **ret_quick, sluice_error *err);
void wk_quick_free(struct wk_quick *quick); /* NULL allowed */
/* Appends the values of a plain record, rows->quick not being NULL; false: nothing was done. */
bool wk_quick_add(const wk_rows *rows, const wk_record *record);

#endif
