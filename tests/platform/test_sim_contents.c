/*
 * Contents on the simulated disk after a power loss (O-02): sectors, sizes, torn writes.
 */
#include "sim_help.h"
#include "tests/support/test.h"

#include <string.h>

static sluice_error err;

/* ---- contents ---- */

static void synced_content_survives_and_unsynced_may_not(void **state)
{
    pf_sim_disk *disk = sim_disk_new(1), *lost;
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");

    (void)state;
    sim_write_text(file, 0, "synced");
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_write_text(file, 6, " and more");
    lost = sim_after_loss(disk, 1, PF_SIM_LOSE_ALL);
    sim_expect_text(lost, "a", "synced");
    pf_sim_disk_free(lost);
    lost = sim_after_loss(disk, 1, PF_SIM_KEEP_ALL);
    sim_expect_text(lost, "a", "synced and more");
    pf_sim_disk_free(lost);
    sim_expect_text(disk, "a", "synced and more"); /* the original goes on */
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void each_sector_is_kept_or_lost_by_itself(void **state)
{
    pf_sim_disk *disk = sim_disk_new(2);
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");
    unsigned mixed = 0, half_pages = 0;

    (void)state;
    sim_fill(file, 0, 16, 'A');
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_fill(file, 0, 16, 'B');
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[16 * 512];
        unsigned kept = 0, in_first = 0;
        assert_int_equal(sim_content(lost, "a", got, sizeof got), sizeof got);
        for (unsigned s = 0; s < 16; s++) {
            for (unsigned i = 1; i < 512; i++)
                assert_int_equal(got[s * 512 + i], got[s * 512]); /* never torn inside a sector */
            assert_true(got[s * 512] == 'A' || got[s * 512] == 'B');
            kept += got[s * 512] == 'B';
            in_first += s < 8 && got[s * 512] == 'B';
        }
        mixed += kept > 0 && kept < 16;
        half_pages += in_first > 0 && in_first < 8;
        pf_sim_disk_free(lost);
    }
    SOMETIMES(mixed);
    SOMETIMES(half_pages);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_write_between_two_others_may_be_what_remains(void **state)
{
    pf_sim_disk *disk = sim_disk_new(3);
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");
    unsigned seen[4] = {0};

    (void)state;
    sim_fill(file, 0, 1, 0);
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_fill(file, 0, 1, 1);
    sim_fill(file, 0, 1, 2);
    sim_fill(file, 0, 1, 3);
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[512];
        (void)sim_content(lost, "a", got, sizeof got);
        assert_in_range(got[0], 0, 3);
        seen[got[0]]++;
        pf_sim_disk_free(lost);
    }
    for (unsigned i = 0; i < 4; i++)
        SOMETIMES(seen[i]);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_size_may_come_without_data_and_data_without_size_is_gone(void **state)
{
    pf_sim_disk *disk = sim_disk_new(4);
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");
    unsigned zeros = 0, shorter = 0, partly = 0;

    (void)state;
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_fill(file, 0, 24, 'x');
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[24 * 512];
        size_t size = sim_content(lost, "a", got, sizeof got);
        bool has_zeros = false;
        for (size_t i = 0; i < size; i++) {
            assert_true(got[i] == 'x' || got[i] == 0);
            has_zeros |= got[i] == 0;
        }
        zeros += has_zeros;
        shorter += size == 0;
        partly += size > 0 && size < sizeof got;
        pf_sim_disk_free(lost);
    }
    SOMETIMES(zeros);
    SOMETIMES(shorter);
    SOMETIMES(partly);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void bytes_behind_a_lost_end_are_zeros_when_the_file_grows_again(void **state)
{
    pf_sim_disk *disk = sim_disk_new(5);
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");
    char got[32];

    (void)state;
    sim_write_text(file, 0, "ab");
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_write_text(file, 2, "GARBAGE");
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(pf_close(file, &err), SLUICE_FENCED);
    pf_volume_close(volume);
    volume = sim_actor(disk);
    file = sim_opened(volume, "a");
    sim_write_text(file, 8, "z");
    ASSERT_OK(pf_read_exact(file, 0, got, 9, &err));
    assert_memory_equal(got, "ab\0\0\0\0\0\0z", 9);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void the_last_write_alone_is_torn_on_demand(void **state)
{
    pf_sim_disk *disk = sim_disk_new(6);
    pf_volume *volume = sim_actor(disk);
    pf_file *a = sim_created(volume, "a"), *b = sim_created(volume, "b");
    uint8_t bytes[16 * 512];
    unsigned torn = 0;

    (void)state;
    sim_fill(a, 0, 16, 'a');
    memset(bytes, 'b', sizeof bytes);
    ASSERT_OK(pf_write(b, 0, bytes, sizeof bytes, &err));
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_TEAR_LAST);
        uint8_t got[16 * 512];
        unsigned kept = 0;
        size_t size;
        assert_int_equal(sim_content(lost, "a", got, sizeof got), sizeof got);
        for (size_t i = 0; i < sizeof got; i++)
            assert_int_equal(got[i], 'a');
        size = sim_content(lost, "b", got, sizeof got);
        for (size_t s = 0; s < size / 512; s++)
            kept += got[s * 512] == 'b';
        torn += size == sizeof got && kept > 0 && kept < 16;
        pf_sim_disk_free(lost);
    }
    SOMETIMES(torn);
    ASSERT_OK(pf_sync(b, &err)); /* nothing left to tear */
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_TEAR_LAST);
        uint8_t got[16 * 512];
        assert_int_equal(sim_content(lost, "b", got, sizeof got), sizeof got);
        assert_memory_equal(got, bytes, sizeof got);
        pf_sim_disk_free(lost);
    }
    ASSERT_OK(pf_close(a, &err));
    ASSERT_OK(pf_close(b, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_content_survives_and_unsynced_may_not),
        cmocka_unit_test(each_sector_is_kept_or_lost_by_itself),
        cmocka_unit_test(a_write_between_two_others_may_be_what_remains),
        cmocka_unit_test(a_size_may_come_without_data_and_data_without_size_is_gone),
        cmocka_unit_test(bytes_behind_a_lost_end_are_zeros_when_the_file_grows_again),
        cmocka_unit_test(the_last_write_alone_is_torn_on_demand),
    };
    return cmocka_run_group_tests_name("contents on the simulated disk", tests, NULL, NULL);
}
