/*
 * The record reader of CSV: records one after the other from a place in a source, split into fields in one buffer.
 *
 * The buffer holds the record being read and what was read ahead; a record that does not fit makes it grow, up to a
 * limit. A field's text is a slice of the buffer: quotes are left out, doubled quotes and escapes are resolved in place
 * when it is asked for. The lexer's state is kept across reads, so a record is scanned once however it is cut into
 * pieces.
 */
#ifndef WORKER_INGEST_CSV_H
#define WORKER_INGEST_CSV_H

#include "worker/ingest/lexer.h"
#include "worker/ingest/record.h"
#include "worker/ingest/source.h"

typedef struct wk_csv wk_csv;

/* Where to begin and how. */
typedef struct wk_csv_start {
    uint64_t offset; /* of a record's first byte (or of empty lines before one) */
    uint64_t line, number;
    size_t piece;        /* bytes per read */
    uint32_t fields;     /* how many fields of a record are wanted */
    uint64_t record_max; /* bytes of one record; 0: WK_RECORD_MAX */
} wk_csv_start;

sluice_status wk_csv_open(const wk_lexer *lexer, const wk_source *source, const wk_csv_start *start, wk_csv **ret_csv,
                          sluice_error *err);
void wk_csv_close(wk_csv *csv); /* NULL allowed */
/* The next record, valid until the next call; *ret_record NULL at the end of the file. A record longer than the limit
 * is RESOURCE_LIMIT and names its line (*ret_record is NULL; wk_csv_place tells where). */
sluice_status wk_csv_next(wk_csv *csv, wk_record **ret_record, sluice_error *err);
/* Number and line of the record that is being read. */
void wk_csv_place(const wk_csv *csv, uint64_t *ret_number, uint64_t *ret_line);
/* The text of field i (i < kept); resolves it in place the first time. */
const char *wk_csv_text(const wk_lexer *lexer, wk_record *record, uint32_t i, size_t *ret_length);

#endif
