/*
 * Making a log: every file of it, whole and synced, before any name outside says that it exists.
 *
 * Nothing here is a commit: a log that is cut short belongs to a branch that no ref names yet, or to a graph without
 * FORMAT. CURRENT comes last.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <stdio.h>

static void join(const char *folder, const char *name, char path[128])
{
    int length = snprintf(path, 128, "%s/%s", folder, name);
    PF_ALWAYS(length > 0 && length < 128);
}

static sluice_status make_empty_file(pf_volume *volume, const char *folder, const char *name, sluice_error *err)
{
    char path[128];
    pf_file *file = NULL;
    join(folder, name, path);
    PF_TRY(pf_create(volume, path, &file, err));
    return pf_close(file, err);
}

sluice_status st_log_make(pf_volume *volume, const char *folder, uint64_t incarnation, uint64_t number,
                          const pf_sha256 *digest, const pf_buffer *opening_manifest,
                          const pf_buffer *opening_attachments, sluice_error *err)
{
    char path[128];
    st_segment segment = {0};
    st_segment_plan plan = {.number = 1,
                            .incarnation = incarnation,
                            .base = number,
                            .base_digest = *digest,
                            .line = {.oldest = number + 1},
                            .manifest = opening_manifest,
                            .attachments = opening_attachments};

    join(folder, "log", path);
    PF_TRY(pf_make_folder(volume, path, err));
    PF_TRY(st_segment_make(volume, folder, &plan, &segment, err));
    st_current current = {.sequence = 1, .segment = 1, .opening = segment.opening};
    st_segment_close(&segment);
    st_mark mark = {.number = number, .segment = 1};
    PF_TRY(st_mark_make(volume, folder, &mark, err));
    PF_TRY(make_empty_file(volume, folder, "locks", err));
    PF_TRY(st_current_make(volume, folder, &current, err));
    return pf_sync_dir(volume, folder, err);
}
