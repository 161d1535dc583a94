/*
 * Inside of store/read: a snapshot and its table readers.
 */
#ifndef STORE_READ_READER_H
#define STORE_READ_READER_H

#include "store/fragment/key.h"
#include "store/read/snapshot.h"
#include "store/state/layout.h"

struct st_snapshot {
    st_graph *graph;
    st_view *view;
    bool recast;   /* `view` is a shallow copy of another snapshot's, under a schema of somebody else's */
    pf_file *pins; /* holds the shared lock on the generation's byte; NULL: not pinned */
    struct st_table_reader **readers;
    uint32_t reader_count;
};

typedef struct st_opened_run { /* a run of one fragment, as it is at hand */
    st_run_use use;
    uint32_t unique;
    st_run *run;           /* NULL: none on disk */
    st_run_entry *rebuilt; /* sorted, made from the fragment; NULL: not yet */
    uint64_t rebuilt_count;
    struct st_opened_run *next;
} st_opened_run;

typedef struct st_opened { /* one fragment of the table */
    st_fragment *fragment; /* NULL: not opened yet */
    st_opened_run *runs;
} st_opened;

struct st_table_reader {
    st_graph *graph;
    const st_schema *schema;
    const st_type_def *type;
    uint64_t table;
    st_table_list list;
    unsigned probed;              /* for which uses it was asked: 1 << st_run_use */
    st_opened *opened;            /* per fragment of the list */
    st_column_builder **initials; /* per property, once a fragment lacked it */
};

/* The columns of a run in one batch (st_table_reader_column). */
sluice_status st_run_key(st_table_reader *reader, st_fragment *fragment, uint32_t batch, const uint32_t *columns,
                         uint32_t count, st_column *ret_columns, const st_column **ret_key, sluice_error *err);
void st_table_reader_free(st_table_reader *reader);
void st_table_reader_free_initials(st_table_reader *reader);

/* ---- kept_readers.c ---- */

/* A snapshot's reader at its end: kept with the handle, or freed. */
void st_reader_keep(st_snapshot *snapshot, st_table_reader *reader);
/* The kept reader of a table, brought up to the snapshot's state; NULL: there is none that can be. */
st_table_reader *st_reader_kept(st_snapshot *snapshot, uint64_t table, const st_type_def *type);
/* A new reader takes over what the kept one has opened of fragments that both list. */
void st_reader_inherit(st_snapshot *snapshot, st_table_reader *reader);
/* Finds a row by its id: where the fragment has it, dead or alive. */
sluice_status st_reader_find_row(st_table_reader *reader, uint64_t row, bool *ret_found, uint32_t *ret_fragment,
                                 uint64_t *ret_position, sluice_error *err);

#endif
