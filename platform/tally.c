/*
 * Adding to tallies (see platform/tally.h).
 */
#include "platform/tally.h"
#include "platform/clock.h"
#include <stdatomic.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static const uint64_t times[PF_TALLY_BOUNDS] = {100 * US,  250 * US,  500 * US,   1 * MS,    2500 * US, 5 * MS,
                                                10 * MS,   25 * MS,   50 * MS,    100 * MS,  250 * MS,  500 * MS,
                                                1000 * MS, 2500 * MS, 10000 * MS, 60000 * MS};
static const uint64_t sizes[PF_TALLY_BOUNDS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};

static pf_tallies *shared; /* NULL: nothing is counted */
static uint32_t own_place = PF_TALLY_NOWHERE;

void pf_tallies_share(pf_tallies *tallies, uint32_t place)
{
    shared = tallies;
    own_place = place;
}

static void add(_Atomic uint64_t *word, uint64_t count)
{
    (void)atomic_fetch_add_explicit(word, count, memory_order_relaxed);
}

void pf_tally_add(pf_tally what, uint64_t count)
{
    if (shared)
        add(&shared->counts[what], count);
}

void pf_tally_failure(sluice_status code)
{
    if (shared && (uint32_t)code < PF_TALLY_CODES)
        add(&shared->failures[code], 1);
}

void pf_tally_place(sluice_phase phase)
{
    if (shared && own_place < PF_TALLY_PLACES)
        shared->places[own_place] = (uint32_t)phase;
}

void pf_tally_heap(const pf_heap *heap)
{
    if (!shared || own_place >= PF_TALLY_PLACES)
        return;
    shared->heaps[own_place][0] = heap->allocated;
    shared->heaps[own_place][1] = heap->active;
    shared->heaps[own_place][2] = heap->resident;
}

int64_t pf_tally_clock(void)
{
    return shared ? pf_monotonic_ns() : 0;
}

void pf_tally_since(pf_series series, int64_t clock)
{
    int64_t now = clock ? pf_tally_clock() : 0;
    if (now > 0)
        pf_tally_value(series, now > clock ? (uint64_t)(now - clock) : 0);
}

void pf_tally_value(pf_series series, uint64_t value)
{
    const uint64_t *bounds = pf_series_bounds(series);
    unsigned cell = 0;
    if (!shared)
        return;
    while (cell < PF_TALLY_BOUNDS && value > bounds[cell])
        cell++;
    add(&shared->series[series].sum, value);
    add(&shared->series[series].cells[cell], 1);
}

const uint64_t *pf_series_bounds(pf_series series)
{
    return series == PF_SERIES_GROUP ? sizes : times;
}
