/*
 * Deletion files, format deletions/1, little-endian (docs/format.md has the same byte by byte):
 *
 *   0    header, 64 bytes: magic, u32 version, u32 parts, u64 table, u64 rows, u64 bytes of the file, XXH3-128 (low,
 * high) of all that follows the header, XXH3-64 of the header up to here 64   per part 16 bytes: u32 high word
 * (ascending), u32 length, u64 rows …    the parts' bitmaps in CRoaring's portable form, each padded with zeros to a
 * multiple of 8
 *
 * CRoaring 0.2 bounds what it reads but believes what it finds (order, counts), so each bitmap is checked here first.
 */
#include "store/fragment/deletion.h"

#include "platform/buffer.h"
#include "platform/check.h"
#include "store/fragment/row_set.h"
#include "store/fragment/sealed.h"

#include <string.h>

#define VERSION      1u
#define HEADER       64u
#define PART         16u
#define HEADER_CHECK 56u

static const char magic[8] = "SLUICED1";

/* ---- checking a bitmap in portable form ---- */

#define COOKIE_PLAIN    12346u /* no run containers */
#define COOKIE_RUNS     12347u
#define OFFSETS_FROM    4u /* containers from which on a bitmap with runs has offsets */
#define ARRAY_MAX       4096u
#define BITSET_BYTES    8192u
#define CONTAINERS_MAX  65536u
#define CONTAINER_ENTRY 4u

static uint32_t get_u16(const uint8_t *bytes)
{
    return (uint32_t)(bytes[0] | bytes[1] << 8);
}

static bool array_is_sorted(const uint8_t *bytes, uint32_t count)
{
    for (size_t i = 1; i < count; i++)
        if (get_u16(bytes + 2 * i) <= get_u16(bytes + 2 * i - 2))
            return false;
    return true;
}

static bool bitset_counts(const uint8_t *bytes, uint32_t count)
{
    uint32_t ones = 0;
    for (uint32_t i = 0; i < BITSET_BYTES; i += 8)
        ones += (uint32_t)__builtin_popcountll(st_get_u64(bytes + i));
    return ones == count;
}

/* Runs ascend, neither touch nor overlap, and hold `count` values. */
static bool runs_are_sorted(const uint8_t *bytes, uint32_t runs, uint32_t count)
{
    uint32_t next = 0, sum = 0;
    for (size_t i = 0; i < runs; i++) {
        uint32_t start = get_u16(bytes + 4 * i), length = get_u16(bytes + 4 * i + 2) + 1;
        if ((i && start <= next) || start + length > 65536)
            return false;
        next = start + length;
        sum += length;
    }
    return sum == count;
}

/* The length of a container's bytes if they are sound and within `room`, else 0. */
static size_t container_length(const uint8_t *bytes, size_t room, bool is_run, uint32_t count)
{
    if (is_run) {
        if (room < 2)
            return 0;
        uint32_t runs = get_u16(bytes);
        size_t length = 2 + 4 * (size_t)runs;
        return length <= room && runs && runs_are_sorted(bytes + 2, runs, count) ? length : 0;
    }
    size_t length = count <= ARRAY_MAX ? 2 * (size_t)count : BITSET_BYTES;
    if (length > room)
        return 0;
    return (count <= ARRAY_MAX ? array_is_sorted(bytes, count) : bitset_counts(bytes, count)) ? length : 0;
}

/* True when `bytes` are one portable bitmap of exactly `length` bytes with `rows` values. */
static bool bitmap_is_sound(const uint8_t *bytes, size_t length, uint64_t rows)
{
    if (length < 8)
        return false;
    uint32_t cookie = st_get_u32(bytes);
    bool has_runs = (cookie & 0xFFFF) == COOKIE_RUNS;
    if (!has_runs && cookie != COOKIE_PLAIN)
        return false;
    uint32_t containers = has_runs ? (cookie >> 16) + 1 : st_get_u32(bytes + 4);
    size_t at = has_runs ? 4 : 8, flags = at;
    if (containers == 0 || containers > CONTAINERS_MAX)
        return false;
    if (has_runs)
        at += (containers + 7) / 8;
    size_t keys = at;
    at += (size_t)CONTAINER_ENTRY * containers;
    size_t offsets = at;
    bool has_offsets = !has_runs || containers >= OFFSETS_FROM;
    if (has_offsets)
        at += 4 * (size_t)containers;
    if (at > length)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < containers; i++) {
        uint32_t key = get_u16(bytes + keys + 4 * i), count = get_u16(bytes + keys + 4 * i + 2) + 1;
        bool is_run = has_runs && (bytes[flags + i / 8] >> (i & 7)) & 1;
        size_t size = container_length(bytes + at, length - at, is_run, count);
        if (!size || (i && key <= get_u16(bytes + keys + 4 * i - 4)) ||
            (has_offsets && st_get_u32(bytes + offsets + 4 * i) != at))
            return false;
        at += size;
        sum += count;
    }
    return at == length && sum == rows;
}

/* ---- decoding ---- */

static sluice_status decode_header(const uint8_t *bytes, size_t length, uint64_t table, const char *path,
                                   sluice_error *err)
{
    if (length < HEADER || memcmp(bytes, magic, sizeof magic) != 0)
        return st_sealed_damaged(err, path, "it is no deletion file");
    if (st_get_u32(bytes + 8) != VERSION)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "%s has format version %u", path, st_get_u32(bytes + 8));
    pf_xxh128 content = pf_xxh128_of(bytes + HEADER, length - HEADER);
    if (st_get_u64(bytes + HEADER_CHECK) != pf_xxh64_of(bytes, HEADER_CHECK) || st_get_u64(bytes + 32) != length ||
        st_get_u64(bytes + 40) != content.low || st_get_u64(bytes + 48) != content.high)
        return st_sealed_damaged(err, path, "it is not what was written");
    if (st_get_u64(bytes + 16) != table || st_get_u32(bytes + 12) > (length - HEADER) / PART)
        return st_sealed_damaged(err, path, "its header is impossible");
    return SLUICE_OK;
}

static sluice_status decode_part(st_row_set *set, const uint8_t *bytes, size_t length, const uint8_t *entry,
                                 const char *path, size_t *at, sluice_error *err)
{
    uint32_t high = st_get_u32(entry);
    size_t size = st_get_u32(entry + 4), padded = (size + 7) & ~(size_t)7;

    if (padded > length - *at || (set->count && set->parts[set->count - 1].high >= high) ||
        !bitmap_is_sound(bytes + *at, size, st_get_u64(entry + 8)) || !st_all_zero(bytes + *at + size, padded - size))
        return st_sealed_damaged(err, path, "part %u is impossible", set->count);
    roaring_bitmap_t *low = roaring_bitmap_portable_deserialize_safe((const char *)bytes + *at, size);
    if (!low)
        return pf_fail_memory(err); /* its bytes are sound */
    *at += padded;
    return st_row_set_push(set, high, low, err);
}

sluice_status st_deletion_decode(const void *data, size_t length, uint64_t table, const char *path,
                                 st_row_set **ret_set, sluice_error *err)
{
    const uint8_t *bytes = data;
    st_row_set *set = NULL;
    sluice_status status;

    *ret_set = NULL;
    PF_TRY(decode_header(bytes, length, table, path, err));
    PF_TRY(st_row_set_new(&set, err));
    uint32_t parts = st_get_u32(bytes + 12);
    size_t at = HEADER + (size_t)PART * parts;
    for (size_t i = 0; i < parts; i++)
        PF_GOTO(status, failed, decode_part(set, bytes, length, bytes + HEADER + PART * i, path, &at, err));
    if (at != length || st_row_set_count(set) != st_get_u64(bytes + 24)) {
        status = st_sealed_damaged(err, path, "its counts contradict each other");
        goto failed;
    }
    *ret_set = set;
    return SLUICE_OK;
failed:
    st_row_set_free(set);
    return status;
}

sluice_status st_deletion_read(pf_volume *volume, uint64_t table, const st_dead_ref *ref, st_row_set **ret_set,
                               sluice_error *err)
{
    char path[ST_PATH_MAX];
    pf_file *file = NULL;
    pf_map map = {0};
    sluice_status status;

    *ret_set = NULL;
    PF_TRY(st_sealed_path(table, "deletions", ref->name, path, err));
    PF_TRY(st_sealed_open(volume, path, &file, err));
    PF_GOTO(status, done, pf_map_file(file, &map, err));
    pf_sha256 digest = pf_sha256_of(map.data, map.length);
    if (!pf_sha256_equal(&digest, &ref->digest)) {
        status = st_sealed_damaged(err, path, "it is not what was written");
        goto done;
    }
    PF_GOTO(status, done, st_deletion_decode(map.data, map.length, table, path, ret_set, err));
    if (st_row_set_count(*ret_set) != ref->rows) {
        st_row_set_free(*ret_set);
        *ret_set = NULL;
        status = st_sealed_damaged(err, path, "its count contradicts the edit");
    }
done:
    pf_unmap(&map);
    (void)pf_close(file, NULL);
    return status;
}

/* ---- writing ---- */

static sluice_status encode_part(pf_buffer *buffer, uint64_t entry_at, const st_row_part *part, sluice_error *err)
{
    roaring_bitmap_run_optimize(part->low);
    size_t size = roaring_bitmap_portable_size_in_bytes(part->low);
    PF_ALWAYS(size <= UINT32_MAX);
    PF_TRY(pf_buffer_reserve(buffer, size + 8, err));
    size_t written = roaring_bitmap_portable_serialize(part->low, (char *)buffer->data + buffer->length);
    PF_ALWAYS(written == size);
    buffer->length += size;
    PF_TRY(pf_buffer_align(buffer, 8, err));
    st_put_u32(buffer->data + entry_at, part->high);
    st_put_u32(buffer->data + entry_at + 4, (uint32_t)size);
    st_put_u64(buffer->data + entry_at + 8, roaring_bitmap_get_cardinality(part->low));
    return SLUICE_OK;
}

static sluice_status encode(pf_buffer *buffer, uint64_t table, const st_row_set *set, sluice_error *err)
{
    static const uint8_t zeros[HEADER];

    PF_TRY(pf_buffer_append(buffer, zeros, HEADER, err));
    for (uint32_t i = 0; i < set->count; i++)
        PF_TRY(pf_buffer_append(buffer, zeros, PART, err));
    for (uint32_t i = 0; i < set->count; i++)
        PF_TRY(encode_part(buffer, HEADER + (uint64_t)PART * i, &set->parts[i], err));
    uint8_t *header = buffer->data;
    memcpy(header, magic, sizeof magic);
    st_put_u32(header + 8, VERSION);
    st_put_u32(header + 12, set->count);
    st_put_u64(header + 16, table);
    st_put_u64(header + 24, st_row_set_count(set));
    st_put_u64(header + 32, buffer->length);
    pf_xxh128 content = pf_xxh128_of(header + HEADER, buffer->length - HEADER);
    st_put_u64(header + 40, content.low);
    st_put_u64(header + 48, content.high);
    st_put_u64(header + HEADER_CHECK, pf_xxh64_of(header, HEADER_CHECK));
    return SLUICE_OK;
}

sluice_status st_deletion_write(pf_volume *volume, uint64_t table, const char *name, st_row_set *set,
                                st_dead_ref *ret_ref, sluice_error *err)
{
    char path[ST_PATH_MAX];
    pf_buffer buffer = {0};
    st_output output = {0};
    uint64_t bytes;
    sluice_status status;

    if (strlen(name) >= sizeof ret_ref->name)
        return pf_fail(err, SLUICE_INTERNAL, "the name of a deletion file is too long");
    PF_TRY(st_sealed_path(table, "deletions", name, path, err));
    PF_GOTO(status, done, encode(&buffer, table, set, err));
    PF_GOTO(status, done, st_output_create(volume, path, &output, err));
    PF_GOTO(status, done, st_output_append(&output, buffer.data, buffer.length, err));
    PF_GOTO(status, done, st_output_finish(&output, &bytes, err));
    st_dead_ref ref = {.present = true, .rows = st_row_set_count(set)};
    memcpy(ref.name, name, strlen(name) + 1); /* which may be that of *ret_ref */
    ref.digest = pf_sha256_of(buffer.data, buffer.length);
    *ret_ref = ref;
done:
    st_output_abandon(&output);
    pf_buffer_free(&buffer);
    return status;
}
