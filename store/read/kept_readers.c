/*
 * Table readers that outlive their snapshot (reader.h): the handle keeps the last reader of a few tables, with the runs
 * that it has opened and the rows of records that it has hashed, for the next snapshot that reads the table.
 *
 * Fragments and runs never change, and edits of a generation neither. So a reader whose list was folded from the same
 * pages, and whose edits lead those of the entry now, is brought up to date by the edits behind them where these only
 * add; else the list is read anew, and what stands in both keeps what was opened. An answer is the same with none.
 *
 * What is kept is bounded: fragments of their own file are closed (they may be unpacked in memory), and a reader of
 * very many fragments, or of many hashed rows, is not kept. A kept run stays mapped when collection removes its file.
 */
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

#define READERS       4u    /* tables of a handle, by their number */
#define FRAGMENTS_MAX 1024u /* of a kept reader */
#define ENTRIES_MAX   65536u
#define WINDOW        256u /* how far off a fragment is sought in the other list */

typedef struct kept_reader {
    st_table_reader *reader; /* NULL: none; its schema is nobody's any more */
    uint64_t incarnation;
    pf_sha256 schema_identity;
    st_list_ref *pages;
    uint32_t page_count;
    st_edit_place *edits;
    uint32_t edit_count;
} kept_reader;

static void forget(kept_reader *kept)
{
    st_table_reader_free(kept->reader);
    free(kept->pages);
    free(kept->edits);
    *kept = (kept_reader){0};
}

static void release_readers(void *data)
{
    kept_reader *all = data;
    for (uint32_t i = 0; i < READERS; i++)
        forget(&all[i]);
    free(all);
}

static kept_reader *place_of(st_graph *graph, uint64_t table)
{
    st_kept *kept = st_graph_kept(graph, ST_KEPT_READERS);
    if (!kept->data) {
        kept->data = calloc(READERS, sizeof(kept_reader));
        kept->release = release_readers;
    }
    return kept->data ? (kept_reader *)kept->data + table % READERS : NULL;
}

/* ---- keeping ---- */

static bool is_small(const st_table_reader *reader)
{
    uint64_t entries = 0;
    if (reader->list.count > FRAGMENTS_MAX)
        return false;
    for (uint32_t i = 0; i < reader->list.count; i++)
        for (const st_opened_run *run = reader->opened[i].runs; run; run = run->next)
            entries += run->rebuilt_count;
    return entries <= ENTRIES_MAX;
}

static void strip(st_table_reader *reader)
{
    st_table_reader_free_initials(reader);
    for (uint32_t i = 0; i < reader->list.count; i++) {
        if (reader->list.fragments[i].fragment.attached)
            continue;
        st_fragment_close(reader->opened[i].fragment);
        reader->opened[i].fragment = NULL;
    }
    reader->schema = NULL;
    reader->type = NULL;
    reader->probed = 0;
}

void st_reader_keep(st_snapshot *snapshot, st_table_reader *reader)
{
    const st_view *view = snapshot->view;
    const st_table_entry *entry = snapshot->recast ? NULL : st_view_table(view, reader->table);
    kept_reader *kept = entry && is_small(reader) ? place_of(snapshot->graph, reader->table) : NULL;
    kept_reader now = {.incarnation = view->incarnation, .schema_identity = view->schema_identity};
    if (kept) {
        now.pages = malloc(((size_t)entry->page_count + 1) * sizeof(*now.pages));
        now.edits = malloc(((size_t)entry->edit_count + 1) * sizeof(*now.edits));
    }
    if (!now.pages || !now.edits) {
        free(now.pages);
        free(now.edits);
        st_table_reader_free(reader);
        return;
    }
    if (entry->page_count > 0)
        memcpy(now.pages, entry->pages, entry->page_count * sizeof(*now.pages));
    if (entry->edit_count > 0)
        memcpy(now.edits, entry->edits, entry->edit_count * sizeof(*now.edits));
    now.page_count = entry->page_count;
    now.edit_count = entry->edit_count;
    now.reader = reader;
    strip(reader);
    forget(kept);
    *kept = now;
}

/* ---- using ---- */

static bool same_pages(const kept_reader *kept, const st_table_entry *entry)
{
    if (kept->page_count != entry->page_count)
        return false;
    for (uint32_t i = 0; i < kept->page_count; i++)
        if (!pf_sha256_equal(&kept->pages[i].digest, &entry->pages[i].digest) ||
            strcmp(kept->pages[i].file, entry->pages[i].file) != 0)
            return false;
    return true;
}

static bool leads(const kept_reader *kept, const st_table_entry *entry)
{
    if (kept->edit_count > entry->edit_count)
        return false;
    for (uint32_t i = 0; i < kept->edit_count; i++) {
        const st_edit_place *a = &kept->edits[i], *b = &entry->edits[i];
        if (a->incarnation != b->incarnation || a->generation != b->generation || a->index != b->index ||
            a->at != b->at)
            return false;
    }
    return true;
}

/* Brings the kept reader's list up to the entry. False: it cannot be, and may have been changed. */
static bool extend(st_graph *graph, kept_reader *kept, const st_table_entry *entry)
{
    st_table_reader *reader = kept->reader;
    uint32_t before = reader->list.count;
    bool extended = false;
    if (!same_pages(kept, entry) || !leads(kept, entry))
        return false;
    if (st_table_extend(graph, entry->id, entry->edits + kept->edit_count, entry->edit_count - kept->edit_count,
                        &reader->list, &extended, NULL) != SLUICE_OK)
        extended = false;
    if (reader->list.count == before)
        return extended;
    st_opened *opened = realloc(reader->opened, ((size_t)reader->list.count + 1) * sizeof(*opened));
    if (!opened) { /* nothing is opened in what was added */
        st_table_list_cut(&reader->list, before);
        return false;
    }
    memset(opened + before, 0, ((size_t)reader->list.count + 1 - before) * sizeof(*opened));
    reader->opened = opened;
    return extended;
}

st_table_reader *st_reader_kept(st_snapshot *snapshot, uint64_t table, const st_type_def *type)
{
    const st_view *view = snapshot->view;
    const st_table_entry *entry = st_view_table(view, table);
    kept_reader *kept = entry && !snapshot->recast ? place_of(snapshot->graph, table) : NULL;
    if (!kept || !kept->reader || kept->reader->table != table || kept->incarnation != view->incarnation ||
        !pf_sha256_equal(&kept->schema_identity, &view->schema_identity))
        return NULL;
    if (!extend(snapshot->graph, kept, entry)) {
        kept->edit_count = UINT32_MAX; /* it leads nothing any more; what it has opened may still be of use */
        return NULL;
    }
    st_table_reader *reader = kept->reader;
    kept->reader = NULL;
    forget(kept);
    reader->schema = view->schema;
    reader->type = type;
    return reader;
}

static bool same_fragment(const st_edit_add *a, const st_edit_add *b)
{
    return a->fragment.attached == b->fragment.attached && strcmp(a->fragment.name, b->fragment.name) == 0 &&
           (!a->fragment.attached || pf_id_equal(&a->commit, &b->commit)) && a->fragment.rows == b->fragment.rows;
}

void st_reader_inherit(st_snapshot *snapshot, st_table_reader *reader)
{
    kept_reader *kept = snapshot->recast ? NULL : place_of(snapshot->graph, reader->table);
    st_table_reader *old = kept ? kept->reader : NULL;
    if (!old || old->table != reader->table ||
        !pf_sha256_equal(&kept->schema_identity, &snapshot->view->schema_identity))
        return;
    uint32_t at = 0;
    for (uint32_t i = 0; i < reader->list.count && at < old->list.count; i++) {
        uint32_t k = at, end = old->list.count - at > WINDOW ? at + WINDOW : old->list.count;
        while (k < end && !same_fragment(&reader->list.fragments[i], &old->list.fragments[k]))
            k++;
        if (k == end)
            continue;
        reader->opened[i] = old->opened[k];
        old->opened[k] = (st_opened){0};
        at = k + 1;
    }
    forget(kept);
}
