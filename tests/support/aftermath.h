/*
 * Every disk that may be found after something has ended in the middle: after the death of a process at any of its
 * calls, and after a loss of power there, up to a bound.
 *
 * Recording keeps the disk as it is before each call that changes or syncs something: what a process leaves that dies
 * there, with what is not synced yet still apart. From such a disk a loss of power leads to many: each unsynced change
 * of a name is kept or lost, each unsynced page is one of its versions, each file has one of its sizes. All of them are
 * tried when they are not more than a bound. Else those that differ from "all is lost" and from "all is kept" by one
 * choice, then by two, then random ones (of which some tear inside pages) until the bound is met.
 */
#ifndef TESTS_SUPPORT_AFTERMATH_H
#define TESTS_SUPPORT_AFTERMATH_H

#include "platform/sim.h"

/* ---- what a process leaves behind ---- */

typedef struct recording {
    pf_sim_disk **disks;
    uint32_t count, room;
    void (*noticed)(void *context, uint32_t number); /* with each; NULL: nobody wants to know */
    void *context;
    pf_sim_disk *of;
    pf_sim_turns turns;
} recording;
/* From here on, whatever is called on the disk. One at a time. */
void recording_begin(recording *of, pf_sim_disk *disk);
void recording_end(recording *of);
void recording_free(recording *of);

/* ---- what has been tried ---- */

typedef struct seen_disks { /* digests */
    uint64_t *table;
    uint32_t count, room;
} seen_disks;
/* False: it was there before. */
bool seen_add(seen_disks *seen, uint64_t digest);
void seen_free(seen_disks *seen);
/* Of the disk as it is found now, and as a power loss would leave it; for disks with unsynced changes, too. */
uint64_t seen_digest(const pf_sim_disk *disk);

/* ---- losses of power ---- */

typedef struct aftermath_bounds {
    uint32_t disks;   /* tried of one moment, but at least the single choices if `singles` */
    bool singles;     /* all that differ by one choice, whatever the bound */
    bool pairs;       /* and by two */
    uint32_t samples; /* random ones, where not all were tried; and always some that tear inside pages */
} aftermath_bounds;

typedef struct aftermath_counts {
    uint64_t moments;  /* disks with something unsynced, or not */
    uint64_t whole;    /* moments of which every disk was tried */
    uint64_t tried;    /* disks */
    uint64_t distinct; /* of them, that were not seen before */
} aftermath_counts;

/* Calls `each` with every disk that was not seen before; it is freed afterwards. */
typedef void aftermath_fn(void *context, pf_sim_disk *disk);
void aftermath_each(const pf_sim_disk *moment, const aftermath_bounds *bounds, uint64_t salt, seen_disks *seen,
                    aftermath_fn *each, void *context, aftermath_counts *counts);

#endif
