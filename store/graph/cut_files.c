/*
 * The files backup, backup.before and backup.new (store/graph/cut.h), and putting a folder back to backup.before.
 *
 * A file is written under another name, synced, and renamed. Putting back may be cut off anywhere and begun again:
 * backup.before rules until its removal, which is the last step.
 */
#include "store/graph/cut.h"
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/document.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_THE_MAKING "backup.next"

sluice_status st_cut_read(pf_volume *volume, const char *file, st_cut *ret_cut, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = st_document_read(volume, file, ST_BACKUP_MAX, &bytes, err);
    if (status == SLUICE_OK)
        status = st_cut_decode(bytes.data, bytes.length, ret_cut, err);
    pf_buffer_free(&bytes);
    return status;
}

sluice_status st_cut_write(pf_volume *volume, const char *file, const st_cut *cut, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status;
    PF_GOTO(status, done, st_cut_encode(cut, &bytes, err));
    PF_GOTO(status, done, pf_remove_if_there(volume, IN_THE_MAKING, err));
    PF_GOTO(status, done, st_make_file(volume, IN_THE_MAKING, bytes.data, bytes.length, err));
    PF_GOTO(status, done, pf_remove_if_there(volume, file, err));
    PF_GOTO(status, done, pf_publish(volume, IN_THE_MAKING, file, err));
    status = pf_sync_dir(volume, "", err);
done:
    pf_buffer_free(&bytes);
    return status;
}

sluice_status st_cut_remove(pf_volume *volume, const char *file, sluice_error *err)
{
    PF_TRY(pf_remove_if_there(volume, file, err));
    return pf_sync_dir(volume, "", err);
}

/* ---- names ---- */

typedef struct ref_files {
    const st_cut *cut;
    char (*stray)[80];
    uint32_t count;
} ref_files;

static bool is_of_cut(const st_cut *cut, const char *file_name)
{
    char name[80];
    for (uint32_t i = 0; i < cut->ref_count; i++) {
        st_ref_file_name(cut->refs[i].name, name);
        if (strcmp(name, file_name) == 0)
            return true;
    }
    return false;
}

static sluice_status note_stray(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    ref_files *files = context;
    if (kind != PF_KIND_FILE || strlen(name) >= 80 || is_of_cut(files->cut, name))
        return SLUICE_OK;
    char(*grown)[80] = realloc(files->stray, ((size_t)files->count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    files->stray = grown;
    memcpy(grown[files->count++], name, strlen(name) + 1);
    return SLUICE_OK;
}

static sluice_status write_ref(pf_volume *volume, const st_cut_ref *ref, sluice_error *err)
{
    char name[80], path[96];
    pf_buffer bytes = {0}, now = {0};
    st_ref_file_name(ref->name, name);
    (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", name);
    sluice_status status = st_ref_encode(ref->name, ref->incarnation, &bytes, err);
    bool same = status == SLUICE_OK && st_document_read(volume, path, ST_BACKUP_MAX, &now, NULL) == SLUICE_OK &&
                now.length == bytes.length && memcmp(now.data, bytes.data, now.length) == 0;
    if (status == SLUICE_OK && !same)
        status = pf_remove_if_there(volume, path, err);
    if (status == SLUICE_OK && !same)
        status = st_make_file(volume, path, bytes.data, bytes.length, err);
    pf_buffer_free(&bytes);
    pf_buffer_free(&now);
    return status;
}

sluice_status st_cut_write_refs(pf_volume *volume, const st_cut *cut, sluice_error *err)
{
    ref_files files = {.cut = cut};
    char path[96];
    sluice_status status;
    PF_GOTO(status, done, pf_list(volume, ST_REFS_FOLDER, note_stray, &files, err));
    for (uint32_t i = 0; i < files.count; i++) {
        (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", files.stray[i]);
        PF_GOTO(status, done, pf_remove_if_there(volume, path, err));
    }
    for (uint32_t i = 0; i < cut->ref_count; i++)
        PF_GOTO(status, done, write_ref(volume, &cut->refs[i], err));
    status = pf_sync_dir(volume, ST_REFS_FOLDER, err);
done:
    free(files.stray);
    return status;
}

/* ---- what an earlier attempt left ---- */

#define DEPTH_MAX 4u /* branches/<n>/log/<segment> */

typedef struct removal {
    pf_volume *volume;
    const char *folder;
    unsigned depth;
} removal;

static sluice_status remove_tree(pf_volume *volume, const char *folder, unsigned depth, sluice_error *err);

static sluice_status remove_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const removal *walk = context;
    char path[320];
    int length = snprintf(path, sizeof(path), "%s/%s", walk->folder, name);
    if (kind == PF_KIND_OTHER || length < 0 || (size_t)length >= sizeof(path) || walk->depth == DEPTH_MAX)
        return pf_fail(err, SLUICE_ALREADY_EXISTS, "the folder %s holds what no backup left there", walk->folder);
    return kind == PF_KIND_FOLDER ? remove_tree(walk->volume, path, walk->depth + 1, err)
                                  : pf_remove(walk->volume, path, err);
}

/* The depth is bounded by DEPTH_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static sluice_status remove_tree(pf_volume *volume, const char *folder, unsigned depth, sluice_error *err)
{
    removal walk = {volume, folder, depth};
    pf_stat stat;
    if (pf_stat_path(volume, folder, &stat, NULL) != SLUICE_OK)
        return SLUICE_OK;
    PF_TRY(pf_list(volume, folder, remove_entry, &walk, err));
    return pf_remove_folder(volume, folder, err);
}

sluice_status st_remove_tree(pf_volume *volume, const char *folder, sluice_error *err)
{
    return remove_tree(volume, folder, 0, err);
}

/* ---- a folder for a first backup ---- */

sluice_status st_backup_make_layout(pf_volume *from, pf_volume *to, sluice_error *err)
{
    static const char *const folders[] = {ST_CONTROL_FOLDER, ST_REFS_FOLDER, "branches"};
    static const char *const files[] = {ST_INFO_FILE, ST_INTENTS_FILE, ST_CLAIMS_FILE, ST_RESERVE_FILE};
    pf_buffer info = {0};
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        PF_TRY(st_remove_tree(to, folders[i], err));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        PF_TRY(pf_remove_if_there(to, files[i], err));
    PF_TRY(st_layout_make(to, err));
    PF_TRY(pf_remove_folder(to, ST_CONTROL_FOLDER, err)); /* the copy of its log makes it */
    PF_GOTO(status, done, st_document_read(from, ST_INFO_FILE, ST_BACKUP_MAX, &info, err));
    PF_GOTO(status, done, st_make_file(to, ST_INFO_FILE, info.data, info.length, err));
    status = pf_sync_dir(to, "", err);
done:
    pf_buffer_free(&info);
    return status;
}

sluice_status st_backup_make_locks(pf_volume *to, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(to, "locks", &stat, NULL) != SLUICE_OK)
        PF_TRY(pf_make_folder(to, "locks", err));
    if (pf_stat_path(to, ST_GRAPH_LOCKS, &stat, NULL) != SLUICE_OK)
        PF_TRY(st_make_file(to, ST_GRAPH_LOCKS, NULL, 0, err));
    return pf_sync_dir(to, "locks", err);
}

sluice_status st_backup_publish(pf_volume *to, sluice_error *err)
{
    PF_TRY(pf_remove_if_there(to, IN_THE_MAKING, err));
    PF_TRY(st_make_file(to, IN_THE_MAKING, ST_FORMAT_TEXT, sizeof(ST_FORMAT_TEXT) - 1, err));
    PF_TRY(pf_sync_dir(to, "", err)); /* everything else before it */
    PF_TRY(pf_publish(to, IN_THE_MAKING, ST_FORMAT_FILE, err));
    return pf_sync_dir(to, "", err);
}

/* ---- putting back ---- */

sluice_status st_cut_put_back(pf_volume *volume, const st_cut *before, sluice_error *err)
{
    for (uint32_t i = 0; i < before->log_count; i++) {
        char folder[64] = ST_CONTROL_FOLDER;
        if (before->logs[i].incarnation)
            st_branch_folder(before->logs[i].incarnation, folder);
        PF_TRY(st_log_put_back(volume, folder, &before->logs[i], err));
    }
    PF_TRY(st_cut_write_refs(volume, before, err));
    PF_TRY(st_cut_write(volume, ST_BACKUP_FILE, before, err));
    return st_cut_remove(volume, ST_BACKUP_BEFORE, err);
}
