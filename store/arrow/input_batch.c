/*
 * Slices of columns out of a batch that may be anything.
 *
 * A slice begins at a multiple of eight rows, so that one offset serves bits and values alike. Of plain buffers only
 * what the slice needs is read; a compressed buffer is unpacked whole when it is first needed and kept as long as its
 * batch. Texts bound a slice: it ends before they exceed SLICE_BYTES, unless one row alone does.
 */
#include "store/arrow/input_batch.h"

#include "platform/check.h"
#include "store/arrow/bits.h"
#include <stdlib.h>

#define SLICE_BYTES  (UINT64_C(8) << 20)
#define UNPACKED_MAX (UINT64_C(4) << 30)
#define RATIO_MAX    65536u /* beyond what LZ4 and zstd can reach */
#define VIEW_BYTES   16u
#define VIEW_INLINE  12u

static sluice_status damaged(sluice_error *err, const char *what)
{
    return pf_fail(err, SLUICE_CORRUPT, "%s", what);
}

/* ---- batches ---- */

void st_open_batch_end(st_open_batch *batch)
{
    for (uint32_t i = 0; batch->unpacked && i < batch->batch.buffer_count; i++)
        free(batch->unpacked[i].bytes);
    free(batch->unpacked);
    st_arrow_batch_free(&batch->batch);
    *batch = (st_open_batch){0};
}

sluice_status st_open_batch_begin(const st_arrow_input *input, const st_arrow_message_place *at,
                                  const st_arrow_extent *extent, st_codec *codec, st_open_batch *ret_batch,
                                  sluice_error *err)
{
    st_arrow_message message = {0};
    sluice_status status;

    PF_TRY(st_arrow_message_at(input, at, &message, err));
    *ret_batch = (st_open_batch){.input = input, .at = *at, .batch = message.batch, .codec = codec};
    message.batch = (st_arrow_batch){0};
    st_arrow_message_free(&message);
    /* Again: the bytes may be others than when the input was opened. */
    PF_GOTO(status, failed, st_arrow_check_extent(&ret_batch->batch, at->body_length, extent, err));
    if (ret_batch->batch.codec == ST_ARROW_PLAIN)
        return SLUICE_OK;
    ret_batch->unpacked = calloc((size_t)ret_batch->batch.buffer_count + 1, sizeof *ret_batch->unpacked);
    if (ret_batch->unpacked)
        return SLUICE_OK;
    status = pf_fail_memory(err);
failed:
    st_open_batch_end(ret_batch);
    return status;
}

/* ---- buffers ---- */

static sluice_status read_body(const st_open_batch *batch, uint64_t offset, uint64_t length, void *bytes,
                               sluice_error *err)
{
    const st_arrow_source *source = &batch->input->source;
    return length ? source->read(source->context, batch->at.body + offset, bytes, (size_t)length, err) : SLUICE_OK;
}

static sluice_status no_room(sluice_error *err)
{
    (void)pf_fail(err, SLUICE_RESOURCE_LIMIT, "there is not enough memory to unpack a compressed batch");
    pf_hint(err, "give more --memory, fewer --workers, or a file that is not compressed or of smaller batches");
    return SLUICE_RESOURCE_LIMIT;
}

static sluice_status unpack_into(st_open_batch *batch, const uint8_t *stored, uint64_t length, st_unpacked *into,
                                 sluice_error *err)
{
    uint64_t size;

    if (length < ST_CODEC_MARK)
        return damaged(err, "a compressed buffer is too short");
    memcpy(&size, stored, sizeof size);
    stored += ST_CODEC_MARK;
    length -= ST_CODEC_MARK;
    bool plain = size == ST_CODEC_PLAIN;
    if (plain)
        size = length;
    else if (size > INT64_MAX || size / RATIO_MAX > length)
        return damaged(err, "a compressed buffer has an impossible length");
    if (size > UNPACKED_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a compressed buffer of %llu bytes is larger than the limit of %llu",
                       (unsigned long long)size, (unsigned long long)UNPACKED_MAX);
    into->bytes = malloc(size ? size : 1);
    if (!into->bytes)
        return no_room(err);
    into->length = size;
    into->ready = true;
    if (!plain)
        return st_codec_unpack(batch->codec, batch->batch.codec, stored, length, into->bytes, size, err);
    memcpy(into->bytes, stored, size);
    return SLUICE_OK;
}

static sluice_status unpack(st_open_batch *batch, uint32_t number, sluice_error *err)
{
    const st_arrow_buffer *buffer = &batch->batch.buffers[number];
    st_unpacked *into = &batch->unpacked[number];
    sluice_status status;

    if (into->ready || buffer->length == 0)
        return SLUICE_OK;
    uint8_t *stored = malloc(buffer->length);
    if (!stored)
        return no_room(err);
    status = read_body(batch, buffer->offset, buffer->length, stored, err);
    if (status == SLUICE_OK)
        status = unpack_into(batch, stored, buffer->length, into, err);
    free(stored);
    if (status != SLUICE_OK) {
        free(into->bytes);
        *into = (st_unpacked){0};
    }
    return status;
}

/* How many plain bytes a buffer has. */
static sluice_status buffer_length(st_open_batch *batch, uint32_t number, uint64_t *ret_length, sluice_error *err)
{
    *ret_length = batch->batch.buffers[number].length;
    if (!batch->unpacked)
        return SLUICE_OK;
    PF_TRY(unpack(batch, number, err));
    *ret_length = batch->unpacked[number].length;
    return SLUICE_OK;
}

/* Bytes [from, from + length) of a buffer; NULL for none. */
static sluice_status fetch(st_open_batch *batch, uint32_t number, uint64_t from, uint64_t length, pf_buffer *room,
                           const uint8_t **ret_bytes, sluice_error *err)
{
    uint64_t whole = 0;

    *ret_bytes = NULL;
    PF_TRY(buffer_length(batch, number, &whole, err));
    if (from > whole || length > whole - from)
        return damaged(err, "a buffer is too short");
    if (length == 0)
        return SLUICE_OK;
    if (batch->unpacked) {
        *ret_bytes = batch->unpacked[number].bytes + from;
        return SLUICE_OK;
    }
    room->length = 0;
    PF_TRY(pf_buffer_reserve(room, (size_t)length, err));
    *ret_bytes = room->data;
    return read_body(batch, batch->batch.buffers[number].offset + from, length, room->data, err);
}

/* ---- columns ---- */

void st_column_room_free(st_column_room *room)
{
    pf_buffer_free(&room->validity);
    pf_buffer_free(&room->parent);
    pf_buffer_free(&room->values);
    pf_buffer_free(&room->text);
    for (uint32_t i = 0; i < room->part_room; i++)
        pf_buffer_free(&room->part_bytes[i]);
    free(room->parts);
    free(room->part_bytes);
    *room = (st_column_room){0};
}

/* A column's slice while it is read. */
typedef struct slice {
    st_open_batch *batch;
    const st_column_place *place;
    st_column_room *room;
    st_arrow_array *array;
    uint64_t most;   /* bytes of text */
    uint64_t base;   /* of the slice's buffers: `first`, rounded down to eight */
    uint64_t *count; /* rows behind array->offset */
} slice;

/* The buffers of the columns of views before it stand in front of a column's own. */
static uint32_t buffer_number(const st_arrow_batch *batch, uint32_t buffer, uint32_t views)
{
    for (uint32_t i = 0; i < views; i++)
        buffer += (uint32_t)batch->variadic[i];
    return buffer;
}

static uint64_t rows_of(const slice *s)
{
    return s->array->offset + *s->count;
}

static sluice_status read_bits(slice *s, uint32_t buffer, pf_buffer *room, const uint8_t **ret_bits, sluice_error *err)
{
    return fetch(s->batch, buffer, s->base / 8, (rows_of(s) + 7) / 8, room, ret_bits, err);
}

static sluice_status check_node(const slice *s, uint32_t number, sluice_error *err)
{
    const st_arrow_node *node = &s->batch->batch.nodes[number];

    if (node->length != s->batch->batch.length || node->nulls > node->length)
        return damaged(err, "a column has impossible counts");
    return SLUICE_OK;
}

static sluice_status read_validity(slice *s, uint32_t number, uint32_t buffer, pf_buffer *room,
                                   const uint8_t **ret_bits, sluice_error *err)
{
    PF_TRY(check_node(s, number, err));
    return s->batch->batch.nodes[number].nulls ? read_bits(s, buffer, room, ret_bits, err) : SLUICE_OK;
}

static uint64_t offset_at(const slice *s, uint64_t row, uint64_t width)
{
    uint64_t offset = 0;
    PF_ASSERT(s->array->values);
    memcpy(&offset, s->array->values + (s->array->offset + row) * width, width);
    return offset;
}

static sluice_status make_parts(st_column_room *room, uint32_t count, sluice_error *err)
{
    if (count <= room->part_room)
        return SLUICE_OK;
    st_arrow_part *parts = realloc(room->parts, count * sizeof *parts);
    if (!parts)
        return pf_fail_memory(err);
    room->parts = parts;
    pf_buffer *bytes = realloc(room->part_bytes, count * sizeof *bytes);
    if (!bytes)
        return pf_fail_memory(err);
    memset(bytes + room->part_room, 0, (count - room->part_room) * sizeof *bytes);
    room->part_bytes = bytes;
    room->part_room = count;
    return SLUICE_OK;
}

static sluice_status read_text(slice *s, uint32_t buffer, uint64_t width, sluice_error *err)
{
    uint64_t whole = 0, from, end, rows = 0;
    const uint8_t *bytes;

    PF_TRY(
        fetch(s->batch, buffer, s->base * width, (rows_of(s) + 1) * width, &s->room->values, &s->array->values, err));
    PF_TRY(buffer_length(s->batch, buffer + 1, &whole, err));
    from = end = offset_at(s, 0, width);
    for (; rows < *s->count; rows++) {
        uint64_t next = offset_at(s, rows + 1, width);
        if (next < end || next > whole || (rows > 0 && next - from > s->most))
            break;
        end = next;
    }
    if (rows == 0)
        return damaged(err, "the offsets of a text do not ascend, or lead out of it");
    *s->count = rows;
    PF_TRY(fetch(s->batch, buffer + 1, from, end - from, &s->room->text, &bytes, err));
    PF_TRY(make_parts(s->room, 1, err));
    s->room->parts[0] = (st_arrow_part){bytes, from, end - from};
    s->array->parts = s->room->parts;
    s->array->part_count = 1;
    return SLUICE_OK;
}

static bool is_null_row(const slice *s, uint64_t row)
{
    return s->array->validity && !st_bit(s->array->validity, s->array->offset + row);
}

/* What of each part the views need, in room->parts as start and length; their sum. */
static uint64_t spans_of_views(const slice *s, uint32_t parts)
{
    uint64_t sum = 0;

    PF_ASSERT(s->array->values);
    for (uint32_t p = 0; p < parts; p++)
        s->room->parts[p] = (st_arrow_part){NULL, UINT64_MAX, 0};
    for (uint64_t row = 0; row < *s->count; row++) {
        uint32_t view[4]; /* length, the first bytes, part, offset */
        memcpy(view, s->array->values + (s->array->offset + row) * VIEW_BYTES, sizeof view);
        if (view[0] <= VIEW_INLINE || view[2] >= parts || is_null_row(s, row))
            continue;
        st_arrow_part *part = &s->room->parts[view[2]];
        uint64_t start = view[3] < part->start ? view[3] : part->start;
        uint64_t end = part->length ? part->start + part->length : 0, own_end = (uint64_t)view[3] + view[0];
        part->start = start;
        part->length = (own_end > end ? own_end : end) - start;
    }
    for (uint32_t p = 0; p < parts; p++)
        sum += s->room->parts[p].length;
    return sum;
}

static sluice_status read_part(slice *s, uint32_t number, uint32_t p, sluice_error *err)
{
    st_arrow_part *part = &s->room->parts[p];
    uint64_t whole = 0;

    if (part->length == 0)
        return SLUICE_OK;
    PF_TRY(buffer_length(s->batch, number, &whole, err));
    if (part->start > whole)
        part->start = whole;
    if (part->length > whole - part->start)
        part->length = whole - part->start; /* the rows that lead out of it are found by the check */
    return fetch(s->batch, number, part->start, part->length, &s->room->part_bytes[p], &part->bytes, err);
}

static sluice_status read_views(slice *s, uint32_t buffer, sluice_error *err)
{
    uint32_t parts = (uint32_t)s->batch->batch.variadic[s->place->views];

    PF_TRY(fetch(s->batch, buffer, s->base * VIEW_BYTES, rows_of(s) * VIEW_BYTES, &s->room->values, &s->array->values,
                 err));
    PF_TRY(make_parts(s->room, parts, err));
    while (spans_of_views(s, parts) > s->most && *s->count > 1)
        *s->count = (*s->count + 1) / 2;
    for (uint32_t p = 0; p < parts; p++)
        PF_TRY(read_part(s, buffer + 1 + p, p, err));
    s->array->parts = s->room->parts;
    s->array->part_count = parts;
    return SLUICE_OK;
}

static sluice_status read_values(slice *s, uint32_t buffer, sluice_error *err)
{
    const st_arrow_field *field = s->place->field;
    uint64_t width = st_arrow_field_width(field);

    if (!field->has_dictionary) {
        switch ((unsigned)field->kind) {
        case ST_ARROW_BOOL:
            return read_bits(s, buffer, &s->room->values, &s->array->values, err);
        case ST_ARROW_UTF8:
        case ST_ARROW_BINARY:
            return read_text(s, buffer, 4, err);
        case ST_ARROW_LARGE_UTF8:
        case ST_ARROW_LARGE_BINARY:
            return read_text(s, buffer, 8, err);
        case ST_ARROW_UTF8_VIEW:
        case ST_ARROW_BINARY_VIEW:
            return read_views(s, buffer, err);
        default:
            break;
        }
    }
    while (width * *s->count > s->most && *s->count > 1) /* long values of fixed size */
        *s->count = (*s->count + 1) / 2;
    return fetch(s->batch, buffer, s->base * width, rows_of(s) * width, &s->room->values, &s->array->values, err);
}

sluice_status st_column_read(st_open_batch *batch, const st_column_place *place, uint64_t first, uint64_t *count,
                             st_column_room *room, st_arrow_array *ret_array, sluice_error *err)
{
    slice s = {.batch = batch,
               .place = place,
               .room = room,
               .array = ret_array,
               .most = place->whole ? UINT64_MAX : SLICE_BYTES,
               .base = first & ~UINT64_C(7),
               .count = count};
    uint64_t wanted = *count;

    PF_ASSERT(*count > 0 && first < batch->batch.length && *count <= batch->batch.length - first);
    *ret_array = (st_arrow_array){.field = place->field, .offset = first & 7};
    if (place->member) {
        uint32_t number = buffer_number(&batch->batch, place->parent_buffer, place->parent_views);
        PF_TRY(read_validity(&s, place->parent_node, number, &room->parent, &ret_array->parent, err));
        ret_array->parent_offset = ret_array->offset;
    }
    uint32_t number = buffer_number(&batch->batch, place->buffer, place->views);
    if (place->field->kind == ST_ARROW_NULL && !place->field->has_dictionary) {
        PF_TRY(check_node(&s, place->node, err));
    } else {
        PF_TRY(read_validity(&s, place->node, number, &room->validity, &ret_array->validity, err));
        PF_TRY(read_values(&s, number + 1, err));
    }
    ret_array->length = *count;
    if (place->whole && *count < wanted)
        return damaged(err, "the offsets of a text do not ascend, or lead out of it");
    return SLUICE_OK;
}
