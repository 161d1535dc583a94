/*
 * Formats: what each kind of input does in its own way. All else (chunks, tasks, staging, probes, faults, digests) is
 * the same for all of them.
 *
 * An input is a sequence of records, cut by its bytes into chunks. Which records belong to a chunk is the format's
 * rule; it depends on the bytes alone. The format says what the columns of an input are, reads the records of a chunk
 * one after the other, and puts a record into rows.
 */
#ifndef WORKER_INGEST_FORMAT_H
#define WORKER_INGEST_FORMAT_H

#include "worker/ingest/boundary.h"
#include "worker/ingest/header.h"
#include "worker/ingest/record.h"
#include "worker/ingest/source.h"

typedef struct wk_rows wk_rows;

typedef struct wk_input { /* as its format reads it */
    const struct wk_format_ops *format;
    const wk_dialect *dialect; /* resolved */
    wk_source source;
    uint64_t mark;  /* bytes of its byte-order mark */
    wk_lexer lexer; /* of text */
    void **state;   /* where a format keeps what it found out about the input, until `release` */
} wk_input;

typedef struct wk_columns { /* of an input, under a schema */
    const st_schema *schema;
    const st_type_def *type;
    bool ignore_unknown;
    bool partial;          /* columns may be missing: the rows are completed from the base (worker/ingest/complete.h) */
    bool names_rows;       /* its rows have load-local names, */
    bool named[2];         /* its ends are load-local names, */
    const char *spaces[3]; /* of the rows, of the ends: put before the names (NULL: nothing) */
    wk_mapping mapping;    /* where all records have the same columns; else each record has its own */
} wk_columns;

/* For wk_mapping_make. */
static inline unsigned wk_columns_allow(const wk_columns *columns)
{
    return (columns->ignore_unknown ? WK_MAP_UNKNOWN : 0) | (columns->partial ? WK_MAP_PARTIAL : 0) |
           (columns->named[0] ? WK_MAP_NAMED_FROM : 0) | (columns->named[1] ? WK_MAP_NAMED_TO : 0);
}

typedef struct wk_chunk_view { /* where the records of a chunk are */
    const wk_input *input;
    const wk_columns *columns;
    uint64_t start; /* offset of the chunk's first byte */
    const wk_chunk *place;
    size_t piece;        /* bytes per read */
    uint64_t record_max; /* bytes of a record; 0: WK_RECORD_MAX */
} wk_chunk_view;

typedef struct wk_survey { /* of an input, for inference: what its columns are, and all values of text */
    struct wk_infer *infer;
    uint32_t argument;
    bool has_header;
    size_t piece;
    uint32_t *headings; /* out (owned by the caller): the column of each heading, where all records have the same */
    uint32_t heading_count;
} wk_survey;

typedef struct wk_format_ops {
    bool has_header; /* the first record of a file names its columns, unless the dialect says otherwise */
    /* Before anything else; the source is not yet known. */
    void (*prepare)(wk_input *input);
    void (*release)(wk_input *input); /* NULL: it keeps no state */
    /* What a chunk of `length` bytes holds, as wk_boundary_chunk. */
    void (*scan)(const wk_input *input, const uint8_t *bytes, size_t length, size_t offset, size_t piece, int next,
                 wk_boundaries *ret_boundaries);
    /* Where the records of each chunk are, from what all of them hold. */
    sluice_status (*join)(const wk_input *input, const wk_boundaries *boundaries, uint32_t count, wk_chunk *ret_chunks,
                          wk_shape *ret_shape, sluice_error *err);
    /* The columns' mapping, by the header of `owner` where there is one. A fault (with its line) is no error. */
    sluice_status (*map)(const wk_input *input, const wk_input *owner, wk_columns *columns, wk_fault *ret_fault,
                         sluice_error *err);
    /* The records of a chunk. next: as wk_csv_next; place: number and line of a record that next refused. */
    sluice_status (*open)(const wk_chunk_view *view, void **ret_reader, sluice_error *err);
    sluice_status (*next)(void *reader, wk_record **ret_record, sluice_error *err);
    void (*place)(const void *reader, uint64_t *ret_number, uint64_t *ret_line);
    void (*close)(void *reader); /* NULL allowed */
    /* Appends the values of a record to rows (worker/ingest/rows_build.h), or sets the fault of its least column. */
    sluice_status (*add)(wk_rows *rows, wk_record *record, wk_fault *fault, sluice_error *err);
    /* What can be said of an input without knowing its type. A record that is not well formed is passed over: it is
     * refused where rows are read. A fault of the whole input is no error. */
    sluice_status (*survey)(const wk_input *input, const wk_input *owner, wk_survey *survey, wk_fault *ret_fault,
                            sluice_error *err);
    /* Field i of a record (i < kept) as text, for messages. */
    const char *(*text)(const wk_input *input, wk_record *record, uint32_t i, size_t *ret_length);
    /* Appends a record as the rejects file shows it; NULL: its text as it stands. */
    sluice_status (*show)(wk_record *record, pf_buffer *buffer, sluice_error *err);
} wk_format_ops;

extern const wk_format_ops wk_csv_ops, wk_jsonl_ops, wk_arrow_ops;
const wk_format_ops *wk_format_find(wk_format format);

#endif
