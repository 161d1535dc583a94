/*
 * Marks: where the bytes of structure are in a text, 64 at a time, as bits.
 *
 * Where nothing but delimiters and line ends has a meaning, which is nearly everywhere, records and fields follow from
 * the marks alone; a block with anything else in it is the state machine's (lexer.h). The same marks are made by every
 * way that a processor has for it; which one is chosen when a lexer is made.
 */
#ifndef WORKER_INGEST_MARKS_H
#define WORKER_INGEST_MARKS_H

#include <stddef.h>
#include <stdint.h>

#define WK_MARKS_BLOCK 64u

typedef struct wk_marks { /* of one block: bit i stands for byte i */
    uint64_t ends;        /* delimiters and LF */
    uint64_t lines;       /* LF */
    uint64_t odd;         /* quotes, escapes, CR */
} wk_marks;

typedef struct wk_mark_bytes {
    uint8_t delimiter, quote, escape; /* without an escape: the quote once more */
} wk_mark_bytes;

/* Marks `blocks` whole blocks. */
typedef void wk_marks_fn(const wk_mark_bytes *of, const uint8_t *bytes, size_t blocks, wk_marks *ret_marks);

wk_marks_fn *wk_marks_choose(void);
/* All ways that this processor has, the plainest first; their number. */
#define WK_MARKS_WAYS 3u
unsigned wk_marks_ways(wk_marks_fn *ret_ways[WK_MARKS_WAYS]);

#endif
