/*
 * A branch's folder and its log.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void st_branch_folder(uint64_t incarnation, char *ret_path)
{
    (void)snprintf(ret_path, 64, "branches/%" PRIu64, incarnation);
}

sluice_status st_branch_make_on(pf_volume *volume, uint64_t incarnation, uint64_t number, const pf_sha256 *digest,
                                const pf_buffer *opening_manifest, const pf_buffer *opening_attachments,
                                sluice_error *err)
{
    char folder[64], path[80];

    PF_ASSERT(incarnation > 0);
    st_branch_folder(incarnation, folder);
    PF_TRY(pf_make_folder(volume, folder, err));
    (void)snprintf(path, sizeof(path), "%s/pins", folder);
    PF_TRY(st_make_file(volume, path, NULL, 0, err));
    PF_TRY(st_log_make(volume, folder, incarnation, number, digest, opening_manifest, opening_attachments, err));
    return pf_sync_dir(volume, "branches", err);
}

sluice_status st_branch_make(st_graph *graph, uint64_t incarnation, uint64_t number, const pf_sha256 *digest,
                             const pf_buffer *opening_manifest, const pf_buffer *opening_attachments, sluice_error *err)
{
    return st_branch_make_on(graph->volume, incarnation, number, digest, opening_manifest, opening_attachments, err);
}

sluice_status st_branch_hold(st_graph *graph, uint64_t incarnation, pf_file **ret_pins, sluice_error *err)
{
    char folder[64], path[80];
    sluice_error probe = {0};
    *ret_pins = NULL;
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof(path), "%s/pins", folder);
    sluice_status status = pf_open(graph->volume, path, PF_READ, ret_pins, &probe);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status == SLUICE_OK)
        status = pf_lock(*ret_pins, 0, 1, PF_LOCK_SHARED, pf_deadline_in_ms(10000), &probe);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    (void)pf_close(*ret_pins, NULL); /* only looked at */
    *ret_pins = NULL;
    if (err)
        *err = probe;
    return status;
}

typedef struct folder_walk {
    st_branch_fn *each;
    void *context;
} folder_walk;

static sluice_status on_folder(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const folder_walk *walk = context;
    uint64_t incarnation;
    if (kind != PF_KIND_FOLDER || !st_json_text_is_u64(name, &incarnation) || incarnation == 0)
        return SLUICE_OK;
    return walk->each(walk->context, incarnation, err);
}

sluice_status st_branch_list(st_graph *graph, st_branch_fn *each, void *context, sluice_error *err)
{
    folder_walk walk = {each, context};
    return pf_list(graph->volume, "branches", on_folder, &walk, err);
}

sluice_status st_graph_open_log(st_graph *graph, const char *folder, uint64_t incarnation, st_log **ret_log,
                                sluice_error *err)
{
    const st_log_cut *cut = graph->cut ? st_cut_find_log(graph->cut, incarnation) : NULL;
    if (cut)
        return st_log_open_at(graph->volume, folder, cut, ret_log, err);
    sluice_status status = st_log_open(graph->volume, folder, incarnation, graph->access, ret_log, err);
    if (status == SLUICE_OK || !graph->damaged)
        return status;
    uint64_t seen = 0;
    status = st_log_open_damaged(graph->volume, folder, incarnation, ret_log, &seen, err);
    if (incarnation != 0 && seen > graph->seen) /* control/ has numbers of its own */
        graph->seen = seen;
    return status;
}

sluice_status st_graph_log(st_graph *graph, uint64_t incarnation, st_log **ret_log, sluice_error *err)
{
    char folder[64];
    st_log *log;

    for (uint32_t i = 0; i < graph->log_count; i++)
        if (graph->logs[i].incarnation == incarnation) {
            *ret_log = graph->logs[i].log;
            return SLUICE_OK;
        }
    st_open_log *grown = realloc(graph->logs, (graph->log_count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    graph->logs = grown;
    st_branch_folder(incarnation, folder);
    PF_TRY(st_graph_open_log(graph, folder, incarnation, &log, err));
    graph->logs[graph->log_count++] = (st_open_log){.incarnation = incarnation, .log = log};
    *ret_log = log;
    return SLUICE_OK;
}
