/*
 * The control state as a document: the manifest of each generation of control/'s log, and what its opening records
 * carry. Small and bounded, so that every record can hold all of it.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

#define CONTROL_FORMAT "sluice-control/1"

static void encode_receipt(st_json *json, const st_control_receipt *receipt)
{
    st_json_object(json);
    st_json_name(json, "operation");
    st_json_id(json, &receipt->operation);
    st_json_name(json, "request");
    st_json_sha256(json, &receipt->request);
    st_json_name(json, "kind");
    st_json_text(json, receipt->kind);
    st_json_name(json, "ref");
    st_json_sha256(json, &receipt->ref);
    st_json_name(json, "incarnation");
    st_json_u64(json, receipt->incarnation);
    st_json_name(json, "commit");
    st_json_id(json, &receipt->commit);
    st_json_name(json, "generation");
    st_json_u64(json, receipt->generation);
    st_json_name(json, "index");
    st_json_u64(json, receipt->index);
    st_json_name(json, "done");
    st_json_bool(json, receipt->done);
    st_json_name(json, "time");
    st_json_u64(json, (uint64_t)receipt->time_us);
    st_json_object_end(json);
}

static void encode_checkpoint(st_json *json, const st_checkpoint *checkpoint)
{
    st_json_object(json);
    st_json_name(json, "name");
    st_json_text(json, checkpoint->name);
    st_json_name(json, "incarnation");
    st_json_u64(json, checkpoint->incarnation);
    st_json_name(json, "generation");
    st_json_u64(json, checkpoint->generation);
    st_json_name(json, "index");
    st_json_u64(json, checkpoint->index);
    st_json_name(json, "commit");
    st_json_id(json, &checkpoint->commit);
    st_json_name(json, "time");
    st_json_u64(json, (uint64_t)checkpoint->time_us);
    st_json_object_end(json);
}

sluice_status st_control_encode(const st_control *control, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, CONTROL_FORMAT);
    st_json_name(&json, "next_table");
    st_json_u64(&json, control->next_table);
    st_json_name(&json, "next_property");
    st_json_u64(&json, control->next_property);
    st_json_name(&json, "next_incarnation");
    st_json_u64(&json, control->next_incarnation);
    st_json_name(&json, "next_row_block");
    st_json_u64(&json, control->next_row_block);
    st_boundaries_encode(&json, control);
    st_json_name(&json, "voided_epochs");
    st_json_array(&json);
    for (uint32_t i = 0; i < control->voided_count; i++)
        st_json_id(&json, &control->voided_epochs[i]);
    st_json_array_end(&json);
    st_json_name(&json, "checkpoints");
    st_json_array(&json);
    for (uint32_t i = 0; i < control->checkpoint_count; i++)
        encode_checkpoint(&json, &control->checkpoints[i]);
    st_json_array_end(&json);
    st_json_name(&json, "receipts");
    st_json_array(&json);
    for (uint32_t i = 0; i < control->receipt_count; i++)
        encode_receipt(&json, &control->receipts[i]);
    st_json_array_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status decode_voided(const cJSON *document, st_control *control, sluice_error *err)
{
    const cJSON *list, *item;
    PF_TRY(st_json_get_array(document, "voided_epochs", &list, err));
    cJSON_ArrayForEach(item, list)
    {
        pf_id epoch;
        char text[PF_ID_TEXT];
        if (!cJSON_IsString(item) || !pf_id_parse(item->valuestring, &epoch))
            return pf_fail(err, SLUICE_CORRUPT, "control: a voided epoch is not an id");
        pf_id_text(&epoch, text);
        if (strcmp(text, item->valuestring) != 0 || control->voided_count == ST_VOIDED_MAX)
            return pf_fail(err, SLUICE_CORRUPT, "control: the voided epochs are not as we write them");
        PF_TRY(st_control_add_voided(control, &epoch, err));
    }
    return SLUICE_OK;
}

static sluice_status decode_receipts(const cJSON *document, st_control *control, sluice_error *err)
{
    const cJSON *list, *item;
    PF_TRY(st_json_get_array(document, "receipts", &list, err));
    cJSON_ArrayForEach(item, list)
    {
        st_control_receipt receipt = {0};
        const char *kind;
        uint64_t time, index;
        PF_TRY(st_json_get_id(item, "operation", &receipt.operation, err));
        PF_TRY(st_json_get_sha256(item, "request", &receipt.request, err));
        PF_TRY(st_json_get_text(item, "kind", &kind, err));
        PF_TRY(st_json_get_sha256(item, "ref", &receipt.ref, err));
        PF_TRY(st_json_get_u64(item, "incarnation", &receipt.incarnation, err));
        PF_TRY(st_json_get_id(item, "commit", &receipt.commit, err));
        PF_TRY(st_json_get_u64(item, "generation", &receipt.generation, err));
        PF_TRY(st_json_get_u64(item, "index", &index, err));
        PF_TRY(st_json_get_bool(item, "done", &receipt.done, err));
        PF_TRY(st_json_get_u64(item, "time", &time, err));
        if (strlen(kind) >= sizeof(receipt.kind) || index > UINT32_MAX ||
            control->receipt_count == ST_CONTROL_RECEIPTS_MAX)
            return pf_fail(err, SLUICE_CORRUPT, "control: the receipts are not as we write them");
        memcpy(receipt.kind, kind, strlen(kind) + 1);
        receipt.index = (uint32_t)index;
        receipt.time_us = (int64_t)time;
        PF_TRY(st_control_add_receipt(control, &receipt, err));
    }
    return SLUICE_OK;
}

static sluice_status decode_checkpoints(const cJSON *document, st_control *control, sluice_error *err)
{
    const cJSON *list, *item;
    PF_TRY(st_json_get_array(document, "checkpoints", &list, err));
    cJSON_ArrayForEach(item, list)
    {
        st_checkpoint checkpoint = {0};
        const char *name;
        uint64_t time, index;
        PF_TRY(st_json_get_text(item, "name", &name, err));
        PF_TRY(st_json_get_u64(item, "incarnation", &checkpoint.incarnation, err));
        PF_TRY(st_json_get_u64(item, "generation", &checkpoint.generation, err));
        PF_TRY(st_json_get_u64(item, "index", &index, err));
        PF_TRY(st_json_get_id(item, "commit", &checkpoint.commit, err));
        PF_TRY(st_json_get_u64(item, "time", &time, err));
        checkpoint.index = (uint32_t)index;
        checkpoint.time_us = (int64_t)time;
        union { /* the name is copied, never changed */
            const char *from;
            char *name;
        } borrowed = {.from = name};
        checkpoint.name = borrowed.name;
        if (index > UINT32_MAX || st_control_find_checkpoint(control, name))
            return pf_fail(err, SLUICE_CORRUPT, "control: the checkpoints are not as we write them");
        PF_TRY(st_control_add_checkpoint(control, &checkpoint, err));
    }
    return SLUICE_OK;
}

sluice_status st_control_decode(const void *bytes, size_t length, st_control *ret_control, sluice_error *err)
{
    st_control control = {0};
    cJSON *document = NULL;
    pf_buffer again = {0};
    sluice_status status;

    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, CONTROL_FORMAT, err));
    PF_GOTO(status, done, st_json_get_u64(document, "next_table", &control.next_table, err));
    PF_GOTO(status, done, st_json_get_u64(document, "next_property", &control.next_property, err));
    PF_GOTO(status, done, st_json_get_u64(document, "next_incarnation", &control.next_incarnation, err));
    PF_GOTO(status, done, st_json_get_u64(document, "next_row_block", &control.next_row_block, err));
    PF_GOTO(status, done, st_boundaries_decode(document, &control, err));
    PF_GOTO(status, done, decode_voided(document, &control, err));
    PF_GOTO(status, done, decode_checkpoints(document, &control, err));
    PF_GOTO(status, done, decode_receipts(document, &control, err));
    PF_GOTO(status, done, st_control_encode(&control, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_control = control;
    control = (st_control){0};
done:
    st_control_free(&control);
    pf_buffer_free(&again);
    st_json_free(document);
    return status;
}

void st_control_free(st_control *control)
{
    free(control->voided_epochs);
    free(control->receipts);
    for (uint32_t i = 0; i < control->checkpoint_count; i++)
        free(control->checkpoints[i].name);
    free(control->checkpoints);
    for (uint32_t i = 0; i < control->boundary_count; i++)
        free(control->boundaries[i].kept);
    free(control->boundaries);
    *control = (st_control){0};
}

/* Room for one more element at the end of a list of `count`, of which at most `max` are kept: the oldest goes. */
static sluice_status make_room(void **list, uint32_t *count, uint32_t max, size_t size, sluice_error *err)
{
    if (*count == max) {
        memmove(*list, (uint8_t *)*list + size, (max - 1) * size);
        --*count;
        return SLUICE_OK;
    }
    void *grown = realloc(*list, (*count + 1) * size);
    if (!grown)
        return pf_fail_memory(err);
    *list = grown;
    return SLUICE_OK;
}

static void drop_receipts_like(st_control *control, const st_control_receipt *receipt)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < control->receipt_count; i++) {
        const st_control_receipt *other = &control->receipts[i];
        if (!pf_id_equal(&other->operation, &receipt->operation) || !pf_sha256_equal(&other->ref, &receipt->ref))
            control->receipts[kept++] = *other;
    }
    control->receipt_count = kept;
}

sluice_status st_control_add_receipt(st_control *control, const st_control_receipt *receipt, sluice_error *err)
{
    drop_receipts_like(control, receipt);
    void *list = control->receipts;
    sluice_status status = make_room(&list, &control->receipt_count, ST_CONTROL_RECEIPTS_MAX, sizeof(*receipt), err);
    if (status != SLUICE_OK)
        return status;
    control->receipts = list;
    control->receipts[control->receipt_count++] = *receipt;
    return SLUICE_OK;
}

sluice_status st_control_add_voided(st_control *control, const pf_id *epoch, sluice_error *err)
{
    void *list = control->voided_epochs;
    sluice_status status = make_room(&list, &control->voided_count, ST_VOIDED_MAX, sizeof(*epoch), err);
    if (status != SLUICE_OK)
        return status;
    control->voided_epochs = list;
    control->voided_epochs[control->voided_count++] = *epoch;
    return SLUICE_OK;
}

const st_control_receipt *st_control_find_receipt(const st_control *control, const pf_id *operation,
                                                  const pf_sha256 *ref)
{
    for (uint32_t i = control->receipt_count; i-- > 0;)
        if (pf_id_equal(&control->receipts[i].operation, operation) && pf_sha256_equal(&control->receipts[i].ref, ref))
            return &control->receipts[i];
    return NULL;
}

/* The first that is not below the name. */
static uint32_t checkpoint_bound(const st_control *control, const char *name)
{
    uint32_t at = 0;
    while (at < control->checkpoint_count && strcmp(control->checkpoints[at].name, name) < 0)
        at++;
    return at;
}

const st_checkpoint *st_control_find_checkpoint(const st_control *control, const char *name)
{
    uint32_t at = checkpoint_bound(control, name);
    bool found = at < control->checkpoint_count && strcmp(control->checkpoints[at].name, name) == 0;
    return found ? &control->checkpoints[at] : NULL;
}

void st_control_hint_at_checkpoint(const st_control *control, const char *name, sluice_error *err)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < control->checkpoint_count; i++)
        st_nearest_offer(&nearest, control->checkpoints[i].name);
    if (nearest.best)
        pf_hint(err, "did you mean the checkpoint \"%s\"?", nearest.best);
    else
        pf_hint(err, "`sluice checkpoint list GRAPH` lists them");
}

sluice_status st_control_add_checkpoint(st_control *control, const st_checkpoint *checkpoint, sluice_error *err)
{
    uint32_t at = checkpoint_bound(control, checkpoint->name);
    if (st_control_find_checkpoint(control, checkpoint->name))
        return pf_fail_private(err, SLUICE_ALREADY_EXISTS, "a checkpoint of this name exists",
                               "there is a checkpoint \"%s\" already", checkpoint->name);
    if (control->checkpoint_count == ST_CHECKPOINTS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a graph has at most %u checkpoints", ST_CHECKPOINTS_MAX);
    st_checkpoint *grown = realloc(control->checkpoints, ((size_t)control->checkpoint_count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    control->checkpoints = grown;
    char *name = strdup(checkpoint->name);
    if (!name)
        return pf_fail_memory(err);
    memmove(grown + at + 1, grown + at, (control->checkpoint_count - at) * sizeof(*grown));
    grown[at] = *checkpoint;
    grown[at].name = name;
    control->checkpoint_count++;
    return SLUICE_OK;
}

bool st_control_drop_checkpoint(st_control *control, const char *name)
{
    uint32_t at = checkpoint_bound(control, name);
    if (!st_control_find_checkpoint(control, name))
        return false;
    free(control->checkpoints[at].name);
    control->checkpoint_count--;
    memmove(control->checkpoints + at, control->checkpoints + at + 1,
            (control->checkpoint_count - at) * sizeof(*control->checkpoints));
    return true;
}

void st_control_mark_done(st_control *control, uint64_t incarnation, const char *but)
{
    for (uint32_t i = 0; i < control->receipt_count; i++)
        control->receipts[i].done |=
            control->receipts[i].incarnation == incarnation && strcmp(control->receipts[i].kind, but) != 0;
}

bool st_control_is_voided(const st_control *control, const pf_id *epoch)
{
    for (uint32_t i = 0; i < control->voided_count; i++)
        if (pf_id_equal(&control->voided_epochs[i], epoch))
            return true;
    return false;
}
