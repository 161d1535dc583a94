/*
 * Filesystem preflight (LESSONS F-01 to F-05): decides, before anything is created or changed, whether a place can carry the
 * durability contract. Fails closed with UNSUPPORTED_FILESYSTEM; there is no weaker tier and no override.
 *
 * Admitted: ext2, ext3, ext4, xfs, btrfs, f2fs; local, writable, barriers on. Decided by statfs magic, then by the mount's
 * entry in mountinfo (type, options), then by the device (removable flag, resolved through partitions, mappers, loops).
 */
#ifndef PLATFORM_PREFLIGHT_H
#define PLATFORM_PREFLIGHT_H

#include "platform/fail.h"
#include "platform/volume.h"
#include <stdbool.h>

typedef struct pf_filesystem {
    char class_name[16];    /* "ext4", "xfs", ...: safe to log */
    char mount_point[512];  /* for the terminal only */
    bool journal;           /* false: a file system check must follow a power loss */
    bool data_writeback;    /* data=writeback */
    bool read_only;
} pf_filesystem;

/* CLASSIFY of the nearest existing folder of `path` (the folder itself, else its parent). For PF_READ only classifies:
 * read-only mounts and missing barriers are no refusal. */
sluice_status pf_preflight_classify(const char *path, pf_access access, pf_filesystem *ret_filesystem,
                                    sluice_error *err);
/* The live probe in a private sibling folder below `parent` (F-01: CREATE, WRITE, FILE_SYNC, LOCK against a forked child
 * that is killed, EXCLUSIVE, REPLACE, DIR_SYNC, MAP, CLEANUP). Leaves nothing behind; runs once per (boot, mount, device):
 * its evidence is kept under `evidence_folder` (GRAPH/cache, or XDG_RUNTIME_DIR for graphs being made; NULL: not kept). */
sluice_status pf_preflight_probe(const char *parent, const char *evidence_folder, sluice_error *err);

/* For tests: the same decision from a given statfs magic, mountinfo text and sysfs root. */
sluice_status pf_preflight_decide(long magic, const char *mountinfo, unsigned mount_id, const char *sysfs_root,
                                  pf_access access, pf_filesystem *ret_filesystem, sluice_error *err);

#endif
