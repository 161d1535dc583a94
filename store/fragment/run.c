/*
 * Run files, format run/1, all numbers little-endian (docs/format.md has the same byte by byte):
 *
 *   0       header, 64 bytes: magic, u32 version, u32 entry size, u64 table, u64 entries, zeros
 *   64      entries of 16 bytes: u64 hash, u64 position; ascending by both
 *   F       filter, at the next multiple of 64: split-block bloom blocks of 32 bytes, chosen by the hash's high half
 *   E       footer, at the next multiple of 64: the struct `footer` below, then XXH3-128 (low, high) of each 64 KiB of
 * [0, E), then the hash of the first entry of each block that has entries, then u64 footer length and the end magic
 *
 * The footer is bound by its SHA-256, which the edit holds, and binds everything else. Blocks are checked on first
 * touch, in touch(), the only way to the bytes of a block. Fences let a seek touch one block.
 */
#include "store/fragment/run.h"

#include "platform/check.h"
#include "store/fragment/blocks.h"

#include <stdlib.h>
#include <string.h>

#define VERSION     1u
#define HEADER      64u
#define BLOCK       ST_BLOCK
#define ENTRY       ((uint64_t)sizeof(st_run_entry))
#define ENTRIES_MAX ((uint64_t)1 << 32) /* so that filter_block_of does not overflow */
#define TAIL        16u

static const char magic[8] = "SLUICEK1", footer_magic[8] = "SLUICEKF", end_magic[8] = "SLUICEKE";

#define FILTER_BITS_PER_HASH 10u
#define FILTER_WORDS         8u
#define FILTER_BLOCK         32u

typedef struct footer {
    uint8_t magic[8];
    uint32_t version, block_size;
    uint64_t table, entries;
    uint64_t filter_offset, filter_blocks;
    uint64_t end; /* E: where the footer begins */
    uint64_t blocks, fences;
    uint64_t last_hash; /* 0 without entries */
} footer;
_Static_assert(sizeof(footer) == 80, "the footer's layout is the format");

struct st_run {
    pf_map map;
    footer footer;
    const uint8_t *digests; /* of the blocks, in the map (unaligned reads) */
    uint64_t *fences;
    uint8_t *checked; /* a byte per block */
    char path[ST_PATH_MAX];
};

/* ---- the filter: one cache line per look-up ---- */

static const uint32_t salts[FILTER_WORDS] = {0x47B6137Bu, 0x44974D91u, 0x8824AD5Bu, 0xA2B7289Du,
                                             0x705495C7u, 0x2DF1424Bu, 0x9EFC4947u, 0x5C6BFB31u};

static inline uint64_t filter_block_of(uint64_t hash, uint64_t blocks)
{
    return ((hash >> 32) * blocks) >> 32;
}

static inline void filter_add(uint32_t block[FILTER_WORDS], uint64_t hash)
{
    for (unsigned i = 0; i < FILTER_WORDS; i++)
        block[i] |= 1u << (((uint32_t)hash * salts[i]) >> 27);
}

static inline bool filter_has(const uint32_t block[FILTER_WORDS], uint64_t hash)
{
    uint32_t missing = 0;
    for (unsigned i = 0; i < FILTER_WORDS; i++)
        missing |= ~block[i] & (1u << (((uint32_t)hash * salts[i]) >> 27));
    return missing == 0;
}

/* ---- writing ---- */

static uint64_t first_entry_of(uint64_t block)
{
    return block ? (block * BLOCK - HEADER) / ENTRY : 0;
}

/* Where everything lies, from the number of entries and of filter blocks. */
static void lay_out(footer *layout, uint64_t table, uint64_t entries, uint64_t filter_blocks)
{
    uint64_t entries_end = HEADER + entries * ENTRY;
    *layout = (footer){.version = VERSION, .block_size = BLOCK, .table = table, .entries = entries};
    memcpy(layout->magic, footer_magic, sizeof layout->magic);
    layout->filter_offset = (entries_end + 63) & ~(uint64_t)63;
    layout->filter_blocks = filter_blocks;
    layout->end = (layout->filter_offset + filter_blocks * FILTER_BLOCK + 63) & ~(uint64_t)63;
    layout->blocks = (layout->end + BLOCK - 1) / BLOCK;
    layout->fences = entries ? (entries_end + BLOCK - 1) / BLOCK : 0;
}

/* How many blocks the filter of so many different hashes has. */
static uint64_t filter_blocks_for(uint64_t distinct)
{
    uint64_t bits = distinct * FILTER_BITS_PER_HASH, per_block = (uint64_t)FILTER_BLOCK * 8;
    return (bits + per_block - 1) / per_block;
}

/* First time through: how many hashes there are, and the last one. */
static sluice_status survey(const st_run_source *source, uint64_t count, uint64_t *ret_distinct, uint64_t *ret_last,
                            sluice_error *err)
{
    const st_run_entry *entries;
    uint64_t here, seen = 0, distinct = 0, last = 0;

    PF_TRY(source->rewind(source->context, err));
    for (;;) {
        PF_TRY(source->next(source->context, &entries, &here, err));
        if (here == 0)
            break;
        distinct += seen == 0 || entries[0].hash != last;
        for (uint64_t i = 1; i < here; i++)
            distinct += entries[i].hash != entries[i - 1].hash;
        last = entries[here - 1].hash;
        seen += here;
    }
    if (seen != count)
        return pf_fail(err, SLUICE_INTERNAL, "a run was to have %llu entries and has %llu", (unsigned long long)count,
                       (unsigned long long)seen);
    *ret_distinct = distinct;
    *ret_last = last;
    return SLUICE_OK;
}

/* What is gathered while the entries and the blocks go by. */
typedef struct writing {
    st_output output;
    footer layout;
    uint8_t *digests; /* room for all blocks */
    uint64_t blocks;
    uint64_t *fences;
    uint32_t *filter;
} writing;

static void digest_blocks(void *context, const uint8_t *bytes, size_t length)
{
    writing *w = context;
    w->blocks += st_blocks_digest(bytes, length, w->digests + ST_BLOCK_DIGEST * w->blocks);
}

/* Second time through: to the file, the filter and the fences. */
static sluice_status write_entries(writing *w, const st_run_source *source, sluice_error *err)
{
    const st_run_entry *entries;
    uint64_t here, at = 0, fence = 0;

    PF_TRY(source->rewind(source->context, err));
    for (;; at += here) {
        PF_TRY(source->next(source->context, &entries, &here, err));
        if (here == 0)
            break;
        PF_ALWAYS(here <= w->layout.entries - at);
        for (; fence < w->layout.fences && first_entry_of(fence) < at + here; fence++)
            w->fences[fence] = entries[first_entry_of(fence) - at].hash;
        for (uint64_t i = 0; i < here; i++)
            filter_add(w->filter + FILTER_WORDS * filter_block_of(entries[i].hash, w->layout.filter_blocks),
                       entries[i].hash);
        PF_TRY(st_output_append(&w->output, entries, here * ENTRY, err));
    }
    PF_ALWAYS(at == w->layout.entries && fence == w->layout.fences);
    return SLUICE_OK;
}

static sluice_status write_blocks(writing *w, const st_run_source *source, sluice_error *err)
{
    uint8_t header[HEADER] = {0};

    memcpy(header, magic, sizeof magic);
    st_put_u32(header + 8, VERSION);
    st_put_u32(header + 12, (uint32_t)ENTRY);
    st_put_u64(header + 16, w->layout.table);
    st_put_u64(header + 24, w->layout.entries);
    PF_TRY(st_output_append(&w->output, header, sizeof header, err));
    PF_TRY(write_entries(w, source, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    PF_TRY(st_output_append(&w->output, w->filter, w->layout.filter_blocks * FILTER_BLOCK, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    return st_output_flush(&w->output, err);
}

static sluice_status write_footer(writing *w, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status;
    uint8_t word[8];

    PF_GOTO(status, done, pf_buffer_append(&bytes, &w->layout, sizeof w->layout, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, w->digests, 16 * w->layout.blocks, err));
    for (uint64_t i = 0; i < w->layout.fences; i++) {
        st_put_u64(word, w->fences[i]);
        PF_GOTO(status, done, pf_buffer_append(&bytes, word, sizeof word, err));
    }
    st_put_u64(word, bytes.length + TAIL);
    PF_GOTO(status, done, pf_buffer_append(&bytes, word, sizeof word, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, end_magic, sizeof end_magic, err));
    *ret_digest = pf_sha256_of(bytes.data, bytes.length);
    status = st_output_append(&w->output, bytes.data, bytes.length, err);
done:
    pf_buffer_free(&bytes);
    return status;
}

sluice_status st_run_write_sorted(pf_volume *volume, uint64_t table, const char *name, const st_run_source *source,
                                  uint64_t count, st_run_info *ret_info, sluice_error *err)
{
    char path[ST_PATH_MAX];
    sluice_status status;
    writing w = {0};
    st_run_info info = {.entries = count};
    uint64_t distinct = 0, last = 0;

    if (count > ENTRIES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a run would have %llu entries", (unsigned long long)count);
    if (strlen(name) >= sizeof info.name)
        return pf_fail(err, SLUICE_INTERNAL, "the name of a run is too long");
    PF_TRY(st_sealed_path(table, "keys", name, path, err));
    PF_TRY(survey(source, count, &distinct, &last, err));
    lay_out(&w.layout, table, count, filter_blocks_for(distinct));
    w.layout.last_hash = last;
    w.filter = calloc(w.layout.filter_blocks + 1, FILTER_BLOCK);
    w.digests = malloc(16 * w.layout.blocks);
    w.fences = malloc(8 * w.layout.fences + 8);
    if (!w.filter || !w.digests || !w.fences) {
        status = pf_fail_memory(err);
        goto done;
    }
    PF_GOTO(status, done, st_output_create(volume, path, &w.output, err));
    w.output.see = digest_blocks;
    w.output.context = &w;
    PF_GOTO(status, done, write_blocks(&w, source, err));
    w.output.see = NULL;
    PF_ASSERT(w.blocks == w.layout.blocks && st_output_offset(&w.output) == w.layout.end);
    PF_GOTO(status, done, write_footer(&w, &info.footer, err));
    PF_GOTO(status, done, st_output_finish(&w.output, &info.bytes, err));
    memcpy(info.name, name, strlen(name) + 1); /* which may be that of *ret_info */
    *ret_info = info;
done:
    st_output_abandon(&w.output);
    free(w.filter);
    free(w.digests);
    free(w.fences);
    return status;
}

typedef struct array_source { /* entries in memory, as one block */
    const st_run_entry *entries;
    uint64_t count;
    bool given;
} array_source;

static sluice_status rewind_array(void *context, sluice_error *err)
{
    (void)err;
    ((array_source *)context)->given = false;
    return SLUICE_OK;
}

static sluice_status next_of_array(void *context, const st_run_entry **ret_entries, uint64_t *ret_count,
                                   sluice_error *err)
{
    array_source *array = context;

    (void)err;
    *ret_entries = array->entries;
    *ret_count = array->given ? 0 : array->count;
    array->given = true;
    return SLUICE_OK;
}

sluice_status st_run_write(pf_volume *volume, uint64_t table, const char *name, st_run_entry *entries, uint64_t count,
                           st_run_info *ret_info, sluice_error *err)
{
    array_source array = {.entries = entries, .count = count};
    st_run_source source = {.context = &array, .rewind = rewind_array, .next = next_of_array};

    PF_TRY(st_run_sort(entries, count, err));
    return st_run_write_sorted(volume, table, name, &source, count, ret_info, err);
}

/* ---- opening ---- */

/* Finds, bounds and authenticates the footer: sets footer, digests, fences. */
static sluice_status read_footer(st_run *run, uint64_t table, const st_run_info *info, sluice_error *err)
{
    const uint8_t *data = run->map.data;
    uint64_t size = run->map.length;
    footer expected;

    if (size < sizeof(footer) + TAIL || memcmp(data + size - 8, end_magic, 8) != 0)
        return st_sealed_damaged(err, run->path, "it has no footer");
    uint64_t length = st_get_u64(data + size - TAIL);
    if (length < sizeof(footer) + TAIL || length > size)
        return st_sealed_damaged(err, run->path, "its footer has no valid length");
    const uint8_t *bytes = data + size - length;
    pf_sha256 digest = pf_sha256_of(bytes, length);
    if (!pf_sha256_equal(&digest, &info->footer))
        return st_sealed_damaged(err, run->path, "its footer is not the one that was written");
    memcpy(&run->footer, bytes, sizeof run->footer);
    if (memcmp(run->footer.magic, footer_magic, 8) != 0)
        return st_sealed_damaged(err, run->path, "its footer is none");
    if (run->footer.version != VERSION)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "%s has format version %u", run->path, run->footer.version);
    /* Everything else follows from a few numbers, which are small enough not to overflow. */
    if (run->footer.entries > ENTRIES_MAX || run->footer.filter_blocks > ENTRIES_MAX)
        return st_sealed_damaged(err, run->path, "its counts are impossible");
    lay_out(&expected, table, run->footer.entries, run->footer.filter_blocks);
    expected.last_hash = run->footer.last_hash;
    if (memcmp(&expected, &run->footer, sizeof expected) != 0 || run->footer.end != size - length ||
        run->footer.entries != info->entries || (run->footer.entries && !run->footer.filter_blocks) ||
        length != sizeof(footer) + 16 * expected.blocks + 8 * expected.fences + TAIL)
        return st_sealed_damaged(err, run->path, "its footer contradicts itself or the edit");
    run->digests = bytes + sizeof(footer);
    run->fences = malloc(8 * expected.fences + 8);
    run->checked = calloc(expected.blocks, 1);
    if (!run->fences || !run->checked)
        return pf_fail_memory(err);
    memcpy(run->fences, run->digests + 16 * expected.blocks, 8 * expected.fences);
    return SLUICE_OK;
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

static inline const st_run_entry *entry_at(const st_run *run, uint64_t index)
{
    return (const st_run_entry *)(const void *)(run->map.data + HEADER) + index;
}

static inline uint64_t block_of(uint64_t index)
{
    return (HEADER + index * ENTRY) / BLOCK;
}

static inline uint64_t end_of_block(const st_run *run, uint64_t block)
{
    uint64_t end = first_entry_of(block + 1);
    return end < run->footer.entries ? end : run->footer.entries;
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

/* The first entry of [low, high) whose hash is at least `hash`. Hashes are spread evenly between those at the edges,
 * `from` and `to`, so a guess by proportion lands close; from there the place is bracketed by growing steps and halved.
 */
static uint64_t search_block(const st_run *run, uint64_t low, uint64_t high, uint64_t from, uint64_t to, uint64_t hash)
{
    enum { STEP = 8 };
    uint64_t guess = low;

    if (hash > from && hash < to && high > low)
        guess += (uint64_t)((double)(hash - from) / (double)(to - from) * (double)(high - low - 1));
    if (guess < high && entry_at(run, guess)->hash < hash) {
        low = guess + 1;
        for (uint64_t step = STEP; step < high - low; step *= 2) {
            if (entry_at(run, low + step)->hash >= hash) {
                high = low + step;
                break;
            }
            low += step + 1;
        }
    } else {
        high = guess;
        for (uint64_t step = STEP; step < high - low; step *= 2) {
            if (entry_at(run, high - step)->hash < hash) {
                low = high - step + 1;
                break;
            }
            high -= step;
        }
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (entry_at(run, middle)->hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first entry whose hash is at least `hash`: fences choose the block, which is the only one touched. */
static sluice_status lower_bound(st_run *run, uint64_t hash, uint64_t *ret_index, sluice_error *err)
{
    uint64_t fence = fences_below(run, hash);

    *ret_index = 0;
    if (fence == 0)
        return SLUICE_OK;
    PF_TRY(touch(run, fence - 1, err));
    uint64_t to = fence < run->footer.fences ? run->fences[fence] : run->footer.last_hash;
    *ret_index =
        search_block(run, first_entry_of(fence - 1), end_of_block(run, fence - 1), run->fences[fence - 1], to, hash);
    return SLUICE_OK;
}

/* The first entry behind `from` whose hash is above `hash`, when it is near and in a block that was touched. */
static bool end_is_near(const st_run *run, uint64_t from, uint64_t hash, uint64_t *ret_index)
{
    enum { NEAR = 8 };
    for (uint64_t i = from; i < run->footer.entries && i < from + NEAR && run->checked[block_of(i)]; i++) {
        if (entry_at(run, i)->hash > hash) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

sluice_status st_run_seek(st_run *run, uint64_t low, uint64_t high, st_run_cursor *ret_cursor, sluice_error *err)
{
    *ret_cursor = (st_run_cursor){.run = run};
    if (low > high || !run->footer.entries || low > run->footer.last_hash || high < run->fences[0])
        return SLUICE_OK;
    PF_TRY(lower_bound(run, low, &ret_cursor->next, err));
    ret_cursor->end = run->footer.entries;
    if (high < run->footer.last_hash && !end_is_near(run, ret_cursor->next, high, &ret_cursor->end))
        PF_TRY(lower_bound(run, high + 1, &ret_cursor->end, err));
    if (ret_cursor->end < ret_cursor->next)
        ret_cursor->end = ret_cursor->next;
    return SLUICE_OK;
}

sluice_status st_run_next(st_run_cursor *cursor, const st_run_entry **ret_entry, sluice_error *err)
{
    *ret_entry = NULL;
    if (cursor->next >= cursor->end)
        return SLUICE_OK;
    PF_TRY(touch(cursor->run, block_of(cursor->next), err));
    *ret_entry = entry_at(cursor->run, cursor->next++);
    return SLUICE_OK;
}

sluice_status st_run_next_many(st_run_cursor *cursor, const st_run_entry **ret_entries, uint64_t *ret_count,
                               sluice_error *err)
{
    *ret_entries = NULL;
    *ret_count = 0;
    if (cursor->next >= cursor->end)
        return SLUICE_OK;
    uint64_t block = block_of(cursor->next), end = end_of_block(cursor->run, block);
    PF_TRY(touch(cursor->run, block, err));
    if (end > cursor->end)
        end = cursor->end;
    *ret_entries = entry_at(cursor->run, cursor->next);
    *ret_count = end - cursor->next;
    cursor->next = end;
    return SLUICE_OK;
}

static const uint32_t *filter_at(const st_run *run, uint64_t hash, uint64_t *ret_block)
{
    uint64_t at = run->footer.filter_offset + filter_block_of(hash, run->footer.filter_blocks) * FILTER_BLOCK;
    *ret_block = at / BLOCK;
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
    *ret_may = filter_has(filter, hash);
    return SLUICE_OK;
}

/* ---- verify ---- */

static sluice_status verify_header(const st_run *run, sluice_error *err)
{
    const uint8_t *header = run->map.data;
    if (memcmp(header, magic, sizeof magic) != 0 || st_get_u32(header + 8) != VERSION ||
        st_get_u32(header + 12) != ENTRY || st_get_u64(header + 16) != run->footer.table ||
        st_get_u64(header + 24) != run->footer.entries || !st_all_zero(header + 32, HEADER - 32))
        return st_sealed_damaged(err, run->path, "its header contradicts its footer");
    return SLUICE_OK;
}

static sluice_status verify_entries(const st_run *run, sluice_error *err)
{
    uint64_t count = run->footer.entries, block;

    for (uint64_t i = 0; i < count; i++) {
        const st_run_entry *entry = entry_at(run, i), *before = entry - 1;
        if (i && (before->hash > entry->hash || (before->hash == entry->hash && before->position >= entry->position)))
            return st_sealed_damaged(err, run->path, "entry %llu is out of order", (unsigned long long)i);
        if (!filter_has(filter_at(run, entry->hash, &block), entry->hash))
            return st_sealed_damaged(err, run->path, "its filter lacks entry %llu", (unsigned long long)i);
    }
    for (uint64_t i = 0; i < run->footer.fences; i++)
        if (run->fences[i] != entry_at(run, first_entry_of(i))->hash)
            return st_sealed_damaged(err, run->path, "fence %llu is wrong", (unsigned long long)i);
    if (run->footer.last_hash != (count ? entry_at(run, count - 1)->hash : 0))
        return st_sealed_damaged(err, run->path, "its last hash is wrong");
    return SLUICE_OK;
}

sluice_status st_run_verify(st_run *run, sluice_error *err)
{
    const footer *layout = &run->footer;
    uint64_t entries_end = HEADER + layout->entries * ENTRY;
    uint64_t filter_end = layout->filter_offset + layout->filter_blocks * FILTER_BLOCK;

    for (uint64_t block = 0; block < layout->blocks; block++)
        PF_TRY(check_block(run, block, err));
    PF_TRY(verify_header(run, err));
    PF_TRY(verify_entries(run, err));
    if (!st_all_zero(run->map.data + entries_end, layout->filter_offset - entries_end) ||
        !st_all_zero(run->map.data + filter_end, layout->end - filter_end))
        return st_sealed_damaged(err, run->path, "its padding is not zero");
    return SLUICE_OK;
}
