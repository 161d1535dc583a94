#include "tests/support/test.h"
#include <stdlib.h>

/* SLUICE_TEST=PATTERN runs only the tests of a program whose names match. */
__attribute__((constructor)) static void choose_tests(void)
{
    const char *pattern = getenv("SLUICE_TEST");
    if (pattern)
        cmocka_set_test_filter(pattern);
}

void test_status(sluice_status got, sluice_status want, const sluice_error *err, const char *call, const char *file,
                 int line)
{
    if (got != want) {
        print_error("%s\n  is %s (%s), not %s\n", call, sluice_status_name(got), got == SLUICE_OK ? "" : err->text,
                    sluice_status_name(want));
        _fail(file, line);
    }
}
