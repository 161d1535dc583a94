/*
 * Reading fragments: opened by their footer, read column by column.
 *
 * Opening touches the end of the file only: size, the footer against the digest that the edit holds, and that all parts
 * which the footer names follow each other without gaps. A batch's message is checked and decoded when its first column
 * is asked for, a buffer when its own column is, in touch(), which every way to its bytes goes through; the column is
 * then kept. Bytes behind a right digest may still be anything: all that is relied on is checked once more as
 * structure.
 */
#include "store/arrow/ipc.h"
#include "store/fragment/fragment.h"
#include "store/fragment/fragment_format.h"
#include "store/fragment/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TAIL (4u + ST_IPC_MAGIC_LENGTH) /* behind the footer: its length and the magic */

typedef struct stored_batch {
    st_arrow_block block;
    uint64_t first_row, rows;
    st_arrow_batch layout; /* once it is `decoded` */
    bool decoded;
} stored_batch;

struct st_fragment {
    unsigned holds; /* besides the first */
    pf_map map;
    uint8_t *copy; /* of one that is attached: what `map` shows, aligned */
    uint64_t footer_at, rows;
    st_column_spec *specs;
    uint32_t *nodes, *buffers; /* the first one of each column within a batch */
    uint32_t columns, buffers_per_batch;
    stored_batch *batches;
    uint32_t batch_count;
    pf_xxh128 *messages;  /* of the schema, then of each batch */
    pf_xxh128 *checksums; /* of each buffer of each batch */
    st_column *cache;     /* of each column of each batch, where `ready` */
    bool *ready;
    st_ipc_owned owned;
    char path[ST_PATH_MAX];
};

/* Gives an error from below the file's name; `inner` is what was said there. */
static sluice_status blame(const st_fragment *fragment, sluice_status status, const sluice_error *inner,
                           sluice_error *err)
{
    if (status == SLUICE_CORRUPT)
        return st_sealed_damaged(err, fragment->path, "%s", inner->message);
    if (status != SLUICE_OK && err)
        *err = *inner;
    return status;
}

/* ---- opening ---- */

static sluice_status find_footer(st_fragment *fragment, const pf_sha256 *expected, const uint8_t **ret_footer,
                                 uint32_t *ret_length, sluice_error *err)
{
    const uint8_t *data = fragment->map.data;
    uint64_t size = fragment->map.length;

    if (size < ST_IPC_FILE_START + TAIL ||
        memcmp(data + size - ST_IPC_MAGIC_LENGTH, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH) != 0)
        return st_sealed_damaged(err, fragment->path, "it is no Arrow file");
    *ret_length = st_get_u32(data + size - TAIL);
    if (*ret_length > size - TAIL - ST_IPC_FILE_START)
        return st_sealed_damaged(err, fragment->path, "its footer has no valid length");
    fragment->footer_at = size - TAIL - *ret_length;
    *ret_footer = data + fragment->footer_at;
    pf_sha256 digest = pf_sha256_of(*ret_footer, *ret_length);
    if (!pf_sha256_equal(&digest, expected))
        return st_sealed_damaged(err, fragment->path, "its footer is not the one that was written");
    return SLUICE_OK;
}

static bool text_is(const st_arrow_pairs *pairs, const char *key, const char *expected)
{
    uint32_t length;
    const char *value = st_arrow_pairs_find(pairs, key, &length);
    return value && length == strlen(expected) && memcmp(value, expected, length) == 0;
}

static sluice_status check_identity(const st_fragment *fragment, const st_arrow_footer *footer, uint64_t table,
                                    sluice_error *err)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, table);
    if (!text_is(&footer->schema.metadata, ST_FRAGMENT_KEY_FORM, ST_FRAGMENT_FORMAT))
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "%s is no fragment of a known version", fragment->path);
    if (!text_is(&footer->schema.metadata, ST_FRAGMENT_KEY_TABLE, text))
        return st_sealed_damaged(err, fragment->path, "it belongs to another table");
    if (footer->dictionary_count)
        return st_sealed_damaged(err, fragment->path, "it has dictionaries");
    return SLUICE_OK;
}

static sluice_status take_columns(st_fragment *fragment, const st_arrow_footer *footer, sluice_error *err)
{
    sluice_error inner = {0};
    uint32_t node = 0;

    sluice_status status = st_arrow_specs_from_schema(&footer->schema, &fragment->specs, &fragment->columns, &inner);
    if (status != SLUICE_OK)
        return blame(fragment, status, &inner, err);
    fragment->nodes = calloc((size_t)fragment->columns + 1, sizeof *fragment->nodes);
    fragment->buffers = calloc((size_t)fragment->columns + 1, sizeof *fragment->buffers);
    if (!fragment->nodes || !fragment->buffers)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < fragment->columns; i++) {
        uint32_t nodes, buffers;
        st_ipc_count(&fragment->specs[i], &nodes, &buffers);
        fragment->nodes[i] = node;
        fragment->buffers[i] = fragment->buffers_per_batch;
        node += nodes;
        fragment->buffers_per_batch += buffers;
    }
    return SLUICE_OK;
}

/* A row of `count` checksums in hexadecimal. */
static sluice_status take_checksums(const st_fragment *fragment, const st_arrow_pairs *pairs, const char *key,
                                    uint64_t count, pf_xxh128 **ret_sums, sluice_error *err)
{
    uint32_t length;
    const char *text = st_arrow_pairs_find(pairs, key, &length);
    char digits[PF_XXH128_TEXT] = {0};

    if (!text || length % ST_FRAGMENT_HEX || length / ST_FRAGMENT_HEX != count)
        return st_sealed_damaged(err, fragment->path, "it has not as many checksums as parts");
    *ret_sums = calloc(count + 1, sizeof **ret_sums);
    if (!*ret_sums)
        return pf_fail_memory(err);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(digits, text + i * ST_FRAGMENT_HEX, ST_FRAGMENT_HEX);
        if (!pf_xxh128_parse(digits, &(*ret_sums)[i]))
            return st_sealed_damaged(err, fragment->path, "a checksum is malformed");
    }
    return SLUICE_OK;
}

/* Takes "<digits>," off the front of a text; false when it does not begin so, or the number is 0 or too large. */
static bool take_rows(const char **text, uint64_t *ret_rows)
{
    const char *at = *text;

    *ret_rows = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        *ret_rows = *ret_rows * 10 + (uint64_t)(*at - '0');
        if (*ret_rows == 0 || *ret_rows > ST_COLUMN_ROWS_MAX)
            return false;
    }
    *text = at + 1;
    return *at == ',' && *ret_rows;
}

/* What the footer says of the batches: rows, and that they tile the file from the schema to the end of the stream. */
static sluice_status take_batches(st_fragment *fragment, const st_arrow_footer *footer, sluice_error *err)
{
    static const uint8_t end[ST_IPC_PREFIX] = {0xFF, 0xFF, 0xFF, 0xFF};
    uint64_t end_at = fragment->footer_at - sizeof end;
    uint64_t at = footer->batch_count ? footer->batches[0].offset : end_at;
    uint32_t length;
    const char *rows = st_arrow_pairs_find(&footer->metadata, ST_FRAGMENT_KEY_ROWS, &length);

    fragment->batches = calloc((size_t)footer->batch_count + 1, sizeof *fragment->batches);
    if (!fragment->batches)
        return pf_fail_memory(err);
    fragment->batch_count = footer->batch_count;
    if (fragment->footer_at < ST_IPC_FILE_START + sizeof end || at < ST_IPC_FILE_START || at > end_at)
        return st_sealed_damaged(err, fragment->path, "it has no schema");
    for (uint32_t i = 0; i < footer->batch_count; i++) {
        const st_arrow_block *block = &footer->batches[i];
        stored_batch *into = &fragment->batches[i];
        uint64_t room = end_at - at;
        if (block->offset != at || block->metadata_length < ST_IPC_PREFIX || block->metadata_length > room ||
            block->body_length > room - block->metadata_length || (at + block->metadata_length) % ST_IPC_ALIGNMENT)
            return st_sealed_damaged(err, fragment->path, "batch %u is not where it should be", i);
        *into = (stored_batch){.block = *block, .first_row = fragment->rows};
        if (!rows || !take_rows(&rows, &into->rows))
            return st_sealed_damaged(err, fragment->path, "it does not say how many rows batch %u has", i);
        fragment->rows += into->rows; /* fewer than 2^31 each: cannot overflow */
        at += block->metadata_length + block->body_length;
    }
    if (at != end_at || (rows && *rows) || memcmp(fragment->map.data + at, end, sizeof end) != 0)
        return st_sealed_damaged(err, fragment->path, "its batches do not end where the footer begins");
    size_t columns;
    if (!pf_mul_size(fragment->batch_count, fragment->columns, &columns))
        return pf_fail_memory(err);
    fragment->cache = calloc(columns + 1, sizeof *fragment->cache);
    fragment->ready = calloc(columns + 1, sizeof *fragment->ready);
    return fragment->cache && fragment->ready ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status open_mapped(st_fragment *fragment, uint64_t table, const st_fragment_info *info, sluice_error *err)
{
    st_arrow_footer footer = {0};
    sluice_error inner = {0};
    sluice_status status;
    const uint8_t *bytes = NULL;
    uint32_t length = 0;

    PF_TRY(find_footer(fragment, &info->footer, &bytes, &length, err));
    status = st_arrow_decode_footer(bytes, length, &footer, &inner);
    if (status != SLUICE_OK)
        return blame(fragment, status, &inner, err);
    PF_GOTO(status, done, check_identity(fragment, &footer, table, err));
    PF_GOTO(status, done, take_columns(fragment, &footer, err));
    PF_GOTO(status, done,
            take_checksums(fragment, &footer.metadata, ST_FRAGMENT_KEY_HEADS, (uint64_t)footer.batch_count + 1,
                           &fragment->messages, err));
    PF_GOTO(status, done,
            take_checksums(fragment, &footer.metadata, ST_FRAGMENT_KEY_SUMS,
                           (uint64_t)footer.batch_count * fragment->buffers_per_batch, &fragment->checksums, err));
    PF_GOTO(status, done, take_batches(fragment, &footer, err));
    bool explicit_ids = st_fragment_find_name(fragment, ST_FRAGMENT_ROW_ID) >= 0 &&
                        st_fragment_find_name(fragment, ST_FRAGMENT_COMMIT) >= 0;
    if (fragment->rows != info->rows || explicit_ids != info->explicit_ids)
        status = st_sealed_damaged(err, fragment->path, "it contradicts the edit");
done:
    st_arrow_footer_free(&footer);
    return status;
}

/* The bytes of an attached fragment, copied to where buffers are aligned. */
static sluice_status map_content(st_fragment *fragment, const st_fragment_info *info, sluice_error *err)
{
    size_t room;
    if (!info->content || !pf_add_size((size_t)info->bytes, ST_COLUMN_ALIGNMENT, &room))
        return st_sealed_damaged(err, fragment->path, "its bytes are not at hand");
    fragment->copy = aligned_alloc(ST_COLUMN_ALIGNMENT, room & ~(size_t)(ST_COLUMN_ALIGNMENT - 1));
    if (!fragment->copy)
        return pf_fail_memory(err);
    memcpy(fragment->copy, info->content, (size_t)info->bytes);
    fragment->map = (pf_map){.data = fragment->copy, .length = (size_t)info->bytes};
    return SLUICE_OK;
}

static sluice_status open_at(pf_volume *volume, uint64_t table, const st_fragment_info *info, st_fragment *fragment,
                             sluice_error *err)
{
    if (info->attached)
        PF_TRY(map_content(fragment, info, err));
    else
        PF_TRY(st_sealed_map(volume, fragment->path, info->bytes, &fragment->map, err));
    return open_mapped(fragment, table, info, err);
}

sluice_status st_fragment_open_at(pf_volume *volume, const char *path, uint64_t table, const st_fragment_info *info,
                                  st_fragment **ret_fragment, sluice_error *err)
{
    sluice_status status;
    st_fragment *fragment = calloc(1, sizeof *fragment);

    *ret_fragment = NULL;
    if (!fragment)
        return pf_fail_memory(err);
    (void)snprintf(fragment->path, sizeof fragment->path, "%s", path);
    status = open_at(volume, table, info, fragment, err);
    if (status == SLUICE_OK)
        *ret_fragment = fragment;
    else
        st_fragment_close(fragment);
    return status;
}

sluice_status st_fragment_open(pf_volume *volume, uint64_t table, const st_fragment_info *info,
                               st_fragment **ret_fragment, sluice_error *err)
{
    char path[ST_PATH_MAX];

    *ret_fragment = NULL;
    PF_TRY(st_sealed_path(table, info->attached ? ST_FRAGMENT_ATTACHED : ST_FRAGMENT_FOLDER, info->name, path, err));
    return st_fragment_open_at(volume, path, table, info, ret_fragment, err);
}

void st_fragment_hold(st_fragment *fragment)
{
    (void)__atomic_add_fetch(&fragment->holds, 1, __ATOMIC_RELAXED);
}

void st_fragment_close(st_fragment *fragment)
{
    if (!fragment || __atomic_fetch_sub(&fragment->holds, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (uint32_t i = 0; i < fragment->columns; i++)
        st_column_spec_free(&fragment->specs[i]);
    for (uint32_t i = 0; i < fragment->batch_count; i++)
        st_arrow_batch_free(&fragment->batches[i].layout); /* a zeroed one, unless decoded */
    free(fragment->specs);
    free(fragment->nodes);
    free(fragment->buffers);
    free(fragment->batches);
    free(fragment->messages);
    free(fragment->checksums);
    free(fragment->cache);
    free(fragment->ready);
    st_ipc_owned_free(&fragment->owned);
    if (fragment->copy)
        free(fragment->copy);
    else
        pf_unmap(&fragment->map);
    free(fragment);
}

/* ---- what is in it ---- */

uint32_t st_fragment_batches(const st_fragment *fragment)
{
    return fragment->batch_count;
}

uint64_t st_fragment_batch_rows(const st_fragment *fragment, uint32_t batch)
{
    PF_ASSERT(batch < fragment->batch_count);
    return fragment->batches[batch].rows;
}

uint32_t st_fragment_columns(const st_fragment *fragment)
{
    return fragment->columns;
}

const st_column_spec *st_fragment_spec(const st_fragment *fragment, uint32_t column)
{
    PF_ASSERT(column < fragment->columns);
    return &fragment->specs[column];
}

int st_fragment_find_property(const st_fragment *fragment, uint64_t property)
{
    for (uint32_t i = 0; property && i < fragment->columns; i++)
        if (fragment->specs[i].property == property)
            return (int)i;
    return -1;
}

int st_fragment_find_name(const st_fragment *fragment, const char *name)
{
    for (uint32_t i = 0; i < fragment->columns; i++)
        if (!fragment->specs[i].property && strcmp(fragment->specs[i].name, name) == 0)
            return (int)i;
    return -1;
}

void st_fragment_locate(const st_fragment *fragment, uint64_t position, uint32_t *ret_batch, uint64_t *ret_row)
{
    uint32_t low = 0, high = fragment->batch_count;

    if (position >= fragment->rows) {
        *ret_batch = UINT32_MAX;
        *ret_row = 0;
        return;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fragment->batches[middle].first_row <= position)
            low = middle;
        else
            high = middle;
    }
    *ret_batch = low;
    *ret_row = position - fragment->batches[low].first_row;
}

/* ---- batches ---- */

static sluice_status check_message(const st_fragment *fragment, uint32_t number, uint64_t at, uint64_t length,
                                   sluice_error *err)
{
    if (!pf_xxh128_equal(pf_xxh128_of(fragment->map.data + at, length), fragment->messages[number]))
        return st_sealed_damaged(err, fragment->path, "message %u is not what was written", number);
    return SLUICE_OK;
}

/* Buffers follow each other, each at the next multiple of 64, and fill the body: so padding is all that is between
 * them. */
static bool layout_is_dense(const st_arrow_batch *layout, uint64_t body_length)
{
    uint64_t expected = 0;
    for (uint32_t i = 0; i < layout->buffer_count; i++) {
        if (layout->buffers[i].offset != expected)
            return false;
        expected = layout->buffers[i].offset + layout->buffers[i].length;
        expected = (expected + ST_IPC_ALIGNMENT - 1) & ~(uint64_t)(ST_IPC_ALIGNMENT - 1);
    }
    return expected == body_length;
}

static sluice_status decode_layout(const st_fragment *fragment, const stored_batch *in, st_arrow_message *message,
                                   sluice_error *err)
{
    const uint8_t *bytes = fragment->map.data + in->block.offset;
    uint32_t length;

    PF_TRY(st_ipc_parse_prefix(bytes, &length, err));
    if (length != in->block.metadata_length - ST_IPC_PREFIX)
        return pf_fail(err, SLUICE_CORRUPT, "a message has another length than the footer says");
    PF_TRY(st_arrow_decode_message(bytes + ST_IPC_PREFIX, length, message, err));
    if (message->header != ST_ARROW_RECORD_BATCH || message->body_length != in->block.body_length ||
        message->batch.length != in->rows)
        return pf_fail(err, SLUICE_CORRUPT, "a message is not the batch that the footer says");
    PF_TRY(st_ipc_check_batch(&message->batch, in->block.body_length, fragment->specs, fragment->columns, err));
    if (!layout_is_dense(&message->batch, in->block.body_length))
        return pf_fail(err, SLUICE_CORRUPT, "the buffers of a batch leave gaps");
    return SLUICE_OK;
}

/* Checks and decodes the message of a batch, once. */
static sluice_status decode_batch(st_fragment *fragment, uint32_t number, sluice_error *err)
{
    stored_batch *in = &fragment->batches[number];
    st_arrow_message message = {0};
    sluice_error inner = {0};

    if (in->decoded)
        return SLUICE_OK;
    PF_TRY(check_message(fragment, number + 1, in->block.offset, in->block.metadata_length, err));
    sluice_status status = decode_layout(fragment, in, &message, &inner);
    if (status == SLUICE_OK) {
        in->layout = message.batch;
        in->decoded = true;
        message.batch = (st_arrow_batch){0};
    }
    st_arrow_message_free(&message);
    return blame(fragment, status, &inner, err);
}

sluice_status st_fragment_is_compressed(st_fragment *fragment, bool *ret_compressed, sluice_error *err)
{
    *ret_compressed = false;
    if (fragment->batch_count == 0)
        return SLUICE_OK;
    PF_TRY(decode_batch(fragment, 0, err));
    *ret_compressed = fragment->batches[0].layout.codec == ST_ARROW_ZSTD;
    return SLUICE_OK;
}

uint64_t st_fragment_memory(const st_fragment *fragment)
{
    uint64_t column = sizeof(st_column) + sizeof(bool), buffer = sizeof(pf_xxh128) + 2 * sizeof(st_arrow_buffer);
    uint64_t batch = sizeof(stored_batch) + fragment->columns * column + fragment->buffers_per_batch * buffer;

    return sizeof *fragment + fragment->columns * (sizeof(st_column_spec) + 64) + fragment->batch_count * batch;
}

/* ---- columns ---- */

typedef struct touching {
    const st_fragment *fragment;
    uint32_t batch;
} touching;

static sluice_status touch(void *context, uint32_t i, const uint8_t *bytes, uint64_t length, sluice_error *err)
{
    const touching *at = context;
    const st_fragment *fragment = at->fragment;
    pf_xxh128 expected = fragment->checksums[(size_t)at->batch * fragment->buffers_per_batch + i];

    if (!pf_xxh128_equal(pf_xxh128_of(bytes, length), expected))
        return pf_fail(err, SLUICE_CORRUPT, "buffer %u of batch %u is not what was written", i, at->batch);
    return SLUICE_OK;
}

static sluice_status read_column(st_fragment *fragment, uint32_t number, uint32_t column, st_ipc_owned *owned,
                                 st_column *ret_column, sluice_error *err)
{
    PF_TRY(decode_batch(fragment, number, err));
    const stored_batch *from = &fragment->batches[number];
    touching context = {fragment, number};
    st_ipc_body body = {.bytes = fragment->map.data + from->block.offset + from->block.metadata_length,
                        .length = from->block.body_length,
                        .batch = &from->layout,
                        .context = &context,
                        .touch = touch};
    sluice_error inner = {0};
    sluice_status status = st_ipc_column(&body, &fragment->specs[column], fragment->nodes[column],
                                         fragment->buffers[column], owned, ret_column, &inner);
    return blame(fragment, status, &inner, err);
}

sluice_status st_fragment_column(st_fragment *fragment, uint32_t batch, uint32_t column, st_column *ret_column,
                                 sluice_error *err)
{
    PF_ASSERT(column < fragment->columns);
    if (batch >= fragment->batch_count)
        return pf_fail(err, SLUICE_CORRUPT, "a run or a deletion names a row that %s does not have", fragment->path);
    size_t at = (size_t)batch * fragment->columns + column;
    if (!fragment->ready[at]) {
        PF_TRY(read_column(fragment, batch, column, &fragment->owned, &fragment->cache[at], err));
        fragment->ready[at] = true;
    }
    *ret_column = fragment->cache[at];
    return SLUICE_OK;
}

/* ---- verify ---- */

static sluice_status verify_start(const st_fragment *fragment, sluice_error *err)
{
    static const uint8_t start[ST_IPC_FILE_START] = ST_IPC_MAGIC;
    uint64_t end = fragment->batch_count ? fragment->batches[0].block.offset : fragment->footer_at - ST_IPC_PREFIX;

    if (memcmp(fragment->map.data, start, sizeof start) != 0)
        return st_sealed_damaged(err, fragment->path, "it does not begin as an Arrow file");
    return check_message(fragment, 0, ST_IPC_FILE_START, end - ST_IPC_FILE_START, err);
}

static sluice_status verify_batch(st_fragment *fragment, uint32_t number, sluice_error *err)
{
    const stored_batch *in = &fragment->batches[number];
    const uint8_t *body = fragment->map.data + in->block.offset + in->block.metadata_length;

    PF_TRY(check_message(fragment, number + 1, in->block.offset, in->block.metadata_length, err));
    PF_TRY(decode_batch(fragment, number, err));
    for (uint32_t i = 0; i < fragment->columns; i++) {
        st_ipc_owned owned = {0}; /* of this column only, so that verify needs little memory */
        st_column column;
        sluice_status status = read_column(fragment, number, i, &owned, &column, err);
        st_ipc_owned_free(&owned);
        PF_TRY(status);
    }
    for (uint32_t i = 0; i < in->layout.buffer_count; i++) {
        const st_arrow_buffer *buffer = &in->layout.buffers[i];
        uint64_t end = buffer->offset + buffer->length, padding = (0 - end) & (ST_IPC_ALIGNMENT - 1);
        if (!st_all_zero(body + end, padding))
            return st_sealed_damaged(err, fragment->path, "the padding of batch %u is not zero", number);
    }
    return SLUICE_OK;
}

sluice_status st_fragment_verify(st_fragment *fragment, sluice_error *err)
{
    PF_TRY(verify_start(fragment, err));
    for (uint32_t i = 0; i < fragment->batch_count; i++)
        PF_TRY(verify_batch(fragment, i, err));
    return SLUICE_OK;
}
