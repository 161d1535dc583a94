/*
 * Flatbuffers, as much of them as Arrow's metadata needs: a builder, and a reader that believes nothing.
 *
 * The builder works from the end of the buffer to its front, children before parents; a reference is the distance of an
 * object from the end. The reader checks every offset, vector, string and vtable against the buffer when it follows it;
 * a fault sets `bad` and yields the neutral value (0, absent, empty), so that a decoder reads on and asks once at the
 * end. It copies nothing and follows no pointer by itself: depth and amount are the decoder's to bound.
 */
#ifndef STORE_ARROW_FLATBUFFER_H
#define STORE_ARROW_FLATBUFFER_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ST_FB_SLOTS_MAX 16u
#define ST_FB_BYTES_MAX ((size_t)1 << 30)

/* ---- building ---- */

typedef uint32_t st_fb_ref; /* 0: none */

typedef struct st_fb_builder {
    uint8_t *bytes; /* filled from the end */
    size_t capacity, used;
    size_t table_start; /* used, when the open table was begun */
    st_fb_ref slots[ST_FB_SLOTS_MAX];
    uint32_t slot_count;
    sluice_status failed; /* the first failure sticks; later calls do nothing */
} st_fb_builder;

void st_fb_builder_free(st_fb_builder *builder); /* safe on a zeroed one, which is also how one begins */
st_fb_ref st_fb_string(st_fb_builder *builder, const char *text, size_t length);
st_fb_ref st_fb_vector_of_refs(st_fb_builder *builder, const st_fb_ref *refs, uint32_t count);
/* A vector of structs that consist of 64-bit words. */
st_fb_ref st_fb_vector_of_structs(st_fb_builder *builder, const void *structs, uint32_t count, size_t size);
/* A table: begin, put fields (a value that equals the field's default `fallback` is left out), end. Never nested. */
void st_fb_table_begin(st_fb_builder *builder);
void st_fb_put_u8(st_fb_builder *builder, uint32_t slot, uint8_t value, uint8_t fallback);
void st_fb_put_u16(st_fb_builder *builder, uint32_t slot, uint16_t value, uint16_t fallback);
void st_fb_put_u32(st_fb_builder *builder, uint32_t slot, uint32_t value, uint32_t fallback);
void st_fb_put_u64(st_fb_builder *builder, uint32_t slot, uint64_t value, uint64_t fallback);
void st_fb_put_ref(st_fb_builder *builder, uint32_t slot, st_fb_ref ref);
st_fb_ref st_fb_table_end(st_fb_builder *builder);
/* Closes the buffer; its bytes belong to the builder and have a length that is a multiple of 8. */
sluice_status st_fb_finish(st_fb_builder *builder, st_fb_ref root, const uint8_t **ret_bytes, size_t *ret_length,
                           sluice_error *err);

/* ---- reading ---- */

typedef struct st_fb_view {
    const uint8_t *bytes;
    uint32_t length;
    bool bad;
} st_fb_view;

typedef struct st_fb_table {
    st_fb_view *view; /* NULL: absent, every field has its default */
    uint32_t at, size;
    uint32_t vtable, vtable_size;
} st_fb_table;

typedef struct st_fb_vector {
    st_fb_view *view;
    uint32_t at; /* of element 0 */
    uint32_t count, size;
} st_fb_vector;

st_fb_table st_fb_root(st_fb_view *view);
uint8_t st_fb_u8(const st_fb_table *table, uint32_t slot, uint8_t fallback);
uint16_t st_fb_u16(const st_fb_table *table, uint32_t slot, uint16_t fallback);
uint32_t st_fb_u32(const st_fb_table *table, uint32_t slot, uint32_t fallback);
uint64_t st_fb_u64(const st_fb_table *table, uint32_t slot, uint64_t fallback);
bool st_fb_has(const st_fb_table *table, uint32_t slot);
st_fb_table st_fb_table_at(const st_fb_table *table, uint32_t slot);
/* The bytes of a string (a zero byte follows them); NULL when absent. */
const char *st_fb_string_at(const st_fb_table *table, uint32_t slot, uint32_t *ret_length);
/* A vector of elements of `size` bytes; count 0 when absent. */
st_fb_vector st_fb_vector_at(const st_fb_table *table, uint32_t slot, uint32_t size);
/* Element `i` of a vector of tables, or of structs (its bytes, unaligned). */
st_fb_table st_fb_vector_table(const st_fb_vector *vector, uint32_t i);
const uint8_t *st_fb_vector_struct(const st_fb_vector *vector, uint32_t i);

#endif
