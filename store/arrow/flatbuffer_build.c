/*
 * Building Flatbuffers from the end to the front.
 *
 * Alignment is kept relative to the end; the finished length is a multiple of 8 and so is every alignment that occurs,
 * hence what is aligned from the end is aligned from the front.
 */
#include "store/arrow/flatbuffer.h"

#include "platform/check.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024u
#define ALIGNMENT      8u

void st_fb_builder_free(st_fb_builder *builder)
{
    free(builder->bytes);
    *builder = (st_fb_builder){0};
}

/* Room for `more` bytes in front of what is there. */
static bool make_room(st_fb_builder *builder, size_t more)
{
    size_t needed;

    if (builder->failed != SLUICE_OK)
        return false;
    if (more <= builder->capacity - builder->used)
        return true;
    if (!pf_add_size(builder->used, more, &needed) || needed > ST_FB_BYTES_MAX) {
        builder->failed = SLUICE_RESOURCE_LIMIT;
        return false;
    }
    size_t capacity = builder->capacity ? builder->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    uint8_t *larger = malloc(capacity);
    if (!larger) {
        builder->failed = SLUICE_RESOURCE_LIMIT;
        return false;
    }
    if (builder->used)
        memcpy(larger + capacity - builder->used, builder->bytes + builder->capacity - builder->used, builder->used);
    free(builder->bytes);
    builder->bytes = larger;
    builder->capacity = capacity;
    return true;
}

static void prepend(st_fb_builder *builder, const void *bytes, size_t length)
{
    if (!length || !make_room(builder, length))
        return;
    builder->used += length;
    memcpy(builder->bytes + builder->capacity - builder->used, bytes, length);
}

/* Zeros, so that after `length` more bytes the front is aligned. */
static void pad_for(st_fb_builder *builder, size_t length, size_t alignment)
{
    static const uint8_t zeros[ALIGNMENT];
    prepend(builder, zeros, (0 - (builder->used + length)) & (alignment - 1));
}

static void prepend_u32(st_fb_builder *builder, uint32_t value)
{
    prepend(builder, &value, sizeof value);
}

/* An offset at the front that leads to `ref`. */
static void prepend_ref(st_fb_builder *builder, st_fb_ref ref)
{
    prepend_u32(builder, (uint32_t)builder->used + 4 - ref);
}

static st_fb_ref here(const st_fb_builder *builder)
{
    return builder->failed == SLUICE_OK ? (st_fb_ref)builder->used : 0;
}

st_fb_ref st_fb_string(st_fb_builder *builder, const char *text, size_t length)
{
    static const uint8_t zero = 0;

    if (length >= ST_FB_BYTES_MAX) {
        builder->failed = SLUICE_RESOURCE_LIMIT;
        return 0;
    }
    pad_for(builder, length + 1, 4);
    prepend(builder, &zero, 1);
    prepend(builder, text, length);
    prepend_u32(builder, (uint32_t)length);
    return here(builder);
}

st_fb_ref st_fb_vector_of_refs(st_fb_builder *builder, const st_fb_ref *refs, uint32_t count)
{
    pad_for(builder, 0, 4);
    for (uint32_t i = count; i; i--)
        prepend_ref(builder, refs[i - 1]);
    prepend_u32(builder, count);
    return here(builder);
}

st_fb_ref st_fb_vector_of_structs(st_fb_builder *builder, const void *structs, uint32_t count, size_t size)
{
    size_t length;

    PF_ASSERT(size % 8 == 0);
    if (!pf_mul_size(count, size, &length) || length >= ST_FB_BYTES_MAX) {
        builder->failed = SLUICE_RESOURCE_LIMIT;
        return 0;
    }
    pad_for(builder, length, 8);
    prepend(builder, structs, length);
    prepend_u32(builder, count);
    return here(builder);
}

void st_fb_table_begin(st_fb_builder *builder)
{
    PF_ASSERT(builder->slot_count == 0);
    memset(builder->slots, 0, sizeof builder->slots);
    builder->slot_count = ST_FB_SLOTS_MAX;
    builder->table_start = builder->used;
}

static void put(st_fb_builder *builder, uint32_t slot, const void *value, size_t size)
{
    PF_ASSERT(slot < builder->slot_count);
    pad_for(builder, size, size);
    prepend(builder, value, size);
    builder->slots[slot] = here(builder);
}

void st_fb_put_u8(st_fb_builder *builder, uint32_t slot, uint8_t value, uint8_t fallback)
{
    if (value != fallback)
        put(builder, slot, &value, sizeof value);
}

void st_fb_put_u16(st_fb_builder *builder, uint32_t slot, uint16_t value, uint16_t fallback)
{
    if (value != fallback)
        put(builder, slot, &value, sizeof value);
}

void st_fb_put_u32(st_fb_builder *builder, uint32_t slot, uint32_t value, uint32_t fallback)
{
    if (value != fallback)
        put(builder, slot, &value, sizeof value);
}

void st_fb_put_u64(st_fb_builder *builder, uint32_t slot, uint64_t value, uint64_t fallback)
{
    if (value != fallback)
        put(builder, slot, &value, sizeof value);
}

void st_fb_put_ref(st_fb_builder *builder, uint32_t slot, st_fb_ref ref)
{
    if (!ref)
        return;
    PF_ASSERT(slot < builder->slot_count);
    pad_for(builder, 4, 4);
    prepend_ref(builder, ref);
    builder->slots[slot] = here(builder);
}

/* The table gets its vtable directly in front of itself. */
st_fb_ref st_fb_table_end(st_fb_builder *builder)
{
    uint16_t vtable[2 + ST_FB_SLOTS_MAX];
    uint32_t slots = ST_FB_SLOTS_MAX;

    builder->slot_count = 0;
    while (slots && !builder->slots[slots - 1])
        slots--;
    size_t vtable_size = 2 * (2 + (size_t)slots);
    pad_for(builder, 4, 4);
    prepend_u32(builder, (uint32_t)vtable_size); /* back to the vtable */
    st_fb_ref table = here(builder);
    vtable[0] = (uint16_t)vtable_size;
    vtable[1] = (uint16_t)(table - builder->table_start);
    for (uint32_t i = 0; i < slots; i++)
        vtable[2 + i] = builder->slots[i] ? (uint16_t)(table - builder->slots[i]) : 0;
    prepend(builder, vtable, vtable_size);
    return table;
}

sluice_status st_fb_finish(st_fb_builder *builder, st_fb_ref root, const uint8_t **ret_bytes, size_t *ret_length,
                           sluice_error *err)
{
    pad_for(builder, 4, ALIGNMENT);
    prepend_ref(builder, root);
    if (builder->failed == SLUICE_RESOURCE_LIMIT)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the metadata of a file would be too large");
    *ret_bytes = builder->bytes + builder->capacity - builder->used;
    *ret_length = builder->used;
    return SLUICE_OK;
}
