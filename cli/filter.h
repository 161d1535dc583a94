/*
 * `--where`: comparisons joined by `and`.
 *
 *   age >= 18 and name != 'O''Brien' and email = null
 *
 * A name is a column (in double quotes when it has blanks or operator signs); operators = != < <= > >=; a literal is
 * the value's text as in CSV, bare or in single quotes (doubled inside). null compares only by = and !=; a null value
 * meets no other comparison. NaN meets none but !=.
 */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include "store/read/snapshot.h"

typedef struct cli_filter cli_filter;

/* Columns are numbered as in `specs`. USAGE when it is not understood or names no column. */
sluice_status cli_filter_parse(const char *text, const st_column_spec *specs, uint32_t count, cli_filter **ret_filter,
                               sluice_error *err);
void cli_filter_free(cli_filter *filter); /* NULL allowed */
/* Sets needed[i] for every column that it looks at. */
void cli_filter_mark(const cli_filter *filter, bool *needed);
/* `columns[i]` is column i of specs, or NULL when it is not needed. */
bool cli_filter_meets(const cli_filter *filter, const st_column *const *columns, uint64_t row);

#endif
