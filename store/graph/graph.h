/*
 * A graph directory: init, open, its control log, its branch refs. Layout: DESIGN 2, docs/format.md.
 *
 * control/ is a log (store/log) whose generations hold the whole, small control state: the next table id, property id,
 * branch incarnation and row-id block, voided epochs, checkpoints, gc boundary, receipts of control operations. It
 * outlives every branch. Numbers handed out never come back; gaps are fine.
 */
#ifndef STORE_GRAPH_GRAPH_H
#define STORE_GRAPH_GRAPH_H

#include "platform/ids.h"
#include "platform/preflight.h"
#include "store/log/log.h"
#include "store/schema/schema.h"

#define ST_ROW_BLOCK   (UINT64_C(1) << 40) /* row ids in one block */
#define ST_FIRST_TABLE 64u                 /* lock bytes below are special gates */

#define ST_MAIN_BRANCH      "main"
#define ST_REFS_FOLDER      "refs"
#define ST_MAIN_INCARNATION UINT64_C(1)

/* GRAPH/intents: slots of a preallocated, zero-filled file; coord/ owns what is in them. */
#define ST_INTENTS_FILE     "intents"
#define ST_INTENT_SLOTS     64u
#define ST_INTENT_SLOT_SIZE (32u * 1024u)
/* GRAPH/claims: likewise, one claim in each. */
#define ST_CLAIMS_FILE     "claims"
#define ST_CLAIM_SLOTS     64u
#define ST_CLAIM_SLOT_SIZE 4096u

typedef enum st_write_mode { ST_MODE_OPTIMISTIC, ST_MODE_SINGLE, ST_MODE_QUEUED } st_write_mode;

typedef struct st_graph st_graph;

/* Makes a graph at `path` with branch main at generation 1 (kind "init", an empty state under this schema; ids are
 * assigned into `schema`). Preflight first. Resumable: a second init of a half-made container finishes it; a finished
 * graph is ALREADY_EXISTS. Its one commit point is the exclusive creation of FORMAT. */
sluice_status st_graph_init(const char *path, st_schema *schema, st_write_mode mode, pf_id *ret_graph_id,
                            sluice_error *err);
/* The same on an open, empty volume (tests on the sim volume). */
sluice_status st_graph_init_on(pf_volume *volume, st_schema *schema, st_write_mode mode, pf_id *ret_graph_id,
                               sluice_error *err);
/* The folder for a graph that is copied to `path`: opened, or made; preflight as for init, and nothing else. */
sluice_status st_folder_prepare(const char *path, pf_volume **ret_volume, sluice_error *err);
/* Opens. PF_WRITE syncs the graph's own name and runs preflight (classify always, probe once per boot and mount);
 * PF_READ classifies and writes nothing. NOT_FOUND: no such folder; UNSUPPORTED_FORMAT: another version or no graph. */
sluice_status st_graph_open(const char *path, pf_access access, st_graph **ret_graph, sluice_error *err);
/* On an open volume; the graph takes the volume over (closed with it, also on failure). */
sluice_status st_graph_open_on(pf_volume *volume, pf_access access, st_graph **ret_graph, sluice_error *err);
/* Opens what may be damaged everywhere, for reading what is left (salvage): FORMAT, graph.json, control/, CURRENTs,
 * marks need not be there; a log that cannot be opened is opened as far as it is whole (st_log_open_damaged). */
sluice_status st_graph_open_damaged(const char *path, st_graph **ret_graph, sluice_error *err);
/* The newest generation of which a log that was opened as damaged has a trace; 0: none was. */
uint64_t st_graph_damage_seen(const st_graph *graph);
/* The accepted schema of this identity; of a damaged graph, when it is not whole, the fullest other one,
 * or what was offered (st_graph_has_substitute). */
sluice_status st_graph_fetch_schema(st_graph *graph, const pf_sha256 *identity, st_schema **ret_schema,
                                    sluice_error *err);
bool st_graph_has_substitute(const st_graph *graph);
/* Of a damaged graph: the schema for when there is no other. */
sluice_status st_graph_offer_schema(st_graph *graph, const st_schema *schema, sluice_error *err);
/* Of a damaged graph: the fullest schema that is whole, and how many are; NULL and 0 when none is. */
void st_graph_fullest_schema(st_graph *graph, st_schema **ret_schema, uint32_t *ret_count);
void st_graph_close(st_graph *graph); /* NULL allowed */
pf_volume *st_graph_volume(st_graph *graph);
const pf_id *st_graph_id(const st_graph *graph);
st_write_mode st_graph_mode(const st_graph *graph);
/* The same of a folder that nobody has opened as a graph: graph.json is read, and nothing else. */
sluice_status st_graph_mode_of(pf_volume *volume, st_write_mode *ret_mode, sluice_error *err);
pf_access st_graph_access(const st_graph *graph);
const pf_filesystem *st_graph_filesystem(const st_graph *graph);
/* What others have read and keep with the handle: NULL at first; released on closing, the last kind first. */
typedef struct st_kept {
    void *data;
    void (*release)(void *data);
} st_kept;
typedef enum st_kept_kind {
    ST_KEPT_RECORDS, /* store/state/commit_edit.c */
    ST_KEPT_HEADS,   /* store/state/head.c */
    ST_KEPT_READERS, /* store/read/kept_readers.c */
    ST_KEPT_BOARD,   /* coord/board.c */
    ST_KEPT_FILES,   /* coord/kept_files.c */
    ST_KEPT_PINS,    /* store/read/snapshot.c */
    ST_KEPT_KINDS
} st_kept_kind;
st_kept *st_graph_kept(st_graph *graph, st_kept_kind kind);

/* Entries of the graph's folder that are not ours (kept, never a reason to refuse; counted in status). */
sluice_status st_graph_unknown_entries(st_graph *graph, uint64_t *ret_count, sluice_error *err);
/* The reserve: space that recovery lets go of when the disk is full, so that it can always finish. Releasing one that
 * is gone, and rebuilding one that is there, do nothing. */
sluice_status st_reserve_release(st_graph *graph, sluice_error *err);
sluice_status st_reserve_rebuild(st_graph *graph, sluice_error *err);

/* ---- branches ---- */

/* The incarnation that a branch name stands for; NOT_FOUND, INVALID_NAME, or CORRUPT for that name only. On a graph
 * that is open for writing the name is made durable first, whoever created it. */
sluice_status st_ref_read(st_graph *graph, const char *name, uint64_t *ret_incarnation, sluice_error *err);
/* Exclusive creation (temp name, sync, rename without replace, sync of refs/). A name that holds this incarnation
 * already is this call's own result after a lost answer: made durable, success. ALREADY_EXISTS when it holds another.
 * Once the name is there an error says committed true. The caller holds the branch's gate and publish lock, here and
 * below. */
sluice_status st_ref_create(st_graph *graph, const char *name, uint64_t incarnation, sluice_error *err);
/* Removes the name if it holds this incarnation. NOT_FOUND; WRITE_CONFLICT when it holds another. */
sluice_status st_ref_remove(st_graph *graph, const char *name, uint64_t incarnation, sluice_error *err);
/* An unreadable ref is listed with name NULL and incarnation 0, one that vanishes meanwhile not at all. */
typedef sluice_status st_ref_fn(void *context, const char *name, uint64_t incarnation, sluice_error *err);
sluice_status st_ref_list(st_graph *graph, st_ref_fn *each, void *context, sluice_error *err);
/* Makes durable which names there are, and which went. */
sluice_status st_refs_sync(st_graph *graph, sluice_error *err);
bool st_branch_name_is_valid(const char *name, size_t length);
/* "branches/<incarnation>" into a buffer of at least 64 bytes. */
void st_branch_folder(uint64_t incarnation, char *ret_path);
/* Makes branches/<incarnation> with its log (st_log_make) and its pin file, all synced; no ref names it yet. A folder
 * that is already there is ALREADY_EXISTS: incarnations are never used twice. */
sluice_status st_branch_make(st_graph *graph, uint64_t incarnation, uint64_t number, const pf_sha256 *digest,
                             const pf_buffer *opening_manifest, const pf_buffer *opening_attachments,
                             sluice_error *err);
/* Every folder branches/<incarnation>, in no order that means anything; foreign entries are passed over. */
typedef sluice_status st_branch_fn(void *context, uint64_t incarnation, sluice_error *err);
sluice_status st_branch_list(st_graph *graph, st_branch_fn *each, void *context, sluice_error *err);
/* Pins all generations of a branch: until *ret_pins is closed, collection lets none of them go that stands then (the
 * boundary is looked at after this). *ret_pins NULL: the branch has no pin file. For verify and copies of a graph. */
sluice_status st_branch_hold(st_graph *graph, uint64_t incarnation, pf_file **ret_pins, sluice_error *err);
/* The log of a branch incarnation, opened once per handle and kept until the graph is closed. */
sluice_status st_graph_log(st_graph *graph, uint64_t incarnation, st_log **ret_log, sluice_error *err);

/* ---- control ---- */

/* What a control operation (branch create, branch delete, ...) answers to an exact retry. Written before the ref
 * changes. */
typedef struct st_control_receipt {
    pf_id operation;
    pf_sha256 request; /* digest of the request */
    char kind[24];     /* "branch-create", "branch-delete", ... */
    pf_sha256 ref;     /* SHA-256 of the branch name: names are no control state */
    uint64_t incarnation;
    pf_id commit; /* the head that it answered, and its place: outlives the branch */
    uint64_t generation;
    uint32_t index;
    bool done; /* its effect is known to have happened (a create whose branch was deleted since is done too) */
    int64_t time_us;
} st_control_receipt;

/* A name for a commit, whatever becomes of its branch: a root of collection. */
typedef struct st_checkpoint {
    char *name;
    uint64_t incarnation, generation; /* where the commit stands */
    uint32_t index;
    pf_id commit;
    int64_t time_us; /* of the commit */
} st_checkpoint;
#define ST_CHECKPOINTS_MAX 256u /* RESOURCE_LIMIT beyond */

/* What collection has let go of in one branch's log: every generation below `below` that is in none of the kept ranges.
 * Published before the first byte of them goes; what was let go of never comes back. Their commits stay known
 * (st_log_read_lineage), their state does not. */
typedef struct st_range {
    uint64_t first, last;
} st_range;
typedef struct st_boundary {
    uint64_t incarnation, below;
    st_range *kept; /* ascending, apart from each other, all below `below` */
    uint32_t kept_count;
} st_boundary;

#define ST_VOIDED_MAX           64u  /* the newest are kept */
#define ST_CONTROL_RECEIPTS_MAX 256u /* the newest are kept: bounds the control record */

typedef struct st_control {
    uint64_t next_table, next_property, next_incarnation;
    uint64_t next_row_block; /* the number of the next block; block k begins at k * ST_ROW_BLOCK */
    pf_id *voided_epochs;    /* oldest first */
    uint32_t voided_count;
    st_boundary *boundaries; /* of collection, ascending by incarnation */
    uint32_t boundary_count;
    st_checkpoint *checkpoints; /* ascending by name, bytewise */
    uint32_t checkpoint_count;
    st_control_receipt *receipts; /* oldest first */
    uint32_t receipt_count;
} st_control;
/* The control state now. Free with st_control_free. */
sluice_status st_control_read(st_graph *graph, st_control *ret_control, sluice_error *err);
void st_control_free(st_control *control);
/* Reads every record of control/'s log and decodes it (verify). */
sluice_status st_control_verify(st_graph *graph, uint64_t *ret_records, sluice_error *err);
/* For changes: the oldest entry goes when the list is full. A receipt takes the place of one of the same operation on
 * the same name, which died before its effect. */
sluice_status st_control_add_receipt(st_control *control, const st_control_receipt *receipt, sluice_error *err);
sluice_status st_control_add_voided(st_control *control, const pf_id *epoch, sluice_error *err);
/* The newest of this operation on this branch name (ids belong to a branch); NULL: none. */
const st_control_receipt *st_control_find_receipt(const st_control *control, const pf_id *operation,
                                                  const pf_sha256 *ref);
/* The operations behind `incarnation` have happened, whatever becomes of the branch; not those of the kind `but`. */
void st_control_mark_done(st_control *control, uint64_t incarnation, const char *but);
const st_checkpoint *st_control_find_checkpoint(const st_control *control, const char *name); /* NULL: none */
/* Says in the hint which checkpoint may have been meant, when one is called nearly so. */
void st_control_hint_at_checkpoint(const st_control *control, const char *name, sluice_error *err);
/* ALREADY_EXISTS when the name is taken; the name is copied. */
sluice_status st_control_add_checkpoint(st_control *control, const st_checkpoint *checkpoint, sluice_error *err);
bool st_control_drop_checkpoint(st_control *control, const char *name); /* false: there was none */
bool st_control_is_voided(const st_control *control, const pf_id *epoch);
/* The same as of now; what was read is kept with the handle until control/ changes. */
sluice_status st_graph_is_voided(st_graph *graph, const pf_id *epoch, bool *ret_voided, sluice_error *err);
const st_boundary *st_control_find_boundary(const st_control *control, uint64_t incarnation); /* NULL: none */
/* Puts a boundary in the place of the branch's; it is copied. */
sluice_status st_control_set_boundary(st_control *control, const st_boundary *boundary, sluice_error *err);
void st_control_drop_boundary(st_control *control, uint64_t incarnation); /* its folder is gone */
/* Has collection let go of this generation? `boundary` may be NULL. */
bool st_boundary_dropped(const st_boundary *boundary, uint64_t generation);
/* The same by what control/ says now. */
sluice_status st_graph_is_collected(st_graph *graph, uint64_t incarnation, uint64_t generation, bool *ret_collected,
                                    sluice_error *err);
/* NOT_FOUND that says so. */
sluice_status st_fail_collected(uint64_t incarnation, uint64_t generation, sluice_error *err);
/* Changes it: takes control's publish lock, heals and settles its log when it must, re-reads, lets `change` edit the
 * state, appends one record; none when nothing changed. Numbers are never lowered (asserted). */
typedef sluice_status st_control_change_fn(void *context, st_control *control, sluice_error *err);
sluice_status st_control_update(st_graph *graph, st_control_change_fn *change, void *context, pf_deadline deadline,
                                sluice_error *err);
/* Fresh numbers for types and properties; *ret_table and *ret_property are the first of each. */
sluice_status st_control_take_ids(st_graph *graph, uint64_t tables, uint64_t properties, pf_deadline deadline,
                                  uint64_t *ret_table, uint64_t *ret_property, sluice_error *err);
/* A fresh block of ST_ROW_BLOCK row ids; *ret_first is its first id (never 0). */
sluice_status st_control_take_row_block(st_graph *graph, pf_deadline deadline, uint64_t *ret_first, sluice_error *err);

#endif
