/*
 * Sluice as a library, second part: what became of a graph, and looking after it. Included by sluice/sluice.h, whose
 * rules for errors, ownership, threads and forks hold here, too.
 *
 *   sluice_diff             what leads from one snapshot to another, row by row
 *   sluice_feed_...         the changes of a branch behind a cursor, and those to come
 *   sluice_merge            one branch into another
 *   sluice_checkpoint_...   names for commits, which then stay
 *   sluice_schema_apply     another schema
 *   sluice_revert           a branch back to an older state
 *   sluice_gc               what nobody needs any more
 *   sluice_load_with        a load that may leave bad rows out
 *   sluice_backup           a copy of a graph that is in use
 *   sluice_salvage          a table of a damaged graph, made anew
 */
#ifndef SLUICE_MANAGE_H
#define SLUICE_MANAGE_H

#include <sluice/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- changes ---- */

typedef enum sluice_change_kind {
    SLUICE_CHANGE_INSERT,
    SLUICE_CHANGE_UPDATE,
    SLUICE_CHANGE_DELETE,
    SLUICE_CHANGE_SCHEMA, /* feeds only: before all rows of its commit */
    SLUICE_CHANGE_COMMIT  /* feeds only: behind all changes of a commit, also where there are none */
} sluice_change_kind;

typedef struct sluice_change {
    sluice_change_kind kind;
    const char *type; /* of a row; else NULL */
    /* JSON objects. `name`: what a row is known by: {"key": 7}; of edges "from", "to" and their own "key"; "_row_id"
     * where there is no key. `before` and `after`: a deleted, an inserted row; of an update the properties that
     * changed; the schemas. NULL: none. */
    const char *name, *before, *after;
    /* Of feeds; empty, NULL or zero of a difference: the commit, and where it stands. */
    char commit[SLUICE_ID_TEXT];
    char operation[SLUICE_ID_TEXT]; /* empty: none */
    const char *commit_kind;        /* "load", "mutate", "merge", ... */
    uint64_t generation;
    uint32_t index;
    int64_t time_us;
    uint64_t changes;   /* of a commit: how many came before it */
    const char *cursor; /* behind this change */
} sluice_change;
/* Return false to stop: the change then counts as not told. The change is valid during the call, which must not use the
 * graph's handle. */
typedef bool sluice_change_fn(void *context, const sluice_change *change);

/* What leads from one snapshot to another of the same graph: by type, inserted and updated rows, then deleted ones.
 * Rows are the same row when they have the same key, or where there is none the same row id. */
sluice_status sluice_diff(sluice_snapshot *from, sluice_snapshot *to, sluice_change_fn *each, void *context,
                          sluice_error *err);

#define SLUICE_CURSOR_TEXT 68 /* a cursor as text, with its zero byte */
typedef struct sluice_feed sluice_feed;

/* Stands behind a cursor that a feed of this branch gave, today or in another process long ago; or behind a place, as
 * sluice_snapshot_open takes it, or "head"; NULL: behind the branch's first, empty state. NOT_FOUND with "gap": true in
 * its details: what would come next was collected, begin again with a scan; NOT_FOUND also for a cursor of another
 * branch or graph; USAGE: it is no cursor and no place. The place where a feed stands is pinned. */
sluice_status sluice_feed_open(sluice_graph *graph, const char *branch, const char *since, sluice_feed **ret_feed,
                               sluice_error *err);
void sluice_feed_close(sluice_feed *feed); /* NULL allowed */
/* Tells all that is acknowledged by now, and returns. NOT_FOUND when the branch was deleted; what it published before
 * is told first. */
sluice_status sluice_feed_read(sluice_feed *feed, sluice_change_fn *each, void *context, sluice_error *err);
/* Sleeps until something was written to the branch since the last read, or so many milliseconds (at most 60,000).
 * *ret_changed: it is worth reading; false: the time is over. A signal may end it early. */
sluice_status sluice_feed_wait(sluice_feed *feed, int64_t milliseconds, bool *ret_changed, sluice_error *err);
/* Behind the last change that was told: where sluice_feed_open goes on. */
void sluice_feed_cursor(const sluice_feed *feed, char ret_cursor[SLUICE_CURSOR_TEXT]);

/* ---- merging ---- */

typedef enum sluice_merge_rule { SLUICE_MERGE_FAIL, SLUICE_MERGE_OURS, SLUICE_MERGE_THEIRS } sluice_merge_rule;
typedef enum sluice_merge_outcome {
    SLUICE_MERGE_UP_TO_DATE,
    SLUICE_MERGE_FAST_FORWARD,
    SLUICE_MERGE_MERGED
} sluice_merge_outcome;

typedef struct sluice_merge_receipt {
    sluice_merge_outcome outcome;
    sluice_receipt receipt;   /* UP_TO_DATE: not committed */
    bool source_deleted;      /* when it was to be */
    uint64_t conflicts_found; /* with MERGE_CONFLICT: all of them, also those that were not told */
} sluice_merge_receipt;

typedef struct sluice_conflict {
    const char *kind;                                  /* "divergent-update", ...: docs/operations.md "Merging" */
    const char *type, *key, *property, *text;          /* key as JSON; each NULL where there is none */
    char ours[SLUICE_ID_TEXT], theirs[SLUICE_ID_TEXT]; /* who last wrote it on each side; empty: it is not there */
} sluice_conflict;
/* Return false for no more of them. */
typedef bool sluice_conflict_fn(void *context, const sluice_conflict *conflict);

/* Merges branch `source` into options->branch, as one commit with two parents, whole or not at all. MERGE_CONFLICT:
 * both sides did something else to one object; nothing changed, and `each` (NULL allowed) is told what. dry_run is
 * USAGE. */
sluice_status sluice_merge(sluice_graph *graph, const char *source, sluice_merge_rule rule, bool delete_source,
                           const sluice_write_options *options, sluice_conflict_fn *each, void *context,
                           sluice_merge_receipt *ret_receipt, sluice_error *err);

/* ---- checkpoints ---- */

typedef struct sluice_checkpoint {
    const char *name;
    char commit[SLUICE_ID_TEXT];
    uint64_t generation;
    uint32_t index;
    int64_t time_us; /* of the commit */
} sluice_checkpoint;
/* Return false to stop. */
typedef bool sluice_checkpoint_fn(void *context, const sluice_checkpoint *checkpoint);
sluice_status sluice_checkpoints(sluice_graph *graph, sluice_checkpoint_fn *each, void *context, sluice_error *err);
/* Names the head of a branch, or the place `at` on it. ALREADY_EXISTS, INVALID_NAME, NOT_FOUND. */
sluice_status sluice_checkpoint_create(sluice_graph *graph, const char *name, const char *branch, const char *at,
                                       sluice_error *err);
sluice_status sluice_checkpoint_delete(sluice_graph *graph, const char *name, sluice_error *err);

/* ---- schema, revert, collection ---- */

/* Applies a schema file (JSON), as one commit; none when it changes nothing. USAGE when rows or values would be lost
 * and allow_data_loss is not set; CONSTRAINT_... when rows that are there break it. dry_run is USAGE. */
sluice_status sluice_schema_apply(sluice_graph *graph, const char *schema, size_t length, bool allow_data_loss,
                                  const sluice_write_options *options, sluice_receipt *ret_receipt, sluice_error *err);
/* Publishes the state of an older place (also of another branch's checkpoint) as a new commit; none when it is that
 * state. dry_run is USAGE. */
sluice_status sluice_revert(sluice_graph *graph, const char *to, const sluice_write_options *options,
                            sluice_receipt *ret_receipt, sluice_error *err);

typedef struct sluice_gc_options {
    bool dry_run;
    uint64_t keep;         /* of each branch so many newest generations stay; 0: no limit of this kind */
    uint64_t keep_seconds; /* what stood within so many seconds stays; 0: no limit of this kind. None of both: no
                            * history goes, only what no history has */
} sluice_gc_options;
typedef struct sluice_gc_result {
    uint64_t files, bytes, generations; /* that went, or would */
} sluice_gc_result;
sluice_status sluice_gc(sluice_graph *graph, const sluice_gc_options *options, sluice_gc_result *ret_result,
                        sluice_error *err);

/* ---- loads that may leave rows out ---- */

typedef struct sluice_load_options {
    sluice_load_mode mode;
    bool skip_bad_rows;
    uint64_t max_errors; /* skipping: one more bad row fails the load; 0: no ceiling */
    /* Skipping: each row that was left out (NULL allowed): its input (a path, or "stream of TYPE"), the line or record
     * where it begins, the code, and what is wrong. */
    void (*reject)(void *context, const char *input, uint64_t line, const char *code, const char *text);
    bool create_branch;  /* options->branch must not be there, and is made with this load ... */
    const char *from;    /* ... at this branch or commit; NULL: main */
    bool ignore_unknown; /* columns that the schema does not have */
    bool compress;       /* zstd in what is stored; scans then copy */
    uint64_t memory;     /* bytes; 0: half of what there is */
} sluice_load_options;
/* sluice_load with more to say; receipt->skipped counts the rows that were left out. `reject` gets options->context. */
sluice_status sluice_load_with(sluice_graph *graph, const sluice_input *inputs, size_t input_count,
                               const sluice_load_options *how, const sluice_write_options *options,
                               sluice_receipt *ret_receipt, sluice_error *err);

/* ---- copies ---- */

typedef struct sluice_backup_result {
    bool first; /* there was no graph in the folder before */
    uint32_t branches;
    uint64_t files, bytes;               /* copied */
    uint64_t reused_files, reused_bytes; /* there already */
    uint64_t removed_files;              /* that the graph has no more */
} sluice_backup_result;
/* Called now and then with what is copied so far; must not use the graph's handle. Return false to stop: CANCELLED. */
typedef bool sluice_backup_fn(void *context, const sluice_backup_result *so_far);
/* Copies the graph, as it is at one moment, to a folder: a graph like any other, which was open for nobody's writing.
 * Again into the same folder: only what is new. Until it ends the folder stays what it was. ALREADY_EXISTS: it holds
 * something else, or a copy that was written to since. `each` NULL: nobody asks. */
sluice_status sluice_backup(sluice_graph *graph, const char *destination, sluice_backup_fn *each, void *context,
                            sluice_backup_result *ret_result, sluice_error *err);

/* A loss, or a guess at what is not there any more: `object` is a path in the graph or a place, `what` says it. */
typedef bool sluice_finding_fn(void *context, bool lost, const char *object, const char *what);
typedef struct sluice_salvage_result {
    uint64_t rows;   /* in the new graph, of the type (ends of edges not counted) */
    uint64_t losses; /* findings of lost things; guesses likewise */
    uint64_t guesses;
    uint64_t lost_rows;  /* that the state says were there; without a state (`from_files`) it is not known */
    uint64_t rejected;   /* rows that were read and break a rule: without an end, of a key that is there */
    uint64_t doubled;    /* of files without a list: older versions of rows */
    uint64_t generation; /* of the state that was read; 0: none was */
    bool from_files, older, deletions_unknown, whole; /* `whole`: nothing is lost, guessed, rejected or unsure */
} sluice_salvage_result;
/* Makes a new graph at `into` with the rows of one type of the graph at `path` that can be read; an edge type comes
 * with the nodes of its ends. The damaged graph is not opened by sluice_open, and not changed. SLUICE_OK also when
 * something is lost: the result says so, and `each` (NULL allowed; false: no more of them) what. */
sluice_status sluice_salvage(const char *path, const char *branch, const char *type, const char *into,
                             sluice_finding_fn *each, void *context, sluice_salvage_result *ret_result,
                             sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
