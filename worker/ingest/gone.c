#include "worker/ingest/gone.h"

#include <stdio.h>
#include <stdlib.h>

static void file_name(const char *stem, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "%s-gone", stem);
}

static sluice_status put_words(wk_spool_file *file, const uint64_t *words, uint64_t count, sluice_error *err)
{
    return count ? wk_spool_append(file, words, count * sizeof *words, err) : SLUICE_OK;
}

static sluice_status append_all(wk_spool_file *file, const st_type_def *type, const wk_gone *gone, sluice_error *err)
{
    PF_TRY(put_words(file, &gone->count, 1, err));
    for (uint32_t u = 0; u < gone->unique_count; u++) {
        PF_TRY(put_words(file, &gone->tuples[u].freed_count, 1, err));
        PF_TRY(put_words(file, &gone->tuples[u].set_count, 1, err));
    }
    PF_TRY(put_words(file, gone->rows, gone->count, err));
    PF_TRY(put_words(file, gone->places, gone->count, err));
    PF_TRY(put_words(file, (const uint64_t *)(const void *)gone->changed, wk_gone_column_words(type), err));
    for (uint32_t u = 0; u < gone->unique_count; u++) {
        PF_TRY(put_words(file, gone->tuples[u].freed, gone->tuples[u].freed_count, err));
        PF_TRY(put_words(file, gone->tuples[u].set, gone->tuples[u].set_count, err));
    }
    return SLUICE_OK;
}

sluice_status wk_gone_put(const wk_spool *spool, const char *stem, const st_type_def *type, const wk_gone *gone,
                          sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    wk_spool_file file;

    file_name(stem, name);
    PF_TRY(wk_spool_begin(spool, name, &file, err));
    sluice_status status = append_all(&file, type, gone, err);
    if (status == SLUICE_OK)
        return wk_spool_end(&file, NULL, err);
    wk_spool_abandon(&file);
    return status;
}

void wk_gone_free(wk_gone *gone)
{
    pf_buffer_free(&gone->bytes);
    free(gone->tuples);
    *gone = (wk_gone){0};
}

/* The next `count` words; NULL when there are fewer. */
static const uint64_t *take_words(const wk_gone *gone, size_t *at, uint64_t count)
{
    const uint64_t *words = (const uint64_t *)(const void *)gone->bytes.data + *at;

    if (count > gone->bytes.length / sizeof *words - *at)
        return NULL;
    *at += count;
    return words;
}

sluice_status wk_gone_get(const wk_spool *spool, const char *stem, const st_type_def *type, wk_gone *ret_gone,
                          sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    bool found = false, whole = true;
    size_t at = 0;
    uint32_t unique_count = type->unique_count;

    *ret_gone = (wk_gone){.unique_count = unique_count};
    file_name(stem, name);
    PF_TRY(wk_spool_get(spool, name, &ret_gone->bytes, &found, err));
    ret_gone->tuples = calloc((size_t)unique_count + 1, sizeof *ret_gone->tuples);
    if (ret_gone->tuples == NULL)
        return pf_fail_memory(err);
    if (!found)
        return SLUICE_OK;
    const uint64_t *head = take_words(ret_gone, &at, 1 + 2 * (uint64_t)unique_count);
    whole = head != NULL;
    ret_gone->count = whole ? head[0] : 0;
    ret_gone->rows = take_words(ret_gone, &at, ret_gone->count);
    ret_gone->places = take_words(ret_gone, &at, ret_gone->count);
    ret_gone->changed = (const uint8_t *)take_words(ret_gone, &at, wk_gone_column_words(type));
    whole = whole && ret_gone->rows && ret_gone->places && ret_gone->changed;
    for (uint32_t u = 0; u < unique_count && whole; u++) {
        struct wk_gone_tuples *tuples = &ret_gone->tuples[u];
        tuples->freed_count = head[1 + 2 * u];
        tuples->set_count = head[2 + 2 * u];
        tuples->freed = take_words(ret_gone, &at, tuples->freed_count);
        tuples->set = take_words(ret_gone, &at, tuples->set_count);
        whole = tuples->freed && tuples->set;
    }
    return whole && at * sizeof *head == ret_gone->bytes.length
               ? SLUICE_OK
               : pf_fail(err, SLUICE_CORRUPT, "a task's result is not whole");
}
