/*
 * Names on the simulated disk after a power loss (O-02): kept or lost by themselves, renames never split, folders never
 * inside themselves.
 */
#include "sim_help.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static sluice_error err;

/* ---- names ---- */

static void a_synced_file_is_kept_or_lost_with_its_unsynced_name(void **state)
{
    pf_sim_disk *disk = sim_disk_new(7);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    sim_put(volume, "a", "content");
    SOMETIMES(sim_times_there(disk, "a"));
    assert_false(sim_there_after(disk, "a", PF_SIM_LOSE_ALL));
    assert_true(sim_there_after(disk, "a", PF_SIM_KEEP_ALL));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(sim_times_there(disk, "a"));
    assert_true(sim_there_after(disk, "a", PF_SIM_LOSE_ALL));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_new_folder_is_synced_by_its_parent_only(void **state)
{
    pf_sim_disk *disk = sim_disk_new(8);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    sim_put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "f", &err));
    assert_false(sim_there_after(disk, "f", PF_SIM_LOSE_ALL));
    SOMETIMES(sim_times_there(disk, "f/a"));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(sim_times_there(disk, "f/a"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void syncing_the_parent_does_not_sync_what_is_in_the_folder(void **state)
{
    pf_sim_disk *disk = sim_disk_new(9);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    sim_put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(sim_times_there(disk, "f"));
    SOMETIMES(sim_times_there(disk, "f/a"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void names_are_lost_in_any_order(void **state)
{
    pf_sim_disk *disk = sim_disk_new(10);
    pf_volume *volume = sim_actor(disk);
    unsigned only_second = 0;

    (void)state;
    sim_put(volume, "first", "1");
    sim_put(volume, "second", "2");
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        only_second += sim_exists(lost, "second") && !sim_exists(lost, "first");
        pf_sim_disk_free(lost);
    }
    SOMETIMES(only_second);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_removed_name_may_come_back_until_its_folder_is_synced(void **state)
{
    pf_sim_disk *disk = sim_disk_new(11);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    sim_put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_remove(volume, "a", &err));
    SOMETIMES(sim_times_there(disk, "a"));
    assert_true(sim_there_after(disk, "a", PF_SIM_LOSE_ALL));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    assert_int_equal(sim_times_there(disk, "a"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* "a" is made, removed, made again: the disk holds none, the first or the second, and never a mixture. */
static void of_the_changes_of_one_name_a_beginning_is_kept(void **state)
{
    pf_sim_disk *disk = sim_disk_new(12);
    pf_volume *volume = sim_actor(disk);
    unsigned none = 0, first = 0, second = 0;

    (void)state;
    sim_put(volume, "a", "first");
    ASSERT_OK(pf_remove(volume, "a", &err));
    sim_put(volume, "a", "second");
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        char got[16] = {0};
        if (!sim_exists(lost, "a")) {
            none++;
        } else {
            (void)sim_content(lost, "a", got, sizeof got - 1);
            first += strcmp(got, "first") == 0;
            second += strcmp(got, "second") == 0;
        }
        pf_sim_disk_free(lost);
    }
    assert_int_equal(none + first + second, SIM_SEEDS);
    SOMETIMES(none);
    SOMETIMES(first);
    SOMETIMES(second);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* Exactly one of the two names in every state; how often it is the new one. */
static unsigned times_renamed(const pf_sim_disk *disk, const char *from, const char *to, const char *text)
{
    unsigned renamed = 0;

    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        bool old_there = sim_exists(lost, from), new_there = sim_exists(lost, to);
        assert_true(old_there != new_there); /* never both, never none */
        sim_expect_text(lost, new_there ? to : from, text);
        renamed += new_there;
        pf_sim_disk_free(lost);
    }
    return renamed;
}

static void a_rename_is_atomic_within_a_folder(void **state)
{
    pf_sim_disk *disk = sim_disk_new(13);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    sim_put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_publish(volume, "a", "b", &err));
    SOMETIMES(times_renamed(disk, "a", "b", "content"));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(times_renamed(disk, "a", "b", "content"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_rename_across_folders_is_durable_when_both_are_synced(void **state)
{
    static const char *const orders[2][2] = {{"x", "y"}, {"y", "x"}};

    (void)state;
    for (unsigned order = 0; order < 2; order++) {
        pf_sim_disk *disk = sim_disk_new(14);
        pf_volume *volume = sim_actor(disk);
        ASSERT_OK(pf_make_folder(volume, "x", &err));
        ASSERT_OK(pf_make_folder(volume, "y", &err));
        sim_put(volume, "x/a", "content");
        ASSERT_OK(pf_sync_dir(volume, "x", &err));
        ASSERT_OK(pf_sync_dir(volume, "", &err));
        ASSERT_OK(pf_publish(volume, "x/a", "y/b", &err));
        SOMETIMES(times_renamed(disk, "x/a", "y/b", "content"));
        ASSERT_OK(pf_sync_dir(volume, orders[order][0], &err));
        SOMETIMES(times_renamed(disk, "x/a", "y/b", "content"));
        ASSERT_OK(pf_sync_dir(volume, orders[order][1], &err));
        ALWAYS(times_renamed(disk, "x/a", "y/b", "content"));
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
}

static void a_rename_into_a_folder_that_is_lost_leaves_the_old_name(void **state)
{
    pf_sim_disk *disk = sim_disk_new(15);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    sim_put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_make_folder(volume, "t", &err));
    ASSERT_OK(pf_make_folder(volume, "t/u", &err));
    ASSERT_OK(pf_publish(volume, "a", "t/u/b", &err));
    SOMETIMES(times_renamed(disk, "a", "t/u/b", "content"));
    ASSERT_OK(pf_sync_dir(volume, "t/u", &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err)); /* "t" is durable now, "t/u" is not */
    SOMETIMES(times_renamed(disk, "a", "t/u/b", "content"));
    ASSERT_OK(pf_sync_dir(volume, "t", &err)); /* sets the waiting rename free */
    ALWAYS(times_renamed(disk, "a", "t/u/b", "content"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void renames_inside_a_new_folder_do_not_make_the_folder_durable(void **state)
{
    pf_sim_disk *disk = sim_disk_new(16);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    for (unsigned i = 0; i < 3; i++) { /* the same temporary name again and again */
        char name[16];
        (void)snprintf(name, sizeof name, "f/%u", i);
        sim_put(volume, "f/tmp", "content");
        ASSERT_OK(pf_publish(volume, "f/tmp", name, &err));
        ASSERT_OK(pf_sync_dir(volume, "f", &err));
    }
    assert_false(sim_there_after(disk, "f", PF_SIM_LOSE_ALL));
    SOMETIMES(sim_times_there(disk, "f"));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(sim_times_there(disk, "f/0"));
    ALWAYS(sim_times_there(disk, "f/2"));
    assert_int_equal(sim_times_there(disk, "f/tmp"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_folder_is_never_lost_inside_itself(void **state)
{
    pf_sim_disk *disk = sim_disk_new(17);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "a", &err));
    ASSERT_OK(pf_make_folder(volume, "b", &err));
    sim_put(volume, "a/in-a", "A");
    sim_put(volume, "b/in-b", "B");
    ASSERT_OK(pf_sync_dir(volume, "a", &err));
    ASSERT_OK(pf_sync_dir(volume, "b", &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_publish(volume, "a", "b/a", &err));
    ASSERT_OK(pf_publish(volume, "b/a", "a", &err));
    ASSERT_OK(pf_publish(volume, "b", "a/b", &err));
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        assert_int_equal(sim_exists(lost, "a/in-a") + sim_exists(lost, "b/a/in-a"), 1);
        assert_int_equal(sim_exists(lost, "b/in-b") + sim_exists(lost, "a/b/in-b"), 1);
        pf_sim_disk_free(lost);
    }
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_folder_is_removed_only_with_what_was_in_it(void **state)
{
    pf_sim_disk *disk = sim_disk_new(18);
    pf_volume *volume = sim_actor(disk);
    unsigned gone = 0;

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_make_folder(volume, "kept", &err));
    sim_put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "f", &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_publish(volume, "f/a", "kept/a", &err));
    ASSERT_OK(pf_remove_folder(volume, "f", &err));
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        gone += !sim_exists(lost, "f");
        if (!sim_exists(lost, "f"))
            assert_true(sim_exists(lost, "kept/a"));
        pf_sim_disk_free(lost);
    }
    SOMETIMES(gone);
    ASSERT_OK(pf_sync_dir(volume, "", &err)); /* the removal, and with it the rename */
    ALWAYS(sim_times_there(disk, "kept/a"));
    assert_int_equal(sim_times_there(disk, "f"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synced_file_is_kept_or_lost_with_its_unsynced_name),
        cmocka_unit_test(a_new_folder_is_synced_by_its_parent_only),
        cmocka_unit_test(syncing_the_parent_does_not_sync_what_is_in_the_folder),
        cmocka_unit_test(names_are_lost_in_any_order),
        cmocka_unit_test(a_removed_name_may_come_back_until_its_folder_is_synced),
        cmocka_unit_test(of_the_changes_of_one_name_a_beginning_is_kept),
        cmocka_unit_test(a_rename_is_atomic_within_a_folder),
        cmocka_unit_test(a_rename_across_folders_is_durable_when_both_are_synced),
        cmocka_unit_test(a_rename_into_a_folder_that_is_lost_leaves_the_old_name),
        cmocka_unit_test(renames_inside_a_new_folder_do_not_make_the_folder_durable),
        cmocka_unit_test(a_folder_is_never_lost_inside_itself),
        cmocka_unit_test(a_folder_is_removed_only_with_what_was_in_it),
    };
    return cmocka_run_group_tests_name("names on the simulated disk", tests, NULL, NULL);
}
