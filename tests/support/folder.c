#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char *test_folder_make(void)
{
    const char *base = getenv("SLUICE_TEST_DIR");
    char *real = realpath(base && *base ? base : ".", NULL);
    assert_non_null(real);
    char *path = test_path(real, "sluice-test-XXXXXX");
    free(real);
    assert_non_null(mkdtemp(path));
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)walk;
    return type == FTW_DP || type == FTW_DNR ? rmdir(path) : unlink(path);
}

void test_folder_remove(char *path)
{
    if (path) {
        assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
        free(path);
    }
}

char *test_path(const char *path, const char *name)
{
    char *joined = NULL;
    assert_true(asprintf(&joined, "%s/%s", path, name) > 0);
    return joined;
}
