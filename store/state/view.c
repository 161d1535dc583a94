/*
 * Views (state.h): the state of a branch at one place, from the record of its generation (or the opening record that
 * continues it), the state pages that this names, and the schema.
 *
 * The state between two commits of one generation is that of the generation before, with the edits of the first commits
 * applied (D-1). Pages are sought where they were written; where that segment is gone, in the opening record of the
 * active one.
 */
#include "platform/check.h"
#include "store/state/apply.h"
#include "store/state/commit_edit.h"
#include "store/state/head.h"
#include "store/state/manifest.h"
#include "store/state/page.h"
#include <stdlib.h>
#include <string.h>

void st_view_free(st_view *view)
{
    if (!view)
        return;
    if (view->shares > 0) {
        view->shares--;
        return;
    }
    for (uint32_t i = 0; i < view->table_count; i++)
        st_table_entry_free(&view->tables[i]);
    free(view->tables);
    free(view->pages);
    free(view->skips);
    st_schema_free(view->schema);
    free(view);
}

const st_table_entry *st_view_table(const st_view *view, uint64_t table)
{
    st_entries entries = {.items = view->tables, .count = view->table_count};
    int64_t at = st_entries_find(&entries, table);
    return at < 0 ? NULL : &view->tables[at];
}

static sluice_status not_retained(uint64_t generation, sluice_error *err)
{
    return pf_fail(err, SLUICE_NOT_FOUND, "generation %llu is not retained", (unsigned long long)generation);
}

/* For a call whose failure may turn out to be none: hands its error on once it is one. */
static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

/* ---- pages ---- */

/* Where pages are read from: the last record stays at hand, since neighbours often share one. */
typedef struct page_source {
    st_graph *graph;
    st_log *log;
    const st_edit_record *read; /* NULL: none */
    st_edit_record own;         /* it is here, or kept with the graph */
    uint64_t state; /* the generation whose state is read: its pages lie in records of its segment, in that one's
                     * opening record, or in older records */
    bool behind;    /* its record is gone: the segment that continues it */
    bool has_opening;
    st_record opening_record;
    st_opening opening;
    st_attachments opening_attachments;
} page_source;

static void source_forget(page_source *source)
{
    st_record_forget(&source->own);
    source->read = NULL;
}

static void source_forget_opening(page_source *source)
{
    st_record_free(&source->opening_record);
    st_opening_free(&source->opening);
    st_attachments_free(&source->opening_attachments);
    source->has_opening = false;
}

static void source_free(page_source *source)
{
    source_forget(source);
    source_forget_opening(source);
}

static sluice_status source_open_opening(page_source *source, sluice_error *err)
{
    if (source->has_opening)
        return SLUICE_OK;
    PF_TRY(st_log_read_opening_of(source->log, source->state, source->behind, &source->opening_record, err));
    PF_TRY(st_opening_decode(&source->opening_record, &source->opening, &source->opening_attachments, err));
    source->has_opening = true;
    return SLUICE_OK;
}

/* Reads the record of a generation of some branch into the source. */
static sluice_status source_open(page_source *source, uint64_t incarnation, uint64_t generation, sluice_error *err)
{
    st_log *log = source->log;
    if (source->read && source->read->incarnation == incarnation && source->read->number == generation)
        return SLUICE_OK;
    source_forget(source);
    if (incarnation != st_log_incarnation(log))
        PF_TRY(st_graph_log(source->graph, incarnation, &log, err));
    return st_record_fetch(source->graph, log, generation, &source->own, &source->read, err);
}

static bool same_address(const st_state_page *a, const st_state_page *b)
{
    return a->incarnation == b->incarnation && a->generation == b->generation && a->attachment == b->attachment;
}

/* The bytes of a page in the opening record. */
static sluice_status find_in_opening(page_source *source, st_state_page *page, const void **ret_bytes,
                                     size_t *ret_length, sluice_error *err)
{
    PF_TRY(source_open_opening(source, err));
    for (uint32_t i = 0; i < source->opening.page_count; i++) {
        if (!same_address(&source->opening.pages[i], page))
            continue;
        page->segment = 0; /* the next generation will attach it again */
        return st_attachment_get(&source->opening_record, &source->opening_attachments, source->opening.places[i],
                                 ret_bytes, ret_length, err);
    }
    return not_retained(page->generation, err);
}

static sluice_status read_page(page_source *source, st_state_page *page, bool opening_first, st_entries *entries,
                               sluice_error *err)
{
    const void *bytes = NULL;
    size_t length = 0;
    uint32_t before = entries->count;
    sluice_error probe = {.code = SLUICE_NOT_FOUND};
    if (!opening_first && source_open(source, page->incarnation, page->generation, &probe) == SLUICE_OK) {
        page->segment = source->read->record.segment;
        PF_TRY(st_attachment_get(&source->read->record, &source->read->attachments, page->attachment, &bytes, &length,
                                 err));
    } else if (probe.code == SLUICE_NOT_FOUND) {
        PF_TRY(find_in_opening(source, page, &bytes, &length, err));
    } else {
        return hand_on(&probe, err);
    }
    pf_sha256 digest = pf_sha256_of(bytes, length);
    if (!pf_sha256_equal(&digest, &page->digest))
        return pf_fail(err, SLUICE_CORRUPT, "a state page of generation %llu has another digest",
                       (unsigned long long)page->generation);
    PF_TRY(st_state_page_decode(bytes, length, &entries->items, &entries->count, err));
    if (entries->count - before != page->entries)
        return pf_fail(err, SLUICE_CORRUPT, "a state page of generation %llu has another number of entries",
                       (unsigned long long)page->generation);
    return SLUICE_OK;
}

/* Reads view->pages into view->tables. */
static sluice_status read_pages(page_source *source, st_view *view, bool opening_first, sluice_error *err)
{
    st_entries entries = {0};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < view->page_count && status == SLUICE_OK; i++)
        status = read_page(source, &view->pages[i], opening_first, &entries, err);
    view->tables = entries.items; /* also on failure: freed with the view */
    view->table_count = entries.count;
    return status;
}

/* ---- the state after a whole generation ---- */

static sluice_status take_generation(st_view *view, const st_generation *generation, const st_record *record,
                                     sluice_error *err)
{
    view->pages = calloc((size_t)generation->page_count + 1, sizeof(*view->pages));
    view->skips = calloc((size_t)generation->skip_count + 1, sizeof(*view->skips));
    if (!view->pages || !view->skips)
        return pf_fail_memory(err);
    memcpy(view->pages, generation->pages, generation->page_count * sizeof(*view->pages));
    memcpy(view->skips, generation->skips, generation->skip_count * sizeof(*view->skips));
    view->generation = generation->number;
    view->index = generation->commit_count > 0 ? generation->commit_count - 1 : 0;
    view->digest = record->own;
    view->schema_identity = generation->schema_identity;
    view->head = generation->head;
    view->head_time_us = generation->head_time_us;
    view->row_block = generation->row_block;
    view->next_row = generation->next_row;
    view->page_count = generation->page_count;
    view->skip_count = generation->skip_count;
    view->merge = st_generation_merges(generation) ? generation->number : generation->merge;
    return SLUICE_OK;
}

static void take_opening(st_view *view, st_opening *opening, const st_record *record)
{
    view->generation = opening->number;
    view->index = opening->index;
    view->digest = record->parent;
    view->schema_identity = opening->schema_identity;
    view->head = opening->head;
    view->head_time_us = opening->head_time_us;
    view->row_block = opening->row_block;
    view->next_row = opening->next_row;
    view->page_count = opening->page_count;
    view->skips = opening->skips;
    view->skip_count = opening->skip_count;
    view->merge = opening->merge;
    opening->skips = NULL;
}

static sluice_status load_from_opening(page_source *source, st_view *view, uint64_t number, sluice_error *err)
{
    source->behind = true;
    PF_TRY(source_open_opening(source, err));
    if (source->opening.number != number || number == 0)
        return not_retained(number, err);
    view->pages = calloc((size_t)source->opening.page_count + 1, sizeof(*view->pages));
    if (!view->pages)
        return pf_fail_memory(err);
    memcpy(view->pages, source->opening.pages, source->opening.page_count * sizeof(*view->pages));
    take_opening(view, &source->opening, &source->opening_record);
    return read_pages(source, view, true, err);
}

/* Fills everything but the schema. */
static sluice_status load_state(page_source *source, st_view *view, uint64_t number, sluice_error *err)
{
    view->incarnation = st_log_incarnation(source->log);
    source_forget(source);
    source_forget_opening(source);
    source->state = number;
    source->behind = false;
    sluice_error probe = {0};
    sluice_status status = st_record_fetch(source->graph, source->log, number, &source->own, &source->read, &probe);
    if (status == SLUICE_NOT_FOUND)
        return load_from_opening(source, view, number, err);
    if (status != SLUICE_OK)
        return hand_on(&probe, err);
    if (source->read->generation.incarnation != view->incarnation)
        return pf_fail(err, SLUICE_CORRUPT, "generation %llu is of another branch", (unsigned long long)number);
    PF_TRY(take_generation(view, &source->read->generation, &source->read->record, err));
    return read_pages(source, view, false, err);
}

/* ---- the state between two commits of a generation ---- */

static sluice_status apply_commit(st_graph *graph, const st_record *record, const st_generation *generation,
                                  uint32_t index, const st_schema *schema, st_entries *entries, sluice_error *err)
{
    const st_commit *commit = &generation->commits[index];
    for (uint32_t at = 0; at < commit->edit_count; at++) {
        st_edit edit = {0};
        st_edit_place place = {generation->incarnation, generation->number, index, at};
        uint32_t changed;
        bool made;
        PF_TRY(st_commit_edit_read(graph, record, &commit->edits[at], &edit, err));
        sluice_status status = st_entries_apply(entries, schema, &edit, &place, &changed, &made, err);
        st_edit_free(&edit);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

/* Turns the state after the generation before into the state after commits 0 .. index of this one. */
static sluice_status advance(st_graph *graph, const st_record *record, const st_generation *generation, uint32_t index,
                             st_view *view, sluice_error *err)
{
    const st_commit *commit = &generation->commits[index];
    st_entries entries = {.items = view->tables, .count = view->table_count};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i <= index && status == SLUICE_OK; i++)
        status = apply_commit(graph, record, generation, i, view->schema, &entries, err);
    view->tables = entries.items;
    view->table_count = entries.count;
    PF_TRY(status);
    view->generation = generation->number;
    view->index = index;
    view->digest = record->own;
    view->head = commit->id;
    view->head_time_us = commit->time_us;
    view->row_block = generation->row_block;
    view->next_row = generation->next_row;
    free(view->pages);
    view->pages = NULL;
    view->page_count = 0;
    free(view->skips);
    view->skips = calloc((size_t)generation->skip_count + 1, sizeof(*view->skips));
    if (!view->skips)
        return pf_fail_memory(err);
    memcpy(view->skips, generation->skips, generation->skip_count * sizeof(*view->skips));
    view->skip_count = generation->skip_count;
    view->merge = generation->merge;
    for (uint32_t i = 0; i <= index; i++)
        if (generation->commits[i].merged_count > 0)
            view->merge = generation->number;
    return SLUICE_OK;
}

static sluice_status load_between(st_graph *graph, page_source *source, const st_record *record,
                                  const st_generation *generation, uint32_t index, st_view *view, sluice_error *err)
{
    PF_TRY(load_state(source, view, generation->number - 1, err));
    view->schema_identity = generation->schema_identity;
    PF_TRY(st_graph_fetch_schema(graph, &view->schema_identity, &view->schema, err));
    return advance(graph, record, generation, index, view, err);
}

static sluice_status new_view(st_view **ret_view, sluice_error *err)
{
    *ret_view = calloc(1, sizeof(**ret_view));
    return *ret_view ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status st_view_load(st_graph *graph, st_log *log, bool refresh, st_view **ret_view, sluice_error *err)
{
    page_source source = {.graph = graph, .log = log};
    st_view *view = NULL;
    sluice_status status;
    if (refresh)
        PF_TRY(st_log_refresh(log, err));
    *ret_view = st_head_kept(graph, log);
    if (*ret_view)
        return SLUICE_OK;
    PF_TRY(new_view(&view, err));
    PF_GOTO(status, done, load_state(&source, view, st_log_end(log).number, err));
    PF_GOTO(status, done, st_graph_fetch_schema(graph, &view->schema_identity, &view->schema, err));
    if (!st_graph_has_substitute(graph))
        st_head_keep(graph, view);
    *ret_view = view;
    view = NULL;
done:
    source_free(&source);
    st_view_free(view);
    return status;
}

/* The place in this log only; NOT_FOUND when its generation is not (any more) in it. */
static sluice_status load_here(st_graph *graph, st_log *log, uint64_t number, uint32_t index, st_view *view,
                               sluice_error *err)
{
    page_source source = {.graph = graph, .log = log};
    st_record record = {0};
    st_generation generation = {0};
    sluice_error probe = {0};
    sluice_status status = st_log_read(log, number, &record, &probe);
    bool between = false, here = status == SLUICE_OK;
    if (here)
        PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    else if (status != SLUICE_NOT_FOUND)
        return hand_on(&probe, err);
    if (here && index != ST_INDEX_LAST) {
        if (index > 0 && index >= generation.commit_count) {
            status = pf_fail(err, SLUICE_NOT_FOUND, "generation %llu has no commit %u", (unsigned long long)number,
                             (unsigned)index);
            goto done;
        }
        between = index + 1 < generation.commit_count;
    }
    if (between) {
        status = load_between(graph, &source, &record, &generation, index, view, err);
        goto done;
    }
    PF_GOTO(status, done, load_state(&source, view, number, err));
    if (index != ST_INDEX_LAST && view->index != index) {
        status = not_retained(number, err);
        goto done;
    }
    status = st_graph_fetch_schema(graph, &view->schema_identity, &view->schema, err);
done:
    source_free(&source);
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

sluice_status st_view_load_kept(st_graph *graph, st_log *log, uint64_t generation, st_view **ret_view,
                                sluice_error *err)
{
    st_view *view = NULL;
    PF_TRY(new_view(&view, err));
    sluice_status status = load_here(graph, log, generation, ST_INDEX_LAST, view, err);
    if (status == SLUICE_OK)
        *ret_view = view;
    else
        st_view_free(view);
    return status;
}

/* Collection may have let go of it, though its record be there. The newest state stays. */
static sluice_status check_collected(st_graph *graph, const st_log *log, uint64_t generation, sluice_error *err)
{
    bool collected = false;
    if (generation == st_log_end(log).number || generation < st_log_first(log)) /* stands in a parent's log */
        return SLUICE_OK;
    PF_TRY(st_graph_is_collected(graph, st_log_incarnation(log), generation, &collected, err));
    return collected ? st_fail_collected(st_log_incarnation(log), generation, err) : SLUICE_OK;
}

sluice_status st_view_load_at(st_graph *graph, st_log *log, uint64_t generation, uint32_t index, st_view **ret_view,
                              sluice_error *err)
{
    if (generation > st_log_end(log).number) {
        pf_fail(err, SLUICE_NOT_FOUND, "there is no generation %llu yet", (unsigned long long)generation);
        pf_hint(err, "`sluice log GRAPH` lists the commits");
        return SLUICE_NOT_FOUND;
    }
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        st_view *view = NULL;
        st_opening opening = {0};
        sluice_error probe = {0};
        PF_TRY(check_collected(graph, log, generation, err));
        PF_TRY(new_view(&view, err));
        if (load_here(graph, log, generation, index, view, &probe) == SLUICE_OK) {
            *ret_view = view;
            return SLUICE_OK;
        }
        st_view_free(view);
        PF_TRY(check_collected(graph, log, generation, err)); /* while it was read */
        if (probe.code != SLUICE_NOT_FOUND)
            return hand_on(&probe, err);
        PF_TRY(st_opening_read(log, &opening, NULL, err));
        st_fork fork = opening.fork;
        st_opening_free(&opening);
        bool beyond = generation == fork.generation && index != ST_INDEX_LAST && index > fork.index;
        if (fork.incarnation == 0 || generation > fork.generation || beyond)
            return hand_on(&probe, err);
        if (generation == fork.generation && index == ST_INDEX_LAST)
            index = fork.index;
        PF_TRY(st_graph_log(graph, fork.incarnation, &log, err));
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}
