/*
 * The volume port: the one small interface through which all durable state goes.
 *
 * A pf_volume is a graph's root directory as one process (actor) sees it. Paths are relative to it, made by us from
 * ids, digests and fixed words, never from a caller's text; "" or "." is the root itself. No link is followed anywhere,
 * and the tree below the root is one mount. Two implementations stand behind the same calls: posix (volume_posix.c)
 * real files; files 0600 and folders 0700 whatever the umask; sim   (volume_sim.c)    an in-memory file system that
 * knows what has been synced (platform/sim.h), for tests.
 *
 * Durability rules that callers live by:
 *   - written bytes are durable when pf_file_sync of that file returned; a new, renamed or removed name is durable when
 *     pf_sync_dir of its folder returned. Creating a folder does not sync its parent.
 *   - a failed sync is final: the file is abandoned, never synced again and believed.
 *   - publishing a name is pf_publish (rename without replace): a published file never has two links.
 *
 * Every call that changes something asks the fence check first and answers FENCED when it refuses; counts itself; and
 * is a failpoint ("volume.<call>", see platform/failpoint.h). After a simulated death every call answers FENCED and
 * changes nothing. Errors are typed from errno (pf_fail_errno). EINTR and short reads or writes are handled inside. Not
 * thread-safe; a handle belongs to the process that opened it (never used across fork: open again in the child).
 */
#ifndef PLATFORM_VOLUME_H
#define PLATFORM_VOLUME_H

#include "platform/clock.h"
#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pf_volume pf_volume;
typedef struct pf_file pf_file;

typedef enum pf_access { PF_READ, PF_WRITE } pf_access;
typedef enum pf_lock_mode { PF_LOCK_SHARED, PF_LOCK_EXCLUSIVE } pf_lock_mode;
typedef enum pf_kind { PF_KIND_FILE, PF_KIND_FOLDER, PF_KIND_OTHER } pf_kind;

typedef struct pf_stat {
    pf_kind kind;
    uint64_t size;
    uint64_t device, inode; /* identity */
    uint64_t links;
    uint32_t owner;
    uint32_t mode;      /* permission bits */
    uint64_t allocated; /* bytes of disk */
} pf_stat;

/* What this volume did since it was opened (or since pf_volume_counters_reset). Cost tests assert these. */
typedef struct pf_counters {
    uint64_t calls; /* of every kind below; closing, unlocking and unmapping are free */
    uint64_t opens, creates, reads, writes, file_syncs, directory_syncs, renames, removes, lists, locks, maps, stats;
    uint64_t bytes_read, bytes_written;
} pf_counters;

/* ---- the root ---- */

/* Opens an existing folder as a volume. `path` is the user's; it is resolved component by component without following
 * links (a link anywhere: UNSUPPORTED_FILESYSTEM with the resolved path in the terminal text). NOT_FOUND when absent.
 * For PF_WRITE the folder must be ours, without group or other write permission: PERMISSION. (Root too is refused a
 * foreign folder: what it wrote there its owner could not read.) A volume opened for PF_READ refuses every change:
 * PERMISSION. */
sluice_status pf_volume_open(const char *path, pf_access access, pf_volume **ret_volume, sluice_error *err);
/* Makes the folder `path` exclusively (parent must exist; parent is synced) and opens it. ALREADY_EXISTS when there. */
sluice_status pf_volume_make(const char *path, pf_volume **ret_volume, sluice_error *err);
/* Makes the root's own name durable, when somebody else made the folder: syncs the folder above it. */
sluice_status pf_volume_sync_name(pf_volume *volume, sluice_error *err);
void pf_volume_close(pf_volume *volume); /* NULL allowed; all files of it must be closed before */
/* The root is still the folder that its path names (F-06): SLUICE_OK, else FENCED ("moved or replaced"). */
sluice_status pf_volume_check_identity(pf_volume *volume, sluice_error *err);
/* Asked before every call that changes something; returning false refuses it with FENCED. NULL: always allowed. */
void pf_volume_set_fence(pf_volume *volume, bool (*allowed)(void *context), void *context);
const pf_counters *pf_volume_counters(const pf_volume *volume);
void pf_volume_counters_reset(pf_volume *volume);
bool pf_volume_is_sim(const pf_volume *volume);
/* From here on a child that this process forks has none of the volume's descriptors: they are closed in it before fork
 * returns, so that it keeps no lock of this process alive. There the volume and its files are good for closing only.
 * (Nothing happens in children made past the C library, by a bare clone.) */
void pf_volume_leave_to_parent(pf_volume *volume);
/* Is this process such a child? */
bool pf_volume_is_left(const pf_volume *volume);

/* ---- names ---- */

/* Exclusive creation, open for reading and writing, empty. ALREADY_EXISTS when the name is there. */
sluice_status pf_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err);
/* A regular file with one link (else CORRUPT: hard links, FIFO, folder, a file as a component), of the root's owner and
 * without group or other write permission (else PERMISSION). A symbolic link or another mount on the way or at the end:
 * UNSUPPORTED_FILESYSTEM. NOT_FOUND when absent. */
sluice_status pf_open(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file, sluice_error *err);
/* Renames without replacing, within one volume: ALREADY_EXISTS when `to` is there, NOT_FOUND when `from` is not.
 * Durable only after pf_sync_dir of both folders. */
sluice_status pf_publish(pf_volume *volume, const char *from, const char *to, sluice_error *err);
sluice_status pf_remove(pf_volume *volume, const char *path, sluice_error *err); /* a file */
sluice_status pf_remove_if_there(pf_volume *volume, const char *path, sluice_error *err);
sluice_status pf_make_folder(pf_volume *volume, const char *path, sluice_error *err); /* ALREADY_EXISTS when there */
/* An empty one; ALREADY_EXISTS when something is in it. */
sluice_status pf_remove_folder(pf_volume *volume, const char *path, sluice_error *err);
/* Syncs a folder: all names made, renamed or removed in it before are durable on return. */
sluice_status pf_sync_dir(pf_volume *volume, const char *path, sluice_error *err);
/* The entries of a folder except "." and "..", in ascending byte order of their names (deterministic), one call each;
 * returning anything but SLUICE_OK stops the walk and is returned. The folder may change meanwhile. */
typedef sluice_status pf_list_fn(void *context, const char *name, pf_kind kind, sluice_error *err);
sluice_status pf_list(pf_volume *volume, const char *path, pf_list_fn *each, void *context, sluice_error *err);
sluice_status pf_stat_path(pf_volume *volume, const char *path, pf_stat *ret_stat, sluice_error *err);

/* ---- one file ---- */

/* Reads up to `length` bytes at `offset`; *ret_got is less only at the end of the file. */
sluice_status pf_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got, sluice_error *err);
/* Reads exactly `length` bytes; a shorter file is CORRUPT. */
sluice_status pf_read_exact(pf_file *file, uint64_t offset, void *bytes, size_t length, sluice_error *err);
/* Like pf_read_exact, but reads the medium past the page cache (drops clean cached pages first where it can). */
sluice_status pf_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, sluice_error *err);
sluice_status pf_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, sluice_error *err);
/* fdatasync: content and size. Final when it fails: every later write and sync by this handle is refused with IO. */
sluice_status pf_sync(pf_file *file, sluice_error *err);
/* Starts write-back of a range without waiting and without any promise (sync_file_range); never fails. */
void pf_write_behind(pf_file *file, uint64_t offset, uint64_t length);
/* Fills [old size, size) with zeros that occupy real blocks. The caller syncs. */
sluice_status pf_zero_fill(pf_file *file, uint64_t size, sluice_error *err);
sluice_status pf_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err);
/* Still the file that its path names: SLUICE_OK, else FENCED. */
sluice_status pf_file_check_identity(pf_file *file, sluice_error *err);
/* Reports the error of close, if any; the handle is gone in any case. NULL allowed. */
sluice_status pf_close(pf_file *file, sluice_error *err);

/* A read-only shared mapping of an immutable file; stays valid after the file is closed, until pf_unmap. Length 0 gives
 * a NULL address. Lock files are never mapped. */
typedef struct pf_map {
    const uint8_t *data;
    size_t length;
    void (*release_)(struct pf_map *map);
    void *private_;
} pf_map;
sluice_status pf_map_file(pf_file *file, pf_map *ret_map, sluice_error *err);
void pf_unmap(pf_map *map); /* safe on a zeroed one */

/* ---- open-file-description byte-range locks ---- */

/* Belongs to this pf_file handle (its open file description), is released by pf_unlock, pf_close or death, and is never
 * upgraded (asserted: a range held in one mode is not asked for in the other). An exclusive lock needs a PF_WRITE
 * handle. `length` is at least 1 and start + length at most INT64_MAX. Waits by polling until the deadline;
 * LIVE_WRITER_CONTENTION when that passes. Two handles of one process conflict like two processes. The file's identity
 * is checked after locking (FENCED when it was replaced). */
sluice_status pf_lock(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, pf_deadline deadline,
                      sluice_error *err);
sluice_status pf_unlock(pf_file *file, uint64_t start, uint64_t length, sluice_error *err);
/* Would an exclusive lock succeed now? Takes nothing. (A lock held by this very handle does not count as busy.) */
sluice_status pf_lock_is_free(pf_file *file, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err);

#endif
