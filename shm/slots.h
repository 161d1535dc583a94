/*
 * Worker slots: owner tokens, what each worker is doing, its progress, its last error, and how workers ended.
 *
 * A token is (slot, generation, random). Generations never repeat within a region, so whoever was stopped while its
 * slot was given to another is refused wherever its token is looked at. The supervisor gives tokens out and takes them
 * back, and it takes one back only from a process that it has reaped. Lines here have one writer each; no latch is
 * involved.
 */
#ifndef SHM_SLOTS_H
#define SHM_SLOTS_H

#include "shm/region.h"

typedef struct shm_token {
    uint32_t slot;
    uint64_t generation;
    uint64_t random;
} shm_token;

/* The supervisor's. A slot is given out before the fork, so that the child finds its token. */
shm_token shm_slot_assign(shm_region *region, uint32_t slot);
void shm_slot_started(shm_region *region, uint32_t slot, int64_t pid);
void shm_slot_revoke(shm_region *region, uint32_t slot);

bool shm_token_holds(const shm_region *region, const shm_token *token);
/* The fence check: the token holds and the region is in order; a refusal is counted. */
bool shm_token_allowed(shm_region *region, const shm_token *token);
shm_owner shm_token_owner(const shm_token *token);
uint32_t shm_owner_slot(shm_owner owner);

/* The worker's own line. */
void shm_slot_enter(shm_region *region, uint32_t slot, shm_stage stage, uint32_t phase, uint32_t index);
void shm_slot_beat(shm_region *region, uint32_t slot);
void shm_progress_add(shm_region *region, uint32_t slot, uint64_t rows, uint64_t bytes);
/* A task ended: what was counted for it stays; or it was lost: what was counted for it goes. */
void shm_progress_keep(shm_region *region, uint32_t slot);
void shm_progress_drop(shm_region *region, uint32_t slot);
void shm_progress_sum(const shm_region *region, uint64_t *ret_rows, uint64_t *ret_bytes);

/* The error cell of a slot; that of the supervisor is config.workers. Published by what is then recorded under a latch.
 */
void shm_error_put(shm_region *region, uint32_t cell, const sluice_error *error);
/* As found, with every text closed; `code` replaces the cell's (SLUICE_INTERNAL when that is no error). */
void shm_error_get(const shm_region *region, uint32_t cell, sluice_status code, sluice_error *ret_error);

typedef struct shm_death {
    uint32_t slot;
    uint64_t generation, pid;
    uint32_t wait_status;
    shm_stage stage;
    uint32_t phase, index;
} shm_death;
void shm_obituary_write(shm_region *region, const shm_death *death);
/* How many were written; *ret_death: the last one. */
uint64_t shm_obituary_last(const shm_region *region, shm_death *ret_death);

#endif
