/*
 * Flatbuffers: what was built is read; nothing outside of the buffer is ever read, whatever the buffer says.
 */
#include "store/arrow/flatbuffer.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

typedef struct pair {
    uint64_t a, b;
} pair;

/* A table with every kind of field, and a child table that the parent refers to twice. */
static const uint8_t *build(st_fb_builder *fb, size_t *ret_length)
{
    sluice_error err = {0};
    const uint8_t *bytes;
    static const pair pairs[3] = {{1, 2}, {3, 4}, {UINT64_MAX, 6}};

    st_fb_ref name = st_fb_string(fb, "n\0me", 4), empty = st_fb_string(fb, "", 0);
    st_fb_table_begin(fb);
    st_fb_put_ref(fb, 0, name);
    st_fb_put_u8(fb, 2, 7, 0);
    st_fb_ref child = st_fb_table_end(fb);
    st_fb_table_begin(fb);
    st_fb_ref bare = st_fb_table_end(fb);
    st_fb_ref children = st_fb_vector_of_refs(fb, (st_fb_ref[]){child, bare, child}, 3);
    st_fb_ref none = st_fb_vector_of_refs(fb, NULL, 0);
    st_fb_ref structs = st_fb_vector_of_structs(fb, pairs, 3, sizeof(pair));
    st_fb_table_begin(fb);
    st_fb_put_u8(fb, 0, 200, 0);
    st_fb_put_u16(fb, 1, 0, 1); /* not the default: stored though it is 0 */
    st_fb_put_u32(fb, 2, 70000, 0);
    st_fb_put_u64(fb, 3, UINT64_MAX - 1, 0);
    st_fb_put_u64(fb, 4, 9, 9); /* the default: left out */
    st_fb_put_ref(fb, 5, empty);
    st_fb_put_ref(fb, 6, child);
    st_fb_put_ref(fb, 7, children);
    st_fb_put_ref(fb, 8, structs);
    st_fb_put_ref(fb, 9, none);
    st_fb_put_ref(fb, 10, 0); /* none: left out */
    ASSERT_OK(st_fb_finish(fb, st_fb_table_end(fb), &bytes, ret_length, &err));
    return bytes;
}

static void what_was_built_is_read(void **state)
{
    (void)state;
    st_fb_builder fb = {0};
    size_t length;
    uint32_t size;
    const uint8_t *bytes = build(&fb, &length);
    st_fb_view view = {bytes, (uint32_t)length, false};
    assert_int_equal(length % 8, 0);

    st_fb_table root = st_fb_root(&view);
    assert_int_equal(st_fb_u8(&root, 0, 0), 200);
    assert_int_equal(st_fb_u16(&root, 1, 1), 0);
    assert_int_equal(st_fb_u32(&root, 2, 0), 70000);
    assert_true(st_fb_u64(&root, 3, 0) == UINT64_MAX - 1);
    assert_int_equal(st_fb_u64(&root, 4, 9), 9);
    assert_false(st_fb_has(&root, 4) || st_fb_has(&root, 10) || st_fb_has(&root, 15));
    assert_true(st_fb_has(&root, 5));
    assert_string_equal(st_fb_string_at(&root, 5, &size), "");
    assert_int_equal(size, 0);
    assert_null(st_fb_string_at(&root, 10, &size));

    st_fb_table child = st_fb_table_at(&root, 6);
    assert_memory_equal(st_fb_string_at(&child, 0, &size), "n\0me", 5);
    assert_int_equal(size, 4);
    st_fb_vector children = st_fb_vector_at(&root, 7, 4);
    assert_int_equal(children.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        child = st_fb_vector_table(&children, i);
        assert_int_equal(st_fb_u8(&child, 2, 1), i == 1 ? 1 : 7);
    }
    st_fb_vector structs = st_fb_vector_at(&root, 8, sizeof(pair));
    assert_int_equal(structs.count, 3);
    pair last;
    memcpy(&last, st_fb_vector_struct(&structs, 2), sizeof last);
    assert_true(last.a == UINT64_MAX && last.b == 6);
    assert_int_equal(st_fb_vector_at(&root, 9, 4).count, 0);
    assert_int_equal(st_fb_vector_at(&root, 10, 4).count, 0);
    assert_false(view.bad);
    st_fb_builder_free(&fb);
}

/* Reads all that can be reached; the values do not matter. */
static bool walk(const uint8_t *bytes, size_t length)
{
    st_fb_view view = {bytes, (uint32_t)length, false};
    static volatile uint64_t sum;
    uint32_t size;
    st_fb_table root = st_fb_root(&view), child = st_fb_table_at(&root, 6);
    for (uint32_t slot = 0; slot < ST_FB_SLOTS_MAX; slot++) {
        sum += st_fb_u8(&root, slot, 0) + st_fb_u16(&root, slot, 0) + st_fb_u32(&root, slot, 0);
        sum += st_fb_u64(&root, slot, 0) + st_fb_has(&root, slot) + st_fb_u8(&child, slot, 0);
    }
    for (uint32_t slot = 5; slot < 11; slot++) {
        const char *text = st_fb_string_at(&root, slot, &size);
        sum += text ? strlen(text) + (uint64_t)text[size] : 0;
        st_fb_vector vector = st_fb_vector_at(&root, slot, 16);
        for (uint32_t i = 0; i < vector.count; i++)
            sum += *st_fb_vector_struct(&vector, i) + st_fb_vector_struct(&vector, i)[15];
        vector = st_fb_vector_at(&root, slot, 4);
        for (uint32_t i = 0; i < vector.count; i++) {
            st_fb_table table = st_fb_vector_table(&vector, i);
            sum += st_fb_u64(&table, 0, 0) + st_fb_u8(&table, 2, 0);
        }
    }
    return !view.bad;
}

static void nothing_outside_of_the_buffer_is_read(void **state)
{
    (void)state;
    st_fb_builder fb = {0};
    size_t length;
    const uint8_t *bytes = build(&fb, &length);
    /* Each copy has exactly its length, so that the sanitizer sees a read of one byte beyond. */
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        walk(copy, cut);
        free(copy);
    }
    static const uint8_t values[] = {0, 1, 2, 3, 4, 0x7F, 0x80, 0xFE, 0xFF};
    for (size_t at = 0; at < length; at++) {
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t *copy = malloc(length);
            assert_non_null(copy);
            memcpy(copy, bytes, length);
            copy[at] = values[v];
            walk(copy, length);
            if (at + 3 < length) {
                memset(copy + at, values[v], 4);
                walk(copy, length);
            }
            free(copy);
        }
    }
    st_fb_builder_free(&fb);
}

static void what_grows_too_large_fails(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_fb_builder fb = {0};
    const uint8_t *bytes;
    size_t length;
    (void)st_fb_string(&fb, "", ST_FB_BYTES_MAX);
    st_fb_ref more = st_fb_string(&fb, "later calls do nothing", 22);
    assert_int_equal(more, 0);
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_fb_finish(&fb, more, &bytes, &length, &err));
    st_fb_builder_free(&fb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_built_is_read),
        cmocka_unit_test(nothing_outside_of_the_buffer_is_read),
        cmocka_unit_test(what_grows_too_large_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
