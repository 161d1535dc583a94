/*
 * Opening an Arrow input (see input.h): the walk over its messages.
 *
 * A message: a marker (left out by early versions), the length of the metadata, the metadata, the body. Metadata is
 * read through a window, so that a stream of many small batches does not cost a read for each.
 */
#include "store/arrow/input.h"

#include "platform/check.h"
#include "store/arrow/ipc.h"
#include <stdlib.h>

#define CONTINUATION  0xFFFFFFFFu
#define METADATA_MAX  (256u << 20)
#define WINDOW        65536u
#define FILE_END      10u /* length of the footer, magic */
#define FIRST_BATCHES 64u

typedef struct walk {
    st_arrow_input *input;
    pf_buffer window;
    uint64_t window_at;
    uint32_t batch_room, dictionary_room;
} walk;

/* ---- bytes ---- */

/* `length` bytes at `at`, which lie in the source; valid until the next look. */
static sluice_status look(walk *w, uint64_t at, size_t length, const uint8_t **ret_bytes, sluice_error *err)
{
    const st_arrow_source *source = &w->input->source;

    if (at < w->window_at || at - w->window_at > w->window.length || length > w->window.length - (at - w->window_at)) {
        uint64_t left = source->size - at;
        size_t wanted = length > WINDOW ? length : WINDOW;
        w->window.length = 0;
        if (wanted > left)
            wanted = (size_t)left;
        PF_TRY(pf_buffer_reserve(&w->window, wanted, err));
        PF_TRY(source->read(source->context, at, w->window.data, wanted, err));
        w->window.length = wanted;
        w->window_at = at;
    }
    *ret_bytes = w->window.data + (at - w->window_at);
    return SLUICE_OK;
}

/* ---- messages ---- */

/* The message at `at`; with *ret_end set when there is the mark of the end instead, and *ret_place.body is behind it.
 */
static sluice_status read_message(walk *w, uint64_t at, st_arrow_message *ret_message,
                                  st_arrow_message_place *ret_place, bool *ret_end, sluice_error *err)
{
    uint64_t size = w->input->source.size;
    const uint8_t *bytes = NULL;
    uint32_t length = 0, prefix = 4;

    *ret_end = false;
    if (at > size || size - at < 4)
        return pf_fail(err, SLUICE_CORRUPT, "the data ends in the middle, without the mark of its end");
    PF_TRY(look(w, at, 4, &bytes, err));
    memcpy(&length, bytes, 4);
    if (length == CONTINUATION) {
        prefix = 8;
        if (size - at < prefix)
            return pf_fail(err, SLUICE_CORRUPT, "the data ends in the middle of a message");
        PF_TRY(look(w, at + 4, 4, &bytes, err));
        memcpy(&length, bytes, 4);
    }
    *ret_place = (st_arrow_message_place){.offset = at, .metadata_length = length, .prefix = prefix};
    ret_place->body = at + prefix + length;
    *ret_end = length == 0;
    if (length == 0)
        return SLUICE_OK;
    if (length > METADATA_MAX)
        return pf_fail(err, SLUICE_CORRUPT, "a message has no valid length");
    if (length > size - at - prefix)
        return pf_fail(err, SLUICE_CORRUPT, "the data ends in the middle of a message");
    PF_TRY(look(w, at + prefix, length, &bytes, err));
    PF_TRY(st_arrow_decode_message(bytes, length, ret_message, err));
    ret_place->body_length = ret_message->body_length;
    if (ret_place->body_length <= size - ret_place->body)
        return SLUICE_OK;
    st_arrow_message_free(ret_message);
    return pf_fail(err, SLUICE_CORRUPT, "the data ends in the middle of a message");
}

sluice_status st_arrow_message_at(const st_arrow_input *input, const st_arrow_message_place *at,
                                  st_arrow_message *ret_message, sluice_error *err)
{
    uint8_t *bytes = malloc(at->metadata_length);
    sluice_status status;

    if (!bytes)
        return pf_fail_memory(err);
    status = input->source.read(input->source.context, at->offset + at->prefix, bytes, at->metadata_length, err);
    if (status == SLUICE_OK)
        status = st_arrow_decode_message(bytes, at->metadata_length, ret_message, err);
    free(bytes);
    return status;
}

/* ---- the schema ---- */

static bool is_struct(const st_arrow_field *field)
{
    return field->kind == ST_ARROW_STRUCT && !field->has_dictionary && field->child_count > 0;
}

static sluice_status add_leaf(st_arrow_input *input, const st_arrow_field *parent, const st_arrow_field *field,
                              const st_arrow_extent *at, const st_arrow_extent *parent_at, sluice_error *err)
{
    st_arrow_leaf *leaf = &input->leaves[input->leaf_count];
    pf_buffer name = {0};

    PF_TRY(pf_buffer_append_format(&name, err, "%s%s%s%c", parent ? parent->name : "", parent ? "." : "", field->name,
                                   '\0'));
    *leaf = (st_arrow_leaf){.name = (char *)name.data,
                            .field = field,
                            .parent = parent,
                            .node = at->nodes,
                            .buffer = at->buffers,
                            .views = at->views,
                            .parent_node = parent_at->nodes,
                            .parent_buffer = parent_at->buffers,
                            .parent_views = parent_at->views};
    input->leaf_count++;
    return SLUICE_OK;
}

static sluice_status unknown_kind(const st_arrow_field *field, sluice_error *err)
{
    return pf_fail_private(err, SLUICE_UNSUPPORTED_FORMAT, "a column is of a type that is not known",
                           "column \"%.200s\" is of a type that is not known (Arrow type %u)", field->name,
                           field->kind);
}

static sluice_status find_leaves(st_arrow_input *input, sluice_error *err)
{
    const st_arrow_schema *schema = &input->schema;
    st_arrow_extent at = {0};
    size_t room = 1;

    for (uint32_t i = 0; i < schema->field_count; i++)
        room += 1 + (size_t)schema->fields[i].child_count;
    input->leaves = calloc(room, sizeof *input->leaves);
    if (!input->leaves)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const st_arrow_field *field = &schema->fields[i];
        st_arrow_extent parent_at = at;
        if (!is_struct(field)) {
            PF_TRY(add_leaf(input, NULL, field, &at, &at, err));
            if (!st_arrow_field_extent(field, input->is_v4, &at))
                return unknown_kind(field, err);
            continue;
        }
        at.nodes++;
        at.buffers++;
        for (uint32_t m = 0; m < field->child_count; m++) {
            PF_TRY(add_leaf(input, field, &field->children[m], &at, &parent_at, err));
            if (!st_arrow_field_extent(&field->children[m], input->is_v4, &at))
                return unknown_kind(field, err);
        }
    }
    input->node_count = at.nodes;
    input->buffer_count = at.buffers;
    input->view_count = at.views;
    return SLUICE_OK;
}

/* ---- the batches ---- */

static sluice_status make_room(void **items, uint32_t count, uint32_t *room, size_t size, sluice_error *err)
{
    size_t bytes;

    if (count < *room)
        return SLUICE_OK;
    uint32_t wanted = *room ? *room * 2 : FIRST_BATCHES;
    if (wanted < *room || !pf_mul_size(wanted, size, &bytes))
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "there are too many batches");
    void *larger = realloc(*items, bytes);
    if (!larger)
        return pf_fail_memory(err);
    *items = larger;
    *room = wanted;
    return SLUICE_OK;
}

static sluice_status add_batch(walk *w, const st_arrow_message *message, const st_arrow_message_place *place,
                               sluice_error *err)
{
    st_arrow_input *input = w->input;
    st_arrow_extent extent = {input->node_count, input->buffer_count, input->view_count};

    PF_TRY(st_arrow_check_extent(&message->batch, place->body_length, &extent, err));
    PF_TRY(make_room((void **)&input->batches, input->batch_count, &w->batch_room, sizeof *input->batches, err));
    input->batches[input->batch_count++] = (st_arrow_batch_place){.at = *place,
                                                                  .first_row = input->rows,
                                                                  .rows = message->batch.length,
                                                                  .compressed = message->batch.codec != ST_ARROW_PLAIN};
    input->rows += message->batch.length;
    return SLUICE_OK;
}

static sluice_status add_dictionary(walk *w, const st_arrow_message *message, const st_arrow_message_place *place,
                                    sluice_error *err)
{
    st_arrow_input *input = w->input;

    PF_TRY(make_room((void **)&input->dictionaries, input->dictionary_count, &w->dictionary_room,
                     sizeof *input->dictionaries, err));
    input->dictionaries[input->dictionary_count++] =
        (st_arrow_dictionary_place){.at = *place, .id = message->dictionary, .is_delta = message->is_delta};
    return SLUICE_OK;
}

/* ---- a stream ---- */

static sluice_status step_stream(walk *w, uint64_t *at, bool *ret_end, sluice_error *err)
{
    st_arrow_message message = {0};
    st_arrow_message_place place = {0};
    sluice_status status;

    PF_TRY(read_message(w, *at, &message, &place, ret_end, err));
    if (*ret_end && place.body != w->input->source.size)
        return pf_fail(err, SLUICE_CORRUPT, "there are bytes behind the end of the stream");
    if (*ret_end)
        return SLUICE_OK;
    if (message.header == ST_ARROW_RECORD_BATCH)
        status = add_batch(w, &message, &place, err);
    else if (message.header == ST_ARROW_DICTIONARY)
        status = add_dictionary(w, &message, &place, err);
    else
        status = pf_fail(err, SLUICE_CORRUPT, "a message is neither a batch nor a dictionary");
    st_arrow_message_free(&message);
    *at = place.body + place.body_length;
    return status;
}

/* Content that cannot be read, as opposed to a source that cannot. */
static bool is_content(sluice_status status)
{
    return status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT || status == SLUICE_RESOURCE_LIMIT;
}

/* Keeps what is wrong with the rest, so that the rows before it can be read. */
static sluice_status keep_damage(st_arrow_input *input, sluice_status status, const sluice_error *error, uint64_t at,
                                 sluice_error *err)
{
    if (!is_content(status)) {
        if (err)
            *err = *error;
        return status;
    }
    input->damaged = true;
    input->damaged_at = at;
    input->damage = *error;
    return SLUICE_OK;
}

static sluice_status open_stream(walk *w, sluice_error *err)
{
    st_arrow_message message = {0};
    st_arrow_message_place place = {0};
    uint64_t at = 0;
    bool end = false;
    sluice_error error;
    sluice_status status;

    PF_TRY(read_message(w, 0, &message, &place, &end, err));
    if (end || message.header != ST_ARROW_SCHEMA) {
        st_arrow_message_free(&message);
        return pf_fail(err, SLUICE_CORRUPT, "there is no schema in front");
    }
    w->input->is_v4 = message.is_v4;
    w->input->schema = message.schema;
    st_arrow_batch_free(&message.batch);
    PF_TRY(find_leaves(w->input, err));
    at = place.body + place.body_length;
    while (!end) {
        pf_error_clear(&error);
        uint64_t here = at;
        status = step_stream(w, &at, &end, &error);
        if (status != SLUICE_OK)
            return keep_damage(w->input, status, &error, here, err);
    }
    return SLUICE_OK;
}

/* ---- a file ---- */

static sluice_status step_file(walk *w, const st_arrow_block *block, uint64_t least, uint64_t footer_at,
                               st_arrow_header wanted, sluice_error *err)
{
    st_arrow_message message = {0};
    st_arrow_message_place place = {0};
    bool end = false;
    sluice_status status;

    if (block->offset < least || block->offset > footer_at || block->metadata_length > footer_at - block->offset)
        return pf_fail(err, SLUICE_CORRUPT, "the blocks of the footer overlap, or lie outside of the file");
    PF_TRY(read_message(w, block->offset, &message, &place, &end, err));
    uint64_t body = block->offset + block->metadata_length;
    if (end || message.header != wanted)
        status = pf_fail(err, SLUICE_CORRUPT, "a block of the footer is not what it is said to be");
    else if (place.body > body || place.body_length > footer_at - body)
        status = pf_fail(err, SLUICE_CORRUPT, "a block of the footer does not fit its message");
    else {
        place.body = body;
        status = wanted == ST_ARROW_RECORD_BATCH ? add_batch(w, &message, &place, err)
                                                 : add_dictionary(w, &message, &place, err);
    }
    if (!end)
        st_arrow_message_free(&message);
    return status;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* In a file, a dictionary is given once; all else continues it. */
static sluice_status check_replaced(const st_arrow_input *input, sluice_error *err)
{
    uint64_t *ids = calloc((size_t)input->dictionary_count + 1, sizeof *ids);
    size_t count = 0;
    bool twice = false;

    if (!ids)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < input->dictionary_count; i++)
        if (!input->dictionaries[i].is_delta)
            ids[count++] = input->dictionaries[i].id;
    qsort(ids, count, sizeof *ids, by_id);
    for (size_t i = 1; i < count; i++)
        twice |= ids[i] == ids[i - 1];
    free(ids);
    return twice ? pf_fail(err, SLUICE_CORRUPT, "a dictionary is given twice") : SLUICE_OK;
}

static uint64_t end_of(const st_arrow_message_place *at)
{
    return at->body + at->body_length;
}

static sluice_status walk_file(walk *w, const st_arrow_footer *footer, uint64_t footer_at, sluice_error *err)
{
    st_arrow_input *input = w->input;
    sluice_error error;
    sluice_status status;
    uint64_t least = ST_IPC_FILE_START;

    for (uint32_t i = 0; i < footer->dictionary_count; i++) {
        PF_TRY(step_file(w, &footer->dictionaries[i], least, footer_at, ST_ARROW_DICTIONARY, err));
        least = end_of(&input->dictionaries[i].at); /* no block counts twice: what is read is bounded by the file */
    }
    PF_TRY(check_replaced(input, err));
    least = ST_IPC_FILE_START;
    for (uint32_t i = 0; i < footer->batch_count; i++) {
        pf_error_clear(&error);
        status = step_file(w, &footer->batches[i], least, footer_at, ST_ARROW_RECORD_BATCH, &error);
        if (status != SLUICE_OK)
            return keep_damage(input, status, &error, footer->batches[i].offset, err);
        least = end_of(&input->batches[i].at);
    }
    return SLUICE_OK;
}

/* The version of a file is that of its batches: footers say V5 in any case. */
static bool is_v4_file(walk *w, const st_arrow_footer *footer)
{
    st_arrow_message message = {0};
    st_arrow_message_place place;
    bool end = false, is_v4 = footer->is_v4;

    /* What is wrong with the batch is found again, and told, when the batches are walked. */
    if (footer->batch_count && read_message(w, footer->batches[0].offset, &message, &place, &end, NULL) == SLUICE_OK &&
        !end) {
        is_v4 = message.is_v4;
        st_arrow_message_free(&message);
    }
    return is_v4;
}

static sluice_status open_file(walk *w, sluice_error *err)
{
    st_arrow_input *input = w->input;
    uint64_t size = input->source.size;
    st_arrow_footer footer = {0};
    const uint8_t *bytes = NULL;
    uint32_t length;

    input->is_file = true;
    if (size < ST_IPC_FILE_START + FILE_END)
        return pf_fail(err, SLUICE_CORRUPT, "the file is cut off");
    PF_TRY(look(w, size - FILE_END, FILE_END, &bytes, err));
    if (memcmp(bytes + 4, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH) != 0)
        return pf_fail(err, SLUICE_CORRUPT, "the file has no end: it is cut off, or its writer did not close it");
    memcpy(&length, bytes, sizeof length);
    if (length == 0 || length > METADATA_MAX || length > size - ST_IPC_FILE_START - FILE_END)
        return pf_fail(err, SLUICE_CORRUPT, "the footer has no valid length");
    uint64_t footer_at = size - FILE_END - length;
    PF_TRY(look(w, footer_at, length, &bytes, err));
    PF_TRY(st_arrow_decode_footer(bytes, length, &footer, err));
    input->is_v4 = is_v4_file(w, &footer);
    input->schema = footer.schema;
    footer.schema = (st_arrow_schema){0};
    sluice_status status = find_leaves(input, err);
    if (status == SLUICE_OK)
        status = walk_file(w, &footer, footer_at, err);
    st_arrow_footer_free(&footer);
    return status;
}

/* ---- either ---- */

static sluice_status not_arrow(const uint8_t *head, size_t length, sluice_error *err)
{
    if (length >= 4 && memcmp(head, "FEA1", 4) == 0)
        (void)pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "this is Feather of version 1, not Arrow");
    else if (length >= 4 && memcmp(head, "PAR1", 4) == 0)
        (void)pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "this is Parquet, not Arrow");
    else
        (void)pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "this is neither a file nor a stream of Arrow IPC");
    pf_hint(err, "write it again as Arrow IPC, for instance with pyarrow.feather.write_feather");
    return SLUICE_UNSUPPORTED_FORMAT;
}

static sluice_status open_any(walk *w, sluice_error *err)
{
    uint64_t size = w->input->source.size;
    size_t length = size < ST_IPC_FILE_START ? (size_t)size : ST_IPC_FILE_START;
    const uint8_t *head = NULL;
    uint32_t first = 0;

    if (size == 0)
        return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "this is empty: not even a schema is there");
    PF_TRY(look(w, 0, length, &head, err));
    if (length >= ST_IPC_MAGIC_LENGTH && memcmp(head, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH) == 0)
        return open_file(w, err);
    if (length >= 4)
        memcpy(&first, head, 4);
    /* Without a marker, a stream begins with the length of its schema. */
    bool stream = first == CONTINUATION || (first > 0 && first < METADATA_MAX && first % 4 == 0 && first <= size);
    if (!stream)
        return not_arrow(head, length, err);
    return open_stream(w, err);
}

sluice_status st_arrow_input_open(const st_arrow_source *source, st_arrow_input **ret_input, sluice_error *err)
{
    walk w = {.input = calloc(1, sizeof *w.input)};
    sluice_status status;

    *ret_input = NULL;
    if (!w.input)
        return pf_fail_memory(err);
    w.input->source = *source;
    status = open_any(&w, err);
    pf_buffer_free(&w.window);
    if (status == SLUICE_OK)
        *ret_input = w.input;
    else
        st_arrow_input_close(w.input);
    return status;
}

void st_arrow_input_close(st_arrow_input *input)
{
    if (!input)
        return;
    for (uint32_t i = 0; input->leaves && i < input->leaf_count; i++)
        free(input->leaves[i].name);
    free(input->leaves);
    free(input->batches);
    free(input->dictionaries);
    st_arrow_schema_free(&input->schema);
    free(input);
}
