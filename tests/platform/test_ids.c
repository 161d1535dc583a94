/* Identities and digests: known answers and refused texts. */
#include "platform/clock.h"
#include "platform/digest.h"
#include "platform/ids.h"
#include "tests/support/test.h"
#include <string.h>

static void a_new_id_is_a_version_7_uuid_of_now(void **state)
{
    (void)state;
    int64_t before = pf_wall_us() / 1000;
    pf_id id = pf_id_new();
    int64_t after = pf_wall_us() / 1000;
    char text[PF_ID_TEXT];
    pf_id_text(&id, text);
    assert_int_equal(strlen(text), 36);
    assert_int_equal(text[14], '7');
    assert_non_null(strchr("89ab", text[19]));
    assert_true(pf_id_has_time(&id));
    assert_in_range(pf_id_time_ms(&id), before, after);
    pf_id other = pf_id_new();
    assert_false(pf_id_equal(&id, &other));
}

static void text_and_bytes_are_one_to_one(void **state)
{
    (void)state;
    pf_id id;
    char text[PF_ID_TEXT];
    assert_true(pf_id_parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", &id)); /* RFC 9562, appendix A.6 */
    assert_int_equal(id.bytes[0], 0x01);
    assert_int_equal(id.bytes[15], 0x8F);
    assert_true(pf_id_has_time(&id));
    assert_int_equal(pf_id_time_ms(&id), INT64_C(0x17F22E279B0));
    pf_id_text(&id, text);
    assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    assert_true(pf_id_parse("00000000-0000-0000-0000-000000000000", &id));
    assert_true(pf_id_is_nil(&id));
    assert_false(pf_id_has_time(&id));
}

static void what_is_not_an_id_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
                                        "017f22e2779b077cc3798c47dc0c0c07398f",
                                        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
                                        "{017f22e2-79b0-7cc3-98c4-dc0c0c0739}",
                                        "017f22e2-79b0-7cc3-98c4 dc0c0c07398f"};
    pf_id id = {{1, 2, 3}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(pf_id_parse(wrong[i], &id));
    assert_int_equal(id.bytes[0], 1);
    assert_int_equal(id.bytes[2], 3);
}

static void sha256_gives_the_known_answers(void **state)
{
    (void)state;
    sluice_error err;
    char text[PF_SHA256_TEXT];
    pf_sha256 digest = pf_sha256_of("abc", 3);
    pf_sha256_text(&digest, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    pf_sha256_stream *stream = NULL;
    ASSERT_OK(pf_sha256_begin(&stream, &err));
    pf_sha256_add(stream, "a", 1);
    pf_sha256_add(stream, "", 0);
    pf_sha256_add(stream, "bc", 2);
    pf_sha256 streamed = pf_sha256_end(stream);
    assert_true(pf_sha256_equal(&digest, &streamed));
    digest = pf_sha256_of(NULL, 0);
    pf_sha256_text(&digest, text);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_true(pf_sha256_parse(text, &streamed));
    assert_true(pf_sha256_equal(&digest, &streamed));
    text[0] = 'E';
    assert_false(pf_sha256_parse(text, &streamed));
    text[0] = 'e';
    text[63] = '\0';
    assert_false(pf_sha256_parse(text, &streamed));
}

static void xxh3_gives_the_known_answers(void **state)
{
    (void)state;
    char text[PF_XXH128_TEXT];
    assert_int_equal(pf_xxh64_of("", 0), UINT64_C(0x2D06800538D394C2));
    pf_xxh128 digest = pf_xxh128_of("", 0);
    pf_xxh128_text(digest, text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    pf_xxh128 parsed;
    assert_true(pf_xxh128_parse(text, &parsed));
    assert_true(pf_xxh128_equal(digest, parsed));
    assert_false(pf_xxh128_parse("99aa06d3014798d86001c324468d497", &parsed));
    assert_false(pf_xxh128_equal(digest, pf_xxh128_of("x", 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_id_is_a_version_7_uuid_of_now),
        cmocka_unit_test(text_and_bytes_are_one_to_one),
        cmocka_unit_test(what_is_not_an_id_is_refused_and_changes_nothing),
        cmocka_unit_test(sha256_gives_the_known_answers),
        cmocka_unit_test(xxh3_gives_the_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
