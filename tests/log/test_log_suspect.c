/*
 * Failures of the medium: what the caller is told, what everybody else sees, and how it ends (L-017, OD-052, P-13); and
 * what is no failure of the medium.
 */
#include "crash_fixture.h"
#include "platform/failpoint.h"

#include <errno.h>
#include <string.h>

typedef struct bench {
    pf_sim_disk *disk;
    history past;
    pf_volume *volume;
    st_log *log;
} bench;

static void begin(bench *b, pf_sim_loss failed_sync)
{
    sluice_error err = {0};
    memset(b, 0, sizeof(*b));
    ASSERT_OK(pf_sim_disk_new(21, &b->disk, &err));
    b->volume = crash_actor(b->disk);
    ASSERT_OK(log_fixture_make(b->volume, &err));
    pf_sim_set_failed_sync(b->disk, failed_sync);
    crash_append(b->disk, &b->past, 3, 100);
    ASSERT_OK(st_log_open(b->volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &b->log, &err));
    assert_int_equal(st_log_end(b->log).number, 3);
}

static void end(bench *b)
{
    st_log_close(b->log);
    pf_volume_close(b->volume);
    pf_sim_disk_free(b->disk);
}

/* Appends generation 4 with the k-th call failing: 1 the write, 2 the flush, 3 the mark. */
static sluice_status append_failing(bench *b, uint64_t k, int error_number, st_append_outcome *ret_outcome,
                                    sluice_error *err)
{
    size_t attached = k == 1 ? 90000 : 9000; /* of a failing write a beginning may be there, by the seed */
    pf_sim_fail_at(b->volume, k, error_number, 1);
    b->past.at[4].flavour = 2;
    b->past.at[4].attached = attached;
    sluice_status status = log_fixture_append(b->log, 2, attached, ret_outcome, err);
    pf_sim_fail_at(b->volume, 0, 0, 1);
    return status;
}

/* Another process appends: SUSPECT, and nothing changes. */
static void expect_suspect_for_others(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_log *log;
    st_append_outcome outcome;
    uint64_t before = pf_sim_digest(disk);
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    ASSERT_FAILS(SLUICE_SUSPECT, st_log_check_suspect(log, &err));
    ASSERT_FAILS(SLUICE_SUSPECT, log_fixture_append(log, 1, 100, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    st_log_close(log);
    pf_volume_close(volume);
    assert_true(pf_sim_digest(disk) == before);
}

static void heal_by_another(bench *b)
{
    sluice_error err = {0};
    pf_volume *volume = crash_actor(b->disk);
    ASSERT_OK(crash_act(volume, NULL, false, &b->past, &err));
    pf_volume_close(volume);
}

static void a_failed_flush_is_committed_not_acknowledged_and_suspect_until_healed(void **state)
{
    (void)state;
    static const pf_sim_loss reached[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_RANDOM};
    for (size_t i = 0; i < sizeof(reached) / sizeof(reached[0]); i++) {
        sluice_error err = {0};
        st_append_outcome outcome;
        bench b;
        begin(&b, reached[i]);
        ASSERT_FAILS(SLUICE_IO, append_failing(&b, 2, EIO, &outcome, &err));
        assert_int_equal(outcome, ST_APPEND_VISIBLE);
        assert_int_equal(err.committed, SLUICE_TRUE);
        assert_int_equal(err.acknowledged, SLUICE_FALSE);
        b.past.possible = 4;
        assert_int_equal(crash_check(b.disk, &b.past), 4); /* readers read on */
        ASSERT_FAILS(SLUICE_SUSPECT, st_log_check_suspect(b.log, &err));
        expect_suspect_for_others(b.disk);
        heal_by_another(&b);
        assert_int_equal(b.past.acknowledged, 4);
        ASSERT_OK(st_log_check_suspect(b.log, &err));
        ASSERT_OK(st_log_refresh(b.log, &err));
        assert_int_equal(st_log_end(b.log).number, 4);
        pf_sim_power_loss(b.disk, PF_SIM_LOSE_ALL);
        assert_int_equal(crash_check(b.disk, &b.past), 4);
        end(&b);
    }
}

/* The page cache drops the record that never reached the medium: its copy in the suspect file brings it back. */
static void healing_brings_back_a_record_that_fell_out_of_the_cache(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    pf_file *file;
    static uint8_t bytes[64 * 1024];

    begin(&b, PF_SIM_LOSE_ALL);
    ASSERT_FAILS(SLUICE_IO, append_failing(&b, 2, EIO, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_VISIBLE);
    b.past.possible = 4;
    pf_volume *volume = crash_actor(b.disk);
    ASSERT_OK(pf_open(volume, LOG_FOLDER "/log/1.seg", PF_READ, &file, &err));
    ASSERT_OK(pf_read_medium(file, 0, bytes, sizeof(bytes), &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    assert_int_equal(crash_check(b.disk, &b.past), 3); /* nobody reads the copy to answer */
    heal_by_another(&b);
    assert_int_equal(b.past.acknowledged, 4);
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    end(&b);
}

static void a_failed_write_is_not_committed(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    ASSERT_FAILS(SLUICE_IO, append_failing(&b, 1, EIO, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    assert_int_equal(err.committed, SLUICE_FALSE);
    b.past.possible = 3;
    assert_int_equal(crash_check(b.disk, &b.past), 3);
    expect_suspect_for_others(b.disk);
    heal_by_another(&b);
    assert_int_equal(b.past.acknowledged, 3);
    crash_append(b.disk, &b.past, 2, 100);
    assert_int_equal(crash_check(b.disk, &b.past), 5);
    end(&b);
}

static void a_full_disk_refuses_the_write_and_nothing_more(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    ASSERT_FAILS(SLUICE_NO_SPACE, append_failing(&b, 1, ENOSPC, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    ASSERT_OK(st_log_check_suspect(b.log, &err));
    /* No room for a new segment either: the file is given back. */
    pf_sim_set_free_space(b.disk, 20 * 4096);
    ASSERT_FAILS(SLUICE_NO_SPACE, log_fixture_append(b.log, 2, 300000, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    assert_int_equal(err.committed, SLUICE_FALSE);
    ASSERT_OK(st_log_check_suspect(b.log, &err));
    pf_stat stat;
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(b.volume, LOG_FOLDER "/log/2.seg", &stat, &err));
    crash_append(b.disk, &b.past, 2, 100); /* there is still room in the old one */
    assert_int_equal(crash_check(b.disk, &b.past), 5);
    end(&b);
}

/* The flush returned: the record is durable, whatever becomes of the mark. */
static void a_mark_that_cannot_be_written_is_acknowledged_all_the_same(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    ASSERT_OK(append_failing(&b, 3, EIO, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_ACKNOWLEDGED);
    b.past.acknowledged = b.past.possible = 4;
    expect_suspect_for_others(b.disk);
    pf_sim_power_loss(b.disk, PF_SIM_LOSE_ALL);
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    heal_by_another(&b);
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    end(&b);
}

static void a_failed_switch_is_not_committed_and_heals(void **state)
{
    (void)state;
    /* create, fill, write, sync, folder, CURRENT, its sync, mark, its sync */
    for (uint64_t k = 1; k <= 9; k++) {
        sluice_error err = {0};
        st_append_outcome outcome;
        bench b;
        begin(&b, PF_SIM_RANDOM);
        pf_sim_fail_at(b.volume, k, EIO, 1);
        ASSERT_FAILS(SLUICE_IO, log_fixture_append(b.log, 2, 300000, &outcome, &err));
        assert_int_equal(outcome, ST_APPEND_NOT);
        assert_int_equal(err.committed, SLUICE_FALSE);
        assert_int_equal(crash_check(b.disk, &b.past), 3);
        expect_suspect_for_others(b.disk);
        heal_by_another(&b);
        assert_int_equal(b.past.acknowledged, 3);
        crash_append(b.disk, &b.past, 2, 300000);
        pf_sim_power_loss(b.disk, PF_SIM_LOSE_ALL);
        assert_int_equal(crash_check(b.disk, &b.past), 5);
        end(&b);
    }
}

/* Nothing can be written any more, not even the suspect file: the process remembers, and others write the end again
 * before they build on it. */
static void a_disk_that_takes_nothing_more_leaves_the_end_to_the_next_one(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    b.past.at[4].flavour = 2;
    b.past.at[4].attached = 9000;
    pf_sim_fail_at(b.volume, 2, EIO, 0);
    ASSERT_FAILS(SLUICE_IO, log_fixture_append(b.log, 2, 9000, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_VISIBLE);
    ASSERT_FAILS(SLUICE_SUSPECT, log_fixture_append(b.log, 2, 9000, &outcome, &err));
    pf_sim_fail_at(b.volume, 0, 0, 1);
    b.past.possible = 4;
    heal_by_another(&b); /* which finds no suspect file, only an end above the mark */
    assert_int_equal(b.past.acknowledged, 4);
    pf_sim_power_loss(b.disk, PF_SIM_LOSE_ALL);
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    end(&b);
}

/* The record cannot be read again: unknown, and the truth comes out later. */
static void an_outcome_that_cannot_be_read_is_unknown(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_RANDOM);
    ASSERT_OK(st_log_settle(b.log, &err));
    b.past.at[4].flavour = 2;
    b.past.at[4].attached = 9000;
    for (uint64_t look = 1; look < 100; look++) { /* the look that fails moves on until it is the one after the flush */
        pf_sim_fail_at(b.volume, 2, EIO, 1);
        pf_sim_fail_look_at(b.volume, look, EIO, 1);
        sluice_status status = log_fixture_append(b.log, 2, 9000, &outcome, &err);
        assert_int_equal(status, SLUICE_IO);
        if (outcome != ST_APPEND_NOT)
            break;
    }
    assert_int_equal(outcome, ST_APPEND_UNKNOWN);
    assert_int_equal(err.committed, SLUICE_UNKNOWN);
    pf_sim_fail_look_at(b.volume, 0, 0, 1);
    b.past.possible = 4;
    expect_suspect_for_others(b.disk);
    heal_by_another(&b);
    assert_int_equal(b.past.acknowledged, 4);
    end(&b);
}

static void a_log_that_moved_is_not_appended_to(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    pf_sha256 digest;
    pf_buffer manifest = {0}, attachments = {0};
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    crash_append(b.disk, &b.past, 1, 100);
    log_fixture_content(4, 3, 0, &manifest, &attachments);
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, st_log_append(b.log, &manifest, &attachments, NULL, &outcome, &digest, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    end(&b);
}

/* A publisher that died in its write: the next one may not append before it settled. */
static void an_end_that_is_not_acknowledged_is_not_built_on(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    pf_sha256 digest;
    pf_buffer manifest = {0}, attachments = {0};
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    pf_sim_crash_at(b.volume, 1, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    (void)log_fixture_append(b.log, 2, 9000, &outcome, &err);
    assert_int_equal(outcome, ST_APPEND_UNKNOWN);

    st_log *log;
    pf_volume *volume = crash_actor(b.disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    assert_int_equal(st_log_end(log).number, 4);
    assert_int_equal(st_log_end(log).acknowledged, 3);
    log_fixture_content(5, 3, 0, &manifest, &attachments);
    ASSERT_FAILS(SLUICE_INTERNAL, st_log_append(log, &manifest, &attachments, NULL, &outcome, &digest, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    pf_counters before = *pf_volume_counters(volume);
    ASSERT_OK(st_log_settle(log, &err));
    pf_counters after = *pf_volume_counters(volume);
    assert_int_equal(after.file_syncs - before.file_syncs, 1);
    assert_int_equal(after.bytes_written - before.bytes_written, 12288 + 512); /* that record, and the mark */
    assert_int_equal(st_log_end(log).acknowledged, 4);
    pf_sim_power_loss(b.disk, PF_SIM_LOSE_ALL);
    st_log_close(log);
    pf_volume_close(volume);
    b.past.at[4].flavour = 2;
    b.past.at[4].attached = 9000;
    b.past.acknowledged = b.past.possible = 4;
    assert_int_equal(crash_check(b.disk, &b.past), 4);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    end(&b);
}

static bool refuse(void *context)
{
    (void)context;
    return false;
}

static void a_fenced_owner_appends_nothing(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_append_outcome outcome;
    bench b;
    begin(&b, PF_SIM_LOSE_ALL);
    uint64_t before = pf_sim_digest(b.disk);
    pf_volume_set_fence(b.volume, refuse, NULL);
    ASSERT_FAILS(SLUICE_FENCED, log_fixture_append(b.log, 2, 100, &outcome, &err));
    assert_int_equal(outcome, ST_APPEND_NOT);
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_true(pf_sim_digest(b.disk) == before);
    pf_volume_set_fence(b.volume, NULL, NULL);
    end(&b);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_flush_is_committed_not_acknowledged_and_suspect_until_healed),
        cmocka_unit_test(healing_brings_back_a_record_that_fell_out_of_the_cache),
        cmocka_unit_test(a_failed_write_is_not_committed),
        cmocka_unit_test(a_full_disk_refuses_the_write_and_nothing_more),
        cmocka_unit_test(a_mark_that_cannot_be_written_is_acknowledged_all_the_same),
        cmocka_unit_test(a_failed_switch_is_not_committed_and_heals),
        cmocka_unit_test(a_disk_that_takes_nothing_more_leaves_the_end_to_the_next_one),
        cmocka_unit_test(an_outcome_that_cannot_be_read_is_unknown),
        cmocka_unit_test(a_log_that_moved_is_not_appended_to),
        cmocka_unit_test(an_end_that_is_not_acknowledged_is_not_built_on),
        cmocka_unit_test(a_fenced_owner_appends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
