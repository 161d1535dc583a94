/*
 * Reading Flatbuffers that may be anything: see the header for the contract.
 */
#include "store/arrow/flatbuffer.h"

#include "platform/check.h"

#include <string.h>

/* True when [at, at + size) lies in the buffer; else the buffer is bad. */
static bool within(st_fb_view *view, uint64_t at, uint64_t size)
{
    if (at <= view->length && size <= view->length - at)
        return true;
    view->bad = true;
    return false;
}

static uint32_t u32_at(const st_fb_view *view, uint32_t at)
{
    uint32_t value;
    memcpy(&value, view->bytes + at, sizeof value);
    return value;
}

static uint32_t u16_at(const st_fb_view *view, uint32_t at)
{
    uint16_t value;
    memcpy(&value, view->bytes + at, sizeof value);
    return value;
}

static st_fb_table table_from(st_fb_view *view, uint64_t at)
{
    static const st_fb_table absent;
    st_fb_table table = {.view = view, .at = (uint32_t)at};

    if (!within(view, at, 4))
        return absent;
    int64_t vtable = (int64_t)at - (int32_t)u32_at(view, table.at);
    if (vtable < 0 || !within(view, (uint64_t)vtable, 4)) {
        view->bad = true;
        return absent;
    }
    table.vtable = (uint32_t)vtable;
    table.vtable_size = u16_at(view, table.vtable);
    table.size = u16_at(view, table.vtable + 2);
    if (table.vtable_size < 4 || table.vtable_size % 2 || table.size < 4) {
        view->bad = true;
        return absent;
    }
    if (!within(view, table.vtable, table.vtable_size) || !within(view, at, table.size))
        return absent;
    return table;
}

st_fb_table st_fb_root(st_fb_view *view)
{
    static const st_fb_table absent;
    return within(view, 0, 4) ? table_from(view, u32_at(view, 0)) : absent;
}

/* Where a field of `size` bytes lies; 0 when it is absent. */
static uint32_t field_at(const st_fb_table *table, uint32_t slot, uint32_t size)
{
    if (!table->view || 4 + 2 * slot + 2 > table->vtable_size)
        return 0;
    uint32_t offset = u16_at(table->view, table->vtable + 4 + 2 * slot);
    if (!offset)
        return 0;
    if (offset < 4 || offset > table->size || size > table->size - offset) {
        table->view->bad = true;
        return 0;
    }
    return table->at + offset;
}

bool st_fb_has(const st_fb_table *table, uint32_t slot)
{
    return field_at(table, slot, 1) != 0;
}

uint8_t st_fb_u8(const st_fb_table *table, uint32_t slot, uint8_t fallback)
{
    uint32_t at = field_at(table, slot, 1);
    return at ? table->view->bytes[at] : fallback;
}

uint16_t st_fb_u16(const st_fb_table *table, uint32_t slot, uint16_t fallback)
{
    uint32_t at = field_at(table, slot, 2);
    return at ? (uint16_t)u16_at(table->view, at) : fallback;
}

uint32_t st_fb_u32(const st_fb_table *table, uint32_t slot, uint32_t fallback)
{
    uint32_t at = field_at(table, slot, 4);
    return at ? u32_at(table->view, at) : fallback;
}

uint64_t st_fb_u64(const st_fb_table *table, uint32_t slot, uint64_t fallback)
{
    uint32_t at = field_at(table, slot, 8);
    uint64_t value = fallback;
    if (at)
        memcpy(&value, table->view->bytes + at, sizeof value);
    return value;
}

/* Follows the offset that stands at `at`. */
static uint64_t follow(const st_fb_view *view, uint32_t at)
{
    return (uint64_t)at + u32_at(view, at);
}

st_fb_table st_fb_table_at(const st_fb_table *table, uint32_t slot)
{
    static const st_fb_table absent;
    uint32_t at = field_at(table, slot, 4);
    return at ? table_from(table->view, follow(table->view, at)) : absent;
}

const char *st_fb_string_at(const st_fb_table *table, uint32_t slot, uint32_t *ret_length)
{
    uint32_t at = field_at(table, slot, 4);

    *ret_length = 0;
    if (!at)
        return NULL;
    uint64_t text = follow(table->view, at);
    if (!within(table->view, text, 4))
        return NULL;
    uint32_t length = u32_at(table->view, (uint32_t)text);
    if (!within(table->view, text + 4, (uint64_t)length + 1))
        return NULL;
    const char *bytes = (const char *)table->view->bytes + text + 4;
    if (bytes[length]) {
        table->view->bad = true;
        return NULL;
    }
    *ret_length = length;
    return bytes;
}

st_fb_vector st_fb_vector_at(const st_fb_table *table, uint32_t slot, uint32_t size)
{
    static const st_fb_vector absent;
    uint32_t at = field_at(table, slot, 4);

    if (!at)
        return absent;
    uint64_t start = follow(table->view, at);
    if (!within(table->view, start, 4))
        return absent;
    uint32_t count = u32_at(table->view, (uint32_t)start);
    if (!within(table->view, start + 4, (uint64_t)count * size))
        return absent;
    return (st_fb_vector){table->view, (uint32_t)start + 4, count, size};
}

st_fb_table st_fb_vector_table(const st_fb_vector *vector, uint32_t i)
{
    PF_ASSERT(i < vector->count && vector->size == 4);
    return table_from(vector->view, follow(vector->view, vector->at + 4 * i));
}

const uint8_t *st_fb_vector_struct(const st_fb_vector *vector, uint32_t i)
{
    PF_ASSERT(i < vector->count);
    return vector->view->bytes + vector->at + (uint64_t)vector->size * i;
}
