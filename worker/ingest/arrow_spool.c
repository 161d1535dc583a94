#include "worker/ingest/arrow_spool.h"

#include "platform/check.h"
#include "store/arrow/ipc.h"
#include "worker/ingest/arrow_value.h"
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS  65536u
#define BATCH_BYTES (UINT64_C(8) << 20) /* of texts in one column */

typedef struct spooler {
    st_c_input *input;
    st_column_spec *specs;
    st_column_builder **builders;
    st_column *views;
    uint32_t count;
    st_ipc_writer *writer;
    pf_buffer text;
    uint64_t rows;
} spooler;

static st_type widest(st_arrow_class class)
{
    static const st_type types[] = {
        [ST_CLASS_NOTHING] = ST_STRING,   [ST_CLASS_SIGNED] = ST_INT64, [ST_CLASS_UNSIGNED] = ST_UINT64,
        [ST_CLASS_FLOATING] = ST_FLOAT64, [ST_CLASS_EXACT] = ST_STRING, [ST_CLASS_TRUTH] = ST_BOOL,
        [ST_CLASS_TEXT] = ST_STRING,      [ST_CLASS_BYTES] = ST_BYTES,  [ST_CLASS_DAY] = ST_DATE,
        [ST_CLASS_MOMENT] = ST_TIMESTAMP};
    return types[class];
}

static void end(spooler *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        st_column_builder_free(s->builders[i]);
    free(s->specs); /* names are the input's */
    free(s->builders);
    free(s->views);
    st_ipc_writer_free(s->writer);
    pf_buffer_free(&s->text);
    st_c_input_close(s->input);
}

static sluice_status add_column(spooler *s, uint32_t i, sluice_error *err)
{
    const char *name = NULL;
    const st_arrow_field *field = st_c_input_field(s->input, i, &name);
    char text[ST_ARROW_TYPE_TEXT];

    if (!st_arrow_field_is_flat(field)) {
        (void)pf_fail_private(err, SLUICE_UNSUPPORTED_FORMAT, "a column of a stream is of a type that no property has",
                              "column %.200s: Arrow's %s cannot become a property", name,
                              st_arrow_field_text(field, text));
        pf_hint(err, "leave the column out, or cast it");
        return SLUICE_UNSUPPORTED_FORMAT;
    }
    s->specs[i] = (st_column_spec){
        .name = (char *)(uintptr_t)name, .type = widest(st_arrow_field_class(field)), .nullable = true};
    PF_TRY(st_column_builder_new(&s->specs[i], &s->builders[i], err));
    s->count++;
    return SLUICE_OK;
}

static sluice_status begin(spooler *s, const st_ipc_options *options, sluice_error *err)
{
    uint32_t count = st_c_input_columns(s->input);

    s->specs = calloc((size_t)count + 1, sizeof *s->specs);
    s->builders = calloc((size_t)count + 1, sizeof(st_column_builder *));
    s->views = calloc((size_t)count + 1, sizeof *s->views);
    if (!s->specs || !s->builders || !s->views)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(add_column(s, i, err));
    return st_ipc_writer_new(options, s->specs, count, NULL, &s->writer, err);
}

static sluice_status flush(spooler *s, sluice_error *err)
{
    if (s->count == 0 || st_builder_length(s->builders[0]) == 0)
        return SLUICE_OK;
    for (uint32_t i = 0; i < s->count; i++)
        st_builder_view(s->builders[i], &s->views[i]);
    PF_TRY(st_ipc_write(s->writer, s->views, s->views[0].length, err));
    for (uint32_t i = 0; i < s->count; i++)
        st_builder_truncate(s->builders[i], 0);
    return SLUICE_OK;
}

static sluice_status append(spooler *s, uint32_t i, const st_arrow_value *value, sluice_error *err)
{
    st_column_builder *builder = s->builders[i];

    switch (value->class) {
    case ST_CLASS_NOTHING:
        return st_append_null(builder, err);
    case ST_CLASS_SIGNED:
    case ST_CLASS_MOMENT:
        return st_append_i64(builder, value->i64, err);
    case ST_CLASS_UNSIGNED:
        return st_append_u64(builder, value->u64, err);
    case ST_CLASS_FLOATING:
        return st_append_f64(builder, value->f64, err);
    case ST_CLASS_TRUTH:
        return st_append_bool(builder, value->truth, err);
    case ST_CLASS_TEXT:
    case ST_CLASS_BYTES:
        return st_append_bytes(builder, value->bytes, (size_t)value->length, err);
    case ST_CLASS_EXACT:
        s->text.length = 0;
        PF_TRY(wk_arrow_text(value, &s->text, err));
        return st_append_bytes(builder, s->text.data, s->text.length, err);
    case ST_CLASS_DAY:
        if (value->i64 < INT32_MIN || value->i64 > INT32_MAX)
            return pf_fail(err, SLUICE_CONSTRAINT_TYPE, "a date64 is out of range for date");
        return st_append_i32(builder, (int32_t)value->i64, err);
    }
    PF_NEVER("a class of values");
}

static sluice_status add_row(spooler *s, const st_arrow_array *arrays, uint64_t row, sluice_error *err)
{
    bool full = s->count > 0 && st_builder_length(s->builders[0]) + 1 >= BATCH_ROWS;
    st_arrow_value value;
    sluice_error error;

    for (uint32_t i = 0; i < s->count; i++) {
        pf_error_clear(&error);
        sluice_status status = st_arrow_get(&arrays[i], row, &value, &error);
        if (status == SLUICE_OK)
            status = append(s, i, &value, &error);
        if (status != SLUICE_OK)
            return pf_fail_private(err, status, error.message, "row %llu: column %.200s: %s",
                                   (unsigned long long)s->rows + 1, s->specs[i].name, error.text);
        full |= s->builders[i]->data_length >= BATCH_BYTES;
    }
    s->rows++;
    return full ? flush(s, err) : SLUICE_OK;
}

sluice_status wk_arrow_spool(struct ArrowArrayStream *stream, wk_arrow_put_fn *put, void *context, uint64_t *ret_rows,
                             sluice_error *err)
{
    st_ipc_options options = {.context = context, .put = put};
    spooler s = {0};
    const st_arrow_array *arrays = NULL;
    sluice_status status;

    *ret_rows = 0;
    PF_TRY(st_c_input_open(stream, &s.input, err));
    PF_GOTO(status, done, begin(&s, &options, err));
    do {
        uint64_t count = 0;
        PF_GOTO(status, done, st_c_input_next(s.input, &arrays, &count, err));
        for (uint64_t row = 0; arrays && row < count; row++)
            PF_GOTO(status, done, add_row(&s, arrays, row, err));
    } while (arrays);
    PF_GOTO(status, done, flush(&s, err));
    status = st_ipc_finish(s.writer, NULL, err);
    *ret_rows = s.rows;
done:
    end(&s);
    return status;
}
