/*
 * Branch folders that are collected (coord/gc_branch.h).
 *
 * Under the refs lock, which creators of branches hold from minting an incarnation to its ref, and loads that make one
 * too: so a folder without a name is either named by an intent, which makes it a root, or dead. Deleting made the log
 * complete and durable before the name went. The move to trash/ is one rename; both folders are synced before anything
 * in it is deleted. Killed anywhere, what is in trash/ is deleted by the next run.
 */
#include "coord/gc_branch.h"
#include "coord/roots.h"
#include "locks/oslock.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRASH     "trash"
#define DEPTH_MAX 4u /* branches/<n>/log/<segment> is 2 below the folder */

typedef struct sweeping {
    st_graph *graph;
    pf_volume *volume;
    bool dry_run;
    co_gc_report *report;
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
    pf_stat stat = {0};
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
    (void)pf_stat_path(walk->gc->volume, path, &stat, NULL);
    if (!walk->gc->dry_run)
        PF_TRY(pf_remove(walk->gc->volume, path, err));
    walk->gc->report->files++;
    walk->gc->report->bytes += stat.size;
    return SLUICE_OK;
}

/* The depth is bounded by DEPTH_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static sluice_status remove_tree(sweeping *gc, const char *folder, unsigned depth, bool *ret_left, sluice_error *err)
{
    folder_sweep walk = {.gc = gc, .folder = folder, .depth = depth};
    PF_TRY(pf_list(gc->volume, folder, on_entry, &walk, err));
    *ret_left = walk.foreign;
    return gc->dry_run || walk.foreign ? SLUICE_OK : pf_remove_folder(gc->volume, folder, err);
}

/* ---- trash ---- */

static sluice_status on_trash(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    sweeping *gc = context;
    char path[320];
    bool left = false;
    int length = snprintf(path, sizeof path, TRASH "/%s", name);
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

static sluice_status move_dead(sweeping *gc, sluice_error *err)
{
    char folder[64], target[96];
    if (gc->dead_count == 0)
        return SLUICE_OK;
    for (uint32_t i = 0; i < gc->dead_count; i++) {
        bool left = false;
        st_branch_folder(gc->dead[i], folder);
        (void)snprintf(target, sizeof target, TRASH "/branch-%llu", (unsigned long long)gc->dead[i]);
        if (gc->dry_run)
            PF_TRY(remove_tree(gc, folder, 0, &left, err));
        else
            PF_TRY(pf_publish(gc->volume, folder, target, err));
    }
    if (gc->dry_run)
        return SLUICE_OK;
    PF_TRY(pf_sync_dir(gc->volume, TRASH, err));
    return pf_sync_dir(gc->volume, "branches", err);
}

static sluice_status find_and_move(sweeping *gc, sluice_error *err)
{
    PF_TRY(co_roots_find(gc->graph, &gc->roots, err));
    PF_TRY(st_branch_list(gc->graph, on_branch, gc, err));
    return move_dead(gc, err);
}

sluice_status co_gc_branches(st_graph *graph, bool dry_run, pf_deadline deadline, co_gc_report *report,
                             sluice_error *err)
{
    sweeping gc = {.graph = graph, .volume = st_graph_volume(graph), .dry_run = dry_run, .report = report};
    lk_lockfile *locks = NULL;
    sluice_status status;
    PF_GOTO(status, done, lk_lockfile_open(gc.volume, "locks/graph", &locks, err));
    PF_GOTO(status, done, lk_take(locks, LK_GRAPH_REFS, PF_LOCK_EXCLUSIVE, deadline, err));
    status = find_and_move(&gc, err);
    lk_release(locks, LK_GRAPH_REFS);
    if (status == SLUICE_OK)
        status = pf_list(gc.volume, TRASH, on_trash, &gc, err);
done:
    lk_lockfile_close(locks);
    co_roots_free(&gc.roots);
    free(gc.dead);
    return status;
}
