/*
 * The inside of mutations: a model of the objects that a file names, in memory, on top of one pinned base.
 *
 *   mutate_record.c  one line: what it asks for
 *   mutate_model.c   types, keys, objects: found in the base, or new
 *   mutate_value.c   values from JSON, conditions
 *   mutate_apply.c   the records, one after the other
 *   mutate_edges.c   ends, edges of deleted nodes, cardinality
 *   mutate_check.c   the rules, on the net effect
 *   mutate_reads.c   what the commit read and what it changed, for arbitration
 *   mutate_stage.c   its edits: attached to the record, or staged
 *   mutate.c         the plan as a whole, and the job
 *
 * A plan makes its model anew from the text, so nothing of an earlier base is left in it.
 */
#ifndef COORD_MUTATE_JOB_H
#define COORD_MUTATE_JOB_H

#include "coord/mutate.h"
#include "store/format/tree.h"
#include "store/fragment/key.h"
#include "store/state/layout.h"
#include "worker/ingest/check.h"

typedef enum mut_op { MUT_INSERT, MUT_UPSERT, MUT_UPDATE, MUT_DELETE, MUT_ASSERT } mut_op;

typedef struct mut_type mut_type;
typedef struct mut_object mut_object;

typedef struct mut_record { /* one line; nodes are of its tree */
    mut_op op;
    uint32_t number; /* from 1 */
    mut_type *type;
    const st_node *key, *from, *to, *row_id, *set, *condition; /* condition: "if", "equals" */
    bool detach, absent, present;
} mut_record;

struct mut_object {
    mut_type *type;
    bool named;                                 /* stands in the type's table, by its key */
    uint64_t key;                               /* row of the type's keys; named ones */
    uint64_t hash;                              /* of the key, or of the row id */
    bool existed, exists;                       /* in the base; after the records so far */
    bool replaced;                              /* was deleted in between */
    bool detached;                              /* deleted because a node of it was */
    uint64_t row_id;                            /* in the base */
    uint64_t *base;                             /* per column: row of the type's pool; NULL when it did not exist */
    uint64_t *values;                           /* the same, as they are now; NULL: never had any */
    uint32_t *records;                          /* per column: the record that set it; 0: none */
    uint32_t record;                            /* that inserted or deleted it last */
    bool reads_absent, reads_row, reads_object; /* for the read set; `reads_property`: per column */
    bool reads_edges;                           /* of a node: all that hang on it were looked for */
    bool *reads_property;
    mut_object *ends[2];         /* of an edge that was inserted here */
    mut_object *edges, *next[2]; /* of a node: edges inserted here; of such an edge: the next one of each end */
    uint64_t count;              /* of a node: edges in one direction, while cardinality is checked */
    uint32_t stamp;              /* which check `count` belongs to */
    bool changed;                /* net: existed, exists, and some value differs */
    bool keeps_id;               /* comes to be under the row id that it has elsewhere (merge) */
    bool merged;                 /* its sides have been compared (merge) */
};

struct mut_type {
    const st_type_def *def;
    st_column_spec *specs;
    uint32_t count, ends;     /* columns; 2 for edges */
    st_column_builder **pool; /* values of all objects, per column */
    wk_check *checks;         /* per column */
    uint32_t key_columns[ST_RUN_COLUMNS_MAX];
    uint32_t key_count;        /* 0: keyed by row id */
    st_column_spec *key_specs; /* of the members: the columns', or one row id */
    st_column_builder **keys;  /* the keys of objects and of what is sought, in step */
    uint32_t key_members;      /* key_count, or 1 */
    mut_object **slots;        /* by key */
    uint32_t slot_count, named_count;
    mut_object **objects; /* all, in the order in which they were met */
    uint32_t object_count, object_room;
    st_table_reader *reader;
    bool probed; /* the base was asked about it */
};

typedef struct mut_job {
    /* the same for all plans */
    st_graph *graph;
    const co_mutate_options *options;
    const char *text;
    size_t length;
    uint32_t records;
    /* of one plan */
    co_write *write;
    st_snapshot
        *rows; /* the base, or the base under the schema below where the write changes it (merge); NULL: the base */
    const st_schema *schema;
    mut_type *types;
    uint32_t type_count;
    uint64_t *lines; /* of each record, from 1 */
    uint32_t line_room;
    uint32_t record; /* the newest */
    uint32_t stamp;
    wk_fault fault; /* the least so far */
    uint64_t inserted, updated, deleted, skipped;
    uint64_t staged; /* numbers of staged names used */
    bool stages;     /* nothing is attached, because the write arms (merge) */
    /* Set: faults are told here, all of them, and none ends the plan (merge). */
    void (*on_fault)(void *context, uint32_t record, sluice_status code, const char *text);
    void *fault_context;
} mut_job;

/* Notes a fault of a record; the least by record is kept. */
void mut_fault(mut_job *job, uint32_t record, sluice_status code, const char *fmt, ...) PF_PRINTF(4, 5);
void mut_hint(mut_job *job, const char *fmt, ...) PF_PRINTF(2, 3);
static inline bool mut_failed(const mut_job *job)
{
    return job->fault.present;
}

/* ---- mutate_record.c ---- */

/* The next record of the text: false in *ret_any at the end. The tree is the caller's. What is wrong with it is a
 * fault. */
sluice_status mut_record_next(mut_job *job, size_t *at, uint64_t *line, st_tree **ret_tree, mut_record *ret_record,
                              bool *ret_any, sluice_error *err);

/* ---- mutate_value.c ---- */

/* Appends a value of a column; a fault names `name`. null is appended where `may_null`, else a fault. */
sluice_status mut_value(mut_job *job, const st_column_spec *spec, const wk_check *check, const char *name,
                        const st_node *node, bool may_null, st_column_builder *builder, sluice_error *err);
/* Do the properties of the object (as it is now) have these values? A fault where a name or value is none. */
sluice_status mut_condition(mut_job *job, mut_object *object, const st_node *members, bool *ret_holds,
                            sluice_error *err);
/* Sets the members; key properties must be what they are. */
sluice_status mut_set(mut_job *job, mut_object *object, const st_node *members, sluice_error *err);
/* Gives every column that has no value its default, or null. */
sluice_status mut_fill(mut_job *job, mut_object *object, sluice_error *err);
bool mut_same(const mut_type *type, uint32_t column, uint64_t a, uint64_t b); /* rows of the pool */
bool mut_is_null(const mut_type *type, uint32_t column, uint64_t row);
/* A key for messages: its values, as JSON. */
void mut_key_text(const mut_object *object, char *ret_text, size_t room);

/* ---- mutate_model.c ---- */

#define MUT_NO_VALUE UINT64_MAX
sluice_status mut_model_make(mut_job *job, sluice_error *err);
void mut_model_free(mut_job *job);
/* Sets a type up, once. */
sluice_status mut_type_need(mut_job *job, mut_type *type, sluice_error *err);
mut_type *mut_type_find(mut_job *job, const char *name);
sluice_status mut_reader(mut_job *job, mut_type *type, st_table_reader **ret_reader, sluice_error *err);
/* The object that a record names; one that is nowhere is made, not existing. */
sluice_status mut_find(mut_job *job, const mut_record *record, mut_object **ret_object, sluice_error *err);
/* One without a key, to be inserted. */
sluice_status mut_new(mut_job *job, mut_type *type, mut_object **ret_object, sluice_error *err);
/* The object behind a row of the base. */
sluice_status mut_of_row(mut_job *job, mut_type *type, uint32_t fragment, uint64_t position, mut_object **ret_object,
                         sluice_error *err);
/* The object of a key that stands in row `row` of these columns (one of row ids where the type has no key). */
sluice_status mut_of_key(mut_job *job, mut_type *type, const st_column *const *key, uint64_t row,
                         mut_object **ret_object, sluice_error *err);
/* The node that row `row` of an end's column names. */
sluice_status mut_of_end(mut_job *job, mut_type *node, const st_column *column, uint64_t row, mut_object **ret_object,
                         sluice_error *err);
/* The node's key as an end's column has it: row object->key of it. `members` is room for what it points to. */
void mut_end_view(const mut_type *node, st_column *members, st_column *ret_column);
void mut_key_views(const mut_type *type, st_column *storage, const st_column **ret_key);

/* ---- mutate_apply.c, mutate_edges.c, mutate_check.c ---- */

sluice_status mut_apply(mut_job *job, sluice_error *err);
/* An edge that is being inserted: finds its ends, and joins them. */
sluice_status mut_join_ends(mut_job *job, mut_object *edge, sluice_error *err);
/* Deletes the edges of a node. */
sluice_status mut_detach(mut_job *job, mut_object *node, sluice_error *err);
sluice_status mut_check_ends(mut_job *job, sluice_error *err);
sluice_status mut_check(mut_job *job, sluice_error *err);
/* Without the rules: what has changed, and how much. */
void mut_settle(mut_job *job);

/* The hashes of tuples without nulls that objects have come to hold, or (`freed`) have given up. Malloc'd. */
sluice_status mut_tuple_hashes(mut_job *job, mut_type *type, const st_unique *unique, bool freed, uint64_t **ret_hashes,
                               uint64_t *ret_count, sluice_error *err);

/* ---- mutate_reads.c, mutate_stage.c ---- */

sluice_status mut_add_sets(mut_job *job, sluice_error *err);
sluice_status mut_add_gates(mut_job *job, sluice_error *err);
sluice_status mut_add_edits(mut_job *job, sluice_error *err);

/* The plan half, for tests that put something between it and the gates. */
sluice_status mut_plan(void *context, co_write *write, sluice_error *err);
sluice_status mut_request_digest(const co_mutate_options *options, const char *text, size_t length,
                                 pf_sha256 *ret_digest, sluice_error *err);

#endif
