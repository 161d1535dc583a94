/*
 * Writing fragments: Arrow IPC files whose every byte is bound by the digest of the footer.
 *
 * Each buffer is hashed once, while it is put (LESSONS N-03). A writer that failed stays failed, since half a batch may
 * have been put; its file is litter that nothing names.
 */
#include "store/arrow/ipc.h"
#include "store/fragment/fragment.h"
#include "store/fragment/fragment_format.h"
#include "store/fragment/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct st_fragment_writer {
    st_output output;
    pf_buffer memory; /* instead, for one that is attached */
    st_ipc_writer *ipc;
    pf_buffer checksums, messages; /* hexadecimal */
    pf_buffer rows;                /* of the batches */
    pf_buffer type;                /* as st_fragment_describe said */
    st_fragment_info info;
    sluice_status failed;
};

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    st_fragment_writer *writer = context;
    if (writer->info.attached)
        return pf_buffer_append(&writer->memory, bytes, length, err);
    return st_output_append(&writer->output, bytes, length, err);
}

static sluice_status see(void *context, st_ipc_part part, const void *bytes, size_t length, sluice_error *err)
{
    st_fragment_writer *writer = context;
    char text[PF_XXH128_TEXT];

    if (part == ST_IPC_FOOTER) {
        writer->info.footer = pf_sha256_of(bytes, length);
        return SLUICE_OK;
    }
    pf_xxh128_text(pf_xxh128_of(bytes, length), text);
    return pf_buffer_append(part == ST_IPC_MESSAGE ? &writer->messages : &writer->checksums, text, ST_FRAGMENT_HEX,
                            err);
}

static void writer_free(st_fragment_writer *writer)
{
    st_output_abandon(&writer->output);
    pf_buffer_free(&writer->memory);
    st_ipc_writer_free(writer->ipc);
    pf_buffer_free(&writer->checksums);
    pf_buffer_free(&writer->messages);
    pf_buffer_free(&writer->rows);
    pf_buffer_free(&writer->type);
    free(writer);
}

static bool has_column(const st_column_spec *specs, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(specs[i].name, name) == 0)
            return true;
    return false;
}

static sluice_status begin(st_fragment_writer *writer, uint64_t table, const st_column_spec *specs, uint32_t count,
                           bool compress, sluice_error *err)
{
    st_ipc_options options = {.file = true, .compress = compress, .context = writer, .put = put, .see = see};
    st_arrow_pairs metadata = {0};
    sluice_status status;
    char text[24];

    int length = snprintf(text, sizeof text, "%" PRIu64, table);
    PF_GOTO(status, done,
            st_arrow_pairs_add(&metadata, ST_FRAGMENT_KEY_FORM, ST_FRAGMENT_FORMAT, strlen(ST_FRAGMENT_FORMAT), err));
    PF_GOTO(status, done, st_arrow_pairs_add(&metadata, ST_FRAGMENT_KEY_TABLE, text, (size_t)length, err));
    status = st_ipc_writer_new(&options, specs, count, &metadata, &writer->ipc, err);
done:
    st_arrow_pairs_free(&metadata);
    return status;
}

/* `volume` NULL: in memory. `name` may be empty. */
static sluice_status create(pf_volume *volume, const char *path, uint64_t table, const char *name,
                            const st_column_spec *specs, uint32_t count, bool compress, st_fragment_writer **ret_writer,
                            sluice_error *err)
{
    sluice_status status;
    st_fragment_writer *writer;

    *ret_writer = NULL;
    if (strlen(name) >= sizeof writer->info.name)
        return pf_fail(err, SLUICE_INTERNAL, "the name of a fragment is too long");
    writer = calloc(1, sizeof *writer);
    if (!writer)
        return pf_fail_memory(err);
    memcpy(writer->info.name, name, strlen(name) + 1);
    writer->info.explicit_ids =
        has_column(specs, count, ST_FRAGMENT_ROW_ID) && has_column(specs, count, ST_FRAGMENT_COMMIT);
    writer->info.attached = volume == NULL;
    if (volume)
        PF_GOTO(status, failed, st_output_create(volume, path, &writer->output, err));
    PF_GOTO(status, failed, begin(writer, table, specs, count, compress, err));
    *ret_writer = writer;
    return SLUICE_OK;
failed:
    writer_free(writer);
    return status;
}

sluice_status st_fragment_create(pf_volume *volume, uint64_t table, const char *name, const st_column_spec *specs,
                                 uint32_t count, bool compress, st_fragment_writer **ret_writer, sluice_error *err)
{
    char path[ST_PATH_MAX];

    *ret_writer = NULL;
    PF_TRY(st_sealed_path(table, ST_FRAGMENT_FOLDER, name, path, err));
    return create(volume, path, table, name, specs, count, compress, ret_writer, err);
}

sluice_status st_fragment_create_at(pf_volume *volume, const char *path, uint64_t table, const st_column_spec *specs,
                                    uint32_t count, st_fragment_writer **ret_writer, sluice_error *err)
{
    return create(volume, path, table, "", specs, count, false, ret_writer, err);
}

sluice_status st_fragment_write(st_fragment_writer *writer, const st_column *columns, uint64_t rows, sluice_error *err)
{
    if (writer->failed != SLUICE_OK)
        return pf_fail(err, writer->failed, "an earlier batch of this fragment failed");
    if (rows == 0)
        return SLUICE_OK;
    writer->failed = st_ipc_write(writer->ipc, columns, rows, err);
    if (writer->failed == SLUICE_OK)
        writer->failed = pf_buffer_append_format(&writer->rows, err, "%" PRIu64 ",", rows);
    writer->info.rows += rows;
    return writer->failed;
}

sluice_status st_fragment_describe(st_fragment_writer *writer, const void *type, size_t length, sluice_error *err)
{
    writer->type.length = 0;
    return length > ST_FRAGMENT_TYPE_MAX ? SLUICE_OK : pf_buffer_append(&writer->type, type, length, err);
}

static sluice_status add_text(st_arrow_pairs *metadata, const char *key, const pf_buffer *text, sluice_error *err)
{
    return st_arrow_pairs_add(metadata, key, (const char *)text->data, text->length, err);
}

sluice_status st_fragment_finish(st_fragment_writer *writer, st_fragment_info *ret_info, sluice_error *err)
{
    st_arrow_pairs metadata = {0};
    sluice_status status;

    if (writer->failed != SLUICE_OK) {
        status = pf_fail(err, writer->failed, "an earlier batch of this fragment failed");
        goto done;
    }
    PF_GOTO(status, done, add_text(&metadata, ST_FRAGMENT_KEY_ROWS, &writer->rows, err));
    PF_GOTO(status, done, add_text(&metadata, ST_FRAGMENT_KEY_HEADS, &writer->messages, err));
    PF_GOTO(status, done, add_text(&metadata, ST_FRAGMENT_KEY_SUMS, &writer->checksums, err));
    if (writer->type.length > 0)
        PF_GOTO(status, done, add_text(&metadata, ST_FRAGMENT_KEY_TYPE, &writer->type, err));
    PF_GOTO(status, done, st_ipc_finish(writer->ipc, &metadata, err));
    if (writer->info.attached) {
        writer->info.bytes = writer->memory.length;
        writer->info.content = writer->memory.data;
        writer->memory = (pf_buffer){0};
    } else {
        PF_GOTO(status, done, st_output_finish(&writer->output, &writer->info.bytes, err));
    }
    *ret_info = writer->info;
done:
    st_arrow_pairs_free(&metadata);
    writer_free(writer);
    return status;
}

void st_fragment_abandon(st_fragment_writer *writer)
{
    if (writer)
        writer_free(writer);
}
