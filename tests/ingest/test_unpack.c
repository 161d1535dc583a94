/* Unpacking streams: whatever way they are handed in, what joins, and that nothing cut or damaged passes for whole. */
#include "platform/buffer.h"
#include "tests/support/test.h"
#include "worker/ingest/unpack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

typedef struct pipe_ends {
    const uint8_t *packed;
    size_t length, at, piece;
    pf_buffer plain;
} pipe_ends;

static sluice_error err;

static sluice_status take(void *context, void *bytes, size_t length, size_t *ret_got, sluice_error *error)
{
    pipe_ends *ends = context;
    size_t left = ends->length - ends->at;

    (void)error;
    *ret_got = left < ends->piece ? left : ends->piece;
    if (*ret_got > length)
        *ret_got = length;
    if (*ret_got > 0)
        memcpy(bytes, ends->packed + ends->at, *ret_got);
    ends->at += *ret_got;
    return SLUICE_OK;
}

static sluice_status give(void *context, const void *bytes, size_t length, sluice_error *error)
{
    pipe_ends *ends = context;

    assert_true(length > 0);
    return pf_buffer_append(&ends->plain, bytes, length, error);
}

static sluice_status unpack(wk_packing packing, const void *packed, size_t length, size_t piece, pf_buffer *ret_plain)
{
    pipe_ends ends = {.packed = packed, .length = length, .piece = piece};
    wk_flow flow = {.context = &ends, .name = "people.csv.gz", .take = take, .give = give};
    sluice_status status = wk_unpack(packing, &flow, &err);

    if (ret_plain && status == SLUICE_OK)
        *ret_plain = ends.plain;
    else
        pf_buffer_free(&ends.plain);
    return status;
}

/* ---- making ---- */

/* Text that neither packs to nothing nor stays as it is. */
static pf_buffer make_plain(size_t length)
{
    pf_buffer plain = {0};
    uint64_t random = 42;

    for (size_t i = 0; i < length; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint8_t byte = (uint8_t)('a' + (random >> 60));
        ASSERT_OK(pf_buffer_append(&plain, &byte, 1, &err));
    }
    return plain;
}

static void add_gzip(pf_buffer *packed, const void *plain, size_t length)
{
    z_stream z = {0};
    size_t room = compressBound((uLong)length) + 64;

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ASSERT_OK(pf_buffer_reserve(packed, room, &err));
    z.next_in = (Bytef *)(uintptr_t)plain;
    z.avail_in = (uInt)length;
    z.next_out = packed->data + packed->length;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    packed->length += z.total_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
}

static void add_zstd(pf_buffer *packed, const void *plain, size_t length)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t room = ZSTD_compressBound(length);

    assert_non_null(context);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)));
    ASSERT_OK(pf_buffer_reserve(packed, room, &err));
    size_t made = ZSTD_compress2(context, packed->data + packed->length, room, plain, length);
    assert_false(ZSTD_isError(made));
    packed->length += made;
    ZSTD_freeCCtx(context);
}

static void add(wk_packing packing, pf_buffer *packed, const void *plain, size_t length)
{
    if (packing == WK_PACKING_GZIP)
        add_gzip(packed, plain, length);
    else
        add_zstd(packed, plain, length);
}

static const wk_packing packings[] = {WK_PACKING_GZIP, WK_PACKING_ZSTD};

/* ---- tests ---- */

static void members_join_however_they_are_handed_in(void **state)
{
    static const size_t pieces[] = {1, 7, 4096, (size_t)1 << 30};
    pf_buffer plain = make_plain(70000);

    (void)state;
    for (size_t p = 0; p < 2; p++) {
        pf_buffer packed = {0};
        add(packings[p], &packed, plain.data, 60000);
        add(packings[p], &packed, "", 0);
        add(packings[p], &packed, plain.data + 60000, 10000);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            pf_buffer got = {0};
            ASSERT_OK(unpack(packings[p], packed.data, packed.length, pieces[i], &got));
            assert_int_equal(got.length, plain.length);
            assert_memory_equal(got.data, plain.data, plain.length);
            pf_buffer_free(&got);
        }
        pf_buffer_free(&packed);
    }
    pf_buffer_free(&plain);
}

static void much_comes_out_of_little(void **state)
{
    size_t length = (size_t)9 << 20;
    uint8_t *zeros = calloc(length, 1);

    (void)state;
    assert_non_null(zeros);
    for (size_t p = 0; p < 2; p++) {
        pf_buffer packed = {0}, got = {0};
        add(packings[p], &packed, zeros, length);
        assert_true(packed.length < 20000);
        ASSERT_OK(unpack(packings[p], packed.data, packed.length, packed.length, &got));
        assert_int_equal(got.length, length);
        assert_memory_equal(got.data, zeros, length);
        pf_buffer_free(&got);
        pf_buffer_free(&packed);
    }
    free(zeros);
}

static void an_input_that_is_cut_anywhere_is_refused(void **state)
{
    pf_buffer plain = make_plain(300);

    (void)state;
    for (size_t p = 0; p < 2; p++) {
        pf_buffer packed = {0};
        add(packings[p], &packed, plain.data, 200);
        size_t whole = packed.length;
        add(packings[p], &packed, plain.data + 200, 100);
        for (size_t length = 0; length < packed.length; length++) {
            if (length == whole)
                continue;
            ASSERT_FAILS(SLUICE_INPUT_SYNTAX, unpack(packings[p], packed.data, length, 64, NULL));
            assert_non_null(strstr(err.text, "people.csv.gz"));
            assert_null(strstr(err.message, "people.csv.gz"));
        }
        pf_buffer_free(&packed);
    }
    pf_buffer_free(&plain);
}

/* Whatever byte is wrong: the checksum of a frame or member tells, unless the byte meant nothing (times, names). */
static void a_wrong_byte_never_changes_what_comes_out(void **state)
{
    pf_buffer plain = make_plain(300);

    (void)state;
    for (size_t p = 0; p < 2; p++) {
        pf_buffer packed = {0};
        uint32_t refused = 0;
        add(packings[p], &packed, plain.data, plain.length);
        for (size_t at = 0; at < packed.length; at++) {
            pf_buffer got = {0};
            packed.data[at] ^= 0x10;
            if (unpack(packings[p], packed.data, packed.length, 50, &got) == SLUICE_OK) {
                assert_int_equal(got.length, plain.length);
                assert_memory_equal(got.data, plain.data, plain.length);
                pf_buffer_free(&got);
            } else
                refused++;
            packed.data[at] ^= 0x10;
        }
        assert_true(refused + 10 > packed.length);
        packed.data[packed.length - 1] ^= 1;
        ASSERT_FAILS(SLUICE_INPUT_SYNTAX, unpack(packings[p], packed.data, packed.length, 50, NULL));
        pf_buffer_free(&packed);
    }
    pf_buffer_free(&plain);
}

static void junk_behind_the_end_is_refused(void **state)
{
    static const char *const junk[] = {"J", "JUNKJUNKJUNK", "\n", "id,name\n"};

    (void)state;
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
            for (size_t piece = 1; piece < 200; piece += 99) {
                pf_buffer packed = {0};
                add(packings[p], &packed, "id,name\n1,a\n", 12);
                ASSERT_OK(pf_buffer_append(&packed, junk[i], strlen(junk[i]), &err));
                ASSERT_FAILS(SLUICE_INPUT_SYNTAX, unpack(packings[p], packed.data, packed.length, piece, NULL));
                assert_non_null(strstr(err.text, "behind the end"));
                pf_buffer_free(&packed);
            }
}

static void what_is_not_packed_at_all_is_told_apart(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++)
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, unpack(packings[p], "id,name\n1,a\n", 12, 5, NULL));
}

/* A frame whose header asks for 2 GiB (a window descriptor of 21 powers above 1 KiB), made by hand. */
static void a_window_beyond_the_limit_is_a_limit(void **state)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00};

    (void)state;
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, unpack(WK_PACKING_ZSTD, frame, sizeof frame, 100, NULL));
}

static void plain_bytes_are_copied(void **state)
{
    pf_buffer got = {0};

    (void)state;
    ASSERT_OK(unpack(WK_PACKING_NONE, "id\n1\n", 5, 2, &got));
    assert_int_equal(got.length, 5);
    assert_memory_equal(got.data, "id\n1\n", 5);
    pf_buffer_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_join_however_they_are_handed_in),
        cmocka_unit_test(much_comes_out_of_little),
        cmocka_unit_test(an_input_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_wrong_byte_never_changes_what_comes_out),
        cmocka_unit_test(junk_behind_the_end_is_refused),
        cmocka_unit_test(what_is_not_packed_at_all_is_told_apart),
        cmocka_unit_test(a_window_beyond_the_limit_is_a_limit),
        cmocka_unit_test(plain_bytes_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
