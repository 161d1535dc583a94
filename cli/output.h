/*
 * What commands print: text, JSON, tables. Everything goes through run->out and fails when standard output does.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/command.h"
#include "store/format/json.h"

sluice_status cli_write(cli_run *run, const void *bytes, size_t length, sluice_error *err);
sluice_status cli_print(cli_run *run, sluice_error *err, const char *fmt, ...) PF_PRINTF(3, 4);
/* A document: cli_json_begin, st_json_* calls, cli_json_end (adds a newline and prints). */
typedef struct cli_json {
    pf_buffer buffer;
    st_json json;
} cli_json;
void cli_json_begin(cli_json *document);
sluice_status cli_json_end(cli_run *run, cli_json *document, sluice_error *err); /* frees it, in any case */
/* A time in microseconds as 2026-01-31T12:34:56.123456Z. */
#define CLI_TIME_TEXT 80
void cli_time_text(int64_t microseconds, char ret_text[CLI_TIME_TEXT]);
/* "12.3 MiB", "812 bytes". */
#define CLI_SIZE_TEXT 24
void cli_size_text(uint64_t bytes, char ret_text[CLI_SIZE_TEXT]);

/* Appends text for a terminal: control characters and broken UTF-8 as \n, \t, \x1b, ... so that a stored value can
 * neither move the cursor nor forge a line. */
sluice_status cli_append_visible(pf_buffer *buffer, const void *text, size_t length, sluice_error *err);

/*
 * A table for people. Cells are added left to right, row by row; the first row is the heading. Widths come from the
 * first CLI_TABLE_WINDOW rows, which are kept until then; later rows are printed as they come.
 */
#define CLI_TABLE_WINDOW 256u
typedef struct cli_table {
    pf_output *out;
    uint32_t columns;
    uint32_t column; /* of the next cell */
    uint32_t rows;   /* kept */
    bool settled;    /* widths are fixed */
    pf_buffer text;  /* of the kept cells */
    pf_buffer cells; /* table_cell, see output.c */
    uint32_t *widths;
    bool *right; /* columns that stand at the right: numbers */
} cli_table;
sluice_status cli_table_begin(pf_output *out, uint32_t columns, cli_table *ret_table, sluice_error *err);
void cli_table_right(cli_table *table, uint32_t column);
sluice_status cli_table_cell(cli_table *table, const void *text, size_t length, sluice_error *err);
sluice_status cli_table_text(cli_table *table, const char *text, sluice_error *err);
sluice_status cli_table_number(cli_table *table, uint64_t number, sluice_error *err);
sluice_status cli_table_end(cli_table *table, sluice_error *err); /* prints the rest; does not free */
void cli_table_free(cli_table *table);                            /* safe on a zeroed one */

#endif
