/*
 * How the bytes of a text input are to be read (the CSV flags of the command line).
 */
#ifndef WORKER_INGEST_DIALECT_H
#define WORKER_INGEST_DIALECT_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wk_dialect {
    char delimiter;         /* 0: by the file's extension, ',' or tab */
    char quote;             /* 0: '"' */
    char escape;            /* 0: none (a quote is doubled) */
    const char *null_token; /* NULL: only the unquoted empty field */
    bool no_header;         /* names come from `columns` */
    bool header_first_only; /* only the first file of a type has a header */
    const char *columns;    /* "a,b,c" for no_header; NULL: the type's own order */
    const char *format;     /* NULL: by extension; "csv", "tsv", "csv.gz" ... */
} wk_dialect;

typedef enum wk_format { WK_FORMAT_CSV, WK_FORMAT_JSONL, WK_FORMAT_ARROW } wk_format;
typedef enum wk_packing { WK_PACKING_NONE, WK_PACKING_GZIP, WK_PACKING_ZSTD } wk_packing;

/* What an input is, by --format or else by its name: NAME.csv .tsv .jsonl .ndjson .arrow .arrows .feather, plus .gz or
 * .zst (of the name, or of the format where the name has none); a name without any extension (and "-") is CSV; another
 * extension is USAGE. *ret_dialect: every 0 and NULL that has a default is replaced by it; flags that contradict each
 * other are USAGE. */
sluice_status wk_dialect_resolve(const wk_dialect *given, const char *path, wk_dialect *ret_dialect,
                                 wk_format *ret_format, wk_packing *ret_packing, sluice_error *err);

#endif
