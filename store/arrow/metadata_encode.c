/*
 * Arrow's metadata as Flatbuffers: slots and defaults are those of Schema.fbs, Message.fbs and File.fbs (format 1.x,
 * V5).
 */
#include "store/arrow/flatbuffer.h"
#include "store/arrow/metadata.h"

#include <stdlib.h>

#define VERSION_V5 4u

static st_fb_ref *new_refs(st_fb_builder *fb, uint32_t count)
{
    st_fb_ref *refs = calloc(count ? count : 1, sizeof *refs);
    if (!refs)
        fb->failed = SLUICE_RESOURCE_LIMIT;
    return refs;
}

static st_fb_ref put_pairs(st_fb_builder *fb, const st_arrow_pairs *pairs)
{
    st_fb_ref vector = 0, *refs = pairs->count ? new_refs(fb, pairs->count) : NULL;

    if (!refs)
        return 0;
    for (uint32_t i = 0; i < pairs->count; i++) {
        const st_arrow_pair *pair = &pairs->items[i];
        st_fb_ref value = st_fb_string(fb, pair->value, pair->value_length);
        st_fb_ref key = st_fb_string(fb, pair->key, pair->key_length);
        st_fb_table_begin(fb);
        st_fb_put_ref(fb, 0, key);
        st_fb_put_ref(fb, 1, value);
        refs[i] = st_fb_table_end(fb);
    }
    vector = st_fb_vector_of_refs(fb, refs, pairs->count);
    free(refs);
    return vector;
}

static st_fb_ref put_int(st_fb_builder *fb, uint32_t width, bool is_signed)
{
    st_fb_table_begin(fb);
    st_fb_put_u32(fb, 0, width, 0);
    st_fb_put_u8(fb, 1, is_signed, 0);
    return st_fb_table_end(fb);
}

static st_fb_ref put_type(st_fb_builder *fb, const st_arrow_field *field)
{
    st_fb_ref timezone = field->timezone ? st_fb_string(fb, field->timezone, strlen(field->timezone)) : 0;

    if (field->kind == ST_ARROW_INT)
        return put_int(fb, field->width, field->is_signed);
    st_fb_table_begin(fb);
    if (field->kind == ST_ARROW_FLOATING_POINT)
        st_fb_put_u16(fb, 0, field->unit, ST_ARROW_HALF);
    else if (field->kind == ST_ARROW_DATE)
        st_fb_put_u16(fb, 0, field->unit, ST_ARROW_MILLISECONDS_OF_DATE);
    else if (field->kind == ST_ARROW_TIMESTAMP)
        st_fb_put_u16(fb, 0, field->unit, ST_ARROW_SECOND);
    else if (field->kind == ST_ARROW_FIXED_SIZE_BINARY)
        st_fb_put_u32(fb, 0, field->width, 0);
    st_fb_put_ref(fb, 1, timezone);
    return st_fb_table_end(fb);
}

static st_fb_ref put_dictionary(st_fb_builder *fb, const st_arrow_field *field)
{
    st_fb_ref index = put_int(fb, field->index_width, field->index_signed);
    st_fb_table_begin(fb);
    st_fb_put_u64(fb, 0, field->dictionary, 0);
    st_fb_put_ref(fb, 1, index);
    return st_fb_table_end(fb);
}

static st_fb_ref put_fields(st_fb_builder *fb, const st_arrow_field *fields, uint32_t count, unsigned depth);

static st_fb_ref put_field(st_fb_builder *fb, const st_arrow_field *field, unsigned depth)
{
    st_fb_ref metadata = put_pairs(fb, &field->metadata);
    st_fb_ref children = put_fields(fb, field->children, field->child_count, depth + 1);
    st_fb_ref dictionary = field->has_dictionary ? put_dictionary(fb, field) : 0;
    st_fb_ref type = put_type(fb, field);
    st_fb_ref name = st_fb_string(fb, field->name, strlen(field->name));

    st_fb_table_begin(fb);
    st_fb_put_ref(fb, 0, name);
    st_fb_put_u8(fb, 1, field->nullable, 0);
    st_fb_put_u8(fb, 2, field->kind, 0);
    st_fb_put_ref(fb, 3, type);
    st_fb_put_ref(fb, 4, dictionary);
    st_fb_put_ref(fb, 5, children);
    st_fb_put_ref(fb, 6, metadata);
    return st_fb_table_end(fb);
}

/* Readers want the vector of children also where there are none. */
static st_fb_ref put_fields(st_fb_builder *fb, const st_arrow_field *fields, uint32_t count, unsigned depth)
{
    PF_ALWAYS(depth <= ST_ARROW_DEPTH_MAX + 1);
    st_fb_ref *refs = new_refs(fb, count);
    if (!refs)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        refs[i] = put_field(fb, &fields[i], depth);
    st_fb_ref vector = st_fb_vector_of_refs(fb, refs, count);
    free(refs);
    return vector;
}

static st_fb_ref put_schema(st_fb_builder *fb, const st_arrow_schema *schema)
{
    st_fb_ref metadata = put_pairs(fb, &schema->metadata);
    st_fb_ref fields = put_fields(fb, schema->fields, schema->field_count, 0);
    st_fb_table_begin(fb);
    st_fb_put_ref(fb, 1, fields);
    st_fb_put_ref(fb, 2, metadata);
    return st_fb_table_end(fb);
}

static st_fb_ref put_batch(st_fb_builder *fb, const st_arrow_batch *batch)
{
    _Static_assert(sizeof(st_arrow_node) == 16 && sizeof(st_arrow_buffer) == 16, "the structs of Message.fbs");
    st_fb_ref compression = 0;

    if (batch->codec != ST_ARROW_PLAIN) {
        st_fb_table_begin(fb);
        st_fb_put_u8(fb, 0, batch->codec == ST_ARROW_ZSTD, 0);
        compression = st_fb_table_end(fb);
    }
    st_fb_ref buffers = st_fb_vector_of_structs(fb, batch->buffers, batch->buffer_count, sizeof(st_arrow_buffer));
    st_fb_ref nodes = st_fb_vector_of_structs(fb, batch->nodes, batch->node_count, sizeof(st_arrow_node));
    st_fb_table_begin(fb);
    st_fb_put_u64(fb, 0, batch->length, 0);
    st_fb_put_ref(fb, 1, nodes);
    st_fb_put_ref(fb, 2, buffers);
    st_fb_put_ref(fb, 3, compression);
    return st_fb_table_end(fb);
}

static sluice_status finish_message(st_fb_builder *fb, st_arrow_header kind, st_fb_ref header, uint64_t body_length,
                                    pf_buffer *buffer, sluice_error *err)
{
    const uint8_t *bytes;
    size_t length;

    st_fb_table_begin(fb);
    st_fb_put_u64(fb, 3, body_length, 0);
    st_fb_put_ref(fb, 2, header);
    st_fb_put_u16(fb, 0, VERSION_V5, 0);
    st_fb_put_u8(fb, 1, (uint8_t)kind, 0);
    sluice_status status = st_fb_finish(fb, st_fb_table_end(fb), &bytes, &length, err);
    if (status == SLUICE_OK)
        status = pf_buffer_append(buffer, bytes, length, err);
    st_fb_builder_free(fb);
    return status;
}

sluice_status st_arrow_encode_schema(const st_arrow_schema *schema, pf_buffer *buffer, sluice_error *err)
{
    st_fb_builder fb = {0};
    st_fb_ref header = put_schema(&fb, schema);
    return finish_message(&fb, ST_ARROW_SCHEMA, header, 0, buffer, err);
}

sluice_status st_arrow_encode_batch(const st_arrow_batch *batch, uint64_t body_length, pf_buffer *buffer,
                                    sluice_error *err)
{
    st_fb_builder fb = {0};
    st_fb_ref header = put_batch(&fb, batch);
    return finish_message(&fb, ST_ARROW_RECORD_BATCH, header, body_length, buffer, err);
}

static st_fb_ref put_blocks(st_fb_builder *fb, const st_arrow_block *blocks, uint32_t count)
{
    _Static_assert(sizeof(st_arrow_block) == 24, "the struct Block of File.fbs");
    st_arrow_block *copies = calloc(count ? count : 1, sizeof *copies);

    if (!copies) {
        fb->failed = SLUICE_RESOURCE_LIMIT;
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) { /* by member: the padding stays zero */
        copies[i].offset = blocks[i].offset;
        copies[i].metadata_length = blocks[i].metadata_length;
        copies[i].body_length = blocks[i].body_length;
    }
    st_fb_ref vector = st_fb_vector_of_structs(fb, copies, count, sizeof *copies);
    free(copies);
    return vector;
}

sluice_status st_arrow_encode_footer(const st_arrow_footer *footer, pf_buffer *buffer, sluice_error *err)
{
    st_fb_builder fb = {0};
    const uint8_t *bytes;
    size_t length;
    st_fb_ref metadata = put_pairs(&fb, &footer->metadata);
    st_fb_ref batches = put_blocks(&fb, footer->batches, footer->batch_count);
    st_fb_ref dictionaries = put_blocks(&fb, footer->dictionaries, footer->dictionary_count);
    st_fb_ref schema = put_schema(&fb, &footer->schema);

    st_fb_table_begin(&fb);
    st_fb_put_ref(&fb, 1, schema);
    st_fb_put_ref(&fb, 2, dictionaries);
    st_fb_put_ref(&fb, 3, batches);
    st_fb_put_ref(&fb, 4, metadata);
    st_fb_put_u16(&fb, 0, VERSION_V5, 0);
    sluice_status status = st_fb_finish(&fb, st_fb_table_end(&fb), &bytes, &length, err);
    if (status == SLUICE_OK)
        status = pf_buffer_append(buffer, bytes, length, err);
    st_fb_builder_free(&fb);
    return status;
}
