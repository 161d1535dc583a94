/*
 * The tokenizer and the tree for JSON from users: exact numbers, lines, escapes, what is refused, paths.
 */
#include "store/format/tokens.h"
#include "store/format/tree.h"
#include "store/format/utf8.h"
#include "tests/support/test.h"
#include <string.h>

static void tokens_come_in_order_with_their_lines(void **state)
{
    (void)state;
    static const struct {
        st_token_kind kind;
        uint64_t line;
        const char *text;
    } wanted[] = {
        {ST_TOKEN_OBJECT, 1, NULL},    {ST_TOKEN_NAME, 2, "id"},       {ST_TOKEN_NUMBER, 2, "-9223372036854775808"},
        {ST_TOKEN_NAME, 3, "x"},       {ST_TOKEN_ARRAY, 3, NULL},      {ST_TOKEN_TRUE, 3, NULL},
        {ST_TOKEN_FALSE, 3, NULL},     {ST_TOKEN_NULL, 3, NULL},       {ST_TOKEN_NUMBER, 3, "1.50e+07"},
        {ST_TOKEN_STRING, 4, "s"},     {ST_TOKEN_OBJECT, 4, NULL},     {ST_TOKEN_OBJECT_END, 4, NULL},
        {ST_TOKEN_ARRAY_END, 4, NULL}, {ST_TOKEN_OBJECT_END, 5, NULL}, {ST_TOKEN_END, 6, NULL},
    };
    static const char text[] = "\xEF\xBB\xBF{\n\"id\" : -9223372036854775808,\r\n\"x\":[true,false,null,1.50e+07,\n"
                               "\"s\",{}]\n}\n";
    st_tokens tokens;
    st_tokens_begin(&tokens, text, sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        st_token token;
        assert_true(st_tokens_next(&tokens, &token));
        assert_int_equal(token.kind, wanted[i].kind);
        assert_int_equal(token.line, wanted[i].line);
        if (wanted[i].text) {
            assert_int_equal(token.length, strlen(wanted[i].text));
            assert_memory_equal(token.text, wanted[i].text, token.length);
        }
    }
}

static void escapes_are_resolved_on_demand(void **state)
{
    (void)state;
    static const char text[] = "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00z\"";
    static const char wanted[] = "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80z";
    sluice_error err = {0};
    st_tokens tokens;
    st_token token;
    pf_buffer buffer = {0};
    st_tokens_begin(&tokens, text, sizeof(text) - 1);
    assert_true(st_tokens_next(&tokens, &token));
    assert_true(token.escaped);
    ASSERT_OK(st_token_decode(&token, &buffer, &err));
    assert_int_equal(buffer.length, sizeof(wanted) - 1);
    assert_memory_equal(buffer.data, wanted, buffer.length);
    pf_buffer_free(&buffer);
    static const char name[] = "\"\\u0066rom\"";
    st_tokens_begin(&tokens, name, sizeof(name) - 1);
    assert_true(st_tokens_next(&tokens, &token));
    assert_true(st_token_is(&token, "from"));
    assert_false(st_token_is(&token, "fro"));
    assert_false(st_token_is(&token, "froms"));
}

static void what_is_not_rfc_8259_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[1",
        "[1,]",
        "[,1]",
        "{,}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "'a'",
        "01",
        "-",
        "+1",
        ".5",
        "5.",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "nul",
        "truex",
        "1 2",
        "[1}",
        "{\"a\"]",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\uDC00\"",
        "\"\\uD800x\"",
        "\"\\uD800\\u0041\"",
        "\"a",
        "\"\t\"",
        "\"\x80\"",
        "[1 2]",
        "\"\\u0000\"",
        "// c\n1",
        "{\"a\":1 \"b\":2}",
        "\"\xED\xA0\x80\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        st_tokens tokens;
        st_token token = {0};
        bool good = true;
        st_tokens_begin(&tokens, bad[i], strlen(bad[i]));
        for (int n = 0; n < 100 && (good = st_tokens_next(&tokens, &token)) && token.kind != ST_TOKEN_END; n++)
            ;
        if (good)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(tokens.problem);
    }
}

static void a_value_can_be_passed_over(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,{\"b\":[2,3]},[]],\"c\":4}";
    st_tokens tokens;
    st_token token;
    st_tokens_begin(&tokens, text, sizeof(text) - 1);
    for (int i = 0; i < 3; i++)
        assert_true(st_tokens_next(&tokens, &token)); /* {, "a", [ */
    assert_true(st_tokens_skip(&tokens, &token));
    assert_true(st_tokens_next(&tokens, &token));
    assert_true(token.kind == ST_TOKEN_NAME && st_token_is(&token, "c"));
}

static void a_tree_keeps_order_lines_and_paths(void **state)
{
    (void)state;
    static const char text[] = "{\"b\": {\"x.y\": [1, {\"k\": \"v\"}]},\n \"a\": 12345678901234567890}";
    sluice_error err = {0};
    st_tree *tree = NULL;
    const char *problem;
    uint64_t line;
    char path[64];
    ASSERT_OK(st_tree_parse(text, sizeof(text) - 1, 100, &tree, &problem, &line, &err));
    const st_node *root = st_tree_root(tree), *a = st_node_member(root, "a");
    assert_int_equal(root->count, 2);
    assert_string_equal(root->first->name, "b");
    assert_string_equal(a->text, "12345678901234567890");
    assert_int_equal(a->line, 2);
    const st_node *list = st_node_member(root->first, "x.y");
    st_node_path(list->first->next->first, path, sizeof(path));
    assert_string_equal(path, "b.\"x.y\"[1].k");
    st_node_path(root, path, sizeof(path));
    assert_string_equal(path, "");
    char narrow[6];
    st_node_path(list->first->next->first, narrow, sizeof(narrow));
    assert_string_equal(narrow, "b.\"x.");
    st_tree_free(tree);
    tree = NULL;
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_tree_parse(text, sizeof(text) - 1, 3, &tree, &problem, &line, &err));
    assert_null(tree);
}

static void utf8_is_strict(void **state)
{
    static const char *const good[] = {
        "", "abc", "abcdefghijk\xC3\xA9", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xC3",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "12345678\xFF",
                                      "\xE2\x82",
                                      "\xF0\x9F\x98"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(st_utf8_is_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(st_utf8_is_valid(bad[i], strlen(bad[i])));
    assert_int_equal(st_utf8_code_points("a\xC3\xA9\xF0\x9F\x98\x80", 7), 3);
    for (uint32_t point = 1; point < 0x110000; point = point * 5 / 4 + 1) {
        uint8_t bytes[4];
        uint32_t again;
        if (point >= 0xD800 && point < 0xE000)
            continue;
        size_t length = st_utf8_put(point, bytes);
        assert_true(st_utf8_is_valid(bytes, length));
        assert_int_equal(st_utf8_get(bytes, length, &again), length);
        assert_int_equal(again, point);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_in_order_with_their_lines), cmocka_unit_test(escapes_are_resolved_on_demand),
        cmocka_unit_test(what_is_not_rfc_8259_is_refused),       cmocka_unit_test(a_value_can_be_passed_over),
        cmocka_unit_test(a_tree_keeps_order_lines_and_paths),    cmocka_unit_test(utf8_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
