/*
 * Filters of rows (`--where`): comparisons joined by `and`.
 *
 *   age >= 18 and name != 'O''Brien' and email = null
 *
 * A name is a column (in double quotes when it has blanks or operator signs); operators = != < <= > >=; a literal is
 * the value's text as in CSV, bare or in single quotes (doubled inside). null (in any case of letters, and bare)
 * compares only by = and !=; a null value meets no other comparison. NaN meets none but !=. A bare literal in double
 * quotes, or with the word `or` in it, is refused: it is meant otherwise.
 */
#ifndef STORE_READ_FILTER_H
#define STORE_READ_FILTER_H

#include "store/read/snapshot.h"

typedef struct st_filter st_filter;

/* Columns are numbered as in `specs`. USAGE when it is not understood or names no column. */
sluice_status st_filter_parse(const char *text, const st_column_spec *specs, uint32_t count, st_filter **ret_filter,
                              sluice_error *err);
void st_filter_free(st_filter *filter); /* NULL allowed */
/* Sets needed[i] for every column that it looks at. */
void st_filter_mark(const st_filter *filter, bool *needed);
/* `columns[i]` is column i of specs, or NULL when it is not needed. */
bool st_filter_meets(const st_filter *filter, const st_column *const *columns, uint64_t row);

#endif
