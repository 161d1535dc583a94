/* Errors: the tables of include/sluice/error.h and the functions that fill a sluice_error. */
#include "platform/fail.h"
#include "tests/support/test.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void every_code_has_its_name_exit_status_and_action(void **state)
{
    (void)state;
#define CHECK(code, exit, retryable, action)                                                                           \
    assert_string_equal(sluice_status_name(SLUICE_##code), #code);                                                     \
    assert_int_equal(sluice_status_exit(SLUICE_##code), exit);                                                         \
    assert_int_equal(sluice_status_retryable(SLUICE_##code), retryable);                                               \
    assert_int_equal(sluice_status_action(SLUICE_##code), SLUICE_ACTION_##action);
    SLUICE_CODES(CHECK)
#undef CHECK
    assert_string_equal(sluice_status_name(SLUICE_OK), "OK");
    assert_int_equal(sluice_status_exit(SLUICE_OK), 0);
    assert_false(sluice_status_retryable(SLUICE_OK));
    assert_string_equal(sluice_action_name(SLUICE_ACTION_RECOVER), "recover");
    assert_string_equal(sluice_phase_name(SLUICE_PHASE_PUBLISH), "publish");
    assert_string_equal(sluice_phase_name(SLUICE_PHASE_NONE), "none");
}

static void a_failure_fills_everything_and_returns_its_code(void **state)
{
    (void)state;
    sluice_error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(pf_fail(&err, SLUICE_QUOTA, "%d of %d", 3, 4), SLUICE_QUOTA);
    assert_int_equal(err.code, SLUICE_QUOTA);
    assert_int_equal(err.phase, SLUICE_PHASE_NONE);
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_int_equal(err.acknowledged, SLUICE_FALSE);
    assert_string_equal(err.message, "3 of 4");
    assert_string_equal(err.text, "3 of 4");
    assert_string_equal(err.hint, "");
    assert_string_equal(err.operation_id, "");
    assert_string_equal(err.details, "");
    pf_hint(&err, "do %s", "this");
    pf_details(&err, "{\"n\":%d}", 7);
    assert_string_equal(err.hint, "do this");
    assert_string_equal(err.details, "{\"n\":7}");
    pf_error_clear(&err);
    assert_int_equal(err.code, SLUICE_OK);
    assert_string_equal(err.text, "");
}

static void without_an_error_only_the_code_is_returned(void **state)
{
    (void)state;
    assert_int_equal(pf_fail(NULL, SLUICE_IO, "x"), SLUICE_IO);
    assert_int_equal(pf_fail_private(NULL, SLUICE_IO, "x", "y"), SLUICE_IO);
    assert_int_equal(pf_fail_errno(NULL, ENOSPC, "x"), SLUICE_NO_SPACE);
    pf_hint(NULL, "x");
    pf_details(NULL, "x");
    pf_error_clear(NULL);
}

static void a_private_text_stays_out_of_the_message(void **state)
{
    (void)state;
    sluice_error err;
    assert_int_equal(pf_fail_private(&err, SLUICE_CONSTRAINT_TYPE, "a value has another type", "%s:%d: \"%s\"", "a.csv",
                                     3, "secret"),
                     SLUICE_CONSTRAINT_TYPE);
    assert_string_equal(err.message, "a value has another type");
    assert_string_equal(err.text, "a.csv:3: \"secret\"");
}

static void an_old_text_may_be_part_of_the_new_one(void **state)
{
    (void)state;
    sluice_error err;
    pf_fail(&err, SLUICE_IO, "inner");
    pf_fail_private(&err, SLUICE_CORRUPT, err.message, "outer: %s", err.text);
    assert_string_equal(err.text, "outer: inner");
    assert_string_equal(err.message, "inner");
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    sluice_error err;
    char text[2 * sizeof err.text];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xF0\x9F\x98\x80", 5);
        pf_fail(&err, SLUICE_IO, "%s", text);
        assert_int_equal((strlen(err.text) - shift) % 4, 0);
        assert_int_equal((strlen(err.message) - shift) % 4, 0);
        assert_true(strlen(err.text) > sizeof err.text - 5);
        assert_true(strlen(err.message) > sizeof err.message - 5);
    }
}

static void system_errors_become_typed_codes(void **state)
{
    (void)state;
    static const struct {
        int number;
        sluice_status code;
    } rows[] = {{ENOSPC, SLUICE_NO_SPACE},
                {EDQUOT, SLUICE_QUOTA},
                {EACCES, SLUICE_PERMISSION},
                {EPERM, SLUICE_PERMISSION},
                {EROFS, SLUICE_PERMISSION},
                {ENOENT, SLUICE_NOT_FOUND},
                {EEXIST, SLUICE_ALREADY_EXISTS},
                {ELOOP, SLUICE_UNSUPPORTED_FILESYSTEM},
                {EXDEV, SLUICE_UNSUPPORTED_FILESYSTEM},
                {ENOMEM, SLUICE_RESOURCE_LIMIT},
                {EMFILE, SLUICE_RESOURCE_LIMIT},
                {ENFILE, SLUICE_RESOURCE_LIMIT},
                {EFBIG, SLUICE_RESOURCE_LIMIT},
                {EIO, SLUICE_IO},
                {EINVAL, SLUICE_IO}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sluice_error err;
        assert_int_equal(pf_fail_errno(&err, rows[i].number, "sync of a log segment"), rows[i].code);
        assert_int_equal(strncmp(err.text, "sync of a log segment: ", 23), 0);
        assert_true(strlen(err.text) > 23);
    }
}

static sluice_status tried(sluice_status status)
{
    PF_TRY(status);
    return SLUICE_OK;
}

static sluice_status cleaned(sluice_status first, int *cleanups)
{
    sluice_status status;
    PF_GOTO(status, done, first);
done:
    (*cleanups)++;
    return status;
}

static void the_two_ways_out_return_the_status(void **state)
{
    (void)state;
    int cleanups = 0;
    assert_int_equal(tried(SLUICE_OK), SLUICE_OK);
    assert_int_equal(tried(SLUICE_TIMEOUT), SLUICE_TIMEOUT);
    assert_int_equal(cleaned(SLUICE_OK, &cleanups), SLUICE_OK);
    assert_int_equal(cleaned(SLUICE_IO, &cleanups), SLUICE_IO);
    assert_int_equal(cleanups, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_name_exit_status_and_action),
        cmocka_unit_test(a_failure_fills_everything_and_returns_its_code),
        cmocka_unit_test(without_an_error_only_the_code_is_returned),
        cmocka_unit_test(a_private_text_stays_out_of_the_message),
        cmocka_unit_test(an_old_text_may_be_part_of_the_new_one),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(system_errors_become_typed_codes),
        cmocka_unit_test(the_two_ways_out_return_the_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
