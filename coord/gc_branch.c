/*
 * Branch folders that are collected (coord/gc_job.h).
 *
 * Under the refs lock, which creators of branches hold from minting an incarnation to its ref, and loads that make one
 * too: so a folder without a name is either named by an intent, which makes it a root, or dead. Deleting made the log
 * complete and durable before the name went. The move to trash/ is one rename; both folders are synced before anything
 * in it is deleted. Killed anywhere, what is in trash/ is deleted by the next run.
 */
#include "coord/gc_job.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4u /* branches/<n>/log/<segment> is 2 below the folder */

typedef struct sweeping {
    gc_job *job;
    co_roots roots;
    uint64_t *dead;
    uint32_t dead_count;
} sweeping;

typedef struct folder_sweep {
    sweeping *gc;
    const char *folder;
    unsigned depth;
    bool foreign; /* something in it is not ours: it stays, and the folder with it */
} folder_sweep;

static sluice_status remove_tree(sweeping *gc, const char *folder, unsigned depth, bool *ret_left, sluice_error *err);

static sluice_status on_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    folder_sweep *walk = context;
    char path[320];
    int length = snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    if (kind == PF_KIND_OTHER || length < 0 || (size_t)length >= sizeof path || walk->depth == DEPTH_MAX) {
        walk->foreign = true;
        return SLUICE_OK;
    }
    if (kind == PF_KIND_FOLDER) {
        bool left = false;
        PF_TRY(remove_tree(walk->gc, path, walk->depth + 1, &left, err));
        walk->foreign |= left;
        return SLUICE_OK;
    }
    return gc_delete(walk->gc->job, path, err);
}

/* The depth is bounded by DEPTH_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static sluice_status remove_tree(sweeping *gc, const char *folder, unsigned depth, bool *ret_left, sluice_error *err)
{
    folder_sweep walk = {.gc = gc, .folder = folder, .depth = depth};
    PF_TRY(pf_list(gc->job->volume, folder, on_entry, &walk, err));
    *ret_left = walk.foreign;
    return gc->job->options->dry_run || walk.foreign ? SLUICE_OK : pf_remove_folder(gc->job->volume, folder, err);
}

/* ---- trash ---- */

static sluice_status on_trash(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    sweeping *gc = context;
    char path[320];
    bool left = false;
    int length = snprintf(path, sizeof path, GC_TRASH "/%s", name);
    if (kind != PF_KIND_FOLDER || strncmp(name, "branch-", 7) != 0 || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return remove_tree(gc, path, 0, &left, err);
}

/* ---- what is dead ---- */

static sluice_status on_branch(void *context, uint64_t incarnation, sluice_error *err)
{
    sweeping *gc = context;
    if (co_roots_have(&gc->roots, incarnation))
        return SLUICE_OK;
    uint64_t *grown = realloc(gc->dead, ((size_t)gc->dead_count + 1) * sizeof *grown);
    if (!grown)
        return pf_fail_memory(err);
    gc->dead = grown;
    gc->dead[gc->dead_count++] = incarnation;
    return SLUICE_OK;
}

static sluice_status move_folder(gc_job *job, const char *folder, const char *target, sluice_error *err)
{
    PF_TRY(lk_claim_check(job->claim, err));
    return pf_publish(job->volume, folder, target, err);
}

static sluice_status move_dead(sweeping *gc, sluice_error *err)
{
    char folder[64], target[96];
    if (gc->dead_count == 0)
        return SLUICE_OK;
    for (uint32_t i = 0; i < gc->dead_count; i++) {
        bool left = false;
        st_branch_folder(gc->dead[i], folder);
        (void)snprintf(target, sizeof target, GC_TRASH "/branch-%llu", (unsigned long long)gc->dead[i]);
        if (gc->job->options->dry_run)
            PF_TRY(remove_tree(gc, folder, 0, &left, err));
        else
            PF_TRY(move_folder(gc->job, folder, target, err));
    }
    if (gc->job->options->dry_run)
        return SLUICE_OK;
    PF_TRY(pf_sync_dir(gc->job->volume, GC_TRASH, err));
    return pf_sync_dir(gc->job->volume, "branches", err);
}

static sluice_status find_and_move(sweeping *gc, sluice_error *err)
{
    PF_TRY(co_roots_find(gc->job->graph, &gc->roots, err));
    PF_TRY(st_branch_list(gc->job->graph, on_branch, gc, err));
    return move_dead(gc, err);
}

sluice_status gc_branches(gc_job *job, sluice_error *err)
{
    sweeping gc = {.job = job};
    PF_TRY(lk_take(job->graph_locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, job->deadline, err));
    sluice_status status = find_and_move(&gc, err);
    lk_release(job->graph_locks, LK_GRAPH_REFS);
    if (status == SLUICE_OK)
        status = pf_list(job->volume, GC_TRASH, on_trash, &gc, err);
    co_roots_free(&gc.roots);
    free(gc.dead);
    return status;
}
