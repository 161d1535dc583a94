/*
 * Reading runs, format run/2 and run/1 (docs/format.md has both byte by byte). Version 2:
 *
 *   0       header, 64 bytes: magic, u32 version, u32 entries of a packet, u64 table, u64 entries, zeros
 *   64      packets of 256 entries, the last one of what is left (run_packet.h)
 *   F       filter, at the next multiple of 64: split-block bloom blocks of 32 bytes, chosen by the hash's high half
 *   E       footer, at the next multiple of 64: run_footer, then XXH3-128 (low, high) of each 64 KiB of [0, E), then
 *           the first hash of each packet, then where each begins and the last one ends (u32, by 8 bytes), then u64
 *           footer length and the end magic
 *
 * In version 1 entries are pairs of 16 bytes, and what a packet is here is there a block of 64 KiB.
 *
 * The footer is bound by its SHA-256, which the edit holds, and binds everything else. Blocks are checked on first
 * touch, in touch(), the only way to the bytes of a block. Fences let a seek touch one packet.
 */
#include "platform/check.h"
#include "store/fragment/run_impl.h"
#include "store/fragment/run_packet.h"
#include "store/fragment/search.h"

#include <stdlib.h>
#include <string.h>

struct st_run {
    pf_map map;
    run_footer footer;
    uint64_t footer_size;
    const uint8_t *digests; /* of the blocks, in the map (unaligned reads) */
    uint64_t *fences;
    uint32_t *offsets; /* of packets; NULL: version 1 */
    uint8_t *checked;  /* a byte per block */
    char path[ST_PATH_MAX];
};

/* ---- where entries are: in packets, or in blocks of version 1 ---- */

static uint64_t first_entry_of(const st_run *run, uint64_t part)
{
    if (run->offsets)
        return part * ST_RUN_PACKET;
    return part ? (part * ST_BLOCK - RUN_HEADER) / RUN_PLAIN_ENTRY : 0;
}

static uint64_t end_of(const st_run *run, uint64_t part)
{
    uint64_t end = first_entry_of(run, part + 1);
    return end < run->footer.entries ? end : run->footer.entries;
}

static uint64_t part_of(const st_run *run, uint64_t index)
{
    return run->offsets ? index / ST_RUN_PACKET : (RUN_HEADER + index * RUN_PLAIN_ENTRY) / ST_BLOCK;
}

static uint64_t entries_end(const st_run *run)
{
    return run->offsets ? (uint64_t)run->offsets[run->footer.fences] * RUN_OFFSET_UNIT
                        : RUN_HEADER + run->footer.entries * RUN_PLAIN_ENTRY;
}

/* ---- opening ---- */

static sluice_status contradicts(const st_run *run, sluice_error *err)
{
    return st_sealed_damaged(err, run->path, "its footer contradicts itself or the edit");
}

/* Packets follow each other without gaps, up to the filter. */
static sluice_status read_offsets(st_run *run, const uint8_t *bytes, sluice_error *err)
{
    uint64_t fences = run->footer.fences;

    run->offsets = malloc(4 * fences + 4);
    if (!run->offsets)
        return pf_fail_memory(err);
    memcpy(run->offsets, bytes, 4 * fences + 4);
    bool right = run->offsets[0] == RUN_HEADER / RUN_OFFSET_UNIT;
    for (uint64_t i = 0; i < fences; i++)
        right &= run->offsets[i] < run->offsets[i + 1];
    return right ? SLUICE_OK : contradicts(run, err);
}

/* Everything follows from a few numbers, which are small enough not to overflow. */
static sluice_status read_layout(st_run *run, uint64_t table, uint64_t length, sluice_error *err)
{
    const run_footer *footer = &run->footer;
    uint64_t size = run->map.length;
    run_footer expected = *footer;
    bool packed = footer->version == RUN_VERSION;

    if (footer->entries > RUN_ENTRIES_MAX || footer->filter_blocks > RUN_ENTRIES_MAX || footer->position_bits > 64)
        return st_sealed_damaged(err, run->path, "its counts are impossible");
    expected.block_size = ST_BLOCK;
    expected.table = table;
    if (packed)
        expected.fences = (footer->entries + ST_RUN_PACKET - 1) / ST_RUN_PACKET;
    else
        expected.fences = footer->entries ? part_of(run, footer->entries - 1) + 1 : 0;
    if (footer->fences != expected.fences || footer->blocks > size / ST_BLOCK + 1 ||
        length != run->footer_size + ST_BLOCK_DIGEST * footer->blocks + 8 * footer->fences +
                      (packed ? 4 * (footer->fences + 1) : 0) + RUN_TAIL)
        return contradicts(run, err);
    run->digests = run->map.data + size - length + run->footer_size;
    const uint8_t *fences = run->digests + ST_BLOCK_DIGEST * footer->blocks;
    if (packed)
        PF_TRY(read_offsets(run, fences + 8 * footer->fences, err));
    run_lay_out(&expected, entries_end(run), footer->filter_blocks);
    if (memcmp(&expected, footer, sizeof expected) != 0 || footer->end != size - length ||
        (footer->entries && !footer->filter_blocks))
        return contradicts(run, err);
    run->fences = malloc(8 * footer->fences + 8);
    run->checked = calloc(footer->blocks, 1);
    if (!run->fences || !run->checked)
        return pf_fail_memory(err);
    memcpy(run->fences, fences, 8 * footer->fences);
    return SLUICE_OK;
}

/* Finds, bounds and authenticates the footer. */
static sluice_status read_footer(st_run *run, uint64_t table, const st_run_info *info, sluice_error *err)
{
    const uint8_t *data = run->map.data;
    uint64_t size = run->map.length;

    if (size < RUN_FOOTER_PLAIN + RUN_TAIL || memcmp(data + size - 8, RUN_END_MAGIC, 8) != 0)
        return st_sealed_damaged(err, run->path, "it has no footer");
    uint64_t length = st_get_u64(data + size - RUN_TAIL);
    if (length < RUN_FOOTER_PLAIN + RUN_TAIL || length > size)
        return st_sealed_damaged(err, run->path, "its footer has no valid length");
    const uint8_t *bytes = data + size - length;
    pf_sha256 digest = pf_sha256_of(bytes, length);
    if (!pf_sha256_equal(&digest, &info->footer))
        return st_sealed_damaged(err, run->path, "its footer is not the one that was written");
    memcpy(&run->footer, bytes, RUN_FOOTER_PLAIN);
    if (memcmp(run->footer.magic, RUN_FOOTER_MAGIC, 8) != 0)
        return st_sealed_damaged(err, run->path, "its footer is none");
    if (run->footer.version != RUN_VERSION && run->footer.version != RUN_VERSION_PLAIN)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "%s has format version %u", run->path, run->footer.version);
    run->footer_size = RUN_FOOTER_PLAIN;
    if (run->footer.version == RUN_VERSION) {
        if (length < sizeof run->footer + RUN_TAIL)
            return contradicts(run, err);
        run->footer_size = sizeof run->footer;
        run->footer.position_bits = st_get_u64(bytes + RUN_FOOTER_PLAIN);
    }
    PF_TRY(read_layout(run, table, length, err));
    return run->footer.entries == info->entries ? SLUICE_OK : contradicts(run, err);
}

sluice_status st_run_open(pf_volume *volume, uint64_t table, const st_run_info *info, st_run **ret_run,
                          sluice_error *err)
{
    sluice_status status;
    st_run *run = calloc(1, sizeof *run);

    *ret_run = NULL;
    if (!run)
        return pf_fail_memory(err);
    PF_GOTO(status, failed, st_sealed_path(table, "keys", info->name, run->path, err));
    PF_GOTO(status, failed, st_sealed_map(volume, run->path, info->bytes, &run->map, err));
    PF_GOTO(status, failed, read_footer(run, table, info, err));
    *ret_run = run;
    return SLUICE_OK;
failed:
    st_run_close(run);
    return status;
}

void st_run_close(st_run *run)
{
    if (!run)
        return;
    pf_unmap(&run->map);
    free(run->fences);
    free(run->offsets);
    free(run->checked);
    free(run);
}

uint64_t st_run_entries(const st_run *run)
{
    return run->footer.entries;
}

/* ---- reading ---- */

static sluice_status check_block(st_run *run, uint64_t block, sluice_error *err)
{
    if (!st_block_is_whole(run->map.data, run->footer.end, block, run->digests))
        return st_sealed_damaged(err, run->path, "block %llu is not what was written", (unsigned long long)block);
    run->checked[block] = 1;
    return SLUICE_OK;
}

/* The one accessor: every byte of [0, E) is reached through it. */
static inline sluice_status touch(st_run *run, uint64_t block, sluice_error *err)
{
    return run->checked[block] ? SLUICE_OK : check_block(run, block, err);
}

/* Of version 1. */
static inline const st_run_entry *entry_at(const st_run *run, uint64_t index)
{
    return (const st_run_entry *)(const void *)(run->map.data + RUN_HEADER) + index;
}

/* Checks the blocks of a packet, and that it is one. */
static sluice_status open_packet(st_run *run, uint64_t number, st_packet *ret_packet, sluice_error *err)
{
    uint64_t from = (uint64_t)run->offsets[number] * RUN_OFFSET_UNIT;
    uint64_t to = (uint64_t)run->offsets[number + 1] * RUN_OFFSET_UNIT;

    for (uint64_t block = from / ST_BLOCK; block <= (to - 1) / ST_BLOCK; block++)
        PF_TRY(touch(run, block, err));
    if (!st_packet_open(run->map.data + from, to - from, (unsigned)(end_of(run, number) - number * ST_RUN_PACKET),
                        (unsigned)run->footer.position_bits, run->fences[number], ret_packet))
        return st_sealed_damaged(err, run->path, "packet %llu is none", (unsigned long long)number);
    return SLUICE_OK;
}

/* How many fences are below `hash`. Without branches in the loop: their outcome would be anybody's guess. */
static uint64_t fences_below(const st_run *run, uint64_t hash)
{
    const uint64_t *base = run->fences;
    uint64_t count = run->footer.fences;

    if (!count)
        return 0;
    while (count > 1) {
        uint64_t half = count / 2;
        base += base[half - 1] < hash ? half : 0;
        count -= half;
    }
    return (uint64_t)(base - run->fences) + (*base < hash);
}

/* The first entry whose hash is at least `hash`: fences choose the packet or block, which is the only one touched. */
static sluice_status lower_bound(st_run *run, uint64_t hash, uint64_t *ret_index, sluice_error *err)
{
    uint64_t fence = fences_below(run, hash);
    st_packet packet;

    *ret_index = 0;
    if (fence == 0)
        return SLUICE_OK;
    if (run->offsets) {
        PF_TRY(open_packet(run, fence - 1, &packet, err));
        *ret_index = (fence - 1) * ST_RUN_PACKET + st_packet_seek(&packet, hash);
        return SLUICE_OK;
    }
    PF_TRY(touch(run, fence - 1, err));
    uint64_t to = fence < run->footer.fences ? run->fences[fence] : run->footer.last_hash;
    *ret_index = st_search_hash(run->map.data + RUN_HEADER, RUN_PLAIN_ENTRY, first_entry_of(run, fence - 1),
                                end_of(run, fence - 1), run->fences[fence - 1], to, hash);
    return SLUICE_OK;
}

/* The first entry behind `from` whose hash is above `hash`, when it is near and in a block that was touched. */
static bool end_is_near(const st_run *run, uint64_t from, uint64_t hash, uint64_t *ret_index)
{
    enum { NEAR = 8 };
    for (uint64_t i = from; i < run->footer.entries && i < from + NEAR && run->checked[part_of(run, i)]; i++) {
        if (entry_at(run, i)->hash > hash) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

sluice_status st_run_seek(st_run *run, uint64_t low, uint64_t high, st_run_cursor *ret_cursor, sluice_error *err)
{
    ret_cursor->run = run;
    ret_cursor->next = ret_cursor->end = ret_cursor->from = ret_cursor->to = 0;
    if (low > high || !run->footer.entries || low > run->footer.last_hash || high < run->fences[0])
        return SLUICE_OK;
    PF_TRY(lower_bound(run, low, &ret_cursor->next, err));
    ret_cursor->end = run->footer.entries;
    if (high < run->footer.last_hash && (run->offsets || !end_is_near(run, ret_cursor->next, high, &ret_cursor->end)))
        PF_TRY(lower_bound(run, high + 1, &ret_cursor->end, err));
    if (ret_cursor->end < ret_cursor->next)
        ret_cursor->end = ret_cursor->next;
    return SLUICE_OK;
}

/* Some entries from `next`, which is not the end, on. */
static sluice_status look_ahead(st_run_cursor *cursor, const st_run_entry **ret_entries, uint64_t *ret_count,
                                sluice_error *err)
{
    st_run *run = cursor->run;
    uint64_t part = part_of(run, cursor->next), end = end_of(run, part);
    st_packet packet;

    end = end < cursor->end ? end : cursor->end;
    if (!run->offsets) {
        PF_TRY(touch(run, part, err));
        *ret_entries = entry_at(run, cursor->next);
        *ret_count = end - cursor->next;
        return SLUICE_OK;
    }
    if (cursor->next < cursor->from || cursor->next >= cursor->to) {
        uint64_t first = cursor->next, begin = part * ST_RUN_PACKET;
        end = end < first + ST_RUN_AHEAD ? end : first + ST_RUN_AHEAD;
        PF_TRY(open_packet(run, part, &packet, err));
        st_packet_unpack(&packet, (unsigned)(first - begin), (unsigned)(end - begin), cursor->entries);
        cursor->from = first;
        cursor->to = end;
    }
    *ret_entries = cursor->entries + (cursor->next - cursor->from);
    *ret_count = cursor->to - cursor->next;
    return SLUICE_OK;
}

sluice_status st_run_next(st_run_cursor *cursor, const st_run_entry **ret_entry, sluice_error *err)
{
    uint64_t count;

    *ret_entry = NULL;
    if (cursor->next >= cursor->end)
        return SLUICE_OK;
    PF_TRY(look_ahead(cursor, ret_entry, &count, err));
    cursor->next++;
    return SLUICE_OK;
}

sluice_status st_run_next_many(st_run_cursor *cursor, const st_run_entry **ret_entries, uint64_t *ret_count,
                               sluice_error *err)
{
    *ret_entries = NULL;
    *ret_count = 0;
    if (cursor->next >= cursor->end)
        return SLUICE_OK;
    PF_TRY(look_ahead(cursor, ret_entries, ret_count, err));
    cursor->next += *ret_count;
    return SLUICE_OK;
}

static const uint32_t *filter_at(const st_run *run, uint64_t hash, uint64_t *ret_block)
{
    uint64_t at = run->footer.filter_offset + run_filter_block_of(hash, run->footer.filter_blocks) * RUN_FILTER_BLOCK;
    *ret_block = at / ST_BLOCK;
    return (const uint32_t *)(const void *)(run->map.data + at);
}

sluice_status st_run_may_contain(st_run *run, uint64_t hash, bool *ret_may, sluice_error *err)
{
    uint64_t block;

    *ret_may = false;
    if (!run->footer.entries || hash < run->fences[0] || hash > run->footer.last_hash)
        return SLUICE_OK;
    const uint32_t *filter = filter_at(run, hash, &block);
    PF_TRY(touch(run, block, err));
    *ret_may = run_filter_has(filter, hash);
    return SLUICE_OK;
}

/* ---- verify ---- */

static sluice_status verify_header(const st_run *run, sluice_error *err)
{
    const uint8_t *header = run->map.data;
    if (memcmp(header, RUN_MAGIC, 8) != 0 || st_get_u32(header + 8) != run->footer.version ||
        st_get_u32(header + 12) != (run->offsets ? ST_RUN_PACKET : RUN_PLAIN_ENTRY) ||
        st_get_u64(header + 16) != run->footer.table || st_get_u64(header + 24) != run->footer.entries ||
        !st_all_zero(header + 32, RUN_HEADER - 32))
        return st_sealed_damaged(err, run->path, "its header contradicts its footer");
    return SLUICE_OK;
}

static sluice_status verify_packets(st_run *run, sluice_error *err)
{
    uint64_t bits = 0;

    for (uint64_t i = 0; run->offsets && i < run->footer.fences; i++) {
        const uint8_t *bytes = run->map.data + (uint64_t)run->offsets[i] * RUN_OFFSET_UNIT;
        uint64_t length = (uint64_t)(run->offsets[i + 1] - run->offsets[i]) * RUN_OFFSET_UNIT;
        st_packet packet;
        PF_TRY(open_packet(run, i, &packet, err));
        if (!st_packet_is_canonical(bytes, length, &packet, &bits))
            return st_sealed_damaged(err, run->path, "packet %llu is not in order", (unsigned long long)i);
    }
    if (run->offsets &&
        bits >> (run->footer.position_bits ? run->footer.position_bits - 1 : 0) != (run->footer.position_bits ? 1 : 0))
        return st_sealed_damaged(err, run->path, "its positions have another width");
    return SLUICE_OK;
}

static sluice_status verify_entries(st_run *run, sluice_error *err)
{
    st_run_cursor cursor = {.run = run, .end = run->footer.entries};
    const st_run_entry *entries;
    st_run_entry before = {0};
    uint64_t count, block, index = 0;

    for (;;) {
        PF_TRY(st_run_next_many(&cursor, &entries, &count, err));
        if (count == 0)
            break;
        for (uint64_t i = 0; i < count; i++, index++) {
            const st_run_entry *entry = &entries[i];
            if (index &&
                (before.hash > entry->hash || (before.hash == entry->hash && before.position >= entry->position)))
                return st_sealed_damaged(err, run->path, "entry %llu is out of order", (unsigned long long)index);
            if (!run_filter_has(filter_at(run, entry->hash, &block), entry->hash))
                return st_sealed_damaged(err, run->path, "its filter lacks entry %llu", (unsigned long long)index);
            uint64_t part = part_of(run, index);
            if (index == first_entry_of(run, part) && run->fences[part] != entry->hash)
                return st_sealed_damaged(err, run->path, "fence %llu is wrong", (unsigned long long)part);
            before = *entry;
        }
    }
    if (run->footer.last_hash != before.hash)
        return st_sealed_damaged(err, run->path, "its last hash is wrong");
    return SLUICE_OK;
}

sluice_status st_run_verify(st_run *run, sluice_error *err)
{
    const run_footer *layout = &run->footer;
    uint64_t end = entries_end(run), filter_end = layout->filter_offset + layout->filter_blocks * RUN_FILTER_BLOCK;

    for (uint64_t block = 0; block < layout->blocks; block++)
        PF_TRY(check_block(run, block, err));
    PF_TRY(verify_header(run, err));
    PF_TRY(verify_packets(run, err));
    PF_TRY(verify_entries(run, err));
    if (!st_all_zero(run->map.data + end, layout->filter_offset - end) ||
        !st_all_zero(run->map.data + filter_end, layout->end - filter_end))
        return st_sealed_damaged(err, run->path, "its padding is not zero");
    return SLUICE_OK;
}
