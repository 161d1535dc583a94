/*
 * Building the adjacency of some fragments of an edge table for one direction: both ends of every edge are hashed, the
 * near ones sorted. Memory: WK_EDGE_BYTES an edge, and one fragment open at a time.
 */
#ifndef WORKER_MAINTAIN_NEIGHBOURHOOD_H
#define WORKER_MAINTAIN_NEIGHBOURHOOD_H

#include "store/fragment/adjacency.h"
#include "store/state/state.h"

#define WK_EDGE_BYTES 56u

typedef struct wk_neighbourhood {
    pf_volume *volume;
    uint64_t table;
    const st_edit_add *const *fragments; /* staged ones */
    uint32_t count;
    st_adjacency_direction direction;
    char prefix[48]; /* of the file's name */
    uint64_t number;
    uint32_t tries;                                                /* how many numbers it may use */
    void (*advance)(void *context, uint64_t rows, uint64_t bytes); /* NULL allowed */
    void *advance_context;
} wk_neighbourhood;

/* How many edges this process's part of the memory allows at once, up to `most`; 65,536 in any case. */
uint64_t wk_neighbourhood_edges(uint64_t most);
/* Writes and syncs the file, not the folder. */
sluice_status wk_neighbourhood_write(const wk_neighbourhood *work, st_run_info *ret_info, sluice_error *err);

#endif
