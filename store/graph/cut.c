/*
 * Cuts in memory and on disk, and taking one (store/graph/cut.h).
 *
 * Taking: all publish locks are held at once for as long as it takes to read where each log ends, in the order of all
 * locks (branches by incarnation, control last). On a handle for reading no lock is taken: all ends are read twice, and
 * a pass that finds none moved was a moment at which all of them stood.
 */
#include "store/graph/cut.h"
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_FORMAT "sluice-backup/1"
#define PASSES_MAX 1000 /* of a reader who finds logs that move */

void st_cut_free(st_cut *cut)
{
    for (uint32_t i = 0; i < cut->ref_count; i++)
        free(cut->refs[i].name);
    free(cut->refs);
    free(cut->logs);
    *cut = (st_cut){0};
}

sluice_status st_cut_add_ref(st_cut *cut, const char *name, uint64_t incarnation, sluice_error *err)
{
    st_cut_ref *grown = realloc(cut->refs, ((size_t)cut->ref_count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    cut->refs = grown;
    grown[cut->ref_count] = (st_cut_ref){.name = strdup(name), .incarnation = incarnation};
    if (!grown[cut->ref_count].name)
        return pf_fail_memory(err);
    cut->ref_count++;
    return SLUICE_OK;
}

sluice_status st_cut_add_log(st_cut *cut, const st_log_cut *log, sluice_error *err)
{
    st_log_cut *grown = realloc(cut->logs, ((size_t)cut->log_count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    cut->logs = grown;
    grown[cut->log_count++] = *log;
    return SLUICE_OK;
}

const st_log_cut *st_cut_find_log(const st_cut *cut, uint64_t incarnation)
{
    for (uint32_t i = 0; i < cut->log_count; i++)
        if (cut->logs[i].incarnation == incarnation)
            return &cut->logs[i];
    return NULL;
}

const st_cut_ref *st_cut_find_ref(const st_cut *cut, const char *name)
{
    for (uint32_t i = 0; i < cut->ref_count; i++)
        if (strcmp(cut->refs[i].name, name) == 0)
            return &cut->refs[i];
    return NULL;
}

/* ---- the document ---- */

sluice_status st_cut_encode(const st_cut *cut, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, CUT_FORMAT);
    st_json_name(&json, "graph");
    st_json_id(&json, &cut->graph);
    st_json_name(&json, "refs");
    st_json_array(&json);
    for (uint32_t i = 0; i < cut->ref_count; i++) {
        st_json_object(&json);
        st_json_name(&json, "name");
        st_json_text(&json, cut->refs[i].name);
        st_json_name(&json, "incarnation");
        st_json_u64(&json, cut->refs[i].incarnation);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_name(&json, "logs");
    st_json_array(&json);
    for (uint32_t i = 0; i < cut->log_count; i++) {
        const st_log_cut *log = &cut->logs[i];
        st_json_object(&json);
        st_json_name(&json, "incarnation");
        st_json_u64(&json, log->incarnation);
        st_json_name(&json, "segment");
        st_json_u64(&json, log->segment);
        st_json_name(&json, "opening");
        st_json_sha256(&json, &log->opening);
        st_json_name(&json, "number");
        st_json_u64(&json, log->number);
        st_json_name(&json, "digest");
        st_json_sha256(&json, &log->digest);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status decode_refs(const cJSON *array, st_cut *cut, sluice_error *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        const char *name;
        uint64_t incarnation;
        PF_TRY(st_json_get_text(item, "name", &name, err));
        PF_TRY(st_json_get_u64(item, "incarnation", &incarnation, err));
        if (!st_branch_name_is_valid(name, strlen(name)) || incarnation == 0)
            return pf_fail(err, SLUICE_CORRUPT, "a backup's document holds what is no branch");
        PF_TRY(st_cut_add_ref(cut, name, incarnation, err));
    }
    return SLUICE_OK;
}

static sluice_status decode_logs(const cJSON *array, st_cut *cut, sluice_error *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        st_log_cut log = {0};
        PF_TRY(st_json_get_u64(item, "incarnation", &log.incarnation, err));
        PF_TRY(st_json_get_u64(item, "segment", &log.segment, err));
        PF_TRY(st_json_get_sha256(item, "opening", &log.opening, err));
        PF_TRY(st_json_get_u64(item, "number", &log.number, err));
        PF_TRY(st_json_get_sha256(item, "digest", &log.digest, err));
        PF_TRY(st_cut_add_log(cut, &log, err));
    }
    return SLUICE_OK;
}

sluice_status st_cut_decode(const void *bytes, size_t length, st_cut *ret_cut, sluice_error *err)
{
    st_cut cut = {0};
    pf_buffer again = {0};
    cJSON *document = NULL;
    const cJSON *array;
    sluice_status status;

    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, CUT_FORMAT, err));
    PF_GOTO(status, done, st_json_get_id(document, "graph", &cut.graph, err));
    PF_GOTO(status, done, st_json_get_array(document, "refs", &array, err));
    PF_GOTO(status, done, decode_refs(array, &cut, err));
    PF_GOTO(status, done, st_json_get_array(document, "logs", &array, err));
    PF_GOTO(status, done, decode_logs(array, &cut, err));
    PF_GOTO(status, done, st_cut_encode(&cut, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_cut = cut;
    cut = (st_cut){0};
done:
    st_cut_free(&cut);
    st_json_free(document);
    pf_buffer_free(&again);
    return status;
}

/* ---- taking ---- */

static sluice_status note_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    if (!name)
        return pf_fail(err, SLUICE_CORRUPT, "a branch ref cannot be read");
    return st_cut_add_ref(context, name, incarnation, err);
}

/* The log of incarnation 0 is control/'s. */
static sluice_status open_log(st_graph *graph, uint64_t incarnation, st_log **ret_log, sluice_error *err)
{
    return incarnation ? st_graph_log(graph, incarnation, ret_log, err) : st_control_log(graph, ret_log, err);
}

static sluice_status add_end(st_graph *graph, uint64_t incarnation, st_cut *cut, sluice_error *err)
{
    st_log *log = NULL;
    PF_TRY(open_log(graph, incarnation, &log, err));
    PF_TRY(graph->access == PF_WRITE ? st_log_settle(log, err) : st_log_refresh(log, err));
    sluice_status status = st_log_check_suspect(log, err);
    if (status == SLUICE_SUSPECT)
        pf_hint(err, "`sluice recover GRAPH` looks at the medium and heals the log; then take the backup again");
    PF_TRY(status);
    st_log_cut end = st_log_cut_of(log);
    return st_cut_add_log(cut, &end, err);
}

/* The publish lock of one log; kept until the handle is closed. */
static sluice_status hold_publish(st_graph *graph, uint64_t incarnation, pf_deadline deadline, lk_lockfile **ret_held,
                                  sluice_error *err)
{
    char path[80] = "control/locks", folder[64];
    if (incarnation) {
        st_branch_folder(incarnation, folder);
        (void)snprintf(path, sizeof(path), "%s/locks", folder);
    }
    PF_TRY(lk_lockfile_open(graph->volume, path, ret_held, err));
    return lk_take(*ret_held, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, deadline, err);
}

static sluice_status take_locked(st_graph *graph, const uint64_t *incarnations, uint32_t count, pf_deadline deadline,
                                 st_cut *cut, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    lk_lockfile **held = calloc((size_t)count + 1, sizeof(*held));
    if (!held)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i <= count && status == SLUICE_OK; i++)
        status = hold_publish(graph, i < count ? incarnations[i] : 0, deadline, &held[i], err);
    for (uint32_t i = 0; i <= count && status == SLUICE_OK; i++)
        status = add_end(graph, i < count ? incarnations[i] : 0, cut, err);
    for (uint32_t i = count + 1; i-- > 0;)
        lk_lockfile_close(held[i]);
    free(held);
    return status;
}

static bool same_logs(const st_cut *a, const st_cut *b)
{
    if (a->log_count != b->log_count)
        return false;
    for (uint32_t i = 0; i < a->log_count; i++)
        if (a->logs[i].incarnation != b->logs[i].incarnation || a->logs[i].number != b->logs[i].number ||
            a->logs[i].segment != b->logs[i].segment || !pf_sha256_equal(&a->logs[i].digest, &b->logs[i].digest))
            return false;
    return true;
}

static sluice_status take_reading(st_graph *graph, const uint64_t *incarnations, uint32_t count, st_cut *cut,
                                  sluice_error *err)
{
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        st_cut now = {0};
        sluice_status status = SLUICE_OK;
        for (uint32_t i = 0; i <= count && status == SLUICE_OK; i++)
            status = add_end(graph, i < count ? incarnations[i] : 0, &now, err);
        bool same = status == SLUICE_OK && pass > 0 && same_logs(cut, &now);
        free(cut->logs);
        cut->logs = now.logs;
        cut->log_count = now.log_count;
        if (same || status != SLUICE_OK)
            return status;
    }
    return pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "the graph does not stand still long enough to be copied");
}

sluice_status st_cut_take(st_graph *graph, const uint64_t *incarnations, uint32_t count, pf_deadline deadline,
                          st_cut *ret_cut, sluice_error *err)
{
    st_cut cut = {.graph = graph->id};
    sluice_status status = st_ref_list(graph, note_ref, &cut, err);
    if (status == SLUICE_OK)
        status = graph->access == PF_WRITE ? take_locked(graph, incarnations, count, deadline, &cut, err)
                                           : take_reading(graph, incarnations, count, &cut, err);
    if (status == SLUICE_OK)
        *ret_cut = cut;
    else
        st_cut_free(&cut);
    return status;
}

sluice_status st_graph_at(pf_volume *volume, const st_cut *cut, st_graph **ret_graph, sluice_error *err)
{
    st_graph *at = calloc(1, sizeof(*at));
    if (!at)
        return pf_fail_memory(err);
    at->volume = volume;
    at->borrowed = true;
    at->access = PF_READ;
    at->id = cut->graph;
    at->cut = cut;
    *ret_graph = at;
    return SLUICE_OK;
}

/* ---- one cut and the next ---- */

static sluice_status diverged(sluice_error *err)
{
    pf_fail(err, SLUICE_ALREADY_EXISTS,
            "the folder holds a copy of this graph that was written to since, or a newer one");
    pf_hint(err, "it is a graph of its own now; back up into another folder");
    return SLUICE_ALREADY_EXISTS;
}

sluice_status st_cut_check_continues(st_graph *later, const st_cut *before, sluice_error *err)
{
    PF_ASSERT(later->cut);
    for (uint32_t i = 0; i < before->log_count; i++) {
        const st_log_cut *had = &before->logs[i], *has = st_cut_find_log(later->cut, had->incarnation);
        st_log *log = NULL;
        pf_sha256 digest;
        bool known = false;
        if (!has)
            continue;
        if (had->number > has->number || had->segment > has->segment ||
            (had->segment == has->segment && !pf_sha256_equal(&had->opening, &has->opening)))
            return diverged(err);
        PF_TRY(open_log(later, had->incarnation, &log, err));
        PF_TRY(st_log_digest_at(log, had->number, &known, &digest, err));
        if (known && !pf_sha256_equal(&digest, &had->digest))
            return diverged(err);
    }
    return SLUICE_OK;
}

sluice_status st_cut_check_untouched(st_graph *graph, const st_cut *stamp, sluice_error *err)
{
    for (uint32_t i = 0; i < stamp->log_count; i++) {
        const st_log_cut *said = &stamp->logs[i];
        char folder[64];
        st_log *log = NULL;
        pf_stat stat;
        st_branch_folder(said->incarnation, folder);
        if (said->incarnation && pf_stat_path(graph->volume, folder, &stat, NULL) == SLUICE_NOT_FOUND)
            continue; /* deleted, and collected since */
        PF_TRY(open_log(graph, said->incarnation, &log, err));
        st_log_cut now = st_log_cut_of(log);
        if (now.number != said->number || !pf_sha256_equal(&now.digest, &said->digest))
            return diverged(err);
    }
    return SLUICE_OK;
}

sluice_status st_cut_copy_log(st_graph *from, uint64_t incarnation, pf_volume *to, const st_log_cut *have,
                              st_copied *copied, sluice_error *err)
{
    char folder[64] = ST_CONTROL_FOLDER, pins[80];
    pf_stat stat;
    st_log *log = NULL;
    if (incarnation)
        st_branch_folder(incarnation, folder);
    PF_TRY(open_log(from, incarnation, &log, err));
    if (!have) /* a copy that was cut short */
        PF_TRY(st_remove_tree(to, folder, err));
    PF_TRY(st_log_copy(log, to, folder, have, copied, err));
    (void)snprintf(pins, sizeof(pins), "%s/pins", folder);
    if (!incarnation || pf_stat_path(to, pins, &stat, NULL) == SLUICE_OK)
        return SLUICE_OK;
    PF_TRY(st_make_file(to, pins, NULL, 0, err));
    return pf_sync_dir(to, folder, err);
}
