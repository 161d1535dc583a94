/*
 * Arrow's metadata from Flatbuffers that may be anything.
 *
 * The reader of Flatbuffers bounds where things are; here is bounded how much they may become: depth, the number of
 * fields, and the memory for texts, since a hostile buffer can refer to one long text any number of times.
 */
#include "store/arrow/flatbuffer.h"
#include "store/arrow/metadata.h"

#include <stdlib.h>

#define VERSION_V4 3u
#define VERSION_V5 4u

typedef struct decoder {
    st_fb_view view;
    uint32_t fields; /* how many more there may be */
    size_t budget;   /* bytes of texts that may still be copied */
    bool no_memory, is_v4;
    const char *unsupported; /* what it uses that is not supported; NULL: nothing */
} decoder;

static decoder decoder_for(const void *bytes, size_t length)
{
    bool fits = length <= ST_FB_BYTES_MAX;
    return (decoder){.view = {.bytes = bytes, .length = fits ? (uint32_t)length : 0, .bad = !fits},
                     .fields = ST_ARROW_FIELDS_MAX,
                     .budget = fits ? 4 * length + 65536 : 0};
}

static sluice_status outcome(const decoder *in, sluice_error *err)
{
    if (in->no_memory)
        return pf_fail_memory(err);
    if (in->view.bad)
        return pf_fail(err, SLUICE_CORRUPT, "its Arrow metadata is malformed");
    if (in->unsupported)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "its Arrow metadata %s", in->unsupported);
    return SLUICE_OK;
}

static void *take(decoder *in, size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        in->no_memory = true;
    return memory;
}

/* A copy of a text, empty when it is absent; NULL on failure. */
static char *take_text(decoder *in, const st_fb_table *table, uint32_t slot, uint32_t *ret_length)
{
    const char *text = st_fb_string_at(table, slot, ret_length);
    size_t cost = (size_t)*ret_length + sizeof(st_arrow_pair);

    if (cost > in->budget) {
        in->view.bad = true;
        return NULL;
    }
    in->budget -= cost;
    char *copy = take(in, (size_t)*ret_length + 1, 1);
    if (copy && *ret_length)
        memcpy(copy, text, *ret_length);
    return copy;
}

static void decode_pairs(decoder *in, const st_fb_table *table, uint32_t slot, st_arrow_pairs *ret_pairs)
{
    st_fb_vector vector = st_fb_vector_at(table, slot, 4);

    if (!vector.count)
        return;
    if (vector.count > in->budget / sizeof(st_arrow_pair)) {
        in->view.bad = true;
        return;
    }
    ret_pairs->items = take(in, vector.count, sizeof *ret_pairs->items);
    if (!ret_pairs->items)
        return;
    for (uint32_t i = 0; i < vector.count; i++) {
        st_fb_table entry = st_fb_vector_table(&vector, i);
        st_arrow_pair *pair = &ret_pairs->items[i];
        ret_pairs->count = i + 1;
        pair->key = take_text(in, &entry, 0, &pair->key_length);
        pair->value = pair->key ? take_text(in, &entry, 1, &pair->value_length) : NULL;
        if (!pair->value) {
            in->view.bad |= !in->no_memory;
            return;
        }
    }
}

static void decode_type(decoder *in, const st_fb_table *table, st_arrow_field *field)
{
    st_fb_table type = st_fb_table_at(table, 3);
    uint32_t length;

    field->kind = st_fb_u8(table, 2, 0);
    switch (field->kind) {
    case ST_ARROW_INT:
        field->width = st_fb_u32(&type, 0, 0);
        field->is_signed = st_fb_u8(&type, 1, 0) != 0;
        break;
    case ST_ARROW_FLOATING_POINT:
        field->unit = st_fb_u16(&type, 0, ST_ARROW_HALF);
        break;
    case ST_ARROW_DATE:
        field->unit = st_fb_u16(&type, 0, ST_ARROW_MILLISECONDS_OF_DATE);
        break;
    case ST_ARROW_TIMESTAMP:
        field->unit = st_fb_u16(&type, 0, ST_ARROW_SECOND);
        if (st_fb_has(&type, 1))
            field->timezone = take_text(in, &type, 1, &length);
        break;
    case ST_ARROW_FIXED_SIZE_BINARY:
        field->width = st_fb_u32(&type, 0, 0);
        break;
    case ST_ARROW_DECIMAL:
        field->scale = (int32_t)st_fb_u32(&type, 1, 0);
        field->width = st_fb_u32(&type, 2, 128);
        break;
    case ST_ARROW_UNION:
        field->unit = st_fb_u16(&type, 0, 0);
        break;
    default:
        break;
    }
}

static void decode_fields(decoder *in, const st_fb_table *table, uint32_t slot, unsigned depth,
                          st_arrow_field **ret_fields, uint32_t *ret_count);

static void decode_field(decoder *in, const st_fb_table *table, unsigned depth, st_arrow_field *field)
{
    uint32_t length;

    field->name = take_text(in, table, 0, &length);
    if (!field->name || strlen(field->name) != length) {
        in->view.bad |= !in->no_memory;
        return;
    }
    field->nullable = st_fb_u8(table, 1, 0) != 0;
    decode_type(in, table, field);
    if (st_fb_has(table, 4)) {
        st_fb_table dictionary = st_fb_table_at(table, 4), index = st_fb_table_at(&dictionary, 1);
        field->has_dictionary = true;
        field->dictionary = st_fb_u64(&dictionary, 0, 0);
        field->index_width = index.view ? st_fb_u32(&index, 0, 0) : 32;
        field->index_signed = index.view ? st_fb_u8(&index, 1, 0) != 0 : true;
    }
    decode_fields(in, table, 5, depth + 1, &field->children, &field->child_count);
    decode_pairs(in, table, 6, &field->metadata);
}

static void decode_fields(decoder *in, const st_fb_table *table, uint32_t slot, unsigned depth,
                          st_arrow_field **ret_fields, uint32_t *ret_count)
{
    st_fb_vector vector = st_fb_vector_at(table, slot, 4);

    if (!vector.count || in->view.bad)
        return;
    if (depth >= ST_ARROW_DEPTH_MAX || vector.count > in->fields) {
        in->view.bad = true;
        return;
    }
    in->fields -= vector.count;
    *ret_fields = take(in, vector.count, sizeof **ret_fields);
    if (!*ret_fields)
        return;
    *ret_count = vector.count;
    for (uint32_t i = 0; i < vector.count && !in->view.bad && !in->no_memory; i++) {
        st_fb_table field = st_fb_vector_table(&vector, i);
        decode_field(in, &field, depth, &(*ret_fields)[i]);
    }
}

static void decode_schema(decoder *in, const st_fb_table *table, st_arrow_schema *ret_schema)
{
    if (!table->view)
        in->view.bad = true;
    if (st_fb_u16(table, 0, 0) != 0)
        in->unsupported = "says that numbers are big-endian: this reads little-endian only";
    decode_fields(in, table, 1, 0, &ret_schema->fields, &ret_schema->field_count);
    decode_pairs(in, table, 2, &ret_schema->metadata);
}

/* A vector of pairs of 64-bit numbers, none of them negative. */
static void *decode_number_pairs(decoder *in, const st_fb_table *table, uint32_t slot, uint32_t *ret_count)
{
    st_fb_vector vector = st_fb_vector_at(table, slot, 16);
    uint64_t *numbers = take(in, vector.count, 16);

    if (!numbers)
        return NULL;
    *ret_count = vector.count;
    for (uint32_t i = 0; i < vector.count; i++) {
        memcpy(numbers + 2 * (size_t)i, st_fb_vector_struct(&vector, i), 16);
        if (numbers[2 * (size_t)i] > INT64_MAX || numbers[2 * (size_t)i + 1] > INT64_MAX)
            in->view.bad = true;
    }
    return numbers;
}

static void decode_variadic(decoder *in, const st_fb_table *table, st_arrow_batch *ret_batch)
{
    st_fb_vector vector = st_fb_vector_at(table, 4, 8);

    if (!vector.count)
        return;
    ret_batch->variadic = take(in, vector.count, sizeof *ret_batch->variadic);
    if (!ret_batch->variadic)
        return;
    ret_batch->variadic_count = vector.count;
    memcpy(ret_batch->variadic, st_fb_vector_struct(&vector, 0), vector.count * sizeof *ret_batch->variadic);
}

static void decode_batch(decoder *in, const st_fb_table *table, st_arrow_batch *ret_batch)
{
    ret_batch->length = st_fb_u64(table, 0, 0);
    if (!table->view || ret_batch->length > INT64_MAX)
        in->view.bad = true;
    ret_batch->nodes = decode_number_pairs(in, table, 1, &ret_batch->node_count);
    ret_batch->buffers = decode_number_pairs(in, table, 2, &ret_batch->buffer_count);
    if (st_fb_has(table, 3)) {
        st_fb_table compression = st_fb_table_at(table, 3);
        uint8_t codec = st_fb_u8(&compression, 0, 0);
        if (codec > 1 || st_fb_u8(&compression, 1, 0) != 0)
            in->unsupported = "names an unknown compression";
        ret_batch->codec = codec ? ST_ARROW_ZSTD : ST_ARROW_LZ4;
    }
    decode_variadic(in, table, ret_batch);
}

static void check_version(decoder *in, const st_fb_table *table)
{
    uint16_t version = st_fb_u16(table, 0, 0);
    in->is_v4 = version == VERSION_V4;
    if (version != VERSION_V4 && version != VERSION_V5)
        in->unsupported = "is of a version other than V4 and V5";
}

/* Before 0.17.1 of its libraries, Arrow said in a note that buffers are compressed. */
static void check_notes(decoder *in, const st_fb_table *table)
{
    static const char key[] = "ARROW:experimental_compression";
    st_arrow_pairs pairs = {0};
    uint32_t length;

    decode_pairs(in, table, 4, &pairs);
    if (!in->view.bad && !in->no_memory && st_arrow_pairs_find(&pairs, key, &length))
        in->unsupported = "names an experimental compression of an early version";
    st_arrow_pairs_free(&pairs);
}

sluice_status st_arrow_decode_message(const void *bytes, size_t length, st_arrow_message *ret_message,
                                      sluice_error *err)
{
    decoder in = decoder_for(bytes, length);
    st_fb_table message = st_fb_root(&in.view), header = st_fb_table_at(&message, 2);

    *ret_message = (st_arrow_message){.header = st_fb_u8(&message, 1, 0), .body_length = st_fb_u64(&message, 3, 0)};
    check_version(&in, &message);
    check_notes(&in, &message);
    ret_message->is_v4 = in.is_v4;
    if (ret_message->body_length > INT64_MAX)
        in.view.bad = true;
    if (ret_message->header == ST_ARROW_SCHEMA) {
        decode_schema(&in, &header, &ret_message->schema);
    } else if (ret_message->header == ST_ARROW_RECORD_BATCH) {
        decode_batch(&in, &header, &ret_message->batch);
    } else if (ret_message->header == ST_ARROW_DICTIONARY) {
        st_fb_table data = st_fb_table_at(&header, 1);
        ret_message->dictionary = st_fb_u64(&header, 0, 0);
        ret_message->is_delta = st_fb_u8(&header, 2, 0) != 0;
        decode_batch(&in, &data, &ret_message->batch);
    }
    sluice_status status = outcome(&in, err);
    if (status != SLUICE_OK) {
        st_arrow_message_free(ret_message);
        *ret_message = (st_arrow_message){0};
    }
    return status;
}

static void decode_blocks(decoder *in, const st_fb_table *table, uint32_t slot, st_arrow_block **ret_blocks,
                          uint32_t *ret_count)
{
    st_fb_vector vector = st_fb_vector_at(table, slot, sizeof(st_arrow_block));

    *ret_blocks = take(in, vector.count, sizeof **ret_blocks);
    if (!*ret_blocks)
        return;
    *ret_count = vector.count;
    for (uint32_t i = 0; i < vector.count; i++) {
        st_arrow_block *block = &(*ret_blocks)[i];
        memcpy(block, st_fb_vector_struct(&vector, i), sizeof *block);
        if (block->offset > INT64_MAX || block->metadata_length > INT32_MAX || block->body_length > INT64_MAX)
            in->view.bad = true;
    }
}

sluice_status st_arrow_decode_footer(const void *bytes, size_t length, st_arrow_footer *ret_footer, sluice_error *err)
{
    decoder in = decoder_for(bytes, length);
    st_fb_table footer = st_fb_root(&in.view), schema = st_fb_table_at(&footer, 1);

    *ret_footer = (st_arrow_footer){0};
    check_version(&in, &footer);
    ret_footer->is_v4 = in.is_v4;
    decode_schema(&in, &schema, &ret_footer->schema);
    decode_blocks(&in, &footer, 2, &ret_footer->dictionaries, &ret_footer->dictionary_count);
    decode_blocks(&in, &footer, 3, &ret_footer->batches, &ret_footer->batch_count);
    decode_pairs(&in, &footer, 4, &ret_footer->metadata);
    sluice_status status = outcome(&in, err);
    if (status != SLUICE_OK)
        st_arrow_footer_free(ret_footer);
    return status;
}
