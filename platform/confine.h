/*
 * Confining a process to what its work needs, for good: for processes that work for one tenant beside those of others.
 *
 * What is open stays open and usable. Children are confined like their parent. Where the kernel has neither Landlock
 * (with renames between folders, since Linux 5.19) nor seccomp filters, less is held back, and the process works all
 * the same.
 */
#ifndef PLATFORM_CONFINE_H
#define PLATFORM_CONFINE_H

#include "platform/fail.h"
#include <stdbool.h>

typedef struct pf_confinement { /* what came to be held back */
    bool files; /* nothing can be opened below other folders, but kernel files (/proc, /sys) for reading */
    bool calls; /* no other program, no network, no looking into other processes */
} pf_confinement;

/* From here on this process opens, makes, renames and removes files below `folder` only; folders anywhere may be
 * listed. It becomes no other program, makes no socket, and traces nobody. IO when the kernel fails half-way. */
sluice_status pf_confine(const char *folder, pf_confinement *ret_confinement, sluice_error *err);

#endif
