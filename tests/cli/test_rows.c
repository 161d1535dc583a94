/* Rows in the formats of scan and export, the filter of --where, and texts on a terminal. */
#include "cli/rows.h"
#include "store/read/filter.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

static sluice_error err;
static char id_name[] = "id";
static char name_name[] = "full name";
static char score_name[] = "score";
static char a_name[] = "a";
static char b_name[] = "b";
static char from_name[] = "from";

static const st_column_spec specs[] = {{.name = id_name, .type = ST_INT64},
                                       {.name = name_name, .type = ST_STRING, .nullable = true},
                                       {.name = score_name, .type = ST_FLOAT64, .nullable = true}};
static st_column_builder *builders[3];
static st_column views[3];
static const st_column *columns[3];

/* Text NULL: null. A score is given as text, so that NaN can be. */
static void add(int64_t id, const char *name, const char *score)
{
    ASSERT_OK(st_append_i64(builders[0], id, &err));
    if (name)
        ASSERT_OK(st_append_bytes(builders[1], name, strlen(name), &err));
    else
        ASSERT_OK(st_append_null(builders[1], &err));
    if (score)
        ASSERT_OK(st_value_parse(&specs[2], score, strlen(score), builders[2], &err));
    else
        ASSERT_OK(st_append_null(builders[2], &err));
}

static int enter(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        ASSERT_OK(st_column_builder_new(&specs[i], &builders[i], &err));
    add(1, "Ada", "1.5");
    add(2, "", NULL);
    add(3, NULL, "NaN");
    add(4, "O'Brien, \"x\"\nand", "-2");
    add(5, "null", "1e300");
    for (unsigned i = 0; i < 3; i++) {
        st_builder_view(builders[i], &views[i]);
        columns[i] = &views[i];
    }
    return 0;
}

static int leave(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        st_column_builder_free(builders[i]);
    return 0;
}

/* What the rows print, as text to be freed. */
static char *printed(cli_format format, const st_column_spec *const *which, uint32_t count,
                     const st_column *const *data, uint64_t row_count, bool row_id)
{
    cli_rows rows;
    pf_output *out = NULL;
    pf_buffer text = {0};
    char *folder = test_folder_make();
    char *path = test_path(folder, "out");
    ASSERT_OK(pf_output_open(path, PF_OUTPUT_NEW, &out, &err));
    ASSERT_OK(cli_rows_begin(&rows, format, out, which, count, row_id, &err));
    for (uint64_t row = 0; row < row_count; row++)
        ASSERT_OK(cli_rows_add(&rows, data, row, 100 + row, &err));
    ASSERT_OK(cli_rows_end(&rows, &err));
    cli_rows_free(&rows);
    ASSERT_OK(pf_output_close(out, false, &err));
    ASSERT_OK(pf_input_read_all(path, 1 << 20, &text, &err));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    free(path);
    test_folder_remove(folder);
    return (char *)text.data;
}

static void expect_rows(cli_format format, bool row_id, const char *wanted)
{
    const st_column_spec *which[] = {&specs[0], &specs[1], &specs[2]};
    char *text = printed(format, which, 3, columns, 5, row_id);
    assert_string_equal(text, wanted);
    free(text);
}

static void csv_keeps_null_and_empty_apart_and_quotes_what_it_must(void **state)
{
    (void)state;
    expect_rows(CLI_FORMAT_CSV, false,
                "id,full name,score\n"
                "1,Ada,1.5\n"
                "2,\"\",\n"
                "3,,NaN\n"
                "4,\"O'Brien, \"\"x\"\"\nand\",-2.0\n"
                "5,null,1e300\n");
}

static void json_lines_keep_types_and_nulls(void **state)
{
    (void)state;
    expect_rows(CLI_FORMAT_JSONL, true,
                "{\"_row_id\":100,\"id\":1,\"full name\":\"Ada\",\"score\":1.5}\n"
                "{\"_row_id\":101,\"id\":2,\"full name\":\"\",\"score\":null}\n"
                "{\"_row_id\":102,\"id\":3,\"full name\":null,\"score\":\"NaN\"}\n"
                "{\"_row_id\":103,\"id\":4,\"full name\":\"O'Brien, \\\"x\\\"\\nand\",\"score\":-2.0}\n"
                "{\"_row_id\":104,\"id\":5,\"full name\":\"null\",\"score\":1e300}\n");
}

static void a_table_is_aligned_and_shows_no_control_characters(void **state)
{
    (void)state;
    expect_rows(CLI_FORMAT_TABLE, false,
                "id  full name          score\n"
                " 1  Ada                  1.5\n"
                " 2  \"\"                  null\n"
                " 3  null                 NaN\n"
                " 4  O'Brien, \"x\"\\nand   -2.0\n"
                " 5  \"null\"             1e300\n");
}

static void ends_of_several_members_are_flat_in_csv(void **state)
{
    (void)state;
    st_column_spec members[] = {{.name = a_name, .type = ST_INT64}, {.name = b_name, .type = ST_STRING}};
    st_column_spec end = {.name = from_name, .type = ST_STRUCT, .children = members, .child_count = 2};
    const st_column_spec *which[] = {&end};
    st_column_builder *builder = NULL;
    st_column view;
    const st_column *data[] = {&view};
    ASSERT_OK(st_column_builder_new(&end, &builder, &err));
    ASSERT_OK(st_append_i64(st_builder_child(builder, 0), 7, &err));
    ASSERT_OK(st_append_bytes(st_builder_child(builder, 1), "x,y", 3, &err));
    ASSERT_OK(st_append_struct(builder, &err));
    st_builder_view(builder, &view);
    char *text = printed(CLI_FORMAT_CSV, which, 1, data, 1, false);
    assert_string_equal(text, "from.a,from.b\n7,\"x,y\"\n");
    free(text);
    text = printed(CLI_FORMAT_JSONL, which, 1, data, 1, false);
    assert_string_equal(text, "{\"from\":[7,\"x,y\"]}\n");
    free(text);
    st_column_builder_free(builder);
}

/* The ids of the rows that meet the expression, as digits. */
static void expect_filter(const char *expression, const char *ids)
{
    st_filter *filter = NULL;
    char met[8];
    size_t count = 0;
    ASSERT_OK(st_filter_parse(expression, specs, 3, &filter, &err));
    for (uint64_t row = 0; row < 5; row++) {
        if (st_filter_meets(filter, columns, row))
            met[count++] = (char)('1' + row);
    }
    met[count] = '\0';
    assert_string_equal(met, ids);
    st_filter_free(filter);
}

static void comparisons_are_joined_by_and(void **state)
{
    (void)state;
    expect_filter("id >= 2 and id<4", "23");
    expect_filter("id != 3 AND score = null", "2");
    expect_filter("id <= 3", "123");
    expect_filter("id>4", "5");
    expect_filter("\"full name\" = Ada", "1");
    expect_filter("\"full name\" = ''", "2");
    expect_filter("\"full name\" = null", "3");
    expect_filter("\"full name\" = 'null'", "5");
    expect_filter("\"full name\" != null", "1245");
    expect_filter("\"full name\" = 'O''Brien, \"x\"\nand'", "4");
    expect_filter("\"full name\" < B and score > 1", "1");
    expect_filter("score < 2", "14");
    expect_filter("score != 1.5", "345");
    expect_filter("score = NaN", "");
}

static void a_filter_that_is_not_understood_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "id",
                                        "id =",
                                        "id = x",
                                        "id = 1 and",
                                        "id = 1 or id = 2",
                                        "= 1",
                                        "nothing = 1",
                                        "id < null",
                                        "\"full name\" = 'x",
                                        "\"full name = 1",
                                        "id ~ 1",
                                        "score = 1 2",
                                        "id = '1' x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        st_filter *filter = NULL;
        ASSERT_FAILS(SLUICE_USAGE, st_filter_parse(wrong[i], specs, 3, &filter, &err));
    }
}

static void a_filter_names_the_columns_that_it_needs(void **state)
{
    (void)state;
    st_filter *filter = NULL;
    bool needed[3] = {false};
    ASSERT_OK(st_filter_parse("score > 1 and id = 2", specs, 3, &filter, &err));
    st_filter_mark(filter, needed);
    assert_true(needed[0] && !needed[1] && needed[2]);
    st_filter_free(filter);
}

static void a_terminal_is_shown_nothing_that_it_acts_on(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {{"plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
                {"a\nb\tc\r", "a\\nb\\tc\\r"},
                {"\x1B[31m\x07", "\\x1b[31m\\x07"},
                {"\x7F\xC2\x9B", "\\x7f\\xc2\\x9b"},
                {"\xE2\x80\xAE"
                 "abc",
                 "\\xe2\\x80\\xaeabc"},
                {"\xFF\xC3", "\\xff\\xc3"},
                {"\xED\xA0\x80\xC0\xAF", "\\xed\\xa0\\x80\\xc0\\xaf"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pf_buffer buffer = {0};
        ASSERT_OK(cli_append_visible(&buffer, rows[i].text, strlen(rows[i].text), &err));
        ASSERT_OK(pf_buffer_append(&buffer, "", 1, &err));
        assert_string_equal((const char *)buffer.data, rows[i].shown);
        pf_buffer_free(&buffer);
    }
}

static void times_and_sizes_are_told_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        int64_t microseconds;
        const char *text;
    } times[] = {{0, "1970-01-01T00:00:00.000000Z"},
                 {INT64_C(1769862896123456), "2026-01-31T12:34:56.123456Z"},
                 {INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z"},
                 {-1, "1969-12-31T23:59:59.999999Z"}};
    char text[CLI_TIME_TEXT];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        cli_time_text(times[i].microseconds, text);
        assert_string_equal(text, times[i].text);
    }
    char size[CLI_SIZE_TEXT];
    cli_size_text(1023, size);
    assert_string_equal(size, "1023 bytes");
    cli_size_text(1536, size);
    assert_string_equal(size, "1.5 KiB");
    cli_size_text(UINT64_MAX, size);
    assert_string_equal(size, "16.0 EiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_keeps_null_and_empty_apart_and_quotes_what_it_must),
        cmocka_unit_test(json_lines_keep_types_and_nulls),
        cmocka_unit_test(a_table_is_aligned_and_shows_no_control_characters),
        cmocka_unit_test(ends_of_several_members_are_flat_in_csv),
        cmocka_unit_test(comparisons_are_joined_by_and),
        cmocka_unit_test(a_filter_that_is_not_understood_is_refused),
        cmocka_unit_test(a_filter_names_the_columns_that_it_needs),
        cmocka_unit_test(a_terminal_is_shown_nothing_that_it_acts_on),
        cmocka_unit_test(times_and_sizes_are_told_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
