/* Marks: every way of making them says what the plainest one says. */
#include "tests/support/csv_reference.h"
#include "tests/support/test.h"
#include "worker/ingest/marks.h"
#include <string.h>

static void every_way_of_marking_says_the_same(void **state)
{
    enum { BLOCKS = 5 };
    static const char bytes[] = ",,;\n\n\r\"'\\ab1-\x80\xff";
    wk_marks_fn *ways[WK_MARKS_WAYS];
    unsigned count = wk_marks_ways(ways);
    uint64_t seed = 7;

    (void)state;
    for (unsigned round = 0; round < 500; round++) {
        uint8_t text[BLOCKS * WK_MARKS_BLOCK + 1];
        wk_marks want[BLOCKS], got[BLOCKS];
        wk_mark_bytes of = {round & 1 ? ',' : ';', round & 2 ? '"' : '\'', '\\'};
        if (round & 4)
            of.escape = of.quote;
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (uint8_t)(round & 8 ? ref_random(&seed) : (uint8_t)bytes[ref_random(&seed) % (sizeof bytes - 1)]);
        for (unsigned w = 0; w < count; w++) {
            memset(got, 0xA5, sizeof got);
            ways[w](&of, text + (round & 1), BLOCKS, w == 0 ? want : got);
            if (w > 0)
                assert_memory_equal(want, got, sizeof want);
        }
        for (size_t i = 0; i < BLOCKS * WK_MARKS_BLOCK; i++) {
            uint8_t byte = text[i + (round & 1)];
            const wk_marks *marks = &want[i / WK_MARKS_BLOCK];
            unsigned bit = i % WK_MARKS_BLOCK;
            assert_int_equal(marks->lines >> bit & 1, byte == '\n');
            assert_int_equal(marks->ends >> bit & 1, byte == '\n' || byte == of.delimiter);
            assert_int_equal(marks->odd >> bit & 1, byte == '\r' || byte == of.quote || byte == of.escape);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_marking_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
