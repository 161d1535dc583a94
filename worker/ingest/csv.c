#include "worker/ingest/csv.h"

#include "platform/check.h"
#include "platform/memory.h"
#include <stdlib.h>
#include <string.h>

/* A record is in the buffer, in a column, and, while either grows, once more. */
#define RECORD_PART 5u
#define RECORD_MIN  (UINT64_C(64) << 10)
#define MARKED      16u /* blocks that are marked at a time */

struct wk_csv {
    const wk_lexer *lexer;
    const wk_source *source;
    size_t piece;
    uint64_t record_max;
    bool by_memory;  /* that limit is the memory's */
    uint8_t *buffer; /* capacity + WK_LEX_SLACK bytes */
    size_t capacity, length;
    uint64_t base; /* offset in the source of buffer[0] */
    bool at_end;   /* nothing is left in the source behind the buffer */
    size_t at;     /* next byte to look at */
    wk_lex_state state;
    size_t begin;    /* of the record in the buffer (meaningful from its BEGIN on) */
    size_t field;    /* start of the field being read */
    unsigned flags;  /* of that field */
    size_t counted;  /* lines were counted up to here */
    uint64_t line;   /* of buffer[counted] */
    uint64_t number; /* of the next record to begin */
    wk_record record;
    uint32_t wanted;
    uint32_t room;                  /* in record.fields */
    size_t marked_from, marked_end; /* what of the buffer is marked */
    wk_marks marks[MARKED];
};

sluice_status wk_csv_open(const wk_lexer *lexer, const wk_source *source, const wk_csv_start *start, wk_csv **ret_csv,
                          sluice_error *err)
{
    wk_csv *csv = calloc(1, sizeof *csv);

    if (csv == NULL)
        return pf_fail_memory(err);
    PF_ASSERT(start->piece > 0);
    csv->lexer = lexer;
    csv->source = source;
    csv->piece = start->piece;
    csv->record_max = start->record_max ? start->record_max : pf_memory_part(RECORD_PART, RECORD_MIN, WK_RECORD_MAX);
    csv->by_memory = !start->record_max && csv->record_max < WK_RECORD_MAX;
    csv->base = start->offset;
    csv->line = start->line;
    csv->number = start->number;
    csv->wanted = start->fields;
    csv->state = WK_LEX_RECORD_START;
    *ret_csv = csv;
    return SLUICE_OK;
}

void wk_csv_close(wk_csv *csv)
{
    if (csv == NULL)
        return;
    free(csv->buffer);
    free(csv->record.fields);
    free(csv);
}

void wk_csv_place(const wk_csv *csv, uint64_t *ret_number, uint64_t *ret_line)
{
    *ret_number = csv->record.number;
    *ret_line = csv->record.line;
}

/* Drops what lies before `keep`, so that the record being read begins the buffer. */
static void slide(wk_csv *csv, size_t keep)
{
    if (keep == 0)
        return;
    csv->line += wk_lex_count_lines(csv->buffer + csv->counted, keep > csv->counted ? keep - csv->counted : 0);
    csv->counted = csv->counted > keep ? csv->counted - keep : 0;
    memmove(csv->buffer, csv->buffer + keep, csv->length - keep);
    csv->length -= keep;
    csv->base += keep;
    csv->at -= keep;
    csv->field -= csv->field < keep ? csv->field : keep;
    csv->begin = 0;
}

static sluice_status make_room(wk_csv *csv, size_t more, sluice_error *err)
{
    if (csv->capacity - csv->length >= more)
        return SLUICE_OK;
    size_t capacity = csv->capacity < csv->length + more ? csv->length + more : csv->capacity;
    if (capacity < csv->capacity * 2)
        capacity = csv->capacity * 2;
    uint8_t *buffer = realloc(csv->buffer, capacity + WK_LEX_SLACK);
    if (buffer == NULL)
        return pf_fail_memory(err);
    memset(buffer + capacity, 0, WK_LEX_SLACK);
    csv->buffer = buffer;
    csv->capacity = capacity;
    return SLUICE_OK;
}

static sluice_status too_long(const wk_csv *csv, sluice_error *err)
{
    (void)pf_fail(err, SLUICE_RESOURCE_LIMIT, "a record is longer than the limit of %llu bytes",
                  (unsigned long long)csv->record_max);
    if (csv->by_memory)
        pf_hint(err, "--memory allows no more: give more memory, or fewer workers");
    return SLUICE_RESOURCE_LIMIT;
}

/* Reads one more piece behind the buffer. `in_record`: the bytes from `begin` on are still needed. */
static sluice_status read_more(wk_csv *csv, bool in_record, sluice_error *err)
{
    uint64_t end;
    size_t piece = csv->piece;

    slide(csv, in_record ? csv->begin : csv->at);
    csv->marked_end = 0;
    if (in_record && csv->length > csv->record_max)
        return too_long(csv, err);
    end = csv->base + csv->length;
    if (end >= csv->source->size) {
        csv->at_end = true;
        return SLUICE_OK;
    }
    if (piece > csv->source->size - end)
        piece = (size_t)(csv->source->size - end);
    PF_TRY(make_room(csv, piece, err));
    PF_TRY(wk_source_read(csv->source, end, csv->buffer + csv->length, piece, err));
    csv->length += piece;
    return SLUICE_OK;
}

static void begin_record(wk_csv *csv, size_t begin)
{
    csv->begin = begin;
    csv->field = begin;
    csv->flags = 0;
    csv->line += wk_lex_count_lines(csv->buffer + csv->counted, begin - csv->counted);
    csv->counted = begin;
    csv->record.number = csv->number++;
    csv->record.line = csv->line;
    csv->record.kept = 0;
    csv->record.count = 0;
    csv->record.unclosed = false;
}

/* The field ends before buffer[end]; the next one begins at buffer[next]. */
static sluice_status end_field(wk_csv *csv, size_t end, size_t next, sluice_error *err)
{
    wk_record *record = &csv->record;
    size_t start = csv->field - csv->begin, length = end - csv->field;

    record->count++;
    if (record->kept < csv->wanted) {
        if (record->kept == csv->room) {
            uint32_t room = csv->room ? csv->room * 2 : 16;
            wk_field *fields = realloc(record->fields, room * sizeof *fields);
            if (fields == NULL)
                return pf_fail_memory(err);
            record->fields = fields;
            csv->room = room;
        }
        if ((csv->flags & WK_FIELD_QUOTED) && !(csv->flags & WK_FIELD_JUNK)) {
            start++;
            length = length >= 2 ? length - 2 : 0;
        }
        record->fields[record->kept++] = (wk_field){.start = start, .length = length, .flags = csv->flags};
    }
    csv->field = next;
    csv->flags = 0;
    return SLUICE_OK;
}

static void note_events(wk_csv *csv, unsigned step)
{
    if (step & WK_LEX_OPEN) {
        csv->flags |= WK_FIELD_QUOTED;
        csv->record.open_quote = csv->base + csv->at;
    }
    if (step & WK_LEX_REWRITE)
        csv->flags |= WK_FIELD_REWRITE;
    if (step & WK_LEX_JUNK)
        csv->flags |= WK_FIELD_JUNK;
    if (step & WK_LEX_BARE_CR)
        csv->flags |= WK_FIELD_BARE_CR;
}

/* Looks at bytes until a record is whole (*ret_whole) or the buffer is used up. */
static sluice_status scan(wk_csv *csv, bool *ret_whole, sluice_error *err)
{
    const wk_lexer *lexer = csv->lexer;
    const unsigned rare = WK_LEX_OPEN | WK_LEX_REWRITE | WK_LEX_JUNK | WK_LEX_BARE_CR;

    *ret_whole = false;
    while (csv->at < csv->length) {
        const uint8_t *at = csv->buffer + csv->at, *end = csv->buffer + csv->length;
        if (csv->state == WK_LEX_PLAIN)
            at = wk_lex_skip_plain(lexer, at, end);
        else if (csv->state == WK_LEX_QUOTED)
            at = wk_lex_skip_quoted(lexer, at, end);
        csv->at = (size_t)(at - csv->buffer);
        if (at == end)
            return SLUICE_OK;
        unsigned step = lexer->step[csv->state][lexer->class_of[*at]];
        if (step & (WK_LEX_BEGIN | WK_LEX_BEGIN_BEFORE))
            begin_record(csv, csv->at - ((step & WK_LEX_BEGIN_BEFORE) ? 1 : 0));
        if (step & rare)
            note_events(csv, step);
        if (step & WK_LEX_FIELD) {
            bool cr = csv->state == WK_LEX_CR && (step & WK_LEX_END);
            PF_TRY(end_field(csv, csv->at - cr, csv->at + 1, err));
        }
        csv->state = (wk_lex_state)(step & WK_LEX_NEXT);
        csv->at++;
        if (step & WK_LEX_END) {
            *ret_whole = true;
            return SLUICE_OK;
        }
    }
    return SLUICE_OK;
}

/* Marks the buffer from `at` on; bytes behind its end have no marks. */
static void mark(wk_csv *csv, size_t at)
{
    size_t left = csv->length - at, blocks = (left + WK_MARKS_BLOCK - 1) / WK_MARKS_BLOCK;

    if (blocks > MARKED)
        blocks = MARKED;
    csv->lexer->mark(&csv->lexer->marked, csv->buffer + at, blocks, csv->marks);
    csv->marked_from = at;
    csv->marked_end = at + blocks * WK_MARKS_BLOCK;
    if (csv->marked_end > csv->length) {
        wk_marks *last = &csv->marks[blocks - 1];
        uint64_t inside = (UINT64_C(1) << left % WK_MARKS_BLOCK) - 1;
        last->ends &= inside;
        last->lines &= inside;
        last->odd &= inside;
    }
}

/* Fields that end at the marks `ends` of the block at `block`; false: there is no room for them. */
static inline bool end_fields(wk_csv *csv, size_t block, uint64_t ends)
{
    wk_record *record = &csv->record;
    size_t field = csv->field;

    for (; ends; ends &= ends - 1) {
        size_t end = block + (unsigned)__builtin_ctzll(ends);
        record->count++;
        if (record->kept < csv->wanted) {
            if (record->kept == csv->room)
                return false;
            record->fields[record->kept++] = (wk_field){.start = field - csv->begin, .length = end - field};
        }
        field = end + 1;
    }
    csv->field = field;
    return true;
}

/* Takes a record that lies whole in the buffer and in which nothing but delimiters and LF has a meaning. False: it has
 * to be looked at byte by byte, from where the reader stands still. */
static bool take_plain(wk_csv *csv)
{
    size_t at = csv->at;

    if (csv->state != WK_LEX_RECORD_START || csv->counted != at || !csv->lexer->mark)
        return false;
    csv->begin = csv->field = at;
    csv->record.kept = 0;
    csv->record.count = 0;
    for (;;) {
        if (at >= csv->length)
            return false;
        if (at < csv->marked_from || at >= csv->marked_end)
            mark(csv, at);
        size_t number = (at - csv->marked_from) / WK_MARKS_BLOCK;
        size_t block = csv->marked_from + number * WK_MARKS_BLOCK;
        const wk_marks *marks = &csv->marks[number];
        uint64_t here = ~UINT64_C(0) << (at - block), line = marks->lines & here;
        if (line)
            here &= (line & (0 - line)) * 2 - 1; /* up to the first LF */
        if (marks->odd & here || !end_fields(csv, block, marks->ends & here))
            return false;
        if (line) {
            at = block + (unsigned)__builtin_ctzll(line);
            break;
        }
        at = block + WK_MARKS_BLOCK;
    }
    if (at == csv->begin)
        return false; /* an empty line */
    csv->at = at + 1;
    csv->record.number = csv->number++;
    csv->record.line = csv->line++;
    csv->record.unclosed = false;
    csv->record.plain = true;
    csv->counted = csv->at;
    return true;
}

/* The file ended: so does the record, if one had begun. */
static sluice_status end_of_file(wk_csv *csv, bool *ret_whole, sluice_error *err)
{
    *ret_whole = wk_lex_is_in_record(csv->state);
    if (!*ret_whole)
        return SLUICE_OK;
    if (wk_lex_is_open(csv->state)) {
        size_t open = (size_t)(csv->record.open_quote - csv->base);
        csv->record.unclosed = true;
        csv->record.open_line = csv->record.line + wk_lex_count_lines(csv->buffer + csv->begin, open - csv->begin);
        csv->flags = 0;
    }
    PF_TRY(end_field(csv, csv->length - (csv->state == WK_LEX_CR), csv->length, err));
    csv->state = WK_LEX_RECORD_START;
    return SLUICE_OK;
}

sluice_status wk_csv_next(wk_csv *csv, wk_record **ret_record, sluice_error *err)
{
    bool whole = take_plain(csv);

    *ret_record = NULL;
    while (!whole) {
        csv->record.plain = false;
        PF_TRY(scan(csv, &whole, err));
        if (!whole && csv->at_end)
            PF_TRY(end_of_file(csv, &whole, err));
        if (whole || csv->at_end)
            break;
        /* A CR that begins a line may turn out to be the first byte of a record: it is kept. */
        if (csv->state == WK_LEX_CR_AT_START)
            csv->begin = csv->at - 1;
        PF_TRY(read_more(csv, csv->state != WK_LEX_RECORD_START, err));
    }
    if (!whole)
        return SLUICE_OK;
    if (csv->at - csv->begin > csv->record_max)
        return too_long(csv, err);
    /* Now, since resolving a field's quotes in place moves bytes. */
    if (csv->counted != csv->at)
        csv->line += wk_lex_count_lines(csv->buffer + csv->counted, csv->at - csv->counted);
    csv->counted = csv->at;
    csv->record.text = csv->buffer + csv->begin;
    csv->record.length = csv->at - csv->begin;
    csv->record.offset = csv->base + csv->begin;
    *ret_record = &csv->record;
    return SLUICE_OK;
}

/* Doubled quotes become one; the escape goes where it takes away a meaning. Never longer than before. */
static size_t rewrite(const wk_lexer *lexer, uint8_t *text, size_t length, bool quoted)
{
    size_t to = 0;

    for (size_t i = 0; i < length; i++) {
        uint8_t byte = text[i];
        if (i + 1 < length) {
            uint8_t next = text[i + 1];
            if (lexer->has_escape && byte == lexer->escape && lexer->class_of[next] != WK_CLASS_OTHER)
                byte = text[++i];
            else if (quoted && byte == lexer->quote && next == lexer->quote)
                i++;
        }
        text[to++] = byte;
    }
    return to;
}

const char *wk_csv_text(const wk_lexer *lexer, wk_record *record, uint32_t i, size_t *ret_length)
{
    wk_field *field = &record->fields[i];

    PF_ASSERT(i < record->kept);
    if (field->flags & WK_FIELD_REWRITE) {
        field->length = rewrite(lexer, record->text + field->start, field->length, field->flags & WK_FIELD_QUOTED);
        field->flags &= ~(unsigned)WK_FIELD_REWRITE;
    }
    *ret_length = field->length;
    return (const char *)record->text + field->start;
}
