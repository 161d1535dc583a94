/*
 * Differences and change feeds, over store/read/diff.h and feed.h.
 */
#include "lib/handle.h"
#include "store/read/feed.h"
#include "store/read/row_json.h"
#include <stdlib.h>

_Static_assert(SLUICE_CURSOR_TEXT == ST_CURSOR_TEXT, "a cursor as text");

typedef struct change_walk {
    sluice_change_fn *each;
    void *context;
    bool stopped;
    pf_buffer name; /* of the row, as an object */
    st_snapshot *from, *to;
    st_change_text text;
} change_walk;

static const char *text_or_null(const pf_buffer *text)
{
    return text->length > 0 ? (const char *)text->data : NULL;
}

static sluice_status tell(change_walk *walk, const char *members, sluice_change *change, sluice_error *err)
{
    walk->name.length = 0;
    if (members) {
        PF_TRY(pf_buffer_append_format(&walk->name, err, "{%s}%c", members, '\0'));
        change->name = (const char *)walk->name.data;
    }
    walk->stopped = !walk->each(walk->context, change);
    return walk->stopped ? pf_fail(err, SLUICE_CANCELLED, "stopped by the caller") : SLUICE_OK;
}

/* A walk that its caller stopped has not failed. */
static sluice_status finish(change_walk *walk, sluice_status status, const sluice_error *failure, sluice_error *err)
{
    pf_buffer_free(&walk->name);
    st_change_text_free(&walk->text);
    if (status == SLUICE_OK || walk->stopped)
        return SLUICE_OK;
    if (err)
        *err = *failure;
    return status;
}

/* ---- differences ---- */

static sluice_status tell_difference(void *context, const st_row_change *change, sluice_error *err)
{
    static const sluice_change_kind kinds[] = {
        [ST_INSERTED] = SLUICE_CHANGE_INSERT, [ST_UPDATED] = SLUICE_CHANGE_UPDATE, [ST_DELETED] = SLUICE_CHANGE_DELETE};
    change_walk *walk = context;
    PF_TRY(st_change_text_put(&walk->text, walk->from, walk->to, change, err));
    sluice_change told = {.kind = kinds[change->kind],
                          .type = walk->text.type->name,
                          .before = text_or_null(&walk->text.before),
                          .after = text_or_null(&walk->text.after)};
    return tell(walk, (const char *)walk->text.name.data, &told, err);
}

static sluice_status compare_table(change_walk *walk, uint64_t table, sluice_error *err)
{
    PF_TRY(st_change_text_begin(&walk->text, walk->from, walk->to, table, err));
    return st_diff_table(walk->from, walk->to, table, tell_difference, walk, err);
}

static sluice_status compare(change_walk *walk, sluice_error *err)
{
    const st_schema *older = st_snapshot_view(walk->from)->schema, *newer = st_snapshot_view(walk->to)->schema;
    for (uint32_t i = 0; i < newer->type_count; i++)
        PF_TRY(compare_table(walk, newer->types[i].table, err));
    for (uint32_t i = 0; i < older->type_count; i++) {
        if (!st_schema_find_table(newer, older->types[i].table))
            PF_TRY(compare_table(walk, older->types[i].table, err));
    }
    return SLUICE_OK;
}

sluice_status sluice_diff(sluice_snapshot *from, sluice_snapshot *to, sluice_change_fn *each, void *context,
                          sluice_error *err)
{
    sluice_error failure = {0};
    PF_TRY(lib_check_snapshot(from, err));
    PF_TRY(lib_check_snapshot(to, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    pf_id one = *st_graph_id(from->graph->graph), two = *st_graph_id(to->graph->graph);
    if (!pf_id_equal(&one, &two))
        return pf_fail(err, SLUICE_USAGE, "the snapshots are of two graphs");
    change_walk walk = {.each = each, .context = context, .from = from->snapshot, .to = to->snapshot};
    sluice_status status = compare(&walk, &failure);
    return finish(&walk, status, &failure, err);
}

/* ---- feeds ---- */

struct sluice_feed {
    sluice_graph *graph;
    st_feed *feed;
    pf_notify *notify; /* from the first wait on */
};

sluice_status sluice_feed_open(sluice_graph *graph, const char *branch, const char *since, sluice_feed **ret_feed,
                               sluice_error *err)
{
    PF_TRY(lib_need(ret_feed, "ret_feed", err));
    *ret_feed = NULL;
    PF_TRY(lib_check(graph, err));
    sluice_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return pf_fail_memory(err);
    sluice_status status = st_feed_open(graph->graph, branch, since, &feed->feed, err);
    if (status != SLUICE_OK) {
        free(feed);
        return status;
    }
    feed->graph = graph;
    lib_graph_hold(graph);
    *ret_feed = feed;
    return SLUICE_OK;
}

void sluice_feed_close(sluice_feed *feed)
{
    if (!feed)
        return;
    pf_notify_close(feed->notify);
    st_feed_close(feed->feed);
    lib_graph_release(feed->graph);
    free(feed);
}

static sluice_status check_feed(const sluice_feed *feed, sluice_error *err)
{
    PF_TRY(lib_need(feed, "the feed", err));
    return lib_check(feed->graph, err);
}

static sluice_status tell_event(void *context, const st_feed_event *event, sluice_error *err)
{
    static const sluice_change_kind kinds[] = {[ST_FEED_INSERT] = SLUICE_CHANGE_INSERT,
                                               [ST_FEED_UPDATE] = SLUICE_CHANGE_UPDATE,
                                               [ST_FEED_DELETE] = SLUICE_CHANGE_DELETE,
                                               [ST_FEED_SCHEMA] = SLUICE_CHANGE_SCHEMA,
                                               [ST_FEED_COMMIT] = SLUICE_CHANGE_COMMIT};
    sluice_change change = {.kind = kinds[event->kind],
                            .type = event->type,
                            .before = event->before,
                            .after = event->after,
                            .commit_kind = event->commit->kind,
                            .generation = event->generation,
                            .index = event->index,
                            .time_us = event->commit->time_us,
                            .changes = event->kind == ST_FEED_COMMIT ? event->changes : 0,
                            .cursor = event->cursor};
    lib_id_text(&event->commit->id, change.commit);
    lib_id_text(&event->commit->operation, change.operation);
    return tell(context, event->name, &change, err);
}

sluice_status sluice_feed_read(sluice_feed *feed, sluice_change_fn *each, void *context, sluice_error *err)
{
    sluice_error failure = {0};
    PF_TRY(check_feed(feed, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    change_walk walk = {.each = each, .context = context};
    sluice_status status = st_feed_read(feed->feed, tell_event, &walk, &failure);
    return finish(&walk, status, &failure, err);
}

sluice_status sluice_feed_wait(sluice_feed *feed, int64_t milliseconds, bool *ret_changed, sluice_error *err)
{
    PF_TRY(check_feed(feed, err));
    PF_TRY(lib_need(ret_changed, "ret_changed", err));
    *ret_changed = true;
    if (!feed->notify) /* what came between the last read and now has been told to nobody */
        return st_feed_watch(feed->feed, &feed->notify, err);
    return pf_notify_wait(feed->notify, pf_deadline_in_ms(milliseconds > 0 ? milliseconds : 0), ret_changed, err);
}

void sluice_feed_cursor(const sluice_feed *feed, char ret_cursor[SLUICE_CURSOR_TEXT])
{
    st_feed_cursor(feed->feed, ret_cursor);
}
