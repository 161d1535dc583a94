/*
 * How the bytes of a text input are to be read (the CSV flags of the command line).
 */
#ifndef WORKER_INGEST_DIALECT_H
#define WORKER_INGEST_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wk_dialect {
    char delimiter;          /* 0: by the file's extension, ',' or tab */
    char quote;              /* 0: '"' */
    char escape;             /* 0: none (a quote is doubled) */
    const char *null_token;  /* NULL: only the unquoted empty field */
    bool no_header;          /* names come from `columns` */
    bool header_first_only;  /* only the first file of a type has a header */
    const char *columns;     /* "a,b,c" for no_header; NULL: the type's own order */
    const char *format;      /* NULL: by extension; "csv", "tsv", ... */
} wk_dialect;

#endif
