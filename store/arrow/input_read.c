/*
 * Rows of an Arrow input, slice by slice, and the dictionaries that they refer to.
 *
 * A reader goes forward. A dictionary is kept from batch to batch until another one takes its place; a delta adds a
 * chunk to it. In a stream the messages before a batch count, in a file all of them.
 */
#include "store/arrow/input_batch.h"

#include "platform/check.h"
#include <stdlib.h>

typedef struct chunk_memory {
    st_open_batch batch;
    st_column_room room;
} chunk_memory;

typedef struct column {
    uint32_t leaf;
    st_column_place place;
    st_column_room room;
    /* with a dictionary: */
    st_arrow_field values; /* its field, as one without */
    st_arrow_dictionary dictionary;
    st_arrow_array *chunks;
    uint64_t *firsts;
    chunk_memory *memory;
    uint32_t chunk_room;
    uint32_t seen; /* messages of dictionaries that were looked at */
} column;

struct st_arrow_reader {
    const st_arrow_input *input;
    column *columns;
    uint32_t count;
    st_arrow_array *arrays;
    st_codec codec;
    st_open_batch batch;
    uint32_t number; /* of the open batch */
    bool open;
};

static void drop_dictionary(column *c)
{
    for (uint32_t i = 0; i < c->dictionary.chunk_count; i++) {
        st_column_room_free(&c->memory[i].room);
        st_open_batch_end(&c->memory[i].batch);
    }
    c->dictionary.chunk_count = 0;
    c->dictionary.length = 0;
}

void st_arrow_reader_free(st_arrow_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; i < reader->count; i++) {
        column *c = &reader->columns[i];
        drop_dictionary(c);
        free(c->chunks);
        free(c->firsts);
        free(c->memory);
        st_column_room_free(&c->room);
    }
    if (reader->open)
        st_open_batch_end(&reader->batch);
    free(reader->columns);
    free(reader->arrays);
    st_codec_free(&reader->codec);
    free(reader);
}

sluice_status st_arrow_reader_new(const st_arrow_input *input, const uint32_t *leaves, uint32_t count,
                                  st_arrow_reader **ret_reader, sluice_error *err)
{
    st_arrow_reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return pf_fail_memory(err);
    reader->input = input;
    reader->columns = calloc((size_t)count + 1, sizeof *reader->columns);
    reader->arrays = calloc((size_t)count + 1, sizeof *reader->arrays);
    if (!reader->columns || !reader->arrays) {
        st_arrow_reader_free(reader);
        return pf_fail_memory(err);
    }
    reader->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const st_arrow_leaf *leaf = &input->leaves[leaves[i]];
        column *c = &reader->columns[i];
        PF_ASSERT(leaves[i] < input->leaf_count && st_arrow_field_is_flat(leaf->field));
        c->leaf = leaves[i];
        c->place = (st_column_place){.field = leaf->field,
                                     .node = leaf->node,
                                     .buffer = leaf->buffer,
                                     .views = leaf->views,
                                     .member = leaf->parent != NULL,
                                     .parent_node = leaf->parent_node,
                                     .parent_buffer = leaf->parent_buffer,
                                     .parent_views = leaf->parent_views};
        c->values = *leaf->field;
        c->values.has_dictionary = false;
    }
    *ret_reader = reader;
    return SLUICE_OK;
}

/* ---- dictionaries ---- */

static sluice_status make_chunk_room(column *c, sluice_error *err)
{
    uint32_t room = c->chunk_room ? c->chunk_room * 2 : 4;

    if (c->dictionary.chunk_count < c->chunk_room)
        return SLUICE_OK;
    st_arrow_array *chunks = realloc(c->chunks, room * sizeof *chunks);
    if (!chunks)
        return pf_fail_memory(err);
    c->chunks = chunks;
    uint64_t *firsts = realloc(c->firsts, room * sizeof *firsts);
    if (!firsts)
        return pf_fail_memory(err);
    c->firsts = firsts;
    chunk_memory *memory = realloc(c->memory, room * sizeof *memory);
    if (!memory)
        return pf_fail_memory(err);
    c->memory = memory;
    c->chunk_room = room;
    return SLUICE_OK;
}

/* All values of one message, as a further chunk. */
static sluice_status add_chunk(st_arrow_reader *reader, column *c, const st_arrow_message_place *at, sluice_error *err)
{
    st_arrow_extent extent = {0};
    st_column_place place = {.field = &c->values, .whole = true};

    PF_TRY(make_chunk_room(c, err));
    chunk_memory *memory = &c->memory[c->dictionary.chunk_count];
    st_arrow_array *array = &c->chunks[c->dictionary.chunk_count];
    *memory = (chunk_memory){0};
    *array = (st_arrow_array){.field = &c->values};
    PF_ALWAYS(st_arrow_field_extent(&c->values, reader->input->is_v4, &extent));
    PF_TRY(st_open_batch_begin(reader->input, at, &extent, &reader->codec, &memory->batch, err));
    c->firsts[c->dictionary.chunk_count++] = c->dictionary.length;
    uint64_t rows = memory->batch.batch.length, count = rows;
    if (rows == 0)
        return SLUICE_OK;
    PF_TRY(st_column_read(&memory->batch, &place, 0, &count, &memory->room, array, err));
    if (st_arrow_first_bad(array) < rows)
        return pf_fail(err, SLUICE_CORRUPT, "a text of a dictionary leads out of its buffer");
    c->dictionary.length += count;
    return SLUICE_OK;
}

/* Brings a column's dictionary to the state that holds for a batch. */
static sluice_status update_dictionary(st_arrow_reader *reader, column *c, const st_arrow_batch_place *batch,
                                       sluice_error *err)
{
    const st_arrow_input *input = reader->input;
    uint32_t from = c->seen, to = from;
    uint64_t id = c->place.field->dictionary;

    for (; to < input->dictionary_count; to++) {
        const st_arrow_dictionary_place *place = &input->dictionaries[to];
        if (!input->is_file && place->at.offset > batch->at.offset)
            break;
        if (place->id == id && !place->is_delta) {
            drop_dictionary(c);
            from = to;
        }
    }
    for (uint32_t i = from; i < to; i++)
        if (input->dictionaries[i].id == id)
            PF_TRY(add_chunk(reader, c, &input->dictionaries[i].at, err));
    c->seen = to;
    c->dictionary.chunks = c->chunks;
    c->dictionary.firsts = c->firsts;
    return SLUICE_OK;
}

/* ---- rows ---- */

static sluice_status open_batch(st_arrow_reader *reader, uint32_t number, uint32_t *ret_leaf, sluice_error *err)
{
    const st_arrow_input *input = reader->input;
    st_arrow_extent extent = {input->node_count, input->buffer_count, input->view_count};

    if (reader->open && reader->number == number)
        return SLUICE_OK;
    if (reader->open)
        st_open_batch_end(&reader->batch);
    reader->open = false;
    for (uint32_t i = 0; i < reader->count; i++) {
        *ret_leaf = reader->columns[i].leaf;
        if (reader->columns[i].place.field->has_dictionary)
            PF_TRY(update_dictionary(reader, &reader->columns[i], &input->batches[number], err));
    }
    *ret_leaf = 0;
    PF_TRY(st_open_batch_begin(input, &input->batches[number].at, &extent, &reader->codec, &reader->batch, err));
    if (reader->batch.batch.length != input->batches[number].rows) {
        st_open_batch_end(&reader->batch);
        return pf_fail(err, SLUICE_CORRUPT, "a batch has changed");
    }
    reader->open = true;
    reader->number = number;
    return SLUICE_OK;
}

static sluice_status read_column(st_arrow_reader *reader, uint32_t i, uint64_t first, uint64_t *count,
                                 sluice_error *err)
{
    column *c = &reader->columns[i];
    st_arrow_array *array = &reader->arrays[i];

    PF_TRY(st_column_read(&reader->batch, &c->place, first, count, &c->room, array, err));
    if (c->place.field->has_dictionary)
        array->dictionary = &c->dictionary;
    *count = st_arrow_first_bad(array);
    return *count
               ? SLUICE_OK
               : pf_fail(err, SLUICE_CORRUPT, "%s",
                         array->dictionary ? "an index leads out of its dictionary" : "a text leads out of its buffer");
}

sluice_status st_arrow_read(st_arrow_reader *reader, uint32_t batch, uint64_t first, uint64_t wanted,
                            const st_arrow_array **ret_arrays, uint64_t *ret_count, uint32_t *ret_leaf,
                            sluice_error *err)
{
    uint64_t count;

    PF_ASSERT(batch < reader->input->batch_count && first < reader->input->batches[batch].rows && wanted > 0);
    PF_TRY(open_batch(reader, batch, ret_leaf, err));
    count = reader->batch.batch.length - first;
    if (count > wanted)
        count = wanted;
    for (uint32_t i = 0; i < reader->count; i++) {
        *ret_leaf = reader->columns[i].leaf;
        PF_TRY(read_column(reader, i, first, &count, err));
    }
    for (uint32_t i = 0; i < reader->count; i++)
        reader->arrays[i].length = count;
    *ret_arrays = reader->arrays;
    *ret_count = count;
    return SLUICE_OK;
}
