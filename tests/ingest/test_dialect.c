/* Which format a file is, and which flags of a dialect go together. */
#include "tests/support/test.h"
#include "worker/ingest/dialect.h"

static void the_format_follows_the_name_unless_it_is_given(void **state)
{
    (void)state;
    const struct {
        const char *given, *path;
        wk_format format;
        wk_packing packing;
        char delimiter;
    } cases[] = {
        {NULL, "a.csv", WK_FORMAT_CSV, WK_PACKING_NONE, ','},
        {NULL, "dir.x/a.TSV", WK_FORMAT_CSV, WK_PACKING_NONE, '\t'},
        {NULL, "a.b.csv.gz", WK_FORMAT_CSV, WK_PACKING_GZIP, ','},
        {NULL, "a.tsv.zst", WK_FORMAT_CSV, WK_PACKING_ZSTD, '\t'},
        {NULL, "a.jsonl", WK_FORMAT_JSONL, WK_PACKING_NONE, ','},
        {NULL, "a.ndjson.gz", WK_FORMAT_JSONL, WK_PACKING_GZIP, ','},
        {NULL, "a.arrow", WK_FORMAT_ARROW, WK_PACKING_NONE, ','},
        {NULL, "a.feather", WK_FORMAT_ARROW, WK_PACKING_NONE, ','},
        {NULL, "-", WK_FORMAT_CSV, WK_PACKING_NONE, ','},
        {NULL, "/dev/stdin", WK_FORMAT_CSV, WK_PACKING_NONE, ','},
        {NULL, "dir.jsonl/people", WK_FORMAT_CSV, WK_PACKING_NONE, ','},
        {NULL, ".hidden", WK_FORMAT_CSV, WK_PACKING_NONE, ','},
        {"tsv", "a.txt", WK_FORMAT_CSV, WK_PACKING_NONE, '\t'},
        {"jsonl", "a.csv.gz", WK_FORMAT_JSONL, WK_PACKING_GZIP, ','},
        {"csv.gz", "-", WK_FORMAT_CSV, WK_PACKING_GZIP, ','},
        {"tsv.zst", "/dev/fd/63", WK_FORMAT_CSV, WK_PACKING_ZSTD, '\t'},
        {"csv", "a.gz", WK_FORMAT_CSV, WK_PACKING_GZIP, ','},
    };
    sluice_error err;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wk_dialect given = {.format = cases[i].given}, got;
        wk_format format;
        wk_packing packing;
        ASSERT_OK(wk_dialect_resolve(&given, cases[i].path, &got, &format, &packing, &err));
        assert_int_equal(format, cases[i].format);
        assert_int_equal(packing, cases[i].packing);
        assert_int_equal(got.delimiter, cases[i].delimiter);
        assert_int_equal(got.quote, '"');
    }
}

static void what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *path;
        wk_dialect given;
    } cases[] = {
        {"a.parquet", {0}},
        {"a.txt", {0}},
        {"a.csv", {.format = "xml"}},
        {"a.csv", {.format = ".gz"}},
        {"a.csv", {.delimiter = '"'}},
        {"a.csv", {.delimiter = '\n'}},
        {"a.csv", {.quote = '\r'}},
        {"a.csv", {.delimiter = (char)0xa7}},
        {"a.csv", {.escape = ','}},
        {"a.csv", {.no_header = true, .header_first_only = true}},
        {"a.csv", {.columns = "a,b"}},
        {"a.csv", {.null_token = "a,b"}},
        {"a.csv", {.null_token = "\"x"}},
        {"a.csv", {.null_token = "\xff"}},
        {"a.csv", {.no_header = true, .columns = "\xff"}},
    };
    sluice_error err;
    wk_dialect got;
    wk_format format;
    wk_packing packing;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_FAILS(SLUICE_USAGE, wk_dialect_resolve(&cases[i].given, cases[i].path, &got, &format, &packing, &err));
    /* An escape that is the quote says what is so anyway. */
    wk_dialect doubled = {.escape = '"'};
    ASSERT_OK(wk_dialect_resolve(&doubled, "a.csv", &got, &format, &packing, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_format_follows_the_name_unless_it_is_given),
        cmocka_unit_test(what_contradicts_itself_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
