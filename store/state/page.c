/*
 * State pages (page.h, docs/format.md "Table entry").
 */
#include "store/state/page.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a state page is damaged: %s", what);
}

void st_table_entry_free(st_table_entry *entry)
{
    free(entry->name);
    free(entry->pages);
    free(entry->edits);
    *entry = (st_table_entry){0};
}

static void *copy_items(const void *items, size_t count, size_t size)
{
    void *copy = calloc(count ? count : 1, size);
    if (copy && count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

sluice_status st_table_entry_copy(const st_table_entry *from, st_table_entry *ret_to, sluice_error *err)
{
    *ret_to = *from;
    ret_to->name = strdup(from->name);
    ret_to->pages = copy_items(from->pages, from->page_count, sizeof(*from->pages));
    ret_to->edits = copy_items(from->edits, from->edit_count, sizeof(*from->edits));
    if (ret_to->name && ret_to->pages && ret_to->edits)
        return SLUICE_OK;
    st_table_entry_free(ret_to);
    return pf_fail_memory(err);
}

bool st_list_refs_equal(const st_list_ref *a, const st_list_ref *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].level != b[i].level || strcmp(a[i].file, b[i].file) != 0 ||
            !pf_sha256_equal(&a[i].digest, &b[i].digest))
            return false;
    return true;
}

bool st_edit_places_equal(const st_edit_place *a, const st_edit_place *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].incarnation != b[i].incarnation || a[i].generation != b[i].generation || a[i].index != b[i].index ||
            a[i].at != b[i].at)
            return false;
    return true;
}

/* ---- writing ---- */

void st_list_refs_write(st_json *json, const char *name, const st_list_ref *refs, uint32_t count)
{
    st_json_name(json, name);
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        st_json_object(json);
        st_put_text(json, "file", refs[i].file);
        st_put_sha256(json, "digest", &refs[i].digest);
        st_put_number(json, "level", refs[i].level);
        st_put_u64(json, "fragments", refs[i].fragments);
        st_put_u64(json, "low", refs[i].low);
        st_put_u64(json, "high", refs[i].high);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static void write_entry(st_json *json, const st_table_entry *entry)
{
    st_json_object(json);
    st_put_u64(json, "id", entry->id);
    st_put_text(json, "name", entry->name);
    st_put_text(json, "kind", entry->edge ? "edge" : "node");
    st_put_text(json, "state", entry->live ? "live" : "tombstoned");
    st_list_refs_write(json, "list", entry->pages, entry->page_count);
    st_json_name(json, "edits");
    st_json_array(json);
    for (uint32_t i = 0; i < entry->edit_count; i++) {
        st_json_object(json);
        st_put_u64(json, "inc", entry->edits[i].incarnation);
        st_put_u64(json, "gen", entry->edits[i].generation);
        st_put_number(json, "index", entry->edits[i].index);
        st_put_number(json, "at", entry->edits[i].at);
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_put_u64(json, "rows", entry->rows);
    st_put_u64(json, "bytes", entry->bytes);
    st_json_object_end(json);
}

static sluice_status encode_entry(const st_table_entry *entry, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    write_entry(&json, entry);
    return st_json_end(&json, false, err);
}

static const char page_head[] = "{\"format\":\"sluice-state/1\",\"entries\":[";
static const char page_tail[] = "]}\n";

sluice_status st_state_page_encode(const st_table_entry *entries, uint32_t count, pf_buffer *buffer,
                                   uint32_t *ret_taken, sluice_error *err)
{
    size_t start = buffer->length;
    uint32_t taken = 0;
    PF_ASSERT(count > 0);
    PF_TRY(pf_buffer_append_text(buffer, page_head, err));
    for (; taken < count; taken++) {
        size_t before = buffer->length;
        if (taken > 0)
            PF_TRY(pf_buffer_append_text(buffer, ",", err));
        PF_TRY(encode_entry(&entries[taken], buffer, err));
        if (taken > 0 && buffer->length - start + sizeof(page_tail) - 1 > ST_STATE_PAGE_MAX) {
            buffer->length = before;
            break;
        }
    }
    *ret_taken = taken;
    return pf_buffer_append_text(buffer, page_tail, err);
}

/* ---- reading ---- */

sluice_status st_list_refs_read(const cJSON *object, const char *name, st_list_ref **ret_refs, uint32_t *ret_count,
                                sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *refs = NULL;
    PF_TRY(st_take_list(object, name, sizeof(st_list_ref), &list, &refs, err));
    *ret_refs = refs;
    cJSON_ArrayForEach(item, list)
    {
        st_list_ref *ref = &(*ret_refs)[*ret_count];
        PF_TRY(st_take_file(item, "file", ref->file, sizeof(ref->file), err));
        PF_TRY(st_json_get_sha256(item, "digest", &ref->digest, err));
        PF_TRY(st_take_small(item, "level", &ref->level, err));
        PF_TRY(st_json_get_u64(item, "fragments", &ref->fragments, err));
        PF_TRY(st_json_get_u64(item, "low", &ref->low, err));
        PF_TRY(st_json_get_u64(item, "high", &ref->high, err));
        if (ref->level > ST_LIST_LEVEL_MAX || ref->fragments == 0 || ref->low > ref->high)
            return damaged("a reference to a list page", err);
        (*ret_count)++;
    }
    return SLUICE_OK;
}

static sluice_status read_edits(const cJSON *object, st_table_entry *entry, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *edits = NULL;
    PF_TRY(st_take_list(object, "edits", sizeof(st_edit_place), &list, &edits, err));
    entry->edits = edits;
    cJSON_ArrayForEach(item, list)
    {
        st_edit_place *place = &entry->edits[entry->edit_count];
        PF_TRY(st_json_get_u64(item, "inc", &place->incarnation, err));
        PF_TRY(st_json_get_u64(item, "gen", &place->generation, err));
        PF_TRY(st_take_small(item, "index", &place->index, err));
        PF_TRY(st_take_small(item, "at", &place->at, err));
        entry->edit_count++;
    }
    return SLUICE_OK;
}

static sluice_status read_entry(const cJSON *object, st_table_entry *entry, sluice_error *err)
{
    static const char *const kinds[] = {"node", "edge"}, *const states[] = {"tombstoned", "live"};
    const char *name = NULL;
    uint32_t kind = 0, state = 0;
    PF_TRY(st_json_get_u64(object, "id", &entry->id, err));
    PF_TRY(st_json_get_text(object, "name", &name, err));
    entry->name = strdup(name);
    if (!entry->name)
        return pf_fail_memory(err);
    PF_TRY(st_take_word(object, "kind", kinds, 2, &kind, err));
    PF_TRY(st_take_word(object, "state", states, 2, &state, err));
    entry->edge = kind == 1;
    entry->live = state == 1;
    PF_TRY(st_list_refs_read(object, "list", &entry->pages, &entry->page_count, err));
    PF_TRY(read_edits(object, entry, err));
    PF_TRY(st_json_get_u64(object, "rows", &entry->rows, err));
    PF_TRY(st_json_get_u64(object, "bytes", &entry->bytes, err));
    return entry->id >= ST_FIRST_TABLE ? SLUICE_OK : damaged("a table id", err);
}

typedef struct page { /* what is read, in the array that it is appended to */
    st_table_entry **entries;
    uint32_t *count;
    uint32_t first;
} page;

static sluice_status read_document(const cJSON *document, void *value, sluice_error *err)
{
    page *into = value;
    const cJSON *list = NULL, *item = NULL;
    size_t wanted;
    PF_TRY(st_json_check_format(document, "sluice-state/1", err));
    PF_TRY(st_json_get_array(document, "entries", &list, err));
    int count = cJSON_GetArraySize(list);
    if (count <= 0)
        return damaged("it is empty", err);
    if (!pf_mul_size((size_t)*into->count + (size_t)count, sizeof(st_table_entry), &wanted))
        return pf_fail_memory(err);
    st_table_entry *entries = realloc(*into->entries, wanted);
    if (!entries)
        return pf_fail_memory(err);
    *into->entries = entries;
    cJSON_ArrayForEach(item, list)
    {
        st_table_entry *entry = &entries[*into->count];
        *entry = (st_table_entry){0};
        (*into->count)++;
        PF_TRY(read_entry(item, entry, err));
        if (*into->count > 1 && entry->id <= entry[-1].id)
            return damaged("table ids do not ascend", err);
    }
    return SLUICE_OK;
}

static sluice_status write_document(const void *value, pf_buffer *buffer, sluice_error *err)
{
    const page *from = value;
    uint32_t taken = 0, count = *from->count - from->first;
    PF_TRY(st_state_page_encode(*from->entries + from->first, count, buffer, &taken, err));
    return taken == count ? SLUICE_OK : damaged("it is too long", err);
}

sluice_status st_state_page_decode(const void *bytes, size_t length, st_table_entry **entries, uint32_t *count,
                                   sluice_error *err)
{
    page into = {entries, count, *count};
    return st_document_decode(bytes, length, read_document, write_document, &into, err);
}
