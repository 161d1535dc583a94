/* The standard descriptors of a command: closed ones and broken pipes are errors, never silence and never a file of
 * ours. */
#include "platform/terminal.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* 0 when all three were closed and then behave as promised. */
static int with_closed_descriptors(void *context)
{
    char byte;
    (void)context;
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        (void)close(descriptor);
    pf_standard_prepare();
    if (read(0, &byte, 1) >= 0 || errno != EBADF)
        return 1;
    if (write(1, "x", 1) >= 0 || errno != EBADF)
        return 2;
    if (write(2, "x", 1) >= 0 || errno != EBADF)
        return 3;
    return open("/dev/null", O_RDONLY | O_CLOEXEC) > 2 ? 0 : 4;
}

static int into_a_broken_pipe(void *context)
{
    int ends[2];
    (void)context;
    pf_standard_prepare();
    if (pipe(ends) != 0 || close(ends[0]) != 0)
        return 1;
    return write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
}

static void closed_descriptors_are_errors_and_are_not_given_away(void **state)
{
    (void)state;
    test_child_expect_exit(test_child(with_closed_descriptors, NULL), 0);
}

static void a_broken_pipe_is_an_error_of_write(void **state)
{
    (void)state;
    test_child_expect_exit(test_child(into_a_broken_pipe, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_descriptors_are_errors_and_are_not_given_away),
        cmocka_unit_test(a_broken_pipe_is_an_error_of_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
