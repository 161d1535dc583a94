/* See changes_arrow.h. */
#include "cli/changes_arrow.h"
#include "store/arrow/ipc.h"
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS  65536u
#define BATCH_BYTES (UINT64_C(8) << 20) /* of texts in one column */

enum {
    CHANGE,
    TYPE,
    KEY,
    BEFORE,
    AFTER,
    CHANGES,
    KIND,
    COMMIT,
    GENERATION,
    INDEX,
    BRANCH,
    TIME,
    OPERATION,
    CURSOR,
    COLUMNS
};

static char names[COLUMNS][16] = {"change", "type",       "key",   "before", "after", "changes",      "kind",
                                  "commit", "generation", "index", "branch", "time",  "operation_id", "cursor"};
static const st_column_spec specs[COLUMNS] = {
    [CHANGE] = {.name = names[CHANGE], .type = ST_STRING},
    [TYPE] = {.name = names[TYPE], .type = ST_STRING, .nullable = true},
    [KEY] = {.name = names[KEY], .type = ST_STRING, .nullable = true},
    [BEFORE] = {.name = names[BEFORE], .type = ST_STRING, .nullable = true},
    [AFTER] = {.name = names[AFTER], .type = ST_STRING, .nullable = true},
    [CHANGES] = {.name = names[CHANGES], .type = ST_UINT64, .nullable = true},
    [KIND] = {.name = names[KIND], .type = ST_STRING},
    [COMMIT] = {.name = names[COMMIT], .type = ST_STRING},
    [GENERATION] = {.name = names[GENERATION], .type = ST_UINT64},
    [INDEX] = {.name = names[INDEX], .type = ST_UINT64},
    [BRANCH] = {.name = names[BRANCH], .type = ST_STRING},
    [TIME] = {.name = names[TIME], .type = ST_TIMESTAMP},
    [OPERATION] = {.name = names[OPERATION], .type = ST_STRING, .nullable = true},
    [CURSOR] = {.name = names[CURSOR], .type = ST_STRING},
};

struct cli_changes_arrow {
    st_ipc_writer *writer;
    st_column_builder *builders[COLUMNS];
};

static sluice_status put(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_buffer_append(context, bytes, length, err);
}

sluice_status cli_changes_arrow_begin(pf_buffer *out, cli_changes_arrow **ret_arrow, sluice_error *err)
{
    st_ipc_options options = {.context = out, .put = put};
    cli_changes_arrow *arrow = calloc(1, sizeof *arrow);
    sluice_status status = SLUICE_OK;
    if (!arrow)
        return pf_fail_memory(err);
    for (unsigned i = 0; i < COLUMNS && status == SLUICE_OK; i++)
        status = st_column_builder_new(&specs[i], &arrow->builders[i], err);
    if (status == SLUICE_OK)
        status = st_ipc_writer_new(&options, specs, COLUMNS, NULL, &arrow->writer, err);
    if (status == SLUICE_OK)
        *ret_arrow = arrow;
    else
        cli_changes_arrow_free(arrow);
    return status;
}

void cli_changes_arrow_free(cli_changes_arrow *arrow)
{
    if (!arrow)
        return;
    st_ipc_writer_free(arrow->writer);
    for (unsigned i = 0; i < COLUMNS; i++)
        st_column_builder_free(arrow->builders[i]);
    free(arrow);
}

static sluice_status add_text(cli_changes_arrow *arrow, unsigned column, const char *text, sluice_error *err)
{
    return text ? st_append_bytes(arrow->builders[column], text, strlen(text), err)
                : st_append_null(arrow->builders[column], err);
}

static sluice_status add_id(cli_changes_arrow *arrow, unsigned column, const pf_id *id, sluice_error *err)
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    return add_text(arrow, column, pf_id_is_nil(id) ? NULL : text, err);
}

/* The members that name a row, as an object. */
static sluice_status add_key(cli_changes_arrow *arrow, const char *members, sluice_error *err)
{
    pf_buffer text = {0};
    if (!members)
        return add_text(arrow, KEY, NULL, err);
    sluice_status status = pf_buffer_append_format(&text, err, "{%s}%c", members, '\0');
    if (status == SLUICE_OK)
        status = add_text(arrow, KEY, (const char *)text.data, err);
    pf_buffer_free(&text);
    return status;
}

sluice_status cli_changes_arrow_add(cli_changes_arrow *arrow, const st_feed_event *event, bool *ret_full,
                                    sluice_error *err)
{
    PF_TRY(add_text(arrow, CHANGE, st_feed_word(event->kind), err));
    PF_TRY(add_text(arrow, TYPE, event->type, err));
    PF_TRY(add_key(arrow, event->name, err));
    PF_TRY(add_text(arrow, BEFORE, event->before, err));
    PF_TRY(add_text(arrow, AFTER, event->after, err));
    PF_TRY(event->kind == ST_FEED_COMMIT ? st_append_u64(arrow->builders[CHANGES], event->changes, err)
                                         : st_append_null(arrow->builders[CHANGES], err));
    PF_TRY(add_text(arrow, KIND, event->commit->kind, err));
    PF_TRY(add_id(arrow, COMMIT, &event->commit->id, err));
    PF_TRY(st_append_u64(arrow->builders[GENERATION], event->generation, err));
    PF_TRY(st_append_u64(arrow->builders[INDEX], event->index, err));
    PF_TRY(add_text(arrow, BRANCH, event->branch, err));
    PF_TRY(st_append_i64(arrow->builders[TIME], event->commit->time_us, err));
    PF_TRY(add_id(arrow, OPERATION, &event->commit->operation, err));
    PF_TRY(add_text(arrow, CURSOR, event->cursor, err));
    *ret_full = st_builder_length(arrow->builders[0]) >= BATCH_ROWS;
    for (unsigned i = 0; i < COLUMNS; i++)
        *ret_full |= arrow->builders[i]->data_length >= BATCH_BYTES;
    return SLUICE_OK;
}

sluice_status cli_changes_arrow_batch(cli_changes_arrow *arrow, sluice_error *err)
{
    st_column views[COLUMNS];
    if (st_builder_length(arrow->builders[0]) == 0)
        return SLUICE_OK;
    for (unsigned i = 0; i < COLUMNS; i++)
        st_builder_view(arrow->builders[i], &views[i]);
    PF_TRY(st_ipc_write(arrow->writer, views, views[0].length, err));
    for (unsigned i = 0; i < COLUMNS; i++)
        st_builder_truncate(arrow->builders[i], 0);
    return SLUICE_OK;
}

sluice_status cli_changes_arrow_end(cli_changes_arrow *arrow, sluice_error *err)
{
    PF_TRY(cli_changes_arrow_batch(arrow, err));
    return st_ipc_finish(arrow->writer, NULL, err);
}
