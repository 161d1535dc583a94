/* The lexer and the record reader: rules of the text, one table; then random texts against a simple reader, at every
 * cut. */
#include "platform/check.h"
#include "tests/support/csv_reference.h"
#include "tests/support/test.h"
#include "worker/ingest/csv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wk_lexer make_lexer(char delimiter, char escape)
{
    wk_dialect dialect = {.delimiter = delimiter, .quote = '"', .escape = escape};
    wk_lexer lexer;
    wk_lexer_make(&lexer, &dialect);
    return lexer;
}

/* Renders records: fields between [ ], quoted ones as [q:..], faults as !junk !cr !open, "LINE:" before each record. */
static char *render(const wk_lexer *lexer, const char *text, size_t length, size_t piece)
{
    sluice_error err;
    char *out = NULL;
    size_t out_length = 0;
    FILE *stream = open_memstream(&out, &out_length);
    wk_memory_source memory = {text, length};
    wk_source source = wk_source_of_memory(&memory);
    wk_csv_start start = {.line = 1, .piece = piece, .fields = 100};
    wk_csv *csv = NULL;
    wk_record *record = NULL;

    assert_non_null(stream);
    ASSERT_OK(wk_csv_open(lexer, &source, &start, &csv, &err));
    for (;;) {
        ASSERT_OK(wk_csv_next(csv, &record, &err));
        if (record == NULL)
            break;
        fprintf(stream, "%llu:", (unsigned long long)record->line);
        assert_int_equal(record->count, record->kept);
        for (uint32_t i = 0; i < record->kept; i++) {
            unsigned flags = record->fields[i].flags;
            size_t field_length;
            const char *field = wk_csv_text(lexer, record, i, &field_length);
            fprintf(stream, "[%s", (flags & WK_FIELD_QUOTED) ? "q:" : "");
            fwrite(field, 1, field_length, stream);
            fprintf(stream, "%s%s]", (flags & WK_FIELD_JUNK) ? "!junk" : "", (flags & WK_FIELD_BARE_CR) ? "!cr" : "");
        }
        if (record->unclosed)
            fprintf(stream, "!open@%llu", (unsigned long long)record->open_line);
        fprintf(stream, " ");
    }
    wk_csv_close(csv);
    fclose(stream);
    return out;
}

typedef struct rule {
    const char *text, *want;
    char escape;
} rule;

static const rule rules[] = {
    {"", "", 0},
    {"a", "1:[a] ", 0},
    {"a,b\n", "1:[a][b] ", 0},
    {"a,b\r\n", "1:[a][b] ", 0},
    {"a,b\nc,d", "1:[a][b] 2:[c][d] ", 0},
    {",\n", "1:[][] ", 0},
    {",", "1:[][] ", 0},
    {"a,\n", "1:[a][] ", 0},
    {"a,", "1:[a][] ", 0},
    /* Empty lines are lines and no records. */
    {"\n\na\n\nb\n\n", "3:[a] 5:[b] ", 0},
    {"\r\na\r\n\r\nb\r\n\r\n", "2:[a] 4:[b] ", 0},
    {"\n", "", 0},
    {"\r\n", "", 0},
    {"\r", "", 0},
    {" \n", "1:[ ] ", 0},
    /* Quotes. */
    {"\"a\",\"b\"\n", "1:[q:a][q:b] ", 0},
    {"\"\"\n", "1:[q:] ", 0},
    {"\"\",\n", "1:[q:][] ", 0},
    {"\"a,b\"\n", "1:[q:a,b] ", 0},
    {"\"a\nb\"\nc\n", "1:[q:a\nb] 3:[c] ", 0},
    {"\"a\r\nb\"\r\nc\r\n", "1:[q:a\r\nb] 3:[c] ", 0},
    {"\"a\rb\"\nc\n", "1:[q:a\rb] 2:[c] ", 0},
    {"\"a\"\"b\"\n", "1:[q:a\"b] ", 0},
    {"\"\"\"\"\n", "1:[q:\"] ", 0},
    {"\"\"\"a\"\"\"\n", "1:[q:\"a\"] ", 0},
    {"\"\n\n\"\n", "1:[q:\n\n] ", 0},
    {"\"a\"", "1:[q:a] ", 0},
    {"\"a\"\r", "1:[q:a] ", 0},
    {"a\"b\n", "1:[a\"b] ", 0},
    {"a\"\"b,c\"\n", "1:[a\"\"b][c\"] ", 0},
    {" \"a\"\n", "1:[ \"a\"] ", 0},
    {"\"\\\"\nx\n", "1:[q:\\] 2:[x] ", 0},
    /* Faults of quotes. */
    {"\"a\"b,c\nd\n", "1:[q:\"a\"b!junk][c] 2:[d] ", 0},
    {"\"a\" ,c\n", "1:[q:\"a\" !junk][c] ", 0},
    {"\"a\"b\"c,d\"\n", "1:[q:\"a\"b\"c!junk][d\"] ", 0},
    {"a\n\"b\nc\n", "1:[a] 2:[\"b\nc\n]!open@2 ", 0},
    {"a,\"b\nc\",\"d\ne", "1:[a][q:b\nc][\"d\ne]!open@2 ", 0},
    {"\"", "1:[\"]!open@1 ", 0},
    /* CR that ends no line. */
    {"a\rb\n", "1:[a\rb!cr] ", 0},
    {"\ra\n", "1:[\ra!cr] ", 0},
    {"a\n\rb\n", "1:[a] 2:[\rb!cr] ", 0},
    {"a\r\r\nb\n", "1:[a\r!cr] 2:[b] ", 0},
    {"\r\r\n", "1:[\r!cr] ", 0},
    {"a\r,b\n", "1:[a\r!cr][b] ", 0},
    {"a\r", "1:[a] ", 0},
    {"a,\r", "1:[a][] ", 0},
    {"a,b\rc,d\re,f\r", "1:[a][b\rc!cr][d\re!cr][f] ", 0},
    /* Escapes. */
    {"\"a\\\"b\"\n", "1:[q:a\"b] ", '\\'},
    {"\"a\\\\\"\n", "1:[q:a\\] ", '\\'},
    {"\"a\\nb\"\n", "1:[q:a\\nb] ", '\\'},
    {"a\\,b\n", "1:[a,b] ", '\\'},
    {"a\\\nb\n", "1:[a\nb] ", '\\'},
    {"\\N,x\n", "1:[\\N][x] ", '\\'},
    {"\"a\"\"b\"\n", "1:[q:a\"b] ", '\\'},
    {"a\\", "1:[a\\] ", '\\'},
    {"\"a\\", "1:[\"a\\]!open@1 ", '\\'},
    {"\\\"a\",b\n", "1:[\"a\"][b] ", '\\'},
    {"\"a\"\"b\"\n", "1:[q:a\"b] ", '"'},
};

static void every_text_has_one_reading_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const rule *r = &rules[i];
        wk_lexer lexer = make_lexer(',', r->escape);
        for (size_t piece = 1; piece <= strlen(r->text) + 1; piece++) {
            char *got = render(&lexer, r->text, strlen(r->text), piece);
            assert_string_equal(got, r->want);
            free(got);
        }
    }
}

static void another_delimiter_leaves_the_comma_alone(void **state)
{
    (void)state;
    wk_lexer lexer = make_lexer('|', 0);
    char *got = render(&lexer, "a,b|c\n1|\"2|3\"\n", 14, 4);
    assert_string_equal(got, "1:[a,b][c] 2:[1][q:2|3] ");
    free(got);
}

static void a_nul_byte_is_text(void **state)
{
    (void)state;
    wk_lexer lexer = make_lexer(',', 0);
    wk_memory_source memory = {"a\0b,c\n", 6};
    wk_source source = wk_source_of_memory(&memory);
    wk_csv_start start = {.line = 1, .piece = 3, .fields = 9};
    wk_csv *csv;
    wk_record *record;
    size_t length;
    sluice_error err;

    ASSERT_OK(wk_csv_open(&lexer, &source, &start, &csv, &err));
    ASSERT_OK(wk_csv_next(csv, &record, &err));
    assert_int_equal(record->kept, 2);
    assert_memory_equal(wk_csv_text(&lexer, record, 0, &length), "a\0b", 3);
    assert_int_equal(length, 3);
    wk_csv_close(csv);
}

static void only_the_fields_asked_for_are_kept_and_all_are_counted(void **state)
{
    (void)state;
    wk_lexer lexer = make_lexer(',', 0);
    wk_memory_source memory = {"a,b,c,d,e\n", 10};
    wk_source source = wk_source_of_memory(&memory);
    wk_csv_start start = {.line = 1, .piece = 64, .fields = 2};
    wk_csv *csv;
    wk_record *record;
    sluice_error err;

    ASSERT_OK(wk_csv_open(&lexer, &source, &start, &csv, &err));
    ASSERT_OK(wk_csv_next(csv, &record, &err));
    assert_int_equal(record->kept, 2);
    assert_int_equal(record->count, 5);
    wk_csv_close(csv);
}

static void a_record_at_the_limit_is_read_and_one_byte_more_is_not(void **state)
{
    (void)state;
    wk_lexer lexer = make_lexer(',', 0);
    for (size_t length = 999; length <= 1001; length++) {
        char text[1100];
        memset(text, 'x', sizeof text);
        memcpy(text, "h\n", 2);
        text[2 + length - 1] = '\n';
        wk_memory_source memory = {text, 2 + length};
        wk_source source = wk_source_of_memory(&memory);
        wk_csv_start start = {.line = 1, .piece = 7, .fields = 9, .record_max = 1000};
        wk_csv *csv;
        wk_record *record;
        sluice_error err;
        uint64_t number, line;

        ASSERT_OK(wk_csv_open(&lexer, &source, &start, &csv, &err));
        ASSERT_OK(wk_csv_next(csv, &record, &err));
        if (length <= 1000)
            ASSERT_OK(wk_csv_next(csv, &record, &err));
        else {
            ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, wk_csv_next(csv, &record, &err));
            wk_csv_place(csv, &number, &line);
            assert_int_equal(number, 1);
            assert_int_equal(line, 2);
        }
        wk_csv_close(csv);
    }
}

static sluice_status read_shrunk(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                 sluice_error *err)
{
    (void)context, (void)offset, (void)err;
    memset(bytes, 'a', length);
    *ret_got = length / 2;
    return SLUICE_OK;
}

static void an_input_that_shrinks_is_an_error(void **state)
{
    (void)state;
    wk_lexer lexer = make_lexer(',', 0);
    wk_source source = {.size = 100, .read = read_shrunk};
    wk_csv_start start = {.line = 1, .piece = 64, .fields = 2};
    wk_csv *csv;
    wk_record *record;
    sluice_error err;

    ASSERT_OK(wk_csv_open(&lexer, &source, &start, &csv, &err));
    ASSERT_FAILS(SLUICE_INPUT_CHANGED, wk_csv_next(csv, &record, &err));
    wk_csv_close(csv);
}

static void compare_record(const wk_lexer *lexer, wk_record *record, const ref_record *want, uint64_t number)
{
    assert_int_equal(record->number, number);
    assert_int_equal(record->offset, want->offset);
    assert_int_equal(record->line, want->line);
    assert_int_equal(record->count, want->count);
    assert_int_equal(record->unclosed, want->unclosed);
    if (record->unclosed) {
        assert_int_equal(record->open_quote, want->open_quote);
        assert_int_equal(record->open_line, want->open_line);
        return;
    }
    for (uint32_t i = 0; i < want->count; i++) {
        const ref_field *field = &want->fields[i];
        unsigned flags = record->fields[i].flags;
        size_t length;
        assert_int_equal((flags & WK_FIELD_QUOTED) != 0, field->quoted);
        assert_int_equal((flags & WK_FIELD_JUNK) != 0, field->junk);
        assert_int_equal((flags & WK_FIELD_BARE_CR) != 0, field->bare_cr);
        if (field->junk || field->bare_cr)
            continue;
        const char *text = wk_csv_text(lexer, record, i, &length);
        assert_int_equal(length, field->length);
        if (length > 0)
            assert_memory_equal(text, field->text, length);
    }
}

static void random_texts_read_like_the_simple_reader_does(void **state)
{
    (void)state;
    uint64_t seed = 1;

    for (unsigned round = 0; round < 3000; round++) {
        char escape = round % 3 == 2 ? '\\' : 0, text[200];
        size_t length = ref_random(&seed) % sizeof text;
        ref_random_text(&seed, escape, text, length);
        ref_file want;
        ref_parse(text, length, ',', '"', escape, &want);
        wk_lexer lexer = make_lexer(',', escape);
        for (size_t piece = 1; piece <= 64; piece = piece < 9 ? piece + 1 : piece * 2) {
            wk_memory_source memory = {text, length};
            wk_source source = wk_source_of_memory(&memory);
            wk_csv_start start = {.line = 1, .piece = piece, .fields = 1000};
            wk_csv *csv;
            wk_record *record;
            sluice_error err;
            uint64_t count = 0;
            ASSERT_OK(wk_csv_open(&lexer, &source, &start, &csv, &err));
            for (;; count++) {
                ASSERT_OK(wk_csv_next(csv, &record, &err));
                if (record == NULL)
                    break;
                assert_true(count < want.count);
                compare_record(&lexer, record, &want.records[count], count);
            }
            assert_int_equal(count, want.count);
            wk_csv_close(csv);
        }
        ref_free(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_has_one_reading_however_it_is_cut),
        cmocka_unit_test(another_delimiter_leaves_the_comma_alone),
        cmocka_unit_test(a_nul_byte_is_text),
        cmocka_unit_test(only_the_fields_asked_for_are_kept_and_all_are_counted),
        cmocka_unit_test(a_record_at_the_limit_is_read_and_one_byte_more_is_not),
        cmocka_unit_test(an_input_that_shrinks_is_an_error),
        cmocka_unit_test(random_texts_read_like_the_simple_reader_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
