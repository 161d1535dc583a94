/*
 * The mount table, /proc/self/mountinfo: one line per mount,
 *   ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS
 * with space, tab, newline and backslash in paths written as \ooo. Parsed in place: slices point into the text.
 */
#ifndef PLATFORM_MOUNTINFO_H
#define PLATFORM_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pf_slice {
    const char *at;
    size_t length;
} pf_slice;

typedef struct pf_mount {
    unsigned id;
    unsigned major, minor; /* of the device; major 0: none that the kernel names (btrfs, overlay, network, ...) */
    pf_slice point, options, type, source, super_options;
} pf_mount;

/* The mount with this id; a malformed line is passed over. */
bool pf_mount_by_id(const char *mountinfo, unsigned id, pf_mount *ret_mount);
/* The mount in which an absolute path lies: the longest mount point above it, of equal ones the last mounted. */
bool pf_mount_by_path(const char *mountinfo, const char *path, pf_mount *ret_mount);
/* Copies with \ooo undone, cut to fit. */
void pf_slice_copy(pf_slice slice, char *ret_text, size_t size);
bool pf_slice_is(pf_slice slice, const char *text);
/* One of the comma-separated options is exactly `option` ("ro", "data=writeback"), in either list of the mount. */
bool pf_mount_has(const pf_mount *mount, const char *option);

#endif
