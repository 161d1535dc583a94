/*
 * Inside of store/read: the adjacency of an edge table, as neighbours goes by it. It never decides an answer: what it
 * does not cover, or what turns out to be damaged, is left to a scan of the fragment.
 *
 * Builds with failpoints know SLUICE_NO_INDEXES=1 (everything-off runs): nothing is covered.
 */
#ifndef STORE_READ_NEARBY_H
#define STORE_READ_NEARBY_H

#include "store/fragment/adjacency.h"
#include "store/read/reader.h"

typedef struct st_nearby st_nearby;

typedef struct st_nearby_edge { /* a living edge at a node that is sought */
    uint32_t fragment;          /* of the table's list */
    uint32_t position;
    bool in;       /* found by its end `to` */
    uint64_t near; /* hashes of the keys of both ends: a candidate, unless hashes of its type are exact */
    uint64_t far;
} st_nearby_edge;

typedef struct st_nearby_edges {
    st_nearby_edge *items;
    uint64_t count, room;
} st_nearby_edges;
#define ST_NEARBY_EDGES_MAX (UINT64_C(8) << 20)

typedef struct st_nearby_words { /* keys at far ends, of a type whose hashes are exact */
    uint64_t *items;
    uint64_t count, room;
} st_nearby_words;
/* Room for that many more. */
sluice_status st_nearby_words_reserve(st_nearby_words *words, uint64_t more, sluice_error *err);

sluice_status st_nearby_open(st_snapshot *snapshot, const st_type_def *edge, st_nearby **ret_nearby, sluice_error *err);
void st_nearby_close(st_nearby *nearby); /* NULL allowed */
/* Edges, dead ones too, of the fragments that it covers. */
uint64_t st_nearby_covered(const st_nearby *nearby);
bool st_nearby_covers(const st_nearby *nearby, uint32_t fragment);
/* Appends the living edges of covered fragments whose near end hashes to one of these (ascending, distinct). *ret_all
 * false: an index is damaged, and covers nothing from now on; or they are too many. Then what was appended is void. */
sluice_status st_nearby_gather(st_nearby *nearby, st_adjacency_direction direction, const uint64_t *hashes,
                               uint64_t count, st_nearby_edges *edges, bool *ret_all, sluice_error *err);
/* Appends the keys at the far ends of the living edges of covered fragments at one node, where hashes are exact at both
 * ends: what st_nearby_gather would name, but nothing is said of where the edges stand. *ret_all as there. */
sluice_status st_nearby_far_words(st_nearby *nearby, st_adjacency_direction direction, uint64_t hash,
                                  st_nearby_words *words, bool *ret_all, sluice_error *err);

#endif
