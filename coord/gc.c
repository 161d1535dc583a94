/*
 * Collecting what nothing needs (DESIGN 9 "GC", LESSONS G-03 to G-06, L-044).
 *
 * The order is the proof:
 *   1 the retention claim: one collection at a time, checked before every step; recovery, so that what can be finished
 *     is; then the folders of branches that nothing leads to (gc_branch.c), so that what only they named is unnamed;
 *     then the decision what history goes, and its boundary in control/ (gc_history.c)
 *   2 the candidates are frozen: objects below tables/, then the folders below attempts/. What is made later is not
 *     among them
 *   3 the lock of each attempt with a folder is taken alone, by a try, and kept: a busy one's objects are kept. An
 *     object whose attempt has no folder is of an attempt that is over
 *   4 intents are read (what an intent names is kept), and only then refs and logs (what a kept generation names is
 *     kept): an intent that was retired in between was published, and is found there
 *   5 in batches, under the reclaim lock alone: what was published since is marked too, the rest moves to trash/, both
 *     folders are synced. A publisher holds that lock shared from its look at its objects to its append
 *   6 only then are files deleted; then log segments that nothing kept points into; at the end the attempts' folders
 * Killed anywhere it leaves more than it should, never less; the next run empties trash/ and goes on. A root that
 * cannot be read stops it with nothing removed. A dry run is the same up to 4, and publishes nothing.
 */
#include "coord/events.h"
#include "coord/gc_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include "store/format/document.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH     128u /* moves under one hold of the reclaim lock */
#define LOCKS_MAX 256u /* attempts whose locks one pass keeps; the next pass takes the others */
#define LOGS_MAX  65536u

typedef struct temporary_walk {
    gc_job *gc;
    const char *folder;
} temporary_walk;

/* ---- trash, and what never got its name ---- */

sluice_status gc_delete(gc_job *gc, const char *path, sluice_error *err)
{
    pf_stat stat = {0};
    (void)pf_stat_path(gc->volume, path, &stat, NULL);
    if (!gc->options->dry_run) {
        PF_TRY(lk_claim_check(gc->claim, err));
        PF_TRY(pf_remove(gc->volume, path, err));
    }
    gc->report.files++;
    gc->report.bytes += stat.size;
    return gc->options->each ? gc->options->each(gc->options->context, path, stat.size, err) : SLUICE_OK;
}

static sluice_status on_trash(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    gc_job *gc = context;
    char path[320];
    int length = snprintf(path, sizeof path, GC_TRASH "/%s", name);
    if (kind != PF_KIND_FILE || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return gc_delete(gc, path, err);
}

/* Temporary names of dead recoverers: who makes one holds the reclaim lock shared until it has its name. */
static sluice_status on_temporary(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const temporary_walk *walk = context;
    char path[320];
    int length = snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    if (kind != PF_KIND_FILE || !st_document_is_temporary(name) || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return gc_delete(walk->gc, path, err);
}

static sluice_status remove_temporaries(gc_job *gc, sluice_error *err)
{
    static const char *const folders[] = {"audit", "quarantine"};
    PF_TRY(lk_take(gc->graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_EXCLUSIVE, gc->deadline, err));
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; status == SLUICE_OK && i < sizeof folders / sizeof folders[0]; i++) {
        temporary_walk walk = {gc, folders[i]};
        status = pf_list(gc->volume, folders[i], on_temporary, &walk, err);
    }
    lk_release(gc->graph_locks, LK_GRAPH_RECLAIM);
    return status;
}

/* ---- candidates ---- */

static sluice_status on_attempt(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    gc_job *gc = context;
    pf_id id;
    if (kind != PF_KIND_FOLDER || !pf_id_parse(name, &id))
        return SLUICE_OK; /* not ours: kept (L-051) */
    if (gc->folder_count == gc->folder_room) {
        uint32_t room = gc->folder_room ? gc->folder_room * 2 : 64;
        pf_id *grown = realloc(gc->folders, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        gc->folders = grown;
        gc->folder_room = room;
    }
    gc->folders[gc->folder_count++] = id;
    return SLUICE_OK;
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(pf_id));
}

static bool has_folder(const gc_job *gc, const pf_id *id)
{
    return gc->folder_count && bsearch(id, gc->folders, gc->folder_count, sizeof *gc->folders, by_id);
}

static gc_dead *find_dead(const gc_job *gc, const pf_id *id)
{
    for (uint32_t i = 0; i < gc->dead_count; i++)
        if (pf_id_equal(&gc->dead[i].id, id))
            return &gc->dead[i];
    return NULL;
}

static sluice_status freeze(gc_job *gc, sluice_error *err)
{
    PF_TRY(co_objects_list(gc->graph, NULL, &gc->objects, err));
    PF_TRY(pf_list(gc->volume, "attempts", on_attempt, gc, err));
    if (gc->folder_count)
        qsort(gc->folders, gc->folder_count, sizeof *gc->folders, by_id);
    gc->dead = calloc(LOCKS_MAX, sizeof *gc->dead);
    return gc->dead ? SLUICE_OK : pf_fail_memory(err);
}

/* ---- who is dead ---- */

static void lock_path(const pf_id *id, char ret_path[80])
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    (void)snprintf(ret_path, 80, "attempts/%s/lock", text);
}

/* *ret_dead with its lock kept in *ret_lock, or without one. Under the reclaim lock: nobody is between making his lock
 * file and locking it, nor between his folder and the file. */
static sluice_status try_attempt(gc_job *gc, const pf_id *id, bool *ret_dead, pf_file **ret_lock, sluice_error *err)
{
    char path[80];
    pf_file *lock = NULL;
    pf_stat stat;
    sluice_error lock_error = {0};
    *ret_dead = false;
    *ret_lock = NULL;
    lock_path(id, path);
    sluice_status status = pf_open(gc->volume, path, PF_WRITE, &lock, &lock_error);
    if (status == SLUICE_NOT_FOUND) {
        *ret_dead = true;
        return SLUICE_OK;
    }
    if (status == SLUICE_OK)
        status = pf_lock(lock, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &lock_error);
    if (status == SLUICE_OK) {
        *ret_dead = true;
        *ret_lock = lock;
        return SLUICE_OK;
    }
    (void)pf_close(lock, NULL);
    if (status == SLUICE_LIVE_WRITER_CONTENTION) {
        *ret_dead = PF_SABOTAGE(living_attempt_collected);
        return SLUICE_OK;
    }
    if (status == SLUICE_FENCED && pf_stat_path(gc->volume, path, &stat, NULL) == SLUICE_NOT_FOUND)
        return SLUICE_OK; /* its owner removed it just now */
    if (err)
        *err = lock_error;
    return status;
}

static sluice_status find_the_dead(gc_job *gc, sluice_error *err)
{
    for (uint32_t i = 0; i < gc->folder_count; i++) {
        gc_dead *dead = &gc->dead[gc->dead_count];
        bool is_dead = false;
        if (gc->dead_count == LOCKS_MAX) {
            gc->more = true;
            return SLUICE_OK;
        }
        bool alone = !PF_SABOTAGE(attempts_judged_without_lock);
        if (alone)
            PF_TRY(lk_take(gc->graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_EXCLUSIVE, gc->deadline, err));
        sluice_status status = try_attempt(gc, &gc->folders[i], &is_dead, &dead->lock, err);
        if (alone)
            lk_release(gc->graph_locks, LK_GRAPH_RECLAIM);
        PF_TRY(status);
        if (is_dead) {
            dead->id = gc->folders[i];
            dead->named = false;
            gc->dead_count++;
        }
    }
    return SLUICE_OK;
}

/* ---- roots ---- */

typedef struct named_ids {
    pf_id *ids;
    uint32_t count, room;
} named_ids;

static sluice_status on_named(void *context, const co_scope *scope, sluice_error *err)
{
    named_ids *named = context;
    if (named->count == named->room) {
        uint32_t room = named->room ? named->room * 2 : 64;
        pf_id *grown = realloc(named->ids, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        named->ids = grown;
        named->room = room;
    }
    named->ids[named->count++] = scope->attempt;
    return SLUICE_OK;
}

static bool is_named(const named_ids *named, const pf_id *id)
{
    for (uint32_t i = 0; i < named->count; i++)
        if (pf_id_equal(&named->ids[i], id))
            return true;
    return false;
}

/* Intents before logs (see the head of the file). */
static sluice_status read_intents(gc_job *gc, sluice_error *err)
{
    named_ids named = {0};
    bool unknown = false;
    sluice_status status = co_recovery_scopes(gc->graph, on_named, &named, &unknown, err);
    if (status == SLUICE_OK && unknown)
        status = pf_fail(err, SLUICE_RECOVERY_REQUIRED, "an intent without a readable scope may name any attempt");
    for (uint32_t i = 0; status == SLUICE_OK && i < gc->dead_count; i++)
        gc->dead[i].named = is_named(&named, &gc->dead[i].id);
    for (size_t i = 0; status == SLUICE_OK && i < gc->objects.count; i++) {
        co_object *object = &gc->objects.items[i];
        object->kept = is_named(&named, &object->attempt) ||
                       (has_folder(gc, &object->attempt) && !find_dead(gc, &object->attempt));
    }
    free(named.ids);
    return status;
}

/* What a log keeps. A pin below the boundary is that of a reader who came before it, and then all of it is there; or
 * of one who is about to find out that he came too late, and then it may not be: he lets go of it soon. */
static sluice_status mark_kept(gc_job *gc, uint64_t incarnation, uint64_t *ret_end, sluice_error *err)
{
    const st_boundary *boundary = st_control_find_boundary(&gc->control, incarnation);
    for (unsigned attempt = 0;; attempt++) {
        uint64_t floor = UINT64_MAX;
        sluice_error local = {0};
        if (!PF_SABOTAGE(pins_looked_at_once))
            PF_TRY(co_retention_floor(gc->graph, incarnation, &floor, err));
        sluice_status status =
            co_objects_mark_kept(gc->graph, &gc->objects, &gc->records, incarnation, boundary, floor, ret_end, &local);
        if (status == SLUICE_OK)
            return SLUICE_OK;
        if (boundary && floor < boundary->below && (status == SLUICE_CORRUPT || status == SLUICE_NOT_FOUND) &&
            !pf_deadline_passed(gc->deadline)) {
            pf_backoff(attempt, gc->deadline);
            continue;
        }
        if (err)
            *err = local;
        return status;
    }
}

/* Marks what a log names; one that was gone through before, only from there on. */
static sluice_status mark_log(gc_job *gc, uint64_t incarnation, sluice_error *err)
{
    uint32_t i = 0;
    while (i < gc->log_count && gc->logs[i].incarnation != incarnation)
        i++;
    if (i < gc->log_count)
        return co_objects_mark(gc->graph, &gc->objects, incarnation, gc->logs[i].end, &gc->logs[i].end, err);
    if (i == gc->log_room) {
        uint32_t room = gc->log_room ? gc->log_room * 2 : 16;
        gc_log *grown = room <= LOGS_MAX ? realloc(gc->logs, room * sizeof *grown) : NULL;
        if (!grown)
            return pf_fail_memory(err);
        gc->logs = grown;
        gc->log_room = room;
    }
    uint64_t end = 0;
    PF_TRY(mark_kept(gc, incarnation, &end, err));
    gc->logs[gc->log_count++] = (gc_log){incarnation, end};
    return SLUICE_OK;
}

/* Marks what all branches name that anything living reaches. */
static sluice_status mark_all(gc_job *gc, sluice_error *err)
{
    co_roots roots = {0};
    sluice_status status = co_roots_find(gc->graph, &roots, err);
    for (uint32_t i = 0; i < roots.count && status == SLUICE_OK; i++) {
        sluice_error local = {0};
        status = mark_log(gc, roots.incarnations[i], &local);
        if (status != SLUICE_OK && co_roots_may_be_half_made(&roots, i))
            status = SLUICE_OK;
        else if (status != SLUICE_OK && err)
            *err = local;
    }
    co_roots_free(&roots);
    return status;
}

/* ---- the move ---- */

static bool is_victim(const co_object *object)
{
    return !object->named && !object->kept;
}

/* "tables/64/keys/x.run" in trash/ is "64.keys.x.run". */
static void trash_path(const char *path, char ret_path[192])
{
    (void)snprintf(ret_path, 192, GC_TRASH "/%s", path + strlen("tables/"));
    for (char *at = ret_path + strlen(GC_TRASH "/"); *at; at++)
        if (*at == '/')
            *at = '.';
}

static sluice_status sync_folder_of(gc_job *gc, const char *path, char last[160], sluice_error *err)
{
    char folder[160];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (strcmp(folder, last) == 0)
        return SLUICE_OK;
    memcpy(last, folder, sizeof folder);
    return pf_sync_dir(gc->volume, folder, err);
}

/* Moves up to BATCH victims from *from on; they are then in objects [first, *from) and no victims any more. */
static sluice_status move_batch(gc_job *gc, size_t *from, sluice_error *err)
{
    char target[192], last[160] = "";
    uint32_t moved = 0;
    size_t first = *from;
    PF_TRY(lk_take(gc->graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_EXCLUSIVE, gc->deadline, err));
    sluice_status status = mark_all(gc, err);
    for (; status == SLUICE_OK && *from < gc->objects.count && moved < BATCH; (*from)++) {
        co_object *object = &gc->objects.items[*from];
        sluice_error move_error = {0};
        if (!is_victim(object))
            continue;
        if (moved == 0)
            status = lk_claim_check(gc->claim, &move_error);
        trash_path(object->path, target);
        if (status == SLUICE_OK)
            status = pf_publish(gc->volume, object->path, target, &move_error);
        if (status == SLUICE_NOT_FOUND) { /* its owner was faster: what moves meanwhile shrinks the plan */
            object->named = true;
            status = SLUICE_OK;
        } else if (status != SLUICE_OK && err) {
            *err = move_error;
        }
        moved++;
    }
    if (status == SLUICE_OK && moved)
        status = pf_sync_dir(gc->volume, GC_TRASH, err);
    for (size_t i = first; status == SLUICE_OK && moved && i < *from; i++)
        if (is_victim(&gc->objects.items[i]))
            status = sync_folder_of(gc, gc->objects.items[i].path, last, err);
    lk_release(gc->graph_locks, LK_GRAPH_RECLAIM);
    if (status == SLUICE_OK && moved)
        status = PF_FAILPOINT(GC_AFTER_MOVE, err);
    for (size_t i = first; status == SLUICE_OK && i < *from; i++) {
        if (!is_victim(&gc->objects.items[i]))
            continue;
        trash_path(gc->objects.items[i].path, target);
        status = gc_delete(gc, target, err);
    }
    return status;
}

static sluice_status remove_objects(gc_job *gc, sluice_error *err)
{
    if (gc->options->dry_run) {
        for (size_t i = 0; i < gc->objects.count; i++)
            if (is_victim(&gc->objects.items[i]))
                PF_TRY(gc_delete(gc, gc->objects.items[i].path, err));
        return SLUICE_OK;
    }
    for (size_t from = 0; from < gc->objects.count;) {
        while (from < gc->objects.count && !is_victim(&gc->objects.items[from]))
            from++;
        if (from < gc->objects.count)
            PF_TRY(move_batch(gc, &from, err));
    }
    return SLUICE_OK;
}

/* ---- attempts' folders ---- */

typedef struct folder_walk {
    gc_job *gc;
    char folder[64];
} folder_walk;

static sluice_status on_attempt_file(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const folder_walk *walk = context;
    char path[320];
    int length = snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    if (kind != PF_KIND_FILE || strcmp(name, "lock") == 0 || length < 0 || (size_t)length >= sizeof path)
        return SLUICE_OK;
    return gc_delete(walk->gc, path, err);
}

static sluice_status remove_attempt(gc_job *gc, const gc_dead *dead, folder_walk *walk, sluice_error *err)
{
    char lock[80];
    PF_TRY(pf_list(gc->volume, walk->folder, on_attempt_file, walk, err));
    lock_path(&dead->id, lock);
    if (dead->lock)
        PF_TRY(gc_delete(gc, lock, err));
    return gc->options->dry_run ? SLUICE_OK : pf_remove_folder(gc->volume, walk->folder, err);
}

static sluice_status remove_attempts(gc_job *gc, sluice_error *err)
{
    for (uint32_t i = 0; i < gc->dead_count; i++) {
        folder_walk walk = {.gc = gc};
        char text[PF_ID_TEXT];
        pf_stat stat;
        sluice_error local = {0};
        if (gc->dead[i].named)
            continue;
        pf_id_text(&gc->dead[i].id, text);
        (void)snprintf(walk.folder, sizeof walk.folder, "attempts/%s", text);
        sluice_status status = remove_attempt(gc, &gc->dead[i], &walk, &local);
        if (status == SLUICE_OK) {
            gc->report.attempts++;
        } else if (gc->dead[i].lock || status != SLUICE_NOT_FOUND ||
                   pf_stat_path(gc->volume, walk.folder, &stat, NULL) != SLUICE_NOT_FOUND) {
            if (err)
                *err = local;
            return status;
        } /* else its owner was about to remove it when its lock was looked for, and has done so */
    }
    return SLUICE_OK;
}

/* ---- one pass ---- */

static void end_pass(gc_job *gc)
{
    for (uint32_t i = 0; i < gc->dead_count; i++)
        (void)pf_close(gc->dead[i].lock, NULL); /* only locked */
    free(gc->dead);
    free(gc->folders);
    free(gc->logs);
    free(gc->records.items);
    co_objects_free(&gc->objects);
    gc->dead = NULL;
    gc->folders = NULL;
    gc->logs = NULL;
    gc->dead_count = gc->folder_count = gc->folder_room = gc->log_count = gc->log_room = 0;
    gc->records = (co_records){0};
}

static sluice_status pass(gc_job *gc, sluice_error *err)
{
    sluice_status status;
    gc->more = false;
    PF_GOTO(status, done, freeze(gc, err));
    PF_GOTO(status, done, find_the_dead(gc, err));
    PF_GOTO(status, done, read_intents(gc, err));
    PF_GOTO(status, done, mark_all(gc, err));
    PF_GOTO(status, done, remove_objects(gc, err));
    PF_GOTO(status, done, gc_segments(gc, err));
    status = remove_attempts(gc, err);
done:
    end_pass(gc);
    return status;
}

/* Recovery first. What stays in quarantine does not stop gc_job: its attempt is kept. */
static sluice_status settle_intents(const gc_job *gc, sluice_error *err)
{
    co_overlap everything = {0};
    sluice_error recovery_error = {0};
    sluice_status status = co_recover_until(gc->graph, gc->options->dry_run ? CO_RECOVER_PROBE : CO_RECOVER_AUTOMATIC,
                                            &everything, NULL, NULL, gc->deadline, &recovery_error);
    if (status == SLUICE_OK || status == SLUICE_RECOVERY_REQUIRED)
        return SLUICE_OK;
    if (err)
        *err = recovery_error;
    return status;
}

sluice_status co_gc_with(st_graph *graph, const co_gc_options *options, co_gc_report *ret_report, sluice_error *err)
{
    gc_job gc = {.graph = graph,
                 .volume = st_graph_volume(graph),
                 .deadline = pf_deadline_in_ms(CO_WAIT_MS),
                 .options = options};
    *ret_report = (co_gc_report){0};
    if (st_graph_access(graph) != PF_WRITE)
        return pf_fail(err, SLUICE_PERMISSION, "collection needs a graph that is open for writing");
    PF_TRY(lk_lockfile_open(gc.volume, "locks/graph", &gc.graph_locks, err));
    sluice_status status;
    PF_GOTO(status, done, lk_claim_take(gc.volume, LK_CLAIM_RETENTION, gc.deadline, &gc.claim, err));
    PF_GOTO(status, done, settle_intents(&gc, err));
    PF_GOTO(status, done, pf_list(gc.volume, GC_TRASH, on_trash, &gc, err));
    PF_GOTO(status, done, remove_temporaries(&gc, err));
    PF_GOTO(status, done, gc_branches(&gc, err));
    PF_GOTO(status, done, gc_let_go(&gc, err));
    uint64_t before;
    do {
        before = gc.report.attempts;
        gc.deadline = pf_deadline_in_ms(CO_WAIT_MS);
        status = pass(&gc, err);
    } while (status == SLUICE_OK && gc.more && gc.report.attempts > before && !options->dry_run);
    if (status == SLUICE_OK && !options->dry_run)
        (void)st_reserve_rebuild(graph, NULL); /* when the disk has room again; a graph without one works */
done:
    *ret_report = gc.report;
    if (status == SLUICE_OK && !options->dry_run)
        co_event_collected(graph, &gc.report);
    st_control_free(&gc.control);
    lk_claim_release(gc.claim);
    lk_lockfile_close(gc.graph_locks);
    return status;
}

sluice_status co_gc(st_graph *graph, bool dry_run, co_gc_report *ret_report, sluice_error *err)
{
    const co_gc_options options = {.dry_run = dry_run};
    return co_gc_with(graph, &options, ret_report, err);
}
