/*
 * The first line of an opening record's manifest: what the log itself has to say there (docs/format.md "Opening
 * record"). The caller's own manifest is the second line.
 *
 * It names the earlier segments, so that old generations are found without listing names: at most ST_EARLIER_MAX of
 * them, the newest; older ones are named by the opening record of the oldest in the list.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "store/format/json.h"
#include <stdlib.h>
#include <string.h>

#define FORMAT "sluice-opening/1"

sluice_status st_opening_line_encode(uint64_t segment, const st_opening_line *line, pf_buffer *buffer,
                                     sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, FORMAT);
    st_json_name(&json, "segment");
    st_json_u64(&json, segment);
    st_json_name(&json, "repeats");
    st_json_bool(&json, line->repeats);
    st_json_name(&json, "oldest");
    st_json_u64(&json, line->oldest);
    st_json_name(&json, "earlier");
    st_json_array(&json);
    for (uint32_t i = 0; i < line->earlier_count; i++) {
        st_json_object(&json);
        st_json_name(&json, "segment");
        st_json_u64(&json, line->earlier[i].number);
        st_json_name(&json, "first");
        st_json_u64(&json, line->earlier[i].first);
        st_json_name(&json, "opening");
        st_json_sha256(&json, &line->earlier[i].opening);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

static sluice_status decode_earlier(const cJSON *list, st_earlier **ret_earlier, uint32_t *ret_count, sluice_error *err)
{
    const cJSON *item;
    size_t count = 0;
    cJSON_ArrayForEach(item, list) count++;
    if (count > ST_EARLIER_MAX)
        return pf_fail(err, SLUICE_CORRUPT, "an opening record names too many segments");
    st_earlier *earlier = calloc(count ? count : 1, sizeof(*earlier));
    if (!earlier)
        return pf_fail_memory(err);
    *ret_earlier = earlier; /* freed with the segment, also on failure */
    *ret_count = 0;
    cJSON_ArrayForEach(item, list)
    {
        st_earlier *to = &earlier[*ret_count];
        PF_TRY(st_json_get_u64(item, "segment", &to->number, err));
        PF_TRY(st_json_get_u64(item, "first", &to->first, err));
        PF_TRY(st_json_get_sha256(item, "opening", &to->opening, err));
        if (*ret_count > 0 && (to->number <= to[-1].number || to->first < to[-1].first))
            return pf_fail(err, SLUICE_CORRUPT, "an opening record names segments out of order");
        ++*ret_count;
    }
    return SLUICE_OK;
}

sluice_status st_opening_line_decode(const char *manifest, size_t length, st_segment *segment, size_t *ret_line,
                                     sluice_error *err)
{
    cJSON *document = NULL;
    const cJSON *list;
    uint64_t number;
    pf_buffer again = {0};
    sluice_status status;

    const char *end = memchr(manifest, '\n', length);
    PF_ASSERT(end); /* a whole record's manifest ends with LF */
    size_t line = (size_t)(end - manifest) + 1;
    if (line == length)
        return pf_fail(err, SLUICE_CORRUPT, "an opening record says nothing about the state");
    PF_GOTO(status, done, st_json_parse(manifest, line, &document, err));
    PF_GOTO(status, done, st_json_check_format(document, FORMAT, err));
    PF_GOTO(status, done, st_json_get_u64(document, "segment", &number, err));
    PF_GOTO(status, done, st_json_get_bool(document, "repeats", &segment->repeats, err));
    PF_GOTO(status, done, st_json_get_u64(document, "oldest", &segment->oldest, err));
    PF_GOTO(status, done, st_json_get_array(document, "earlier", &list, err));
    PF_GOTO(status, done, decode_earlier(list, &segment->earlier, &segment->earlier_count, err));
    if (number != segment->number ||
        (segment->earlier_count > 0 && segment->earlier[segment->earlier_count - 1].number >= number)) {
        status = pf_fail(err, SLUICE_CORRUPT, "an opening record is that of another segment");
        goto done;
    }
    st_opening_line decoded = {.repeats = segment->repeats,
                               .oldest = segment->oldest,
                               .earlier = segment->earlier,
                               .earlier_count = segment->earlier_count};
    PF_GOTO(status, done, st_opening_line_encode(segment->number, &decoded, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(manifest, line, &again, err));
    *ret_line = line;
done:
    pf_buffer_free(&again);
    st_json_free(document);
    return status;
}
