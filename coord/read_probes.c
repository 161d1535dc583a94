/*
 * Did a plan say what it looked at? Every look at stored keys, ends and unique tuples goes through a table's reader,
 * which notes the uses that it was asked for; each of them must stand in the read set (OW-024, OW-059). This compares
 * kinds and tables, not keys: a validator whose reads are not registered at all is found by its first test, whatever
 * races.
 */
#include "coord/read_set.h"

#define KIND(name) (1u << CO_READ_##name)

/* The kinds of reads that say what was asked for under a use. */
static const unsigned sayings[] = {
    [ST_RUN_KEY] = KIND(KEY_ABSENT) | KIND(KEY_PRESENT) | KIND(ROW) | KIND(OBJECT) | KIND(PROPERTY),
    [ST_RUN_FROM] = KIND(COUNT),
    [ST_RUN_TO] = KIND(COUNT),
    [ST_RUN_UNIQUE] = KIND(UNIQUE_ABSENT) | KIND(UNIQUE_PRESENT),
};

static bool says(const co_read_set *set, const st_schema *schema, const st_type_def *type, st_run_use use)
{
    bool of_edges = use == ST_RUN_FROM || use == ST_RUN_TO;
    uint64_t node = of_edges ? schema->types[use == ST_RUN_FROM ? type->from : type->to].table : 0;
    for (uint32_t i = 0; i < set->count; i++) {
        unsigned kind = 1u << set->reads[i].kind;
        uint64_t table = set->reads[i].set.table;
        if (table == type->table && (kind & (sayings[use] | KIND(FRAGMENTS) | KIND(WHOLE_TABLE))))
            return true;
        if (of_edges && table == node && (kind & (KIND(EDGES_EMPTY) | KIND(WHOLE_TABLE))))
            return true;
    }
    return false;
}

bool co_read_set_misses_probe(const co_read_set *set, const st_snapshot *snapshot, uint64_t *ret_table,
                              st_run_use *ret_use)
{
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    for (uint32_t i = 0; i < schema->type_count && !set->reads_head; i++) {
        const st_type_def *type = &schema->types[i];
        unsigned probed = st_snapshot_probes(snapshot, type->table);
        for (unsigned use = ST_RUN_KEY; use <= ST_RUN_UNIQUE; use++) {
            if ((probed & 1u << use) && !says(set, schema, type, (st_run_use)use)) {
                *ret_table = type->table;
                *ret_use = (st_run_use)use;
                return true;
            }
        }
    }
    return false;
}
