/* Lines with one writer each: tokens, stages, progress, errors, obituaries (see shm/slots.h). */
#include "shm/slots.h"
#include "platform/check.h"
#include <string.h>

shm_token shm_slot_assign(shm_region *region, uint32_t slot)
{
    PF_ASSERT(slot < region->config.workers && region->slots[slot].generation == 0);
    shm_token token = {.slot = slot, .generation = ++region->last_generation, .random = pf_random_u64()};
    PF_ALWAYS(token.generation < UINT32_MAX);
    region->slots[slot].stage = SHM_STARTING;
    region->slots[slot].random = token.random;
    region->slots[slot].pid = 0;
    region->slots[slot].generation = token.generation;
    return token;
}

void shm_slot_started(shm_region *region, uint32_t slot, int64_t pid)
{
    region->slots[slot].pid = (uint64_t)pid;
}

void shm_slot_revoke(shm_region *region, uint32_t slot)
{
    region->slots[slot].generation = 0;
    region->slots[slot].deaths = region->slots[slot].deaths + 1;
}

bool shm_token_holds(const shm_region *region, const shm_token *token)
{
    const shm_slot *slot = &region->slots[token->slot];
    return slot->generation == token->generation && slot->random == token->random;
}

bool shm_token_allowed(shm_region *region, const shm_token *token)
{
    shm_state state = shm_region_state(region);
    if ((state == SHM_READY || state == SHM_ENDING) && shm_token_holds(region, token))
        return true;
    /* Not this worker's line any more when its slot was given away: an addition loses nothing of the new one's. */
    atomic_fetch_add(&region->slots[token->slot].refusals, 1);
    return false;
}

shm_owner shm_token_owner(const shm_token *token)
{
    return token->generation << 16 | token->slot;
}

uint32_t shm_owner_slot(shm_owner owner)
{
    return (uint32_t)(owner & UINT16_MAX);
}

void shm_slot_enter(shm_region *region, uint32_t slot, shm_stage stage, uint32_t phase, uint32_t index)
{
    region->slots[slot].phase = phase;
    region->slots[slot].index = index;
    region->slots[slot].stage = stage;
}

void shm_slot_beat(shm_region *region, uint32_t slot)
{
    region->slots[slot].heartbeat = region->slots[slot].heartbeat + 1;
}

void shm_progress_add(shm_region *region, uint32_t slot, uint64_t rows, uint64_t bytes)
{
    shm_progress *line = &region->progress[slot];
    line->task_rows = line->task_rows + rows;
    line->task_bytes = line->task_bytes + bytes;
}

/* A death between the stores counts a task's part once too little: it is for people to look at. */
void shm_progress_keep(shm_region *region, uint32_t slot)
{
    shm_progress *line = &region->progress[slot];
    uint64_t rows = line->task_rows;
    uint64_t bytes = line->task_bytes;
    shm_progress_drop(region, slot);
    line->rows = line->rows + rows;
    line->bytes = line->bytes + bytes;
}

void shm_progress_drop(shm_region *region, uint32_t slot)
{
    region->progress[slot].task_rows = 0;
    region->progress[slot].task_bytes = 0;
}

void shm_progress_sum(const shm_region *region, uint64_t *ret_rows, uint64_t *ret_bytes)
{
    *ret_rows = 0;
    *ret_bytes = 0;
    for (uint32_t i = 0; i < region->config.workers; i++) {
        *ret_rows += region->progress[i].rows + region->progress[i].task_rows;
        *ret_bytes += region->progress[i].bytes + region->progress[i].task_bytes;
    }
}

void shm_error_put(shm_region *region, uint32_t cell, const sluice_error *error)
{
    PF_ASSERT(cell <= region->config.workers);
    region->errors[cell].error = *error;
}

void shm_error_get(const shm_region *region, uint32_t cell, sluice_status code, sluice_error *ret_error)
{
    PF_ASSERT(cell <= region->config.workers);
    *ret_error = region->errors[cell].error;
    ret_error->code = code == SLUICE_OK ? SLUICE_INTERNAL : code;
    ret_error->message[sizeof ret_error->message - 1] = '\0';
    ret_error->text[sizeof ret_error->text - 1] = '\0';
    ret_error->hint[sizeof ret_error->hint - 1] = '\0';
    ret_error->operation_id[sizeof ret_error->operation_id - 1] = '\0';
    ret_error->commit_id[sizeof ret_error->commit_id - 1] = '\0';
    ret_error->details[sizeof ret_error->details - 1] = '\0';
}

void shm_obituary_write(shm_region *region, const shm_death *death)
{
    uint64_t number = ++region->last_obituary;
    shm_obituary *entry = &region->obituaries[(number - 1) % SHM_OBITUARIES];
    entry->number = 0; /* whoever looks on does not take a mixture for an entry */
    entry->slot = death->slot;
    entry->generation = death->generation;
    entry->pid = death->pid;
    entry->wait_status = death->wait_status;
    entry->stage = (uint64_t)death->stage;
    entry->phase = death->phase;
    entry->index = death->index;
    entry->number = number;
}

uint64_t shm_obituary_last(const shm_region *region, shm_death *ret_death)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < SHM_OBITUARIES; i++) {
        const shm_obituary *entry = &region->obituaries[i];
        if (entry->number <= newest)
            continue;
        newest = entry->number;
        *ret_death = (shm_death){.slot = (uint32_t)entry->slot,
                                 .generation = entry->generation,
                                 .pid = entry->pid,
                                 .wait_status = (uint32_t)entry->wait_status,
                                 .stage = (shm_stage)entry->stage,
                                 .phase = (uint32_t)entry->phase,
                                 .index = (uint32_t)entry->index};
    }
    return newest;
}
