/*
 * Keys of one part: sorted digests with their places (coord/infer_job.h). Which part a key is in follows from its
 * digest, so that all keys are compared once all parts were read.
 */
#include "coord/infer_job.h"
#include "store/fragment/key.h"
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX (UINT64_C(1) << 22) /* of a part: 96 MiB */

static uint64_t keys_max(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_KEYS"); /* so that few keys have several parts */
    unsigned long keys = value ? strtoul(value, NULL, 10) : 0;
    if (keys > 0 && keys < KEYS_MAX)
        return keys;
#endif
    return KEYS_MAX;
}

uint32_t infer_parts(uint64_t keys)
{
    return (uint32_t)(keys / keys_max()) + 1;
}

void infer_keys_free(infer_keys *keys)
{
    free(keys->items);
    pf_buffer_free(&keys->scratch);
    *keys = (infer_keys){0};
}

/* *ret_part false: of another part; *ret_fits false: longer than a key may be. */
static sluice_status digest(infer_keys *keys, const st_column *const *columns, uint32_t count, uint64_t row,
                            pf_xxh128 *ret_digest, bool *ret_part, bool *ret_fits, sluice_error *err)
{
    sluice_error error;

    keys->scratch.length = 0;
    sluice_status status = st_key_encode(columns, count, row, &keys->scratch, &error);
    *ret_fits = status == SLUICE_OK;
    *ret_part = false;
    if (status == SLUICE_RESOURCE_LIMIT)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    *ret_digest = pf_xxh128_of(keys->scratch.data, keys->scratch.length);
    *ret_part = ret_digest->high % keys->parts == keys->part;
    return SLUICE_OK;
}

sluice_status infer_keys_add(infer_keys *keys, const st_column *const *columns, uint32_t count, uint64_t row,
                             uint64_t place, bool *ret_fits, sluice_error *err)
{
    infer_key key = {.place = place};
    bool part;

    PF_TRY(digest(keys, columns, count, row, &key.digest, &part, ret_fits, err));
    if (!part)
        return SLUICE_OK;
    if (keys->count == keys->room) {
        uint64_t room = keys->room ? keys->room * 2 : 1024;
        infer_key *items = realloc(keys->items, room * sizeof *items);
        if (items == NULL)
            return pf_fail_memory(err);
        keys->items = items;
        keys->room = room;
    }
    keys->items[keys->count++] = key;
    return SLUICE_OK;
}

static int compare_digests(const pf_xxh128 *a, const pf_xxh128 *b)
{
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return (a->low > b->low) - (a->low < b->low);
}

static int by_digest(const void *a, const void *b)
{
    const infer_key *left = a, *right = b;
    int order = compare_digests(&left->digest, &right->digest);

    return order ? order : (left->place > right->place) - (left->place < right->place);
}

void infer_keys_sort(infer_keys *keys)
{
    if (keys->count > 0)
        qsort(keys->items, keys->count, sizeof *keys->items, by_digest);
}

bool infer_keys_twice(const infer_keys *keys, uint64_t *ret_place, uint64_t *ret_other)
{
    bool any = false;
    uint64_t first = 0;

    for (uint64_t i = 1; i < keys->count; i++) {
        if (compare_digests(&keys->items[i].digest, &keys->items[first].digest) != 0) {
            first = i;
            continue;
        }
        if (!any || keys->items[i].place < *ret_place) {
            *ret_place = keys->items[i].place;
            *ret_other = keys->items[first].place;
        }
        any = true;
    }
    return any;
}

sluice_status infer_keys_has(infer_keys *keys, const st_column *const *columns, uint32_t count, uint64_t row,
                             bool *ret_asked, bool *ret_has, sluice_error *err)
{
    infer_key key = {0};
    bool fits;
    uint64_t low = 0, high = keys->count;

    PF_TRY(digest(keys, columns, count, row, &key.digest, ret_asked, &fits, err));
    *ret_has = false;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = compare_digests(&keys->items[middle].digest, &key.digest);
        if (order == 0)
            *ret_has = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SLUICE_OK;
}
