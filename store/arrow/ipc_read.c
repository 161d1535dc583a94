/*
 * Reading Arrow IPC that may be anything: from nodes and buffers to columns.
 *
 * Two steps. st_ipc_check_batch looks at numbers only (it touches no body), so that a file can be opened without
 * reading it. st_ipc_column reads the buffers of one column: each is handed to `touch` first, then decompressed if need
 * be, then what a reader relies on is checked: null counts are those of the bits, offsets ascend and end within the
 * data.
 */
#include "store/arrow/bits.h"
#include "store/arrow/ipc.h"

#include <stdlib.h>

#define CONTINUATION 0xFFFFFFFFu

sluice_status st_ipc_parse_prefix(const uint8_t bytes[ST_IPC_PREFIX], uint32_t *ret_length, sluice_error *err)
{
    uint32_t prefix[2];
    memcpy(prefix, bytes, sizeof prefix);
    if (prefix[0] != CONTINUATION || prefix[1] > INT32_MAX || prefix[1] % 8)
        return pf_fail(err, SLUICE_CORRUPT, "an Arrow message has no valid prefix");
    *ret_length = prefix[1];
    return SLUICE_OK;
}

/* ---- memory ---- */

void st_ipc_owned_free(st_ipc_owned *owned)
{
    for (uint32_t i = 0; i < owned->count; i++)
        free(owned->blocks[i]);
    free(owned->blocks);
    st_codec_free(&owned->codec);
    *owned = (st_ipc_owned){0};
}

/* A new aligned block of at least one byte; NULL when there is no memory. */
static void *own(st_ipc_owned *owned, uint64_t size)
{
    if (owned->count == owned->capacity) {
        uint32_t capacity = owned->capacity ? owned->capacity * 2 : 8;
        void **blocks = realloc(owned->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return NULL;
        owned->blocks = blocks;
        owned->capacity = capacity;
    }
    void *block =
        aligned_alloc(ST_COLUMN_ALIGNMENT, (size + ST_COLUMN_ALIGNMENT) & ~(uint64_t)(ST_COLUMN_ALIGNMENT - 1));
    if (block)
        owned->blocks[owned->count++] = block;
    return block;
}

/* ---- numbers ---- */

static uint32_t flat_buffers(st_type type)
{
    return type == ST_STRUCT ? 1 : type == ST_STRING || type == ST_BYTES ? 3 : 2;
}

void st_ipc_count(const st_column_spec *spec, uint32_t *ret_nodes, uint32_t *ret_buffers)
{
    *ret_nodes = 1 + spec->child_count;
    *ret_buffers = flat_buffers(spec->type);
    for (uint32_t m = 0; m < spec->child_count; m++)
        *ret_buffers += flat_buffers(spec->children[m].type);
}

static bool node_is_possible(const st_arrow_node *node, const st_column_spec *spec, uint64_t rows)
{
    return node->length == rows && node->nulls <= rows && (spec->nullable || node->nulls == 0);
}

sluice_status st_ipc_check_batch(const st_arrow_batch *batch, uint64_t body_length, const st_column_spec *specs,
                                 uint32_t count, sluice_error *err)
{
    uint32_t node = 0, buffers = 0;

    if (batch->codec == ST_ARROW_LZ4)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "its buffers are compressed with lz4");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t nodes, more;
        st_ipc_count(&specs[i], &nodes, &more);
        if (nodes > batch->node_count - node)
            return pf_fail(err, SLUICE_CORRUPT, "a batch has too few columns");
        for (uint32_t m = 0; m < nodes; m++)
            if (!node_is_possible(&batch->nodes[node + m], m ? &specs[i].children[m - 1] : &specs[i], batch->length))
                return pf_fail(err, SLUICE_CORRUPT, "column %u has impossible counts", i);
        node += nodes;
        buffers += more;
    }
    if (batch->length > ST_COLUMN_ROWS_MAX || node != batch->node_count || buffers != batch->buffer_count)
        return pf_fail(err, SLUICE_CORRUPT, "a batch does not fit its schema");
    for (uint32_t i = 0; i < buffers; i++) {
        const st_arrow_buffer *buffer = &batch->buffers[i];
        if (buffer->offset % 8 || buffer->offset > body_length || buffer->length > body_length - buffer->offset)
            return pf_fail(err, SLUICE_CORRUPT, "buffer %u lies outside of its batch", i);
    }
    return SLUICE_OK;
}

/* ---- buffers ---- */

/* Where a column's reading stands. */
typedef struct reader {
    const st_ipc_body *body;
    st_ipc_owned *owned;
    uint32_t node, buffer;
} reader;

typedef struct plain {
    const uint8_t *bytes; /* NULL when empty */
    uint64_t length;
} plain;

static sluice_status decompress(reader *in, plain *buffer, uint64_t maximum, uint32_t number, sluice_error *err)
{
    uint64_t size;

    if (buffer->length < ST_CODEC_MARK)
        return pf_fail(err, SLUICE_CORRUPT, "buffer %u is no compressed buffer", number);
    memcpy(&size, buffer->bytes, sizeof size);
    plain stored = {buffer->bytes + ST_CODEC_MARK, buffer->length - ST_CODEC_MARK};
    if (size == ST_CODEC_PLAIN) {
        *buffer = stored;
        return SLUICE_OK;
    }
    if (size > maximum)
        return pf_fail(err, SLUICE_CORRUPT, "buffer %u has an impossible length", number);
    uint8_t *bytes = own(in->owned, size);
    if (!bytes)
        return pf_fail_memory(err);
    PF_TRY(st_codec_unpack(&in->owned->codec, in->body->batch->codec, stored.bytes, stored.length, bytes, size, err));
    *buffer = (plain){bytes, size};
    return SLUICE_OK;
}

/* The next buffer, checked, decompressed, of at least `minimum` bytes and (compressed ones) at most `maximum`. */
static sluice_status next_buffer(reader *in, uint64_t minimum, uint64_t maximum, plain *ret_buffer, sluice_error *err)
{
    const st_ipc_body *body = in->body;
    uint32_t number = in->buffer++;
    const st_arrow_buffer *at = &body->batch->buffers[number];

    *ret_buffer = (plain){at->length ? body->bytes + at->offset : NULL, at->length};
    if (body->touch)
        PF_TRY(body->touch(body->context, number, ret_buffer->bytes, ret_buffer->length, err));
    if (body->batch->codec == ST_ARROW_ZSTD && ret_buffer->length)
        PF_TRY(decompress(in, ret_buffer, maximum, number, err));
    if (ret_buffer->length < minimum)
        return pf_fail(err, SLUICE_CORRUPT, "buffer %u is too short", number);
    return SLUICE_OK;
}

/* Offsets ascend from 0 or more. One pass without branches, so that it runs at the speed of memory. */
static bool offsets_ascend(const int32_t *offsets, uint64_t count)
{
    int32_t falls = offsets[0] < 0;
    for (uint64_t i = 0; i < count; i++)
        falls |= offsets[i + 1] < offsets[i];
    return !falls;
}

static sluice_status read_text(reader *in, st_column *column, sluice_error *err)
{
    plain offsets, data;
    uint64_t size = (column->length + 1) * sizeof(int32_t);
    static const _Alignas(ST_COLUMN_ALIGNMENT) int32_t none[16];

    /* Of no rows there may be no offsets. */
    PF_TRY(next_buffer(in, column->length ? size : 0, size + ST_COLUMN_ALIGNMENT, &offsets, err));
    column->offsets = offsets.bytes && offsets.length >= size ? (const void *)offsets.bytes : none;
    if (!offsets_ascend(column->offsets, column->length))
        return pf_fail(err, SLUICE_CORRUPT, "the offsets of buffer %u do not ascend", in->buffer - 1);
    PF_TRY(next_buffer(in, (uint64_t)column->offsets[column->length], ST_COLUMN_BYTES_MAX + ST_COLUMN_ALIGNMENT, &data,
                       err));
    column->data = data.bytes;
    return SLUICE_OK;
}

static sluice_status read_flat(reader *in, const st_column_spec *spec, st_column *column, sluice_error *err)
{
    const st_arrow_node *node = &in->body->batch->nodes[in->node++];
    uint64_t bits = (node->length + 7) / 8, size = node->length * st_type_width(spec->type);
    plain buffer;

    *column = (st_column){.type = spec->type, .length = node->length, .nulls = node->nulls};
    PF_TRY(next_buffer(in, node->nulls ? bits : 0, bits + ST_COLUMN_ALIGNMENT, &buffer, err));
    if (node->nulls) {
        column->validity = buffer.bytes;
        if (node->length - st_bits_count(buffer.bytes, 0, node->length) != node->nulls)
            return pf_fail(err, SLUICE_CORRUPT, "the validity of buffer %u has another null count", in->buffer - 1);
    }
    if (spec->type == ST_STRUCT)
        return SLUICE_OK;
    if (spec->type == ST_STRING || spec->type == ST_BYTES)
        return read_text(in, column, err);
    if (spec->type == ST_BOOL)
        size = bits;
    PF_TRY(next_buffer(in, size, size + ST_COLUMN_ALIGNMENT, &buffer, err));
    column->values = buffer.bytes;
    return SLUICE_OK;
}

sluice_status st_ipc_column(const st_ipc_body *body, const st_column_spec *spec, uint32_t first_node,
                            uint32_t first_buffer, st_ipc_owned *owned, st_column *ret_column, sluice_error *err)
{
    reader in = {.body = body, .owned = owned, .node = first_node, .buffer = first_buffer};
    st_column column;

    PF_TRY(read_flat(&in, spec, &column, err));
    if (spec->child_count) {
        st_column *children = own(owned, spec->child_count * sizeof *children);
        if (!children)
            return pf_fail_memory(err);
        for (uint32_t m = 0; m < spec->child_count; m++)
            PF_TRY(read_flat(&in, &spec->children[m], &children[m], err));
        column.children = children;
        column.child_count = spec->child_count;
    }
    *ret_column = column;
    return SLUICE_OK;
}
