/*
 * Batches out by the Arrow C stream interface (see c_stream.h).
 *
 * The memory of a column is that of its builder, which belongs to the array, or its keeper's, which the array holds.
 * Every schema and array frees its own parts and releases those of its children that are still there.
 */
#include "store/arrow/c_stream.h"

#include "platform/check.h"
#include <errno.h>
#include <stdlib.h>

typedef struct out_stream {
    st_c_batches batches;
    st_column_spec *specs;
    uint32_t count;
    sluice_error error;
} out_stream;

/* ---- schemas ---- */

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] && schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    free((void *)(uintptr_t)schema->name);
    schema->release = NULL;
}

static const char *format_of(st_type type)
{
    static const char *const formats[] = {
        [ST_BOOL] = "b",    [ST_INT32] = "i",   [ST_INT64] = "l",       [ST_UINT64] = "L", [ST_FLOAT32] = "f",
        [ST_FLOAT64] = "g", [ST_STRING] = "u",  [ST_BYTES] = "z",       [ST_DATE] = "tdD", [ST_TIMESTAMP] = "tsu:UTC",
        [ST_ROW_ID] = "L",  [ST_STRUCT] = "+s", [ST_COMMIT_ID] = "w:16"};
    return formats[type];
}

static bool make_children(struct ArrowSchema *schema, uint32_t count)
{
    schema->children = calloc((size_t)count + 1, sizeof(struct ArrowSchema *));
    if (!schema->children)
        return false;
    for (; schema->n_children < count; schema->n_children++) {
        schema->children[schema->n_children] = calloc(1, sizeof(struct ArrowSchema));
        if (!schema->children[schema->n_children])
            return false;
    }
    return true;
}

/* False: no memory; what there is, is released by the caller. */
static bool fill_schema(struct ArrowSchema *schema, const char *name, st_type type, bool nullable)
{
    PF_ASSERT(schema);
    *schema = (struct ArrowSchema){
        .format = format_of(type), .flags = nullable ? ARROW_FLAG_NULLABLE : 0, .release = release_schema};
    schema->name = strdup(name);
    return schema->name != NULL;
}

static bool fill_column_schema(struct ArrowSchema *schema, const st_column_spec *spec)
{
    if (!fill_schema(schema, spec->name, spec->type, spec->nullable) || !make_children(schema, spec->child_count))
        return false;
    for (uint32_t m = 0; m < spec->child_count; m++)
        if (!fill_schema(schema->children[m], spec->children[m].name, spec->children[m].type,
                         spec->children[m].nullable))
            return false;
    return true;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    out_stream *from = stream->private_data;
    bool made = fill_schema(out, "", ST_STRUCT, false) && make_children(out, from->count);

    for (uint32_t i = 0; made && i < from->count; i++)
        made = fill_column_schema(out->children[i], &from->specs[i]);
    if (made)
        return 0;
    release_schema(out);
    (void)pf_fail_memory(&from->error);
    return ENOMEM;
}

/* ---- arrays ---- */

typedef struct array_memory { /* one of the two */
    st_column_builder *builder;
    void *keeper;
    void (*let_go)(void *keeper);
} array_memory;

static void release_array(struct ArrowArray *array)
{
    array_memory *memory = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++) {
        PF_ASSERT(array->children[i]);
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    free(array->children);
    free(array->buffers);
    if (memory && memory->keeper)
        memory->let_go(memory->keeper);
    if (memory)
        st_column_builder_free(memory->builder);
    free(memory);
    array->release = NULL;
}

static sluice_status fill_array(struct ArrowArray *array, uint64_t length, uint64_t nulls, uint32_t buffers,
                                uint32_t children, sluice_error *err)
{
    *array = (struct ArrowArray){
        .length = (int64_t)length, .null_count = (int64_t)nulls, .n_buffers = buffers, .release = release_array};
    array->buffers = calloc((size_t)buffers + 1, sizeof(const void *));
    array->children = calloc((size_t)children + 1, sizeof(struct ArrowArray *));
    if (!array->buffers || !array->children)
        return pf_fail_memory(err);
    for (; array->n_children < children; array->n_children++) {
        array->children[array->n_children] = calloc(1, sizeof(struct ArrowArray));
        if (!array->children[array->n_children])
            return pf_fail_memory(err);
    }
    return SLUICE_OK;
}

/* A column that is no struct. */
static sluice_status fill_flat(struct ArrowArray *array, const st_column_spec *spec, const st_column *column,
                               const st_c_batch *batch, bool kept, sluice_error *err)
{
    static const _Alignas(ST_COLUMN_ALIGNMENT) uint8_t nothing[ST_COLUMN_ALIGNMENT];
    bool text = column->type == ST_STRING || column->type == ST_BYTES;
    array_memory *memory;
    st_column view = *column;

    PF_ASSERT(array);
    PF_TRY(fill_array(array, column->length, column->nulls, text ? 3 : 2, 0, err));
    array->private_data = memory = calloc(1, sizeof *memory);
    if (!memory)
        return pf_fail_memory(err);
    if (kept) {
        batch->hold(batch->keeper);
        *memory = (array_memory){.keeper = batch->keeper, .let_go = batch->let_go};
    } else {
        PF_TRY(st_column_builder_new(spec, &memory->builder, err));
        PF_TRY(st_append_slice(memory->builder, column, 0, column->length, err));
        st_builder_view(memory->builder, &view);
    }
    array->buffers[0] = column->nulls ? view.validity : NULL;
    array->buffers[1] = text ? (const void *)view.offsets : view.values;
    if (text)
        array->buffers[2] = view.data;
    for (int64_t i = 1; i < array->n_buffers; i++) /* readers want a pointer also where there is nothing */
        if (!array->buffers[i])
            array->buffers[i] = nothing;
    return SLUICE_OK;
}

static sluice_status fill_column(struct ArrowArray *array, const st_column_spec *spec, const st_column *column,
                                 const st_c_batch *batch, bool kept, sluice_error *err)
{
    PF_ASSERT(array);
    if (spec->type != ST_STRUCT)
        return fill_flat(array, spec, column, batch, kept, err);
    PF_TRY(fill_array(array, column->length, 0, 1, spec->child_count, err));
    for (uint32_t m = 0; m < spec->child_count; m++)
        PF_TRY(fill_flat(array->children[m], &spec->children[m], &column->children[m], batch, kept, err));
    return SLUICE_OK;
}

static int errno_of(sluice_status status)
{
    return status == SLUICE_RESOURCE_LIMIT ? ENOMEM : EIO;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    out_stream *from = stream->private_data;
    st_c_batch batch = {0};
    sluice_status status;

    out->release = NULL;
    pf_error_clear(&from->error);
    status = from->batches.next(from->batches.context, &batch, &from->error);
    if (status != SLUICE_OK)
        return errno_of(status);
    if (!batch.columns)
        return 0;
    status = fill_array(out, batch.rows, 0, 1, from->count, &from->error);
    for (uint32_t i = 0; i < from->count && status == SLUICE_OK; i++)
        status = fill_column(out->children[i], &from->specs[i], &batch.columns[i], &batch, batch.kept && batch.kept[i],
                             &from->error);
    if (status == SLUICE_OK)
        return 0;
    release_array(out);
    return errno_of(status);
}

/* ---- the stream ---- */

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const out_stream *from = stream->private_data;
    return from->error.text[0] ? from->error.text : NULL;
}

static void free_stream(out_stream *from)
{
    if (!from)
        return;
    for (uint32_t i = 0; i < from->count; i++)
        st_column_spec_free(&from->specs[i]);
    free(from->specs);
    free(from);
}

static void release_stream(struct ArrowArrayStream *stream)
{
    out_stream *from = stream->private_data;

    from->batches.close(from->batches.context);
    free_stream(from);
    stream->release = NULL;
}

sluice_status st_c_stream_make(const st_column_spec *specs, uint32_t count, const st_c_batches *batches,
                               struct ArrowArrayStream *ret_stream, sluice_error *err)
{
    out_stream *from = calloc(1, sizeof *from);
    sluice_status status = SLUICE_OK;

    ret_stream->release = NULL;
    if (!from) {
        status = pf_fail_memory(err);
        goto failed;
    }
    from->batches = *batches;
    from->specs = calloc((size_t)count + 1, sizeof *from->specs);
    if (!from->specs) {
        status = pf_fail_memory(err);
        goto failed;
    }
    for (; from->count < count; from->count++)
        PF_GOTO(status, failed, st_column_spec_copy(&specs[from->count], &from->specs[from->count], err));
    *ret_stream = (struct ArrowArrayStream){.get_schema = get_schema,
                                            .get_next = get_next,
                                            .get_last_error = get_last_error,
                                            .release = release_stream,
                                            .private_data = from};
    return SLUICE_OK;
failed:
    batches->close(batches->context);
    free_stream(from);
    return status;
}
