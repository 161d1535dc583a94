/*
 * A slow and simple CSV reader to compare with: one pass over the whole text, field by field, written without a look at
 * the lexer. And a generator of nasty texts.
 */
#ifndef TESTS_SUPPORT_CSV_REFERENCE_H
#define TESTS_SUPPORT_CSV_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ref_field {
    char *text; /* with quotes and escapes resolved; not for faulty fields */
    size_t length;
    bool quoted, junk, bare_cr;
} ref_field;

typedef struct ref_record {
    uint64_t offset, line;
    ref_field *fields;
    uint32_t count;
    bool unclosed;
    uint64_t open_quote, open_line;
} ref_record;

typedef struct ref_file {
    ref_record *records;
    uint64_t count;
    uint64_t lines;
} ref_file;

void ref_parse(const char *text, size_t length, char delimiter, char quote, char escape, ref_file *ret_file);
void ref_free(ref_file *file);

/* A small generator of random numbers with a seed. */
uint64_t ref_random(uint64_t *seed);
/* Random text of `length` bytes over the letters that matter: delimiter, quotes, CR, LF, escape, others. */
void ref_random_text(uint64_t *seed, char escape, char *ret_text, size_t length);

#endif
