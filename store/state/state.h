/*
 * What a generation says: commits, table entries, edits, change sets (DESIGN 2, DECISIONS "Table entry").
 *
 * Table state is a list of fragments, each with its set of deleted rows. It changes by edits, immutable objects that
 * name no parent: add, delete, substitute, replace; applied in publication order to the list that stands. The state at
 * (generation, index) is the parent's plus edits 0..index of that generation.
 */
#ifndef STORE_STATE_STATE_H
#define STORE_STATE_STATE_H

#include "platform/ids.h"
#include "store/fragment/deletion.h" /* st_dead_ref */
#include "store/fragment/fragment.h"
#include "store/fragment/run.h"
#include "store/graph/graph.h"

/* ---- edits ---- */

/* What a run of a fragment is for. Key: node keys, or edge identities of keyed edges. */
typedef enum st_run_use { ST_RUN_KEY, ST_RUN_FROM, ST_RUN_TO, ST_RUN_UNIQUE } st_run_use;
typedef struct st_run_ref {
    st_run_use use;
    uint32_t unique; /* id of the unique tuple, for ST_RUN_UNIQUE */
    st_run_info info;
} st_run_ref;

/* The adjacency that covers a fragment of an edge table (store/fragment/adjacency.h): files below
 * tables/<id>/indexes/, which it shares with the other fragments that they cover. */
typedef struct st_index_ref {
    bool present;
    uint32_t ordinal; /* the fragment's number in both files */
    st_run_info out, in;
} st_index_ref;

typedef struct st_edit_add {
    st_fragment_info fragment;
    st_run_ref *runs;
    uint32_t run_count;
    st_index_ref index;
    st_dead_ref dead; /* positions left out by a late phase of a skipping load */
    /* Ids of rows without a column _row_id: id of position 0, the others follow. Bound in G and then no part of the
     * edit, unless the plan gave it (from a block of its own: loads whose edges name keyless nodes of the same load).
     */
    uint64_t first_row;
    bool first_row_given;
    pf_id commit;      /* the commit that wrote its rows, where no column says so: bound in G ... */
    bool commit_given; /* ... or of an older one, whose fragment is listed again */
} st_edit_add;

typedef struct st_edit_out { /* a fragment that leaves by a substitution */
    char fragment[64];
    uint64_t bytes;
    st_dead_ref applied; /* positions of it that the incoming fragments leave out: deletions that were applied */
    uint32_t incoming;   /* so many of what comes in under new names stand in its place, in the order of the adds; those
                          * that no leaving fragment claims stand in the place of the first */
} st_edit_out;

#define ST_ATTACHED_EDIT_MAX 65536u /* bytes of an edit that goes into the record; larger ones are staged */
#define ST_LISTED_ROWS_MAX   1024u  /* deleted row ids that an edit lists itself; more go to a deletion file */

/* What one write does to one table. Applied in this order to the list that stands: deletions (of the rows listed before
 * it), the substitution or replacement, the additions. */
typedef struct st_edit {
    uint64_t table;
    /* An attached edit may have attached fragments: the attachments right behind its own, in the order of the adds. */
    st_edit_add *adds; /* also what a substitution brings in (with _row_id columns, or with ids and commit given, or a
                        * fragment by its own name again) */
    uint32_t add_count;
    st_dead_ref deletes;   /* row ids, in a deletion file ... */
    uint64_t *delete_rows; /* ... or listed, ascending */
    uint32_t delete_count;
    st_edit_out *out; /* substitution: what leaves */
    uint32_t out_count;
    bool replace; /* the adds are the whole list */
} st_edit;
void st_edit_free(st_edit *edit); /* its insides; safe on a zeroed one */
/* {"format":"sluice-edit/1",...}: canonical. */
sluice_status st_edit_encode(const st_edit *edit, pf_buffer *buffer, sluice_error *err);
sluice_status st_edit_decode(const void *bytes, size_t length, st_edit *ret_edit, sluice_error *err);
/* A name that may stand for a file below tables/<id>/: letters, digits, "-", "_", "."; not first a dot; shorter than
 * `room`. */
bool st_object_name_is_valid(const char *name, size_t room);
/* tables/<table>/ with fragments, lists, keys, deletions, indexes: made (or found), every name synced. For accepting a
 * type. */
sluice_status st_table_make_folders(pf_volume *volume, uint64_t table, sluice_error *err);

/* ---- change sets (K-01): what a commit did, per table and conflict space ---- */

typedef enum st_space {
    ST_SPACE_KEY_INSERTED,  /* node keys, edge identities */
    ST_SPACE_UNIQUE_SET,    /* unique tuples set */
    ST_SPACE_ENDPOINT_USED, /* end nodes of inserted edges, by node table */
    ST_SPACE_KEY_DELETED,
    ST_SPACE_UNIQUE_FREED,
    ST_SPACE_ROW_UPDATED,
    ST_SPACE_WHOLE_TABLE,
    ST_SPACE_COUNT
} st_space;

/* One set of one commit: listed hashes (small) or runs of its fragments (large: run files named in the edit). */
typedef struct st_change {
    uint64_t table; /* for ENDPOINT_USED: the node table */
    st_space space;
    uint32_t unique;   /* which unique tuple: its id */
    uint64_t property; /* ROW_UPDATED: which property of these rows; 0: any of them */
    bool whole;        /* missing or unreadable: counts as everything */
    uint64_t *hashes;  /* sorted; NULL when runs are named */
    uint64_t hash_count;
    struct st_change_run {
        uint64_t table; /* where the run lies (an edge table for ENDPOINT_USED) */
        st_run_ref run;
        st_fragment_info fragment; /* to confirm a hash on the key itself */
    } * runs;
    uint32_t run_count;
} st_change;
typedef struct st_changes {
    st_change *items;
    uint32_t count;
} st_changes;
void st_changes_free(st_changes *changes); /* its insides; safe on a zeroed one */
/* Adds that the table was changed as a whole: replaced, reverted, dropped. */
sluice_status st_changes_add_whole(st_changes *changes, uint64_t table, sluice_error *err);
/* More hashes than this are not listed: name runs instead (a single commit's change set stays a small attachment). */
#define ST_LISTED_HASHES_MAX 4096u

/* ---- commits ---- */

typedef struct st_commit_edit { /* how the commit names an edit */
    uint64_t table;
    bool attached;        /* else staged */
    uint32_t attachment;  /* attached: its number in the record */
    char file[72];        /* staged: below tables/<id>/lists/ */
    pf_sha256 digest;     /* of the edit's bytes */
    uint64_t first_row;   /* id of the first row of the edit's first bound fragment; the others follow in order */
    uint64_t rows, bytes; /* added */
} st_commit_edit;

/* How far a history reaches into the log of one branch: to this commit, and so to all before it there. */
typedef struct st_reach {
    uint64_t incarnation, generation;
    uint32_t index;
} st_reach;

#define ST_ACTOR_MAX   64
#define ST_MESSAGE_MAX 1024
typedef struct st_commit {
    pf_id id;
    pf_id operation;   /* nil: none */
    pf_sha256 request; /* digest of the request */
    pf_sha256 delta;   /* digest of the delta (slots left out) */
    char kind[16];     /* "init", "load", "mutate", ... */
    char actor[ST_ACTOR_MAX];
    char *message; /* NULL: none (owned) */
    int64_t minted_us, time_us;
    pf_id parents[2]; /* nil: none */
    /* A merge: where parents[1] stands, then how far its history reaches into other branches' logs; what lies before
     * the place that it names in main's is left out (store/state/ancestry.h). Owned. */
    st_reach *merged;
    uint32_t merged_count;
    pf_id epoch;
    uint64_t inserted, updated, deleted;
    uint64_t rejected; /* rows of the input that a skipping load left out */
    st_commit_edit *edits;
    uint32_t edit_count;
    uint32_t changes_attachment; /* the record's attachment that holds this commit's change set */
} st_commit;

/* ---- table entries and the view of a branch ---- */

/* A page of a folded list: tables/<id>/lists/<file>. Level 0 lists fragments, level n pages of level n - 1. */
typedef struct st_list_ref {
    char file[72];
    pf_sha256 digest;
    uint32_t level;
    uint64_t fragments;
    uint64_t low, high; /* every row id in it lies in [low, high] */
} st_list_ref;

typedef struct st_edit_place { /* where an edit stands */
    uint64_t incarnation, generation;
    uint32_t index; /* commit within the generation */
    uint32_t at;    /* edit within the commit */
} st_edit_place;

typedef struct st_table_entry {
    uint64_t id;
    char *name;
    bool edge, live;
    uint64_t rows, bytes; /* live rows, and bytes of the fragments */
    st_list_ref *pages;   /* the folded list, in order */
    uint32_t page_count;
    st_edit_place *edits; /* after the folded list, in publication order */
    uint32_t edit_count;
} st_table_entry;

typedef struct st_state_page { /* a page of table entries: where its bytes are */
    uint64_t incarnation, generation;
    uint32_t attachment;
    uint64_t segment; /* in which it was found; not part of its address */
    uint32_t entries;
    pf_sha256 digest;
} st_state_page;

typedef struct st_skip { /* an ancestor: the generation with the greatest number below ours that 2^k divides */
    uint64_t number;
    pf_sha256 digest;
} st_skip;

/* One immutable view: a (schema, state) pair of one branch at one place. What readers pin and writers call their base.
 */
typedef struct st_view {
    uint64_t incarnation;
    uint64_t generation;
    uint32_t index;   /* the last commit of the generation, unless opened at another one */
    pf_sha256 digest; /* of the generation's record */
    pf_sha256 schema_identity;
    st_schema *schema;
    pf_id head; /* commit id at this place */
    int64_t head_time_us;
    st_table_entry *tables; /* ascending by id */
    uint32_t table_count;
    uint64_t row_block, next_row; /* row ids: the branch's block and the next free id in it */
    st_state_page *pages;         /* that hold `tables`, in order; none when the view stands between two generations */
    uint32_t page_count;
    st_skip *skips; /* [k]: see st_skip */
    uint32_t skip_count;
    uint64_t merge;  /* the newest generation up to this one that publishes a merge; 0: none does */
    uint32_t shares; /* owners beyond the first one; all in one thread */
} st_view;
#define ST_INDEX_LAST UINT32_MAX
/* The branch's newest state (log refreshed by the caller or by `refresh`). */
sluice_status st_view_load(st_graph *graph, st_log *log, bool refresh, st_view **ret_view, sluice_error *err);
/* The state at a commit: (generation, index), or (generation, ST_INDEX_LAST); numbers up to the fork lead into parents.
 * NOT_FOUND when it was collected; the caller pins it and then asks again. */
sluice_status st_view_load_at(st_graph *graph, st_log *log, uint64_t generation, uint32_t index, st_view **ret_view,
                              sluice_error *err);
/* The state after a generation that stands in this log, or at which it begins; for collection, which knows what it
 * keeps: nothing is asked of the boundary. */
sluice_status st_view_load_kept(st_graph *graph, st_log *log, uint64_t generation, st_view **ret_view,
                                sluice_error *err);
void st_view_free(st_view *view);                                         /* NULL allowed; the last owner's frees it */
const st_table_entry *st_view_table(const st_view *view, uint64_t table); /* NULL when absent */

/* Materialises a table: its fragments with ids bound and deletions applied, in order. CORRUPT when pages or edits are
 * damaged or do not fit together. */
typedef struct st_table_list {
    st_edit_add *fragments;
    uint32_t count;
    /* per fragment: sorted positions of deleted rows, NULL when none */
    uint64_t **dead;
    uint64_t *dead_count;
} st_table_list;
sluice_status st_table_materialise(st_graph *graph, const st_view *view, uint64_t table, st_table_list *ret_list,
                                   sluice_error *err);
void st_table_list_free(st_table_list *list);
/* Applies edits by their places to a list that stands right before them, as long as they only add fragments;
 * *ret_extended false: one does more, or failed, and the list ends before it. */
sluice_status st_table_extend(st_graph *graph, uint64_t table, const st_edit_place *places, uint32_t count,
                              st_table_list *list, bool *ret_extended, sluice_error *err);
/* Drops all fragments from `count` on. */
void st_table_list_cut(st_table_list *list, uint32_t count);
/* The same list with one more edit applied, as publishing it at `view` would: WRITE_CONFLICT when a substitution does
 * not hold (an outgoing fragment is not listed any more, or a deletion that it applied is gone). */
sluice_status st_table_try_edit(st_graph *graph, const st_view *view, const st_edit *edit, st_table_list *ret_list,
                                sluice_error *err);

/* The edit that makes another list (of the same table, at another place in history) the table's list: its fragments are
 * named again with their row ids and commits, nothing is copied but what lies in records. Deleted rows are staged as
 * deletions/"<stem>-d<n>", rows of records as fragments/"<stem>-a<n>.arrow"; synced with their folders. */
sluice_status st_edit_adopt(st_graph *graph, uint64_t table, const st_table_list *list, const char *stem,
                            st_edit *ret_edit, sluice_error *err);
/* Do both list the same rows? By fragments and deleted positions; rows that were written again are other ones. */
bool st_table_list_same(const st_table_list *a, const st_table_list *b);

/* ---- folds ---- */

/* Edits behind the folded list from which a writer of the table folds along that can have the table's folder, and from
 * which everybody does. A fold makes files and syncs them, some ten flushes, while an edit more is some forty bytes of
 * a state page; and while one folds, a group of writers goes on, so that the second is far above the first. A fold
 * without merging is void only when another was taken, so the edits stay fewer than the latter and those of the writers
 * that prepared at one time. */
#define ST_FOLD_AT   32u
#define ST_FOLD_MUST 384u

/* The edits that stand behind a table's folded list, put into its pages (staged under tables/<id>/lists/). It rides
 * along with a write: applied in G if these pages and edits still lead the entry, else dropped. No part of the delta.
 */
typedef struct st_fold {
    uint64_t table;
    st_list_ref *base; /* the pages that were folded upon */
    uint32_t base_count;
    st_edit_place *edits; /* the edits that were folded in */
    uint32_t edit_count;
    st_list_ref *pages; /* the result */
    uint32_t page_count;
    st_edit made;                 /* the fragment that rows were moved into; at most one add */
    uint64_t bytes_in, bytes_out; /* of the fragments that came and went by that */
    bool merged;                  /* a staged fragment went: void when an edit behind it takes fragments out */
} st_fold;
void st_fold_free(st_fold *fold); /* its insides; safe on a zeroed one */
/* Stages a fold of all edits of the entry; files are called "<stem>-l<n>.json", "<stem>.arrow" and "<stem>.<use>.run"
 * (stem: unique to the plan, at most 56 bytes), synced with their folders. Reads and writes only the pages that change.
 * Rows of attached fragments move into one staged fragment; `merge`: so do those of small ones at the end of the list
 * (the caller holds the folder of the table, so that nobody substitutes them meanwhile). */
sluice_status st_fold_stage(st_graph *graph, const st_view *view, uint64_t table, bool merge, const char *stem,
                            st_fold *ret_fold, sluice_error *err);

/* ---- generations: reading ---- */

typedef struct st_generation {
    uint64_t incarnation, number;
    pf_sha256 schema_identity;
    st_commit *commits;
    uint32_t commit_count;
    uint64_t row_block, next_row;
    pf_id head; /* the last commit, also of a generation that publishes none */
    int64_t head_time_us;
    st_state_page *pages; /* segment unset */
    uint32_t page_count;
    st_skip *skips;
    uint32_t skip_count;
    uint64_t merge; /* the newest generation before this one that publishes a merge; 0: none does */
} st_generation;
sluice_status st_generation_decode(const st_record *record, st_generation *ret_generation, sluice_error *err);
void st_generation_free(st_generation *generation);
/* Reads one of a log by its number, also where only the lineage is left of it. Both are the caller's to free, whatever
 * comes of it. */
sluice_status st_generation_read(st_log *log, uint64_t number, st_record *ret_record, st_generation *ret_generation,
                                 sluice_error *err);
/* The first of the generations [first, last] whose time is not before `us`; last + 1 when all are. */
sluice_status st_generation_since(st_log *log, uint64_t first, uint64_t last, int64_t us, uint64_t *ret_number,
                                  sluice_error *err);
/* What a lineage keeps of a generation's manifest (an st_log_compact_fn): its commits, but no state. */
sluice_status st_generation_compact(void *context, const st_record *record, pf_buffer *ret_manifest, sluice_error *err);
/* A generation that is judged again and again: what is small and whole stays decoded with the handle. Good until the
 * next one is opened; closed in any case. */
typedef struct st_judged {
    const st_generation *generation;
    bool collected;              /* only the commits are known */
    struct st_edit_record *own_; /* not kept */
    struct st_edit_record *read_;
} st_judged;
sluice_status st_judged_open(st_graph *graph, st_log *log, uint64_t number, st_judged *ret_judged, sluice_error *err);
/* As st_generation_changes; belongs to `judged`. */
sluice_status st_judged_changes(st_graph *graph, st_judged *judged, uint32_t commit, const st_changes **ret_changes,
                                sluice_error *err);
/* The edit number `at` of this commit; the caller's to free. Its digest is checked. */
sluice_status st_judged_edit(st_graph *graph, const st_judged *judged, uint32_t commit, uint32_t at, st_edit *ret_edit,
                             sluice_error *err);
void st_judged_close(st_judged *judged); /* safe on a zeroed one */
/* The change sets of one commit of a record (an unreadable one: a single item with whole = true and table 0). */
sluice_status st_generation_changes(st_graph *graph, const st_record *record, uint32_t commit, st_changes *ret_changes,
                                    sluice_error *err);
/* The edit that a commit names: attached to this record, or in its staged file; its digest is checked. */
sluice_status st_commit_edit_read(st_graph *graph, const st_record *record, const st_commit_edit *edit,
                                  st_edit *ret_edit, sluice_error *err);
/* Every object below tables/ that this record (a generation's or an opening one) names, as a path: the staged files of
 * its commits' edits, the fragments, runs and deletion sets in these edits, and the pages of folded lists in its state
 * pages with what they list. An object may come more than once. For collection: what no record names is nobody's.
 * `standing`: of the state pages only what the state after this record needs (for the first of those that are kept). */
typedef sluice_status st_object_fn(void *context, const char *path, sluice_error *err);
sluice_status st_record_objects(st_graph *graph, const st_record *record, bool standing, st_object_fn *each,
                                void *context, sluice_error *err);
/* The same for a whole state: its folded lists and its edits; of fragments that have left it again only what its lists
 * are made from. `place`: each record that it needs, of an edit or of what is attached to one. */
typedef sluice_status st_place_fn(void *context, uint64_t incarnation, uint64_t generation, sluice_error *err);
sluice_status st_view_objects(st_graph *graph, const st_view *view, st_object_fn *each, st_place_fn *place,
                              void *context, sluice_error *err);
/* The same for one edit: its fragments, runs and deletion sets. */
sluice_status st_edit_objects(const st_edit *edit, st_object_fn *each, void *context, sluice_error *err);
/* Finds a commit of a branch by id, newest first, through the chain; NOT_FOUND. Follows the fork into parents. */
sluice_status st_commit_find(st_graph *graph, st_log *log, const pf_id *commit, uint64_t *ret_generation,
                             uint32_t *ret_index, sluice_error *err);
/* Finds the newest commit whose time is not after `us`, likewise; NOT_FOUND when all are later. */
sluice_status st_commit_find_time(st_graph *graph, st_log *log, int64_t us, uint64_t *ret_generation,
                                  uint32_t *ret_index, sluice_error *err);
/* Finds the commit with this operation id: in the records of the active segment and in the opening record's receipt
 * table (the last 10,000, none older than 30 days). */
typedef struct st_receipt {
    pf_id operation, commit;
    pf_sha256 request;
    uint64_t incarnation, generation;
    uint32_t index;
    int64_t time_us;
    bool expired; /* not found, and the id's own time is older than the table's oldest entry */
} st_receipt;
sluice_status st_receipt_find(st_graph *graph, st_log *log, const pf_id *operation, bool *ret_found,
                              st_receipt *ret_receipt, sluice_error *err);

/* ---- generations: writing (inside G, under the publish lock) ---- */

/* What a write contributes; made in Prepare, never changed afterwards (its digest is checked in G). */
typedef struct st_delta {
    st_commit commit;          /* id, operation, request, kind, actor, message, minted, counts; the rest bound in G */
    pf_sha256 schema_identity; /* the base's */
    pf_sha256
        new_schema; /* the schema that stands from this commit on; zero: the same. Then it is alone in its group */
    struct st_delta_edit {
        st_edit edit;
        bool staged;      /* else attached */
        char file[72];    /* staged: its file below tables/<id>/lists/ */
        pf_sha256 digest; /* of the encoded edit */
    } * edits;
    uint32_t edit_count;
    st_changes changes;
    st_fold *folds; /* ride along; neither encoded nor digested */
    uint32_t fold_count;
    uint32_t folded; /* how many of them its generation took, and the digest as it was then: set when that is built */
    pf_sha256 built;
} st_delta;
void st_delta_free(st_delta *delta); /* its insides; safe on a zeroed one */
bool st_delta_changes_schema(const st_delta *delta);
sluice_status st_delta_encode(const st_delta *delta, pf_buffer *buffer, sluice_error *err); /* for intents; canonical */
sluice_status st_delta_decode(const void *bytes, size_t length, st_delta *ret_delta, sluice_error *err);
/* SHA-256 of the encoding, which leaves slots out. Without memory: a random digest, which equals none. */
pf_sha256 st_delta_digest(const st_delta *delta);
/* Adds an edit to a delta and takes its insides over (also when it fails). One over ST_ATTACHED_EDIT_MAX is staged as
 * tables/<id>/lists/<stem>-e.json, synced with its folder. */
sluice_status st_delta_add_edit(pf_volume *volume, st_delta *delta, st_edit *edit, const char *stem, sluice_error *err);
/* `may_merge` is asked for each table: is its folder mine? It says the same to the second question. NULL: no, but fold.
 */
typedef bool st_may_merge_fn(void *context, uint64_t table);
/* Has a table of the delta's edits so many edits that this write folds it? */
bool st_delta_wants_folds(const st_view *view, const st_delta *delta, st_may_merge_fn *may_merge, void *context);
/* Adds folds for those tables. */
sluice_status st_delta_add_folds(st_graph *graph, const st_view *view, st_delta *delta, const char *stem,
                                 st_may_merge_fn *may_merge, void *context, sluice_error *err);
/* Rows that these deltas will have numbered from the branch's block. RESOURCE_LIMIT when they are more than a block
 * has. */
sluice_status st_delta_rows(st_delta *const *deltas, uint32_t count, uint64_t *ret_rows, sluice_error *err);
/* Whether st_generation_build would need a new row block for them. */
sluice_status st_generation_needs_block(const st_view *head, st_delta *const *deltas, uint32_t count, bool *ret_needs,
                                        sluice_error *err);

/* Builds generation head.number + 1 with these deltas as its commits, in order: binds number, parents, times (never
 * below the parent's), row ids (rows in file order from next_row; the rest of a block that does not hold all of the
 * group's rows is left and `new_row_block` taken), totals and pages. INTERNAL when a block is needed and 0 was given.
 */
sluice_status st_generation_build(st_graph *graph, const st_view *head, st_delta *const *deltas, uint32_t count,
                                  uint64_t new_row_block, pf_buffer *ret_manifest, pf_buffer *ret_attachments,
                                  sluice_error *err);
/* The generation that was built last on this handle stands at the end of the log now: its state is known. */
void st_head_published(st_graph *graph, st_log *log, const pf_sha256 *digest);
/* The opening record for a new segment that continues `head` (for st_opening_source.encode). */
sluice_status st_opening_build(st_graph *graph, st_log *log, const st_view *head, pf_buffer *ret_manifest,
                               pf_buffer *ret_attachments, sluice_error *err);
/* The opening record of main's first segment, which continues number 0 (for st_graph_init). */
sluice_status st_opening_build_first(pf_buffer *ret_manifest, pf_buffer *ret_attachments, sluice_error *err);
/* The opening record of a new branch that begins at `view` (of another branch): same tables and schema, a row block of
 * its own, no receipts. Its log is made with the view's generation and digest. */
sluice_status st_opening_build_fork(st_graph *graph, const st_view *view, uint64_t incarnation, uint64_t row_block,
                                    pf_buffer *ret_manifest, pf_buffer *ret_attachments, sluice_error *err);
/* Generation 1 of main: an empty state under this schema (for st_graph_init). */
sluice_status st_generation_build_first(const st_schema *schema, const pf_sha256 *schema_identity, uint64_t row_block,
                                        const pf_id *commit, pf_buffer *ret_manifest, pf_buffer *ret_attachments,
                                        sluice_error *err);

#endif
