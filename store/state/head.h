/*
 * The newest state of a branch, kept with the handle between two looks at it: a record that is whole never changes, so
 * who finds the log at the same generation, with the same digest, need not read and decode it again. What this handle
 * itself has published is known without reading at all. Internal to store/state, but for st_head_published (state.h).
 */
#ifndef STORE_STATE_HEAD_H
#define STORE_STATE_HEAD_H

#include "store/state/state.h"

/* The kept view of the log's end, shared; NULL: none. */
st_view *st_head_kept(st_graph *graph, st_log *log);
void st_head_keep(st_graph *graph, st_view *view); /* shares it */
/* What st_generation_build has built, which is the head once it is published; takes it over. */
void st_head_built(st_graph *graph, st_view *view);

#endif
