/*
 * Folds (state.h): the edits behind a table's folded list go into its pages. Staged beside a write, named by nothing
 * until a generation takes it; whoever was faster makes it void (st_fold_applies), and it is litter of its attempt.
 */
#include "store/state/fold.h"
#include "platform/check.h"
#include "store/state/page.h"
#include <stdlib.h>
#include <string.h>

void st_fold_free(st_fold *fold)
{
    free(fold->base);
    free(fold->edits);
    free(fold->pages);
    st_edit_free(&fold->made);
    *fold = (st_fold){0};
}

static void *copy_items(const void *items, size_t count, size_t size)
{
    void *copy = calloc(count + 1, size);
    if (copy && count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

sluice_status st_fold_stage(st_graph *graph, const st_view *view, uint64_t table, bool merge, const char *stem,
                            st_fold *ret_fold, sluice_error *err)
{
    const st_table_entry *entry = st_view_table(view, table);
    st_list list = {0};
    st_fold fold = {.table = table};
    sluice_status status;
    if (!entry)
        return pf_fail(err, SLUICE_NOT_FOUND, "there is no table %llu", (unsigned long long)table);
    fold.base = copy_items(entry->pages, entry->page_count, sizeof(*fold.base));
    fold.edits = copy_items(entry->edits, entry->edit_count, sizeof(*fold.edits));
    if (!fold.base || !fold.edits) {
        status = pf_fail_memory(err);
        goto done;
    }
    fold.base_count = entry->page_count;
    fold.edit_count = entry->edit_count;
    PF_GOTO(status, done, st_list_open(graph, table, entry->pages, entry->page_count, &list, err));
    PF_GOTO(status, done, st_list_apply_places(&list, entry->edits, entry->edit_count, err));
    PF_GOTO(status, done, st_fold_rows(&list, view->schema, merge, stem, &fold, err));
    PF_GOTO(status, done, st_list_write(&list, stem, &fold.pages, &fold.page_count, err));
    *ret_fold = fold;
    fold = (st_fold){0};
done:
    st_list_free(&list);
    st_fold_free(&fold);
    return status;
}

bool st_fold_applies(const st_fold *fold, const st_table_entry *entry)
{
    return fold->table == entry->id && fold->base_count == entry->page_count && fold->edit_count > 0 &&
           fold->edit_count <= entry->edit_count && st_list_refs_equal(fold->base, entry->pages, fold->base_count) &&
           st_edit_places_equal(fold->edits, entry->edits, fold->edit_count);
}

sluice_status st_fold_apply(const st_fold *fold, st_table_entry *entry, sluice_error *err)
{
    PF_ASSERT(st_fold_applies(fold, entry));
    st_list_ref *pages = copy_items(fold->pages, fold->page_count, sizeof(*pages));
    uint64_t bytes = 0;
    if (!pages)
        return pf_fail_memory(err);
    if (entry->bytes < fold->bytes_out || !pf_add_u64(entry->bytes - fold->bytes_out, fold->bytes_in, &bytes)) {
        free(pages);
        return pf_fail(err, SLUICE_CORRUPT, "a fold of table %llu takes away more than there is",
                       (unsigned long long)entry->id);
    }
    entry->bytes = bytes;
    free(entry->pages);
    entry->pages = pages;
    entry->page_count = fold->page_count;
    entry->edit_count -= fold->edit_count;
    memmove(entry->edits, entry->edits + fold->edit_count, entry->edit_count * sizeof(*entry->edits));
    return SLUICE_OK;
}

static bool is_due(const st_view *view, const st_delta *delta, uint32_t i)
{
    const st_table_entry *entry = st_view_table(view, delta->edits[i].edit.table);
    for (uint32_t k = 0; k < delta->fold_count && entry; k++)
        if (delta->folds[k].table == entry->id)
            return false;
    return entry && entry->edit_count >= ST_FOLD_AT && !delta->edits[i].edit.replace;
}

/* Whoever has the folder folds, and beyond a bound everybody does. */
static bool may_fold(const st_view *view, uint64_t table, st_may_merge_fn *may_merge, void *context, bool *ret_mine)
{
    *ret_mine = may_merge && may_merge(context, table);
    return !may_merge || *ret_mine || st_view_table(view, table)->edit_count >= ST_FOLD_MUST;
}

bool st_delta_wants_folds(const st_view *view, const st_delta *delta, st_may_merge_fn *may_merge, void *context)
{
    bool mine;
    for (uint32_t i = 0; i < delta->edit_count; i++)
        if (is_due(view, delta, i) && may_fold(view, delta->edits[i].edit.table, may_merge, context, &mine))
            return true;
    return false;
}

sluice_status st_delta_add_folds(st_graph *graph, const st_view *view, st_delta *delta, const char *stem,
                                 st_may_merge_fn *may_merge, void *context, sluice_error *err)
{
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        uint64_t table = delta->edits[i].edit.table;
        bool mine;
        if (!is_due(view, delta, i) || !may_fold(view, table, may_merge, context, &mine))
            continue;
        st_fold *folds = realloc(delta->folds, ((size_t)delta->fold_count + 1) * sizeof(*folds));
        if (!folds)
            return pf_fail_memory(err);
        delta->folds = folds;
        bool merge = mine && delta->edits[i].edit.out_count == 0; /* not under the hands of what takes fragments out */
        PF_TRY(st_fold_stage(graph, view, table, merge, stem, &folds[delta->fold_count], err));
        delta->fold_count++;
    }
    return SLUICE_OK;
}
