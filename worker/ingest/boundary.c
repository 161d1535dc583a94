#include "worker/ingest/boundary.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

/* Lanes are compared at the ends of blocks: of short ones while many are apart, then of long ones. */
#define BLOCK_SHORT 64u
#define BLOCK_LONG  (16u * 1024u)
#define MARKED      16u /* blocks that are marked at a time */

typedef struct block_result {
    wk_lex_state exit;
    uint64_t records, first, last_open;
} block_result;

uint64_t wk_chunk_size(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_CHUNK");
    unsigned long size = value ? strtoul(value, NULL, 10) : 0;
    if (size >= 4 && size < WK_CHUNK)
        return size;
#endif
    return WK_CHUNK;
}

void wk_boundary_begin(wk_boundary_scan *scan, const wk_lexer *lexer, uint64_t offset)
{
    memset(scan, 0, sizeof *scan);
    scan->lexer = lexer;
    scan->offset = offset;
    for (unsigned i = 0; i < WK_LEX_STATES; i++) {
        scan->leader[i] = (uint8_t)i;
        scan->lanes[i] = (wk_lane){.exit = (wk_lex_state)i, .first = WK_NOWHERE, .last_open = WK_NOWHERE};
    }
}

/* Looks at bytes one by one. `offset`: of `at` in the chunk. A record that began in the chunk before is not counted
 * here (its CR was the last byte). */
static void scan_bytes(const wk_lexer *lexer, const uint8_t *at, const uint8_t *end, uint64_t offset, block_result *io)
{
    const uint8_t *start = at;
    wk_lex_state state = io->exit;

    while (at < end) {
        if (state == WK_LEX_PLAIN)
            at = wk_lex_skip_plain(lexer, at, end);
        else if (state == WK_LEX_QUOTED)
            at = wk_lex_skip_quoted(lexer, at, end);
        if (at == end)
            break;
        unsigned step = lexer->step[state][lexer->class_of[*at]];
        uint64_t here = offset + (uint64_t)(at - start);
        if ((step & WK_LEX_BEGIN) || ((step & WK_LEX_BEGIN_BEFORE) && here > 0)) {
            if (io->records++ == 0)
                io->first = here - ((step & WK_LEX_BEGIN_BEFORE) ? 1 : 0);
        }
        if (step & WK_LEX_OPEN)
            io->last_open = here;
        state = (wk_lex_state)(step & WK_LEX_NEXT);
        at++;
    }
    io->exit = state;
}

/* A whole block entered outside quotes in which nothing but delimiters and LF has a meaning: a record begins at each
 * byte that is no LF and stands behind one. */
static inline void scan_marks(const wk_marks *marks, uint64_t offset, block_result *io)
{
    uint64_t begins = ~marks->lines & (marks->lines << 1 | (io->exit == WK_LEX_RECORD_START));

    if (begins && io->records == 0)
        io->first = offset + (unsigned)__builtin_ctzll(begins);
    io->records += (unsigned)__builtin_popcountll(begins);
    io->exit = marks->lines >> 63 ? WK_LEX_RECORD_START : marks->ends >> 63 ? WK_LEX_FIELD_START : WK_LEX_PLAIN;
}

static bool is_outside(wk_lex_state state)
{
    return state == WK_LEX_RECORD_START || state == WK_LEX_FIELD_START || state == WK_LEX_PLAIN;
}

/* `offset`: of `at` in the chunk. */
static block_result scan_block(const wk_lexer *lexer, wk_lex_state state, const uint8_t *at, const uint8_t *end,
                               uint64_t offset)
{
    block_result result = {.exit = state, .first = WK_NOWHERE, .last_open = WK_NOWHERE};
    wk_marks marks[MARKED];

    while (lexer->mark && (size_t)(end - at) >= WK_MARKS_BLOCK && result.exit != WK_LEX_QUOTED) {
        size_t blocks = (size_t)(end - at) / WK_MARKS_BLOCK;
        blocks = blocks < MARKED ? blocks : MARKED;
        lexer->mark(&lexer->marked, at, blocks, marks);
        for (size_t i = 0; i < blocks; i++, at += WK_MARKS_BLOCK, offset += WK_MARKS_BLOCK)
            if (!marks[i].odd && is_outside(result.exit))
                scan_marks(&marks[i], offset, &result);
            else
                scan_bytes(lexer, at, at + WK_MARKS_BLOCK, offset, &result);
    }
    scan_bytes(lexer, at, end, offset, &result);
    return result;
}

static void advance_lane(wk_lane *lane, const block_result *result)
{
    lane->exit = result->exit;
    lane->records += result->records;
    if (lane->first == WK_NOWHERE)
        lane->first = result->first;
    if (result->last_open != WK_NOWHERE)
        lane->last_open = result->last_open;
}

/* Lets lanes that stand in one state go on together; returns how many go alone. */
static unsigned merge_lanes(wk_boundary_scan *scan)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < WK_LEX_STATES; i++) {
        unsigned to = i;
        for (unsigned j = 0; j < i && to == i; j++)
            if (scan->leader[j] == j && scan->lanes[j].exit == scan->lanes[i].exit)
                to = j;
        scan->leader[i] = (uint8_t)to;
        leaders += to == i;
    }
    return leaders;
}

static void step_lanes(wk_boundary_scan *scan, const uint8_t *at, const uint8_t *end)
{
    block_result results[WK_LEX_STATES];

    for (unsigned i = 0; i < WK_LEX_STATES; i++)
        if (scan->leader[i] == i)
            results[i] = scan_block(scan->lexer, scan->lanes[i].exit, at, end, scan->offset);
    for (unsigned i = 0; i < WK_LEX_STATES; i++)
        advance_lane(&scan->lanes[i], &results[scan->leader[i]]);
    scan->offset += (uint64_t)(end - at);
}

void wk_boundary_feed(wk_boundary_scan *scan, const uint8_t *bytes, size_t length)
{
    const uint8_t *end = bytes + length;

    scan->lines += wk_lex_count_lines(bytes, length);
    while (bytes < end) {
        size_t block = merge_lanes(scan) > 2 ? BLOCK_SHORT : BLOCK_LONG;
        const uint8_t *stop = (size_t)(end - bytes) > block ? bytes + block : end;
        step_lanes(scan, bytes, stop);
        bytes = stop;
    }
}

void wk_boundary_end(wk_boundary_scan *scan, int next, wk_boundaries *ret_boundaries)
{
    memset(ret_boundaries, 0, sizeof *ret_boundaries);
    ret_boundaries->bytes = scan->offset;
    ret_boundaries->lines = scan->lines;
    for (unsigned i = 0; i < WK_LEX_STATES; i++) {
        wk_lane *lane = &scan->lanes[i];
        if (lane->exit == WK_LEX_CR_AT_START && next != '\n' && next != WK_AT_END && scan->offset > 0) {
            lane->records++;
            if (lane->first == WK_NOWHERE)
                lane->first = scan->offset - 1;
        }
        ret_boundaries->lanes[i] = *lane;
    }
}

void wk_boundary_chunk(const wk_lexer *lexer, const uint8_t *bytes, size_t length, size_t offset, size_t piece,
                       int next, wk_boundaries *ret_boundaries)
{
    wk_boundary_scan scan;

    PF_ASSERT(offset <= length && piece > 0);
    wk_boundary_begin(&scan, lexer, offset);
    for (size_t at = offset; at < length; at += piece)
        wk_boundary_feed(&scan, bytes + at, length - at < piece ? length - at : piece);
    wk_boundary_end(&scan, next, ret_boundaries);
    ret_boundaries->digest = pf_xxh128_of(bytes, length);
}

void wk_boundaries_join(const wk_boundaries *boundaries, uint32_t count, wk_chunk *ret_chunks, wk_shape *ret_shape)
{
    wk_lex_state state = WK_LEX_RECORD_START;
    uint64_t start = 0;

    memset(ret_shape, 0, sizeof *ret_shape);
    for (uint32_t i = 0; i < count; i++) {
        const wk_lane *lane = &boundaries[i].lanes[state];
        ret_chunks[i] = (wk_chunk){
            .first = lane->first == WK_NOWHERE ? WK_NOWHERE : start + lane->first,
            .records = lane->records,
            .first_record = ret_shape->records,
            .first_line = ret_shape->lines + 1,
        };
        if (lane->last_open != WK_NOWHERE)
            ret_shape->open_quote = start + lane->last_open;
        ret_shape->records += lane->records;
        ret_shape->lines += boundaries[i].lines;
        start += boundaries[i].bytes;
        state = lane->exit;
    }
    ret_shape->unclosed = wk_lex_is_open(state);
}
