/*
 * The inside of collection.
 *
 *   gc.c          one run: claim, recovery, trash, passes over staged objects and attempts
 *   gc_branch.c   folders of branches that nothing leads to
 *   gc_history.c  letting go of generations (the boundary), and of log segments that nothing kept points into
 *   retention.c   the decision what is kept
 */
#ifndef COORD_GC_JOB_H
#define COORD_GC_JOB_H

#include "coord/objects.h"
#include "coord/recovery.h"
#include "coord/retention.h"
#include "locks/claim.h"

#define GC_TRASH "trash"

typedef struct gc_dead { /* an attempt that is over */
    pf_id id;
    pf_file *lock; /* NULL: the folder has none */
    bool named;    /* by an intent */
} gc_dead;

typedef struct gc_log { /* a log that was gone through, up to this generation */
    uint64_t incarnation, end;
} gc_log;

typedef struct gc_job {
    st_graph *graph;
    pf_volume *volume;
    lk_lockfile *graph_locks;
    lk_claim *claim; /* of retention */
    pf_deadline deadline;
    const co_gc_options *options;
    st_control control; /* with the boundaries of this run: published, or in a dry run as they would be */
    co_objects objects;
    co_records records; /* that what is kept points to */
    pf_id *folders;     /* attempts with a folder, when they were listed */
    uint32_t folder_count, folder_room;
    gc_dead *dead; /* those whose lock we hold, or that have none */
    uint32_t dead_count;
    bool more; /* attempts were left for another pass */
    gc_log *logs;
    uint32_t log_count, log_room;
    co_gc_report report;
} gc_job;

/* A file that goes: counted, told, and but for a dry run removed, while the claim is still ours. */
sluice_status gc_delete(gc_job *gc, const char *path, sluice_error *err);

/* gc_branch.c: moves branches/<incarnation> of every branch that is no root (coord/roots.h) to trash/, and empties and
 * removes what lies in trash/ of such. */
sluice_status gc_branches(gc_job *gc, sluice_error *err);

/* gc_history.c */

/* Decides what history is let go of and publishes that; gc->control says it from here on. */
sluice_status gc_let_go(gc_job *gc, sluice_error *err);
/* Segments of the logs gone through (gc->logs) that no record in gc->records lies in: their lineage is kept, they go.
 */
sluice_status gc_segments(gc_job *gc, sluice_error *err);

#endif
