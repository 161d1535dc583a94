/*
 * Being told that something below a volume's root was written, made or removed, by any process of this machine: instead
 * of looking again and again. It tells that, not what; whoever is woken looks. What happened after the opening is told
 * to the next wait. Best opened before one looks.
 *
 * Inotify behind a descriptor of its own, which no child inherits over exec. Real files only: a simulated volume is
 * USAGE. Where the system has no watches left: RESOURCE_LIMIT.
 */
#ifndef PLATFORM_NOTIFY_H
#define PLATFORM_NOTIFY_H

#include "platform/volume.h"

typedef struct pf_notify pf_notify;

/* Watches the entries of these folders (not of folders in them). NOT_FOUND when one is not there. */
sluice_status pf_notify_open(pf_volume *volume, const char *const *folders, uint32_t count, pf_notify **ret_notify,
                             sluice_error *err);
void pf_notify_close(pf_notify *notify); /* NULL allowed */
/* Readable when there is something; pf_notify_take then empties it. */
int pf_notify_descriptor(const pf_notify *notify);
void pf_notify_take(pf_notify *notify);
/* Waits until there is something, or the deadline, or a minute; takes it. A signal may end it early. */
sluice_status pf_notify_wait(pf_notify *notify, pf_deadline deadline, bool *ret_something, sluice_error *err);

#endif
