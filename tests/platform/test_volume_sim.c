/*
 * The simulated disk as a volume: the shared battery, then processes that die, disks that fail, clones, seeds and the
 * simulated world.
 */
#include "sim_help.h"
#include "tests/support/test.h"
#include "volume_conformance.h"

#include "platform/clock.h"

#include <errno.h>
#include <string.h>

static sluice_error err;

/* ---- the battery ---- */

static pf_volume *open_place(void *context)
{
    return sim_actor(context);
}

static void the_battery_holds_on_the_simulated_disk(void **state)
{
    (void)state;
    for (unsigned i = 0; i < conformance_case_count; i++) {
        pf_sim_disk *disk = sim_disk_new(i);
        print_message("    %s\n", conformance_cases[i].name);
        conformance_cases[i].run(&(conformance_place){.context = disk, .open = open_place});
        pf_sim_disk_free(disk);
    }
}

/* ---- failures ---- */

static void a_failed_sync_is_not_mended_by_a_later_one(void **state)
{
    pf_sim_disk *disk = sim_disk_new(19), *lost;
    pf_volume *volume = sim_actor(disk);
    pf_file *file, *again;
    char got[8];

    (void)state;
    sim_put(volume, "a", "oldold");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    file = sim_opened(volume, "a");
    sim_write_text(file, 0, "new");
    pf_sim_fail_at(volume, 1, EIO, 1);
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err)); /* this handle is abandoned */
    ASSERT_FAILS(SLUICE_IO, pf_write(file, 0, "x", 1, &err));
    again = sim_opened(volume, "a");
    ASSERT_OK(pf_read_exact(again, 0, got, 6, &err));
    assert_memory_equal(got, "newold", 6); /* readers still see it */
    ASSERT_OK(pf_sync(again, &err));       /* succeeds, and means nothing */
    lost = sim_after_loss(disk, 1, PF_SIM_KEEP_ALL);
    sim_expect_text(lost, "a", "oldold");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_read_medium(again, 0, got, 6, &err));
    assert_memory_equal(got, "oldold", 6);
    ASSERT_OK(pf_read_exact(again, 0, got, 6, &err));
    assert_memory_equal(got, "oldold", 6); /* the cached page is gone now */
    sim_write_text(again, 0, "new");       /* only writing again helps */
    ASSERT_OK(pf_sync(again, &err));
    lost = sim_after_loss(disk, 1, PF_SIM_LOSE_ALL);
    sim_expect_text(lost, "a", "newold");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_close(again, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_failed_sync_may_have_reached_the_medium(void **state)
{
    pf_sim_disk *disk = sim_disk_new(20), *lost;
    pf_volume *volume = sim_actor(disk);
    pf_file *file;

    (void)state;
    sim_put(volume, "a", "old");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    file = sim_opened(volume, "a");
    pf_sim_set_failed_sync(disk, PF_SIM_KEEP_ALL);
    sim_write_text(file, 0, "new");
    pf_sim_fail_at(volume, 1, EIO, 1);
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err));
    lost = sim_after_loss(disk, 1, PF_SIM_LOSE_ALL);
    sim_expect_text(lost, "a", "new");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void errors_strike_at_the_chosen_call(void **state)
{
    pf_sim_disk *disk = sim_disk_new(21);
    pf_volume *volume = sim_actor(disk);
    uint64_t before;
    pf_file *file;
    pf_stat st;

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    before = pf_sim_digest(disk);
    pf_sim_fail_at(volume, 3, ENOSPC, 1);
    file = sim_created(volume, "first");
    sim_write_text(file, 0, "x");
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_write(file, 0, "y", 1, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_sim_fail_at(volume, 1, EDQUOT, 2);
    ASSERT_FAILS(SLUICE_QUOTA, pf_make_folder(volume, "g", &err));
    ASSERT_FAILS(SLUICE_QUOTA, pf_publish(volume, "first", "h", &err));
    ASSERT_OK(pf_publish(volume, "first", "h", &err));
    pf_sim_fail_at(volume, 1, EIO, 0);
    for (unsigned i = 0; i < 5; i++)
        ASSERT_FAILS(SLUICE_IO, pf_remove(volume, "h", &err));
    pf_sim_fail_at(volume, 0, 0, 0);
    ASSERT_OK(pf_remove(volume, "h", &err));
    pf_sim_fail_look_at(volume, 2, EMFILE, 1);
    ASSERT_OK(pf_stat_path(volume, "f", &st, &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_open(volume, "f", PF_READ, &file, &err));
    assert_int_equal(pf_sim_digest(disk), before);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_failing_write_leaves_a_beginning_of_whole_pages(void **state)
{
    unsigned nothing = 0, something = 0;
    uint8_t bytes[5 * 4096];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *disk = sim_disk_new(seed);
        pf_volume *volume = sim_actor(disk);
        pf_file *file = sim_created(volume, "a");
        pf_stat st;
        pf_sim_fail_at(volume, 1, EIO, 1);
        ASSERT_FAILS(SLUICE_IO, pf_write(file, 0, bytes, sizeof bytes, &err));
        ASSERT_OK(pf_file_stat(file, &st, &err));
        assert_int_equal(st.size % 4096, 0);
        nothing += st.size == 0;
        something += st.size > 0;
        ASSERT_OK(pf_close(file, &err));
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
    SOMETIMES(nothing);
    SOMETIMES(something);
}

static void a_full_disk_takes_what_fits_and_gives_it_back(void **state)
{
    pf_sim_disk *disk = sim_disk_new(22);
    pf_volume *volume = sim_actor(disk);
    uint8_t bytes[4 * 4096] = {1};
    pf_file *file = sim_created(volume, "a"), *reserve = sim_created(volume, "reserve");
    pf_stat st;

    (void)state;
    ASSERT_OK(pf_zero_fill(reserve, 4 * 4096, &err));
    pf_sim_set_free_space(disk, 2 * 4096);
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_write(file, 0, bytes, sizeof bytes, &err));
    ASSERT_OK(pf_file_stat(file, &st, &err));
    assert_int_equal(st.size, 2 * 4096);
    ASSERT_OK(pf_write(file, 0, bytes, 2 * 4096, &err)); /* in place needs no space */
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_zero_fill(file, 3 * 4096, &err));
    ASSERT_OK(pf_remove(volume, "reserve", &err));
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_write(file, 2 * 4096, bytes, 4096, &err)); /* a handle keeps it */
    ASSERT_OK(pf_close(reserve, &err));
    ASSERT_OK(pf_write(file, 0, bytes, sizeof bytes, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void bit_rot_is_seen_now_and_after_a_power_loss(void **state)
{
    pf_sim_disk *disk = sim_disk_new(23);
    pf_volume *volume = sim_actor(disk);

    (void)state;
    sim_put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_sim_flip(disk, "graph/a", 0, 0x20, &err));
    sim_expect_text(disk, "a", "Content");
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph/a", 7, 1, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph/b", 0, 1, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph", 0, 1, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    sim_expect_text(disk, "a", "Content");
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* ---- deaths ---- */

static void a_death_keeps_the_cache_and_drops_the_locks(void **state)
{
    pf_sim_disk *disk = sim_disk_new(24);
    pf_volume *dying = sim_actor(disk), *other = sim_actor(disk);
    pf_file *mine, *theirs;

    (void)state;
    sim_put(dying, "locks", "");
    mine = sim_opened(dying, "locks");
    theirs = sim_opened(other, "locks");
    ASSERT_OK(pf_lock(mine, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    sim_write_text(mine, 0, "unsynced");
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(theirs, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    pf_sim_kill(dying);
    assert_true(pf_sim_is_dead(dying));
    assert_false(pf_sim_is_dead(other));
    ASSERT_OK(pf_lock(theirs, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    sim_expect_text(disk, "locks", "unsynced");
    ASSERT_FAILS(SLUICE_FENCED, pf_close(mine, &err));
    ASSERT_OK(pf_close(theirs, &err));
    pf_volume_close(dying);
    pf_volume_close(other);
    pf_sim_disk_free(disk);
}

static void a_dead_process_sees_and_changes_nothing(void **state)
{
    pf_sim_disk *disk = sim_disk_new(25);
    pf_volume *volume = sim_actor(disk);
    pf_file *file, *made;
    uint64_t before;
    bool is_free;
    uint8_t byte;
    size_t got;
    pf_stat st;
    pf_map map;

    (void)state;
    sim_put(volume, "a", "x");
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    file = sim_opened(volume, "a");
    ASSERT_OK(pf_lock(file, 5, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    pf_sim_kill(volume);
    before = pf_sim_digest(disk);
    ASSERT_FAILS(SLUICE_FENCED, pf_create(volume, "b", &made, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_open(volume, "a", PF_READ, &made, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_publish(volume, "a", "b", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_remove(volume, "a", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_make_folder(volume, "g", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_remove_folder(volume, "f", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_sync_dir(volume, "", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_list(volume, "", NULL, NULL, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_stat_path(volume, "a", &st, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_check_identity(volume, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_read(file, 0, &byte, 1, &got, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_read_medium(file, 0, &byte, 1, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_write(file, 0, "y", 1, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_zero_fill(file, 10, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_file_stat(file, &st, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_file_check_identity(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_map_file(file, &map, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock_is_free(file, 0, 1, &is_free, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_unlock(file, 5, 1, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_close(file, &err));
    assert_int_equal(pf_sim_digest(disk), before);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_power_loss_kills_everybody(void **state)
{
    pf_sim_disk *disk = sim_disk_new(26);
    pf_volume *one = sim_actor(disk), *two = sim_actor(disk), *three;

    (void)state;
    pf_sim_crash_at(one, 1, false, PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL);
    ASSERT_FAILS(SLUICE_FENCED, pf_make_folder(one, "f", &err));
    assert_true(pf_sim_is_dead(one));
    assert_true(pf_sim_is_dead(two));
    three = sim_actor(disk);
    assert_false(pf_sim_is_dead(three));
    ASSERT_OK(pf_remove_folder(three, "f", &err)); /* the last call did happen */
    pf_volume_close(one);
    pf_volume_close(two);
    pf_volume_close(three);
    pf_sim_disk_free(disk);
}

static void a_kill_inside_a_write_cuts_it_at_a_page(void **state)
{
    unsigned cut = 0, whole = 0;
    uint8_t bytes[5 * 4096];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *disk = sim_disk_new(seed);
        pf_volume *volume = sim_actor(disk);
        pf_file *file = sim_created(volume, "a");
        uint8_t got[sizeof bytes];
        size_t size;
        pf_sim_crash_at(volume, 1, false, PF_SIM_DIE, PF_SIM_TEAR_LAST);
        ASSERT_FAILS(SLUICE_FENCED, pf_write(file, 100, bytes, sizeof bytes - 100, &err));
        (void)pf_close(file, NULL);
        size = sim_content(disk, "a", got, sizeof got);
        assert_int_equal(size % 4096, 0);
        whole += size == sizeof bytes;
        cut += size > 0 && size < sizeof bytes;
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
    SOMETIMES(cut);
    SOMETIMES(whole);
}

typedef struct competitor {
    pf_volume *volume;
    bool ran;
} competitor;

static void compete(void *context)
{
    competitor *other = context;

    sim_put(other->volume, "a", "theirs");
    other->ran = true;
}

static void another_acts_while_a_process_stands_still(void **state)
{
    pf_sim_disk *disk = sim_disk_new(27);
    pf_volume *volume = sim_actor(disk);
    competitor other = {.volume = sim_actor(disk)};
    pf_file *file;

    (void)state;
    pf_sim_interrupt_at(volume, 2, compete, &other);
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    assert_false(other.ran);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_create(volume, "a", &file, &err));
    assert_true(other.ran);
    sim_expect_text(disk, "a", "theirs");
    pf_volume_close(volume);
    pf_volume_close(other.volume);
    pf_sim_disk_free(disk);
}

/* ---- disks ---- */

static void a_clone_goes_its_own_way(void **state)
{
    pf_sim_disk *disk = sim_disk_new(28), *clone;
    pf_volume *volume = sim_actor(disk), *other;
    pf_file *file = sim_created(volume, "a");
    uint64_t before;

    (void)state;
    sim_write_text(file, 0, "original");
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    before = pf_sim_digest(disk);
    clone = sim_clone_of(disk, 1);
    assert_int_equal(pf_sim_digest(clone), before);
    sim_write_text(file, 0, "ORIGINAL");
    ASSERT_OK(pf_remove_folder(volume, "f", &err));
    assert_int_equal(pf_sim_digest(clone), before);
    assert_int_not_equal(pf_sim_digest(disk), before);
    other = sim_actor(clone);
    ASSERT_OK(pf_close(file, &err));
    file = sim_opened(other, "a");
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err)); /* locks are not cloned */
    sim_write_text(file, 0, "clone");
    ASSERT_OK(pf_close(file, &err));
    sim_expect_text(disk, "a", "ORIGINAL");
    sim_expect_text(clone, "a", "clonenal");
    pf_volume_close(volume);
    pf_sim_disk_free(disk); /* before its clone */
    sim_expect_text(clone, "a", "clonenal");
    pf_volume_close(other);
    pf_sim_disk_free(clone);
}

static void the_simulated_world_is_a_function_of_its_seed(void **state)
{
    uint64_t random[3];
    int64_t wall[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        int64_t before;
        pf_sim_world_install(i / 2);
        random[i] = pf_random_u64();
        wall[i] = pf_wall_us();
        before = pf_monotonic_ns();
        assert_int_equal(pf_monotonic_ns() - before, 1000);
        pf_sleep_until(before + 5000000000);
        assert_in_range(pf_monotonic_ns(), before + 5000000000, before + 5001000000);
        pf_sleep_until(0); /* never back */
        assert_true(pf_monotonic_ns() > before + 5000000000);
    }
    assert_int_equal(random[0], random[1]);
    assert_int_not_equal(random[0], random[2]);
    assert_int_equal(wall[0], wall[1]);
    pf_sim_world_remove();
}

static void waiting_in_vain_costs_simulated_time_only(void **state)
{
    pf_sim_disk *disk = sim_disk_new(29);
    pf_volume *volume = sim_actor(disk);
    pf_file *a, *b;
    int64_t before;

    (void)state;
    pf_sim_world_install(1);
    sim_put(volume, "locks", "");
    a = sim_opened(volume, "locks");
    b = sim_opened(volume, "locks");
    ASSERT_OK(pf_lock(a, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    before = pf_monotonic_ns();
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(b, 0, 1, PF_LOCK_SHARED, pf_deadline_in_ms(3600000), &err));
    assert_true(pf_monotonic_ns() - before >= INT64_C(3600000000000));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(b, 0, 1, PF_LOCK_SHARED, PF_FOREVER, &err));
    ASSERT_OK(pf_close(a, &err));
    ASSERT_OK(pf_close(b, &err));
    pf_volume_close(volume);
    pf_sim_world_remove();
    pf_sim_disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_battery_holds_on_the_simulated_disk),
        cmocka_unit_test(a_failed_sync_is_not_mended_by_a_later_one),
        cmocka_unit_test(a_failed_sync_may_have_reached_the_medium),
        cmocka_unit_test(errors_strike_at_the_chosen_call),
        cmocka_unit_test(a_failing_write_leaves_a_beginning_of_whole_pages),
        cmocka_unit_test(a_full_disk_takes_what_fits_and_gives_it_back),
        cmocka_unit_test(bit_rot_is_seen_now_and_after_a_power_loss),
        cmocka_unit_test(a_death_keeps_the_cache_and_drops_the_locks),
        cmocka_unit_test(a_dead_process_sees_and_changes_nothing),
        cmocka_unit_test(a_power_loss_kills_everybody),
        cmocka_unit_test(a_kill_inside_a_write_cuts_it_at_a_page),
        cmocka_unit_test(another_acts_while_a_process_stands_still),
        cmocka_unit_test(a_clone_goes_its_own_way),
        cmocka_unit_test(the_simulated_world_is_a_function_of_its_seed),
        cmocka_unit_test(waiting_in_vain_costs_simulated_time_only),
    };
    return cmocka_run_group_tests_name("the simulated disk", tests, NULL, NULL);
}
