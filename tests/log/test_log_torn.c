/*
 * A torn append: any subset of the record's 512-byte sectors on the medium is the prior content, or the new one when
 * all that is not zero arrived; never a third (L-013, OD-006). The torn record is nothing and is overwritten.
 */
#include "crash_fixture.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT LOG_FOLDER "/log/1.seg"
#define SECTOR  512u
#define PRIOR   2u

typedef struct torn {
    pf_sim_disk *base; /* PRIOR generations */
    history past;
    uint64_t at; /* where the next record goes */
    uint8_t *record;
    size_t size;
} torn;

static torn set_up(size_t attached)
{
    sluice_error err = {0};
    torn t = {.at = 4096 + PRIOR * 4096};
    pf_file *file;
    pf_stat stat;
    pf_sim_disk *done;

    ASSERT_OK(pf_sim_disk_new(3, &t.base, &err));
    pf_volume *volume = crash_actor(t.base);
    ASSERT_OK(log_fixture_make(volume, &err));
    pf_volume_close(volume);
    crash_append(t.base, &t.past, PRIOR, 100);
    ASSERT_OK(pf_sim_disk_clone(t.base, 1, &done, &err));
    history ahead = t.past;
    crash_append(done, &ahead, 1, attached);
    t.past.at[PRIOR + 1] = ahead.at[PRIOR + 1];
    t.past.possible = PRIOR + 1;
    t.size = (256 + 100 + attached + 4095) / 4096 * 4096;
    t.record = malloc(t.size);
    volume = crash_actor(done);
    ASSERT_OK(pf_open(volume, SEGMENT, PF_READ, &file, &err));
    ASSERT_OK(pf_file_stat(file, &stat, &err));
    ASSERT_OK(pf_read_exact(file, t.at, t.record, t.size, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(done);
    return t;
}

static void tear_down(torn *t)
{
    free(t->record);
    pf_sim_disk_free(t->base);
}

static bool is_zero(const uint8_t *bytes)
{
    for (size_t i = 0; i < SECTOR; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* The log with the sectors of the record for which `arrived` says so; `garbage` in the others, or the zeros there were.
 */
static void try_subset(const torn *t, const uint8_t *arrived, uint8_t garbage)
{
    sluice_error err = {0};
    pf_sim_disk *disk;
    pf_file *file;
    bool all = true;
    uint8_t junk[SECTOR];
    memset(junk, garbage, sizeof(junk));

    ASSERT_OK(pf_sim_disk_clone(t->base, 2, &disk, &err));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_open(volume, SEGMENT, PF_WRITE, &file, &err));
    for (size_t i = 0; i < t->size / SECTOR; i++) {
        const uint8_t *content = t->record + i * SECTOR;
        if (arrived[i])
            ASSERT_OK(pf_write(file, t->at + i * SECTOR, content, SECTOR, &err));
        else if (garbage != 0)
            ASSERT_OK(pf_write(file, t->at + i * SECTOR, junk, SECTOR, &err));
        all &= arrived[i] || (garbage == 0 && is_zero(content));
    }
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);

    history past = t->past;
    assert_int_equal(crash_check(disk, &past), all ? PRIOR + 1 : PRIOR);
    volume = crash_actor(disk);
    ASSERT_OK(crash_act(volume, NULL, false, &past, &err));
    pf_volume_close(volume);
    assert_int_equal(past.acknowledged, all ? PRIOR + 1 : PRIOR);
    crash_append(disk, &past, 2, 700); /* the first of them over the torn one */
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(crash_check(disk, &past), past.acknowledged);
    pf_sim_disk_free(disk);
}

static void every_subset_of_a_small_records_sectors_is_prior_or_new(void **state)
{
    (void)state;
    torn t = set_up(3500); /* seven of eight sectors hold something */
    uint8_t arrived[8];
    assert_int_equal(t.size, sizeof(arrived) * SECTOR);
    for (unsigned set = 0; set < 256; set++) {
        for (unsigned i = 0; i < 8; i++)
            arrived[i] = (set >> i) & 1;
        try_subset(&t, arrived, 0);
        try_subset(&t, arrived, 0xA5); /* sectors that an earlier torn record left behind */
    }
    tear_down(&t);
}

static void random_subsets_of_a_large_records_sectors_are_prior_or_new(void **state)
{
    (void)state;
    torn t = set_up(60000);
    size_t sectors = t.size / SECTOR;
    uint8_t *arrived = malloc(sectors);
    uint64_t random = 88172645463325252u;
    for (unsigned round = 0; round < 300; round++) {
        for (size_t i = 0; i < sectors; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            /* few, half, all but few, all but one */
            unsigned chance = (unsigned)(random >> 32) % 100;
            arrived[i] = round % 4 == 0   ? chance < 3
                         : round % 4 == 1 ? chance < 50
                         : round % 4 == 2 ? chance < 97
                                          : i != round * 7 % sectors;
        }
        try_subset(&t, arrived, round % 3 == 0 ? 0x5A : 0);
    }
    memset(arrived, 1, sectors);
    try_subset(&t, arrived, 0);
    free(arrived);
    tear_down(&t);
}

/* Whatever stands behind the end, a torn record of each length is overwritten by shorter and by longer ones. */
static void a_torn_record_is_overwritten_by_shorter_and_longer_ones(void **state)
{
    (void)state;
    static const size_t next[] = {0, 3000, 60000, 150000};
    torn t = set_up(60000);
    for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
        sluice_error err = {0};
        pf_sim_disk *disk;
        pf_file *file;
        ASSERT_OK(pf_sim_disk_clone(t.base, 2, &disk, &err));
        pf_volume *volume = crash_actor(disk);
        ASSERT_OK(pf_open(volume, SEGMENT, PF_WRITE, &file, &err));
        ASSERT_OK(
            pf_write(file, t.at, t.record, t.size - 5 * 4096, &err)); /* a head of ours, and too little behind it */
        ASSERT_OK(pf_close(file, &err));
        pf_volume_close(volume);
        history past = t.past;
        past.possible = PRIOR;
        assert_int_equal(crash_check(disk, &past), PRIOR);
        crash_append(disk, &past, 1, next[i]);
        crash_append(disk, &past, 3, 100);
        assert_int_equal(crash_check(disk, &past), PRIOR + 4);
        pf_sim_disk_free(disk);
    }
    tear_down(&t);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_subset_of_a_small_records_sectors_is_prior_or_new),
        cmocka_unit_test(random_subsets_of_a_large_records_sectors_are_prior_or_new),
        cmocka_unit_test(a_torn_record_is_overwritten_by_shorter_and_longer_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
