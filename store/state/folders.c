/*
 * The folders of a table (state.h): made once, when its type is accepted.
 */
#include "store/state/state.h"
#include <stdio.h>

/* Found counts as made: its name may be another's, not yet durable, so the caller syncs the parent in any case. */
static sluice_status make(pf_volume *volume, const char *path, sluice_error *err)
{
    sluice_error probe = {0};
    sluice_status status = pf_make_folder(volume, path, &probe);
    if (status == SLUICE_OK || status == SLUICE_ALREADY_EXISTS)
        return SLUICE_OK;
    if (err)
        *err = probe;
    return status;
}

sluice_status st_table_make_folders(pf_volume *volume, uint64_t table, sluice_error *err)
{
    static const char *const folders[] = {"fragments", "lists", "keys", "deletions", "indexes"};
    char parent[48], path[64];
    (void)snprintf(parent, sizeof(parent), "tables/%llu", (unsigned long long)table);
    PF_TRY(make(volume, parent, err));
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", parent, folders[i]);
        PF_TRY(make(volume, path, err));
    }
    PF_TRY(pf_sync_dir(volume, parent, err));
    return pf_sync_dir(volume, "tables", err);
}
