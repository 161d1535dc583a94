/*
 * The conflicts of a merge: what stands in the way, in the order in which it was found; counted beyond what is listed.
 */
#include "coord/merge_job.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define KEY_ROOM 512

const char *co_conflict_kind_name(co_conflict_kind kind)
{
    switch (kind) {
    case CO_CONFLICT_INSERT:
        return "divergent-insert";
    case CO_CONFLICT_UPDATE:
        return "divergent-update";
    case CO_CONFLICT_DELETE:
        return "delete-update";
    case CO_CONFLICT_EDGE:
        return "orphan-edge";
    case CO_CONFLICT_UNIQUE:
        return "unique";
    case CO_CONFLICT_CARDINALITY:
        return "cardinality";
    case CO_CONFLICT_VALUE:
        return "value";
    case CO_CONFLICT_SCHEMA:
        return "schema";
    }
    return "unknown";
}

static void free_conflict(co_conflict *conflict)
{
    free(conflict->type);
    free(conflict->key);
    free(conflict->property);
    free(conflict->text);
}

void mrg_conflicts_drop(co_merge_result *result)
{
    for (uint32_t i = 0; i < result->conflict_count; i++)
        free_conflict(&result->conflicts[i]);
    free(result->conflicts);
    result->conflicts = NULL;
    result->conflict_count = 0;
    result->conflicts_found = 0;
}

static sluice_status add(mrg_job *job, co_conflict_kind kind, const char *type, const char *key, const char *property,
                         const char *text, co_conflict **ret_conflict, sluice_error *err)
{
    co_merge_result *result = job->result;
    *ret_conflict = NULL;
    if (result->conflicts_found++ >= CO_CONFLICTS_MAX)
        return SLUICE_OK;
    co_conflict *conflicts = reallocarray(result->conflicts, (size_t)result->conflict_count + 1, sizeof *conflicts);
    if (!conflicts)
        return pf_fail_memory(err);
    result->conflicts = conflicts;
    co_conflict *conflict = &conflicts[result->conflict_count];
    *conflict = (co_conflict){.kind = kind,
                              .type = strdup(type),
                              .key = key ? strdup(key) : NULL,
                              .property = property ? strdup(property) : NULL,
                              .text = strdup(text)};
    if (!conflict->type || !conflict->text || (key && !conflict->key) || (property && !conflict->property)) {
        free_conflict(conflict);
        return pf_fail_memory(err);
    }
    result->conflict_count++;
    *ret_conflict = conflict;
    return SLUICE_OK;
}

sluice_status mrg_conflict(mrg_job *job, co_conflict_kind kind, const mut_object *object, const char *property,
                           const pf_id *ours, const pf_id *theirs, const char *text, sluice_error *err)
{
    char key[KEY_ROOM];
    co_conflict *conflict = NULL;
    mut_key_text(object, key, sizeof key);
    PF_TRY(add(job, kind, object->type->def->name, key, property, text, &conflict, err));
    if (conflict && ours)
        conflict->ours = *ours;
    if (conflict && theirs)
        conflict->theirs = *theirs;
    return SLUICE_OK;
}

sluice_status mrg_schema_conflict(mrg_job *job, const char *type, const char *property, const char *text,
                                  sluice_error *err)
{
    co_conflict *conflict = NULL;
    PF_TRY(add(job, CO_CONFLICT_SCHEMA, type ? type : "schema", NULL, property, text, &conflict, err));
    if (conflict) {
        conflict->ours = st_snapshot_view(job->mut.write->base)->head;
        conflict->theirs = st_snapshot_view(job->source.snapshot)->head;
    }
    return SLUICE_OK;
}

static co_conflict_kind kind_of(sluice_status code)
{
    if (code == SLUICE_CONSTRAINT_ENDPOINT)
        return CO_CONFLICT_EDGE;
    if (code == SLUICE_CONSTRAINT_UNIQUE)
        return CO_CONFLICT_UNIQUE;
    return code == SLUICE_CONSTRAINT_CARDINALITY ? CO_CONFLICT_CARDINALITY : CO_CONFLICT_VALUE;
}

sluice_status mrg_row_conflict(mrg_job *job, sluice_status code, const char *type, const char *key,
                               const char *property, const pf_id *ours, const char *text, sluice_error *err)
{
    co_conflict *conflict = NULL;
    PF_TRY(add(job, kind_of(code), type, key, property, text, &conflict, err));
    if (conflict) {
        conflict->ours = *ours;
        conflict->theirs = st_snapshot_view(job->source.snapshot)->head;
    }
    return SLUICE_OK;
}

void mrg_on_fault(void *context, uint32_t record, sluice_status code, const char *text)
{
    mrg_job *job = context;
    if (record == 0 || record > job->record_count || job->failed != SLUICE_OK)
        return;
    job->failed = mrg_conflict(job, kind_of(code), job->by_record[record - 1], NULL, NULL, NULL, text, NULL);
}
