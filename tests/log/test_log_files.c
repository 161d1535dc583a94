/*
 * A log on real files: what is written is read back by number, over segment switches, by other handles and processes;
 * two processes that append under the publish lock make one chain.
 */
#include "locks/oslock.h"
#include "log_fixture.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    char *folder;
    char *path;
    pf_volume *volume;
} fixture;

static int set_up(void **state)
{
    sluice_error err = {0};
    fixture *f = calloc(1, sizeof(*f));
    f->folder = test_folder_make();
    f->path = test_path(f->folder, "graph");
    ASSERT_OK(pf_volume_make(f->path, &f->volume, &err));
    ASSERT_OK(log_fixture_make(f->volume, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    pf_volume_close(f->volume);
    free(f->path);
    test_folder_remove(f->folder);
    free(f);
    return 0;
}

static size_t attached_of(uint64_t number)
{
    return number % 7 == 0 ? 70000 : (size_t)(number * 37 % 6000);
}

static void what_is_appended_is_read_back_by_number(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    st_log *log, *reader;
    st_append_outcome outcome;
    st_record record = {0};

    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    assert_int_equal(st_log_end(log).number, 0);
    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &reader, &err));
    for (uint64_t number = 1; number <= 120; number++) {
        ASSERT_OK(log_fixture_append(log, 1, attached_of(number), &outcome, &err));
        assert_int_equal(outcome, ST_APPEND_ACKNOWLEDGED);
        assert_int_equal(st_log_end(log).number, number);
        assert_int_equal(st_log_end(log).acknowledged, number);
    }
    assert_true(st_log_end(log).segment > 2);
    ASSERT_OK(st_log_refresh(reader, &err));
    assert_int_equal(st_log_end(reader).number, 120);
    for (uint64_t number = 120; number >= 1; number--) {
        ASSERT_OK(st_log_read(reader, number, &record, &err));
        assert_true(log_fixture_is(&record, number, 1, attached_of(number)));
        st_record_free(&record);
    }
    assert_int_equal(st_log_first(reader), 1);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_log_read(reader, 121, &record, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_log_read(reader, 0, &record, &err));
    ASSERT_OK(st_log_verify(reader, NULL, NULL, &err));
    st_log_close(reader);
    st_log_close(log);
}

#define EACH_APPENDS 2000u

static int append_many(void *context)
{
    const char *path = context;
    sluice_error err = {0};
    pf_volume *volume;
    st_log *log;
    lk_lockfile *locks;
    st_append_outcome outcome;

    if (pf_volume_open(path, PF_WRITE, &volume, &err) != SLUICE_OK ||
        st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err) != SLUICE_OK ||
        lk_lockfile_open(volume, LOG_FOLDER "/locks", &locks, &err) != SLUICE_OK)
        goto failed;
    for (unsigned i = 0; i < EACH_APPENDS; i++) {
        if (lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err) != SLUICE_OK ||
            log_fixture_append(log, 0, 100, &outcome, &err) != SLUICE_OK)
            goto failed;
        lk_release(locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(locks);
    st_log_close(log);
    pf_volume_close(volume);
    return 0;
failed:
    (void)fprintf(stderr, "child: %s\n", err.text);
    return 1;
}

static sluice_status count_records(void *context, const st_record *record, sluice_error *err)
{
    uint64_t *next = context;
    (void)err;
    if (record->kind == ST_RECORD_GENERATION) {
        assert_int_equal(record->number, *next);
        assert_true(log_fixture_is(record, *next, 0, 100));
        ++*next;
    }
    return SLUICE_OK;
}

static void two_processes_append_one_chain_without_gap(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    st_log *log;
    uint64_t next = 1;

    pid_t first = test_child(append_many, f->path);
    pid_t second = test_child(append_many, f->path);
    test_child_expect_exit(first, 0);
    test_child_expect_exit(second, 0);
    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    assert_int_equal(st_log_end(log).number, 2 * EACH_APPENDS);
    assert_int_equal(st_log_end(log).acknowledged, 2 * EACH_APPENDS);
    ASSERT_OK(st_log_verify(log, count_records, &next, &err));
    assert_int_equal(next, 2 * EACH_APPENDS + 1);
    st_log_close(log);
}

/* ---- readers beside a writer (OW-082) ---- */

#define WATCHED 1500u

static int watch(void *context)
{
    const char *path = context;
    sluice_error err = {0};
    pf_volume *volume;
    st_log *log, *fresh;
    st_record record;
    uint64_t last = 0;

    if (pf_volume_open(path, PF_READ, &volume, &err) != SLUICE_OK ||
        st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err) != SLUICE_OK)
        goto failed;
    for (unsigned round = 0; last < WATCHED; round++) {
        if (st_log_refresh(log, &err) != SLUICE_OK)
            goto failed;
        st_log_position end = st_log_end(log);
        if (end.number < last || end.number < end.acknowledged)
            return 2;
        last = end.number;
        if (last > 0) {
            if (st_log_read(log, last, &record, &err) != SLUICE_OK)
                goto failed;
            bool right = log_fixture_is(&record, last, 1, attached_of(last));
            st_record_free(&record);
            if (!right)
                return 3;
        }
        if (round % 64 == 0) { /* another process opens afresh: it sees at least what was acknowledged */
            if (st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &fresh, &err) != SLUICE_OK)
                goto failed;
            uint64_t seen = st_log_end(fresh).number;
            st_log_close(fresh);
            if (seen < end.acknowledged)
                return 4;
        }
    }
    st_log_close(log);
    pf_volume_close(volume);
    return 0;
failed:
    (void)fprintf(stderr, "reader: %s\n", err.text);
    return 1;
}

static void readers_beside_a_writer_see_whole_generations_and_never_go_back(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    st_log *log;
    st_append_outcome outcome;
    pid_t readers[2];

    for (int i = 0; i < 2; i++)
        readers[i] = test_child(watch, f->path);
    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    for (uint64_t number = 1; number <= WATCHED; number++)
        ASSERT_OK(log_fixture_append(log, 1, attached_of(number), &outcome, &err));
    for (int i = 0; i < 2; i++)
        test_child_expect_exit(readers[i], 0);
    st_log_close(log);
}

/* ---- kill -9 ---- */

typedef struct ledger { /* in shared memory: survives the writer */
    char path[512];
    volatile uint64_t started, acknowledged;
} ledger;

static int append_until_killed(void *context)
{
    ledger *book = context;
    sluice_error err = {0};
    pf_volume *volume;
    st_log *log;
    lk_lockfile *locks;
    st_append_outcome outcome;

    if (pf_volume_open(book->path, PF_WRITE, &volume, &err) != SLUICE_OK ||
        st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err) != SLUICE_OK ||
        lk_lockfile_open(volume, LOG_FOLDER "/locks", &locks, &err) != SLUICE_OK ||
        lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(TEST_WAIT_MS), &err) != SLUICE_OK)
        return 1;
    for (;;) {
        if (st_log_settle(log, &err) != SLUICE_OK)
            return 2;
        uint64_t number = st_log_end(log).number + 1;
        book->started = number;
        if (log_fixture_append(log, 1, attached_of(number), &outcome, &err) != SLUICE_OK)
            return 3;
        book->acknowledged = number;
    }
}

static void writers_that_are_killed_lose_nothing_acknowledged(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    uint64_t random = 424242;
    ledger *book = test_shared(sizeof(*book));
    (void)snprintf(book->path, sizeof(book->path), "%s", f->path);

    for (int round = 0; round < 40; round++) {
        uint64_t before = book->acknowledged;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t goal = before + 1 + (random >> 33) % 60;
        pid_t writer = test_child(append_until_killed, book);
        int64_t give_up = pf_monotonic_ns() + INT64_C(1000000) * TEST_WAIT_MS;
        while (book->acknowledged < goal && pf_monotonic_ns() < give_up)
            pf_backoff(0, pf_deadline_in_ms(1));
        test_child_kill(writer);
        assert_true(book->acknowledged >= goal);

        st_log *log;
        st_record record;
        ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
        uint64_t end = st_log_end(log).number;
        assert_in_range(end, book->acknowledged, book->started);
        ASSERT_OK(st_log_read(log, end, &record, &err));
        assert_true(log_fixture_is(&record, end, 1, attached_of(end)));
        st_record_free(&record);
        if (round % 8 == 0)
            ASSERT_OK(st_log_verify(log, NULL, NULL, &err));
        st_log_close(log);
    }
}

/* ---- more segments than an opening record names ---- */

#define MANY 67u

static void old_generations_are_found_behind_the_longest_list(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    st_log *log;
    st_append_outcome outcome;
    st_record record;
    pf_file *file;

    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    for (unsigned i = 0; i < MANY; i++) { /* each healing opens a segment */
        ASSERT_OK(log_fixture_append(log, 1, 100, &outcome, &err));
        ASSERT_OK(log_fixture_append(log, 1, 100, &outcome, &err));
        ASSERT_OK(pf_create(f->volume, LOG_FOLDER "/suspect", &file, &err));
        ASSERT_OK(pf_close(file, &err));
        st_opening_source opening = log_fixture_opening(log);
        ASSERT_OK(st_log_heal(log, &opening, &err));
    }
    st_log_close(log);
    ASSERT_OK(st_log_open(f->volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    assert_int_equal(st_log_end(log).segment, MANY + 1);
    for (uint64_t number = 1; number <= 2 * MANY; number++) {
        ASSERT_OK(st_log_read(log, number, &record, &err));
        assert_true(log_fixture_is(&record, number, 1, 100));
        st_record_free(&record);
    }
    uint64_t last = 0;
    for (uint64_t number = 2 * MANY; number > 0; number -= number > 13 ? 13 : number) {
        ASSERT_OK(st_log_read(log, number, &record, &err));
        last = record.number;
        st_record_free(&record);
    }
    assert_in_range(last, 1, 13);
    ASSERT_OK(st_log_verify(log, NULL, NULL, &err));
    st_log_close(log);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_appended_is_read_back_by_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_processes_append_one_chain_without_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readers_beside_a_writer_see_whole_generations_and_never_go_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(writers_that_are_killed_lose_nothing_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_generations_are_found_behind_the_longest_list, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
