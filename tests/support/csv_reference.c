#include "tests/support/csv_reference.h"

#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *text;
    size_t length, at;
    char delimiter, quote, escape;
    uint64_t line;
} parser;

static void *checked(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* Room for one more of `count` items of `size` bytes: doubles at powers of two. */
static void *room(void *items, uint64_t count, size_t size)
{
    return (count & (count - 1)) == 0 ? checked(realloc(items, (count ? count * 2 : 1) * size)) : items;
}

static int look(const parser *p, size_t ahead)
{
    return p->at + ahead < p->length ? (unsigned char)p->text[p->at + ahead] : -1;
}

static bool at_line_end(const parser *p)
{
    int a = look(p, 0), b = look(p, 1);
    return a == -1 || a == '\n' || (a == '\r' && (b == '\n' || b == -1));
}

static bool special(const parser *p, int byte)
{
    return byte != -1 &&
           (byte == p->delimiter || byte == p->quote || byte == p->escape || byte == '\r' || byte == '\n');
}

static void put(ref_field *field, char byte)
{
    field->text = room(field->text, field->length, 1);
    field->text[field->length++] = byte;
}

static void take(parser *p, ref_field *field)
{
    if (p->text[p->at] == '\n')
        p->line++;
    put(field, p->text[p->at++]);
}

static void parse_quoted(parser *p, ref_record *record, ref_field *field)
{
    record->open_quote = p->at;
    record->open_line = p->line;
    field->quoted = true;
    p->at++;
    for (;;) {
        int byte = look(p, 0);
        if (byte == -1) {
            record->unclosed = true;
            return;
        }
        if (p->escape && byte == p->escape) {
            if (special(p, look(p, 1))) {
                p->at++;
                take(p, field);
            } else
                take(p, field);
        } else if (byte == p->quote && look(p, 1) == p->quote) {
            p->at++;
            take(p, field);
        } else if (byte == p->quote) {
            p->at++;
            return;
        } else
            take(p, field);
    }
}

static void parse_plain(parser *p, ref_field *field)
{
    while (!at_line_end(p) && look(p, 0) != p->delimiter) {
        int byte = look(p, 0);
        if (p->escape && byte == p->escape && special(p, look(p, 1))) {
            p->at++;
            take(p, field);
            continue;
        }
        if (byte == '\r')
            field->bare_cr = true;
        take(p, field);
    }
}

static void parse_record(parser *p, ref_record *record)
{
    for (;;) {
        record->fields = room(record->fields, record->count, sizeof *record->fields);
        ref_field *field = &record->fields[record->count++];
        memset(field, 0, sizeof *field);
        if (look(p, 0) == p->quote) {
            parse_quoted(p, record, field);
            if (record->unclosed)
                return;
            if (!at_line_end(p) && look(p, 0) != p->delimiter) {
                /* A bare CR right behind the quote is its own fault; anything else is text behind the quote. */
                field->junk = look(p, 0) != '\r';
                parse_plain(p, field);
            }
        } else
            parse_plain(p, field);
        if (look(p, 0) != p->delimiter || at_line_end(p))
            break;
        p->at++;
    }
    if (look(p, 0) == '\r')
        p->at++;
    if (look(p, 0) == '\n') {
        p->at++;
        p->line++;
    }
}

void ref_parse(const char *text, size_t length, char delimiter, char quote, char escape, ref_file *ret_file)
{
    parser p = {text, length, 0, delimiter, quote, escape == quote ? 0 : escape, 1};

    memset(ret_file, 0, sizeof *ret_file);
    while (p.at < length) {
        if (at_line_end(&p)) {
            p.at += look(&p, 0) == '\r';
            if (look(&p, 0) == '\n') {
                p.at++;
                p.line++;
            }
            continue;
        }
        ret_file->records = room(ret_file->records, ret_file->count, sizeof *ret_file->records);
        ref_record *record = &ret_file->records[ret_file->count++];
        *record = (ref_record){.offset = p.at, .line = p.line};
        parse_record(&p, record);
    }
    ret_file->lines = p.line - 1;
}

void ref_free(ref_file *file)
{
    for (uint64_t i = 0; i < file->count; i++) {
        for (uint32_t j = 0; j < file->records[i].count; j++)
            free(file->records[i].fields[j].text);
        free(file->records[i].fields);
    }
    free(file->records);
    memset(file, 0, sizeof *file);
}

uint64_t ref_random(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void ref_random_text(uint64_t *seed, char escape, char *ret_text, size_t length)
{
    /* Some texts are mostly quotes, some mostly words: the mix is drawn once per text. */
    uint64_t quotes = 1 + ref_random(seed) % 6, others = 1 + ref_random(seed) % 12;

    for (size_t i = 0; i < length; i++) {
        uint64_t pick = ref_random(seed) % (quotes + others + 7);
        if (pick < quotes)
            ret_text[i] = '"';
        else if (pick < quotes + others)
            ret_text[i] = (char)('a' + pick % 26);
        else
            ret_text[i] = (char[]){',', ',', '\n', '\n', '\r', '\r', escape ? escape : ','}[pick - quotes - others];
    }
}
