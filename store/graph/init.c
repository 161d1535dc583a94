/*
 * Making a graph.
 *
 * The first thing made is FORMAT.new, durable before anything else; the last step renames it to FORMAT, and that is the
 * commit point: before it there is no graph, after it there is exactly the empty one (L-037, L-038). A folder with
 * FORMAT.new is a graph in the making: whoever runs init again takes the lock, clears what is made once, and makes it
 * afresh. A folder that holds anything and neither of the two names is somebody else's: refused, nothing is touched.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/state/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INIT_WAIT_MS 10000 /* another init at work on the same folder */

/* ---- is this a place for a graph? ---- */

typedef struct place {
    bool anything, format, in_the_making;
} place;

static sluice_status note_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    place *found = context;
    (void)kind;
    (void)err;
    if (strncmp(name, PF_PROBE_PREFIX, sizeof(PF_PROBE_PREFIX) - 1) == 0) /* the next probe takes it away */
        return SLUICE_OK;
    found->anything = true;
    found->format |= strcmp(name, ST_FORMAT_FILE) == 0;
    found->in_the_making |= strcmp(name, ST_FORMAT_NEW) == 0;
    return SLUICE_OK;
}

static sluice_status exists_already(sluice_error *err)
{
    pf_fail(err, SLUICE_ALREADY_EXISTS, "there is a graph already");
    pf_hint(err, "give another folder; a graph that is not wanted any more goes with its folder");
    return SLUICE_ALREADY_EXISTS;
}

static sluice_status check_place(pf_volume *volume, sluice_error *err)
{
    place found = {0};
    PF_TRY(pf_list(volume, "", note_entry, &found, err));
    if (found.format)
        return exists_already(err);
    if (found.anything && !found.in_the_making)
        return pf_fail(err, SLUICE_ALREADY_EXISTS, "the folder is not empty and not a graph in the making");
    return SLUICE_OK;
}

/* ---- the making ---- */

static sluice_status open_or_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    sluice_error local = {0};
    for (int attempt = 0; attempt < 3; attempt++) { /* another init may rename it between the two calls */
        if (pf_open(volume, path, PF_WRITE, ret_file, &local) == SLUICE_OK)
            return SLUICE_OK;
        if (local.code == SLUICE_NOT_FOUND && pf_create(volume, path, ret_file, &local) == SLUICE_OK)
            return SLUICE_OK;
        if (local.code != SLUICE_NOT_FOUND && local.code != SLUICE_ALREADY_EXISTS)
            break;
    }
    if (err)
        *err = local;
    return local.code;
}

/* FORMAT.new with its content, durable under its name. */
static sluice_status begin(pf_volume *volume, sluice_error *err)
{
    pf_file *file = NULL;
    pf_stat stat;
    sluice_status status;

    PF_TRY(open_or_create(volume, ST_FORMAT_NEW, &file, err));
    PF_GOTO(status, done, pf_file_stat(file, &stat, err));
    if (stat.size > sizeof(ST_FORMAT_TEXT) - 1) {
        status = pf_fail(err, SLUICE_ALREADY_EXISTS, "the folder holds a FORMAT.new that is not ours");
        goto done;
    }
    PF_GOTO(status, done, pf_write(file, 0, ST_FORMAT_TEXT, sizeof(ST_FORMAT_TEXT) - 1, err));
    PF_GOTO(status, done, pf_sync(file, err));
    PF_GOTO(status, done, pf_sync_dir(volume, "", err));
done:
    (void)pf_close(file, NULL);
    return status;
}

/* The lock of everybody who makes this graph; its file is one of the graph's own. */
static sluice_status take_init_lock(pf_volume *volume, lk_lockfile **ret_lock, sluice_error *err)
{
    pf_stat stat;
    pf_file *file = NULL;
    sluice_error local = {0};

    if (pf_stat_path(volume, "locks", &stat, NULL) != SLUICE_OK) {
        sluice_status status = pf_make_folder(volume, "locks", &local);
        if (status != SLUICE_OK && status != SLUICE_ALREADY_EXISTS) {
            if (err)
                *err = local;
            return status;
        }
    }
    PF_TRY(open_or_create(volume, ST_GRAPH_LOCKS, &file, err));
    PF_TRY(pf_close(file, err));
    PF_TRY(lk_lockfile_open(volume, ST_GRAPH_LOCKS, ret_lock, err));
    return lk_take(*ret_lock, ST_GRAPH_INIT, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(INIT_WAIT_MS), err);
}

/* The opening record of a segment behind main's first, which a schema of very many types needs. */
static sluice_status encode_first(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    (void)context;
    return st_opening_build_first(manifest, attachments, err);
}

/* Branch main at generation 1. */
static sluice_status make_main(pf_volume *volume, const st_schema *schema, const pf_sha256 *identity, sluice_error *err)
{
    static const pf_sha256 nothing;
    pf_buffer opening = {0}, opened = {0}, manifest = {0}, attachments = {0}, ref = {0};
    char folder[64], file_name[80], path[96];
    st_log *log = NULL;
    st_opening_source source = {.encode = encode_first};
    st_append_outcome outcome;
    pf_sha256 digest;
    pf_id commit = pf_id_new();
    sluice_status status;

    PF_GOTO(status, done, st_opening_build_first(&opening, &opened, err));
    PF_GOTO(status, done, st_branch_make_on(volume, ST_MAIN_INCARNATION, 0, &nothing, &opening, &opened, err));
    PF_GOTO(status, done,
            st_generation_build_first(schema, identity, ST_ROW_BLOCK, &commit, &manifest, &attachments, err));
    st_branch_folder(ST_MAIN_INCARNATION, folder);
    PF_GOTO(status, done, st_log_open(volume, folder, ST_MAIN_INCARNATION, PF_WRITE, &log, err));
    PF_GOTO(status, done, st_log_append(log, &manifest, &attachments, &source, &outcome, &digest, err));
    PF_GOTO(status, done, st_log_sync_mark(log, err));
    PF_GOTO(status, done, st_log_check_suspect(log, err)); /* a mark that was not written: make it afresh */
    PF_GOTO(status, done, st_ref_encode(ST_MAIN_BRANCH, ST_MAIN_INCARNATION, &ref, err));
    st_ref_file_name(ST_MAIN_BRANCH, file_name);
    (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", file_name);
    PF_GOTO(status, done, st_make_file(volume, path, ref.data, ref.length, err));
    PF_GOTO(status, done, pf_sync_dir(volume, ST_REFS_FOLDER, err));
done:
    st_log_close(log);
    pf_buffer_free(&opening);
    pf_buffer_free(&opened);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    pf_buffer_free(&ref);
    return status;
}

/* Everything but FORMAT, durable. */
static sluice_status make_all(pf_volume *volume, st_schema *schema, const st_graph_info *info, sluice_error *err)
{
    st_control control = {.next_table = ST_FIRST_TABLE,
                          .next_property = 1,
                          .next_incarnation = ST_MAIN_INCARNATION + 1,
                          .next_row_block = 2};
    pf_sha256 identity;

    PF_TRY(st_layout_clear(volume, err));
    PF_TRY(st_layout_make(volume, err));
    PF_TRY(PF_FAILPOINT(INIT_AFTER_LAYOUT, err));
    st_schema_assign_ids(schema, &control.next_table, &control.next_property);
    for (uint32_t i = 0; i < schema->type_count; i++)
        PF_TRY(st_table_make_folders(volume, schema->types[i].table, err));
    PF_TRY(st_schema_store(volume, schema, &identity, err));
    PF_TRY(st_info_write(volume, info, err));
    PF_TRY(st_control_make(volume, &control, err));
    PF_TRY(make_main(volume, schema, &identity, err));
    return pf_sync_dir(volume, "", err);
}

/* The commit point. Whatever goes wrong from here on, a graph that stands is never taken down again. */
static sluice_status commit(pf_volume *volume, sluice_error *err)
{
    pf_stat stat;
    sluice_error local = {0};

    PF_TRY(PF_FAILPOINT(INIT_BEFORE_PUBLISH, err));
    sluice_status status = pf_publish(volume, ST_FORMAT_NEW, ST_FORMAT_FILE, &local);
    /* An error of the rename may come although it was performed; under the init lock FORMAT can only be ours. */
    if (status != SLUICE_OK && pf_stat_path(volume, ST_FORMAT_FILE, &stat, NULL) != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    status = PF_FAILPOINT(INIT_AFTER_PUBLISH, err);
    if (status == SLUICE_OK)
        status = pf_sync_dir(volume, "", err);
    if (status != SLUICE_OK && err) {
        err->committed = SLUICE_TRUE;
        err->acknowledged = SLUICE_FALSE;
        pf_hint(err, "the graph is there; the next command that writes makes its name durable");
    }
    return status;
}

sluice_status st_graph_init_on(pf_volume *volume, st_schema *schema, st_write_mode mode, pf_id *ret_graph_id,
                               sluice_error *err)
{
    st_graph_info info = {.id = pf_id_new(), .created_us = pf_wall_us(), .mode = mode};
    lk_lockfile *lock = NULL;
    pf_stat stat;
    sluice_status status;

    PF_TRY(check_place(volume, err));
    PF_TRY(begin(volume, err));
    PF_GOTO(status, done, take_init_lock(volume, &lock, err));
    if (pf_stat_path(volume, ST_FORMAT_FILE, &stat, NULL) == SLUICE_OK) { /* another init was faster */
        (void)pf_remove(volume, ST_FORMAT_NEW, NULL);
        status = exists_already(err);
        goto done;
    }
    /* Again under the lock: the other one may have used it up and died, or we created it beside its own. */
    PF_GOTO(status, done, begin(volume, err));
    status = make_all(volume, schema, &info, err);
    if (status != SLUICE_OK) {
        if (err) /* what a log inside says of its own records is not said of the graph */
            err->committed = err->acknowledged = SLUICE_FALSE;
        goto done;
    }
    PF_GOTO(status, done, commit(volume, err));
    *ret_graph_id = info.id;
done:
    lk_lockfile_close(lock);
    return status;
}

/* ---- at a path ---- */

/* The folder above `path`, as text. */
static sluice_status parent_of(const char *path, char **ret_parent, sluice_error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    *ret_parent = length == 0 ? strdup(".") : strndup(path, length);
    return *ret_parent ? SLUICE_OK : pf_fail_memory(err);
}

/* Where evidence of a probe is kept while there is no graph; NULL: nowhere. */
static const char *evidence_folder(void)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    return folder && folder[0] == '/' ? folder : NULL;
}

/* Opens the folder when it is there; else *ret_volume stays NULL. Nothing is changed. */
static sluice_status open_existing(const char *path, bool check, pf_volume **ret_volume, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = pf_volume_open(path, PF_WRITE, ret_volume, &local);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    return check ? check_place(*ret_volume, err) : SLUICE_OK;
}

/* The folder of a graph to be made at `path`, preflight included. */
static sluice_status prepare_folder(const char *path, bool check, pf_volume **ret_volume, sluice_error *err)
{
    pf_filesystem filesystem;
    char *parent = NULL;
    sluice_status status;

    PF_TRY(pf_preflight_classify(path, PF_WRITE, &filesystem, err));
    PF_GOTO(status, done, open_existing(path, check, ret_volume, err));
    PF_GOTO(status, done, parent_of(path, &parent, err));
    PF_GOTO(status, done, pf_preflight_probe(*ret_volume ? path : parent, evidence_folder(), err));
    if (*ret_volume) /* made by somebody, perhaps a moment ago by an init that was killed */
        status = pf_volume_sync_name(*ret_volume, err);
    else
        status = pf_volume_make(path, ret_volume, err);
done:
    free(parent);
    return status;
}

sluice_status st_folder_prepare(const char *path, pf_volume **ret_volume, sluice_error *err)
{
    pf_volume *volume = NULL;
    sluice_status status = prepare_folder(path, false, &volume, err);
    if (status == SLUICE_OK)
        *ret_volume = volume;
    else
        pf_volume_close(volume);
    return status;
}

sluice_status st_graph_init(const char *path, st_schema *schema, st_write_mode mode, pf_id *ret_graph_id,
                            sluice_error *err)
{
    pf_volume *volume = NULL;
    sluice_status status = prepare_folder(path, true, &volume, err);
    if (status == SLUICE_OK)
        status = st_graph_init_on(volume, schema, mode, ret_graph_id, err);
    pf_volume_close(volume);
    return status;
}
