/*
 * Lists in memory (list.h): opening, walking, and what edits do to them. After a failure a list is good for nothing but
 * st_list_free: an edit may have been applied in part.
 */
#include "store/state/list.h"
#include "platform/check.h"
#include "store/state/list_edit.h"
#include <stdlib.h>
#include <string.h>

void st_list_free(st_list *list)
{
    st_list_node_free(&list->root);
    *list = (st_list){0};
}

sluice_status st_list_open(st_graph *graph, uint64_t table, const st_list_ref *pages, uint32_t count, st_list *ret_list,
                           sluice_error *err)
{
    st_list list = {.graph = graph, .table = table, .root = {.level = ST_LIST_LEVEL_MAX + 1, .loaded = true}};
    list.root.children = calloc((size_t)count + 1, sizeof(*list.root.children));
    if (!list.root.children)
        return pf_fail_memory(err);
    list.root.capacity = count + 1;
    for (uint32_t i = 0; i < count; i++) {
        if (pages[i].level > ST_LIST_LEVEL_MAX || (i > 0 && pages[i].level > pages[i - 1].level)) {
            st_list_free(&list);
            return pf_fail(err, SLUICE_CORRUPT, "the folded list of table %llu is out of order",
                           (unsigned long long)table);
        }
        list.root.children[list.root.count++] = (st_list_node){.ref = pages[i], .level = pages[i].level};
    }
    *ret_list = list;
    return SLUICE_OK;
}

/* ---- nodes ---- */

sluice_status st_list_node_load(const st_list *list, st_list_node *node, sluice_error *err)
{
    return node->loaded ? SLUICE_OK : st_list_node_read(st_graph_volume(list->graph), list->table, node, err);
}

static sluice_status grow(void **items, uint32_t *capacity, uint32_t count, size_t size, sluice_error *err)
{
    if (count < *capacity)
        return SLUICE_OK;
    uint32_t wanted = *capacity ? *capacity * 2 : 8;
    void *more = realloc(*items, wanted * size);
    if (!more)
        return pf_fail_memory(err);
    *items = more;
    *capacity = wanted;
    return SLUICE_OK;
}

sluice_status st_list_push_item(st_list_node *leaf, st_item *item, sluice_error *err)
{
    void *items = leaf->items;
    sluice_status status = grow(&items, &leaf->capacity, leaf->count, sizeof(*leaf->items), err);
    leaf->items = items;
    if (status != SLUICE_OK) {
        st_item_free(item);
        return status;
    }
    leaf->items[leaf->count++] = *item;
    leaf->changed = true;
    return SLUICE_OK;
}

sluice_status st_list_push_child(st_list_node *node, st_list_node *child, sluice_error *err)
{
    void *children = node->children;
    sluice_status status = grow(&children, &node->capacity, node->count, sizeof(*node->children), err);
    node->children = children;
    if (status != SLUICE_OK) {
        st_list_node_free(child);
        return status;
    }
    node->children[node->count++] = *child;
    return SLUICE_OK;
}

static sluice_status load_all(const st_list *list, st_list_node *node, sluice_error *err)
{
    PF_TRY(st_list_node_load(list, node, err));
    for (uint32_t i = 0; i < node->count && node->level > 0; i++)
        PF_TRY(load_all(list, &node->children[i], err));
    return SLUICE_OK;
}

sluice_status st_list_load(st_list *list, sluice_error *err)
{
    return load_all(list, &list->root, err);
}

static sluice_status walk(st_list_node *node, st_item_fn *each, void *context, sluice_error *err)
{
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->level > 0)
            PF_TRY(walk(&node->children[i], each, context, err));
        else
            PF_TRY(each(context, &node->items[i], err));
    }
    return SLUICE_OK;
}

sluice_status st_list_each(st_list *list, st_item_fn *each, void *context, sluice_error *err)
{
    return walk(&list->root, each, context, err);
}

/* ---- deleted rows of an item ---- */

sluice_status st_item_load_dead(const st_list *list, st_item *item, sluice_error *err)
{
    st_row_set *set = NULL;
    if (item->dead_loaded)
        return SLUICE_OK;
    if (item->add.dead.present) {
        PF_TRY(st_deletion_read(st_graph_volume(list->graph), list->table, &item->add.dead, &set, err));
        sluice_status status = st_row_set_rows(set, &item->dead, &item->dead_count, err);
        st_row_set_free(set);
        PF_TRY(status);
        if (item->dead_count != item->add.dead.rows ||
            (item->dead_count > 0 && item->dead[item->dead_count - 1] >= item->add.fragment.rows))
            return pf_fail(err, SLUICE_CORRUPT, "tables/%llu/deletions/%s names rows that the fragment does not have",
                           (unsigned long long)list->table, item->add.dead.name);
    }
    item->dead_loaded = true;
    return SLUICE_OK;
}

/* Adds positions (ascending) to the dead ones; *ret_changed when any is new. */
static sluice_status add_dead(const st_list *list, st_item *item, const uint64_t *positions, uint64_t count,
                              bool *ret_changed, sluice_error *err)
{
    *ret_changed = false;
    PF_TRY(st_item_load_dead(list, item, err));
    uint64_t *merged = malloc((item->dead_count + count + 1) * sizeof(*merged)), length = 0, a = 0, b = 0;
    if (!merged)
        return pf_fail_memory(err);
    while (a < item->dead_count || b < count) {
        bool take_new = a == item->dead_count || (b < count && positions[b] < item->dead[a]);
        if (!take_new && b < count && positions[b] == item->dead[a])
            b++;
        *ret_changed = *ret_changed || take_new;
        merged[length++] = take_new ? positions[b++] : item->dead[a++];
    }
    free(item->dead);
    item->dead = merged;
    item->dead_count = length;
    if (*ret_changed)
        item->add.dead = (st_dead_ref){0}; /* that file is not the set any more */
    return SLUICE_OK;
}

sluice_status st_item_delete(const st_list *list, st_item *item, const st_row_set *rows, bool *ret_changed,
                             sluice_error *err)
{
    uint64_t *positions = NULL, count = 0;
    *ret_changed = false;
    PF_TRY(st_row_ids_positions(st_graph_volume(list->graph), list->table, item, rows, &positions, &count, err));
    sluice_status status = count > 0 ? add_dead(list, item, positions, count, ret_changed, err) : SLUICE_OK;
    free(positions);
    return status;
}

static bool meets(const st_row_set *rows, uint64_t low, uint64_t high)
{
    uint64_t span = high - low < UINT64_MAX ? high - low + 1 : UINT64_MAX;
    return st_row_set_count_range(rows, low, span) > 0;
}

static sluice_status delete_rows(const st_list *list, st_list_node *node, const st_row_set *rows, sluice_error *err)
{
    if (!node->loaded && !meets(rows, node->ref.low, node->ref.high))
        return SLUICE_OK;
    PF_TRY(st_list_node_load(list, node, err));
    for (uint32_t i = 0; i < node->count; i++) {
        bool changed = false;
        if (node->level > 0) {
            PF_TRY(delete_rows(list, &node->children[i], rows, err));
            changed = node->children[i].changed;
        } else if (meets(rows, node->items[i].low, node->items[i].high)) {
            PF_TRY(st_item_delete(list, &node->items[i], rows, &changed, err));
        }
        node->changed = node->changed || changed;
    }
    return SLUICE_OK;
}

static sluice_status apply_deletes(st_list *list, const st_edit *edit, sluice_error *err)
{
    st_row_set *rows = NULL;
    sluice_status status;
    if (edit->delete_count > 0) {
        PF_TRY(st_row_set_new(&rows, err));
        status = st_row_set_add_many(rows, edit->delete_rows, edit->delete_count, err);
    } else {
        PF_TRY(st_deletion_read(st_graph_volume(list->graph), list->table, &edit->deletes, &rows, err));
        status = SLUICE_OK;
    }
    if (status == SLUICE_OK)
        status = delete_rows(list, &list->root, rows, err);
    st_row_set_free(rows);
    return status;
}

/* ---- additions ---- */

sluice_status st_list_make_item(const st_list *list, const st_edit_add *add, const pf_id *commit, uint64_t *next_row,
                                st_item *ret_item, sluice_error *err)
{
    st_item item = {0};
    PF_TRY(st_add_copy(add, &item.add, err));
    item.add.commit = add->commit_given ? add->commit : *commit;
    item.dead_loaded = !add->dead.present;
    sluice_status status = SLUICE_OK;
    if (!add->fragment.explicit_ids && !add->first_row_given) {
        item.add.first_row = *next_row;
        if (item.add.first_row == 0 || !pf_add_u64(*next_row, add->fragment.rows, next_row))
            status = pf_fail(err, SLUICE_CORRUPT, "tables/%llu/fragments/%s has no row ids",
                             (unsigned long long)list->table, add->fragment.name);
    }
    if (status == SLUICE_OK)
        status = st_row_ids_bounds(st_graph_volume(list->graph), list->table, &item.add, &item.low, &item.high, err);
    if (status != SLUICE_OK) {
        st_item_free(&item);
        return status;
    }
    *ret_item = item;
    return SLUICE_OK;
}

sluice_status st_list_append_item(st_list *list, st_item *item, sluice_error *err)
{
    st_list_node *root = &list->root, *last = root->count > 0 ? &root->children[root->count - 1] : NULL;
    bool room = last && last->level == 0 && (last->loaded ? last->count : last->ref.fragments) < ST_LIST_ITEMS_MAX;
    sluice_status status = SLUICE_OK;
    if (room)
        status = st_list_node_load(list, last, err);
    if (!room) {
        st_list_node leaf = {.loaded = true, .changed = true};
        status = st_list_push_child(root, &leaf, err);
        last = &root->children[root->count - 1];
    }
    if (status != SLUICE_OK) {
        st_item_free(item);
        return status;
    }
    return st_list_push_item(last, item, err);
}

static sluice_status apply_adds(st_list *list, const st_bound_edit *bound, sluice_error *err)
{
    uint64_t next_row = bound->first_row;
    for (uint32_t i = 0; i < bound->edit.add_count; i++) {
        st_item item;
        PF_TRY(st_list_make_item(list, &bound->edit.adds[i], &bound->commit, &next_row, &item, err));
        PF_TRY(st_list_append_item(list, &item, err));
    }
    return SLUICE_OK;
}

sluice_status st_list_apply(st_list *list, const st_bound_edit *bound, sluice_error *err)
{
    const st_edit *edit = &bound->edit;
    PF_ASSERT(edit->table == list->table);
    if ((edit->deletes.present || edit->delete_count > 0) && !edit->replace)
        PF_TRY(apply_deletes(list, edit, err));
    if (edit->out_count > 0)
        return st_list_substitute(list, bound, err);
    if (edit->replace) {
        uint32_t level = list->root.level;
        st_list_node_free(&list->root);
        list->root = (st_list_node){.level = level, .loaded = true, .changed = true};
    }
    return apply_adds(list, bound, err);
}
