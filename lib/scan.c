/*
 * Scans as Arrow C streams (store/read/scan_stream.c does the work); a stream holds its snapshot.
 */
#include "lib/handle.h"

static sluice_status check_owner(void *owner, sluice_error *err)
{
    return lib_check_snapshot(owner, err);
}

static void release_owner(void *owner)
{
    lib_snapshot_release(owner);
}

sluice_status sluice_scan(sluice_snapshot *snapshot, const char *type, const sluice_scan_options *options,
                          struct ArrowArrayStream *ret_stream, sluice_error *err)
{
    static const sluice_scan_options defaults;
    const st_type_def *def = NULL;
    PF_TRY(lib_need(ret_stream, "ret_stream", err));
    *ret_stream = (struct ArrowArrayStream){0};
    PF_TRY(lib_check_snapshot(snapshot, err));
    PF_TRY(lib_need(type, "the type", err));
    PF_TRY(st_snapshot_type(snapshot->snapshot, type, &def, err));
    options = options ? options : &defaults;
    st_stream_options chosen = {.columns = options->columns,
                                .column_count = options->column_count,
                                .where = options->where,
                                .limit = options->limit,
                                .owner = snapshot,
                                .check = check_owner,
                                .release = release_owner};
    lib_snapshot_hold(snapshot);
    return st_scan_stream(snapshot->snapshot, def, &chosen, ret_stream, err);
}
