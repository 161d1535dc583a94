/*
 * The publish queue (see shm/publish_queue.h). All changes are edits under the publish latch; each changes one entry,
 * so several of them are whole steps one by one.
 *
 * Lines: an entry's first line belongs to the latch. The offer is written under the latch by the owner of a free entry,
 * the answer by the worker that has taken it; a change of state under the latch hands both over.
 */
#include "shm/publish_queue.h"
#include "platform/check.h"
#include "platform/digest.h"
#include <string.h>

static shm_publish_entry *entry_of(const shm_region *region, uint32_t slot)
{
    return &region->publish->entries[slot];
}

void shm_publish_init(shm_region *region)
{
    lk_latch_init(&region->publish->latch);
    region->publish->entry_count = region->config.workers;
}

uint8_t *shm_publish_slice(const shm_region *region, uint32_t slot)
{
    return region->arena + slot * region->header->sections[SHM_ARENA].stride + SHM_ANSWER_MAX;
}

static bool same_place(const shm_publish_entry *a, const shm_publish_entry *b)
{
    return a->place[0] == b->place[0] && a->place[1] == b->place[1] && a->place[2] == b->place[2];
}

/* ---- check and repair ---- */

static bool check_entry(const shm_region *region, uint32_t slot)
{
    const shm_publish_entry *entry = entry_of(region, slot);
    bool taken = entry->state == SHM_PUBLISH_TAKEN;
    if (entry->state > SHM_PUBLISH_DECIDED || entry->leads > 1 || entry->doubtful > 1 || (entry->taker != 0) != taken ||
        entry->ticket > region->publish->next_ticket)
        return false;
    if (entry->state == SHM_PUBLISH_FREE)
        return entry->ticket == 0 && entry->owner == 0 && entry->leads == 0 && entry->doubtful == 0;
    return entry->ticket != 0 && (entry->owner != 0 || taken) && entry->length <= region->config.slice &&
           (entry->owner == 0 || shm_owner_slot(entry->owner) == slot) &&
           (!taken || shm_owner_slot(entry->taker) < region->config.workers);
}

bool shm_publish_check(const shm_region *region)
{
    const shm_publish *queue = region->publish;
    if (queue->intent.phase != 0 || queue->entry_count != region->config.workers)
        return false;
    for (uint32_t i = 0; i < region->config.workers; i++) {
        const shm_publish_entry *entry = entry_of(region, i);
        if (!check_entry(region, i))
            return false;
        for (uint32_t k = 0; k < i && entry->state != SHM_PUBLISH_FREE; k++) {
            const shm_publish_entry *other = entry_of(region, k);
            if (other->ticket == entry->ticket || (other->leads != 0 && entry->leads != 0 && same_place(other, entry)))
                return false;
        }
    }
    return true;
}

bool shm_publish_repair(void *context)
{
    shm_region *region = context;
    size_t length = sizeof *region->publish + region->config.workers * sizeof region->publish->entries[0];
    if (shm_edit_undo(&region->publish->intent, region->publish, length) && shm_publish_check(region))
        return true;
    shm_region_poison(region);
    return false;
}

/* ---- changes, under the latch ---- */

static sluice_status latch(shm_region *region, sluice_error *err)
{
    return shm_latch_take(region, &region->publish->latch, LK_RANK_LATCH_PUBLISH_QUEUE, shm_publish_repair, err);
}

static void unlatch(shm_region *region)
{
    lk_latch_release(&region->publish->latch, LK_RANK_LATCH_PUBLISH_QUEUE);
}

/* A worker that was fenced and runs on changes nothing any more. */
static sluice_status latch_as(const shm_publisher *me, sluice_error *err)
{
    PF_TRY(latch(me->region, err));
    if (shm_token_holds(me->region, &me->token))
        return SLUICE_OK;
    unlatch(me->region);
    return pf_fail(err, SLUICE_FENCED, "this worker's token was taken back");
}

static void begin(shm_region *region, shm_edit *edit, shm_operation operation)
{
    shm_edit_begin(edit, &region->publish->intent, region->publish, operation);
}

static void free_entry(shm_edit *edit, shm_publish_entry *entry)
{
    shm_set(edit, &entry->ticket, 0);
    shm_set(edit, &entry->owner, 0);
    shm_set(edit, &entry->taker, 0);
    shm_set(edit, &entry->leads, 0);
    shm_set(edit, &entry->doubtful, 0);
    shm_set(edit, &entry->state, SHM_PUBLISH_FREE);
}

/* Is the owner of this entry still the worker of its slot? */
static bool is_owned(const shm_region *region, uint32_t slot)
{
    shm_owner owner = entry_of(region, slot)->owner;
    uint64_t generation = region->slots[slot].generation;
    return owner != 0 && generation != 0 &&
           owner == shm_token_owner(&(shm_token){.slot = slot, .generation = generation});
}

shm_publish_state shm_publish_own(const shm_publisher *me)
{
    return (shm_publish_state)entry_of(me->region, me->token.slot)->state;
}

sluice_status shm_publish_enter(const shm_publisher *me, const shm_offer *offer, uint64_t *ticket, sluice_error *err)
{
    shm_region *region = me->region;
    shm_publish_entry *entry = entry_of(region, me->token.slot);
    pf_xxh128 check = pf_xxh128_of(shm_publish_slice(region, me->token.slot), offer->length);
    shm_edit edit;
    PF_ASSERT(offer->length <= region->config.slice);
    PF_TRY(latch_as(me, err));
    PF_ALWAYS(entry->state == SHM_PUBLISH_FREE);
    memcpy(entry->place, offer->place, sizeof entry->place);
    entry->alone = offer->alone;
    entry->length = offer->length;
    memcpy(entry->check, &check, sizeof entry->check);
    begin(region, &edit, SHM_OP_PUBLISH_ENTER);
    if (*ticket == 0) {
        *ticket = region->publish->next_ticket + 1;
        shm_set(&edit, &region->publish->next_ticket, *ticket);
    }
    shm_set(&edit, &entry->ticket, *ticket);
    shm_set(&edit, &entry->owner, shm_token_owner(&me->token));
    shm_set(&edit, &entry->state, SHM_PUBLISH_READY);
    shm_edit_commit(&edit);
    unlatch(region);
    return SLUICE_OK;
}

static bool is_led(const shm_region *region, const shm_publish_entry *about)
{
    for (uint32_t i = 0; i < region->config.workers; i++) {
        const shm_publish_entry *entry = entry_of(region, i);
        if (entry->leads != 0 && same_place(entry, about))
            return true;
    }
    return false;
}

sluice_status shm_publish_look(const shm_publisher *me, shm_publish_answer *ret_answer, sluice_error *err)
{
    shm_region *region = me->region;
    shm_publish_entry *entry = entry_of(region, me->token.slot);
    shm_edit edit;
    PF_TRY(latch_as(me, err));
    if (entry->state == SHM_PUBLISH_READY && entry->leads == 0 && !is_led(region, entry)) {
        begin(region, &edit, SHM_OP_PUBLISH_LEAD);
        shm_set(&edit, &entry->leads, 1);
        shm_edit_commit(&edit);
    }
    *ret_answer = (shm_publish_answer){.state = (shm_publish_state)entry->state,
                                       .leads = entry->leads != 0,
                                       .sequence = &entry->sequence,
                                       .seen = shm_sequence(&entry->sequence)};
    unlatch(region);
    return SLUICE_OK;
}

/* The ready entry of this branch with the lowest ticket above `after`; config.workers: none. */
static uint32_t find_next(const shm_region *region, const shm_publish_entry *about, uint64_t after)
{
    uint32_t best = region->config.workers;
    for (uint32_t i = 0; i < region->config.workers; i++) {
        const shm_publish_entry *entry = entry_of(region, i);
        if (entry->state == SHM_PUBLISH_READY && entry->ticket > after && same_place(entry, about) &&
            is_owned(region, i) && (best == region->config.workers || entry->ticket < entry_of(region, best)->ticket))
            best = i;
    }
    return best;
}

sluice_status shm_publish_take(const shm_publisher *me, uint32_t *ret_slots, uint32_t *ret_count, sluice_error *err)
{
    shm_region *region = me->region;
    const shm_publish_entry *own = entry_of(region, me->token.slot);
    uint64_t last = 0;
    bool closed = false;
    *ret_count = 0;
    PF_TRY(latch_as(me, err));
    PF_ALWAYS(own->leads != 0);
    while (!closed) {
        uint32_t slot = find_next(region, own, last);
        if (slot == region->config.workers || (*ret_count > 0 && entry_of(region, slot)->alone != 0))
            break;
        shm_publish_entry *entry = entry_of(region, slot);
        shm_edit edit;
        begin(region, &edit, SHM_OP_PUBLISH_TAKE);
        shm_set(&edit, &entry->taker, shm_token_owner(&me->token));
        shm_set(&edit, &entry->state, SHM_PUBLISH_TAKEN);
        shm_edit_commit(&edit);
        ret_slots[(*ret_count)++] = slot;
        last = entry->ticket;
        closed = entry->alone != 0;
    }
    unlatch(region);
    return SLUICE_OK;
}

bool shm_publish_offered(const shm_publisher *me, uint32_t slot, const uint8_t **ret_bytes, size_t *ret_length)
{
    const shm_publish_entry *entry = entry_of(me->region, slot);
    *ret_bytes = shm_publish_slice(me->region, slot);
    *ret_length = (size_t)entry->length;
    pf_xxh128 check = pf_xxh128_of(*ret_bytes, *ret_length);
    return memcmp(&check, entry->check, sizeof entry->check) == 0;
}

void *shm_publish_answer_of(const shm_publisher *me, uint32_t slot)
{
    return shm_publish_slice(me->region, slot) - SHM_ANSWER_MAX;
}

/* A taken entry, in an edit of its own. */
static void decide(shm_region *region, uint32_t slot, bool again, bool doubtful)
{
    shm_publish_entry *entry = entry_of(region, slot);
    shm_edit edit;
    begin(region, &edit, SHM_OP_PUBLISH_DECIDE);
    if (is_owned(region, slot)) {
        shm_set(&edit, &entry->taker, 0);
        shm_set(&edit, &entry->doubtful, entry->doubtful != 0 || doubtful);
        shm_set(&edit, &entry->state, again ? SHM_PUBLISH_READY : SHM_PUBLISH_DECIDED);
    } else {
        free_entry(&edit, entry);
    }
    shm_edit_commit(&edit);
}

sluice_status shm_publish_decide_all(const shm_publisher *me, const uint32_t *slots, const bool *again, uint32_t count,
                                     sluice_error *err)
{
    PF_TRY(latch_as(me, err));
    for (uint32_t i = 0; i < count; i++) {
        PF_ALWAYS(entry_of(me->region, slots[i])->taker == shm_token_owner(&me->token));
        decide(me->region, slots[i], again[i], false);
    }
    unlatch(me->region);
    for (uint32_t i = 0; i < count; i++)
        if (slots[i] != me->token.slot)
            shm_wake(&entry_of(me->region, slots[i])->sequence);
    return SLUICE_OK;
}

sluice_status shm_publish_decide(const shm_publisher *me, uint32_t slot, bool again, sluice_error *err)
{
    return shm_publish_decide_all(me, &slot, &again, 1, err);
}

sluice_status shm_publish_resign(const shm_publisher *me, bool doubtful, sluice_error *err)
{
    shm_region *region = me->region;
    shm_publish_entry *own = entry_of(region, me->token.slot);
    uint32_t next = region->config.workers;
    PF_TRY(latch_as(me, err));
    for (uint32_t i = 0; i < region->config.workers; i++)
        if (entry_of(region, i)->taker == shm_token_owner(&me->token))
            decide(region, i, true, doubtful);
    if (own->leads != 0) {
        shm_edit edit;
        next = find_next(region, own, 0);
        begin(region, &edit, SHM_OP_PUBLISH_LEAD);
        shm_set(&edit, &own->leads, 0);
        shm_edit_commit(&edit);
    }
    unlatch(region);
    if (next < region->config.workers)
        shm_wake(&entry_of(region, next)->sequence);
    return SLUICE_OK;
}

bool shm_publish_is_elsewhere(const shm_publisher *me)
{
    const shm_publish_entry *entry = entry_of(me->region, me->token.slot);
    return entry->state == SHM_PUBLISH_TAKEN && entry->taker != shm_token_owner(&me->token);
}

sluice_status shm_publish_leave(const shm_publisher *me, sluice_error *err)
{
    shm_publish_entry *entry = entry_of(me->region, me->token.slot);
    shm_edit edit;
    PF_TRY(latch_as(me, err));
    PF_ALWAYS(entry->state == SHM_PUBLISH_DECIDED && entry->leads == 0);
    begin(me->region, &edit, SHM_OP_PUBLISH_LEAVE);
    free_entry(&edit, entry);
    shm_edit_commit(&edit);
    unlatch(me->region);
    return SLUICE_OK;
}

sluice_status shm_publish_withdraw(const shm_publisher *me, bool abandon, bool *ret_out, sluice_error *err)
{
    shm_publish_entry *entry = entry_of(me->region, me->token.slot);
    shm_edit edit;
    PF_TRY(latch_as(me, err));
    PF_ASSERT(entry->leads == 0);
    bool ready = entry->state == SHM_PUBLISH_READY;
    bool leaves = ready && (entry->doubtful == 0 || abandon);
    *ret_out = entry->state == SHM_PUBLISH_FREE || (ready && entry->doubtful == 0);
    if (leaves || (abandon && entry->state == SHM_PUBLISH_TAKEN)) {
        begin(me->region, &edit, SHM_OP_PUBLISH_LEAVE);
        if (leaves)
            free_entry(&edit, entry);
        else
            shm_set(&edit, &entry->owner, 0);
        shm_edit_commit(&edit);
    }
    unlatch(me->region);
    return SLUICE_OK;
}

/* ---- the supervisor ---- */

sluice_status shm_publish_bury(shm_region *region, uint32_t slot, sluice_error *err)
{
    shm_publish_entry *own = entry_of(region, slot);
    shm_edit edit;
    PF_TRY(latch(region, err));
    for (uint32_t i = 0; i < region->config.workers; i++) {
        const shm_publish_entry *entry = entry_of(region, i);
        if (entry->state == SHM_PUBLISH_TAKEN && shm_owner_slot(entry->taker) == slot)
            decide(region, i, true, true); /* its own becomes free: nobody owns it any more */
    }
    begin(region, &edit, SHM_OP_DEATH);
    if (own->state == SHM_PUBLISH_TAKEN)
        shm_set(&edit, &own->leads, 0);
    else
        free_entry(&edit, own);
    shm_edit_commit(&edit);
    unlatch(region);
    for (uint32_t i = 0; i < region->config.workers; i++)
        shm_wake(&entry_of(region, i)->sequence);
    return SLUICE_OK;
}
