/*
 * The immutable files of a backup: copied, and looked at in the copy (coord/backup_job.h).
 *
 * A file is written in trash/, synced, and renamed to its name: under a name there is a whole file or none. One that is
 * there with the same size is taken as it is: if the state before names it, it was looked at when it was copied, else
 * it is looked at now. All names are synced before anything says that they are there.
 */
#include "coord/backup_job.h"
#include "platform/check.h"
#include "store/read/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_NAME "trash/backup-copy"
#define CHUNK     (1024u * 1024u)

static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

static sluice_status copy_bytes(pf_file *from, pf_file *to, uint64_t size, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    uint8_t *bytes = malloc(CHUNK);
    if (!bytes)
        return pf_fail_memory(err);
    for (uint64_t at = 0; at < size && status == SLUICE_OK; at += CHUNK) {
        size_t length = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        status = pf_read_exact(from, at, bytes, length, err);
        if (status == SLUICE_OK)
            status = pf_write(to, at, bytes, length, err);
        if (status == SLUICE_OK)
            pf_write_behind(to, at, length);
    }
    free(bytes);
    return status;
}

/* The copy under its temporary name, synced. */
static sluice_status write_copy(co_backup_job *job, const char *path, uint64_t size, sluice_error *err)
{
    pf_file *from = NULL, *to = NULL;
    sluice_status status;
    PF_TRY(pf_open(st_graph_volume(job->source), path, PF_READ, &from, err));
    PF_GOTO(status, done, pf_create(job->to, COPY_NAME, &to, err));
    PF_GOTO(status, done, copy_bytes(from, to, size, err));
    PF_GOTO(status, done, pf_sync(to, err));
    status = pf_close(to, err);
    to = NULL;
done:
    (void)pf_close(from, NULL); /* only read */
    (void)pf_close(to, NULL);
    return status;
}

static sluice_status copy_file(co_backup_job *job, const char *path, sluice_error *err)
{
    pf_stat here, there;
    sluice_error local = {0};
    sluice_status status = pf_stat_path(st_graph_volume(job->source), path, &here, err);
    if (status != SLUICE_OK)
        return status;
    status = pf_stat_path(job->to, path, &there, &local);
    if (status == SLUICE_OK && there.kind == PF_KIND_FILE && there.size == here.size) {
        job->report->reused_files++;
        job->report->reused_bytes += here.size;
        return SLUICE_OK;
    }
    if (status == SLUICE_OK)
        PF_TRY(pf_remove(job->to, path, err));
    else if (status != SLUICE_NOT_FOUND)
        return hand_on(&local, err);
    PF_TRY(pf_remove_if_there(job->to, COPY_NAME, err));
    PF_TRY(write_copy(job, path, here.size, err));
    PF_TRY(pf_publish(job->to, COPY_NAME, path, err));
    job->report->files++;
    job->report->bytes += here.size;
    if (job->progress && !job->progress(job->context, job->report))
        return pf_fail(err, SLUICE_CANCELLED, "cancelled; the copy is what it was before");
    return SLUICE_OK;
}

/* ---- schemas and audit ---- */

typedef struct folder_copy {
    co_backup_job *job;
    const char *folder;
} folder_copy;

static sluice_status on_document(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const folder_copy *walk = context;
    char path[320];
    size_t length = strlen(name);
    if (kind != PF_KIND_FILE || length < 5 || strcmp(name + length - 5, ".json") != 0)
        return SLUICE_OK;
    int written = snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    return written > 0 && (size_t)written < sizeof path ? copy_file(walk->job, path, err) : SLUICE_OK;
}

static sluice_status copy_documents(co_backup_job *job, const char *folder, sluice_error *err)
{
    folder_copy walk = {job, folder};
    PF_TRY(pf_list(st_graph_volume(job->source), folder, on_document, &walk, err));
    return pf_sync_dir(job->to, folder, err);
}

/* ---- objects ---- */

/* Marks what the cut keeps: what collection has let go of by then may go any time. */
static sluice_status mark_named(st_graph *view, const st_cut *cut, co_objects *objects, sluice_error *err)
{
    st_control control = {0};
    co_records records = {0};
    sluice_status status = st_control_read(view, &control, err);
    for (uint32_t i = 0; i < cut->log_count && status == SLUICE_OK; i++) {
        uint64_t end = 0, incarnation = cut->logs[i].incarnation;
        if (incarnation)
            status = co_objects_mark_kept(view, objects, &records, incarnation,
                                          st_control_find_boundary(&control, incarnation), UINT64_MAX, &end, err);
    }
    free(records.items);
    st_control_free(&control);
    return status;
}

static sluice_status list_objects(co_backup_job *job, sluice_error *err)
{
    PF_TRY(co_objects_list(job->view, NULL, &job->objects, err));
    PF_TRY(mark_named(job->view, &job->cut, &job->objects, err));
    if (!job->there)
        return SLUICE_OK;
    st_graph *before = NULL;
    PF_TRY(co_objects_list(job->there, NULL, &job->old, err));
    PF_TRY(st_graph_at(job->to, &job->before, &before, err));
    sluice_status status = mark_named(before, &job->before, &job->old, err);
    st_graph_close(before);
    return status;
}

static sluice_status copy_objects(co_backup_job *job, sluice_error *err)
{
    char last[160] = "", folder[160];
    unsigned long long last_table = 0;
    for (size_t i = 0; i < job->objects.count; i++) {
        const co_object *object = &job->objects.items[i];
        if (!object->named)
            continue;
        unsigned long long table = strtoull(object->path + strlen("tables/"), NULL, 10);
        if (table != last_table)
            PF_TRY(st_table_make_folders(job->to, table, err));
        last_table = table;
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(object->path, '/') - object->path), object->path);
        if (last[0] && strcmp(last, folder) != 0)
            PF_TRY(pf_sync_dir(job->to, last, err));
        memcpy(last, folder, sizeof last);
        PF_TRY(copy_file(job, object->path, err));
    }
    return last[0] ? pf_sync_dir(job->to, last, err) : SLUICE_OK;
}

/* Tables of which nothing was ever written have folders too. */
static sluice_status on_table(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const co_backup_job *job = context;
    char *end = NULL;
    unsigned long long table = strtoull(name, &end, 10);
    return kind == PF_KIND_FOLDER && table >= ST_FIRST_TABLE && *end == '\0'
               ? st_table_make_folders(job->to, table, err)
               : SLUICE_OK;
}

sluice_status co_backup_copy_files(co_backup_job *job, sluice_error *err)
{
    PF_TRY(list_objects(job, err));
    for (size_t i = 0; i < job->objects.count; i++)
        job->report->all_files += job->objects.items[i].named;
    PF_TRY(copy_documents(job, "schema", err));
    PF_TRY(copy_documents(job, "audit", err));
    PF_TRY(pf_list(st_graph_volume(job->source), "tables", on_table, job, err));
    PF_TRY(copy_objects(job, err));
    return pf_sync_dir(job->to, "trash", err);
}

/* ---- looking at the copy ---- */

typedef struct checking {
    co_backup_job *job;
    uint64_t problems;
    sluice_error first;
} checking;

static bool is_known(void *context, const char *path)
{
    const checking *check = context;
    const co_objects *old = &check->job->old;
    size_t low = 0, high = old->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(old->items[middle].path, path);
        if (order == 0)
            return old->items[middle].named;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)err;
    checking *check = context;
    bool derived = strstr(object, "/keys/") || strstr(object, "/indexes/");
    if (check->problems++ == 0) {
        pf_fail(&check->first, SLUICE_CORRUPT, "%s: %s", object, problem);
        pf_hint(&check->first, derived
                                   ? "remove that file: `sluice index GRAPH` makes it anew; then take the backup again"
                                   : "no backup was made of it; `sluice verify GRAPH` shows all damage, sluice "
                                     "salvage rebuilds a table from what is whole");
    }
    if (strncmp(object, "tables/", strlen("tables/")) == 0 && !strchr(object, ' '))
        (void)pf_remove(check->job->to, object, NULL); /* the next backup copies it anew */
    return SLUICE_OK;
}

sluice_status co_backup_check(co_backup_job *job, sluice_error *err)
{
    checking check = {.job = job};
    st_graph *copy = NULL;
    uint64_t checked = 0;
    PF_TRY(st_graph_at(job->to, &job->cut, &copy, err));
    sluice_status status = st_graph_verify_new(copy, is_known, on_problem, &check, &checked, err);
    st_graph_close(copy);
    return status == SLUICE_OK && check.problems ? hand_on(&check.first, err) : status;
}
