/*
 * Rows of a type in the formats that scan, get and export write.
 *
 *   table   for people (output.h); null stands as null, texts that could be taken for it or for nothing in quotes
 *   csv     RFC 4180 with LF ends and a heading; null is the empty field, the empty text is ""; loading it gives the
 * same rows jsonl   one object per line; null is null; numbers keep all digits
 *   arrow   an Arrow IPC stream, or file, of record batches; types and nullability are those of the schema
 *
 * Ends of edges with several key members are columns from.A, from.B in tables and CSV, arrays in JSON, structs in
 * Arrow. A type of nodes without key has _row_id as its first column. Memory is bounded in every format: Arrow keeps at
 * most one batch.
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/arrow.h"
#include "cli/output.h"
#include "store/read/snapshot.h"

typedef enum cli_format {
    CLI_FORMAT_TABLE,
    CLI_FORMAT_CSV,
    CLI_FORMAT_JSONL,
    CLI_FORMAT_ARROW,     /* stream */
    CLI_FORMAT_ARROW_FILE /* with magic and footer */
} cli_format;

typedef struct cli_rows {
    cli_format format;
    pf_output *out;
    const st_column_spec *const *specs; /* of the columns printed, in order */
    uint32_t count;
    bool row_id;
    cli_table table;
    pf_buffer line;
    pf_buffer names; /* jsonl: `"name":` of each column, one behind the other */
    size_t *name_ends;
    cli_arrow *arrow;
} cli_rows;

/* `specs` must outlive the rows. Freed by cli_rows_free, also when this fails. */
sluice_status cli_rows_begin(cli_rows *rows, cli_format format, pf_output *out, const st_column_spec *const *specs,
                             uint32_t count, bool row_id, sluice_error *err);
/* One row: `columns` as in specs. */
sluice_status cli_rows_add(cli_rows *rows, const st_column *const *columns, uint64_t row, uint64_t row_id,
                           sluice_error *err);
/* Rows of a batch: `columns` as in specs. */
sluice_status cli_rows_add_batch(cli_rows *rows, const st_column *const *columns, const st_batch *batch,
                                 sluice_error *err);
sluice_status cli_rows_end(cli_rows *rows, sluice_error *err);
void cli_rows_free(cli_rows *rows); /* safe on a zeroed one */

/* Does the type show _row_id? */
bool cli_has_row_id(const st_type_def *type);

#endif
