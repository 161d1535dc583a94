/*
 * A text, a type and a dialect in, rows or faults out: the whole path of one file within one process, without a graph.
 */
#ifndef TESTS_INGEST_TABLE_H
#define TESTS_INGEST_TABLE_H

#include "worker/ingest/rows.h"

typedef struct table_request {
    const char *schema; /* JSON, as in a schema file */
    const char *type;
    const char *name; /* of the file, for its format; NULL: test.csv */
    const char *text;
    size_t length; /* 0: strlen(text) */
    wk_dialect dialect;
    bool ignore_unknown;
    size_t piece; /* 0: 64 KiB */
} table_request;

/* Each good row as "[a][b]", null as "[-]"; each bad one, and a bad header, as "LINE.COLUMN CODE text"; one per line.
 * Freed by the caller. */
char *table_read(const table_request *request);

#endif
