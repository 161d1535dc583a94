/* Byte-range locks: counts, modes, the turnstile, death, and a leaked descriptor (DESIGN 5, F-08, L-024, R206). */
#include "locks/order.h"
#include "locks/oslock.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define LOCKS_PATH "branches/1/locks"

typedef struct setting {
    char *folder;
    pf_volume *volume;
    lk_lockfile *lockfile;
} setting;

static void open_handle(const char *folder, pf_volume **ret_volume, lk_lockfile **ret_lockfile)
{
    sluice_error err;
    ASSERT_OK(pf_volume_open(folder, PF_WRITE, ret_volume, &err));
    ASSERT_OK(lk_lockfile_open(*ret_volume, LOCKS_PATH, ret_lockfile, &err));
}

static int make(void **state)
{
    sluice_error err;
    pf_file *file;
    setting *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = test_folder_make();
    ASSERT_OK(pf_volume_open(fixture->folder, PF_WRITE, &fixture->volume, &err));
    ASSERT_OK(pf_make_folder(fixture->volume, "branches", &err));
    ASSERT_OK(pf_make_folder(fixture->volume, "branches/1", &err));
    ASSERT_OK(pf_create(fixture->volume, LOCKS_PATH, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(lk_lockfile_open(fixture->volume, LOCKS_PATH, &fixture->lockfile, &err));
    *state = fixture;
    return 0;
}

static int unmake(void **state)
{
    setting *fixture = *state;
    lk_lockfile_close(fixture->lockfile);
    pf_volume_close(fixture->volume);
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static sluice_status try_lock(lk_lockfile *lockfile, uint64_t byte, pf_lock_mode mode)
{
    return lk_take(lockfile, byte, mode, PF_AT_ONCE, NULL);
}

static void exclusive_excludes_and_shared_shares(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    pf_volume *volume;
    lk_lockfile *other;
    open_handle(fixture->folder, &volume, &other);
    ASSERT_OK(lk_take(fixture->lockfile, 70, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(lk_take(other, 70, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    lk_release(other, 70);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, lk_take(other, 70, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(lk_take(other, 71, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 lk_take(fixture->lockfile, 71, PF_LOCK_SHARED, pf_deadline_in_ms(5), &err));
    lk_release(other, 71);
    lk_release(fixture->lockfile, 70);
    ASSERT_OK(lk_take(other, 70, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_lockfile_close(other); /* lets go of what is held */
    ASSERT_OK(lk_take(fixture->lockfile, 70, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_release(fixture->lockfile, 70);
    pf_volume_close(volume);
}

static void holds_of_one_handle_are_counted(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    pf_volume *volume;
    lk_lockfile *other;
    open_handle(fixture->folder, &volume, &other);
    ASSERT_OK(lk_take(fixture->lockfile, LK_BYTE_BRANCH, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(
        lk_take(fixture->lockfile, LK_BYTE_BRANCH, PF_LOCK_SHARED, PF_AT_ONCE, &err)); /* the stronger one covers */
    lk_release(fixture->lockfile, LK_BYTE_BRANCH);
    assert_int_equal(try_lock(other, LK_BYTE_BRANCH, PF_LOCK_SHARED), SLUICE_LIVE_WRITER_CONTENTION);
    lk_release(fixture->lockfile, LK_BYTE_BRANCH);
    ASSERT_OK(lk_take(other, LK_BYTE_BRANCH, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

static void a_shared_hold_is_never_upgraded(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, lk_take(fixture->lockfile, 64, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_release(fixture->lockfile, 64);
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_release(fixture->lockfile, 64);
}

typedef struct request {
    const char *folder;
    volatile unsigned *told; /* by the child */
    pf_lock_mode mode;
    uint64_t byte;
    int64_t wait_ms;
} request;

/* Takes the byte, says so, and stays. */
static int hold_for_ever(void *context)
{
    request *helper = context;
    pf_volume *volume;
    lk_lockfile *lockfile;
    open_handle(helper->folder, &volume, &lockfile);
    if (lk_take(lockfile, helper->byte, helper->mode, PF_AT_ONCE, NULL) != SLUICE_OK)
        return 1;
    *helper->told = 1;
    while (pause() < 0)
        continue;
    return 0;
}

/* Says that it is about to wait, waits, and leaves with 0 when it got the byte. */
static int wait_for_byte(void *context)
{
    request *helper = context;
    pf_volume *volume;
    lk_lockfile *lockfile;
    open_handle(helper->folder, &volume, &lockfile);
    *helper->told = 1;
    return (int)lk_take(lockfile, helper->byte, helper->mode, pf_deadline_in_ms(helper->wait_ms), NULL);
}

static void a_waiting_exclusive_taker_stops_new_shared_ones(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    volatile unsigned *told = test_shared(sizeof *told);
    request writer = {fixture->folder, told, PF_LOCK_EXCLUSIVE, 70, TEST_WAIT_MS};
    pf_volume *volume;
    lk_lockfile *other;
    open_handle(fixture->folder, &volume, &other);
    ASSERT_OK(lk_take(fixture->lockfile, 70, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    pid_t pid = test_child(wait_for_byte, &writer);
    test_wait_for(told, 1);
    /* As soon as the writer stands at the turnstile no shared taker passes, though the byte itself is only shared. */
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    sluice_status status = SLUICE_OK;
    for (unsigned i = 0; status == SLUICE_OK && !pf_deadline_passed(limit); i++) {
        status = try_lock(other, 70, PF_LOCK_SHARED);
        if (status == SLUICE_OK)
            lk_release(other, 70);
        pf_backoff(i, limit);
    }
    assert_int_equal(status, SLUICE_LIVE_WRITER_CONTENTION);
    lk_release(fixture->lockfile, 70);
    test_child_expect_exit(pid, SLUICE_OK);
    ASSERT_OK(lk_take(other, 70, PF_LOCK_SHARED, pf_deadline_in_ms(TEST_WAIT_MS), &err));
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

static void a_dead_owners_lock_is_free_within_the_bound(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    volatile unsigned *told = test_shared(sizeof *told);
    request owner = {fixture->folder, told, PF_LOCK_EXCLUSIVE, LK_BYTE_PUBLISH, 0};
    pid_t pid = test_child(hold_for_ever, &owner);
    test_wait_for(told, 1);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 lk_take(fixture->lockfile, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(5), &err));
    assert_int_equal(kill(pid, SIGKILL), 0);
    ASSERT_OK(lk_take(fixture->lockfile, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err));
    lk_release(fixture->lockfile, LK_BYTE_PUBLISH);
    (void)test_child_wait(pid);
}

static void a_stopped_owner_is_alive(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    volatile unsigned *told = test_shared(sizeof *told);
    request owner = {fixture->folder, told, PF_LOCK_EXCLUSIVE, 64, 0};
    pid_t pid = test_child(hold_for_ever, &owner);
    test_wait_for(told, 1);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 lk_take(fixture->lockfile, 64, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(20), &err));
    test_child_kill(pid);
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err));
    lk_release(fixture->lockfile, 64);
}

static int sleep_on(void *context)
{
    volatile unsigned *told = context;
    *told = 1;
    while (pause() < 0)
        continue;
    return 0;
}

/* A duplicate of the descriptor in a child keeps a lock that nobody unlocked; release unlocks for all of them (F-08).
 */
static void a_release_counts_although_a_child_has_the_descriptor(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    volatile unsigned *told = test_shared(sizeof *told);
    pf_volume *volume;
    lk_lockfile *other;
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    pid_t pid = test_child(sleep_on, (void *)(uintptr_t)told); /* inherits every descriptor */
    test_wait_for(told, 1);
    open_handle(fixture->folder, &volume, &other);
    lk_release(fixture->lockfile, 64);
    ASSERT_OK(lk_take(other, 64, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_lockfile_close(other);
    pf_volume_close(volume);
    test_child_kill(pid);
}

static unsigned ticks;

static void count_tick(int number)
{
    (void)number;
    ticks++;
}

static void a_wait_interrupted_by_signals_keeps_its_bound(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    pf_volume *volume;
    lk_lockfile *other;
    struct sigaction action = {.sa_handler = count_tick}; /* without SA_RESTART */
    struct itimerval every = {{0, 500}, {0, 500}};
    struct itimerval never = {{0, 0}, {0, 0}};
    open_handle(fixture->folder, &volume, &other);
    ASSERT_OK(lk_take(other, 64, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    pf_deadline deadline = pf_deadline_in_ms(30);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, deadline, &err));
    assert_true(pf_deadline_passed(deadline));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(ticks > 5);
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

static bool refuse(void *context)
{
    (void)context;
    return false;
}

static void a_fenced_owner_takes_nothing(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    pf_volume_set_fence(fixture->volume, refuse, NULL);
    ASSERT_FAILS(SLUICE_FENCED, lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    pf_volume_set_fence(fixture->volume, NULL, NULL);
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    lk_release(fixture->lockfile, 64);
}

static void a_replaced_lock_file_is_no_lock(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    pf_file *file;
    ASSERT_OK(pf_remove(fixture->volume, LOCKS_PATH, &err));
    ASSERT_OK(pf_create(fixture->volume, LOCKS_PATH, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, PF_AT_ONCE, &err));
}

static unsigned disorders;

static void note_disorder(lk_rank held, lk_rank wanted)
{
    (void)held;
    (void)wanted;
    disorders++;
}

static void bytes_are_taken_in_the_one_order(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_order_failed = note_disorder;
    ASSERT_OK(lk_take(fixture->lockfile, LK_BYTE_ADMISSION, PF_LOCK_SHARED, pf_deadline_in_ms(9), &err));
    ASSERT_OK(lk_take(fixture->lockfile, LK_BYTE_SCHEMA, PF_LOCK_SHARED, pf_deadline_in_ms(9), &err));
    ASSERT_OK(lk_take(fixture->lockfile, 64, PF_LOCK_SHARED, pf_deadline_in_ms(9), &err));
    ASSERT_OK(lk_take(fixture->lockfile, 65, PF_LOCK_SHARED, pf_deadline_in_ms(9), &err));
    ASSERT_OK(lk_take(fixture->lockfile, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(9), &err));
    assert_int_equal(disorders, 0);
    ASSERT_OK(lk_take(fixture->lockfile, 66, PF_LOCK_SHARED, PF_AT_ONCE, &err)); /* a try */
    assert_int_equal(disorders, 0);
    ASSERT_OK(lk_take(fixture->lockfile, 67, PF_LOCK_SHARED, pf_deadline_in_ms(9), &err));
    assert_int_equal(disorders, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exclusive_excludes_and_shared_shares, make, unmake),
        cmocka_unit_test_setup_teardown(holds_of_one_handle_are_counted, make, unmake),
        cmocka_unit_test_setup_teardown(a_shared_hold_is_never_upgraded, make, unmake),
        cmocka_unit_test_setup_teardown(a_waiting_exclusive_taker_stops_new_shared_ones, make, unmake),
        cmocka_unit_test_setup_teardown(a_dead_owners_lock_is_free_within_the_bound, make, unmake),
        cmocka_unit_test_setup_teardown(a_stopped_owner_is_alive, make, unmake),
        cmocka_unit_test_setup_teardown(a_release_counts_although_a_child_has_the_descriptor, make, unmake),
        cmocka_unit_test_setup_teardown(a_wait_interrupted_by_signals_keeps_its_bound, make, unmake),
        cmocka_unit_test_setup_teardown(a_fenced_owner_takes_nothing, make, unmake),
        cmocka_unit_test_setup_teardown(a_replaced_lock_file_is_no_lock, make, unmake),
        cmocka_unit_test_setup_teardown(bytes_are_taken_in_the_one_order, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
