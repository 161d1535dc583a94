/* The command line: words into options and operands. */
#include "cli/options.h"
#include "tests/support/test.h"
#include <string.h>

enum { MODE, COUNT, SIZE, BYTE, ID, FLAG, LETTER, OPTIONS };
static const cli_option options[OPTIONS] = {
    [MODE] = {"mode", 0, CLI_CHOICE, "insert|upsert", ""},
    [COUNT] = {"count", 0, CLI_NUMBER, "N", ""},
    [SIZE] = {"size", 0, CLI_SIZE, "SIZE", ""},
    [BYTE] = {"byte", 0, CLI_BYTE, "C", ""},
    [ID] = {"op-id", 0, CLI_ID, "UUID", ""},
    [FLAG] = {"dry-run", 0, CLI_FLAG, NULL, ""},
    [LETTER] = {NULL, 'n', CLI_NUMBER, "N", ""},
};

static cli_arguments arguments;
static const char *operands[32];
static sluice_error err;

/* Words are separated by one blank; an empty word by two. */
static sluice_status parse(const char *line)
{
    static char copy[512];
    char *words[32];
    uint32_t count = 0;
    char *at = copy;
    (void)strncpy(copy, line, sizeof copy - 1);
    while (*line && at) {
        char *end = strchr(at, ' ');
        words[count++] = at;
        if (end)
            *end = '\0';
        at = end ? end + 1 : NULL;
    }
    return cli_parse(options, OPTIONS, words, count, operands, &arguments, &err);
}

static void values_come_with_an_equals_sign_or_as_the_next_word(void **state)
{
    (void)state;
    ASSERT_OK(parse("G --mode upsert P=a=b --count=12 --dry-run -n 7 --json"));
    assert_int_equal(arguments.operand_count, 2);
    assert_string_equal(operands[0], "G");
    assert_string_equal(operands[1], "P=a=b");
    assert_int_equal(arguments.values[MODE].number, 1);
    assert_int_equal(arguments.values[COUNT].number, 12);
    assert_true(arguments.values[FLAG].given);
    assert_int_equal(arguments.values[LETTER].number, 7);
    assert_true(arguments.json);
    assert_false(arguments.help);
    assert_false(arguments.values[SIZE].given);
    ASSERT_OK(parse("-n3"));
    assert_int_equal(arguments.values[LETTER].number, 3);
}

static void two_dashes_end_the_options_and_one_is_an_operand(void **state)
{
    (void)state;
    ASSERT_OK(parse("- -5 -- --mode --json --"));
    assert_int_equal(arguments.operand_count, 5);
    assert_string_equal(operands[0], "-");
    assert_string_equal(operands[1], "-5");
    assert_string_equal(operands[2], "--mode");
    assert_string_equal(operands[4], "--");
    assert_false(arguments.json);
    ASSERT_OK(parse("--mode=insert "));
    assert_string_equal(operands[0], "");
}

static void values_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        uint64_t number;
    } good[] = {{"--size=0", 0},
                {"--size=1023", 1023},
                {"--size=2K", 2048},
                {"--size=2k", 2048},
                {"--size=3MiB", 3u << 20},
                {"--size=1G", 1u << 30},
                {"--size=2T", UINT64_C(2) << 40}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ASSERT_OK(parse(good[i].word));
        assert_int_equal(arguments.values[SIZE].number, good[i].number);
    }
    ASSERT_OK(parse("--count=9223372036854775807"));
    assert_int_equal(arguments.values[COUNT].number, INT64_MAX);
    ASSERT_OK(parse("--byte=;"));
    assert_int_equal(arguments.values[BYTE].number, ';');
    ASSERT_OK(parse("--byte=tab"));
    assert_int_equal(arguments.values[BYTE].number, '\t');
    ASSERT_OK(parse("--op-id=017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
    assert_int_equal(arguments.values[ID].id.bytes[0], 1);
}

static void what_is_not_understood_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"--mode=",
                                        "--mode=inser",
                                        "--mode=insert|upsert",
                                        "--mode",
                                        "--count=-1",
                                        "--count=1x",
                                        "--count=",
                                        "--count= 1",
                                        "--count=9223372036854775808",
                                        "--count=99999999999999999999",
                                        "--size=1X",
                                        "--size=K",
                                        "--size=9000000000000000000K",
                                        "--byte=",
                                        "--byte=ab",
                                        "--byte=\xC3\xA9",
                                        "--op-id=7",
                                        "--op-id=00000000-0000-0000-0000-000000000000",
                                        "--dry-run=yes",
                                        "--json=1",
                                        "--unknown",
                                        "-x",
                                        "--count 1 --count 2",
                                        "---"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ASSERT_FAILS(SLUICE_USAGE, parse(wrong[i]));
}

static void json_counts_also_in_a_wrong_line(void **state)
{
    (void)state;
    ASSERT_FAILS(SLUICE_USAGE, parse("--unknown --json"));
    assert_true(arguments.json);
    ASSERT_FAILS(SLUICE_USAGE, parse("--unknown -- --json"));
    assert_false(arguments.json);
}

static void the_nearest_name_is_hinted_at(void **state)
{
    (void)state;
    ASSERT_FAILS(SLUICE_USAGE, parse("--moed=insert"));
    assert_string_equal(err.hint, "did you mean --mode?");
    ASSERT_FAILS(SLUICE_USAGE, parse("--jsn"));
    assert_string_equal(err.hint, "did you mean --json?");
    ASSERT_FAILS(SLUICE_USAGE, parse("--something-else-altogether"));
    assert_string_equal(err.hint, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_with_an_equals_sign_or_as_the_next_word),
        cmocka_unit_test(two_dashes_end_the_options_and_one_is_an_operand),
        cmocka_unit_test(values_are_read_exactly),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(json_counts_also_in_a_wrong_line),
        cmocka_unit_test(the_nearest_name_is_hinted_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
