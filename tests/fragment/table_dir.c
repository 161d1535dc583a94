/*
 * A table's folders on a real disk, below the folder for tests (see table_dir.h).
 */
#include "table_dir.h"

#include "tests/support/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void make_folders(pf_volume *volume)
{
    static const char *const folders[] = {"tables",         "tables/70",           "tables/70/fragments",
                                          "tables/70/keys", "tables/70/deletions", "tables/70/indexes"};
    sluice_error err = {0};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ASSERT_OK(pf_make_folder(volume, folders[i], &err));
}

table_dir table_dir_make(void)
{
    sluice_error err = {0};
    table_dir dir = {.root = test_folder_make()};
    ASSERT_OK(pf_volume_open(dir.root, PF_WRITE, &dir.volume, &err));
    make_folders(dir.volume);
    return dir;
}

table_dir table_dir_simulate(void)
{
    sluice_error err = {0};
    table_dir dir = {0};
    ASSERT_OK(pf_sim_disk_new(1, &dir.disk, &err));
    ASSERT_OK(pf_sim_actor(dir.disk, "graph", &dir.volume, &err));
    make_folders(dir.volume);
    return dir;
}

void table_dir_remove(table_dir *dir)
{
    pf_volume_close(dir->volume);
    pf_sim_disk_free(dir->disk);
    test_folder_remove(dir->root);
}

static int open_file(const table_dir *dir, const char *name, int flags)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/tables/70/%s", dir->root, name) > 0);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    free(path);
    return fd;
}

pf_buffer table_dir_read(const table_dir *dir, const char *name)
{
    sluice_error err = {0};
    pf_buffer buffer = {0};
    int fd = open_file(dir, name, O_RDONLY);
    for (ssize_t got = 1; got > 0;) {
        ASSERT_OK(pf_buffer_reserve(&buffer, 65536, &err));
        got = read(fd, buffer.data + buffer.length, 65536);
        assert_true(got >= 0);
        buffer.length += (size_t)got;
    }
    close(fd);
    return buffer;
}

void table_dir_write(const table_dir *dir, const char *name, const void *bytes, size_t length)
{
    int fd = open_file(dir, name, O_RDWR | O_CREAT);
    assert_int_equal(pwrite(fd, bytes, length, 0), (ssize_t)length);
    assert_int_equal(ftruncate(fd, (off_t)length), 0);
    close(fd);
}

uint64_t test_random_next(test_random *random)
{
    uint64_t x = random->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
