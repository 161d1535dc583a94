/*
 * Small file systems of one's own for tests that run as root: an image made with mkfs, mounted over a loop device in a
 * mount namespace of this program, so that nothing of it is seen outside or outlives the program.
 */
#ifndef TESTS_PLATFORM_LOOP_DISK_H
#define TESTS_PLATFORM_LOOP_DISK_H

#include <stdbool.h>

/* Can this program do that? When not, says so on the terminal, once, and the test should skip itself. */
bool loop_disk_is_possible(void);
/* Makes `image` of `megabytes` (sparse), formats it with mke2fs and these options (may be ""), and mounts it on the new
 * folder `point` with these mount options ("" for none). The root folder becomes 0700 and ours. */
void loop_disk_mount(const char *image, unsigned megabytes, const char *mkfs_options, const char *point,
                     const char *mount_options);
void loop_disk_unmount(const char *point);
/* Runs a program and expects it to end well within bounds. */
void run_program(const char *const *arguments);

#endif
