/*
 * Rows as Arrow IPC: collected into batches of bounded size and written as a stream or a file.
 *
 * Fields have the names, types and nullability of the columns; ends with several key members are structs; row ids are
 * uint64. Ids of the store (property ids) stay inside: they mean nothing outside of their graph.
 */
#ifndef CLI_ARROW_H
#define CLI_ARROW_H

#include "platform/user_file.h"
#include "store/arrow/column.h"

typedef struct cli_arrow cli_arrow;

/* Writes the schema. With `row_id`, _row_id is the first column. */
sluice_status cli_arrow_begin(pf_output *out, bool file, const st_column_spec *const *specs, uint32_t count,
                              bool row_id, cli_arrow **ret_arrow, sluice_error *err);
/* Rows [first, first + count) of `columns`; row_ids are those of these rows. */
sluice_status cli_arrow_add(cli_arrow *arrow, const st_column *const *columns, uint64_t first, uint64_t count,
                            const uint64_t *row_ids, sluice_error *err);
/* Writes what is left, and the end. */
sluice_status cli_arrow_end(cli_arrow *arrow, sluice_error *err);
void cli_arrow_free(cli_arrow *arrow); /* NULL allowed */

#endif
