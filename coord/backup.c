/*
 * The order of a backup (coord/backup.h). It is the proof:
 *
 *   1 the folder is looked at and its locks are taken, by tries: nobody writes into it, no second backup
 *   2 the graph's cut: under the refs lock shared, all branches are pinned in all of their generations, then all
 * publish locks are held for as long as it takes to read where each log ends. From here on nothing that the cut leads
 * to changes or goes, and writers, optimize and gc go on 3 a first backup: backup.new says that this is one in the
 * making, the layout is made. Another one: where its logs end and its names go into backup.before, and from then on
 * rule for all readers 4 files are copied, then logs, then names; all synced 5 what is new in the copy is looked at,
 * every byte 6 a first backup: FORMAT. Another one: backup.before goes. That is the moment in which the folder changes
 * from the one whole state to the other 7 what nothing names any more is collected
 *
 * Killed before 6, a first backup is no graph yet and is taken up by the same command; another one shows the state
 * before to readers, and is put back to it by whoever writes there first, or by the same command. An error puts it back
 * at once.
 */
#include "coord/backup_job.h"
#include "coord/recover.h"
#include "coord/roots.h"
#include "platform/check.h"
#include "platform/user_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 30000 /* for the locks of the graph, each held for milliseconds */

static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

/* ---- 2: the cut ---- */

static sluice_status pin(co_backup_job *job, uint64_t incarnation, sluice_error *err)
{
    pf_file **grown = realloc(job->pins, ((size_t)job->pin_count + 1) * sizeof *grown);
    if (!grown)
        return pf_fail_memory(err);
    job->pins = grown;
    PF_TRY(st_branch_hold(job->source, incarnation, &job->pins[job->pin_count], err));
    job->pin_count++;
    return SLUICE_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The branches that anything living reaches, but those in the making. */
static sluice_status find_branches(st_graph *graph, uint64_t **ret_incarnations, uint32_t *ret_count, sluice_error *err)
{
    co_roots roots = {0};
    PF_TRY(co_roots_find(graph, &roots, err));
    uint32_t count = 0;
    uint64_t *list = calloc((size_t)roots.count + 1, sizeof *list);
    for (uint32_t i = 0; list && i < roots.count; i++)
        if (!co_roots_may_be_half_made(&roots, i))
            list[count++] = roots.incarnations[i];
    co_roots_free(&roots);
    if (!list)
        return pf_fail_memory(err);
    qsort(list, count, sizeof *list, by_number);
    *ret_incarnations = list;
    *ret_count = count;
    return SLUICE_OK;
}

static sluice_status pin_and_cut(co_backup_job *job, sluice_error *err)
{
    uint64_t *incarnations = NULL;
    uint32_t count = 0;
    sluice_status status = find_branches(job->source, &incarnations, &count, err);
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++)
        status = pin(job, incarnations[i], err);
    if (status == SLUICE_OK)
        status = st_cut_take(job->source, incarnations, count, pf_deadline_in_ms(WAIT_MS), &job->cut, err);
    free(incarnations);
    return status;
}

static sluice_status take_cut(co_backup_job *job, sluice_error *err)
{
    lk_lockfile *locks = NULL;
    sluice_status status = SLUICE_OK;
    if (st_graph_access(job->source) == PF_WRITE) {
        PF_TRY(lk_lockfile_open(st_graph_volume(job->source), "locks/graph", &locks, err));
        status = lk_take(locks, LK_GRAPH_REFS, PF_LOCK_SHARED, pf_deadline_in_ms(WAIT_MS), err);
    }
    if (status == SLUICE_OK)
        status = pin_and_cut(job, err);
    lk_lockfile_close(locks);
    if (status == SLUICE_OK)
        status = st_graph_at(st_graph_volume(job->source), &job->cut, &job->view, err);
    job->report->branches = job->cut.ref_count;
    return status;
}

/* ---- 1: the folder ---- */

static sluice_status hold(co_backup_job *job, const char *path, uint64_t byte, sluice_error *err)
{
    sluice_error local = {0};
    lk_lockfile **grown = realloc(job->held, ((size_t)job->held_count + 1) * sizeof *grown);
    if (!grown)
        return pf_fail_memory(err);
    job->held = grown;
    PF_TRY(lk_lockfile_open(job->to, path, &job->held[job->held_count], err));
    sluice_status status = lk_take(job->held[job->held_count++], byte, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &local);
    if (status != SLUICE_LIVE_WRITER_CONTENTION)
        return status == SLUICE_OK ? SLUICE_OK : hand_on(&local, err);
    status = pf_fail(err, SLUICE_WRITER_BUSY,
                     byte == LK_GRAPH_BACKUP ? "another backup into this folder is at work"
                                             : "the folder of the backup is being written to");
    pf_hint(err, "wait for its end and run the same `backup` again");
    return status;
}

static sluice_status hold_branches(co_backup_job *job, uint64_t byte, sluice_error *err)
{
    for (uint32_t i = 0; i < job->before.log_count; i++) {
        char folder[64] = "control", path[80];
        if (job->before.logs[i].incarnation)
            st_branch_folder(job->before.logs[i].incarnation, folder);
        else if (byte != LK_BYTE_PUBLISH)
            continue;
        (void)snprintf(path, sizeof path, "%s/locks", folder);
        PF_TRY(hold(job, path, byte, err));
    }
    return SLUICE_OK;
}

typedef struct place {
    bool anything, format, begun;
} place;

static sluice_status on_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    place *found = context;
    (void)kind;
    (void)err;
    if (strncmp(name, PF_PROBE_PREFIX, sizeof PF_PROBE_PREFIX - 1) == 0)
        return SLUICE_OK;
    found->anything |= strcmp(name, "backup.next") != 0; /* one that was killed before its first name */
    found->format |= strcmp(name, "FORMAT") == 0;
    found->begun |= strcmp(name, ST_BACKUP_NEW) == 0;
    return SLUICE_OK;
}

static sluice_status not_this_graph(sluice_error *err)
{
    pf_fail(err, SLUICE_ALREADY_EXISTS, "the folder holds another graph");
    pf_hint(err, "back up into a folder of its own");
    return SLUICE_ALREADY_EXISTS;
}

static sluice_status check_first(co_backup_job *job, const place *found, sluice_error *err)
{
    st_cut begun = {0};
    if (!found->anything)
        return SLUICE_OK;
    if (!found->begun)
        return pf_fail(err, SLUICE_ALREADY_EXISTS, "the folder is not empty and holds no backup");
    sluice_status status = st_cut_read(job->to, ST_BACKUP_NEW, &begun, err);
    if (status == SLUICE_OK && !pf_id_equal(&begun.graph, st_graph_id(job->source)))
        status = not_this_graph(err);
    st_cut_free(&begun);
    return status;
}

/* Takes the folder: which of the two backups this is. `to` belongs to job->there afterwards, if there is one. */
static sluice_status look_at_folder(co_backup_job *job, sluice_error *err)
{
    place found = {0};
    PF_TRY(pf_list(job->to, "", on_entry, &found, err));
    job->report->first = !found.format;
    if (!found.format)
        return check_first(job, &found, err);
    pf_volume *volume = job->to;
    job->to = NULL; /* taken over, also on failure */
    PF_TRY(st_graph_open_on(volume, PF_WRITE, &job->there, err));
    job->to = volume;
    return pf_id_equal(st_graph_id(job->there), st_graph_id(job->source)) ? SLUICE_OK : not_this_graph(err);
}

/* ---- 3: beginning ---- */

static sluice_status begin_first(co_backup_job *job, sluice_error *err)
{
    st_cut nothing = {.graph = *st_graph_id(job->source)};
    pf_stat stat;
    if (pf_stat_path(job->to, ST_BACKUP_NEW, &stat, NULL) != SLUICE_OK)
        PF_TRY(st_cut_write(job->to, ST_BACKUP_NEW, &nothing, err));
    PF_TRY(st_backup_make_locks(job->to, err));
    PF_TRY(hold(job, "locks/graph", LK_GRAPH_BACKUP, err));
    if (pf_stat_path(job->to, "FORMAT", &stat, NULL) == SLUICE_OK)
        return pf_fail(err, SLUICE_WRITER_BUSY, "another backup into this folder has just ended");
    return st_backup_make_layout(st_graph_volume(job->source), job->to, err);
}

/* The branches that something there reaches and that are copied again; other folders are what a backup left that was
 * cut short, or go by collection. */
static sluice_status cut_folder(co_backup_job *job, sluice_error *err)
{
    uint64_t *incarnations = NULL;
    uint32_t count = 0, both = 0;
    PF_TRY(find_branches(job->there, &incarnations, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (st_cut_find_log(&job->cut, incarnations[i]))
            incarnations[both++] = incarnations[i];
    sluice_status status = st_cut_take(job->there, incarnations, both, PF_AT_ONCE, &job->before, err);
    free(incarnations);
    return status;
}

static sluice_status check_continues(co_backup_job *job, sluice_error *err)
{
    st_cut stamp = {0};
    sluice_error local = {0};
    sluice_status status = st_cut_read(job->to, ST_BACKUP_FILE, &stamp, &local);
    if (status == SLUICE_OK)
        status = st_cut_check_untouched(job->there, &stamp, err);
    else
        status = status == SLUICE_NOT_FOUND ? SLUICE_OK : hand_on(&local, err);
    st_cut_free(&stamp);
    return status == SLUICE_OK ? st_cut_check_continues(job->view, &job->before, err) : status;
}

static sluice_status begin_again(co_backup_job *job, sluice_error *err)
{
    pf_stat stat;
    PF_TRY(hold(job, "locks/graph", LK_GRAPH_BACKUP, err));
    if (pf_stat_path(job->to, ST_BACKUP_BEFORE, &stat, NULL) == SLUICE_OK)
        return pf_fail(err, SLUICE_WRITER_BUSY, "another backup into this folder was cut short a moment ago");
    sluice_error local = {0};
    sluice_status status = lk_claim_take(job->to, LK_CLAIM_RETENTION, PF_AT_ONCE, &job->claim, &local);
    if (status == SLUICE_OK)
        status = hold(job, "locks/graph", LK_GRAPH_REFS, &local);
    if (status == SLUICE_OK)
        status = cut_folder(job, &local);
    if (status == SLUICE_LIVE_WRITER_CONTENTION)
        return pf_fail(err, SLUICE_WRITER_BUSY, "the folder of the backup is being written to");
    if (status != SLUICE_OK)
        return hand_on(&local, err);
    PF_TRY(hold_branches(job, LK_BYTE_ADMISSION, err));
    PF_TRY(hold_branches(job, LK_BYTE_PUBLISH, err));
    PF_TRY(check_continues(job, err));
    if (pf_stat_path(job->to, ST_BACKUP_NEW, &stat, NULL) == SLUICE_OK)
        PF_TRY(st_cut_remove(job->to, ST_BACKUP_NEW, err)); /* of a first one that died behind its end */
    PF_TRY(st_cut_write(job->to, ST_BACKUP_BEFORE, &job->before, err));
    job->begun = true; /* only now: what was not touched is not put back, on a full disk least of all */
    return SLUICE_OK;
}

/* ---- 4 to 6 ---- */

static sluice_status copy_logs(co_backup_job *job, sluice_error *err)
{
    st_copied copied = {0};
    for (uint32_t i = 0; i < job->cut.log_count; i++) {
        uint64_t incarnation = job->cut.logs[i].incarnation;
        const st_log_cut *have = st_cut_find_log(&job->before, incarnation);
        PF_TRY(st_cut_copy_log(job->view, incarnation, job->to, have, &copied, err));
    }
    job->report->files += copied.files;
    job->report->bytes += copied.bytes;
    job->report->reused_files += copied.reused_files;
    job->report->reused_bytes += copied.reused_bytes;
    PF_TRY(pf_sync_dir(job->to, "branches", err));
    return st_cut_write_refs(job->to, &job->cut, err);
}

static sluice_status commit(co_backup_job *job, sluice_error *err)
{
    PF_TRY(st_cut_write(job->to, ST_BACKUP_FILE, &job->cut, err));
    if (job->there) {
        PF_TRY(pf_sync_dir(job->to, "", err)); /* everything else before it */
        return st_cut_remove(job->to, ST_BACKUP_BEFORE, err);
    }
    PF_TRY(st_backup_publish(job->to, err));
    return st_cut_remove(job->to, ST_BACKUP_NEW, err);
}

static sluice_status run(co_backup_job *job, sluice_error *err)
{
    PF_TRY(look_at_folder(job, err));
    PF_TRY(take_cut(job, err));
    PF_TRY(job->there ? begin_again(job, err) : begin_first(job, err));
    PF_TRY(co_backup_copy_files(job, err));
    PF_TRY(copy_logs(job, err));
    PF_TRY(co_backup_check(job, err));
    PF_TRY(commit(job, err));
    job->begun = false;
    return SLUICE_OK;
}

sluice_status co_backup_on(st_graph *graph, pf_volume *destination, co_backup_progress_fn *progress, void *context,
                           co_backup_report *ret_report, sluice_error *err)
{
    co_backup_job job = {
        .source = graph, .to = destination, .progress = progress, .context = context, .report = ret_report};
    *ret_report = (co_backup_report){0};
    sluice_status status = run(&job, err);
    if (status != SLUICE_OK && job.begun) /* what this cannot do now, the next writer does */
        (void)st_cut_put_back(job.to, &job.before, NULL);
    for (uint32_t i = job.held_count; i-- > 0;)
        lk_lockfile_close(job.held[i]);
    free(job.held);
    lk_claim_release(job.claim);
    st_graph_close(job.view);
    for (uint32_t i = 0; i < job.pin_count; i++)
        (void)pf_close(job.pins[i], NULL); /* only locked */
    free(job.pins);
    if (job.there)
        st_graph_close(job.there);
    else
        pf_volume_close(job.to);
    st_cut_free(&job.cut);
    st_cut_free(&job.before);
    co_objects_free(&job.objects);
    co_objects_free(&job.old);
    return status;
}

/* ---- at a path ---- */

static sluice_status check_paths(const char *graph, const char *destination, sluice_error *err)
{
    char below[4096];
    int length = snprintf(below, sizeof below, "%s/x", destination); /* so that a DEST that is there is meant itself */
    bool inside = pf_path_is_inside(destination, graph) ||
                  (length > 0 && (size_t)length < sizeof below && pf_path_is_inside(below, graph));
    if (!inside && !pf_path_is_inside(graph, destination))
        return SLUICE_OK;
    pf_fail(err, SLUICE_USAGE, inside ? "the backup would lie inside of the graph" : "the graph lies inside of DEST");
    pf_hint(err, "give a folder elsewhere, best on another disk");
    return SLUICE_USAGE;
}

/* 7. A backup is whole without it. */
static void collect(const char *destination, co_backup_report *report)
{
    st_graph *graph = NULL;
    co_gc_report gone = {0};
    if (st_graph_open(destination, PF_WRITE, &graph, NULL) != SLUICE_OK)
        return;
    pf_volume_leave_to_parent(st_graph_volume(graph));
    if (co_gc(graph, false, &gone, NULL) == SLUICE_OK)
        report->removed_files += gone.files;
    st_graph_close(graph);
}

sluice_status co_backup(st_graph *graph, const char *graph_path, const char *destination,
                        co_backup_progress_fn *progress, void *context, co_backup_report *ret_report, sluice_error *err)
{
    pf_volume *volume = NULL;
    *ret_report = (co_backup_report){0};
    PF_TRY(check_paths(graph_path, destination, err));
    PF_TRY(st_folder_prepare(destination, &volume, err));
    pf_volume_leave_to_parent(volume);
    PF_TRY(co_backup_on(graph, volume, progress, context, ret_report, err));
    if (!ret_report->first)
        collect(destination, ret_report);
    return SLUICE_OK;
}
