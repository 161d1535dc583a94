/*
 * Every action on a log, cut short at every volume call (L-012 to L-018, OD-006, OD-010, OD-052, OD-053).
 */
#include "crash_fixture.h"

#include <errno.h>

/* ---- the states in which the actions begin ---- */

static void prepare_some(pf_sim_disk *disk, history *past)
{
    crash_append(disk, past, 3, 100);
}

static void prepare_full_segment(pf_sim_disk *disk, history *past)
{
    crash_append(disk, past, 3, 75000); /* of 256 KiB; 30 KiB are left */
}

/* A publisher died between its record's write and its sync: an end above the mark. */
static void prepare_unsynced(pf_sim_disk *disk, history *past)
{
    sluice_error err = {0};
    scenario plan = {.attached = 9000};
    crash_append(disk, past, 3, 100);
    pf_volume *volume = crash_actor(disk);
    pf_sim_crash_at(volume, 1, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    assert_int_not_equal(crash_act(volume, &plan, true, past, &err), SLUICE_OK);
    assert_true(pf_sim_is_dead(volume));
    pf_volume_close(volume);
    assert_int_equal(past->possible, past->acknowledged + 1);
    assert_int_equal(crash_check(disk, past), past->possible);
}

/* A switch was cut short after CURRENT was written and before it was synced. */
static void prepare_unsynced_switch(pf_sim_disk *disk, history *past)
{
    sluice_error err = {0};
    scenario plan = {.attached = 60000};
    prepare_full_segment(disk, past);
    pf_volume *volume = crash_actor(disk);
    pf_sim_crash_at(volume, 6, false, PF_SIM_DIE, PF_SIM_KEEP_ALL); /* create, fill, write, sync, folder, CURRENT */
    assert_int_not_equal(crash_act(volume, &plan, true, past, &err), SLUICE_OK);
    pf_volume_close(volume);
    past->possible = past->acknowledged;

    st_log *log;
    volume = crash_actor(disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    assert_int_equal(st_log_end(log).segment, 2);
    st_log_close(log);
    pf_volume_close(volume);
}

/* The k-th call of an append fails with EIO. */
static void prepare_failed(pf_sim_disk *disk, history *past, size_t attached, uint64_t k)
{
    sluice_error err = {0};
    scenario plan = {.attached = attached};
    pf_volume *volume = crash_actor(disk);
    pf_sim_fail_at(volume, k, EIO, 1);
    assert_int_equal(crash_act(volume, &plan, true, past, &err), SLUICE_IO);
    pf_volume_close(volume);
}

static void prepare_failed_sync(pf_sim_disk *disk, history *past)
{
    pf_sim_set_failed_sync(disk, PF_SIM_LOSE_ALL);
    crash_append(disk, past, 3, 100);
    prepare_failed(disk, past, 9000, 2);
    assert_int_equal(past->possible, past->acknowledged + 1);
}

static void prepare_failed_sync_in_part(pf_sim_disk *disk, history *past)
{
    pf_sim_set_failed_sync(disk, PF_SIM_RANDOM);
    crash_append(disk, past, 3, 100);
    prepare_failed(disk, past, 9000, 2);
}

static void prepare_failed_write(pf_sim_disk *disk, history *past)
{
    crash_append(disk, past, 3, 100);
    prepare_failed(disk, past, 9000, 1);
    assert_int_equal(past->possible, past->acknowledged);
}

static void prepare_failed_current(pf_sim_disk *disk, history *past)
{
    pf_sim_set_failed_sync(disk, PF_SIM_RANDOM);
    prepare_full_segment(disk, past);
    prepare_failed(disk, past, 60000, 7);
    assert_int_equal(past->possible, past->acknowledged);
}

/* A failed sync in the first segment behind a switch that was never made durable. */
static void prepare_failed_settle(pf_sim_disk *disk, history *past)
{
    prepare_unsynced_switch(disk, past);
    prepare_failed(disk, past, 5000, 2);
}

static void prepare_no_mark(pf_sim_disk *disk, history *past)
{
    sluice_error err = {0};
    crash_append(disk, past, 3, 100);
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(pf_remove(volume, LOG_FOLDER "/acknowledged", &err));
    ASSERT_OK(pf_sync_dir(volume, LOG_FOLDER, &err));
    pf_volume_close(volume);
}

/* ---- the explorations ---- */

static void explore(const char *name, void (*prepare)(pf_sim_disk *, history *), size_t attached, unsigned seeds,
                    bool deep)
{
    scenario plan = {.name = name, .prepare = prepare, .attached = attached, .deep = deep};
    seen saw = crash_explore(&plan, seeds);
    assert_true(saw.prior > 0);
    assert_true(saw.new > 0);
}

static void an_append_is_prior_or_new_at_every_crash(void **state)
{
    (void)state;
    explore("append", prepare_some, 300, 4, true);
}

static void a_large_append_is_prior_or_new_at_every_crash(void **state)
{
    (void)state;
    explore("large append", prepare_some, 40000, 4, false);
}

static void a_segment_switch_is_prior_or_new_at_every_crash(void **state)
{
    (void)state;
    explore("switch", prepare_full_segment, 60000, 3, true);
}

static void a_record_larger_than_a_segment_gets_one_of_its_own(void **state)
{
    (void)state;
    explore("segment of its own", prepare_some, 600000, 1, false);
}

static void an_unsynced_end_is_written_again_before_anything_is_built_on_it(void **state)
{
    (void)state;
    explore("settle", prepare_unsynced, 300, 4, true);
}

static void a_switch_cut_short_is_made_durable_before_anything_is_built_on_it(void **state)
{
    (void)state;
    explore("settle a switch", prepare_unsynced_switch, 300, 2, true);
}

static void healing_after_a_failed_sync_survives_every_crash(void **state)
{
    (void)state;
    explore("heal a sync", prepare_failed_sync, 300, 2, true);
}

static void healing_after_a_sync_that_failed_in_part_survives_every_crash(void **state)
{
    (void)state;
    explore("heal a sync in part", prepare_failed_sync_in_part, 300, 2, false);
}

static void healing_after_a_failed_write_survives_every_crash(void **state)
{
    (void)state;
    explore("heal a write", prepare_failed_write, 300, 2, false);
}

static void healing_after_a_failed_sync_of_current_survives_every_crash(void **state)
{
    (void)state;
    explore("heal CURRENT", prepare_failed_current, 300, 2, false);
}

static void healing_after_a_failed_settling_survives_every_crash(void **state)
{
    (void)state;
    explore("heal a settling", prepare_failed_settle, 300, 2, false);
}

static void a_missing_mark_is_made_again_at_every_crash(void **state)
{
    (void)state;
    explore("no mark", prepare_no_mark, 300, 3, false);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_is_prior_or_new_at_every_crash),
        cmocka_unit_test(a_large_append_is_prior_or_new_at_every_crash),
        cmocka_unit_test(a_segment_switch_is_prior_or_new_at_every_crash),
        cmocka_unit_test(a_record_larger_than_a_segment_gets_one_of_its_own),
        cmocka_unit_test(an_unsynced_end_is_written_again_before_anything_is_built_on_it),
        cmocka_unit_test(a_switch_cut_short_is_made_durable_before_anything_is_built_on_it),
        cmocka_unit_test(healing_after_a_failed_sync_survives_every_crash),
        cmocka_unit_test(healing_after_a_sync_that_failed_in_part_survives_every_crash),
        cmocka_unit_test(healing_after_a_failed_write_survives_every_crash),
        cmocka_unit_test(healing_after_a_failed_sync_of_current_survives_every_crash),
        cmocka_unit_test(healing_after_a_failed_settling_survives_every_crash),
        cmocka_unit_test(a_missing_mark_is_made_again_at_every_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
