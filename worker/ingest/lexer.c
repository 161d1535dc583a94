#include "worker/ingest/lexer.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Outside quotes, behind the field's first byte: what each class does, whatever state led here. */
static void fill_plain(uint16_t row[WK_CLASS_COUNT], unsigned events)
{
    row[WK_CLASS_OTHER] = (uint16_t)(WK_LEX_PLAIN | events);
    row[WK_CLASS_QUOTE] = (uint16_t)(WK_LEX_PLAIN | events);
    row[WK_CLASS_DELIMITER] = (uint16_t)(WK_LEX_FIELD_START | WK_LEX_FIELD | events);
    row[WK_CLASS_ESCAPE] = (uint16_t)(WK_LEX_ESCAPE_PLAIN | WK_LEX_REWRITE | events);
    row[WK_CLASS_CR] = (uint16_t)(WK_LEX_CR | events);
    row[WK_CLASS_LF] = (uint16_t)(WK_LEX_RECORD_START | WK_LEX_FIELD | WK_LEX_END | events);
}

static void fill_all(uint16_t row[WK_CLASS_COUNT], unsigned value)
{
    for (unsigned i = 0; i < WK_CLASS_COUNT; i++)
        row[i] = (uint16_t)value;
}

static void fill_table(wk_lexer *lexer)
{
    uint16_t(*step)[WK_CLASS_COUNT] = lexer->step;

    fill_plain(step[WK_LEX_RECORD_START], WK_LEX_BEGIN);
    step[WK_LEX_RECORD_START][WK_CLASS_QUOTE] = WK_LEX_QUOTED | WK_LEX_BEGIN | WK_LEX_OPEN;
    step[WK_LEX_RECORD_START][WK_CLASS_CR] = WK_LEX_CR_AT_START;
    step[WK_LEX_RECORD_START][WK_CLASS_LF] = WK_LEX_RECORD_START;

    fill_plain(step[WK_LEX_FIELD_START], 0);
    step[WK_LEX_FIELD_START][WK_CLASS_QUOTE] = WK_LEX_QUOTED | WK_LEX_OPEN;

    fill_plain(step[WK_LEX_PLAIN], 0);

    fill_all(step[WK_LEX_QUOTED], WK_LEX_QUOTED);
    step[WK_LEX_QUOTED][WK_CLASS_QUOTE] = WK_LEX_QUOTE;
    step[WK_LEX_QUOTED][WK_CLASS_ESCAPE] = WK_LEX_ESCAPE_QUOTED | WK_LEX_REWRITE;

    fill_plain(step[WK_LEX_QUOTE], 0);
    step[WK_LEX_QUOTE][WK_CLASS_QUOTE] = WK_LEX_QUOTED | WK_LEX_REWRITE;
    step[WK_LEX_QUOTE][WK_CLASS_OTHER] = WK_LEX_PLAIN | WK_LEX_JUNK;
    step[WK_LEX_QUOTE][WK_CLASS_ESCAPE] = WK_LEX_ESCAPE_PLAIN | WK_LEX_JUNK;

    fill_plain(step[WK_LEX_CR_AT_START], WK_LEX_BEGIN_BEFORE | WK_LEX_BARE_CR);
    step[WK_LEX_CR_AT_START][WK_CLASS_LF] = WK_LEX_RECORD_START;

    fill_plain(step[WK_LEX_CR], WK_LEX_BARE_CR);
    step[WK_LEX_CR][WK_CLASS_LF] = WK_LEX_RECORD_START | WK_LEX_FIELD | WK_LEX_END;

    fill_all(step[WK_LEX_ESCAPE_PLAIN], WK_LEX_PLAIN);
    fill_all(step[WK_LEX_ESCAPE_QUOTED], WK_LEX_QUOTED);
}

void wk_lexer_make(wk_lexer *lexer, const wk_dialect *dialect)
{
    memset(lexer, 0, sizeof *lexer);
    lexer->delimiter = (uint8_t)dialect->delimiter;
    lexer->quote = (uint8_t)dialect->quote;
    /* An escape that is the quote itself says what is so anyway: a quote is doubled. */
    lexer->has_escape = dialect->escape != 0 && dialect->escape != dialect->quote;
    lexer->escape = lexer->has_escape ? (uint8_t)dialect->escape : (uint8_t)'\n';
    lexer->class_of['\n'] = WK_CLASS_LF;
    lexer->class_of['\r'] = WK_CLASS_CR;
    if (lexer->has_escape)
        lexer->class_of[lexer->escape] = WK_CLASS_ESCAPE;
    lexer->class_of[lexer->quote] = WK_CLASS_QUOTE;
    lexer->class_of[lexer->delimiter] = WK_CLASS_DELIMITER;
    fill_table(lexer);
    lexer->marked = (wk_mark_bytes){.delimiter = lexer->delimiter,
                                    .quote = lexer->quote,
                                    .escape = lexer->has_escape ? lexer->escape : lexer->quote};
    lexer->mark = wk_marks_choose();
}

void wk_lexer_make_lines(wk_lexer *lexer)
{
    memset(lexer, 0, sizeof *lexer);
    lexer->delimiter = lexer->quote = lexer->escape = '\n';
    lexer->class_of['\n'] = WK_CLASS_LF;
    lexer->class_of[' '] = lexer->class_of['\t'] = lexer->class_of['\r'] = WK_CLASS_DELIMITER; /* a blank */
    fill_all(lexer->step[WK_LEX_RECORD_START], WK_LEX_PLAIN | WK_LEX_BEGIN);
    lexer->step[WK_LEX_RECORD_START][WK_CLASS_DELIMITER] = WK_LEX_RECORD_START;
    lexer->step[WK_LEX_RECORD_START][WK_CLASS_LF] = WK_LEX_RECORD_START;
    /* No other state is ever entered; for the boundary pass, which enters all, they are as a line's inside. */
    for (unsigned state = WK_LEX_RECORD_START + 1; state < WK_LEX_STATES; state++) {
        fill_all(lexer->step[state], WK_LEX_PLAIN);
        lexer->step[state][WK_CLASS_LF] = WK_LEX_RECORD_START | WK_LEX_FIELD | WK_LEX_END;
    }
}

#if defined(__SSE2__)

static inline unsigned match_mask(__m128i block, uint8_t byte)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8((char)byte)));
}

/* Reads 16 bytes at a time, so some that lie behind `end`. */
const uint8_t *wk_lex_skip_plain(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
        unsigned mask = match_mask(block, lexer->delimiter) | match_mask(block, '\n') | match_mask(block, '\r') |
                        match_mask(block, lexer->escape);
        if (mask != 0) {
            at += __builtin_ctz(mask);
            return at < end ? at : end;
        }
    }
    return end;
}

#else

const uint8_t *wk_lex_skip_plain(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++)
        if (*at == lexer->delimiter || *at == '\n' || *at == '\r' || *at == lexer->escape)
            return at;
    return end;
}

#endif

const uint8_t *wk_lex_skip_quoted(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end)
{
    if (!lexer->has_escape) {
        const uint8_t *found = at < end ? memchr(at, lexer->quote, (size_t)(end - at)) : NULL;
        return found ? found : end;
    }
    for (; at < end; at++)
        if (*at == lexer->quote || *at == lexer->escape)
            return at;
    return end;
}

uint64_t wk_lex_count_lines(const uint8_t *bytes, size_t length)
{
    uint64_t lines = 0;

    while (length > 0) { /* sums of bytes in bytes, which a compiler makes many of at once */
        size_t piece = length < UINT8_MAX ? length : UINT8_MAX;
        uint8_t here = 0;
        for (size_t i = 0; i < piece; i++)
            here = (uint8_t)(here + (bytes[i] == '\n'));
        lines += here;
        bytes += piece;
        length -= piece;
    }
    return lines;
}
