/*
 * Classification (see platform/preflight.h): the closed table of file systems, the mount's options, the devices below.
 *
 * It is an allow list: what is not in it is refused, by name when the name helps the user and as unknown otherwise.
 * Options are looked for in both lists of the mount entry, since a mount can be read-only by itself or with its file
 * system.
 */
#include "platform/preflight.h"

#include "platform/blockdevice.h"
#include "platform/buffer.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/preflight_impl.h"
#include "platform/volume_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOUNT_TRIES 8u /* a line may be missing while the table changes under its reader */

typedef struct fs_class {
    uint32_t magic;
    bool admitted;
    char name[16];
    const char *why; /* of a refusal */
} fs_class;

static const fs_class classes[] = {
    {0x0000ef53, true, "ext4", NULL}, /* ext2, ext3 and ext4: the mount table tells them apart */
    {0x58465342, true, "xfs", NULL},
    {0x9123683e, true, "btrfs", NULL},
    {0xf2f52010, true, "f2fs", NULL},
    {0x2fc12fc1, false, "zfs", "its sync can be switched off without a trace (sync=disabled)"},
    {0x01021994, false, "tmpfs", "it is memory and is lost with the power"},
    {0x858458f6, false, "ramfs", "it is memory and is lost with the power"},
    {0x794c7630, false, "overlay", "files change their identity when they are first written"},
    {0x65735546, false, "fuse", "a program in user space decides what a sync does"},
    {0x01021997, false, "9p", "it is a network file system"},
    {0x00006969, false, "nfs", "it is a network file system"},
    {0x0000517b, false, "smb", "it is a network file system"},
    {0xff534d42, false, "cifs", "it is a network file system"},
    {0xfe534d42, false, "smb2", "it is a network file system"},
    {0x00c36400, false, "ceph", "it is a network file system"},
    {0x5346414f, false, "afs", "it is a network file system"},
    {0x7461636f, false, "ocfs2", "it is shared by several machines"},
    {0x00004d44, false, "fat", "it has no journal, no owners and no permissions"},
    {0x2011bab0, false, "exfat", "it has no journal, no owners and no permissions"},
    {0x0000f15f, false, "ecryptfs", "it is stacked on another file system"},
    {0x73717368, false, "squashfs", "it cannot be written"},
};

static const struct {
    const char *option, *cause, *why, *instead; /* mount -o remount,INSTEAD */
} refused_options[] = {
    {"ro", "read_only", "it is mounted read-only", "rw"},
    {"emergency_ro", "read_only", "the kernel made it read-only after an error", NULL},
    {"shutdown", "read_only", "the kernel shut it down after an error", NULL},
    {"nobarrier", "barriers", "its write barriers are off (nobarrier)", "barrier"},
    {"barrier=0", "barriers", "its write barriers are off (barrier=0)", "barrier=1"},
    {"norecovery", "recovery", "it is mounted without recovery (norecovery)", NULL},
    {"noload", "recovery", "it is mounted without its journal (noload)", NULL},
    {"nologreplay", "recovery", "it is mounted without log replay (nologreplay)", NULL},
    {"rescue=nologreplay", "recovery", "it is mounted without log replay (rescue)", NULL},
    {"fsync_mode=nobarrier", "fsync_mode", "its sync does not flush the disk (fsync_mode=nobarrier)",
     "fsync_mode=posix"},
    {"checkpoint=disable", "checkpoint", "its checkpoints are off (checkpoint=disable)", "checkpoint=enable"},
};

/* ---- refusing ---- */

static void set_details(sluice_error *err, const char *class_name, const char *phase, const char *cause)
{
    pf_details(err, "{\"class\":\"%s\",\"phase\":\"%s\",\"cause\":\"%s\"}", class_name, phase, cause);
}

sluice_status pf_preflight_fail(sluice_error *err, const char *class_name, const char *phase, const char *cause,
                                const char *what)
{
    (void)pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "%s cannot carry a graph: %s", class_name, what);
    set_details(err, class_name, phase, cause);
    pf_hint(err, "put the graph on a local ext4, xfs, btrfs or f2fs file system on a fixed disk "
                 "(findmnt -T DIR shows where a folder lies)");
    return SLUICE_UNSUPPORTED_FILESYSTEM;
}

/* The same, with a text for people that names the mount. `type` is what the mount table says it is. */
static sluice_status refuse(sluice_error *err, const pf_filesystem *filesystem, const char *type, const char *cause,
                            const char *what)
{
    sluice_error safe = {0};

    (void)pf_preflight_fail(&safe, filesystem->class_name, "classify", cause, what);
    (void)pf_fail_private(err, safe.code, safe.message, "the %s file system mounted at %s cannot carry a graph: %s",
                          type, filesystem->mount_point[0] != 0 ? filesystem->mount_point : "an unknown place", what);
    set_details(err, filesystem->class_name, "classify", cause);
    pf_hint(err, "%s", safe.hint);
    return safe.code;
}

/* ---- deciding ---- */

static const fs_class *class_of(long magic)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].magic == (uint32_t)(unsigned long)magic)
            return &classes[i];
    return NULL;
}

/* Does the mount table agree with the magic? ext2, ext3 and ext4 share one, and the entry decides. */
static bool type_fits(const fs_class *class, pf_slice type, char ret_name[16])
{
    static const char *const ext[] = {"ext2", "ext3", "ext4"};

    (void)snprintf(ret_name, 16, "%s", class->name);
    if (strcmp(class->name, "ext4") != 0)
        return pf_slice_is(type, class->name);
    for (size_t i = 0; i < 3; i++)
        if (pf_slice_is(type, ext[i])) {
            (void)snprintf(ret_name, 16, "%s", ext[i]);
            return true;
        }
    return false;
}

static sluice_status check_options(const pf_mount *mount, const pf_filesystem *filesystem, sluice_error *err)
{
    for (size_t i = 0; i < sizeof refused_options / sizeof refused_options[0]; i++) {
        if (!pf_mount_has(mount, refused_options[i].option))
            continue;
        (void)refuse(err, filesystem, filesystem->class_name, refused_options[i].cause, refused_options[i].why);
        if (refused_options[i].instead != NULL)
            pf_hint(err, "mount -o remount,%s %s", refused_options[i].instead, filesystem->mount_point);
        return SLUICE_UNSUPPORTED_FILESYSTEM;
    }
    return SLUICE_OK;
}

static sluice_status check_devices(const char *sysfs_root, const char *mountinfo, const pf_mount *mount,
                                   const pf_filesystem *filesystem, sluice_error *err)
{
    const char *cause = "unknown_device", *what = "the device below it cannot be examined in sysfs";
    char device[64];
    sluice_status status;

    switch (pf_device_examine(sysfs_root, mountinfo, mount, device)) {
    case PF_DEVICE_FIXED:
        return SLUICE_OK;
    case PF_DEVICE_REMOVABLE:
        cause = "removable";
        what = "it lies on a removable device";
        break;
    case PF_DEVICE_VOLATILE:
        cause = "volatile";
        what = "it lies on memory and is lost with the power";
        break;
    case PF_DEVICE_UNFIT:
        cause = "image";
        what = "its image lies on a file system that is refused itself";
        break;
    case PF_DEVICE_UNKNOWN:
        break;
    }
    status = refuse(err, filesystem, filesystem->class_name, cause, what);
    pf_hint(err, "the device is %s; put the graph on a fixed disk", device);
    return status;
}

sluice_status pf_preflight_decide(long magic, const char *mountinfo, unsigned mount_id, const char *sysfs_root,
                                  pf_access access, pf_filesystem *ret_filesystem, sluice_error *err)
{
    const fs_class *class = class_of(magic);
    pf_filesystem fs = {0};
    char type[64] = "unknown";
    pf_mount mount;
    bool found = pf_mount_by_id(mountinfo, mount_id, &mount);

    (void)snprintf(fs.class_name, sizeof fs.class_name, "%s", class != NULL ? class->name : "unknown");
    if (found) {
        pf_slice_copy(mount.point, fs.mount_point, sizeof fs.mount_point);
        pf_slice_copy(mount.type, type, sizeof type);
        fs.read_only = pf_mount_has(&mount, "ro");
        fs.data_writeback = pf_mount_has(&mount, "data=writeback");
    }
    *ret_filesystem = fs;
    if (class == NULL)
        return refuse(err, &fs, type, "unknown_kind", "it is not one of those that are known to keep what they sync");
    if (!class->admitted)
        return refuse(err, &fs, class->name, "kind", class->why);
    if (!found && access == PF_READ)
        return SLUICE_OK;
    if (!found)
        return refuse(err, &fs, class->name, "unknown_mount", "the mount table does not list it");
    if (!type_fits(class, mount.type, fs.class_name))
        return refuse(err, &fs, type, "unknown_kind", "the mount table and the file system name different kinds");
    fs.journal = strncmp(fs.class_name, "ext", 3) != 0 ||
                 (strcmp(fs.class_name, "ext2") != 0 && pf_device_has_journal(sysfs_root, &mount));
    *ret_filesystem = fs;
    if (access == PF_READ)
        return SLUICE_OK;
    PF_TRY(check_options(&mount, &fs, err));
    return check_devices(sysfs_root, mountinfo, &mount, &fs, err);
}

/* ---- looking ---- */

static sluice_status open_folder(const char *path, int *ret_fd, sluice_error *err)
{
    *ret_fd = pf_posix_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    return *ret_fd >= 0 ? SLUICE_OK : pf_posix_fail_root(errno, path, err);
}

sluice_status pf_open_nearest(const char *path, int *ret_fd, sluice_error *err)
{
    char *copy, *slash;
    size_t length;
    sluice_status status;

    *ret_fd = pf_posix_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (*ret_fd >= 0)
        return SLUICE_OK;
    if (errno != ENOENT || path[0] == 0)
        return pf_posix_fail_root(errno, path, err);
    copy = strdup(path);
    if (copy == NULL)
        return pf_fail_memory(err);
    length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = 0;
    slash = strrchr(copy, '/');
    if (slash == NULL)
        status = open_folder(".", ret_fd, err);
    else {
        slash[slash == copy] = 0;
        status = open_folder(copy, ret_fd, err);
    }
    free(copy);
    return status;
}

static sluice_status read_mountinfo(char **ret_text, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = SLUICE_OK;
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    if (fd < 0)
        return pf_fail_errno(err, errno, "opening the mount table");
    do {
        PF_GOTO(status, done, pf_buffer_reserve(&text, 65536, err));
        n = read(fd, text.data + text.length, 65535);
        if (n < 0 && errno != EINTR) {
            status = pf_fail_errno(err, errno, "reading the mount table");
            goto done;
        }
        text.length += n > 0 ? (size_t)n : 0;
    } while (n != 0);
    text.data[text.length] = 0; /* there is room: less was read than reserved */
    *ret_text = (char *)text.data;
done:
    (void)close(fd);
    if (status != SLUICE_OK)
        pf_buffer_free(&text);
    return status;
}

static sluice_status mount_id_of(int fd, unsigned *ret_id, sluice_error *err)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &stx) != 0)
        return pf_fail_errno(err, errno, "examining a folder");
    if ((stx.stx_mask & STATX_MNT_ID) == 0)
        return pf_preflight_fail(err, "unknown", "classify", "unknown_mount",
                                 "this kernel does not tell mounts apart (Linux 5.8 or newer is needed)");
    *ret_id = (unsigned)stx.stx_mnt_id;
    return SLUICE_OK;
}

sluice_status pf_mount_table_of(int fd, char **ret_mountinfo, unsigned *ret_id, sluice_error *err)
{
    pf_mount mount;

    PF_TRY(mount_id_of(fd, ret_id, err));
    for (unsigned i = 0; i < MOUNT_TRIES; i++) {
        PF_TRY(read_mountinfo(ret_mountinfo, err));
        if (i + 1 == MOUNT_TRIES || pf_mount_by_id(*ret_mountinfo, *ret_id, &mount))
            break;
        free(*ret_mountinfo);
        *ret_mountinfo = NULL;
    }
    return SLUICE_OK; /* a mount that is not listed is the caller's to judge */
}

sluice_status pf_preflight_classify(const char *path, pf_access access, pf_filesystem *ret_filesystem,
                                    sluice_error *err)
{
    char *mountinfo = NULL;
    struct statfs fs;
    sluice_status status;
    unsigned id = 0;
    int fd = -1;

    PF_TRY(PF_FAILPOINT(PREFLIGHT_CLASSIFY, err));
    PF_TRY(pf_open_nearest(path, &fd, err));
    if (fstatfs(fd, &fs) != 0) {
        status = pf_fail_errno(err, errno, "examining the file system");
        goto done;
    }
    PF_GOTO(status, done, pf_mount_table_of(fd, &mountinfo, &id, err));
    status = pf_preflight_decide((long)fs.f_type, mountinfo, id, "/sys", access, ret_filesystem, err);
done:
    free(mountinfo);
    (void)close(fd);
    return status;
}
