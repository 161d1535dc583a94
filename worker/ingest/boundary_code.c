/*
 * What the boundary pass found in a chunk, as the result of a task. Offsets that are WK_NOWHERE are left out.
 */
#include "store/format/json.h"
#include "worker/ingest/boundary.h"
#include <string.h>

#define BOUNDARIES_FORMAT "sluice-boundaries/1"

static void encode_offset(st_json *json, const char *name, uint64_t offset)
{
    if (offset == WK_NOWHERE)
        return;
    st_json_name(json, name);
    st_json_u64(json, offset);
}

static void encode_lane(st_json *json, const wk_lane *lane)
{
    st_json_object(json);
    st_json_name(json, "exit");
    st_json_number(json, lane->exit);
    st_json_name(json, "records");
    st_json_u64(json, lane->records);
    encode_offset(json, "first", lane->first);
    encode_offset(json, "open", lane->last_open);
    st_json_object_end(json);
}

sluice_status wk_boundaries_encode(const wk_boundaries *boundaries, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    char digest[PF_XXH128_TEXT];

    pf_xxh128_text(boundaries->digest, digest);
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, BOUNDARIES_FORMAT);
    st_json_name(&json, "bytes");
    st_json_u64(&json, boundaries->bytes);
    st_json_name(&json, "lines");
    st_json_u64(&json, boundaries->lines);
    st_json_name(&json, "digest");
    st_json_text(&json, digest);
    st_json_name(&json, "lanes");
    st_json_array(&json);
    for (unsigned i = 0; i < WK_LEX_STATES; i++)
        encode_lane(&json, &boundaries->lanes[i]);
    st_json_array_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status decode_offset(const cJSON *object, const char *name, uint64_t *ret_offset, sluice_error *err)
{
    *ret_offset = WK_NOWHERE;
    return st_json_field(object, name) ? st_json_get_u64(object, name, ret_offset, err) : SLUICE_OK;
}

static sluice_status decode_lane(const cJSON *object, wk_lane *ret_lane, sluice_error *err)
{
    int64_t exit = 0;

    PF_TRY(st_json_get_number(object, "exit", &exit, err));
    if (exit < 0 || exit >= WK_LEX_STATES)
        return pf_fail(err, SLUICE_CORRUPT, "a task's result has an impossible state");
    ret_lane->exit = (wk_lex_state)exit;
    PF_TRY(st_json_get_u64(object, "records", &ret_lane->records, err));
    PF_TRY(decode_offset(object, "first", &ret_lane->first, err));
    return decode_offset(object, "open", &ret_lane->last_open, err);
}

static sluice_status decode(const cJSON *document, wk_boundaries *ret_boundaries, sluice_error *err)
{
    const char *digest = NULL;
    const cJSON *lanes = NULL, *lane = NULL;
    unsigned count = 0;

    PF_TRY(st_json_check_format(document, BOUNDARIES_FORMAT, err));
    PF_TRY(st_json_get_u64(document, "bytes", &ret_boundaries->bytes, err));
    PF_TRY(st_json_get_u64(document, "lines", &ret_boundaries->lines, err));
    PF_TRY(st_json_get_text(document, "digest", &digest, err));
    PF_TRY(st_json_get_array(document, "lanes", &lanes, err));
    cJSON_ArrayForEach(lane, lanes)
    {
        if (count < WK_LEX_STATES)
            PF_TRY(decode_lane(lane, &ret_boundaries->lanes[count], err));
        count++;
    }
    if (count != WK_LEX_STATES || !pf_xxh128_parse(digest, &ret_boundaries->digest))
        return pf_fail(err, SLUICE_CORRUPT, "a task's result is not whole");
    return SLUICE_OK;
}

sluice_status wk_boundaries_decode(const void *bytes, size_t length, wk_boundaries *ret_boundaries, sluice_error *err)
{
    cJSON *document = NULL;

    memset(ret_boundaries, 0, sizeof *ret_boundaries);
    PF_TRY(st_json_parse(bytes, length, &document, err));
    sluice_status status = decode(document, ret_boundaries, err);
    st_json_free(document);
    return status;
}
