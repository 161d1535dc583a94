/*
 * Sluice as a library: graphs opened, read and written from inside a program.
 *
 *   sluice_create, sluice_open       a graph                                        sluice_graph
 *   sluice_snapshot_open             one state of one branch, pinned                 sluice_snapshot
 *   sluice_scan, _get, _neighbors    rows of a snapshot; Arrow C stream out
 *   sluice_rows_get, _links_get      the same thousands of times, values as they lie (sluice/lookup.h)
 *   sluice_batch_new, sluice_commit  changes, collected and committed as one        sluice_batch
 *   sluice_load                      files, or Arrow C streams, as one commit
 *
 * Errors. Every function that can fail returns a sluice_status and, unless that is SLUICE_OK, fills `err` (NULL
 * allowed: only the status is wanted). Nothing prints, exits or raises a signal; no signal handler is installed.
 * In builds with assertions a broken invariant aborts. What a failed call was to give is NULL, or zero.
 *
 * Ownership. What a function gives through `ret_...` is the caller's: handles are closed by their own function, texts
 * freed by sluice_free. What a function is given stays the caller's and is not kept, except Arrow streams, which are
 * taken over. Texts are UTF-8 and end with a zero byte; a length beside one does not count it. Handles may be closed
 * in any order: a stream keeps its snapshot, and a snapshot its graph, for as long as it needs them.
 *
 * Threads. A graph handle, with everything made from it (snapshots, streams), is used by one thread at a time; a batch
 * by itself likewise. Different graph handles are independent, also of one graph: a thread that works beside others
 * opens its own. Arrow arrays and schemas that a stream gave out belong to nobody's handle and may be used and released
 * by any thread.
 *
 * Forks. A handle works only in the process that opened it. In a child that was forked meanwhile every use is refused
 * with USAGE, and closing frees its memory and does nothing else; the child holds none of the graph's files and locks
 * open. The parent notices nothing. The library itself forks never.
 *
 * Options. A zeroed options struct, or NULL, means every default. Programs are built anew when the number behind
 * libsluice.so changes; until then structs keep their layout.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <sluice/arrow.h>
#include <sluice/error.h>
#include <sluice/hooks.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_ID_TEXT 37 /* a UUID as text, with its zero byte */

typedef struct sluice_graph sluice_graph;
typedef struct sluice_snapshot sluice_snapshot;
typedef struct sluice_batch sluice_batch;

/* "0.1.0"; static storage. */
const char *sluice_version(void);
/* Frees a text that the library gave. NULL allowed. */
void sluice_free(void *text);

/* ---- graphs ---- */

typedef enum sluice_access { SLUICE_READ, SLUICE_WRITE } sluice_access;

/* How writers of the graph meet: retry on conflict, one at a time (others get WRITER_BUSY), or in a queue. */
typedef enum sluice_mode { SLUICE_OPTIMISTIC, SLUICE_SINGLE, SLUICE_QUEUED } sluice_mode;

/* Makes a graph in the new folder `path` from a schema (JSON, docs/operations.md) and opens it for writing.
 * ALREADY_EXISTS: something is there; UNSUPPORTED_FILESYSTEM; INPUT_SYNTAX: the schema is not one, with its line. */
sluice_status sluice_create(const char *path, const char *schema, size_t length, sluice_mode mode,
                            sluice_graph **ret_graph, sluice_error *err);
/* Opens a graph. SLUICE_READ changes nothing on disk and works on a read-only mount. NOT_FOUND: no such folder;
 * UNSUPPORTED_FORMAT: it is no graph, or of another version. */
sluice_status sluice_open(const char *path, sluice_access access, sluice_graph **ret_graph, sluice_error *err);
void sluice_close(sluice_graph *graph); /* NULL allowed */
void sluice_graph_id(const sluice_graph *graph, char ret_id[SLUICE_ID_TEXT]);

/* ---- branches ---- */

/* `branch` NULL means main, everywhere. */

typedef struct sluice_branch {
    const char *name;          /* NULL: its record cannot be read */
    bool damaged;              /* then nothing behind this is set */
    char head[SLUICE_ID_TEXT]; /* its newest commit */
    uint64_t generation;
    int64_t time_us; /* of that commit: microseconds since 1970, UTC */
} sluice_branch;
/* Return false to stop. The branch is valid during the call. */
typedef bool sluice_branch_fn(void *context, const sluice_branch *branch);
sluice_status sluice_branches(sluice_graph *graph, sluice_branch_fn *each, void *context, sluice_error *err);
/* Makes a branch that begins at `from`: a branch (its head), a commit of any branch, or a checkpoint; NULL: main.
 * Copies no data. ALREADY_EXISTS, NOT_FOUND, INVALID_NAME. */
sluice_status sluice_branch_create(sluice_graph *graph, const char *name, const char *from, sluice_error *err);
/* NOT_FOUND; USAGE for main. */
sluice_status sluice_branch_delete(sluice_graph *graph, const char *name, sluice_error *err);

/* ---- commits ---- */

typedef struct sluice_commit_info {
    char commit[SLUICE_ID_TEXT];
    char parents[2][SLUICE_ID_TEXT]; /* empty: none */
    char operation[SLUICE_ID_TEXT];  /* empty: none */
    uint64_t generation;
    uint32_t index; /* within its generation */
    int64_t time_us;
    const char *kind, *actor; /* "load", "mutate", ... */
    const char *message;      /* NULL: none */
    uint64_t inserted, updated, deleted;
} sluice_commit_info;
/* Return false to stop. The info is valid during the call. */
typedef bool sluice_log_fn(void *context, const sluice_commit_info *info);
/* The commits of a branch, newest first. */
sluice_status sluice_log(sluice_graph *graph, const char *branch, sluice_log_fn *each, void *context,
                         sluice_error *err);

/* ---- snapshots ---- */

/* Pins a state, so that it stays whole whatever writers and gc do. `at`: a commit id, generation number, checkpoint or
 * time (ISO 8601) on the branch; NULL: its head. NOT_FOUND: no such branch or place, or it was collected. */
sluice_status sluice_snapshot_open(sluice_graph *graph, const char *branch, const char *at,
                                   sluice_snapshot **ret_snapshot, sluice_error *err);
void sluice_snapshot_close(sluice_snapshot *snapshot); /* NULL allowed */

typedef struct sluice_place {
    char commit[SLUICE_ID_TEXT];
    uint64_t generation;
    uint32_t index;
    int64_t time_us; /* of the commit */
} sluice_place;
void sluice_snapshot_place(const sluice_snapshot *snapshot, sluice_place *ret_place);
/* The schema as a schema file (JSON). */
sluice_status sluice_snapshot_schema(sluice_snapshot *snapshot, char **ret_json, size_t *ret_length, sluice_error *err);
/* Rows of a type. USAGE: there is no such type (here and below), with the nearest name as hint. */
sluice_status sluice_count(sluice_snapshot *snapshot, const char *type, uint64_t *ret_rows, sluice_error *err);

typedef struct sluice_scan_options {
    const char *const *columns; /* by name, in this order; "_row_id" only as the first; NULL: all (of a type without
                                 * key with _row_id first; of edges from, to and the properties) */
    size_t column_count;
    const char *where; /* comparisons joined by and: "age >= 18 and name != 'Ada'", as --where; NULL: all rows */
    uint64_t limit;    /* 0: none */
} sluice_scan_options;
/* The rows of a type as a stream of record batches, in no order that means anything. Types are Arrow's bool, int32,
 * int64, uint64, float, double, utf8, binary, date32, timestamp[us, UTC]; ends of edges with several key members are
 * structs. Rows of files that are not compressed are not copied: arrays point into the mapped file, which stays mapped
 * until they are released. The stream's get_next fails with EIO or ENOMEM, and get_last_error then says why. */
sluice_status sluice_scan(sluice_snapshot *snapshot, const char *type, const sluice_scan_options *options,
                          struct ArrowArrayStream *ret_stream, sluice_error *err);

/* One node as a JSON object. `key` is JSON: a text or number; of several members an array; of a type without key the
 * row id. *ret_json NULL (and SLUICE_OK): there is none. USAGE: not a key of this type. */
sluice_status sluice_get(sluice_snapshot *snapshot, const char *type, const char *key, char **ret_json,
                         size_t *ret_length, sluice_error *err);

typedef enum sluice_direction { SLUICE_OUT, SLUICE_IN, SLUICE_BOTH } sluice_direction;
typedef struct sluice_neighbor_options {
    const char *edge; /* follow edges of this type only; NULL: all */
    sluice_direction direction;
    uint32_t depth; /* over how many edges; 0: one */
} sluice_neighbor_options;
/* A node that was reached: its type, its key as JSON, and over how many edges. Return false to stop. */
typedef bool sluice_neighbor_fn(void *context, const char *type, const char *key, uint32_t depth);
/* Nodes reached from one, breadth first, each once. NOT_FOUND: the node is not there. */
sluice_status sluice_neighbors(sluice_snapshot *snapshot, const char *type, const char *key,
                               const sluice_neighbor_options *options, sluice_neighbor_fn *each, void *context,
                               sluice_error *err);

/* ---- writing ---- */

typedef struct sluice_write_options {
    const char *branch;    /* NULL: main */
    const char *message;   /* kept with the commit */
    const char *actor;     /* who writes, kept with the commit; NULL: "library" */
    const char *operation; /* a UUID: the same id with the same content gives the first receipt and changes nothing,
                            * also after a crash; NULL: a new one */
    const char *if_head;   /* only if this commit is the head of the branch, else READ_SET_CHANGED; NULL: always */
    bool dry_run;          /* check everything and change nothing */
    /* Called by this thread now and then. `progress`: rows and bytes done so far. `cancelled` returning true, before
     * the write is armed, ends it with CANCELLED and nothing changed. NULL: none. Neither may use the graph's handle.
     */
    void *context;
    void (*progress)(void *context, uint64_t rows, uint64_t bytes);
    bool (*cancelled)(void *context);
} sluice_write_options;

typedef struct sluice_receipt {
    bool committed;    /* false: there was nothing to do, or a dry run; then there is no commit */
    bool repeated;     /* this operation was committed before: the first receipt */
    bool acknowledged; /* durable */
    char commit[SLUICE_ID_TEXT], operation[SLUICE_ID_TEXT];
    uint64_t generation;
    uint32_t index;
    int64_t time_us;
    uint64_t inserted, updated, deleted; /* objects; of a dry run what would be */
    uint64_t skipped;                    /* records whose "if" did not hold, or rows left out */
    uint32_t restarts;                   /* how often another writer came in between */
} sluice_receipt;

/*
 * A batch collects changes; sluice_commit makes one commit of them. The changes act in order, each on what the ones
 * before it have left. A batch belongs to no graph; it is not changed by a commit, and may be committed again.
 *
 * Two ways, which mix: JSON Lines as `sluice mutate` takes them,
 *
 *   {"op": "upsert", "node": "Person", "key": 7, "set": {"name": "Ada"}}
 *
 * and calls, which say the same:
 *
 *   sluice_batch_begin(batch, SLUICE_UPSERT, SLUICE_NODE, "Person");
 *   sluice_batch_int64(batch, SLUICE_KEY, NULL, 7);
 *   sluice_batch_text(batch, SLUICE_SET, "name", "Ada", 3);
 *   sluice_batch_end(batch, err);
 *
 * Between begin and end nothing is reported; end says what was wrong (USAGE), and drops the change then.
 */
sluice_status sluice_batch_new(sluice_batch **ret_batch, sluice_error *err);
void sluice_batch_free(sluice_batch *batch); /* NULL allowed */
void sluice_batch_clear(sluice_batch *batch);
/* Adds lines. They are looked at when they are committed. */
sluice_status sluice_batch_json(sluice_batch *batch, const char *lines, size_t length, sluice_error *err);

typedef enum sluice_op { SLUICE_INSERT, SLUICE_UPSERT, SLUICE_UPDATE, SLUICE_DELETE, SLUICE_ASSERT } sluice_op;
typedef enum sluice_kind { SLUICE_NODE, SLUICE_EDGE } sluice_kind;
/* Which part of the change a value belongs to. A part of one value has name NULL ("key": 7), one of several has a name
 * for each. The values of one part follow each other. */
typedef enum sluice_part {
    SLUICE_KEY,    /* of the node, or of an edge beside its ends */
    SLUICE_FROM,   /* key of the node where the edge begins */
    SLUICE_TO,     /* ... and ends */
    SLUICE_ROW_ID, /* name NULL: an object of a type without key */
    SLUICE_SET,    /* properties to set */
    SLUICE_IF,     /* update, delete: properties that must have these values, else the change is passed over */
    SLUICE_EQUALS  /* assert: properties that must have these values, else nothing is committed */
} sluice_part;
typedef enum sluice_flag {
    SLUICE_DETACH, /* delete: the node's edges, too */
    SLUICE_ABSENT, /* assert: there is no such object */
    SLUICE_PRESENT /* assert: there is one */
} sluice_flag;
void sluice_batch_begin(sluice_batch *batch, sluice_op op, sluice_kind kind, const char *type);
void sluice_batch_null(sluice_batch *batch, sluice_part part, const char *name);
void sluice_batch_bool(sluice_batch *batch, sluice_part part, const char *name, bool value);
void sluice_batch_int64(sluice_batch *batch, sluice_part part, const char *name, int64_t value); /* int32, int64 */
void sluice_batch_uint64(sluice_batch *batch, sluice_part part, const char *name, uint64_t value);
void sluice_batch_double(sluice_batch *batch, sluice_part part, const char *name, double value); /* float32, float64 */
/* string; also any other value as its text ("2026-01-31", base64 of bytes). */
void sluice_batch_text(sluice_batch *batch, sluice_part part, const char *name, const char *text, size_t length);
void sluice_batch_flag(sluice_batch *batch, sluice_flag flag);
sluice_status sluice_batch_end(sluice_batch *batch, sluice_error *err);

/* Commits a batch, whole or not at all: one flush of the disk when it is small. On failure err says whether it is
 * committed all the same (`committed`, `acknowledged`). Errors of a record name it as LINE of the batch. */
sluice_status sluice_commit(sluice_graph *graph, const sluice_batch *batch, const sluice_write_options *options,
                            sluice_receipt *ret_receipt, sluice_error *err);

typedef struct sluice_input {
    const char *type;
    const char *path; /* a file, format by its name (.csv .tsv .jsonl .arrow ..., .gz .zst); or NULL and: */
    struct ArrowArrayStream *stream; /* columns by name; edges from, to; taken over, also on failure */
} sluice_input;
typedef enum sluice_load_mode {
    SLUICE_LOAD_INSERT,   /* a key that is there is an error */
    SLUICE_LOAD_UPSERT,   /* a column that is absent keeps what is there */
    SLUICE_LOAD_OVERWRITE /* replaces the types */
} sluice_load_mode;
/* Loads inputs as one commit, whole or not at all, in this thread. For many rows; a program that has the command beside
 * it loads large files faster by `sluice load`, with a process for each core. */
sluice_status sluice_load(sluice_graph *graph, const sluice_input *inputs, size_t input_count, sluice_load_mode mode,
                          const sluice_write_options *options, sluice_receipt *ret_receipt, sluice_error *err);

#ifdef __cplusplus
}
#endif

#include <sluice/lookup.h>
#include <sluice/manage.h>
#endif
