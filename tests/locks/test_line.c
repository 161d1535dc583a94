/* The line in front of a byte: processes have it in the order in which they came; who dies or gives up is passed over
 * and leaves nothing; one more than the places is turned away (OD-036, OD-037, OD-038). */
#include "locks/line.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <unistd.h>

#define LOCKS_PATH "branches/1/locks"
#define BYTE       LK_BYTE_ADMISSION
#define WAITERS    8u
#define LONG_MS    60000

typedef struct shared_order {
    unsigned count;
    unsigned order[2 * WAITERS];
    unsigned inside;
    unsigned held;
} shared_order;

typedef struct setting {
    char *folder;
    pf_volume *volume;
    lk_lockfile *lockfile;
    shared_order *shared;
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
    setting *line = calloc(1, sizeof *line);
    assert_non_null(line);
    line->folder = test_folder_make();
    line->shared = test_shared(sizeof *line->shared);
    ASSERT_OK(pf_volume_open(line->folder, PF_WRITE, &line->volume, &err));
    ASSERT_OK(pf_make_folder(line->volume, "branches", &err));
    ASSERT_OK(pf_make_folder(line->volume, "branches/1", &err));
    ASSERT_OK(pf_create(line->volume, LOCKS_PATH, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(lk_lockfile_open(line->volume, LOCKS_PATH, &line->lockfile, &err));
    *state = line;
    return 0;
}

static int unmake(void **state)
{
    setting *line = *state;
    lk_lockfile_close(line->lockfile);
    pf_volume_close(line->volume);
    test_folder_remove(line->folder);
    free(line);
    return 0;
}

static sluice_status go_on(void *context, sluice_error *err)
{
    (void)context;
    (void)err;
    return SLUICE_OK;
}

static sluice_status give_up(void *context, sluice_error *err)
{
    unsigned *asked = context;
    return (*asked)++ < 2 ? SLUICE_OK : pf_fail(err, SLUICE_CANCELLED, "not wanted any more");
}

/* How many places, from the byte on, are held by others. */
static uint32_t length_of(setting *line)
{
    uint32_t held = 0;
    for (uint32_t place = 1; place <= LK_LINE_PLACES; place++) {
        bool is_free = false;
        sluice_error err;
        ASSERT_OK(lk_is_free(line->lockfile, LK_LINE_PLACE(BYTE, place), 1, &is_free, &err));
        held += !is_free;
    }
    return held;
}

static void wait_for_length(setting *line, uint32_t length)
{
    while (length_of(line) != length)
        usleep(1000);
}

typedef struct stander {
    const setting *line;
    unsigned number, rounds;
} stander;

/* In a child: takes the byte in turn, notes that it has it, alone, and lets go. */
static int stand_in_line(void *context)
{
    const stander *me = context;
    const setting *line = me->line;
    pf_volume *volume;
    lk_lockfile *own;
    open_handle(line->folder, &volume, &own);
    for (unsigned round = 0; round < me->rounds; round++) {
        if (lk_line_take(own, BYTE, pf_deadline_in_ms(LONG_MS), go_on, NULL, NULL) != SLUICE_OK)
            return 1;
        if (__atomic_add_fetch(&line->shared->inside, 1, __ATOMIC_SEQ_CST) != 1)
            return 2;
        line->shared->order[line->shared->count++ % (2 * WAITERS)] = me->number;
        __atomic_sub_fetch(&line->shared->inside, 1, __ATOMIC_SEQ_CST);
        lk_release(own, BYTE);
    }
    lk_lockfile_close(own);
    pf_volume_close(volume);
    return 0;
}

static pid_t start(setting *line, unsigned number, unsigned rounds)
{
    stander me = {line, number, rounds};
    return test_child(stand_in_line, &me);
}

static void processes_have_the_byte_in_the_order_in_which_they_came(void **state)
{
    setting *line = *state;
    sluice_error err;
    pid_t pids[WAITERS];
    ASSERT_OK(lk_line_take(line->lockfile, BYTE, PF_AT_ONCE, go_on, NULL, &err));
    for (unsigned i = 0; i < WAITERS; i++) {
        pids[i] = start(line, i, 1);
        wait_for_length(line, i + 1);
    }
    test_child_kill(pids[3]); /* in the middle: the ones behind close the gap */
    wait_for_length(line, WAITERS - 1);
    lk_release(line->lockfile, BYTE);
    for (unsigned i = 0; i < WAITERS; i++) {
        if (i != 3)
            test_child_expect_exit(pids[i], 0);
    }
    assert_int_equal(line->shared->count, WAITERS - 1);
    for (unsigned i = 0; i < WAITERS - 1; i++)
        assert_int_equal(line->shared->order[i], i < 3 ? i : i + 1);
    assert_int_equal(length_of(line), 0);
}

static int hold_for_ever(void *context)
{
    const setting *line = context;
    pf_volume *volume;
    lk_lockfile *own;
    open_handle(line->folder, &volume, &own);
    if (lk_line_take(own, BYTE, PF_AT_ONCE, go_on, NULL, NULL) == SLUICE_OK)
        line->shared->held = 1;
    while (pause() != 0)
        continue;
    return 1;
}

static void a_holder_that_is_killed_is_followed_by_the_next_in_line(void **state)
{
    setting *line = *state;
    pid_t holder = test_child(hold_for_ever, line);
    test_wait_for(&line->shared->held, 1);
    pid_t next = start(line, 1, 1);
    wait_for_length(line, 1);
    test_child_kill(holder);
    test_child_expect_exit(next, 0);
    assert_int_equal(line->shared->count, 1);
}

static void whoever_comes_again_and_again_has_it_alone_and_each_has_it(void **state)
{
    setting *line = *state;
    pid_t pids[WAITERS];
    for (unsigned i = 0; i < WAITERS; i++)
        pids[i] = start(line, i, 50);
    for (unsigned i = 0; i < WAITERS; i++)
        test_child_expect_exit(pids[i], 0);
    assert_int_equal(line->shared->count, WAITERS * 50);
    assert_int_equal(length_of(line), 0);
}

static void one_more_than_the_places_is_turned_away(void **state)
{
    setting *line = *state;
    sluice_error err = {0};
    pf_volume *volume;
    lk_lockfile *other;
    open_handle(line->folder, &volume, &other);
    ASSERT_OK(lk_take(other, BYTE, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    for (uint32_t place = 1; place <= LK_LINE_PLACES; place++)
        ASSERT_OK(lk_take(other, LK_LINE_PLACE(BYTE, place), PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_QUEUE_FULL, lk_line_take(line->lockfile, BYTE, pf_deadline_in_ms(LONG_MS), go_on, NULL, &err));
    for (uint32_t place = 1; place <= LK_LINE_PLACES; place++)
        lk_release(other, LK_LINE_PLACE(BYTE, place));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 lk_line_take(line->lockfile, BYTE, pf_deadline_in_ms(5), go_on, NULL, &err));
    lk_release(other, BYTE);
    ASSERT_OK(lk_line_take(line->lockfile, BYTE, PF_AT_ONCE, go_on, NULL, &err));
    lk_release(line->lockfile, BYTE);
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

static void a_line_of_few_is_not_full_though_its_end_is_at_the_last_place(void **state)
{
    setting *line = *state;
    sluice_error err = {0};
    unsigned asked = 0;
    pf_volume *volume;
    lk_lockfile *other;
    open_handle(line->folder, &volume, &other);
    ASSERT_OK(lk_take(other, BYTE, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(lk_take(other, LK_LINE_PLACE(BYTE, LK_LINE_PLACES), PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 lk_line_take(line->lockfile, BYTE, pf_deadline_in_ms(5), go_on, NULL, &err));
    ASSERT_FAILS(SLUICE_CANCELLED,
                 lk_line_take(line->lockfile, BYTE, pf_deadline_in_ms(LONG_MS), give_up, &asked, &err));
    pid_t newcomer = start(line, 1, 1);
    lk_release(other, LK_LINE_PLACE(BYTE, LK_LINE_PLACES)); /* it moves up */
    lk_release(other, BYTE);
    test_child_expect_exit(newcomer, 0);
    assert_int_equal(length_of(line), 0);
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

static void what_ends_the_wait_leaves_no_place(void **state)
{
    setting *line = *state;
    sluice_error err = {0};
    pf_volume *volume;
    lk_lockfile *other;
    unsigned asked = 0;
    bool is_free = false;
    open_handle(line->folder, &volume, &other);
    ASSERT_OK(lk_take(other, BYTE, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_CANCELLED,
                 lk_line_take(line->lockfile, BYTE, pf_deadline_in_ms(LONG_MS), give_up, &asked, &err));
    ASSERT_OK(lk_is_free(other, LK_LINE_PLACE(BYTE, 0), LK_LINE_STRIDE, &is_free, &err));
    assert_true(is_free);
    lk_lockfile_close(other);
    pf_volume_close(volume);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(processes_have_the_byte_in_the_order_in_which_they_came, make, unmake),
        cmocka_unit_test_setup_teardown(a_holder_that_is_killed_is_followed_by_the_next_in_line, make, unmake),
        cmocka_unit_test_setup_teardown(whoever_comes_again_and_again_has_it_alone_and_each_has_it, make, unmake),
        cmocka_unit_test_setup_teardown(one_more_than_the_places_is_turned_away, make, unmake),
        cmocka_unit_test_setup_teardown(a_line_of_few_is_not_full_though_its_end_is_at_the_last_place, make, unmake),
        cmocka_unit_test_setup_teardown(what_ends_the_wait_leaves_no_place, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
