/*
 * Adjacency: who is next to whom, for some fragments of an edge table and one direction (tables/<id>/indexes/<name>);
 * mapped read-only, checked by 64 KiB blocks as runs are. Derived: it may be absent, stale or damaged, and whoever
 * meets that reads the fragments instead.
 *
 * Compressed sparse rows: the distinct hashes of the near ends' keys, ascending; where the entries of each begin; per
 * edge the hash of its far end's key, and where the edge stands (number of the fragment, position). Ends are known by
 * the hashes of their keys (store/fragment/key.h), not by row ids, so nothing but the covered fragments can make it
 * wrong. A hash may stand for several keys, unless it is exact: then the key follows from it. Deleted edges are in it:
 * the reader knows which are.
 */
#ifndef STORE_FRAGMENT_ADJACENCY_H
#define STORE_FRAGMENT_ADJACENCY_H

#include "store/fragment/run.h"

#define ST_ADJACENCY_EDGES_MAX UINT32_MAX

typedef enum st_adjacency_direction { ST_ADJACENCY_OUT, ST_ADJACENCY_IN } st_adjacency_direction;

typedef struct st_adjacent { /* one edge */
    uint64_t far;            /* hash of the key at its far end */
    uint32_t ordinal;        /* of the fragment that holds it, among the covered ones */
    uint32_t position;
} st_adjacent;

typedef struct st_adjacency_cover { /* a covered fragment, by its number */
    char fragment[64];
    uint64_t rows;
} st_adjacency_cover;

/* `near`: (hash of the near end's key, ordinal << 32 | position) of every edge, sorted here in place; far[ordinal]: the
 * far hashes by position. Writes exclusively and syncs the file, not the folder. */
sluice_status st_adjacency_write(pf_volume *volume, uint64_t table, const char *name, st_adjacency_direction direction,
                                 const st_adjacency_cover *covers, uint32_t cover_count, st_run_entry *near,
                                 uint64_t count, const uint64_t *const *far, st_run_info *ret_info, sluice_error *err);

typedef struct st_adjacency st_adjacency;
/* CORRUPT when it is missing, or not what the list says. */
sluice_status st_adjacency_open(pf_volume *volume, uint64_t table, const st_run_info *info,
                                st_adjacency_direction direction, st_adjacency **ret_adjacency, sluice_error *err);
void st_adjacency_close(st_adjacency *adjacency); /* NULL allowed */
const st_adjacency_cover *st_adjacency_covers(const st_adjacency *adjacency, uint32_t *ret_count);
uint64_t st_adjacency_edges(const st_adjacency *adjacency);
/* The entries of a near hash: [*ret_first, *ret_end), ascending by (ordinal, position); both 0 when there are none. */
sluice_status st_adjacency_find(st_adjacency *adjacency, uint64_t hash, uint64_t *ret_first, uint64_t *ret_end,
                                sluice_error *err);
sluice_status st_adjacency_get(st_adjacency *adjacency, uint64_t entry, st_adjacent *ret_adjacent, sluice_error *err);
/* The entries [first, end) as they lie, for the hashes of their far ends; nothing is said of where the edges stand. */
sluice_status st_adjacency_entries(st_adjacency *adjacency, uint64_t first, uint64_t end,
                                   const st_adjacent **ret_entries, sluice_error *err);
/* What stands for one edge in a sum over edges, which does not depend on their order. */
static inline uint64_t st_adjacent_digest(uint64_t near, const st_adjacent *edge)
{
    uint64_t words[3] = {near, edge->far, (uint64_t)edge->ordinal << 32 | edge->position};
    return pf_xxh64_of(words, sizeof words);
}
/* Per covered fragment, the sum of its edges' digests (modulo 2^64). */
sluice_status st_adjacency_sum(st_adjacency *adjacency, uint64_t *ret_sums, sluice_error *err);
/* Every byte, and the order of everything; that each fragment has as many entries as rows. */
sluice_status st_adjacency_verify(st_adjacency *adjacency, sluice_error *err);

#endif
