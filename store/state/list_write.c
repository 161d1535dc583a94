/*
 * Writing a changed list back (list.h, st_list_write): only pages that changed, below new names; then their folders are
 * synced.
 *
 * Shape: pages of level 0 hold at most ST_LIST_ITEMS_MAX fragments; when more than ST_LIST_FAN roots are of one level,
 * the first ST_LIST_FAN of them are gathered under one page of the next. So a list that only grows writes its last page
 * again and, for each eight pages, one more: the cost of a fold does not grow with the list, and the entry holds at
 * most eight roots a level.
 */
#include "platform/check.h"
#include "store/state/list_edit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct list_writer {
    st_list *list;
    const char *stem;
    unsigned next_page, next_dead;
} list_writer;

static uint32_t most(uint32_t level)
{
    return level == 0 ? ST_LIST_ITEMS_MAX : 2 * ST_LIST_FAN;
}

/* ---- shape ---- */

/* Splits a page that holds too much and appends the parts; takes `node` over. */
static sluice_status push_parts(st_list_node *parent, st_list_node *node, sluice_error *err)
{
    uint32_t limit = most(node->level);
    for (uint32_t at = 0; at < node->count; at += limit) {
        uint32_t count = node->count - at < limit ? node->count - at : limit;
        st_list_node part = {.level = node->level, .loaded = true, .changed = true};
        size_t size = node->level == 0 ? sizeof(st_item) : sizeof(st_list_node);
        void *array = calloc(count, size);
        if (!array)
            return pf_fail_memory(err);
        memcpy(array, node->level == 0 ? (void *)(node->items + at) : (void *)(node->children + at), count * size);
        memset(node->level == 0 ? (void *)(node->items + at) : (void *)(node->children + at), 0, count * size);
        part.items = node->level == 0 ? array : NULL;
        part.children = node->level == 0 ? NULL : array;
        part.count = part.capacity = count;
        PF_TRY(st_list_push_child(parent, &part, err));
    }
    return SLUICE_OK;
}

/* Drops empty pages and splits large ones, from below. */
static sluice_status reshape(st_list_node *node, sluice_error *err)
{
    st_list_node fresh = {0};
    bool needed = false;
    for (uint32_t i = 0; i < node->count; i++) {
        st_list_node *child = &node->children[i];
        if (child->loaded && child->level > 0)
            PF_TRY(reshape(child, err));
        node->changed = node->changed || child->changed;
        needed = needed || (child->loaded && (child->count == 0 || child->count > most(child->level)));
    }
    if (!needed)
        return SLUICE_OK;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < node->count; i++) {
        st_list_node *child = &node->children[i];
        bool split = child->loaded && child->count > most(child->level);
        if (status == SLUICE_OK && split) {
            status = push_parts(&fresh, child, err);
        } else if (status == SLUICE_OK && !(child->loaded && child->count == 0)) {
            status = st_list_push_child(&fresh, child, err);
            *child = (st_list_node){0};
        }
        st_list_node_free(child);
    }
    free(node->children);
    node->children = fresh.children;
    node->count = fresh.count;
    node->capacity = fresh.capacity;
    node->changed = true;
    return status;
}

/* Moves roots [at, at + ST_LIST_FAN) under one new page in their place. */
static sluice_status gather_at(st_list_node *root, uint32_t at, sluice_error *err)
{
    st_list_node page = {.level = root->children[at].level + 1, .loaded = true, .changed = true};
    if (page.level > ST_LIST_LEVEL_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a table of too many fragments");
    page.children = calloc(ST_LIST_FAN, sizeof(*page.children));
    if (!page.children)
        return pf_fail_memory(err);
    page.count = page.capacity = ST_LIST_FAN;
    memcpy(page.children, root->children + at, ST_LIST_FAN * sizeof(*page.children));
    root->children[at] = page;
    memmove(root->children + at + 1, root->children + at + ST_LIST_FAN,
            (root->count - at - ST_LIST_FAN) * sizeof(*page.children));
    root->count -= ST_LIST_FAN - 1;
    return SLUICE_OK;
}

static sluice_status gather(st_list_node *root, sluice_error *err)
{
    for (uint32_t level = 0; level <= ST_LIST_LEVEL_MAX; level++) {
        uint32_t first = 0, end;
        while (first < root->count && root->children[first].level > level)
            first++;
        for (end = first; end < root->count && root->children[end].level == level;)
            end++;
        for (; end - first > ST_LIST_FAN; first++, end -= ST_LIST_FAN - 1)
            PF_TRY(gather_at(root, first, err));
    }
    return SLUICE_OK;
}

/* ---- writing ---- */

static sluice_status write_dead(list_writer *writer, st_item *item, sluice_error *err)
{
    st_row_set *set = NULL;
    char name[72];
    if (item->add.dead.present || item->dead_count <= ST_LIST_DEAD_MAX)
        return SLUICE_OK;
    (void)snprintf(name, sizeof(name), "%s-d%u", writer->stem, writer->next_dead++);
    PF_TRY(st_row_set_new(&set, err));
    sluice_status status = st_row_set_add_many(set, item->dead, item->dead_count, err);
    if (status == SLUICE_OK)
        status = st_deletion_write(st_graph_volume(writer->list->graph), writer->list->table, name, set,
                                   &item->add.dead, err);
    st_row_set_free(set);
    return status;
}

static void widen(st_list_ref *ref, bool first, uint64_t low, uint64_t high, uint64_t fragments)
{
    ref->low = first || low < ref->low ? low : ref->low;
    ref->high = first || high > ref->high ? high : ref->high;
    ref->fragments += fragments;
}

static sluice_status write_node(list_writer *writer, st_list_node *node, sluice_error *err)
{
    pf_buffer bytes = {0};
    st_list_ref ref = {.level = node->level};
    if (!node->changed)
        return SLUICE_OK;
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->level == 0) {
            PF_TRY(write_dead(writer, &node->items[i], err));
            widen(&ref, i == 0, node->items[i].low, node->items[i].high, 1);
        } else {
            const st_list_ref *child = &node->children[i].ref;
            PF_TRY(write_node(writer, &node->children[i], err));
            widen(&ref, i == 0, child->low, child->high, child->fragments);
        }
    }
    int length = snprintf(ref.file, sizeof(ref.file), "%s-l%u.json", writer->stem, writer->next_page++);
    PF_ALWAYS(length > 0 && (size_t)length < sizeof(ref.file));
    sluice_status status = st_list_node_encode(writer->list->table, node, &bytes, err);
    if (status == SLUICE_OK)
        status = st_list_file_write(st_graph_volume(writer->list->graph), writer->list->table, ref.file, &bytes, err);
    if (status == SLUICE_OK) {
        ref.digest = pf_sha256_of(bytes.data, bytes.length);
        node->ref = ref;
        node->changed = false;
    }
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status sync_folder(const list_writer *writer, const char *folder, sluice_error *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "tables/%llu/%s", (unsigned long long)writer->list->table, folder);
    return pf_sync_dir(st_graph_volume(writer->list->graph), path, err);
}

sluice_status st_list_write(st_list *list, const char *stem, st_list_ref **ret_pages, uint32_t *ret_count,
                            sluice_error *err)
{
    list_writer writer = {.list = list, .stem = stem};
    st_list_node *root = &list->root;
    PF_TRY(reshape(root, err));
    PF_TRY(gather(root, err));
    for (uint32_t i = 0; i < root->count; i++)
        PF_TRY(write_node(&writer, &root->children[i], err));
    if (writer.next_dead > 0)
        PF_TRY(sync_folder(&writer, "deletions", err));
    if (writer.next_page > 0)
        PF_TRY(sync_folder(&writer, "lists", err));
    st_list_ref *pages = calloc((size_t)root->count + 1, sizeof(*pages));
    if (!pages)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < root->count; i++)
        pages[i] = root->children[i].ref;
    *ret_pages = pages;
    *ret_count = root->count;
    return SLUICE_OK;
}
