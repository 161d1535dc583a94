/*
 * Building a generation (state.h): deltas become commits, edits get their ids, table entries their new state, pages
 * their places. Runs in G under the publish lock, so it reads nothing but what it is given, a new schema, and the few
 * edits that stand behind a fold that merged.
 *
 * Slots bound here and nowhere else (OW-035): number, parents, index, times, first row ids, totals, pages, skip
 * pointers.
 */
#include "store/state/build.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "store/state/apply.h"
#include "store/state/commit_edit.h"
#include "store/state/fold.h"
#include "store/state/head.h"
#include "store/state/manifest_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct generation_build {
    const st_view *head; /* NULL: the first generation */
    st_generation generation;
    st_attachments attachments;
    pf_buffer *bytes;
    pf_buffer scratch;
    st_entries entries;
    st_schema *new_schema; /* NULL: the head's */
    uint64_t *changed;     /* table ids whose entry is another now, in any order, with repetitions */
    uint32_t changed_count, changed_capacity;
    uint32_t page_capacity;
} generation_build;

static void build_free(generation_build *build)
{
    st_generation_free(&build->generation);
    st_attachments_free(&build->attachments);
    pf_buffer_free(&build->scratch);
    st_entries_free(&build->entries);
    st_schema_free(build->new_schema);
    free(build->changed);
}

static sluice_status note_changed(generation_build *build, uint64_t table, sluice_error *err)
{
    if (build->changed_count == build->changed_capacity) {
        uint32_t capacity = build->changed_capacity ? build->changed_capacity * 2 : 16;
        uint64_t *changed = realloc(build->changed, capacity * sizeof(*changed));
        if (!changed)
            return pf_fail_memory(err);
        build->changed = changed;
        build->changed_capacity = capacity;
    }
    build->changed[build->changed_count++] = table;
    return SLUICE_OK;
}

static sluice_status attach_scratch(generation_build *build, uint32_t *ret_number, sluice_error *err)
{
    return st_attach(&build->attachments, build->bytes, build->scratch.data, build->scratch.length, ret_number, err);
}

/* An attached edit, and right behind it its attached fragments, in its order. */
static sluice_status attach_edit(generation_build *build, const st_edit *edit, uint32_t *ret_number, sluice_error *err)
{
    uint32_t number;
    build->scratch.length = 0;
    PF_TRY(st_edit_encode(edit, &build->scratch, err));
    PF_TRY(attach_scratch(build, ret_number, err));
    for (uint32_t i = 0; i < edit->add_count; i++) {
        const st_fragment_info *fragment = &edit->adds[i].fragment;
        if (!fragment->attached)
            continue;
        if (!fragment->content)
            return pf_fail(err, SLUICE_INTERNAL, "an attached fragment without its bytes");
        PF_TRY(st_attach(&build->attachments, build->bytes, fragment->content, (size_t)fragment->bytes, &number, err));
    }
    return SLUICE_OK;
}

/* ---- commits ---- */

static sluice_status bind_rows(generation_build *build, const st_edit *edit, st_commit_edit *ret, sluice_error *err)
{
    uint64_t rows = 0;
    if (!st_edit_rows_to_number(edit, &rows) || !st_edit_added(edit, &ret->rows, &ret->bytes))
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "an edit of too many rows");
    if (rows > 0) {
        ret->first_row = build->generation.next_row;
        build->generation.next_row += rows; /* st_generation_build saw that the block holds all */
    }
    return SLUICE_OK;
}

static sluice_status add_edit(generation_build *build, const struct st_delta_edit *from, uint32_t index, uint32_t at,
                              st_commit_edit *ret, sluice_error *err)
{
    st_edit_place place = {build->generation.incarnation, build->generation.number, index, at};
    uint32_t changed;
    bool made;
    *ret = (st_commit_edit){.table = from->edit.table, .attached = !from->staged, .digest = from->digest};
    if (from->staged)
        memcpy(ret->file, from->file, sizeof(ret->file));
    else
        PF_TRY(attach_edit(build, &from->edit, &ret->attachment, err));
    PF_TRY(bind_rows(build, &from->edit, ret, err));
    PF_TRY(st_entries_apply(&build->entries, build->new_schema ? build->new_schema : build->head->schema, &from->edit,
                            &place, &changed, &made, err));
    return note_changed(build, from->edit.table, err);
}

static sluice_status copy_commit(const st_delta *delta, st_commit *ret, sluice_error *err)
{
    *ret = delta->commit;
    ret->message = NULL;
    ret->edit_count = 0;
    ret->edits = calloc((size_t)delta->edit_count + 1, sizeof(*ret->edits));
    ret->merged = calloc((size_t)delta->commit.merged_count + 1, sizeof(*ret->merged));
    if (!ret->edits || !ret->merged)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < delta->commit.merged_count; i++)
        ret->merged[i] = delta->commit.merged[i];
    if (!delta->commit.message)
        return SLUICE_OK;
    if (strlen(delta->commit.message) > ST_MESSAGE_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a commit's message has more than %d bytes", ST_MESSAGE_MAX);
    ret->message = strdup(delta->commit.message);
    return ret->message ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status add_commit(generation_build *build, st_delta *delta, sluice_error *err)
{
    st_generation *generation = &build->generation;
    uint32_t index = generation->commit_count;
    st_commit *commit = &generation->commits[index];
    if (!pf_sha256_equal(&delta->schema_identity, &generation->schema_identity))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the schema changed since the write was prepared");
    generation->commit_count++;
    if (build->new_schema)
        generation->schema_identity = delta->new_schema;
    PF_TRY(copy_commit(delta, commit, err));
    commit->delta = delta->built = st_delta_digest(delta);
    commit->parents[0] = generation->head;
    commit->time_us = commit->minted_us > generation->head_time_us ? commit->minted_us : generation->head_time_us;
    for (uint32_t at = 0; at < delta->edit_count; at++) {
        PF_TRY(add_edit(build, &delta->edits[at], index, at, &commit->edits[at], err));
        commit->edit_count++;
    }
    st_edit_source edits = st_delta_edits(delta);
    build->scratch.length = 0;
    PF_TRY(st_changes_encode(&delta->changes, &edits, &build->scratch, err));
    PF_TRY(attach_scratch(build, &commit->changes_attachment, err));
    generation->head = commit->id;
    generation->head_time_us = commit->time_us;
    return SLUICE_OK;
}

/* Does no edit behind the folded ones take fragments out, which the fold may have merged? One that cannot be read may.
 */
static bool leaves_fragments(const generation_build *build, st_edit_reader *reader, st_delta *const *deltas,
                             const st_fold *fold, const st_table_entry *entry)
{
    bool leaves = true;
    for (uint32_t i = fold->edit_count; i < entry->edit_count && fold->merged && leaves; i++) {
        const st_edit_place *place = &entry->edits[i];
        st_bound_edit bound = {0};
        if (place->incarnation == build->generation.incarnation && place->generation == build->generation.number)
            leaves = deltas[place->index]->edits[place->at].edit.out_count == 0;
        else
            leaves =
                st_edit_reader_read(reader, place, fold->table, &bound, NULL) == SLUICE_OK && bound.edit.out_count == 0;
        st_edit_free(&bound.edit);
    }
    return leaves;
}

/* Folds go last: the state between two commits is computed without them. */
static sluice_status apply_folds(generation_build *build, st_edit_reader *reader, st_delta *const *deltas,
                                 st_delta *delta, sluice_error *err)
{
    delta->folded = 0;
    for (uint32_t i = 0; i < delta->fold_count; i++) {
        int64_t at = st_entries_find(&build->entries, delta->folds[i].table);
        if (at < 0 || !st_fold_applies(&delta->folds[i], &build->entries.items[at]) ||
            !leaves_fragments(build, reader, deltas, &delta->folds[i], &build->entries.items[at]))
            continue;
        PF_TRY(st_fold_apply(&delta->folds[i], &build->entries.items[at], err));
        PF_TRY(note_changed(build, delta->folds[i].table, err));
        delta->folded++;
    }
    return SLUICE_OK;
}

/* ---- pages ---- */

static sluice_status put_page(generation_build *build, const st_state_page *page, sluice_error *err)
{
    st_generation *generation = &build->generation;
    if (generation->page_count == build->page_capacity) {
        uint32_t capacity = build->page_capacity ? build->page_capacity * 2 : 8;
        st_state_page *pages = realloc(generation->pages, capacity * sizeof(*pages));
        if (!pages)
            return pf_fail_memory(err);
        generation->pages = pages;
        build->page_capacity = capacity;
    }
    generation->pages[generation->page_count++] = *page;
    return SLUICE_OK;
}

/* Encodes and attaches entries [first, end) as fresh pages. */
static sluice_status make_pages(generation_build *build, uint32_t first, uint32_t end, sluice_error *err)
{
    while (first < end) {
        st_state_page page = {.incarnation = build->generation.incarnation, .generation = build->generation.number};
        build->scratch.length = 0;
        PF_TRY(st_state_page_encode(build->entries.items + first, end - first, &build->scratch, &page.entries, err));
        page.digest = pf_sha256_of(build->scratch.data, build->scratch.length);
        PF_TRY(attach_scratch(build, &page.attachment, err));
        PF_TRY(put_page(build, &page, err));
        first += page.entries;
    }
    return SLUICE_OK;
}

static bool any_changed(const generation_build *build, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < build->changed_count; i++)
        if (build->changed[i] >= low && build->changed[i] <= high)
            return true;
    return false;
}

/* Pages whose entries did not change, and that stand in the active segment, are referred to; neighbours that did are
 * made again together. A page covers the ids from its first entry's to the next page's, the first one all below. */
static sluice_status place_pages(generation_build *build, uint64_t segment, sluice_error *err)
{
    const st_view *head = build->head;
    uint32_t dirty = 0, at = 0, old = 0;
    for (uint32_t p = 0; p < head->page_count; p++) {
        uint32_t next = old + head->pages[p].entries;
        uint64_t low = p > 0 ? head->tables[old].id : 0;
        uint64_t high = next < head->table_count ? head->tables[next].id - 1 : UINT64_MAX;
        uint32_t end = at;
        while (end < build->entries.count && build->entries.items[end].id <= high)
            end++;
        if (head->pages[p].segment == segment && !any_changed(build, low, high)) {
            PF_TRY(make_pages(build, dirty, at, err));
            PF_TRY(put_page(build, &head->pages[p], err));
            dirty = end;
        }
        at = end;
        old = next;
    }
    return make_pages(build, dirty, build->entries.count, err);
}

/* ---- the whole ---- */

/* What was built, as a view; moves it out of the build. Without memory it is read when it is wanted. */
static void keep_built(generation_build *build, st_graph *graph)
{
    st_generation *generation = &build->generation;
    st_view *view = malloc(sizeof(*view));
    if (!view)
        return;
    *view = (st_view){.incarnation = generation->incarnation,
                      .generation = generation->number,
                      .index = generation->commit_count > 0 ? generation->commit_count - 1 : 0,
                      .schema_identity = generation->schema_identity,
                      .schema = build->new_schema ? build->new_schema : st_schema_share(build->head->schema),
                      .head = generation->head,
                      .head_time_us = generation->head_time_us,
                      .tables = build->entries.items,
                      .table_count = build->entries.count,
                      .row_block = generation->row_block,
                      .next_row = generation->next_row,
                      .pages = generation->pages,
                      .page_count = generation->page_count,
                      .skips = generation->skips,
                      .skip_count = generation->skip_count,
                      .merge = st_generation_merges(generation) ? generation->number : generation->merge};
    build->new_schema = NULL;
    build->entries = (st_entries){0};
    generation->pages = NULL;
    generation->page_count = 0;
    generation->skips = NULL;
    generation->skip_count = 0;
    st_head_built(graph, view);
    st_record_built(graph, generation, &build->attachments, build->bytes);
}

static sluice_status start(generation_build *build, uint32_t deltas, sluice_error *err)
{
    const st_view *head = build->head;
    st_generation *generation = &build->generation;
    generation->incarnation = head->incarnation;
    generation->number = head->generation + 1;
    generation->schema_identity = head->schema_identity;
    generation->row_block = head->row_block;
    generation->next_row = head->next_row;
    generation->head = head->head;
    generation->head_time_us = head->head_time_us;
    generation->merge = head->merge;
    generation->commits = calloc((size_t)deltas + 1, sizeof(*generation->commits));
    build->entries.items = calloc((size_t)head->table_count + 1, sizeof(*build->entries.items));
    if (!generation->commits || !build->entries.items)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < head->table_count; i++) {
        PF_TRY(st_table_entry_copy(&head->tables[i], &build->entries.items[i], err));
        build->entries.count++;
    }
    return st_skips_next(head->generation, &head->digest, head->skips, head->skip_count, &generation->skips,
                         &generation->skip_count, err);
}

static sluice_status choose_block(generation_build *build, st_delta *const *deltas, uint32_t count,
                                  uint64_t new_row_block, sluice_error *err)
{
    bool needs = false;
    PF_TRY(st_generation_needs_block(build->head, deltas, count, &needs, err));
    if (!needs)
        return SLUICE_OK;
    if (new_row_block == 0)
        return pf_fail(err, SLUICE_INTERNAL, "a new block of row ids is needed");
    build->generation.row_block = build->generation.next_row = new_row_block;
    return SLUICE_OK;
}

/* A change of schema is a generation of its own, so that no state between two commits has another schema than its
 * generation. All entries are written anew. */
static sluice_status adopt_schema(generation_build *build, st_graph *graph, st_delta *const *deltas, uint32_t count,
                                  sluice_error *err)
{
    bool changes = false;
    for (uint32_t i = 0; i < count; i++)
        changes = changes || st_delta_changes_schema(deltas[i]);
    if (!changes)
        return SLUICE_OK;
    if (count > 1)
        return pf_fail(err, SLUICE_INTERNAL, "a change of schema in a group");
    PF_TRY(st_schema_fetch(st_graph_volume(graph), &deltas[0]->new_schema, &build->new_schema, err));
    PF_TRY(st_entries_adopt(&build->entries, build->new_schema, err));
    for (uint32_t i = 0; i < build->entries.count; i++)
        PF_TRY(note_changed(build, build->entries.items[i].id, err));
    return SLUICE_OK;
}

sluice_status st_generation_build(st_graph *graph, const st_view *head, st_delta *const *deltas, uint32_t count,
                                  uint64_t new_row_block, pf_buffer *ret_manifest, pf_buffer *ret_attachments,
                                  sluice_error *err)
{
    generation_build build = {.head = head, .bytes = ret_attachments};
    st_edit_reader reader = {.graph = graph};
    st_log *log = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_graph_log(graph, head->incarnation, &log, err));
    PF_GOTO(status, done, start(&build, count, err));
    PF_GOTO(status, done, choose_block(&build, deltas, count, new_row_block, err));
    PF_GOTO(status, done, adopt_schema(&build, graph, deltas, count, err));
    for (uint32_t i = 0; i < count; i++)
        PF_GOTO(status, done, add_commit(&build, deltas[i], err));
    for (uint32_t i = 0; i < count; i++)
        PF_GOTO(status, done, apply_folds(&build, &reader, deltas, deltas[i], err));
    PF_GOTO(status, done, place_pages(&build, st_log_end(log).segment, err));
    PF_GOTO(status, done, st_manifest_encode(&build.generation, &build.attachments, ret_manifest, err));
    keep_built(&build, graph);
done:
    st_edit_reader_close(&reader);
    build_free(&build);
    return status;
}

/* ---- generation 1 ---- */

static sluice_status first_commit(generation_build *build, const pf_id *id, sluice_error *err)
{
    st_generation *generation = &build->generation;
    st_delta nothing = {0};
    st_edit_source edits = st_delta_edits(&nothing);
    generation->commits = calloc(1, sizeof(*generation->commits));
    if (!generation->commits)
        return pf_fail_memory(err);
    generation->commit_count = 1;
    st_commit *commit = &generation->commits[0];
    commit->id = *id;
    commit->minted_us = commit->time_us = pf_wall_us();
    memcpy(commit->kind, "init", 5);
    memcpy(commit->actor, "cli", 4);
    PF_TRY(st_changes_encode(&nothing.changes, &edits, &build->scratch, err));
    PF_TRY(attach_scratch(build, &commit->changes_attachment, err));
    generation->head = *id;
    generation->head_time_us = commit->time_us;
    return SLUICE_OK;
}

sluice_status st_generation_build_first(const st_schema *schema, const pf_sha256 *schema_identity, uint64_t row_block,
                                        const pf_id *commit, pf_buffer *ret_manifest, pf_buffer *ret_attachments,
                                        sluice_error *err)
{
    generation_build build = {.bytes = ret_attachments,
                              .generation = {.incarnation = ST_MAIN_INCARNATION,
                                             .number = 1,
                                             .schema_identity = *schema_identity,
                                             .row_block = row_block,
                                             .next_row = row_block}};
    sluice_status status;
    PF_GOTO(status, done, first_commit(&build, commit, err));
    PF_GOTO(status, done, st_entries_make(&build.entries, schema, err));
    PF_GOTO(status, done, make_pages(&build, 0, build.entries.count, err));
    PF_GOTO(status, done, st_manifest_encode(&build.generation, &build.attachments, ret_manifest, err));
done:
    build_free(&build);
    return status;
}
