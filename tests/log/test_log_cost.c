/*
 * What a log costs, in volume calls: an append one write and one flush beside the mark's write, the same after 10,000;
 * an opening for reading five reads of as many bytes; a refresh three reads (G-09, LESSONS 12).
 */
#include "crash_fixture.h"

#include <string.h>

#define APPENDS 25000u

static pf_sim_disk *new_log(void)
{
    sluice_error err = {0};
    pf_sim_disk *disk;
    ASSERT_OK(pf_sim_disk_new(9, &disk, &err));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(log_fixture_make(volume, &err));
    pf_volume_close(volume);
    return disk;
}

static void expect_opening_reads_the_same(pf_sim_disk *disk, uint64_t end)
{
    sluice_error err = {0};
    st_log *log;
    st_record record = {0};
    pf_volume *volume = crash_actor(disk);

    pf_volume_counters_reset(volume);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    assert_int_equal(st_log_end(log).number, end);
    pf_counters opened = *pf_volume_counters(volume);
    assert_int_equal(opened.opens, 3); /* CURRENT, the mark, one segment */
    /* The mark, CURRENT, the opening record's manifest, the record at the mark, what stands behind it: however long the
     * segment is. */
    assert_int_equal(opened.reads, 5);
    assert_in_range(opened.bytes_read, 1, 512 + 4608 + 16384 + 65536 + 4096);
    assert_int_equal(opened.lists, 0);
    assert_int_equal(opened.writes + opened.file_syncs + opened.directory_syncs + opened.creates, 0);

    ASSERT_OK(st_log_refresh(log, &err));
    pf_counters refreshed = *pf_volume_counters(volume);
    assert_in_range(refreshed.reads - opened.reads, 1, 3);
    assert_in_range(refreshed.bytes_read - opened.bytes_read, 1, 16384);

    /* The newest record: one read. An old one: its segment's opening record, heads, and the record. */
    ASSERT_OK(st_log_read(log, end, &record, &err));
    st_record_free(&record);
    pf_counters newest = *pf_volume_counters(volume);
    assert_int_equal(newest.reads - refreshed.reads, 1);
    ASSERT_OK(st_log_read(log, end / 2, &record, &err));
    st_record_free(&record);
    pf_counters old = *pf_volume_counters(volume);
    assert_int_equal(old.opens - newest.opens, 1);
    ASSERT_OK(st_log_read(log, end / 2 - 1, &record, &err));
    st_record_free(&record);
    assert_int_equal(pf_volume_counters(volume)->reads - old.reads, 1);
    st_log_close(log);
    pf_volume_close(volume);
}

static void an_append_costs_one_flush_however_many_came_before(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_log *log;
    st_append_outcome outcome;
    pf_counters first = {0}, before;
    unsigned switches = 0;
    pf_sim_disk *disk = new_log();
    pf_volume *volume = crash_actor(disk);

    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    for (unsigned i = 1; i <= APPENDS; i++) {
        uint64_t segment = st_log_end(log).segment;
        before = *pf_volume_counters(volume);
        ASSERT_OK(log_fixture_append(log, 0, 500, &outcome, &err));
        pf_counters cost = *pf_volume_counters(volume);
        if (st_log_end(log).segment != segment) {
            switches++;
            assert_in_range(cost.file_syncs - before.file_syncs, 2, 4); /* opening record, CURRENT, mark, record */
            assert_int_equal(cost.directory_syncs - before.directory_syncs, 1);
            continue;
        }
        assert_int_equal(cost.file_syncs - before.file_syncs, 1);
        assert_int_equal(cost.writes - before.writes, 2);
        assert_int_equal(cost.bytes_written - before.bytes_written, 4096 + 512);
        assert_int_equal(cost.directory_syncs - before.directory_syncs, 0);
        if (i == 2)
            first =
                (pf_counters){.calls = cost.calls - before.calls, .bytes_read = cost.bytes_read - before.bytes_read};
        if (i > 2) {
            assert_int_equal(cost.calls - before.calls, first.calls);
            assert_int_equal(cost.bytes_read - before.bytes_read, first.bytes_read);
        }
        if (i == 100)
            expect_opening_reads_the_same(disk, i);
    }
    /* Segments of 64, 128, 256, 512 and then 1,024 records. */
    assert_int_equal(switches, 4 + (APPENDS - 1 - 960) / 1024);
    expect_opening_reads_the_same(disk, APPENDS);
    st_log_close(log);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* A new log may continue another one at any number, as a branch does; its cost knows nothing of what came before. */
static void a_log_that_continues_a_long_one_opens_as_quickly(void **state)
{
    (void)state;
    static const uint64_t fork = 100000;
    sluice_error err = {0};
    const pf_buffer none = {0};
    pf_buffer opening = {0};
    pf_sha256 digest;
    st_log *log;
    st_record record;
    st_append_outcome outcome;
    pf_sim_disk *disk = new_log();
    pf_volume *volume = crash_actor(disk);

    memset(&digest, 7, sizeof(digest));
    ASSERT_OK(pf_make_folder(volume, "branches/8", &err));
    ASSERT_OK(pf_buffer_append_text(&opening, "{}\n", &err));
    ASSERT_OK(st_log_make(volume, "branches/8", 8, fork, &digest, &opening, &none, &err));
    ASSERT_OK(st_log_open(volume, "branches/8", 8, PF_WRITE, &log, &err));
    assert_int_equal(st_log_end(log).number, fork);
    assert_int_equal(st_log_end(log).acknowledged, fork);
    st_log_position at = st_log_end(log);
    assert_true(pf_sha256_equal(&at.digest, &digest));
    assert_int_equal(st_log_first(log), fork + 1);
    ASSERT_OK(log_fixture_append(log, 0, 500, &outcome, &err));
    ASSERT_OK(st_log_read(log, fork + 1, &record, &err));
    assert_true(pf_sha256_equal(&record.parent, &digest));
    st_record_free(&record);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_log_read(log, fork, &record, &err));
    ASSERT_OK(st_log_read_opening(log, &record, &err));
    assert_int_equal(record.number, fork);
    assert_int_equal(record.manifest_length, 3);
    assert_memory_equal(record.manifest, "{}\n", 3);
    st_record_free(&record);
    st_log_close(log);
    pf_buffer_free(&opening);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_costs_one_flush_however_many_came_before),
        cmocka_unit_test(a_log_that_continues_a_long_one_opens_as_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
