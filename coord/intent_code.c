/*
 * The document of an intent: canonical JSON ("sluice-intent/1"). Decoding trusts nothing and re-encodes (F-07, I-1).
 */
#include "coord/intent.h"
#include "platform/check.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "sluice-intent/1"

static const char *const effect_kinds[] = {[AD_EFFECT_CREATE_REF] = "create-ref",
                                           [AD_EFFECT_REMOVE_REF] = "remove-ref",
                                           [AD_EFFECT_MOVE] = "move",
                                           [AD_EFFECT_FOLLOW] = "follow"};

void co_intent_free(co_intent *intent)
{
    free(intent->effects);
    intent->effects = NULL;
    intent->effect_count = 0;
    pf_buffer_free(&intent->plan);
}

void co_plan_path(const co_intent *intent, char ret_path[96])
{
    char id[PF_ID_TEXT];
    pf_id_text(&intent->scope.attempt, id);
    (void)snprintf(ret_path, 96, "attempts/%s/plan-%u", id, intent->plan_number);
}

static void encode_effects(st_json *json, const co_intent *intent)
{
    st_json_name(json, "effects");
    st_json_array(json);
    for (uint32_t i = 0; i < intent->effect_count; i++) {
        const ad_effect *effect = &intent->effects[i];
        st_json_object(json);
        st_json_name(json, "kind");
        st_json_text(json, effect_kinds[effect->kind]);
        st_json_name(json, "branch");
        st_json_text(json, effect->branch);
        st_json_name(json, "incarnation");
        st_json_u64(json, effect->incarnation);
        st_json_name(json, "from");
        st_json_text(json, effect->from);
        st_json_name(json, "to");
        st_json_text(json, effect->to);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static void encode_scope(st_json *json, const co_scope *scope)
{
    st_json_name(json, "operation");
    st_json_id(json, &scope->operation);
    st_json_name(json, "commit");
    st_json_id(json, &scope->commit);
    st_json_name(json, "attempt");
    st_json_id(json, &scope->attempt);
    st_json_name(json, "incarnation");
    st_json_u64(json, scope->incarnation);
    st_json_name(json, "all_tables");
    st_json_bool(json, scope->all);
    st_json_name(json, "tables");
    st_json_array(json);
    for (uint32_t i = 0; i < scope->table_count; i++)
        st_json_u64(json, scope->tables[i]);
    st_json_array_end(json);
}

sluice_status co_intent_encode(const co_intent *intent, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, FORMAT);
    st_json_name(&json, "kind");
    st_json_text(&json, intent->kind);
    st_json_name(&json, "version");
    st_json_number(&json, intent->version);
    encode_scope(&json, &intent->scope);
    st_json_name(&json, "branch");
    st_json_text(&json, intent->branch);
    st_json_name(&json, "epoch");
    st_json_id(&json, &intent->epoch);
    st_json_name(&json, "base_generation");
    st_json_u64(&json, intent->base_generation);
    st_json_name(&json, "base_digest");
    st_json_sha256(&json, &intent->base_digest);
    st_json_name(&json, "schema");
    st_json_sha256(&json, &intent->schema_identity);
    st_json_name(&json, "request");
    st_json_sha256(&json, &intent->request);
    st_json_name(&json, "delta");
    st_json_sha256(&json, &intent->delta);
    encode_effects(&json, intent);
    st_json_name(&json, "plan_inline");
    st_json_bool(&json, intent->plan_inline);
    st_json_name(&json, "plan_number");
    st_json_number(&json, intent->plan_number);
    st_json_name(&json, "plan_length");
    st_json_u64(&json, intent->plan_length);
    st_json_name(&json, "plan_digest");
    st_json_sha256(&json, &intent->plan_digest);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "an intent is damaged: %s", what);
}

static sluice_status decode_text(const cJSON *object, const char *name, char *ret_text, size_t room, sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, name, &text, err));
    size_t length = strlen(text);
    if (length >= room)
        return damaged(name, err);
    memcpy(ret_text, text, length + 1);
    return SLUICE_OK;
}

static sluice_status decode_small(const cJSON *object, const char *name, uint32_t *ret_value, sluice_error *err)
{
    int64_t value = 0;
    PF_TRY(st_json_get_number(object, name, &value, err));
    if (value < 0 || value > UINT32_MAX)
        return damaged(name, err);
    *ret_value = (uint32_t)value;
    return SLUICE_OK;
}

/* A path of ours: relative, below the graph, no "..". */
static bool is_path(const char *path)
{
    return path[0] != '/' && path[0] != '.' && !strstr(path, "/.") && !strstr(path, "//");
}

static sluice_status decode_effect(const cJSON *item, ad_effect *effect, sluice_error *err)
{
    char kind[16];
    PF_TRY(decode_text(item, "kind", kind, sizeof kind, err));
    size_t known = 0, kinds = sizeof effect_kinds / sizeof effect_kinds[0];
    while (known < kinds && strcmp(effect_kinds[known], kind) != 0)
        known++;
    if (known == kinds)
        return damaged("kind of an effect", err);
    effect->kind = (ad_effect_kind)known;
    PF_TRY(decode_text(item, "branch", effect->branch, sizeof effect->branch, err));
    PF_TRY(st_json_get_u64(item, "incarnation", &effect->incarnation, err));
    PF_TRY(decode_text(item, "from", effect->from, sizeof effect->from, err));
    PF_TRY(decode_text(item, "to", effect->to, sizeof effect->to, err));
    return is_path(effect->from) && is_path(effect->to) ? SLUICE_OK : damaged("path of an effect", err);
}

static sluice_status decode_effects(const cJSON *document, co_intent *intent, sluice_error *err)
{
    const cJSON *effects = NULL, *item = NULL;
    PF_TRY(st_json_get_array(document, "effects", &effects, err));
    int count = cJSON_GetArraySize(effects);
    if (count > (int)CO_EFFECTS_MAX)
        return damaged("number of effects", err);
    if (count == 0)
        return SLUICE_OK;
    intent->effects = calloc((size_t)count, sizeof *intent->effects);
    if (!intent->effects)
        return pf_fail_memory(err);
    cJSON_ArrayForEach(item, effects)
    {
        PF_TRY(decode_effect(item, &intent->effects[intent->effect_count], err));
        intent->effect_count++;
    }
    return SLUICE_OK;
}

static sluice_status decode_scope(const cJSON *document, co_scope *scope, sluice_error *err)
{
    const cJSON *tables = NULL, *item = NULL;
    PF_TRY(st_json_get_id(document, "operation", &scope->operation, err));
    PF_TRY(st_json_get_id(document, "commit", &scope->commit, err));
    PF_TRY(st_json_get_id(document, "attempt", &scope->attempt, err));
    PF_TRY(st_json_get_u64(document, "incarnation", &scope->incarnation, err));
    PF_TRY(st_json_get_bool(document, "all_tables", &scope->all, err));
    PF_TRY(st_json_get_array(document, "tables", &tables, err));
    if (scope->incarnation == 0 || cJSON_GetArraySize(tables) > (int)CO_SCOPE_TABLES)
        return damaged("scope", err);
    cJSON_ArrayForEach(item, tables)
    {
        if (!cJSON_IsString(item) || !st_json_text_is_u64(item->valuestring, &scope->tables[scope->table_count]))
            return damaged("tables", err);
        scope->table_count++;
    }
    return SLUICE_OK;
}

static sluice_status decode(const cJSON *document, co_intent *intent, sluice_error *err)
{
    PF_TRY(st_json_check_format(document, FORMAT, err));
    PF_TRY(decode_text(document, "kind", intent->kind, sizeof intent->kind, err));
    PF_TRY(decode_small(document, "version", &intent->version, err));
    PF_TRY(decode_scope(document, &intent->scope, err));
    PF_TRY(decode_text(document, "branch", intent->branch, sizeof intent->branch, err));
    PF_TRY(st_json_get_id(document, "epoch", &intent->epoch, err));
    PF_TRY(st_json_get_u64(document, "base_generation", &intent->base_generation, err));
    PF_TRY(st_json_get_sha256(document, "base_digest", &intent->base_digest, err));
    PF_TRY(st_json_get_sha256(document, "schema", &intent->schema_identity, err));
    PF_TRY(st_json_get_sha256(document, "request", &intent->request, err));
    PF_TRY(st_json_get_sha256(document, "delta", &intent->delta, err));
    PF_TRY(decode_effects(document, intent, err));
    intent->scope.visible = intent->effect_count > 0;
    PF_TRY(st_json_get_bool(document, "plan_inline", &intent->plan_inline, err));
    PF_TRY(decode_small(document, "plan_number", &intent->plan_number, err));
    PF_TRY(st_json_get_u64(document, "plan_length", &intent->plan_length, err));
    PF_TRY(st_json_get_sha256(document, "plan_digest", &intent->plan_digest, err));
    return intent->plan_length <= CO_PLAN_BYTES_MAX ? SLUICE_OK : damaged("length of the plan", err);
}

sluice_status co_intent_decode(const void *bytes, size_t length, co_intent *ret_intent, sluice_error *err)
{
    cJSON *document = NULL;
    pf_buffer again = {0};
    co_intent intent = {0};
    sluice_status status;
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, decode(document, &intent, err));
    PF_GOTO(status, done, co_intent_encode(&intent, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_intent = intent;
    intent = (co_intent){0};
done:
    co_intent_free(&intent);
    pf_buffer_free(&again);
    st_json_free(document);
    return status;
}
