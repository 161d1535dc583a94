/*
 * The changes of a branch, commit by commit: what `sluice changes` and the library's feed tell.
 *
 * A feed stands behind a commit of the branch's lineage, pinned. Reading goes on from there to the last generation that
 * is acknowledged, and no further: what is told stays told after a power loss, though the end of the log may be the
 * work of a publisher that died. Each commit of a group is told by itself; a merge is the one commit that it is on this
 * branch, with all that it changed there. Optimizing and indexing change nothing that is told.
 *
 * Events come in an order that depends on the commit alone: the schema if it changed, then type by type (in the
 * schema's order, dropped types last) inserted and updated rows, then deleted ones; then the commit itself. A cursor
 * counts the events of a commit, so that it may be left in the middle of one and taken up there by another process.
 *
 * Cost: of a commit, what diff costs between it and its parent: its own rows, and now and then those of a fold that
 * rode along. A change of the schema is compared whole.
 */
#ifndef STORE_READ_FEED_H
#define STORE_READ_FEED_H

#include "platform/notify.h"
#include "store/read/cursor.h"
#include "store/read/snapshot.h"

typedef struct st_feed st_feed;

typedef enum st_feed_kind {
    ST_FEED_INSERT,
    ST_FEED_UPDATE,
    ST_FEED_DELETE,
    ST_FEED_SCHEMA,
    ST_FEED_COMMIT
} st_feed_kind;

typedef struct st_feed_event {
    st_feed_kind kind;
    const char *type;   /* of a row; else NULL */
    const char *name;   /* of a row: members of an object ("key":7), st_row_change_name */
    const char *before; /* objects: a deleted row, what an update found; the schema. NULL: none */
    const char *after;  /* an inserted row, what an update set; the schema */
    uint64_t changes;   /* of a commit: events that came before it */
    const st_commit *commit;
    uint64_t generation;
    uint32_t index;
    const char *branch;
    const char *cursor; /* behind this event */
} st_feed_event;

/* "insert", "update", "delete", "schema", "commit" */
const char *st_feed_word(st_feed_kind kind);
/* The event as one JSON object, without a newline. */
sluice_status st_feed_line(const st_feed_event *event, pf_buffer *buffer, sluice_error *err);

/* `since`: a cursor, or a place on the branch as st_snapshot_open takes it; NULL: what followed the first, empty state.
 * NOT_FOUND with {"gap":true} in its details when collection let go of what would come next; NOT_FOUND also when the
 * cursor is of another branch, or of one that was deleted; USAGE when it is none. */
sluice_status st_feed_open(st_graph *graph, const char *branch, const char *since, st_feed **ret_feed,
                           sluice_error *err);
void st_feed_close(st_feed *feed); /* NULL allowed */
/* Behind the last event that was told without failing. */
void st_feed_cursor(const st_feed *feed, char ret_text[ST_CURSOR_TEXT]);
/* Tells of what is written to the branch, or happens to its name, from here on: opened before a look, it misses
 * nothing. */
sluice_status st_feed_watch(const st_feed *feed, pf_notify **ret_notify, sluice_error *err);
/* Tells what there is, up to the acknowledged end. An `each` that fails ends it, and its event counts as not told.
 * NOT_FOUND when the branch is gone; what it published before is told first, as far as it is still there. */
typedef sluice_status st_feed_fn(void *context, const st_feed_event *event, sluice_error *err);
sluice_status st_feed_read(st_feed *feed, st_feed_fn *each, void *context, sluice_error *err);

#endif
