/*
 * Letting go of history (coord/gc_job.h; LESSONS G-03, L-044).
 *
 * Order, and what stands when it is cut short behind each step:
 *   1 the plan, under the refs lock                                             nothing happened
 *   2 the boundary, one record of control/, under it too                        more is kept than it says
 *   3 staged objects that nothing kept names, to trash/ (coord/gc.c)            likewise; the next run goes on
 *   4 per segment: its lineage, whole and synced with its name                  the segment still answers
 *   5 the segment to trash/, both folders synced, then deleted                  its lineage answers
 * A reader that pins a generation behind 2 looks at the boundary and pins again; one that pinned before is seen by the
 * look at the pins that comes after 2 (mark_all), and everything from its generation on stays in this run. Segments go
 * without the reclaim lock: nothing new points into what nothing kept points into.
 */
#include "coord/gc_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include "store/format/document.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- the boundary ---- */

typedef struct publishing {
    gc_job *gc;
    const co_retention *plan;
    uint64_t dropped;
} publishing;

static sluice_status apply(void *context, st_control *control, sluice_error *err)
{
    publishing *publishing_ = context;
    PF_TRY(lk_claim_check(publishing_->gc->claim, err));
    return co_retention_apply(publishing_->gc->graph, publishing_->plan, control, &publishing_->dropped, err);
}

static sluice_status decide(gc_job *gc, sluice_error *err)
{
    const co_limits limits = {
        .keep = gc->options->keep, .age_given = gc->options->age_given, .age_us = gc->options->age_us};
    co_retention plan = {0};
    publishing publishing_ = {.gc = gc, .plan = &plan};
    sluice_status status;
    PF_GOTO(status, done, co_retention_plan(gc->graph, &limits, &plan, err));
    if (gc->options->dry_run) {
        PF_GOTO(status, done, st_control_read(gc->graph, &gc->control, err));
        status = apply(&publishing_, &gc->control, err);
    } else {
        PF_GOTO(status, done, PF_FAILPOINT(GC_BEFORE_BOUNDARY, err));
        PF_GOTO(status, done, st_control_update(gc->graph, apply, &publishing_, gc->deadline, err));
        PF_GOTO(status, done, PF_FAILPOINT(GC_AFTER_BOUNDARY, err));
        status = st_control_read(gc->graph, &gc->control, err);
    }
    gc->report.generations = publishing_.dropped;
done:
    co_retention_free(&plan);
    return status;
}

sluice_status gc_let_go(gc_job *gc, sluice_error *err)
{
    PF_TRY(lk_take(gc->graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, gc->deadline, err));
    sluice_status status = decide(gc, err);
    lk_release(gc->graph_locks, LK_GRAPH_REFS);
    return status;
}

/* ---- segments ---- */

typedef struct lineage_walk {
    gc_job *gc;
    const char *folder;
} lineage_walk;

/* What a lineage was called before it had its name: only the holder of the claim makes them. */
static sluice_status on_lineage(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const lineage_walk *walk = context;
    char path[320];
    int length = snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    if (kind != PF_KIND_FILE || !st_document_is_temporary(name) || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return gc_delete(walk->gc, path, err);
}

static sluice_status remove_temporaries(gc_job *gc, uint64_t incarnation, sluice_error *err)
{
    char branch[64], folder[96];
    pf_stat stat;
    st_branch_folder(incarnation, branch);
    (void)snprintf(folder, sizeof folder, "%s/lineage", branch);
    lineage_walk walk = {gc, folder};
    if (pf_stat_path(gc->volume, folder, &stat, NULL) != SLUICE_OK)
        return SLUICE_OK; /* none was made yet */
    return pf_list(gc->volume, folder, on_lineage, &walk, err);
}

static sluice_status move_segment(gc_job *gc, st_log *log, const st_log_segment *segment, const char *path,
                                  sluice_error *err)
{
    char branch[64], folder[96], target[128];
    sluice_error local = {0};
    sluice_status status = segment->collected || PF_SABOTAGE(lineage_not_kept)
                               ? SLUICE_OK
                               : st_log_keep_lineage(log, segment->number, st_generation_compact, NULL, &local);
    if (status == SLUICE_CORRUPT) { /* verify tells what; the other segments can go */
        gc->report.damaged++;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    PF_TRY(PF_FAILPOINT(GC_AFTER_LINEAGE, err));
    PF_TRY(lk_claim_check(gc->claim, err));
    st_branch_folder(st_log_incarnation(log), branch);
    (void)snprintf(folder, sizeof folder, "%s/log", branch);
    (void)snprintf(target, sizeof target, GC_TRASH "/segment-%llu-%llu", (unsigned long long)st_log_incarnation(log),
                   (unsigned long long)segment->number);
    PF_TRY(pf_publish(gc->volume, path, target, err));
    PF_TRY(pf_sync_dir(gc->volume, GC_TRASH, err));
    PF_TRY(pf_sync_dir(gc->volume, folder, err));
    PF_TRY(PF_FAILPOINT(GC_AFTER_SEGMENT, err));
    gc->report.segments++;
    return gc_delete(gc, target, err);
}

static sluice_status segments_of(gc_job *gc, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_log_segment *segments = NULL;
    size_t count = 0;
    sluice_status status;
    PF_TRY(st_graph_log(gc->graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    PF_TRY(st_log_segments(log, &segments, &count, err));
    for (size_t i = 0; i < count; i++) {
        const st_log_segment *segment = &segments[i];
        char path[128];
        pf_stat stat;
        st_log_segment_path(log, segment->number, path);
        if (segment->active || co_records_have(&gc->records, incarnation, segment->first, segment->last) ||
            pf_stat_path(gc->volume, path, &stat, NULL) != SLUICE_OK)
            continue;
        if (gc->options->dry_run) {
            PF_GOTO(status, done, gc_delete(gc, path, err));
            gc->report.segments++;
        } else {
            PF_GOTO(status, done, move_segment(gc, log, segment, path, err));
        }
    }
    status = remove_temporaries(gc, incarnation, err);
done:
    free(segments);
    return status;
}

sluice_status gc_segments(gc_job *gc, sluice_error *err)
{
    for (uint32_t i = 0; i < gc->log_count; i++)
        PF_TRY(segments_of(gc, gc->logs[i].incarnation, err));
    return SLUICE_OK;
}
