/*
 * Names of a volume on real files.
 *
 * Every walk starts at the root's handle and is one openat2 that leaves neither the root nor its mount and follows no
 * link. Calls that the kernel offers only by name (rename, unlink, mkdir) act on the last name in a folder opened that
 * way, so a link put into the middle of a path at any moment is refused and never followed.
 */
#include "platform/volume_posix.h"

#include "platform/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)

int pf_posix_open_beneath(const pf_posix_volume *volume, const char *path, int flags)
{
    return pf_posix_openat2(volume->root, path[0] != 0 ? path : ".", flags, BENEATH);
}

int pf_posix_make_folder_at(int parent, const char *name)
{
    char link[64];
    int handle, fd = -1, error_number;

    if (mkdirat(parent, name, PF_FOLDER_MODE) != 0)
        return -1;
    /* A handle of this kind needs no permission on the folder itself, which has perhaps none yet. */
    handle = pf_posix_openat2(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, BENEATH);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    if (handle >= 0 && chmod(link, PF_FOLDER_MODE) == 0)
        fd = pf_posix_openat2(handle, ".", O_RDONLY | O_DIRECTORY, BENEATH);
    error_number = errno;
    if (handle >= 0)
        (void)close(handle);
    if (fd < 0)
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    errno = error_number;
    return fd;
}

sluice_status pf_posix_set_mode(int fd, mode_t mode, const char *path, sluice_error *err)
{
    struct stat st;

    if (fchmod(fd, mode) != 0 || fstat(fd, &st) != 0)
        return pf_volume_fail(err, errno, "setting the permissions of", path);
    if ((st.st_mode & 07777) != mode)
        return pf_fail(err, SLUICE_PERMISSION, "the permissions of %s are %04o although %04o were set", path,
                       (unsigned)(st.st_mode & 07777), (unsigned)mode);
    return SLUICE_OK;
}

static pf_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? PF_KIND_FILE : S_ISDIR(mode) ? PF_KIND_FOLDER : PF_KIND_OTHER;
}

void pf_posix_fill_stat(const struct stat *from, pf_stat *ret_stat)
{
    *ret_stat = (pf_stat){
        .kind = kind_of(from->st_mode),
        .size = (uint64_t)from->st_size,
        .device = from->st_dev,
        .inode = from->st_ino,
        .links = from->st_nlink,
        .owner = from->st_uid,
        .mode = from->st_mode & 07777,
        .allocated = (uint64_t)from->st_blocks * 512,
    };
}

/* The folder that holds the last name of `path`, opened to act in it; the name points into `path`. -1 and errno. */
static int open_parent(const pf_posix_volume *volume, const char *path, const char **ret_name)
{
    char folder[PF_PATH_MAX];

    pf_path_split(path, folder, ret_name);
    return pf_posix_open_beneath(volume, folder, O_PATH | O_DIRECTORY);
}

static sluice_status publish(pf_volume *volume, const char *from, const char *to, sluice_error *err)
{
    const char *from_name, *to_name;
    sluice_status status = SLUICE_OK;
    int from_folder, to_folder = -1;

    from_folder = open_parent(pf_posix_of(volume), from, &from_name);
    if (from_folder < 0)
        return pf_volume_fail(err, errno, "renaming", from);
    to_folder = open_parent(pf_posix_of(volume), to, &to_name);
    if (to_folder < 0)
        status = pf_volume_fail(err, errno, "renaming to", to);
    else if (renameat2(from_folder, from_name, to_folder, to_name, RENAME_NOREPLACE) != 0)
        status = errno == EINVAL
                     ? pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "renaming without replacing is refused here")
                     : pf_volume_fail(err, errno, "renaming to", to);
    if (to_folder >= 0)
        (void)close(to_folder);
    (void)close(from_folder);
    return status;
}

static sluice_status remove_name(pf_volume *volume, const char *path, int flags, sluice_error *err)
{
    const char *name;
    sluice_status status = SLUICE_OK;
    int folder = open_parent(pf_posix_of(volume), path, &name);

    if (folder < 0)
        return pf_volume_fail(err, errno, "removing", path);
    if (unlinkat(folder, name, flags) != 0)
        status = pf_volume_fail(err, errno, "removing", path);
    (void)close(folder);
    return status;
}

static sluice_status remove_file(pf_volume *volume, const char *path, sluice_error *err)
{
    return remove_name(volume, path, 0, err);
}

static sluice_status remove_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    return remove_name(volume, path, AT_REMOVEDIR, err);
}

static sluice_status make_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    const char *name;
    sluice_status status = SLUICE_OK;
    int made, folder = open_parent(pf_posix_of(volume), path, &name);

    if (folder < 0)
        return pf_volume_fail(err, errno, "making the folder", path);
    made = pf_posix_make_folder_at(folder, name);
    if (made < 0) {
        status = pf_volume_fail(err, errno, "making the folder", path);
        goto done;
    }
    status = pf_posix_set_mode(made, PF_FOLDER_MODE, path, err);
    if (status != SLUICE_OK)
        (void)unlinkat(folder, name, AT_REMOVEDIR);
    (void)close(made);
done:
    (void)close(folder);
    return status;
}

static sluice_status sync_dir(pf_volume *volume, const char *path, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    int fd = pf_posix_open_beneath(pf_posix_of(volume), path, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return pf_volume_fail(err, errno, "opening the folder", path);
    if (fsync(fd) != 0)
        status = pf_volume_fail(err, errno, "syncing the folder", path);
    (void)close(fd);
    return status;
}

static sluice_status stat_path(pf_volume *volume, const char *path, pf_stat *ret_stat, sluice_error *err)
{
    struct stat st;
    sluice_status status = SLUICE_OK;
    int fd = pf_posix_open_beneath(pf_posix_of(volume), path, O_PATH | O_NOFOLLOW);

    if (fd < 0)
        return pf_volume_fail(err, errno, "examining", path);
    if (fstat(fd, &st) != 0)
        status = pf_volume_fail(err, errno, "examining", path);
    else
        pf_posix_fill_stat(&st, ret_stat);
    (void)close(fd);
    return status;
}

/* ---- listing ---- */

typedef struct listed {
    char *name;
    pf_kind kind;
} listed;

typedef struct listing {
    listed *entries;
    size_t count, capacity;
} listing;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const listed *)a)->name, ((const listed *)b)->name);
}

static bool listing_add(listing *list, const char *name, pf_kind kind)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 32 : list->capacity * 2;
        listed *entries = reallocarray(list->entries, capacity, sizeof *entries);
        if (entries == NULL)
            return false;
        list->entries = entries;
        list->capacity = capacity;
    }
    list->entries[list->count].name = strdup(name);
    list->entries[list->count].kind = kind;
    return list->entries[list->count++].name != NULL;
}

/* File systems may leave the type out; an entry that has gone meanwhile is other, and the caller finds that out. */
static pf_kind kind_of_entry(int folder, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_REG ? PF_KIND_FILE : entry->d_type == DT_DIR ? PF_KIND_FOLDER : PF_KIND_OTHER;
    return fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? kind_of(st.st_mode) : PF_KIND_OTHER;
}

static sluice_status read_entries(DIR *dir, const char *path, listing *list, sluice_error *err)
{
    for (;;) {
        const struct dirent *entry;
        errno = 0;
        entry = readdir(dir);
        if (entry == NULL)
            return errno == 0 ? SLUICE_OK : pf_volume_fail(err, errno, "listing", path);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!listing_add(list, entry->d_name, kind_of_entry(dirfd(dir), entry)))
            return pf_fail_memory(err);
    }
}

static sluice_status list(pf_volume *volume, const char *path, pf_list_fn *each, void *context, sluice_error *err)
{
    listing entries = {0};
    sluice_status status;
    DIR *dir = NULL;
    int fd = pf_posix_open_beneath(pf_posix_of(volume), path, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return pf_volume_fail(err, errno, "listing", path);
    dir = fdopendir(fd);
    if (dir == NULL) {
        status = pf_volume_fail(err, errno, "listing", path);
        (void)close(fd);
        return status;
    }
    status = read_entries(dir, path, &entries, err);
    (void)closedir(dir);
    if (entries.count > 0)
        qsort(entries.entries, entries.count, sizeof *entries.entries, by_name);
    for (size_t i = 0; i < entries.count && status == SLUICE_OK; i++)
        status = each(context, entries.entries[i].name, entries.entries[i].kind, err);
    for (size_t i = 0; i < entries.count; i++)
        free(entries.entries[i].name);
    free(entries.entries);
    return status;
}

const pf_volume_ops pf_posix_ops = {
    .close = pf_posix_close,
    .check_identity = pf_posix_check_identity,
    .sync_name = pf_posix_sync_name,
    .create = pf_posix_create,
    .open = pf_posix_open,
    .publish = publish,
    .remove = remove_file,
    .make_folder = make_folder,
    .remove_folder = remove_folder,
    .sync_dir = sync_dir,
    .list = list,
    .stat_path = stat_path,
    .read = pf_posix_read,
    .read_medium = pf_posix_read_medium,
    .write = pf_posix_write,
    .sync = pf_posix_sync,
    .write_behind = pf_posix_write_behind,
    .zero_fill = pf_posix_zero_fill,
    .file_stat = pf_posix_file_stat,
    .file_check_identity = pf_posix_file_check_identity,
    .map = pf_posix_map,
    .file_close = pf_posix_file_close,
    .lock_try = pf_posix_lock_try,
    .lock_wait = pf_posix_lock_wait,
    .unlock = pf_posix_unlock,
    .lock_is_free = pf_posix_lock_is_free,
};
