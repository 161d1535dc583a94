/*
 * Intents and recovery (DESIGN 4 and 8). Intents lie in 64 slots of 32 KiB of GRAPH/intents; a slot's lock is held from
 * arming to retiring; a lock that can be taken means a dead owner, a busy one a live owner, never touched.
 */
#ifndef COORD_RECOVER_H
#define COORD_RECOVER_H

#include "coord/write.h"

typedef enum co_recover_mode { CO_RECOVER_PROBE, CO_RECOVER_AUTOMATIC, CO_RECOVER_FULL } co_recover_mode;

typedef struct co_recovered { /* one line of `sluice recover` */
    pf_id operation, commit;
    uint32_t slot;
    char kind[16];
    char stage[16];          /* armed, confirmed, unreadable */
    char classification[24]; /* published, branch-gone, unconfirmed, roll-forward, invalid, quarantined, live */
    char action[24];         /* none, retire, publish, discard, undo, quarantine */
    char outcome[24];        /* resolved, kept, pending */
} co_recovered;
typedef sluice_status co_recovered_fn(void *context, const co_recovered *line, sluice_error *err);

/* Resolves every intent of a dead owner that overlaps (incarnation 0: all; tables NULL: all of the branch). PROBE
 * changes nothing. RECOVERY_REQUIRED when an overlapping one cannot be resolved. `each` may be NULL. */
sluice_status co_recover(st_graph *graph, co_recover_mode mode, uint64_t incarnation, const uint64_t *tables,
                         uint32_t table_count, co_recovered_fn *each, void *context, sluice_error *err);

/* Removes what dead attempts left behind, deleted branches, trash litter; counts what it freed. Of history it lets go
 * of nothing. */
typedef struct co_gc_report {
    uint64_t files, bytes, attempts;
    uint64_t generations; /* let go of by this run */
    uint64_t segments;    /* of logs */
    uint64_t damaged;     /* segments that stay, since they cannot be read */
} co_gc_report;
sluice_status co_gc(st_graph *graph, bool dry_run, co_gc_report *ret_report, sluice_error *err);
/* The same with limits of retention (coord/retention.h). */
typedef struct co_gc_options {
    bool dry_run;
    uint64_t keep;  /* the newest generations of each branch that stay; 0: not given */
    bool age_given; /* what stood within this time stays */
    int64_t age_us;
    /* Each file that goes, or in a dry run would; NULL allowed. */
    sluice_status (*each)(void *context, const char *path, uint64_t bytes, sluice_error *err);
    void *context;
} co_gc_options;
sluice_status co_gc_with(st_graph *graph, const co_gc_options *options, co_gc_report *ret_report, sluice_error *err);

#endif
