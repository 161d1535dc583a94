/*
 * A table's folders on a real volume, and its files as bytes: what the tests of sealed files work on.
 */
#ifndef TESTS_FRAGMENT_TABLE_DIR_H
#define TESTS_FRAGMENT_TABLE_DIR_H

#include "platform/buffer.h"
#include "platform/sim.h"
#include "tests/support/test.h"

#define TABLE 70u

typedef struct table_dir {
    char *root; /* NULL when simulated */
    pf_sim_disk *disk;
    pf_volume *volume;
} table_dir;

table_dir table_dir_make(void); /* tables/70/{fragments,keys,deletions,indexes} */
/* The same on a simulated disk, for tests that write many files and need none as bytes: no sync is waited for. */
table_dir table_dir_simulate(void);
void table_dir_remove(table_dir *dir);
/* The whole of a file ("keys/a.run"), to be freed with pf_buffer_free. */
pf_buffer table_dir_read(const table_dir *dir, const char *name);
/* Replaces a file's content (or makes the file). */
void table_dir_write(const table_dir *dir, const char *name, const void *bytes, size_t length);

/* A small generator, the same everywhere: tests are repeatable from their seed. */
typedef struct test_random {
    uint64_t state;
} test_random;
uint64_t test_random_next(test_random *random);

#endif
