/*
 * The simulated disk finds the mistakes that it is there to find (O-12): random histories against a model of what the
 * contract permits, planted mistakes under seeds, and every state of small disks.
 */
#include "sim_help.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sluice_error err;

/* ---- random histories against a model ---- */

#define FILES   4u
#define SECTORS 12u

/* What the test knows of one file: the stamps that each sector may hold after a power loss. */
typedef struct known_file {
    uint64_t synced[SECTORS];      /* the stamp at the last sync; 0: never written */
    uint64_t written[SECTORS][64]; /* stamps since */
    unsigned count[SECTORS];
    bool named; /* its name is durable */
} known_file;

typedef struct history {
    uint64_t random;
    known_file files[FILES];
    uint64_t stamp;
} history;

static uint64_t next(history *h)
{
    h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return h->random >> 33;
}

static void name_of(unsigned file, char ret_name[8])
{
    (void)snprintf(ret_name, 8, "f%u", file);
}

static void step(history *h, pf_volume *volume)
{
    unsigned which = (unsigned)(next(h) % FILES);
    known_file *known = &h->files[which];
    uint64_t sector, words[64];
    char name[8];
    pf_file *file;

    name_of(which, name);
    if (next(h) % 8 == 0) {
        ASSERT_OK(pf_sync_dir(volume, "", &err));
        for (unsigned i = 0; i < FILES; i++) {
            pf_stat st;
            name_of(i, name);
            h->files[i].named |= pf_stat_path(volume, name, &st, &err) == SLUICE_OK;
        }
        return;
    }
    if (pf_open(volume, name, PF_WRITE, &file, &err) != SLUICE_OK)
        file = sim_created(volume, name);
    if (next(h) % 4 == 0) {
        ASSERT_OK(pf_sync(file, &err));
        for (unsigned s = 0; s < SECTORS; s++) {
            if (known->count[s] > 0)
                known->synced[s] = known->written[s][known->count[s] - 1];
            known->count[s] = 0;
        }
    } else {
        sector = next(h) % SECTORS;
        h->stamp++;
        for (unsigned i = 0; i < 64; i++)
            words[i] = h->stamp;
        ASSERT_OK(pf_write(file, sector * 512, words, 512, &err));
        if (known->count[sector] < 64)
            known->written[sector][known->count[sector]++] = h->stamp;
    }
    ASSERT_OK(pf_close(file, &err));
}

static bool is_allowed(const known_file *known, unsigned sector, uint64_t stamp)
{
    if (stamp == known->synced[sector])
        return true;
    for (unsigned i = 0; i < known->count[sector]; i++)
        if (stamp == known->written[sector][i])
            return true;
    return false;
}

static void check_history(const history *h, pf_sim_disk *disk)
{
    for (unsigned i = 0; i < FILES; i++) {
        uint64_t words[SECTORS * 64] = {0};
        size_t size = 0;
        char name[8];
        name_of(i, name);
        if (!sim_exists(disk, name)) {
            assert_false(h->files[i].named);
            continue;
        }
        size = sim_content(disk, name, words, sizeof words);
        for (unsigned s = 0; s < SECTORS; s++) {
            for (unsigned w = 1; w < 64; w++)
                assert_int_equal(words[s * 64 + w], words[s * 64]);
            assert_true(is_allowed(&h->files[i], s, words[s * 64]) ||
                        (words[s * 64] == 0 && h->files[i].synced[s] == 0));
            if ((s + 1) * 512 > size)
                assert_int_equal(h->files[i].synced[s], 0); /* what was synced is inside the size */
        }
    }
}

static uint64_t random_history(uint64_t seed, uint64_t crash_seed, pf_sim_loss loss)
{
    pf_sim_disk *disk = sim_disk_new(crash_seed);
    pf_volume *volume = sim_actor(disk);
    history *h = calloc(1, sizeof *h);
    uint64_t digest;

    assert_non_null(h);
    h->random = seed;
    for (unsigned i = 0; i < 60; i++)
        step(h, volume);
    pf_sim_power_loss(disk, loss);
    check_history(h, disk);
    digest = pf_sim_digest(disk);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
    free(h);
    return digest;
}

static void every_history_leaves_only_what_the_contract_permits(void **state)
{
    static const pf_sim_loss losses[] = {PF_SIM_RANDOM, PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_TEAR_LAST};

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++)
        (void)random_history(seed, seed * 7, losses[seed % 4]);
}

static void the_same_seed_gives_the_same_bytes(void **state)
{
    unsigned different = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t first = random_history(seed, seed + 1, PF_SIM_RANDOM);
        assert_int_equal(first, random_history(seed, seed + 1, PF_SIM_RANDOM));
        different += first != random_history(seed, seed + 2, PF_SIM_RANDOM);
    }
    assert_true(different > 10);
}

/* ---- planted mistakes ---- */

typedef enum barrier { NO_BARRIER, FILE_SYNC, OLD_FOLDER_SYNC, NEW_FOLDER_SYNC, PARENT_SYNC, BARRIERS } barrier;

/* The way in which a file is made durable under its name, with one barrier left out. */
static sluice_status publish_durably(pf_volume *volume, barrier forgotten)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_GOTO(status, done, pf_make_folder(volume, "new", NULL));
    if (forgotten != PARENT_SYNC)
        PF_GOTO(status, done, pf_sync_dir(volume, "", NULL));
    PF_GOTO(status, done, pf_create(volume, "tmp", &file, NULL));
    PF_GOTO(status, done, pf_write(file, 0, "acknowledged", 12, NULL));
    if (forgotten != FILE_SYNC)
        PF_GOTO(status, done, pf_sync(file, NULL));
    PF_GOTO(status, done, pf_publish(volume, "tmp", "new/name", NULL));
    if (forgotten != NEW_FOLDER_SYNC)
        PF_GOTO(status, done, pf_sync_dir(volume, "new", NULL));
    if (forgotten != OLD_FOLDER_SYNC)
        PF_GOTO(status, done, pf_sync_dir(volume, "", NULL));
done:
    (void)pf_close(file, NULL);
    return status;
}

static bool is_whole(pf_sim_disk *disk)
{
    char got[16] = {0};

    return sim_exists(disk, "new/name") && sim_content(disk, "new/name", got, sizeof got - 1) == 12 &&
           strcmp(got, "acknowledged") == 0;
}

/* Losses of what was acknowledged, over seeds. */
static unsigned losses_of(barrier forgotten)
{
    unsigned lost = 0;

    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *disk = sim_disk_new(seed);
        pf_volume *volume = sim_actor(disk);
        ASSERT_OK(publish_durably(volume, forgotten));
        pf_sim_power_loss(disk, PF_SIM_RANDOM);
        lost += !is_whole(disk);
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
    return lost;
}

static void each_forgotten_barrier_loses_an_acknowledged_file_under_some_seed(void **state)
{
    (void)state;
    assert_int_equal(losses_of(NO_BARRIER), 0);
    SOMETIMES(losses_of(FILE_SYNC));
    SOMETIMES(losses_of(NEW_FOLDER_SYNC));
    SOMETIMES(losses_of(OLD_FOLDER_SYNC));
    /* the last sync of the root covers the new folder too: nothing is lost, and the model says so */
    assert_int_equal(losses_of(PARENT_SYNC), 0);
}

static void a_crash_at_every_call_never_leaves_half_a_published_file(void **state)
{
    uint64_t calls = 0;

    (void)state;
    for (uint64_t k = 1;; k++) {
        bool done = false;
        for (unsigned way = 0; way < 2; way++) {
            for (uint64_t seed = 0; seed < 8; seed++) {
                pf_sim_disk *disk = sim_disk_new(seed);
                pf_volume *volume = sim_actor(disk);
                sluice_status status;
                pf_sim_crash_at(volume, k, way == 0, PF_SIM_POWER_LOSS, PF_SIM_RANDOM);
                status = publish_durably(volume, NO_BARRIER);
                done = status == SLUICE_OK;
                calls = pf_sim_calls(volume);
                if (!done) {
                    assert_int_equal(status, SLUICE_FENCED);
                    assert_true(pf_sim_is_dead(volume));
                    if (sim_exists(disk, "new/name"))
                        assert_true(is_whole(disk)); /* the file was synced before it got that name */
                }
                pf_volume_close(volume);
                pf_sim_disk_free(disk);
            }
        }
        if (done) {
            assert_int_equal(k, calls + 1); /* every call was a place to die */
            break;
        }
        assert_true(k < 100);
    }
    assert_int_equal(calls, 8);
}

/* Every state, not some: what the seeds may miss. */
static void all_states_of_a_small_disk_are_enumerated(void **state)
{
    pf_sim_choices choices = {0};
    pf_sim_disk *disk = sim_disk_new(30);
    pf_volume *volume = sim_actor(disk);
    pf_file *file = sim_created(volume, "a");
    unsigned seen[2][3][3] = {{{0}}}, states = 0, renamed = 0; /* b there, first page, second page */

    (void)state;
    sim_fill(file, 0, 16, 'A');
    ASSERT_OK(pf_sync(file, &err));
    sim_put(volume, "tmp", "t");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    sim_fill(file, 0, 8, 'B'); /* one version per sector-sized write, of which a page takes a beginning */
    sim_write_text(file, 4096, "C");
    ASSERT_OK(pf_make_folder(volume, "b", &err));
    ASSERT_OK(pf_publish(volume, "tmp", "b/name", &err));
    do {
        pf_sim_disk *clone = sim_clone_of(disk, 0);
        uint8_t got[8192];
        bool there;
        pf_sim_power_loss_chosen(clone, &choices);
        states++;
        there = sim_exists(clone, "b");
        assert_int_equal(sim_content(clone, "a", got, sizeof got), sizeof got);
        seen[there][got[0] == 'B' ? (got[3584] == 'B' ? 2 : 1) : 0][got[4096] == 'C']++;
        assert_int_equal(sim_exists(clone, "tmp") + sim_exists(clone, "b/name"), 1);
        renamed += sim_exists(clone, "b/name");
        pf_sim_disk_free(clone);
        assert_true(states < 1000);
    } while (pf_sim_choices_next(&choices));
    assert_false(choices.cut);
    /* names: nothing, the folder, the folder and the rename; first page: 9 versions; second: 2 */
    assert_int_equal(states, 3 * 9 * 2);
    assert_int_equal(renamed, 9 * 2);
    for (unsigned there = 0; there < 2; there++)
        for (unsigned second = 0; second < 2; second++) {
            assert_int_equal(seen[there][0][second], there == 0 ? 1 : 2);
            assert_int_equal(seen[there][1][second], there == 0 ? 7 : 14);
            assert_int_equal(seen[there][2][second], there == 0 ? 1 : 2);
        }
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* The planted mistakes again: enumeration proves the right way right and finds each wrong one. */
static void enumeration_finds_each_forgotten_barrier(void **state)
{
    static const struct {
        barrier forgotten;
        bool loses;
    } rows[] = {
        {NO_BARRIER, false}, {FILE_SYNC, true}, {OLD_FOLDER_SYNC, true}, {NEW_FOLDER_SYNC, true}, {PARENT_SYNC, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pf_sim_choices choices = {0};
        pf_sim_disk *disk = sim_disk_new(0);
        pf_volume *volume = sim_actor(disk);
        unsigned lost = 0, states = 0;
        ASSERT_OK(publish_durably(volume, rows[i].forgotten));
        do {
            pf_sim_disk *clone = sim_clone_of(disk, 0);
            pf_sim_power_loss_chosen(clone, &choices);
            lost += !is_whole(clone);
            pf_sim_disk_free(clone);
            assert_true(++states < 1000);
        } while (pf_sim_choices_next(&choices));
        assert_int_equal(lost > 0, rows[i].loses);
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_leaves_only_what_the_contract_permits),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(each_forgotten_barrier_loses_an_acknowledged_file_under_some_seed),
        cmocka_unit_test(a_crash_at_every_call_never_leaves_half_a_published_file),
        cmocka_unit_test(all_states_of_a_small_disk_are_enumerated),
        cmocka_unit_test(enumeration_finds_each_forgotten_barrier),
    };
    return cmocka_run_group_tests_name("exploration of the simulated disk", tests, NULL, NULL);
}
