/*
 * What sysfs knows of the block devices below a mount: is one of them removable or made of memory, does the file system
 * on it keep a journal. Partitions, mappings (device mapper, RAID) and loop devices are followed down to the disks.
 */
#ifndef PLATFORM_BLOCKDEVICE_H
#define PLATFORM_BLOCKDEVICE_H

#include "platform/mountinfo.h"

typedef enum pf_device_verdict {
    PF_DEVICE_FIXED,
    PF_DEVICE_REMOVABLE, /* a disk with the removable flag, or a memory card */
    PF_DEVICE_VOLATILE,  /* a disk in memory, or a loop over a file in memory */
    PF_DEVICE_UNFIT,     /* a loop over a file on a file system that is refused itself */
    PF_DEVICE_UNKNOWN    /* sysfs does not tell */
} pf_device_verdict;

/* The first verdict against a device below, or that all are fixed. `ret_name` (at least 64 bytes) names the one that
 * the verdict is about, for the terminal. */
pf_device_verdict pf_device_examine(const char *sysfs_root, const char *mountinfo, const pf_mount *mount,
                                    char ret_name[64]);
/* Does the ext file system of this mount have a journal? False also when sysfs does not tell. */
bool pf_device_has_journal(const char *sysfs_root, const pf_mount *mount);

#endif
