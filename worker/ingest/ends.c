#include "worker/ingest/ends.h"

#include "platform/memory.h"
#include <stdlib.h>

#define PART      6u    /* of the process's memory goes into the table */
#define FILLED    4u    /* a table has at least so many slots for each hash: up to half of them lie beyond the range */
#define STEPS_MAX 1024u /* from a slot to where its hash is: hashes that were made to collide are merged */

/* Open addressing by the leading bits of the place in the range: runs are sorted, so one walks through the table from
 * its beginning to its end. */
typedef struct table {
    uint64_t *slots; /* 0: free */
    uint64_t low, mask;
    unsigned shift;
    bool zero; /* it has the hash 0 */
    bool collides, missing;
    wk_side *nodes;
} table;

/* The slot of a hash, or a free one where it would be; false: too far away. */
static inline bool find(const table *t, uint64_t hash, uint64_t *ret_slot)
{
    uint64_t slot = (hash - t->low) >> t->shift;

    for (unsigned steps = 0; steps < STEPS_MAX; steps++, slot++) {
        uint64_t there = t->slots[slot & t->mask];
        if (there == hash || there == 0) {
            *ret_slot = slot & t->mask;
            return true;
        }
    }
    return false;
}

static sluice_status add_nodes(void *context, uint32_t fragment, const st_run_entry *entries, uint64_t count,
                               sluice_error *err)
{
    table *t = context;
    uint64_t slot;

    (void)err;
    for (uint64_t i = 0; i < count && !t->collides; i++) {
        if (wk_side_is_dead(t->nodes, fragment, entries[i].position))
            continue;
        if (entries[i].hash == 0)
            t->zero = true;
        else if (find(t, entries[i].hash, &slot))
            t->slots[slot] = entries[i].hash;
        else
            t->collides = true;
    }
    return SLUICE_OK;
}

static sluice_status look_for_ends(void *context, uint32_t fragment, const st_run_entry *entries, uint64_t count,
                                   sluice_error *err)
{
    table *t = context;

    (void)fragment, (void)err;
    for (uint64_t i = 0; i < count && !t->missing; i++) {
        uint64_t hash = entries[i].hash, slot;
        if (i == 0 || hash != entries[i - 1].hash)
            t->missing = hash ? !find(t, hash, &slot) || t->slots[slot] == 0 : !t->zero;
    }
    return SLUICE_OK;
}

/* Slots for so many nodes; false: there is no memory for them. */
static bool make_table(table *t, uint64_t nodes, wk_range range)
{
    uint64_t slots = 1, most = pf_memory_part(PART, 0, UINT64_MAX) / sizeof *t->slots;
    unsigned bits = 0, range_bits = range.high > range.low ? 64 - (unsigned)__builtin_clzll(range.high - range.low) : 0;

    for (; slots / FILLED <= nodes; slots *= 2, bits++)
        if (slots > most / 2)
            return false;
    t->shift = range_bits > bits ? range_bits - bits : 0;
    t->low = range.low;
    t->mask = slots - 1;
    t->slots = calloc(slots, sizeof *t->slots);
    if (t->slots)
        pf_memory_to_fill(t->slots, slots * sizeof *t->slots);
    return t->slots;
}

sluice_status wk_ends_are_there(wk_side *edges, st_run_use use, wk_side *nodes, wk_range range, bool *ret_there,
                                sluice_error *err)
{
    table t = {.nodes = nodes};
    uint64_t count = 0;
    sluice_status status;

    *ret_there = false;
    PF_TRY(wk_stream_entries(nodes, ST_RUN_KEY, range, &count, err));
    if (!make_table(&t, count, range))
        return SLUICE_OK;
    status = wk_stream_blocks(nodes, ST_RUN_KEY, range, add_nodes, &t, err);
    if (status == SLUICE_OK && !t.collides)
        status = wk_stream_blocks(edges, use, range, look_for_ends, &t, err);
    *ret_there = status == SLUICE_OK && !t.collides && !t.missing;
    free(t.slots);
    return status;
}
