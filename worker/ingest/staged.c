#include "worker/ingest/staged.h"

#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGED_FORMAT "sluice-staged/1"

void wk_staged_free(wk_staged *staged)
{
    free(staged->bad);
    free(staged->lines);
    free(staged->add.runs);
    memset(staged, 0, sizeof *staged);
}

void wk_fault_encode(const wk_fault *fault, st_json *json)
{
    st_json_object(json);
    st_json_name(json, "argument");
    st_json_number(json, fault->argument);
    st_json_name(json, "record");
    st_json_u64(json, fault->record);
    st_json_name(json, "column");
    st_json_number(json, fault->column);
    st_json_name(json, "rule");
    st_json_number(json, fault->rule);
    st_json_name(json, "line");
    st_json_u64(json, fault->line);
    st_json_name(json, "code");
    st_json_number(json, fault->code);
    st_json_name(json, "text");
    st_json_text(json, fault->text);
    st_json_name(json, "hint");
    st_json_text(json, fault->hint);
    st_json_object_end(json);
}

static sluice_status get_u32(const cJSON *object, const char *name, uint32_t *ret_value, sluice_error *err)
{
    int64_t value = 0;

    PF_TRY(st_json_get_number(object, name, &value, err));
    if (value < 0 || value > UINT32_MAX)
        return pf_fail(err, SLUICE_CORRUPT, "a task's result has an impossible number");
    *ret_value = (uint32_t)value;
    return SLUICE_OK;
}

sluice_status wk_fault_decode(const cJSON *object, wk_fault *ret_fault, sluice_error *err)
{
    const char *text = NULL, *hint = NULL;
    uint32_t code = 0;

    memset(ret_fault, 0, sizeof *ret_fault);
    PF_TRY(get_u32(object, "argument", &ret_fault->argument, err));
    PF_TRY(st_json_get_u64(object, "record", &ret_fault->record, err));
    PF_TRY(get_u32(object, "column", &ret_fault->column, err));
    PF_TRY(get_u32(object, "rule", &ret_fault->rule, err));
    PF_TRY(st_json_get_u64(object, "line", &ret_fault->line, err));
    PF_TRY(get_u32(object, "code", &code, err));
    PF_TRY(st_json_get_text(object, "text", &text, err));
    PF_TRY(st_json_get_text(object, "hint", &hint, err));
    wk_fault_set(ret_fault, (sluice_status)code, "%s", text);
    (void)snprintf(ret_fault->hint, sizeof ret_fault->hint, "%s", hint);
    return SLUICE_OK;
}

/* The fragment as the edit that would add it alone; nothing when there is none. */
static sluice_status encode_add(const wk_staged *staged, pf_buffer *buffer, sluice_error *err)
{
    st_edit_add add = staged->add;
    st_edit edit = {.table = staged->table, .adds = &add, .add_count = 1};

    if (staged->add.fragment.rows == 0)
        return pf_buffer_append_text(buffer, "\n", err);
    return st_edit_encode(&edit, buffer, err);
}

sluice_status wk_staged_encode(const wk_staged *staged, pf_buffer *buffer, sluice_error *err)
{
    st_json json;

    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, STAGED_FORMAT);
    st_json_name(&json, "table");
    st_json_u64(&json, staged->table);
    st_json_name(&json, "argument");
    st_json_number(&json, staged->argument);
    st_json_name(&json, "chunk");
    st_json_number(&json, staged->chunk);
    st_json_name(&json, "tries");
    st_json_number(&json, staged->tries);
    st_json_name(&json, "first_record");
    st_json_u64(&json, staged->first_record);
    st_json_name(&json, "records");
    st_json_u64(&json, staged->records);
    st_json_name(&json, "bytes");
    st_json_u64(&json, staged->bytes);
    st_json_name(&json, "bad");
    st_json_u64(&json, staged->bad_count);
    st_json_name(&json, "damaged");
    st_json_bool(&json, staged->damaged);
    if (staged->damaged) {
        st_json_name(&json, "damage");
        wk_fault_encode(&staged->damage, &json);
    }
    st_json_name(&json, "first_line");
    st_json_u64(&json, staged->first_line);
    st_json_name(&json, "lines");
    st_json_bool(&json, staged->lines_listed);
    st_json_name(&json, "updates");
    st_json_bool(&json, staged->updates);
    st_json_name(&json, "order");
    st_json_text(&json, staged->order);
    st_json_name(&json, "least");
    if (staged->least.present)
        wk_fault_encode(&staged->least, &json);
    else
        st_json_null(&json);
    st_json_object_end(&json);
    PF_TRY(st_json_end(&json, true, err));
    PF_TRY(encode_add(staged, buffer, err));
    return staged->bad_count ? pf_buffer_append(buffer, staged->bad, staged->bad_count * sizeof *staged->bad, err)
                             : SLUICE_OK;
}

static sluice_status decode_head(const cJSON *head, wk_staged *staged, sluice_error *err)
{
    const cJSON *least = st_json_field(head, "least"), *damage = NULL;
    const char *order = NULL;

    PF_TRY(st_json_check_format(head, STAGED_FORMAT, err));
    PF_TRY(st_json_get_u64(head, "table", &staged->table, err));
    PF_TRY(get_u32(head, "argument", &staged->argument, err));
    PF_TRY(get_u32(head, "chunk", &staged->chunk, err));
    PF_TRY(get_u32(head, "tries", &staged->tries, err));
    PF_TRY(st_json_get_u64(head, "first_record", &staged->first_record, err));
    PF_TRY(st_json_get_u64(head, "records", &staged->records, err));
    PF_TRY(st_json_get_u64(head, "bytes", &staged->bytes, err));
    PF_TRY(st_json_get_u64(head, "bad", &staged->bad_count, err));
    PF_TRY(st_json_get_bool(head, "damaged", &staged->damaged, err));
    if (staged->damaged) {
        PF_TRY(st_json_get_object(head, "damage", &damage, err));
        PF_TRY(wk_fault_decode(damage, &staged->damage, err));
    }
    PF_TRY(st_json_get_u64(head, "first_line", &staged->first_line, err));
    PF_TRY(st_json_get_bool(head, "lines", &staged->lines_listed, err));
    PF_TRY(st_json_get_bool(head, "updates", &staged->updates, err));
    PF_TRY(st_json_get_text(head, "order", &order, err));
    (void)snprintf(staged->order, sizeof staged->order, "%s", order);
    return cJSON_IsObject(least) ? wk_fault_decode(least, &staged->least, err) : SLUICE_OK;
}

static sluice_status decode_add(const char *line, size_t length, wk_staged *staged, sluice_error *err)
{
    st_edit edit = {0};
    sluice_status status;

    if (length <= 1)
        return SLUICE_OK;
    PF_TRY(st_edit_decode(line, length, &edit, err));
    if (edit.add_count != 1) {
        status = pf_fail(err, SLUICE_CORRUPT, "a task's result adds %u fragments", edit.add_count);
    } else {
        staged->add = edit.adds[0];
        edit.adds[0].runs = NULL;
        edit.adds[0].run_count = 0;
        status = SLUICE_OK;
    }
    st_edit_free(&edit);
    return status;
}

static sluice_status decode_bad(const char *bytes, size_t length, wk_staged *staged, sluice_error *err)
{
    if (length != staged->bad_count * sizeof *staged->bad)
        return pf_fail(err, SLUICE_CORRUPT, "a task's result is not whole");
    if (length == 0)
        return SLUICE_OK;
    staged->bad = malloc(length);
    if (staged->bad == NULL)
        return pf_fail_memory(err);
    memcpy(staged->bad, bytes, length);
    return SLUICE_OK;
}

sluice_status wk_staged_decode(const void *bytes, size_t length, wk_staged *ret_staged, sluice_error *err)
{
    const char *text = bytes, *end = text + length;
    const char *first = length ? memchr(text, '\n', length) : NULL;
    const char *second = first ? memchr(first + 1, '\n', (size_t)(end - first - 1)) : NULL;
    cJSON *head = NULL;
    sluice_status status;

    memset(ret_staged, 0, sizeof *ret_staged);
    if (second == NULL)
        return pf_fail(err, SLUICE_CORRUPT, "a task's result is not whole");
    PF_TRY(st_json_parse(text, (size_t)(first + 1 - text), &head, err));
    PF_GOTO(status, done, decode_head(head, ret_staged, err));
    PF_GOTO(status, done, decode_add(first + 1, (size_t)(second - first), ret_staged, err));
    PF_GOTO(status, done, decode_bad(second + 1, (size_t)(end - second - 1), ret_staged, err));
done:
    st_json_free(head);
    if (status != SLUICE_OK)
        wk_staged_free(ret_staged);
    return status;
}

uint64_t wk_staged_record(const wk_staged *staged, uint64_t position)
{
    PF_ASSERT(staged->order[0] == '\0');
    /* The i-th bad record lies bad[i] - i good ones behind the start: the first i with bad[i] - i > position counts. */
    uint64_t low = 0, high = staged->bad_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (staged->bad[middle] - middle <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return staged->first_record + position + low;
}
