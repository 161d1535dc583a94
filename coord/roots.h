/*
 * The branch incarnations that something living reaches: what collection and verify go through besides the names.
 *
 * Roots are every branch behind a ref, every branch that an intent makes (its ref may come by recovery), every branch
 * with a pinned reader, every branch with a checkpoint, whatever any of these was forked from (their state and history
 * lie in its log), and what it has merged and main has not (its next merge may begin there). A folder
 * branches/<incarnation> that is none of these is litter of a dead creator, or a deleted branch that nothing leads into
 * any more.
 */
#ifndef COORD_ROOTS_H
#define COORD_ROOTS_H

#include "store/state/state.h"

typedef struct co_roots {
    uint64_t *incarnations; /* each once */
    uint32_t count, room;
    uint32_t made, made_end; /* [made, made_end) have no ref yet: an intent makes them, and they may not be whole */
} co_roots;
void co_roots_free(co_roots *roots); /* safe on a zeroed one */
/* CORRUPT when a ref, or the log of a root, cannot be read: then nothing may be called unreachable. */
sluice_status co_roots_find(st_graph *graph, co_roots *ret_roots, sluice_error *err);
/* Then what is missing of it is not damage. */
bool co_roots_may_be_half_made(const co_roots *roots, uint32_t which);
bool co_roots_have(const co_roots *roots, uint64_t incarnation);
/* The newest generation of a refreshed log that a power loss cannot take any more. What lets go of something counts
 * from there: a head that its publisher has not lived to sync may be gone tomorrow, and then what stood before it is
 * needed.
 */
uint64_t co_settled_end(const st_log *log);
/* The state there. */
sluice_status co_settled_view(st_graph *graph, st_log *log, st_view **ret_view, sluice_error *err);

#endif
