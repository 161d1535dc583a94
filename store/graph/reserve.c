/*
 * The reserve: a file of real blocks that recovery deletes when the disk is full. Advisory: a graph without one works.
 */
#include "store/graph/internal.h"

#include "platform/check.h"

sluice_status st_reserve_release(st_graph *graph, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(graph->volume, ST_RESERVE_FILE, &stat, NULL) == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    PF_TRY(pf_remove(graph->volume, ST_RESERVE_FILE, err));
    return pf_sync_dir(graph->volume, "", err); /* the blocks are free once the removal is on disk */
}

sluice_status st_reserve_rebuild(st_graph *graph, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(graph->volume, ST_RESERVE_FILE, &stat, NULL) == SLUICE_OK && stat.size >= ST_RESERVE_SIZE)
        return SLUICE_OK;
    if (pf_stat_path(graph->volume, ST_RESERVE_FILE, &stat, NULL) == SLUICE_OK) /* cut short while it was rebuilt */
        PF_TRY(pf_remove(graph->volume, ST_RESERVE_FILE, err));
    sluice_status status = st_make_zero_file(graph->volume, ST_RESERVE_FILE, ST_RESERVE_SIZE, err);
    if (status != SLUICE_OK) {
        (void)pf_remove(graph->volume, ST_RESERVE_FILE, NULL); /* half of it would only be in the way */
        return status;
    }
    return pf_sync_dir(graph->volume, "", err);
}
