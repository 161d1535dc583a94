/* Packets of runs: what is packed is unpacked, from any entry to any other, at every width; any bytes are harmless. */
#include "store/fragment/run_packet.h"
#include "tests/support/csv_reference.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define BEHIND 16u /* bytes that may be read behind a packet */

static unsigned make_entries(uint64_t *seed, unsigned hash_bits, unsigned position_bits, unsigned most,
                             st_run_entry *entries)
{
    unsigned count = 1 + (unsigned)(ref_random(seed) % most), made = 0;
    uint64_t hash = hash_bits == 64 ? 0 : ref_random(seed) << hash_bits;
    uint64_t room = hash_bits == 64 ? UINT64_MAX : (UINT64_C(1) << hash_bits) - 1, step = room / count;

    while (made < count) {
        uint64_t same = 1 + ref_random(seed) % (ref_random(seed) % 4 ? 2 : 90), position = 0;
        for (; same > 0 && made < count; same--) {
            entries[made++] = (st_run_entry){hash, position};
            position += 1 + (position_bits > 12 ? ref_random(seed) % ((UINT64_C(1) << (position_bits - 8)) - 1) : 0);
        }
        if (step == 0)
            break;
        hash += 1 + ref_random(seed) % step;
    }
    return made;
}

static void what_is_packed_is_unpacked(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        st_run_entry entries[ST_RUN_PACKET], got[ST_RUN_PACKET];
        unsigned hash_bits = round % 65, position_bits = 8 + (unsigned)(ref_random(&seed) % 57);
        unsigned count = make_entries(&seed, hash_bits, position_bits, ST_RUN_PACKET, entries);
        uint8_t packed[ST_PACKET_BYTES + 8 + BEHIND];
        st_packet packet;
        uint64_t bits = 0;

        memset(packed, 0xA5, sizeof packed);
        size_t length = st_packet_pack(entries, count, position_bits, packed);
        assert_true(length % 8 == 0 && length <= ST_PACKET_BYTES);
        memset(packed + length, 0x5A, sizeof packed - length);
        assert_true(st_packet_open(packed, length, count, position_bits, entries[0].hash, &packet));
        assert_true(st_packet_is_canonical(packed, length, &packet, &bits));
        assert_false(st_packet_open(packed, length + 8, count, position_bits, entries[0].hash, &packet));
        assert_true(st_packet_open(packed, length, count, position_bits, entries[0].hash, &packet));
        for (unsigned i = 0; i < 20; i++) {
            unsigned first = (unsigned)(ref_random(&seed) % count),
                     end = first + 1 + (unsigned)(ref_random(&seed) % (count - first));
            st_packet_unpack(&packet, first, end, got);
            assert_memory_equal(got, entries + first, (end - first) * sizeof *got);
            uint64_t wanted = entries[first].hash + ref_random(&seed) % 3 - 1;
            unsigned at = 0;
            while (at < count && entries[at].hash < wanted)
                at++;
            assert_int_equal(st_packet_seek(&packet, wanted), at);
        }
        assert_int_equal(st_packet_seek(&packet, 0), 0);
    }
}

static void any_bytes_are_no_packet_or_a_harmless_one(void **state)
{
    uint64_t seed = 6;
    unsigned opened = 0;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        st_run_entry entries[ST_RUN_PACKET], got[ST_RUN_PACKET];
        uint8_t packed[ST_PACKET_BYTES + 8];
        unsigned count = make_entries(&seed, 64, 20, 60, entries);
        size_t length = st_packet_pack(entries, count, 20, packed);
        uint8_t *hostile = malloc(length + BEHIND); /* no more, so that a sanitizer sees what reads beyond */
        st_packet packet;
        uint64_t bits = 0;

        assert_non_null(hostile);
        memcpy(hostile, packed, length);
        memset(hostile + length, 0, BEHIND);
        for (uint64_t flips = 1 + ref_random(&seed) % 3; flips; flips--)
            hostile[ref_random(&seed) % (round & 1 ? 24 : length)] ^= (uint8_t)(1u << ref_random(&seed) % 8);
        if (st_packet_open(hostile, length, count, 20, entries[0].hash, &packet)) {
            opened++;
            st_packet_unpack(&packet, 0, count, got);
            assert_true(st_packet_seek(&packet, ref_random(&seed)) <= count);
            (void)st_packet_is_canonical(hostile, length, &packet, &bits);
        }
        free(hostile);
    }
    assert_true(opened > 0 && opened < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_is_unpacked),
        cmocka_unit_test(any_bytes_are_no_packet_or_a_harmless_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
