/*
 * One act of the recovery matrix, ended at each of its calls that change or sync something, by a death and by every
 * loss of power up to a bound (tests/support/aftermath.h); then recovery, itself ended at each of its calls in the same
 * ways, and the recovery after it too.
 *
 * Each disk that comes of that is judged alone, once: recovery works and changes nothing a second time; what it leaves
 * survives a loss of power; all rows, branches and checkpoints are as before the act or as after it; what was answered,
 * or confirmed, is there. Judged thoroughly, also: the next write works; the same request again gives the first result,
 * or runs now, by one commit; collection leaves nothing; verify finds nothing.
 *
 * SLUICE_EVERY_DISK=name runs one act, SLUICE_EVERY_DISK_TRACE=1 says which disk is next.
 */
#ifndef TESTS_MATRIX_EVERY_DISK_H
#define TESTS_MATRIX_EVERY_DISK_H

#include "acts.h"
#include "tests/support/aftermath.h"

typedef struct every_disk_limits {
    aftermath_bounds bounds; /* of each moment of the act */
    aftermath_bounds inner;  /* of each moment of a recovery */
    uint32_t moments;        /* of the act lose power, about; in all its process dies */
    uint32_t recoveries[2];  /* so many recoveries are ended everywhere; so many of those after them */
    uint32_t least;          /* calls of a recovery that is worth it */
    uint32_t inner_stride;   /* each so-many-th moment of them loses power */
    bool alone;              /* nothing is unsynced when the act begins, unless it is about that */
    uint32_t thorough;       /* each so-many-th disk is judged thoroughly */
} every_disk_limits;

typedef struct every_disk_counts {
    uint32_t calls;
    aftermath_counts act, recovery[2]; /* recovery: the first one, the second one */
    uint64_t judged, thoroughly;
} every_disk_counts;

/* What is done in this build: a sample, or with SLUICE_LONG=1 all. */
every_disk_limits every_disk_here(void);
bool every_disk_wanted(const matrix_writer *act);
void every_disk_of(const load_fixture *base, const matrix_writer *act, const every_disk_limits *limits,
                   every_disk_counts *ret_counts);
void every_disk_print(const char *name, const every_disk_counts *counts);

#endif
