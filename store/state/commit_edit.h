/*
 * Reading the edits that table entries name by their places: the last record stays at hand, since edits of one group
 * share it.
 */
#ifndef STORE_STATE_COMMIT_EDIT_H
#define STORE_STATE_COMMIT_EDIT_H

#include "store/state/list.h"
#include "store/state/manifest.h"

typedef struct st_edit_reader {
    st_graph *graph;
    uint64_t incarnation, number; /* of `record`; 0: none */
    st_record record;
    st_generation generation;
} st_edit_reader;
/* The edit of `table` at this place, with its ids. The caller frees bound->edit. CORRUPT when it is not there. */
sluice_status st_edit_reader_read(st_edit_reader *reader, const st_edit_place *place, uint64_t table,
                                  st_bound_edit *ret_bound, sluice_error *err);
void st_edit_reader_close(st_edit_reader *reader);

#endif
