/*
 * Materialising a table (state.h): its folded list, with the edits behind it applied in publication order.
 */
#include "platform/check.h"
#include "store/state/commit_edit.h"
#include "store/state/fold.h"
#include "store/state/list_edit.h"
#include <stdlib.h>
#include <string.h>

void st_table_list_cut(st_table_list *list, uint32_t count)
{
    for (uint32_t i = count; i < list->count; i++) {
        st_add_free(&list->fragments[i]);
        free(list->dead[i]);
    }
    list->count = count < list->count ? count : list->count;
}

void st_table_list_free(st_table_list *list)
{
    st_table_list_cut(list, 0);
    free(list->fragments);
    free(list->dead);
    free(list->dead_count);
    *list = (st_table_list){0};
}

/* In a published state every edit fits what stands before it: whatever does not is damage. */
static sluice_status apply_published(st_list *list, const st_bound_edit *bound, sluice_error *err)
{
    sluice_error probe = {0};
    sluice_status status = st_list_apply(list, bound, &probe);
    if (status == SLUICE_WRITE_CONFLICT)
        return pf_fail(err, SLUICE_CORRUPT, "an edit of table %llu does not fit its list: %s",
                       (unsigned long long)list->table, probe.message);
    if (status != SLUICE_OK && err)
        *err = probe;
    return status;
}

sluice_status st_list_apply_places(st_list *list, const st_edit_place *places, uint32_t count, sluice_error *err)
{
    st_edit_reader reader = {.graph = list->graph};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        st_bound_edit bound = {0};
        status = st_edit_reader_read(&reader, &places[i], list->table, &bound, err);
        if (status == SLUICE_OK)
            status = apply_published(list, &bound, err);
        st_edit_free(&bound.edit);
    }
    st_edit_reader_close(&reader);
    return status;
}

static sluice_status count_item(void *context, st_item *item, sluice_error *err)
{
    (void)item;
    uint32_t *count = context;
    if (*count == UINT32_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a table of too many fragments");
    (*count)++;
    return SLUICE_OK;
}

typedef struct flattening {
    st_list *list;
    st_table_list *into;
} flattening;

/* Moves an item out of the tree. */
static sluice_status take_item(void *context, st_item *item, sluice_error *err)
{
    flattening *flat = context;
    st_table_list *into = flat->into;
    PF_TRY(st_item_load_dead(flat->list, item, err));
    into->fragments[into->count] = item->add;
    into->dead[into->count] = item->dead_count > 0 ? item->dead : NULL;
    into->dead_count[into->count] = item->dead_count;
    if (item->dead_count == 0)
        free(item->dead);
    into->count++;
    item->add.runs = NULL;
    item->add.run_count = 0;
    item->add.fragment.content = NULL;
    item->dead = NULL;
    item->dead_count = 0;
    return SLUICE_OK;
}

static sluice_status flatten(st_list *list, st_table_list *ret_list, sluice_error *err)
{
    flattening flat = {list, ret_list};
    uint32_t count = 0;
    PF_TRY(st_list_load(list, err));
    PF_TRY(st_list_each(list, count_item, &count, err));
    ret_list->fragments = calloc((size_t)count + 1, sizeof(*ret_list->fragments));
    ret_list->dead = calloc((size_t)count + 1, sizeof(*ret_list->dead));
    ret_list->dead_count = calloc((size_t)count + 1, sizeof(*ret_list->dead_count));
    if (!ret_list->fragments || !ret_list->dead || !ret_list->dead_count)
        return pf_fail_memory(err);
    return st_list_each(list, take_item, &flat, err);
}

/* ---- extending a list ---- */

static sluice_status make_room(st_table_list *list, uint32_t more, sluice_error *err)
{
    size_t room = (size_t)list->count + more + 1;
    st_edit_add *fragments = realloc(list->fragments, room * sizeof(*fragments));
    if (fragments)
        list->fragments = fragments;
    uint64_t **dead = realloc(list->dead, room * sizeof(*dead));
    if (dead)
        list->dead = dead;
    uint64_t *dead_count = realloc(list->dead_count, room * sizeof(*dead_count));
    if (dead_count)
        list->dead_count = dead_count;
    return fragments && dead && dead_count ? SLUICE_OK : pf_fail_memory(err);
}

static bool only_adds(const st_edit *edit)
{
    return !edit->deletes.present && edit->delete_count == 0 && edit->out_count == 0 && !edit->replace;
}

static sluice_status extend_by(st_list *shell, const st_bound_edit *bound, st_table_list *list, sluice_error *err)
{
    flattening flat = {shell, list};
    uint64_t next_row = bound->first_row;
    uint32_t before = list->count;
    sluice_status status = make_room(list, bound->edit.add_count, err);
    for (uint32_t i = 0; i < bound->edit.add_count && status == SLUICE_OK; i++) {
        st_item item = {0};
        status = st_list_make_item(shell, &bound->edit.adds[i], &bound->commit, &next_row, &item, err);
        if (status == SLUICE_OK)
            status = take_item(&flat, &item, err);
        if (status != SLUICE_OK)
            st_item_free(&item);
    }
    if (status != SLUICE_OK)
        st_table_list_cut(list, before);
    return status;
}

sluice_status st_table_extend(st_graph *graph, uint64_t table, const st_edit_place *places, uint32_t count,
                              st_table_list *list, bool *ret_extended, sluice_error *err)
{
    st_edit_reader reader = {.graph = graph};
    st_list shell = {.graph = graph, .table = table};
    sluice_status status = SLUICE_OK;
    *ret_extended = true;
    for (uint32_t i = 0; i < count && *ret_extended; i++) {
        st_bound_edit bound = {0};
        status = st_edit_reader_read(&reader, &places[i], table, &bound, err);
        *ret_extended = status == SLUICE_OK && only_adds(&bound.edit);
        if (*ret_extended)
            status = extend_by(&shell, &bound, list, err);
        *ret_extended = *ret_extended && status == SLUICE_OK;
        st_edit_free(&bound.edit);
    }
    st_edit_reader_close(&reader);
    return status;
}

/* The list as it stands in a view, as a tree. */
static sluice_status open_standing(st_graph *graph, const st_view *view, uint64_t table, st_list *ret_list,
                                   sluice_error *err)
{
    const st_table_entry *entry = st_view_table(view, table);
    if (!entry && (!view->schema || !st_schema_find_table(view->schema, table)))
        return pf_fail(err, SLUICE_NOT_FOUND, "there is no table %llu", (unsigned long long)table);
    PF_TRY(st_list_open(graph, table, entry ? entry->pages : NULL, entry ? entry->page_count : 0, ret_list, err));
    sluice_status status = entry ? st_list_apply_places(ret_list, entry->edits, entry->edit_count, err) : SLUICE_OK;
    if (status != SLUICE_OK)
        st_list_free(ret_list);
    return status;
}

static sluice_status finish(st_list *list, sluice_status status, st_table_list *ret_list, sluice_error *err)
{
    st_table_list flat = {0};
    if (status == SLUICE_OK)
        status = flatten(list, &flat, err);
    st_list_free(list);
    if (status == SLUICE_OK)
        *ret_list = flat;
    else
        st_table_list_free(&flat);
    return status;
}

sluice_status st_table_materialise(st_graph *graph, const st_view *view, uint64_t table, st_table_list *ret_list,
                                   sluice_error *err)
{
    st_list list = {0};
    PF_TRY(open_standing(graph, view, table, &list, err));
    return finish(&list, SLUICE_OK, ret_list, err);
}

sluice_status st_table_try_edit(st_graph *graph, const st_view *view, const st_edit *edit, st_table_list *ret_list,
                                sluice_error *err)
{
    st_list list = {0};
    st_bound_edit bound = {.edit = *edit, .first_row = view->next_row};
    PF_TRY(open_standing(graph, view, edit->table, &list, err));
    return finish(&list, st_list_apply(&list, &bound, err), ret_list, err);
}
