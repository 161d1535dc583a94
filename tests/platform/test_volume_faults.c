/*
 * The volume among enemies and on failing machines (F-06, F-07, F-10, OD-014, OD-022, OD-023): links, pipes and foreign
 * files put in its way, limits, full and dying disks. Whatever happens is a typed error, nothing outside the root is
 * touched, and nothing hangs. What needs root says so when it is skipped.
 */
#include "loop_disk.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include "platform/preflight.h"
#include "platform/volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static sluice_error err;

/* STATE/graph with folder "inner" and file "inner/file", and beside it STATE/outside with "file". */
typedef struct scene {
    char *folder, *root, *outside, *inner, *file;
} scene;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int with_scene(void **state)
{
    scene *s = calloc(1, sizeof *s);
    char *victim;
    pf_volume *volume;
    pf_file *file;

    assert_non_null(s);
    s->folder = test_folder_make();
    s->root = test_path(s->folder, "graph");
    s->outside = test_path(s->folder, "outside");
    s->inner = test_path(s->root, "inner");
    s->file = test_path(s->inner, "file");
    ASSERT_OK(pf_volume_make(s->root, &volume, &err));
    ASSERT_OK(pf_make_folder(volume, "inner", &err));
    ASSERT_OK(pf_create(volume, "inner/file", &file, &err));
    ASSERT_OK(pf_write(file, 0, "inside", 6, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    assert_int_equal(mkdir(s->outside, 0700), 0);
    victim = test_path(s->outside, "file");
    write_file(victim, "victim");
    free(victim);
    *state = s;
    return 0;
}

static int without_scene(void **state)
{
    scene *s = *state;

    free(s->root);
    free(s->outside);
    free(s->inner);
    free(s->file);
    test_folder_remove(s->folder);
    free(s);
    return 0;
}

static pf_volume *open_volume(const scene *s)
{
    pf_volume *volume;

    ASSERT_OK(pf_volume_open(s->root, PF_WRITE, &volume, &err));
    return volume;
}

static void assert_outside_untouched(const scene *s)
{
    char *victim = test_path(s->outside, "file"), text[16] = {0};
    DIR *dir = opendir(s->outside);
    unsigned entries = 0;
    int fd = open(victim, O_RDONLY | O_CLOEXEC);

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        entries++;
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(entries, 3);
    assert_int_equal(read(fd, text, sizeof text - 1), 6);
    assert_string_equal(text, "victim");
    assert_int_equal(close(fd), 0);
    free(victim);
}

/* ---- links ---- */

static sluice_status ignore_entry(void *context, const char *name, pf_kind kind, sluice_error *error)
{
    (void)context;
    (void)name;
    (void)kind;
    (void)error;
    return SLUICE_OK;
}

static void a_link_in_the_root_path_is_refused(void **state)
{
    scene *s = *state;
    char *link = test_path(s->folder, "link"), *through = test_path(s->folder, "up/graph"), *made;
    char *up = test_path(s->folder, "up"), *slash = test_path(s->folder, "link/");
    pf_volume *volume;

    assert_int_equal(symlink(s->root, link), 0);
    assert_int_equal(symlink(s->folder, up), 0);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_volume_open(link, PF_WRITE, &volume, &err));
    assert_non_null(strstr(err.text, s->root)); /* shows where it really leads */
    assert_null(strstr(err.message, s->root));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_volume_open(link, PF_READ, &volume, &err));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_volume_open(slash, PF_READ, &volume, &err));
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_volume_open(through, PF_WRITE, &volume, &err));
    made = test_path(up, "new");
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_volume_make(made, &volume, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_volume_make(link, &volume, &err));
    free(link);
    free(through);
    free(up);
    free(made);
    free(slash);
}

static void a_link_as_a_folder_is_never_walked(void **state)
{
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    pf_file *file;
    pf_stat st;

    assert_int_equal(unlink(s->file), 0);
    assert_int_equal(rmdir(s->inner), 0);
    assert_int_equal(symlink("../outside", s->inner), 0);
#define REFUSED(call) ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, call)
    REFUSED(pf_open(volume, "inner/file", PF_READ, &file, &err));
    REFUSED(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    REFUSED(pf_create(volume, "inner/new", &file, &err));
    REFUSED(pf_make_folder(volume, "inner/new", &err));
    REFUSED(pf_remove(volume, "inner/file", &err));
    REFUSED(pf_remove_folder(volume, "inner/new", &err));
    REFUSED(pf_publish(volume, "inner/file", "taken", &err));
    REFUSED(pf_sync_dir(volume, "inner", &err));
    REFUSED(pf_list(volume, "inner", ignore_entry, NULL, &err));
    REFUSED(pf_stat_path(volume, "inner/file", &st, &err));
    ASSERT_OK(pf_create(volume, "mine", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    REFUSED(pf_publish(volume, "mine", "inner/mine", &err));
    ASSERT_OK(pf_stat_path(volume, "inner", &st, &err)); /* told as what it is */
    assert_int_equal(st.kind, PF_KIND_OTHER);
    assert_outside_untouched(s);
    pf_volume_close(volume);
}

static void a_link_as_a_file_is_never_opened(void **state)
{
    static const char *const targets[] = {"../../outside/file", "/etc/passwd", "nowhere", "file2"};
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    pf_file *file;

    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        assert_int_equal(unlink(s->file), 0);
        assert_int_equal(symlink(targets[i], s->file), 0);
        REFUSED(pf_open(volume, "inner/file", PF_READ, &file, &err));
        REFUSED(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
        ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_create(volume, "inner/file", &file, &err));
    }
    ASSERT_OK(pf_remove(volume, "inner/file", &err)); /* the link, not its target */
    assert_outside_untouched(s);
    pf_volume_close(volume);
}

typedef struct swap_story {
    const scene *scene;
    volatile unsigned stop;
} swap_story;

/* In a child: "inner" is now a folder, now a link out of the graph, as fast as it goes. */
static int swap_folder(void *context)
{
    swap_story *story = context;
    char *link = test_path(story->scene->folder, "link");

    if (symlink("../outside", link) != 0)
        return 1;
    while (story->stop == 0)
        if (renameat2(AT_FDCWD, story->scene->inner, AT_FDCWD, link, RENAME_EXCHANGE) != 0)
            return 2;
    free(link);
    return 0;
}

static void a_link_swapped_in_at_any_moment_leads_nowhere(void **state)
{
    scene *s = *state;
    swap_story *story = test_shared(sizeof *story);
    pf_volume *volume = open_volume(s);
    unsigned done = 0, refused = 0;
    pid_t child;

    story->scene = s;
    child = test_child(swap_folder, story);
    for (unsigned i = 0; i < 4000 && (i < 400 || done == 0 || refused == 0); i++) {
        char name[32];
        pf_file *file;
        sluice_status status;
        (void)snprintf(name, sizeof name, "inner/%u", i);
        status = pf_create(volume, name, &file, &err);
        if (status == SLUICE_OK) {
            done++;
            ASSERT_OK(pf_close(file, &err));
            status = pf_remove(volume, name, &err);
            assert_true(status == SLUICE_OK || status == SLUICE_UNSUPPORTED_FILESYSTEM);
        } else {
            assert_int_equal(status, SLUICE_UNSUPPORTED_FILESYSTEM);
            refused++;
        }
    }
    story->stop = 1;
    test_child_expect_exit(child, 0);
    assert_outside_untouched(s);
    assert_true(done > 0);
    pf_volume_close(volume);
}

static void a_second_name_of_a_file_is_corrupt(void **state)
{
    scene *s = *state;
    char *second = test_path(s->outside, "second");
    pf_volume *volume = open_volume(s);
    pf_file *file;

    assert_int_equal(link(s->file, second), 0);
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "inner/file", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    assert_int_equal(unlink(second), 0);
    ASSERT_OK(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    free(second);
    pf_volume_close(volume);
}

/* ---- things that are no files ---- */

static void a_pipe_socket_or_device_in_place_of_a_file_never_hangs(void **state)
{
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *cwd = getcwd(NULL, 0);
    pf_file *file;
    int fd;

    assert_int_equal(unlink(s->file), 0);
    assert_int_equal(mkfifo(s->file, 0600), 0);
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "inner/file", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    assert_int_equal(unlink(s->file), 0);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_non_null(cwd);
    assert_int_equal(chdir(s->inner), 0); /* the path of a socket is short */
    (void)snprintf(address.sun_path, sizeof address.sun_path, "file");
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(chdir(cwd), 0);
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(s->file), 0);
    if (geteuid() == 0 && mknod(s->file, S_IFCHR | 0600, makedev(1, 3)) == 0) {
        sluice_status status = pf_open(volume, "inner/file", PF_WRITE, &file, &err);
        assert_true(status == SLUICE_CORRUPT || status == SLUICE_PERMISSION); /* the latter on a nodev mount */
    }
    free(cwd);
    pf_volume_close(volume);
}

/* ---- permissions ---- */

static void a_file_that_others_can_write_is_refused(void **state)
{
    static const mode_t modes[] = {0620, 0602, 0666};
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    pf_file *file;

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(s->file, modes[i]), 0);
        ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "inner/file", PF_READ, &file, &err));
        ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    }
    assert_int_equal(chmod(s->file, 0644), 0); /* reading does no harm */
    ASSERT_OK(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_foreign_file_is_refused(void **state)
{
    scene *s = *state;
    pf_volume *volume;
    pf_file *file;

    if (geteuid() != 0) {
        print_message("    skipped: giving a file away needs root\n");
        skip();
    }
    volume = open_volume(s);
    assert_int_equal(chown(s->file, 12345, 12345), 0);
    ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "inner/file", PF_READ, &file, &err));
    pf_volume_close(volume);
}

static void a_default_acl_does_not_widen_what_we_make(void **state)
{
    /* user::rwx user:1234:rwx group::rwx mask::rwx other::r-x, as the kernel keeps it */
    static const uint8_t acl[] = {2, 0,   0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                                  0, 210, 4,   0,   0,   4,   0,  7, 0,   255, 255, 255, 255, 16, 0,
                                  7, 0,   255, 255, 255, 255, 32, 0, 5,   0,   255, 255, 255, 255};
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    pf_file *file;
    pf_stat st;

    if (setxattr(s->inner, "system.posix_acl_default", acl, sizeof acl, 0) != 0) {
        print_message("    skipped: no access control lists here\n");
        pf_volume_close(volume);
        skip();
    }
    ASSERT_OK(pf_create(volume, "inner/new", &file, &err));
    ASSERT_OK(pf_file_stat(file, &st, &err));
    assert_int_equal(st.mode, 0600); /* the mask is part of it: the named user has nothing */
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_make_folder(volume, "inner/folder", &err));
    ASSERT_OK(pf_stat_path(volume, "inner/folder", &st, &err));
    assert_int_equal(st.mode, 0700);
    pf_volume_close(volume);
}

/* ---- swapped after opening ---- */

static void a_folder_swapped_after_opening_is_noticed(void **state)
{
    scene *s = *state;
    pf_volume *volume = open_volume(s);
    char *aside = test_path(s->root, "aside");
    pf_file *file;
    pf_stat st;

    ASSERT_OK(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    assert_int_equal(rename(s->inner, aside), 0);
    assert_int_equal(mkdir(s->inner, 0700), 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_file_check_identity(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    write_file(s->file, "copied"); /* a restored copy is another file */
    ASSERT_FAILS(SLUICE_FENCED, pf_file_check_identity(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_stat_path(volume, "inner/file", &st, &err));
    ASSERT_OK(pf_close(file, &err));
    free(aside);
    pf_volume_close(volume);
}

/* ---- limits, each in a child of its own ---- */

static int run_without_descriptors(void *context)
{
    const scene *s = context;
    struct rlimit limit;
    pf_volume *volume;
    pf_file *file, *more;
    sluice_error e;
    pf_stat st;

    if (pf_volume_open(s->root, PF_WRITE, &volume, &e) != SLUICE_OK ||
        pf_open(volume, "inner/file", PF_WRITE, &file, &e) != SLUICE_OK)
        return 1;
    limit.rlim_cur = limit.rlim_max = 3; /* what is open stays open, and no more */
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 2;
    if (pf_open(volume, "inner/file", PF_READ, &more, &e) != SLUICE_RESOURCE_LIMIT)
        return 3;
    if (pf_create(volume, "inner/new", &more, &e) != SLUICE_RESOURCE_LIMIT)
        return 4;
    if (pf_publish(volume, "inner/file", "inner/other", &e) != SLUICE_RESOURCE_LIMIT ||
        pf_remove(volume, "inner/file", &e) != SLUICE_RESOURCE_LIMIT ||
        pf_sync_dir(volume, "inner", &e) != SLUICE_RESOURCE_LIMIT ||
        pf_list(volume, "inner", ignore_entry, NULL, &e) != SLUICE_RESOURCE_LIMIT ||
        pf_stat_path(volume, "inner", &st, &e) != SLUICE_RESOURCE_LIMIT)
        return 5;
    /* want of descriptors is no sign of a moved folder: none is needed to look */
    if (pf_volume_check_identity(volume, &e) != SLUICE_OK)
        return 6;
    /* and what is open goes on, locked and known to be the file that it was */
    if (pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &e) != SLUICE_OK ||
        pf_file_check_identity(file, &e) != SLUICE_OK)
        return 7;
    if (pf_write(file, 0, "x", 1, &e) != SLUICE_OK || pf_sync(file, &e) != SLUICE_OK)
        return 8;
    if (pf_close(file, &e) != SLUICE_OK)
        return 9;
    return 0;
}

static void running_out_of_descriptors_is_a_limit_and_nothing_else(void **state)
{
    scene *s = *state;

    test_child_expect_exit(test_child(run_without_descriptors, s), 0);
    assert_int_equal(access(s->file, F_OK), 0);
}

static int write_past_the_size_limit(void *context)
{
    const scene *s = context;
    struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
    static uint8_t bytes[20000];
    pf_volume *volume;
    pf_file *file;
    sluice_error e;
    pf_stat st;

    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || pf_volume_open(s->root, PF_WRITE, &volume, &e) != SLUICE_OK ||
        pf_open(volume, "inner/file", PF_WRITE, &file, &e) != SLUICE_OK)
        return 1;
    if (pf_write(file, 0, bytes, sizeof bytes, &e) != SLUICE_RESOURCE_LIMIT)
        return 2;
    if (pf_file_stat(file, &st, &e) != SLUICE_OK || st.size != 10000) /* a short write, gone on with until the limit */
        return 3;
    if (pf_volume_counters(volume)->bytes_written != 10000)
        return 4;
    return pf_zero_fill(file, 20000, &e) == SLUICE_RESOURCE_LIMIT ? 0 : 5;
}

static void a_size_limit_is_typed_after_a_short_write(void **state)
{
    test_child_expect_exit(test_child(write_past_the_size_limit, *state), 0);
}

/* ---- disks of our own ---- */

typedef struct disk {
    char *image, *point, *root;
} disk;

static disk disk_made(const scene *s, const char *name, unsigned megabytes, const char *mkfs, const char *options)
{
    disk d;
    char image[64];

    (void)snprintf(image, sizeof image, "%s.img", name);
    d.image = test_path(s->folder, image);
    d.point = test_path(s->folder, name);
    d.root = test_path(d.point, "graph");
    loop_disk_mount(d.image, megabytes, mkfs, d.point, options);
    return d;
}

static void disk_gone(disk *d)
{
    loop_disk_unmount(d->point);
    assert_int_equal(unlink(d->image), 0);
    free(d->image);
    free(d->point);
    free(d->root);
}

static void a_full_disk_is_typed_and_leaves_the_volume_usable(void **state)
{
    static uint8_t bytes[1 << 20];
    sluice_status status = SLUICE_OK;
    pf_volume *volume;
    pf_file *file, *reserve;
    disk d;

    if (!loop_disk_is_possible())
        skip();
    d = disk_made(*state, "full", 8, "", "");
    memset(bytes, 'x', sizeof bytes);
    ASSERT_OK(pf_volume_make(d.root, &volume, &err));
    ASSERT_OK(pf_create(volume, "reserve", &reserve, &err));
    ASSERT_OK(pf_zero_fill(reserve, 1 << 20, &err));
    ASSERT_OK(pf_sync(reserve, &err));
    ASSERT_OK(pf_close(reserve, &err));
    ASSERT_OK(pf_create(volume, "big", &file, &err));
    for (unsigned i = 0; i < 16 && status == SLUICE_OK; i++)
        status = pf_write(file, (uint64_t)i << 20, bytes, sizeof bytes, &err);
    assert_int_equal(status, SLUICE_NO_SPACE);
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_zero_fill(file, 1 << 25, &err));
    ASSERT_OK(pf_write(file, 0, "overwritten in place", 20, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_remove(volume, "reserve", &err));
    ASSERT_OK(pf_create(volume, "recovery", &reserve, &err));
    ASSERT_OK(pf_write(reserve, 0, bytes, 500000, &err));
    ASSERT_OK(pf_sync(reserve, &err));
    ASSERT_OK(pf_close(reserve, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    disk_gone(&d);
}

/* An image that claims more than the disk below it has: what is written to it is accepted, and fails when it is synced.
 */
static void a_failed_sync_is_final_on_a_real_disk(void **state)
{
    static uint8_t bytes[1 << 20];
    sluice_status status = SLUICE_OK;
    pf_volume *volume;
    pf_file *file;
    disk outer, inner;
    char *image, *point;

    if (!loop_disk_is_possible())
        skip();
    outer = disk_made(*state, "outer", 12, "-O ^has_journal", "");
    image = test_path(outer.point, "inner.img");
    point = test_path(outer.point, "inner");
    loop_disk_mount(image, 64, "-O ^has_journal -E lazy_itable_init=1", point, "errors=continue");
    inner = (disk){.image = image, .point = point, .root = test_path(point, "graph")};
    ASSERT_OK(pf_volume_make(inner.root, &volume, &err));
    ASSERT_OK(pf_create(volume, "a", &file, &err));
    memset(bytes, 'x', sizeof bytes);
    for (unsigned i = 0; i < 24 && status == SLUICE_OK; i++)
        status = pf_write(file, (uint64_t)i << 20, bytes, sizeof bytes, &err);
    assert_int_equal(status, SLUICE_OK); /* there is space, as far as this file system knows */
    status = pf_sync(file, &err);
    assert_true(status == SLUICE_IO || status == SLUICE_NO_SPACE);
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err)); /* the kernel would say yes now */
    ASSERT_FAILS(SLUICE_IO, pf_write(file, 0, "y", 1, &err));
    ASSERT_OK(pf_read_exact(file, 0, bytes, 1, &err)); /* it can still be looked at */
    (void)pf_close(file, &err);
    pf_volume_close(volume);
    disk_gone(&inner);
    disk_gone(&outer);
}

static void a_read_only_disk_can_be_read_and_nothing_else(void **state)
{
    pf_filesystem fs;
    pf_volume *volume;
    pf_file *file;
    disk d;

    if (!loop_disk_is_possible())
        skip();
    d = disk_made(*state, "frozen", 8, "", "");
    ASSERT_OK(pf_volume_make(d.root, &volume, &err));
    ASSERT_OK(pf_create(volume, "a", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    assert_int_equal(mount(NULL, d.point, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, pf_preflight_classify(d.root, PF_WRITE, &fs, &err));
    assert_non_null(strstr(err.details, "read_only"));
    ASSERT_OK(pf_preflight_classify(d.root, PF_READ, &fs, &err));
    assert_true(fs.read_only);
    ASSERT_FAILS(SLUICE_PERMISSION, pf_preflight_probe(d.point, NULL, &err));
    ASSERT_OK(pf_volume_open(d.root, PF_READ, &volume, &err));
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    ASSERT_OK(pf_volume_open(d.root, PF_WRITE, &volume, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_create(volume, "b", &file, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "a", PF_WRITE, &file, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_remove(volume, "a", &err));
    pf_volume_close(volume);
    disk_gone(&d);
}

static void disks_with_and_without_a_journal_get_the_stated_answer(void **state)
{
    static const struct {
        const char *mkfs, *options, *cause;
        bool journal, writeback;
    } rows[] = {
        {"", "", NULL, true, false},
        {"-O ^has_journal", "", NULL, false, false},
        {"", "data=writeback", NULL, true, true},
        {"", "nobarrier", "barriers", true, false},
    };
    pf_filesystem fs;

    if (!loop_disk_is_possible())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        disk d = disk_made(*state, "kind", 8, rows[i].mkfs, rows[i].options);
        sluice_status status = pf_preflight_classify(d.root, PF_WRITE, &fs, &err);
        assert_int_equal(status, rows[i].cause == NULL ? SLUICE_OK : SLUICE_UNSUPPORTED_FILESYSTEM);
        if (rows[i].cause != NULL) {
            assert_non_null(strstr(err.details, rows[i].cause));
            assert_non_null(strstr(err.text, d.point));
        }
        assert_string_equal(fs.class_name, "ext4");
        assert_string_equal(fs.mount_point, d.point);
        assert_int_equal(fs.journal, rows[i].journal);
        assert_int_equal(fs.data_writeback, rows[i].writeback);
        ASSERT_OK(pf_preflight_probe(d.point, NULL, &err));
        disk_gone(&d);
    }
}

static void a_mount_inside_the_root_is_refused(void **state)
{
    scene *s = *state;
    pf_volume *volume;
    pf_file *file;
    pf_stat st;

    if (!loop_disk_is_possible())
        skip();
    volume = open_volume(s);
    assert_int_equal(mount(s->outside, s->inner, NULL, MS_BIND, NULL), 0);
    REFUSED(pf_open(volume, "inner/file", PF_WRITE, &file, &err));
    REFUSED(pf_create(volume, "inner/new", &file, &err));
    REFUSED(pf_list(volume, "inner", ignore_entry, NULL, &err));
    REFUSED(pf_sync_dir(volume, "inner", &err));
    REFUSED(pf_remove(volume, "inner/file", &err));
    REFUSED(pf_stat_path(volume, "inner/file", &st, &err));
    assert_int_equal(umount2(s->inner, MNT_DETACH), 0);
    assert_outside_untouched(s);
    pf_volume_close(volume);
}

static void a_mount_over_the_root_is_noticed(void **state)
{
    scene *s = *state;
    pf_volume *volume;

    if (!loop_disk_is_possible())
        skip();
    volume = open_volume(s);
    ASSERT_OK(pf_volume_check_identity(volume, &err));
    assert_int_equal(mount(s->outside, s->root, NULL, MS_BIND, NULL), 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_check_identity(volume, &err));
    assert_int_equal(umount2(s->root, MNT_DETACH), 0);
    ASSERT_OK(pf_volume_check_identity(volume, &err));
    pf_volume_close(volume);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, with_scene, without_scene)
    const struct CMUnitTest tests[] = {
        WITH(a_link_in_the_root_path_is_refused),
        WITH(a_link_as_a_folder_is_never_walked),
        WITH(a_link_as_a_file_is_never_opened),
        WITH(a_link_swapped_in_at_any_moment_leads_nowhere),
        WITH(a_second_name_of_a_file_is_corrupt),
        WITH(a_pipe_socket_or_device_in_place_of_a_file_never_hangs),
        WITH(a_file_that_others_can_write_is_refused),
        WITH(a_foreign_file_is_refused),
        WITH(a_default_acl_does_not_widen_what_we_make),
        WITH(a_folder_swapped_after_opening_is_noticed),
        WITH(running_out_of_descriptors_is_a_limit_and_nothing_else),
        WITH(a_size_limit_is_typed_after_a_short_write),
        WITH(a_full_disk_is_typed_and_leaves_the_volume_usable),
        WITH(a_failed_sync_is_final_on_a_real_disk),
        WITH(a_read_only_disk_can_be_read_and_nothing_else),
        WITH(disks_with_and_without_a_journal_get_the_stated_answer),
        WITH(a_mount_inside_the_root_is_refused),
        WITH(a_mount_over_the_root_is_noticed),
    };
    return cmocka_run_group_tests_name("volume faults", tests, NULL, NULL);
}
