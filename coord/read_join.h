/*
 * Do two sets of hashes have a key in common? One side probed it, the other wrote it.
 *
 * Either side is a sorted list of hashes, or runs (sorted files of hash and row position, with the fragment they
 * index). Equal hashes of two runs are confirmed on the keys in the fragments, so that a collision is not a conflict; a
 * list has nothing to confirm with, so there equal hashes count. The smaller side is held in memory, one slice of the
 * hash space at a time, so that memory is bounded however large both are.
 */
#ifndef COORD_READ_JOIN_H
#define COORD_READ_JOIN_H

#include "store/state/state.h"

typedef struct co_join_rule {
    uint64_t runs_of;    /* only runs of `theirs` that lie in this table count; 0: all */
    bool same_direction; /* of two runs over ends, only from with from and to with to */
} co_join_rule;

/* `identity`: the schema that both were written under, fetched when a key must be looked at. */
sluice_status co_join(st_graph *graph, const pf_sha256 *identity, const st_change *mine, const st_change *theirs,
                      co_join_rule rule, bool *ret_meet, sluice_error *err);

#endif
