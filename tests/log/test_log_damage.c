/*
 * Damage: a flipped byte anywhere, a missing or mistreated file. Opening and reading answer as before or say CORRUPT,
 * and never an older generation (OD-026, OD-028, L-049, L-050).
 */
#include "crash_fixture.h"

#include <stdio.h>
#include <string.h>

#define SEGMENT(n) LOG_FOLDER "/log/" #n ".seg"

/* Every byte; with sanitizers, which are slow here, each fifth, so that each place within a word has its turn. */
#if defined(__SANITIZE_ADDRESS__)
#define STEP 5u
#else
#define STEP 1u
#endif
#define FLIPS(bytes) (((bytes) + STEP - 1) / STEP)

/* Two segments: generations 1 to 3 in the first, of which the third fills it, 4 and 5 in the second. */
static pf_sim_disk *small_log(history *past)
{
    sluice_error err = {0};
    pf_sim_disk *disk;
    memset(past, 0, sizeof(*past));
    ASSERT_OK(pf_sim_disk_new(5, &disk, &err));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(log_fixture_make(volume, &err));
    pf_volume_close(volume);
    crash_append(disk, past, 2, 100);
    crash_append(disk, past, 1, 248000);
    crash_append(disk, past, 2, 5000);
    return disk;
}

typedef enum verdict { SAME, REFUSED, OLDER } verdict;

/* What a fresh handle says: the end as it was and every record but `skipped` as it was or refused; or a refusal. */
static verdict read_as(pf_sim_disk *disk, const history *past, pf_access access, uint64_t skipped,
                       unsigned *refused_records)
{
    sluice_error err = {0};
    st_log *log;
    st_record record = {0};
    verdict said = REFUSED;
    pf_volume *volume = crash_actor(disk);

    sluice_status status = st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, access, &log, &err);
    if (status == SLUICE_OK) {
        said = st_log_end(log).number == past->acknowledged ? SAME : OLDER;
        for (uint64_t number = 1; number <= past->acknowledged; number++) {
            if (number == skipped)
                continue;
            status = st_log_read(log, number, &record, &err);
            if (status == SLUICE_OK)
                assert_true(log_fixture_is(&record, number, past->at[number].flavour, past->at[number].attached));
            else
                assert_true(status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
            *refused_records += status != SLUICE_OK;
            st_record_free(&record);
        }
        st_log_close(log);
    } else {
        assert_true(status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
    }
    pf_volume_close(volume);
    return said;
}

static verdict read_again(pf_sim_disk *disk, const history *past, unsigned *refused_records)
{
    return read_as(disk, past, PF_READ, 0, refused_records);
}

typedef struct tally {
    unsigned same, refused, records;
} tally;

/* Flips every `step`-th byte of [from, to) of a file, one at a time. */
static tally flip_range_as(pf_sim_disk *disk, const history *past, pf_access access, const char *path, uint64_t from,
                           uint64_t to, uint64_t step, uint64_t skipped)
{
    sluice_error err = {0};
    tally sum = {0};
    char full[128];
    (void)snprintf(full, sizeof(full), "graph/%s", path);
    for (uint64_t at = from; at < to; at += step) {
        uint8_t mask = (uint8_t)(1u << at % 8);
        ASSERT_OK(pf_sim_flip(disk, full, at, mask, &err));
        verdict said = read_as(disk, past, access, skipped, &sum.records);
        assert_int_not_equal(said, OLDER);
        sum.same += said == SAME;
        sum.refused += said == REFUSED;
        ASSERT_OK(pf_sim_flip(disk, full, at, mask, &err));
    }
    return sum;
}

static tally flip_range(pf_sim_disk *disk, const history *past, const char *path, uint64_t from, uint64_t to,
                        uint64_t step, uint64_t skipped)
{
    return flip_range_as(disk, past, PF_READ, path, from, to, step, skipped);
}

static void a_flipped_byte_of_the_active_segment_is_refused(void **state)
{
    (void)state;
    history past;
    pf_sim_disk *disk = small_log(&past);

    /* Opening record and the two generations: head, body and padding, byte by byte. */
    tally sum = flip_range_as(disk, &past, PF_WRITE, SEGMENT(2), 0, 4096 + 2 * 8192, STEP, 0);
    assert_int_equal(sum.same, 0);
    assert_int_equal(sum.refused, FLIPS(4096 + 2 * 8192));
    /* Behind the end anything may stand. */
    sum = flip_range(disk, &past, SEGMENT(2), 4096 + 2 * 8192, 512 * 1024, 4001, 0);
    assert_int_equal(sum.refused, 0);
    pf_sim_disk_free(disk);
}

/* Who only reads begins at the mark: he is refused there, by what he goes by of the opening record, and by what he
 * reads of the rest. */
static void a_reader_is_refused_at_the_end_and_by_each_record_that_is_damaged(void **state)
{
    (void)state;
    history past;
    pf_sim_disk *disk = small_log(&past);

    tally sum = flip_range(disk, &past, SEGMENT(2), 4096 + 8192, 4096 + 2 * 8192, 3 * STEP, 0);
    assert_int_equal(sum.same, 0);
    sum = flip_range(disk, &past, SEGMENT(2), 4096, 4096 + 8192, 3 * STEP, 0);
    assert_int_equal(sum.refused, 0);
    assert_int_equal(sum.records, sum.same);
    sum = flip_range(disk, &past, SEGMENT(2), 0, 320, STEP, 0); /* head and manifest */
    assert_int_equal(sum.same, 0);
    sum = flip_range(disk, &past, SEGMENT(2), 320, 4096, 7 * STEP, 0); /* their end, and what nobody reads every day */
    assert_int_equal(sum.records, 0);
    pf_sim_disk_free(disk);
}

static sluice_status verify_fresh(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_log *log;
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    sluice_status status = st_log_verify(log, NULL, NULL, &err);
    st_log_close(log);
    pf_volume_close(volume);
    return status;
}

/* What a reader does not come across, verify and a copy do: they read the active segment whole. */
static void what_a_reader_does_not_look_at_is_verified(void **state)
{
    (void)state;
    sluice_error err = {0};
    history past;
    pf_sim_disk *disk = small_log(&past);
    assert_int_equal(verify_fresh(disk), SLUICE_OK);
    for (uint64_t at = 4096; at < 4096 + 8192; at += 257) {
        ASSERT_OK(pf_sim_flip(disk, "graph/" SEGMENT(2), at, 4, &err));
        assert_int_equal(verify_fresh(disk), SLUICE_CORRUPT);
        pf_volume *volume = crash_actor(disk);
        st_log *log;
        st_copied copied = {0};
        ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
        char to[32];
        (void)snprintf(to, sizeof to, "branches/%u", (unsigned)at);
        ASSERT_FAILS(SLUICE_CORRUPT, st_log_copy(log, volume, to, NULL, &copied, &err));
        st_log_close(log);
        pf_volume_close(volume);
        ASSERT_OK(pf_sim_flip(disk, "graph/" SEGMENT(2), at, 4, &err));
    }
    pf_sim_disk_free(disk);
}

/* Generations behind the mark are found backwards, small ones among ones that are larger than what is read at once. */
static void a_reader_finds_every_generation_before_the_mark(void **state)
{
    (void)state;
    static const struct {
        unsigned count;
        size_t attached;
    } parts[] = {{3, 120000}, {1, 700000}, {12, 100}, {1, 300000}, {2, 90000}, {9, 60000}, {3, 10}, {1, 200000}};
    sluice_error err = {0};
    history past;
    st_log *log;
    st_record record = {0};
    pf_sim_disk *disk = small_log(&past);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        unsigned refused = 0;
        crash_append(disk, &past, parts[i].count, parts[i].attached);
        assert_int_equal(read_again(disk, &past, &refused), SAME);
        assert_int_equal(refused, 0);
        for (uint64_t number = past.acknowledged; number > 0; number--) { /* and one by one, each by a fresh handle */
            pf_volume *volume = crash_actor(disk);
            ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
            ASSERT_OK(st_log_read(log, number, &record, &err));
            assert_true(log_fixture_is(&record, number, past.at[number].flavour, past.at[number].attached));
            st_record_free(&record);
            if (number == past.acknowledged / 2)
                ASSERT_OK(st_log_verify(log, NULL, NULL, &err));
            st_log_close(log);
            pf_volume_close(volume);
        }
    }
    pf_sim_disk_free(disk);
}

static void a_flipped_byte_of_an_earlier_segment_is_found_when_it_is_read(void **state)
{
    (void)state;
    history past;
    pf_sim_disk *disk = small_log(&past);

    tally sum = flip_range(disk, &past, SEGMENT(1), 0, 3 * 4096, STEP, 3);
    assert_int_equal(sum.refused, 0);
    assert_true(sum.records >= FLIPS(3 * 4096)); /* an index that a damaged head cuts short loses more than one */
    sum = flip_range(disk, &past, SEGMENT(1), 3 * 4096, 3 * 4096 + 244 * 1024, 509, 0);
    assert_int_equal(sum.refused, 0);
    assert_true(sum.records >= 244 * 1024 / 509);
    pf_sim_disk_free(disk);
}

static void a_flipped_byte_of_current_is_refused(void **state)
{
    (void)state;
    history past;
    pf_sim_disk *disk = small_log(&past);

    tally sum = flip_range(disk, &past, LOG_FOLDER "/CURRENT", 0, 512, 1, 0);
    assert_int_equal(sum.refused, 512);
    sum = flip_range(disk, &past, LOG_FOLDER "/CURRENT", 4096, 4096 + 512, 1, 0);
    assert_int_equal(sum.refused, 512);
    pf_sim_disk_free(disk);
}

static void a_flipped_byte_of_the_mark_changes_no_answer(void **state)
{
    (void)state;
    history past;
    pf_sim_disk *disk = small_log(&past);

    tally sum = flip_range(disk, &past, LOG_FOLDER "/acknowledged", 0, 4096, STEP, 0);
    assert_int_equal(sum.refused, 0);
    assert_int_equal(sum.records, 0);
    pf_sim_disk_free(disk);
}

/* With the mark lost too, only damage of the newest record can pass for a torn one: the stated limit. */
static void without_the_mark_a_damaged_record_is_found_by_its_successor(void **state)
{
    (void)state;
    sluice_error err = {0};
    history past;
    pf_sim_disk *disk = small_log(&past);
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_remove(volume, LOG_FOLDER "/acknowledged", &err));
    pf_volume_close(volume);

    tally sum = flip_range(disk, &past, SEGMENT(2), 4096, 4096 + 8192, STEP, 0);
    assert_int_equal(sum.refused, FLIPS(8192));
    pf_sim_disk_free(disk);
}

/* ---- zeros, older copies, missing files ---- */

static void overwrite(pf_sim_disk *disk, const char *path, uint64_t at, const void *bytes, size_t length)
{
    sluice_error err = {0};
    pf_file *file;
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_open(volume, path, PF_WRITE, &file, &err));
    ASSERT_OK(pf_write(file, at, bytes, length, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void read_bytes(pf_sim_disk *disk, const char *path, uint64_t at, void *bytes, size_t length)
{
    sluice_error err = {0};
    pf_file *file;
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_open(volume, path, PF_READ, &file, &err));
    ASSERT_OK(pf_read_exact(file, at, bytes, length, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void expect_writers_refused(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_log *log;
    uint64_t before = pf_sim_digest(disk);
    pf_volume *volume = crash_actor(disk);
    ASSERT_FAILS(SLUICE_CORRUPT, st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    pf_volume_close(volume);
    assert_true(pf_sim_digest(disk) == before);
}

/* A damaged record in the middle: readers are refused that one, writers all. */
static void expect_one_refused(pf_sim_disk *disk, const history *past)
{
    unsigned records = 0;
    assert_int_equal(read_again(disk, past, &records), SAME);
    assert_int_equal(records, 1);
    expect_writers_refused(disk);
}

static void expect_refused_by_all(pf_sim_disk *disk, const history *past)
{
    unsigned records = 0;
    assert_int_equal(read_again(disk, past, &records), REFUSED);
    expect_writers_refused(disk);
}

static void a_zeroed_acknowledged_record_is_corrupt_for_readers_and_writers(void **state)
{
    (void)state;
    static const uint8_t zeros[8192];
    for (int which = 0; which < 2; which++) { /* the newest; the one before, whose successor stands */
        history past;
        pf_sim_disk *disk = small_log(&past);
        overwrite(disk, SEGMENT(2), which == 0 ? 4096 + 8192 : 4096, zeros, sizeof(zeros));
        (which == 0 ? expect_refused_by_all : expect_one_refused)(disk, &past);
        pf_sim_disk_free(disk);
    }
}

static void a_handle_that_is_open_finds_the_damage_too(void **state)
{
    (void)state;
    static const uint8_t zeros[8192];
    sluice_error err = {0};
    history past;
    st_log *reader;
    pf_sim_disk *disk = small_log(&past);
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &reader, &err));
    crash_append(disk, &past, 1, 300);
    overwrite(disk, SEGMENT(2), 4096 + 2 * 8192, zeros, 4096);
    ASSERT_FAILS(SLUICE_CORRUPT, st_log_refresh(reader, &err));
    st_log_close(reader);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void an_older_current_is_corrupt(void **state)
{
    (void)state;
    uint8_t sector[512];
    history past;
    pf_sim_disk *disk = small_log(&past);
    static const uint8_t zeros[512];

    /* The newest sector never arrived, says the medium: the mark knows better. */
    overwrite(disk, LOG_FOLDER "/CURRENT", 4096, zeros, sizeof(zeros));
    expect_refused_by_all(disk, &past);

    /* Two sectors of one sequence. */
    read_bytes(disk, LOG_FOLDER "/CURRENT", 0, sector, sizeof(sector));
    overwrite(disk, LOG_FOLDER "/CURRENT", 4096, sector, sizeof(sector));
    expect_refused_by_all(disk, &past);
    pf_sim_disk_free(disk);
}

static void missing_files_are_corrupt_but_for_the_mark(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        verdict expected;
        unsigned records;
    } cases[] = {{LOG_FOLDER "/CURRENT", REFUSED, 0},
                 {SEGMENT(2), REFUSED, 0},
                 {SEGMENT(1), SAME, 3},
                 {LOG_FOLDER "/acknowledged", SAME, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sluice_error err = {0};
        history past;
        unsigned records = 0;
        pf_sim_disk *disk = small_log(&past);
        pf_volume *volume = crash_actor(disk);
        ASSERT_OK(pf_remove(volume, cases[i].path, &err));
        pf_volume_close(volume);
        assert_int_equal(read_again(disk, &past, &records), cases[i].expected);
        assert_int_equal(records, cases[i].records);
        pf_sim_disk_free(disk);
    }
}

static void replace(pf_sim_disk *disk, const char *path, uint64_t size)
{
    sluice_error err = {0};
    uint8_t bytes[8192];
    pf_file *file;
    read_bytes(disk, path, 0, bytes, sizeof(bytes));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_remove(volume, path, &err));
    ASSERT_OK(pf_create(volume, path, &file, &err));
    ASSERT_OK(pf_write(file, 0, bytes, size < sizeof(bytes) ? size : sizeof(bytes), &err));
    ASSERT_OK(pf_zero_fill(file, size, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_current_of_another_size_is_corrupt(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 512, 4608, 8191, 8193, 12288};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        history past;
        pf_sim_disk *disk = small_log(&past);
        replace(disk, LOG_FOLDER "/CURRENT", sizes[i]);
        expect_refused_by_all(disk, &past);
        pf_sim_disk_free(disk);
    }
}

static void a_shorter_segment_is_corrupt(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 100, 4096, 8192};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        history past;
        pf_sim_disk *disk = small_log(&past);
        replace(disk, SEGMENT(2), sizes[i]);
        expect_refused_by_all(disk, &past);
        pf_sim_disk_free(disk);
    }
}

/* A whole record in a segment that CURRENT does not name elects nothing (OD-010). */
static void a_segment_that_current_does_not_name_is_ignored(void **state)
{
    (void)state;
    sluice_error err = {0};
    history past, ahead;
    pf_sim_disk *disk = small_log(&past), *other;
    uint8_t bytes[4096 * 8];
    unsigned records = 0;
    pf_file *file;

    ASSERT_OK(pf_sim_disk_clone(disk, 1, &other, &err));
    ahead = past;
    crash_append(other, &ahead, 2, 490000); /* opens a third segment */
    read_bytes(other, SEGMENT(3), 0, bytes, sizeof(bytes));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_create(volume, SEGMENT(3), &file, &err));
    ASSERT_OK(pf_write(file, 0, bytes, sizeof(bytes), &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    assert_int_equal(read_again(disk, &past, &records), SAME);
    assert_int_equal(records, 0);
    /* And it does not stand in the way of the number. */
    crash_append(disk, &past, 2, 490000);
    assert_int_equal(crash_check(disk, &past), past.acknowledged);
    pf_sim_disk_free(other);
    pf_sim_disk_free(disk);
}

/* A segment of another log, with the same number, under our CURRENT. */
static void a_segment_of_another_log_is_refused(void **state)
{
    (void)state;
    history past, foreign;
    pf_sim_disk *disk = small_log(&past);
    pf_sim_world_install(99); /* other salts */
    pf_sim_disk *other = small_log(&foreign);
    pf_sim_world_remove();
    static uint8_t bytes[512 * 1024];
    read_bytes(other, SEGMENT(2), 0, bytes, sizeof(bytes));
    overwrite(disk, SEGMENT(2), 0, bytes, sizeof(bytes));
    /* The same records, so the same chain; only the salts differ, which no digest covers. */
    unsigned records = 0;
    assert_int_equal(read_again(disk, &past, &records), SAME);
    /* One record of it alone does not continue ours. */
    pf_sim_disk_free(disk);
    disk = small_log(&past);
    overwrite(disk, SEGMENT(2), 4096, bytes + 4096, 8192);
    expect_one_refused(disk, &past);
    pf_sim_disk_free(other);
    pf_sim_disk_free(disk);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_byte_of_the_active_segment_is_refused),
        cmocka_unit_test(a_reader_is_refused_at_the_end_and_by_each_record_that_is_damaged),
        cmocka_unit_test(what_a_reader_does_not_look_at_is_verified),
        cmocka_unit_test(a_reader_finds_every_generation_before_the_mark),
        cmocka_unit_test(a_flipped_byte_of_an_earlier_segment_is_found_when_it_is_read),
        cmocka_unit_test(a_flipped_byte_of_current_is_refused),
        cmocka_unit_test(a_flipped_byte_of_the_mark_changes_no_answer),
        cmocka_unit_test(without_the_mark_a_damaged_record_is_found_by_its_successor),
        cmocka_unit_test(a_zeroed_acknowledged_record_is_corrupt_for_readers_and_writers),
        cmocka_unit_test(a_handle_that_is_open_finds_the_damage_too),
        cmocka_unit_test(an_older_current_is_corrupt),
        cmocka_unit_test(missing_files_are_corrupt_but_for_the_mark),
        cmocka_unit_test(a_current_of_another_size_is_corrupt),
        cmocka_unit_test(a_shorter_segment_is_corrupt),
        cmocka_unit_test(a_segment_that_current_does_not_name_is_ignored),
        cmocka_unit_test(a_segment_of_another_log_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
