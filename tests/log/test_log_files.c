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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_appended_is_read_back_by_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_processes_append_one_chain_without_gap, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
