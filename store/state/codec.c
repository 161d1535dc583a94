/*
 * Fields of control documents (codec.h).
 */
#include "store/state/codec.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

static sluice_status damaged(const char *name, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a control document: \"%s\" is not what it has to be", name);
}

void st_put_id(st_json *json, const char *name, const pf_id *id)
{
    st_json_name(json, name);
    if (pf_id_is_nil(id))
        st_json_null(json);
    else
        st_json_id(json, id);
}

void st_put_time(st_json *json, const char *name, int64_t us)
{
    char text[24];
    size_t at = sizeof(text);
    uint64_t rest = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (us < 0)
        text[--at] = '-';
    st_json_name(json, name);
    st_json_bytes_text(json, text + at, sizeof(text) - at);
}

sluice_status st_take_small(const cJSON *object, const char *name, uint32_t *ret_value, sluice_error *err)
{
    int64_t value = 0;
    PF_TRY(st_json_get_number(object, name, &value, err));
    if (value < 0 || value > UINT32_MAX)
        return damaged(name, err);
    *ret_value = (uint32_t)value;
    return SLUICE_OK;
}

sluice_status st_take_time(const cJSON *object, const char *name, int64_t *ret_us, sluice_error *err)
{
    const char *text = NULL;
    uint64_t magnitude = 0;
    PF_TRY(st_json_get_text(object, name, &text, err));
    bool minus = text[0] == '-';
    if (!st_json_text_is_u64(text + minus, &magnitude) || magnitude > INT64_MAX)
        return damaged(name, err);
    *ret_us = minus ? -(int64_t)magnitude : (int64_t)magnitude;
    return SLUICE_OK;
}

sluice_status st_take_nullable(const cJSON *object, const char *name, const cJSON **ret_item, sluice_error *err)
{
    const cJSON *item = st_json_field(object, name);
    if (!item)
        return damaged(name, err);
    *ret_item = cJSON_IsNull(item) ? NULL : item;
    return SLUICE_OK;
}

sluice_status st_take_rejected(const cJSON *object, uint64_t *ret_rejected, sluice_error *err)
{
    *ret_rejected = 0;
    if (!st_json_field(object, "rejected"))
        return SLUICE_OK;
    PF_TRY(st_json_get_u64(object, "rejected", ret_rejected, err));
    return *ret_rejected > 0 ? SLUICE_OK : damaged("rejected", err);
}

sluice_status st_take_id(const cJSON *object, const char *name, pf_id *ret_id, sluice_error *err)
{
    const cJSON *item = NULL;
    *ret_id = (pf_id){{0}};
    PF_TRY(st_take_nullable(object, name, &item, err));
    return item ? st_json_get_id(object, name, ret_id, err) : SLUICE_OK;
}

sluice_status st_take_text(const cJSON *object, const char *name, char *ret_text, size_t room, sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, name, &text, err));
    size_t length = strlen(text);
    if (length >= room)
        return damaged(name, err);
    memcpy(ret_text, text, length + 1);
    return SLUICE_OK;
}

sluice_status st_take_file(const cJSON *object, const char *name, char *ret_file, size_t room, sluice_error *err)
{
    PF_TRY(st_take_text(object, name, ret_file, room, err));
    return st_object_name_is_valid(ret_file, room) ? SLUICE_OK : damaged(name, err);
}

sluice_status st_take_list(const cJSON *object, const char *name, size_t item_size, const cJSON **ret_list,
                           void **ret_items, sluice_error *err)
{
    PF_TRY(st_json_get_array(object, name, ret_list, err));
    int count = cJSON_GetArraySize(*ret_list);
    *ret_items = calloc(count > 0 ? (size_t)count : 1, item_size);
    return *ret_items ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status st_take_word(const cJSON *object, const char *name, const char *const *words, uint32_t count,
                           uint32_t *ret_index, sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, name, &text, err));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret_index = i;
            return SLUICE_OK;
        }
    }
    return damaged(name, err);
}

sluice_status st_document_decode(const void *bytes, size_t length, st_read_fn *read, st_write_fn *write, void *value,
                                 sluice_error *err)
{
    cJSON *document = NULL;
    pf_buffer again = {0};
    sluice_status status;
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, (*read)(document, value, err));
    PF_GOTO(status, done, (*write)(value, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
done:
    st_json_free(document);
    pf_buffer_free(&again);
    return status;
}

bool st_object_name_is_valid(const char *name, size_t room)
{
    size_t length = strnlen(name, room);
    if (length == 0 || length == room || name[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
              c == '.'))
            return false;
    }
    return true;
}

/* ---- shared parts ---- */

void st_dead_write(st_json *json, const char *name, const st_dead_ref *dead)
{
    st_json_name(json, name);
    if (!dead->present) {
        st_json_null(json);
        return;
    }
    st_json_object(json);
    st_put_text(json, "file", dead->name);
    st_put_u64(json, "rows", dead->rows);
    st_put_sha256(json, "digest", &dead->digest);
    st_json_object_end(json);
}

sluice_status st_dead_read(const cJSON *object, const char *name, st_dead_ref *ret_dead, sluice_error *err)
{
    const cJSON *item = NULL;
    *ret_dead = (st_dead_ref){0};
    PF_TRY(st_take_nullable(object, name, &item, err));
    if (!item)
        return SLUICE_OK;
    ret_dead->present = true;
    PF_TRY(st_take_file(item, "file", ret_dead->name, sizeof(ret_dead->name), err));
    PF_TRY(st_json_get_u64(item, "rows", &ret_dead->rows, err));
    if (ret_dead->rows == 0)
        return damaged(name, err);
    return st_json_get_sha256(item, "digest", &ret_dead->digest, err);
}

void st_fragment_info_write(st_json *json, const st_fragment_info *info)
{
    st_put_text(json, "fragment", info->name);
    st_put_u64(json, "rows", info->rows);
    st_put_u64(json, "bytes", info->bytes);
    st_put_sha256(json, "footer", &info->footer);
}

sluice_status st_fragment_info_read(const cJSON *object, st_fragment_info *ret_info, sluice_error *err)
{
    PF_TRY(st_take_file(object, "fragment", ret_info->name, sizeof(ret_info->name), err));
    PF_TRY(st_json_get_u64(object, "rows", &ret_info->rows, err));
    PF_TRY(st_json_get_u64(object, "bytes", &ret_info->bytes, err));
    PF_TRY(st_json_get_sha256(object, "footer", &ret_info->footer, err));
    return ret_info->rows > 0 && ret_info->rows <= ST_COLUMN_ROWS_MAX ? SLUICE_OK : damaged("rows", err);
}

static const char *const uses[] = {
    [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "unique"};

void st_run_ref_write(st_json *json, const st_run_ref *run)
{
    st_json_object(json);
    st_put_text(json, "use", uses[run->use]);
    if (run->use == ST_RUN_UNIQUE)
        st_put_number(json, "unique", run->unique);
    st_put_text(json, "run", run->info.name);
    st_put_u64(json, "entries", run->info.entries);
    st_put_u64(json, "bytes", run->info.bytes);
    st_put_sha256(json, "footer", &run->info.footer);
    st_json_object_end(json);
}

sluice_status st_run_ref_read(const cJSON *object, st_run_ref *ret_run, sluice_error *err)
{
    uint32_t use = 0;
    PF_TRY(st_take_word(object, "use", uses, sizeof(uses) / sizeof(uses[0]), &use, err));
    ret_run->use = (st_run_use)use;
    if (ret_run->use == ST_RUN_UNIQUE)
        PF_TRY(st_take_small(object, "unique", &ret_run->unique, err));
    PF_TRY(st_take_file(object, "run", ret_run->info.name, sizeof(ret_run->info.name), err));
    PF_TRY(st_json_get_u64(object, "entries", &ret_run->info.entries, err));
    PF_TRY(st_json_get_u64(object, "bytes", &ret_run->info.bytes, err));
    return st_json_get_sha256(object, "footer", &ret_run->info.footer, err);
}

void st_runs_write(st_json *json, const st_run_ref *runs, uint32_t count)
{
    st_json_name(json, "runs");
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++)
        st_run_ref_write(json, &runs[i]);
    st_json_array_end(json);
}

sluice_status st_runs_read(const cJSON *object, st_run_ref **ret_runs, uint32_t *ret_count, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *runs = NULL;
    PF_TRY(st_take_list(object, "runs", sizeof(st_run_ref), &list, &runs, err));
    *ret_runs = runs;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(st_run_ref_read(item, &(*ret_runs)[*ret_count], err));
        (*ret_count)++;
    }
    return SLUICE_OK;
}

static void sorted_file_write(st_json *json, const char *name, const st_run_info *file)
{
    st_json_name(json, name);
    st_json_object(json);
    st_put_text(json, "file", file->name);
    st_put_u64(json, "entries", file->entries);
    st_put_u64(json, "bytes", file->bytes);
    st_put_sha256(json, "footer", &file->footer);
    st_json_object_end(json);
}

static sluice_status sorted_file_read(const cJSON *object, const char *name, st_run_info *ret_file, sluice_error *err)
{
    const cJSON *file = st_json_field(object, name);
    PF_TRY(st_take_file(file, "file", ret_file->name, sizeof(ret_file->name), err));
    PF_TRY(st_json_get_u64(file, "entries", &ret_file->entries, err));
    PF_TRY(st_json_get_u64(file, "bytes", &ret_file->bytes, err));
    return st_json_get_sha256(file, "footer", &ret_file->footer, err);
}

void st_index_write(st_json *json, const st_index_ref *index)
{
    if (!index->present)
        return;
    st_json_name(json, "index");
    st_json_object(json);
    st_put_number(json, "ordinal", index->ordinal);
    sorted_file_write(json, "out", &index->out);
    sorted_file_write(json, "in", &index->in);
    st_json_object_end(json);
}

sluice_status st_index_read(const cJSON *object, st_index_ref *ret_index, sluice_error *err)
{
    const cJSON *index = st_json_field(object, "index");
    *ret_index = (st_index_ref){.present = index != NULL};
    if (!index)
        return SLUICE_OK;
    PF_TRY(st_take_small(index, "ordinal", &ret_index->ordinal, err));
    PF_TRY(sorted_file_read(index, "out", &ret_index->out, err));
    return sorted_file_read(index, "in", &ret_index->in, err);
}

void st_hashes_write(st_json *json, const char *name, const uint64_t *hashes, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";
    pf_buffer text = {0};
    for (uint64_t i = 0; i < count && json->status == SLUICE_OK; i++) {
        char hex[16];
        for (unsigned k = 0; k < 16; k++)
            hex[k] = digits[hashes[i] >> (60 - 4 * k) & 15];
        json->status = pf_buffer_append(&text, hex, sizeof(hex), NULL);
    }
    st_json_name(json, name);
    st_json_bytes_text(json, text.data ? (const char *)text.data : "", text.length);
    pf_buffer_free(&text);
}

/* 16 lower-case hex digits; false when they are not. */
static bool parse_hash(const char *text, uint64_t *ret_hash)
{
    *ret_hash = 0;
    for (size_t k = 0; k < 16; k++) {
        char c = text[k];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *ret_hash = *ret_hash << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

sluice_status st_hashes_read(const cJSON *object, const char *name, uint64_t **ret_hashes, uint64_t *ret_count,
                             sluice_error *err)
{
    const char *text = NULL;
    PF_TRY(st_json_get_text(object, name, &text, err));
    size_t length = strlen(text);
    if (length % 16 != 0)
        return damaged(name, err);
    *ret_hashes = calloc(length / 16 + 1, sizeof(**ret_hashes));
    if (!*ret_hashes)
        return pf_fail_memory(err);
    for (size_t i = 0; i < length / 16; i++) {
        if (!parse_hash(text + 16 * i, &(*ret_hashes)[i]) || (i > 0 && (*ret_hashes)[i] < (*ret_hashes)[i - 1]))
            return damaged(name, err);
        (*ret_count)++;
    }
    return SLUICE_OK;
}
