/*
 * Inside the preflight: what preflight.c (classification), preflight_probe.c (the live probe) and preflight_evidence.c
 * share, and the seam at which tests break a probe. Nobody else includes this.
 */
#ifndef PLATFORM_PREFLIGHT_IMPL_H
#define PLATFORM_PREFLIGHT_IMPL_H

#include "platform/mountinfo.h"
#include "platform/preflight.h"

#define PF_BOOT_TEXT     37
#define PF_EVIDENCE_NAME 64

typedef enum pf_probe_phase {
    PF_PROBE_CREATE,
    PF_PROBE_WRITE,
    PF_PROBE_FILE_SYNC,
    PF_PROBE_LOCK,
    PF_PROBE_EXCLUSIVE,
    PF_PROBE_REPLACE,
    PF_PROBE_DIR_SYNC,
    PF_PROBE_MAP,
    PF_PROBE_CLEANUP,
    PF_PROBE_LOCK_CHILD, /* in the forked child, once it holds its lock */
    PF_PROBE_REPLACED    /* between the replacement and the check of it */
} pf_probe_phase;

/* Tests only: called at the beginning of each phase with the probe's own folder (-1 in the first), to spoil something.
 * NULL: off. */
void pf_preflight_spoil(void (*spoil)(void *context, pf_probe_phase phase, int folder), void *context);

/* The mount that a handle lies on, as of now: the mount table (malloc'd) and the id in it. */
sluice_status pf_mount_table_of(int fd, char **ret_mountinfo, unsigned *ret_id, sluice_error *err);
/* Opens the nearest existing folder of `path` (itself, else its parent) without following links. */
sluice_status pf_open_nearest(const char *path, int *ret_fd, sluice_error *err);
/* UNSUPPORTED_FILESYSTEM with the details of the header; the message says `what`, the text too. */
sluice_status pf_preflight_fail(sluice_error *err, const char *class_name, const char *phase, const char *cause,
                                const char *what);

/* What a probe of this place is known by: "boot=... mount=... device=..." and the file that its evidence is kept in. */
typedef struct pf_place {
    char key[160];
    char file[PF_EVIDENCE_NAME];
    char class_name[16];
} pf_place;
sluice_status pf_place_of(int fd, pf_place *ret_place, sluice_error *err);
/* False when there is none, or it is of another boot, torn or not ours. */
bool pf_evidence_read(const char *folder, const pf_place *place, uint64_t *ret_sync_us);
/* Best effort. */
void pf_evidence_write(const char *folder, const pf_place *place, uint64_t sync_us);

#endif
