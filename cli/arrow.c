/*
 * Rows as Arrow IPC (see cli/arrow.h). One builder per column; a batch is written when it has enough rows or bytes.
 */
#include "cli/arrow.h"
#include "store/arrow/ipc.h"
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS  65536u
#define BATCH_BYTES (UINT64_C(8) << 20) /* of texts in one column */

struct cli_arrow {
    pf_output *out;
    st_ipc_writer *writer;
    st_column_spec *specs; /* of the file */
    st_column_builder **builders;
    st_column *views;
    uint32_t count;
    bool row_id;
};

void cli_arrow_free(cli_arrow *arrow)
{
    if (!arrow)
        return;
    st_ipc_writer_free(arrow->writer);
    for (uint32_t i = 0; i < arrow->count; i++) {
        st_column_spec_free(&arrow->specs[i]);
        st_column_builder_free(arrow->builders[i]);
    }
    free(arrow->specs);
    free(arrow->builders);
    free(arrow->views);
    free(arrow);
}

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_output_write(context, bytes, length, err);
}

static sluice_status add_column(cli_arrow *arrow, const st_column_spec *spec, sluice_error *err)
{
    st_column_spec *own = &arrow->specs[arrow->count];

    PF_TRY(st_column_spec_copy(spec, own, err));
    arrow->count++;
    own->property = 0;
    return st_column_builder_new(own, &arrow->builders[arrow->count - 1], err);
}

sluice_status cli_arrow_begin(pf_output *out, bool file, const st_column_spec *const *specs, uint32_t count,
                              bool row_id, cli_arrow **ret_arrow, sluice_error *err)
{
    static char row_id_name[] = "_row_id";
    static const st_column_spec row_id_spec = {.name = row_id_name, .type = ST_ROW_ID};
    cli_arrow *arrow = calloc(1, sizeof *arrow);
    st_ipc_options options = {.file = file, .context = out, .put = put};
    size_t room = (size_t)count + 2;
    sluice_status status;

    if (!arrow)
        return pf_fail_memory(err);
    *arrow = (cli_arrow){.out = out, .row_id = row_id};
    arrow->specs = calloc(room, sizeof *arrow->specs);
    arrow->builders = calloc(room, sizeof(void *));
    arrow->views = calloc(room, sizeof *arrow->views);
    if (!arrow->specs || !arrow->builders || !arrow->views) {
        status = pf_fail_memory(err);
        goto failed;
    }
    if (row_id)
        PF_GOTO(status, failed, add_column(arrow, &row_id_spec, err));
    for (uint32_t i = 0; i < count; i++)
        PF_GOTO(status, failed, add_column(arrow, specs[i], err));
    PF_GOTO(status, failed, st_ipc_writer_new(&options, arrow->specs, arrow->count, NULL, &arrow->writer, err));
    *ret_arrow = arrow;
    return SLUICE_OK;
failed:
    cli_arrow_free(arrow);
    return status;
}

static sluice_status flush(cli_arrow *arrow, sluice_error *err)
{
    if (arrow->count == 0 || st_builder_length(arrow->builders[0]) == 0)
        return SLUICE_OK;
    for (uint32_t i = 0; i < arrow->count; i++)
        st_builder_view(arrow->builders[i], &arrow->views[i]);
    PF_TRY(st_ipc_write(arrow->writer, arrow->views, arrow->views[0].length, err));
    for (uint32_t i = 0; i < arrow->count; i++)
        st_builder_truncate(arrow->builders[i], 0);
    return SLUICE_OK;
}

static bool is_full(const cli_arrow *arrow)
{
    bool full = arrow->count > 0 && st_builder_length(arrow->builders[0]) >= BATCH_ROWS;
    for (uint32_t i = 0; i < arrow->count; i++)
        full |= arrow->builders[i]->data_length >= BATCH_BYTES;
    return full;
}

/* A batch that is large by itself must not come on top of another. */
static bool is_large(const st_column *column, uint64_t first, uint64_t count)
{
    return column->offsets && (uint64_t)(column->offsets[first + count] - column->offsets[first]) > BATCH_BYTES;
}

sluice_status cli_arrow_add(cli_arrow *arrow, const st_column *const *columns, uint64_t first, uint64_t count,
                            const uint64_t *row_ids, sluice_error *err)
{
    uint32_t ahead = arrow->row_id;

    for (uint32_t i = ahead; i < arrow->count; i++)
        if (is_large(columns[i - ahead], first, count)) {
            PF_TRY(flush(arrow, err));
            break;
        }
    if (arrow->row_id)
        PF_TRY(st_append_values(arrow->builders[0], row_ids, count, err));
    for (uint32_t i = ahead; i < arrow->count; i++)
        PF_TRY(st_append_slice(arrow->builders[i], columns[i - ahead], first, count, err));
    return is_full(arrow) ? flush(arrow, err) : SLUICE_OK;
}

sluice_status cli_arrow_end(cli_arrow *arrow, sluice_error *err)
{
    PF_TRY(flush(arrow, err));
    return st_ipc_finish(arrow->writer, NULL, err);
}
