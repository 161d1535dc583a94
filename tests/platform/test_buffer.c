/* The growable buffer and the checked arithmetic under it. */
#include "platform/buffer.h"
#include "platform/check.h"
#include "tests/support/test.h"
#include <string.h>

static void appended_bytes_are_kept_over_growth(void **state)
{
    (void)state;
    sluice_error err;
    pf_buffer buffer = {0};
    for (unsigned i = 0; i < 5000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        ASSERT_OK(pf_buffer_append(&buffer, &byte, 1, &err));
    }
    assert_int_equal(buffer.length, 5000);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(buffer.data[i], (uint8_t)(i * 7));
    pf_buffer_free(&buffer);
    assert_null(buffer.data);
    pf_buffer_free(&buffer);
}

static void text_and_formats_are_appended_without_their_zero(void **state)
{
    (void)state;
    sluice_error err;
    pf_buffer buffer = {0};
    ASSERT_OK(pf_buffer_append(&buffer, NULL, 0, &err));
    ASSERT_OK(pf_buffer_append_text(&buffer, "", &err));
    assert_null(buffer.data);
    ASSERT_OK(pf_buffer_append_text(&buffer, "a=", &err));
    ASSERT_OK(pf_buffer_append_format(&buffer, &err, "%d;%0300d", 12, 5));
    assert_int_equal(buffer.length, 2 + 3 + 300);
    assert_memory_equal(buffer.data, "a=12;000", 8);
    assert_int_equal(buffer.data[buffer.length - 1], '5');
    pf_buffer_free(&buffer);
}

static void alignment_pads_with_zeros(void **state)
{
    (void)state;
    sluice_error err;
    pf_buffer buffer = {0};
    ASSERT_OK(pf_buffer_align(&buffer, 64, &err));
    assert_int_equal(buffer.length, 0);
    ASSERT_OK(pf_buffer_append_text(&buffer, "abc", &err));
    ASSERT_OK(pf_buffer_align(&buffer, 64, &err));
    assert_int_equal(buffer.length, 64);
    for (unsigned i = 3; i < 64; i++)
        assert_int_equal(buffer.data[i], 0);
    ASSERT_OK(pf_buffer_align(&buffer, 64, &err));
    assert_int_equal(buffer.length, 64);
    pf_buffer_free(&buffer);
}

static void an_impossible_size_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    sluice_error err;
    pf_buffer buffer = {0};
    ASSERT_OK(pf_buffer_append_text(&buffer, "abc", &err));
    uint8_t *data = buffer.data;
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_buffer_reserve(&buffer, SIZE_MAX, &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_buffer_reserve(&buffer, SIZE_MAX / 2, &err));
    assert_ptr_equal(buffer.data, data);
    assert_int_equal(buffer.length, 3);
    pf_buffer_free(&buffer);
}

static void sums_and_products_report_overflow(void **state)
{
    (void)state;
    uint64_t wide = 0;
    size_t size = 0;
    assert_true(pf_add_u64(UINT64_MAX - 1, 1, &wide));
    assert_int_equal(wide, UINT64_MAX);
    assert_false(pf_add_u64(UINT64_MAX, 1, &wide));
    assert_false(pf_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &wide));
    assert_false(pf_add_size(SIZE_MAX, 1, &size));
    assert_false(pf_mul_size(SIZE_MAX, 2, &size));
    assert_true(pf_align_u64(4097, 4096, &wide));
    assert_int_equal(wide, 8192);
    assert_true(pf_align_u64(4096, 4096, &wide));
    assert_int_equal(wide, 4096);
    assert_false(pf_align_u64(UINT64_MAX - 2, 4096, &wide));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_are_kept_over_growth),
        cmocka_unit_test(text_and_formats_are_appended_without_their_zero),
        cmocka_unit_test(alignment_pads_with_zeros),
        cmocka_unit_test(an_impossible_size_leaves_the_buffer_as_it_was),
        cmocka_unit_test(sums_and_products_report_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
