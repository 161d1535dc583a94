/*
 * Writing runs: a first time through the entries says how many hashes there are and how wide positions are, a second
 * one packs, gathers filter, fences and offsets, and lets the digests of blocks go by.
 */
#include "platform/check.h"
#include "store/fragment/run_impl.h"
#include "store/fragment/run_packet.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX ((uint64_t)1 << 30) /* so that offsets of packets fit */

/* How many blocks the filter of so many different hashes has. */
static uint64_t filter_blocks_for(uint64_t distinct)
{
    uint64_t bits = distinct * RUN_FILTER_BITS_PER_HASH, per_block = (uint64_t)RUN_FILTER_BLOCK * 8;
    return (bits + per_block - 1) / per_block;
}

typedef struct survey {
    uint64_t distinct, last, position_mask;
} survey;

/* First time through. */
static sluice_status look_over(const st_run_source *source, uint64_t count, survey *ret_survey, sluice_error *err)
{
    const st_run_entry *entries;
    uint64_t here, seen = 0, distinct = 0, last = 0, mask = 0;

    PF_TRY(source->rewind(source->context, err));
    for (;;) {
        PF_TRY(source->next(source->context, &entries, &here, err));
        if (here == 0)
            break;
        distinct += seen == 0 || entries[0].hash != last;
        mask |= entries[0].position;
        for (uint64_t i = 1; i < here; i++) {
            distinct += entries[i].hash != entries[i - 1].hash;
            mask |= entries[i].position;
        }
        last = entries[here - 1].hash;
        seen += here;
    }
    if (seen != count)
        return pf_fail(err, SLUICE_INTERNAL, "a run was to have %llu entries and has %llu", (unsigned long long)count,
                       (unsigned long long)seen);
    *ret_survey = (survey){.distinct = distinct, .last = last, .position_mask = mask};
    return SLUICE_OK;
}

/* What is gathered while the entries and the blocks go by. */
typedef struct writing {
    st_output output;
    run_footer layout;
    uint8_t *digests; /* room for all blocks */
    uint64_t blocks;
    uint64_t *fences;
    uint32_t *offsets; /* one more than fences */
    uint64_t packets;
    uint32_t *filter;
    bool any;
    uint64_t last; /* hash that the filter has */
    st_run_entry gathered[ST_RUN_PACKET];
    unsigned gathered_count;
    uint8_t packed[ST_PACKET_BYTES + 8];
} writing;

static void digest_blocks(void *context, const uint8_t *bytes, size_t length)
{
    writing *w = context;
    w->blocks += st_blocks_digest(bytes, length, w->digests + ST_BLOCK_DIGEST * w->blocks);
}

static sluice_status write_packet(writing *w, const st_run_entry *entries, unsigned count, sluice_error *err)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t hash = entries[i].hash;
        if (w->any && hash == w->last)
            continue;
        run_filter_add(w->filter + RUN_FILTER_WORDS * run_filter_block_of(hash, w->layout.filter_blocks), hash);
        w->last = hash;
        w->any = true;
    }
    w->fences[w->packets] = entries[0].hash;
    size_t length = st_packet_pack(entries, count, (unsigned)w->layout.position_bits, w->packed);
    PF_TRY(st_output_append(&w->output, w->packed, length, err));
    w->offsets[++w->packets] = (uint32_t)(st_output_offset(&w->output) / RUN_OFFSET_UNIT);
    return SLUICE_OK;
}

/* Second time through. */
static sluice_status write_entries(writing *w, const st_run_source *source, sluice_error *err)
{
    const st_run_entry *entries;
    uint64_t here, at = 0;

    PF_TRY(source->rewind(source->context, err));
    w->offsets[0] = RUN_HEADER / RUN_OFFSET_UNIT;
    for (;;) {
        PF_TRY(source->next(source->context, &entries, &here, err));
        if (here == 0)
            break;
        PF_ALWAYS(here <= w->layout.entries - at);
        at += here;
        while (here > 0) {
            if (w->gathered_count == 0 && here >= ST_RUN_PACKET) {
                PF_TRY(write_packet(w, entries, ST_RUN_PACKET, err));
                entries += ST_RUN_PACKET;
                here -= ST_RUN_PACKET;
                continue;
            }
            unsigned room = ST_RUN_PACKET - w->gathered_count, piece = here < room ? (unsigned)here : room;
            memcpy(w->gathered + w->gathered_count, entries, piece * sizeof *entries);
            w->gathered_count += piece;
            entries += piece;
            here -= piece;
            if (w->gathered_count == ST_RUN_PACKET) {
                w->gathered_count = 0;
                PF_TRY(write_packet(w, w->gathered, ST_RUN_PACKET, err));
            }
        }
    }
    if (w->gathered_count > 0)
        PF_TRY(write_packet(w, w->gathered, w->gathered_count, err));
    PF_ALWAYS(at == w->layout.entries && w->packets == w->layout.fences);
    return SLUICE_OK;
}

static sluice_status write_blocks(writing *w, const st_run_source *source, sluice_error *err)
{
    uint8_t header[RUN_HEADER] = {0};

    memcpy(header, RUN_MAGIC, 8);
    st_put_u32(header + 8, RUN_VERSION);
    st_put_u32(header + 12, ST_RUN_PACKET);
    st_put_u64(header + 16, w->layout.table);
    st_put_u64(header + 24, w->layout.entries);
    PF_TRY(st_output_append(&w->output, header, sizeof header, err));
    PF_TRY(write_entries(w, source, err));
    run_lay_out(&w->layout, st_output_offset(&w->output), w->layout.filter_blocks);
    PF_TRY(st_output_align(&w->output, 64, err));
    PF_TRY(st_output_append(&w->output, w->filter, w->layout.filter_blocks * RUN_FILTER_BLOCK, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    return st_output_flush(&w->output, err);
}

static sluice_status write_footer(writing *w, pf_sha256 *ret_digest, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status;
    uint8_t word[8];

    PF_GOTO(status, done, pf_buffer_append(&bytes, &w->layout, sizeof w->layout, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, w->digests, ST_BLOCK_DIGEST * w->layout.blocks, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, w->fences, 8 * w->layout.fences, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, w->offsets, 4 * (w->layout.fences + 1), err));
    st_put_u64(word, bytes.length + RUN_TAIL);
    PF_GOTO(status, done, pf_buffer_append(&bytes, word, sizeof word, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, RUN_END_MAGIC, 8, err));
    *ret_digest = pf_sha256_of(bytes.data, bytes.length);
    status = st_output_append(&w->output, bytes.data, bytes.length, err);
done:
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status make_writing(uint64_t table, uint64_t count, const survey *seen, writing **ret_writing,
                                  sluice_error *err)
{
    uint64_t packets = (count + ST_RUN_PACKET - 1) / ST_RUN_PACKET, filter_blocks = filter_blocks_for(seen->distinct);
    uint64_t most = RUN_HEADER + packets * ST_PACKET_BYTES + filter_blocks * RUN_FILTER_BLOCK + 2 * (uint64_t)64;
    writing *w = calloc(1, sizeof *w);

    *ret_writing = w;
    if (!w)
        return pf_fail_memory(err);
    w->layout = (run_footer){.version = RUN_VERSION,
                             .block_size = ST_BLOCK,
                             .table = table,
                             .entries = count,
                             .filter_blocks = filter_blocks,
                             .fences = packets,
                             .last_hash = seen->last};
    memcpy(w->layout.magic, RUN_FOOTER_MAGIC, 8);
    if (seen->position_mask)
        w->layout.position_bits = 64 - (uint64_t)__builtin_clzll(seen->position_mask);
    w->filter = calloc(filter_blocks + 1, RUN_FILTER_BLOCK);
    w->digests = malloc(ST_BLOCK_DIGEST * (most / ST_BLOCK + 1));
    w->fences = malloc(8 * packets + 8);
    w->offsets = malloc(4 * packets + 4);
    return w->filter && w->digests && w->fences && w->offsets ? SLUICE_OK : pf_fail_memory(err);
}

static void free_writing(writing *w)
{
    if (!w)
        return;
    st_output_abandon(&w->output);
    free(w->filter);
    free(w->digests);
    free(w->fences);
    free(w->offsets);
    free(w);
}

sluice_status st_run_write_sorted(pf_volume *volume, uint64_t table, const char *name, const st_run_source *source,
                                  uint64_t count, st_run_info *ret_info, sluice_error *err)
{
    char path[ST_PATH_MAX];
    sluice_status status;
    writing *w = NULL;
    survey seen = {0};
    st_run_info info = {.entries = count};

    if (count > ENTRIES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a run would have %llu entries", (unsigned long long)count);
    if (strlen(name) >= sizeof info.name)
        return pf_fail(err, SLUICE_INTERNAL, "the name of a run is too long");
    PF_TRY(st_sealed_path(table, "keys", name, path, err));
    PF_TRY(look_over(source, count, &seen, err));
    PF_GOTO(status, done, make_writing(table, count, &seen, &w, err));
    PF_GOTO(status, done, st_output_create(volume, path, &w->output, err));
    w->output.see = digest_blocks;
    w->output.context = w;
    PF_GOTO(status, done, write_blocks(w, source, err));
    w->output.see = NULL;
    PF_ASSERT(w->blocks == w->layout.blocks && st_output_offset(&w->output) == w->layout.end);
    PF_GOTO(status, done, write_footer(w, &info.footer, err));
    PF_GOTO(status, done, st_output_finish(&w->output, &info.bytes, err));
    memcpy(info.name, name, strlen(name) + 1); /* which may be that of *ret_info */
    *ret_info = info;
done:
    free_writing(w);
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
