/*
 * Mounting small images (see loop_disk.h). mount(8) does the loop device, with autoclear, so it is gone with its mount,
 * which is gone with the namespace.
 */
#include "loop_disk.h"

#include "tests/support/child.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int execute(void *context)
{
    char *const *arguments = context;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0)
        (void)dup2(null, STDOUT_FILENO);
    (void)execvp(arguments[0], arguments);
    return 127;
}

void run_program(const char *const *arguments)
{
    char *copy[16];
    unsigned count = 0;

    for (; arguments[count] != NULL; count++) {
        assert_true(count + 1 < sizeof copy / sizeof copy[0]);
        copy[count] = strdup(arguments[count]);
        assert_non_null(copy[count]);
    }
    copy[count] = NULL;
    test_child_expect_exit(test_child(execute, copy), 0);
    for (unsigned i = 0; i < count; i++)
        free(copy[i]);
}

static bool has_own_namespace(void)
{
    static int state; /* 0: not tried, 1: yes, -1: no */

    if (state == 0) {
        bool able = geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0 &&
                    access("/sbin/mkfs.ext4", X_OK) == 0 && unshare(CLONE_NEWNS) == 0 &&
                    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
        state = able ? 1 : -1;
    }
    return state == 1;
}

bool loop_disk_is_possible(void)
{
    if (has_own_namespace())
        return true;
    print_message("    skipped: a disk of its own needs root, loop devices and mkfs.ext4\n");
    return false;
}

void loop_disk_mount(const char *image, unsigned megabytes, const char *mkfs_options, const char *point,
                     const char *mount_options)
{
    char options[128], *words[8], *rest = NULL, copy[128];
    const char *mkfs[16] = {"/sbin/mkfs.ext4", "-q", "-F"};
    unsigned count = 3, word = 0;
    int fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)megabytes << 20), 0);
    assert_int_equal(close(fd), 0);
    (void)snprintf(copy, sizeof copy, "%s", mkfs_options);
    for (words[word] = strtok_r(copy, " ", &rest); words[word] != NULL && word < 7;
         words[word] = strtok_r(NULL, " ", &rest))
        mkfs[count++] = words[word++];
    mkfs[count++] = image;
    run_program(mkfs);
    assert_int_equal(mkdir(point, 0700), 0);
    (void)snprintf(options, sizeof options, "loop%s%s", mount_options[0] != 0 ? "," : "", mount_options);
    run_program((const char *const[]){"mount", "-t", "ext4", "-o", options, image, point, NULL});
    assert_int_equal(chmod(point, 0700), 0);
}

void loop_disk_unmount(const char *point)
{
    assert_int_equal(umount2(point, MNT_DETACH), 0);
    assert_int_equal(rmdir(point), 0);
}
