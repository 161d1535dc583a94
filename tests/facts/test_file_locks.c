/*
 * What the kernel does with advisory file locks (DESIGN 5): why only open-file-description locks are used, why an
 * inherited description is never unlocked, why lock files are never mapped, and how a death shows.
 */
#include "tests/facts/mutex.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

typedef struct place {
    char *folder;
    char *file;
} place;

static int enter(void **state)
{
    place *here = calloc(1, sizeof *here);
    assert_non_null(here);
    here->folder = test_folder_make();
    here->file = test_path(here->folder, "lock");
    int fd = open(here->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(close(fd), 0);
    *state = here;
    return 0;
}

static int leave(void **state)
{
    place *here = *state;
    free(here->file);
    test_folder_remove(here->folder);
    free(here);
    return 0;
}

static int opened(const char *file)
{
    return open(file, O_RDWR | O_CLOEXEC);
}

/* 0 when taken, else errno. */
static int lock_byte(int fd, int command, short type, off_t at)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, command, &lock) == 0 ? 0 : errno;
}

/* In a process and on a description of its own: 0 when byte 0 could be locked, else errno. */
static int other_process_tries(void *context)
{
    int fd = opened(context);
    return fd < 0 ? 99 : lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0);
}

static void an_ofd_lock_survives_an_unrelated_close(void **state)
{
    place *here = *state;
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0), 0);
    int unrelated = opened(here->file);
    assert_int_equal(close(unrelated), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), EAGAIN);
    assert_int_equal(close(fd), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), 0);
}

static void a_posix_lock_is_dropped_by_any_close(void **state)
{
    place *here = *state;
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_SETLK, F_WRLCK, 0), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), EAGAIN);
    int unrelated = opened(here->file);
    assert_int_equal(close(unrelated), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), 0);
    assert_int_equal(close(fd), 0);
}

static void two_descriptions_of_one_process_conflict_by_byte(void **state)
{
    place *here = *state;
    int first = opened(here->file);
    int second = opened(here->file);
    assert_int_equal(lock_byte(first, F_OFD_SETLK, F_WRLCK, 0), 0);
    assert_int_equal(lock_byte(second, F_OFD_SETLK, F_WRLCK, 0), EAGAIN);
    assert_int_equal(lock_byte(second, F_OFD_SETLK, F_RDLCK, 0), EAGAIN);
    assert_int_equal(lock_byte(second, F_OFD_SETLK, F_WRLCK, 1), 0);
    assert_int_equal(lock_byte(first, F_OFD_SETLK, F_UNLCK, 0), 0);
    assert_int_equal(lock_byte(second, F_OFD_SETLK, F_WRLCK, 0), 0);
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
}

static void getlk_does_not_tell_the_holder(void **state)
{
    place *here = *state;
    int first = opened(here->file);
    int second = opened(here->file);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    assert_int_equal(lock_byte(first, F_OFD_SETLK, F_WRLCK, 0), 0);
    assert_int_equal(fcntl(second, F_OFD_GETLK, &lock), 0);
    assert_int_equal(lock.l_type, F_WRLCK);
    assert_int_equal(lock.l_pid, -1);
    /* A description's own lock is no obstacle to itself. */
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    assert_int_equal(fcntl(first, F_OFD_GETLK, &lock), 0);
    assert_int_equal(lock.l_type, F_UNLCK);
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
}

static int unlock_what_was_inherited(void *context)
{
    return lock_byte(*(int *)context, F_OFD_SETLK, F_UNLCK, 0);
}

static void a_childs_explicit_unlock_releases_for_the_parent_too(void **state)
{
    place *here = *state;
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0), 0);
    test_child_expect_exit(test_child(unlock_what_was_inherited, &fd), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), 0);
    assert_int_equal(close(fd), 0);
}

static int close_what_was_inherited(void *context)
{
    return close(*(int *)context);
}

static void a_childs_close_or_end_releases_nothing(void **state)
{
    place *here = *state;
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0), 0);
    test_child_expect_exit(test_child(close_what_was_inherited, &fd), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), EAGAIN);
    assert_int_equal(close(fd), 0);
}

static int stay(void *context)
{
    facts_reach(context, 1);
    while (pause() < 0)
        continue;
    return 0;
}

static void an_inherited_lock_is_held_until_the_last_orphan_is_gone(void **state)
{
    place *here = *state;
    facts_shared *shared = facts_make();
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0), 0);
    pid_t orphan = test_child(stay, shared);
    test_wait_for(&shared->stage, 1);
    assert_int_equal(close(fd), 0); /* the supervisor's end, as far as the lock can see */
    test_child_expect_exit(test_child(other_process_tries, here->file), EAGAIN);
    test_child_kill(orphan);
    test_child_expect_exit(test_child(other_process_tries, here->file), 0);
}

static void a_mapping_keeps_the_lock_alive_after_close(void **state)
{
    place *here = *state;
    int fd = opened(here->file);
    assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0), 0);
    void *mapping = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(mapping != MAP_FAILED);
    assert_int_equal(close(fd), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), EAGAIN);
    assert_int_equal(munmap(mapping, 4096), 0);
    test_child_expect_exit(test_child(other_process_tries, here->file), 0);
}

typedef struct owner {
    facts_shared *shared;
    const char *file;
} owner;

static int own_mutex_and_byte(void *context)
{
    owner *own = context;
    int fd = opened(own->file);
    if (fd < 0 || lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0) != 0 || pthread_mutex_lock(&own->shared->mutex) != 0)
        return 1;
    return stay(own->shared);
}

/* The order of a death: mutexes first, then files and the pidfd. So after EOWNERDEAD a busy lock is not yet a live
 * owner: a bounded wait always gets it, a single try need not. */
static void after_ownerdead_file_lock_and_pidfd_follow_within_a_bound(void **state)
{
    place *here = *state;
    facts_shared *shared = facts_make();
    owner own = {shared, here->file};
    int fd = opened(here->file);
    for (unsigned trial = 0; trial < 20; trial++) {
        facts_reach(shared, 0);
        pid_t pid = test_child(own_mutex_and_byte, &own);
        test_wait_for(&shared->stage, 1);
        int pidfd = pidfd_open(pid, 0);
        assert_true(pidfd >= 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(facts_lock_within(&shared->mutex, TEST_WAIT_MS), EOWNERDEAD);
        struct pollfd ended = {.fd = pidfd, .events = POLLIN};
        assert_int_equal(poll(&ended, 1, TEST_WAIT_MS), 1);
        int status = EAGAIN;
        for (unsigned i = 0; status == EAGAIN && i < TEST_WAIT_MS; i++) {
            status = lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0);
            if (status == EAGAIN)
                assert_int_equal(poll(NULL, 0, 1), 0);
        }
        assert_int_equal(status, 0);
        assert_int_equal(lock_byte(fd, F_OFD_SETLK, F_UNLCK, 0), 0);
        assert_int_equal(pthread_mutex_consistent(&shared->mutex), 0);
        assert_int_equal(pthread_mutex_unlock(&shared->mutex), 0);
        assert_int_equal(close(pidfd), 0);
        test_child_expect_signal(pid, SIGKILL);
    }
    assert_int_equal(close(fd), 0);
}

static int exec_with_close_on_exec(void *context)
{
    owner *own = context;
    int fd = opened(own->file); /* O_CLOEXEC */
    if (fd < 0 || lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0) != 0)
        return 1;
    facts_reach(own->shared, 1);
    (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
    return 1;
}

static void a_close_on_exec_description_releases_at_exec(void **state)
{
    place *here = *state;
    facts_shared *shared = facts_make();
    owner own = {shared, here->file};
    pid_t pid = test_child(exec_with_close_on_exec, &own);
    test_wait_for(&shared->stage, 1);
    int fd = opened(here->file);
    int status = EAGAIN;
    for (unsigned i = 0; status == EAGAIN && i < TEST_WAIT_MS; i++) {
        status = lock_byte(fd, F_OFD_SETLK, F_WRLCK, 0);
        if (status == EAGAIN)
            assert_int_equal(poll(NULL, 0, 1), 0);
    }
    assert_int_equal(status, 0);
    test_child_kill(pid);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_ofd_lock_survives_an_unrelated_close, enter, leave),
        cmocka_unit_test_setup_teardown(a_posix_lock_is_dropped_by_any_close, enter, leave),
        cmocka_unit_test_setup_teardown(two_descriptions_of_one_process_conflict_by_byte, enter, leave),
        cmocka_unit_test_setup_teardown(getlk_does_not_tell_the_holder, enter, leave),
        cmocka_unit_test_setup_teardown(a_childs_explicit_unlock_releases_for_the_parent_too, enter, leave),
        cmocka_unit_test_setup_teardown(a_childs_close_or_end_releases_nothing, enter, leave),
        cmocka_unit_test_setup_teardown(an_inherited_lock_is_held_until_the_last_orphan_is_gone, enter, leave),
        cmocka_unit_test_setup_teardown(a_mapping_keeps_the_lock_alive_after_close, enter, leave),
        cmocka_unit_test_setup_teardown(after_ownerdead_file_lock_and_pidfd_follow_within_a_bound, enter, leave),
        cmocka_unit_test_setup_teardown(a_close_on_exec_description_releases_at_exec, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
