/*
 * Shared parts of manifests (manifest_parts.h).
 *
 * Skip pointers: generation n names, for k = 0, 1, 2, ..., the generation with the greatest number below n that 2^k
 * divides, with the digest of its record. They follow from the parent's alone, and lead to any ancestor in a number of
 * steps that grows with the logarithm of the distance.
 */
#include "store/state/manifest_parts.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

void st_merged_write(st_json *json, const st_commit *commit)
{
    if (commit->merged_count == 0)
        return;
    st_json_name(json, "ancestry");
    st_json_array(json);
    for (uint32_t i = 0; i < commit->merged_count; i++) {
        st_json_object(json);
        st_put_u64(json, "incarnation", commit->merged[i].incarnation);
        st_put_u64(json, "generation", commit->merged[i].generation);
        st_put_number(json, "index", commit->merged[i].index);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

sluice_status st_merged_read(const cJSON *object, st_commit *commit, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *merged = NULL;
    if (!st_json_field(object, "ancestry"))
        return pf_id_is_nil(&commit->parents[1]) ? SLUICE_OK
                                                 : pf_fail(err, SLUICE_CORRUPT, "a merge without its ancestry");
    PF_TRY(st_take_list(object, "ancestry", sizeof(*commit->merged), &list, &merged, err));
    commit->merged = merged;
    cJSON_ArrayForEach(item, list)
    {
        st_reach *reach = &commit->merged[commit->merged_count++];
        PF_TRY(st_json_get_u64(item, "incarnation", &reach->incarnation, err));
        PF_TRY(st_json_get_u64(item, "generation", &reach->generation, err));
        PF_TRY(st_take_small(item, "index", &reach->index, err));
        if (reach->incarnation == 0 || reach->generation == 0)
            return pf_fail(err, SLUICE_CORRUPT, "a merge's ancestry names no place");
    }
    return !pf_id_is_nil(&commit->parents[1]) && commit->merged_count > 0
               ? SLUICE_OK
               : pf_fail(err, SLUICE_CORRUPT, "an ancestry of no merge");
}

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a manifest is damaged: %s", what);
}

void st_pages_write(st_json *json, const st_state_page *pages, const uint32_t *places, uint32_t count)
{
    st_json_name(json, "pages");
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        st_json_object(json);
        st_put_u64(json, "incarnation", pages[i].incarnation);
        st_put_u64(json, "generation", pages[i].generation);
        st_put_number(json, "attachment", pages[i].attachment);
        st_put_number(json, "entries", pages[i].entries);
        st_put_sha256(json, "digest", &pages[i].digest);
        if (places)
            st_put_number(json, "here", places[i]);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static sluice_status read_page(const cJSON *object, st_state_page *page, sluice_error *err)
{
    PF_TRY(st_json_get_u64(object, "incarnation", &page->incarnation, err));
    PF_TRY(st_json_get_u64(object, "generation", &page->generation, err));
    PF_TRY(st_take_small(object, "attachment", &page->attachment, err));
    PF_TRY(st_take_small(object, "entries", &page->entries, err));
    PF_TRY(st_json_get_sha256(object, "digest", &page->digest, err));
    return page->entries > 0 ? SLUICE_OK : damaged("a state page without an entry", err);
}

sluice_status st_pages_read(const cJSON *document, st_state_page **ret_pages, uint32_t **ret_places,
                            uint32_t *ret_count, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *pages = NULL, *places = NULL;
    PF_TRY(st_take_list(document, "pages", sizeof(st_state_page), &list, &pages, err));
    *ret_pages = pages;
    if (ret_places) {
        PF_TRY(st_take_list(document, "pages", sizeof(uint32_t), &list, &places, err));
        *ret_places = places;
    }
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_page(item, &(*ret_pages)[*ret_count], err));
        if (ret_places)
            PF_TRY(st_take_small(item, "here", &(*ret_places)[*ret_count], err));
        (*ret_count)++;
    }
    return SLUICE_OK;
}

void st_skips_write(st_json *json, const st_skip *skips, uint32_t count)
{
    st_json_name(json, "skips");
    st_json_array(json);
    for (uint32_t k = 0; k < count; k++) {
        st_json_object(json);
        st_put_u64(json, "number", skips[k].number);
        st_put_sha256(json, "digest", &skips[k].digest);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

/* The greatest multiple of 2^k below n. */
static uint64_t skip_number(uint64_t n, uint32_t k)
{
    return n == 0 || k > 63 ? 0 : (n - 1) >> k << k;
}

sluice_status st_skips_read(const cJSON *document, uint64_t number, st_skip **ret_skips, uint32_t *ret_count,
                            sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *skips = NULL;
    PF_TRY(st_take_list(document, "skips", sizeof(st_skip), &list, &skips, err));
    *ret_skips = skips;
    cJSON_ArrayForEach(item, list)
    {
        st_skip *skip = &(*ret_skips)[*ret_count];
        PF_TRY(st_json_get_u64(item, "number", &skip->number, err));
        PF_TRY(st_json_get_sha256(item, "digest", &skip->digest, err));
        if (skip->number == 0 || skip->number != skip_number(number, *ret_count))
            return damaged("a skip pointer", err);
        (*ret_count)++;
    }
    return skip_number(number, *ret_count) == 0 ? SLUICE_OK : damaged("too few skip pointers", err);
}

sluice_status st_skips_next(uint64_t number, const pf_sha256 *digest, const st_skip *skips, uint32_t count,
                            st_skip **ret_skips, uint32_t *ret_count, sluice_error *err)
{
    uint32_t wanted = 0;
    while (skip_number(number + 1, wanted) > 0)
        wanted++;
    st_skip *next = calloc(wanted + 1, sizeof(*next));
    if (!next)
        return pf_fail_memory(err);
    for (uint32_t k = 0; k < wanted; k++) {
        bool parent = skip_number(number + 1, k) == number;
        PF_ASSERT(parent || k < count);
        next[k] = parent ? (st_skip){.number = number, .digest = *digest} : skips[k];
    }
    PF_ASSERT(count <= wanted);
    *ret_skips = next;
    *ret_count = wanted;
    return SLUICE_OK;
}

void st_attachments_write(st_json *json, const st_attachments *attachments)
{
    st_json_name(json, "attachments");
    st_json_array(json);
    for (uint32_t i = 0; i < attachments->count; i++) {
        char check[PF_XXH128_TEXT];
        pf_xxh128_text(attachments->items[i].check, check);
        st_json_object(json);
        st_put_number(json, "offset", attachments->items[i].offset);
        st_put_number(json, "length", attachments->items[i].length);
        st_put_text(json, "check", check);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

sluice_status st_attachments_read(const cJSON *document, st_attachments *ret_attachments, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *items = NULL;
    PF_TRY(st_take_list(document, "attachments", sizeof(st_attachment), &list, &items, err));
    ret_attachments->items = items;
    cJSON_ArrayForEach(item, list)
    {
        st_attachment *attachment = &ret_attachments->items[ret_attachments->count];
        int64_t offset = 0, length = 0;
        const char *check = NULL;
        PF_TRY(st_json_get_number(item, "offset", &offset, err));
        PF_TRY(st_json_get_number(item, "length", &length, err));
        PF_TRY(st_json_get_text(item, "check", &check, err));
        if (offset < 0 || length < 0 || strlen(check) != PF_XXH128_TEXT - 1 ||
            !pf_xxh128_parse(check, &attachment->check))
            return damaged("an attachment", err);
        attachment->offset = (uint64_t)offset;
        attachment->length = (uint64_t)length;
        ret_attachments->count = ret_attachments->capacity = ret_attachments->count + 1;
    }
    return SLUICE_OK;
}
