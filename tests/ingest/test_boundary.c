/* The boundary pass: each chunk read for every state at once, then joined, says what one serial reading says. */
#include "tests/support/csv_reference.h"
#include "tests/support/test.h"
#include "worker/ingest/boundary.h"
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 400u

static wk_lexer make_lexer(char escape)
{
    wk_dialect dialect = {.delimiter = ',', .quote = '"', .escape = escape};
    wk_lexer lexer;
    wk_lexer_make(&lexer, &dialect);
    return lexer;
}

/* Cuts `text` (with slack behind it) into chunks of `size` bytes and joins what they say. */
static uint32_t chunks_of(const wk_lexer *lexer, const char *text, size_t length, size_t size, size_t piece,
                          wk_chunk *ret_chunks, wk_shape *ret_shape)
{
    static wk_boundaries boundaries[TEXT_MAX + 1];
    uint32_t count = 0;

    for (size_t at = 0; at < length; at += size, count++) {
        size_t bytes = length - at < size ? length - at : size;
        int next = at + bytes < length ? (unsigned char)text[at + bytes] : WK_AT_END;
        wk_boundary_chunk(lexer, (const uint8_t *)text + at, bytes, 0, piece, next, &boundaries[count]);
        assert_int_equal(boundaries[count].bytes, bytes);
    }
    wk_boundaries_join(boundaries, count, ret_chunks, ret_shape);
    return count;
}

static void compare(const wk_chunk *chunks, uint32_t count, const wk_shape *shape, size_t size, const char *text,
                    const ref_file *want)
{
    uint64_t record = 0, line = 1;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t stop = (uint64_t)(i + 1) * size, first = record;
        while (record < want->count && want->records[record].offset < stop)
            record++;
        assert_int_equal(chunks[i].records, record - first);
        assert_int_equal(chunks[i].first_record, first);
        assert_int_equal(chunks[i].first, record > first ? want->records[first].offset : WK_NOWHERE);
        assert_int_equal(chunks[i].first_line, line);
        for (uint64_t at = i * size; at < stop && text[at]; at++)
            line += text[at] == '\n';
    }
    assert_int_equal(shape->records, want->count);
    assert_int_equal(shape->lines, want->lines);
    bool unclosed = want->count > 0 && want->records[want->count - 1].unclosed;
    assert_int_equal(shape->unclosed, unclosed);
    if (unclosed)
        assert_int_equal(shape->open_quote, want->records[want->count - 1].open_quote);
}

static void random_texts_are_cut_at_every_size_to_one_result(void **state)
{
    (void)state;
    static char text[TEXT_MAX + 1 + WK_LEX_SLACK];
    static wk_chunk chunks[TEXT_MAX + 1];
    uint64_t seed = 7;

    for (unsigned round = 0; round < 1500; round++) {
        char escape = round % 3 == 2 ? '\\' : 0;
        size_t length = ref_random(&seed) % (TEXT_MAX + 1);
        memset(text, 0, sizeof text);
        ref_random_text(&seed, escape, text, length);
        wk_lexer lexer = make_lexer(escape);
        ref_file want;
        ref_parse(text, length, ',', '"', escape, &want);
        for (size_t size = 1; size <= 64; size += 1 + size / 8) {
            wk_shape shape;
            uint32_t count = chunks_of(&lexer, text, length, size, 1 + ref_random(&seed) % 20, chunks, &shape);
            compare(chunks, count, &shape, size, text, &want);
        }
        ref_free(&want);
    }
}

static void a_long_text_crosses_blocks_of_both_lengths(void **state)
{
    (void)state;
    size_t length = 300000;
    char *text = calloc(1, length + WK_LEX_SLACK);
    uint64_t seed = 11;

    assert_non_null(text);
    for (unsigned round = 0; round < 8; round++) {
        wk_lexer lexer = make_lexer(round & 1 ? '\\' : 0);
        ref_random_text(&seed, round & 1 ? '\\' : 0, text, length);
        if (round >= 4) /* no quote for long: lanes stay apart */
            for (size_t i = 1000; i < 290000; i++)
                text[i] = text[i] == '"' ? 'q' : text[i];
        ref_file want;
        ref_parse(text, length, ',', '"', round & 1 ? '\\' : 0, &want);
        for (size_t size = 70000; size <= length; size += 57000) {
            wk_chunk chunks[8];
            wk_shape shape;
            uint32_t count = chunks_of(&lexer, text, length, size, 4096 + round, chunks, &shape);
            compare(chunks, count, &shape, size, text, &want);
        }
        ref_free(&want);
    }
    free(text);
}

static void a_cr_at_the_end_of_a_chunk_waits_for_the_next_byte(void **state)
{
    (void)state;
    const char *texts[] = {"a\n\rb\n", "a\n\r\nb\n", "a\n\r", "\r\r\r", "\r\n\r\r\n"};
    wk_lexer lexer = make_lexer(0);

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[32] = {0};
        wk_chunk chunks[8];
        wk_shape shape;
        ref_file want;
        size_t length = strlen(texts[i]);
        memcpy(text, texts[i], length);
        ref_parse(text, length, ',', '"', 0, &want);
        for (size_t size = 1; size <= length; size++) {
            uint32_t count = chunks_of(&lexer, text, length, size, 1, chunks, &shape);
            compare(chunks, count, &shape, size, text, &want);
        }
        ref_free(&want);
    }
}

static void lines_begin_at_their_first_byte_that_is_no_blank(void **state)
{
    (void)state;
    static const char bytes[] = " \t\r\n\nxx\"";
    static char text[TEXT_MAX + 1 + WK_LEX_SLACK];
    static wk_chunk chunks[TEXT_MAX + 1];
    wk_lexer lexer;
    uint64_t seed = 3;

    wk_lexer_make_lines(&lexer);
    for (unsigned round = 0; round < 500; round++) {
        size_t length = ref_random(&seed) % 100;
        ref_record records[100];
        ref_file want = {.records = records};
        bool inside = false;
        memset(text, 0, sizeof text);
        for (size_t i = 0; i < length; i++) {
            char byte = text[i] = bytes[ref_random(&seed) % (sizeof bytes - 1)];
            if (!inside && (byte == 'x' || byte == '"')) {
                records[want.count++] = (ref_record){.offset = i};
                inside = true;
            }
            inside &= byte != '\n';
            want.lines += byte == '\n';
        }
        for (size_t size = 1; size <= 32; size++) {
            wk_shape shape;
            uint32_t count = chunks_of(&lexer, text, length, size, 1 + ref_random(&seed) % 20, chunks, &shape);
            compare(chunks, count, &shape, size, text, &want);
        }
    }
}

static void the_digest_is_of_the_bytes_and_of_nothing_else(void **state)
{
    (void)state;
    char text[64 + WK_LEX_SLACK] = "a,\"b\nc\",d\n";
    wk_lexer plain = make_lexer(0), escaped = make_lexer('\\');
    wk_boundaries one, two;

    wk_boundary_chunk(&plain, (const uint8_t *)text, 10, 0, 3, WK_AT_END, &one);
    wk_boundary_chunk(&escaped, (const uint8_t *)text, 10, 0, 10, 'x', &two);
    assert_true(pf_xxh128_equal(one.digest, two.digest));
    assert_true(pf_xxh128_equal(one.digest, pf_xxh128_of(text, 10)));
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    char text[64 + WK_LEX_SLACK] = "\xef\xbb\xbf\"a\"\nb\n";
    wk_lexer lexer = make_lexer(0);
    wk_boundaries boundaries;
    wk_chunk chunk;
    wk_shape shape;

    wk_boundary_chunk(&lexer, (const uint8_t *)text, 9, 3, 2, WK_AT_END, &boundaries);
    wk_boundaries_join(&boundaries, 1, &chunk, &shape);
    assert_int_equal(chunk.first, 3);
    assert_int_equal(chunk.records, 2);
    assert_int_equal(boundaries.bytes, 9);
    assert_false(shape.unclosed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts_are_cut_at_every_size_to_one_result),
        cmocka_unit_test(a_long_text_crosses_blocks_of_both_lengths),
        cmocka_unit_test(a_cr_at_the_end_of_a_chunk_waits_for_the_next_byte),
        cmocka_unit_test(lines_begin_at_their_first_byte_that_is_no_blank),
        cmocka_unit_test(the_digest_is_of_the_bytes_and_of_nothing_else),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
