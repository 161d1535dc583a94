/*
 * What records name below tables/ (state.h, st_record_objects): for collection, which keeps what any of them names.
 */
#include "platform/check.h"
#include "store/state/gone.h"
#include "store/state/list.h"
#include "store/state/manifest.h"
#include "store/state/page.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct object_walk {
    st_graph *graph;
    st_object_fn *each;
    void *context;
    bool standing; /* of state pages only what the state after the record stands on */
} object_walk;

static sluice_status name_list(const object_walk *walk, uint64_t table, const char *file, sluice_error *err)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "tables/%llu/lists/%s", (unsigned long long)table, file);
    return walk->each(walk->context, path, err);
}

static sluice_status walk_commits(const object_walk *walk, const st_record *record, const st_generation *generation,
                                  sluice_error *err)
{
    for (uint32_t c = 0; c < generation->commit_count; c++) {
        const st_commit *commit = &generation->commits[c];
        for (uint32_t i = 0; i < commit->edit_count; i++) {
            st_edit edit = {0};
            if (!commit->edits[i].attached)
                PF_TRY(name_list(walk, commit->edits[i].table, commit->edits[i].file, err));
            PF_TRY(st_commit_edit_read(walk->graph, record, &commit->edits[i], &edit, err));
            sluice_status status = st_edit_objects(&edit, walk->each, walk->context, err);
            st_edit_free(&edit);
            PF_TRY(status);
        }
    }
    return SLUICE_OK;
}

/* Of a fragment that has left the list its deleted rows only. */
static sluice_status walk_add(const object_walk *walk, uint64_t table, st_edit_add *add, const st_gone *gone,
                              sluice_error *err)
{
    st_edit_add left = {.fragment.attached = true, .dead = add->dead};
    st_edit listed = {.table = table, .adds = st_gone_has(gone, add) ? &left : add, .add_count = 1};
    return st_edit_objects(&listed, walk->each, walk->context, err);
}

/* The page itself, and what it lists. */
static sluice_status walk_node(const object_walk *walk, uint64_t table, st_list_node *node, const st_gone *gone,
                               sluice_error *err)
{
    PF_TRY(name_list(walk, table, node->ref.file, err));
    PF_TRY(st_list_node_read(st_graph_volume(walk->graph), table, node, err));
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->level > 0) {
            PF_TRY(walk_node(walk, table, &node->children[i], gone, err));
            continue;
        }
        PF_TRY(walk_add(walk, table, &node->items[i].add, gone, err));
    }
    return SLUICE_OK;
}

static sluice_status walk_list(const object_walk *walk, const st_table_entry *entry, const st_gone *gone,
                               sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < entry->page_count && status == SLUICE_OK; i++) {
        st_list_node node = {.ref = entry->pages[i], .level = entry->pages[i].level};
        status = walk_node(walk, entry->id, &node, gone, err);
        st_list_node_free(&node);
    }
    return status;
}

static sluice_status find_gone(const object_walk *walk, const st_table_entry *entry, st_gone *ret_gone,
                               sluice_error *err)
{
    st_edit_reader reader = {.graph = walk->graph};
    sluice_status status = st_gone_find(&reader, entry, ret_gone, err);
    st_edit_reader_close(&reader);
    return status;
}

static sluice_status walk_page(const object_walk *walk, const void *bytes, size_t length, sluice_error *err)
{
    st_table_entry *entries = NULL;
    uint32_t count = 0;
    sluice_status status = st_state_page_decode(bytes, length, &entries, &count, err);
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        st_gone gone = {0};
        if (walk->standing)
            status = find_gone(walk, &entries[i], &gone, err);
        if (status == SLUICE_OK)
            status = walk_list(walk, &entries[i], &gone, err);
        st_gone_free(&gone);
    }
    for (uint32_t i = 0; i < count; i++)
        st_table_entry_free(&entries[i]);
    free(entries);
    return status;
}

static sluice_status walk_pages(const object_walk *walk, const st_record *record, const st_attachments *attachments,
                                const uint32_t *places, uint32_t count, sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const void *bytes = NULL;
        size_t length = 0;
        PF_TRY(st_attachment_get(record, attachments, places[i], &bytes, &length, err));
        PF_TRY(walk_page(walk, bytes, length, err));
    }
    return SLUICE_OK;
}

static sluice_status walk_generation(const object_walk *walk, const st_record *record, sluice_error *err)
{
    st_generation generation = {0};
    st_attachments attachments = {0};
    PF_TRY(st_manifest_decode(record, &generation, &attachments, err));
    uint32_t count = 0, *places = calloc((size_t)generation.page_count + 1, sizeof(*places));
    sluice_status status = places ? walk_commits(walk, record, &generation, err) : pf_fail_memory(err);
    for (uint32_t i = 0; i < generation.page_count && status == SLUICE_OK; i++)
        if (generation.pages[i].generation == generation.number &&
            generation.pages[i].incarnation == generation.incarnation)
            places[count++] = generation.pages[i].attachment;
    if (status == SLUICE_OK)
        status = walk_pages(walk, record, &attachments, places, count, err);
    free(places);
    st_generation_free(&generation);
    st_attachments_free(&attachments);
    return status;
}

static sluice_status walk_edit(const object_walk *walk, const st_edit *edit, const st_gone *gone, sluice_error *err)
{
    st_edit rest = *edit;
    rest.add_count = 0;
    for (uint32_t i = 0; i < edit->add_count; i++)
        PF_TRY(walk_add(walk, edit->table, &edit->adds[i], gone, err));
    return st_edit_objects(&rest, walk->each, walk->context, err);
}

static sluice_status walk_standing(const object_walk *walk, st_edit_reader *reader, const st_table_entry *entry,
                                   const st_gone *gone, st_place_fn *place, sluice_error *err)
{
    PF_TRY(walk_list(walk, entry, gone, err));
    for (uint32_t i = 0; i < entry->edit_count; i++) {
        st_bound_edit bound = {0};
        const st_edit_place *at = &entry->edits[i];
        PF_TRY(place(walk->context, at->incarnation, at->generation, err));
        PF_TRY(st_edit_reader_read(reader, at, entry->id, &bound, err));
        sluice_status status =
            reader->named->attached ? SLUICE_OK : name_list(walk, reader->named->table, reader->named->file, err);
        if (status == SLUICE_OK)
            status = walk_edit(walk, &bound.edit, gone, err);
        st_edit_free(&bound.edit);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

static sluice_status walk_entry(const object_walk *walk, st_edit_reader *reader, const st_table_entry *entry,
                                st_place_fn *place, sluice_error *err)
{
    st_gone gone = {0};
    PF_TRY(st_gone_find(reader, entry, &gone, err));
    sluice_status status = walk_standing(walk, reader, entry, &gone, place, err);
    st_gone_free(&gone);
    return status;
}

sluice_status st_view_objects(st_graph *graph, const st_view *view, st_object_fn *each, st_place_fn *place,
                              void *context, sluice_error *err)
{
    const object_walk walk = {graph, each, context, true};
    st_edit_reader reader = {.graph = graph};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < view->table_count && status == SLUICE_OK; i++)
        status = walk_entry(&walk, &reader, &view->tables[i], place, err);
    st_edit_reader_close(&reader);
    return status;
}

sluice_status st_record_objects(st_graph *graph, const st_record *record, bool standing, st_object_fn *each,
                                void *context, sluice_error *err)
{
    const object_walk walk = {graph, each, context, standing};
    st_opening opening = {0};
    st_attachments attachments = {0};
    if (record->kind == ST_RECORD_GENERATION)
        return walk_generation(&walk, record, err);
    PF_TRY(st_opening_decode(record, &opening, &attachments, err));
    sluice_status status = walk_pages(&walk, record, &attachments, opening.places, opening.page_count, err);
    st_opening_free(&opening);
    st_attachments_free(&attachments);
    return status;
}
