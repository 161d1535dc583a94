/*
 * Giving out columns (see coord/lanes.h).
 */
#include "coord/lanes.h"
#include <stdbool.h>

typedef struct lanes {
    pf_id waits[CO_LANES_MAX]; /* for this commit; nil: free */
    uint32_t used;             /* the most at one time */
} lanes;

/* The column that waits for it, else the first free one, which then does. */
static uint32_t column_for(lanes *all, const pf_id *commit)
{
    uint32_t free_one = CO_LANES_MAX - 1;
    for (uint32_t i = 0; i < CO_LANES_MAX; i++) {
        if (pf_id_equal(&all->waits[i], commit))
            return i;
    }
    for (uint32_t i = CO_LANES_MAX; i-- > 0;) {
        if (pf_id_is_nil(&all->waits[i]))
            free_one = i;
    }
    all->waits[free_one] = *commit;
    all->used = free_one + 1 > all->used ? free_one + 1 : all->used;
    return free_one;
}

uint32_t co_lanes(co_lane_row *rows, uint32_t count)
{
    lanes all = {0};
    for (uint32_t i = 0; i < count; i++) {
        co_lane_row *row = &rows[i];
        row->column = column_for(&all, &row->commit);
        for (uint32_t k = 0; k < CO_LANES_MAX; k++) { /* all lines to it end here */
            if (pf_id_equal(&all.waits[k], &row->commit))
                all.waits[k] = (pf_id){0};
        }
        for (uint32_t k = 0; k < row->parent_count; k++) {
            bool goes_on = k == 0 && pf_id_is_nil(&all.waits[row->column]);
            for (uint32_t other = 0; goes_on && other < CO_LANES_MAX; other++)
                goes_on = !pf_id_equal(&all.waits[other], &row->parents[k]) || other > row->column;
            if (goes_on)
                all.waits[row->column] = row->parents[k];
            row->lines[k] = goes_on ? row->column : column_for(&all, &row->parents[k]);
        }
    }
    return all.used;
}
