/* See feed.h. */
#include "store/read/feed.h"
#include "platform/check.h"
#include "store/read/row_json.h"
#include "store/schema/scalar.h"
#include "store/state/lineage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct st_feed {
    st_graph *graph;
    char *branch;
    uint64_t incarnation;
    st_log *log;
    st_snapshot *at; /* behind the last commit that was told whole */
    st_cursor cursor;
    /* The generation that is read, with the log that it stands in and how many of its commits are of this lineage. */
    st_record record;
    st_generation generation;
    uint64_t source;
    uint32_t commits;
};

const char *st_feed_word(st_feed_kind kind)
{
    static const char *const words[] = {[ST_FEED_INSERT] = "insert",
                                        [ST_FEED_UPDATE] = "update",
                                        [ST_FEED_DELETE] = "delete",
                                        [ST_FEED_SCHEMA] = "schema",
                                        [ST_FEED_COMMIT] = "commit"};
    return words[kind];
}

/* ---- where it stands ---- */

static sluice_status fail_gap(uint64_t generation, sluice_error *err)
{
    (void)pf_fail(err, SLUICE_NOT_FOUND, "a gap: changes up to generation %llu were collected",
                  (unsigned long long)generation);
    pf_details(err, "{\"gap\":true,\"generation\":\"%llu\"}", (unsigned long long)generation);
    pf_hint(err, "begin again with the whole: `sluice log GRAPH -n 1` names a commit, sluice export GRAPH DIR --at "
                 "COMMIT writes its rows, sluice changes GRAPH --since COMMIT goes on behind it");
    return SLUICE_NOT_FOUND;
}

static sluice_status fail_gone(const st_feed *feed, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_NOT_FOUND, "the branch was deleted", "the branch \"%s\" was deleted",
                          feed->branch);
    pf_details(err, "{\"gap\":false,\"incarnation\":\"%llu\"}", (unsigned long long)feed->incarnation);
    return SLUICE_NOT_FOUND;
}

static void forget_generation(st_feed *feed)
{
    st_generation_free(&feed->generation);
    st_record_free(&feed->record);
    feed->generation = (st_generation){0};
    feed->record = (st_record){0};
    feed->commits = 0;
}

/* Makes `number` the generation that is read. NOT_FOUND when it was collected. `commits_only`: what its lineage keeps
 * of it is enough. */
static sluice_status load_generation(st_feed *feed, uint64_t number, bool commits_only, sluice_error *err)
{
    st_log *log = NULL;
    uint32_t last = ST_INDEX_LAST;
    if (feed->generation.number == number && (commits_only || !feed->record.collected))
        return SLUICE_OK;
    forget_generation(feed);
    PF_TRY(st_lineage_log(feed->graph, feed->log, number, &log, &last, err));
    PF_TRY(commits_only ? st_log_read_lineage(log, number, &feed->record, err)
                        : st_log_read(log, number, &feed->record, err));
    PF_TRY(st_generation_decode(&feed->record, &feed->generation, err));
    feed->source = st_log_incarnation(log);
    uint32_t count = feed->generation.commit_count;
    feed->commits = last != ST_INDEX_LAST && last < count ? last + 1 : count;
    return SLUICE_OK;
}

static sluice_status stand_behind(st_feed *feed, uint64_t generation, uint32_t index, sluice_error *err)
{
    st_reach place = {.incarnation = feed->incarnation, .generation = generation, .index = index};
    sluice_error local = {0};
    sluice_status status = st_snapshot_open_commit(feed->graph, &place, &feed->at, &local);
    if (status == SLUICE_NOT_FOUND)
        return fail_gap(generation, err);
    if (status != SLUICE_OK && err)
        *err = local;
    return status;
}

static sluice_status from_cursor(st_feed *feed, const st_cursor *cursor, sluice_error *err)
{
    sluice_error local = {0};
    if (cursor->incarnation != feed->incarnation) {
        (void)pf_fail(err, SLUICE_NOT_FOUND, "the cursor is of another branch, or of one that was deleted");
        pf_hint(err, "give the --branch that it came from");
        return SLUICE_NOT_FOUND;
    }
    sluice_status status = load_generation(feed, cursor->generation, true, &local);
    if (status == SLUICE_OK &&
        (cursor->index >= feed->commits || !pf_id_equal(&feed->generation.commits[cursor->index].id, &cursor->commit)))
        return pf_fail(err, SLUICE_NOT_FOUND, "the cursor's commit is none of this branch: it is of another graph");
    if (status == SLUICE_NOT_FOUND && cursor->generation <= st_log_end(feed->log).number)
        return fail_gap(cursor->generation, err);
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    feed->cursor.told = cursor->told;
    return stand_behind(feed, cursor->generation, cursor->index, err);
}

/* A checkpoint may be one of another branch. */
static sluice_status from_place(st_feed *feed, const char *place, sluice_error *err)
{
    PF_TRY(st_snapshot_open(feed->graph, feed->branch, place, &feed->at, err));
    const st_view *view = st_snapshot_view(feed->at);
    sluice_status status = load_generation(feed, view->generation, true, err);
    if (status == SLUICE_OK &&
        (view->index >= feed->commits || !pf_id_equal(&feed->generation.commits[view->index].id, &view->head)))
        status = pf_fail(err, SLUICE_NOT_FOUND, "that place is not in the history of this branch");
    return status;
}

static sluice_status open_feed(st_feed *feed, const char *since, sluice_error *err)
{
    st_cursor cursor;
    bool whole = false;
    PF_TRY(st_ref_read(feed->graph, feed->branch, &feed->incarnation, err));
    PF_TRY(st_graph_log(feed->graph, feed->incarnation, &feed->log, err));
    PF_TRY(st_log_refresh(feed->log, err));
    if (!since) {
        PF_TRY(stand_behind(feed, 1, 0, err)); /* the first generation: the schema, and no row */
    } else if (!st_cursor_parse(since, &cursor, &whole)) {
        PF_TRY(from_place(feed, since, err));
    } else if (whole) {
        PF_TRY(from_cursor(feed, &cursor, err));
    } else {
        return pf_fail(err, SLUICE_USAGE, "this is no whole cursor");
    }
    const st_view *view = st_snapshot_view(feed->at);
    feed->cursor = (st_cursor){.incarnation = feed->incarnation,
                               .generation = view->generation,
                               .index = view->index,
                               .commit = view->head,
                               .told = feed->cursor.told};
    return SLUICE_OK;
}

sluice_status st_feed_open(st_graph *graph, const char *branch, const char *since, st_feed **ret_feed,
                           sluice_error *err)
{
    st_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return pf_fail_memory(err);
    feed->graph = graph;
    feed->branch = strdup(branch ? branch : ST_MAIN_BRANCH);
    sluice_status status = feed->branch ? open_feed(feed, since, err) : pf_fail_memory(err);
    if (status == SLUICE_OK)
        *ret_feed = feed;
    else
        st_feed_close(feed);
    return status;
}

void st_feed_close(st_feed *feed)
{
    if (!feed)
        return;
    forget_generation(feed);
    st_snapshot_close(feed->at);
    free(feed->branch);
    free(feed);
}

void st_feed_cursor(const st_feed *feed, char ret_text[ST_CURSOR_TEXT])
{
    st_cursor_text(&feed->cursor, ret_text);
}

sluice_status st_feed_watch(const st_feed *feed, pf_notify **ret_notify, sluice_error *err)
{
    char folder[64];
    const char *folders[] = {folder, ST_REFS_FOLDER};
    st_branch_folder(feed->incarnation, folder);
    return pf_notify_open(st_graph_volume(feed->graph), folders, 2, ret_notify, err);
}

/* ---- telling a commit ---- */

typedef struct telling {
    st_feed *feed;
    st_feed_fn *each;
    void *context;
    const st_commit *commit;
    uint32_t index;
    uint64_t skip, events; /* told before, by this or another process; counted so far */
    st_snapshot *from, *to;
    st_change_text text;
} telling;

static sluice_status tell(telling *what, st_feed_kind kind, bool row, sluice_error *err)
{
    st_feed *feed = what->feed;
    char text[ST_CURSOR_TEXT];
    st_cursor cursor = feed->cursor;
    if (kind == ST_FEED_COMMIT)
        cursor = (st_cursor){.incarnation = feed->incarnation,
                             .generation = feed->generation.number,
                             .index = what->index,
                             .commit = what->commit->id};
    else
        cursor.told = what->events;
    st_cursor_text(&cursor, text);
    st_feed_event event = {.kind = kind,
                           .type = row ? what->text.type->name : NULL,
                           .name = row ? (const char *)what->text.name.data : NULL,
                           .before = what->text.before.length > 0 ? (const char *)what->text.before.data : NULL,
                           .after = what->text.after.length > 0 ? (const char *)what->text.after.data : NULL,
                           .changes = what->events,
                           .commit = what->commit,
                           .generation = feed->generation.number,
                           .index = what->index,
                           .branch = feed->branch,
                           .cursor = text};
    PF_TRY(what->each(what->context, &event, err));
    feed->cursor = cursor;
    return SLUICE_OK;
}

static sluice_status tell_row(void *context, const st_row_change *change, sluice_error *err)
{
    static const st_feed_kind kinds[] = {
        [ST_INSERTED] = ST_FEED_INSERT, [ST_UPDATED] = ST_FEED_UPDATE, [ST_DELETED] = ST_FEED_DELETE};
    telling *what = context;
    if (++what->events <= what->skip)
        return SLUICE_OK;
    PF_TRY(st_change_text_put(&what->text, what->from, what->to, change, err));
    return tell(what, kinds[change->kind], true, err);
}

static sluice_status tell_table(telling *what, uint64_t table, sluice_error *err)
{
    sluice_status status = st_change_text_begin(&what->text, what->from, what->to, table, err);
    if (status == SLUICE_OK && what->text.type)
        status = st_diff_table(what->from, what->to, table, tell_row, what, err);
    return status;
}

/* An edit that only puts the same rows into other files: what optimize and index publish. */
static sluice_status changes_rows(const telling *what, const st_commit_edit *named, bool *ret_changes,
                                  sluice_error *err)
{
    st_edit edit = {0};
    PF_TRY(st_commit_edit_read(what->feed->graph, &what->feed->record, named, &edit, err));
    *ret_changes = edit.replace || edit.out_count == 0 || edit.delete_count > 0 || edit.deletes.present;
    st_edit_free(&edit);
    return SLUICE_OK;
}

static bool is_edited(const st_commit *commit, uint64_t table)
{
    for (uint32_t i = 0; i < commit->edit_count; i++) {
        if (commit->edits[i].table == table)
            return true;
    }
    return false;
}

/* The tables that the commit edited, in the order of the schema. */
static sluice_status tell_edited(telling *what, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(what->to)->schema;
    for (uint32_t i = 0; i < schema->type_count; i++) {
        bool changed = false;
        uint64_t table = schema->types[i].table;
        if (!is_edited(what->commit, table))
            continue;
        for (uint32_t k = 0; k < what->commit->edit_count && !changed; k++) {
            if (what->commit->edits[k].table == table)
                PF_TRY(changes_rows(what, &what->commit->edits[k], &changed, err));
        }
        if (changed)
            PF_TRY(tell_table(what, table, err));
    }
    return SLUICE_OK;
}

static sluice_status put_schema(const st_schema *schema, pf_buffer *text, sluice_error *err)
{
    PF_TRY(st_schema_format(schema, text, err));
    for (size_t i = 0; i < text->length; i++) { /* one line; texts in it hold no line ends */
        if (text->data[i] == '\n')
            text->data[i] = ' ';
    }
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->length--;
    return pf_buffer_append(text, "", 1, err);
}

static sluice_status tell_schema(telling *what, sluice_error *err)
{
    const st_schema *older = st_snapshot_view(what->from)->schema, *newer = st_snapshot_view(what->to)->schema;
    if (++what->events > what->skip) {
        st_change_text_clear(&what->text);
        PF_TRY(put_schema(older, &what->text.before, err));
        PF_TRY(put_schema(newer, &what->text.after, err));
        PF_TRY(tell(what, ST_FEED_SCHEMA, false, err));
    }
    for (uint32_t i = 0; i < newer->type_count; i++)
        PF_TRY(tell_table(what, newer->types[i].table, err));
    for (uint32_t i = 0; i < older->type_count; i++) {
        if (!st_schema_find_table(newer, older->types[i].table))
            PF_TRY(tell_table(what, older->types[i].table, err));
    }
    return SLUICE_OK;
}

static sluice_status tell_events(telling *what, sluice_error *err)
{
    const st_view *from = st_snapshot_view(what->from), *to = st_snapshot_view(what->to);
    if (pf_sha256_equal(&from->schema_identity, &to->schema_identity))
        PF_TRY(tell_edited(what, err));
    else
        PF_TRY(tell_schema(what, err));
    st_change_text_clear(&what->text);
    return tell(what, ST_FEED_COMMIT, false, err);
}

/* Commit `index` of the generation that is loaded. */
static sluice_status tell_commit(st_feed *feed, uint32_t index, st_feed_fn *each, void *context, sluice_error *err)
{
    const st_commit *commit = &feed->generation.commits[index];
    telling what = {.feed = feed,
                    .each = each,
                    .context = context,
                    .commit = commit,
                    .index = index,
                    .skip = feed->cursor.told,
                    .from = feed->at};
    feed->at = NULL;
    sluice_status status = stand_behind(feed, feed->generation.number, index, err);
    what.to = feed->at;
    if (status == SLUICE_OK)
        status = tell_events(&what, err);
    if (status == SLUICE_OK) {
        st_snapshot_close(what.from);
    } else {
        st_snapshot_close(what.to);
        feed->at = what.from;
    }
    st_change_text_free(&what.text);
    return status;
}

/* ---- going on ---- */

/* Of its own log a feed tells what is acknowledged; what stands in the logs before it is. */
static uint64_t end_of(const st_feed *feed)
{
    st_log_position end = st_log_end(feed->log);
    return end.number < end.acknowledged ? end.number : end.acknowledged;
}

static sluice_status go_on(st_feed *feed, st_feed_fn *each, void *context, sluice_error *err)
{
    PF_TRY(st_log_refresh(feed->log, err));
    uint64_t end = end_of(feed), number = feed->cursor.generation;
    uint32_t next = feed->cursor.index + 1;
    for (; number <= end; number++, next = 0) {
        sluice_error local = {0};
        sluice_status status = load_generation(feed, number, next > 0, &local);
        if (status == SLUICE_NOT_FOUND)
            return fail_gap(number, err);
        if (status == SLUICE_OK && next < feed->commits) /* its edits are needed, too */
            status = load_generation(feed, number, false, &local);
        if (status == SLUICE_NOT_FOUND)
            return fail_gap(number, err);
        if (status != SLUICE_OK) {
            if (err)
                *err = local;
            return status;
        }
        for (; next < feed->commits; next++)
            PF_TRY(tell_commit(feed, next, each, context, err));
    }
    return SLUICE_OK;
}

sluice_status st_feed_read(st_feed *feed, st_feed_fn *each, void *context, sluice_error *err)
{
    sluice_error failure = {0}, local = {0};
    uint64_t now = 0;
    sluice_status status = go_on(feed, each, context, &failure);
    sluice_status there = st_ref_read(feed->graph, feed->branch, &now, &local);
    /* What failed may have failed because the branch is gone; what somebody told us to fail with has not. */
    bool gone = there == SLUICE_NOT_FOUND || (there == SLUICE_OK && now != feed->incarnation);
    if (gone && (status == SLUICE_OK || status == SLUICE_NOT_FOUND || status == SLUICE_CORRUPT))
        return fail_gone(feed, err);
    if (status == SLUICE_OK && there != SLUICE_OK) {
        status = there;
        failure = local;
    }
    if (status != SLUICE_OK && err)
        *err = failure;
    return status;
}

/* ---- as a line ---- */

#define TIME_TEXT (ST_SCALAR_TEXT_MAX + 8)

/* With six digits of a second, as the log has it. */
static void time_text(int64_t us, char text[TIME_TEXT])
{
    int64_t fraction = us % 1000000;
    fraction += fraction < 0 ? 1000000 : 0;
    size_t length = st_format_timestamp(us - fraction, text);
    (void)snprintf(text + length - 1, TIME_TEXT - length + 1, ".%06uZ", (unsigned)fraction);
}

sluice_status st_feed_line(const st_feed_event *event, pf_buffer *buffer, sluice_error *err)
{
    const st_commit *commit = event->commit;
    char time[TIME_TEXT];
    st_json json;
    time_text(commit->time_us, time);
    st_json_begin(&json, buffer);
    st_json_object(&json);
    st_json_name(&json, "change");
    st_json_text(&json, st_feed_word(event->kind));
    if (event->type) {
        st_json_name(&json, "type");
        st_json_text(&json, event->type);
        st_json_raw(&json, event->name, strlen(event->name));
    }
    if (event->kind == ST_FEED_COMMIT) {
        st_json_name(&json, "changes");
        st_json_unsigned(&json, event->changes);
        st_json_name(&json, "kind");
        st_json_text(&json, commit->kind);
    } else {
        st_json_name(&json, "before");
        st_json_raw(&json, event->before ? event->before : "null", event->before ? strlen(event->before) : 4);
        st_json_name(&json, "after");
        st_json_raw(&json, event->after ? event->after : "null", event->after ? strlen(event->after) : 4);
    }
    st_json_name(&json, "commit");
    st_json_id(&json, &commit->id);
    st_json_name(&json, "generation");
    st_json_unsigned(&json, event->generation);
    st_json_name(&json, "index");
    st_json_unsigned(&json, event->index);
    st_json_name(&json, "branch");
    st_json_text(&json, event->branch);
    st_json_name(&json, "time");
    st_json_text(&json, time);
    st_json_name(&json, "operation_id");
    if (pf_id_is_nil(&commit->operation))
        st_json_null(&json);
    else
        st_json_id(&json, &commit->operation);
    st_json_name(&json, "cursor");
    st_json_text(&json, event->cursor);
    st_json_object_end(&json);
    return st_json_end(&json, false, err);
}
