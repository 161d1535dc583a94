/*
 * The table of receipts in an opening record (manifest.h, docs/format.md "Receipt table"): op id -> commit for the
 * commits of earlier segments, in publication order, at most ST_RECEIPTS_MAX and none older than ST_RECEIPTS_AGE_US.
 * Fixed fields, little-endian: a look-up compares ids where they lie and parses nothing.
 *
 * Head (32 bytes): magic "SLUICERT", u32 version, u32 count, i64 floor, u64 zero. Entry (96 bytes): operation[16],
 * commit[16], request[32], u64 incarnation, u64 generation, u32 index, u32 zero, i64 time.
 */
#include "platform/check.h"
#include "store/state/manifest.h"
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES  32u
#define ENTRY_BYTES 96u
#define VERSION     1u

static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'R', 'T'};

static void put(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

void st_receipts_free(st_receipt_table *table)
{
    free(table->items);
    *table = (st_receipt_table){0};
}

sluice_status st_receipts_add(st_receipt_table *table, const st_receipt *receipt, sluice_error *err)
{
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 256;
        st_receipt *items = realloc(table->items, capacity * sizeof(*items));
        if (!items)
            return pf_fail_memory(err);
        table->items = items;
        table->capacity = capacity;
    }
    table->items[table->count++] = *receipt;
    return SLUICE_OK;
}

static bool is_old(int64_t time_us, int64_t now_us)
{
    return time_us < now_us && (uint64_t)now_us - (uint64_t)time_us > (uint64_t)ST_RECEIPTS_AGE_US;
}

void st_receipts_trim(st_receipt_table *table, int64_t now_us)
{
    uint32_t drop = table->count > ST_RECEIPTS_MAX ? table->count - ST_RECEIPTS_MAX : 0;
    while (drop < table->count && is_old(table->items[drop].time_us, now_us))
        drop++;
    if (drop == 0)
        return;
    table->floor_us = table->items[drop - 1].time_us; /* times never fall along the chain */
    memmove(table->items, table->items + drop, (table->count - drop) * sizeof(*table->items));
    table->count -= drop;
}

sluice_status st_receipts_encode(const st_receipt_table *table, pf_buffer *buffer, sluice_error *err)
{
    size_t bytes = HEAD_BYTES + (size_t)table->count * ENTRY_BYTES;
    PF_TRY(pf_buffer_reserve(buffer, bytes, err));
    uint8_t *at = buffer->data + buffer->length;
    memset(at, 0, bytes);
    memcpy(at, magic, sizeof(magic));
    put(at + 8, VERSION, 4);
    put(at + 12, table->count, 4);
    put(at + 16, (uint64_t)table->floor_us, 8);
    at += HEAD_BYTES;
    for (uint32_t i = 0; i < table->count; i++, at += ENTRY_BYTES) {
        const st_receipt *receipt = &table->items[i];
        memcpy(at, receipt->operation.bytes, 16);
        memcpy(at + 16, receipt->commit.bytes, 16);
        memcpy(at + 32, receipt->request.bytes, 32);
        put(at + 64, receipt->incarnation, 8);
        put(at + 72, receipt->generation, 8);
        put(at + 80, receipt->index, 4);
        put(at + 88, (uint64_t)receipt->time_us, 8);
    }
    buffer->length += bytes;
    return SLUICE_OK;
}

static sluice_status damaged(sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "the table of receipts of an opening record is damaged");
}

static bool read_entry(const uint8_t *at, st_receipt *receipt)
{
    memcpy(receipt->operation.bytes, at, 16);
    memcpy(receipt->commit.bytes, at + 16, 16);
    memcpy(receipt->request.bytes, at + 32, 32);
    receipt->incarnation = get(at + 64, 8);
    receipt->generation = get(at + 72, 8);
    receipt->index = (uint32_t)get(at + 80, 4);
    receipt->time_us = (int64_t)get(at + 88, 8);
    return get(at + 84, 4) == 0 && !pf_id_is_nil(&receipt->operation);
}

sluice_status st_receipts_decode(const void *bytes, size_t length, st_receipt_table *ret_table, sluice_error *err)
{
    const uint8_t *at = bytes;
    st_receipt_table table = {0};
    if (length < HEAD_BYTES || memcmp(at, magic, sizeof(magic)) != 0)
        return damaged(err);
    if (get(at + 8, 4) != VERSION)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a table of receipts of another version");
    uint64_t count = get(at + 12, 4);
    if (count > ST_RECEIPTS_MAX || get(at + 24, 8) != 0 || length != HEAD_BYTES + count * ENTRY_BYTES)
        return damaged(err);
    table.floor_us = (int64_t)get(at + 16, 8);
    table.count = table.capacity = (uint32_t)count;
    table.items = calloc(count ? (size_t)count : 1, sizeof(*table.items));
    if (!table.items)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < table.count; i++) {
        if (!read_entry(at + HEAD_BYTES + (size_t)i * ENTRY_BYTES, &table.items[i]) ||
            (i > 0 && table.items[i].time_us < table.items[i - 1].time_us)) {
            st_receipts_free(&table);
            return damaged(err);
        }
    }
    *ret_table = table;
    return SLUICE_OK;
}
