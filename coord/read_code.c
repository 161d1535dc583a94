/*
 * Read sets as canonical JSON ("sluice-reads/1"), for intents: what recovery arbitrates with.
 *
 * Hashes of one read stand in one string, 16 hex digits each, ascending. Decoding trusts nothing: every number, name,
 * order and count is checked, and the bytes must be what the decoded set encodes to.
 */
#include "coord/read_set.h"
#include "store/format/json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "sluice-reads/1"

static const char *const uses[] = {
    [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "unique"};

static void encode_hashes(st_json *json, const st_change *set, pf_buffer *text, sluice_error *err)
{
    static const char digits[] = "0123456789abcdef";
    text->length = 0;
    for (uint64_t i = 0; i < set->hash_count && json->status == SLUICE_OK; i++) {
        char hex[16];
        for (unsigned k = 0; k < 16; k++)
            hex[k] = digits[(set->hashes[i] >> (60 - 4 * k)) & 15];
        json->status = pf_buffer_append(text, hex, sizeof hex, err);
    }
    st_json_name(json, "hashes");
    st_json_bytes_text(json, text->data ? (const char *)text->data : "", text->length);
}

static void encode_runs(st_json *json, const st_change *set)
{
    st_json_name(json, "runs");
    st_json_array(json);
    for (uint32_t i = 0; i < set->run_count; i++) {
        const st_run_ref *run = &set->runs[i].run;
        const st_fragment_info *fragment = &set->runs[i].fragment;
        st_json_object(json);
        st_json_name(json, "table");
        st_json_u64(json, set->runs[i].table);
        st_json_name(json, "use");
        st_json_text(json, uses[run->use]);
        st_json_name(json, "unique");
        st_json_number(json, run->unique);
        st_json_name(json, "run");
        st_json_text(json, run->info.name);
        st_json_name(json, "entries");
        st_json_u64(json, run->info.entries);
        st_json_name(json, "run_bytes");
        st_json_u64(json, run->info.bytes);
        st_json_name(json, "run_footer");
        st_json_sha256(json, &run->info.footer);
        st_json_name(json, "fragment");
        st_json_text(json, fragment->name);
        st_json_name(json, "rows");
        st_json_u64(json, fragment->rows);
        st_json_name(json, "bytes");
        st_json_u64(json, fragment->bytes);
        st_json_name(json, "footer");
        st_json_sha256(json, &fragment->footer);
        st_json_name(json, "explicit_ids");
        st_json_bool(json, fragment->explicit_ids);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

sluice_status co_read_set_encode(const co_read_set *set, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    pf_buffer hashes = {0};
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, FORMAT);
    st_json_name(&json, "incarnation");
    st_json_u64(&json, set->incarnation);
    st_json_name(&json, "schema");
    st_json_sha256(&json, &set->schema_identity);
    st_json_name(&json, "head");
    if (set->reads_head)
        st_json_id(&json, &set->head);
    else
        st_json_null(&json);
    st_json_name(&json, "reads");
    st_json_array(&json);
    for (uint32_t i = 0; i < set->count; i++) {
        const co_read *read = &set->reads[i];
        st_json_object(&json);
        st_json_name(&json, "kind");
        st_json_text(&json, co_read_kind_name(read->kind));
        st_json_name(&json, "table");
        st_json_u64(&json, read->set.table);
        st_json_name(&json, "unique");
        st_json_number(&json, read->set.unique);
        if (read->set.property) {
            st_json_name(&json, "property");
            st_json_u64(&json, read->set.property);
        }
        st_json_name(&json, "whole");
        st_json_bool(&json, read->set.whole);
        encode_hashes(&json, &read->set, &hashes, err);
        encode_runs(&json, &read->set);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_object_end(&json);
    pf_buffer_free(&hashes);
    return st_json_end(&json, true, err);
}

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a read set is damaged: %s", what);
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

static sluice_status decode_name(const cJSON *object, const char *name, char *ret_text, size_t room, sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, name, &text, err));
    size_t length = strlen(text);
    if (length == 0 || length >= room || strchr(text, '/') || text[0] == '.')
        return damaged(name, err);
    memcpy(ret_text, text, length + 1);
    return SLUICE_OK;
}

static sluice_status decode_hashes(const cJSON *object, st_change *set, sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, "hashes", &text, err));
    size_t length = strlen(text);
    if (length % 16)
        return damaged("hashes", err);
    if (length == 0)
        return SLUICE_OK;
    set->hashes = malloc(length / 16 * sizeof *set->hashes);
    if (!set->hashes)
        return pf_fail_memory(err);
    for (size_t i = 0; i < length / 16; i++) {
        uint64_t hash = 0;
        for (size_t k = 0; k < 16; k++) {
            char digit = text[i * 16 + k];
            unsigned value = digit >= '0' && digit <= '9'   ? (unsigned)(digit - '0')
                             : digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a') + 10
                                                            : 16;
            if (value > 15)
                return damaged("hashes", err);
            hash = hash << 4 | value;
        }
        if (i > 0 && hash < set->hashes[i - 1])
            return damaged("order of hashes", err);
        set->hashes[i] = hash;
    }
    set->hash_count = length / 16;
    return SLUICE_OK;
}

static sluice_status decode_run(const cJSON *item, st_change *set, sluice_error *err)
{
    st_run_ref *run = &set->runs[set->run_count].run;
    st_fragment_info *fragment = &set->runs[set->run_count].fragment;
    const char *use = NULL;
    PF_TRY(st_json_get_u64(item, "table", &set->runs[set->run_count].table, err));
    PF_TRY(st_json_get_text(item, "use", &use, err));
    size_t known = 0;
    while (known < sizeof uses / sizeof uses[0] && strcmp(uses[known], use) != 0)
        known++;
    if (known == sizeof uses / sizeof uses[0])
        return damaged("use of a run", err);
    run->use = (st_run_use)known;
    PF_TRY(decode_small(item, "unique", &run->unique, err));
    PF_TRY(decode_name(item, "run", run->info.name, sizeof run->info.name, err));
    PF_TRY(st_json_get_u64(item, "entries", &run->info.entries, err));
    PF_TRY(st_json_get_u64(item, "run_bytes", &run->info.bytes, err));
    PF_TRY(st_json_get_sha256(item, "run_footer", &run->info.footer, err));
    PF_TRY(decode_name(item, "fragment", fragment->name, sizeof fragment->name, err));
    PF_TRY(st_json_get_u64(item, "rows", &fragment->rows, err));
    PF_TRY(st_json_get_u64(item, "bytes", &fragment->bytes, err));
    PF_TRY(st_json_get_sha256(item, "footer", &fragment->footer, err));
    return st_json_get_bool(item, "explicit_ids", &fragment->explicit_ids, err);
}

static sluice_status decode_read(const cJSON *item, co_read *read, sluice_error *err)
{
    const char *kind = NULL;
    const cJSON *runs = NULL, *run = NULL;
    PF_TRY(st_json_get_text(item, "kind", &kind, err));
    unsigned known = 0;
    while (known < CO_READ_KIND_COUNT && strcmp(co_read_kind_name((co_read_kind)known), kind) != 0)
        known++;
    if (known == CO_READ_KIND_COUNT)
        return damaged("kind of a read", err);
    read->kind = (co_read_kind)known;
    PF_TRY(st_json_get_u64(item, "table", &read->set.table, err));
    if (read->set.table == 0)
        return damaged("table of a read", err);
    PF_TRY(decode_small(item, "unique", &read->set.unique, err));
    if (st_json_field(item, "property"))
        PF_TRY(st_json_get_u64(item, "property", &read->set.property, err));
    PF_TRY(st_json_get_bool(item, "whole", &read->set.whole, err));
    PF_TRY(decode_hashes(item, &read->set, err));
    PF_TRY(st_json_get_array(item, "runs", &runs, err));
    int count = cJSON_GetArraySize(runs);
    if (count == 0)
        return SLUICE_OK;
    read->set.runs = calloc((size_t)count, sizeof *read->set.runs);
    if (!read->set.runs)
        return pf_fail_memory(err);
    cJSON_ArrayForEach(run, runs)
    {
        PF_TRY(decode_run(run, &read->set, err));
        read->set.run_count++;
    }
    return SLUICE_OK;
}

static sluice_status decode(const cJSON *document, co_read_set *set, sluice_error *err)
{
    const cJSON *reads = NULL, *item = NULL;
    PF_TRY(st_json_check_format(document, FORMAT, err));
    PF_TRY(st_json_get_u64(document, "incarnation", &set->incarnation, err));
    PF_TRY(st_json_get_sha256(document, "schema", &set->schema_identity, err));
    const cJSON *head = st_json_field(document, "head");
    set->reads_head = head && !cJSON_IsNull(head);
    if (set->reads_head)
        PF_TRY(st_json_get_id(document, "head", &set->head, err));
    PF_TRY(st_json_get_array(document, "reads", &reads, err));
    cJSON_ArrayForEach(item, reads)
    {
        co_read read = {0};
        sluice_status status = decode_read(item, &read, err);
        if (status == SLUICE_OK)
            status = co_read_set_add(set, &read, err);
        if (status != SLUICE_OK) {
            free(read.set.hashes);
            free(read.set.runs);
            return status;
        }
    }
    return SLUICE_OK;
}

sluice_status co_read_set_decode(const void *bytes, size_t length, co_read_set *ret_set, sluice_error *err)
{
    cJSON *document = NULL;
    pf_buffer again = {0};
    co_read_set set = {0};
    sluice_status status;
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, decode(document, &set, err));
    PF_GOTO(status, done, co_read_set_encode(&set, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_set = set;
    set = (co_read_set){0};
done:
    co_read_set_free(&set);
    pf_buffer_free(&again);
    st_json_free(document);
    return status;
}
