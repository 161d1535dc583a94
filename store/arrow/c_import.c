/*
 * Batches in by the Arrow C stream interface (see c_stream.h).
 *
 * Offsets add up: row i of a batch is row i + offset of each of its arrays, of a member row i + offset of its struct +
 * its own; for validity bits as for values. How long the texts of an array are, its last offset says.
 */
#include "store/arrow/c_stream.h"

#include "platform/check.h"
#include "store/arrow/c_format.h"
#include <stdlib.h>
#include <string.h>

#define FORMAT_STRUCT "+s"

typedef struct in_column {
    char *name;
    uint32_t top, member; /* of the batch; of the struct, or NO_MEMBER */
    const st_arrow_field *field;
    st_arrow_field values;            /* a dictionary's, as a field without one */
    st_arrow_part *parts;             /* of the array, ... */
    st_arrow_part *dictionary_parts;  /* ... and of its dictionary */
    st_arrow_array dictionary_values; /* the one chunk */
    uint64_t first;                   /* 0: its number */
    st_arrow_dictionary dictionary;
} in_column;

#define NO_MEMBER UINT32_MAX

struct st_c_input {
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    st_arrow_schema schema; /* one field: the struct of the columns */
    in_column *columns;
    uint32_t count;
    st_arrow_array *arrays;
};

static sluice_status malformed(sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a producer's batch does not fit its schema");
}

static sluice_status producer_failed(st_c_input *input, int code, sluice_error *err)
{
    const char *text = input->stream.get_last_error ? input->stream.get_last_error(&input->stream) : NULL;
    return pf_fail_private(err, SLUICE_IO, "the producer of a stream failed",
                           "the producer of a stream failed (%d)%s%.400s", code, text ? ": " : "", text ? text : "");
}

static void drop_batch(st_c_input *input)
{
    if (input->batch.release)
        input->batch.release(&input->batch);
    for (uint32_t i = 0; i < input->count; i++) {
        free(input->columns[i].parts);
        free(input->columns[i].dictionary_parts);
        input->columns[i].parts = NULL;
        input->columns[i].dictionary_parts = NULL;
    }
}

void st_c_input_close(st_c_input *input)
{
    if (!input)
        return;
    drop_batch(input);
    if (input->stream.release)
        input->stream.release(&input->stream);
    for (uint32_t i = 0; i < input->count; i++)
        free(input->columns[i].name);
    free(input->columns);
    free(input->arrays);
    st_arrow_schema_free(&input->schema);
    free(input);
}

/* ---- opening ---- */

static sluice_status add_column(st_c_input *input, const st_arrow_field *parent, const st_arrow_field *field,
                                uint32_t top, uint32_t member, sluice_error *err)
{
    in_column *column = &input->columns[input->count];
    pf_buffer name = {0};

    PF_TRY(pf_buffer_append_format(&name, err, "%s%s%s%c", parent ? parent->name : "", parent ? "." : "", field->name,
                                   '\0'));
    *column = (in_column){
        .name = (char *)name.data, .top = top, .member = member, .field = field, .values = *field, .first = 0};
    column->values.has_dictionary = false;
    input->count++;
    return SLUICE_OK;
}

static sluice_status find_columns(st_c_input *input, sluice_error *err)
{
    size_t room = 1;

    for (uint32_t i = 0; i < input->schema.fields[0].child_count; i++)
        room += 1 + (size_t)input->schema.fields[0].children[i].child_count;
    input->columns = calloc(room, sizeof *input->columns);
    input->arrays = calloc(room, sizeof *input->arrays);
    if (!input->columns || !input->arrays)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < input->schema.fields[0].child_count; i++) {
        const st_arrow_field *field = &input->schema.fields[0].children[i];
        bool members = field->kind == ST_ARROW_STRUCT && !field->has_dictionary && field->child_count > 0;
        if (!members)
            PF_TRY(add_column(input, NULL, field, i, NO_MEMBER, err));
        for (uint32_t m = 0; members && m < field->child_count; m++)
            PF_TRY(add_column(input, field, &field->children[m], i, m, err));
    }
    return SLUICE_OK;
}

static sluice_status take_root(st_c_input *input, const struct ArrowSchema *schema, sluice_error *err)
{
    input->schema.fields = calloc(1, sizeof *input->schema.fields);
    if (!input->schema.fields)
        return pf_fail_memory(err);
    input->schema.field_count = 1;
    return st_c_field(schema, &input->schema.fields[0], err);
}

static sluice_status take_schema(st_c_input *input, sluice_error *err)
{
    struct ArrowSchema schema = {0};
    sluice_status status;
    int code = input->stream.get_schema(&input->stream, &schema);

    if (code != 0)
        return producer_failed(input, code, err);
    if (!schema.format || strcmp(schema.format, FORMAT_STRUCT) != 0 || schema.dictionary)
        status = pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a producer's stream is not one of batches with columns");
    else
        status = take_root(input, &schema, err);
    if (schema.release)
        schema.release(&schema);
    return status;
}

sluice_status st_c_input_open(struct ArrowArrayStream *stream, st_c_input **ret_input, sluice_error *err)
{
    st_c_input *input = calloc(1, sizeof *input);
    sluice_status status;

    *ret_input = NULL;
    if (!input) {
        if (stream->release)
            stream->release(stream);
        return pf_fail_memory(err);
    }
    input->stream = *stream;
    stream->release = NULL;
    if (!input->stream.release) {
        status = pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a stream has been released already");
        goto failed;
    }
    PF_GOTO(status, failed, take_schema(input, err));
    PF_GOTO(status, failed, find_columns(input, err));
    *ret_input = input;
    return SLUICE_OK;
failed:
    st_c_input_close(input);
    return status;
}

uint32_t st_c_input_columns(const st_c_input *input)
{
    return input->count;
}

const st_arrow_field *st_c_input_field(const st_c_input *input, uint32_t i, const char **ret_name)
{
    PF_ASSERT(i < input->count);
    *ret_name = input->columns[i].name;
    return input->columns[i].field;
}

/* ---- batches ---- */

/* An array's numbers are possible, and it has rows [from, from + length). */
static bool is_possible(const struct ArrowArray *array, uint64_t from, uint64_t length)
{
    return array && array->length >= 0 && array->offset >= 0 && array->n_buffers >= 0 && array->n_children >= 0 &&
           from <= (uint64_t)array->length && length <= (uint64_t)array->length - from &&
           (uint64_t)array->length <= (uint64_t)INT64_MAX - (uint64_t)array->offset &&
           (array->n_buffers == 0 || array->buffers);
}

static const uint8_t *validity_of(const struct ArrowArray *array)
{
    return array->n_buffers > 0 && array->null_count != 0 ? array->buffers[0] : NULL;
}

static uint32_t buffers_of(const st_arrow_field *field)
{
    st_arrow_class class = st_arrow_field_class(field);

    if (class == ST_CLASS_NOTHING)
        return 0;
    return (class == ST_CLASS_TEXT || class == ST_CLASS_BYTES) && field->kind != ST_ARROW_FIXED_SIZE_BINARY ? 3 : 2;
}

/* Views lie in any number of buffers, whose lengths the last one tells. */
static sluice_status take_views(const struct ArrowArray *array, st_arrow_array *into, st_arrow_part **ret_parts,
                                sluice_error *err)
{
    uint32_t count = (uint32_t)(array->n_buffers - 3);
    const int64_t *lengths = array->buffers[array->n_buffers - 1];
    st_arrow_part *parts = calloc((size_t)count + 1, sizeof *parts);

    *ret_parts = parts;
    if (!parts)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        if (!lengths || lengths[i] < 0)
            return malformed(err);
        parts[i] = (st_arrow_part){array->buffers[2 + i], 0, (uint64_t)lengths[i]};
    }
    into->parts = parts;
    into->part_count = count;
    return SLUICE_OK;
}

static sluice_status take_text(const struct ArrowArray *array, uint64_t end, uint64_t width, st_arrow_array *into,
                               st_arrow_part **ret_parts, sluice_error *err)
{
    st_arrow_part *parts = calloc(1, sizeof *parts);
    uint64_t length = 0;

    *ret_parts = parts;
    if (!parts)
        return pf_fail_memory(err);
    if (end > 0 && into->values)
        memcpy(&length, into->values + end * width, width);
    *parts = (st_arrow_part){array->buffers[2], 0, length};
    into->parts = parts;
    into->part_count = 1;
    return SLUICE_OK;
}

/* Rows [from, from + length) of a flat array. */
static sluice_status take_array(const struct ArrowArray *array, const st_arrow_field *field, uint64_t from,
                                uint64_t length, st_arrow_array *into, st_arrow_part **ret_parts, sluice_error *err)
{
    uint32_t buffers = field->has_dictionary ? 2 : buffers_of(field);
    bool view = !field->has_dictionary && (field->kind == ST_ARROW_UTF8_VIEW || field->kind == ST_ARROW_BINARY_VIEW);

    if (!is_possible(array, from, length) || (view ? array->n_buffers < 3 : array->n_buffers < buffers) ||
        array->n_buffers > UINT32_MAX)
        return malformed(err);
    *into = (st_arrow_array){.field = field, .length = length, .offset = (uint64_t)array->offset + from};
    if (buffers == 0)
        return SLUICE_OK;
    into->validity = validity_of(array);
    into->values = array->buffers[1];
    if (length > 0 && !into->values && !(field->kind == ST_ARROW_FIXED_SIZE_BINARY && field->width == 0))
        return malformed(err);
    if (view)
        return take_views(array, into, ret_parts, err);
    if (buffers < 3)
        return SLUICE_OK;
    bool large = field->kind == ST_ARROW_LARGE_UTF8 || field->kind == ST_ARROW_LARGE_BINARY;
    return take_text(array, into->offset + length, large ? 8 : 4, into, ret_parts, err);
}

static sluice_status take_dictionary(in_column *column, const struct ArrowArray *array, st_arrow_array *into,
                                     sluice_error *err)
{
    const struct ArrowArray *values = array->dictionary;

    if (!values || values->length < 0)
        return malformed(err);
    PF_TRY(take_array(values, &column->values, 0, (uint64_t)values->length, &column->dictionary_values,
                      &column->dictionary_parts, err));
    if (st_arrow_first_bad(&column->dictionary_values) < column->dictionary_values.length)
        return pf_fail(err, SLUICE_CORRUPT, "a text of a dictionary leads out of its buffer");
    column->dictionary =
        (st_arrow_dictionary){&column->dictionary_values, &column->first, 1, column->dictionary_values.length};
    into->dictionary = &column->dictionary;
    return SLUICE_OK;
}

static sluice_status take_column(st_c_input *input, uint32_t i, sluice_error *err)
{
    const struct ArrowArray *batch = &input->batch, *array = batch->children[input->columns[i].top];
    in_column *column = &input->columns[i];
    st_arrow_array *into = &input->arrays[i];
    uint64_t from = (uint64_t)batch->offset, rows = (uint64_t)batch->length;
    const struct ArrowArray *parent = NULL;

    *into = (st_arrow_array){.field = column->field};
    if (!st_arrow_field_is_flat(column->field))
        return SLUICE_OK;
    if (column->member != NO_MEMBER) {
        if (!is_possible(array, from, rows) || column->member >= array->n_children || !array->children)
            return malformed(err);
        parent = array;
        array = parent->children[column->member];
        from += (uint64_t)parent->offset;
    }
    PF_TRY(take_array(array, column->field, from, rows, into, &column->parts, err));
    if (parent) {
        into->parent = validity_of(parent);
        into->parent_offset = from;
    }
    if (column->field->has_dictionary)
        PF_TRY(take_dictionary(column, array, into, err));
    if (st_arrow_first_bad(into) < into->length)
        return pf_fail(err, SLUICE_CORRUPT, "an index or a text leads out of its dictionary or buffer");
    return SLUICE_OK;
}

sluice_status st_c_input_next(st_c_input *input, const st_arrow_array **ret_arrays, uint64_t *ret_rows,
                              sluice_error *err)
{
    *ret_arrays = NULL;
    *ret_rows = 0;
    drop_batch(input);
    int code = input->stream.get_next(&input->stream, &input->batch);
    if (code != 0) {
        input->batch.release = NULL;
        return producer_failed(input, code, err);
    }
    if (!input->batch.release)
        return SLUICE_OK;
    const struct ArrowArray *batch = &input->batch;
    if (!is_possible(batch, 0, 0) || batch->n_children != input->schema.fields[0].child_count ||
        (batch->n_children > 0 && !batch->children) || batch->null_count > 0)
        return malformed(err);
    for (uint32_t i = 0; i < input->count; i++)
        PF_TRY(take_column(input, i, err));
    *ret_arrays = input->arrays;
    *ret_rows = (uint64_t)batch->length;
    return SLUICE_OK;
}
