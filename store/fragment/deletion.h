/*
 * Sets of rows (row ids, or positions in a fragment) in memory, and the immutable files that keep them
 * (tables/<id>/deletions/<name>): portable CRoaring bitmaps of 32 bits, one per high word that occurs.
 *
 * The SHA-256 of the whole file stands in the edit. Reading checks it, then every structure inside, before CRoaring
 * sees a byte; damage is CORRUPT and names the file. Equal sets give equal bytes.
 */
#ifndef STORE_FRAGMENT_DELETION_H
#define STORE_FRAGMENT_DELETION_H

#include "platform/digest.h"
#include "platform/volume.h"

typedef struct st_row_set st_row_set;
sluice_status st_row_set_new(st_row_set **ret_set, sluice_error *err);
void st_row_set_free(st_row_set *set); /* NULL allowed */
sluice_status st_row_set_add(st_row_set *set, uint64_t row, sluice_error *err);
/* In any order, with any repetition; ascending is fastest. */
sluice_status st_row_set_add_many(st_row_set *set, const uint64_t *rows, uint64_t count, sluice_error *err);
sluice_status st_row_set_add_set(st_row_set *set, const st_row_set *more, sluice_error *err);
bool st_row_set_contains(const st_row_set *set, uint64_t row);
uint64_t st_row_set_count(const st_row_set *set);
/* How many rows of the set lie in [first, first + count). */
uint64_t st_row_set_count_range(const st_row_set *set, uint64_t first, uint64_t count);
/* The rows of [first, first + count), ascending, less `first` (so: positions, for row ids of a fragment). The caller
 * frees the array; *ret_rows is NULL when there are none. */
sluice_status st_row_set_range(const st_row_set *set, uint64_t first, uint64_t count, uint64_t **ret_rows,
                               uint64_t *ret_count, sluice_error *err);
/* All rows, ascending. */
sluice_status st_row_set_rows(const st_row_set *set, uint64_t **ret_rows, uint64_t *ret_count, sluice_error *err);

/* How an edit names a deletion file. */
typedef struct st_dead_ref {
    bool present;
    char name[72];
    uint64_t rows;
    pf_sha256 digest;
} st_dead_ref;

/* Writes the set exclusively; syncs the file, not the folder. (Packs the set's containers: hence not const.) */
sluice_status st_deletion_write(pf_volume *volume, uint64_t table, const char *name, st_row_set *set,
                                st_dead_ref *ret_ref, sluice_error *err);
sluice_status st_deletion_read(pf_volume *volume, uint64_t table, const st_dead_ref *ref, st_row_set **ret_set,
                               sluice_error *err);
/* The same from bytes (without the digest): the whole check of structure. `path` is named in errors. */
sluice_status st_deletion_decode(const void *bytes, size_t length, uint64_t table, const char *path,
                                 st_row_set **ret_set, sluice_error *err);

#endif
