/*
 * Opening a graph. Reading classifies the filesystem and writes nothing; nothing that is merely advisory denies
 * opening, and no log is read before it is asked for, so that a damaged branch is that branch's matter alone.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sluice_status no_graph(pf_volume *volume, sluice_status status, const sluice_error *why, sluice_error *err)
{
    pf_stat stat;
    if (status != SLUICE_NOT_FOUND) {
        if (err)
            *err = *why;
        return status;
    }
    pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "the folder is not a graph: it has no file FORMAT");
    if (pf_stat_path(volume, ST_BACKUP_NEW, &stat, NULL) == SLUICE_OK)
        pf_hint(err, "it holds a `backup` that was cut short: run the same `backup` again");
    else
        pf_hint(err,
                "give the folder that `init` made; an `init` that was cut short is finished by the same `init` again");
    return SLUICE_UNSUPPORTED_FORMAT;
}

/* A backup into this folder that was cut short: to writers, which put the folder back first. */
static sluice_status put_back(st_graph *graph, sluice_error *err)
{
    lk_lockfile *lock = NULL;
    st_cut before = {0};
    sluice_error local = {0};
    PF_TRY(lk_lockfile_open(graph->volume, ST_GRAPH_LOCKS, &lock, err));
    sluice_status status = lk_take(lock, LK_GRAPH_BACKUP, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &local);
    if (status == SLUICE_LIVE_WRITER_CONTENTION) {
        status = pf_fail(err, SLUICE_WRITER_BUSY, "a backup is being written into this graph");
        pf_hint(err, "wait for its end; until then the graph can be read as it was before");
        goto done;
    }
    if (status == SLUICE_OK)
        status = st_cut_read(graph->volume, ST_BACKUP_BEFORE, &before, &local);
    if (status == SLUICE_OK)
        status = st_cut_put_back(graph->volume, &before, &local);
    if (status == SLUICE_NOT_FOUND) /* finished meanwhile */
        status = SLUICE_OK;
    else if (status != SLUICE_OK && err)
        *err = local;
done:
    st_cut_free(&before);
    lk_lockfile_close(lock);
    return status;
}

static sluice_status look_for_backup(st_graph *graph, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(graph->volume, ST_BACKUP_BEFORE, &stat, NULL) != SLUICE_OK)
        return SLUICE_OK;
    if (graph->access == PF_WRITE)
        return put_back(graph, err);
    sluice_error local = {0};
    graph->owned_cut = calloc(1, sizeof(*graph->owned_cut));
    if (!graph->owned_cut)
        return pf_fail_memory(err);
    sluice_status status = st_cut_read(graph->volume, ST_BACKUP_BEFORE, graph->owned_cut, &local);
    if (status == SLUICE_OK)
        graph->cut = graph->owned_cut;
    if (status == SLUICE_OK || status == SLUICE_NOT_FOUND) /* finished meanwhile */
        return SLUICE_OK;
    if (err)
        *err = local;
    return status;
}

sluice_status st_graph_open_on(pf_volume *volume, pf_access access, st_graph **ret_graph, sluice_error *err)
{
    st_graph_info info = {0};
    sluice_error local = {0};
    sluice_status status;
    st_graph *graph = calloc(1, sizeof(*graph));

    if (!graph) {
        pf_volume_close(volume);
        return pf_fail_memory(err);
    }
    graph->volume = volume;
    graph->access = access;
    status = st_layout_check_format(volume, &local);
    if (status != SLUICE_OK) {
        status = no_graph(volume, status, &local, err);
        goto failed;
    }
    PF_GOTO(status, failed, st_info_read(volume, &info, err));
    PF_GOTO(status, failed, look_for_backup(graph, err));
    /* Who made the graph may have died before its name was durable; nothing may be acknowledged in it before that. */
    if (access == PF_WRITE)
        PF_GOTO(status, failed, pf_sync_dir(volume, "", err));
    graph->id = info.id;
    graph->mode = info.mode;
    if (pf_volume_is_sim(volume))
        graph->filesystem = (pf_filesystem){.class_name = "sim", .journal = true};
    *ret_graph = graph;
    return SLUICE_OK;
failed:
    st_graph_close(graph);
    return status;
}

sluice_status st_graph_open(const char *path, pf_access access, st_graph **ret_graph, sluice_error *err)
{
    pf_filesystem filesystem = {0};
    pf_volume *volume = NULL;
    pf_stat stat;
    char evidence[4096];

    /* Opened before it is judged, so that a missing folder and a link on the way are said as such; nothing is written.
     */
    sluice_status status = pf_volume_open(path, access, &volume, err);
    if (status == SLUICE_NOT_FOUND && err && !err->hint[0])
        pf_hint(err, "sluice init GRAPH --schema FILE makes one there; is the path right?");
    PF_TRY(status);
    status = pf_preflight_classify(path, access, &filesystem, err);
    if (status != SLUICE_OK) {
        pf_volume_close(volume);
        return status;
    }
    PF_TRY(st_graph_open_on(volume, access, ret_graph, err));
    (*ret_graph)->filesystem = filesystem;
    if (access == PF_READ)
        return SLUICE_OK;
    int length = snprintf(evidence, sizeof(evidence), "%s/cache", path);
    bool keep = length > 0 && (size_t)length < sizeof(evidence) &&
                pf_stat_path(volume, "cache", &stat, NULL) == SLUICE_OK && stat.kind == PF_KIND_FOLDER;
    status = pf_preflight_probe(path, keep ? evidence : NULL, err);
    if (status != SLUICE_OK) {
        st_graph_close(*ret_graph);
        *ret_graph = NULL;
    }
    return status;
}

void st_graph_close(st_graph *graph)
{
    if (!graph)
        return;
    for (unsigned i = ST_KEPT_KINDS; i-- > 0;)
        if (graph->kept[i].data)
            graph->kept[i].release(graph->kept[i].data);
    st_ref_forget(graph);
    for (uint32_t i = 0; i < graph->log_count; i++)
        st_log_close(graph->logs[i].log);
    st_log_close(graph->control);
    lk_lockfile_close(graph->control_locks);
    if (!graph->borrowed)
        pf_volume_close(graph->volume);
    if (graph->owned_cut)
        st_cut_free(graph->owned_cut);
    free(graph->owned_cut);
    free(graph->logs);
    free(graph->durable_refs);
    pf_buffer_free(&graph->offered);
    st_control_free(&graph->now);
    free(graph);
}

pf_volume *st_graph_volume(st_graph *graph)
{
    return graph->volume;
}

const pf_id *st_graph_id(const st_graph *graph)
{
    return &graph->id;
}

st_write_mode st_graph_mode(const st_graph *graph)
{
    return graph->mode;
}

sluice_status st_graph_mode_of(pf_volume *volume, st_write_mode *ret_mode, sluice_error *err)
{
    st_graph_info info = {0};
    PF_TRY(st_info_read(volume, &info, err));
    *ret_mode = info.mode;
    return SLUICE_OK;
}

pf_access st_graph_access(const st_graph *graph)
{
    return graph->access;
}

const pf_filesystem *st_graph_filesystem(const st_graph *graph)
{
    return &graph->filesystem;
}

st_kept *st_graph_kept(st_graph *graph, st_kept_kind kind)
{
    return &graph->kept[kind];
}

static sluice_status count_unknown(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    (void)err;
    if (!st_layout_knows(name, kind))
        ++*(uint64_t *)context;
    return SLUICE_OK;
}

sluice_status st_graph_unknown_entries(st_graph *graph, uint64_t *ret_count, sluice_error *err)
{
    *ret_count = 0;
    return pf_list(graph->volume, "", count_unknown, ret_count, err);
}
