/*
 * Adjacency files, format adjacency/1, all numbers little-endian (docs/format.md has the same byte by byte):
 *
 *   0   header, 64 bytes: magic, u32 version, u32 direction, u64 table, u64 edges, u64 nodes, zeros
 *   64  entries of 16 bytes: u64 far hash, u32 ordinal, u32 position; by near hash, then ordinal, then position
 *   N   near hashes, u64 each, ascending, at the next multiple of 64
 *   O   u32 per near hash: its first entry, and one more: the number of entries; at the next multiple of 64
 *   E   footer, at the next multiple of 64: the struct `footer` below, then XXH3-128 of each 64 KiB of [0, E), then
 *       the covered fragments (64 bytes of name, zero padded, u64 rows), then the first near hash of each stretch of
 *       STRETCH, then u64 footer length and the end magic
 *
 * The footer is bound by its SHA-256, which the list holds, and binds everything else. Blocks are checked on first
 * touch, in touch(), the only way to the bytes of a block.
 */
#include "store/fragment/adjacency.h"

#include "platform/check.h"
#include "store/fragment/blocks.h"
#include "store/fragment/search.h"
#include <stdlib.h>
#include <string.h>

#define VERSION    1u
#define HEADER     64u
#define STRETCH    4096u /* near hashes between two fences: half a block */
#define TAIL       16u
#define COVERS_MAX (1u << 20)

static const char magic[8] = "SLUICEA1", footer_magic[8] = "SLUICEAF", end_magic[8] = "SLUICEAE";

_Static_assert(sizeof(st_adjacent) == 16 && sizeof(st_adjacency_cover) == 72, "their layout is the format");

typedef struct footer {
    uint8_t magic[8];
    uint32_t version, block_size;
    uint32_t direction, covers;
    uint64_t table, edges, nodes;
    uint64_t nodes_offset, firsts_offset;
    uint64_t end; /* E: where the footer begins */
    uint64_t blocks, fences;
} footer;
_Static_assert(sizeof(footer) == 88, "the footer's layout is the format");

struct st_adjacency {
    pf_map map;
    footer footer;
    const uint8_t *digests; /* of the blocks, in the map */
    st_adjacency_cover *covers;
    uint64_t *fences;
    uint8_t *checked; /* a byte per block */
    char path[ST_PATH_MAX];
};

static uint64_t aligned(uint64_t offset)
{
    return (offset + 63) & ~(uint64_t)63;
}

/* Where everything lies, from a few numbers. */
static void lay_out(footer *layout, uint64_t table, uint32_t direction, uint32_t covers, uint64_t edges, uint64_t nodes)
{
    *layout = (footer){.version = VERSION,
                       .block_size = ST_BLOCK,
                       .direction = direction,
                       .covers = covers,
                       .table = table,
                       .edges = edges,
                       .nodes = nodes};
    memcpy(layout->magic, footer_magic, sizeof layout->magic);
    layout->nodes_offset = aligned(HEADER + edges * sizeof(st_adjacent));
    layout->firsts_offset = aligned(layout->nodes_offset + nodes * 8);
    layout->end = aligned(layout->firsts_offset + (nodes + 1) * 4);
    layout->blocks = (layout->end + ST_BLOCK - 1) / ST_BLOCK;
    layout->fences = (nodes + STRETCH - 1) / STRETCH;
}

/* ---- writing ---- */

typedef struct writing {
    st_output output;
    footer layout;
    uint64_t *nodes; /* near hashes */
    uint32_t *firsts;
    uint8_t *digests;
    uint64_t blocks;
} writing;

static void digest_blocks(void *context, const uint8_t *bytes, size_t length)
{
    writing *w = context;
    w->blocks += st_blocks_digest(bytes, length, w->digests + ST_BLOCK_DIGEST * w->blocks);
}

static uint64_t count_nodes(const st_run_entry *near, uint64_t count)
{
    uint64_t nodes = count > 0;
    for (uint64_t i = 1; i < count; i++)
        nodes += near[i].hash != near[i - 1].hash;
    return nodes;
}

static void gather_nodes(writing *w, const st_run_entry *near, uint64_t count)
{
    uint64_t nodes = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0 && near[i].hash == near[i - 1].hash)
            continue;
        w->nodes[nodes] = near[i].hash;
        w->firsts[nodes++] = (uint32_t)i;
    }
    w->firsts[nodes] = (uint32_t)count;
}

static sluice_status write_entries(writing *w, const st_run_entry *near, uint64_t count, const uint64_t *const *far,
                                   sluice_error *err)
{
    enum { PIECE = 4096 };
    st_adjacent *piece = malloc(PIECE * sizeof *piece);
    sluice_status status = SLUICE_OK;
    if (!piece)
        return pf_fail_memory(err);
    for (uint64_t at = 0; at < count && status == SLUICE_OK; at += PIECE) {
        uint64_t length = count - at < PIECE ? count - at : PIECE;
        for (uint64_t i = 0; i < length; i++) {
            uint32_t ordinal = (uint32_t)(near[at + i].position >> 32), position = (uint32_t)near[at + i].position;
            piece[i] = (st_adjacent){.far = far[ordinal][position], .ordinal = ordinal, .position = position};
        }
        status = st_output_append(&w->output, piece, length * sizeof *piece, err);
    }
    free(piece);
    return status;
}

static sluice_status write_blocks(writing *w, const st_run_entry *near, uint64_t count, const uint64_t *const *far,
                                  sluice_error *err)
{
    uint8_t header[HEADER] = {0};
    const footer *layout = &w->layout;
    memcpy(header, magic, sizeof magic);
    st_put_u32(header + 8, VERSION);
    st_put_u32(header + 12, layout->direction);
    st_put_u64(header + 16, layout->table);
    st_put_u64(header + 24, layout->edges);
    st_put_u64(header + 32, layout->nodes);
    PF_TRY(st_output_append(&w->output, header, sizeof header, err));
    PF_TRY(write_entries(w, near, count, far, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    PF_TRY(st_output_append(&w->output, w->nodes, layout->nodes * 8, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    PF_TRY(st_output_append(&w->output, w->firsts, (layout->nodes + 1) * 4, err));
    PF_TRY(st_output_align(&w->output, 64, err));
    return st_output_flush(&w->output, err);
}

static sluice_status write_footer(writing *w, const st_adjacency_cover *covers, pf_sha256 *ret_digest,
                                  sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status;
    uint8_t word[8];
    PF_GOTO(status, done, pf_buffer_append(&bytes, &w->layout, sizeof w->layout, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, w->digests, ST_BLOCK_DIGEST * w->layout.blocks, err));
    PF_GOTO(status, done, pf_buffer_append(&bytes, covers, w->layout.covers * sizeof *covers, err));
    for (uint64_t i = 0; i < w->layout.fences; i++) {
        st_put_u64(word, w->nodes[i * STRETCH]);
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

sluice_status st_adjacency_write(pf_volume *volume, uint64_t table, const char *name, st_adjacency_direction direction,
                                 const st_adjacency_cover *covers, uint32_t cover_count, st_run_entry *near,
                                 uint64_t count, const uint64_t *const *far, st_run_info *ret_info, sluice_error *err)
{
    char path[ST_PATH_MAX];
    writing w = {0};
    st_run_info info = {.entries = count};
    sluice_status status;

    if (count > ST_ADJACENCY_EDGES_MAX || cover_count > COVERS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "adjacency of %llu edges", (unsigned long long)count);
    if (strlen(name) >= sizeof info.name)
        return pf_fail(err, SLUICE_INTERNAL, "the name of an adjacency file is too long");
    PF_TRY(st_sealed_path(table, "indexes", name, path, err));
    PF_TRY(st_run_sort(near, count, err));
    uint64_t nodes = count_nodes(near, count);
    lay_out(&w.layout, table, (uint32_t)direction, cover_count, count, nodes);
    w.nodes = malloc(nodes * 8 + 8);
    w.firsts = malloc((nodes + 1) * 4);
    w.digests = malloc(ST_BLOCK_DIGEST * w.layout.blocks);
    if (!w.nodes || !w.firsts || !w.digests) {
        status = pf_fail_memory(err);
        goto done;
    }
    gather_nodes(&w, near, count);
    PF_GOTO(status, done, st_output_create(volume, path, &w.output, err));
    w.output.see = digest_blocks;
    w.output.context = &w;
    PF_GOTO(status, done, write_blocks(&w, near, count, far, err));
    w.output.see = NULL;
    PF_ASSERT(w.blocks == w.layout.blocks && st_output_offset(&w.output) == w.layout.end);
    PF_GOTO(status, done, write_footer(&w, covers, &info.footer, err));
    PF_GOTO(status, done, st_output_finish(&w.output, &info.bytes, err));
    memcpy(info.name, name, strlen(name) + 1);
    *ret_info = info;
done:
    st_output_abandon(&w.output);
    free(w.nodes);
    free(w.firsts);
    free(w.digests);
    return status;
}

/* ---- opening ---- */

static sluice_status take_footer(st_adjacency *adjacency, const uint8_t *bytes, uint64_t length, sluice_error *err)
{
    const footer *found = &adjacency->footer;
    uint64_t covers = found->covers * sizeof(st_adjacency_cover), fences = found->fences * 8;
    uint64_t digests = ST_BLOCK_DIGEST * found->blocks;
    if (length != sizeof *found + digests + covers + fences + TAIL)
        return st_sealed_damaged(err, adjacency->path, "its footer has another length than it says");
    adjacency->digests = bytes + sizeof *found;
    adjacency->covers = malloc(covers + 1);
    adjacency->fences = malloc(fences + 8);
    adjacency->checked = calloc(found->blocks + 1, 1);
    if (!adjacency->covers || !adjacency->fences || !adjacency->checked)
        return pf_fail_memory(err);
    memcpy(adjacency->covers, adjacency->digests + digests, covers);
    memcpy(adjacency->fences, adjacency->digests + digests + covers, fences);
    for (uint32_t i = 0; i < found->covers; i++)
        if (!memchr(adjacency->covers[i].fragment, 0, sizeof adjacency->covers[i].fragment))
            return st_sealed_damaged(err, adjacency->path, "the name of a covered fragment has no end");
    return SLUICE_OK;
}

static sluice_status read_footer(st_adjacency *adjacency, uint64_t table, const st_run_info *info,
                                 st_adjacency_direction direction, sluice_error *err)
{
    const uint8_t *map = adjacency->map.data;
    uint64_t size = adjacency->map.length;
    footer expected;
    if (size < HEADER + sizeof expected + TAIL || memcmp(map + size - 8, end_magic, sizeof end_magic) != 0)
        return st_sealed_damaged(err, adjacency->path, "it does not end as an adjacency file");
    uint64_t length = st_get_u64(map + size - TAIL);
    if (length < sizeof expected + TAIL || length > size - HEADER)
        return st_sealed_damaged(err, adjacency->path, "its footer has an impossible length");
    const uint8_t *bytes = map + size - length;
    pf_sha256 digest = pf_sha256_of(bytes, length);
    if (!pf_sha256_equal(&digest, &info->footer))
        return st_sealed_damaged(err, adjacency->path, "its footer is not the one that was written");
    memcpy(&adjacency->footer, bytes, sizeof expected);
    const footer *found = &adjacency->footer;
    if (memcmp(found->magic, footer_magic, sizeof footer_magic) != 0)
        return st_sealed_damaged(err, adjacency->path, "its footer is none");
    if (found->version != VERSION)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "%s has format version %u", adjacency->path, found->version);
    if (found->edges > ST_ADJACENCY_EDGES_MAX || found->nodes > found->edges || found->covers > COVERS_MAX)
        return st_sealed_damaged(err, adjacency->path, "its counts are impossible");
    lay_out(&expected, table, (uint32_t)direction, found->covers, found->edges, found->nodes);
    if (memcmp(&expected, found, sizeof expected) != 0 || found->end != size - length || found->edges != info->entries)
        return st_sealed_damaged(err, adjacency->path, "its footer contradicts itself or the list");
    return take_footer(adjacency, bytes, length, err);
}

sluice_status st_adjacency_open(pf_volume *volume, uint64_t table, const st_run_info *info,
                                st_adjacency_direction direction, st_adjacency **ret_adjacency, sluice_error *err)
{
    sluice_status status;
    st_adjacency *adjacency = calloc(1, sizeof *adjacency);
    if (!adjacency)
        return pf_fail_memory(err);
    PF_GOTO(status, failed, st_sealed_path(table, "indexes", info->name, adjacency->path, err));
    PF_GOTO(status, failed, st_sealed_map(volume, adjacency->path, info->bytes, &adjacency->map, err));
    PF_GOTO(status, failed, read_footer(adjacency, table, info, direction, err));
    *ret_adjacency = adjacency;
    return SLUICE_OK;
failed:
    st_adjacency_close(adjacency);
    return status;
}

void st_adjacency_close(st_adjacency *adjacency)
{
    if (!adjacency)
        return;
    pf_unmap(&adjacency->map);
    free(adjacency->covers);
    free(adjacency->fences);
    free(adjacency->checked);
    free(adjacency);
}

const st_adjacency_cover *st_adjacency_covers(const st_adjacency *adjacency, uint32_t *ret_count)
{
    *ret_count = adjacency->footer.covers;
    return adjacency->covers;
}

uint64_t st_adjacency_edges(const st_adjacency *adjacency)
{
    return adjacency->footer.edges;
}

/* ---- reading ---- */

static sluice_status check_block(st_adjacency *adjacency, uint64_t block, sluice_error *err)
{
    if (!st_block_is_whole(adjacency->map.data, adjacency->footer.end, block, adjacency->digests))
        return st_sealed_damaged(err, adjacency->path, "block %llu is not what was written", (unsigned long long)block);
    adjacency->checked[block] = 1;
    return SLUICE_OK;
}

/* `length` bytes at an offset below E, which may lie over two blocks. */
static inline sluice_status touch(st_adjacency *adjacency, uint64_t offset, uint64_t length, sluice_error *err)
{
    for (uint64_t block = offset / ST_BLOCK; block <= (offset + length - 1) / ST_BLOCK; block++)
        if (!adjacency->checked[block])
            PF_TRY(check_block(adjacency, block, err));
    return SLUICE_OK;
}

static inline uint64_t node_at(const st_adjacency *adjacency, uint64_t node)
{
    return st_get_u64(adjacency->map.data + adjacency->footer.nodes_offset + node * 8);
}

static inline uint32_t first_at(const st_adjacency *adjacency, uint64_t node)
{
    return st_get_u32(adjacency->map.data + adjacency->footer.firsts_offset + node * 4);
}

/* The last stretch that begins at or below `hash`; false when all begin above it. */
static bool find_stretch(const st_adjacency *adjacency, uint64_t hash, uint64_t *ret_stretch)
{
    uint64_t low = 0, high = adjacency->footer.fences;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (adjacency->fences[middle] <= hash)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_stretch = low - 1;
    return low > 0;
}

sluice_status st_adjacency_find(st_adjacency *adjacency, uint64_t hash, uint64_t *ret_first, uint64_t *ret_end,
                                sluice_error *err)
{
    const footer *layout = &adjacency->footer;
    uint64_t stretch = 0;
    *ret_first = *ret_end = 0;
    if (!find_stretch(adjacency, hash, &stretch))
        return SLUICE_OK;
    uint64_t low = stretch * STRETCH, end = low + STRETCH < layout->nodes ? low + STRETCH : layout->nodes;
    uint64_t to = stretch + 1 < layout->fences ? adjacency->fences[stretch + 1] : UINT64_MAX;
    PF_TRY(touch(adjacency, layout->nodes_offset + low * 8, (end - low) * 8, err));
    low = st_search_hash(adjacency->map.data + layout->nodes_offset, sizeof(uint64_t), low, end,
                         adjacency->fences[stretch], to, hash);
    if (low == end || node_at(adjacency, low) != hash)
        return SLUICE_OK;
    PF_TRY(touch(adjacency, layout->firsts_offset + low * 4, 8, err));
    uint64_t first = first_at(adjacency, low), behind = first_at(adjacency, low + 1);
    if (first > behind || behind > layout->edges)
        return st_sealed_damaged(err, adjacency->path, "the entries of node %llu are out of order",
                                 (unsigned long long)low);
    *ret_first = first;
    *ret_end = behind;
    return SLUICE_OK;
}

static inline st_adjacent entry_at(const st_adjacency *adjacency, uint64_t entry)
{
    st_adjacent found;
    memcpy(&found, adjacency->map.data + HEADER + entry * sizeof found, sizeof found);
    return found;
}

sluice_status st_adjacency_get(st_adjacency *adjacency, uint64_t entry, st_adjacent *ret_adjacent, sluice_error *err)
{
    PF_ASSERT(entry < adjacency->footer.edges);
    PF_TRY(touch(adjacency, HEADER + entry * sizeof *ret_adjacent, sizeof *ret_adjacent, err));
    *ret_adjacent = entry_at(adjacency, entry);
    if (ret_adjacent->ordinal >= adjacency->footer.covers ||
        ret_adjacent->position >= adjacency->covers[ret_adjacent->ordinal].rows)
        return st_sealed_damaged(err, adjacency->path, "entry %llu is of no edge that it covers",
                                 (unsigned long long)entry);
    return SLUICE_OK;
}

sluice_status st_adjacency_entries(st_adjacency *adjacency, uint64_t first, uint64_t end,
                                   const st_adjacent **ret_entries, sluice_error *err)
{
    PF_ASSERT(first < end && end <= adjacency->footer.edges);
    uint64_t offset = HEADER + first * sizeof **ret_entries;
    PF_TRY(touch(adjacency, offset, (end - first) * sizeof **ret_entries, err));
    *ret_entries = (const st_adjacent *)(const void *)(adjacency->map.data + offset);
    return SLUICE_OK;
}

sluice_status st_adjacency_sum(st_adjacency *adjacency, uint64_t *ret_sums, sluice_error *err)
{
    const footer *layout = &adjacency->footer;
    memset(ret_sums, 0, layout->covers * sizeof *ret_sums);
    PF_TRY(touch(adjacency, 0, layout->end, err));
    for (uint64_t node = 0, entry = 0; node < layout->nodes; node++) {
        for (uint64_t end = first_at(adjacency, node + 1); entry < end && entry < layout->edges; entry++) {
            st_adjacent edge;
            PF_TRY(st_adjacency_get(adjacency, entry, &edge, err));
            ret_sums[edge.ordinal] += st_adjacent_digest(node_at(adjacency, node), &edge);
        }
    }
    return SLUICE_OK;
}

/* ---- verify ---- */

static sluice_status verify_header(const st_adjacency *adjacency, sluice_error *err)
{
    const uint8_t *header = adjacency->map.data;
    const footer *layout = &adjacency->footer;
    if (memcmp(header, magic, sizeof magic) != 0 || st_get_u32(header + 8) != VERSION ||
        st_get_u32(header + 12) != layout->direction || st_get_u64(header + 16) != layout->table ||
        st_get_u64(header + 24) != layout->edges || st_get_u64(header + 32) != layout->nodes ||
        !st_all_zero(header + 40, HEADER - 40))
        return st_sealed_damaged(err, adjacency->path, "its header contradicts its footer");
    return SLUICE_OK;
}

static sluice_status verify_nodes(const st_adjacency *adjacency, sluice_error *err)
{
    const footer *layout = &adjacency->footer;
    bool right = first_at(adjacency, layout->nodes) == layout->edges;
    for (uint64_t i = 0; i < layout->nodes && right; i++) {
        right = first_at(adjacency, i) < first_at(adjacency, i + 1) && (i > 0 || first_at(adjacency, i) == 0) &&
                (i == 0 || node_at(adjacency, i - 1) < node_at(adjacency, i)) &&
                (i % STRETCH != 0 || adjacency->fences[i / STRETCH] == node_at(adjacency, i));
        if (!right)
            return st_sealed_damaged(err, adjacency->path, "node %llu is out of order", (unsigned long long)i);
    }
    return right ? SLUICE_OK : st_sealed_damaged(err, adjacency->path, "its nodes do not end with its entries");
}

/* Entries ascend within their node; each fragment has as many as rows. */
static sluice_status verify_entries(st_adjacency *adjacency, sluice_error *err)
{
    const footer *layout = &adjacency->footer;
    uint64_t *rows = calloc((size_t)layout->covers + 1, sizeof *rows);
    sluice_status status = SLUICE_OK;
    if (!rows)
        return pf_fail_memory(err);
    for (uint64_t node = 0; node < layout->nodes && status == SLUICE_OK; node++) {
        st_adjacent last = {0}, entry;
        uint64_t first = first_at(adjacency, node), end = first_at(adjacency, node + 1);
        for (uint64_t i = first; i < end && status == SLUICE_OK; i++, last = entry) {
            status = st_adjacency_get(adjacency, i, &entry, err);
            if (status != SLUICE_OK)
                break;
            rows[entry.ordinal]++;
            if (i > first &&
                (entry.ordinal < last.ordinal || (entry.ordinal == last.ordinal && entry.position <= last.position)))
                status = st_sealed_damaged(err, adjacency->path, "entry %llu is out of order", (unsigned long long)i);
        }
    }
    for (uint32_t i = 0; i < layout->covers && status == SLUICE_OK; i++)
        if (rows[i] != adjacency->covers[i].rows)
            status =
                st_sealed_damaged(err, adjacency->path, "fragment %u has %llu entries", i, (unsigned long long)rows[i]);
    free(rows);
    return status;
}

sluice_status st_adjacency_verify(st_adjacency *adjacency, sluice_error *err)
{
    const footer *layout = &adjacency->footer;
    const uint8_t *map = adjacency->map.data;
    uint64_t entries_end = HEADER + layout->edges * sizeof(st_adjacent),
             nodes_end = layout->nodes_offset + layout->nodes * 8;
    uint64_t firsts_end = layout->firsts_offset + (layout->nodes + 1) * 4;
    for (uint64_t block = 0; block < layout->blocks; block++)
        PF_TRY(check_block(adjacency, block, err));
    PF_TRY(verify_header(adjacency, err));
    PF_TRY(verify_nodes(adjacency, err));
    PF_TRY(verify_entries(adjacency, err));
    if (!st_all_zero(map + entries_end, layout->nodes_offset - entries_end) ||
        !st_all_zero(map + nodes_end, layout->firsts_offset - nodes_end) ||
        !st_all_zero(map + firsts_end, layout->end - firsts_end))
        return st_sealed_damaged(err, adjacency->path, "its padding is not zero");
    return SLUICE_OK;
}
