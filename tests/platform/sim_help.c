/*
 * Disks, actors and looks at them for the tests of the simulated disk (see sim_help.h).
 */
#include "sim_help.h"

#include "tests/support/test.h"

#include <string.h>

static sluice_error err;

pf_sim_disk *sim_disk_new(uint64_t seed)
{
    pf_sim_disk *disk;

    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    return disk;
}

pf_sim_disk *sim_clone_of(const pf_sim_disk *disk, uint64_t seed)
{
    pf_sim_disk *clone;

    ASSERT_OK(pf_sim_disk_clone(disk, seed, &clone, &err));
    return clone;
}

pf_volume *sim_actor(pf_sim_disk *disk)
{
    pf_volume *volume;

    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    return volume;
}

pf_file *sim_created(pf_volume *volume, const char *path)
{
    pf_file *file;

    ASSERT_OK(pf_create(volume, path, &file, &err));
    return file;
}

pf_file *sim_opened(pf_volume *volume, const char *path)
{
    pf_file *file;

    ASSERT_OK(pf_open(volume, path, PF_WRITE, &file, &err));
    return file;
}

void sim_write_text(pf_file *file, uint64_t offset, const char *text)
{
    ASSERT_OK(pf_write(file, offset, text, strlen(text), &err));
}

void sim_put(pf_volume *volume, const char *path, const char *text)
{
    pf_file *file = sim_created(volume, path);

    sim_write_text(file, 0, text);
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
}

void sim_fill(pf_file *file, uint64_t sector, uint64_t count, uint8_t with)
{
    uint8_t bytes[512];

    memset(bytes, with, sizeof bytes);
    for (uint64_t i = 0; i < count; i++)
        ASSERT_OK(pf_write(file, (sector + i) * 512, bytes, 512, &err));
}

bool sim_exists(pf_sim_disk *disk, const char *path)
{
    pf_volume *volume = sim_actor(disk);
    pf_stat st;
    sluice_status status = pf_stat_path(volume, path, &st, &err);

    pf_volume_close(volume);
    assert_true(status == SLUICE_OK || status == SLUICE_NOT_FOUND);
    return status == SLUICE_OK;
}

size_t sim_content(pf_sim_disk *disk, const char *path, void *bytes, size_t length)
{
    pf_volume *volume = sim_actor(disk);
    pf_file *file;
    size_t got;

    ASSERT_OK(pf_open(volume, path, PF_READ, &file, &err));
    ASSERT_OK(pf_read(file, 0, bytes, length, &got, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    return got;
}

void sim_expect_text(pf_sim_disk *disk, const char *path, const char *text)
{
    char got[256] = {0};

    assert_int_equal(sim_content(disk, path, got, sizeof got - 1), strlen(text));
    assert_string_equal(got, text);
}

pf_sim_disk *sim_after_loss(const pf_sim_disk *disk, uint64_t seed, pf_sim_loss loss)
{
    pf_sim_disk *clone = sim_clone_of(disk, seed);

    pf_sim_power_loss(clone, loss);
    return clone;
}

unsigned sim_times_there(const pf_sim_disk *disk, const char *path)
{
    unsigned there = 0;

    for (uint64_t seed = 0; seed < SIM_SEEDS; seed++) {
        pf_sim_disk *lost = sim_after_loss(disk, seed, PF_SIM_RANDOM);
        there += sim_exists(lost, path);
        pf_sim_disk_free(lost);
    }
    return there;
}

bool sim_there_after(const pf_sim_disk *disk, const char *path, pf_sim_loss loss)
{
    pf_sim_disk *lost = sim_after_loss(disk, 1, loss);
    bool there = sim_exists(lost, path);

    pf_sim_disk_free(lost);
    return there;
}
