/*
 * Attachments of a record (manifest.h): bytes behind the manifest, each at a multiple of 64, listed with offset, length
 * and XXH3-128. The record's SHA-256 covers them too; the checks here say which one is damaged, and are what a reader
 * relies on that was handed a record by something else than a chain.
 */
#include "platform/check.h"
#include "store/state/manifest.h"
#include <stdlib.h>

sluice_status st_attach(st_attachments *list, pf_buffer *bytes, const void *content, size_t length,
                        uint32_t *ret_number, sluice_error *err)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 8;
        st_attachment *items = realloc(list->items, capacity * sizeof(*items));
        if (!items)
            return pf_fail_memory(err);
        list->items = items;
        list->capacity = capacity;
    }
    PF_TRY(pf_buffer_align(bytes, ST_ATTACHMENT_ALIGN, err));
    st_attachment *item = &list->items[list->count];
    *item = (st_attachment){.offset = bytes->length, .length = length, .check = pf_xxh128_of(content, length)};
    PF_TRY(pf_buffer_append(bytes, content, length, err));
    *ret_number = list->count++;
    return SLUICE_OK;
}

sluice_status st_attachment_get(const st_record *record, const st_attachments *list, uint32_t number,
                                const void **ret_bytes, size_t *ret_length, sluice_error *err)
{
    uint64_t end;
    if (number >= list->count)
        return pf_fail(err, SLUICE_CORRUPT, "record %llu has no attachment %u", (unsigned long long)record->number,
                       (unsigned)number);
    const st_attachment *item = &list->items[number];
    if (item->offset % ST_ATTACHMENT_ALIGN != 0 || !pf_add_u64(item->offset, item->length, &end) ||
        end > record->attachments_length)
        return pf_fail(err, SLUICE_CORRUPT, "attachment %u of record %llu lies outside of it", (unsigned)number,
                       (unsigned long long)record->number);
    const uint8_t *bytes = record->attachments + item->offset;
    if (!pf_xxh128_equal(pf_xxh128_of(bytes, (size_t)item->length), item->check))
        return pf_fail(err, SLUICE_CORRUPT, "attachment %u of record %llu is damaged", (unsigned)number,
                       (unsigned long long)record->number);
    *ret_bytes = bytes;
    *ret_length = (size_t)item->length;
    return SLUICE_OK;
}

void st_attachments_free(st_attachments *list)
{
    free(list->items);
    *list = (st_attachments){0};
}
