/*
 * OS advisory locks of a branch (or of control/): open-file-description byte ranges of one file, F/locks.
 *
 * | byte                   | who takes it                                        | how            |
 * | LK_BYTE_SCHEMA 0       | schema gate: keyed writers shared, schema alone     | whole attempt  |
 * | LK_BYTE_BRANCH 1       | branch gate: keyed writers shared, branch-wide alone | whole attempt |
 * | LK_BYTE_PUBLISH 2      | publish lock: the one who appends                   | inside G       |
 * | LK_BYTE_ADMISSION 3    | admission: single/queued alone, optimistic shared   | whole write    |
 * | table id (>= 64)       | table gate: keyed writers shared, overwrite alone   | whole attempt  |
 * | LK_LINE + …            | places of who waits for the admission of a queued graph (locks/line.h) | while it waits |
 * | LK_FOLDER + table id   | folder of that table: optimize, index, folds that merge, alone | whole attempt |
 * | LK_TURNSTILE + byte    | turnstile of that byte: exclusive takers hold it while they wait, shared ones pass it |
 *
 * The kernel releases them when the owner is gone; counted per process (two holds of one byte by one handle are one
 * kernel lock), never upgraded. Graph-wide bytes lie in locks/graph: 0 refs, 1 reclaim, 3 host, 4 backup.
 */
#ifndef LOCKS_OSLOCK_H
#define LOCKS_OSLOCK_H

#include "platform/volume.h"

#define LK_BYTE_SCHEMA    0u
#define LK_BYTE_BRANCH    1u
#define LK_BYTE_PUBLISH   2u
#define LK_BYTE_ADMISSION 3u
#define LK_TURNSTILE      (UINT64_C(1) << 62)
#define LK_FOLDER         (UINT64_C(1) << 61)
#define LK_GRAPH_REFS     0u
#define LK_GRAPH_RECLAIM  1u
#define LK_GRAPH_HOST     3u
#define LK_GRAPH_BACKUP   4u /* whoever writes a backup into this folder, or puts one back: by try, in no order */

typedef struct lk_lockfile lk_lockfile;
/* Opens an existing lock file ("branches/1/locks") on a descriptor of its own. */
sluice_status lk_lockfile_open(pf_volume *volume, const char *path, lk_lockfile **ret_lockfile, sluice_error *err);
void lk_lockfile_close(lk_lockfile *lockfile); /* releases all; NULL allowed */
/* Releases all, and keeps the file open. False: the kernel did not take all back; only closing does. */
bool lk_lockfile_clear(lk_lockfile *lockfile);
/* Is this the lock file of that path? */
bool lk_lockfile_is(const lk_lockfile *lockfile, const char *path);
/* LIVE_WRITER_CONTENTION at the deadline; a deadline that has passed is one try. FENCED when the file was replaced. */
sluice_status lk_take(lk_lockfile *lockfile, uint64_t byte, pf_lock_mode mode, pf_deadline deadline, sluice_error *err);
void lk_release(lk_lockfile *lockfile, uint64_t byte);
/* Could all of these be taken alone now? What this handle holds itself counts as free. Takes nothing. */
sluice_status lk_is_free(lk_lockfile *lockfile, uint64_t first, uint64_t count, bool *ret_free, sluice_error *err);
/* Before a wait that is no lk_take: may the byte be waited for, given what is held? (locks/order.h) */
void lk_will_wait(const lk_lockfile *lockfile, uint64_t byte);

#endif
