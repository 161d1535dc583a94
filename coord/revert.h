/*
 * Reverting a branch to the state of an older commit, of it or of any other branch: published forward, as one commit
 * whose state is that one's. The commits in between stay in the history.
 *
 * Rows come back with their row ids and the commits that wrote them; the schema comes back, too. Nothing is copied.
 */
#ifndef COORD_REVERT_H
#define COORD_REVERT_H

#include "coord/write.h"

typedef struct co_revert_request {
    const char *branch; /* NULL: main */
    const char *to;     /* a place on it, or a checkpoint */
    pf_id operation;    /* never nil */
    bool operation_given;
    pf_id if_head;
    const char *message;
    bool dry_run; /* the receipt has the counts, and nothing is changed */
} co_revert_request;

/* NOT_FOUND and USAGE for the place as st_place_find says them. A branch that is in that state already gets no commit.
 */
sluice_status co_revert(st_graph *graph, const co_revert_request *request, co_receipt *ret_receipt, sluice_error *err);

#endif
