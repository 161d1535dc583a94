/*
 * Giving out columns (see coord/lanes.h).
 */
#include "coord/lanes.h"
#include <stdbool.h>

/* The column that waits for it, else the first free one, which then does. */
static uint32_t column_for(co_lanes *lanes, const pf_id *commit)
{
    uint32_t chosen = CO_LANES_MAX - 1;
    for (uint32_t i = 0; i < CO_LANES_MAX; i++) {
        if (pf_id_equal(&lanes->waits[i], commit))
            return i;
    }
    for (uint32_t i = CO_LANES_MAX; i-- > 0;) {
        if (pf_id_is_nil(&lanes->waits[i]))
            chosen = i;
    }
    lanes->waits[chosen] = *commit;
    lanes->used = chosen + 1 > lanes->used ? chosen + 1 : lanes->used;
    return chosen;
}

static uint32_t lines_of(const co_lanes *lanes)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < CO_LANES_MAX; i++)
        bits |= (uint32_t)!pf_id_is_nil(&lanes->waits[i]) << i;
    return bits;
}

/* Goes on in the commit's own column, unless a line to the same parent stands more to the left. */
static bool goes_on(const co_lanes *lanes, const co_lane_row *row)
{
    for (uint32_t i = 0; i < row->column; i++) {
        if (pf_id_equal(&lanes->waits[i], &row->parents[0]))
            return false;
    }
    return pf_id_is_nil(&lanes->waits[row->column]);
}

void co_lanes_next(co_lanes *lanes, co_lane_row *row)
{
    row->above = lines_of(lanes);
    row->column = column_for(lanes, &row->commit);
    row->ends = 0;
    for (uint32_t i = 0; i < CO_LANES_MAX; i++) {
        if (!pf_id_equal(&lanes->waits[i], &row->commit))
            continue;
        row->ends |= row->above & 1u << i;
        lanes->waits[i] = (pf_id){0};
    }
    for (uint32_t k = 0; k < row->parent_count; k++) {
        if (k == 0 && goes_on(lanes, row)) {
            lanes->waits[row->column] = row->parents[k];
            row->lines[k] = row->column;
        } else {
            row->lines[k] = column_for(lanes, &row->parents[k]);
        }
    }
    row->below = lines_of(lanes);
}
