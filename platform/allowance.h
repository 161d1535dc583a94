/*
 * Disk space that the processes of a graph may take together: counted as files grow, so that the write that would go
 * beyond it is refused and nothing of it is made.
 *
 * One per process, for files that it creates in the named folders of any volume; other files (logs, intents, what
 * recovery writes) never wait for space of their own. What is removed is seen when the count comes to the limit: then
 * it is taken anew from the disk.
 */
#ifndef PLATFORM_ALLOWANCE_H
#define PLATFORM_ALLOWANCE_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct pf_allowance {
    uint64_t *used; /* in memory that the processes share */
    uint64_t limit;
    const char *folder;         /* an absolute path: what is counted anew */
    const char *const *counted; /* prefixes of paths below a volume's root; ends with NULL */
} pf_allowance;

/* What makes room. */
#define PF_QUOTA_HINT                                                                                                  \
    "`sluice gc GRAPH` removes what nothing needs, `sluice gc GRAPH --keep 1` also what only older generations need; " \
    "or give the graph a larger \"quota\" in the supervisor's configuration"

/* Copied, but not what it points to; NULL: no bound. */
void pf_allowance_set(const pf_allowance *allowance);
/* Does a file of this path, when it is created now, count? */
bool pf_allowance_counts(const char *path);
/* QUOTA when so much more is not allowed. */
sluice_status pf_allowance_take(uint64_t bytes, sluice_error *err);

#endif
