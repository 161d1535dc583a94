/*
 * A record of an input as its reader hands it out: where it lies, and its fields as slices of its text.
 */
#ifndef WORKER_INGEST_RECORD_H
#define WORKER_INGEST_RECORD_H

#include "worker/ingest/fault.h"

#define WK_FIELDS_MAX 65536u                       /* in one record */
#define WK_VALUE_MAX  (UINT64_C(1) << 30)          /* bytes of one value */
#define WK_RECORD_MAX (WK_VALUE_MAX + (64u << 20)) /* bytes of one record */

typedef enum wk_field_flag {
    WK_FIELD_QUOTED = 1,
    WK_FIELD_REWRITE = 2, /* not yet resolved doubled quotes or escapes */
    WK_FIELD_JUNK = 4,    /* text behind the closing quote */
    WK_FIELD_BARE_CR = 8,
    WK_FIELD_NUMBER = 16, /* JSON, beside its strings, which are quoted */
    WK_FIELD_WORD = 32,   /* true, false */
    WK_FIELD_NULL = 64,
    WK_FIELD_LIST = 128,
    WK_FIELD_OBJECT = 256
} wk_field_flag;

typedef struct wk_field {
    size_t start, length; /* in the record's text, without the quotes */
    unsigned flags;
} wk_field;

typedef struct wk_record {
    uint64_t number; /* in the file, from 0, the header counted */
    uint64_t line;   /* on which it begins, from 1 */
    uint64_t offset; /* in the source */
    uint8_t *text;
    size_t length; /* with its line end */
    wk_field *fields;
    uint32_t kept;  /* how many of them are in `fields`: at most as many as were asked for */
    uint64_t count; /* how many there are */
    bool plain;     /* of text, with WK_LEX_SLACK bytes behind it: no field has flags */
    bool unclosed;  /* the file ended inside quotes that opened at offset open_quote and on line open_line */
    uint64_t open_quote, open_line;
    const struct wk_mapping *mapping; /* what its fields are (set by the reader of a chunk) */
    const wk_fault *fault;            /* what is wrong with it as a whole (then it has no mapping); NULL: nothing */
} wk_record;

#endif
