/*
 * The CSV lexer: one small explicit state machine, used by the boundary pass (boundary.h) and the record reader
 * (csv.h).
 *
 * A byte has a class (delimiter, quote, escape, CR, LF, anything else); (state, class) gives the next state and events.
 * The machine is total: every byte sequence has one reading, however it is cut. Its rules:
 *   - a record ends at LF or CR LF outside quotes, or at the end of the file; CR right before the end of the file
 * counts as a line end. A CR that no LF follows is never a line end: outside quotes it is a fault, inside it is text.
 *   - an empty line (nothing between two line ends) is no record; it is a line.
 *   - a quote opens a quoted field only as the field's first byte; elsewhere in a plain field it is text. Inside quotes
 * a doubled quote is a quote. Text behind a closing quote is a fault of that field, which then goes on as a plain one.
 *   - the escape byte, where one is declared, takes the meaning from a quote, delimiter, CR, LF or escape behind it,
 * inside and outside quotes; before anything else it is text.
 *   - lines are counted by LF, also inside quotes.
 */
#ifndef WORKER_INGEST_LEXER_H
#define WORKER_INGEST_LEXER_H

#include "worker/ingest/dialect.h"
#include "worker/ingest/marks.h"

typedef enum wk_lex_state {
    WK_LEX_RECORD_START, /* nothing of the next record was seen */
    WK_LEX_FIELD_START,  /* behind a delimiter */
    WK_LEX_PLAIN,
    WK_LEX_QUOTED,
    WK_LEX_QUOTE,       /* a quote inside quotes: the end, or the first half of a doubled one */
    WK_LEX_CR_AT_START, /* a CR as the first byte of a line: an empty line if LF follows, else the record began there */
    WK_LEX_CR,          /* a CR anywhere else outside quotes */
    WK_LEX_ESCAPE_PLAIN,
    WK_LEX_ESCAPE_QUOTED,
    WK_LEX_STATES
} wk_lex_state;

typedef enum wk_lex_class {
    WK_CLASS_OTHER,
    WK_CLASS_DELIMITER,
    WK_CLASS_QUOTE,
    WK_CLASS_ESCAPE,
    WK_CLASS_CR,
    WK_CLASS_LF,
    WK_CLASS_COUNT
} wk_lex_class;

/* What a transition means, above the next state in the low bits. */
#define WK_LEX_NEXT         0x000fu /* mask of the next state */
#define WK_LEX_BEGIN        0x0010u /* a record begins at this byte */
#define WK_LEX_BEGIN_BEFORE 0x0020u /* a record began at the byte before (a CR that turned out to be text) */
#define WK_LEX_FIELD        0x0040u /* a field ended before this byte (before the CR when the state was WK_LEX_CR) */
#define WK_LEX_END          0x0080u /* the record ended with that field */
#define WK_LEX_OPEN         0x0100u /* this byte opens a quoted field */
#define WK_LEX_REWRITE      0x0200u /* the field's text is shorter than its bytes (a doubled quote, an escape) */
#define WK_LEX_JUNK         0x0400u /* text behind a closing quote */
#define WK_LEX_BARE_CR      0x0800u /* the CR before this byte was no line end */

typedef struct wk_lexer {
    uint8_t delimiter, quote, escape;
    bool has_escape;
    uint8_t class_of[256];
    uint16_t step[WK_LEX_STATES][WK_CLASS_COUNT];
    wk_marks_fn *mark; /* NULL: marks do not say what this lexer does */
    wk_mark_bytes marked;
} wk_lexer;

/* Bytes behind the end of a buffer that the search functions may read (and ignore). */
#define WK_LEX_SLACK WK_MARKS_BLOCK

/* The dialect must be resolved (wk_dialect_resolve). */
void wk_lexer_make(wk_lexer *lexer, const wk_dialect *dialect);
/* The lexer of lines: a record is a line with one field; a line of spaces, tabs and CR alone is none. Neither quotes
 * nor CR mean anything. */
void wk_lexer_make_lines(wk_lexer *lexer);
/* The first byte at or behind `at` that can end or change a plain field (delimiter, CR, LF, escape); `end` when none.
 */
const uint8_t *wk_lex_skip_plain(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end);
/* The first quote or escape; `end` when none. */
const uint8_t *wk_lex_skip_quoted(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end);
/* How many LF bytes there are. */
uint64_t wk_lex_count_lines(const uint8_t *bytes, size_t length);

/* Is a quoted field open in this state? At the end of the file that is a quote that was never closed. */
static inline bool wk_lex_is_open(wk_lex_state state)
{
    return state == WK_LEX_QUOTED || state == WK_LEX_ESCAPE_QUOTED;
}
/* Does the end of the file end a record in this state? */
static inline bool wk_lex_is_in_record(wk_lex_state state)
{
    return state != WK_LEX_RECORD_START && state != WK_LEX_CR_AT_START;
}

#endif
