/*
 * What stands behind the volume port: the table of operations that an implementation (posix, sim) fills, and the parts
 * of a volume and of a file that both share. Included by the implementations and by volume.c, by nobody else.
 *
 * volume.c has done, before it calls an operation: the check of the path's form, the refusal of changes on a volume
 * opened for reading and on a fenced owner, the count, the failpoint. An operation only does the work and types its
 * errors.
 */
#ifndef PLATFORM_VOLUME_IMPL_H
#define PLATFORM_VOLUME_IMPL_H

#include "platform/volume.h"

#define PF_PATH_MAX      1024u /* of a path below the root, with the terminating zero */
#define PF_COMPONENT_MAX 255u  /* of one name in it */

typedef struct pf_volume_ops {
    void (*close)(pf_volume *volume);
    sluice_status (*check_identity)(pf_volume *volume, sluice_error *err);
    sluice_status (*sync_name)(pf_volume *volume, sluice_error *err);

    sluice_status (*create)(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err);
    sluice_status (*open)(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file, sluice_error *err);
    sluice_status (*publish)(pf_volume *volume, const char *from, const char *to, sluice_error *err);
    sluice_status (*remove)(pf_volume *volume, const char *path, sluice_error *err);
    sluice_status (*make_folder)(pf_volume *volume, const char *path, sluice_error *err);
    sluice_status (*remove_folder)(pf_volume *volume, const char *path, sluice_error *err);
    sluice_status (*sync_dir)(pf_volume *volume, const char *path, sluice_error *err);
    sluice_status (*list)(pf_volume *volume, const char *path, pf_list_fn *each, void *context, sluice_error *err);
    sluice_status (*stat_path)(pf_volume *volume, const char *path, pf_stat *ret_stat, sluice_error *err);

    sluice_status (*read)(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                          sluice_error *err);
    sluice_status (*read_medium)(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                 sluice_error *err);
    /* *ret_written: bytes that reached the file, also on failure. */
    sluice_status (*write)(pf_file *file, uint64_t offset, const void *bytes, size_t length, size_t *ret_written,
                           sluice_error *err);
    sluice_status (*sync)(pf_file *file, sluice_error *err);
    void (*write_behind)(pf_file *file, uint64_t offset, uint64_t length);
    sluice_status (*zero_fill)(pf_file *file, uint64_t size, uint64_t *ret_written, sluice_error *err);
    sluice_status (*file_stat)(pf_file *file, pf_stat *ret_stat, sluice_error *err);
    sluice_status (*file_check_identity)(pf_file *file, sluice_error *err);
    sluice_status (*map)(pf_file *file, pf_map *ret_map, sluice_error *err);
    /* Frees the handle whatever it returns (pf_file_drop last). */
    sluice_status (*file_close)(pf_file *file, sluice_error *err);

    sluice_status (*lock_try)(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, bool *ret_busy,
                              sluice_error *err);
    /* Between two tries; false: waiting cannot help, give up. */
    bool (*lock_wait)(pf_file *file, unsigned attempt, pf_deadline deadline);
    sluice_status (*unlock)(pf_file *file, uint64_t start, uint64_t length, sluice_error *err);
    sluice_status (*lock_is_free)(pf_file *file, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err);
} pf_volume_ops;

struct pf_volume { /* first member of each implementation's own */
    const pf_volume_ops *ops;
    pf_access access;
    bool simulated;
    bool left; /* this process is a forked child, and the volume its parent's */
    uint32_t open_files;
    bool (*allowed)(void *context);
    void *allowed_context;
    pf_counters counters;
};

typedef struct pf_held_lock {
    uint64_t start, length;
    pf_lock_mode mode;
} pf_held_lock;

struct pf_file { /* first member of each implementation's own */
    pf_volume *volume;
    char *path; /* below the root; owned */
    pf_access access;
    bool counts;       /* its growth, against this process's allowance (platform/allowance.h) */
    uint64_t taken_to; /* so much of it has been counted */
    bool abandoned;    /* a sync of it failed: never written, never synced again */
    pf_held_lock *held;
    size_t held_count, held_capacity;
};

/* Fills the shared part (copies the path). */
sluice_status pf_file_init(pf_file *file, pf_volume *volume, const char *path, pf_access access, sluice_error *err);
/* Frees the shared part and the handle itself. */
void pf_file_drop(pf_file *file);
/* Splits a checked path into its folder ("" for the root) and its last name, which points into `path`. */
void pf_path_split(const char *path, char ret_folder[PF_PATH_MAX], const char **ret_name);
/* Types a failed step on a name below the root ("creating", "branches/1/locks"). */
sluice_status pf_volume_fail(sluice_error *err, int error_number, const char *doing, const char *path);
/* The first release of a mapping's memory, set by map operations. */
void pf_map_init(pf_map *map, const uint8_t *data, size_t length, void (*release)(pf_map *map), void *private_);

#endif
