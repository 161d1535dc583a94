/*
 * Attempts: attempts/<id>/ and its lock (DECISIONS "attempts/<id>/", OW-057, LESSONS G-05).
 *
 * Everybody who stages under an attempt shares byte 0 of its lock file, so the attempt is over exactly when that byte
 * can be taken alone; nothing else (age, pid, heartbeat) proves it. It stands outside the lock order: it is shared by
 * its own people and taken alone only by a try.
 *
 * The folder and the lock file are made under the reclaim lock, shared: collection, which holds it alone when it
 * judges, never meets a folder whose maker is between the two. Crash rules: a folder without a lock file is a dead
 * maker's; the lock file goes last before the folder, so that a removal cut short is found again.
 */
#include "coord/objects.h"
#include "coord/recovery.h"
#include "coord/roots.h"
#include "coord/write.h"
#include "platform/check.h"
#include <stdio.h>
#include <string.h>

#define FOLDER  "attempts"
#define JOIN_MS 2000

static void attempt_paths(const pf_id *id, char ret_folder[64], char ret_lock[80])
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    (void)snprintf(ret_folder, 64, FOLDER "/%s", text);
    (void)snprintf(ret_lock, 80, FOLDER "/%s/lock", text);
}

static sluice_status make_under_lock(pf_volume *volume, co_attempt *attempt, const char *lock, sluice_error *err)
{
    PF_TRY(pf_make_folder(volume, attempt->folder, err));
    PF_TRY(pf_create(volume, lock, &attempt->lock, err));
    PF_TRY(pf_lock(attempt->lock, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, err));
    PF_TRY(pf_sync_dir(volume, attempt->folder, err));
    return pf_sync_dir(volume, FOLDER, err);
}

sluice_status co_attempt_make(st_graph *graph, co_attempt *ret_attempt, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(graph);
    lk_lockfile *graph_locks = NULL;
    char lock[80];
    co_attempt attempt = {.id = pf_id_new()};
    attempt_paths(&attempt.id, attempt.folder, lock);
    PF_TRY(lk_lockfile_open(volume, "locks/graph", &graph_locks, err));
    sluice_status status = lk_take(graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, pf_deadline_in_ms(CO_WAIT_MS), err);
    if (status == SLUICE_OK)
        status = make_under_lock(volume, &attempt, lock, err);
    lk_lockfile_close(graph_locks);
    if (status == SLUICE_OK)
        *ret_attempt = attempt;
    else
        co_attempt_leave(&attempt); /* what was made is a dead attempt's: gc's */
    return status;
}

sluice_status co_attempt_join(st_graph *graph, const pf_id *id, co_attempt *ret_attempt, sluice_error *err)
{
    char lock[80];
    sluice_error lock_error = {0};
    co_attempt attempt = {.id = *id};
    attempt_paths(id, attempt.folder, lock);
    PF_TRY(pf_open(st_graph_volume(graph), lock, PF_WRITE, &attempt.lock, err));
    sluice_status status = pf_lock(attempt.lock, 0, 1, PF_LOCK_SHARED, pf_deadline_in_ms(JOIN_MS), &lock_error);
    if (status == SLUICE_OK) {
        *ret_attempt = attempt;
        return SLUICE_OK;
    }
    co_attempt_leave(&attempt);
    if (status == SLUICE_LIVE_WRITER_CONTENTION) /* only collection takes it alone, and only of a dead attempt */
        return pf_fail(err, SLUICE_NOT_FOUND, "the attempt is over");
    if (err)
        *err = lock_error;
    return status;
}

void co_attempt_leave(co_attempt *attempt)
{
    (void)pf_close(attempt->lock, NULL); /* nothing is written through it */
    attempt->lock = NULL;
}

/* ---- the end of an attempt ---- */

/* Takes the lock alone; *ret_lock NULL when somebody is at work under it, or the attempt has no lock file. */
static sluice_status take_alone(pf_volume *volume, const char *path, pf_file **ret_lock, sluice_error *err)
{
    sluice_error lock_error = {0};
    pf_file *lock = NULL;
    pf_stat stat;
    *ret_lock = NULL;
    sluice_status status = pf_open(volume, path, PF_WRITE, &lock, &lock_error);
    if (status == SLUICE_OK)
        status = pf_lock(lock, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &lock_error);
    if (status == SLUICE_OK) {
        *ret_lock = lock;
        return SLUICE_OK;
    }
    (void)pf_close(lock, NULL);
    if (status == SLUICE_NOT_FOUND || status == SLUICE_LIVE_WRITER_CONTENTION)
        return SLUICE_OK;
    if (status == SLUICE_FENCED && pf_stat_path(volume, path, &stat, NULL) == SLUICE_NOT_FOUND)
        return SLUICE_OK; /* somebody else removed it just now */
    if (err)
        *err = lock_error;
    return status;
}

typedef struct folder_sweep {
    pf_volume *volume;
    const char *folder;
    uint64_t files, bytes;
} folder_sweep;

static sluice_status remove_counted(folder_sweep *sweep, const char *path, sluice_error *err)
{
    pf_stat stat = {0};
    (void)pf_stat_path(sweep->volume, path, &stat, NULL);
    PF_TRY(pf_remove(sweep->volume, path, err));
    sweep->files++;
    sweep->bytes += stat.size;
    return SLUICE_OK;
}

static sluice_status remove_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    folder_sweep *sweep = context;
    char path[320];
    int length = snprintf(path, sizeof path, "%s/%s", sweep->folder, name);
    if (kind != PF_KIND_FILE || strcmp(name, "lock") == 0 || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return remove_counted(sweep, path, err);
}

static sluice_status remove_folder(folder_sweep *sweep, const char *lock, sluice_error *err)
{
    PF_TRY(pf_list(sweep->volume, sweep->folder, remove_entry, sweep, err));
    PF_TRY(remove_counted(sweep, lock, err));
    return pf_remove_folder(sweep->volume, sweep->folder, err);
}

static sluice_status remove_unnamed(folder_sweep *sweep, const co_objects *objects, sluice_error *err)
{
    for (size_t i = 0; i < objects->count; i++)
        if (!objects->items[i].named)
            PF_TRY(remove_counted(sweep, objects->items[i].path, err));
    return SLUICE_OK;
}

/* Marks what all branches name that anything living reaches. */
static sluice_status mark_all(st_graph *graph, co_objects *objects, sluice_error *err)
{
    co_roots roots = {0};
    uint64_t end;
    sluice_status status = co_roots_find(graph, &roots, err);
    for (uint32_t i = 0; i < roots.count && status == SLUICE_OK; i++) {
        sluice_error local = {0};
        status = co_objects_mark(graph, objects, roots.incarnations[i], 0, &end, &local);
        if (status != SLUICE_OK && co_roots_may_be_half_made(&roots, i))
            status = SLUICE_OK;
        else if (status != SLUICE_OK && err)
            *err = local;
    }
    co_roots_free(&roots);
    return status;
}

/* What the attempt is measured against: everything, or one branch from one generation on, or nothing at all. */
typedef enum measure_of { MEASURE_ALL, MEASURE_SINCE, MEASURE_NONE } measure_of;

typedef struct naming {
    const pf_id *attempt;
    bool found;
} naming;

static sluice_status on_named(void *context, const co_scope *scope, sluice_error *err)
{
    (void)err;
    naming *names = context;
    names->found |= pf_id_equal(&scope->attempt, names->attempt);
    return SLUICE_OK;
}

/* Does an intent name this attempt? One that cannot be read at all may. */
static sluice_status is_named(st_graph *graph, const pf_id *attempt, bool *ret_named, sluice_error *err)
{
    bool unknown = false;
    naming names = {attempt, false};
    PF_TRY(co_recovery_scopes(graph, on_named, &names, &unknown, err));
    *ret_named = names.found || unknown;
    return SLUICE_OK;
}

static sluice_status sweep_objects(st_graph *graph, const co_attempt *attempt, measure_of measure, folder_sweep *sweep,
                                   sluice_error *err)
{
    co_objects objects = {0};
    uint64_t end = 0;
    sluice_status status;
    PF_GOTO(status, done, co_objects_list(graph, &attempt->id, &objects, err));
    if (objects.count && measure == MEASURE_ALL)
        PF_GOTO(status, done, mark_all(graph, &objects, err));
    if (objects.count && measure == MEASURE_SINCE)
        PF_GOTO(status, done, co_objects_mark(graph, &objects, attempt->incarnation, attempt->since, &end, err));
    status = remove_unnamed(sweep, &objects, err);
done:
    co_objects_free(&objects);
    return status;
}

static sluice_status end_attempt(st_graph *graph, const co_attempt *attempt, bool objects, measure_of measure,
                                 folder_sweep *sweep, sluice_error *err)
{
    char folder[64], path[80];
    pf_file *lock = NULL;
    bool named = true;
    attempt_paths(&attempt->id, folder, path);
    *sweep = (folder_sweep){.volume = st_graph_volume(graph), .folder = folder};
    PF_TRY(take_alone(sweep->volume, path, &lock, err));
    if (!lock)
        return SLUICE_OK;
    /* A clean attempt's owner knows: its own intent is retired, and nobody had one before it. */
    sluice_status status = SLUICE_OK;
    if (objects)
        status = is_named(graph, &attempt->id, &named, err);
    else
        named = false;
    if (status == SLUICE_OK && !named && objects)
        status = sweep_objects(graph, attempt, measure, sweep, err);
    if (status == SLUICE_OK && !named)
        status = remove_folder(sweep, path, err);
    (void)pf_close(lock, NULL);
    sweep->folder = NULL;
    return status;
}

sluice_status co_attempt_finish(st_graph *graph, co_attempt *attempt, sluice_error *err)
{
    folder_sweep sweep;
    co_attempt_leave(attempt);
    if (attempt->uncertain)
        return SLUICE_OK;
    measure_of measure = attempt->incarnation ? MEASURE_SINCE : MEASURE_NONE;
    return end_attempt(graph, attempt, attempt->litter, measure, &sweep, err);
}

sluice_status co_attempt_forget(st_graph *graph, const co_attempt *attempt, sluice_error *err)
{
    folder_sweep sweep = {.volume = st_graph_volume(graph)};
    return sweep_objects(graph, attempt, MEASURE_SINCE, &sweep, err);
}

sluice_status co_attempt_sweep(st_graph *graph, const pf_id *id, uint64_t *ret_files, uint64_t *ret_bytes,
                               sluice_error *err)
{
    folder_sweep sweep;
    co_attempt attempt = {.id = *id};
    sluice_status status = end_attempt(graph, &attempt, true, MEASURE_ALL, &sweep, err);
    *ret_files = sweep.files;
    *ret_bytes = sweep.bytes;
    return status;
}

void co_attempt_end(st_graph *graph, co_attempt *attempt, const co_attempt_left *left, const sluice_error *error)
{
    pf_id id = attempt->id;
    uint64_t files, bytes;
    if (left) {
        attempt->litter = left->litter;
        attempt->uncertain = left->uncertain;
        attempt->incarnation = left->incarnation;
        attempt->since = left->since;
        (void)co_attempt_finish(graph, attempt, NULL);
        return;
    }
    co_attempt_leave(attempt);
    if (error->committed == SLUICE_FALSE)
        (void)co_attempt_sweep(graph, &id, &files, &bytes, NULL);
}
