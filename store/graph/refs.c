/*
 * Branch refs: refs/<SHA-256 of the name>.json says which incarnation a name stands for, and is the only authority that
 * a branch exists (LESSONS 6).
 *
 * A ref is created exclusively (rename without replace) and never changed; a removed and re-created branch has another
 * incarnation. Whoever relies on a name for writing syncs refs/ first, because its maker may have died before it did;
 * that is needed once per incarnation and handle, and never for main, whose ref was durable before the graph existed.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "platform/sabotage.h"
#include "store/format/document.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REF_FORMAT "sluice-ref/1"
#define REF_MAX    4096u

void st_ref_file_name(const char *name, char ret_name[80])
{
    char text[PF_SHA256_TEXT];
    pf_sha256 digest = pf_sha256_of(name, strlen(name));
    pf_sha256_text(&digest, text);
    (void)snprintf(ret_name, 80, "%s.json", text);
}

sluice_status st_ref_encode(const char *name, uint64_t incarnation, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, REF_FORMAT);
    st_json_name(&json, "name");
    st_json_text(&json, name);
    st_json_name(&json, "incarnation");
    st_json_u64(&json, incarnation);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

/* Reads one ref file; *ret_name is owned by the caller. */
static sluice_status read_ref(pf_volume *volume, const char *file_name, char **ret_name, uint64_t *ret_incarnation,
                              sluice_error *err)
{
    char path[96];
    pf_buffer bytes = {0}, again = {0};
    cJSON *document = NULL;
    const char *name;
    sluice_status status;

    (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", file_name);
    PF_GOTO(status, done, st_document_read(volume, path, REF_MAX, &bytes, err));
    PF_GOTO(status, done, st_json_parse(bytes.data, bytes.length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, REF_FORMAT, err));
    PF_GOTO(status, done, st_json_get_text(document, "name", &name, err));
    PF_GOTO(status, done, st_json_get_u64(document, "incarnation", ret_incarnation, err));
    PF_GOTO(status, done, st_ref_encode(name, *ret_incarnation, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes.data, bytes.length, &again, err));
    char expected[80];
    st_ref_file_name(name, expected);
    if (strcmp(expected, file_name) != 0 || *ret_incarnation == 0 || !st_branch_name_is_valid(name, strlen(name))) {
        status = pf_fail(err, SLUICE_CORRUPT, "refs/%s does not hold the name that it is filed under", file_name);
        goto done;
    }
    *ret_name = strdup(name);
    if (!*ret_name)
        status = pf_fail_memory(err);
done:
    st_json_free(document);
    pf_buffer_free(&bytes);
    pf_buffer_free(&again);
    return status;
}

void st_ref_forget(st_graph *graph)
{
    (void)pf_close(graph->ref.file, NULL); /* only read */
    free(graph->ref.name);
    graph->ref = (struct st_kept_ref){0};
}

/* A ref's file is made once, whole, and goes as a whole: while the one that we have open is the one of that name, it
 * says what it said. An open file's identity cannot come back. */
static bool ref_stands(st_graph *graph, const char *name)
{
    if (!graph->ref.name || strcmp(graph->ref.name, name) != 0)
        return false;
    if (pf_file_check_identity(graph->ref.file, NULL) == SLUICE_OK)
        return true;
    st_ref_forget(graph);
    return false;
}

/* Best effort: opened before it is read, so that it is never newer than what was read. */
static void keep_ref(st_graph *graph, const char *name, const char *file_name)
{
    char path[96];
    st_ref_forget(graph);
    (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", file_name);
    graph->ref.name = strdup(name);
    if (!graph->ref.name || pf_open(graph->volume, path, PF_READ, &graph->ref.file, NULL) != SLUICE_OK)
        st_ref_forget(graph);
}

static sluice_status check_name(const char *name, sluice_error *err)
{
    if (st_branch_name_is_valid(name, strlen(name)))
        return SLUICE_OK;
    return pf_fail_private(
        err, SLUICE_INVALID_NAME, "a branch name is not allowed",
        "\"%s\" is not a branch name: 1 to 255 bytes of UTF-8, no control characters, no \"/\" at an "
        "end or twice, no \"..\"",
        name);
}

static sluice_status no_such_branch(const char *name, sluice_error *err)
{
    return pf_fail_private(err, SLUICE_NOT_FOUND, "there is no such branch", "there is no branch \"%s\"", name);
}

/* This incarnation's ref is durable: it need not be synced again. Without memory for the note it only is once more. */
static void note_durable(st_graph *graph, uint64_t incarnation)
{
    uint64_t *grown = realloc(graph->durable_refs, (graph->durable_count + 1) * sizeof(*grown));
    if (!grown)
        return;
    graph->durable_refs = grown;
    graph->durable_refs[graph->durable_count++] = incarnation;
}

/* The name may have been made by somebody who died before it was durable. */
static sluice_status make_durable(st_graph *graph, uint64_t incarnation, sluice_error *err)
{
    if (graph->access != PF_WRITE || incarnation == ST_MAIN_INCARNATION)
        return SLUICE_OK;
    for (uint32_t i = 0; i < graph->durable_count; i++)
        if (graph->durable_refs[i] == incarnation)
            return SLUICE_OK;
    if (!PF_SABOTAGE(ref_believed))
        PF_TRY(pf_sync_dir(graph->volume, ST_REFS_FOLDER, err));
    note_durable(graph, incarnation);
    return SLUICE_OK;
}

sluice_status st_ref_read(st_graph *graph, const char *name, uint64_t *ret_incarnation, sluice_error *err)
{
    char file_name[80];
    char *inner = NULL;
    sluice_error local = {0};

    PF_TRY(check_name(name, err));
    if (graph->cut) {
        const st_cut_ref *ref = st_cut_find_ref(graph->cut, name);
        if (ref)
            *ret_incarnation = ref->incarnation;
        return ref ? SLUICE_OK : no_such_branch(name, err);
    }
    if (ref_stands(graph, name)) {
        *ret_incarnation = graph->ref.incarnation;
        return make_durable(graph, *ret_incarnation, err);
    }
    st_ref_file_name(name, file_name);
    keep_ref(graph, name, file_name);
    sluice_status status = read_ref(graph->volume, file_name, &inner, ret_incarnation, &local);
    if (status == SLUICE_OK && strcmp(inner, name) == 0)
        graph->ref.incarnation = *ret_incarnation;
    else
        st_ref_forget(graph);
    if (status == SLUICE_NOT_FOUND) {
        /* Who removed it may have died before that was durable; a writer may rely on the absence too. */
        if (graph->access == PF_WRITE)
            PF_TRY(pf_sync_dir(graph->volume, ST_REFS_FOLDER, err));
        return no_such_branch(name, err);
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    /* Two names of one digest do not exist; an inner name that differs would be damage. */
    if (strcmp(inner, name) != 0)
        status = pf_fail(err, SLUICE_CORRUPT, "refs/%s holds another name", file_name);
    free(inner);
    return status == SLUICE_OK ? make_durable(graph, *ret_incarnation, err) : status;
}

sluice_status st_refs_sync(st_graph *graph, sluice_error *err)
{
    return pf_sync_dir(graph->volume, ST_REFS_FOLDER, err);
}

static bool holds_incarnation(st_graph *graph, const char *file_name, uint64_t incarnation)
{
    char *inner = NULL;
    uint64_t holds = 0;
    sluice_status status = read_ref(graph->volume, file_name, &inner, &holds, NULL);
    free(inner);
    return status == SLUICE_OK && holds == incarnation;
}

sluice_status st_ref_create(st_graph *graph, const char *name, uint64_t incarnation, sluice_error *err)
{
    char file_name[80];
    pf_buffer bytes = {0};
    uint64_t holds;
    sluice_error local = {0};
    sluice_status status;

    PF_ASSERT(incarnation > 0);
    PF_TRY(check_name(name, err));
    st_ref_file_name(name, file_name);
    PF_GOTO(status, done, st_ref_encode(name, incarnation, &bytes, err));
    status = st_document_create(graph->volume, ST_REFS_FOLDER, file_name, bytes.data, bytes.length, &local);
    if (status == SLUICE_OK) {
        note_durable(graph, incarnation);
    } else if (status == SLUICE_ALREADY_EXISTS) {
        PF_GOTO(status, done, st_ref_read(graph, name, &holds, err));
        if (holds != incarnation) {
            status = pf_fail_private(err, SLUICE_ALREADY_EXISTS, "the branch exists already",
                                     "the branch \"%s\" exists already", name);
            pf_hint(err, "give another name, or use that one: `sluice branch list GRAPH` lists them");
            goto done;
        }
        /* Ours, from before a lost answer: incarnations are minted once. */
        PF_GOTO(status, done, pf_sync_dir(graph->volume, ST_REFS_FOLDER, err));
    } else if (err) {
        *err = local;
        if (holds_incarnation(graph, file_name, incarnation)) {
            err->committed = SLUICE_TRUE;
            err->acknowledged = SLUICE_FALSE;
        }
    }
done:
    pf_buffer_free(&bytes);
    return status;
}

sluice_status st_ref_remove(st_graph *graph, const char *name, uint64_t incarnation, sluice_error *err)
{
    char file_name[80], path[96];
    uint64_t holds;
    pf_stat stat;
    sluice_error local = {0};

    PF_TRY(st_ref_read(graph, name, &holds, err));
    if (holds != incarnation)
        return pf_fail_private(err, SLUICE_WRITE_CONFLICT, "the branch was deleted and made again",
                               "the branch \"%s\" was deleted and made again", name);
    st_ref_file_name(name, file_name);
    (void)snprintf(path, sizeof(path), ST_REFS_FOLDER "/%s", file_name);
    sluice_status status = pf_remove(graph->volume, path, &local);
    if (status != SLUICE_OK && pf_stat_path(graph->volume, path, &stat, NULL) != SLUICE_NOT_FOUND) {
        if (err)
            *err = local;
        return status;
    }
    status = pf_sync_dir(graph->volume, ST_REFS_FOLDER, err);
    if (status != SLUICE_OK && err) {
        err->committed = SLUICE_TRUE;
        err->acknowledged = SLUICE_FALSE;
    }
    return status;
}

/* ---- listing ---- */

typedef struct listing {
    pf_volume *volume;
    st_ref_fn *each;
    void *context;
} listing;

static bool is_ref_file(const char *name)
{
    char digest[PF_SHA256_TEXT];
    pf_sha256 parsed;
    if (strlen(name) != PF_SHA256_TEXT - 1 + sizeof(".json") - 1)
        return false;
    memcpy(digest, name, PF_SHA256_TEXT - 1);
    digest[PF_SHA256_TEXT - 1] = '\0';
    return pf_sha256_parse(digest, &parsed) && strcmp(name + PF_SHA256_TEXT - 1, ".json") == 0;
}

static sluice_status list_one(void *context, const char *file_name, pf_kind kind, sluice_error *err)
{
    listing *list = context;
    char *name = NULL;
    uint64_t incarnation = 0;
    sluice_error local = {0};

    if (!is_ref_file(file_name))
        return SLUICE_OK;
    sluice_status status =
        kind == PF_KIND_FILE ? read_ref(list->volume, file_name, &name, &incarnation, &local) : SLUICE_CORRUPT;
    if (status == SLUICE_NOT_FOUND) /* deleted meanwhile */
        return SLUICE_OK;
    if (status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT || status == SLUICE_PERMISSION)
        return list->each(list->context, NULL, 0, err);
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    status = list->each(list->context, name, incarnation, err);
    free(name);
    return status;
}

sluice_status st_ref_list(st_graph *graph, st_ref_fn *each, void *context, sluice_error *err)
{
    listing list = {.volume = graph->volume, .each = each, .context = context};
    for (uint32_t i = 0; graph->cut && i < graph->cut->ref_count; i++)
        PF_TRY(each(context, graph->cut->refs[i].name, graph->cut->refs[i].incarnation, err));
    if (graph->cut)
        return SLUICE_OK;
    return pf_list(graph->volume, ST_REFS_FOLDER, list_one, &list, err);
}
