/*
 * What every test program includes: cmocka with the headers that it wants before itself, and assertions on our
 * statuses.
 *
 *   ASSERT_OK(call)            `call` fills the local `sluice_error err` and must succeed; else its text is shown
 *   ASSERT_FAILS(code, call)   it must fail with exactly this code
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sluice/error.h>

#define ASSERT_OK(call)          test_status((call), SLUICE_OK, &err, #call, __FILE__, __LINE__)
#define ASSERT_FAILS(code, call) test_status((call), (code), &err, #call, __FILE__, __LINE__)
void test_status(sluice_status got, sluice_status want, const sluice_error *err, const char *call, const char *file,
                 int line);

#endif
