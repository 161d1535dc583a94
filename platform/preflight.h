/*
 * Filesystem preflight (F-01 to F-05): decides, before anything is created or changed, whether a place can carry the
 * durability contract. Fails closed with UNSUPPORTED_FILESYSTEM; there is no weaker tier and no override.
 *
 * Admitted: ext2, ext3, ext4, xfs, btrfs, f2fs; local, writable, barriers on, on fixed disks. Decided by statfs magic,
 * then by the mount's entry in mountinfo (type, options), then by the devices below it (platform/blockdevice.h).
 * Readers meet the same kinds, but neither options nor devices are held against them.
 *
 * An error's details name what was held against the place, with no path and no name in it:
 *   {"class": CLASS, "phase": PHASE, "cause": CAUSE}
 * phase: classify, create, write, file_sync, lock, exclusive, replace, dir_sync, map, cleanup. cause of classify: kind
 * (refused by name), unknown_kind, unknown_mount, read_only, barriers, recovery, fsync_mode, checkpoint, removable,
 * volatile, image, unknown_device; of the others: call (the system refused it), bytes, identity, links, not_excluded,
 * not_released, replaced.
 */
#ifndef PLATFORM_PREFLIGHT_H
#define PLATFORM_PREFLIGHT_H

#include "platform/fail.h"
#include "platform/volume.h"
#include <stdbool.h>

typedef struct pf_filesystem {
    char class_name[16];   /* "ext4", "xfs", ...: safe to log */
    char mount_point[512]; /* for the terminal only */
    bool journal;          /* false: none, or nobody can tell; a file system check must follow a power loss */
    bool data_writeback;   /* data=writeback */
    bool read_only;
} pf_filesystem;

/* How the names of the probe's folders begin: what a killed probe left is no content of the folder that it was in. */
#define PF_PROBE_PREFIX ".sluice-probe-"

/* CLASSIFY of the nearest existing folder of `path` (the folder itself, else its parent). For PF_READ only classifies:
 * read-only mounts and missing barriers are no refusal. */
sluice_status pf_preflight_classify(const char *path, pf_access access, pf_filesystem *ret_filesystem,
                                    sluice_error *err);
/* The live probe in a private sibling folder below `parent` (F-01: CREATE, WRITE, FILE_SYNC, LOCK against a forked
 * child that is killed, EXCLUSIVE, REPLACE, DIR_SYNC, MAP, CLEANUP). Leaves nothing behind, and takes away what a
 * killed one left. Runs once per (boot, mount, device): its evidence is kept under `evidence_folder` (GRAPH/cache, or
 * XDG_RUNTIME_DIR for graphs being made; NULL: not kept), advisory: evidence that is missing, torn or cannot be written
 * denies nothing. */
sluice_status pf_preflight_probe(const char *parent, const char *evidence_folder, sluice_error *err);

/* From here on this process probes locks against itself, by a second description, and forks no child for it: for a
 * library in somebody else's process. */
void pf_preflight_without_children(void);

/* What the last probe of the mount below `path` measured; NOT_FOUND without evidence. */
typedef struct pf_evidence {
    uint64_t sync_us; /* the quicker of its two file syncs */
    bool quick;       /* so quick that the disk can hardly have flushed anything: worth a warning */
} pf_evidence;
sluice_status pf_preflight_evidence(const char *path, const char *evidence_folder, pf_evidence *ret_evidence,
                                    sluice_error *err);

/* For tests: the same decision from a given statfs magic, mountinfo text and sysfs root. */
sluice_status pf_preflight_decide(long magic, const char *mountinfo, unsigned mount_id, const char *sysfs_root,
                                  pf_access access, pf_filesystem *ret_filesystem, sluice_error *err);

#endif
