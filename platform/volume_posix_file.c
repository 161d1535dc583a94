/*
 * Contents of a volume on real files: opening (type, link count, owner and permissions checked on the handle, never on
 * the name), reading, writing, syncing, mapping.
 *
 * A file is opened without blocking and its type is looked at afterwards, so a FIFO or a device put in its place is
 * refused and never waited for. Nothing is done to a file whose handle does not pass.
 */
#include "platform/volume_posix.h"

#include "platform/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define OPEN_FLAGS   (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define DIRECT_ALIGN 4096u
#define DIRECT_CHUNK (UINT64_C(1) << 20)
#define ZERO_BLOCK   ((size_t)64 * 1024)
#define ZERO_BLOCKS  16u

/* ---- handles ---- */

/* Takes `fd` over, also on failure. */
static sluice_status file_from(pf_volume *volume, const char *path, pf_access access, int fd, const struct stat *st,
                               pf_file **ret_file, sluice_error *err)
{
    pf_posix_file *file = calloc(1, sizeof *file);
    sluice_status status;

    if (file == NULL) {
        (void)close(fd);
        return pf_fail_memory(err);
    }
    status = pf_file_init(&file->base, volume, path, access, err);
    if (status != SLUICE_OK) {
        (void)close(fd);
        free(file);
        return status;
    }
    file->fd = fd;
    file->device = st->st_dev;
    file->inode = st->st_ino;
    pf_posix_fork_list(file);
    *ret_file = &file->base;
    return SLUICE_OK;
}

static sluice_status create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    sluice_status status;
    struct stat st;
    int fd = pf_posix_open_beneath(pf_posix_of(volume), path, O_RDWR | O_CREAT | O_EXCL | OPEN_FLAGS);

    if (fd < 0)
        return pf_volume_fail(err, errno, "creating", path);
    status = pf_posix_set_mode(fd, PF_FILE_MODE, path, err);
    if (status == SLUICE_OK && fstat(fd, &st) != 0)
        status = pf_volume_fail(err, errno, "examining", path);
    if (status != SLUICE_OK)
        (void)close(fd);
    else
        status = file_from(volume, path, PF_WRITE, fd, &st, ret_file, err);
    if (status != SLUICE_OK)
        (void)pf_posix_ops.remove(volume, path, NULL);
    return status;
}

sluice_status pf_posix_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    pf_posix_fork_hold(pf_posix_of(volume));
    sluice_status status = create(volume, path, ret_file, err);
    pf_posix_fork_allow(pf_posix_of(volume));
    return status;
}

static sluice_status check_opened(const pf_posix_volume *volume, int fd, const char *path, struct stat *ret_stat,
                                  sluice_error *err)
{
    if (fstat(fd, ret_stat) != 0)
        return pf_volume_fail(err, errno, "examining", path);
    const struct stat st = *ret_stat;
    if (!S_ISREG(st.st_mode))
        return pf_fail(err, SLUICE_CORRUPT, "opening %s: it is not a regular file", path);
    if (st.st_nlink == 0) /* removed between the walk and here */
        return pf_fail(err, SLUICE_NOT_FOUND, "opening %s: it was removed", path);
    if (st.st_nlink != 1)
        return pf_fail(err, SLUICE_CORRUPT, "opening %s: it has %ju names, and must have one", path,
                       (uintmax_t)st.st_nlink);
    if (st.st_uid != volume->owner)
        return pf_fail(err, SLUICE_PERMISSION, "opening %s: it does not belong to the graph's owner", path);
    if ((st.st_mode & 022) != 0)
        return pf_fail(err, SLUICE_PERMISSION, "opening %s: its group or others can write it", path);
    return SLUICE_OK;
}

static sluice_status open_file(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file,
                               sluice_error *err)
{
    sluice_status status;
    struct stat st;
    int fd = pf_posix_open_beneath(pf_posix_of(volume), path, (access == PF_WRITE ? O_RDWR : O_RDONLY) | OPEN_FLAGS);

    if (fd < 0)
        return pf_volume_fail(err, errno, "opening", path);
    status = check_opened(pf_posix_of(volume), fd, path, &st, err);
    if (status != SLUICE_OK) {
        (void)close(fd);
        return status;
    }
    return file_from(volume, path, access, fd, &st, ret_file, err);
}

sluice_status pf_posix_open(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file,
                            sluice_error *err)
{
    pf_posix_fork_hold(pf_posix_of(volume));
    sluice_status status = open_file(volume, path, access, ret_file, err);
    pf_posix_fork_allow(pf_posix_of(volume));
    return status;
}

sluice_status pf_posix_file_close(pf_file *file, sluice_error *err)
{
    sluice_status status = SLUICE_OK;

    pf_posix_fork_hold(pf_posix_of(file->volume));
    pf_posix_fork_unlist_file(pf_posix_file_of(file));
    /* The descriptor is gone after any return; EINTR says nothing about the data. */
    if (pf_posix_file_of(file)->fd >= 0 && close(pf_posix_file_of(file)->fd) != 0 && errno != EINTR)
        status = pf_volume_fail(err, errno, "closing", file->path);
    pf_posix_fork_allow(pf_posix_of(file->volume));
    pf_file_drop(file);
    return status;
}

sluice_status pf_posix_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err)
{
    struct stat st;

    if (fstat(pf_posix_file_of(file)->fd, &st) != 0)
        return pf_volume_fail(err, errno, "examining", file->path);
    pf_posix_fill_stat(&st, ret_stat);
    return SLUICE_OK;
}

sluice_status pf_posix_file_check_identity(pf_file *file, sluice_error *err)
{
    const pf_posix_file *open_one = pf_posix_file_of(file);
    struct stat named_one; /* whatever lies on the way to the name: it leads to this very file, or not */
    int result = fstatat(pf_posix_of(file->volume)->root, file->path, &named_one, AT_SYMLINK_NOFOLLOW);

    if (result != 0 && errno == ENOMEM)
        return pf_volume_fail(err, errno, "examining", file->path);
    bool same = result == 0 && named_one.st_dev == open_one->device && named_one.st_ino == open_one->inode;
    return same ? SLUICE_OK : pf_fail(err, SLUICE_FENCED, "%s was moved or replaced", file->path);
}

/* ---- reading ---- */

static sluice_status read_all(int fd, const char *path, uint64_t offset, uint8_t *bytes, size_t length, size_t *ret_got,
                              sluice_error *err)
{
    size_t got = 0;

    while (got < length) {
        ssize_t n = pread(fd, bytes + got, length - got, (off_t)(offset + got));
        if (n == 0)
            break;
        if (n > 0)
            got += (size_t)n;
        else if (errno != EINTR)
            return pf_volume_fail(err, errno, "reading", path);
    }
    *ret_got = got;
    return SLUICE_OK;
}

sluice_status pf_posix_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                            sluice_error *err)
{
    return read_all(pf_posix_file_of(file)->fd, file->path, offset, bytes, length, ret_got, err);
}

/* A second description of the same inode that bypasses the page cache; -1 when the file system has no such thing. */
static int open_direct(int fd)
{
    char link[64];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open(link, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
}

/* Copies [offset, offset + length) out of aligned direct reads. *ret_able false: this file cannot be read so. */
static sluice_status read_direct(int fd, const char *path, uint64_t offset, uint8_t *bytes, size_t length,
                                 bool *ret_able, size_t *ret_got, sluice_error *err)
{
    uint64_t end = offset + length, at = offset & ~(uint64_t)(DIRECT_ALIGN - 1);
    uint8_t *chunk = aligned_alloc(DIRECT_ALIGN, DIRECT_CHUNK);
    sluice_status status = SLUICE_OK;
    size_t got = 0;

    if (chunk == NULL)
        return pf_fail_memory(err);
    *ret_able = true;
    while (at < end) {
        uint64_t want = end - at < DIRECT_CHUNK ? end - at : DIRECT_CHUNK;
        size_t rounded = (size_t)((want + DIRECT_ALIGN - 1) & ~(uint64_t)(DIRECT_ALIGN - 1));
        ssize_t n = pread(fd, chunk, rounded, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL) {
            *ret_able = false;
            break;
        }
        if (n < 0) {
            status = pf_volume_fail(err, errno, "reading past the cache", path);
            break;
        }
        uint64_t from = at < offset ? offset - at : 0;
        uint64_t to = (uint64_t)n < end - at ? (uint64_t)n : end - at;
        if (to > from) {
            memcpy(bytes + (at + from - offset), chunk + from, (size_t)(to - from));
            got += (size_t)(to - from);
        }
        if ((size_t)n < rounded) /* the end of the file */
            break;
        at += (uint64_t)n;
    }
    free(chunk);
    *ret_got = got;
    return status;
}

sluice_status pf_posix_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                   sluice_error *err)
{
    int fd = pf_posix_file_of(file)->fd, direct;
    sluice_status status = SLUICE_OK;
    bool able = false;

    /* Clean cached pages go first, so that whoever reads next through the cache sees the medium too. A range of whole
     * pages: the kernel keeps pages that are covered in part. */
    uint64_t start = offset & ~(uint64_t)(DIRECT_ALIGN - 1);
    (void)posix_fadvise(fd, (off_t)start, (off_t)(((offset + length) | (DIRECT_ALIGN - 1)) + 1 - start),
                        POSIX_FADV_DONTNEED);
    direct = open_direct(fd);
    if (direct >= 0) {
        status = read_direct(direct, file->path, offset, bytes, length, &able, ret_got, err);
        (void)close(direct);
    }
    if (status == SLUICE_OK && !able)
        status = read_all(fd, file->path, offset, bytes, length, ret_got, err);
    return status;
}

/* ---- writing ---- */

sluice_status pf_posix_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, size_t *ret_written,
                             sluice_error *err)
{
    const uint8_t *from = bytes;

    while (*ret_written < length) {
        ssize_t n = pwrite(pf_posix_file_of(file)->fd, from + *ret_written, length - *ret_written,
                           (off_t)(offset + *ret_written));
        if (n > 0)
            *ret_written += (size_t)n;
        else if (n == 0) /* not seen on regular files; never loop on it */
            return pf_fail(err, SLUICE_IO, "writing %s: nothing was written", file->path);
        else if (errno != EINTR)
            return pf_volume_fail(err, errno, "writing", file->path);
    }
    return SLUICE_OK;
}

sluice_status pf_posix_zero_fill(pf_file *file, uint64_t size, uint64_t *ret_written, sluice_error *err)
{
    static uint8_t zeros[ZERO_BLOCK]; /* never written */
    struct iovec parts[ZERO_BLOCKS];
    struct stat st;
    int fd = pf_posix_file_of(file)->fd;

    if (fstat(fd, &st) != 0)
        return pf_volume_fail(err, errno, "examining", file->path);
    for (uint64_t at = (uint64_t)st.st_size; at < size;) {
        uint64_t left = size - at;
        int count = 0;
        for (; count < (int)ZERO_BLOCKS && left > 0; count++) {
            size_t part = left < ZERO_BLOCK ? (size_t)left : ZERO_BLOCK;
            parts[count] = (struct iovec){.iov_base = zeros, .iov_len = part};
            left -= part;
        }
        ssize_t n = pwritev(fd, parts, count, (off_t)at);
        if (n == 0)
            return pf_fail(err, SLUICE_IO, "writing %s: nothing was written", file->path);
        if (n < 0 && errno != EINTR)
            return pf_volume_fail(err, errno, "filling with zeros", file->path);
        if (n > 0) {
            at += (uint64_t)n;
            *ret_written += (uint64_t)n;
        }
    }
    return SLUICE_OK;
}

sluice_status pf_posix_sync(pf_file *file, sluice_error *err)
{
    int result;

    do { /* an interrupted wait has reported no write-back error, so asking again loses none */
        result = fdatasync(pf_posix_file_of(file)->fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? SLUICE_OK : pf_volume_fail(err, errno, "syncing", file->path);
}

void pf_posix_write_behind(pf_file *file, uint64_t offset, uint64_t length)
{
    (void)sync_file_range(pf_posix_file_of(file)->fd, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE);
}

/* ---- mapping ---- */

static void release_map(pf_map *map)
{
    (void)munmap(map->private_, map->length);
}

sluice_status pf_posix_map(pf_file *file, pf_map *ret_map, sluice_error *err)
{
    struct stat st;
    void *address;
    int fd = pf_posix_file_of(file)->fd;

    if (fstat(fd, &st) != 0)
        return pf_volume_fail(err, errno, "examining", file->path);
    if (st.st_size == 0) {
        pf_map_init(ret_map, NULL, 0, NULL, NULL);
        return SLUICE_OK;
    }
    address = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
        return pf_volume_fail(err, errno, "mapping", file->path);
    pf_map_init(ret_map, address, (size_t)st.st_size, release_map, address);
    return SLUICE_OK;
}
