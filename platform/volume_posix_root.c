/*
 * The root of a volume on real files: found without following a link, kept by its handle, recognised by (device,
 * inode).
 *
 * The user's path is resolved in one openat2 that refuses symbolic links in every component; the absolute path that the
 * kernel then reports for the handle is kept, so that later identity checks do not depend on the working directory. The
 * parent may be another mount (a volume of a container usually is one); only the tree below the root must be one mount.
 */
#include "platform/volume_posix.h"

#include "platform/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_AGAIN_MAX 32u

int pf_posix_openat2(int folder, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .resolve = resolve};
    unsigned again = 0;
    long fd;

    if ((flags & O_CREAT) != 0)
        how.mode = PF_FILE_MODE;
    do { /* EAGAIN: a rename raced with the walk; or for good, when somebody holds a lease on the file */
        fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || (errno == EAGAIN && again++ < OPEN_AGAIN_MAX)));
    return (int)fd;
}

/* What the path of a refused root really is, for the user's terminal. */
static sluice_status fail_link(const char *path, sluice_error *err)
{
    char resolved[PATH_MAX];
    sluice_status status;

    if (realpath(path, resolved) == NULL)
        resolved[0] = 0;
    status = pf_fail_private(err, SLUICE_UNSUPPORTED_FILESYSTEM, "the graph's path leads through a symbolic link",
                             "%s leads through a symbolic link%s%s", path, resolved[0] != 0 ? "; it resolves to " : "",
                             resolved);
    if (resolved[0] != 0)
        pf_hint(err, "give the path without links: %s", resolved);
    return status;
}

sluice_status pf_posix_fail_root(int error_number, const char *path, sluice_error *err)
{
    switch (error_number) {
    case ELOOP:
        return fail_link(path, err);
    case ENOENT:
        return pf_fail_private(err, SLUICE_NOT_FOUND, "no such folder", "%s: no such folder", path);
    case ENOTDIR:
        return pf_fail_private(err, SLUICE_NOT_FOUND, "not a folder", "%s is not a folder", path);
    case EEXIST:
        return pf_fail_private(err, SLUICE_ALREADY_EXISTS, "something is there already", "%s is there already", path);
    case EACCES:
    case EPERM:
        return pf_fail_private(err, SLUICE_PERMISSION, "the folder may not be opened", "%s may not be opened: %s", path,
                               strerrordesc_np(error_number));
    case ENOSYS:
        return pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "this kernel has no openat2 (Linux 5.6 or newer is needed)");
    default:
        return pf_fail_errno(err, error_number, "opening the graph's folder");
    }
}

static sluice_status absolute_path(int fd, char **ret_path, sluice_error *err)
{
    char link[64], path[PATH_MAX];
    ssize_t length;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path);
    if (length < 0)
        return pf_fail_errno(err, errno, "reading the path of the graph's folder from /proc");
    if (length == 0 || (size_t)length == sizeof path || path[0] != '/')
        return pf_fail(err, SLUICE_IO, "the graph's folder has no path in this file system tree");
    *ret_path = strndup(path, (size_t)length);
    return *ret_path != NULL ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status check_owner(const struct stat *st, const char *path, sluice_error *err)
{
    sluice_status status;

    if (st->st_uid != geteuid()) {
        status =
            pf_fail_private(err, SLUICE_PERMISSION, "the graph's folder belongs to another user",
                            "%s belongs to user %u, this is user %u", path, (unsigned)st->st_uid, (unsigned)geteuid());
        pf_hint(err, "run as its owner (sudo -u '#%u' ...)", (unsigned)st->st_uid);
        return status;
    }
    if ((st->st_mode & 022) != 0) {
        status = pf_fail_private(err, SLUICE_PERMISSION, "the graph's folder can be written by others",
                                 "%s can be written by its group or by others (mode %04o)", path,
                                 (unsigned)(st->st_mode & 07777));
        pf_hint(err, "chmod 700 %s", path);
        return status;
    }
    return SLUICE_OK;
}

/* Takes `fd` over, also on failure. */
static sluice_status volume_from(int fd, const char *path, pf_access access, pf_volume **ret_volume, sluice_error *err)
{
    pf_posix_volume *volume = calloc(1, sizeof *volume);
    struct stat st;
    sluice_status status = SLUICE_OK;

    if (volume == NULL) {
        (void)close(fd);
        return pf_fail_memory(err);
    }
    volume->base.ops = &pf_posix_ops;
    volume->base.access = access;
    volume->root = fd;
    if (fstat(fd, &st) != 0) {
        status = pf_fail_errno(err, errno, "examining the graph's folder");
        goto done;
    }
    if (access == PF_WRITE)
        PF_GOTO(status, done, check_owner(&st, path, err));
    PF_GOTO(status, done, absolute_path(fd, &volume->path, err));
    volume->device = st.st_dev;
    volume->inode = st.st_ino;
    volume->owner = st.st_uid;
done:
    if (status != SLUICE_OK)
        pf_posix_close(&volume->base);
    else
        *ret_volume = &volume->base;
    return status;
}

sluice_status pf_volume_open(const char *path, pf_access access, pf_volume **ret_volume, sluice_error *err)
{
    int fd = pf_posix_openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

    if (fd < 0)
        return pf_posix_fail_root(errno, path, err);
    return volume_from(fd, path, access, ret_volume, err);
}

/* Splits the user's path into parent and last name; false when it has none ("/", "", "."). */
static bool split_user_path(char *path, const char **ret_parent, const char **ret_name)
{
    size_t length = strlen(path);
    char *slash;

    while (length > 1 && path[length - 1] == '/')
        path[--length] = 0;
    slash = strrchr(path, '/');
    *ret_name = slash != NULL ? slash + 1 : path;
    *ret_parent = slash == NULL ? "." : slash == path ? "/" : path;
    if (slash != NULL)
        *slash = 0;
    return (*ret_name)[0] != 0 && strcmp(*ret_name, ".") != 0 && strcmp(*ret_name, "..") != 0;
}

/* Makes `name` in the open parent, with its mode set and read back and its name durable. */
static sluice_status make_root(int parent, const char *name, const char *path, int *ret_fd, sluice_error *err)
{
    sluice_status status;
    int fd = pf_posix_make_folder_at(parent, name);

    if (fd < 0)
        return pf_posix_fail_root(errno, path, err);
    PF_GOTO(status, undo, pf_posix_set_mode(fd, PF_FOLDER_MODE, "the graph's folder", err));
    if (fsync(parent) != 0) {
        status = pf_fail_errno(err, errno, "syncing the folder above the graph");
        goto undo;
    }
    *ret_fd = fd;
    return SLUICE_OK;
undo:
    (void)close(fd);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
    return status;
}

sluice_status pf_volume_make(const char *path, pf_volume **ret_volume, sluice_error *err)
{
    char *copy = strdup(path);
    const char *parent_path, *name;
    sluice_status status;
    int parent = -1, fd = -1;

    if (copy == NULL)
        return pf_fail_memory(err);
    if (!split_user_path(copy, &parent_path, &name)) {
        status = pf_posix_fail_root(path[0] != 0 ? EEXIST : ENOENT, path, err);
        goto done;
    }
    parent = pf_posix_openat2(AT_FDCWD, parent_path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (parent < 0) {
        status = pf_posix_fail_root(errno, parent_path, err);
        goto done;
    }
    PF_GOTO(status, done, make_root(parent, name, path, &fd, err));
    status = volume_from(fd, path, PF_WRITE, ret_volume, err);
done:
    if (parent >= 0)
        (void)close(parent);
    free(copy);
    return status;
}

sluice_status pf_posix_sync_name(pf_volume *base, sluice_error *err)
{
    pf_posix_volume *volume = pf_posix_of(base);
    sluice_status status = SLUICE_OK;
    int parent = pf_posix_openat2(volume->root, "..", O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

    /* A parent that we may not read can only be synced with everything else. */
    if ((parent >= 0 ? fsync(parent) : syncfs(volume->root)) != 0)
        status = pf_fail_errno(err, errno, "syncing the folder above the graph");
    if (parent >= 0)
        (void)close(parent);
    return status;
}

sluice_status pf_posix_check_identity(pf_volume *base, sluice_error *err)
{
    pf_posix_volume *volume = pf_posix_of(base);
    struct stat st; /* whatever lies on the way to the name: it leads to this very folder, or not */
    int result = fstatat(AT_FDCWD, volume->path, &st, AT_SYMLINK_NOFOLLOW);

    if (result != 0 && errno == ENOMEM)
        return pf_fail_errno(err, errno, "examining the graph's folder");
    bool same = result == 0 && st.st_dev == volume->device && st.st_ino == volume->inode;
    return same ? SLUICE_OK : pf_fail(err, SLUICE_FENCED, "the graph's folder was moved or replaced");
}

void pf_posix_close(pf_volume *base)
{
    pf_posix_volume *volume = pf_posix_of(base);

    pf_posix_fork_unlist(volume);
    if (volume->root >= 0)
        (void)close(volume->root);
    free(volume->path);
    free(volume);
}
