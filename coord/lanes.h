/*
 * The shape of history: in which column each commit stands, and by which column a line goes to each parent.
 *
 * Commits come one by one, newest first, each before its parents, as `log --all` lists them. A column is kept for
 * whoever is waited for: a first parent goes on in its child's column, another parent gets one of its own unless
 * somebody waits for it already. Columns of no use any more are used again.
 */
#ifndef COORD_LANES_H
#define COORD_LANES_H

#include "platform/ids.h"
#include <stdint.h>

#define CO_LANES_MAX   16u /* beyond it lines share the last column */
#define CO_PARENTS_MAX 2u

typedef struct co_lanes {      /* zeroed is the beginning */
    pf_id waits[CO_LANES_MAX]; /* of a column: for this commit; nil: it is free */
    uint32_t used;             /* columns, so far */
} co_lanes;

typedef struct co_lane_row {
    pf_id commit;
    pf_id parents[CO_PARENTS_MAX];
    uint32_t parent_count;
    /* filled: */
    uint32_t column;
    uint32_t lines[CO_PARENTS_MAX]; /* the column of the line to that parent */
    uint32_t above, below;          /* columns with a line before it, behind it: a bit each */
    uint32_t ends;                  /* columns whose line ends at it */
} co_lane_row;

void co_lanes_next(co_lanes *lanes, co_lane_row *row);

#endif
