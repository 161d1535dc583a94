/*
 * Staged objects: the files below tables/ whose names begin with an attempt's id, and which of them generations name.
 *
 * Everything that an attempt stages is called <attempt id>-<anything> and lies in tables/<id>/fragments, lists, keys,
 * deletions or indexes. A list of objects is frozen when it is made: what is staged later is not in it, so what it does
 * not show as named can only be litter of the attempts that it shows, once these are over.
 */
#ifndef COORD_OBJECTS_H
#define COORD_OBJECTS_H

#include "store/state/state.h"

typedef struct co_object {
    char path[160];
    pf_id attempt;
    bool named; /* by a generation */
    bool kept;  /* its attempt lives, or an intent names it */
} co_object;

typedef struct co_objects {
    co_object *items; /* sorted by path */
    size_t count, room;
    uint64_t unknown; /* entries that are not ours: kept and never touched (L-051) */
} co_objects;
void co_objects_free(co_objects *objects);

/* All objects, or those of one attempt. */
sluice_status co_objects_list(st_graph *graph, const pf_id *attempt, co_objects *ret_objects, sluice_error *err);
/* Marks what generations after `since` of this branch incarnation name; *ret_end is the last one looked at. What lies
 * at or before `since` must not name any of the objects. */
sluice_status co_objects_mark(st_graph *graph, co_objects *objects, uint64_t incarnation, uint64_t since,
                              uint64_t *ret_end, sluice_error *err);
/* Records of logs that something kept points to. */
typedef struct co_records {
    st_reach *items; /* the index says nothing */
    size_t count, room;
} co_records;
/* Is a generation of [first, last] of this log among them? */
bool co_records_have(const co_records *records, uint64_t incarnation, uint64_t first, uint64_t last);
/* Marks what a log keeps, by its boundary (NULL: everything), and from generation `floor` on everything (UINT64_MAX: by
 * the boundary alone): the state at the start of each kept range, and the generations in it. */
sluice_status co_objects_mark_kept(st_graph *graph, co_objects *objects, co_records *records, uint64_t incarnation,
                                   const st_boundary *boundary, uint64_t floor, uint64_t *ret_end, sluice_error *err);
/* The attempt id that a name begins with; false when it begins otherwise. */
bool co_attempt_of_name(const char *name, pf_id *ret_attempt);

#endif
