/*
 * The boundary pass: where records begin, found in all chunks of a file at once.
 *
 * A chunk is WK_CHUNK bytes of the (decompressed) input. Nobody knows in which lexer state a chunk is entered before
 * all chunks before it were read, so each chunk is read for every state at once: one lane per entry state. Lanes that
 * meet in one state go on together (after a few bytes there are seldom more than two: inside and outside quotes). A
 * serial pass over the chunks then follows the true lane of each, and gives every chunk its first record, record number
 * and line.
 *
 * A record belongs to the chunk in which its first byte lies. For a CR that begins a line, the byte behind decides
 * whether it begins a record; so the end of a chunk is told the next byte of the file. The result does not depend on
 * how a chunk is cut into pieces for wk_boundary_feed.
 */
#ifndef WORKER_INGEST_BOUNDARY_H
#define WORKER_INGEST_BOUNDARY_H

#include "platform/buffer.h"
#include "platform/digest.h"
#include "platform/fail.h"
#include "worker/ingest/lexer.h"

#define WK_CHUNK (UINT64_C(16) << 20)
/* WK_CHUNK; in builds with failpoints SLUICE_TEST_CHUNK=BYTES makes it smaller, so that small files have many chunks.
 */
uint64_t wk_chunk_size(void);
#define WK_NOWHERE UINT64_MAX
#define WK_AT_END  (-1) /* instead of a next byte: the file ends here */

/* What a chunk looks like when it is entered in one state. Offsets count from the chunk's first byte. */
typedef struct wk_lane {
    wk_lex_state exit;
    uint64_t records;   /* that begin in the chunk */
    uint64_t first;     /* where the first of them begins; WK_NOWHERE */
    uint64_t last_open; /* the last quote that opened a field; WK_NOWHERE */
} wk_lane;

typedef struct wk_boundaries {
    uint64_t bytes;
    uint64_t lines;   /* LF bytes */
    pf_xxh128 digest; /* of the chunk's bytes; for the request digest */
    wk_lane lanes[WK_LEX_STATES];
} wk_boundaries;

typedef struct wk_boundary_scan {
    const wk_lexer *lexer;
    uint64_t offset;
    uint64_t lines;
    uint8_t leader[WK_LEX_STATES]; /* whose steps a lane takes; itself until it has met another */
    wk_lane lanes[WK_LEX_STATES];
} wk_boundary_scan;

/* Begins at `offset` of the chunk (behind a byte-order mark; else 0). */
void wk_boundary_begin(wk_boundary_scan *scan, const wk_lexer *lexer, uint64_t offset);
/* The next bytes of the chunk; WK_LEX_SLACK bytes behind them must be readable. */
void wk_boundary_feed(wk_boundary_scan *scan, const uint8_t *bytes, size_t length);
/* `next`: the byte behind the chunk, or WK_AT_END. Fills all but the digest. */
void wk_boundary_end(wk_boundary_scan *scan, int next, wk_boundaries *ret_boundaries);
/* A whole chunk in pieces of `piece` bytes, with its digest. `offset` as above. */
void wk_boundary_chunk(const wk_lexer *lexer, const uint8_t *bytes, size_t length, size_t offset, size_t piece,
                       int next, wk_boundaries *ret_boundaries);

/* As the result of a task: one line of JSON. */
sluice_status wk_boundaries_encode(const wk_boundaries *boundaries, pf_buffer *buffer, sluice_error *err);
sluice_status wk_boundaries_decode(const void *bytes, size_t length, wk_boundaries *ret_boundaries, sluice_error *err);

/* A chunk in its true lane. */
typedef struct wk_chunk {
    uint64_t first;        /* offset in the file of its first record; WK_NOWHERE */
    uint64_t records;      /* that begin in it */
    uint64_t first_record; /* number of the first of them; the file's first record is 0 (also when it is a header) */
    uint64_t first_line;   /* line of the chunk's first byte; the file's first line is 1 */
} wk_chunk;

typedef struct wk_shape { /* of a whole file */
    uint64_t records, lines;
    bool unclosed;       /* the last record holds a quote that is never closed, */
    uint64_t open_quote; /* at this offset of the file */
} wk_shape;

/* Follows the true lanes. ret_chunks: room for `count`. */
void wk_boundaries_join(const wk_boundaries *boundaries, uint32_t count, wk_chunk *ret_chunks, wk_shape *ret_shape);

#endif
