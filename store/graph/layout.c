/*
 * Which folders and files a graph has, and how they are made (docs/format.md "Directory layout").
 *
 * Everything here is made before FORMAT exists, so nothing of it is a graph yet; an init that was cut short is taken up
 * again by making afresh what is made once. Unknown entries are kept, always.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/document.h"
#include "store/format/json.h"
#include <stdio.h>
#include <string.h>

#define INFO_FORMAT "sluice-graph-info/1"
#define INFO_MAX    4096u

static const char *const folders[] = {"control", "refs",       "branches", "schema", "tables", "attempts",
                                      "locks",   "quarantine", "audit",    "cache",  "trash"};
static const char *const files[] = {ST_FORMAT_FILE,  ST_FORMAT_NEW,  ST_INFO_FILE,     ST_INTENTS_FILE, ST_CLAIMS_FILE,
                                    ST_RESERVE_FILE, ST_BACKUP_FILE, ST_BACKUP_BEFORE, ST_BACKUP_NEW};
static const char *const mode_names[] = {
    [ST_MODE_OPTIMISTIC] = "optimistic", [ST_MODE_SINGLE] = "single", [ST_MODE_QUEUED] = "queued"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool st_layout_knows(const char *name, pf_kind kind)
{
    switch (kind) {
    case PF_KIND_FILE:
        return is_among(name, files, COUNT(files));
    case PF_KIND_FOLDER:
        return is_among(name, folders, COUNT(folders));
    case PF_KIND_OTHER:
        break;
    }
    return false;
}

sluice_status st_layout_check_format(pf_volume *volume, sluice_error *err)
{
    static const char text[] = ST_FORMAT_TEXT, kind[] = "sluice-graph/";
    pf_buffer bytes = {0};
    sluice_status status;

    PF_GOTO(status, done, st_document_read(volume, ST_FORMAT_FILE, INFO_MAX, &bytes, err));
    if (bytes.length == sizeof(text) - 1 && memcmp(bytes.data, text, bytes.length) == 0)
        goto done;
    if (bytes.length >= sizeof(kind) - 1 && memcmp(bytes.data, kind, sizeof(kind) - 1) == 0)
        status =
            pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "the graph has a format version that this program does not know");
    else
        status = pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "the file FORMAT is not a graph's");
done:
    pf_buffer_free(&bytes);
    return status;
}

/* ---- making ---- */

sluice_status st_make_file(pf_volume *volume, const char *path, const void *bytes, size_t length, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_TRY(pf_create(volume, path, &file, err));
    if (length > 0)
        PF_GOTO(status, done, pf_write(file, 0, bytes, length, err));
    PF_GOTO(status, done, pf_sync(file, err));
    status = pf_close(file, err);
    file = NULL;
done:
    (void)pf_close(file, NULL);
    return status;
}

sluice_status st_make_zero_file(pf_volume *volume, const char *path, uint64_t size, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_TRY(pf_create(volume, path, &file, err));
    PF_GOTO(status, done, pf_zero_fill(file, size, err));
    PF_GOTO(status, done, pf_sync(file, err));
    status = pf_close(file, err);
    file = NULL;
done:
    (void)pf_close(file, NULL);
    return status;
}

static sluice_status make_folder_once(pf_volume *volume, const char *path, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(volume, path, &stat, NULL) == SLUICE_OK && stat.kind == PF_KIND_FOLDER)
        return SLUICE_OK;
    return pf_make_folder(volume, path, err);
}

sluice_status st_layout_make(pf_volume *volume, sluice_error *err)
{
    pf_stat stat;
    for (size_t i = 0; i < COUNT(folders); i++)
        PF_TRY(make_folder_once(volume, folders[i], err));
    if (pf_stat_path(volume, ST_GRAPH_LOCKS, &stat, NULL) != SLUICE_OK)
        PF_TRY(st_make_file(volume, ST_GRAPH_LOCKS, NULL, 0, err));
    PF_TRY(pf_sync_dir(volume, "locks", err));
    PF_TRY(st_make_zero_file(volume, ST_INTENTS_FILE, (uint64_t)ST_INTENT_SLOTS * ST_INTENT_SLOT_SIZE, err));
    PF_TRY(st_make_zero_file(volume, ST_CLAIMS_FILE, (uint64_t)ST_CLAIM_SLOTS * ST_CLAIM_SLOT_SIZE, err));
    return st_make_zero_file(volume, ST_RESERVE_FILE, ST_RESERVE_SIZE, err);
}

/* ---- what an init left that was cut short ---- */

#define LITTER_MAX     64u /* files of one folder that an init makes, at most */
#define NAME_MAX_BYTES 256u

typedef struct litter {
    char names[LITTER_MAX][NAME_MAX_BYTES];
    size_t count;
} litter;

static sluice_status note_file(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    litter *found = context;
    if (kind != PF_KIND_FILE)
        return SLUICE_OK;
    if (found->count == LITTER_MAX || strlen(name) >= NAME_MAX_BYTES)
        return pf_fail(err, SLUICE_ALREADY_EXISTS,
                       "the folder holds more than an init that was cut short leaves behind");
    memcpy(found->names[found->count++], name, strlen(name) + 1);
    return SLUICE_OK;
}

/* Removes the files of one folder; a folder that is not there has none. */
static sluice_status empty_folder(pf_volume *volume, const char *folder, sluice_error *err)
{
    litter found = {.count = 0};
    char path[NAME_MAX_BYTES + 64];
    pf_stat stat;

    if (pf_stat_path(volume, folder, &stat, NULL) != SLUICE_OK)
        return SLUICE_OK;
    PF_TRY(pf_list(volume, folder, note_file, &found, err));
    for (size_t i = 0; i < found.count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, found.names[i]);
        PF_TRY(pf_remove(volume, path, err));
    }
    return SLUICE_OK;
}

static sluice_status remove_folder_if_there(pf_volume *volume, const char *path, sluice_error *err)
{
    pf_stat stat;
    return pf_stat_path(volume, path, &stat, NULL) == SLUICE_OK ? pf_remove_folder(volume, path, err) : SLUICE_OK;
}

sluice_status st_layout_clear(pf_volume *volume, sluice_error *err)
{
    static const char *const once[] = {ST_INFO_FILE, ST_INTENTS_FILE, ST_CLAIMS_FILE, ST_RESERVE_FILE};
    static const char *const made[] = {"control/log", "control", "refs", "schema"};
    char folder[64], logs[80];
    pf_stat stat;

    for (size_t i = 0; i < COUNT(once); i++)
        if (pf_stat_path(volume, once[i], &stat, NULL) == SLUICE_OK)
            PF_TRY(pf_remove(volume, once[i], err));
    for (size_t i = 0; i < COUNT(made); i++)
        PF_TRY(empty_folder(volume, made[i], err));
    st_branch_folder(ST_MAIN_INCARNATION, folder);
    (void)snprintf(logs, sizeof(logs), "%s/log", folder);
    PF_TRY(empty_folder(volume, logs, err));
    PF_TRY(empty_folder(volume, folder, err));
    PF_TRY(remove_folder_if_there(volume, logs, err));
    PF_TRY(remove_folder_if_there(volume, folder, err));
    return remove_folder_if_there(volume, "control/log", err);
}

/* ---- graph.json ---- */

static sluice_status info_encode(const st_graph_info *info, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, INFO_FORMAT);
    st_json_name(&json, "id");
    st_json_id(&json, &info->id);
    st_json_name(&json, "created");
    st_json_u64(&json, (uint64_t)info->created_us);
    st_json_name(&json, "mode");
    st_json_text(&json, mode_names[info->mode]);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

sluice_status st_info_write(pf_volume *volume, const st_graph_info *info, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = info_encode(info, &bytes, err);
    if (status == SLUICE_OK)
        status = st_make_file(volume, ST_INFO_FILE, bytes.data, bytes.length, err);
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status mode_from_name(const char *name, st_write_mode *ret_mode, sluice_error *err)
{
    for (size_t i = 0; i < COUNT(mode_names); i++)
        if (strcmp(name, mode_names[i]) == 0) {
            *ret_mode = (st_write_mode)i;
            return SLUICE_OK;
        }
    return pf_fail(err, SLUICE_CORRUPT, "graph.json: unknown write mode");
}

sluice_status st_info_read(pf_volume *volume, st_graph_info *ret_info, sluice_error *err)
{
    pf_buffer bytes = {0}, again = {0};
    cJSON *document = NULL;
    const char *mode;
    uint64_t created;
    sluice_error local = {0};
    sluice_status status = st_document_read(volume, ST_INFO_FILE, INFO_MAX, &bytes, &local);

    if (status == SLUICE_NOT_FOUND) {
        status = pf_fail(err, SLUICE_CORRUPT, "the graph has no graph.json");
        goto done;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        goto done;
    }
    PF_GOTO(status, done, st_json_parse(bytes.data, bytes.length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, INFO_FORMAT, err));
    PF_GOTO(status, done, st_json_get_id(document, "id", &ret_info->id, err));
    PF_GOTO(status, done, st_json_get_u64(document, "created", &created, err));
    PF_GOTO(status, done, st_json_get_text(document, "mode", &mode, err));
    PF_GOTO(status, done, mode_from_name(mode, &ret_info->mode, err));
    ret_info->created_us = (int64_t)created;
    PF_GOTO(status, done, info_encode(ret_info, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes.data, bytes.length, &again, err));
done:
    st_json_free(document);
    pf_buffer_free(&bytes);
    pf_buffer_free(&again);
    return status;
}
