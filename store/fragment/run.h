/*
 * Runs: immutable files of sorted (64-bit hash, row position) pairs, mapped read-only (tables/<id>/keys/<name>.run).
 *
 * One format for key runs (a fragment's node keys or edge identities), end runs (the from or to keys of an edge
 * fragment) and unique-tuple runs: sorted by (hash, position). Integrity: XXH3-128 per 64 KiB block, listed in the
 * footer, checked on first touch; the SHA-256 of the footer stands in the edit. A bloom-like filter over the hashes may
 * answer "surely absent". A hash hit is only a candidate: the caller confirms it on the key itself.
 */
#ifndef STORE_FRAGMENT_RUN_H
#define STORE_FRAGMENT_RUN_H

#include "platform/digest.h"
#include "platform/volume.h"

typedef struct st_run_entry {
    uint64_t hash;
    uint64_t position; /* row within the fragment */
} st_run_entry;

typedef struct st_run_info {
    char name[72]; /* file name below tables/<id>/keys/ */
    uint64_t entries;
    uint64_t bytes;
    pf_sha256 footer;
} st_run_info;

/* Sorts by (hash, position), in place; entries that come in order of position are sorted fastest. */
sluice_status st_run_sort(st_run_entry *entries, uint64_t count, sluice_error *err);
/* Sorts `entries` in place (radix) and writes the run exclusively; syncs the file, not the folder. */
sluice_status st_run_write(pf_volume *volume, uint64_t table, const char *name, st_run_entry *entries, uint64_t count,
                           st_run_info *ret_info, sluice_error *err);

/* Entries that are sorted already but need not be in memory, in blocks; gone through twice. */
typedef struct st_run_source {
    void *context;
    sluice_status (*rewind)(void *context, sluice_error *err);
    /* The next block; *ret_count 0 at the end. Valid until the next call. */
    sluice_status (*next)(void *context, const st_run_entry **ret_entries, uint64_t *ret_count, sluice_error *err);
} st_run_source;
/* The same run from a source of `count` entries, in little memory. */
sluice_status st_run_write_sorted(pf_volume *volume, uint64_t table, const char *name, const st_run_source *source,
                                  uint64_t count, st_run_info *ret_info, sluice_error *err);

typedef struct st_run st_run;
sluice_status st_run_open(pf_volume *volume, uint64_t table, const st_run_info *info, st_run **ret_run,
                          sluice_error *err);
void st_run_close(st_run *run); /* NULL allowed */
uint64_t st_run_entries(const st_run *run);
/* A cursor over the entries with low <= hash <= high, in order. */
#define ST_RUN_PACKET 256u /* entries that are packed together, */
#define ST_RUN_AHEAD  64u  /* and that are unpacked at a time */
typedef struct st_run_cursor {
    st_run *run;
    uint64_t next, end;
    uint64_t from, to; /* what is unpacked */
    st_run_entry entries[ST_RUN_AHEAD];
} st_run_cursor;
sluice_status st_run_seek(st_run *run, uint64_t low, uint64_t high, st_run_cursor *ret_cursor, sluice_error *err);
/* *ret_entry NULL at the end. What a cursor hands out is valid until its next call. */
sluice_status st_run_next(st_run_cursor *cursor, const st_run_entry **ret_entry, sluice_error *err);
/* Many at once, some of those that come next; *ret_count 0 at the end. */
sluice_status st_run_next_many(st_run_cursor *cursor, const st_run_entry **ret_entries, uint64_t *ret_count,
                               sluice_error *err);
/* False when no entry has this hash for sure (filter; no false negatives). */
sluice_status st_run_may_contain(st_run *run, uint64_t hash, bool *ret_may, sluice_error *err);
sluice_status st_run_verify(st_run *run, sluice_error *err);

#endif
