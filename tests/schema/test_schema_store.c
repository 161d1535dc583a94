/*
 * Accepted schemas on disk: stored once, whole or not at all, found again by whoever stores the same, checked when
 * read.
 */
#include "platform/sim.h"
#include "store/schema/schema.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    pf_sim_disk *disk;
    pf_volume *volume;
    st_schema *schema;
} fixture;

static fixture make_fixture(uint64_t seed)
{
    static const char text[] =
        "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"}}}}";
    sluice_error err = {0};
    fixture made = {0};
    uint64_t table = 64, property = 1;
    pf_sim_world_install(seed);
    ASSERT_OK(pf_sim_disk_new(seed, &made.disk, &err));
    ASSERT_OK(pf_sim_actor(made.disk, "g", &made.volume, &err));
    ASSERT_OK(pf_make_folder(made.volume, "schema", &err));
    ASSERT_OK(pf_sync_dir(made.volume, "", &err));
    ASSERT_OK(st_schema_parse(text, sizeof(text) - 1, "t", &made.schema, &err));
    st_schema_assign_ids(made.schema, &table, &property);
    return made;
}

static void free_fixture(fixture *made)
{
    pf_volume_close(made->volume);
    pf_sim_disk_free(made->disk);
    st_schema_free(made->schema);
    pf_sim_world_remove();
}

static void a_stored_schema_is_read_back_and_stored_once(void **state)
{
    (void)state;
    sluice_error err = {0};
    fixture made = make_fixture(3);
    pf_sha256 one, two, identity;
    st_schema *again = NULL;
    ASSERT_OK(st_schema_store(made.volume, made.schema, &one, &err));
    pf_volume_counters_reset(made.volume);
    ASSERT_OK(st_schema_store(made.volume, made.schema, &two, &err));
    assert_int_equal(pf_volume_counters(made.volume)->creates, 0);
    assert_true(pf_volume_counters(made.volume)->file_syncs == 1 &&
                pf_volume_counters(made.volume)->directory_syncs == 1);
    ASSERT_OK(st_schema_identity(made.schema, &identity, &err));
    assert_true(pf_sha256_equal(&one, &two) && pf_sha256_equal(&one, &identity));
    ASSERT_OK(st_schema_fetch(made.volume, &one, &again, &err));
    assert_non_null(st_schema_find(again, "P"));
    st_schema_free(again);
    free_fixture(&made);
}

static void a_damaged_or_missing_schema_is_corrupt_and_named(void **state)
{
    (void)state;
    sluice_error err = {0};
    fixture made = make_fixture(4);
    pf_sha256 identity;
    char text[PF_SHA256_TEXT], path[128];
    st_schema *again = NULL;
    ASSERT_OK(st_schema_store(made.volume, made.schema, &identity, &err));
    pf_sha256_text(&identity, text);
    (void)snprintf(path, sizeof(path), "g/schema/%s.json", text);
    for (uint64_t at = 0; at < 200; at += 17) {
        ASSERT_OK(pf_sim_flip(made.disk, path, at, 4, &err));
        ASSERT_FAILS(SLUICE_CORRUPT, st_schema_fetch(made.volume, &identity, &again, &err));
        assert_non_null(strstr(err.message, text));
        ASSERT_FAILS(SLUICE_CORRUPT, st_schema_store(made.volume, made.schema, &identity, &err));
        ASSERT_OK(pf_sim_flip(made.disk, path, at, 4, &err));
    }
    identity.bytes[0] ^= 1;
    ASSERT_FAILS(SLUICE_CORRUPT, st_schema_fetch(made.volume, &identity, &again, &err));
    assert_non_null(strstr(err.message, "is missing"));
    free_fixture(&made);
}

/* Dead or without power at every call: nothing or the whole schema; another process then stores the same without
 * trouble. */
static void storing_dies_at_every_call_and_the_next_one_succeeds(void **state)
{
    static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_RANDOM, PF_SIM_TEAR_LAST};
    (void)state;
    for (uint64_t k = 1; k < 12; k++) {
        for (unsigned c = 0; c < 10; c++) {
            sluice_error err = {0};
            fixture made = make_fixture(100 * k + c);
            pf_sha256 identity;
            st_schema *again = NULL;
            pf_sim_fate fate = c < 2 ? PF_SIM_DIE : PF_SIM_POWER_LOSS;
            pf_sim_crash_at(made.volume, k, c & 1, fate, losses[c < 2 ? 0 : (c - 2) / 2]);
            bool stored = st_schema_store(made.volume, made.schema, &identity, &err) == SLUICE_OK;
            if (stored)
                pf_sim_power_loss(made.disk, PF_SIM_LOSE_ALL); /* what was answered survives */
            pf_volume *other = NULL;
            ASSERT_OK(pf_sim_actor(made.disk, "g", &other, &err));
            if (stored) {
                ASSERT_OK(st_schema_fetch(other, &identity, &again, &err));
                st_schema_free(again);
            }
            ASSERT_OK(st_schema_store(other, made.schema, &identity, &err));
            pf_sim_power_loss(made.disk, PF_SIM_LOSE_ALL);
            pf_volume_close(other);
            ASSERT_OK(pf_sim_actor(made.disk, "g", &other, &err));
            ASSERT_OK(st_schema_fetch(other, &identity, &again, &err));
            st_schema_free(again);
            pf_volume_close(other);
            free_fixture(&made);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_schema_is_read_back_and_stored_once),
        cmocka_unit_test(a_damaged_or_missing_schema_is_corrupt_and_named),
        cmocka_unit_test(storing_dies_at_every_call_and_the_next_one_succeeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
