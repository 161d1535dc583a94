/*
 * The volume on real files: the shared battery, then what only real files can show: roots, links, permissions,
 * processes.
 */
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "volume_conformance.h"

#include "platform/failpoint.h"
#include "platform/volume.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sluice_error err;

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

/* The root itself, not made yet: most tests want their own. */
static char *root_of(void **state)
{
    return test_path(*state, "graph");
}

static pf_volume *made(void **state)
{
    char *path = root_of(state);
    pf_volume *volume;

    ASSERT_OK(pf_volume_make(path, &volume, &err));
    free(path);
    return volume;
}

static void file_at(const char *folder, const char *name, mode_t mode)
{
    char *path = test_path(folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
    free(path);
}

/* ---- the battery ---- */

static pf_volume *open_place(void *context)
{
    pf_volume *volume;

    ASSERT_OK(pf_volume_open(context, PF_WRITE, &volume, &err));
    return volume;
}

static void the_battery_holds_on_real_files(void **state)
{
    for (unsigned i = 0; i < conformance_case_count; i++) {
        char name[32], *path;
        pf_volume *volume;
        (void)snprintf(name, sizeof name, "case-%u", i);
        path = test_path(*state, name);
        ASSERT_OK(pf_volume_make(path, &volume, &err));
        pf_volume_close(volume);
        print_message("    %s\n", conformance_cases[i].name);
        conformance_cases[i].run(&(conformance_place){.context = path, .open = open_place});
        free(path);
    }
}

/* ---- the root ---- */

static void a_root_is_made_once_and_found_again(void **state)
{
    char *path = root_of(state);
    pf_volume *volume;

    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_volume_open(path, PF_WRITE, &volume, &err));
    ASSERT_OK(pf_volume_make(path, &volume, &err));
    assert_false(pf_volume_is_sim(volume));
    pf_volume_close(volume);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_volume_make(path, &volume, &err));
    assert_null(strstr(err.message, path)); /* paths are for the terminal only */
    assert_non_null(strstr(err.text, path));
    ASSERT_OK(pf_volume_open(path, PF_READ, &volume, &err));
    pf_volume_close(volume);
    free(path);
}

static void a_root_is_made_only_in_a_folder_that_exists(void **state)
{
    char *path = test_path(*state, "no/graph");
    pf_volume *volume;

    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_volume_make(path, &volume, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_volume_make("/", &volume, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_volume_make(".", &volume, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_volume_make("", &volume, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_volume_open("", PF_READ, &volume, &err));
    free(path);
    path = test_path(*state, "slashes//");
    ASSERT_OK(pf_volume_make(path, &volume, &err));
    pf_volume_close(volume);
    free(path);
    file_at(*state, "file", 0600);
    path = test_path(*state, "file");
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_volume_open(path, PF_READ, &volume, &err));
    free(path);
}

static void modes_are_ours_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 0777, 022};
    pf_volume *volume;
    pf_file *file;
    pf_stat st;

    for (size_t i = 0; i < 3; i++) {
        mode_t old = umask(masks[i]);
        char *path;
        char name[16];
        (void)snprintf(name, sizeof name, "g%zu", i);
        path = test_path(*state, name);
        ASSERT_OK(pf_volume_make(path, &volume, &err));
        ASSERT_OK(pf_create(volume, "file", &file, &err));
        ASSERT_OK(pf_close(file, &err));
        ASSERT_OK(pf_make_folder(volume, "folder", &err));
        (void)umask(old);
        ASSERT_OK(pf_stat_path(volume, "", &st, &err));
        assert_int_equal(st.mode, 0700);
        ASSERT_OK(pf_stat_path(volume, "file", &st, &err));
        assert_int_equal(st.mode, 0600);
        ASSERT_OK(pf_stat_path(volume, "folder", &st, &err));
        assert_int_equal(st.mode, 0700);
        pf_volume_close(volume);
        free(path);
    }
}

static void a_setgid_parent_does_not_leak_into_modes(void **state)
{
    pf_volume *volume;
    pf_stat st;
    char *path = root_of(state);

    assert_int_equal(chmod(*state, 02777), 0);
    ASSERT_OK(pf_volume_make(path, &volume, &err));
    ASSERT_OK(pf_stat_path(volume, "", &st, &err));
    assert_int_equal(st.mode, 0700);
    pf_volume_close(volume);
    free(path);
}

static void a_root_that_others_can_write_is_refused(void **state)
{
    char *path = root_of(state);
    pf_volume *volume = made(state);

    pf_volume_close(volume);
    assert_int_equal(chmod(path, 0770), 0);
    ASSERT_FAILS(SLUICE_PERMISSION, pf_volume_open(path, PF_WRITE, &volume, &err));
    assert_non_null(strstr(err.hint, "chmod"));
    ASSERT_OK(pf_volume_open(path, PF_READ, &volume, &err));
    pf_volume_close(volume);
    free(path);
}

static void a_foreign_root_is_refused(void **state)
{
    char *path = root_of(state);
    pf_volume *volume = made(state);

    pf_volume_close(volume);
    if (geteuid() != 0) {
        print_message("    skipped: giving a folder away needs root\n");
        free(path);
        skip();
    }
    assert_int_equal(chown(path, 12345, 12345), 0);
    ASSERT_FAILS(SLUICE_PERMISSION, pf_volume_open(path, PF_WRITE, &volume, &err));
    assert_non_null(strstr(err.hint, "12345"));
    ASSERT_OK(pf_volume_open(path, PF_READ, &volume, &err));
    pf_volume_close(volume);
    free(path);
}

static void a_reader_changes_nothing(void **state)
{
    char *path = root_of(state);
    pf_volume *volume = made(state);
    pf_file *file;

    ASSERT_OK(pf_create(volume, "a", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    ASSERT_OK(pf_volume_open(path, PF_READ, &volume, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_create(volume, "b", &file, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_open(volume, "a", PF_WRITE, &file, &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_remove(volume, "a", &err));
    ASSERT_FAILS(SLUICE_PERMISSION, pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err)); /* a pin */
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    free(path);
}

static void a_moved_or_replaced_root_is_noticed(void **state)
{
    char *path = root_of(state), *aside = test_path(*state, "aside");
    pf_volume *volume = made(state);

    ASSERT_OK(pf_volume_check_identity(volume, &err));
    assert_int_equal(rename(path, aside), 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_check_identity(volume, &err));
    assert_int_equal(mkdir(path, 0700), 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_check_identity(volume, &err)); /* a restored copy is not the graph */
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(aside, path), 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_check_identity(volume, &err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(aside, path), 0);
    ASSERT_OK(pf_volume_check_identity(volume, &err));
    pf_volume_close(volume);
    free(path);
    free(aside);
}

static void identity_does_not_depend_on_the_working_directory(void **state)
{
    char *cwd = getcwd(NULL, 0);
    pf_volume *volume;

    assert_non_null(cwd);
    assert_int_equal(chdir(*state), 0);
    ASSERT_OK(pf_volume_make("graph", &volume, &err));
    assert_int_equal(chdir("/"), 0);
    ASSERT_OK(pf_volume_check_identity(volume, &err));
    pf_volume_close(volume);
    assert_int_equal(chdir(cwd), 0);
    free(cwd);
}

/* ---- processes ---- */

typedef struct lock_story {
    const char *path;
    volatile unsigned held, go;
} lock_story;

/* Runs in a child: takes the lock on its own description and keeps it until it is killed. */
static int hold_lock(void *context)
{
    lock_story *story = context;
    pf_volume *volume;
    pf_file *file;
    sluice_error e;

    if (pf_volume_open(story->path, PF_WRITE, &volume, &e) != SLUICE_OK ||
        pf_open(volume, "locks", PF_WRITE, &file, &e) != SLUICE_OK ||
        pf_lock(file, 7, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &e) != SLUICE_OK)
        return 1;
    story->held = 1;
    test_wait_for(&story->go, 1);
    return 0;
}

static void a_lock_falls_with_its_process(void **state)
{
    lock_story *story = test_shared(sizeof *story);
    char *path = root_of(state);
    pf_volume *volume = made(state);
    bool is_free;
    pf_file *file;
    pid_t child;

    story->path = path;
    ASSERT_OK(pf_create(volume, "locks", &file, &err));
    child = test_child(hold_lock, story);
    test_wait_for(&story->held, 1);
    ASSERT_OK(pf_lock_is_free(file, 7, 1, &is_free, &err));
    assert_false(is_free);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(file, 7, 1, PF_LOCK_SHARED, pf_deadline_in_ms(30), &err));
    test_child_kill(child);
    ASSERT_OK(pf_lock(file, 7, 1, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    free(path);
}

static int hold_lock_a_while(void *context)
{
    lock_story *story = context;
    int result = 0;

    story->go = 1; /* it leaves at once; the parent polls meanwhile */
    result = hold_lock(story);
    return result;
}

static void a_waiting_lock_is_granted_when_the_holder_leaves(void **state)
{
    lock_story *story = test_shared(sizeof *story);
    char *path = root_of(state);
    pf_volume *volume = made(state);
    pf_file *file;
    pid_t child;

    story->path = path;
    ASSERT_OK(pf_create(volume, "locks", &file, &err));
    child = test_child(hold_lock_a_while, story);
    test_wait_for(&story->held, 1);
    ASSERT_OK(pf_lock(file, 7, 1, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err));
    test_child_expect_exit(child, 0);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    free(path);
}

/* ---- failpoints ---- */

static void arm(const char *text)
{
    assert_int_equal(setenv("SLUICE_FAILPOINT", text, 1), 0);
    ASSERT_OK(pf_failpoints_init(&err));
}

/* Each call fails in its place, before it does anything. */
static void every_call_is_a_failpoint(void **state)
{
    pf_volume *volume = made(state);
    pf_file *file, *more;
    bool is_free;
    pf_stat st;

    ASSERT_OK(pf_create(volume, "a", &file, &err));
    ASSERT_OK(pf_make_folder(volume, "f", &err));
#define FAILS_AT(name, call)                                                                                           \
    do {                                                                                                               \
        arm("volume." name "=error");                                                                                  \
        ASSERT_FAILS(SLUICE_IO, call);                                                                                 \
    } while (0)
    FAILS_AT("create", pf_create(volume, "b", &more, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "b", &st, &err));
    FAILS_AT("open", pf_open(volume, "a", PF_READ, &more, &err));
    FAILS_AT("publish", pf_publish(volume, "a", "b", &err));
    FAILS_AT("remove", pf_remove(volume, "a", &err));
    ASSERT_OK(pf_stat_path(volume, "a", &st, &err));
    FAILS_AT("make_folder", pf_make_folder(volume, "g", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "g", &st, &err));
    FAILS_AT("remove_folder", pf_remove_folder(volume, "f", &err));
    ASSERT_OK(pf_stat_path(volume, "f", &st, &err));
    FAILS_AT("sync_dir", pf_sync_dir(volume, "f", &err));
    FAILS_AT("write", pf_write(file, 0, "x", 1, &err));
    FAILS_AT("write", pf_zero_fill(file, 100, &err));
    ASSERT_OK(pf_file_stat(file, &st, &err));
    assert_int_equal(st.size, 0);
    FAILS_AT("lock", pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_open(volume, "a", PF_WRITE, &more, &err));
    ASSERT_OK(pf_lock_is_free(more, 0, 1, &is_free, &err));
    assert_true(is_free);
    FAILS_AT("sync", pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err)); /* and this one is final */
    ASSERT_OK(pf_sync(more, &err));
    arm("");
    ASSERT_OK(pf_close(more, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

/* ---- handles ---- */

static void handles_are_closed_on_exec(void **state)
{
    pf_volume *volume = made(state);
    pf_file *file;
    char path[64], link[4096];
    unsigned ours = 0;

    ASSERT_OK(pf_create(volume, "a-file-of-the-graph", &file, &err));
    for (int fd = 0; fd < 1024; fd++) {
        ssize_t length;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        length = readlink(path, link, sizeof link - 1);
        if (length <= 0)
            continue;
        link[length] = 0;
        if (strncmp(link, *state, strlen(*state)) != 0)
            continue;
        ours++;
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    assert_int_equal(ours, 2); /* the root and the file */
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, with_folder, without_folder)
    const struct CMUnitTest tests[] = {
        WITH(the_battery_holds_on_real_files),
        WITH(a_root_is_made_once_and_found_again),
        WITH(a_root_is_made_only_in_a_folder_that_exists),
        WITH(modes_are_ours_whatever_the_umask),
        WITH(a_setgid_parent_does_not_leak_into_modes),
        WITH(a_root_that_others_can_write_is_refused),
        WITH(a_foreign_root_is_refused),
        WITH(a_reader_changes_nothing),
        WITH(a_moved_or_replaced_root_is_noticed),
        WITH(identity_does_not_depend_on_the_working_directory),
        WITH(a_lock_falls_with_its_process),
        WITH(a_waiting_lock_is_granted_when_the_holder_leaves),
        WITH(every_call_is_a_failpoint),
        WITH(handles_are_closed_on_exec),
    };
    return cmocka_run_group_tests_name("volume on real files", tests, NULL, NULL);
}
