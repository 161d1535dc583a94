/*
 * The simulated disk keeps its promises: the shared battery, then each rule of the crash model (O-02), and the proof
 * that it finds the mistakes that it is there to find (O-12): a writer that forgets any one barrier loses something
 * under some seed.
 */
#include "tests/support/test.h"
#include "volume_conformance.h"

#include "platform/clock.h"
#include "platform/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 64u

static sluice_error err;

/* ---- helpers ---- */

static pf_sim_disk *disk_new(uint64_t seed)
{
    pf_sim_disk *disk;

    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    return disk;
}

static pf_sim_disk *clone_of(const pf_sim_disk *disk, uint64_t seed)
{
    pf_sim_disk *clone;

    ASSERT_OK(pf_sim_disk_clone(disk, seed, &clone, &err));
    return clone;
}

static pf_volume *actor(pf_sim_disk *disk)
{
    pf_volume *volume;

    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    return volume;
}

static pf_file *created(pf_volume *volume, const char *path)
{
    pf_file *file;

    ASSERT_OK(pf_create(volume, path, &file, &err));
    return file;
}

static pf_file *opened(pf_volume *volume, const char *path)
{
    pf_file *file;

    ASSERT_OK(pf_open(volume, path, PF_WRITE, &file, &err));
    return file;
}

static void write_text(pf_file *file, uint64_t offset, const char *text)
{
    ASSERT_OK(pf_write(file, offset, text, strlen(text), &err));
}

/* Creates, writes, syncs, closes; the name is left unsynced. */
static void put(pf_volume *volume, const char *path, const char *text)
{
    pf_file *file = created(volume, path);

    write_text(file, 0, text);
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
}

static void fill(pf_file *file, uint64_t sector, uint64_t count, uint8_t with)
{
    uint8_t bytes[512];

    memset(bytes, with, sizeof bytes);
    for (uint64_t i = 0; i < count; i++)
        ASSERT_OK(pf_write(file, (sector + i) * 512, bytes, 512, &err));
}

/* What a process sees that looks at the disk after a power loss: a fresh actor's view. */
static bool exists(pf_sim_disk *disk, const char *path)
{
    pf_volume *volume = actor(disk);
    pf_stat st;
    sluice_status status = pf_stat_path(volume, path, &st, &err);

    pf_volume_close(volume);
    assert_true(status == SLUICE_OK || status == SLUICE_NOT_FOUND);
    return status == SLUICE_OK;
}

static size_t content(pf_sim_disk *disk, const char *path, void *bytes, size_t length)
{
    pf_volume *volume = actor(disk);
    pf_file *file;
    size_t got;

    ASSERT_OK(pf_open(volume, path, PF_READ, &file, &err));
    ASSERT_OK(pf_read(file, 0, bytes, length, &got, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    return got;
}

static void expect_text(pf_sim_disk *disk, const char *path, const char *text)
{
    char got[256] = {0};

    assert_int_equal(content(disk, path, got, sizeof got - 1), strlen(text));
    assert_string_equal(got, text);
}

/* The disk after a power loss, for one seed; the original stays. Freed by the caller. */
static pf_sim_disk *after_loss(const pf_sim_disk *disk, uint64_t seed, pf_sim_loss loss)
{
    pf_sim_disk *clone = clone_of(disk, seed);

    pf_sim_power_loss(clone, loss);
    return clone;
}

/* In how many of SEEDS random power losses the path is there. */
static unsigned times_there(const pf_sim_disk *disk, const char *path)
{
    unsigned there = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        there += exists(lost, path);
        pf_sim_disk_free(lost);
    }
    return there;
}

static bool there_after(const pf_sim_disk *disk, const char *path, pf_sim_loss loss)
{
    pf_sim_disk *lost = after_loss(disk, 1, loss);
    bool there = exists(lost, path);

    pf_sim_disk_free(lost);
    return there;
}

#define SOMETIMES(times) assert_true((times) > 0 && (times) < SEEDS)
#define ALWAYS(times)    assert_int_equal((times), SEEDS)

/* ---- the battery ---- */

static pf_volume *open_place(void *context)
{
    return actor(context);
}

static void the_battery_holds_on_the_simulated_disk(void **state)
{
    (void)state;
    for (unsigned i = 0; i < conformance_case_count; i++) {
        pf_sim_disk *disk = disk_new(i);
        print_message("    %s\n", conformance_cases[i].name);
        conformance_cases[i].run(&(conformance_place){.context = disk, .open = open_place});
        pf_sim_disk_free(disk);
    }
}

/* ---- contents ---- */

static void synced_content_survives_and_unsynced_may_not(void **state)
{
    pf_sim_disk *disk = disk_new(1), *lost;
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");

    (void)state;
    write_text(file, 0, "synced");
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    write_text(file, 6, " and more");
    lost = after_loss(disk, 1, PF_SIM_LOSE_ALL);
    expect_text(lost, "a", "synced");
    pf_sim_disk_free(lost);
    lost = after_loss(disk, 1, PF_SIM_KEEP_ALL);
    expect_text(lost, "a", "synced and more");
    pf_sim_disk_free(lost);
    expect_text(disk, "a", "synced and more"); /* the original goes on */
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void each_sector_is_kept_or_lost_by_itself(void **state)
{
    pf_sim_disk *disk = disk_new(2);
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");
    unsigned mixed = 0, half_pages = 0;

    (void)state;
    fill(file, 0, 16, 'A');
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    fill(file, 0, 16, 'B');
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[16 * 512];
        unsigned kept = 0, in_first = 0;
        assert_int_equal(content(lost, "a", got, sizeof got), sizeof got);
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
    pf_sim_disk *disk = disk_new(3);
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");
    unsigned seen[4] = {0};

    (void)state;
    fill(file, 0, 1, 0);
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    fill(file, 0, 1, 1);
    fill(file, 0, 1, 2);
    fill(file, 0, 1, 3);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[512];
        (void)content(lost, "a", got, sizeof got);
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
    pf_sim_disk *disk = disk_new(4);
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");
    unsigned zeros = 0, shorter = 0, partly = 0;

    (void)state;
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    fill(file, 0, 24, 'x');
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        uint8_t got[24 * 512];
        size_t size = content(lost, "a", got, sizeof got);
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
    pf_sim_disk *disk = disk_new(5);
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");
    char got[32];

    (void)state;
    write_text(file, 0, "ab");
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    write_text(file, 2, "GARBAGE");
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(pf_close(file, &err), SLUICE_FENCED);
    pf_volume_close(volume);
    volume = actor(disk);
    file = opened(volume, "a");
    write_text(file, 8, "z");
    ASSERT_OK(pf_read_exact(file, 0, got, 9, &err));
    assert_memory_equal(got, "ab\0\0\0\0\0\0z", 9);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void the_last_write_alone_is_torn_on_demand(void **state)
{
    pf_sim_disk *disk = disk_new(6);
    pf_volume *volume = actor(disk);
    pf_file *a = created(volume, "a"), *b = created(volume, "b");
    uint8_t bytes[16 * 512];
    unsigned torn = 0;

    (void)state;
    fill(a, 0, 16, 'a');
    memset(bytes, 'b', sizeof bytes);
    ASSERT_OK(pf_write(b, 0, bytes, sizeof bytes, &err));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_TEAR_LAST);
        uint8_t got[16 * 512];
        unsigned kept = 0;
        size_t size;
        assert_int_equal(content(lost, "a", got, sizeof got), sizeof got);
        for (size_t i = 0; i < sizeof got; i++)
            assert_int_equal(got[i], 'a');
        size = content(lost, "b", got, sizeof got);
        for (size_t s = 0; s < size / 512; s++)
            kept += got[s * 512] == 'b';
        torn += size == sizeof got && kept > 0 && kept < 16;
        pf_sim_disk_free(lost);
    }
    SOMETIMES(torn);
    ASSERT_OK(pf_sync(b, &err)); /* nothing left to tear */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_TEAR_LAST);
        uint8_t got[16 * 512];
        assert_int_equal(content(lost, "b", got, sizeof got), sizeof got);
        assert_memory_equal(got, bytes, sizeof got);
        pf_sim_disk_free(lost);
    }
    ASSERT_OK(pf_close(a, &err));
    ASSERT_OK(pf_close(b, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* ---- names ---- */

static void a_synced_file_is_kept_or_lost_with_its_unsynced_name(void **state)
{
    pf_sim_disk *disk = disk_new(7);
    pf_volume *volume = actor(disk);

    (void)state;
    put(volume, "a", "content");
    SOMETIMES(times_there(disk, "a"));
    assert_false(there_after(disk, "a", PF_SIM_LOSE_ALL));
    assert_true(there_after(disk, "a", PF_SIM_KEEP_ALL));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(times_there(disk, "a"));
    assert_true(there_after(disk, "a", PF_SIM_LOSE_ALL));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_new_folder_is_synced_by_its_parent_only(void **state)
{
    pf_sim_disk *disk = disk_new(8);
    pf_volume *volume = actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "f", &err));
    assert_false(there_after(disk, "f", PF_SIM_LOSE_ALL));
    SOMETIMES(times_there(disk, "f/a"));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(times_there(disk, "f/a"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void syncing_the_parent_does_not_sync_what_is_in_the_folder(void **state)
{
    pf_sim_disk *disk = disk_new(9);
    pf_volume *volume = actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(times_there(disk, "f"));
    SOMETIMES(times_there(disk, "f/a"));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void names_are_lost_in_any_order(void **state)
{
    pf_sim_disk *disk = disk_new(10);
    pf_volume *volume = actor(disk);
    unsigned only_second = 0;

    (void)state;
    put(volume, "first", "1");
    put(volume, "second", "2");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        only_second += exists(lost, "second") && !exists(lost, "first");
        pf_sim_disk_free(lost);
    }
    SOMETIMES(only_second);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_removed_name_may_come_back_until_its_folder_is_synced(void **state)
{
    pf_sim_disk *disk = disk_new(11);
    pf_volume *volume = actor(disk);

    (void)state;
    put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_remove(volume, "a", &err));
    SOMETIMES(times_there(disk, "a"));
    assert_true(there_after(disk, "a", PF_SIM_LOSE_ALL));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    assert_int_equal(times_there(disk, "a"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* "a" is made, removed, made again: the disk holds none, the first or the second, and never a mixture. */
static void of_the_changes_of_one_name_a_beginning_is_kept(void **state)
{
    pf_sim_disk *disk = disk_new(12);
    pf_volume *volume = actor(disk);
    unsigned none = 0, first = 0, second = 0;

    (void)state;
    put(volume, "a", "first");
    ASSERT_OK(pf_remove(volume, "a", &err));
    put(volume, "a", "second");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        char got[16] = {0};
        if (!exists(lost, "a")) {
            none++;
        } else {
            (void)content(lost, "a", got, sizeof got - 1);
            first += strcmp(got, "first") == 0;
            second += strcmp(got, "second") == 0;
        }
        pf_sim_disk_free(lost);
    }
    assert_int_equal(none + first + second, SEEDS);
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

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        bool old_there = exists(lost, from), new_there = exists(lost, to);
        assert_true(old_there != new_there); /* never both, never none */
        expect_text(lost, new_there ? to : from, text);
        renamed += new_there;
        pf_sim_disk_free(lost);
    }
    return renamed;
}

static void a_rename_is_atomic_within_a_folder(void **state)
{
    pf_sim_disk *disk = disk_new(13);
    pf_volume *volume = actor(disk);

    (void)state;
    put(volume, "a", "content");
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
        pf_sim_disk *disk = disk_new(14);
        pf_volume *volume = actor(disk);
        ASSERT_OK(pf_make_folder(volume, "x", &err));
        ASSERT_OK(pf_make_folder(volume, "y", &err));
        put(volume, "x/a", "content");
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
    pf_sim_disk *disk = disk_new(15);
    pf_volume *volume = actor(disk);

    (void)state;
    put(volume, "a", "content");
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
    pf_sim_disk *disk = disk_new(16);
    pf_volume *volume = actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    for (unsigned i = 0; i < 3; i++) { /* the same temporary name again and again */
        char name[16];
        (void)snprintf(name, sizeof name, "f/%u", i);
        put(volume, "f/tmp", "content");
        ASSERT_OK(pf_publish(volume, "f/tmp", name, &err));
        ASSERT_OK(pf_sync_dir(volume, "f", &err));
    }
    assert_false(there_after(disk, "f", PF_SIM_LOSE_ALL));
    SOMETIMES(times_there(disk, "f"));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ALWAYS(times_there(disk, "f/0"));
    ALWAYS(times_there(disk, "f/2"));
    assert_int_equal(times_there(disk, "f/tmp"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_folder_is_never_lost_inside_itself(void **state)
{
    pf_sim_disk *disk = disk_new(17);
    pf_volume *volume = actor(disk);

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "a", &err));
    ASSERT_OK(pf_make_folder(volume, "b", &err));
    put(volume, "a/in-a", "A");
    put(volume, "b/in-b", "B");
    ASSERT_OK(pf_sync_dir(volume, "a", &err));
    ASSERT_OK(pf_sync_dir(volume, "b", &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_publish(volume, "a", "b/a", &err));
    ASSERT_OK(pf_publish(volume, "b/a", "a", &err));
    ASSERT_OK(pf_publish(volume, "b", "a/b", &err));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        assert_int_equal(exists(lost, "a/in-a") + exists(lost, "b/a/in-a"), 1);
        assert_int_equal(exists(lost, "b/in-b") + exists(lost, "a/b/in-b"), 1);
        pf_sim_disk_free(lost);
    }
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_folder_is_removed_only_with_what_was_in_it(void **state)
{
    pf_sim_disk *disk = disk_new(18);
    pf_volume *volume = actor(disk);
    unsigned gone = 0;

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_make_folder(volume, "kept", &err));
    put(volume, "f/a", "content");
    ASSERT_OK(pf_sync_dir(volume, "f", &err));
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_publish(volume, "f/a", "kept/a", &err));
    ASSERT_OK(pf_remove_folder(volume, "f", &err));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *lost = after_loss(disk, seed, PF_SIM_RANDOM);
        gone += !exists(lost, "f");
        if (!exists(lost, "f"))
            assert_true(exists(lost, "kept/a"));
        pf_sim_disk_free(lost);
    }
    SOMETIMES(gone);
    ASSERT_OK(pf_sync_dir(volume, "", &err)); /* the removal, and with it the rename */
    ALWAYS(times_there(disk, "kept/a"));
    assert_int_equal(times_there(disk, "f"), 0);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* ---- failures ---- */

static void a_failed_sync_is_not_mended_by_a_later_one(void **state)
{
    pf_sim_disk *disk = disk_new(19), *lost;
    pf_volume *volume = actor(disk);
    pf_file *file, *again;
    char got[8];

    (void)state;
    put(volume, "a", "oldold");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    file = opened(volume, "a");
    write_text(file, 0, "new");
    pf_sim_fail_at(volume, 1, EIO, 1);
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err)); /* this handle is abandoned */
    ASSERT_FAILS(SLUICE_IO, pf_write(file, 0, "x", 1, &err));
    again = opened(volume, "a");
    ASSERT_OK(pf_read_exact(again, 0, got, 6, &err));
    assert_memory_equal(got, "newold", 6); /* readers still see it */
    ASSERT_OK(pf_sync(again, &err));       /* succeeds, and means nothing */
    lost = after_loss(disk, 1, PF_SIM_KEEP_ALL);
    expect_text(lost, "a", "oldold");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_read_medium(again, 0, got, 6, &err));
    assert_memory_equal(got, "oldold", 6);
    ASSERT_OK(pf_read_exact(again, 0, got, 6, &err));
    assert_memory_equal(got, "oldold", 6); /* the cached page is gone now */
    write_text(again, 0, "new");           /* only writing again helps */
    ASSERT_OK(pf_sync(again, &err));
    lost = after_loss(disk, 1, PF_SIM_LOSE_ALL);
    expect_text(lost, "a", "newold");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_close(again, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void a_failed_sync_may_have_reached_the_medium(void **state)
{
    pf_sim_disk *disk = disk_new(20), *lost;
    pf_volume *volume = actor(disk);
    pf_file *file;

    (void)state;
    put(volume, "a", "old");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    file = opened(volume, "a");
    pf_sim_set_failed_sync(disk, PF_SIM_KEEP_ALL);
    write_text(file, 0, "new");
    pf_sim_fail_at(volume, 1, EIO, 1);
    ASSERT_FAILS(SLUICE_IO, pf_sync(file, &err));
    lost = after_loss(disk, 1, PF_SIM_LOSE_ALL);
    expect_text(lost, "a", "new");
    pf_sim_disk_free(lost);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void errors_strike_at_the_chosen_call(void **state)
{
    pf_sim_disk *disk = disk_new(21);
    pf_volume *volume = actor(disk);
    uint64_t before;
    pf_file *file;
    pf_stat st;

    (void)state;
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    before = pf_sim_digest(disk);
    pf_sim_fail_at(volume, 3, ENOSPC, 1);
    file = created(volume, "first");
    write_text(file, 0, "x");
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
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *disk = disk_new(seed);
        pf_volume *volume = actor(disk);
        pf_file *file = created(volume, "a");
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
    pf_sim_disk *disk = disk_new(22);
    pf_volume *volume = actor(disk);
    uint8_t bytes[4 * 4096] = {1};
    pf_file *file = created(volume, "a"), *reserve = created(volume, "reserve");
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
    pf_sim_disk *disk = disk_new(23);
    pf_volume *volume = actor(disk);

    (void)state;
    put(volume, "a", "content");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_sim_flip(disk, "graph/a", 0, 0x20, &err));
    expect_text(disk, "a", "Content");
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph/a", 7, 1, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph/b", 0, 1, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sim_flip(disk, "graph", 0, 1, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    expect_text(disk, "a", "Content");
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

/* ---- deaths ---- */

static void a_death_keeps_the_cache_and_drops_the_locks(void **state)
{
    pf_sim_disk *disk = disk_new(24);
    pf_volume *dying = actor(disk), *other = actor(disk);
    pf_file *mine, *theirs;

    (void)state;
    put(dying, "locks", "");
    mine = opened(dying, "locks");
    theirs = opened(other, "locks");
    ASSERT_OK(pf_lock(mine, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    write_text(mine, 0, "unsynced");
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(theirs, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    pf_sim_kill(dying);
    assert_true(pf_sim_is_dead(dying));
    assert_false(pf_sim_is_dead(other));
    ASSERT_OK(pf_lock(theirs, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    expect_text(disk, "locks", "unsynced");
    ASSERT_FAILS(SLUICE_FENCED, pf_close(mine, &err));
    ASSERT_OK(pf_close(theirs, &err));
    pf_volume_close(dying);
    pf_volume_close(other);
    pf_sim_disk_free(disk);
}

static void a_dead_process_sees_and_changes_nothing(void **state)
{
    pf_sim_disk *disk = disk_new(25);
    pf_volume *volume = actor(disk);
    pf_file *file, *made;
    uint64_t before;
    bool is_free;
    uint8_t byte;
    size_t got;
    pf_stat st;
    pf_map map;

    (void)state;
    put(volume, "a", "x");
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    file = opened(volume, "a");
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
    pf_sim_disk *disk = disk_new(26);
    pf_volume *one = actor(disk), *two = actor(disk), *three;

    (void)state;
    pf_sim_crash_at(one, 1, false, PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL);
    ASSERT_FAILS(SLUICE_FENCED, pf_make_folder(one, "f", &err));
    assert_true(pf_sim_is_dead(one));
    assert_true(pf_sim_is_dead(two));
    three = actor(disk);
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
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *disk = disk_new(seed);
        pf_volume *volume = actor(disk);
        pf_file *file = created(volume, "a");
        uint8_t got[sizeof bytes];
        size_t size;
        pf_sim_crash_at(volume, 1, false, PF_SIM_DIE, PF_SIM_TEAR_LAST);
        ASSERT_FAILS(SLUICE_FENCED, pf_write(file, 100, bytes, sizeof bytes - 100, &err));
        (void)pf_close(file, NULL);
        size = content(disk, "a", got, sizeof got);
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

    put(other->volume, "a", "theirs");
    other->ran = true;
}

static void another_acts_while_a_process_stands_still(void **state)
{
    pf_sim_disk *disk = disk_new(27);
    pf_volume *volume = actor(disk);
    competitor other = {.volume = actor(disk)};
    pf_file *file;

    (void)state;
    pf_sim_interrupt_at(volume, 2, compete, &other);
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    assert_false(other.ran);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_create(volume, "a", &file, &err));
    assert_true(other.ran);
    expect_text(disk, "a", "theirs");
    pf_volume_close(volume);
    pf_volume_close(other.volume);
    pf_sim_disk_free(disk);
}

/* ---- disks ---- */

static void a_clone_goes_its_own_way(void **state)
{
    pf_sim_disk *disk = disk_new(28), *clone;
    pf_volume *volume = actor(disk), *other;
    pf_file *file = created(volume, "a");
    uint64_t before;

    (void)state;
    write_text(file, 0, "original");
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    before = pf_sim_digest(disk);
    clone = clone_of(disk, 1);
    assert_int_equal(pf_sim_digest(clone), before);
    write_text(file, 0, "ORIGINAL");
    ASSERT_OK(pf_remove_folder(volume, "f", &err));
    assert_int_equal(pf_sim_digest(clone), before);
    assert_int_not_equal(pf_sim_digest(disk), before);
    other = actor(clone);
    ASSERT_OK(pf_close(file, &err));
    file = opened(other, "a");
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err)); /* locks are not cloned */
    write_text(file, 0, "clone");
    ASSERT_OK(pf_close(file, &err));
    expect_text(disk, "a", "ORIGINAL");
    expect_text(clone, "a", "clonenal");
    pf_volume_close(volume);
    pf_sim_disk_free(disk); /* before its clone */
    expect_text(clone, "a", "clonenal");
    pf_volume_close(other);
    pf_sim_disk_free(clone);
}

/* A workload of random calls: the bytes that remain are a function of the two seeds. */
static uint64_t random_history(uint64_t seed, uint64_t crash_seed, pf_sim_loss loss);

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
    pf_sim_disk *disk = disk_new(29);
    pf_volume *volume = actor(disk);
    pf_file *a, *b;
    int64_t before;

    (void)state;
    pf_sim_world_install(1);
    put(volume, "locks", "");
    a = opened(volume, "locks");
    b = opened(volume, "locks");
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
        file = created(volume, name);
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
        if (!exists(disk, name)) {
            assert_false(h->files[i].named);
            continue;
        }
        size = content(disk, name, words, sizeof words);
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
    pf_sim_disk *disk = disk_new(crash_seed);
    pf_volume *volume = actor(disk);
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

    return exists(disk, "new/name") && content(disk, "new/name", got, sizeof got - 1) == 12 &&
           strcmp(got, "acknowledged") == 0;
}

/* Losses of what was acknowledged, over seeds. */
static unsigned losses_of(barrier forgotten)
{
    unsigned lost = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pf_sim_disk *disk = disk_new(seed);
        pf_volume *volume = actor(disk);
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
                pf_sim_disk *disk = disk_new(seed);
                pf_volume *volume = actor(disk);
                sluice_status status;
                pf_sim_crash_at(volume, k, way == 0, PF_SIM_POWER_LOSS, PF_SIM_RANDOM);
                status = publish_durably(volume, NO_BARRIER);
                done = status == SLUICE_OK;
                calls = pf_sim_calls(volume);
                if (!done) {
                    assert_int_equal(status, SLUICE_FENCED);
                    assert_true(pf_sim_is_dead(volume));
                    if (exists(disk, "new/name"))
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
    pf_sim_disk *disk = disk_new(30);
    pf_volume *volume = actor(disk);
    pf_file *file = created(volume, "a");
    unsigned seen[2][3][3] = {{{0}}}, states = 0, renamed = 0; /* b there, first page, second page */

    (void)state;
    fill(file, 0, 16, 'A');
    ASSERT_OK(pf_sync(file, &err));
    put(volume, "tmp", "t");
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    fill(file, 0, 8, 'B'); /* one version per sector-sized write, of which a page takes a beginning */
    write_text(file, 4096, "C");
    ASSERT_OK(pf_make_folder(volume, "b", &err));
    ASSERT_OK(pf_publish(volume, "tmp", "b/name", &err));
    do {
        pf_sim_disk *clone = clone_of(disk, 0);
        uint8_t got[8192];
        bool there;
        pf_sim_power_loss_chosen(clone, &choices);
        states++;
        there = exists(clone, "b");
        assert_int_equal(content(clone, "a", got, sizeof got), sizeof got);
        seen[there][got[0] == 'B' ? (got[3584] == 'B' ? 2 : 1) : 0][got[4096] == 'C']++;
        assert_int_equal(exists(clone, "tmp") + exists(clone, "b/name"), 1);
        renamed += exists(clone, "b/name");
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
        pf_sim_disk *disk = disk_new(0);
        pf_volume *volume = actor(disk);
        unsigned lost = 0, states = 0;
        ASSERT_OK(publish_durably(volume, rows[i].forgotten));
        do {
            pf_sim_disk *clone = clone_of(disk, 0);
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
        cmocka_unit_test(all_states_of_a_small_disk_are_enumerated),
        cmocka_unit_test(enumeration_finds_each_forgotten_barrier),
        cmocka_unit_test(the_battery_holds_on_the_simulated_disk),
        cmocka_unit_test(synced_content_survives_and_unsynced_may_not),
        cmocka_unit_test(each_sector_is_kept_or_lost_by_itself),
        cmocka_unit_test(a_write_between_two_others_may_be_what_remains),
        cmocka_unit_test(a_size_may_come_without_data_and_data_without_size_is_gone),
        cmocka_unit_test(bytes_behind_a_lost_end_are_zeros_when_the_file_grows_again),
        cmocka_unit_test(the_last_write_alone_is_torn_on_demand),
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
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(the_simulated_world_is_a_function_of_its_seed),
        cmocka_unit_test(waiting_in_vain_costs_simulated_time_only),
        cmocka_unit_test(every_history_leaves_only_what_the_contract_permits),
        cmocka_unit_test(each_forgotten_barrier_loses_an_acknowledged_file_under_some_seed),
        cmocka_unit_test(a_crash_at_every_call_never_leaves_half_a_published_file),
    };
    return cmocka_run_group_tests_name("the simulated disk", tests, NULL, NULL);
}
