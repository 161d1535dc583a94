/*
 * Writing Arrow IPC.
 *
 * A batch is laid out first (nodes, buffers and what their bytes are), because its message precedes its body. Plain
 * buffers are put from where they are; validity, bool bits and compressed buffers go through scratch memory of the
 * writer, which is kept from batch to batch.
 */
#include "store/arrow/ipc.h"

#include <stdlib.h>
#include <zstd.h>

#define CONTINUATION 0xFFFFFFFFu
#define ZSTD_LEVEL   1
#define PLAIN_MARK   UINT64_MAX /* "length" of a buffer that would not shrink: -1 */

/* The bytes of one buffer: in the column, or in the writer's scratch at `scratch`. */
typedef struct piece {
    const uint8_t *bytes;
    size_t length;
    size_t scratch;
    bool in_scratch;
} piece;

struct st_ipc_writer {
    st_ipc_options options;
    st_arrow_schema schema;
    st_column_spec *specs;
    uint32_t count;
    uint32_t nodes, buffers; /* of a batch */
    uint64_t offset;         /* bytes put */
    st_arrow_batch batch;    /* arrays of `nodes` and `buffers` */
    piece *pieces;
    pf_buffer scratch, message;
    ZSTD_CCtx *zstd;
    st_arrow_block *blocks;
    uint32_t block_count, block_capacity;
};

/* ---- putting ---- */

static sluice_status put(st_ipc_writer *writer, const void *bytes, size_t length, sluice_error *err)
{
    if (!length)
        return SLUICE_OK;
    PF_TRY(writer->options.put(writer->options.context, bytes, length, err));
    writer->offset += length;
    return SLUICE_OK;
}

static sluice_status see(st_ipc_writer *writer, st_ipc_part part, const void *bytes, size_t length, sluice_error *err)
{
    return writer->options.see ? writer->options.see(writer->options.context, part, bytes, length, err) : SLUICE_OK;
}

static sluice_status put_zeros_to(st_ipc_writer *writer, uint64_t boundary, sluice_error *err)
{
    static const uint8_t zeros[ST_IPC_ALIGNMENT];
    return put(writer, zeros, (size_t)((0 - writer->offset) & (boundary - 1)), err);
}

/* Frames the metadata that stands in writer->message behind room for the prefix, and puts it; the body that follows is
 * aligned. */
static sluice_status put_message(st_ipc_writer *writer, sluice_error *err)
{
    pf_buffer *message = &writer->message;
    uint32_t prefix[2] = {CONTINUATION, 0};

    while ((writer->offset + message->length) % ST_IPC_ALIGNMENT)
        PF_TRY(pf_buffer_append(message, "\0\0\0\0\0\0\0", 8, err));
    prefix[1] = (uint32_t)(message->length - ST_IPC_PREFIX);
    memcpy(message->data, prefix, sizeof prefix);
    PF_TRY(see(writer, ST_IPC_MESSAGE, message->data, message->length, err));
    return put(writer, message->data, message->length, err);
}

static sluice_status begin_message(st_ipc_writer *writer, sluice_error *err)
{
    writer->message.length = 0;
    return pf_buffer_append(&writer->message, "\0\0\0\0\0\0\0", ST_IPC_PREFIX, err);
}

/* ---- beginning ---- */

static sluice_status copy_specs(st_ipc_writer *writer, const st_column_spec *specs, uint32_t count, sluice_error *err)
{
    writer->specs = calloc(count ? count : 1, sizeof *writer->specs);
    if (!writer->specs)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t nodes, buffers;
        PF_TRY(st_column_spec_copy(&specs[i], &writer->specs[i], err));
        writer->count = i + 1;
        st_ipc_count(&specs[i], &nodes, &buffers);
        writer->nodes += nodes;
        writer->buffers += buffers;
    }
    return SLUICE_OK;
}

static sluice_status allocate(st_ipc_writer *writer, sluice_error *err)
{
    writer->batch.nodes = calloc(writer->nodes + 1, sizeof *writer->batch.nodes);
    writer->batch.buffers = calloc(writer->buffers + 1, sizeof *writer->batch.buffers);
    writer->pieces = calloc(writer->buffers + 1, sizeof *writer->pieces);
    if (!writer->batch.nodes || !writer->batch.buffers || !writer->pieces)
        return pf_fail_memory(err);
    if (!writer->options.compress)
        return SLUICE_OK;
    writer->batch.codec = ST_ARROW_ZSTD;
    writer->zstd = ZSTD_createCCtx();
    return writer->zstd ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status st_ipc_writer_new(const st_ipc_options *options, const st_column_spec *specs, uint32_t count,
                                const st_arrow_pairs *metadata, st_ipc_writer **ret_writer, sluice_error *err)
{
    sluice_status status;
    st_ipc_writer *writer = calloc(1, sizeof *writer);

    *ret_writer = NULL;
    if (!writer)
        return pf_fail_memory(err);
    writer->options = *options;
    PF_GOTO(status, failed, copy_specs(writer, specs, count, err));
    PF_GOTO(status, failed, allocate(writer, err));
    PF_GOTO(status, failed, st_arrow_schema_from_specs(specs, count, &writer->schema, err));
    for (uint32_t i = 0; metadata && i < metadata->count; i++)
        PF_GOTO(status, failed,
                st_arrow_pairs_add(&writer->schema.metadata, metadata->items[i].key, metadata->items[i].value,
                                   metadata->items[i].value_length, err));
    if (options->file) {
        PF_GOTO(status, failed, put(writer, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH, err));
        PF_GOTO(status, failed, put_zeros_to(writer, ST_IPC_FILE_START, err));
    }
    PF_GOTO(status, failed, begin_message(writer, err));
    PF_GOTO(status, failed, st_arrow_encode_schema(&writer->schema, &writer->message, err));
    PF_GOTO(status, failed, put_message(writer, err));
    *ret_writer = writer;
    return SLUICE_OK;
failed:
    st_ipc_writer_free(writer);
    return status;
}

void st_ipc_writer_free(st_ipc_writer *writer)
{
    if (!writer)
        return;
    for (uint32_t i = 0; i < writer->count; i++)
        st_column_spec_free(&writer->specs[i]);
    free(writer->specs);
    st_arrow_schema_free(&writer->schema);
    st_arrow_batch_free(&writer->batch);
    free(writer->pieces);
    free(writer->blocks);
    pf_buffer_free(&writer->scratch);
    pf_buffer_free(&writer->message);
    ZSTD_freeCCtx(writer->zstd);
    free(writer);
}

/* ---- laying a batch out ---- */

typedef struct layout {
    uint32_t node, piece;
} layout;

static void add_bytes(st_ipc_writer *writer, layout *at, const void *bytes, size_t length)
{
    writer->pieces[at->piece++] = (piece){.bytes = bytes, .length = length};
}

/* Bits go through scratch: what is behind the last one must be zero. */
static sluice_status add_bits(st_ipc_writer *writer, layout *at, const uint8_t *bits, uint64_t count, sluice_error *err)
{
    size_t length = (size_t)((count + 7) / 8), from = writer->scratch.length;

    PF_TRY(pf_buffer_append(&writer->scratch, bits, length, err));
    if (count % 8)
        writer->scratch.data[from + length - 1] &= (uint8_t)((1u << (count % 8)) - 1);
    writer->pieces[at->piece++] = (piece){.length = length, .scratch = from, .in_scratch = true};
    return SLUICE_OK;
}

static sluice_status add_offsets(st_ipc_writer *writer, layout *at, const st_column *column, sluice_error *err)
{
    size_t length = ((size_t)column->length + 1) * sizeof(int32_t), from = writer->scratch.length;

    if (column->offsets[0] == 0) {
        add_bytes(writer, at, column->offsets, length);
        return SLUICE_OK;
    }
    PF_TRY(pf_buffer_append(&writer->scratch, column->offsets, length, err)); /* a slice: its offsets begin anew */
    for (uint64_t i = 0; i <= column->length; i++) {
        int32_t offset = column->offsets[i] - column->offsets[0];
        memcpy(writer->scratch.data + from + i * sizeof offset, &offset, sizeof offset);
    }
    writer->pieces[at->piece++] = (piece){.length = length, .scratch = from, .in_scratch = true};
    return SLUICE_OK;
}

static sluice_status lay_out_flat(st_ipc_writer *writer, layout *at, const st_column *column,
                                  const st_column_spec *spec, uint64_t length, sluice_error *err)
{
    if (column->type != spec->type || column->length != length || column->child_count != spec->child_count ||
        (column->nulls && (!spec->nullable || !column->validity)))
        return pf_fail(err, SLUICE_INTERNAL, "a column does not fit its fragment");
    writer->batch.nodes[at->node++] = (st_arrow_node){length, column->nulls};
    if (column->nulls)
        PF_TRY(add_bits(writer, at, column->validity, length, err));
    else
        add_bytes(writer, at, NULL, 0);
    switch (column->type) {
    case ST_STRUCT:
        break;
    case ST_BOOL:
        return add_bits(writer, at, column->values, length, err);
    case ST_STRING:
    case ST_BYTES:
        PF_TRY(add_offsets(writer, at, column, err));
        add_bytes(writer, at, column->data ? column->data + column->offsets[0] : NULL,
                  (size_t)(column->offsets[length] - column->offsets[0]));
        break;
    case ST_INT32:
    case ST_INT64:
    case ST_UINT64:
    case ST_FLOAT32:
    case ST_FLOAT64:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
    case ST_COMMIT_ID:
        add_bytes(writer, at, column->values, (size_t)length * st_type_width(column->type));
        break;
    }
    return SLUICE_OK;
}

static sluice_status lay_out(st_ipc_writer *writer, const st_column *columns, uint64_t rows, sluice_error *err)
{
    layout at = {0};

    writer->scratch.length = 0;
    writer->batch.length = rows;
    writer->batch.node_count = writer->nodes;
    writer->batch.buffer_count = writer->buffers;
    for (uint32_t i = 0; i < writer->count; i++) {
        const st_column_spec *spec = &writer->specs[i];
        PF_TRY(lay_out_flat(writer, &at, &columns[i], spec, writer->batch.length, err));
        for (uint32_t m = 0; m < spec->child_count; m++)
            PF_TRY(lay_out_flat(writer, &at, &columns[i].children[m], &spec->children[m], writer->batch.length, err));
    }
    PF_ASSERT(at.node == writer->nodes && at.piece == writer->buffers);
    return SLUICE_OK;
}

static const uint8_t *piece_bytes(const st_ipc_writer *writer, const piece *part)
{
    return part->in_scratch ? writer->scratch.data + part->scratch : part->bytes;
}

/* Replaces a piece by its compressed form: the plain length, then zstd, or -1 and the plain bytes where that is
 * shorter. */
static sluice_status compress_piece(st_ipc_writer *writer, piece *part, sluice_error *err)
{
    size_t bound = ZSTD_compressBound(part->length), from = writer->scratch.length;
    uint64_t mark = part->length;

    if (!part->length)
        return SLUICE_OK;
    PF_TRY(pf_buffer_reserve(&writer->scratch, 8 + (bound > part->length ? bound : part->length), err));
    const uint8_t *bytes = piece_bytes(writer, part);
    uint8_t *to = writer->scratch.data + from;
    size_t size = ZSTD_compressCCtx(writer->zstd, to + 8, bound, bytes, part->length, ZSTD_LEVEL);
    if (ZSTD_isError(size))
        return pf_fail(err, SLUICE_INTERNAL, "compressing a buffer failed: %s", ZSTD_getErrorName(size));
    if (size >= part->length) {
        mark = PLAIN_MARK;
        size = part->length;
        memcpy(to + 8, bytes, size);
    }
    memcpy(to, &mark, sizeof mark);
    writer->scratch.length += 8 + size;
    part->scratch = from;
    part->length = 8 + size;
    part->in_scratch = true;
    return SLUICE_OK;
}

static sluice_status put_body(st_ipc_writer *writer, sluice_error *err)
{
    for (uint32_t i = 0; i < writer->buffers; i++) {
        const piece *part = &writer->pieces[i];
        const uint8_t *bytes = piece_bytes(writer, part);
        PF_TRY(see(writer, ST_IPC_BUFFER, bytes, part->length, err));
        PF_TRY(put(writer, bytes, part->length, err));
        PF_TRY(put_zeros_to(writer, ST_IPC_ALIGNMENT, err));
    }
    return SLUICE_OK;
}

static sluice_status add_block(st_ipc_writer *writer, const st_arrow_block *block, sluice_error *err)
{
    if (writer->block_count == writer->block_capacity) {
        uint32_t capacity = writer->block_capacity ? writer->block_capacity * 2 : 16;
        st_arrow_block *blocks = realloc(writer->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return pf_fail_memory(err);
        writer->blocks = blocks;
        writer->block_capacity = capacity;
    }
    writer->blocks[writer->block_count++] = *block;
    return SLUICE_OK;
}

sluice_status st_ipc_write(st_ipc_writer *writer, const st_column *columns, uint64_t rows, sluice_error *err)
{
    st_arrow_block block = {.offset = writer->offset};

    PF_TRY(lay_out(writer, columns, rows, err));
    for (uint32_t i = 0; i < writer->buffers; i++) {
        if (writer->zstd)
            PF_TRY(compress_piece(writer, &writer->pieces[i], err));
        writer->batch.buffers[i] = (st_arrow_buffer){block.body_length, writer->pieces[i].length};
        block.body_length += (writer->pieces[i].length + ST_IPC_ALIGNMENT - 1) & ~(uint64_t)(ST_IPC_ALIGNMENT - 1);
    }
    PF_TRY(begin_message(writer, err));
    PF_TRY(st_arrow_encode_batch(&writer->batch, block.body_length, &writer->message, err));
    PF_TRY(put_message(writer, err));
    block.metadata_length = (uint32_t)writer->message.length;
    PF_TRY(put_body(writer, err));
    return writer->options.file ? add_block(writer, &block, err) : SLUICE_OK;
}

/* ---- ending ---- */

sluice_status st_ipc_finish(st_ipc_writer *writer, const st_arrow_pairs *metadata, sluice_error *err)
{
    static const uint32_t end[2] = {CONTINUATION, 0};
    st_arrow_footer footer = {.schema = writer->schema, .batches = writer->blocks, .batch_count = writer->block_count};

    PF_TRY(put(writer, end, sizeof end, err));
    if (!writer->options.file)
        return SLUICE_OK;
    if (metadata)
        footer.metadata = *metadata;
    writer->message.length = 0;
    PF_TRY(st_arrow_encode_footer(&footer, &writer->message, err));
    if (writer->message.length > INT32_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the footer of a file would be too large");
    uint32_t length = (uint32_t)writer->message.length;
    PF_TRY(see(writer, ST_IPC_FOOTER, writer->message.data, length, err));
    PF_TRY(pf_buffer_append(&writer->message, &length, sizeof length, err));
    PF_TRY(pf_buffer_append(&writer->message, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH, err));
    return put(writer, writer->message.data, writer->message.length, err);
}
