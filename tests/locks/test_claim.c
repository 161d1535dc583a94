/*
 * Durable claims: taken, given back, taken over from the dead and from nobody else, and found damaged; on a simulated
 * disk, with a death and a power loss at every call.
 */
#include "locks/claim.h"
#include "platform/sim.h"
#include "tests/support/test.h"

#define SLOTS 64u

static pf_volume *actor(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    return volume;
}

/* A disk with the file as init makes it. */
static pf_sim_disk *make_disk(void)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    pf_file *file = NULL;
    pf_sim_world_install(3);
    ASSERT_OK(pf_sim_disk_new(3, &disk, &err));
    pf_volume *volume = actor(disk);
    ASSERT_OK(pf_create(volume, LK_CLAIMS_FILE, &file, &err));
    ASSERT_OK(pf_zero_fill(file, (uint64_t)SLOTS * LK_CLAIM_SIZE, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    pf_volume_close(volume);
    return disk;
}

static lk_claim *take(pf_volume *volume)
{
    sluice_error err = {0};
    lk_claim *claim = NULL;
    ASSERT_OK(lk_claim_take(volume, LK_CLAIM_RETENTION, PF_AT_ONCE, &claim, &err));
    ASSERT_OK(lk_claim_check(claim, &err));
    return claim;
}

static void each_owner_has_the_next_term(void **state)
{
    (void)state;
    pf_sim_disk *disk = make_disk();
    pf_volume *volume = actor(disk);
    for (uint64_t term = 1; term < 6; term++) {
        lk_claim *claim = take(volume);
        assert_int_equal(lk_claim_term(claim), term);
        assert_false(lk_claim_was_taken_over(claim));
        lk_claim_release(claim);
    }
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void a_stopped_owner_keeps_it(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = make_disk();
    pf_volume *one = actor(disk), *two = actor(disk);
    lk_claim *claim = take(one), *other = NULL;
    assert_int_equal(lk_claim_take(two, LK_CLAIM_RETENTION, pf_deadline_in_ms(100000), &other, &err),
                     SLUICE_LIVE_WRITER_CONTENTION);
    assert_true(err.hint[0] != '\0');
    err = (sluice_error){0};
    ASSERT_OK(lk_claim_check(claim, &err));
    lk_claim_release(claim);
    other = take(two);
    assert_int_equal(lk_claim_term(other), 2);
    lk_claim_release(other);
    pf_volume_close(one);
    pf_volume_close(two);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void a_dead_owners_claim_is_taken_over_with_the_next_term(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = make_disk();
    pf_volume *one = actor(disk), *two = actor(disk);
    lk_claim *claim = take(one);
    pf_sim_kill(one);
    lk_claim *other = take(two);
    assert_true(lk_claim_was_taken_over(other));
    assert_int_equal(lk_claim_term(other), 2);
    assert_true(lk_claim_check(claim, &err) != SLUICE_OK); /* it can do nothing any more */
    lk_claim_release(claim);
    ASSERT_OK(lk_claim_check(other, &err)); /* and gives nothing back */
    lk_claim_release(other);
    pf_volume_close(one);
    pf_volume_close(two);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void taking_it_touches_one_file(void **state)
{
    (void)state;
    pf_sim_disk *disk = make_disk();
    pf_volume *volume = actor(disk);
    pf_volume_counters_reset(volume);
    lk_claim *claim = take(volume);
    lk_claim_release(claim);
    const pf_counters *did = pf_volume_counters(volume);
    assert_int_equal(did->opens, 1);
    assert_int_equal(did->writes, 2);
    assert_int_equal(did->file_syncs, 1);
    assert_int_equal(did->creates + did->renames + did->removes + did->directory_syncs, 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void whoever_dies_taking_it_leaves_it_to_the_next(void **state)
{
    (void)state;
    sluice_error err = {0};
    static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_RANDOM, PF_SIM_TEAR_LAST};
    pf_sim_disk *origin = make_disk(), *disk = NULL;
    pf_volume *volume = actor(origin);
    lk_claim_release(take(volume));
    lk_claim_release(take(volume));
    pf_volume_close(volume);
    for (uint64_t k = 1; k <= 3; k++)
        for (unsigned n = 0; n < 16; n++) {
            lk_claim *claim = NULL;
            ASSERT_OK(pf_sim_disk_clone(origin, 20 * k + n, &disk, &err));
            volume = actor(disk);
            pf_sim_crash_at(volume, k, n % 2 == 0, n / 2 % 2 == 0 ? PF_SIM_DIE : PF_SIM_POWER_LOSS, losses[n / 4]);
            if (lk_claim_take(volume, LK_CLAIM_RETENTION, PF_AT_ONCE, &claim, NULL) == SLUICE_OK)
                lk_claim_release(claim);
            pf_volume_close(volume);
            volume = actor(disk);
            claim = take(volume);
            assert_in_range(lk_claim_term(claim), 2,
                            4); /* what was not synced when the power went counts for nothing */
            lk_claim_release(claim);
            pf_volume_close(volume);
            pf_sim_disk_free(disk);
        }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void one_that_is_damaged_begins_anew_above_every_term(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = make_disk();
    pf_volume *volume = actor(disk);
    lk_claim_release(take(volume));
    ASSERT_OK(pf_sim_flip(disk, "graph/" LK_CLAIMS_FILE, 100, 1, &err));
    ASSERT_OK(pf_sim_flip(disk, "graph/" LK_CLAIMS_FILE, 2048 + 100, 1, &err));
    lk_claim *claim = take(volume);
    assert_true(lk_claim_term(claim) > 1000000);
    lk_claim_release(claim);
    claim = take(volume);
    assert_true(lk_claim_term(claim) > 1000001);
    lk_claim_release(claim);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_owner_has_the_next_term),
        cmocka_unit_test(a_stopped_owner_keeps_it),
        cmocka_unit_test(a_dead_owners_claim_is_taken_over_with_the_next_term),
        cmocka_unit_test(taking_it_touches_one_file),
        cmocka_unit_test(whoever_dies_taking_it_leaves_it_to_the_next),
        cmocka_unit_test(one_that_is_damaged_begins_anew_above_every_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
