/*
 * Reading what is left of a damaged graph (st_graph_open_damaged): the newest state of a branch that can be read, and
 * of a table's list in it whatever is whole; without any state, all fragments that lie in the table's folder. Each loss
 * is told, and each guess that stands in for one.
 */
#ifndef STORE_READ_SALVAGE_H
#define STORE_READ_SALVAGE_H

#include "store/read/snapshot.h"

/* `object`: a path or a place; `what`: what is lost with it, or was guessed since it is not there. */
typedef enum st_finding { ST_LOST, ST_GUESSED } st_finding;
typedef sluice_status st_finding_fn(void *context, st_finding finding, const char *object, const char *what,
                                    sluice_error *err);

typedef struct st_salvage {
    st_graph *graph;
    st_finding_fn *each;
    void *context;
    st_snapshot *snapshot;
    uint64_t generation, newest; /* of the state; the newest one of which there is a trace */
    bool older;                  /* what came behind the state could not be read */
    bool deletions_unknown;      /* rows that were deleted may be among those that are left */
    bool from_files;             /* there is no state: the view has a schema, and no table */
    bool files_taken;            /* fragments that no list names: rows may be there twice */
    uint64_t losses, guesses;
} st_salvage;

/* Finds the state, or that there is none. CORRUPT: nothing says what types there were; NOT_FOUND: no such branch. */
sluice_status st_salvage_open(st_graph *graph, const char *branch, st_finding_fn *each, void *context,
                              st_salvage *ret_salvage, sluice_error *err);
void st_salvage_close(st_salvage *salvage); /* safe on a zeroed one */
/* Reads the list of a type as far as it is whole, and what no list names when some of it is not; *ret_fragments are
 * left. Once per type. */
sluice_status st_salvage_table(st_salvage *salvage, const st_type_def *type, uint32_t *ret_fragments,
                               sluice_error *err);
/* The batches of one of these fragments; each that cannot be read is told. */
typedef sluice_status st_salvage_batch_fn(void *context, const st_column_spec *specs, uint32_t count,
                                          const st_batch *batch, sluice_error *err);
sluice_status st_salvage_fragment(st_salvage *salvage, const st_type_def *type, uint32_t fragment,
                                  st_salvage_batch_fn *batch, void *context, sluice_error *err);

#endif
