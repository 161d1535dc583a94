/*
 * Block devices in sysfs (see platform/blockdevice.h).
 *
 *   dev/block/MAJ:MIN        a link to the device's folder; class/block/NAME the same by name
 *   .../sda/removable        the flag, on whole disks only; a partition's folder (it has `partition`) lies in its
 * disk's
 *   .../dm-0/slaves/NAME     what a mapping or a RAID lies on
 *   .../loop0/loop/backing_file  the path of a loop's image
 *   .../mmcblk0/device/type  "SD" for a card, "MMC" for a soldered chip; the flag is 0 for both
 *   fs/ext4/NAME/journal_task    "<none>" without a journal
 *   fs/btrfs/UUID/devices/NAME   all devices of one btrfs
 *
 * A loop passes a flush on to its image, so the image's file system has to keep what it is told to: it must be of a
 * kind that this module's caller would admit, or an overlay that is not volatile, whose flush is that of the file
 * system below.
 */
#include "platform/blockdevice.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8u

typedef struct search {
    const char *sysfs, *mountinfo;
    char *name; /* of the device that the verdict is about */
} search;

static pf_device_verdict examine_folder(const search *s, const char *folder, unsigned depth);
static pf_device_verdict examine_mount(const search *s, const pf_mount *mount, unsigned depth);

/* ---- reading sysfs ---- */

/* The first line of a small file; false when it cannot be read. */
static bool read_line(const char *folder, const char *name, char *ret_text, size_t size)
{
    char path[PATH_MAX];
    bool read;
    FILE *file;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return false;
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    read = fgets(ret_text, (int)size, file) != NULL;
    (void)fclose(file);
    if (read)
        ret_text[strcspn(ret_text, "\n")] = 0;
    return read;
}

static bool real_folder(const char *base, const char *name, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];

    return (size_t)snprintf(path, sizeof path, "%s/%s", base, name) < sizeof path && realpath(path, ret_path) != NULL;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool has_entry(const char *folder, const char *name)
{
    char path[PATH_MAX];

    return real_folder(folder, name, path);
}

static pf_device_verdict name_it(const search *s, const char *name, pf_device_verdict verdict)
{
    (void)snprintf(s->name, 64, "%.63s", name);
    return verdict;
}

/* ---- devices ---- */

static bool is_memory(const char *name)
{
    if (strncmp(name, "zram", 4) == 0)
        name++;
    return strncmp(name, "ram", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

/* The first verdict against one of the devices that a folder of links names. *ret_any false: there is none. */
static pf_device_verdict examine_links(const search *s, const char *folder, unsigned depth, bool *ret_any)
{
    pf_device_verdict verdict = PF_DEVICE_FIXED;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[PATH_MAX];

    *ret_any = false;
    if (dir == NULL)
        return verdict;
    while (verdict == PF_DEVICE_FIXED && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        *ret_any = true;
        verdict = real_folder(folder, entry->d_name, path) ? examine_folder(s, path, depth + 1)
                                                           : name_it(s, entry->d_name, PF_DEVICE_UNKNOWN);
    }
    (void)closedir(dir);
    return verdict;
}

/* Kinds whose flush an image may rely on. */
static bool carries_images(const pf_mount *mount)
{
    static const char *const kinds[] = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (pf_slice_is(mount->type, kinds[i]))
            return true;
    return false;
}

static pf_device_verdict examine_loop(const search *s, const char *name, const char *image, unsigned depth)
{
    pf_mount mount;

    if (image[0] != '/' || !pf_mount_by_path(s->mountinfo, image, &mount))
        return name_it(s, name, PF_DEVICE_UNKNOWN);
    if (pf_slice_is(mount.type, "tmpfs") || pf_slice_is(mount.type, "ramfs") || pf_slice_is(mount.type, "devtmpfs") ||
        (pf_slice_is(mount.type, "overlay") && pf_mount_has(&mount, "volatile")))
        return name_it(s, name, PF_DEVICE_VOLATILE);
    if (pf_slice_is(mount.type, "overlay"))
        return PF_DEVICE_FIXED;
    if (!carries_images(&mount))
        return name_it(s, name, PF_DEVICE_UNFIT);
    return examine_mount(s, &mount, depth + 1);
}

/* One device by its real folder. */
static pf_device_verdict examine_folder(const search *s, const char *folder, unsigned depth)
{
    char disk[PATH_MAX], path[PATH_MAX], text[PATH_MAX];
    pf_device_verdict verdict;
    bool any;

    (void)snprintf(disk, sizeof disk, "%s", folder);
    if (has_entry(disk, "partition"))
        *strrchr(disk, '/') = 0;
    if (depth > DEPTH_MAX)
        return name_it(s, last_name(disk), PF_DEVICE_UNKNOWN);
    if (is_memory(last_name(disk)))
        return name_it(s, last_name(disk), PF_DEVICE_VOLATILE);
    if (read_line(disk, "loop/backing_file", text, sizeof text))
        return examine_loop(s, last_name(disk), text, depth);
    if ((size_t)snprintf(path, sizeof path, "%s/slaves", disk) >= sizeof path)
        return name_it(s, last_name(disk), PF_DEVICE_UNKNOWN);
    verdict = examine_links(s, path, depth, &any);
    if (any)
        return verdict;
    if (!read_line(disk, "removable", text, sizeof text))
        return name_it(s, last_name(disk), PF_DEVICE_UNKNOWN);
    if (strcmp(text, "0") != 0 || (read_line(disk, "device/type", text, sizeof text) && strcmp(text, "SD") == 0))
        return name_it(s, last_name(disk), PF_DEVICE_REMOVABLE);
    return PF_DEVICE_FIXED;
}

/* ---- mounts ---- */

/* The kernel's name of the mapping that /dev/mapper/`mapping` stands for. */
static bool find_mapping(const char *sysfs, const char *mapping, char ret_name[64])
{
    char block[PATH_MAX], folder[PATH_MAX], text[PATH_MAX];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    if ((size_t)snprintf(block, sizeof block, "%s/block", sysfs) >= sizeof block)
        return false;
    dir = opendir(block);
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "dm-", 3) != 0 || !real_folder(block, entry->d_name, folder))
            continue;
        found = read_line(folder, "dm/name", text, sizeof text) && strcmp(text, mapping) == 0;
        if (found)
            (void)snprintf(ret_name, 64, "%.63s", entry->d_name);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

/* All devices of the btrfs that has this one; *ret_any false when sysfs lists none. */
static pf_device_verdict examine_btrfs(const search *s, const char *name, unsigned depth, bool *ret_any)
{
    char base[PATH_MAX], devices[PATH_MAX];
    pf_device_verdict verdict = PF_DEVICE_FIXED;
    const struct dirent *entry;
    DIR *dir = NULL;

    *ret_any = false;
    if ((size_t)snprintf(base, sizeof base, "%s/fs/btrfs", s->sysfs) < sizeof base)
        dir = opendir(base);
    while (dir != NULL && !*ret_any && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' ||
            (size_t)snprintf(devices, sizeof devices, "%s/%s/devices", base, entry->d_name) >= sizeof devices ||
            !has_entry(devices, name))
            continue;
        verdict = examine_links(s, devices, depth, ret_any);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return verdict;
}

/* A mount without a device number of its own names its device as the source. */
static pf_device_verdict examine_source(const search *s, const pf_mount *mount, unsigned depth)
{
    char source[PATH_MAX], name[64], folder[PATH_MAX];
    pf_device_verdict verdict;
    bool any;

    pf_slice_copy(mount->source, source, sizeof source);
    (void)snprintf(name, sizeof name, "%.63s", last_name(source));
    if (strncmp(source, "/dev/", 5) != 0 ||
        (strncmp(source, "/dev/mapper/", 12) == 0 && !find_mapping(s->sysfs, source + 12, name)))
        return name_it(s, name, PF_DEVICE_UNKNOWN);
    if (pf_slice_is(mount->type, "btrfs")) {
        verdict = examine_btrfs(s, name, depth, &any);
        if (any)
            return verdict;
    }
    if ((size_t)snprintf(source, sizeof source, "%s/class/block", s->sysfs) >= sizeof source ||
        !real_folder(source, name, folder))
        return name_it(s, name, PF_DEVICE_UNKNOWN);
    return examine_folder(s, folder, depth);
}

static bool folder_of(const char *sysfs, const pf_mount *mount, char ret_folder[PATH_MAX])
{
    char name[64];

    (void)snprintf(name, sizeof name, "dev/block/%u:%u", mount->major, mount->minor);
    return mount->major != 0 && real_folder(sysfs, name, ret_folder);
}

static pf_device_verdict examine_mount(const search *s, const pf_mount *mount, unsigned depth)
{
    char folder[PATH_MAX], name[64];

    (void)snprintf(name, sizeof name, "%u:%u", mount->major, mount->minor);
    if (depth > DEPTH_MAX)
        return name_it(s, name, PF_DEVICE_UNKNOWN);
    if (mount->major == 0)
        return examine_source(s, mount, depth);
    if (folder_of(s->sysfs, mount, folder))
        return examine_folder(s, folder, depth);
    return name_it(s, name, PF_DEVICE_UNKNOWN);
}

pf_device_verdict pf_device_examine(const char *sysfs_root, const char *mountinfo, const pf_mount *mount,
                                    char ret_name[64])
{
    const search s = {.sysfs = sysfs_root, .mountinfo = mountinfo, .name = ret_name};

    ret_name[0] = 0;
    return examine_mount(&s, mount, 0);
}

bool pf_device_has_journal(const char *sysfs_root, const pf_mount *mount)
{
    char folder[PATH_MAX], path[PATH_MAX], text[64];

    if (!folder_of(sysfs_root, mount, folder) ||
        (size_t)snprintf(path, sizeof path, "%s/fs/ext4/%s", sysfs_root, last_name(folder)) >= sizeof path)
        return false;
    return read_line(path, "journal_task", text, sizeof text) && text[0] >= '0' && text[0] <= '9';
}
