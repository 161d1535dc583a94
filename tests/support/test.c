#include "tests/support/test.h"

void test_status(sluice_status got, sluice_status want, const sluice_error *err, const char *call, const char *file,
                 int line)
{
    if (got != want) {
        print_error("%s\n  is %s (%s), not %s\n", call, sluice_status_name(got), got == SLUICE_OK ? "" : err->text,
                    sluice_status_name(want));
        _fail(file, line);
    }
}
