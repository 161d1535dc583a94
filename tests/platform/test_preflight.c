/*
 * Which places may carry a graph (F-03, F-04, OD-013, OD-014, OD-016 to OD-025): every row of the tables, on fixtures
 * of the mount table and of sysfs, and then what the real machine says.
 */
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include "platform/mountinfo.h"
#include "platform/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXT   0xef53
#define XFS   0x58465342
#define BTRFS 0x9123683e
#define F2FS  0xf2f52010

static sluice_error err;

/* ---- fixtures ---- */

static void make_folders(const char *root, const char *path)
{
    char *whole = test_path(root, path);

    for (char *at = whole + strlen(root) + 1; *at != 0; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    free(whole);
}

static void put(const char *root, const char *path, const char *text)
{
    char *whole = test_path(root, path);
    FILE *file;

    make_folders(root, path);
    file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(whole);
}

static void point(const char *root, const char *path, const char *to)
{
    char *whole = test_path(root, path), *target = test_path(root, to);

    make_folders(root, path);
    assert_int_equal(symlink(target, whole), 0);
    free(whole);
    free(target);
}

/* A disk with one partition: 8:0 sda, 8:1 sda1; and so on for other letters. */
static void put_disk(const char *root, char letter, const char *removable)
{
    unsigned minor = (unsigned)(letter - 'a') * 16;
    char path[128], to[128];

    (void)snprintf(path, sizeof path, "devices/pci/block/sd%c/removable", letter);
    put(root, path, removable);
    (void)snprintf(path, sizeof path, "devices/pci/block/sd%c/sd%c1/partition", letter, letter);
    put(root, path, "1\n");
    (void)snprintf(to, sizeof to, "devices/pci/block/sd%c", letter);
    (void)snprintf(path, sizeof path, "dev/block/8:%u", minor);
    point(root, path, to);
    (void)snprintf(path, sizeof path, "class/block/sd%c", letter);
    point(root, path, to);
    (void)snprintf(to, sizeof to, "devices/pci/block/sd%c/sd%c1", letter, letter);
    (void)snprintf(path, sizeof path, "dev/block/8:%u", minor + 1);
    point(root, path, to);
    (void)snprintf(path, sizeof path, "class/block/sd%c1", letter);
    point(root, path, to);
}

/* A mapping 253:n over a device of `below` (a path in the fixture). */
static void put_mapping(const char *root, unsigned n, const char *name, const char *below)
{
    char path[128], to[128];
    const char *last = strrchr(below, '/') + 1;

    (void)snprintf(path, sizeof path, "devices/virtual/block/dm-%u/removable", n);
    put(root, path, "0\n");
    (void)snprintf(path, sizeof path, "devices/virtual/block/dm-%u/dm/name", n);
    put(root, path, name);
    (void)snprintf(path, sizeof path, "devices/virtual/block/dm-%u/slaves/%s", n, last);
    point(root, path, below);
    (void)snprintf(to, sizeof to, "devices/virtual/block/dm-%u", n);
    (void)snprintf(path, sizeof path, "dev/block/253:%u", n);
    point(root, path, to);
    (void)snprintf(path, sizeof path, "block/dm-%u", n);
    point(root, path, to);
    (void)snprintf(path, sizeof path, "class/block/dm-%u", n);
    point(root, path, to);
}

static void put_loop(const char *root, unsigned n, const char *image)
{
    char path[128], to[128];

    (void)snprintf(path, sizeof path, "devices/virtual/block/loop%u/removable", n);
    put(root, path, "0\n");
    (void)snprintf(path, sizeof path, "devices/virtual/block/loop%u/loop/backing_file", n);
    put(root, path, image);
    (void)snprintf(to, sizeof to, "devices/virtual/block/loop%u", n);
    (void)snprintf(path, sizeof path, "dev/block/7:%u", n);
    point(root, path, to);
}

/* sda fixed, sdb a stick; 8:1 and 8:17 are their partitions. */
static int with_sysfs(void **state)
{
    char *root = test_folder_make();

    put_disk(root, 'a', "0\n");
    put_disk(root, 'b', "1\n");
    put(root, "fs/ext4/sda1/journal_task", "4711\n");
    *state = root;
    return 0;
}

static int with_folder(void **state)
{
    *state = test_folder_make();
    return 0;
}

static int without_folder(void **state)
{
    test_folder_remove(*state);
    return 0;
}

/* Decides for a mount table of one interesting line, id 30, and some around it. */
static sluice_status decide(void **state, long magic, const char *device, const char *type, const char *source,
                            const char *options, pf_access access, pf_filesystem *ret_filesystem)
{
    char table[2048];

    (void)snprintf(table, sizeof table,
                   "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                   "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                   "28 27 0:40 / /tmp rw - tmpfs tmpfs rw,size=1k\n"
                   "29 27 0:41 / /nfs rw - nfs4 server:/x rw\n"
                   "30 27 %s / /data rw,relatime shared:7 master:2 - %s %s %s\n"
                   "31 27 0:42 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/u\n"
                   "32 27 0:43 / /fast rw - overlay overlay rw,upperdir=/u,volatile\n"
                   "33 27 8:17 / /stick rw - ext4 /dev/sdb1 rw\n",
                   device, type, source, options);
    return pf_preflight_decide(magic, table, 30, *state, access, ret_filesystem, &err);
}

static void assert_refused_for(const char *cause, const char *class_name)
{
    char details[128];

    (void)snprintf(details, sizeof details, "{\"class\":\"%s\",\"phase\":\"classify\",\"cause\":\"%s\"}", class_name,
                   cause);
    assert_string_equal(err.details, details);
    assert_null(strstr(err.message, "/data")); /* the place is for the terminal only */
    assert_non_null(strstr(err.text, "/data"));
    assert_true(err.hint[0] != 0);
}

/* ---- the mount table ---- */

static void mounts_are_found_by_id_and_by_path(void **state)
{
    static const char table[] = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                "not a mount\n"
                                "2 1 x:1 / /bad rw - ext4 /dev/sda1 rw\n"
                                "3 1 8:2 / /a rw master:1 propagate_from:2 - xfs /dev/sda2 rw,noquota\n"
                                "4 3 8:3 / /a/b\\040c ro - ext4 /dev/sda3 rw\n"
                                "5 1 8:4 / /a rw - btrfs /dev/sda4 rw\n"
                                "6 1 8:5 / /cut";
    char text[16];
    pf_mount mount;

    (void)state;
    assert_true(pf_mount_by_id(table, 3, &mount));
    assert_int_equal(mount.major, 8);
    assert_int_equal(mount.minor, 2);
    assert_true(pf_slice_is(mount.type, "xfs"));
    assert_true(pf_mount_has(&mount, "noquota"));
    assert_false(pf_mount_has(&mount, "quota"));
    assert_false(pf_mount_by_id(table, 2, &mount));
    assert_false(pf_mount_by_id(table, 6, &mount));
    assert_true(pf_mount_by_path(table, "/a/b c/d", &mount));
    assert_int_equal(mount.id, 4);
    assert_true(pf_mount_has(&mount, "ro"));
    pf_slice_copy(mount.point, text, sizeof text);
    assert_string_equal(text, "/a/b c");
    pf_slice_copy(mount.point, text, 5);
    assert_string_equal(text, "/a/b");
    assert_true(pf_mount_by_path(table, "/a/x", &mount)); /* the one mounted last hides the other */
    assert_int_equal(mount.id, 5);
    assert_true(pf_mount_by_path(table, "/ab", &mount));
    assert_int_equal(mount.id, 1);
    assert_false(pf_mount_by_path(table, "relative", &mount));
}

/* ---- kinds ---- */

static void every_admitted_kind_is_admitted(void **state)
{
    static const struct {
        long magic;
        const char *type;
        bool journal;
    } rows[] = {
        {EXT, "ext4", true}, {EXT, "ext3", true}, {EXT, "ext2", false}, {XFS, "xfs", true}, {F2FS, "f2fs", true}};
    pf_filesystem fs;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ASSERT_OK(decide(state, rows[i].magic, "8:1", rows[i].type, "/dev/sda1", "rw", PF_WRITE, &fs));
        assert_string_equal(fs.class_name, rows[i].type);
        assert_string_equal(fs.mount_point, "/data");
        assert_int_equal(fs.journal, rows[i].journal);
        assert_false(fs.data_writeback);
        assert_false(fs.read_only);
    }
    ASSERT_OK(decide(state, BTRFS, "0:50", "btrfs", "/dev/sda1", "rw,subvol=/x", PF_WRITE, &fs));
    assert_string_equal(fs.class_name, "btrfs");
    assert_true(fs.journal);
}

static void every_refused_kind_is_refused_by_name(void **state)
{
    static const struct {
        long magic;
        const char *name;
    } rows[] = {{0x2fc12fc1, "zfs"},      {0x01021994, "tmpfs"}, {0x858458f6, "ramfs"}, {0x794c7630, "overlay"},
                {0x65735546, "fuse"},     {0x01021997, "9p"},    {0x6969, "nfs"},       {0x517b, "smb"},
                {0xff534d42, "cifs"},     {0xfe534d42, "smb2"},  {0x00c36400, "ceph"},  {0x5346414f, "afs"},
                {0x7461636f, "ocfs2"},    {0x4d44, "fat"},       {0x2011bab0, "exfat"}, {0xf15f, "ecryptfs"},
                {0x73717368, "squashfs"}, {-11317950, "cifs"}}; /* as a signed 32-bit f_type gives it */
    pf_filesystem fs;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM,
                     decide(state, rows[i].magic, "8:1", "anything", "/dev/sda1", "rw", PF_WRITE, &fs));
        assert_refused_for("kind", rows[i].name);
        assert_non_null(strstr(err.text, rows[i].name));
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM,
                     decide(state, rows[i].magic, "8:1", "anything", "/dev/sda1", "rw", PF_READ, &fs));
    }
}

static void an_unknown_kind_is_refused(void **state)
{
    pf_filesystem fs;

    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM,
                 decide(state, 0x12345678, "8:1", "novelfs", "/dev/sda1", "rw", PF_WRITE, &fs));
    assert_refused_for("unknown_kind", "unknown");
    assert_non_null(strstr(err.text, "novelfs"));
    assert_null(strstr(err.message, "novelfs"));
    /* a mount that says something else than its magic */
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, decide(state, EXT, "8:1", "fuseblk", "/dev/sda1", "rw", PF_WRITE, &fs));
    assert_refused_for("unknown_kind", "ext4");
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, decide(state, XFS, "8:1", "ext4", "/dev/sda1", "rw", PF_WRITE, &fs));
}

static void a_mount_that_is_not_listed_is_refused_to_writers(void **state)
{
    pf_filesystem fs;

    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_decide(EXT, "", 30, *state, PF_WRITE, &fs, &err));
    assert_non_null(strstr(err.details, "unknown_mount"));
    ASSERT_OK(pf_preflight_decide(EXT, "", 30, *state, PF_READ, &fs, &err));
    assert_string_equal(fs.class_name, "ext4");
    assert_false(fs.journal);
}

/* ---- options ---- */

static void every_weakening_option_is_refused_to_writers_by_name(void **state)
{
    static const struct {
        long magic;
        const char *type, *options, *cause, *shown;
    } rows[] = {
        {EXT, "ext4", "ro", "read_only", "read-only"},
        {EXT, "ext4", "rw,nobarrier", "barriers", "nobarrier"},
        {EXT, "ext4", "rw,barrier=0,data=ordered", "barriers", "barrier=0"},
        {EXT, "ext3", "rw,noload", "recovery", "noload"},
        {EXT, "ext4", "ro,norecovery", "read_only", "read-only"},
        {EXT, "ext4", "rw,emergency_ro", "read_only", "error"},
        {EXT, "ext4", "rw,shutdown", "read_only", "error"},
        {XFS, "xfs", "rw,nobarrier,attr2", "barriers", "nobarrier"},
        {XFS, "xfs", "rw,norecovery", "recovery", "norecovery"},
        {BTRFS, "btrfs", "rw,nobarrier", "barriers", "nobarrier"},
        {BTRFS, "btrfs", "rw,nologreplay", "recovery", "nologreplay"},
        {BTRFS, "btrfs", "rw,rescue=nologreplay", "recovery", "rescue"},
        {F2FS, "f2fs", "rw,nobarrier", "barriers", "nobarrier"},
        {F2FS, "f2fs", "rw,fsync_mode=nobarrier", "fsync_mode", "fsync_mode=nobarrier"},
        {F2FS, "f2fs", "rw,checkpoint=disable", "checkpoint", "checkpoint=disable"},
    };
    pf_filesystem fs;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM,
                     decide(state, rows[i].magic, "8:1", rows[i].type, "/dev/sda1", rows[i].options, PF_WRITE, &fs));
        assert_refused_for(rows[i].cause, rows[i].type);
        assert_non_null(strstr(err.text, rows[i].shown));
        ASSERT_OK(decide(state, rows[i].magic, "8:1", rows[i].type, "/dev/sda1", rows[i].options, PF_READ, &fs));
    }
}

static void harmless_options_are_admitted(void **state)
{
    pf_filesystem fs;

    ASSERT_OK(decide(state, EXT, "8:1", "ext4", "/dev/sda1",
                     "rw,errors=remount-ro,barrier=1,barrier,nodelalloc,noauto_da_alloc", PF_WRITE, &fs));
    ASSERT_OK(decide(state, F2FS, "8:1", "f2fs", "/dev/sda1", "rw,fsync_mode=posix,checkpoint_merge", PF_WRITE, &fs));
    ASSERT_OK(decide(state, EXT, "8:1", "ext4", "/dev/sda1", "rw,data=writeback", PF_WRITE, &fs));
    assert_true(fs.data_writeback);
    ASSERT_OK(decide(state, EXT, "8:1", "ext4", "/dev/sda1", "ro", PF_READ, &fs));
    assert_true(fs.read_only);
}

static void a_read_only_bind_of_a_writable_file_system_is_read_only(void **state)
{
    static const char table[] = "30 1 8:1 / /data ro,relatime - ext4 /dev/sda1 rw\n";
    pf_filesystem fs;

    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_decide(EXT, table, 30, *state, PF_WRITE, &fs, &err));
    assert_refused_for("read_only", "ext4");
    assert_non_null(strstr(err.hint, "remount,rw /data"));
}

/* ---- journals ---- */

static void a_missing_journal_is_said_and_never_assumed(void **state)
{
    char *root = *state;
    pf_filesystem fs;

    ASSERT_OK(decide(state, EXT, "8:1", "ext4", "/dev/sda1", "rw", PF_WRITE, &fs));
    assert_true(fs.journal);
    put(root, "fs/ext4/sda1/journal_task", "<none>\n");
    ASSERT_OK(decide(state, EXT, "8:1", "ext4", "/dev/sda1", "rw", PF_WRITE, &fs));
    assert_false(fs.journal);
    ASSERT_OK(decide(state, EXT, "8:0", "ext4", "/dev/sda", "rw", PF_WRITE, &fs)); /* sysfs does not tell */
    assert_false(fs.journal);
    put_mapping(root, 3, "vg-data\n", "devices/pci/block/sda/sda1");
    put(root, "fs/ext4/dm-3/journal_task", "12\n");
    ASSERT_OK(decide(state, EXT, "253:3", "ext4", "/dev/mapper/vg-data", "rw", PF_WRITE, &fs));
    assert_true(fs.journal);
}

/* ---- devices ---- */

static void refuse_device(void **state, const char *device, const char *cause, const char *name)
{
    pf_filesystem fs;

    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, decide(state, EXT, device, "ext4", "/dev/x", "rw", PF_WRITE, &fs));
    assert_refused_for(cause, "ext4");
    assert_non_null(strstr(err.hint, name));
    ASSERT_OK(decide(state, EXT, device, "ext4", "/dev/x", "rw", PF_READ, &fs));
}

static void accept_device(void **state, const char *device)
{
    pf_filesystem fs;

    ASSERT_OK(decide(state, EXT, device, "ext4", "/dev/x", "rw", PF_WRITE, &fs));
}

static void a_removable_disk_is_refused_through_its_partitions(void **state)
{
    accept_device(state, "8:0");
    accept_device(state, "8:1");
    refuse_device(state, "8:16", "removable", "sdb");
    refuse_device(state, "8:17", "removable", "sdb");
}

static void a_memory_card_is_refused_and_a_soldered_chip_is_not(void **state)
{
    char *root = *state;

    put(root, "devices/mmc/block/mmcblk0/removable", "0\n");
    put(root, "devices/mmc/block/mmcblk0/device/type", "SD\n");
    point(root, "dev/block/179:0", "devices/mmc/block/mmcblk0");
    put(root, "devices/mmc/block/mmcblk1/removable", "0\n");
    put(root, "devices/mmc/block/mmcblk1/device/type", "MMC\n");
    point(root, "dev/block/179:8", "devices/mmc/block/mmcblk1");
    refuse_device(state, "179:0", "removable", "mmcblk0");
    accept_device(state, "179:8");
}

static void mappings_are_followed_to_their_disks(void **state)
{
    char *root = *state;

    put_mapping(root, 0, "crypt\n", "devices/pci/block/sda/sda1");
    put_mapping(root, 1, "usb-crypt\n", "devices/pci/block/sdb/sdb1");
    put_mapping(root, 2, "lv\n", "devices/virtual/block/dm-1");
    accept_device(state, "253:0");
    refuse_device(state, "253:1", "removable", "sdb");
    refuse_device(state, "253:2", "removable", "sdb");
}

static void a_raid_is_as_fixed_as_its_least_member(void **state)
{
    char *root = *state;

    put(root, "devices/virtual/block/md0/removable", "0\n");
    point(root, "devices/virtual/block/md0/slaves/sda1", "devices/pci/block/sda/sda1");
    point(root, "dev/block/9:0", "devices/virtual/block/md0");
    accept_device(state, "9:0");
    point(root, "devices/virtual/block/md0/slaves/sdb1", "devices/pci/block/sdb/sdb1");
    refuse_device(state, "9:0", "removable", "sdb");
}

static void a_loop_is_followed_to_what_its_image_lies_on(void **state)
{
    char *root = *state;

    put_loop(root, 0, "/images/a.img\n");
    put_loop(root, 1, "/stick/a.img\n");
    put_loop(root, 2, "/tmp/a.img\n");
    put_loop(root, 3, "/nfs/a.img\n");
    put_loop(root, 4, "/over/a.img\n");
    put_loop(root, 5, "/fast/a.img\n");
    put_loop(root, 6, "images/relative\n");
    accept_device(state, "7:0");
    refuse_device(state, "7:1", "removable", "sdb");
    refuse_device(state, "7:2", "volatile", "loop2");
    refuse_device(state, "7:3", "image", "loop3");
    accept_device(state, "7:4"); /* an overlay passes a flush on */
    refuse_device(state, "7:5", "volatile", "loop5");
    refuse_device(state, "7:6", "unknown_device", "loop6");
}

static void a_loop_on_itself_ends(void **state)
{
    char *root = *state;

    put_loop(root, 9, "/data/inside.img\n");
    refuse_device(state, "7:9", "unknown_device", "9");
}

static void disks_in_memory_are_refused(void **state)
{
    char *root = *state;

    put(root, "devices/virtual/block/zram0/removable", "0\n");
    point(root, "dev/block/254:0", "devices/virtual/block/zram0");
    put(root, "devices/virtual/block/ram3/removable", "0\n");
    point(root, "dev/block/1:3", "devices/virtual/block/ram3");
    put(root, "devices/virtual/block/ramdisk/removable", "0\n"); /* only looks like one */
    point(root, "dev/block/1:4", "devices/virtual/block/ramdisk");
    refuse_device(state, "254:0", "volatile", "zram0");
    refuse_device(state, "1:3", "volatile", "ram3");
    accept_device(state, "1:4");
}

static void a_device_that_sysfs_does_not_know_is_refused(void **state)
{
    char *root = *state;

    refuse_device(state, "8:99", "unknown_device", "8:99");
    put(root, "devices/odd/block/odd0/size", "1\n"); /* no removable flag */
    point(root, "dev/block/240:0", "devices/odd/block/odd0");
    refuse_device(state, "240:0", "unknown_device", "odd0");
    put_mapping(root, 4, "broken\n", "devices/pci/block/sdz/sdz9"); /* a link into nothing */
    refuse_device(state, "253:4", "unknown_device", "sdz9");
}

static void the_devices_of_a_btrfs_are_found_by_its_source(void **state)
{
    char *root = *state;
    pf_filesystem fs;

#define BTRFS_ON(source) decide(state, BTRFS, "0:50", "btrfs", (source), "rw", PF_WRITE, &fs)
    ASSERT_OK(BTRFS_ON("/dev/sda1"));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("/dev/sdb1"));
    assert_refused_for("removable", "btrfs");
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("/dev/root"));
    assert_refused_for("unknown_device", "btrfs");
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("none"));
    put_mapping(root, 0, "crypt\n", "devices/pci/block/sda/sda1");
    put_mapping(root, 1, "usb-crypt\n", "devices/pci/block/sdb/sdb1");
    ASSERT_OK(BTRFS_ON("/dev/mapper/crypt"));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("/dev/mapper/usb-crypt"));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("/dev/mapper/none"));
    /* its other devices count too */
    point(root, "fs/btrfs/1234/devices/sda1", "devices/pci/block/sda/sda1");
    ASSERT_OK(BTRFS_ON("/dev/sda1"));
    point(root, "fs/btrfs/1234/devices/sdb1", "devices/pci/block/sdb/sdb1");
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, BTRFS_ON("/dev/sda1"));
    assert_refused_for("removable", "btrfs");
}

/* ---- this machine ---- */

static void the_place_of_the_tests_is_admitted(void **state)
{
    char *missing = test_path(*state, "graph"), *deep = test_path(*state, "no/graph");
    pf_filesystem fs, same;

    ASSERT_OK(pf_preflight_classify(*state, PF_WRITE, &fs, &err));
    assert_true(fs.class_name[0] != 0 && fs.mount_point[0] == '/');
    assert_false(fs.read_only);
    ASSERT_OK(pf_preflight_classify(missing, PF_WRITE, &same, &err)); /* its parent decides */
    assert_string_equal(same.class_name, fs.class_name);
    assert_string_equal(same.mount_point, fs.mount_point);
    assert_int_equal(same.journal, fs.journal);
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_preflight_classify(deep, PF_WRITE, &fs, &err));
    free(missing);
    free(deep);
}

static void a_link_on_the_way_is_refused(void **state)
{
    char *real = test_path(*state, "real"), *link = test_path(*state, "link"), *below = test_path(*state, "link/graph");
    pf_filesystem fs;

    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink(real, link), 0);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_classify(link, PF_WRITE, &fs, &err));
    assert_non_null(strstr(err.hint, real));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_classify(below, PF_WRITE, &fs, &err));
    free(real);
    free(link);
    free(below);
}

static void proc_and_memory_are_refused_where_they_are(void **state)
{
    struct statfs st;
    pf_filesystem fs;

    (void)state;
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_classify("/proc", PF_WRITE, &fs, &err));
    if (statfs("/dev/shm", &st) == 0 && st.f_type == 0x01021994) {
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_classify("/dev/shm/graph", PF_WRITE, &fs, &err));
        assert_non_null(strstr(err.details, "\"class\":\"tmpfs\""));
        assert_non_null(strstr(err.text, "/dev/shm"));
    }
}

int main(void)
{
#define ROW(test)  cmocka_unit_test_setup_teardown(test, with_sysfs, without_folder)
#define LIVE(test) cmocka_unit_test_setup_teardown(test, with_folder, without_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_are_found_by_id_and_by_path),
        ROW(every_admitted_kind_is_admitted),
        ROW(every_refused_kind_is_refused_by_name),
        ROW(an_unknown_kind_is_refused),
        ROW(a_mount_that_is_not_listed_is_refused_to_writers),
        ROW(every_weakening_option_is_refused_to_writers_by_name),
        ROW(harmless_options_are_admitted),
        ROW(a_read_only_bind_of_a_writable_file_system_is_read_only),
        ROW(a_missing_journal_is_said_and_never_assumed),
        ROW(a_removable_disk_is_refused_through_its_partitions),
        ROW(a_memory_card_is_refused_and_a_soldered_chip_is_not),
        ROW(mappings_are_followed_to_their_disks),
        ROW(a_raid_is_as_fixed_as_its_least_member),
        ROW(a_loop_is_followed_to_what_its_image_lies_on),
        ROW(a_loop_on_itself_ends),
        ROW(disks_in_memory_are_refused),
        ROW(a_device_that_sysfs_does_not_know_is_refused),
        ROW(the_devices_of_a_btrfs_are_found_by_its_source),
        LIVE(the_place_of_the_tests_is_admitted),
        LIVE(a_link_on_the_way_is_refused),
        LIVE(proc_and_memory_are_refused_where_they_are),
    };
    return cmocka_run_group_tests_name("preflight", tests, NULL, NULL);
}
