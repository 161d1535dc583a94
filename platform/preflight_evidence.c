/*
 * Evidence of a live probe: one small file, known by boot, mount, device and kind, so that the next command on the same
 * mount need not probe again. Advisory in every way: what is missing, torn, foreign or of another boot only costs a
 * probe.
 *
 *   FOLDER/preflight-<mount>-<major>-<minor>:  sluice-preflight/1 boot=... mount=... device=... magic=... sync_us=...
 */
#include "platform/clock.h"
#include "platform/preflight_impl.h"
#include "platform/volume_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EVIDENCE_MAX 512u
#define QUICK_US     8u /* a disk that flushes for good, capacitors and all, needs longer */

static sluice_status read_boot_id(char ret_boot[PF_BOOT_TEXT], sluice_error *err)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret_boot, PF_BOOT_TEXT - 1) : -1;
    sluice_status status = SLUICE_OK;

    if (n != PF_BOOT_TEXT - 1)
        status = pf_fail_errno(err, n < 0 ? errno : EIO, "reading the boot id");
    else
        ret_boot[n] = 0;
    if (fd >= 0)
        (void)close(fd);
    return status;
}

sluice_status pf_place_of(int fd, pf_place *ret_place, sluice_error *err)
{
    char boot[PF_BOOT_TEXT];
    char *mountinfo;
    struct statfs fs;
    pf_mount mount;
    unsigned id = 0;

    PF_TRY(read_boot_id(boot, err));
    if (fstatfs(fd, &fs) != 0)
        return pf_fail_errno(err, errno, "examining the file system");
    PF_TRY(pf_mount_table_of(fd, &mountinfo, &id, err));
    if (!pf_mount_by_id(mountinfo, id, &mount)) {
        free(mountinfo);
        return pf_preflight_fail(err, "unknown", "classify", "unknown_mount", "the mount table does not list it");
    }
    pf_slice_copy(mount.type, ret_place->class_name, sizeof ret_place->class_name);
    (void)snprintf(ret_place->key, sizeof ret_place->key,
                   "sluice-preflight/1 boot=%s mount=%u device=%u:%u magic=%lx sync_us=", boot, id, mount.major,
                   mount.minor, (unsigned long)fs.f_type);
    (void)snprintf(ret_place->file, sizeof ret_place->file, "preflight-%u-%u-%u", id, mount.major, mount.minor);
    free(mountinfo);
    return SLUICE_OK;
}

/* The evidence file in its folder; -1 when it cannot be had. */
static int open_evidence(const char *folder, const pf_place *place, int flags)
{
    int dir = pf_posix_openat2(AT_FDCWD, folder, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS), fd;

    if (dir < 0)
        return -1;
    fd = pf_posix_openat2(dir, place->file, flags | O_NOFOLLOW | O_NONBLOCK, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    (void)close(dir);
    return fd;
}

/* Only our own file is believed, and only whole: "KEY<number>\n". */
bool pf_evidence_read(const char *folder, const pf_place *place, uint64_t *ret_sync_us)
{
    size_t key = strlen(place->key);
    char text[EVIDENCE_MAX] = {0};
    struct stat st;
    ssize_t length = 0;
    char *end;
    int fd = open_evidence(folder, place, O_RDONLY);

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
        length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (length <= (ssize_t)key || memcmp(text, place->key, key) != 0)
        return false;
    text[length] = 0;
    if (text[key] < '0' || text[key] > '9')
        return false;
    errno = 0;
    *ret_sync_us = strtoull(text + key, &end, 10);
    return errno == 0 && end[0] == '\n' && end[1] == 0;
}

void pf_evidence_write(const char *folder, const pf_place *place, uint64_t sync_us)
{
    char text[EVIDENCE_MAX];
    int length = snprintf(text, sizeof text, "%s%" PRIu64 "\n", place->key, sync_us);
    int fd = open_evidence(folder, place, O_WRONLY | O_CREAT);
    struct stat st;

    if (fd < 0)
        return;
    /* What cannot be written, or only in part, is no evidence, and the next command probes again. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && fchmod(fd, PF_FILE_MODE) == 0 &&
        ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)length, 0) != length)
        (void)!ftruncate(fd, 0);
    (void)close(fd);
}

sluice_status pf_preflight_evidence(const char *path, const char *evidence_folder, pf_evidence *ret_evidence,
                                    sluice_error *err)
{
    sluice_status status;
    pf_place place;
    uint64_t us;
    int fd;

    PF_TRY(pf_open_nearest(path, &fd, err));
    status = pf_place_of(fd, &place, err);
    (void)close(fd);
    PF_TRY(status);
    if (evidence_folder == NULL || !pf_evidence_read(evidence_folder, &place, &us))
        return pf_fail(err, SLUICE_NOT_FOUND, "this mount has not been probed since the system started");
    *ret_evidence = (pf_evidence){.sync_us = us, .quick = us < QUICK_US};
    return SLUICE_OK;
}
