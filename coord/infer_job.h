/*
 * The inside of inference (coord/infer.h).
 */
#ifndef COORD_INFER_JOB_H
#define COORD_INFER_JOB_H

#include "coord/infer.h"
#include "coord/load_job.h"
#include "worker/ingest/infer.h"

typedef struct infer_input {
    wk_input input;
    void *state;         /* of its format */
    pf_scratch *scratch; /* its plain bytes; NULL: the file itself is read */
    uint32_t type;
    uint32_t *headings; /* see wk_survey */
    uint32_t heading_count;
} infer_input;

typedef struct infer_type {
    const char *name;
    bool known; /* the graph has it, */
    bool keyed; /* with a key */
    bool edge;
    wk_infer infer;       /* decided unless it is known */
    bool verified;        /* all rows were read: nulls are known */
    uint32_t *properties; /* columns of `infer` in the order of the type's properties */
    uint32_t property_count;
    uint32_t key[ST_KEY_MEMBERS_MAX]; /* columns of `infer` */
    uint32_t key_count;
    char no_key[WK_FAULT_TEXT]; /* why the first column that is called like a key is none; empty: there was none */
    const char *ends[2];        /* node types; NULL: not yet known */
} infer_type;

typedef struct infer_job {
    load_spec spec;
    infer_input *inputs;
    infer_type *types; /* of the command, in its order */
    uint32_t type_count;
    st_graph *graph; /* NULL: none */
    st_snapshot *snapshot;
    const st_schema *base; /* of the graph; NULL */
    co_infer_said *said;
    void *said_context;
} infer_job;

/* infer.c: the schema as far as it is known: edges that lack an end are not in it. */
sluice_status infer_schema(const infer_job *job, st_schema **ret_schema, sluice_error *err);

/* infer_rows.c: rows of a type's files as a load under this schema would read them. */
typedef struct infer_rows {
    const st_column *columns; /* in the type's layout */
    uint32_t count;
    uint64_t rows;
    const uint64_t *places; /* of each: infer_place */
    st_column names;        /* of nodes without a key that the files name (infer_names): their load-local names */
    st_column ends[2];      /* of edges: keys, or load-local names */
} infer_rows;
typedef sluice_status infer_rows_fn(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err);
/* The first row that is refused is a fault, and *ret_end tells which end of an edge it lies in (-1: none). */
sluice_status infer_walk(infer_job *job, infer_type *type, const st_schema *schema, infer_rows_fn *each, void *context,
                         wk_fault *ret_fault, int *ret_end, sluice_error *err);
static inline uint64_t infer_place(uint32_t argument, uint64_t line)
{
    return (uint64_t)argument << 40 | (line & ((UINT64_C(1) << 40) - 1));
}
infer_type *infer_find(infer_job *job, const char *name); /* NULL: not of the command */
/* Do the files name the rows of this type, which has no key, for the edges of the same load? */
bool infer_names(const infer_type *type); /* NULL: no */
void infer_place_of(uint64_t place, wk_fault *fault);
sluice_status infer_fail(const infer_job *job, const wk_fault *fault, sluice_error *err);

/* infer_keys.c */
sluice_status infer_node(infer_job *job, infer_type *type, sluice_error *err);
/* infer_say.c */
void infer_say(const infer_job *job, const infer_type *type);
/* A node type of the command whose rows no end can name, since it has no key; NULL: none. */
const infer_type *infer_keyless(const infer_job *job);
/* infer_ends.c */
sluice_status infer_edge(infer_job *job, infer_type *type, sluice_error *err);

/* infer_set.c: keys as digests, those of one part at a time. */
typedef struct infer_key {
    pf_xxh128 digest;
    uint64_t place;
} infer_key;
typedef struct infer_keys {
    uint32_t part, parts;
    infer_key *items;
    uint64_t count, room;
    pf_buffer scratch;
} infer_keys;
uint32_t infer_parts(uint64_t keys);    /* into how many parts they are cut */
void infer_keys_free(infer_keys *keys); /* safe on a zeroed one */
/* *ret_fits false: longer than a key may be. */
sluice_status infer_keys_add(infer_keys *keys, const st_column *const *columns, uint32_t count, uint64_t row,
                             uint64_t place, bool *ret_fits, sluice_error *err);
void infer_keys_sort(infer_keys *keys);
/* The first place whose key was there before, and where; false when there is none. After sorting. */
bool infer_keys_twice(const infer_keys *keys, uint64_t *ret_place, uint64_t *ret_other);
/* After sorting; *ret_asked false: of another part. */
sluice_status infer_keys_has(infer_keys *keys, const st_column *const *columns, uint32_t count, uint64_t row,
                             bool *ret_asked, bool *ret_has, sluice_error *err);

#endif
