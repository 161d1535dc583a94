/*
 * Keys as text (see store/read/key_text.h).
 */
#include "store/read/key_text.h"
#include "store/format/json.h"
#include <string.h>

static const st_column_spec row_id_spec = {.name = NULL, .type = ST_ROW_ID};

void st_key_hint(const st_type_def *type, sluice_error *err)
{
    char word[PF_WORD_BYTES];
    if (type->key_count == 0)
        pf_hint(err, "%s has no key: its nodes go by _row_id, which `sluice scan GRAPH %s` shows", type->name,
                pf_word(word, type->name));
}

static sluice_status add_member(const st_type_def *type, st_key_values *key, const char *text, size_t length,
                                sluice_error *err)
{
    st_column_spec spec = row_id_spec;
    char row_id_name[] = "_row_id";
    uint32_t member = key->count;
    if (type->key_count > 0) {
        const st_property *property = &type->properties[type->key[member]];
        spec = (st_column_spec){.name = property->name, .type = property->type, .property = property->id};
    } else {
        spec.name = row_id_name;
    }
    PF_TRY(st_column_builder_new(&spec, &key->builders[member], err));
    sluice_status status = st_value_parse(&spec, text, length, key->builders[member], err);
    if (status != SLUICE_OK && status != SLUICE_RESOURCE_LIMIT) {
        pf_fail_private(err, SLUICE_USAGE, "a key has another type", "key of %s: %s: \"%.*s\" is no %s", type->name,
                        spec.name, (int)(length < 300 ? length : 300), text,
                        type->key_count > 0 ? st_type_name(spec.type) : "row id");
        st_key_hint(type, err);
        return SLUICE_USAGE;
    }
    PF_TRY(status);
    st_builder_view(key->builders[member], &key->views[member]);
    key->columns[member] = &key->views[member];
    key->count++;
    return SLUICE_OK;
}

static sluice_status fail_members(const st_type_def *type, sluice_error *err)
{
    pf_fail_private(err, SLUICE_USAGE, "a key has another number of members", "a key of %s has %u members", type->name,
                    (unsigned)type->key_count);
    pf_hint(err, "give them joined by commas, or as a JSON array: '[\"a\", 1]'");
    return SLUICE_USAGE;
}

/* Behind the JSON string that begins at `at`, which has been parsed and found good. */
static const char *behind_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

/* Numbers are taken by their digits, since cJSON keeps them as doubles. */
static sluice_status add_element(const st_type_def *type, st_key_values *key, const cJSON *item, const char **at,
                                 sluice_error *err)
{
    *at += strspn(*at, " \t\r\n[,");
    const char *start = *at;
    if (cJSON_IsString(item)) {
        *at = behind_string(start);
        return add_member(type, key, item->valuestring, strlen(item->valuestring), err);
    }
    if (cJSON_IsArray(item) || cJSON_IsObject(item) || cJSON_IsNull(item))
        return pf_fail(err, SLUICE_USAGE, "a key's members are texts, numbers, true or false");
    *at += strcspn(start, " \t\r\n,]");
    return add_member(type, key, start, (size_t)(*at - start), err);
}

static sluice_status parse_array(const st_type_def *type, const char *text, st_key_values *key, sluice_error *err)
{
    cJSON *document = NULL;
    const char *at = text;
    int members = type->key_count > 0 ? (int)type->key_count : 1;
    sluice_status status = st_json_parse(text, strlen(text), &document, err);
    if (status != SLUICE_RESOURCE_LIMIT &&
        (status != SLUICE_OK || !cJSON_IsArray(document) || cJSON_GetArraySize(document) != members))
        status = fail_members(type, err);
    for (const cJSON *item = document ? document->child : NULL; item && status == SLUICE_OK; item = item->next)
        status = add_element(type, key, item, &at, err);
    st_json_free(document);
    return status;
}

static sluice_status refuse_edges(const st_type_def *type, sluice_error *err)
{
    char word[PF_WORD_BYTES];
    if (!type->edge)
        return SLUICE_OK;
    pf_fail_private(err, SLUICE_USAGE, "edges are not looked up by one key", "%s is a type of edges", type->name);
    pf_hint(err,
            "edges are scanned, here all of them: `sluice scan GRAPH %s`; one: --where \"from = KEY and to = KEY\"",
            pf_word(word, type->name));
    return SLUICE_USAGE;
}

sluice_status st_key_parse_json(const st_type_def *type, const char *json, size_t length, st_key_values *ret_key,
                                sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status;
    bool list = type->key_count > 1;
    *ret_key = (st_key_values){0};
    PF_TRY(refuse_edges(type, err));
    if (memchr(json, '\0', length))
        return pf_fail(err, SLUICE_USAGE, "a key has a character U+0000");
    if (!list)
        PF_GOTO(status, done, pf_buffer_append(&text, "[", 1, err));
    PF_GOTO(status, done, pf_buffer_append(&text, json, length, err));
    PF_GOTO(status, done, pf_buffer_append(&text, list ? "" : "]", list ? 1 : 2, err)); /* and its end */
    status = parse_array(type, (const char *)text.data, ret_key, err);
done:
    pf_buffer_free(&text);
    return status;
}

sluice_status st_key_parse(const st_type_def *type, const char *text, st_key_values *ret_key, sluice_error *err)
{
    *ret_key = (st_key_values){0};
    PF_TRY(refuse_edges(type, err));
    if (type->key_count <= 1)
        return add_member(type, ret_key, text, strlen(text), err);
    if (text[0] == '[')
        return parse_array(type, text, ret_key, err);
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (ret_key->count == type->key_count)
            return fail_members(type, err);
        PF_TRY(add_member(type, ret_key, at, length, err));
        at += length;
        if (!*at)
            return ret_key->count == type->key_count ? SLUICE_OK : fail_members(type, err);
    }
}

void st_key_values_free(st_key_values *key)
{
    for (uint32_t i = 0; i < ST_KEY_MEMBERS_MAX; i++)
        st_column_builder_free(key->builders[i]);
    *key = (st_key_values){0};
}

sluice_status st_key_to_text(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                             sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            PF_TRY(pf_buffer_append(buffer, ",", 1, err));
        PF_TRY(st_value_text(columns[i], row, buffer, err));
    }
    return SLUICE_OK;
}

sluice_status st_key_to_json(const st_column *const *columns, uint32_t count, uint64_t row, pf_buffer *buffer,
                             sluice_error *err)
{
    if (count == 1)
        return st_value_json(columns[0], row, buffer, err);
    for (uint32_t i = 0; i < count; i++) {
        PF_TRY(pf_buffer_append(buffer, i == 0 ? "[" : ",", 1, err));
        PF_TRY(st_value_json(columns[i], row, buffer, err));
    }
    return pf_buffer_append(buffer, "]", 1, err);
}
