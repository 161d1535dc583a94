/*
 * A confined process: what it still does, and what it is refused (platform/confine.h). Each case is a child of its own.
 */
#include "platform/confine.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "confine-XXXXXX";

static void path_of(const char *name, char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/%s", base, name);
}

static void put(const char *name)
{
    char path[256];
    path_of(name, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    (void)close(fd);
}

static int setup(void **state)
{
    char path[256];
    (void)state;
    assert_non_null(mkdtemp(base));
    for (const char *const *name = (const char *const[]){"a", "b", "a/sub", NULL}; *name; name++) {
        path_of(*name, path, sizeof path);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    put("a/file");
    put("b/file");
    return 0;
}

static int teardown(void **state)
{
    char path[256];
    (void)state;
    for (const char *const *name =
             (const char *const[]){"a/file", "a/sub/file", "a/new", "b/file", "a/sub", "a", "b", NULL};
         *name; name++) {
        path_of(*name, path, sizeof path);
        (void)remove(path);
    }
    return rmdir(base);
}

/* Exit statuses of the child: 0 as it should be, 1 not, 77 the kernel holds nothing back. */
static int as_confined(int (*work)(int opened, bool files, bool calls))
{
    pid_t child = fork();
    if (child == 0) {
        char own[256], other[256];
        pf_confinement confinement;
        path_of("a", own, sizeof own);
        path_of("b/file", other, sizeof other);
        int opened = open(other, O_RDONLY);
        if (pf_confine(own, &confinement, NULL) != SLUICE_OK)
            _exit(1);
        _exit(work(opened, confinement.files, confinement.calls));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool opens(const char *name, int flags)
{
    char path[256];
    path_of(name, path, sizeof path);
    int fd = open(path, flags, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static int work_inside(int opened, bool files, bool calls)
{
    char from[256], to[256], byte;
    (void)files;
    (void)calls;
    path_of("a/file", from, sizeof from);
    path_of("a/sub/file", to, sizeof to);
    bool good = opens("a/file", O_RDWR) && opens("a/new", O_RDWR | O_CREAT) && rename(from, to) == 0 &&
                rename(to, from) == 0 && pread(opened, &byte, 1, 0) == 1 && fork() != -1;
    return good ? 0 : 1;
}

static int work_outside(int opened, bool files, bool calls)
{
    char from[256], to[256];
    (void)opened;
    (void)calls;
    if (!files)
        return 77;
    path_of("a/file", from, sizeof from);
    path_of("b/taken", to, sizeof to);
    bool held = !opens("b/file", O_RDONLY) && errno == EACCES && !opens("b/file", O_WRONLY) &&
                !opens("b/new", O_RDWR | O_CREAT) && !opens("../test_confine.c", O_WRONLY | O_CREAT) &&
                rename(from, to) != 0 && open("/etc/passwd", O_RDONLY) < 0 && open("/proc/self/status", O_RDONLY) >= 0;
    return held ? 0 : 1;
}

static int work_calls(int opened, bool files, bool calls)
{
    char *const words[] = {NULL};
    (void)opened;
    (void)files;
    if (!calls)
        return 77;
    bool held = socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM && execve("/bin/true", words, words) < 0 &&
                errno == EPERM;
    return held ? 0 : 1;
}

static void inside_its_folder_everything_goes_on(void **state)
{
    (void)state;
    assert_int_equal(as_confined(work_inside), 0);
}

static void nothing_outside_can_be_opened(void **state)
{
    (void)state;
    int outcome = as_confined(work_outside);
    assert_true(outcome == 0 || outcome == 77);
}

static void other_programs_and_the_network_are_out_of_reach(void **state)
{
    (void)state;
    int outcome = as_confined(work_calls);
    assert_true(outcome == 0 || outcome == 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_its_folder_everything_goes_on),
        cmocka_unit_test(nothing_outside_can_be_opened),
        cmocka_unit_test(other_programs_and_the_network_are_out_of_reach),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
