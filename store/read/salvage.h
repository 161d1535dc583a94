/*
 * Reading what is left of a damaged graph (st_graph_open_damaged): the newest state of a branch that can be read, and
 * of a table's list in it whatever is whole. Each loss is told; nothing is made up for it.
 */
#ifndef STORE_READ_SALVAGE_H
#define STORE_READ_SALVAGE_H

#include "store/read/snapshot.h"

/* `object`: a path or a place; `what`: what is lost with it. */
typedef sluice_status st_loss_fn(void *context, const char *object, const char *what, sluice_error *err);

typedef struct st_salvage {
    st_graph *graph;
    st_loss_fn *each;
    void *context;
    st_snapshot *snapshot;
    uint64_t generation, newest; /* of the state; the newest one of which there is a trace */
    bool older;                  /* what came behind the state could not be read */
    bool deletions_unknown;      /* rows that were deleted may be among those that are left */
    uint64_t losses;
} st_salvage;

/* Finds the state. CORRUPT: none can be read; NOT_FOUND: no such branch. */
sluice_status st_salvage_open(st_graph *graph, const char *branch, st_loss_fn *each, void *context,
                              st_salvage *ret_salvage, sluice_error *err);
void st_salvage_close(st_salvage *salvage); /* safe on a zeroed one */
/* Reads the list of a type as far as it is whole; *ret_fragments of it are left. Once per type. */
sluice_status st_salvage_table(st_salvage *salvage, const st_type_def *type, uint32_t *ret_fragments,
                               sluice_error *err);
/* The batches of one of these fragments; each that cannot be read is told. */
typedef sluice_status st_salvage_batch_fn(void *context, const st_column_spec *specs, uint32_t count,
                                          const st_batch *batch, sluice_error *err);
sluice_status st_salvage_fragment(st_salvage *salvage, const st_type_def *type, uint32_t fragment,
                                  st_salvage_batch_fn *batch, void *context, sluice_error *err);

#endif
