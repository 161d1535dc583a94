/*
 * Pages of folded lists (list.h, docs/format.md "List page"): tables/<id>/lists/<file>, immutable, named with their
 * SHA-256 by the page or the table entry above.
 */
#include "platform/check.h"
#include "store/format/document.h"
#include "store/state/list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGED_MAX (256u << 20) /* bytes of a staged file that is read whole */

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a list page is damaged: %s", what);
}

void st_item_free(st_item *item)
{
    st_add_free(&item->add);
    free(item->dead);
    item->dead = NULL;
    item->dead_count = 0;
}

void st_list_node_free(st_list_node *node)
{
    /* Levels fall by one with each step down and are bounded where pages are read. */
    for (uint32_t i = 0; i < node->count && node->children; i++)
        st_list_node_free(&node->children[i]);
    for (uint32_t i = 0; i < node->count && node->items; i++)
        st_item_free(&node->items[i]);
    free(node->children);
    free(node->items);
    *node = (st_list_node){0};
}

/* ---- staged files ---- */

static void staged_path(uint64_t table, const char *file, char ret_path[160])
{
    (void)snprintf(ret_path, 160, "tables/%llu/lists/%s", (unsigned long long)table, file);
}

sluice_status st_list_file_read(pf_volume *volume, uint64_t table, const char *file, const pf_sha256 *digest,
                                pf_buffer *buffer, sluice_error *err)
{
    char path[160];
    sluice_error probe = {0};
    staged_path(table, file, path);
    sluice_status status = st_document_read(volume, path, STAGED_MAX, buffer, &probe);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "%s is missing", path);
    if (status != SLUICE_OK) {
        if (err)
            *err = probe;
        return status;
    }
    pf_sha256 found = pf_sha256_of(buffer->data, buffer->length);
    return pf_sha256_equal(&found, digest) ? SLUICE_OK : pf_fail(err, SLUICE_CORRUPT, "%s is damaged", path);
}

sluice_status st_list_file_write(pf_volume *volume, uint64_t table, const char *file, const pf_buffer *content,
                                 sluice_error *err)
{
    char path[160];
    pf_file *handle = NULL;
    staged_path(table, file, path);
    PF_TRY(pf_create(volume, path, &handle, err));
    sluice_status status = pf_write(handle, 0, content->data, content->length, err);
    if (status == SLUICE_OK)
        status = pf_sync(handle, err);
    sluice_status closed = pf_close(handle, status == SLUICE_OK ? err : NULL);
    return status != SLUICE_OK ? status : closed;
}

/* ---- writing ---- */

static void write_dead(st_json *json, const st_item *item)
{
    if (item->add.dead.present || item->dead_count == 0) {
        st_dead_write(json, "dead", &item->add.dead);
        return;
    }
    st_json_name(json, "dead");
    st_json_array(json);
    for (uint64_t i = 0; i < item->dead_count; i++)
        st_json_unsigned(json, item->dead[i]);
    st_json_array_end(json);
}

static void write_item(st_json *json, const st_item *item)
{
    st_json_object(json);
    st_fragment_info_write(json, &item->add.fragment);
    st_put_text(json, "ids", item->add.fragment.explicit_ids ? "column" : "bound");
    st_put_u64(json, "low", item->low);
    st_put_u64(json, "high", item->high);
    st_put_id(json, "commit", &item->add.commit);
    st_runs_write(json, item->add.runs, item->add.run_count);
    st_index_write(json, &item->add.index);
    write_dead(json, item);
    st_json_object_end(json);
}

sluice_status st_list_node_encode(uint64_t table, const st_list_node *node, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    for (uint32_t i = 0; i < node->count && node->level == 0; i++)
        if (node->items[i].add.fragment.attached)
            return pf_fail(err, SLUICE_INTERNAL, "an attached fragment in a folded list");
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_put_text(&json, "format", "sluice-list/1");
    st_put_u64(&json, "table", table);
    st_put_number(&json, "level", node->level);
    if (node->level == 0) {
        st_json_name(&json, "items");
        st_json_array(&json);
        for (uint32_t i = 0; i < node->count; i++)
            write_item(&json, &node->items[i]);
        st_json_array_end(&json);
    } else {
        st_list_ref *refs = calloc((size_t)node->count + 1, sizeof(*refs));
        if (!refs)
            return pf_fail_memory(err);
        for (uint32_t i = 0; i < node->count; i++)
            refs[i] = node->children[i].ref;
        st_list_refs_write(&json, "pages", refs, node->count);
        free(refs);
    }
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

/* ---- reading ---- */

static sluice_status read_dead(const cJSON *object, st_item *item, sluice_error *err)
{
    const cJSON *list = NULL, *position = NULL;
    void *dead = NULL;
    if (!cJSON_IsArray(st_json_field(object, "dead"))) {
        PF_TRY(st_dead_read(object, "dead", &item->add.dead, err));
        item->dead_loaded = !item->add.dead.present;
        return item->add.dead.rows <= item->add.fragment.rows ? SLUICE_OK : damaged("more rows deleted than are", err);
    }
    PF_TRY(st_take_list(object, "dead", sizeof(uint64_t), &list, &dead, err));
    item->dead = dead;
    item->dead_loaded = true;
    cJSON_ArrayForEach(position, list)
    {
        double value = cJSON_IsNumber(position) ? position->valuedouble : -1;
        if (!(value >= 0 && value < (double)item->add.fragment.rows))
            return damaged("a deleted position", err);
        item->dead[item->dead_count] = (uint64_t)value;
        if (item->dead_count > 0 && item->dead[item->dead_count] <= item->dead[item->dead_count - 1])
            return damaged("deleted positions do not ascend", err);
        item->dead_count++;
    }
    return item->dead_count > 0 ? SLUICE_OK : damaged("an empty list of deleted positions", err);
}

static sluice_status read_item(const cJSON *object, st_item *item, sluice_error *err)
{
    static const char *const forms[] = {"bound", "column"};
    uint32_t form = 0;
    PF_TRY(st_fragment_info_read(object, &item->add.fragment, err));
    PF_TRY(st_take_word(object, "ids", forms, 2, &form, err));
    item->add.fragment.explicit_ids = form == 1;
    PF_TRY(st_json_get_u64(object, "low", &item->low, err));
    PF_TRY(st_json_get_u64(object, "high", &item->high, err));
    if (item->low > item->high ||
        (!item->add.fragment.explicit_ids && item->high - item->low != item->add.fragment.rows - 1))
        return damaged("row ids", err);
    if (!item->add.fragment.explicit_ids)
        item->add.first_row = item->low;
    PF_TRY(st_json_get_id(object, "commit", &item->add.commit, err));
    PF_TRY(st_runs_read(object, &item->add.runs, &item->add.run_count, err));
    PF_TRY(st_index_read(object, &item->add.index, err));
    return read_dead(object, item, err);
}

static sluice_status read_items(const cJSON *document, st_list_node *node, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *items = NULL;
    PF_TRY(st_take_list(document, "items", sizeof(st_item), &list, &items, err));
    node->items = items;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_item(item, &node->items[node->count++], err));
    }
    return SLUICE_OK;
}

static sluice_status read_children(const cJSON *document, st_list_node *node, sluice_error *err)
{
    st_list_ref *refs = NULL;
    uint32_t count = 0;
    sluice_status status = st_list_refs_read(document, "pages", &refs, &count, err);
    if (status == SLUICE_OK) {
        node->children = calloc((size_t)count + 1, sizeof(*node->children));
        if (!node->children)
            status = pf_fail_memory(err);
    }
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        if (refs[i].level + 1 != node->level)
            status = damaged("a page of another level", err);
        node->children[i] = (st_list_node){.ref = refs[i], .level = refs[i].level};
        node->count++;
    }
    free(refs);
    return status;
}

typedef struct decoding {
    uint64_t table;
    st_list_node *node;
} decoding;

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    decoding *into = value;
    uint64_t table = 0;
    uint32_t level = 0;
    PF_TRY(st_json_check_format(document, "sluice-list/1", err));
    PF_TRY(st_json_get_u64(document, "table", &table, err));
    PF_TRY(st_take_small(document, "level", &level, err));
    if (table != into->table || level != into->node->level)
        return damaged("it is of another table or level", err);
    PF_TRY(level == 0 ? read_items(document, into->node, err) : read_children(document, into->node, err));
    into->node->capacity = into->node->count;
    return into->node->count > 0 ? SLUICE_OK : damaged("it is empty", err);
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    const decoding *from = value;
    return st_list_node_encode(from->table, from->node, buffer, err);
}

sluice_status st_list_node_decode(uint64_t table, const void *bytes, size_t length, st_list_node *node,
                                  sluice_error *err)
{
    decoding into = {table, node};
    return st_document_decode(bytes, length, read_document, write_document, &into, err);
}

/* The page is what the reference above says. */
static sluice_status check_ref(const st_list_node *node, sluice_error *err)
{
    uint64_t fragments = 0;
    bool within = true;
    for (uint32_t i = 0; i < node->count; i++) {
        uint64_t low = node->level == 0 ? node->items[i].low : node->children[i].ref.low;
        uint64_t high = node->level == 0 ? node->items[i].high : node->children[i].ref.high;
        within = within && low >= node->ref.low && high <= node->ref.high &&
                 pf_add_u64(fragments, node->level == 0 ? 1 : node->children[i].ref.fragments, &fragments);
    }
    return within && fragments == node->ref.fragments ? SLUICE_OK : damaged("it is not what its reference says", err);
}

sluice_status st_list_node_read(pf_volume *volume, uint64_t table, st_list_node *node, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = st_list_file_read(volume, table, node->ref.file, &node->ref.digest, &bytes, err);
    if (status == SLUICE_OK)
        status = st_list_node_decode(table, bytes.data, bytes.length, node, err);
    if (status == SLUICE_OK)
        status = check_ref(node, err);
    node->loaded = status == SLUICE_OK;
    pf_buffer_free(&bytes);
    return status;
}
