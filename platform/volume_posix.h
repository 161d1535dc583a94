/*
 * Inside the posix implementation of the volume port: what its files share. Nobody else includes this.
 */
#ifndef PLATFORM_VOLUME_POSIX_H
#define PLATFORM_VOLUME_POSIX_H

#include "platform/volume_impl.h"

#include <sys/stat.h>
#include <sys/types.h>

#define PF_FILE_MODE   0600u
#define PF_FOLDER_MODE 0700u

typedef struct pf_posix_file pf_posix_file;

typedef struct pf_posix_volume {
    pf_volume base;
    int root;   /* the folder itself, open for reading: every path is resolved beneath it */
    char *path; /* absolute, free of links when it was opened; owned */
    dev_t device;
    ino_t inode;
    uid_t owner;
    bool guarded; /* volume_posix_fork.c; then listed there, with all of its files: */
    struct pf_posix_volume *next, *previous;
    pf_posix_file *files;
} pf_posix_volume;

struct pf_posix_file {
    pf_file base;
    int fd;
    dev_t device;
    ino_t inode;
    pf_posix_file *next, *previous; /* of a guarded volume */
};

extern const pf_volume_ops pf_posix_ops;

static inline pf_posix_volume *pf_posix_of(pf_volume *volume)
{
    return (pf_posix_volume *)volume;
}

static inline pf_posix_file *pf_posix_file_of(pf_file *file)
{
    return (pf_posix_file *)file;
}

/* openat2 with these resolve flags, repeated on EINTR and EAGAIN; -1 and errno. Always close-on-exec. */
int pf_posix_openat2(int folder, const char *path, int flags, uint64_t resolve);
/* Opens beneath the volume's root, following no link and leaving no mount; "" is the root. -1 and errno. */
int pf_posix_open_beneath(const pf_posix_volume *volume, const char *path, int flags);
/* Types a failed step on the user's own path, which stands in the terminal text only. */
sluice_status pf_posix_fail_root(int error_number, const char *path, sluice_error *err);
/* Gives a folder or file that we just made exactly `mode` and reads it back (umask and default ACLs widen or narrow
 * it). */
sluice_status pf_posix_set_mode(int fd, mode_t mode, const char *path, sluice_error *err);
/* Makes a folder in an open one, with mode 0700 although the umask may deny even its owner, and opens it. -1 and errno,
 * and then nothing is left of it. */
int pf_posix_make_folder_at(int parent, const char *name);
void pf_posix_fill_stat(const struct stat *from, pf_stat *ret_stat);
/* ---- volume_posix_fork.c ---- */

/* Around the making of a descriptor that may come to hold locks, until it is listed: no fork falls in between. */
void pf_posix_fork_hold(const pf_posix_volume *volume);
void pf_posix_fork_allow(const pf_posix_volume *volume);
void pf_posix_fork_list(pf_posix_file *file); /* between the two */
void pf_posix_fork_unlist_file(pf_posix_file *file);
void pf_posix_fork_unlist(pf_posix_volume *volume);

/* The operations, by file. */
sluice_status pf_posix_check_identity(pf_volume *volume, sluice_error *err);
sluice_status pf_posix_sync_name(pf_volume *volume, sluice_error *err);
void pf_posix_close(pf_volume *volume);
sluice_status pf_posix_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err);
sluice_status pf_posix_open(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file,
                            sluice_error *err);
sluice_status pf_posix_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                            sluice_error *err);
sluice_status pf_posix_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                   sluice_error *err);
sluice_status pf_posix_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, size_t *ret_written,
                             sluice_error *err);
sluice_status pf_posix_sync(pf_file *file, sluice_error *err);
void pf_posix_write_behind(pf_file *file, uint64_t offset, uint64_t length);
sluice_status pf_posix_zero_fill(pf_file *file, uint64_t size, uint64_t *ret_written, sluice_error *err);
sluice_status pf_posix_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err);
sluice_status pf_posix_file_check_identity(pf_file *file, sluice_error *err);
sluice_status pf_posix_map(pf_file *file, pf_map *ret_map, sluice_error *err);
sluice_status pf_posix_file_close(pf_file *file, sluice_error *err);
sluice_status pf_posix_lock_try(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, bool *ret_busy,
                                sluice_error *err);
bool pf_posix_lock_wait(pf_file *file, unsigned attempt, pf_deadline deadline);
sluice_status pf_posix_unlock(pf_file *file, uint64_t start, uint64_t length, sluice_error *err);
sluice_status pf_posix_lock_is_free(pf_file *file, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err);

#endif
