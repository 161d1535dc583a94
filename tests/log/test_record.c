/*
 * The form of one record: golden bytes, a digest that does not depend on the segment, and bounds.
 */
#include "platform/digest.h"
#include "store/log/internal.h"
#include "tests/support/test.h"

#include <string.h>

/* Computed by another program from docs/format.md. */
#define GOLDEN_OWN "b65aba01263331adfced943501e5c3273ec845e3d30736725db6c8ceb4c1fe58"
#define GOLDEN_ALL "276e08eedbaaddc002f9d119ce292d9d51981db2d864c3fd9c1e8ae2fc779778"

static const char manifest[] = "{\"generation\":\"7\"}\n";
static const char attachments[] = "attached bytes";

static st_expected place(void)
{
    st_expected at = {.kind = ST_RECORD_GENERATION, .number = 7, .incarnation = 3};
    for (unsigned i = 0; i < sizeof(at.salt); i++)
        at.salt[i] = (uint8_t)(0x10 + i);
    at.parent = pf_sha256_of("parent", 6);
    return at;
}

static pf_buffer encode(const st_expected *at, pf_sha256 *ret_own)
{
    sluice_error err = {0};
    pf_buffer bytes = {0};
    ASSERT_OK(st_record_encode(at, manifest, sizeof(manifest) - 1, attachments, sizeof(attachments) - 1, &bytes,
                               ret_own, &err));
    return bytes;
}

/* A record written by the first version stays readable, byte by byte (docs/format.md). */
static void the_form_of_a_record_is_fixed(void **state)
{
    (void)state;
    char text[PF_SHA256_TEXT];
    pf_sha256 own;
    st_expected at = place();
    pf_buffer bytes = encode(&at, &own);

    assert_int_equal(bytes.length, 4096);
    assert_memory_equal(bytes.data, "SLUICER1\1\0\2\0", 12);
    assert_memory_equal(bytes.data + 12, "\x13\0\0\0\7\0\0\0\0\0\0\0", 12);
    assert_memory_equal(bytes.data + 24, "\x4e\0\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0",
                        16); /* 64 to the attachments, and 14 */
    assert_memory_equal(bytes.data + 40, at.salt, 16);
    assert_memory_equal(bytes.data + 56, "\3\0\0\0\0\0\0\0", 8);
    assert_memory_equal(bytes.data + 64, at.parent.bytes, 32);
    assert_memory_equal(bytes.data + 96, own.bytes, 32);
    assert_memory_equal(bytes.data + 256, manifest, sizeof(manifest) - 1);
    assert_memory_equal(bytes.data + 320, attachments, sizeof(attachments) - 1);
    assert_true(st_bytes_are_zero(bytes.data + 136, 120));
    assert_true(st_bytes_are_zero(bytes.data + 334, 4096 - 334));
    pf_sha256_text(&own, text);
    assert_string_equal(text, GOLDEN_OWN);
    pf_sha256 all = pf_sha256_of(bytes.data, bytes.length);
    pf_sha256_text(&all, text);
    assert_string_equal(text, GOLDEN_ALL);
    pf_buffer_free(&bytes);
}

static void the_same_record_in_another_segment_is_the_same_link(void **state)
{
    (void)state;
    pf_sha256 own, other_own;
    st_expected at = place(), other = at;
    st_head head;
    other.salt[0] ^= 1;
    pf_buffer bytes = encode(&at, &own), moved = encode(&other, &other_own);

    assert_true(pf_sha256_equal(&own, &other_own));
    assert_int_equal(st_head_decode(bytes.data, &head), ST_HEAD_VALID);
    assert_true(st_head_fits(&head, &at));
    assert_false(st_head_fits(&head, &other));
    st_record_resalt(bytes.data, other.salt);
    assert_memory_equal(bytes.data, moved.data, bytes.length);
    assert_int_equal(st_head_decode(bytes.data, &head), ST_HEAD_VALID);
    assert_true(st_record_body_is_whole(&head, bytes.data));
    pf_buffer_free(&bytes);
    pf_buffer_free(&moved);
}

static void a_head_says_what_it_continues(void **state)
{
    (void)state;
    pf_sha256 own;
    st_head head;
    st_expected at = place();
    pf_buffer bytes = encode(&at, &own);
    assert_int_equal(st_head_decode(bytes.data, &head), ST_HEAD_VALID);

    st_expected other = at;
    other.number++;
    assert_false(st_head_fits(&head, &other));
    other = at;
    other.incarnation++;
    assert_false(st_head_fits(&head, &other));
    other = at;
    other.kind = ST_RECORD_OPENING;
    assert_false(st_head_fits(&head, &other));
    other = at;
    other.parent.bytes[31] ^= 1;
    assert_false(st_head_fits(&head, &other));
    pf_buffer_free(&bytes);
}

/* A head with a right check: what it says is still not believed blindly. */
static void forged(uint8_t *head, size_t at, uint8_t value)
{
    head[at] = value;
    memset(head + 128, 0, 8);
    st_put64(head + 128, pf_xxh64_of(head, ST_RECORD_HEAD));
}

static void heads_that_contradict_themselves_are_none(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        st_head_state expected;
    } cases[] = {{8, 2, ST_HEAD_NEWER},    {9, 1, ST_HEAD_NEWER},    {10, 0, ST_HEAD_NONE},    {10, 3, ST_HEAD_NONE},
                 {12, 0, ST_HEAD_NONE},    {15, 0xFF, ST_HEAD_NONE}, {24, 0x4f, ST_HEAD_NONE}, {31, 0xFF, ST_HEAD_NONE},
                 {32, 0x0f, ST_HEAD_NONE}, {39, 0xFF, ST_HEAD_NONE}, {136, 1, ST_HEAD_NONE},   {255, 1, ST_HEAD_NONE}};
    pf_sha256 own;
    st_head head;
    uint8_t copy[ST_RECORD_HEAD];
    st_expected at = place();
    pf_buffer bytes = encode(&at, &own);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memcpy(copy, bytes.data, sizeof(copy));
        forged(copy, cases[i].at, cases[i].value);
        assert_int_equal(st_head_decode(copy, &head), cases[i].expected);
    }
    memcpy(copy, bytes.data, sizeof(copy));
    forged(copy, 40, 0x99); /* another salt: a right head, of another segment */
    assert_int_equal(st_head_decode(copy, &head), ST_HEAD_VALID);
    pf_buffer_free(&bytes);
}

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    pf_sha256 own;
    st_head head;
    st_expected at = place();
    pf_buffer bytes = encode(&at, &own);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] ^= 0x40;
        bool whole = st_head_decode(bytes.data, &head) == ST_HEAD_VALID && st_head_fits(&head, &at) &&
                     st_record_body_is_whole(&head, bytes.data);
        assert_false(whole);
        bytes.data[i] ^= 0x40;
    }
    pf_buffer_free(&bytes);
}

static void records_of_all_sizes_come_back(void **state)
{
    (void)state;
    static uint8_t attached[20000];
    sluice_error err = {0};
    st_expected at = place();
    memset(attached, 0xAB, sizeof(attached));
    for (size_t length = 0; length < 9000; length += length < 200 || (length > 3700 && length < 4000) ? 1 : 97) {
        pf_buffer bytes = {0};
        pf_sha256 own;
        st_head head;
        st_record record;
        ASSERT_OK(st_record_encode(&at, manifest, sizeof(manifest) - 1, attached, length, &bytes, &own, &err));
        assert_int_equal(bytes.length % ST_RECORD_ALIGN, 0);
        assert_int_equal(st_head_decode(bytes.data, &head), ST_HEAD_VALID);
        assert_int_equal(st_head_record_size(&head), bytes.length);
        assert_true(st_record_body_is_whole(&head, bytes.data));
        st_record_view(&head, 1, 4096, bytes.data, false, &record);
        assert_int_equal(record.attachments_length, length);
        assert_int_equal((size_t)(record.attachments - bytes.data) % 64,
                         length ? 0 : (256 + sizeof(manifest) - 1) % 64);
        assert_memory_equal(record.attachments, attached, length);
        assert_int_equal(record.manifest_length, sizeof(manifest) - 1);
        pf_buffer_free(&bytes);
    }
}

static void a_record_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_expected at = place();
    pf_buffer bytes = {0};
    pf_sha256 own;
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_record_encode(&at, manifest, sizeof(manifest) - 1, attachments,
                                                         ST_RECORD_MAX / 2 + 1, &bytes, &own, &err));
    pf_buffer_free(&bytes);
}

static void a_sector_is_zero_valid_or_bad(void **state)
{
    (void)state;
    uint8_t bytes[ST_SECTOR];
    st_sector sector = {.first = 5, .second = 9, .digest = pf_sha256_of("x", 1)}, again;
    st_sector_encode("SLUICEX1", &sector, bytes);
    assert_int_equal(st_sector_decode("SLUICEX1", bytes, &again), ST_SECTOR_VALID);
    assert_int_equal(again.first, 5);
    assert_int_equal(again.second, 9);
    assert_true(pf_sha256_equal(&again.digest, &sector.digest));
    assert_int_equal(st_sector_decode("SLUICEY1", bytes, &again), ST_SECTOR_BAD);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        assert_int_equal(st_sector_decode("SLUICEX1", bytes, &again), ST_SECTOR_BAD);
        bytes[i] ^= 1;
    }
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(st_sector_decode("SLUICEX1", bytes, &again), ST_SECTOR_ZERO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_of_a_record_is_fixed),
        cmocka_unit_test(the_same_record_in_another_segment_is_the_same_link),
        cmocka_unit_test(a_head_says_what_it_continues),
        cmocka_unit_test(heads_that_contradict_themselves_are_none),
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(records_of_all_sizes_come_back),
        cmocka_unit_test(a_record_beyond_the_limit_is_refused),
        cmocka_unit_test(a_sector_is_zero_valid_or_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
