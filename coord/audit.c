/*
 * Audit rows: written once, listed for people (coord/audit.h).
 */
#include "coord/audit.h"
#include "store/format/document.h"
#include "store/format/json.h"
#include <stdio.h>
#include <string.h>

#define FOLDER  "audit"
#define FORMAT  "sluice-audit/1"
#define ROW_MAX 1024u

static const char *const outcomes[] = {[CO_OUTCOME_COMMITTED] = "committed",
                                       [CO_OUTCOME_DISCARDED] = "discarded",
                                       [CO_OUTCOME_QUARANTINED] = "quarantined"};

const char *co_outcome_name(co_outcome outcome)
{
    return outcomes[outcome];
}

static void row_path(const pf_id *operation, co_outcome outcome, char ret_path[96])
{
    char id[PF_ID_TEXT];
    pf_id_text(operation, id);
    (void)snprintf(ret_path, 96, FOLDER "/%s-%s.json", id, outcomes[outcome]);
}

static sluice_status encode(const co_audit_row *row, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, FORMAT);
    st_json_name(&json, "operation");
    st_json_id(&json, &row->operation);
    st_json_name(&json, "commit");
    st_json_id(&json, &row->commit);
    st_json_name(&json, "outcome");
    st_json_text(&json, outcomes[row->outcome]);
    st_json_name(&json, "kind");
    st_json_text(&json, row->kind);
    st_json_name(&json, "classification");
    st_json_text(&json, row->classification);
    st_json_name(&json, "time_us");
    st_json_number(&json, row->time_us);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status is_there(pf_volume *volume, const char *path, bool *ret_there, sluice_error *err)
{
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(volume, path, &stat, &stat_error);
    *ret_there = status == SLUICE_OK;
    if (status == SLUICE_OK || status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (err)
        *err = stat_error;
    return status;
}

sluice_status co_audit_write(st_graph *graph, lk_lockfile *graph_locks, const co_audit_row *row, pf_deadline deadline,
                             sluice_error *err)
{
    pf_volume *volume = st_graph_volume(graph);
    pf_buffer bytes = {0};
    char path[96];
    bool there = false;
    sluice_error create_error = {0};
    sluice_status status;
    row_path(&row->operation, row->outcome, path);
    PF_GOTO(status, done, is_there(volume, path, &there, err));
    if (there) { /* perhaps by somebody who died before its name was durable */
        status = pf_sync_dir(volume, FOLDER, err);
        goto done;
    }
    PF_GOTO(status, done, encode(row, &bytes, err));
    PF_GOTO(status, done, lk_take(graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, deadline, err));
    status = st_document_create(volume, FOLDER, path + strlen(FOLDER "/"), bytes.data, bytes.length, &create_error);
    lk_release(graph_locks, LK_GRAPH_RECLAIM);
    if (status == SLUICE_ALREADY_EXISTS)
        status = pf_sync_dir(volume, FOLDER, err);
    else if (status != SLUICE_OK && err)
        *err = create_error;
done:
    pf_buffer_free(&bytes);
    return status;
}

sluice_status co_audit_exists(st_graph *graph, const pf_id *operation, co_outcome outcome, bool *ret_exists,
                              sluice_error *err)
{
    char path[96];
    row_path(operation, outcome, path);
    return is_there(st_graph_volume(graph), path, ret_exists, err);
}

static sluice_status decode(const void *bytes, size_t length, co_audit_row *ret_row, sluice_error *err)
{
    cJSON *document = NULL;
    const char *outcome = NULL, *kind = NULL, *classification = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, FORMAT, err));
    PF_GOTO(status, done, st_json_get_id(document, "operation", &ret_row->operation, err));
    PF_GOTO(status, done, st_json_get_id(document, "commit", &ret_row->commit, err));
    PF_GOTO(status, done, st_json_get_text(document, "outcome", &outcome, err));
    PF_GOTO(status, done, st_json_get_text(document, "kind", &kind, err));
    PF_GOTO(status, done, st_json_get_text(document, "classification", &classification, err));
    PF_GOTO(status, done, st_json_get_number(document, "time_us", &ret_row->time_us, err));
    size_t known = 0, count = sizeof outcomes / sizeof outcomes[0];
    while (known < count && strcmp(outcomes[known], outcome) != 0)
        known++;
    if (known == count || strlen(kind) >= sizeof ret_row->kind ||
        strlen(classification) >= sizeof ret_row->classification) {
        status = pf_fail(err, SLUICE_CORRUPT, "an audit row is damaged");
        goto done;
    }
    ret_row->outcome = (co_outcome)known;
    (void)snprintf(ret_row->kind, sizeof ret_row->kind, "%s", kind);
    (void)snprintf(ret_row->classification, sizeof ret_row->classification, "%s", classification);
done:
    st_json_free(document);
    return status;
}

typedef struct row_listing {
    st_graph *graph;
    co_audit_fn *each;
    void *context;
} row_listing;

static sluice_status list_one(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const row_listing *listing = context;
    size_t length = strlen(name);
    char path[96];
    pf_buffer bytes = {0};
    co_audit_row row = {0};
    if (kind != PF_KIND_FILE || length < 6 || length > 80 || strcmp(name + length - 5, ".json") != 0)
        return SLUICE_OK;
    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    /* Advisory: a row that cannot be read denies nothing (L-050). */
    bool good = st_document_read(st_graph_volume(listing->graph), path, ROW_MAX, &bytes, NULL) == SLUICE_OK &&
                decode(bytes.data, bytes.length, &row, NULL) == SLUICE_OK;
    pf_buffer_free(&bytes);
    return good ? listing->each(listing->context, &row, err) : SLUICE_OK;
}

sluice_status co_audit_list(st_graph *graph, co_audit_fn *each, void *context, sluice_error *err)
{
    row_listing listing = {graph, each, context};
    sluice_error list_error = {0};
    sluice_status status = pf_list(st_graph_volume(graph), FOLDER, list_one, &listing, &list_error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK && err)
        *err = list_error;
    return status;
}
